//! Paths and mailboxes: they say where something is, or who, and tools hand them to each other all day. What a private text that names
//! some has in common with a call that names a file beside them, or writes to somebody, is no passage of it.

use crate::fold;

/// Longest path and longest part of one, in bytes: what is longer may be a text in this form.
const MAX_PATH: usize = 300;
const MAX_PART: usize = 100;

/// Longest name of a mailbox, and longest host (RFC 5321, 4.5.3.1; the latter is 255 there).
const MAX_NAME: usize = 64;
const MAX_HOST: usize = 100;

/// Which bytes of the folded form of a text belong to absolute paths of files, and to mailboxes if these count, as bits; empty where there is
/// none. `length` is that of the folded form.
pub(crate) fn bits(text: &[u8], length: usize, mailboxes: bool) -> Box<[u64]> {
    let mut bits: Vec<u64> = Vec::new();
    let (mut done, mut at) = (0, 0);
    let (mut file, mut mailbox) = (next(text, 0), next_mailbox(text, 0).filter(|_| mailboxes));
    while let Some((from, to)) = first(file, mailbox) {
        at += kept(text, done, from);
        let end = at + kept(text, from, to);
        if bits.is_empty() {
            bits = vec![0; length.div_ceil(64)];
        }
        for place in at..end.min(length) {
            if let Some(word) = bits.get_mut(place / 64) {
                *word |= 1 << (place % 64);
            }
        }
        (done, at) = (to, end);
        let passed = |place: &(usize, usize)| place.0 < done;
        if file.as_ref().is_some_and(passed) {
            file = next(text, done);
        }
        if mailbox.as_ref().is_some_and(passed) {
            mailbox = next_mailbox(text, done);
        }
    }
    bits.into()
}

/// The same of a text that is remembered. One that is mostly paths has none: somebody may have put it into that form.
pub(super) fn beside_a_text(text: &[u8], length: usize, mailboxes: bool) -> Box<[u64]> {
    let bits = bits(text, length, mailboxes);
    if count(&bits, 0, length) * 2 > length { Box::default() } else { bits }
}

/// How many bits are set from one place to another.
pub(crate) fn count(bits: &[u64], from: usize, to: usize) -> usize {
    let first = from / 64;
    let words = bits.get(first..to.div_ceil(64).min(bits.len())).unwrap_or_default().iter().zip(first..);
    let within = |(word, number): (&u64, usize)| {
        let (before, behind) = (from.saturating_sub(number * 64), ((number + 1) * 64).saturating_sub(to));
        (word >> before << before << behind).count_ones() as usize
    };
    words.map(within).sum()
}

/// How many bytes of a part stay when it is folded.
fn kept(text: &[u8], from: usize, to: usize) -> usize {
    fold::length(text.get(from..to).unwrap_or_default())
}

/// The next absolute path behind a place: `/a/b`, `~/a`, `C:\a\b`, with two separators at least but for a home's. No address of the
/// network.
fn next(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let rest = text.get(from..)?;
        let slash = from + memchr::memchr2(b'/', b'\\', rest)?;
        let address = text.get(slash..)?.starts_with(b"///") && text.get(..slash)?.ends_with(b"file:");
        let slash = slash + if address { 2 } else { 0 };
        let end = slash + text.get(slash..)?.iter().position(|b| !of_path(*b)).unwrap_or(text.len() - slash);
        let path = text.get(slash..end)?;
        let path = path.strip_suffix(b".").unwrap_or(path);
        let start = start(text, slash).filter(|start| *start >= from);
        let separators = path.iter().filter(|b| matches!(b, b'/' | b'\\')).count();
        if let Some(start) = start
            && path.len() <= MAX_PATH
            && path.split(|b| matches!(b, b'/' | b'\\')).all(|part| part.len() <= MAX_PART)
            && separators > usize::from(start == slash)
        {
            return Some((start, slash + path.len()));
        }
        from = end.max(slash + 1);
    }
}

