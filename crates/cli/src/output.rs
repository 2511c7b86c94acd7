//! The one place that writes to stdout and stderr. Texts of files and servers may stand in what is said, so nothing in it may move
//! the cursor, hide, or run backwards.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::OnceLock,
};

use firedoor_model::{escaped, shown};
use serde::Serialize;

use crate::failure::Failure;

/// Why nothing goes to stdout any more. What a command does must not depend on whether somebody reads along, so writing goes
/// on failing in silence, and [`failure`] says in the end what it means.
static STOPPED: OnceLock<io::Error> = OnceLock::new();

/// One line on stdout.
pub fn line(text: &str) {
    raw(&shown(text));
}

fn raw(text: &str) {
    if stopped() {
        return;
    }
    if let Err(e) = writeln!(io::stdout(), "{text}") {
        let _ = STOPPED.set(e);
    }
}

/// Whether stdout takes nothing any more. What only writes, and goes on for as long as there is something new, ends then.
pub fn stopped() -> bool {
    STOPPED.get().is_some()
}

/// What is wrong when stdout did not take all. A reader that has seen enough is no error, as for every filter; anything else
/// is: half a backup must not look like a whole one.
pub fn failure() -> Option<Failure> {
    STOPPED.get().and_then(incomplete)
}

fn incomplete(e: &io::Error) -> Option<Failure> {
    let text = || {
        format!("what was printed is not complete: stdout cannot be written: {e}. Make room there, or print elsewhere")
    };
    (e.kind() != io::ErrorKind::BrokenPipe).then(|| Failure::environment(text()))
}

/// One JSON document on one line of stdout.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    raw(&escaped(serde_json::to_string(value)?));
    Ok(())
}

/// So many of something.
pub fn counted(count: impl TryInto<u64>, one: &str, more: &str) -> String {
    match count.try_into() {
        Ok(1) => format!("1 {one}"),
        Ok(n) => format!("{n} {more}"),
        Err(_) => format!("many {more}"),
    }
}

/// An error on stderr.
pub fn error(text: &str) {
    // There is nowhere else to say it.
    let _ = writeln!(io::stderr(), "firedoor: {}", shown(text));
}

/// A remark on stderr, so that stdout stays what was asked for.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(text));
}

/// Asks a yes-or-no question on the terminal; `None` when there is no terminal to ask on.
pub fn confirm(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "{} [y/N] ", shown(question));
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        let said = [0, 1, 2].map(|n: usize| counted(n, "directory", "directories"));
        assert_eq!(said, ["0 directories", "1 directory", "2 directories"]);
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_error_and_a_full_disk_is() {
        assert!(incomplete(&io::ErrorKind::BrokenPipe.into()).is_none());
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied, io::ErrorKind::WriteZero] {
            assert_eq!(incomplete(&kind.into()).map(|failure| failure.code), Some(2), "{kind}");
        }
    }
}
