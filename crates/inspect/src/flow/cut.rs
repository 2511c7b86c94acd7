//! A value that was cut into the elements, the members or the parameters of one call: pieces of one length, of which the last may be
//! shorter; or the codes of its characters.

use super::{Match, Outgoing, encoded, runs, split};
use crate::{decode::Budget, fold, memory::Memory};

/// Fewest pieces, and the shortest and longest of them.
const MIN_PIECES: usize = 3;
const PIECE: std::ops::RangeInclusive<usize> = 1..=64;
/// Fewest numbers that may be codes of characters, and the most digits of one.
const MIN_NUMBERS: usize = 8;
const MAX_DIGITS: usize = 7;
/// Most names of members whose values are put together.
const MAX_NAMES: usize = 8;

/// A string, and which of the outgoing ones it is of.
type Piece<'t> = (usize, &'t str);

/// Hands on what the pieces of a call make together.
pub(super) fn each(memory: &Memory, leaves: &[Outgoing<'_>], budget: &mut Budget, out: &mut Vec<Match>) {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut join = |pieces: &[Piece<'_>], between: &str| {
        let Some((leaf, _)) = pieces.last() else { return };
        found.push((*leaf, pieces.iter().map(|(_, piece)| *piece).collect::<Vec<_>>().join(between)));
    };
    let values = || leaves.iter().enumerate().filter(|(_, l)| !l.key).map(|(i, leaf)| (i, &*leaf.text));
    if leaves.len() >= MIN_PIECES {
        of_one_length(values(), &mut |pieces| join(pieces, ""));
    }
    if leaves.len() >= MIN_PIECES && leaves.iter().any(|l| l.key) {
        of_one_length(leaves.iter().enumerate().map(|(i, leaf)| (i, &*leaf.text)), &mut |pieces| join(pieces, ""));
        for name in repeated(leaves) {
            let under = leaves.iter().zip(leaves.iter().enumerate().skip(1));
            let under = under.filter(|(key, (_, value))| key.key && *key.text == *name && !value.key);
            of_one_length(under.map(|(_, (i, value))| (i, &*value.text)), &mut |pieces| join(pieces, ""));
        }
    }
    let mut codes: Vec<Piece<'_>> = Vec::new();
    for (i, text) in values().chain([(0, "")]) {
        if (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
            codes.push((i, text));
            continue;
        }
        if codes.len() >= MIN_NUMBERS {
            join(&codes, " ");
        }
        codes.clear();
    }
    for (i, leaf) in leaves.iter().enumerate().filter(|(_, l)| l.text.contains('?')) {
        let mut values = Vec::new();
        split::values(&leaf.text, &mut |_, value| values.push(String::from_utf8_lossy(value).into_owned()));
        of_one_length(values.iter().map(|value| (i, value.as_str())), &mut |pieces| join(pieces, ""));
    }
    for (leaf, text) in found {
        let text = text.as_bytes();
        runs(memory, &fold::folded(text), false, &mut |item, start, end, _| {
            out.push(Match::of_pieces((item, start, end), leaf, "cut"));
        });
        let length = leaves.get(leaf).map_or(0, |l| l.text.len());
        encoded(memory, text, (leaf, Some((0, length))), &mut Vec::new(), budget, out);
    }
}

/// Every row of strings of one length, the last of which may be shorter.
fn of_one_length<'t>(all: impl Iterator<Item = Piece<'t>>, visit: &mut dyn FnMut(&[Piece<'t>])) {
    let mut row: Vec<Piece<'t>> = Vec::new();
    for (i, text) in all.map(Some).chain([None]).map(|piece| piece.unwrap_or((0, ""))) {
        let length = row.first().map(|(_, first)| first.len());
        if length == Some(text.len()) && PIECE.contains(&text.len()) {
            row.push((i, text));
            continue;
        }
        // What is shorter ends the row, and may begin another.
        if length.is_some_and(|length| text.len() < length) && !text.is_empty() {
            row.push((i, text));
        }
        if row.len() >= MIN_PIECES {
            visit(&row);
        }
        row.clear();
        if PIECE.contains(&text.len()) {
            row.push((i, text));
        }
    }
}

/// Names that at least [`MIN_PIECES`] members have.
fn repeated<'l>(leaves: &'l [Outgoing<'_>]) -> Vec<&'l str> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for leaf in leaves.iter().filter(|l| l.key) {
        if let Some((_, count)) = names.iter_mut().find(|(name, _)| *name == leaf.text) {
            *count += 1;
        } else if names.len() < MAX_NAMES {
            names.push((&leaf.text, 1));
        }
    }
    names.into_iter().filter(|(_, count)| *count >= MIN_PIECES).map(|(name, _)| name).collect()
}
