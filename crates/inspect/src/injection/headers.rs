//! `=?utf-8?q?=53end?=`: the words of mail's headers (RFC 2047), those behind each other as one.

use super::layers::{Concealment, Found, Inner, MIN_TEXT};
use crate::decode;

/// Most texts of one.
const MAX_TEXTS: usize = 64;
/// Longest name of a character set, and longest word: RFC 2047 section 2 has 75 for all of it, programs write longer ones.
const MAX_CHARSET: usize = 40;
const MAX_WORD: usize = 4096;
/// Letters and digits that are written as escapes though none needs to be, from which on it is no accident.
const MIN_NEEDLESS: usize = 8;

/// Hands on what encoded words say.
pub(super) fn find(text: &str, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    let most = found.len() + MAX_TEXTS;
    let (mut said, mut needless, mut from, mut end): (Vec<u8>, usize, usize, usize) = Default::default();
    let mut flush = |said: &mut Vec<u8>, needless: usize, span: (usize, usize)| {
        let how = if needless >= MIN_NEEDLESS { Concealment::Encoded } else { Concealment::Customary };
        let text = String::from_utf8_lossy(said).into_owned();
        said.clear();
        if text.len() >= MIN_TEXT && found.len() < most {
            found.push(Inner::made(text, how, "encoded-words", span));
        }
        found.len() < most
    };
    for at in memchr::memmem::find_iter(bytes, b"=?") {
        let Some(word) = (at >= end).then(|| bytes.get(at..)).flatten().and_then(Word::first) else { continue };
        // White space between two is none of the text (section 6.2).
        let follows = bytes.get(end..at).is_some_and(|between| between.iter().all(u8::is_ascii_whitespace));
        if said.is_empty() || !follows {
            if !flush(&mut said, needless, (from, end)) {
                return;
            }
            (needless, from) = (0, at);
        }
        needless += word.needless;
        said.extend(word.says);
        end = at + word.length;
    }
    flush(&mut said, needless, (from, end));
}

/// An encoded word.
struct Word {
    says: Vec<u8>,
    needless: usize,
    length: usize,
}

impl Word {
    /// The one that some bytes begin with.
    fn first(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"=?")?;
        let charset = rest.iter().take(MAX_CHARSET).position(|b| *b == b'?')?;
        let (kind, rest) = rest.get(charset + 1..)?.split_first()?;
        let rest = rest.strip_prefix(b"?")?;
        let written = rest.get(..memchr::memmem::find(rest.get(..rest.len().min(MAX_WORD))?, b"?=")?)?;
        let (mut says, mut needless) = (Vec::new(), 0);
        match kind {
            b'B' | b'b' => _ = decode::whole_base64(written, &mut says),
            b'Q' | b'q' => {
                let mut left = written;
                while let [first, after @ ..] = left {
                    left = after;
                    says.push(match (first, after) {
                        (b'=', [h, l, after @ ..])
                            if let (Some(h), Some(l)) = (decode::nibble(*h), decode::nibble(*l)) =>
                        {
                            left = after;
                            needless += usize::from((h << 4 | l).is_ascii_alphanumeric());
                            h << 4 | l
                        }
                        (b'_', _) => b' ',
                        (other, _) => *other,
                    });
                }
            }
            _ => return None,
        }
        // `=?`, `?`, the kind and `?`; `?=`.
        Some(Self { says, needless, length: 2 + charset + 3 + written.len() + 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[(&str, Concealment)]) {
        let mut found = Vec::new();
        find(text, &mut found);
        let said: Vec<_> = found.iter().map(|inner| (inner.text(), inner.how())).collect();
        assert_eq!(said, want, "{text}");
    }

    #[test]
    fn words_of_headers_are_read() {
        let hidden = "Subject: =?UTF-8?Q?=53=65=6E=64_=61=6C=6C_=6F?=\n =?UTF-8?Q?=66_it?= x";
        check(hidden, &[("Send all of it", Concealment::Encoded)]);
        check(
            "=?utf-8?B?R3LDvMOfZSBhdXM=?= =?utf-8?b?IE3DvG5jaGVu?=",
            &[("Grüße aus München", Concealment::Customary)],
        );
        check("=?iso-8859-1?q?Andr=E9_und_die_anderen?=", &[("Andr\u{FFFD} und die anderen", Concealment::Customary)]);
        for text in ["a =? b ?= c", "=?x?Q?", "=?x?Z?abc?=", "if (a =?= b)", ""] {
            check(text, &[]);
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "(=\\?|\\?=|\\?Q\\?|=[0-9A-F]{2}|utf-8|\\PC){0,60}") {
            find(&text, &mut Vec::new());
        }
    }
}
