//! Clients that start no programs: they reach their servers at an address on this machine.
#![expect(clippy::expect_used, reason = "what breaks here is the test")]

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write},
    net::TcpStream,
    process::Child,
};

use firedoor_tests::{Home, alive, kill, text, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const BOTH: &str = "application/json, text/event-stream";

/// A client that speaks HTTP, of the user of the home.
struct Http {
    process: Child,
    stdin: Option<PipeWriter>,
    stdout: BufReader<PipeReader>,
    address: String,
    session: Option<String>,
    /// The revision that it speaks.
    revision: &'static str,
}

impl Http {
    fn start(home: &Home, address: &str) -> Self {
        let (process, stdin, stdout) = home.spawn(home.command(home.python()).arg(home.script("http_client.py")));
        let (stdin, stdout) = (Some(stdin), BufReader::new(stdout));
        Self { process, stdin, stdout, address: address.to_owned(), session: None, revision: "2025-11-25" }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a pid")
    }

    fn order(&mut self, order: &Value) -> Value {
        writeln!(self.stdin.as_mut().expect("stdin is open"), "{order}").expect("the client reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the client's stdout");
        serde_json::from_str(&line).expect("the client prints JSON")
    }

    fn send(&mut self, method: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Value {
        let host = self.address.split('/').nth(2).expect("an address").to_owned();
        let mut all = vec![("Host", host.as_str()), ("Accept", BOTH)];
        if body.is_some() {
            all.push(("Content-Type", "application/json"));
        }
        let session = self.session.clone();
        if let Some(session) = &session {
            all.push(("Mcp-Session-Id", session.as_str()));
            if self.revision >= "2025-06-18" {
                all.push(("MCP-Protocol-Version", self.revision));
            }
        }
        all.extend(headers);
        let body = body.map(Value::to_string);
        self.order(&json!({"do": "send", "address": self.address, "method": method, "headers": all, "body": body}))
    }

    fn post(&mut self, body: &Value) -> Value {
        self.send("POST", &[], Some(body))
    }

    fn event(&mut self, stream: &Value) -> Value {
        self.order(&json!({"do": "event", "stream": stream}))
    }

    /// The next message of a stream; events that only have an id are passed over.
    fn message(&mut self, stream: &Value) -> Value {
        loop {
            let event = self.event(stream);
            assert!(event.get("end").is_none(), "the stream has ended");
            let data = event["data"].as_str().unwrap_or_default();
            if !data.is_empty() {
                return serde_json::from_str(data).expect("a message");
            }
        }
    }

    /// Sends a request within the session, and gives what answers it.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        let sent = self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        assert_eq!(sent["status"], 200, "{sent}");
        self.message(&sent["stream"])
    }

    /// Opens a session.
    fn open(&mut self) {
        let about = json!({"name": "http", "version": "1"});
        let params = json!({"protocolVersion": self.revision, "capabilities": {}, "clientInfo": about});
        let sent = self.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(sent["status"], 200, "{sent}");
        let answer = self.message(&sent["stream"]);
        assert_eq!(answer["result"]["protocolVersion"], self.revision, "{answer}");
        self.session = sent["headers"]["mcp-session-id"].as_str().map(str::to_owned);
        let done = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(done["status"], 202, "{done}");
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> String {
        let answer = self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{answer}");
        text(&answer["result"]).0
    }

    /// Calls until it is answered: the session's shim finds a new engine by itself, and says until then what is not there.
    fn call_again(&mut self, from: u64, said: &str) {
        let mut ids = from..;
        until("the session goes on", || {
            let answer = self.ask(ids.next()?, "tools/call", json!({"name": "echo", "arguments": {"text": said}}));
            (text(answer.get("result")?).0 == said).then_some(())
        });
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Adds an endpoint for the server that echoes; gives its address.
fn add(home: &Home, name: &str) -> String {
    let python = home.python().to_str().expect("scratch paths are UTF-8");
    let script = home.script("echo_server.py").into_os_string().into_string().expect("scratch paths are UTF-8");
    home.firedoor(&["endpoints", "add", name, "--env", "GREETING=hello", "--", python, &script])
        .expect_code(0)
        .expect_said("Put this address into the client");
    let listed = home.json(&["endpoints", "list"]);
    let found = listed["endpoints"]
        .as_array()
        .expect("endpoints")
        .iter()
        .find(|e| e["entry"] == format!("endpoint/user/{name}"));
    let found = found.expect("the endpoint");
    assert_eq!(found["listens"], true, "{found}");
    found["address"].as_str().expect("an address").to_owned()
}

/// A client that keeps an address must not find another server behind it because a name was taken twice.
#[test]
fn an_endpoint_is_replaced_on_demand_only() {
    let home = Home::new();
    let address = add(&home, "notes");
    let server = |home: &Home| home.json(&["endpoints", "list"])["endpoints"][0]["server"].to_string();
    let before = server(&home);
    let other = ["endpoints", "add", "notes", "--url", "https://other.example/mcp"];
    home.firedoor(&other).expect_code(1).expect_said("--replace").expect_said("echo_server.py");
    assert_eq!(server(&home), before);
    let other = ["endpoints", "add", "notes", "--replace", "--json", "--url", "https://other.example/mcp"];
    let replaced = home.firedoor(&other).expect_code(0).json();
    assert_eq!(replaced["endpoints"][0]["address"], address);
    assert!(server(&home).contains("https://other.example/mcp"));
    let removed = home.firedoor(&["endpoints", "remove", "notes", "--json"]).expect_code(0).json();
    assert!(removed["text"].is_string(), "{removed}");
}

/// A server of `tests/servers/http_server.py`, outside of any sandbox, behind an endpoint.
struct Remote {
    process: Child,
    stdin: Option<PipeWriter>,
    stdout: BufReader<PipeReader>,
    /// Of the endpoint.
    address: String,
}

impl Remote {
    fn start(home: &Home, mode: &str) -> Self {
        let (process, stdin, stdout) =
            home.spawn(home.command(home.python()).arg(home.script("http_server.py")).arg(mode));
        let mut remote = Self { process, stdin: Some(stdin), stdout: BufReader::new(stdout), address: String::new() };
        let url = format!("http://127.0.0.1:{}/mcp", remote.line().trim());
        home.firedoor(&["endpoints", "add", "remote", "--url", &url]).expect_code(0);
        let listed = home.json(&["endpoints", "list"]);
        remote.address = listed["endpoints"][0]["address"].as_str().expect("an address").to_owned();
        remote
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server's stdout");
        line
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program that listens.
fn listener(home: &Home) -> Option<i32> {
    let own = home.program("firedoor-remote");
    let is = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.starts_with(own.as_os_str().as_encoded_bytes()) && arguments.ends_with(b"--endpoints\0")
    };
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is)
}

/// Kills the engine and what listens for it. Either starts the other again, so it is done until neither is there.
fn kill_all(home: &Home) {
    until("all of its programs are gone", || {
        let there: Vec<i32> = listener(home).into_iter().chain(home.engine()).collect();
        there.iter().for_each(|pid| kill(*pid, Signal::SIGKILL));
        there.is_empty().then_some(())
    });
}

/// Stops what outlives the engine.
struct Stop<'h>(&'h Home);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if let Some(pid) = listener(self.0) {
            kill(pid, Signal::SIGKILL);
        }
    }
}

#[test]
fn a_session_goes_through_the_engine_like_any_other() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &address);
    client.open();
    assert_eq!(client.call(1, "echo", json!({"text": "é\n🚀"})), "é\n🚀");
    let around: Value = serde_json::from_str(&client.call(2, "whereami", json!({}))).expect("JSON");
    assert_eq!(around["env"]["GREETING"], "hello");
    // The engine knows the program that connected, not the one that listens.
    let log = home.json(&["status"]);
    assert_eq!(log["sessions"][0]["entry"], "endpoint/user/echo");
    let rows = home.firedoor(&["log", "--json", "--server", "echo"]).expect_code(0);
    assert!(rows.stdout.contains(&format!("\"pid\":{}", client.pid())), "{}", rows.stdout);
    assert!(rows.stdout.contains("http_client.py"), "{}", rows.stdout);
    // The session ends with a word, and then is not there any more.
    let pid = i32::try_from(around["pid"].as_i64().expect("a pid")).expect("a pid");
    assert_eq!(client.send("DELETE", &[], None)["status"], 200);
    until("the server ends", || (!alive(pid)).then_some(()));
    assert_eq!(client.post(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}))["status"], 404);
    home.firedoor(&["endpoints", "remove", "echo"]).expect_code(0);
    until("nothing listens", || {
        client.post(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"})).get("error").cloned()
    });
}

