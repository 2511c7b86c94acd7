//! A stretch of a text as it is meant, where it is written with escapes: in a string of JSON or of a program, as HTML, in a terminal's
//! colours, with a number or a mark before each line. What tools hand out is written so more often than not, and what stands around a
//! credential is what tells it.

use crate::view::written;

/// Most backslashes before one character: each string within another doubles them.
const MAX_DEPTH: usize = 7;
/// Longest entity and longest escape of a character.
const MAX_ESCAPE: usize = 26;
/// Most bytes of a colour's numbers (ECMA-48, SGR).
pub(super) const MAX_COLOUR: usize = 20;
/// Most bytes before a line: blanks, its number, its file's name.
const MAX_BEFORE: usize = 200;
/// Bytes behind a keyword in which what stands around a value is written with escapes, if it is.
const NEAR: usize = 48;
const ESC: u8 = 0x1B;

/// The bytes that are meant, and where each is written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// One more than there are bytes: the last is where the stretch ends.
    places: Vec<usize>,
}

impl Plain {
    /// At most `most` bytes of what `text` means; `None` where it stands as it is meant up to a little behind its first `known` bytes,
    /// which a keyword ends: what is written with escapes is so from there on.
    pub(super) fn of(text: &[u8], (known, most): (usize, usize), lines: bool) -> Option<Self> {
        let text = text.get(..text.len().min(2 * most)).unwrap_or_default();
        let near = text.get(..text.len().min(known + NEAR)).unwrap_or_default();
        let escapes = |at: usize| !rest(text, at).starts_with(b"&") || entity(rest(text, at)).1 > 1;
        let written = memchr::memchr3_iter(b'\\', b'&', ESC, near).any(escapes);
        let numbered = || memchr::memchr(b'\n', near).is_some_and(|at| before_line(rest(text, at + 1)) > 0);
        if !(written || lines && numbered()) {
            return None;
        }
        let mut out = Self::default();
        let mut at = 0;
        while at < text.len() && out.bytes.len() < most {
            at += out.read(text, at, lines);
        }
        out.places.push(at);
        Some(out)
    }

    /// Where a stretch of what is meant is written.
    pub(super) fn place(&self, (from, to): (usize, usize)) -> Option<(usize, usize)> {
        Some((*self.places.get(from)?, *self.places.get(to)?))
    }

    /// Reads what stands at `at` and says how long that is.
    fn read(&mut self, text: &[u8], at: usize, lines: bool) -> usize {
        let here = rest(text, at);
        let (meant, length) = match here {
            [b'\\', ..] => backslash(here),
            [b'&', ..] => entity(here),
            [byte, ..] => (Meant::Byte(*byte), 1),
            [] => return 1,
        };
        match meant {
            Meant::Byte(ESC) => {
                let colour = colour(rest(here, length));
                if colour == 0 {
                    self.push(ESC, at);
                }
                return length + colour;
            }
            Meant::Byte(byte) => {
                self.push(byte, at);
                if byte == b'\n' && lines {
                    return length + before_line(rest(here, length));
                }
            }
            Meant::Char(c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|byte| self.push(byte, at));
            }
        }
        length
    }

    fn push(&mut self, byte: u8, at: usize) {
        self.bytes.push(byte);
        self.places.push(at);
    }
}

enum Meant {
    Byte(u8),
    Char(char),
}

fn rest(text: &[u8], at: usize) -> &[u8] {
    text.get(at..).unwrap_or_default()
}

