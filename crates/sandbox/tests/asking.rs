//! Real programs that connect to hosts nobody granted, while somebody is asked. As root (where the tests are) and as an
//! ordinary user. The test plays the shim's part, through `confine run … ask`.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;
#[path = "common/tls.rs"]
mod tls;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use common::{Setup, grant, users};
use firedoor_model::{
    launch::{Access, Network},
    network::{HostQuestion, HostRuling, Hosts, KnownName, Led},
};
use firedoor_sandbox::Notice;
use tls::PYTHON;

const NODE: &str = "/usr/bin/node";
/// A name that pretends to be public and is this machine.
const NAME: &str = "asked.example.org";
/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server that answers each connection, when its sender has ended or an empty line comes, with how many bytes came.
fn counter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut count, mut bytes) = (0, vec![0; 1 << 16]);
                loop {
                    let n = stream.read(&mut bytes).unwrap_or(0);
                    count += n;
                    if n == 0 || bytes[..n].ends_with(b"\r\n\r\n") {
                        break;
                    }
                }
                let body = format!("got {}", if count < 1000 { "it".to_owned() } else { count.to_string() });
                let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read(&mut bytes);
            });
        }
    });
    port
}

/// A confined program, and what it and its guardian say.
struct Running {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<String>,
    notices: Receiver<Notice>,
    _setup: Setup,
}

impl Running {
    fn start(user: Option<u32>, words: &[&str], hosts: Hosts) -> Self {
        Self::start_in(Setup::new(user), words, hosts)
    }

