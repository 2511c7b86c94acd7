//! What a protected server can reach, seen from inside one. Each attempt is made unprotected first: a probe that cannot
//! succeed at all proves nothing.

use std::{
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
};

use firedoor_tests::{Client, Home, text};
use serde_json::{Value, json};

fn call(client: &mut Client, tool: &str, arguments: Value) -> String {
    text(&client.call(tool, arguments)).0
}

#[test]
fn a_server_reaches_nothing_that_it_was_not_given() {
    let home = Home::new();
    let private = home.write(".ssh/id_ed25519", "made up");
    let script = home.write("writable.txt", "");
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let socket = home.directory("sockets").join("agent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    home.own(&socket);
    let entry = home.entry("reaching_server.py", &[]);
    home.cursor(json!({"r": entry}));
    let unprotected = home.command_line("r");
    home.protect();
    home.set("UNDECLARED_API_TOKEN", "made-up");

    // A process of the same user that is none of the server's business.
    let mut bystander = Client::start(&home, &["sleep".into(), "600".into()]);
    let engine_socket = home.runtime().join("engine.sock");
    let attempts = |client: &mut Client| -> Vec<(String, bool)> {
        let mut results: Vec<_> = [
            ("read", json!({"path": private})),
            ("write", json!({"path": script})),
            ("tcp", json!({"port": tcp.local_addr().unwrap().port()})),
            ("udp", json!({"port": udp.local_addr().unwrap().port()})),
            ("unix", json!({"path": socket})),
            ("unix", json!({"path": engine_socket})),
            ("read", json!({"path": home.state("firedoor.db")})),
            ("signal", json!({"pid": bystander.pid()})),
        ]
        .into_iter()
        .map(|(tool, arguments)| {
            let said = call(client, tool, arguments.clone());
            assert!(said.starts_with("got: ") || said.starts_with("denied: "), "{tool} {arguments}: {said}");
            (format!("{tool} {arguments}: {said}"), said.starts_with("got: "))
        })
        .collect();
        let token = call(client, "variable", json!({"name": "UNDECLARED_API_TOKEN"}));
        results.push((format!("variable: {token}"), token == "made-up"));
        results
    };

    // The protected one first: it starts the engine, whose socket and database are among the targets.
    let mut confined = Client::open(&home, "r");
    let results = attempts(&mut confined);
    let mut baseline = Client::start(&home, &unprotected);
    baseline.initialize();
    for (attempt, got) in attempts(&mut baseline) {
        assert!(got, "the baseline fails, so the probe says nothing: {attempt}");
    }
    for (attempt, got) in results {
        assert!(!got, "{attempt}");
    }
    assert!(call(&mut confined, "home", json!({})).contains("/.local/share/firedoor/"));
    bystander.close_stdin();
    firedoor_tests::kill(bystander.pid(), nix::sys::signal::Signal::SIGKILL);
}

#[test]
fn a_grant_opens_what_it_names_from_the_next_start_on() {
    let home = Home::new();
    let notes = home.write("project/notes.md", "granted");
    let other = home.write("project-b/notes.md", "not granted");
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let granted = notes.parent().unwrap().to_str().unwrap();
    home.firedoor(&["grants", "add", "cursor/user/r", "--ro", granted]).expect_code(0);
    let mut client = Client::open(&home, "r");
    assert!(call(&mut client, "read", json!({"path": notes})).starts_with("got: "));
    assert!(call(&mut client, "write", json!({"path": notes})).starts_with("denied: "));
    assert!(call(&mut client, "read", json!({"path": other})).starts_with("denied: "));
    client.end();
    home.firedoor(&["grants", "remove", "cursor/user/r", "--ro", granted]).expect_code(0);
    let mut client = Client::open(&home, "r");
    assert!(call(&mut client, "read", json!({"path": notes})).starts_with("denied: "));
}

#[test]
fn a_host_is_reached_when_it_is_granted_and_an_attempt_is_on_record_when_not() {
    let home = Home::new();
    let (granted, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let socket = home.directory("sockets").join("agent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    home.own(&socket);
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let address = granted.local_addr().unwrap().to_string();
    let path = socket.to_str().unwrap();
    home.firedoor(&["grants", "add", "cursor/user/r", "--host", &address, "--unix", path]).expect_code(0);
    home.firedoor(&["grants", "list"]).expect_code(0).expect_said(&address);
    let mut client = Client::open(&home, "r");
    let tcp =
        |client: &mut Client, to: &TcpListener| call(client, "tcp", json!({"port": to.local_addr().unwrap().port()}));
    assert_eq!(tcp(&mut client, &granted), "got: connected");
    assert!(tcp(&mut client, &other).starts_with("denied: PermissionError"));
    assert_eq!(call(&mut client, "unix", json!({"path": socket})), "got: connected");
    client.end();
    let log = home.firedoor(&["log"]).expect_code(0);
    log.expect_said(&other.local_addr().unwrap().to_string()).expect_said("sandbox/network");
    home.firedoor(&["grants", "remove", "cursor/user/r", "--host", &address, "--unix", path]).expect_code(0);
    let mut client = Client::open(&home, "r");
    assert!(tcp(&mut client, &granted).starts_with("denied: "));
    assert!(call(&mut client, "unix", json!({"path": socket})).starts_with("denied: "));
}

#[test]
fn firedoors_own_directories_cannot_be_granted() {
    let home = Home::new();
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let state = home.state("");
    let tried = home.firedoor(&["grants", "add", "cursor/user/r", "--rw", state.to_str().unwrap()]);
    if tried.code == 0 {
        // Accepted as text, it must not take effect.
        let mut client = Client::start(&home, &home.command_line("r"));
        let id =
            client.request("tools/call", json!({"name": "write", "arguments": {"path": state.join("firedoor.db")}}));
        let answer = client.answer(id);
        assert!(answer["error"].is_object() || text(&answer["result"]).0.starts_with("denied: "), "{answer}");
    }
}

#[test]
fn the_sandbox_by_itself() {
    let home = Home::new();
    let secret = home.write("secret.txt", "made up");
    let path = secret.to_str().unwrap();
    home.run("cat", &[path]).expect_code(0);
    let cat = |options: &[&str]| home.firedoor(&[&["sandbox", "run"], options, &["--", "cat", path]].concat());
    assert_ne!(cat(&[]).code, 0);
    cat(&["--ro", path]).expect_code(0).expect_said("made up");
    // Of the environment it gets what is named.
    home.set("NAMED", "1");
    home.set("UNNAMED", "1");
    let all = home.firedoor(&["sandbox", "run", "--env", "NAMED", "--", "env"]).stdout;
    let foreign: Vec<_> = all.lines().filter(|l| !l.starts_with("PATH=") && !l.contains("/firedoor/")).collect();
    assert_eq!(foreign, ["NAMED=1"], "{all}");
    home.firedoor(&["sandbox", "run", "--", "sh", "-c", "exit 7"]).expect_code(7);
    home.firedoor(&["sandbox", "run", "--host", "https://example.com", "--", "true"]).expect_code(2);
    let report = home.json(&["sandbox", "doctor"]);
    assert!(report["level"].is_string(), "{report}");
}
