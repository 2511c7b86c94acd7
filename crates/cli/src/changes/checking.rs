//! Seeing whether what was just protected answers as before, and giving back what was not seen to.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use firedoor_clients::{
    Clients, Env,
    verify::{self, Interrupt, Outcome, Progress, Verified},
};
use firedoor_model::{EntryId, Untrusted};

use crate::{arguments::configurations::ProtectOptions, failure::Failure, output};

/// So long what asks again counts as the same.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Exit code of a program that Ctrl-C ended (128 and SIGINT, as shells say it).
const INTERRUPTED: i32 = 130;

/// From now on Ctrl-C, and whatever else asks this process to end, raises this instead; more than a second
/// later it ends the process.
pub fn interruptible() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let raise = interrupt.clone();
    let caught = || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut ends = runtime.block_on(async { Ends::new() })?;
        // Its end is that of the process.
        std::thread::spawn(move || {
            runtime.block_on(ends.asked());
            raise.raise();
            output::remark("Interrupted: what is being checked is ended …");
            // Giving back may hang, at a keychain's question or a dead network's file. What ends a session asks in several ways at once.
            let first = Instant::now();
            while first.elapsed() < AT_ONCE {
                runtime.block_on(ends.asked());
            }
            output::remark("Ended at once: `firedoor scan` shows what is protected now, and what was not checked");
            std::process::exit(INTERRUPTED);
        });
        Ok(())
    };
    caught().map_err(|e| {
        Failure::environment(format!(
            "nothing was changed: Ctrl-C cannot be caught: {e}; try again, or give --no-verify"
        ))
    })?;
    Ok(interrupt)
}

/// What asks this process to end.
#[cfg(unix)]
struct Ends([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Ends {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?]))
    }

    async fn asked(&mut self) {
        let [int, term, hup] = &mut self.0;
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    }
}

/// What asks this process to end.
#[cfg(windows)]
struct Ends(tokio::signal::windows::CtrlC, tokio::signal::windows::CtrlBreak, tokio::signal::windows::CtrlClose);

#[cfg(windows)]
impl Ends {
    fn new() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
        Ok(Self(ctrl_c()?, ctrl_break()?, ctrl_close()?))
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
            _ = self.2.recv() => {}
        }
    }
}

/// What became of entries that are protected since just now, in their order. What goes on is said on stderr, which nobody's
/// reading can end.
pub fn checked(
    clients: &Clients,
    env: &Env<'_>,
    options: &ProtectOptions,
    changed: &[EntryId],
    interrupt: &Interrupt,
) -> Vec<Outcome> {
    let own = own_environment();
    // Those that were named, and not only their client or their server in whatever file.
    let named = |entry: &EntryId| options.entries.iter().any(|name| *name == entry.to_string());
    if cfg!(windows) {
        // One that a shim started would be in the job that ends with the check. Without any the check says so.
        let _ = crate::engine::Engine::running_or_started();
    }
    let check = |entry: &EntryId| match (options.confined, named(entry)) {
        _ if interrupt.raised() => None,
        (true, _) => verify::confined(clients, env, entry, &own, interrupt),
        (false, true) => verify::entry(clients, env, entry, &own, interrupt),
        (false, false) => verify::among_others(clients, env, entry, &own, interrupt),
    };
    let mut outcomes = verify::several(clients.by_server(env, changed, &own), check, |step| match step {
        Progress::Begun(_) if interrupt.raised() => {}
        Progress::Begun(entry) => {
            output::remark(&format!("  {}: checking …", Untrusted::new(entry.to_string()).visible(200)));
        }
        Progress::Done(outcome) => said(outcome),
    });
    let seen: BTreeSet<&EntryId> = outcomes.iter().map(|outcome| &outcome.entry).collect();
    let unchecked: BTreeSet<EntryId> = changed.iter().filter(|entry| !seen.contains(entry)).cloned().collect();
    let rest = match options.confined {
        // Nobody is there who could protect again, and without a direct start nothing is given back.
        true => unchecked.into_iter().map(stays).collect(),
        false => verify::give_back_unchecked(clients, env, &unchecked),
    };
    rest.iter().for_each(said);
    outcomes.extend(rest);
    let place = |outcome: &Outcome| changed.iter().position(|entry| *entry == outcome.entry);
    outcomes.sort_by_key(place);
    outcomes
}

fn stays(entry: EntryId) -> Outcome {
    Outcome { entry, verified: Verified::Unverified { reason: "the check was interrupted".into() } }
}

/// Whether stdout and stderr are a terminal, where people would read twice what went to both.
pub fn seen_as_it_comes() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Shown as it comes where somebody looks; elsewhere it is part of the report on stdout.
fn said(outcome: &Outcome) {
    if seen_as_it_comes() {
        output::remark(&format!("  {outcome}"));
    }
}

/// This process's environment, which a client started from the same place would pass on.
fn own_environment() -> BTreeMap<OsString, OsString> {
    env::vars_os().collect()
}
