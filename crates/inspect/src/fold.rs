//! Text without what is easily changed on the way: upper case, white space, punctuation.

/// Appends the folded form: ASCII letters in lower case, ASCII digits, and every byte of other characters.
pub(crate) fn fold(text: &[u8], out: &mut Vec<u8>) {
    let mut length = out.len();
    out.resize(length + text.len(), 0);
    // Every byte is written and then kept or not: nothing for a processor to guess.
    for b in text {
        let plain = PLAIN.get(usize::from(*b)).copied().unwrap_or_default();
        if let Some(slot) = out.get_mut(length) {
            *slot = plain;
        }
        length += usize::from(plain != 0);
    }
    out.truncate(length);
}

/// What each byte becomes; zero for what is left out.
const PLAIN: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphanumeric() || byte >= 0x80 {
            table[b] = byte.to_ascii_lowercase();
        }
        b += 1;
    }
    table
};

/// Which bytes of the folded form begin a word, as bits: those before which something was left out. `length` is that of the
/// folded form.
pub(crate) fn words(text: &[u8], length: usize) -> Box<[u64]> {
    let mut bits = vec![0u64; length.div_ceil(64)];
    let (mut at, mut between) = (0, true);
    // Nothing for a processor to guess.
    for b in text {
        let kept = PLAIN.get(usize::from(*b)) != Some(&0);
        if let Some(word) = bits.get_mut(at / 64) {
            *word |= u64::from(kept & between) << (at % 64);
        }
        at += usize::from(kept);
        between = !kept;
    }
    bits.into()
}

/// Where bytes `from..to` of the folded form stand in the text.
pub(crate) fn unfolded(text: &[u8], from: usize, to: usize) -> (usize, usize) {
    all_unfolded(text, &[(from, to)]).pop().unwrap_or((text.len(), text.len()))
}

/// The same of many places, in one pass over the text.
pub(crate) fn all_unfolded(text: &[u8], spans: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let ends = |(from, to): &(usize, usize)| [*from, to.saturating_sub(1).max(*from)];
    let mut wanted: Vec<usize> = spans.iter().flat_map(ends).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut kept = text.iter().enumerate().filter(|(_, b)| PLAIN.get(usize::from(**b)) != Some(&0)).map(|(at, _)| at);
    let mut next = 0;
    let place = |index: &usize| {
        let at = kept.nth(index - next);
        next = index + 1;
        at.unwrap_or(text.len())
    };
    let places: Vec<usize> = wanted.iter().map(place).collect();
    let place = |index: usize| wanted.binary_search(&index).ok().and_then(|at| places.get(at).copied());
    let unfolded = |[first, last]: [usize; 2]| {
        let start = place(first).unwrap_or(text.len());
        (start, place(last).map_or(start, |last| last + 1).min(text.len()))
    };
    spans.iter().map(ends).map(unfolded).collect()
}

/// The folded form.
pub(crate) fn folded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    fold(text, &mut out);
    out
}

/// Number of different bytes: a long run of one character is no information.
pub(crate) fn distinct(text: &[u8]) -> u32 {
    let mut seen = [0u64; 4];
    for b in text {
        if let Some(word) = seen.get_mut(usize::from(b >> 6)) {
            *word |= 1 << (b & 63);
        }
    }
    seen.iter().map(|w| w.count_ones()).sum()
}

/// Whether two folded bytes are one, or a digit and the letter that it looks like.
pub(crate) fn alike(a: u8, b: u8) -> bool {
    a == b || letter(a) == letter(b)
}

/// The letter that a digit looks like.
pub(crate) fn letter(b: u8) -> u8 {
    match b {
        b'0' => b'o',
        b'1' => b'i',
        b'3' => b'e',
        b'4' => b'a',
        b'5' => b's',
        b'7' => b't',
        b => b,
    }
}

/// Moves letters of folded text by 13 places.
pub(crate) fn rot13(text: &mut [u8]) {
    for b in text.iter_mut().filter(|b| b.is_ascii_lowercase()) {
        *b = (*b - b'a' + 13) % 26 + b'a';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding() {
        assert_eq!(folded("A-b C\n1é".as_bytes()), "abc1é".as_bytes());
        assert_eq!(*words(b"A-b Cd\n1", 5), [0b10111]);
        let places = [(1, 3, (2, 5)), (0, 2, (0, 3)), (4, 5, (7, 8)), (4, 9, (7, 8)), (9, 12, (8, 8)), (1, 3, (2, 5))];
        for (from, to, want) in places {
            assert_eq!(unfolded(b"A-b Cd\n1", from, to), want, "{from} {to}");
        }
        let spans = places.map(|(from, to, _)| (from, to));
        assert_eq!(all_unfolded(b"A-b Cd\n1", &spans), places.map(|(.., want)| want));
        assert_eq!(distinct(b"aabbc"), 3);
        let mut text = *b"abcxyz019";
        rot13(&mut text);
        assert_eq!(&text, b"nopklm019");
    }
}
