//! Servers that are reached over HTTP, through the shim and the engine.
#![expect(clippy::expect_used, reason = "what breaks here is the test")]

use std::{
    fs,
    io::{BufRead, BufReader, PipeReader, PipeWriter},
    process::Child,
};

use firedoor_tests::{Client, Home, Keychain, alive, descendants, kill, text, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// A server of `tests/servers/http_server.py`, outside of any sandbox.
struct Http {
    process: Child,
    stdin: Option<PipeWriter>,
    stdout: BufReader<PipeReader>,
    port: u16,
}

impl Http {
    fn start(home: &Home, mode: &str) -> Self {
        let (process, stdin, stdout) =
            home.spawn(home.command(home.python()).arg(home.script("http_server.py")).arg(mode));
        let mut http = Self { process, stdin: Some(stdin), stdout: BufReader::new(stdout), port: 0 };
        http.port = http.line().trim().parse().expect("a port");
        http
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server's stdout");
        line
    }

    fn command_line(&self, home: &Home, more: &[&str]) -> Vec<String> {
        let shim = home.program("firedoor-shim").into_os_string().into_string().expect("scratch paths are UTF-8");
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let args = [&["--entry", "cursor/user/remote", "--url", &url], more].concat();
        [shim].into_iter().chain(args.into_iter().map(str::to_owned)).collect()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(mode: &str) -> (Home, Http, Client) {
    let home = Home::new();
    let http = Http::start(&home, mode);
    let client = Client::start(&home, &http.command_line(&home, &[]));
    (home, http, client)
}

fn open(mode: &str) -> (Home, Http, Client) {
    let (home, http, mut client) = start(mode);
    client.initialize();
    (home, http, client)
}

/// What the server has seen: method, headers, body.
fn seen(client: &mut Client) -> Vec<Value> {
    let (seen, _) = text(&client.call("echo", json!({"seen": true})));
    serde_json::from_str(&seen).expect("what the server has seen")
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn still_works(client: &mut Client) {
    assert_eq!(text(&client.call("echo", json!({"a": 1}))).0, "{\"a\": 1}");
}

/// The next line, as JSON.
fn next(client: &mut Client) -> Value {
    serde_json::from_slice(&client.line().expect("a line")).expect("JSON")
}

/// What was asked for as events were: with each request, the event that it goes on from.
fn listened(seen: &[Value]) -> Vec<Option<&str>> {
    seen.iter().filter(|s| s[0] == "GET").map(|s| s[1]["last-event-id"].as_str()).collect()
}

#[test]
fn messages_arrive_byte_for_byte_in_a_session() {
    let (home, _http, mut client) = open("json");
    let odd = r#"{ "jsonrpc":"2.0","id":"x\u0041","method":"tools/call","params":{"name":"echo","arguments":{"n":123456789012345678901234567890,"z":1,"a":1.50}} }"#;
    client.send_raw(format!("{odd}\n").as_bytes());
    let answer: Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
    assert_eq!(answer["id"], "xA");
    let all = seen(&mut client);
    let of = |body: &str| all.iter().find(|s| s[2].as_str() == Some(body)).unwrap_or_else(|| panic!("{all:?}"));
    let headers = json!({"mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25"});
    assert_eq!(of(odd)[1], headers);
    assert_eq!(of(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)[1], headers);
    assert_eq!(all[0][1], json!({}), "initialize belongs to no session");
    assert_eq!(client.end(), 0);
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    assert!(log.contains("cursor/user/remote") && log.contains("tools/call"), "{log}");
}

#[test]
fn a_server_that_speaks_by_itself_is_heard() {
    let (_home, _http, mut client) = open("sse");
    let request: Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
    assert_eq!(request["method"], "roots/list");
    client.send(&json!({"jsonrpc": "2.0", "id": "from-server", "result": {"roots": []}}));
    let id = client.request("tools/call", json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": 7}}));
    for step in 0..3 {
        let progress: Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
        assert_eq!(progress["params"], json!({"progressToken": 7, "progress": step}));
    }
    assert!(client.answer(id)["result"].is_object());
    let answered = |s: &Value| s[2].as_str().is_some_and(|b| b.contains("from-server") && b.contains("roots"));
    assert!(seen(&mut client).iter().any(answered));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_server_of_the_old_transport_is_found_out() {
    let (_home, _http, mut client) = open("old");
    still_works(&mut client);
    let all = seen(&mut client);
    assert_eq!((&all[0][0], &all[1][0]), (&json!("POST"), &json!("GET")));
}

#[test]
fn a_server_of_the_old_transport_answers_requests_of_the_stateless_era_itself() {
    let (_home, _http, mut client) = start("old");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    // Together: one of them finds the transport out, for all.
    let ids: Vec<i64> = (0..3).map(|_| client.request("server/discover", json!({"_meta": meta}))).collect();
    for id in ids {
        assert!(client.answer(id)["result"]["supportedVersions"].is_array());
    }
    client.initialize();
    still_works(&mut client);
    let channels = seen(&mut client).iter().filter(|s| s[0] == "GET").count();
    assert_eq!(channels, 1);
}

#[test]
fn the_old_transport_is_used_at_once_where_the_entry_says_so() {
    let home = Home::new();
    let http = Http::start(&home, "old");
    let mut client = Client::start(&home, &http.command_line(&home, &["--transport", "sse"]));
    client.initialize();
    still_works(&mut client);
    assert_eq!(seen(&mut client)[0][0], "GET");
}

#[test]
fn messages_do_not_follow_to_another_server() {
    for (mode, part) in [("stolen", "HTTP 404"), ("redirect", "points to http://127.0.0.1:1"), ("turned", "HTTP 302")] {
        let (_home, _http, mut client) = start(mode);
        let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
        let answer = client.answer(id);
        assert!(message(&answer).contains(part), "{mode}: {answer}");
    }
    let (_home, _http, mut client) = open("moved");
    still_works(&mut client);
}

/// The revisions that have sessions over Streamable HTTP.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// The only one of them in which several messages may come as one.
const BATCHES: &str = REVISIONS[0];

#[test]
fn the_revision_that_the_server_names_is_spoken_in_all_of_a_session() {
    for revision in REVISIONS {
        let (_home, mut http, mut client) = start(revision);
        // The client wants the newest, and agrees to what the server has.
        let info = json!({"name": "test", "version": "1"});
        let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": info});
        assert_eq!(client.ask("initialize", opening)["protocolVersion"], revision);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        // The server's own requests come as it sends them, and their answers get there as the client sends them.
        let answers = [0, 1].map(|n| json!({"jsonrpc": "2.0", "id": format!("asked-{n}"), "result": {"roots": []}}));
        let first = next(&mut client);
        if revision == BATCHES {
            assert_eq!((&first[0]["id"], &first[1]["id"]), (&json!("asked-0"), &json!("asked-1")), "{first}");
            client.send(&json!(answers));
        } else {
            assert_eq!((&first["id"], &next(&mut client)["id"]), (&json!("asked-0"), &json!("asked-1")), "{first}");
            answers.iter().for_each(|answer| client.send(answer));
        }
        still_works(&mut client);
        client.call("echo", json!({"forget": "session"}));
        still_works(&mut client);
        let all = seen(&mut client);
        let said: Vec<Value> = all.iter().filter_map(|s| serde_json::from_str(s[2].as_str()?).ok()).collect();
        if revision == BATCHES {
            assert!(said.contains(&json!(answers)), "{said:?}");
        } else {
            assert!(answers.iter().all(|answer| said.contains(answer)), "{said:?}");
        }
        // The first revision has no such header, and a server that is told nothing takes that one to be spoken (2025-06-18,
        // "Protocol Version Header"). It is said all the same, as the official SDKs' clients do.
        let mut opened = 0;
        for [method, headers, body] in all.iter().map(|s| [&s[0], &s[1], &s[2]]) {
            if body.as_str().is_some_and(|body| body.contains("\"initialize\"")) {
                opened += 1;
                assert_eq!(*headers, json!({}), "{revision}");
            } else {
                assert_eq!(headers["mcp-session-id"], format!("s-{opened}"), "{revision}: {method} {body}");
                assert_eq!(headers["mcp-protocol-version"], revision, "{method} {body}");
            }
        }
        assert_eq!(opened, 2, "{revision}");
        assert!(!listened(&all).is_empty(), "{revision}");
        assert_eq!(client.end(), 0);
        let left: Value = serde_json::from_str(&http.line()).expect("what it was told at the end");
        assert_eq!(left, json!(["DELETE", {"mcp-session-id": "s-2", "mcp-protocol-version": revision}, null]));
    }
}

/// What a line answers, or every part of a batch: the request's id, with why it failed.
fn shape(line: &Value) -> String {
    match line.as_array() {
        Some(all) => format!("[{}]", all.iter().map(shape).collect::<Vec<_>>().join(" ")),
        None => {
            let id = line["id"].as_str().unwrap_or("notice");
            let why = message(line);
            if why.is_empty() { id.to_owned() } else { format!("{id}: {why}") }
        }
    }
}

#[test]
fn batches_are_answered_as_the_revision_says() {
    const REFUSED: [&str; 2] = ["a: Firedoor: HTTP 400", "b: Firedoor: HTTP 400"];
    let call = |id: &str, form: &str| {
        let params = json!({"name": "echo", "arguments": {"form": form}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    for (revision, form, want) in [
        (BATCHES, "at once", &["[a b]"][..]),
        (BATCHES, "one by one", &["a", "b"]),
        (BATCHES, "together", &["[notice a]", "[b]"]),
        (BATCHES, "in part", &["[a]", "b: Firedoor: the connection to the server was lost"]),
        (REVISIONS[1], "at once", &REFUSED),
        (REVISIONS[2], "at once", &REFUSED),
    ] {
        let (_home, http, mut client) = open(revision);
        let batch = json!([call("a", form), notice, call("b", form)]);
        client.send(&batch);
        let place = format!("http://127.0.0.1:{} refused the message: ", http.port);
        for want in want {
            let got = shape(&next(&mut client)).replace(&place, "");
            assert!(
                got == **want || want.contains(':') && got.starts_with(want),
                "{revision}, {form}: {got}, not {want}"
            );
        }
        still_works(&mut client);
        let bodies = seen(&mut client).into_iter().filter(|s| s[2].as_str() == Some(&batch.to_string())).count();
        assert_eq!(bodies, 1, "{revision}, {form}: it arrives once, and as it was sent");
    }
}

#[test]
fn requests_of_the_stateless_era_repeat_themselves_in_headers() {
    let (_home, _http, mut client) = start("modern");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    assert!(client.ask("server/discover", json!({"_meta": meta}))["supportedVersions"].is_array());
    // Whatever its method: this one opens no session here.
    let opening = json!({"protocolVersion": "2026-07-28", "_meta": meta});
    assert_eq!(client.ask("initialize", opening)["serverInfo"]["name"], "http-modern");
    // The annotation is not known yet: the server says so, the list is read, the call repeated.
    let arguments = json!({"region": "eu west"});
    let call = json!({"name": "echo", "arguments": arguments, "_meta": meta});
    assert_eq!(text(&client.ask("tools/call", call.clone())).0, arguments.to_string().replace(':', ": "));
    client.ask("tools/list", json!({"_meta": meta}));
    client.ask("tools/call", call);
    let seen = client.ask("tools/call", json!({"name": "echo", "arguments": {"seen": 1}, "_meta": meta}));
    let seen: Vec<Value> = serde_json::from_str(&text(&seen).0).unwrap();
    let tries: Vec<_> = seen.iter().filter(|s| s[2].as_str().is_some_and(|b| b.contains("eu west"))).collect();
    assert_eq!(tries.len(), 3, "{seen:?}");
    assert_eq!(tries[2][1]["mcp-param-region"], "eu west");
    assert_eq!(tries[2][1].get("mcp-session-id"), None);
    let id = client.request("nonsense", json!({}));
    assert!(client.answer(id)["error"].is_object());
}

#[test]
fn giving_a_request_of_the_stateless_era_up_closes_its_connection() {
    let (_home, _http, mut client) = start("modern");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let id = client.request("subscriptions/listen", json!({"_meta": meta, "notifications": {}}));
    let first: Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until("the server sees the connection close", || {
        let seen = client.ask("tools/call", json!({"name": "echo", "arguments": {"seen": 1}, "_meta": meta}));
        text(&seen).0.contains("[\"closed\"").then_some(())
    });
    // What is open does not keep it from ending.
    client.request("subscriptions/listen", json!({"_meta": meta, "notifications": {}}));
    client.line().unwrap();
    assert_eq!(client.end(), 0);
}

#[test]
fn an_answer_whose_stream_broke_off_is_fetched() {
    let (_home, _http, mut client) = open("resumed");
    let id = client.send_call("echo", json!({"a": 1}));
    let half: Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
    assert_eq!(half["params"]["data"], "half");
    assert_eq!(text(&client.answer(id)["result"]).0, "{\"a\": 1}");
}

#[test]
fn a_server_that_says_when_to_come_back_may_take_its_time() {
    let (_home, _http, mut client) = open("polled");
    // It is asked more often than one would be that broke off.
    still_works(&mut client);
}

#[test]
fn a_server_that_wants_to_be_asked_at_once_is_asked_less_often_while_it_has_nothing_to_say() {
    let (_home, _http, mut client) = open("hurried");
    still_works(&mut client);
    // Within two seconds, and perhaps once more.
    let times = listened(&seen(&mut client)).iter().filter(|id| **id == Some("e-1")).count();
    assert!((4..=16).contains(&times), "{times}");
}

#[test]
fn calls_that_were_given_up_hold_nobody_up_until_their_server_wants_to_be_asked_again() {
    let (_home, _http, mut client) = open("json");
    // As many as are under way at once.
    let ids: Vec<i64> = (0..512).map(|n| client.send_call("echo", json!({"later": n + 1}))).collect();
    for id in ids {
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    still_works(&mut client);
    assert_eq!(client.end(), 0);
}

#[test]
fn nothing_is_lost_or_heard_twice_where_the_servers_own_stream_breaks_off() {
    let (_home, _http, mut client) = open("breaking");
    for n in 0..7 {
        assert_eq!(next(&mut client)["params"]["data"], n);
    }
    let id = client.send_call("echo", json!({"seen": true}));
    let answer = next(&mut client);
    assert_eq!(answer["id"], id, "nothing comes again");
    let all: Vec<Value> = serde_json::from_str(&text(&answer["result"]).0).expect("what the server has seen");
    // Also where an event was cut off, a request was refused or got no answer, and where only an id had come.
    let ids = ["2.0", "3.1", "3.1", "4.3", "4.3", "5.5", "5.6"];
    assert_eq!(listened(&all), [None].into_iter().chain(ids.map(Some)).collect::<Vec<_>>());
}

#[test]
fn a_server_without_a_stream_of_its_own_is_asked_for_one_once() {
    let (_home, _http, mut client) = open("alone");
    // Meanwhile seconds pass: the answer comes on a stream that is asked for again, later each time.
    still_works(&mut client);
    let id = client.send_call("echo", json!({"seen": true}));
    let all: Vec<Value> =
        serde_json::from_str(&text(&client.answer(id)["result"]).0).expect("what the server has seen");
    let asked = listened(&all);
    assert_eq!(asked.iter().filter(|id| id.is_none()).count(), 1, "{asked:?}");
    assert!(asked.iter().filter(|id| **id == Some("e-1")).count() > 1, "{asked:?}");
}

#[test]
fn a_server_that_is_too_busy_is_said_to_be_at_once() {
    let busy = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"come back later"}}"#;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    for mode in ["json", "modern", "old"] {
        let (_home, http, mut client) = start(mode);
        if mode != "modern" {
            client.initialize();
        }
        let mut send = |arguments: Value| {
            let mut params = json!({"name": "echo", "arguments": arguments});
            if mode == "modern" {
                params["_meta"] = meta.clone();
            }
            let id = client.request("tools/call", params);
            client.answer(id)
        };
        let place = format!("http://127.0.0.1:{}", http.port);
        for (refusal, parts) in [
            (json!({"status": 429}), vec!["HTTP 429 Too Many Requests"]),
            // Firedoor does not wait so long by itself: who asked decides.
            (
                json!({"status": 429, "again": "3600", "body": "slowly"}),
                vec!["HTTP 429", "Retry-After: 3600", "slowly"],
            ),
            (json!({"status": 503, "body": "<html></html>"}), vec!["HTTP 503 Service Unavailable"]),
            (json!({"status": 503, "again": "Wed, 21 Oct 2037 07:28:00 GMT"}), vec!["HTTP 503", "07:28:00"]),
        ] {
            let answer = send(refusal.clone());
            let why = message(&answer);
            assert!(why.contains(&place) && parts.iter().all(|part| why.contains(part)), "{mode}: {refusal}: {answer}");
            assert!(!why.contains("html"), "{answer}");
            assert_eq!(text(&send(json!({"a": 1}))["result"]).0, "{\"a\": 1}", "{mode}");
        }
        // Where the server says it itself, in the protocol's words, those are what its client gets.
        let answer = send(json!({"status": 429, "body": busy}));
        assert_eq!(answer["error"], json!({"code": -32001, "message": "come back later"}), "{mode}");
        let all: Vec<Value> =
            serde_json::from_str(&text(&send(json!({"seen": true}))["result"]).0).expect("what the server has seen");
        let refused = all.iter().filter(|s| s[2].as_str().is_some_and(|body| body.contains("\"status\""))).count();
        assert_eq!(refused, 5, "{mode}: each was sent once");
    }
    // A session may begin at the second try.
    let (_home, _http, mut client) = start("unready");
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert!(message(&client.answer(id)).contains("HTTP 503 Service Unavailable (Retry-After: 3600)"));
    client.initialize();
    still_works(&mut client);
}

#[test]
fn calls_without_an_answer_get_an_error_that_says_why() {
    for (mode, part) in
        [("cut", "may have done what it was asked"), ("silent", "without answering it"), ("broken", "boom")]
    {
        let (_home, _http, mut client) = open(mode);
        let id = client.send_call("echo", json!({}));
        let answer = client.answer(id);
        assert!(message(&answer).contains(part), "{mode}: {answer}");
        assert!(client.ask("tools/list", json!({}))["tools"].is_array());
    }
}

#[test]
fn a_session_that_the_server_ended_is_opened_again_unless_it_has_changed() {
    let (_home, _http, mut client) = open("json");
    client.call("echo", json!({"forget": "session"}));
    still_works(&mut client);
    let all = seen(&mut client);
    let last = all.last().unwrap();
    assert_eq!(last[1]["mcp-session-id"], "s-2");
    client.call("echo", json!({"forget": "changed"}));
    let id = client.send_call("echo", json!({}));
    let answer = client.answer(id);
    assert!(message(&answer).contains("introduces itself differently"), "{answer}");
    assert_eq!(client.wait(), 1);
}

#[test]
fn a_session_whose_beginning_the_server_does_not_take_is_not_used() {
    let (_home, mut http, mut client) = open("json");
    client.call("echo", json!({"forget": "unwilling"}));
    // Nobody waits for what becomes of this one.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    assert_eq!(http.line(), "unwilling\n");
    let all = seen(&mut client);
    let begun = all.iter().filter(|s| s[2].as_str().is_some_and(|body| body.contains("notifications/initialized")));
    let sessions: Vec<_> = begun.chain(all.last()).map(|s| &s[1]["mcp-session-id"]).collect();
    assert_eq!(sessions, ["s-1", "s-2", "s-3", "s-3"]);
    client.call("echo", json!({"forget": "unwilling"}));
    let id = client.send_call("echo", json!({}));
    let answer = client.answer(id);
    assert!(message(&answer).contains("refuses the first message of another: HTTP 400"), "{answer}");
    assert_eq!(client.wait(), 1);
}

#[test]
fn headers_come_from_variables_and_stand_in_no_argument_and_no_environment_but_the_clients() {
    let home = Home::new();
    let http = Http::start(&home, "locked");
    let mut client = Client::start(&home, &http.command_line(&home, &[]));
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert!(message(&client.answer(id)).contains("run `firedoor login cursor/user/remote`"));
    client.end();

    home.set("FIREDOOR_TEST_TOKEN", "let-me-in");
    let header = ["--header", "Authorization=Bearer env:FIREDOOR_TEST_TOKEN"];
    let mut client = Client::start(&home, &http.command_line(&home, &header));
    client.initialize();
    still_works(&mut client);
    let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let below = descendants(client.pid());
    let remote: Vec<_> = below.iter().filter(|pid| name(pid).starts_with("firedoor-remote")).collect();
    assert_eq!(remote.len(), 1, "{below:?}");
    for pid in below.iter().chain(&home.engine()) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("let-me-in"), "{}", name(pid));
    }
    let env = std::fs::read(format!("/proc/{}/environ", remote[0])).unwrap();
    assert!(!String::from_utf8_lossy(&env).contains("let-me-in"));
    client.end();
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    assert!(!log.contains("let-me-in"));

    let missing = ["--header", "Authorization=env:NOT_SET"];
    let mut client = Client::start(&home, &http.command_line(&home, &missing));
    let id = client.request("initialize", json!({}));
    assert!(message(&client.answer(id)).contains("NOT_SET"));
}

#[test]
fn large_answers_pass_and_those_above_the_bound_become_errors() {
    let (home, http, mut client) = open("json");
    let id = client.send_call("echo", json!({"mib": 20}));
    assert_eq!(text(&client.answer_of_much_work(&home, id)["result"]).0.len(), 20 << 20);
    client.end();
    home.write(".config/firedoor/config.toml", "[limits]\nmessage_mib = 1\n");
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGTERM);
    until("the engine's end", || (!alive(engine)).then_some(()));
    let mut client = Client::start(&home, &http.command_line(&home, &[]));
    client.initialize();
    let id = client.send_call("echo", json!({"mib": 3}));
    assert!(message(&client.answer_of_much_work(&home, id)).contains("more than 1 MiB"));
    still_works(&mut client);
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let (_home, _http, mut client) = open("json");
    let ids: Vec<_> = (0..300).map(|n| (n, client.send_call("echo", json!({"n": n})))).collect();
    for (n, id) in ids {
        assert_eq!(text(&client.answer(id)["result"]).0, format!("{{\"n\": {n}}}"));
    }
}

#[test]
fn an_engine_that_dies_ends_no_session() {
    let (home, _http, mut client) = open("json");
    still_works(&mut client);
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGKILL);
    until("another engine", || home.engine().filter(|pid| *pid != engine));
    let id = client.request("tools/list", json!({}));
    assert!(client.answer(id)["result"]["tools"].is_array());
    client.send(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(client.end(), 0);
}

#[test]
fn the_server_is_told_of_the_end() {
    let (_home, mut http, mut client) = open("deleted");
    still_works(&mut client);
    assert_eq!(client.end(), 0);
    assert_eq!(http.line(), "deleted\n");
}

#[test]
fn a_server_that_is_not_there_is_an_error_and_other_hosts_are_out_of_reach() {
    let home = Home::new();
    let mut http = Http::start(&home, "json");
    let line = http.command_line(&home, &[]);
    http.stdin = None;
    http.process.wait().unwrap();
    let mut client = Client::start(&home, &line);
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert!(message(&client.answer(id)).contains("cannot be reached"));
    client.end();
    for (url, part) in [("ftp://a.example/", "no http or https address"), ("http://169.254.169.254/", "grants add")] {
        let mut line = line.clone();
        line[4] = url.to_owned();
        let mut client = Client::start(&home, &line);
        let id = client.request("initialize", json!({}));
        let answer = client.answer(id);
        assert!(message(&answer).contains(part), "{answer}");
    }
}

#[test]
fn an_entry_is_protected_answers_and_comes_back() {
    let home = Home::new();
    let http = Http::start(&home, "json");
    let url = format!("http://127.0.0.1:{}/mcp", http.port);
    let path = home.cursor(json!({"s": {"url": url, "headers": {"X-Team": "blue"}}}));
    let before = fs::read(&path).unwrap();
    home.firedoor(&["protect", "--all", "--yes"])
        .expect_code(0)
        .expect_said("protected, answers through Firedoor (1 tools)");
    let text = fs::read_to_string(&path).unwrap();
    let entry = serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["s"].clone();
    home.set("FIREDOOR_HEADER_1", entry["env"]["FIREDOOR_HEADER_1"].as_str().unwrap());
    let mut client = Client::open(&home, "s");
    still_works(&mut client);
    assert!(seen(&mut client).iter().all(|s| s[1]["x-team"] == "blue"));
    client.end();
    let pins = home.json(&["pins", "list"]).to_string();
    assert!(pins.contains("cursor/user/s") && pins.contains("echo"), "{pins}");
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_credential_in_a_header_moves_into_the_keychain_and_only_the_server_gets_it() {
    let home = Home::new();
    let http = Http::start(&home, "locked");
    let url = format!("http://127.0.0.1:{}/mcp", http.port);
    let headers = json!({"Authorization": "Bearer let-me-in", "X-Team": "blue"});
    let path = home.cursor(json!({"s": {"url": url, "headers": headers}}));
    let before = fs::read(&path).unwrap();
    let _keychain = Keychain::start(&home);
    let report = home.json(&["protect", "--all", "--yes"]);
    assert_eq!(report["verified"][0]["verified"], "answers", "{report}");
    let reference = "firedoor-secret:cursor/user/s/Authorization";
    assert_eq!(report["files"][0]["secrets"], json!([reference]), "{report}");
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.contains(reference) && now.contains("blue") && !now.contains("let-me-in"), "{now}");
    assert_eq!(home.json(&["secrets", "list"])["secrets"][0]["used_by"], json!(["cursor/user/s"]));

    home.set("FIREDOOR_HEADER_1", reference);
    home.set("FIREDOOR_HEADER_2", "blue");
    let mut client = Client::open(&home, "s");
    assert!(seen(&mut client).iter().all(|s| s[1]["authorization"] == "Bearer let-me-in" && s[1]["x-team"] == "blue"));
    for pid in descendants(client.pid()).into_iter().chain(home.engine()).chain([client.pid()]) {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&bytes).contains("let-me-in"), "{file} of {pid}");
        }
    }
    client.end();
    assert!(!home.firedoor(&["log", "--json"]).expect_code(0).stdout.contains("let-me-in"));
    // The same entry's secret for another address.
    let mut line = home.command_line("s");
    line[4] = format!("http://127.0.0.1:{}/other", http.port);
    let mut client = Client::start(&home, &line);
    let id = client.request("initialize", json!({}));
    let answer = client.answer(id);
    assert!(message(&answer).contains("not handed out"), "{answer}");
    client.end();
    home.firedoor(&["restore", "--all"]).expect_code(0).expect_said("byte for byte");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_entry_whose_server_wants_a_login_is_given_back() {
    let home = Home::new();
    let http = Http::start(&home, "locked");
    let path = home.cursor(json!({"s": {"url": format!("http://127.0.0.1:{}/mcp", http.port)}}));
    let before = fs::read(&path).unwrap();
    home.firedoor(&["protect", "--all", "--yes"]).expect_code(1).expect_said("run `firedoor login cursor/user/s`");
    assert_eq!(fs::read(&path).unwrap(), before);
}
