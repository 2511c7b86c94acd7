//! How what leaves looks there, and files that are handed over in base64.

use crate::{decode::Encoding, privacy::SourceWords, sink::words};

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

impl SourceWords {
    /// Whether an argument of this name takes a file in base64 and holds one, if the call is one that hands over files
    /// ([`Self::hands_over`]); whether it does so without a name for it.
    pub(crate) fn holds_file(&self, member: &str, text: &str) -> Option<bool> {
        let member = member.to_ascii_lowercase();
        let enclosed = self.enclosed.contains(&member);
        let encoded = |b: u8| b.is_ascii_alphanumeric() || b"+/-_\r\n".contains(&b);
        let takes = enclosed || self.contents.contains(&member);
        (takes && text.trim_end_matches(['=', '\r', '\n']).bytes().all(encoded)).then_some(enclosed)
    }

    /// Whether a call with these members names a file, or none where it encloses one, and no machine that it goes to.
    pub(super) fn hands_over<'m>(&self, members: impl Iterator<Item = &'m str>, enclosed: bool) -> bool {
        let mut named = enclosed;
        for member in members {
            let words = words(member);
            if words.iter().any(|word| self.machines.contains(word)) {
                return false;
            }
            named |= words.iter().any(|word| self.files.contains(word));
        }
        named
    }
}
