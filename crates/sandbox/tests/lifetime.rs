//! What outlives what. Each test starts a server that writes the pids of everything it leaves behind, and then looks
//! whether they are gone.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test program")]
mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use common::{Setup, users};
use firedoor_model::{
    launch::{Access, Network, Step},
    network::Hosts,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// From a caller's SIGKILL to the death of everything.
const LIMIT: Duration = Duration::from_secs(1);

/// A server that runs shell text. It prints `ready` when it has set up what the text sets up.
fn shell(user: Option<u32>, text: &str) -> Setup {
    let mut setup = Setup::new(user);
    setup.grant("out", Access::Write);
    fs::create_dir(setup.dir().join("out")).unwrap();
    let out = setup.dir().join("out").display().to_string();
    let grants = std::mem::take(&mut setup.step.confinement.grants);
    setup.step = Step {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), text.into()],
        env: vec![("OUT".into(), out.into()), ("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
        confinement: setup.step.confinement.clone(),
    };
    setup.step.confinement.grants = grants;
    setup.own_everything();
    setup
}

struct Running {
    caller: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(setup: &Setup, words: &[&str]) -> Self {
        let mut caller =
            setup.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(caller.stdout.take().unwrap());
        Self { caller, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.caller.id().try_into().unwrap())
    }

    fn kill(&mut self) {
        kill(self.pid(), Signal::SIGKILL).unwrap();
        self.caller.wait().unwrap();
    }
}

impl Drop for Running {
    /// A failed test must leave nothing either.
    fn drop(&mut self) {
        if matches!(self.caller.try_wait(), Ok(None)) {
            let _ = self.caller.kill();
            let _ = self.caller.wait();
        }
    }
}

/// Processes that hold the scratch directory's name in their environment: the server and all its descendants, whatever
/// their parents and sessions.
fn alive(dir: &Path) -> Vec<(i32, String)> {
    let marker = dir.join("out").display().to_string().into_bytes();
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(marker.len()).any(|w| w == marker)
    })
    .map(|pid| (pid, fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")))
    .collect()
}

fn until(mut done: impl FnMut() -> bool, else_say: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", else_say());
        std::thread::yield_now();
    }
}

fn dies_within(dir: &Path, limit: Duration) {
    let start = Instant::now();
    loop {
        let left = alive(dir);
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < limit, "after {limit:?} there is still {left:?}");
        std::thread::yield_now();
    }
}

/// Ways to try to outlive one's client, and how many processes each leaves at least.
const TRICKS: &[(&str, usize, &str)] = &[
    ("plain", 2, "sleep 1000 & echo ready; wait"),
    (
        "double fork and new session",
        4,
        "(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 </dev/null &); until [ -s $OUT/up ]; do sleep 1000 & echo 1 >$OUT/up; done; echo ready; sleep 1000",
    ),
    ("ignored signals", 2, "trap '' TERM HUP INT; (trap '' TERM HUP INT; setsid sleep 1000 &); echo ready; sleep 1000"),
    ("stopped", 2, "(setsid sh -c 'kill -STOP $$' &); sleep 1000 & kill -STOP $!; echo ready; kill -STOP $$"),
    ("deep", 20, "f() { if [ $1 -gt 0 ]; then (f $(($1 - 1)); :); else echo ready; sleep 1000; fi; }; f 20; :"),
    ("many", 200, "i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i + 1)); done; echo ready; wait"),
];

#[test]
fn nothing_outlives_a_killed_caller() {
    for user in users() {
        for (name, count, text) in TRICKS {
            let setup = shell(user, text);
            let mut running = Running::start(&setup, &[]);
            assert_eq!(running.line(), "ready", "{name}");
            // Forked and not yet executed counts as well, so this waits a little for the last ones.
            until(|| alive(setup.dir()).len() >= *count, || format!("{name}: {:?}", alive(setup.dir())));
            running.kill();
            dies_within(setup.dir(), LIMIT);
        }
    }
}

/// A guardian whose descriptors are occupied still finds what it has to kill.
#[test]
fn nothing_outlives_a_killed_caller_by_occupying_the_guardian() {
    for user in users() {
        let mut setup = Setup::new(user);
        setup.step.confinement.network = Network::Hosts(Hosts::default());
        // By which `alive` knows it; what is forked is found as well.
        setup.step.env = vec![("OUT".into(), setup.dir().join("out").into())];
        setup.step.args = vec!["probe".into(), "stuck:250".into()];
        let mut running = Running::start(&setup, &[]);
        // EAGAIN from the guardian: it keeps no more. EMFILE would be its own limit.
        assert_eq!(running.line(), format!("ready Some({})", nix::libc::EAGAIN), "as {user:?}");
        assert_eq!(alive(setup.dir()).len(), 1);
        running.kill();
        dies_within(setup.dir(), LIMIT);
    }
}