#[test]
fn only_programs_of_the_user_that_know_the_address_come_in() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &address);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"});
    let status = |said: &Value| said["status"].as_u64().expect("a status");
    let with = |client: &mut Http, headers: &[(&str, &str)]| {
        let order = json!({"do": "send", "address": client.address, "method": "POST", "headers": headers, "body": ping.to_string()});
        let said = client.order(&order);
        assert!(said["headers"].get("access-control-allow-origin").is_none(), "{said}");
        status(&said)
    };
    let host = address.split('/').nth(2).expect("an address").to_owned();
    let json = ("Content-Type", "application/json");
    assert_eq!(with(&mut client, &[("Host", "evil.example"), ("Accept", BOTH), json]), 403);
    assert_eq!(with(&mut client, &[("Host", &host), ("Origin", "https://evil.example"), ("Accept", BOTH), json]), 403);
    assert_eq!(with(&mut client, &[("Host", &host), ("Accept", BOTH), ("Content-Type", "text/plain")]), 415);
    let right = std::mem::replace(&mut client.address, format!("http://{host}/wrong"));
    assert_eq!(status(&client.post(&ping)), 404);
    client.address = right;
    assert_eq!(status(&client.send("OPTIONS", &[], None)), 405);
    assert_eq!(status(&client.post(&json!("x"))), 400);
    assert_eq!(status(&client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))), 400);
    // Nothing was started for any of it.
    assert_eq!(home.json(&["status"])["sessions"], json!([]));
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // Another user, who knows the address.
    let mut stranger = TcpStream::connect(&host).expect("a connection");
    let path = address.rsplit('/').next().expect("a path");
    let head = format!("POST /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: {BOTH}\r\nContent-Type: application/json\r\n");
    // It may be closed already.
    let _ = stranger.write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes());
    let mut said = Vec::new();
    let _ = stranger.read_to_end(&mut said);
    assert_eq!(said, b"");
}

