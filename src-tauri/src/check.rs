//! Checking one entry after it was protected, in a process of its own.
//!
//! The check starts the shim, so the engine takes the process that does it for an AI client, and refuses it and its
//! children what weakens protection. That must not be this app: it answers questions.

use std::{
    env, io,
    io::Write as _,
    process::{Command, Stdio},
};

use firedoor_clients::{
    Clients,
    verify::{self, Interrupt, Outcome, Verified},
};
use firedoor_model::EntryId;

use crate::changes::surroundings;

/// The argument that makes this program check an entry instead of showing windows.
pub const FLAG: &str = "--check";

/// Most of what a check prints. It is one line.
const MOST: usize = 1 << 20;

/// The child's side: prints the outcome.
pub fn run(entry: &str) -> Result<(), String> {
    let id: EntryId = entry.parse().map_err(|e| format!("{e}"))?;
    let env = surroundings().map_err(|e| e.to_string())?;
    let clients = Clients::load().map_err(|e| e.to_string())?;
    // Nobody interrupts it: the app waits for what it says.
    let never = Interrupt::default();
    let outcome = verify::among_others(clients, &env, &id, &env::vars_os().collect(), &never)
        .ok_or_else(|| "the check was interrupted".to_owned())?;
    let mut line = serde_json::to_vec(&outcome).map_err(|e| e.to_string())?;
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(|e| format!("cannot say what was seen: {e}"))
}

/// The app's side. A check that cannot be made leaves the entry protected, as one that cannot be compared does.
pub fn check(entry: &EntryId) -> Outcome {
    checked_by(env::current_exe(), entry)
}

fn checked_by(program: io::Result<std::path::PathBuf>, entry: &EntryId) -> Outcome {
    let outcome = program
        .and_then(|program| {
            let mut child = Command::new(program);
            child.args([FLAG, &entry.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
            child.output()
        })
        .map_err(|e| e.to_string())
        .and_then(|done| {
            if !done.status.success() || done.stdout.len() > MOST {
                return Err(done.status.to_string());
            }
            serde_json::from_slice::<Outcome>(&done.stdout).map_err(|e| e.to_string())
        });
    outcome.unwrap_or_else(|why| Outcome {
        entry: entry.clone(),
        verified: Verified::Unverified { reason: format!("the check could not be run: {why}") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_does_not_run_is_no_proof() {
        let entry: EntryId = "cursor/user/fs".parse().unwrap();
        for program in ["/nonexistent", "/bin/false", "/bin/echo"] {
            let outcome = checked_by(Ok(program.into()), &entry);
            assert_eq!(outcome.entry, entry);
            let Verified::Unverified { reason } = outcome.verified else { panic!("{program}") };
            assert!(reason.contains("could not be run"), "{reason}");
        }
    }

    #[test]
    fn an_entry_that_is_none_is_an_error() {
        assert!(run("nonsense").is_err());
    }
}
