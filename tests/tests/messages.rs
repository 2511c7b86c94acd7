//! What servers and clients may write, and what comes of it.

use std::{fs, io::Write, os::fd::AsFd, time::Duration};

use firedoor_tests::{Client, Home, descendants, kill, shim_of, text, until};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, poll},
    sys::signal::Signal,
};
use serde_json::{Value, json};

fn open(mode: &str) -> (Home, Client) {
    let home = Home::new();
    home.write(".config/firedoor/config.toml", "[limits]\nmessage_mib = 1\n");
    home.cursor(json!({"s": home.entry("misbehave.py", &[mode])}));
    home.protect();
    let client = Client::open(&home, "s");
    (home, client)
}

fn still_works(client: &mut Client) {
    assert_eq!(text(&client.call("ok", json!({}))), ("ok".into(), false));
}

#[test]
fn lines_that_are_no_json_are_dropped_and_written_down() {
    let (home, mut client) = open("noise");
    still_works(&mut client);
    client.send(&json!({"jsonrpc": "2.0", "id": "last", "method": "ping"}));
    let line = client.line().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&line).unwrap()["id"], "last", "noise reached the client");
    client.end();
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    let rows = log.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["what"].clone());
    // A flood of it is counted, not listed.
    let noise: u64 = rows.filter(|w| w["kind"] == "noise").map(|w| w["lines"].as_u64().unwrap_or(1)).sum();
    assert_eq!(noise, 3, "{log}");
}

#[test]
fn an_answer_that_cannot_be_read_becomes_an_error_and_the_session_goes_on() {
    let (_home, mut client) = open("garbled");
    for tool in ["nan", "latin1"] {
        let id = client.send_call(tool, json!({}));
        let answer = client.answer(id);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("not passed on"), "{tool}: {answer}");
    }
    still_works(&mut client);
}

#[test]
fn an_answer_above_the_bound_becomes_an_error_and_the_session_goes_on() {
    let (_home, mut client) = open("huge");
    let id = client.send_call("huge", json!({"mib": 3}));
    let answer = client.answer(id);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("1 MiB") || message.contains("1048576"), "{answer}");
    still_works(&mut client);
}

#[test]
fn a_call_above_the_bound_becomes_an_error_and_the_session_goes_on() {
    let (home, mut client) = open("noise");
    let id = client.send_call("ok", json!({"pad": "x".repeat(3 << 20)}));
    let answer = client.answer(id);
    assert!(answer["error"]["message"].is_string() || text(&answer["result"]).1, "{answer}");
    still_works(&mut client);
    home.firedoor(&["status"]).expect_code(0);
}

#[test]
fn a_line_that_never_ends_fills_no_memory() {
    let (home, mut client) = open("open-line");
    still_works(&mut client);
    client.send_call("endless", json!({}));
    let engine = home.engine().unwrap();
    // Long enough for the server to write many times the bound.
    let written = |pid: i32| {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        io.lines().find_map(|l| l.strip_prefix("rchar: ")?.parse::<u64>().ok()).unwrap_or_default()
    };
    until("the engine has read 64 MiB of one line", || (written(engine) > 64 << 20).then_some(()));
    let status = fs::read_to_string(format!("/proc/{engine}/status")).unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    assert!(peak.parse::<u64>().unwrap() < 150 << 10, "the engine's peak was {peak} kB");
    // It will never see the end of its input. As the specification says, the client closes, waits, and signals.
    client.close_stdin();
    kill(shim_of(client.pid()).unwrap(), Signal::SIGTERM);
    client.wait();
}

#[test]
fn a_client_that_writes_nonsense_and_never_reads_has_to_wait() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    home.protect();
    let command_line = home.command_line("s");
    let (theirs, mut ours) = std::io::pipe().unwrap();
    let (_unread, stdout) = std::io::pipe().unwrap();
    let mut client =
        home.command(&command_line[0]).args(&command_line[1..]).stdin(theirs).stdout(stdout).spawn().unwrap();
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut sent = 0;
    // Nothing was taken for two seconds: it waits.
    while poll(&mut [PollFd::new(ours.as_fd(), PollFlags::POLLOUT)], 2000u16).unwrap() > 0 {
        sent += ours.write(&b"x\n".repeat(2048)).unwrap();
        assert!(sent < 4 << 20, "the engine keeps the answers to {sent} bytes of nonsense");
    }
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn deep_nesting_is_no_crash() {
    let (home, mut client) = open("deep");
    for depth in [10, 100_000] {
        let id = client.send_call("deep", json!({"depth": depth}));
        // Passed on or refused: an answer in either case. It is too deep to be parsed here.
        let line = client.line().unwrap();
        let start = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
        assert!(start.contains(&format!("\"id\":{id}")), "{start}");
    }
    still_works(&mut client);
    home.firedoor(&["status"]).expect_code(0);
}

#[test]
fn what_a_client_writes_that_is_no_message_ends_nothing() {
    let (_home, mut client) = open("noise");
    for bad in [
        b"\n".as_slice(),
        b"not json\n",
        b"{\"jsonrpc\":\"2.0\"}\n",
        b"[]\n",
        b"\xff\xfe\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}\n",
    ] {
        client.send_raw(bad);
    }
    // The bad lines may be answered with errors, which have no id.
    still_works(&mut client);
}

/// Which of two members counts differs between parsers: what Firedoor inspected must be what the server reads.
#[test]
fn a_message_with_two_meanings_does_not_reach_the_server() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("outbox_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "s");
    client.send_raw(
        b"{\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"tools/call\",\"params\":{\"name\":\"sent\",\"name\":\"http_post\",\"arguments\":{\"url\":\"u\",\"body\":\"b\"}}}\n",
    );
    let answer = client.answer(90);
    assert!(answer["error"].is_object() || text(&answer["result"]).1, "{answer}");
    assert_eq!(text(&client.call("sent", json!({}))).0, "");
}

#[test]
fn the_modern_era_needs_no_handshake() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::start(&home, &home.command_line("s"));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let found = client.ask("server/discover", json!({"_meta": meta}));
    assert_eq!(found["resultType"], "complete", "{found}");
    let called = client.ask("tools/call", json!({"name": "echo", "arguments": {"text": "x"}, "_meta": meta}));
    assert_eq!(text(&called).0, "x");
    // A legacy server's own refusal reaches the client, which then falls back.
    let answer = client.request("nonsense", json!({}));
    assert_eq!(client.answer(answer)["error"]["code"], -32601);
}

/// The lists come without delay, and a slow call holds up nothing else of another server.
#[test]
fn stdin_that_is_closed_still_gets_its_answers() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "s");
    let slow = client.send_call("sleep", json!({"ms": 300}));
    let last = client.send_call("echo", json!({"text": "after"}));
    client.close_stdin();
    assert_eq!(text(&client.answer(slow)["result"]).0, "awake");
    assert_eq!(text(&client.answer(last)["result"]).0, "after");
    assert_eq!(client.line(), None);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_session_leaves_no_process_behind() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "s");
    let below = descendants(client.pid());
    assert!(below.len() >= 3, "shim, guardian and server: {below:?}");
    client.end();
    until("all have gone", || below.iter().all(|pid| !firedoor_tests::alive(*pid)).then_some(()));
    let sessions = || home.json(&["status"])["sessions"].as_array().map(Vec::len);
    assert_eq!(
        firedoor_tests::until_within(Duration::from_secs(5), || (sessions() == Some(0)).then_some(())),
        Some(())
    );
}