#[test]
fn requests_that_stand_for_themselves() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &address);
    let version = "2026-07-28";
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    let call = |id: u64, ms: u64| {
        let params = json!({"name": "sleep", "arguments": {"ms": ms}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let right = [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/call"), ("Mcp-Name", "sleep")];
    let said = client.send("POST", &right, Some(&call(1, 0)));
    assert_eq!(said["status"], 200, "{said}");
    let answer: Value = serde_json::from_str(said["body"].as_str().expect("one message")).expect("JSON");
    assert_eq!((text(&answer["result"]).0.as_str(), &answer["id"]), ("awake", &json!(1)));
    for wrong in [
        [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list"), ("Mcp-Name", "sleep")],
        [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/call"), ("Mcp-Name", "other")],
        [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "sleep")],
    ] {
        let said = client.send("POST", &wrong, Some(&call(2, 0)));
        assert_eq!(said["status"], 400, "{said}");
        assert!(said["body"].as_str().expect("a body").contains("-32020"), "{said}");
    }
    let unknown = json!({"jsonrpc": "2.0", "id": 3, "method": "no/such", "params": {"_meta": meta}});
    let said = client.send("POST", &[("MCP-Protocol-Version", version), ("Mcp-Method", "no/such")], Some(&unknown));
    assert_eq!(said["status"], 404, "{said}");
    // What its server refuses is refused in its words, also where it says nothing of what it means.
    let subscribe = json!({"jsonrpc": "2.0", "id": 4, "method": "resources/subscribe", "params": {"_meta": meta}});
    let said = client.send(
        "POST",
        &[("MCP-Protocol-Version", version), ("Mcp-Method", "resources/subscribe")],
        Some(&subscribe),
    );
    assert_eq!(said["status"], 404, "{said}");
    let nameless = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"_meta": meta}});
    let said = client.send("POST", &[("MCP-Protocol-Version", version), ("Mcp-Method", "tools/call")], Some(&nameless));
    assert!(said["body"].as_str().expect("a body").contains("Blocked by Firedoor"), "{said}");
    for params in [json!({}), json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}})] {
        let silent = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/list", "params": params});
        let said =
            client.send("POST", &[("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list")], Some(&silent));
        assert_eq!(said["status"], 400, "{said}");
        assert!(said["body"].as_str().expect("a body").contains("-32602"), "{said}");
    }
    // All of it was one server.
    assert_eq!(home.json(&["status"])["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.send("GET", &[], None)["status"], 405);
}

#[test]
fn each_revision_with_sessions_is_spoken_as_it_says() {
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let home = Home::new();
        let mut server = Remote::start(&home, revision);
        let _stop = Stop(&home);
        let mut client = Http::start(&home, &server.address);
        client.revision = revision;
        client.open();
        let sent = client.post(&call(1));
        // Clients of before 2025-11-25 know no event that only has an id.
        let first = client.event(&sent["stream"]);
        assert_eq!(first["data"] == "", revision >= "2025-11-25", "{revision}: {first}");
        // Only the first of these has batches: its answer is one, too. What a server refuses, each of its requests is told.
        let sent = client.post(&json!([call(2), call(3)]));
        if revision == "2025-03-26" {
            let answers = client.message(&sent["stream"]);
            for (at, id) in [(0, 2), (1, 3)] {
                assert_eq!(
                    (&answers[at]["id"], text(&answers[at]["result"]).0.as_str()),
                    (&json!(id), "{}"),
                    "{answers}"
                );
            }
        } else {
            for id in [2, 3] {
                let answer = client.message(&sent["stream"]);
                assert_eq!(answer["id"], id, "{revision}: {answer}");
                assert!(answer["error"]["message"].to_string().contains("HTTP 400"), "{revision}: {answer}");
            }
        }
        assert_eq!(client.call(4, "echo", json!({})), "{}", "{revision}");
        // The server hears of the end.
        assert_eq!(client.send("DELETE", &[], None)["status"], 200, "{revision}");
        let left: Value = serde_json::from_str(&server.line()).expect("what it was told at the end");
        assert_eq!(left, json!(["DELETE", {"mcp-session-id": "s-1", "mcp-protocol-version": revision}, null]));
    }
}

