//! The guardian with a stand-in for sandbox-exec, which takes its words and runs the program without any sandbox: what is tested is
//! everything but Seatbelt.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::{fd::AsFd as _, unix::fs::PermissionsExt as _},
    path::Path,
    time::{Duration, Instant},
};

use firedoor_model::{
    launch::{Access, Confinement, Grant, Network, Step},
    limits::{Count, Limits},
    network::{HostRuling, Hosts, KnownName},
};
use nix::{sys::signal::kill, unistd::Pid};

use super::*;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Notes its words, takes the options off, and becomes the program.
const STAND_IN: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$0.words"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"#;

struct Running {
    control: UnixStream,
    notices: UnixStream,
    stdin: Option<io::PipeWriter>,
    stdout: io::PipeReader,
    guardian: Option<thread::JoinHandle<()>>,
    dir: tempfile::TempDir,
}

fn step(dir: &Path, script: &str) -> Step {
    let confinement = Confinement {
        grants: vec![Grant { path: dir.to_owned(), access: Access::Write }],
        network: Network::None,
        protected: Default::default(),
        sockets: Vec::new(),
        own: Vec::new(),
        limits: Limits::default(),
    };
    let env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("HTTP_PROXY".into(), "http://corp.example:1".into())];
    let program = fs::canonicalize("/usr/bin/python3").unwrap();
    Step { program, args: vec!["-c".into(), script.into()], env, cwd: dir.to_owned(), confinement }
}

impl Running {
    fn start(script: &str, change: impl FnOnce(&mut Step)) -> Self {
        Self::start_with(script, STAND_IN, change)
    }

