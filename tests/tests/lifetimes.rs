//! What lives and dies with what: servers, shims, guardians, clients and the engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    path::Path,
    process::{Child, Stdio},
};

use firedoor_tests::{Client, Home, alive, descendants, kill, shim_of, text, until};
use nix::sys::signal::Signal;
use serde_json::json;

/// Every process below a client that runs Python: the server and what it started.
fn servers(client: i32) -> Vec<i32> {
    let is_python = |pid: &i32| {
        let exe = fs::read_link(format!("/proc/{pid}/exe"));
        exe.is_ok_and(|exe| exe.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python")))
    };
    descendants(client).into_iter().filter(is_python).collect()
}

fn all_dead(what: &str, pids: &[i32]) {
    assert!(!pids.is_empty(), "{what}: there was nothing to die");
    until(what, || pids.iter().all(|pid| !alive(*pid)).then_some(()));
}

#[test]
fn the_shim_ends_as_the_server_does() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("misbehave.py", &["exit"]), "e": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::start(&home, &home.command_line("s"));
    assert_eq!(client.line(), None);
    assert_eq!(client.wait(), 3);
    // And a server that ends because its input does ends well.
    assert_eq!(Client::open(&home, "e").end(), 0);
    home.firedoor(&["log"]).expect_code(0).expect_said("exit code 3").expect_said("exit code 0");
}

#[test]
fn a_program_that_does_not_exist_is_an_answer_not_a_silence() {
    let home = Home::new();
    home.cursor(json!({"s": {"command": "/nonexistent/server", "args": []}}));
    home.protect();
    let mut client = Client::start(&home, &home.command_line("s"));
    let id = client.request("initialize", json!({}));
    let answer = client.answer(id);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("/nonexistent/server"), "{answer}");
    assert_ne!(client.end(), 0);
}

#[test]
fn a_server_that_never_answers_ends_with_its_client() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("misbehave.py", &["mute"])}));
    home.protect();
    let mut client = Client::start(&home, &home.command_line("s"));
    client.request("initialize", json!({}));
    let pids = until("the server runs", || Some(servers(client.pid())).filter(|p| !p.is_empty()));
    client.end();
    all_dead("the server", &pids);
}

/// The client dies, and both of its pipes with it. The server notices nothing by itself.
#[test]
fn a_server_that_ignores_the_end_of_its_input_dies_with_its_client() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("misbehave.py", &["ignore-eof"])}));
    home.protect();
    let (mut process, stdin, stdout) = start_without_reader(&home, "s");
    let pid = i32::try_from(process.id()).unwrap();
    let mut answer = String::new();
    BufReader::new(stdout).read_line(&mut answer).unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
    let (pids, shim) = (servers(pid), shim_of(pid).unwrap());
    process.kill().unwrap();
    drop(stdin);
    all_dead("the server", &pids);
    all_dead("the shim", &[shim]);
    process.wait().unwrap();
}

/// The client follows the specification: it closes stdin, waits, signals, and kills what does not listen.
#[test]
fn a_server_that_ignores_everything_is_killed_with_the_shim() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("misbehave.py", &["ignore-eof"])}));
    home.protect();
    let mut client = Client::open(&home, "s");
    let (pids, shim) = (servers(client.pid()), shim_of(client.pid()).unwrap());
    client.close_stdin();
    kill(shim, Signal::SIGTERM);
    kill(shim, Signal::SIGKILL);
    all_dead("the server", &pids);
}

/// A client whose output nobody reads for us, after its first request.
fn start_without_reader(home: &Home, server: &str) -> (Child, PipeWriter, PipeReader) {
    let script = home.write("client.sh", "\"$@\"\nexit $?\n");
    let mut command = home.command("/bin/sh");
    let (process, mut stdin, stdout) =
        home.spawn(command.arg(script).args(home.command_line(server)).stderr(Stdio::null()));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    writeln!(stdin, "{hello}").unwrap();
    (process, stdin, stdout)
}