#[test]
fn a_stream_that_broke_off_goes_on_where_it_was() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &address);
    client.open();
    let params = json!({"name": "sleep", "arguments": {"ms": 300}});
    let sent = client.post(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    let first = client.event(&sent["stream"]);
    assert_eq!(first["data"], "");
    client.order(&json!({"do": "close", "stream": sent["stream"]}));
    let id = first["id"].as_str().expect("an id").to_owned();
    let again = client.send("GET", &[("Last-Event-ID", &id)], None);
    assert_eq!(again["status"], 200, "{again}");
    let answer = client.message(&again["stream"]);
    assert_eq!((text(&answer["result"]).0.as_str(), &answer["id"]), ("awake", &json!(7)));
    // And once more, although it was answered.
    let again = client.send("GET", &[("Last-Event-ID", &id)], None);
    assert_eq!(client.message(&again["stream"]), answer);
    assert_eq!(client.send("GET", &[("Last-Event-ID", "99-1")], None)["status"], 400);
}

#[test]
fn a_stream_that_the_server_closes_is_closed_and_asked_for_again() {
    let home = Home::new();
    let server = Remote::start(&home, "resumed");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &server.address);
    client.open();
    let params = json!({"name": "echo", "arguments": {"a": 1}});
    let sent = client.post(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    let mut stream = sent["stream"].clone();
    // The server closes each of them, and says once how long it wants to be left alone.
    let mut said = Vec::new();
    for _ in 0..2 {
        let mut last = String::new();
        loop {
            let event = client.event(&stream);
            if event.get("end").is_some() {
                break;
            }
            last = event["id"].as_str().expect("an id").to_owned();
            said.push((event["data"].as_str().expect("data").to_owned(), event["retry"].clone()));
        }
        let again = client.send("GET", &[("Last-Event-ID", &last)], None);
        assert_eq!(again["status"], 200, "{again}");
        stream = again["stream"].clone();
    }
    let answer = client.message(&stream);
    assert_eq!((text(&answer["result"]).0.as_str(), &answer["id"]), ("{\"a\": 1}", &json!(7)));
    let (retry, plain) = ((String::new(), json!("10")), (String::new(), Value::Null));
    assert_eq!((&said[0], &said[1], &said[3]), (&plain, &retry, &retry), "{said:?}");
    assert!(said[2].0.contains("half") && said.len() == 4, "{said:?}");
}

