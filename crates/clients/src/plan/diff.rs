//! A change as people are shown it: what looks like a secret is left out.

use std::time::Duration;

use firedoor_model::SecretRef;
use similar::{Algorithm, TextDiff};

use crate::{
    catalog::{Clients, Interpolation, Syntax},
    discover::ConfigFile,
    document::{self, Span, SyntaxError, remote::VARIABLE},
    error::FileError,
    scan::HIDDEN,
    secret,
    source::Source,
    wrap::splice,
};

impl Clients {
    pub(super) fn diff(&self, file: &ConfigFile, source: &Source, new: &[u8]) -> Result<String, FileError> {
        let (_, old) = file.text(&source.bytes)?;
        let (_, new) = file.text(new)?;
        let rules = self.client(&file.client).map_or(Interpolation::None, |client| client.interpolation);
        let (old, new) = (masked(old, file.syntax, rules), masked(new, file.syntax, rules));
        let name = format!("{:?}", file.path);
        // Past the deadline the diff is coarser, not wrong.
        let mut config = TextDiff::configure();
        let diff = config.algorithm(Algorithm::Myers).timeout(Duration::from_secs(2)).diff_lines(&old, &new);
        Ok(diff.unified_diff().context_radius(3).header(&name, &name).to_string())
    }
}

/// Calls `each` with every string that looks like a secret.
fn secrets(text: &str, syntax: Syntax, rules: Interpolation, mut each: impl FnMut(Span)) -> Result<(), SyntaxError> {
    let mut before: Option<(Option<String>, String)> = None;
    document::strings(text, syntax, |key, span, value| {
        let flag = before.as_ref().filter(|(k, _)| k.as_deref() == key).map(|(_, v)| v.as_str());
        let shown = [flag.unwrap_or_default(), value];
        // The name of a header that became a variable said more than that of the variable.
        let header = key.is_some_and(|k| k.starts_with(VARIABLE)) && SecretRef::read(value).is_none();
        if header || secret::in_clear(rules, key, value) || secret::arg_in_clear(rules, &shown, 1) {
            each(span);
        }
        before = Some((key.map(str::to_owned), value.to_owned()));
    })
}

/// The text with the values that look like secrets left out.
fn masked(text: &str, syntax: Syntax, rules: Interpolation) -> String {
    let mut edits = Vec::new();
    // A text that cannot be parsed does not get here; if it did, nothing of it would be shown.
    let seen = secrets(text, syntax, rules, |span| edits.push((span, format!("\"{HIDDEN}\""))));
    if seen.is_err() { String::new() } else { splice(text, edits) }
}

impl ConfigFile {
    /// Whether a text of this file holds what looks like a secret, anywhere.
    pub(crate) fn has_secret(&self, text: &str, rules: Interpolation) -> bool {
        let mut any = false;
        secrets(text, self.syntax, rules, |_| any = true).is_err() || any
    }
}