/// What a server left behind with the textbook's double fork dies, whichever of the processes above it goes first.
#[test]
fn nothing_outlives_the_server() {
    for (first, signal) in [
        ("client's input", None),
        ("shim", Some(Signal::SIGKILL)),
        ("shim", Some(Signal::SIGTERM)),
        ("guardian", Some(Signal::SIGKILL)),
        ("server", Some(Signal::SIGKILL)),
    ] {
        let home = Home::new();
        home.cursor(json!({"s": home.entry("misbehave.py", &["orphan"])}));
        home.protect();
        let mut client = Client::open(&home, "s");
        let pids = until("the server and its orphan run", || Some(servers(client.pid())).filter(|p| p.len() >= 2));
        let shim = shim_of(client.pid()).unwrap();
        let target = match first {
            "shim" => shim,
            "guardian" => shim_of(shim).expect("a fork of the shim guards the tree"),
            "server" => pids[0],
            _ => 0,
        };
        match signal {
            Some(signal) => kill(target, signal),
            None => client.close_stdin(),
        }
        all_dead(&format!("the tree, after {first} ({signal:?})"), &pids);
        all_dead("the shim", &[shim]);
        while client.line().is_some() {}
    }
}

#[test]
fn a_flood_fills_no_memory_and_delays_nobody() {
    let home = Home::new();
    home.cursor(json!({"flood": home.entry("misbehave.py", &["flood"]), "echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut echo = Client::open(&home, "echo");
    // A client that reads nothing.
    let (mut process, mut stdin, stdout) = start_without_reader(&home, "flood");
    // The second request lets the flood go.
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).unwrap();
    let pid = i32::try_from(process.id()).unwrap();
    let pids = until("the flood runs", || Some(servers(pid)).filter(|p| !p.is_empty()));
    let engine = home.engine().unwrap();
    for _ in 0..300 {
        assert_eq!(text(&echo.call("echo", json!({"text": "still here"}))).0, "still here");
    }
    let resident = resident_mib(engine);
    assert!(resident < 150, "the engine holds {resident} MiB");
    drop(stdin);
    drop(stdout);
    all_dead("the flood", &pids);
    process.wait().unwrap();
}

fn resident_mib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn a_second_engine_is_refused_and_the_first_goes_on() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "echo");
    let first = home.engine();
    home.firedoor(&["daemon"]).expect_code(2).expect_said("another Firedoor engine is running");
    assert_eq!(home.engine(), first);
    assert_eq!(text(&client.call("echo", json!({"text": "x"}))).0, "x");
}

/// `finish` reads both streams to their ends: the engine has neither.
#[test]
fn an_engine_in_the_background_is_ready_or_says_why_not() {
    let home = Home::new();
    let background = ["daemon", "--background"];
    let said = home.firedoor(&background).expect_code(0);
    assert_eq!(said.stdout, "ready\n");
    let first = home.engine();
    assert!(first.is_some());
    home.firedoor(&background).expect_code(2).expect_said("another Firedoor engine is running");
    assert_eq!(home.engine(), first);
    drop(home);
    let home = Home::new();
    home.set("XDG_STATE_HOME", "/proc/nowhere");
    let said = home.firedoor(&background).expect_code(2);
    said.expect_said("/proc/nowhere/firedoor").expect_said("XDG_STATE_HOME to one that is");
}

#[test]
fn an_engine_that_is_ending_is_waited_for() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    for signal in [Signal::SIGTERM, Signal::SIGKILL].repeat(5) {
        drop(Client::open(&home, "echo"));
        let engine = home.engine().unwrap();
        kill(engine, signal);
        // A client that comes at once, and a command after it.
        drop(Client::open(&home, "echo"));
        assert!(home.json(&["status"])["sessions"].is_array());
    }
}

/// It has said what to run, and is gone before it hears that it runs: the next engine gets the server that was started.
#[test]
fn an_engine_that_dies_while_a_server_starts_is_followed_by_the_next() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    Client::open(&home, "echo").end();
    let first = home.engine().unwrap();
    let (socket, moved) = (home.runtime().join("engine.sock"), home.runtime().join("moved.sock"));
    fs::rename(&socket, &moved).unwrap();
    let mut command = home.command(home.python());
    command.arg(home.script("dying_engine.py")).args([&socket, &moved]).arg(first.to_string());
    let (mut between, _input, output) = home.spawn(&mut command);
    let mut ready = String::new();
    BufReader::new(output).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let mut client = Client::open(&home, "echo");
    assert!(between.wait().unwrap().success());
    assert_eq!(text(&client.call("echo", json!({"text": "x"}))).0, "x");
    assert_ne!(home.engine().unwrap(), first);
    assert_eq!(servers(client.pid()).len(), 1);
    assert_eq!(client.end(), 0);
    home.firedoor(&["log"]).expect_code(0).expect_said("taken over from an engine that died");
    home.firedoor(&["log", "verify"]).expect_code(0);
}

