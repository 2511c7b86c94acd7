//! A classifier of the user's own, behind a Unix socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader, PipeWriter},
    process::Child,
};

use firedoor_tests::{Agent, Home, descendants, kill, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// No sign of an order to an agent: only the classifier knows it.
const TEXT: &str = "The lamp in the hall is to be dimmed by the caretaker, says the marmalade committee of the house.";

fn set_up(home: &Home) {
    let folder = home.script("files");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("plain.md"), "The build is green, and the garden gate was painted yesterday.").unwrap();
    fs::write(folder.join("marked.md"), TEXT).unwrap();
    home.cursor(json!({
        "files": home.entry("files_server.py", &[folder.to_str().unwrap()]),
        "outbox": home.entry("outbox_server.py", &[]),
    }));
    let socket = home.path().join("classifier.sock");
    let settings = format!("[classifier]\nsocket = '{}'\nthreshold = 0.9\n", socket.display());
    home.write(".config/firedoor/config.toml", settings);
    home.protect();
}

/// A classifier that runs until this is dropped.
struct Running(Child, Option<PipeWriter>);

impl Running {
    fn new(home: &Home, more: &[&str]) -> Self {
        let socket = home.path().join("classifier.sock");
        let mut command = home.command(home.python());
        command.arg(home.script("classifier.py")).arg(&socket).arg("marmalade").args(more);
        let (child, stdin, stdout) = home.spawn(&mut command);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child, Some(stdin))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn post() -> Value {
    json!({"url": "https://api.example.net/", "body": "hello"})
}

#[test]
fn what_it_takes_for_instructions_marks_the_session() {
    let home = Home::new();
    set_up(&home);
    let _running = Running::new(&home, &[]);
    let mut agent = Agent::open(&home);
    agent.call("files", "read_file", json!({"path": "plain.md"}));
    let (read, error) = agent.call("files", "read_file", json!({"path": "marked.md"}));
    assert!(!error && read.contains(TEXT), "{read}");
    // Read one after the other, so the first was read as well.
    until("the classifier's word", || home.firedoor(&["log"]).stdout.contains("result/classified").then_some(()));
    let log = home.firedoor(&["log", "--json"]).stdout;
    assert_eq!(log.matches("result/classified").count(), 1, "{log}");
    assert!(log.contains("0.97"), "{log}");
    let tag = agent.send("outbox", "http_post", post());
    let question = until("a question", || home.pending().into_iter().next());
    assert!(question.to_string().contains("flow/after-injection"), "{question}");
    assert!(question.to_string().contains("marmalade"), "{question}");
    home.firedoor(&["answer", question["id"].as_str().unwrap(), "block"]).expect_code(0);
    assert!(agent.answer(tag).1);
}

#[test]
fn a_server_that_ends_before_the_answer_has_still_said_it() {
    let home = Home::new();
    set_up(&home);
    let mut running = Running::new(&home, &["held"]);
    let mut agent = Agent::open(&home);
    agent.call("files", "read_file", json!({"path": "marked.md"}));
    let folder = home.script("files").into_os_string().into_string().unwrap();
    let of_server = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("files_server.py") && line.contains(&folder) && !line.contains("firedoor-shim")
    };
    let server = descendants(i32::try_from(std::process::id()).unwrap()).into_iter().find(of_server).unwrap();
    kill(server, Signal::SIGKILL);
    until("the server's end", || home.firedoor(&["log"]).stdout.contains("ended").then_some(()));
    assert!(!home.firedoor(&["log"]).stdout.contains("result/classified"));
    running.1.take();
    until("the classifier's word", || home.firedoor(&["log"]).stdout.contains("result/classified").then_some(()));
    agent.send("outbox", "http_post", post());
    let question = until("a question", || home.pending().into_iter().next());
    assert!(question.to_string().contains("flow/after-injection"), "{question}");
}

#[test]
fn without_it_results_go_on_and_that_is_said() {
    let home = Home::new();
    set_up(&home);
    let mut agent = Agent::open(&home);
    let (read, error) = agent.call("files", "read_file", json!({"path": "marked.md"}));
    assert!(!error && read.contains(TEXT), "{read}");
    let said = until("the problem", || {
        let said = home.firedoor(&["status"]).stdout;
        said.contains("classifier.sock does not answer").then_some(said)
    });
    assert!(said.contains("1 results were not read"), "{said}");
    assert_eq!(agent.call("outbox", "http_post", post()).0, "202 Accepted");
}
