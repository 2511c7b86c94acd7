use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, SubscriptionContext},
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::Failure;

#[derive(Clone)]
struct Matrix {
    given_up: Arc<AtomicUsize>,
    changed: broadcast::Sender<()>,
    tasks: TaskManager,
}

pub async fn stdio() -> Result<(), Failure> {
    Matrix::new().serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

pub async fn http() -> Result<(), Failure> {
    let matrix = Matrix::new();
    let service: StreamableHttpService<Matrix, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(matrix.clone()), Default::default(), Default::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let serve = axum::serve(listener, axum::Router::new().nest_service("/mcp", service));
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        served = serve.into_future() => served?,
        _ = ended => {}
    }
    Ok(())
}

fn made<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28")
}

fn needed(key: &str, request: Value) -> Result<CallToolResponse, ErrorData> {
    let asked: InputRequiredResult = made(json!({
        "resultType": "input_required", "inputRequests": {key: request}, "requestState": "state \"é🚀\"",
    }))?;
    Ok(asked.into())
}

const TOOLS: [(&str, Option<(&str, &str)>); 10] = [
    ("echo", Some(("text", "string"))),
    ("blob", Some(("bytes", "integer"))),
    ("fail", None),
    ("steps", None),
    ("ask", Some(("question", "string"))),
    ("model", Some(("prompt", "string"))),
    ("wait", None),
    ("given_up", None),
    ("change", None),
    ("later", Some(("text", "string"))),
];

/// What a task does: asks the user, or waits until it is cancelled.
async fn later(text: String, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    if text == "never" {
        task.cancelled().await;
        return Err(TaskExit::Cancelled);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let form = json!({
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    });
    let asked = made(json!({"method": "elicitation/create", "params": form}))?;
    let answer = task.request_input("name", asked).await?;
    Ok(said(format!("later: {text} {}", answer["content"]["name"].as_str().unwrap_or_default())))
}

impl Matrix {
    fn new() -> Self {
        Self { given_up: Arc::default(), changed: broadcast::channel(16).0, tasks: TaskManager::new() }
    }

    async fn steps(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let token = context.meta.get_progress_token();
        for progress in 1..=3u8 {
            if let Some(token) = &token {
                let step = ProgressNotificationParam::new(token.clone(), progress.into()).with_total(3.0);
                let _ = context.peer.notify_progress(step).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(said("done"))
    }

    async fn ask(
        &self,
        request: &CallToolRequestParams,
        question: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = json!({
            "mode": "form",
            "message": question,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        });
        let answer = if !modern(context) {
            let answer = context.peer.create_elicitation(made(form)?).await;
            serde_json::to_value(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
                .unwrap_or_default()
        } else if let Some(answer) = request.input_responses.as_ref().and_then(|given| given.get("name")) {
            serde_json::to_value(answer).unwrap_or_default()
        } else {
            return needed("name", json!({"method": "elicitation/create", "params": form}));
        };
        let name = answer["content"]["name"].as_str().unwrap_or_default();
        Ok(said(format!("{} {name}", answer["action"].as_str().unwrap_or_default())).into())
    }

    #[allow(deprecated, reason = "what is deprecated is looked at as well")]
    async fn model(
        &self,
        request: &CallToolRequestParams,
        prompt: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params =
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": 10});
        let answer = if !modern(context) {
            let answer = context.peer.create_message(made(params)?).await;
            serde_json::to_value(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
                .unwrap_or_default()
        } else if let Some(answer) = request.input_responses.as_ref().and_then(|given| given.get("said")) {
            serde_json::to_value(answer).unwrap_or_default()
        } else {
            return needed("said", json!({"method": "sampling/createMessage", "params": params}));
        };
        Ok(said(format!("the model: {}", answer["content"]["text"].as_str().unwrap_or_default())).into())
    }
}

impl ServerHandler for Matrix {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("matrix-rust", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<Value> = TOOLS
            .iter()
            .map(|(name, argument)| {
                let mut schema = json!({"type": "object", "properties": {}});
                if let Some((argument, kind)) = argument {
                    schema["properties"][argument] = json!({"type": kind});
                    schema["required"] = json!([argument]);
                }
                json!({"name": name, "description": format!("The tool {name}"), "inputSchema": schema})
            })
            .collect();
        made(json!({"resultType": "complete", "tools": tools}))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer = match request.name.as_ref() {
            "echo" => said(text("text")),
            "blob" => {
                let bytes = arguments.get("bytes").and_then(Value::as_u64).unwrap_or_default();
                said("x".repeat(usize::try_from(bytes).unwrap_or_default()))
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("This tool fails")]),
            "steps" => self.steps(&context).await?,
            "ask" => return self.ask(&request, &text("question"), &context).await,
            "model" => return self.model(&request, &text("prompt"), &context).await,
            "wait" => {
                context.ct.cancelled().await;
                self.given_up.fetch_add(1, Ordering::SeqCst);
                said("given up")
            }
            "given_up" => said(self.given_up.load(Ordering::SeqCst).to_string()),
            "change" => {
                if modern(&context) {
                    // The SDK acknowledges a subscription before it calls `listen`.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let _ = self.changed.send(());
                } else {
                    let _ = context.peer.notify_tool_list_changed().await;
                }
                said("changed")
            }
            "later" if context.client_capabilities().is_some_and(|able| able.supports_tasks()) => {
                let text = text("text");
                let every = TaskOptions::new().with_poll_interval_ms(50);
                let task = self.tasks.spawn(every, |task| Box::pin(later(text, task)));
                return Ok(CreateTaskResult::new(task).into());
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(answer.into())
    }

    async fn get_task(&self, of: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&of.task_id)?))
    }

    async fn update_task(&self, given: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&given.task_id, given.input_responses)
    }

    async fn cancel_task(&self, of: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&of.task_id)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changed.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = changes.recv() => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        made(
            json!({"resultType": "complete", "resources": [{"uri": "matrix://notes", "name": "notes", "mimeType": "text/plain"}]}),
        )
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        made(
            json!({"resultType": "complete", "resourceTemplates": [{"uriTemplate": "matrix://rows/{id}", "name": "row"}]}),
        )
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.as_str() {
            "matrix://notes" => "A text with é and 🚀".to_owned(),
            uri => match uri.strip_prefix("matrix://rows/") {
                Some(id) => format!("row {id}"),
                None => return Err(ErrorData::resource_not_found(format!("no resource {uri}"), None)),
            },
        };
        let read: ReadResourceResult =
            made(json!({"resultType": "complete", "contents": [{"uri": request.uri, "text": text}]}))?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        made(
            json!({"resultType": "complete", "prompts": [{"name": "greet", "arguments": [{"name": "name", "required": true}]}]}),
        )
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|given| given.get("name")).and_then(Value::as_str);
        let text = format!("Greet {}", name.unwrap_or_default());
        let got: GetPromptResult = made(
            json!({"resultType": "complete", "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
        )?;
        Ok(got.into())
    }
}