/// A chain in which every process forks its successor into a session of its own and ends.
#[test]
fn nothing_outlives_a_caller_by_forking_on() {
    const HOP: &str = "import os\nif os.fork() == 0:\n os.setsid()\n print('ready', flush=True)\n os.close(1)\n while True:\n  if os.fork(): os._exit(0)\n  os.setsid()\nimport time; time.sleep(1000)";
    if !Path::new("/usr/bin/python3").exists() {
        return;
    }
    for user in users() {
        let mut setup = shell(user, "");
        setup.step.program = "/usr/bin/python3".into();
        setup.step.args = vec!["-ISc".into(), HOP.into()];
        let mut running = Running::start(&setup, &[]);
        assert_eq!(running.line(), "ready");
        running.kill();
        dies_within(setup.dir(), LIMIT);
    }
}

#[test]
fn nothing_outlives_the_main_process() {
    for user in users() {
        let setup = shell(user, "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &); sleep 1000 & echo ready; exit 7");
        let mut running = Running::start(&setup, &[]);
        assert_eq!(running.line(), "ready");
        assert_eq!(running.caller.wait().unwrap().code(), Some(7));
        assert_eq!(alive(setup.dir()), []);
    }
}

#[test]
fn a_killed_guardian_leaves_nothing() {
    for user in users() {
        for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            let setup = shell(user, TRICKS[1].2);
            let mut running = Running::start(&setup, &[]);
            assert_eq!(running.line(), "ready");
            let guardian = children(running.pid());
            assert_eq!(guardian.len(), 1);
            kill(guardian[0], signal).unwrap();
            // 125: the guardian ended after the server had spoken, and before it could say that the server runs.
            let code = running.caller.wait().unwrap().code();
            assert!(matches!(code, Some(137 | 125)), "{signal}: {code:?}");
            assert_eq!(alive(setup.dir()), [], "{signal} as {user:?}");
        }
    }
}

/// A guardian that was stopped does its work when the caller dies, and the caller does it when it is told to kill.
#[test]
fn a_stopped_guardian_leaves_nothing() {
    for user in users() {
        for by_order in [false, true] {
            let setup = shell(user, TRICKS[1].2);
            let mut running = Running::start(&setup, &["signal-on-line"]);
            assert_eq!(running.line(), "ready");
            kill(children(running.pid())[0], Signal::SIGSTOP).unwrap();
            if by_order {
                writeln!(running.caller.stdin.take().unwrap(), "kill").unwrap();
                assert_eq!(running.caller.wait().unwrap().code(), Some(137));
                assert_eq!(alive(setup.dir()), [], "as {user:?}");
            } else {
                running.kill();
                dies_within(setup.dir(), LIMIT);
            }
        }
    }
}

/// The caller is killed, or the guardian killed or stopped and then the caller killed, at any moment of a start.
#[test]
fn nothing_outlives_a_death_at_any_moment() {
    for user in users() {
        for round in 0..60u64 {
            let setup = shell(user, TRICKS[1].2);
            let mut running = Running::start(&setup, &[]);
            // Spread over the start, which takes a few milliseconds, and some time after it.
            let moment = Instant::now() + Duration::from_micros(round * 431 % 12_000);
            until(|| Instant::now() >= moment, || "time stands still".into());
            let guardian = children(running.pid()).first().copied();
            match (round % 3, guardian) {
                (1, Some(guardian)) => drop(kill(guardian, Signal::SIGKILL)),
                (2, Some(guardian)) => drop(kill(guardian, Signal::SIGSTOP)),
                _ => {}
            }
            if round % 3 == 1 && guardian.is_some() {
                running.caller.wait().unwrap();
            } else {
                running.kill();
            }
            dies_within(setup.dir(), LIMIT);
            // One that was stopped before it was a guardian has started nothing, and waits.
            let _ = guardian.map(|g| kill(g, Signal::SIGCONT));
        }
    }
}

fn children(pid: Pid) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_ascii_whitespace().map(|n| Pid::from_raw(n.parse().unwrap())).collect()
}

