//! Bits that are written as two characters.

use super::{super::Budget, OnBytes, codes::MIN_CODES, emit};

/// Distance between the places of a text that are looked at, and bytes that are looked at there.
const STEP: usize = 32;
const SAMPLE: usize = 24;

/// The two characters of a part, where it has no others but white space and what stands between bits; white space alone may be those.
fn two_of(part: &[u8]) -> Option<[u8; 2]> {
    if part.len() < SAMPLE || !part.is_ascii() {
        return None;
    }
    if part.iter().all(|b| matches!(b, b' ' | b'\t')) {
        return (part.contains(&b'\t') && part.contains(&b' ')).then_some(*b" \t");
    }
    let mut two = [0u8; 2];
    for b in part.iter().filter(|b| !BETWEEN_BITS.contains(b)) {
        match two {
            [0, _] => two[0] = *b,
            [a, _] if a == *b => {}
            [_, 0] => two[1] = *b,
            [_, c] if c == *b => {}
            _ => return None,
        }
    }
    (two[1] != 0).then_some(two)
}

/// The stretches of a text that are written with two characters. Neighbours may have one of them in common, and what stands between
/// bits: there they lie over each other.
fn of_two_characters(text: &[u8]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for at in (0..text.len()).step_by(STEP) {
        let before = out.last().map_or(0, |(_, to)| *to);
        let part = text.get(at..at + SAMPLE).unwrap_or_default();
        let Some(two) = (at >= before).then(|| two_of(part)).flatten() else { continue };
        let blanks = two == *b" \t";
        let goes_on = |b: &&u8| two.contains(b) || !blanks && BETWEEN_BITS.contains(b);
        let ahead = text.get(..at).unwrap_or_default().iter().rev().take_while(goes_on).count();
        let more = text.get(at..).unwrap_or_default().iter().take_while(goes_on).count();
        out.push((at - ahead, at + more));
    }
    out
}

/// Without the end of a word that begins before a stretch, and the beginning of one that goes on behind it.
fn whole_words(text: &[u8], (from, to): (usize, usize)) -> &[u8] {
    let inside = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(|b| !BETWEEN_BITS.contains(b));
    let between = |b: &u8| BETWEEN_BITS.contains(b);
    let mut stretch = text.get(from..to).unwrap_or_default();
    // Blanks may be the bits themselves.
    if stretch.iter().all(|b| matches!(b, b' ' | b'\t')) {
        return stretch;
    }
    if inside(from.checked_sub(1))
        && let Some(at) = stretch.iter().position(between)
    {
        stretch = stretch.get(at..).unwrap_or_default();
    }
    if inside(Some(to))
        && let Some(at) = stretch.iter().rposition(between)
    {
        stretch = stretch.get(..at).unwrap_or_default();
    }
    stretch
}

/// What stands between bits.
const BETWEEN_BITS: &[u8] = b" ,\n\r-_:";

/// Bits of ASCII characters.
pub(super) fn each(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    for stretch in of_two_characters(text) {
        bits(whole_words(text, stretch), budget, visit);
    }
}

/// The same of a stretch that has little else.
fn bits(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    // White space alone, then two other characters with white space between bytes.
    for blanks in text.split(|b| !matches!(b, b' ' | b'\t')).filter(|run| run.contains(&b'\t')) {
        let row: Vec<char> = blanks.iter().map(|b| char::from(*b)).collect();
        of_two(&row, budget, visit);
    }
    let marks = text.split(|b| BETWEEN_BITS.contains(b));
    let mut row: Vec<char> = Vec::new();
    let mut two: Vec<u8> = Vec::new();
    for part in marks.filter(|p| !p.is_empty()).chain([b"end".as_slice()]) {
        let mut next = two.clone();
        next.extend(part.iter().filter(|b| !two.contains(b)));
        next.sort_unstable();
        next.dedup();
        if next.len() > 2 {
            if row.len() >= MIN_CODES * 8 {
                of_two(&row, budget, visit);
            }
            row.clear();
            next.clear();
            let mut own: Vec<u8> = part.to_vec();
            own.sort_unstable();
            own.dedup();
            if own.len() <= 2 {
                next = own;
                row.extend(part.iter().map(|b| char::from(*b)));
            }
        } else {
            row.extend(part.iter().map(|b| char::from(*b)));
        }
        two = next;
    }
}

/// Bits of two characters, whichever is the one: eight or seven to a byte.
pub(super) fn of_two(row: &[char], budget: &mut Budget, visit: OnBytes<'_>) {
    if row.len() < MIN_CODES * 7 || !budget.take(row.len()) {
        return;
    }
    let Some(first) = row.first() else { return };
    for width in [8, 7] {
        let pack = |one: bool| -> Vec<u8> {
            row.chunks_exact(width)
                .map(|bits| bits.iter().fold(0, |n, c| n << 1 | u8::from((c == first) == one)))
                .collect()
        };
        for one in [false, true] {
            let bytes = pack(one);
            if emit(&bytes, "bits", budget, visit) {
                return;
            }
            // The lowest bit first.
            let back: Vec<u8> = bytes.iter().map(|b| b.reverse_bits() >> (8 - width)).collect();
            emit(&back, "bits", budget, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_whole() {
        let bits = "01101000 01101001 ".repeat(9);
        let bits = bits.trim_end();
        for (before, after) in
            [("", ""), ("many ", " more"), ("== -- == -- == -- == -- == -- ", ""), ("so 100", "1 and"), ("x", ",2")]
        {
            for others in ["01", "ox", ".!"] {
                let written: String = bits
                    .chars()
                    .map(|c| match c {
                        '0' => others.chars().next().unwrap(),
                        '1' => others.chars().nth(1).unwrap(),
                        c => c,
                    })
                    .collect();
                let text = format!("{before} {written} {after}");
                let stretches = of_two_characters(text.as_bytes());
                let whole = |stretch: &(usize, usize)| {
                    let found = std::str::from_utf8(whole_words(text.as_bytes(), *stretch)).unwrap();
                    found.trim_matches([' ', ',', '-']).trim_end_matches(" 1").ends_with(&written)
                };
                assert!(stretches.iter().any(whole), "{text} {stretches:?}");
            }
        }
    }

    #[test]
    fn blanks_are_bits_too() {
        let text = format!("if a:\n{}x", "  \t ".repeat(20));
        assert_eq!(of_two_characters(text.as_bytes()), [(6, 86)]);
        let text = format!("01{}x", "\t \t ".repeat(20));
        assert_eq!(whole_words(text.as_bytes(), (2, 82)), &text.as_bytes()[2..82]);
        assert!(of_two_characters("    indented = 1\n".repeat(30).as_bytes()).is_empty());
    }
}
