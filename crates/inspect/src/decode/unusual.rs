//! Ways to write a value that no program needs, and that people and models think of: other bases, other letters, another order,
//! numbers and words for characters.
//!
//! Most of them are tried only where a text is unlike language ([`strange`]), so that ordinary calls pay for one look at each byte.

mod bases;
mod bits;
mod codes;
mod letters;
mod order;
mod unicode;

use super::{Budget, Encoding};
use crate::{inflate, language::rare};

pub(super) use codes::braced;
pub(crate) use letters::ROT47;
pub(crate) use unicode::LOOKALIKES;

/// Shortest text that is looked at.
const MIN_TEXT: usize = 16;
/// Bytes that are looked at together, and how many pairs of characters in two such blocks make both strange. At six, 11 of 1000 bytes of
/// prose and 14 of code are, and one of 1000 tokens of 20 random characters are not.
const BLOCK: usize = 32;
const MIN_RARE: usize = 6;
/// Longest piece that is looked at at once.
const MAX_PIECE: usize = 1024;

/// Longest value without white space whose letters or order are changed.
const MAX_VALUE: usize = 640;

/// Who gets what was decoded: the bytes, how they were encoded, whether that may be encoded once more, and where in the text.
pub(crate) type OnForm<'v> = &'v mut dyn FnMut(&[u8], Encoding, bool, (usize, usize), &mut Budget);

/// The same of a part whose place is known.
type OnBytes<'v> = &'v mut dyn FnMut(&[u8], Encoding, bool, &mut Budget);

/// Hands on every form that `text` may be written in. What is tried on strange text is bounded by [`Budget::strange`]; that it
/// ends is not reported, because honest files have much of it.
pub(crate) fn unusual(text: &[u8], budget: &mut Budget, visit: OnForm<'_>) {
    if text.len() < MIN_TEXT {
        return;
    }
    codes::each(text, budget, visit);
    order::lines(text, budget, visit);
    order::words(text, budget, visit);
    if let Ok(text) = std::str::from_utf8(text)
        && !text.is_ascii()
    {
        unicode::each(text, budget, visit);
    }
    let strange = strange(text);
    let length: usize = strange.iter().map(|(start, end)| end - start).sum();
    if text.len() <= MAX_PIECE && length * 4 >= text.len() * 3 && text.contains(&b'\n') {
        order::whole(text, &mut |bytes, how| visit(bytes, how, false, (0, text.len()), budget));
    }
    for (start, end) in strange {
        let Some(piece) = text.get(start..end) else { continue };
        if piece.len() > budget.strange {
            return;
        }
        budget.strange -= piece.len();
        bases::each(piece, budget, &mut |bytes, how, deeper, budget| {
            visit(bytes, how, deeper, (start, end), budget);
        });
        // A file has no end in sight, and no value that somebody moved is that long.
        if piece.len() > MAX_VALUE && !piece.iter().any(u8::is_ascii_whitespace) {
            continue;
        }
        for line in piece.split(|b| matches!(b, b'\n' | b'\r')).map(trimmed) {
            if line.len() < MIN_TEXT || is_identifier(line) {
                continue;
            }
            order::each(line, &mut |bytes, how| visit(bytes, how, false, (start, end), budget));
        }
        if !piece.iter().all(u8::is_ascii_hexdigit) {
            letters::each(piece, &mut |bytes, how| visit(bytes, how, false, (start, end), budget));
        }
    }
}

/// Hands on what a token without white space may say in another base, by the name of the base.
pub(crate) fn other_bases(token: &[u8], visit: &mut dyn FnMut(&[u8], &'static str)) {
    let mut budget = Budget::for_size(token.len());
    bases::token(token, &mut budget, &mut |bytes, how, _, _| visit(bytes, how.name()));
}

/// What lines say of which each begins with its length, as uuencode writes them.
pub(crate) fn uuencoded(lines: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    bases::uuencoded(lines, &mut out).then_some(out)
}

/// Whether bytes are text as people write it.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let odd = |b: &u8| !(b.is_ascii_graphic() || matches!(b, b' ' | b'\n' | b'\r' | b'\t'));
    // What is no text shows it at once.
    bytes.len() >= 8
        && bytes.iter().take(16).filter(|b| odd(b)).count() <= 1
        && bytes.iter().filter(|b| odd(b)).count() <= bytes.len() / 16
}

/// Hands on what is text, or what text was compressed to.
fn emit(bytes: &[u8], name: &'static str, budget: &mut Budget, visit: OnBytes<'_>) -> bool {
    if is_text(bytes) {
        visit(bytes, Encoding::Named(name), true, budget);
        return true;
    }
    if inflate::begins(bytes)
        && let Some(plain) = inflate::inflated(bytes)
    {
        visit(&plain, Encoding::Compressed, true, budget);
        return true;
    }
    false
}

/// The pieces of a text that are unlike language, to the next white space on both sides, without ordinary words at their ends.
fn strange(text: &[u8]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    // The first white space behind the piece that was looked at last.
    let (mut before, mut blank) = (0, 0);
    for (number, block) in text.chunks(BLOCK).enumerate() {
        let now = rare(block);
        let sum = before + now;
        before = now;
        if sum < MIN_RARE {
            continue;
        }
        let (start, end) = (number.saturating_sub(1) * BLOCK, number * BLOCK + block.len());
        let floor = out.last().map_or(0, |last| last.1);
        // What lies before the last piece's end is not looked at again.
        let ahead = text.get(floor.min(start)..start).unwrap_or_default().iter().rev().take(BLOCK * 4);
        let start = start - ahead.take_while(|b| !b.is_ascii_whitespace()).count();
        if blank < end {
            let after = text.get(end..).unwrap_or_default();
            blank = end + after.iter().position(u8::is_ascii_whitespace).unwrap_or(after.len());
        }
        let end = blank.min(end + BLOCK * 4);
        match out.last_mut() {
            Some(last) if floor + 1 >= start && end - last.0 <= MAX_PIECE => last.1 = end.max(floor),
            _ if end > floor => out.push((start.max(floor), end)),
            _ => {}
        }
    }
    for (start, end) in &mut out {
        let Some(piece) = text.get(*start..*end) else { continue };
        let kept = trimmed(piece);
        *start += (kept.as_ptr() as usize).saturating_sub(piece.as_ptr() as usize);
        *end = *start + kept.len();
    }
    out.retain(|(start, end)| end - start >= MIN_TEXT && !is_identifier(text.get(*start..*end).unwrap_or_default()));
    out
}

/// Without white space and ordinary words at both ends.
fn trimmed(mut text: &[u8]) -> &[u8] {
    let plain = |word: &[u8]| word.len() < MIN_TEXT && rare(word) == 0 && !word.iter().any(|b| b.is_ascii_digit());
    loop {
        text = text.trim_ascii();
        let first = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        if first < text.len() && plain(text.get(..first).unwrap_or_default()) {
            text = text.get(first..).unwrap_or_default();
            continue;
        }
        let last = text.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        if last > 0 && plain(text.get(last..).unwrap_or_default()) {
            text = text.get(..last).unwrap_or_default();
            continue;
        }
        return text;
    }
}

/// A UUID (RFC 9562): of those honest calls have many.
fn is_identifier(text: &[u8]) -> bool {
    text.len() == 36
        && text
            .iter()
            .enumerate()
            .all(|(at, b)| if matches!(at, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}
