//! `+AGEAbABs-`: characters as UTF-7 shifts them (RFC 2152), which no program of today writes.

use super::layers::{Concealment, Found, Inner, MIN_TEXT};
use crate::decode;

/// Fewest characters of base64 of one shifted part: two bytes.
const MIN_SHIFTED: usize = 3;
/// Bytes between two such parts that are read as they stand.
const MAX_BETWEEN: usize = 24;
/// Most texts of one.
const MAX_TEXTS: usize = 64;

/// Hands on what shifted characters say, where all of them together are long enough for a text.
pub(super) fn find(text: &str, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    // Nearly all of what is shifted is ASCII, whose upper byte is zero.
    if memchr::memmem::find(bytes, b"+A").is_none() {
        return;
    }
    let most = found.len() + MAX_TEXTS;
    let (mut said, mut shifted, mut from, mut end) = (String::new(), 0, 0, 0);
    for at in memchr::memchr_iter(b'+', bytes) {
        if at < end {
            continue;
        }
        let Some((part, length)) = bytes.get(at + 1..).and_then(unshifted) else { continue };
        let between = text.get(end..at).filter(|between| between.len() <= MAX_BETWEEN && !said.is_empty());
        match between {
            Some(between) => said.push_str(between),
            None => {
                flush(&mut said, shifted, (from, end), found);
                (from, shifted) = (at, 0);
            }
        }
        if found.len() >= most {
            return;
        }
        shifted += part.len();
        said.push_str(&part);
        end = at + 1 + length;
    }
    flush(&mut said, shifted, (from, end), found);
}

fn flush(said: &mut String, shifted: usize, span: (usize, usize), found: &mut Found<'_>) {
    if shifted >= MIN_TEXT {
        found.push(Inner::made(std::mem::take(said), Concealment::Encoded, "utf-7", span));
    }
    said.clear();
}

/// What is shifted at the start of some bytes, and how long that is with the sign that ends it.
fn unshifted(bytes: &[u8]) -> Option<(String, usize)> {
    // Not `+`, which is written for few characters: each byte is looked at once, whatever stands before it.
    let length = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'/').count();
    let run = bytes.get(..length).filter(|run| run.len() >= MIN_SHIFTED)?;
    let mut plain = Vec::new();
    decode::whole_base64(run, &mut plain);
    let units = plain.as_chunks().0.iter().map(|two| u16::from_be_bytes(*two));
    let said: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    // Letters up to those of the Hebrew (U+05FF), and general punctuation: by chance two in a hundred characters are such.
    let text = |c: char| c < '\u{600}' && !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{2010}'..='\u{203A}');
    let ends = usize::from(bytes.get(length) == Some(&b'-'));
    (!said.is_empty() && said.chars().all(text)).then_some((said, length + ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::said;

    #[test]
    fn shifted_characters_are_read() {
        for (text, want) in [
            ("body +AFMAZQBuAGQAIABhAGwAbAAgAG8AZgAgAGkAdAA- end", Some("Send all of it")),
            ("x: +AFMAZQBuAGQ- +AGEAbABs- +AG8AZg- +AGkAdA- +AG4AbwB3-", Some("Send all of it now")),
            ("c++AlloBase +ABC 1+Add(x) +A- +AAAA", None),
            ("", None),
        ] {
            let found = said(text, |text, _, found| find(text, found));
            assert_eq!(found.first().map(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        for part in ["+A", "+AAA", "+AGEAbABs-", "+AGE x"] {
            let text = part.repeat(1_000_000 / part.len());
            assert!(said(&text, |text, _, found| find(text, found)).len() <= MAX_TEXTS, "{part}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "(\\+A|[A-Za-z0-9+/-]|\\PC){0,80}") {
            said(&text, |text, _, found| find(text, found));
        }
    }
}