#[test]
fn signals_arrive_once_and_exits_come_back() {
    const COUNT: &str = "n=0; i=0; trap 'n=$((n + 1))' USR1; echo ready; while [ $i -lt 30 ]; do sleep 0.01; if [ $n -gt 0 ]; then i=$((i + 1)); fi; done; echo $n; exit 5";
    for user in users() {
        for (text, order, said, code) in [
            (COUNT, "10", "1", 5),
            // Not SIGINT: dash catches that one, and forgets it when it comes while it forks.
            ("echo ready; sleep 1000", "15", "", 143),
            ("echo ready; sleep 1000", "kill", "", 137),
            ("trap 'echo one; exit 3' HUP; echo ready; while :; do sleep 0.01; done", "1", "one", 3),
        ] {
            let setup = shell(user, text);
            let mut running = Running::start(&setup, &["signal-on-line"]);
            assert_eq!(running.line(), "ready");
            writeln!(running.caller.stdin.take().unwrap(), "{order}").unwrap();
            assert_eq!(running.line(), said);
            assert_eq!(running.caller.wait().unwrap().code(), Some(code), "{order}");
            assert_eq!(alive(setup.dir()), []);
        }
    }
}

/// What a process's descriptors are.
fn descriptors(pid: Pid) -> Vec<(i32, String)> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    fds.filter_map(|e| {
        let target = fs::read_link(e.path()).ok()?.display().to_string();
        Some((e.file_name().to_str()?.parse().ok()?, target))
    })
    .collect()
}

fn holds_only_its_own(held: &[(i32, String)]) -> bool {
    let sockets = held.iter().filter(|(_, target)| target.starts_with("socket:")).count();
    let fine = |(number, target): &(i32, String)| match number {
        0 | 1 => target == "/dev/null",
        2 => true,
        _ => target.starts_with("socket:") || target.contains("signalfd"),
    };
    // The channels to the caller: for orders and for attempts.
    sockets == 2 && held.iter().all(fine)
}

#[test]
fn the_guardian_holds_nothing_of_the_server_or_client() {
    for user in users() {
        let setup = shell(user, "echo ready; exec sleep 1000");
        let mut running = Running::start(&setup, &[]);
        assert_eq!(running.line(), "ready");
        let guardian = children(running.pid())[0];
        // The server can be heard before the guardian has gone on after the fork.
        until(|| holds_only_its_own(&descriptors(guardian)), || format!("{:?}", descriptors(guardian)));
        let status = fs::read_to_string(format!("/proc/{guardian}/status")).unwrap();
        assert!(status.contains("Name:\tfiredoor-guard") && status.contains("Threads:\t1"), "{status}");
        let rollup = fs::read_to_string(format!("/proc/{guardian}/smaps_rollup")).unwrap();
        let private: u64 = rollup
            .lines()
            .filter(|l| l.starts_with("Private_"))
            .filter_map(|l| l.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
            .sum();
        assert!(private < 2048, "the guardian has {private} KiB of its own");
        drop(running.caller.stdin.take());
        running.kill();
        dies_within(setup.dir(), LIMIT);
    }
}

#[test]
fn a_datagram_stderr_becomes_null() {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    let setup = shell(None, "echo to stderr >&2; echo done");
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC).unwrap();
    let output = setup.command(&[]).stdin(Stdio::null()).stderr(theirs).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "done\n");
    let mut buffer = [0; 64];
    let received = nix::sys::socket::recv(
        std::os::fd::AsRawFd::as_raw_fd(&ours),
        &mut buffer,
        nix::sys::socket::MsgFlags::MSG_DONTWAIT,
    );
    assert!(!matches!(received, Ok(n) if n > 0), "{received:?}");
}

#[test]
fn a_caller_that_ignores_children_still_learns_the_exit() {
    let setup = shell(None, "exit 9");
    // A client may have SIGCHLD ignored, which execve keeps.
    let run = setup.command(&[]);
    let mut words = vec!["--ignore-signal=CHLD".into(), run.get_program().to_owned()];
    words.extend(run.get_args().map(ToOwned::to_owned));
    match Command::new("/usr/bin/env").args(words).stdin(Stdio::null()).status() {
        // An `env` without the option says 125.
        Ok(status) if status.code() == Some(125) => {}
        status => assert_eq!(status.unwrap().code(), Some(9)),
    }
}
