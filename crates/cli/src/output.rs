//! The one place that writes to stdout and stderr.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// One line on stdout. A closed pipe ends the program quietly, as it does for every filter.
pub fn line(text: &str) {
    let written = writeln!(io::stdout(), "{text}");
    if written.is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// One JSON document on one line of stdout.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string(value)?);
    Ok(())
}

/// An error on stderr.
pub fn error(text: &str) {
    // There is nowhere else to say it.
    let _ = writeln!(io::stderr(), "firedoor: {text}");
}

/// A remark on stderr, so that stdout stays what was asked for.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Asks a yes-or-no question on the terminal; `None` when there is no terminal to ask on.
pub fn confirm(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}
