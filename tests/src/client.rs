//! An MCP client: a process of its own between the test and the server, spoken to through its stdio.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, PipeWriter, Write},
    path::PathBuf,
    process::Child,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{Home, PATIENCE, descendants, kill, until_within, worked};

/// Longer than any work takes: what goes round in circles works, too.
const MOST: Duration = Duration::from_secs(900);

/// A session with one server.
pub struct Client {
    process: Child,
    stdin: Option<PipeWriter>,
    lines: Receiver<Vec<u8>>,
    early: Vec<Value>,
    next: i64,
    log: PathBuf,
}

impl Client {
    /// Starts a protected Cursor server exactly as the configuration says, and opens a session.
    pub fn open(home: &Home, server: &str) -> Self {
        let mut client = Self::start(home, &home.command_line(server));
        client.initialize();
        client
    }

    /// Starts a command line without saying anything.
    ///
    /// A script stands between the test and the command: it is the client process. What descends from a client may not
    /// answer questions, and the commands of a test are children of the test.
    pub fn start(home: &Home, command_line: &[String]) -> Self {
        Self::start_in(home, "\"$@\"\nexit $?\n", command_line)
    }

    /// As [`Client::start`], with a shell script of the test's own; `"$@"` is the command line.
    pub fn start_in(home: &Home, script: &str, command_line: &[String]) -> Self {
        let number = next_number();
        let log = home.write(&format!("client-{number}.log"), "");
        // A file: a shell that was started with -c does not count as a client.
        let script = home.write(&format!("client-{number}.sh"), script);
        let stderr = File::options().append(true).open(&log).expect("the client's log");
        let mut command = home.command("/bin/sh");
        let (process, stdin, stdout) = home.spawn(command.arg(script).args(command_line).stderr(stderr));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, stdin: Some(stdin), lines, early: Vec::new(), next: 1, log }
    }

    /// The client process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a pid")
    }

    /// What the server and the shim wrote to stderr.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Writes bytes as they are. That nobody reads any more is left to what follows.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    /// Writes one message.
    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a `tools/call` and returns its id.
    pub fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The next line, as it is; `None` at the end of the stream.
    #[track_caller]
    pub fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {PATIENCE:?}; stderr: {}", self.log()),
        }
    }

    /// The answer to a request: the whole message. Other messages on the way are kept for later.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        self.try_answer(id, PATIENCE).unwrap_or_else(|| panic!("no answer to {id}; stderr: {}", self.log()))
    }

    /// The answer to a request that is much work: it is waited for while the engine, the client or what that has started works on,
    /// however slow the machine is.
    #[track_caller]
    pub fn answer_of_much_work(&mut self, home: &Home, id: i64) -> Value {
        // In ticks. Clocks and a look at something take less.
        const WORK: u64 = 20;
        let busy = |client: &Self| {
            let below = descendants(client.pid());
            worked(below.into_iter().chain([client.pid()]).chain(home.engine()))
        };
        let end = Instant::now() + MOST;
        while Instant::now() < end {
            let before = busy(self);
            if let Some(answer) = self.try_answer(id, PATIENCE) {
                return answer;
            }
            let now = busy(self);
            // One that has ended takes its time along.
            assert!(now < before || now - before >= WORK, "nobody works on {id}; stderr: {}", self.log());
        }
        panic!("no answer to {id} within {MOST:?}; stderr: {}", self.log())
    }

    /// The answer to a request, if it comes in time.
    pub fn try_answer(&mut self, id: i64, limit: Duration) -> Option<Value> {
        let is_it = |m: &Value| m.get("id") == Some(&json!(id)) && m.get("method").is_none();
        if let Some(at) = self.early.iter().position(is_it) {
            return Some(self.early.remove(at));
        }
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if is_it(&message) {
                return Some(message);
            }
            self.early.push(message);
        }
    }

    /// Sends a request and waits for its result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        answer.get("result").cloned().unwrap_or_else(|| panic!("{method}: {answer}; stderr: {}", self.log()))
    }

    /// Calls a tool and waits for its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The handshake of the legacy era.
    #[track_caller]
    pub fn initialize(&mut self) {
        let info = json!({"name": "test", "version": "1"});
        self.ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Closes stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the client process and returns its exit code, which is the shim's.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let status = until_within(PATIENCE, || self.process.try_wait().expect("waitpid"));
        let status = status.unwrap_or_else(|| panic!("the client did not end; stderr: {}", self.log()));
        status.code().unwrap_or(-1)
    }

    /// Closes stdin and waits.
    #[track_caller]
    pub fn end(&mut self) -> i32 {
        self.close_stdin();
        self.wait()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        // A test that failed may leave anything behind.
        let below = descendants(self.pid());
        if until_within(Duration::from_secs(5), || self.process.try_wait().ok().flatten()).is_none() {
            below.into_iter().chain([self.pid()]).for_each(|pid| kill(pid, Signal::SIGKILL));
            let _ = self.process.wait();
        }
    }
}

fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The text of a tool's result, and whether it is an error.
pub fn text(result: &Value) -> (String, bool) {
    let parts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = parts.filter_map(|part| part["text"].as_str()).collect();
    (texts.join("\n"), result["isError"].as_bool().unwrap_or(false))
}
