//! What a JSON string says, read in the pass that finds its end.

use std::borrow::Cow;

use super::object::unescape;

/// Bytes that are looked at eight at a time, before what follows is taken for a long stretch without escapes.
const NEAR: usize = 16;
/// Room for what a string with escapes says, in bytes: growing into it takes longer than asking for it.
const ROOM: usize = 1024;

/// The string whose opening quotation mark stands at `from`: where it ends, and what it says. One that has no end is taken
/// to go on to the end of `raw`. Lone surrogates become U+FFFD.
pub(super) fn read(raw: &str, from: usize) -> (usize, Cow<'_, str>) {
    let bytes = raw.as_bytes();
    let (mut at, mut copied, mut out) = (from + 1, from + 1, String::new());
    let mut known = true;
    let end = loop {
        let Some(found) = mark(bytes, at) else {
            known = false;
            break bytes.len();
        };
        if bytes.get(found) == Some(&b'"') {
            break found + 1;
        }
        match escape(bytes.get(found..).unwrap_or_default()).filter(|_| known) {
            Some((c, length)) => {
                if out.capacity() == 0 {
                    out.reserve((raw.len() - from).min(ROOM));
                }
                out.push_str(raw.get(copied..found).unwrap_or_default());
                out.push(c);
                at = found + length;
                copied = at;
            }
            None => {
                known = false;
                at = found + 2;
            }
        }
    };
    let said = if known {
        let rest = raw.get(copied..end - 1).unwrap_or_default();
        if copied == from + 1 {
            Cow::Borrowed(rest)
        } else {
            out.push_str(rest);
            Cow::Owned(out)
        }
    } else {
        text(raw.get(from..end).unwrap_or_default())
    };
    (end, said)
}

/// What a whole string token says.
pub(super) fn text(token: &str) -> Cow<'_, str> {
    unescape(token).unwrap_or_else(|| Cow::Owned(lossy(token)))
}

/// The first quotation mark or backslash from `at` on. Most are near, and then a search that looks at many bytes at once takes
/// longer to begin than to end.
fn mark(bytes: &[u8], mut at: usize) -> Option<usize> {
    let far = at + NEAR;
    while at < far {
        let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { break };
        let eight = u64::from_le_bytes(*eight);
        let found = zeros(eight ^ every(b'"')) | zeros(eight ^ every(b'\\'));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', bytes.get(at..)?).map(|found| at + found)
}

const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of the first byte that is zero, and of none before it (Warren, Hacker's Delight 6-1).
fn zeros(eight: u64) -> u64 {
    eight.wrapping_sub(every(1)) & !eight & every(0x80)
}

/// The character of an escape (RFC 8259, section 7), and its length; `None` for a lone surrogate and what is none.
fn escape(escape: &[u8]) -> Option<(char, usize)> {
    let unit =
        |at: usize| escape.get(at..at + 4)?.iter().try_fold(0, |n, b| Some(n << 4 | char::from(*b).to_digit(16)?));
    let c = match escape.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(2)?;
            if !(0xD800..0xDC00).contains(&first) {
                return Some((char::from_u32(first)?, 6));
            }
            let second = unit(8).filter(|low| (0xDC00..0xE000).contains(low) && escape.get(6..8) == Some(b"\\u"))?;
            return Some((char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))?, 12));
        }
        _ => return None,
    };
    Some((c, 2))
}

/// Unescapes a string with lone surrogates, which become U+FFFD.
fn lossy(raw: &str) -> String {
    let mut fixed = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(i) = rest.find('\\') {
        fixed.push_str(&rest[..i]);
        let escape = &rest[i..];
        let unit =
            |s: &str| s.strip_prefix("\\u").and_then(|h| h.get(..4)).and_then(|h| u16::from_str_radix(h, 16).ok());
        let step = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(escape.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => {
                fixed.push_str(&escape[..12]);
                12
            }
            Some(0xD800..=0xDFFF) => {
                fixed.push('\u{FFFD}');
                6
            }
            Some(_) => {
                fixed.push_str(&escape[..6]);
                6
            }
            None => {
                let n = escape.chars().take(2).map(char::len_utf8).sum();
                fixed.push_str(&escape[..n]);
                n
            }
        };
        rest = &escape[step..];
    }
    fixed.push_str(rest);
    serde_json::from_str(&fixed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_and_say() {
        for (raw, end, said) in [
            (r#""" x"#, 2, ""),
            (r#""plain" x"#, 7, "plain"),
            (r#""a\"b\\c\/d\b\f\n\r\t" x"#, 22, "a\"b\\c/d\u{8}\u{c}\n\r\t"),
            (r#""\u00e9\ud83d\ude00é""#, 22, "é😀é"),
            (r#""\ud800 \n""#, 11, "\u{FFFD} \n"),
            (r#""\udc00\ud83d\n\u0041""#, 22, "\u{FFFD}\u{FFFD}\nA"),
            (
                r#""a long one, in which nothing is escaped until its very\nend""#,
                61,
                "a long one, in which nothing is escaped until its very\nend",
            ),
            (r#""no end"#, 7, ""),
            (r#""no \n end"#, 10, ""),
            (r#""bad \x escape" x"#, 15, ""),
            (r#"""#, 1, ""),
        ] {
            assert_eq!(read(raw, 0), (end, Cow::Borrowed(said)), "{raw}");
        }
        assert!(matches!(read(r#" "plain""#, 1), (8, Cow::Borrowed("plain"))));
    }

    proptest::proptest! {
        #[test]
        fn as_serde_reads_them(said in "\\PC{0,40}|[\"\\\\\n\t\u{0}-\u{1f}a-z/😀]{0,60}", ascii in proptest::bool::ANY) {
            let mut token = serde_json::to_string(&said).unwrap();
            if ascii {
                let units = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04X}")).collect::<String>();
                token = token.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c) }).collect();
            }
            let raw = format!("{token},\"next\"");
            proptest::prop_assert_eq!(read(&raw, 0), (token.len(), Cow::Owned(said)));
        }

        #[test]
        fn any_bytes(raw in "\"(\\PC|[\\\\\"u0-9dD8-9a-f]){0,60}") {
            // As long as it was: to the first mark that no backslash stands before.
            let (end, _) = read(&raw, 0);
            let mut at = 1;
            while raw.as_bytes().get(at).is_some_and(|b| *b != b'"') {
                at += if raw.as_bytes()[at] == b'\\' { 2 } else { 1 };
            }
            proptest::prop_assert_eq!(end, raw.len().min(at + 1));
        }
    }
}
