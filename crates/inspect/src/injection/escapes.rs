//! Texts that are written with escapes: of addresses (percent), of mail (quoted-printable), of programs (octal).

use super::{
    encoded::prose,
    layers::{Concealment, Found, Inner, MIN_TEXT},
    stretches,
};
use crate::decode;

/// Fewest percent escapes of a value, and most values of one text.
const MIN_ESCAPES: usize = 4;
const MAX_VALUES: usize = 32;
/// Fewest escapes of quoted-printable text.
const MIN_QUOTED: usize = 3;

/// Hands on what is escaped in a text.
pub(super) fn find(text: &str, found: &mut Found<'_>) {
    percent(text, found);
    quoted_printable(text, found);
    rows(text, b'\\', 3, 8, "octal", found);
    rows(text, b'=', 2, 16, "quoted-printable", found);
}

/// Percent escapes (RFC 3986): words that are full of them, and all of a text or what is around them where there are many.
fn percent(text: &str, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    let escape = |at: &usize| matches!(bytes.get(at + 1..at + 3), Some([h, l]) if h.is_ascii_hexdigit() && l.is_ascii_hexdigit());
    let escapes = || memchr::memchr_iter(b'%', bytes).filter(escape);
    if escapes().take(MIN_ESCAPES).count() < MIN_ESCAPES {
        return;
    }
    // Addresses have to escape what is no ASCII.
    let how = |part: &[u8]| if decode::needless(part) { Concealment::Encoded } else { Concealment::Customary };
    let mut plain = Vec::new();
    let (mut read, mut count) = (0, 0);
    for at in escapes() {
        if at < read {
            continue;
        }
        let before = bytes.get(read..at).unwrap_or_default();
        let start = before.iter().rposition(|b| begins_value(*b)).map_or(read, |place| read + place + 1);
        read = at + bytes.iter().skip(at).position(|b| ends_value(*b)).unwrap_or(bytes.len() - at);
        let value = text.get(start..read).unwrap_or_default();
        if value.bytes().filter(|b| *b == b'%').count() < MIN_ESCAPES || value.len() == text.len() {
            continue;
        }
        decode::percent(value.as_bytes(), &mut plain);
        if let Some(said) = prose(&plain) {
            found.push(Inner::decoded(text, value, said, how(value.as_bytes()), "url"));
            count += 1;
        }
        if count == MAX_VALUES {
            break;
        }
    }
    if escapes().take(MIN_TEXT).count() < MIN_TEXT {
        return;
    }
    for part in stretches::around(text, escapes().map(|at| (at, at + 3))) {
        decode::percent(part.as_bytes(), &mut plain);
        if part.len() < text.len() {
            // It begins and ends anywhere, and most of it is not escaped.
            let said = String::from_utf8_lossy(&plain).into_owned();
            found.push(Inner::decoded(text, part, said, Concealment::Customary, "url"));
        } else if let Some(said) = prose(&plain) {
            found.push(Inner::made(said, how(bytes), "url", (0, bytes.len())));
        }
    }
}

/// What the value of a query, or a part of an address, begins behind.
fn begins_value(b: u8) -> bool {
    ends_value(b) || matches!(b, b'/' | b'?' | b'&' | b'=' | b'#' | b':')
}

fn ends_value(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`' | b'|' | b'(' | b')' | b'&')
}

/// Quoted-printable (RFC 2045 section 6.7), as mail is written in languages with accents.
fn quoted_printable(text: &str, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    // Of characters beyond ASCII: what stands in a query of an address is seldom that.
    let escape =
        |at: &usize| matches!(bytes.get(at + 1..at + 3), Some([b'8'..=b'9' | b'A'..=b'F', l]) if upper_hex(*l));
    let escapes = || memchr::memchr_iter(b'=', bytes).filter(escape);
    if escapes().take(MIN_QUOTED).count() < MIN_QUOTED {
        return;
    }
    for part in stretches::around(text, escapes().map(|at| (at, at + 3))) {
        if let Some(said) = prose(&unquoted(part.as_bytes())) {
            found.push(Inner::decoded(text, part, said, Concealment::Customary, "quoted-printable"));
        }
    }
}

fn unquoted(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'=', rest) {
        let (before, escape) = rest.split_at(at);
        plain.extend_from_slice(before);
        rest = match escape {
            // Soft line ends.
            [_, b'\r', b'\n', tail @ ..] | [_, b'\n', tail @ ..] => tail,
            [_, h, l, tail @ ..] if upper_hex(*h) && upper_hex(*l) => {
                let digit = |b: u8| if b.is_ascii_digit() { b - b'0' } else { b - b'A' + 10 };
                plain.push(digit(*h) << 4 | digit(*l));
                tail
            }
            _ => {
                plain.push(b'=');
                escape.get(1..).unwrap_or_default()
            }
        };
    }
    plain.extend_from_slice(rest);
    plain
}

/// Rows of nothing but escapes of one kind: `mark` and so many digits to base `radix`. No program writes letters so.
fn rows(text: &str, mark: u8, digits: usize, radix: u32, name: &'static str, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    let value = |at: usize| {
        let digits = bytes.get(at + 1..at + 1 + digits).filter(|_| bytes.get(at) == Some(&mark))?;
        let value = |sum: u32, b: &u8| Some(sum * radix + char::from(*b).to_digit(radix)?);
        u8::try_from(digits.iter().try_fold(0, value)?).ok()
    };
    let (mut read, mut count) = (0, 0);
    for at in memchr::memchr_iter(mark, bytes) {
        if at < read || value(at).is_none() {
            continue;
        }
        let mut said = Vec::new();
        read = at;
        while let Some(byte) = value(read) {
            said.push(byte);
            // With a blank between them, or without.
            read += 1 + digits;
            read += usize::from(bytes.get(read) == Some(&b' ') && value(read + 1).is_some());
        }
        if said.len() >= MIN_TEXT
            && let Some(said) = prose(&said)
        {
            found.push(Inner::made(said, Concealment::Encoded, name, (at, read)));
            count += 1;
        }
        if count == MAX_VALUES {
            return;
        }
    }
}

fn upper_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'A'..=b'F').contains(&b)
}