/// The next mailbox behind a place.
fn next_mailbox(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let at = from + memchr::memchr(b'@', text.get(from..)?)?;
        let before = text.get(from.max(at.saturating_sub(MAX_NAME + 1))..at)?;
        let after = text.get(at + 1..text.len().min(at + MAX_HOST + 2))?;
        let name = before.iter().rev().take_while(|b| of_mailbox(**b)).count();
        let host = after.iter().take_while(|b| of_mailbox(**b)).count();
        let host_end = after.get(..host)?.iter().rposition(|b| *b != b'.').map_or(0, |last| last + 1);
        let trimmed = after.get(..host_end)?;
        let is_at = |place: Option<usize>| place.and_then(|place| text.get(place)) == Some(&b'@');
        let beside = is_at((at - name).checked_sub(1)) || is_at(Some(at + 1 + host));
        if (1..=MAX_NAME).contains(&name) && host <= MAX_HOST && trimmed.contains(&b'.') && !beside {
            return Some((at - name, at + 1 + trimmed.len()));
        }
        from = at + 1;
    }
}

/// The one that begins first.
fn first(one: Option<(usize, usize)>, other: Option<(usize, usize)>) -> Option<(usize, usize)> {
    one.into_iter().chain(other).min()
}

fn of_mailbox(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"._%+-".contains(&b)
}

/// Where the path begins whose first separator this is.
fn start(text: &[u8], slash: usize) -> Option<usize> {
    let before = text.get(..slash)?;
    let begins = |before: &[u8]| before.last().is_none_or(|b| b.is_ascii_whitespace() || b"\"'`(<[{=,;:|>".contains(b));
    match (text.get(slash)?, before) {
        (b'/', [.., b'/', b'/']) if before.ends_with(b"file://") => Some(slash),
        (b'/', [rest @ .., b'~']) if begins(rest) => Some(slash - 1),
        // `//host/share` and `scheme://` are none.
        (b'/', _) if begins(before) && text.get(slash + 1) != Some(&b'/') => Some(slash),
        (b'\\', [rest @ .., drive, b':']) if drive.is_ascii_alphabetic() && begins(rest) => Some(slash - 2),
        _ => None,
    }
}

fn of_path(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"/\\._-+@%~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_mostly_paths_has_none() {
        let bits = |text: &str| beside_a_text(text.as_bytes(), fold::folded(text.as_bytes()).len(), true);
        assert!(bits("/r/the_patient_was_admitted/with_a_fracture").is_empty());
        assert!(!bits("/srv/a.md: the patient was admitted with a fracture").is_empty());
    }

    #[test]
    fn paths_are_marked() {
        let marked = |text: &str| {
            let folded = fold::folded(text.as_bytes());
            let bits = bits(text.as_bytes(), folded.len(), true);
            let marked = (0..folded.len()).filter(|at| count(&bits, *at, at + 1) == 1).filter_map(|at| folded.get(at));
            String::from_utf8(marked.copied().collect()).unwrap()
        };
        for (text, want) in [
            ("/home/ana/work/kunden.csv:\nName;Ort", "homeanaworkkundencsv"),
            ("see ~/notes and C:\\Users\\ana\\a.txt.", "notescusersanaatxt"),
            ("\"/a/b\" (/c/d) x=/e/f", "abcdef"),
            ("file:///home/ana/a.md", "homeanaamd"),
            ("/tmp of one part", ""),
            ("https://host.example/a/b/c", ""),
            ("//host/share/a", ""),
            ("src/a/b.rs and a/b", ""),
            ("she said yes/no/perhaps", ""),
            ("/the/patient has it", "thepatient"),
            ("/srv/hr/患者は入院した", "srvhr"),
            ("write to m.bachl@bachl-landtechnik.example.", "mbachlbachllandtechnikexample"),
            ("<ana@firm.example>, see /srv/a@b.example/x", "anafirmexamplesrvabexamplex"),
            ("root@host and a@b.c@d.example", ""),
            (&format!("{}@firm.example", "a".repeat(65)), ""),
            (&format!("/9j/4AAQ{}", "Sk".repeat(100)), ""),
            ("~", ""),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(marked(text), want, "{text}");
        }
    }
}
