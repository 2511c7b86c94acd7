//! Hosts that nobody granted: the connection waits, and the user is asked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, TcpListener, ToSocketAddrs},
    time::Duration,
};

use firedoor_tests::{Client, Home, alive, descendants, kill, text, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// A web server of this machine, and the name under which other programs of this machine know it.
struct Site {
    name: String,
    port: u16,
    address: IpAddr,
}

impl Site {
    /// `None` where the machine's own name stands for no address, or for nothing else than `localhost`.
    fn start() -> Option<Self> {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_ascii_lowercase();
        let address = (name.as_str(), 0).to_socket_addrs().ok()?.next()?.ip();
        let listener = TcpListener::bind((address, 0)).ok().filter(|_| name != "localhost")?;
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                });
            }
        });
        Some(Self { name, port, address })
    }

    fn target(&self) -> String {
        format!("{}:{}", self.name, self.port)
    }

    fn page(&self) -> Value {
        json!({"host": self.name, "port": self.port})
    }

    /// A home with a server that may reach the address, as everybody who asks this machine's name must be granted, but
    /// not the name.
    fn home(&self) -> Home {
        let home = Home::new();
        home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
        home.protect();
        let address = std::net::SocketAddr::new(self.address, self.port).to_string();
        home.firedoor(&["grants", "add", "cursor/user/r", "--host", &address]).expect_code(0);
        home
    }
}

fn question(home: &Home) -> Value {
    until("a question", || home.pending().into_iter().next())
}

#[track_caller]
fn answer(home: &Home, words: &[&str]) {
    let question = question(home);
    let id = question["id"].as_str().unwrap();
    home.firedoor(&[&["answer", id], words].concat()).expect_code(0);
}

#[track_caller]
fn expect(client: &mut Client, call: i64, want: &str) {
    let (said, _) = text(&client.answer(call)["result"]);
    assert!(said.starts_with(want), "{said}; {}", client.log());
}

#[test]
fn once_is_for_what_waits_and_a_refusal_stands() {
    let Some(site) = Site::start() else { return };
    let home = site.home();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    let asked = question(&home);
    assert_eq!((&asked["entry"], &asked["tool"]), (&json!("cursor/user/r"), &json!(site.target())));
    assert!(asked["connection"]["program"].as_str().unwrap().contains("python"), "{asked}");
    home.firedoor(&["pending"]).expect_code(0).expect_said(&format!("a connection to {}", site.target()));
    answer(&home, &["allow"]);
    expect(&mut client, call, "got: hello");
    let call = client.send_call("fetch", site.page());
    answer(&home, &["block"]);
    expect(&mut client, call, "denied:");
    let call = client.send_call("fetch", site.page());
    expect(&mut client, call, "denied:");
    assert!(home.pending().is_empty(), "asked again");
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    assert!(log.contains("sandbox/host") && log.contains("\"answered\""), "{log}");
    // Another client has refused nothing.
    client.end();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    answer(&home, &["allow", "--for", "session"]);
    expect(&mut client, call, "got: hello");
    let call = client.send_call("fetch", site.page());
    expect(&mut client, call, "got: hello");
}

#[test]
fn always_is_a_grant() {
    let Some(site) = Site::start() else { return };
    let home = site.home();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    answer(&home, &["allow", "--for", "always"]);
    expect(&mut client, call, "got: hello");
    home.firedoor(&["grants", "list"]).expect_code(0).expect_said(&site.target());
    client.end();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    expect(&mut client, call, "got: hello");
    client.end();
    home.firedoor(&["grants", "remove", "cursor/user/r", "--host", &site.target()]).expect_code(0);
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    answer(&home, &["block", "--for", "always"]);
    expect(&mut client, call, "denied:");
    client.end();
    // The rule holds for the next client as well.
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    expect(&mut client, call, "denied:");
    assert!(home.pending().is_empty());
}

#[test]
fn nobody_is_asked_in_watch_nor_against_a_rule_or_a_profile() {
    let home = Home::new();
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let python = home.python().file_name().unwrap().to_str().unwrap();
    home.write(
        ".config/firedoor/profiles/test.toml",
        format!("description = \"Test.\"\nrefuse = [\"stats.example.org\"]\n[match]\nexecutable = [\"{python}\"]\n"),
    );
    let page = |host: &str| json!({"host": host, "port": 80});
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", page("stats.example.org"));
    expect(&mut client, call, "denied: gaierror");
    home.firedoor(&["rules", "add", "block", "--entry", "cursor/user/r", "--detector", "sandbox/host"]).expect_code(0);
    let call = client.send_call("fetch", page("a.example.org"));
    expect(&mut client, call, "denied:");
    home.firedoor(&["mode", "watch"]).expect_code(0);
    let call = client.send_call("fetch", page("b.example.org"));
    expect(&mut client, call, "denied:");
    assert!(home.pending().is_empty());
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    for host in ["stats.example.org", "a.example.org:80", "b.example.org:80"] {
        assert!(log.contains(host), "{host}: {log}");
    }
}

#[test]
fn the_next_engine_asks_again() {
    let Some(site) = Site::start() else { return };
    let home = site.home();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    let first = question(&home);
    kill(home.engine().unwrap(), Signal::SIGKILL);
    let again = until("the next engine asks", || home.pending().pop());
    assert_eq!((&again["tool"], &again["entry"]), (&first["tool"], &first["entry"]));
    answer(&home, &["allow"]);
    expect(&mut client, call, "got: hello");
}

#[test]
fn who_goes_takes_the_question_along() {
    let home = Home::new();
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let open = || home.json(&["status"])["pending"].as_u64().unwrap();
    let mut client = Client::open(&home, "r");
    client.send_call("fetch", json!({"host": "a.example.org", "port": 80}));
    until("a question", || (open() == 1).then_some(()));
    let server = *descendants(client.pid()).last().unwrap();
    kill(server, Signal::SIGKILL);
    until("the question is gone", || (open() == 0).then_some(()));
    client.wait();
}

#[test]
fn while_firedoor_is_off_there_is_nobody_to_ask() {
    let home = Home::new();
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let mut client = Client::open(&home, "r");
    client.send_call("fetch", json!({"host": "a.example.org", "port": 80}));
    question(&home);
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGTERM);
    until("Firedoor is off", || (!alive(engine)).then_some(()));
    // The server is not held up: it goes on, and answers when another client has started an engine.
    let _other = Client::open(&home, "r");
    let call = client.send_call("home", json!({}));
    assert!(client.try_answer(call, Duration::from_secs(60)).is_some(), "{}", client.log());
    assert!(home.pending().is_empty());
}

#[test]
fn nobody_answers_and_somebody_answers_late() {
    let Some(site) = Site::start() else { return };
    let home = site.home();
    let mut client = Client::open(&home, "r");
    let call = client.send_call("fetch", site.page());
    let id = question(&home)["id"].as_str().unwrap().to_owned();
    let (said, _) = text(&client.try_answer(call, Duration::from_secs(70)).unwrap()["result"]);
    assert!(said.starts_with("denied:"), "{said}");
    home.firedoor(&["answer", &id, "allow"]).expect_code(0).expect_said("once within 10 minutes");
    // Right after a refusal the host is refused without a question. Not as often as it can be: so many calls are asked about.
    until("the late answer counts", || {
        std::thread::sleep(Duration::from_millis(100));
        let call = client.send_call("fetch", site.page());
        let (said, _) = text(&client.answer(call)["result"]);
        said.starts_with("got: hello").then_some(())
    });
    let call = client.send_call("fetch", site.page());
    answer(&home, &["block"]);
    expect(&mut client, call, "denied:");
}
