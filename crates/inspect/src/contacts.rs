//! Lists of people: each with an address for mail and a number to call.

use std::collections::HashSet;

/// Fewest different addresses, and as many numbers.
const MIN_PEOPLE: usize = 3;
/// How much of a text is looked at.
const MAX_LOOKED: usize = 16 * 1024;
/// Most signs "@" that are looked at.
const MAX_SIGNS: usize = 64;
/// Bytes of an address before and behind its sign.
const MAX_NAME: usize = 64;
const MAX_HOST: usize = 128;
/// Digits of a telephone number (ITU-T E.164: at most 15), and most bytes that they take.
const DIGITS: std::ops::RangeInclusive<usize> = 9..=15;
const MAX_NUMBER: usize = 24;

/// Whether a text lists people, so that a reader could write to each of them and call as many.
pub(crate) fn listed(text: &str) -> bool {
    let head = text.as_bytes().get(..text.len().min(MAX_LOOKED)).unwrap_or_default();
    let mailboxes: HashSet<&[u8]> =
        memchr::memchr_iter(b'@', head).take(MAX_SIGNS).filter_map(|at| mailbox(head, at)).collect();
    if mailboxes.len() < MIN_PEOPLE {
        return false;
    }
    let numbers = memchr::memchr_iter(b'+', head).filter_map(|at| number(head.get(at + 1..)?));
    let mut seen = HashSet::new();
    numbers.into_iter().any(|number| {
        seen.insert(number);
        seen.len() >= MIN_PEOPLE
    })
}

/// The address around a sign, if it is one of a person's kind.
fn mailbox(text: &[u8], at: usize) -> Option<&[u8]> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-".contains(b);
    let before = text.get(at.saturating_sub(MAX_NAME)..at)?.iter().rev().take_while(|b| part(b)).count();
    let host = text.get(at + 1..text.len().min(at + MAX_HOST))?;
    let host = host.get(..host.iter().take_while(|b| b.is_ascii_alphanumeric() || b".-".contains(b)).count())?;
    (before > 0 && host.contains(&b'.')).then(|| text.get(at - before..at + 1 + host.len())).flatten()
}

/// The digits of a number in international form, behind its sign.
fn number(behind: &[u8]) -> Option<Vec<u8>> {
    let part = behind.iter().take(MAX_NUMBER).take_while(|b| b.is_ascii_digit() || b" -().".contains(b));
    let digits: Vec<u8> = part.copied().filter(u8::is_ascii_digit).collect();
    DIGITS.contains(&digits.len()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_listed() {
        let row = |name: &str, number: &str| format!("{name}, {name}@orchard.example, {number}\n");
        let three =
            row("ines", "+44 1632 960 218") + &row("odd", "+47 22 55 01 64") + &row("rui", "(+351) 21 555 0183");
        for (text, want) in [
            (three.as_str(), true),
            // One of them again and again, and no numbers.
            (&row("ines", "+44 1632 960 218").repeat(9), false),
            ("ines@orchard.example, odd@orchard.example, rui@orchard.example: 3 + 4 + 5 + 1", false),
            ("+44 1632 960 218 +47 22 55 01 64 +351 21 555 0183 @a @b @c", false),
        ] {
            assert_eq!(listed(text), want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "([a-z]{1,3}@[a-z]{1,2}\\.x|\\+[0-9 ]{9,14}|\\PC)*") {
            listed(&text);
        }
    }
}
