//! One client process with several servers: flows are judged within one client.

use std::{
    fs::File,
    io::{BufRead, BufReader, PipeWriter, Write},
    process::Child,
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{Home, PATIENCE, programs, text, until_within};

/// The demo's client, with every server of the Cursor configuration.
pub struct Agent {
    process: Child,
    stdin: Option<PipeWriter>,
    lines: Receiver<Value>,
    early: Vec<Value>,
    next: u64,
}

impl Agent {
    /// Starts the servers as the configuration says, and opens a session with each.
    #[track_caller]
    pub fn open(home: &Home) -> Self {
        let source = std::fs::read(programs::sources().join("harness/client.py")).expect("the client");
        let script = home.write("agent.py", source);
        let log = home.write("agent.log", "");
        let mut command = home.command(home.python());
        let stderr = File::options().append(true).open(&log).expect("the agent's log");
        let config = home.path().join(".cursor/mcp.json");
        let (process, stdin, stdout) = home.spawn(command.arg(script).arg(config).stderr(stderr));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("the agent prints JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let agent = Self { process, stdin: Some(stdin), lines, early: Vec::new(), next: 1 };
        let ready = agent.lines.recv_timeout(PATIENCE).unwrap_or_default();
        let complaints = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(ready.get("ready").is_some(), "the agent's sessions did not open: {ready}; stderr: {}", complaints());
        agent
    }

    /// Makes a call without waiting, and returns its tag.
    pub fn send(&mut self, server: &str, tool: &str, arguments: Value) -> u64 {
        self.send_beside(server, tool, arguments, json!({}))
    }

    /// The same with other members beside the arguments.
    pub fn send_beside(&mut self, server: &str, tool: &str, arguments: Value, beside: Value) -> u64 {
        let tag = self.next;
        self.next += 1;
        let order = json!({"tag": tag, "server": server, "tool": tool, "arguments": arguments, "beside": beside});
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{order}").expect("the agent reads");
        tag
    }

    /// The text of the answer to a call and whether it is an error, if it comes in time.
    pub fn answer_within(&mut self, tag: u64, limit: Duration) -> Option<(String, bool)> {
        let end = Instant::now() + limit;
        let is_it = |m: &Value| m["tag"] == json!(tag);
        let message = match self.early.iter().position(is_it) {
            Some(at) => self.early.remove(at),
            None => loop {
                let message = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
                if is_it(&message) {
                    break message;
                }
                self.early.push(message);
            },
        };
        let result = message["answer"].get("result").unwrap_or_else(|| panic!("a JSON-RPC error: {message}"));
        Some(text(result))
    }

    /// The answer to a call.
    #[track_caller]
    pub fn answer(&mut self, tag: u64) -> (String, bool) {
        self.answer_within(tag, PATIENCE).expect("an answer in time")
    }

    /// Makes a call and waits.
    #[track_caller]
    pub fn call(&mut self, server: &str, tool: &str, arguments: Value) -> (String, bool) {
        let tag = self.send(server, tool, arguments);
        self.answer(tag)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stdin = None;
        if until_within(Duration::from_secs(5), || self.process.try_wait().ok().flatten()).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
