//! How what leaves looks there, and files that are handed over in base64.

use firedoor_model::wire::{Leaf, Leaves};

use crate::{Call, decode::Encoding, privacy::FILES, sink::words};

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

/// Which arguments of a call are files.
pub(super) struct Files {
    /// A member beside them names a file.
    named: bool,
    /// One says where they go.
    sent: bool,
    /// The last member's name.
    member: Option<String>,
}

impl Files {
    pub(super) fn of(call: &Call<'_>) -> Self {
        let mut out = Self { named: false, sent: false, member: None };
        for leaf in Leaves::of(call.arguments.unwrap_or_default()).filter(|leaf| leaf.key) {
            let words = words(&leaf.text);
            out.named |= words.iter().any(|word| FILES.contains(&word.as_str()));
            out.sent |= words.iter().any(|word| HOSTS.contains(&word.as_str()));
        }
        out
    }

    /// Whether the next leaf is one: all of it in base64.
    pub(super) fn is_one(&mut self, leaf: &Leaf<'_>) -> bool {
        if leaf.key {
            self.member = (!self.sent).then(|| leaf.text.to_ascii_lowercase());
            return false;
        }
        let member = self.member.take();
        let takes = member.is_some_and(|member| {
            ENCLOSED.contains(&member.as_str()) || self.named && CONTENTS.contains(&member.as_str())
        });
        let encoded = |b: u8| b.is_ascii_alphanumeric() || b"+/-_\r\n".contains(&b);
        takes && leaf.text.trim_end_matches(['=', '\r', '\n']).bytes().all(encoded)
    }
}
