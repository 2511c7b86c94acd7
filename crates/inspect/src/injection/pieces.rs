//! Base64 and hex in lines that are too short to be looked at for themselves: listings, comments, strings that a program puts together.

use super::{encoded::MIN_RUN, places::Places};

/// Shortest and longest piece. Longer ones are found as they are.
const PIECE: std::ops::Range<usize> = 4..MIN_RUN;
/// Most bytes of a line beside its piece.
const MARGINS: usize = 24;
/// Fewest pieces in a row.
const MIN_PIECES: usize = 3;

/// Hands on the characters of lines of one length (the last may be shorter) that hold nothing else but what they are quoted, commented or
/// joined by, and where they stand.
pub(super) fn each(
    text: &[u8],
    places: &Places,
    part: impl Fn(u8) -> bool,
    mut visit: impl FnMut(&[u8], (usize, usize)),
) {
    if !places.several(|block| block.lines, MIN_PIECES - 1) {
        return;
    }
    let piece = |(from, to): (usize, usize)| match text.get(from..to) {
        Some(line) if line.len() <= PIECE.end + MARGINS => bare(line, &part),
        _ => &[],
    };
    let mut row = Row::default();
    // The two lines before this one. A row begins where two are equally long; the one before them may have a name before its piece.
    let mut last = [(0, 0); 2];
    let mut at = 0;
    for end in places.each(|block| block.lines, 0).chain([text.len()]) {
        let [_, before] = last;
        if row.count == 0 && before.1 > before.0 && before.1 - before.0 == end - at {
            let length = piece(before).len();
            for line in last.into_iter().filter(|line| length > 0 && piece(*line).len() == length) {
                row.take(piece(line), line);
            }
        }
        if row.count > 0 && !row.take(piece((at, end)), (at, end)) {
            row.end(&mut visit);
        }
        last = [before, (at, end)];
        at = end + 1;
    }
    row.end(&mut visit);
}

/// The characters of a line, without what stands around them; nothing where others stand between them.
fn bare<'l>(line: &'l [u8], part: &impl Fn(u8) -> bool) -> &'l [u8] {
    let Some(from) = line.iter().position(|b| part(*b)) else { return &[] };
    // Signs that join strings are part of an alphabet, too.
    let quote = line.iter().position(|b| matches!(b, b'"' | b'\'' | b'`')).filter(|at| *at < MARGINS);
    let from = quote.map_or(from, |at| at + 1);
    let rest = line.get(from..).unwrap_or_default();
    let rest = rest.strip_prefix(b"// ").or(rest.strip_prefix(b"+")).or(rest.strip_prefix(b"- ")).unwrap_or(rest);
    let (piece, after) = rest.split_at(rest.iter().position(|b| !part(*b)).unwrap_or(rest.len()));
    let around = |b: &u8| b.is_ascii_punctuation() || b.is_ascii_whitespace();
    if after.iter().all(around) { piece } else { &[] }
}

/// Pieces in a row.
#[derive(Default)]
struct Row {
    characters: Vec<u8>,
    span: (usize, usize),
    count: usize,
    /// How long each is.
    length: usize,
    /// One was shorter: none follows it.
    full: bool,
}

impl Row {
    /// Adds a piece, unless it does not belong to those before it.
    fn take(&mut self, piece: &[u8], (from, to): (usize, usize)) -> bool {
        let first = self.count == 0;
        if first && !PIECE.contains(&piece.len()) {
            return true;
        }
        if !first && (self.full || piece.is_empty() || piece.len() > self.length) {
            return false;
        }
        if first {
            (self.length, self.span.0) = (piece.len(), from);
        }
        self.full = piece.len() < self.length;
        self.characters.extend_from_slice(piece);
        self.span.1 = to;
        self.count += 1;
        true
    }

    fn end(&mut self, visit: &mut impl FnMut(&[u8], (usize, usize))) {
        let row = std::mem::take(self);
        if row.count >= MIN_PIECES {
            visit(&row.characters, row.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each(
            text.as_bytes(),
            &Places::of(text),
            |b| b.is_ascii_alphanumeric() || b"+/=-_".contains(&b),
            |characters, (from, to)| {
                assert!(from < to && to <= text.len());
                out.push(String::from_utf8_lossy(characters).into_owned());
            },
        );
        out
    }

    #[test]
    fn pieces_are_put_together() {
        for text in [
            "abcd1234\nefgh5678\nij+/kl==\nmn==\n",
            "see:\n  abcd1234\n  efgh5678\n  ij+/kl==\n  mn==\nand so on",
            "# abcd1234\n# efgh5678\n# ij+/kl==\n# mn==",
            "// abcd1234\n// efgh5678\n// ij+/kl==\n// mn==",
            "+abcd1234\n+efgh5678\n+ij+/kl==\n+mn==",
            "x = [\n  \"abcd1234\",\n  \"efgh5678\",\n  \"ij+/kl==\",\n  \"mn==\",\n]",
            "x = \"abcd1234\" +\n  \"efgh5678\" +\n  \"ij+/kl==\" +\n  \"mn==\";",
        ] {
            assert_eq!(found(text), ["abcd1234efgh5678ij+/kl==mn=="], "{text}");
        }
        for text in ["abcd1234\nefgh5678\nand so it goes on\nij+/kl==", "one\ntwo\n", "", "a b\nc d\ne f\n"] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        for part in ["abcd\n", "\n", "abcd", "\"abcd\"\n", "+ "] {
            let text = part.repeat(1_000_000 / part.len());
            assert!(found(&text).iter().map(String::len).sum::<usize>() <= text.len());
        }
    }
}
