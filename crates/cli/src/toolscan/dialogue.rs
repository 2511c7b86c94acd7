//! Speaking MCP to a program: initialize, list its tools, call each once with made-up arguments.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};

/// Most tools that are called.
const MAX_TOOLS: usize = 64;
/// The version of the protocol that is spoken: the one that every server with an `initialize` knows (2024-11-05).
const VERSION: &str = "2024-11-05";

/// What was said, and what is still to be said.
pub struct Dialogue {
    /// `None` when everything was said.
    to: Option<File>,
    /// What is not written yet.
    unwritten: Vec<u8>,
    /// Requests that wait for their turn.
    queue: VecDeque<Value>,
    /// The request whose answer is waited for.
    awaited: u64,
    /// How much of the output was looked at: whole lines.
    read: usize,
}

impl Dialogue {
    /// Begins one, on the writing end of the program's input.
    pub fn new(to: OwnedFd) -> io::Result<Self> {
        // The file description of a pipe's writing end is ours alone.
        fcntl(&to, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let mut talk = Self { to: Some(to.into()), unwritten: Vec::new(), queue: VecDeque::new(), awaited: 1, read: 0 };
        let client = json!({"name": "firedoor-scan", "version": env!("CARGO_PKG_VERSION")});
        talk.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client
        }}));
        Ok(talk)
    }

    /// Whether everything was said and answered.
    pub fn over(&self) -> bool {
        self.to.is_none()
    }

    /// Where something waits to be written.
    pub fn wants_to_write(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.unwritten.is_empty()).map(AsFd::as_fd)
    }

    /// Writes what fits, reads what is new of the program's output, and says what comes next.
    pub fn go_on(&mut self, output: &[u8]) -> io::Result<()> {
        while let Some(end) = output.get(self.read..).and_then(|rest| rest.iter().position(|b| *b == b'\n')) {
            let line = output.get(self.read..self.read + end).unwrap_or_default();
            self.read += end + 1;
            if let Ok(message) = serde_json::from_slice::<Value>(line)
                && message.get("id").and_then(Value::as_u64) == Some(self.awaited)
                && message.get("method").is_none()
            {
                self.answered(&message);
            }
        }
        while let Some(to) = self.to.as_mut().filter(|_| !self.unwritten.is_empty()) {
            match to.write(&self.unwritten) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // It reads no more.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.to = None,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn answered(&mut self, message: &Value) {
        match self.awaited {
            1 => {
                self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                self.queue.push_back(json!({"method": "tools/list"}));
            }
            2 => {
                let tools = message.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten();
                for tool in tools.take(MAX_TOOLS) {
                    let arguments = tool.get("inputSchema").map_or_else(|| json!({}), |s| sample(s, 0));
                    let params = json!({"name": tool.get("name"), "arguments": arguments});
                    self.queue.push_back(json!({"method": "tools/call", "params": params}));
                }
            }
            _ => {}
        }
        match self.queue.pop_front() {
            Some(mut request) => {
                self.awaited += 1;
                if let Some(members) = request.as_object_mut() {
                    members.insert("jsonrpc".into(), "2.0".into());
                    members.insert("id".into(), self.awaited.into());
                }
                self.say(&request);
            }
            None => self.to = None,
        }
    }

    fn say(&mut self, message: &Value) {
        self.unwritten.extend(message.to_string().bytes());
        self.unwritten.push(b'\n');
    }
}

/// Something that fits a schema (JSON Schema), as small as may be: what is required, of the first type that is named.
fn sample(schema: &Value, depth: usize) -> Value {
    let first = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|all| all.first());
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")).or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(inner) = first("anyOf").or_else(|| first("oneOf")).filter(|_| depth < 8) {
        return sample(inner, depth + 1);
    }
    let named = schema.get("type").and_then(|t| t.as_str().or_else(|| t.get(0)?.as_str()));
    match named.unwrap_or(if schema.get("properties").is_some() { "object" } else { "string" }) {
        "object" if depth < 8 => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let member = |name: &Value| {
                let name = name.as_str()?;
                let inner = schema.pointer("/properties").and_then(|p| p.get(name)).unwrap_or(&Value::Null);
                Some((name.to_owned(), sample(inner, depth + 1)))
            };
            Value::Object(required.filter_map(member).collect())
        }
        "array" => json!([]),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        "object" => json!({}),
        _ => json!("test"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn samples_fit_their_schema() {
        for (schema, want) in [
            (json!({"type": "object"}), json!({})),
            (
                json!({"type": "object", "required": ["a", "b", "c", "d"], "properties": {
                    "a": {"type": "string"}, "b": {"type": ["integer", "null"], "minimum": 3}, "c": {"enum": ["x", "y"]},
                    "d": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "e": {"type": "string"}
                }}),
                json!({"a": "test", "b": 3, "c": "x", "d": true}),
            ),
            (json!({"properties": {}}), json!({})),
            (json!(5), json!("test")),
        ] {
            assert_eq!(sample(&schema, 0), want, "{schema}");
        }
    }

    #[test]
    fn each_tool_is_called_once() {
        let (end, ours) = nix::unistd::pipe().unwrap();
        let mut talk = Dialogue::new(ours).unwrap();
        let mut output = b"log line\n".to_vec();
        let mut answer = |talk: &mut Dialogue, text: &str| {
            output.extend(text.bytes());
            output.push(b'\n');
            talk.go_on(&output).unwrap();
        };
        answer(&mut talk, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        answer(&mut talk, r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"},{"name":"b"}]}}"#);
        answer(&mut talk, r#"{"jsonrpc":"2.0","method":"ping","id":3}"#);
        answer(&mut talk, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        assert!(!talk.over());
        answer(&mut talk, r#"{"jsonrpc":"2.0","id":4,"error":{}}"#);
        assert!(talk.over());
        let mut said = String::new();
        File::from(end).read_to_string(&mut said).unwrap();
        let methods: Vec<String> = said
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap()["method"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call"]);
    }
}
