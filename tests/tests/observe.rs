//! Observed servers, proposed profiles, and refused files in the log, seen from inside a real client and server.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;

use firedoor_tests::{Client, Home, alive, kill, text, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const ENTRY: &str = "cursor/user/r";

fn call(client: &mut Client, tool: &str, arguments: Value) -> String {
    text(&client.call(tool, arguments)).0
}

/// Rows of refused files: what was tried, the path, and the folder that is offered.
fn refused(home: &Home) -> Vec<(String, String, Option<String>)> {
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let files = rows.filter(|row| row["what"]["findings"][0]["detector"] == "sandbox/file");
    let of = |value: &Value| value.as_str().map(str::to_owned);
    files
        .map(|row| {
            let what = &row["what"];
            let offered = what["findings"][0]["evidence"]
                .as_array()
                .unwrap()
                .iter()
                .find(|e| e["pointer"].as_str().unwrap().starts_with("/grant/"));
            (of(&what["method"]).unwrap(), of(&what["subject"]).unwrap(), offered.and_then(|e| of(&e["excerpt"])))
        })
        .collect()
}

/// The next client starts another, which reads the profiles anew.
fn stop_engine(home: &Home) {
    let pid = i32::try_from(home.json(&["status"])["pid"].as_i64().unwrap()).unwrap();
    kill(pid, Signal::SIGTERM);
    until("the engine's end", || (!alive(pid)).then_some(()));
}

#[test]
fn a_refused_file_is_in_the_log_with_the_command_that_opens_it() {
    let home = Home::new();
    let notes = home.write("project/notes.md", "granted later");
    let key = home.write(".ssh/id_rsa", "made up");
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "r");
    let mut complain = |path: &str, mode: &str| call(&mut client, "complain", json!({"path": path, "mode": mode}));
    assert!(complain(notes.to_str().unwrap(), "rb").contains("Permission denied: '"));
    assert!(complain(notes.to_str().unwrap(), "rb").contains("Permission denied: '"));
    // The client starts it in the home.
    assert!(complain("project/new.md", "wb").contains("Permission denied: 'project/new.md'"));
    assert!(complain(key.to_str().unwrap(), "rb").contains("Permission denied: '"));
    assert!(complain("/etc/resolv.conf", "rb").contains("Permission denied: '"));
    let folder = notes.parent().unwrap().to_str().unwrap();
    let rows = until("three refused files in the log", || Some(refused(&home)).filter(|rows| rows.len() == 3));
    let row = |method: &str, path: &str, folder: Option<&str>| {
        (method.to_owned(), path.to_owned(), folder.map(str::to_owned))
    };
    for want in [
        row("read", "~/project/notes.md", Some(folder)),
        row("write", "~/project/new.md", Some(folder)),
        row("read", "~/.ssh/id_rsa", None),
    ] {
        assert!(rows.contains(&want), "{want:?} in {rows:?}");
    }
    let log = home.firedoor(&["log"]).expect_code(0);
    let command = format!("firedoor grants add {ENTRY} --ro {folder}");
    let log = log.expect_said(&command).expect_said("protected place");
    let offers = log.stdout.matches("firedoor grants add").count();
    assert_eq!(offers, 2, "a protected place is not offered: {}", log.stdout);

    client.end();
    home.firedoor(&["grants", "add", ENTRY, "--ro", folder]).expect_code(0);
    let mut client = Client::open(&home, "r");
    assert_eq!(call(&mut client, "complain", json!({"path": notes})), "opened");
}