    fn start_with(script: &str, stand_in: &str, change: impl FnOnce(&mut Step)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let exec = dir.path().join("sandbox-exec");
        if !stand_in.is_empty() {
            // By another process: what a test beside this one forks would hold it open for writing (ETXTBSY).
            fs::write(dir.path().join("text"), stand_in).unwrap();
            std::process::Command::new("cp").arg(dir.path().join("text")).arg(&exec).status().unwrap();
            fs::set_permissions(&exec, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let programs = Programs { sandbox_exec: exec, before: fs::canonicalize("/bin/sh").unwrap(), log: false };
        let mut step = step(dir.path(), script);
        change(&mut step);
        let ((control, theirs), (notices, told)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        for channel in [&control, &notices] {
            channel.set_read_timeout(Some(LIMIT)).unwrap();
        }
        let ((server_stdin, stdin), (stdout, server_stdout)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let guardian = thread::spawn(move || serve(&theirs, told, &programs));
        let stderr = io::stderr();
        control::send_stdio(&control, [server_stdin.as_fd(), server_stdout.as_fd(), stderr.as_fd()]).unwrap();
        control::send(&control, &Begin { step }).unwrap();
        Self { control, notices, stdin: Some(stdin), stdout, guardian: Some(guardian), dir }
    }

    fn news(&self) -> News {
        control::receive(&self.control).unwrap().unwrap()
    }

    fn started(&self) -> (i32, Vec<String>, bool) {
        match self.news() {
            News::Started { pid, missing, judged, .. } => (pid, missing, judged),
            other => panic!("{other:?}"),
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stdout.read(&mut byte).unwrap() > 0 && byte != [b'\n'] {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    fn order(&self, order: Order) {
        control::send(&self.control, &order).unwrap();
    }

    fn notice(&self) -> Notice {
        control::receive(&self.notices).unwrap().unwrap()
    }
}

fn dies(pid: i32) {
    let started = Instant::now();
    // Init of this machine may reap late: a zombie is dead.
    let alive = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while alive() {
        assert!(started.elapsed() < LIMIT, "{pid} lives");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_runs_with_its_profile_and_ends_with_its_code() {
    let mut running = Running::start(
        "import os,sys; e=os.environ; print(e['HTTP_PROXY'], 'NO_PROXY' in e, 'HOME' in e); print(input()); sys.exit(7)",
        |step| {
            step.confinement.grants.push(Grant { path: "/nowhere/at all".into(), access: Access::Read });
        },
    );
    let News::Started { skipped, judged, .. } = running.news() else { panic!() };
    assert_eq!((skipped, judged), (vec!["/nowhere/at all".into()], false));
    assert_eq!(running.line(), "http://corp.example:1 False False", "nothing of ours");
    running.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    assert_eq!(running.line(), "hello");
    assert_eq!(running.news(), News::Exited { code: 7, by_signal: false });
    let words = fs::read_to_string(running.dir.path().join("sandbox-exec.words")).unwrap();
    let real = fs::canonicalize(running.dir.path()).unwrap();
    assert!(words.contains(&format!("GRANT_0={}\n", real.display())) && words.contains("(version 1)"), "{words}");
    assert!(
        !words[words.find("(version 1)").unwrap()..].contains(&format!("\"{}", real.display())),
        "no path in the text"
    );
    running.guardian.take().unwrap().join().unwrap();
}

#[test]
fn signals_reach_the_server_and_so_does_the_end() {
    let mut running = Running::start(
        // Not a handler beside a sleep: what comes between its look and the sleep would be heard after that.
        "import signal,sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [15])\nprint('up', flush=True)\nsignal.sigwait([15])\nsys.exit(3)",
        |_| {},
    );
    running.started();
    assert_eq!(running.line(), "up");
    running.order(Order::Signal(15));
    assert_eq!(running.news(), News::Exited { code: 3, by_signal: false });
    let running = Running::start("import time; time.sleep(99)", |_| {});
    running.started();
    running.order(Order::Kill);
    assert_eq!(running.news(), News::Exited { code: 9, by_signal: true });
}

/// Prints the pid of a grandchild in a session of its own, which ignores what can be ignored, then ends or waits.
const ESCAPES: &str = "import os,time,signal,sys
if os.fork() == 0:
    os.setsid()
    signal.signal(15, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    time.sleep(99)
time.sleep(99 if len(sys.argv) < 2 else 0.3)";

#[test]
fn everything_it_started_ends_with_it_and_with_the_caller() {
    for caller_goes in [false, true] {
        let mut running = Running::start(ESCAPES, |step| {
            if !caller_goes {
                step.args.push("ends".into());
            }
        });
        running.started();
        let left: i32 = running.line().parse().unwrap();
        assert!(kill(Pid::from_raw(left), None).is_ok());
        if caller_goes {
            running.control.shutdown(std::net::Shutdown::Both).unwrap();
        } else {
            assert_eq!(running.news(), News::Exited { code: 0, by_signal: false });
        }
        dies(left);
        running.guardian.take().unwrap().join().unwrap();
    }
}

#[test]
fn too_many_processes_end_the_server() {
    let running =
        Running::start("import os,time\nfor _ in range(9):\n  os.fork() or time.sleep(99)\ntime.sleep(99)", |step| {
            step.confinement.limits.processes = Count::try_from(4).ok();
        });
    running.started();
    let Notice::Attempted(attempt) = running.notice() else { panic!() };
    assert_eq!(attempt.target.raw(), "4 processes");
    assert_eq!(running.news(), News::Exited { code: 9, by_signal: true });
}

#[test]
fn what_cannot_be_started_is_not() {
    let failure = |running: Running| match running.news() {
        News::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!(failure(Running::start_with("", "", |_| {})), Failure::NoSeatbelt);
    let refuses = Running::start_with("", "#!/bin/sh\nexit 65\n", |_| {});
    assert!(matches!(failure(refuses), Failure::Unseated(why) if why.contains("65")));
    let relative = Grant { path: "rel".into(), access: Access::Read };
    let profile = Running::start("", |step| step.confinement.grants.push(relative));
    assert!(matches!(failure(profile), Failure::Profile(why) if why.contains("absolute")));
    let remote = Running::start("", |step| step.confinement.network = Network::Proxy("192.0.2.1:1".parse().unwrap()));
    assert!(matches!(failure(remote), Failure::Profile(why) if why.contains("loopback")));
    assert_eq!(failure(Running::start("", |step| step.program = "/nowhere".into())), Failure::Program(2));
    assert_eq!(failure(Running::start("", |step| step.program = "/etc/passwd".into())), Failure::Program(13));
    assert_eq!(failure(Running::start("", |step| step.cwd = "/nowhere".into())), Failure::Cwd(2));
    assert_eq!(failure(Running::start("", |step| step.cwd = "/etc/passwd".into())), Failure::Cwd(20));
}

/// Fetches what it is told to, and says how that went.
const FETCHES: &str = "import sys, urllib.request as u
for url in sys.stdin:
    try: print(u.urlopen(url.strip(), timeout=30).read().decode(), flush=True)
    except Exception as e: print(e, flush=True)";

#[test]
fn a_server_reaches_what_somebody_allows() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = TcpStream::read(&mut stream, &mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let name = "asked.example.org";
    let mut running = Running::start(FETCHES, |step| {
        let known = vec![KnownName { name: name.into(), addresses: vec!["127.0.0.1".parse().unwrap()] }];
        let allowed = vec![format!("127.0.0.1:{port}").parse().unwrap()];
        step.confinement.network = Network::Hosts(Hosts { allowed, known, ask: true, ..Hosts::default() });
    });
    let (pid, missing, judged) = running.started();
    assert!(judged && missing.iter().any(|m| m.contains("proxy that the environment names")), "{missing:?}");
    let mut stdin = running.stdin.take().unwrap();
    let mut fetch = |url: &str| writeln!(stdin, "{url}").unwrap();
    fetch(&format!("http://{name}:{port}/"));
    let Notice::Asked(question) = running.notice() else { panic!() };
    assert_eq!((question.pid, question.to.to_string()), (pid, format!("{name}:{port}")));
    running.order(Order::Rule(HostRuling { id: question.id, allow: true, lasting: true }));
    assert_eq!(running.line(), "hello");
    fetch(&format!("http://{name}:{port}/"));
    assert_eq!(running.line(), "hello");
    fetch("http://metadata.internal:80/");
    let Notice::Asked(question) = running.notice() else { panic!() };
    running.order(Order::Rule(HostRuling { id: question.id, allow: false, lasting: false }));
    assert!(running.line().contains("403"));
    fetch("http://169.254.169.254/latest/meta-data/");
    assert!(running.line().contains("403"));
    let Notice::Attempted(attempt) = running.notice() else { panic!() };
    assert_eq!(attempt.target.raw(), "169.254.169.254:80");
    let words = fs::read_to_string(running.dir.path().join("sandbox-exec.words")).unwrap();
    assert!(words.contains(&format!("(remote ip \"localhost:{port}\")")), "{words}");
}