    fn start_in(mut setup: Setup, words: &[&str], hosts: Hosts) -> Self {
        setup.step.program = words[0].into();
        setup.step.args = words[1..].iter().map(Into::into).collect();
        for path in ["/etc/nsswitch.conf", "/dev/urandom", "/etc/ssl/openssl.cnf"] {
            setup.step.confinement.grants.push(grant(path, Access::Read));
        }
        setup.step.confinement.network = Network::Hosts(hosts);
        setup.own_everything();
        let mut command = setup.command(&["ask"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let ((to_output, output), (to_notices, notices)) = (channel(), channel());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| to_output.send(line)));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(notice) => drop(to_notices.send(notice)),
                    Err(_) => eprintln!("{line}"),
                }
            }
        });
        Self { stdin: child.stdin.take().unwrap(), child, output, notices, _setup: setup }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.output.recv_timeout(LIMIT).unwrap()
    }

    #[track_caller]
    fn notice(&self) -> Notice {
        self.notices.recv_timeout(LIMIT).unwrap()
    }

    #[track_caller]
    fn question(&self) -> HostQuestion {
        match self.notice() {
            Notice::Asked(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn say(&mut self, line: &str) {
        // At once: who reads it may act on it, and be gone, before an end of the line that comes by itself.
        if let Err(e) = self.stdin.write_all(format!("{line}\n").as_bytes()) {
            let said: Vec<_> = self.output.try_iter().collect();
            let told: Vec<_> = self.notices.try_iter().collect();
            panic!("{e}: {:?}, {said:?}, {told:?}", self.child.wait());
        }
    }

    #[track_caller]
    fn rule(&mut self, id: u64, allow: bool, lasting: bool) {
        self.say(&serde_json::to_string(&HostRuling { id, allow, lasting }).unwrap());
    }

    /// Answers the next question.
    #[track_caller]
    fn answer(&mut self, allow: bool, lasting: bool) {
        let question = self.question();
        self.rule(question.id, allow, lasting);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nobody granted anything but the loopback address that [`NAME`] stands for.
fn hosts(port: u16) -> Hosts {
    let known = |name: &str, at: &str| KnownName { name: name.into(), addresses: vec![at.parse().unwrap()] };
    Hosts {
        allowed: vec![format!("127.0.0.1:{port}").parse().unwrap()],
        known: vec![known(NAME, "127.0.0.1"), known("rebound.example.org", "127.0.0.9")],
        ask: true,
        refuse: vec!["telemetry.example.org".parse().unwrap()],
        ..Hosts::default()
    }
}

/// Python that prints what became of each step.
fn script(port: u16, body: &str) -> String {
    format!(
        r#"
import errno, socket, sys, threading, urllib.request
NAME, PORT = "{NAME}", {port}
def say(*words): print(*words, flush=True)
def attempt(action):
    try: say(action())
    except OSError as e:
        e = getattr(e, "reason", e)
        say("no such name" if isinstance(e, socket.gaierror) else errno.errorcode[e.errno])
def fetch(host=NAME, port=PORT): return urllib.request.urlopen(f"http://{{host}}:{{port}}/").read().decode()
def connect(host=NAME, port=PORT): return socket.create_connection((host, port))
def whole(peer):
    said = b""
    while part := peer.recv(65536): said += part
    return said.decode().split()[-1]
{body}
"#
    )
}

fn python(user: Option<u32>, port: u16, body: &str) -> Running {
    Running::start(user, &[PYTHON, "-I", "-c", &script(port, body)], hosts(port))
}

#[test]
fn once_is_once_and_a_refusal_stands() {
    let port = counter();
    for user in users() {
        let mut run = python(user, port, "for _ in range(4): attempt(fetch)\nsay(connect)");
        let question = run.question();
        assert_eq!(question.to.to_string(), format!("{NAME}:{port}"));
        assert!(question.program.raw().contains("/python3") && question.pid > 0, "{question:?}");
        run.rule(question.id, true, false);
        assert_eq!(run.line(), "got it");
        run.answer(true, false);
        assert_eq!(run.line(), "got it");
        run.answer(false, true);
        assert_eq!(run.line(), "ECONNRESET");
        // No question this time.
        assert_eq!(run.line(), "EACCES");
        assert!(matches!(run.notice(), Notice::Attempted(_)));
    }
}

#[test]
fn what_is_allowed_for_the_session_goes_direct_afterwards() {
    let port = counter();
    for user in users() {
        let body = "attempt(fetch)\nfor _ in range(2): attempt(fetch)\nsay(connect().getpeername()[1] == PORT)";
        let mut run = python(user, port, body);
        run.answer(true, true);
        for want in ["got it", "got it", "got it", "True"] {
            assert_eq!(run.line(), want);
        }
        assert!(run.notices.recv_timeout(LIMIT).is_err(), "no more questions until the end");
    }
}

#[test]
fn an_event_loop_goes_on_while_the_question_is_open() {
    if !Path::new(NODE).exists() {
        return;
    }
    let port = counter();
    for user in users() {
        let program = format!(
            "let n=0;const t=setInterval(()=>console.log('tick',++n),10);\
             fetch('http://{NAME}:{port}/').then(r=>r.text()).then(console.log,e=>console.log(e.cause?.code))\
             .finally(()=>clearInterval(t))"
        );
        for (allow, want) in [(true, "got it"), (false, "ECONNRESET")] {
            let mut run = Running::start(user, &[NODE, "-e", &program], hosts(port));
            let question = run.question();
            // Five ticks that come after the question.
            while run.output.try_recv().is_ok() {}
            (0..5).for_each(|_| assert!(run.line().starts_with("tick")));
            run.rule(question.id, allow, false);
            let last = std::iter::from_fn(|| Some(run.line())).find(|line| !line.starts_with("tick")).unwrap();
            assert!(last == want || (!allow && last == "UND_ERR_SOCKET"), "{last}");
        }
    }
}

#[test]
fn tls_passes_through_the_relay() {
    let dir = tempfile::tempdir().unwrap();
    let tls = tls::Tls::start(dir.path());
    let url = format!("https://{}:{}/", tls::NAME, tls.port);
    let node = format!("fetch('{url}').then(r=>r.text()).then(console.log,e=>console.log(e.cause?.code))");
    let python = format!("import urllib.request; print(urllib.request.urlopen('{url}').read().decode())");
    for user in users() {
        for words in [[PYTHON, "-c", &python].as_slice(), &[NODE, "-e", &node], &["/usr/bin/curl", "-sS", &url]] {
            if !Path::new(words[0]).exists() {
                continue;
            }
            let mut setup = Setup::new(user);
            let ca = setup.dir().join("ca.pem");
            fs::copy(dir.path().join("ca.pem"), &ca).unwrap();
            setup.grant("ca.pem", Access::Read);
            setup.step.env = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"]
                .map(|n| (n.into(), ca.clone().into_os_string()))
                .to_vec();
            let known = KnownName { name: tls::NAME.into(), addresses: vec!["127.0.0.1".parse().unwrap()] };
            let mut run = Running::start_in(setup, words, Hosts { known: vec![known], ..hosts(tls.port) });
            run.answer(true, false);
            assert_eq!(run.line(), "hello", "{words:?} as {user:?}");
        }
    }
}

#[test]
fn a_host_that_is_led_elsewhere_is_reached_there_only() {
    for user in users() {
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = there.local_addr().unwrap().port();
        let body = format!(
            r#"
def echo():
    peer = connect("led.example.org", 443)
    peer.sendall(b" and hello")
    peer.shutdown(socket.SHUT_WR)
    return whole(peer)
attempt(echo)
attempt(lambda: connect("led.example.org", 444))
attempt(lambda: connect("127.0.0.1", {at}))
attempt(lambda: connect("below.led.example.org", 443))
"#
        );
        let led = Led { name: "led.example.org".into(), port: 443, at, key: "the key".into() };
        let refuse = vec!["led.example.org".parse().unwrap()];
        let hosts = Hosts { led: vec![led], ask: false, refuse, ..hosts(1) };
        let run = Running::start_in(Setup::new(user), &[PYTHON, "-I", "-c", &script(1, &body)], hosts);
        let (mut stream, _) = there.accept().unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, "the key and hello", "{user:?}");
        stream.write_all(b"heard").unwrap();
        drop(stream);
        assert_eq!([run.line(), run.line(), run.line()], ["heard", "EACCES", "EACCES"], "{user:?}");
        assert_eq!(run.line(), "no such name", "{user:?}");
        there.set_nonblocking(true).unwrap();
        assert!(there.accept().is_err(), "nothing else came");
    }
}

#[test]
fn what_is_sent_to_a_granted_host_is_counted_where_that_is_wished() {
    let port = counter();
    for user in users() {
        let body = r#"
def send(amount):
    peer = connect()
    try:
        peer.sendall(b"x" * amount)
        peer.shutdown(socket.SHUT_WR)
        return whole(peer)
    except OSError: return "ended"
attempt(lambda: send(900_000))
attempt(lambda: send(3_000_000))
attempt(lambda: send(1))
"#;
        let allowed = [format!("127.0.0.1:{port}"), format!("{NAME}:{port}")].map(|g| g.parse().unwrap()).to_vec();
        // With and without somebody who could be asked.
        for ask in [true, false] {
            let hosts = Hosts { allowed: allowed.clone(), ask, ..hosts(port) };
            let mut setup = Setup::new(user);
            setup.step.confinement.limits.rates.sent_to_one = Some("1MiB".parse().unwrap());
            let run = Running::start_in(setup, &[PYTHON, "-I", "-c", &script(port, body)], hosts);
            assert_eq!([run.line(), run.line(), run.line()], ["900000", "ended", "EACCES"], "{user:?} {ask}");
            let Notice::Attempted(attempt) = run.notice() else { panic!("no attempt") };
            assert_eq!(attempt.target.raw(), format!("{NAME}:{port}"));
            assert!(attempt.reason.contains("sent_to_one"), "{}", attempt.reason);
        }
    }
}

#[test]
fn connections_to_one_host_share_a_question() {
    let port = counter();
    for user in users() {
        let body = "threads = [threading.Thread(target=attempt, args=[fetch]) for _ in range(6)]\n\
                    for t in threads: t.start()\nfor t in threads: t.join()";
        let mut run = python(user, port, body);
        let question = run.question();
        // They ask again about the same only, so this one report is all there is.
        run.say("again");
        assert_eq!(run.question(), question);
        run.rule(question.id, true, true);
        (0..6).for_each(|_| assert_eq!(run.line(), "got it"));
        assert!(run.notices.recv_timeout(LIMIT).is_err());
    }
}

#[test]
fn what_waits_is_bounded_and_arrives_whole() {
    let port = counter();
    for user in users() {
        let body = r#"
peer = connect()
peer.setblocking(False)
sent = 0
try:
    while sent < 64 << 20: sent += peer.send(b"x" * 65536)
except BlockingIOError: pass
say("held" if sent < 16 << 20 else "not held")
peer.setblocking(True)
peer.sendall(b"x" * ((32 << 20) - sent))
peer.shutdown(socket.SHUT_WR)
say(whole(peer))
"#;
        let mut run = python(user, port, body);
        let question = run.question();
        assert_eq!(run.line(), "held");
        run.rule(question.id, true, false);
        assert_eq!(run.line(), (32 << 20).to_string());
    }
}

#[test]
fn what_was_closed_before_the_answer() {
    let port = counter();
    for user in users() {
        // Said and half closed: it is passed on.
        let body = "p = connect(); p.sendall(b'x' * 2000); p.shutdown(socket.SHUT_WR); say('sent'); say(whole(p))";
        let mut run = python(user, port, body);
        assert_eq!(run.line(), "sent");
        run.answer(true, false);
        assert_eq!(run.line(), "2000");
        // Nothing said: nobody needs to answer.
        let mut run = python(user, port, "connect().close(); sys.stdin.read()");
        let question = run.question();
        assert_eq!(run.notice(), Notice::Withdrawn(question.id));
        // An answer that comes too late changes nothing.
        run.rule(question.id, true, true);
    }
}

#[test]
fn without_anybody_to_ask_it_is_refused() {
    let port = counter();
    for user in users() {
        let mut run = python(user, port, "attempt(fetch)\nattempt(fetch)");
        let question = run.question();
        run.say("refuse");
        assert_eq!(run.notice(), Notice::Withdrawn(question.id));
        assert_eq!((run.line(), run.line()), ("ECONNRESET".into(), "EACCES".into()));
    }
}

#[test]
fn an_answer_opens_no_more_than_a_grant_would() {
    let port = counter();
    for user in users() {
        let body = "attempt(lambda: fetch('rebound.example.org'))\nattempt(lambda: fetch('telemetry.example.org'))\n\
                    attempt(lambda: fetch('localhost', 1))\nattempt(lambda: fetch('127.0.0.1', 1))\n\
                    attempt(lambda: fetch('169.254.169.254', 80))\nattempt(lambda: fetch('198.18.77.1', 80))\n\
                    attempt(lambda: fetch('9.9.9.9', 443))";
        let mut run = python(user, port, body);
        run.answer(true, true);
        match run.notice() {
            Notice::Attempted(attempt) => assert!(attempt.reason.contains("127.0.0.9"), "{attempt:?}"),
            other => panic!("{other:?}"),
        }
        for want in ["ECONNRESET", "no such name", "EACCES", "EACCES", "EACCES", "EACCES"] {
            assert_eq!(run.line(), want);
        }
        let asked = std::iter::from_fn(|| Some(run.notice())).find_map(|notice| match notice {
            Notice::Asked(question) => Some(question),
            _ => None,
        });
        let asked = asked.unwrap();
        assert_eq!(asked.to.to_string(), "9.9.9.9:443");
        run.rule(asked.id, false, false);
        assert_eq!(run.line(), "ECONNRESET");
    }
}

#[test]
fn questions_are_bounded() {
    let port = counter();
    for user in users() {
        let body = "import select\npeers = []\nfor n in range(20):\n    try: peers.append(connect(f'n{n}.example.org', 80))\n    \
                    except OSError as e: say(errno.errorcode[e.errno])\nsay(len(peers)); sys.stdin.read()";
        let run = python(user, port, body);
        let lines: Vec<_> = (0..13).map(|_| run.line()).collect();
        assert_eq!((lines.iter().filter(|l| *l == "EACCES").count(), lines[12].as_str()), (12, "8"));
        let notices: Vec<_> = (0..20).map(|_| run.notice()).collect();
        assert_eq!(notices.iter().filter(|n| matches!(n, Notice::Asked(_))).count(), 8, "{notices:?}");
    }
}

#[test]
fn nobody_else_uses_the_relay() {
    let port = counter();
    for user in users() {
        let mut run = python(user, port, "p = connect(); say(p.getpeername()[1]); say(whole(p))");
        let question = run.question();
        let relay: u16 = run.line().parse().unwrap();
        // Taken off the listener, or turned away by it.
        if let Ok(mut stranger) = TcpStream::connect(("127.0.0.1", relay)) {
            assert!(stranger.read(&mut [0]).unwrap_or(0) == 0);
        }
        run.rule(question.id, false, false);
    }
}

#[test]
fn the_end_of_the_server_is_not_held_up_by_a_question() {
    let port = counter();
    for user in users() {
        let mut run = python(user, port, "p = connect(); say('connected'); p.sendall(b'x'); import os; os._exit(7)");
        run.question();
        assert_eq!(run.line(), "connected");
        assert_eq!(run.child.wait().unwrap().code(), Some(7));
    }
}
