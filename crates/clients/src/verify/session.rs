//! One short session with a server over stdio. Source: MCP specification 2025-06-18, "Lifecycle" and "Transports".

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use firedoor_model::Untrusted;
use serde_json::{Value, json};

use super::{Interrupt, Invocation, ToolsSeen, VerifyError, canonical};

#[cfg_attr(unix, path = "session/unix.rs")]
#[cfg_attr(windows, path = "session/windows.rs")]
mod process;

use process::Process;

/// What is asked for. Servers answer with the newest revision they have up to this one.
const PROTOCOL: &str = "2025-06-18";
const MAX_LINE: u64 = 8 * 1024 * 1024;
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 4096;
/// How long a server may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(500);
/// How often is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A started server. Dropping it ends it, with everything that it has started.
struct Server {
    process: Process,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
    received: usize,
    deadline: Instant,
    seconds: u64,
    next_id: u64,
    interrupt: Interrupt,
}

enum Line {
    Text(Vec<u8>),
    TooLong,
}

pub(super) fn run(invocation: &Invocation, timeout: Duration, interrupt: &Interrupt) -> Result<ToolsSeen, VerifyError> {
    let mut server = Server::start(invocation, timeout, interrupt)?;
    let hello = server.request(
        "initialize",
        &json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "firedoor", "version": env!("CARGO_PKG_VERSION")}}),
    )?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let info = hello.get("serverInfo");
    let name = text(info.and_then(|i| i.get("name")));
    let version = text(info.and_then(|i| i.get("version")));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    let has_tools = hello.pointer("/capabilities/tools").is_some();
    Ok(ToolsSeen {
        server: Untrusted::new(format!("{name} {version}")),
        protocol: Untrusted::new(text(hello.get("protocolVersion"))),
        about: canonical(&json!([hello.get("instructions"), hello.get("capabilities")])),
        tools: if has_tools { server.tools()? } else { BTreeMap::new() },
    })
}

impl Invocation {
    /// Of the file that its command stands for.
    fn of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(&self.args).env_clear().envs(&self.env).current_dir(&self.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

impl Server {
    fn start(invocation: &Invocation, timeout: Duration, interrupt: &Interrupt) -> Result<Self, VerifyError> {
        if interrupt.raised() {
            return Err(VerifyError::Interrupted);
        }
        let (process, stdin, stdout) = Process::start(invocation)?;
        let (sender, lines) = sync_channel(64);
        if let Some(stdout) = stdout {
            // Ends when the server's output does, at the latest when all of it is ended and this end dropped.
            std::thread::spawn(move || read_lines(stdout, &sender));
        }
        let deadline = Instant::now() + timeout;
        let (seconds, interrupt) = (timeout.as_secs(), interrupt.clone());
        Ok(Self { process, stdin, lines, received: 0, deadline, seconds, next_id: 1, interrupt })
    }

    fn tools(&mut self) -> Result<BTreeMap<String, firedoor_model::Digest>, VerifyError> {
        const REQUEST: &str = "tools/list";
        let protocol = |why| VerifyError::Protocol { request: REQUEST, why };
        let mut tools = BTreeMap::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.request(REQUEST, &params)?;
            let list = page.get("tools").and_then(Value::as_array).ok_or_else(|| protocol("no array of tools"))?;
            for tool in list {
                let name = tool.get("name").and_then(Value::as_str).ok_or_else(|| protocol("a tool without a name"))?;
                tools.insert(name.to_owned(), canonical(tool));
            }
            if tools.len() > MAX_TOOLS {
                return Err(VerifyError::TooMuch("4096 tools"));
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                None => return Ok(tools),
                Some(cursor) => params = json!({"cursor": cursor}),
            }
        }
        Err(VerifyError::TooMuch("64 pages of tools"))
    }

    fn send(&mut self, message: &Value) -> Result<(), VerifyError> {
        // A server that has closed its input shows in the wait for its answer. Ours are shorter than a pipe holds, so
        // that this does not block.
        if let Some(stdin) = &mut self.stdin
            && writeln!(stdin, "{message}").and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
        Ok(())
    }

    fn request(&mut self, method: &'static str, params: &Value) -> Result<Value, VerifyError> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let line = self.line(method)?;
            // Some servers print other things: clients skip them.
            let Ok(Value::Object(mut message)) = serde_json::from_slice::<Value>(&line) else { continue };
            if let (Some(_), Some(theirs)) = (message.get("method"), message.get("id").cloned()) {
                self.answer(&message, &theirs)?;
                continue;
            }
            if message.get("id") != Some(&json!(id)) {
                continue;
            }
            if let Some(error) = message.get("error").filter(|e| !e.is_null()) {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
                return Err(VerifyError::Refused { request: method, message: Untrusted::new(text) });
            }
            return message.remove("result").ok_or(VerifyError::Protocol { request: method, why: "no result" });
        }
    }

    /// We offer nothing, so a request gets an error; a ping gets its answer.
    fn answer(&mut self, message: &serde_json::Map<String, Value>, id: &Value) -> Result<(), VerifyError> {
        let answer = if message.get("method").and_then(Value::as_str) == Some("ping") {
            json!({"jsonrpc": "2.0", "id": id, "result": {}})
        } else {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not offered"}})
        };
        // An id is the server's: one that would not fit the pipe is not echoed.
        if answer.to_string().len() < 4096 { self.send(&answer) } else { Ok(()) }
    }

    fn line(&mut self, waiting_for: &'static str) -> Result<Vec<u8>, VerifyError> {
        let line = loop {
            if self.interrupt.raised() {
                return Err(VerifyError::Interrupted);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Ok(Line::Text(line)) => break line,
                Ok(Line::TooLong) => return Err(VerifyError::TooMuch("8 MiB in one line")),
                Err(RecvTimeoutError::Timeout) if left > LOOK => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(VerifyError::Timeout { waiting_for, seconds: self.seconds });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(VerifyError::Ended { waiting_for }),
            }
        };
        self.received = self.received.saturating_add(line.len());
        if self.received > MAX_BYTES {
            return Err(VerifyError::TooMuch("32 MiB"));
        }
        Ok(line)
    }
}

fn read_lines(stdout: ChildStdout, sender: &SyncSender<Line>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let too_long = !line.ends_with(b"\n") && line.len() as u64 >= MAX_LINE;
        if sender.send(if too_long { Line::TooLong } else { Line::Text(line) }).is_err() || too_long {
            return;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The polite end first (specification, "Shutdown"): close its input, give it a moment.
        self.stdin = None;
        let end = Instant::now() + GRACE;
        let mut ended = false;
        while !ended && Instant::now() < end {
            ended = self.process.ended();
            if !ended {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // What it has started may still be there, also when it has ended itself.
        self.process.end();
    }
}
