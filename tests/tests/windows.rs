//! What the main window asks the engine for, through the command line: rules from the log, their use, putting back,
//! stopping a server, and how long the log is kept.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use firedoor_tests::{Agent, Client, Home, until};
use serde_json::{Value, json};

fn outbox() -> (Home, Agent) {
    let home = Home::new();
    home.cursor(json!({ "outbox": home.entry("outbox_server.py", &[]) }));
    home.protect();
    let agent = Agent::open(&home);
    (home, agent)
}

fn rows(home: &Home) -> Vec<Value> {
    let text = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn post() -> Value {
    json!({"url": "https://paste.example.net/", "body": "hello"})
}

/// Rules with how often each was used.
fn rules(home: &Home) -> Vec<(i64, String, u64)> {
    let listed = home.json(&["rules", "list"]);
    let hits = |id: i64| {
        let uses = listed["uses"].as_object().unwrap();
        uses.get(&id.to_string()).map_or(0, |used| used["hits"].as_u64().unwrap())
    };
    let rules = listed["rules"].as_array().unwrap().iter();
    rules
        .map(|r| (r["id"].as_i64().unwrap(), r["origin"].as_str().unwrap().to_owned(), hits(r["id"].as_i64().unwrap())))
        .collect()
}

#[test]
fn a_row_becomes_a_rule_that_is_counted_removed_and_put_back() {
    let (home, mut agent) = outbox();
    assert_eq!(agent.call("outbox", "http_post", post()).0, "202 Accepted");
    let call = until("the call in the log", || {
        rows(&home).into_iter().find(|row| row["what"]["kind"] == "judged" && row["what"]["subject"] == "http_post")
    });
    let seq = call["seq"].to_string();
    // Nothing was found there, so there is nothing to mark as wrong.
    home.firedoor(&["rules", "from", &seq, "allow"]).expect_code(1).expect_said("nothing was found");
    home.firedoor(&["rules", "from", "999999", "block"]).expect_code(1).expect_said("not in the log");
    home.firedoor(&["rules", "from", &seq, "block"])
        .expect_code(0)
        .expect_said("Block http_post of cursor/user/outbox");
    home.firedoor(&["rules", "from", &seq, "block"]).expect_code(1).expect_said("already");
    for _ in 0..2 {
        assert!(agent.call("outbox", "http_post", post()).1);
    }
    let [(id, origin, hits)] = rules(&home).try_into().unwrap();
    assert_eq!((origin.as_str(), hits), ("log", 2));
    home.firedoor(&["rules", "remove", &id.to_string()]).expect_code(0);
    assert_eq!(agent.call("outbox", "http_post", post()).0, "202 Accepted");
    home.firedoor(&["rules", "restore", &id.to_string()]).expect_code(0);
    home.firedoor(&["rules", "restore", &id.to_string()]).expect_code(1).expect_said("was not removed");
    assert!(agent.call("outbox", "http_post", post()).1);
    let [(_, origin, hits)] = rules(&home).try_into().unwrap();
    assert_eq!((origin.as_str(), hits), ("log", 1));
    // It takes a week.
    assert_eq!(home.json(&["rules", "suggest"])["suggestions"], json!([]));
    home.firedoor(&["log", "verify"]).expect_code(0);
}

#[test]
fn a_server_is_stopped_and_may_come_again() {
    let home = Home::new();
    home.cursor(json!({ "outbox": home.entry("outbox_server.py", &[]) }));
    home.protect();
    home.firedoor(&["stop", "cursor/user/outbox"]).expect_code(1).expect_said("does not run");
    let mut client = Client::open(&home, "outbox");
    client.initialize();
    home.firedoor(&["stop", "cursor/user/outbox"]).expect_code(0);
    client.wait();
    assert_eq!(home.json(&["status"])["sessions"], json!([]));
    Client::open(&home, "outbox").initialize();
}

#[test]
fn the_log_is_kept_for_as_long_as_was_said() {
    let home = Home::new();
    assert_eq!(home.json(&["log", "keep"])["log_days"], 90);
    home.firedoor(&["log", "keep", "3"]).expect_code(2).expect_said("7..=3650");
    home.firedoor(&["log", "keep", "30"]).expect_code(0).expect_said("30 days");
    // Also by the next engine.
    let engine = home.engine().unwrap();
    firedoor_tests::kill(engine, nix::sys::signal::Signal::SIGTERM);
    until("the engine's end", || (!firedoor_tests::alive(engine)).then_some(()));
    assert_eq!(home.json(&["log", "keep"])["log_days"], 30);
}
