//! Text without what is easily changed on the way: upper case, white space, punctuation.

use wide::u8x16;

use crate::lanes::{self, BLOCK, LANES, within};

/// A text that is shorter is folded byte by byte: a block costs as much.
const SHORT: usize = 32;

/// Appends the folded form: ASCII letters in lower case, ASCII digits, and every byte of other characters.
pub(crate) fn fold(text: &[u8], out: &mut Vec<u8>) {
    if text.len() < SHORT {
        out.extend(text.iter().filter(|b| kept(**b)).map(u8::to_ascii_lowercase));
        return;
    }
    let mut length = out.len();
    // Runs are copied by whole lanes.
    out.resize(length + text.len() + LANES, 0);
    for block in lanes::blocks(text, 0) {
        let small = lowered(&block);
        each_run(stay(&block), |start, many| {
            for at in (0..many).step_by(LANES) {
                let (to, from) = (length + at, start + at);
                if let (Some(to), Some(from)) = (out.get_mut(to..to + LANES), small.get(from..from + LANES)) {
                    to.copy_from_slice(from);
                }
            }
            length += many;
        });
    }
    out.truncate(length);
}

/// How many bytes the folded form has.
pub(crate) fn length(text: &[u8]) -> usize {
    lanes::count(text, 0, stays)
}

/// Which bytes of the folded form begin a word, as bits: those before which something was left out. `length` is that of the
/// folded form.
pub(crate) fn words(text: &[u8], length: usize) -> Box<[u64]> {
    let mut begin = vec![0u64; length.div_ceil(64)];
    let (mut at, mut between) = (0, true);
    for block in lanes::blocks(text, 0) {
        let stay = stay(&block);
        each_run(stay, |start, many| {
            if let Some(word) = begin.get_mut(at / 64) {
                *word |= u64::from(start > 0 || between) << (at % 64);
            }
            at += many;
        });
        between = stay >> (BLOCK - 1) == 0;
    }
    begin.into()
}

/// The highest bit of those bytes that the folded form has.
#[inline]
fn stays(some: u8x16) -> u8x16 {
    within(some | u8x16::splat(0x20), b'a', b'z') | within(some, b'0', b'9') | some
}

/// Which bytes of a block the folded form has.
#[inline]
fn stay(block: &[u8; BLOCK]) -> u64 {
    lanes::bits(block, stays)
}

/// A block with small letters for capitals, and room for lanes behind it.
#[inline]
fn lowered(block: &[u8; BLOCK]) -> [u8; BLOCK + LANES] {
    let mut out = [0; BLOCK + LANES];
    for (slots, part) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(block.as_chunks::<LANES>().0) {
        let some = u8x16::new(*part);
        *slots = (some | within(some, b'A', b'Z') & u8x16::splat(0x20)).to_array();
    }
    out
}

/// The runs of bits that are set: where each begins, and how many they are.
#[inline]
fn each_run(bits: u64, mut visit: impl FnMut(usize, usize)) {
    let (mut left, mut at) = (bits, 0);
    while left != 0 {
        let before = left.trailing_zeros();
        left >>= before;
        let many = left.trailing_ones();
        at += before;
        visit(at as usize, many as usize);
        at += many;
        left = left.checked_shr(many).unwrap_or(0);
    }
}

/// Whether the folded form has this byte.
fn kept(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80
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
    let mut kept = text.iter().enumerate().filter(|(_, b)| kept(**b)).map(|(at, _)| at);
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

    proptest::proptest! {
        #[test]
        fn as_one_by_one(text in "([a-cA-C0-9]{0,40}|[ .\n]|\\PC){0,60}") {
            let text = text.as_bytes();
            let want: Vec<u8> = text.iter().filter(|b| kept(**b)).map(u8::to_ascii_lowercase).collect();
            let begins = |at: &usize| kept(text[*at]) && !at.checked_sub(1).is_some_and(|before| kept(text[before]));
            let mut begin = vec![0u64; want.len().div_ceil(64)];
            for at in (0..text.len()).filter(begins) {
                let at = length(&text[..at]);
                begin[at / 64] |= 1 << (at % 64);
            }
            proptest::prop_assert_eq!(length(text), want.len());
            proptest::prop_assert_eq!(&*words(text, want.len()), begin);
            let mut out = b"before".to_vec();
            fold(text, &mut out);
            proptest::prop_assert_eq!(out, [b"before".as_slice(), &want].concat());
        }
    }
}