#[test]
fn a_server_is_observed_once_and_its_proposal_serves_it() {
    let home = Home::new();
    let notes = home.write("project/notes.md", "to read");
    home.write("project/more.md", "to read");
    let key = home.write(".ssh/id_rsa", "made up");
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    home.firedoor(&["observe", ENTRY, "show"]).expect_code(1).expect_said("has not been observed");
    home.firedoor(&["observe", "cursor/user/none", "on"]).expect_code(2);
    home.firedoor(&["observe", ENTRY, "on"]).expect_code(0).expect_said("24 hours");
    home.firedoor(&["observe", ENTRY, "off"]).expect_code(0);
    assert_eq!(home.json(&["status"])["observe_next"], json!([]));
    home.firedoor(&["observe", ENTRY, "on"]).expect_code(0);
    assert_eq!(home.json(&["status"])["observe_next"], json!([ENTRY]));

    let use_it = |client: &mut Client| -> Vec<String> {
        let more = notes.with_file_name("more.md");
        [&notes, &more, &key].map(|path| call(client, "read", json!({"path": path}))).into()
    };
    let mut client = Client::open(&home, "r");
    assert!(use_it(&mut client).iter().all(|said| said.starts_with("denied: ")));
    assert_eq!(home.json(&["status"])["sessions"][0]["observed"], json!(true));
    let running = home.json(&["observe", ENTRY, "show"]);
    assert_eq!(running["running"], json!(true));
    client.end();
    let shown = until("the record of the run", || {
        Some(home.json(&["observe", ENTRY, "show"])).filter(|shown| shown["running"] == json!(false))
    });
    home.firedoor(&["observe", ENTRY, "show"]).expect_code(0).expect_said("Proposed profile");
    let of =
        |path: &std::path::Path| shown["record"].as_array().unwrap().iter().find(|r| r["path"] == json!(path)).cloned();
    assert_eq!(of(&key).unwrap()["allowed"], json!(false));
    assert_eq!(of(&home.script("stdio_mcp.py")).unwrap()["allowed"], json!(true));
    // What the guardian saw is in the log as well.
    assert!(refused(&home).iter().any(|(_, path, folder)| path == "~/project/notes.md" && folder.is_some()));
    assert!(refused(&home).iter().any(|(_, path, folder)| path == "~/.ssh/id_rsa" && folder.is_none()));

    // As proposed it opens nothing; with the folder taken in, that and no more.
    let (name, toml) = (&shown["proposal"]["name"], shown["proposal"]["toml"].as_str().unwrap());
    assert!(toml.contains("  # \"~/project\",") && !toml.contains(".ssh"), "{toml}");
    let profile = home.write(&format!(".config/firedoor/profiles/{}.toml", name.as_str().unwrap()), toml);
    let restarted = |want: &[&str]| {
        stop_engine(&home);
        let mut client = Client::open(&home, "r");
        let said = use_it(&mut client);
        let status = home.json(&["status"]);
        assert_eq!((&status["sessions"][0]["profile"], &status["problems"]), (name, &json!([])));
        assert_eq!(status["sessions"][0]["observed"], json!(false), "one run is observed");
        for (said, want) in said.iter().zip(want) {
            assert!(said.starts_with(want), "{said}");
        }
        client.end();
    };
    restarted(&["denied: ", "denied: ", "denied: "]);
    fs::write(&profile, toml.replace("# \"~/project\"", "\"~/project\"")).unwrap();
    restarted(&["got: ", "got: ", "denied: "]);
}

#[test]
fn a_command_is_observed_by_itself() {
    let home = Home::new();
    let file = home.write("project/a.txt", "made up");
    let record = home.path().join("record.json");
    let path = file.to_str().unwrap();
    let run = |options: &[&str]| home.firedoor(&[&["sandbox", "run"], options, &["--", "cat", path]].concat());
    run(&["--observe"]).expect_code(1).expect_said("Refused:").expect_said("# args = \"ro\"");
    let output = run(&["--observe", "--json", "--record", record.to_str().unwrap(), "--ro", path]).expect_code(0);
    assert_eq!(output.stdout, "made up");
    let shown: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    assert!(shown["proposal"]["toml"].as_str().unwrap().contains("args = \"ro\""), "{shown:#}");
    run(&["--json"]).expect_code(2);
}