#[test]
fn an_address_outlives_its_engine() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let mut client = Http::start(&home, &address);
    client.open();
    // An engine that dies takes no session with it.
    let first = home.engine().expect("an engine");
    kill(first, Signal::SIGKILL);
    until("another engine", || home.engine().filter(|pid| *pid != first));
    client.call_again(1, "a");
    // Nor does one that is stopped and started again.
    kill(home.engine().expect("an engine"), Signal::SIGTERM);
    until("the engine ends", || home.engine().is_none().then_some(()));
    home.firedoor(&["endpoints", "list"]);
    let listens = || {
        let listed = home.json(&["endpoints", "list"]);
        (listed["endpoints"][0]["listens"] == true).then(|| listed["endpoints"][0]["address"].clone())
    };
    assert_eq!(until("it listens again", listens), address.as_str());
    client.call_again(100_000, "b");
    // What listens may die alone: another takes its place.
    let first = listener(&home).expect("a listener");
    kill(first, Signal::SIGKILL);
    until("another listens", || listener(&home).filter(|pid| *pid != first));
    assert_eq!(until("it listens again", listens), address.as_str());
    let mut client = Http::start(&home, &address);
    client.open();
    assert_eq!(client.call(1, "echo", json!({"text": "c"})), "c");
    // With all of its programs gone, it is where it was.
    kill_all(&home);
    home.firedoor(&["endpoints", "list"]);
    assert_eq!(until("it listens again", listens), address.as_str());
}

#[test]
fn a_port_that_is_taken_is_said_and_never_changed() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let host = address.split('/').nth(2).expect("an address").to_owned();
    kill_all(&home);
    let taken = until("the port is free", || std::net::TcpListener::bind(&host).ok());
    home.firedoor(&["endpoints", "list"]);
    let problem = || home.json(&["endpoints", "list"])["endpoints"][0]["problem"].as_str().map(str::to_owned);
    let said = until("the problem is told", problem);
    assert!(said.contains("is taken by another program"), "{said}");
    let listed = home.firedoor(&["endpoints", "list"]).expect_code(1);
    assert!(listed.stdout.contains(&address), "{}", listed.stdout);
    assert!(home.json(&["status"])["problems"].to_string().contains("taken by another program"));
    drop(taken);
    until("it listens", || (home.json(&["endpoints", "list"])["endpoints"][0]["listens"] == true).then_some(()));
}

#[test]
fn a_taken_port_is_said_by_the_next_engine_too() {
    let home = Home::new();
    let address = add(&home, "echo");
    let _stop = Stop(&home);
    let host = address.split('/').nth(2).expect("an address").to_owned();
    let problem = || home.json(&["endpoints", "list"])["endpoints"][0]["problem"].as_str().map(str::to_owned);
    // What listens is started again by the engine, and finds the port taken.
    let first = listener(&home).expect("a listener");
    kill(first, Signal::SIGKILL);
    let _taken = until("the port is free", || std::net::TcpListener::bind(&host).ok());
    until("another is to listen", || listener(&home).filter(|pid| *pid != first));
    until("the problem is told", problem);
    let engine = home.engine().expect("an engine");
    kill(engine, Signal::SIGKILL);
    until("another engine", || home.engine().filter(|pid| *pid != engine));
    assert!(until("the problem is told again", problem).contains("is taken by another program"));
    home.firedoor(&["endpoints", "list"]).expect_code(1).expect_said("NOT REACHED");
}

