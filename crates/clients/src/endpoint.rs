//! The edit of an entry that stays one with an address: it gets Firedoor's address on this machine in front of its own.
//!
//! ```json
//! {"url":"https://mcp.example/mcp","headers":{"X-Team":"blue"}}
//! {"url":"http://127.0.0.1:20417/5qv3…#firedoor:cursor/user/srv=https://mcp.example/mcp","headers":{"X-Team":"blue"}}
//! ```
//!
//! What stands behind `#` is sent to nobody (RFC 3986 §3.5); it says what the entry was. Everything else stays, byte for
//! byte: the client sends its headers to Firedoor, which passes them on.

use firedoor_model::EntryId;

use crate::{
    document::{Span, Str},
    wrap::{Edit, quoted, slice},
};

/// What stands between Firedoor's address and what the entry was.
pub(crate) const MARK: &str = "#firedoor:";

const HOST: &str = "http://127.0.0.1:";

/// What stands in front of an entry's own address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtEndpoint {
    /// Which entry it was when it was written.
    pub id: EntryId,
    /// Firedoor's address.
    pub address: String,
    /// All of it.
    prefix: String,
}

/// Reads a value; gives also the entry's own address.
pub(crate) fn read(url: &str) -> Option<(AtEndpoint, String)> {
    let (address, rest) = url.split_once(MARK)?;
    let (id, own) = rest.split_once('=')?;
    if !address.starts_with(HOST) {
        return None;
    }
    let at = AtEndpoint { id: id.parse().ok()?, address: address.to_owned(), prefix: prefix(address, id) };
    Some((at, own.to_owned()))
}

fn prefix(address: &str, id: &str) -> String {
    format!("{address}{MARK}{id}=")
}

/// Why an entry with this id cannot be written so: a sign in it would end the value, or be taken for something else.
pub(crate) fn objection(id: &EntryId) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~:/%@+!*()".contains(c);
    let fine = id.to_string().chars().all(plain);
    (!fine).then_some("its name has a sign that cannot stand in an address")
}

/// The edit that puts Firedoor's address in front of an entry's own, or in the place of another one of Firedoor's.
pub(crate) fn wrap(text: &str, url: &Str, before: Option<&AtEndpoint>, id: &EntryId, address: &str) -> Vec<Edit> {
    let new = prefix(address, &id.to_string());
    let start = start(text, &url.span);
    match before {
        None => vec![(start..start, new)],
        Some(before) if slice(text, start..url.span.end).starts_with(&before.prefix) => {
            vec![(start..start + before.prefix.len(), new)]
        }
        // The client has written the value anew, in another spelling.
        Some(_) => vec![(url.span.clone(), quoted(&(new + &url.value)))],
    }
}

/// The edit that takes it away again: the exact inverse of [`wrap`].
pub(crate) fn unwrap(text: &str, at: &AtEndpoint, own: &Str) -> Vec<Edit> {
    let start = start(text, &own.span);
    if slice(text, start..own.span.end).starts_with(&at.prefix) {
        return vec![(start..start + at.prefix.len(), String::new())];
    }
    vec![(own.span.clone(), quoted(&own.value))]
}

/// Where a value begins, behind its quotes.
fn start(text: &str, token: &Span) -> usize {
    let written = slice(text, token.clone());
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| written.starts_with(quote));
    token.start + quote.map_or(0, str::len)
}