/// The beginning that is UTF-8 and long enough for an escape.
fn start(text: &[u8]) -> &str {
    let text = text.get(..text.len().min(MAX_ESCAPE)).unwrap_or_default();
    text.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Backslashes and what they escape, and how long that is.
fn backslash(text: &[u8]) -> (Meant, usize) {
    let many = text.iter().take(MAX_DEPTH).take_while(|b| **b == b'\\').count();
    let byte = |byte| (Meant::Byte(byte), many + 1);
    match rest(text, many) {
        [b'n', ..] => byte(b'\n'),
        [b'r', ..] => byte(b'\r'),
        [b't', ..] => byte(b'\t'),
        [b'e', b'[', ..] => byte(ESC),
        [b'0', b'3', b'3', ..] => (Meant::Byte(ESC), many + 3),
        [quote @ (b'"' | b'\'' | b'`' | b'/'), ..] => byte(*quote),
        [b'u' | b'x' | b'U', ..] => match written::escaped(start(rest(text, many - 1))) {
            Some((c, length)) if c.is_ascii() => (Meant::Byte(c as u8), many - 1 + length),
            Some((c, length)) => (Meant::Char(c), many - 1 + length),
            None => (Meant::Byte(b'\\'), many),
        },
        // Each of a string within is written as two.
        _ => (Meant::Byte(b'\\'), many.min(2)),
    }
}

/// An entity, or `&` itself, and how long that is. What was made an entity twice is undone twice.
fn entity(text: &[u8]) -> (Meant, usize) {
    let twice = text.starts_with(b"&amp;").then(|| rest(text, b"&amp".len()));
    let inner =
        twice.map(|inner| [b"&", rest(inner, 1).get(..inner.len().min(MAX_ESCAPE) - 1).unwrap_or_default()].concat());
    if let Some((c, length)) = inner.as_deref().and_then(|inner| written::entity(start(inner))) {
        return (Meant::Char(c), length + b"&amp".len());
    }
    match written::entity(start(text)) {
        Some((c, length)) => (Meant::Char(c), length),
        None => (Meant::Byte(b'&'), 1),
    }
}

/// The length of a colour behind its escape, or zero.
fn colour(text: &[u8]) -> usize {
    let Some(numbers) = text.strip_prefix(b"[") else { return 0 };
    let length = numbers.iter().take(MAX_COLOUR).take_while(|b| b.is_ascii_digit() || matches!(b, b';' | b':')).count();
    match numbers.get(length) {
        Some(b'm' | b'K') => length + 2,
        _ => 0,
    }
}

/// The length of what stands before a line of a file that is shown: its number, with or without the file's name, or the mark of a diff,
/// a comment, a quotation.
fn before_line(text: &[u8]) -> usize {
    let blanks = text.iter().take(12).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let line = rest(text, blanks);
    let digits = |text: &[u8]| text.iter().take(8).take_while(|b| b.is_ascii_digit()).count();
    let blank = |text: &[u8]| usize::from(text.first() == Some(&b' '));
    let number = digits(line);
    let behind = rest(line, number);
    let end = match behind {
        [b'\t' | b'|', ..] => 1,
        [b':' | b'-', b' ', ..] => 2,
        [b':', ..] => 1,
        _ if behind.starts_with("→".as_bytes()) => "→".len(),
        [b' ', b'|', ..] => 2,
        _ => 0,
    };
    if number > 0 && end > 0 {
        return blanks + number + end + blank(rest(behind, end));
    }
    let name = line.iter().take(MAX_BEFORE).take_while(|b| b.is_ascii_graphic() && **b != b':').count();
    let numbered = rest(line, name).strip_prefix(b":").map(|behind| (digits(behind), behind));
    if let Some((many @ 1.., behind)) = numbered
        && name > 0
        && behind.get(many) == Some(&b':')
    {
        return blanks + name + 1 + many + 1 + blank(rest(behind, many + 1));
    }
    match line {
        [b'#', b'#', ..] | [b'/', b'/', ..] => blanks + 2 + blank(rest(line, 2)),
        [b'>' | b'#' | b'*' | b'|', ..] => blanks + 1 + blank(rest(line, 1)),
        [b'+', ..] if blanks == 0 => 1,
        [b'-', other, ..] if blanks == 0 && *other != b'-' => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_read() {
        for (text, want) in [
            ("as it stands, 1: é", None),
            (r#"{\"a\": \"b\nc\"}"#, Some("{\"a\": \"b\nc\"}")),
            (r#"{\\\"a\\\": \\\"b\\nc\\\"}"#, Some("{\"a\": \"b\nc\"}")),
            (r"\u003d\x3D\u00e9\q C:\\a", Some("==é\\q C:\\a")),
            ("a=&quot;b&amp;quot; &#x27;&#39; & &what;", Some("a=\"b\" '' & &what;")),
            ("\u{1b}[1;32ma\u{1b}[0m\\u001b[32mb\\x1b[0mc\\033[7md\\e[0me\u{1b}c", Some("abcde\u{1b}c")),
            ("a\n  12\tb\n13: c\n   14→d\n15 | e\n16:f", Some("a\nb\nc\nd\ne\nf")),
            ("a\n> b\n# c\n+d\n-e\n--f\n//g\nsrc/a.py:12:h\n12 i", Some("a\nb\nc\nd\ne\n--f\ng\nh\n12 i")),
        ] {
            let plain = Plain::of(text.as_bytes(), (200, 200), true);
            let bytes = plain.map(|plain| String::from_utf8(plain.bytes).unwrap());
            assert_eq!(bytes.as_deref(), want, "{text}");
        }
        assert_eq!(Plain::of(b"a\n12: b", (200, 200), false), None);
        let far = format!("{}&quot;", " ".repeat(NEAR));
        assert_eq!([0, 20].map(|known| Plain::of(far.as_bytes(), (known, 200), false).is_some()), [false, true]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = r#"key=\"a&amp;b\u003d\""#;
        let plain = Plain::of(text.as_bytes(), (3, 200), false).unwrap();
        assert_eq!(plain.bytes, br#"key="a&b=""#);
        assert_eq!(plain.place((5, 9)).map(|(from, to)| &text[from..to]), Some(r"a&amp;b\u003d"));
        assert_eq!(plain.place((0, 10)), Some((0, text.len())));
        assert_eq!(plain.place((0, 11)), None);
    }

    proptest::proptest! {
        #[test]
        fn anything_can_be_read(text in "([ -~\n\u{1b}é]|&(amp;|quot;|#3)|\\\\{1,3}[nux0]){0,60}", most in 0usize..80) {
            if let Some(plain) = Plain::of(text.as_bytes(), (0, most), true) {
                proptest::prop_assert!(plain.bytes.len() <= most + 3);
                proptest::prop_assert_eq!(plain.places.len(), plain.bytes.len() + 1);
                proptest::prop_assert!(plain.places.is_sorted() && plain.places.iter().all(|at| *at <= text.len()));
            }
        }
    }
}
