use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError},
    transport::{IntoTransport, StreamableHttpClientTransport, async_rw::AsyncRwTransport},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{process::Command, sync::Notify};

use crate::Failure;

const AT_ONCE: usize = 1000;
/// Over HTTP this client takes no body above 16 MiB.
const LARGE: usize = 15 << 20;

#[derive(Clone, Default)]
struct Looker {
    changed: Arc<Notify>,
    progress: Arc<Mutex<Vec<(f64, Option<f64>)>>>,
}

type Session = RunningService<RoleClient, Looker>;

pub async fn stdio(modern: bool, command: &str, args: &[String]) -> Result<(), Failure> {
    let mut child =
        Command::new(command).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    look(modern, AsyncRwTransport::new(stdout, stdin)).await
}

pub async fn http(modern: bool, url: &str) -> Result<(), Failure> {
    look(modern, StreamableHttpClientTransport::from_uri(url)).await
}

impl ClientHandler for Looker {
    fn get_info(&self) -> ClientConfig {
        let extensions = json!({TASKS_EXTENSION_ID: {}});
        let capabilities = json!({"sampling": {}, "elicitation": {}, "extensions": extensions});
        let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("matrix", "1"))
    }

    #[allow(deprecated, reason = "what is deprecated is looked at as well")]
    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("said"), "m".into()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Ok(mut progress) = self.progress.lock() {
            progress.push((step.progress, step.total));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn plain<T: Serialize>(answer: Result<T, ServiceError>) -> Value {
    match answer {
        Ok(answer) => serde_json::to_value(answer).unwrap_or_default(),
        Err(error) => json!(error.to_string()),
    }
}

fn text(answer: &CallToolResult) -> String {
    let answer = serde_json::to_value(answer).unwrap_or_default();
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

async fn said(session: &Session, name: &'static str) -> Result<usize, Failure> {
    Ok(text(&session.call_tool(call(name, json!({}))).await?).parse()?)
}

async fn look<T, E, A>(modern: bool, transport: T) -> Result<(), Failure>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let looker = Looker::default();
    let lifecycle = if modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let session = match looker.clone().serve_with_lifecycle(transport, lifecycle).await {
        Ok(session) => session,
        Err(why) => {
            println!("{}", json!({"refused": why.to_string()}));
            return Ok(());
        }
    };
    let mut seen = json!({"server": session.peer_info().map(|info| serde_json::to_value(&*info).unwrap_or_default())});
    seen["tools"] = plain(session.list_tools(None).await);
    let greet = serde_json::from_value(json!({"name": "greet", "arguments": {"name": "Ada"}}))?;
    seen["prompts"] = json!([plain(session.list_prompts(None).await), plain(session.get_prompt(greet).await)]);
    let read = async |uri: &str| plain(session.read_resource(ReadResourceRequestParams::new(uri)).await);
    seen["resources"] = json!([
        plain(session.list_resources(None).await),
        plain(session.list_resource_templates(None).await),
        read("matrix://notes").await,
        read("matrix://rows/7").await,
    ]);
    seen["result"] = plain(session.call_tool(call("echo", json!({"text": "é🚀 \u{2028} \""}))).await);
    seen["tool_error"] = plain(session.call_tool(call("fail", json!({}))).await);
    seen["errors"] =
        json!([plain(session.call_tool(call("no_such_tool", json!({}))).await), read("matrix://none").await]);
    session.call_tool(call("steps", json!({}))).await?;
    // The SDK calls its handlers at the same time, so they may come in any order.
    let mut steps = looker.progress.lock().map(|steps| steps.clone()).unwrap_or_default();
    steps.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    seen["progress"] = json!(steps);
    seen["elicitation"] = plain(session.call_tool(call("ask", json!({"question": "Who?"}))).await);
    seen["sampling"] = plain(session.call_tool(call("model", json!({"prompt": "p"}))).await);
    seen["changes"] = json!(changes(modern, &session, &looker).await?);
    let before = said(&session, "given_up").await?;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("wait", json!({}))));
    let waiting = session.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    waiting.cancel(Some("enough".into())).await?;
    for _ in 0..300 {
        if said(&session, "given_up").await? > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    seen["given_up"] = json!(said(&session, "given_up").await? - before);
    let blob = text(&session.call_tool(call("blob", json!({"bytes": LARGE}))).await?);
    seen["large"] = json!([blob.len(), blob.bytes().all(|byte| byte == b'x')]);
    let mut many = tokio::task::JoinSet::new();
    for n in 0..AT_ONCE {
        let peer = session.peer().clone();
        many.spawn(async move {
            let words = format!("{n} é🚀");
            let answer = peer.call_tool_once(call("echo", json!({"text": words}))).await;
            matches!(answer, Ok(CallToolResponse::Complete(answer)) if text(&answer) == words)
        });
    }
    seen["at_once"] = json!(many.join_all().await.into_iter().filter(|right| *right).count());
    if modern && session.peer_info().is_some_and(|info| info.capabilities.supports_tasks()) {
        seen["tasks"] = tasks(&session).await?;
    }
    println!("{seen}");
    session.cancel().await?;
    Ok(())
}

/// What a server does with tasks (the extension of 2026-07-28): one that asks the user, and one that is cancelled.
async fn tasks(session: &Session) -> Result<Value, Failure> {
    let create = async |text: &str| match session.call_tool_once(call("later", json!({"text": text}))).await? {
        CallToolResponse::Task(created) => Ok(created.task),
        _ => Err(Failure::from("no task")),
    };
    // Names and times differ from run to run.
    let plain = |state: Value| {
        let Value::Object(mut state) = state else { return Value::Null };
        let named = state.remove("taskId").is_some();
        state.remove("createdAt");
        state.remove("lastUpdatedAt");
        state.insert("named".into(), json!(named));
        Value::Object(state)
    };
    let state =
        async |id: &str| Ok::<_, Failure>(serde_json::to_value(session.get_task(GetTaskParams::new(id)).await?)?);
    let (task, never) = (create("é🚀").await?, create("never").await?);
    let mut seen = json!({"created": plain(serde_json::to_value(&task)?), "asked": 0});
    session.cancel_task(CancelTaskParams::new(&never.task_id)).await?;
    for (key, id) in [("state", &task.task_id), ("cancelled", &never.task_id)] {
        for _ in 0..300 {
            let now = state(id).await?;
            match now["status"].as_str() {
                Some("working") => {}
                Some("input_required") => {
                    let asked = seen["asked"].as_u64().unwrap_or_default();
                    if asked == 0 {
                        seen["requests"] = now["inputRequests"].clone();
                        let answers = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
                        session.update_task(UpdateTaskParams::new(id, serde_json::from_value(answers)?)).await?;
                        seen["asked"] = json!(asked + 1);
                    }
                }
                _ => {
                    seen[key] = plain(now);
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    seen["unknown"] = json!(state("none").await.err().map(|error| error.to_string()));
    Ok(seen)
}

async fn changes(modern: bool, session: &Session, looker: &Looker) -> Result<bool, Failure> {
    const PATIENCE: Duration = Duration::from_secs(3);
    if !modern {
        session.call_tool(call("change", json!({}))).await?;
        return Ok(tokio::time::timeout(PATIENCE, looker.changed.notified()).await.is_ok());
    }
    let filter = serde_json::from_value(json!({"toolsListChanged": true}))?;
    let mut events = session.listen(filter).await?;
    session.call_tool(call("change", json!({}))).await?;
    let heard = matches!(tokio::time::timeout(PATIENCE, events.next()).await, Ok(Ok(Some(_))));
    events.cancel().await?;
    Ok(heard)
}
