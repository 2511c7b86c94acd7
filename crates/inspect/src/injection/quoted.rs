//! Quoted-printable text of mail (RFC 2045 section 6.7): what its escapes say.

use super::{
    encoded::prose,
    layers::{Concealment, Found, Inner},
    stretches,
};
use crate::decode;

/// Of layers that are written so.
pub(super) const NAME: &str = "quoted-printable";
/// Fewest letters of a stretch that are written as escapes of quoted-printable text.
const MIN_LETTERS: usize = 8;
/// Fewest escapes of quoted-printable text, and longest word between two of them that stand for blanks.
const MIN_QUOTED: usize = 3;
const MAX_WORD: usize = 16;
/// Bytes in which so many letters stand where what is around them is read without escapes.
const DENSE: usize = 200;

/// Quoted-printable (RFC 2045 section 6.7), as mail is written in languages with accents.
pub(super) fn printable(text: &str, places: &[usize], found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    // Of characters beyond ASCII, or of a blank that one word stands behind: what stands in a query of an address is seldom that.
    let escape = |at: &usize| {
        let digit = |at| bytes.get(at).copied().and_then(upper_nibble);
        digit(at + 1).is_some_and(|high| high >= 8) && digit(at + 2).is_some()
            || bytes.get(*at..).and_then(|rest| rest.strip_prefix(b"=20")).is_some_and(word_and_blank)
    };
    let escapes = || places.iter().copied().filter(escape);
    if escapes().take(MIN_QUOTED).count() < MIN_QUOTED {
        return;
    }
    for part in stretches::around(text, escapes().map(|at| (at, at + 3))) {
        if let Some(said) = prose(&unquoted(part.text.as_bytes())) {
            found.push(Inner::made(said, Concealment::Customary, NAME, part.span));
        }
    }
}

/// Letters of ASCII that are written so among others that are not, many near each other: no program does that.
pub(super) fn needless(text: &str, places: &[usize], found: &mut Found<'_>) {
    let value = |at: usize| match text.as_bytes().get(at..)? {
        [_, h, l, ..] => Some(upper_nibble(*h)? << 4 | upper_nibble(*l)?),
        _ => None,
    };
    // Rows of nothing but escapes are for `escapes::rows`.
    let plain = |at: usize| text.as_bytes().get(at + 3).is_some_and(u8::is_ascii_alphabetic);
    let letter = |at: usize| value(at).is_some_and(|b| b.is_ascii_alphabetic());
    let letters = places.iter().copied().filter(|at| letter(*at) && plain(*at));
    let dense: Vec<_> = stretches::dense::<MIN_LETTERS>(letters.map(|at| (at, at + 3)), DENSE).collect();
    if dense.is_empty() {
        return;
    }
    for part in stretches::close_around(text, dense.into_iter()) {
        let said = String::from_utf8_lossy(&unquoted(part.text.as_bytes())).into_owned();
        found.push(Inner::made(said, Concealment::Encoded, NAME, part.span));
    }
}

/// Whether a text begins with one word and another blank.
fn word_and_blank(text: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_alphabetic() || b".,:;!?'-/@~".contains(b);
    let length = text.iter().take(MAX_WORD).take_while(|b| word(b)).count();
    length > 0 && text.get(length..).is_some_and(|rest| rest.starts_with(b"=20"))
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
            [_, h, l, tail @ ..] if let (Some(h), Some(l)) = (upper_nibble(*h), upper_nibble(*l)) => {
                plain.push(h << 4 | l);
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

/// The value of a hex digit as mail has them.
fn upper_nibble(b: u8) -> Option<u8> {
    decode::nibble(b).filter(|_| !b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::escapes::tests::said;

    const PLAIN: &str = "please send all of it to the other one";

    #[test]
    fn blanks_alone_are_enough() {
        let text = PLAIN.replace(' ', "=20");
        assert_eq!(said(&text), [("quoted-printable", PLAIN.to_owned(), Concealment::Customary)]);
        for text in ["?a=20&b=20&c=20&d=20&e=20&f=20", "<td width=20px height=20px>a <td width=20px height=20px>b"] {
            assert_eq!(said(text), [], "{text}");
        }
    }

    #[test]
    fn quoted_printable_is_undone() {
        for (text, want) in [
            ("Gr=C3=BC=C3=9Fe =\r\nund =\nmehr", "Gr\u{fc}\u{df}e und mehr"),
            ("a=b =4 =zz =", "a=b =4 =zz ="),
            ("=3D", "="),
        ] {
            assert_eq!(String::from_utf8(unquoted(text.as_bytes())).unwrap(), want, "{text}");
        }
    }
}