#[test]
fn status_starts_nothing() {
    let home = Home::new();
    home.firedoor(&["status"]).expect_code(2).expect_said("no Firedoor engine is running");
    assert!(home.engine().is_none());
}

#[test]
fn a_session_outlives_an_engine_that_was_killed() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "echo");
    let server = servers(client.pid());
    let before = text(&client.call("whereami", json!({}))).0;
    let first = home.engine().unwrap();
    let lost = client.send_call("sleep", json!({"ms": 1000}));
    kill(first, Signal::SIGKILL);
    // What was in flight gets an answer, also when nobody can say what became of it.
    let answer = client.answer(lost);
    assert!(answer["error"]["message"].is_string() || answer["result"].is_object(), "{answer}");
    // The same server goes on behind another engine, at the start of a message.
    assert_eq!(text(&client.call("echo", json!({"text": "x"}))).0, "x");
    assert_eq!(servers(client.pid()), server);
    assert_eq!(text(&client.call("whereami", json!({}))).0, before);
    assert_ne!(home.engine().unwrap(), first);
    assert_eq!(client.end(), 0);
    home.firedoor(&["log", "verify"]).expect_code(0);
}

#[test]
fn a_stale_socket_is_replaced() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    Client::open(&home, "echo").end();
    kill(home.engine().unwrap(), Signal::SIGKILL);
    until("the socket has no listener", || home.engine().is_none().then_some(()));
    assert!(home.runtime().join("engine.sock").exists());
    home.firedoor(&["status"]).expect_code(2);
    let mut client = Client::open(&home, "echo");
    assert_eq!(text(&client.call("echo", json!({"text": "x"}))).0, "x");
}

/// Stopping the engine is no crash: nothing is started in its place, and nothing runs past it.
#[test]
fn an_engine_that_was_stopped_stays_off() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "echo");
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGTERM);
    until("the engine has ended", || (!alive(engine)).then_some(()));
    let call = client.send_call("echo", json!({"text": "x"}));
    let answer = client.answer(call);
    let said = answer["error"]["message"].as_str().map_or_else(|| text(&answer["result"]).0, str::to_owned);
    assert!(said.contains("off"), "{answer}; stderr: {}", client.log());
    assert!(home.engine().is_none(), "somebody started an engine");
}

#[test]
fn many_clients_at_once_start_one_engine() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let line = home.command_line("echo");
    let mut clients: Vec<_> = (0..8).map(|_| Client::start(&home, &line)).collect();
    for client in &mut clients {
        client.initialize();
    }
    assert_eq!(home.json(&["status"])["sessions"].as_array().unwrap().len(), 8);
}

#[test]
fn without_an_engine_nothing_runs_unprotected() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    fs::remove_file(home.program("firedoor")).unwrap();
    let mut client = Client::start(&home, &home.command_line("echo"));
    let id = client.request("initialize", json!({}));
    let answer = client.answer(id);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("not started"), "{answer}");
    assert!(servers(client.pid()).is_empty());
    assert_ne!(client.end(), 0);
}

#[test]
fn a_corrupt_database_is_set_aside_and_protection_goes_on() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let garbage = b"this was a database once ".repeat(400);
    let database = home.write(".local/state/firedoor/firedoor.db", &garbage);
    let mut client = Client::open(&home, "echo");
    assert_eq!(text(&client.call("echo", json!({"text": "x"}))).0, "x");
    let aside: Vec<_> = fs::read_dir(database.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.to_string_lossy().contains(".corrupt-"))
        .collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(fs::read(&aside[0]).unwrap(), garbage);
    let problems = home.json(&["status"])["problems"].to_string();
    assert!(problems.contains(".corrupt-"), "{problems}");
    home.firedoor(&["log", "verify"]).expect_code(0);
}

