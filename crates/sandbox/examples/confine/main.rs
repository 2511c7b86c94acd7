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
use firedoor_sandbox::{Launch, Machine, Stderr, spawn_on};

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
/// written a line, `kill` kills the tree then.
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
    let ended = tree.wait();
    if words.contains(&"attempts") {
        while let Some(attempt) = tree.next_attempt() {
            let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&attempt).unwrap_or_default());
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
