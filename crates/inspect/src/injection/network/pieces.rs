//! Pieces of words: what the network reads of a text. Training cuts in the same way (`examples/network/pieces.py`).

use foldhash::HashMap;

/// What no piece stands for.
pub(super) const UNKNOWN: u16 = 1;
/// Numbers that stand for no piece of their own: nothing, and [`UNKNOWN`].
pub(super) const RESERVED: usize = 2;
/// Bytes of the longest word that is cut into pieces. Longer ones are digests and encodings.
const MAX_WORD: usize = 48;

/// Pieces by what they spell, at the start of a word and after it.
#[derive(Debug, Default)]
pub(super) struct Pieces<'p> {
    first: HashMap<&'p str, u16>,
    later: HashMap<&'p str, u16>,
}

impl<'p> Pieces<'p> {
    /// Of pieces in the order of their numbers, from [`RESERVED`] on; those that begin with `##` go on with a word.
    pub(super) fn new(pieces: impl Iterator<Item = &'p str>) -> Self {
        let mut out = Self::default();
        for (at, piece) in pieces.enumerate() {
            let Ok(number) = u16::try_from(at + RESERVED) else { break };
            match piece.strip_prefix("##") {
                Some(rest) => out.later.insert(rest, number),
                None => out.first.insert(piece, number),
            };
        }
        out
    }

    /// Cuts a text: for each piece its number and where it begins. At most `most` of them.
    pub(super) fn cut(&self, text: &str, most: usize) -> Vec<(u16, usize)> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
            if out.len() >= most {
                break;
            }
            if letter(c) {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.find(|c| !letter(c)).unwrap_or(rest.len());
                self.word(rest.get(..length).unwrap_or_default(), at, &mut out);
                at += length;
            } else {
                if !c.is_whitespace() {
                    let sign = text.get(at..at + c.len_utf8()).unwrap_or_default();
                    out.push((self.first.get(sign).copied().unwrap_or(UNKNOWN), at));
                }
                at += c.len_utf8();
            }
        }
        out.truncate(most);
        out
    }

    /// The longest piece first.
    fn word(&self, word: &str, start: usize, out: &mut Vec<(u16, usize)>) {
        if word.len() > MAX_WORD {
            return out.push((UNKNOWN, start));
        }
        let mut at = 0;
        while let Some(rest) = word.get(at..).filter(|rest| !rest.is_empty()) {
            let table = if at == 0 { &self.first } else { &self.later };
            let ends = rest.char_indices().rev().map(|(from, c)| from + c.len_utf8());
            let found = ends.into_iter().find_map(|end| Some((end, *table.get(rest.get(..end)?)?)));
            let (end, number) =
                found.unwrap_or_else(|| (rest.chars().next().map_or(rest.len(), char::len_utf8), UNKNOWN));
            out.push((number, start + at));
            at += end;
        }
    }
}

/// Letters and digits; beyond ASCII by ranges that no version of Unicode moves: what is neither a sign nor written without blanks
/// between words.
fn letter(c: char) -> bool {
    match c {
        '\0'..='\x7F' => c.is_ascii_alphanumeric(),
        '\u{C0}'..='\u{1FFF}' => !matches!(c, '\u{D7}' | '\u{F7}'),
        _ => matches!(c, '\u{2C00}'..='\u{2DFF}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        let pieces = Pieces::new(["send", "se", "##nd", "##ing", "##s", ".", "é"].into_iter());
        let numbers = |text: &str| pieces.cut(text, 99).into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(numbers("send sending  sends."), [2, 2, 5, 2, 6, 7]);
        assert_eq!(numbers("é"), [8]);
        assert_eq!(numbers("xsend 中"), [1, 6, 1, 4, 1]);
        assert_eq!(numbers(&"a".repeat(49)), [1]);
        assert_eq!(numbers(""), [0u16; 0]);
        assert_eq!(pieces.cut(" send s", 99).into_iter().map(|(_, at)| at).collect::<Vec<_>>(), [1, 6]);
        assert_eq!(pieces.cut("send send send", 2).len(), 2);
    }
}