/// A server that is reached over HTTP, and its address.
struct Far {
    process: Child,
    _stdin: PipeWriter,
    url: String,
}

impl Far {
    fn start(home: &Home) -> Self {
        let (process, stdin, stdout) =
            home.spawn(home.command(home.python()).arg(home.script("http_server.py")).arg("json"));
        let mut port = String::new();
        BufReader::new(stdout).read_line(&mut port).expect("the server's port");
        Self { process, _stdin: stdin, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_entry_whose_server_does_not_answer_is_given_back() {
    let home = Home::new();
    let far = Far::start(&home);
    let url = far.url.clone();
    let path = home.cursor(json!({"far": {"url": url}}));
    let before = std::fs::read(&path).expect("the configuration");
    drop(far);
    home.firedoor(&["protect", "--endpoint", "cursor/far", "--yes"]).expect_code(1).expect_said("given back");
    let _stop = Stop(&home);
    assert_eq!(std::fs::read(&path).expect("the configuration"), before);
    assert_eq!(home.json(&["endpoints", "list"])["endpoints"], json!([]));
}

#[test]
fn what_was_restored_without_an_engine_is_not_listened_to_again() {
    let home = Home::new();
    let far = Far::start(&home);
    let path = home.cursor(json!({"far": {"url": far.url}}));
    let before = std::fs::read(&path).expect("the configuration");
    home.firedoor(&["protect", "--endpoint", "cursor/far", "--yes", "--no-verify"]).expect_code(0);
    add(&home, "echo");
    kill_all(&home);
    let _stop = Stop(&home);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(std::fs::read(&path).expect("the configuration"), before);
    assert!(home.engine().is_none());
    // The next engine has the other one only.
    let listed = home.json(&["endpoints", "list"]);
    let entries: Vec<&Value> = listed["endpoints"].as_array().expect("endpoints").iter().map(|e| &e["entry"]).collect();
    assert_eq!(entries, ["endpoint/user/echo"]);
}

#[test]
fn an_entry_with_an_address_stays_one_and_comes_back() {
    let home = Home::new();
    let far = Far::start(&home);
    let url = &far.url;
    let path = home.cursor(json!({"far": {"url": url, "headers": {"X-Team": "blue"}}}));
    let before = std::fs::read(&path).expect("the configuration");
    home.firedoor(&["protect", "--endpoint", "cursor/far", "--yes"])
        .expect_code(0)
        .expect_said("answers through Firedoor");
    let _stop = Stop(&home);
    let config: Value = serde_json::from_slice(&std::fs::read(&path).expect("the configuration")).expect("JSON");
    let now = config["mcpServers"]["far"]["url"].as_str().expect("an address");
    let (address, was) = now.split_once('#').expect("what it was");
    assert_eq!(was, format!("firedoor:cursor/user/far={url}"));
    let mut client = Http::start(&home, address);
    let about = json!({"name": "http", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let sent = client.send("POST", &[("X-Team", "blue"), ("User-Agent", "http/1")], Some(&opening));
    assert_eq!(client.message(&sent["stream"])["result"]["serverInfo"]["name"], "http-json");
    client.session = sent["headers"]["mcp-session-id"].as_str().map(str::to_owned);
    let seen = client.call(1, "echo", json!({"seen": true}));
    assert!(seen.contains("\"blue\"") && !seen.contains("http/1\""), "{seen}");
    assert_eq!(home.json(&["scan"])["clients"].to_string().matches("\"state\":\"protected\"").count(), 1);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(std::fs::read(&path).expect("the configuration"), before);
    assert_eq!(home.json(&["endpoints", "list"])["endpoints"], json!([]));
}
