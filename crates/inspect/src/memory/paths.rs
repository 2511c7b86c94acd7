//! Paths in what is remembered: they say where something is, and tools hand them to each other all day. What a private text has in common
//! with a call that names a file beside it is no passage of it.

use crate::fold;

/// Longest path, in bytes (`PATH_MAX`, limits.h).
const MAX_PATH: usize = 4096;

/// Which bytes of the folded form of a text belong to absolute paths of files, as bits; empty where there is none. `length` is that of
/// the folded form.
pub(crate) fn bits(text: &[u8], length: usize) -> Box<[u64]> {
    let mut bits: Vec<u64> = Vec::new();
    let (mut done, mut at) = (0, 0);
    while let Some((from, to)) = next(text, done) {
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
    }
    bits.into()
}

/// How many bits are set from one place to another.
pub(crate) fn count(bits: &[u64], from: usize, to: usize) -> usize {
    let is_set = |at: &usize| bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
    if bits.is_empty() { 0 } else { (from..to).filter(is_set).count() }
}

/// How many bytes of a part stay when it is folded.
fn kept(text: &[u8], from: usize, to: usize) -> usize {
    fold::folded(text.get(from..to).unwrap_or_default()).len()
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
            && separators > usize::from(start == slash)
        {
            return Some((start, slash + path.len()));
        }
        from = end.max(slash + 1);
    }
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
    b.is_ascii_alphanumeric() || b >= 0x80 || b"/\\._-+@%~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_marked() {
        let marked = |text: &str| {
            let folded = fold::folded(text.as_bytes());
            let bits = bits(text.as_bytes(), folded.len());
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
            ("~", ""),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(marked(text), want, "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        for part in ["/", "/a", "/a/b ", "a/", "~/", "\\", "C:\\a ", "file://", "/a/b."] {
            let text = part.repeat(1_000_000 / part.len());
            let length = fold::folded(text.as_bytes()).len();
            assert!(bits(text.as_bytes(), length).len() <= length.div_ceil(64), "{part}");
        }
    }
}
