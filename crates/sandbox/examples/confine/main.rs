//! Runs one step under its confinement, as the shim does: `confine run STEP.json`.
//!
//! The other commands exist for the tests, which need a single-threaded caller and a program to run inside:
//! `confine probe NAME…` tries one forbidden thing each and prints `NAME=ok` or `NAME=ERRNO`.

mod probes;
mod resources;
mod signals;

use std::{
    io::{Read, Seek, Write},
    os::fd::AsFd,
    process::ExitCode,
};

use firedoor_model::launch::Step;
use firedoor_sandbox::{Launch, Machine, Notice, Stderr, Tree, spawn_on};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["run", step, rest @ ..] => run(step, rest),
        ["probe", names @ ..] => probes::run(names),
        ["doctor"] => {
            let mut out = std::io::stdout();
            let _ = serde_json::to_writer_pretty(&mut out, &firedoor_sandbox::doctor());
            ExitCode::SUCCESS
        }
        _ => {
            let _ = writeln!(std::io::stderr(), "usage: confine run STEP.json | probe NAME… | doctor");
            ExitCode::from(2)
        }
    }
}

/// `landlock=N`, `no-notification`, `no-descriptors`, `no-groups`: as if the machine had no more.
fn machine(words: &[&str]) -> Machine {
    let landlock = words.iter().find_map(|w| w.strip_prefix("landlock=")?.parse().ok());
    let has = |what: &str| !words.contains(&what);
    Machine {
        landlock: landlock.unwrap_or(u32::MAX),
        notification: has("no-notification"),
        descriptors: has("no-descriptors"),
        groups: has("no-groups"),
    }
}

/// Extra words: `attempts` prints what was refused at the end, `observe` what was observed, `verbose` prints pid and outcome first, `term` forwards one SIGTERM when the server is up and has
/// written a line, `kill` kills the tree then. `ask` prints questions about connections, as JSON, and takes rulings, as JSON.
fn run(path: &str, words: &[&str]) -> ExitCode {
    let fail = |text: String| {
        let _ = writeln!(std::io::stderr(), "{text}");
        ExitCode::from(125)
    };
    let step: Step = match std::fs::read(path)
        .map_err(|e| e.to_string())
        .and_then(|b| serde_json::from_slice(&b).map_err(|e| e.to_string()))
    {
        Ok(step) => step,
        Err(e) => return fail(format!("{path}: {e}")),
    };
    let (stdin, stdout) =
        match (std::io::stdin().as_fd().try_clone_to_owned(), std::io::stdout().as_fd().try_clone_to_owned()) {
            (Ok(stdin), Ok(stdout)) => (stdin, stdout),
            (Err(e), _) | (_, Err(e)) => return fail(format!("standard streams: {e}")),
        };
    let mut tree = match spawn_on(
        Launch { step: &step, stdin, stdout, stderr: Stderr::Inherit, observe: words.contains(&"observe") },
        machine(words),
    ) {
        Ok(tree) => tree,
        Err(e) => return fail(e.to_string()),
    };
    if words.contains(&"verbose") {
        let outcome = serde_json::to_string(tree.outcome()).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "{} {outcome}", tree.pid());
    }
    if words.contains(&"signal-on-line") {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let order = match line.trim().parse() {
            Ok(signal) => tree.signal(signal),
            Err(_) => tree.kill(),
        };
        if let Err(e) = order {
            return fail(e.to_string());
        }
    }
    if words.contains(&"ask") {
        ask(&tree);
    }
    let ended = tree.wait();
    if words.contains(&"attempts") {
        while let Some(notice) = tree.next_notice() {
            if let Notice::Attempted(attempt) = notice {
                let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&attempt).unwrap_or_default());
            }
        }
    }
    if let Some(record) = tree.record().and_then(|r| r.try_clone_to_owned().ok()) {
        let mut text = String::new();
        let mut file = std::fs::File::from(record);
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let _ = write!(std::io::stderr(), "{text}{}", read.err().map(|e| e.to_string()).unwrap_or_default());
    }
    match ended {
        Ok(exit) => {
            if words.contains(&"verbose") {
                let _ = writeln!(std::io::stderr(), "{exit}");
            }
            ExitCode::from(u8::try_from(exit.shell_code() & 0xff).unwrap_or(255))
        }
        Err(e) => fail(e.to_string()),
    }
}

/// Passes questions out and rulings in, a line each, until the server ends.
fn ask(tree: &Tree) {
    let stdin = std::io::stdin();
    let mut answers = true;
    loop {
        let input = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![input(tree.exited_fd()), input(tree.notices_fd())];
        if answers {
            fds.push(input(stdin.as_fd()));
        }
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            continue;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        while let Some(notice) = tree.next_notice() {
            let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&notice).unwrap_or_default());
        }
        if ready.first() == Some(&true) {
            return;
        }
        if ready.get(2) == Some(&true) {
            // Not through a buffer, of which poll knows nothing: a line is a pipe's one message.
            let mut line = [0; 4096];
            match nix::unistd::read(stdin.as_fd(), &mut line) {
                Ok(0) | Err(_) => answers = false,
                Ok(count) => {
                    for line in line[..count].split(|b| *b == b'\n') {
                        if line == b"again" {
                            let _ = tree.ask_again();
                        } else if line == b"refuse" {
                            let _ = tree.refuse_open();
                        } else if let Ok(ruling) = serde_json::from_slice(line) {
                            let _ = tree.rule(ruling);
                        }
                    }
                }
            }
        }
    }
}
