//! How what leaves looks there, and files that are handed over in base64.

use crate::{decode::Encoding, privacy::FILES, sink::words};

/// Arguments that hold a file as base64 has it.
const CONTENTS: [&str; 12] = [
    "content",
    "contents",
    "data",
    "blob",
    "file",
    "filecontent",
    "file_content",
    "content_base64",
    "contentbase64",
    "base64",
    "bytes",
    "body_base64",
];
/// The same, where mail goes without a name for it.
const ENCLOSED: [&str; 4] = ["raw", "contentbytes", "content_bytes", "attachment"];
/// Words of members that say which machine something is sent to.
const HOSTS: [&str; 12] =
    ["host", "hostname", "ip", "port", "server", "socket", "target", "domain", "url", "href", "endpoint", "webhook"];

/// How what leaves looks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dress {
    /// As a person can read it.
    Plain,
    /// In base64, and there as a person can read it: as files are handed over.
    File,
    /// As nobody can read it.
    Hidden,
}

impl Dress {
    pub(super) fn of(chain: impl IntoIterator<Item = Encoding>) -> Self {
        let mut chain = chain.into_iter().peekable();
        let base64 = chain.next_if(|how| how.name() == Encoding::Base64.name()).is_some();
        match (base64, chain.any(Encoding::opaque)) {
            (_, true) => Self::Hidden,
            (true, false) => Self::File,
            (false, false) => Self::Plain,
        }
    }
}

/// Whether an argument of this name takes a file in base64 and holds one, if the call is one that hands over files ([`hands_over`]);
/// whether it does so without a name for it.
pub(super) fn holds_file(member: &str, text: &str) -> Option<bool> {
    let is = |list: &[&str]| list.iter().any(|name| member.eq_ignore_ascii_case(name));
    let enclosed = is(&ENCLOSED);
    let encoded = |b: u8| b.is_ascii_alphanumeric() || b"+/-_\r\n".contains(&b);
    let file = (enclosed || is(&CONTENTS)) && text.trim_end_matches(['=', '\r', '\n']).bytes().all(encoded);
    file.then_some(enclosed)
}

/// Whether a call with these members names a file, or none where it encloses one, and no machine that it goes to.
pub(super) fn hands_over<'m>(members: impl Iterator<Item = &'m str>, enclosed: bool) -> bool {
    let mut named = enclosed;
    for member in members {
        let words = words(member);
        if words.iter().any(|word| HOSTS.contains(&word.as_str())) {
            return false;
        }
        named |= words.iter().any(|word| FILES.contains(&word.as_str()));
    }
    named
}
