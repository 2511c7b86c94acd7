//! What a command's exit code and its streams say to a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs::OpenOptions, io, process::Stdio};

use firedoor_tests::{Home, Output};
use serde_json::json;

/// Runs `firedoor` with this as its stdout.
fn into(home: &Home, stdout: impl Into<Stdio>, args: &[&str]) -> Output {
    let mut command = home.command("timeout");
    command.args(["60", "setsid"]).arg(home.program("firedoor")).args(args).stdout(stdout).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Output { code: output.status.code().unwrap_or(-1), stdout: String::new(), stderr }
}

/// A server that runs as root: a finding of level high.
fn home_with_a_grave_finding() -> Home {
    let home = Home::new();
    let config = json!({"mcpServers": {"a": {"command": "sudo", "args": ["true"]}}});
    home.write("work/.mcp.json", config.to_string());
    home
}

#[test]
fn a_disk_that_is_full_is_no_success() {
    let home = home_with_a_grave_finding();
    // A row for the log.
    home.firedoor(&["mode", "strict"]).expect_code(0);
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["scan", "--json"][..], &["scan"], &["rules", "list", "--json"], &["log", "--json"]] {
        into(&home, full(), args).expect_code(2).expect_said("is not complete");
    }
}

#[test]
fn a_reader_that_goes_changes_neither_what_is_done_nor_the_exit_code() {
    let home = home_with_a_grave_finding();
    let closed = || {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        writer
    };
    let scan = ["scan", "--project", "work", "--fail-on", "high"];
    assert_eq!(into(&home, closed(), &scan).expect_code(1).stderr, "");
    // To follow the log is to print: it ends with its reader.
    home.firedoor(&["mode", "strict"]).expect_code(0);
    assert_eq!(into(&home, closed(), &["log", "--follow"]).expect_code(0).stderr, "");
}

#[test]
fn a_project_that_is_not_there_is_a_slip_of_the_pen() {
    let home = home_with_a_grave_finding();
    home.firedoor(&["scan", "--project", "work", "--fail-on", "high"]).expect_code(1);
    for typo in ["wrok", "work/.mcp.json"] {
        let said = home.firedoor(&["scan", "--project", typo, "--fail-on", "high"]).expect_code(2);
        said.expect_said(typo).expect_said("name the directory of a project");
        home.firedoor(&["protect", "--all", "--yes", "--project", typo]).expect_code(2);
    }
}

/// What did not happen is not on record, and what no start would grant is refused at once.
#[test]
fn grants_are_what_the_log_says() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    let folder = home.directory("folder");
    let folder = folder.to_str().unwrap();
    let grants = |what: &str, options: &[&str]| home.firedoor(&[&["grants", what, "cursor/user/s"], options].concat());
    grants("add", &["--env", "A=B"]).expect_code(2).expect_said("--env A");
    grants("add", &["--rw", "/"]).expect_code(1).expect_said("never granted");
    let state = home.state("");
    grants("add", &["--ro", state.to_str().unwrap()]).expect_code(1).expect_said("belongs to Firedoor");
    grants("remove", &["--rw", folder]).expect_code(1).expect_said("none of these");
    let log = home.firedoor(&["log"]).expect_code(0).stdout;
    assert!(!log.contains("grant"), "{log}");
    home.directory(".ssh");
    let whole = home.path();
    grants("add", &["--rw", whole.to_str().unwrap()]).expect_code(0).expect_said("~/.ssh");
    grants("add", &["--rw", folder]).expect_code(0);
    grants("remove", &["--ro", folder]).expect_code(0);
    let log = home.firedoor(&["log"]).expect_code(0).stdout;
    assert!(log.contains(&format!("grants removed from cursor/user/s: {folder} (to write)")), "{log}");
}

#[test]
fn a_variable_of_a_confined_command_has_a_value() {
    let home = Home::new();
    let run = |env: &str| home.firedoor(&["sandbox", "run", "--env", env, "--", "/bin/sh", "-c", "echo FOO is $FOO"]);
    run("FOO").expect_code(2).expect_said("there is no such variable");
    run("FOO=1").expect_code(0).expect_said("FOO is 1");
    home.set("FOO", "2");
    run("FOO").expect_code(0).expect_said("FOO is 2");
}

#[test]
fn a_message_says_what_to_do() {
    let home = Home::new();
    home.firedoor(&["grants", "list"]).expect_code(0).expect_said("Nothing was granted");
    home.firedoor(&["rules", "import", "nowhere"]).expect_code(2).expect_said("`firedoor rules export`");
    let config = home.cursor(json!({"s": home.entry("echo_server.py", &[])}));
    home.firedoor(&["scan"]).expect_code(0).expect_said("1 server in 1 client, 0 protected");
    home.set_mode(&config, 0o000);
    home.firedoor(&["scan"]).expect_code(0).expect_said("Make it readable for you");
    home.set("XDG_RUNTIME_DIR", "/proc/nowhere");
    home.firedoor(&["mode"]).expect_code(2).expect_said("Set XDG_RUNTIME_DIR to a directory that you may write to");
}