/// As after a downgrade.
#[test]
fn a_newer_database_is_said_and_left_as_it_is() {
    let home = Home::new();
    let config = home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    let original = fs::read(&config).unwrap();
    home.protect();
    let mut client = Client::open(&home, "echo");
    client.call("echo", json!({"text": "x"}));
    assert_eq!(client.end(), 0);
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGTERM);
    until("the engine ends", || (!alive(engine)).then_some(()));
    let database = home.state("firedoor.db");
    // SQLite database file format, "User Version Number".
    let mut bytes = fs::read(&database).unwrap();
    let version: [u8; 4] = bytes[60..64].try_into().unwrap();
    bytes[60..64].copy_from_slice(&1000_u32.to_be_bytes());
    fs::write(&database, &bytes).unwrap();

    let mut client = Client::start(&home, &home.command_line("echo"));
    let id = client.request("initialize", json!({}));
    let answer = client.answer(id);
    let told = answer["error"]["message"].as_str().unwrap_or_default();
    let want = "schema version 1000, this Firedoor knows up to";
    assert!(told.contains(want) && told.contains("install the newer Firedoor again"), "{answer}");
    assert!(servers(client.pid()).is_empty());
    assert_ne!(client.end(), 0);
    for command in [&["log"][..], &["mode"], &["daemon"]] {
        home.firedoor(command).expect_code(2).expect_said(want);
    }
    assert!(fs::read(&database).unwrap() == bytes, "it was changed");
    // Configurations come back without it.
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read(&config).unwrap(), original);
    // The newer version finds everything again.
    bytes[60..64].copy_from_slice(&version);
    fs::write(&database, &bytes).unwrap();
    home.firedoor(&["log"]).expect_code(0).expect_said("echo");
}

#[test]
fn a_runtime_directory_of_somebody_else_is_not_used() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let elsewhere = home.directory("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, home.runtime()).unwrap();
    home.own(&home.runtime());
    let mut client = Client::start(&home, &home.command_line("echo"));
    let id = client.request("initialize", json!({}));
    let answer = client.answer(id);
    assert!(answer["error"]["message"].as_str().unwrap_or_default().contains("0700"), "{answer}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn signals_reach_the_server_once() {
    let home = Home::new();
    home.cursor(json!({"echo": home.entry("echo_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "echo");
    let (shim, pids) = (shim_of(client.pid()).unwrap(), servers(client.pid()));
    kill(shim, Signal::SIGTERM);
    all_dead("the server", &pids);
    // The shell's word for a command that a signal ended.
    assert_eq!(client.wait(), 128 + Signal::SIGTERM as i32);
}

#[test]
fn private_directories_do_not_leak_into_the_home() {
    let home = Home::new();
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "r");
    let private = text(&client.call("home", json!({}))).0;
    assert!(Path::new(&private).starts_with(home.path().join(".local/share/firedoor")), "{private}");
}

/// A server of the test's own.
fn own_server(home: &Home, name: &str, source: &str) -> serde_json::Value {
    let script = home.write(name, source);
    json!({"command": home.python(), "args": [script]})
}

/// What is queued for a server that reads nothing must not keep it alive.
#[test]
fn a_server_that_never_reads_dies_with_its_client() {
    let home = Home::new();
    home.cursor(json!({"s": own_server(&home, "deaf/server.py", "import time\ntime.sleep(1000)\n")}));
    home.protect();
    let (mut process, mut stdin, stdout) = start_without_reader(&home, "s");
    let pid = i32::try_from(process.id()).unwrap();
    let pids = until("the server runs", || Some(servers(pid)).filter(|p| !p.is_empty()));
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"padding": "x".repeat(200_000)}});
    writeln!(stdin, "{ping}").unwrap();
    process.kill().unwrap();
    drop((stdin, stdout));
    all_dead("the server", &pids);
    process.wait().unwrap();
}

/// Both sides are silent for good: nothing is left to wait for.
#[test]
fn a_server_that_closed_its_output_dies_with_its_client() {
    let home = Home::new();
    let source = "import os, time\nos.close(1)\ntime.sleep(1000)\n";
    home.cursor(json!({"s": own_server(&home, "mute/server.py", source)}));
    home.protect();
    let mut client = Client::start(&home, &home.command_line("s"));
    let pids = until("the server runs", || Some(servers(client.pid())).filter(|p| !p.is_empty()));
    client.close_stdin();
    all_dead("the server", &pids);
}
