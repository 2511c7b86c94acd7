//! Sixteen bytes at once.

use wide::u8x16;

/// Bytes of a block. A number has a bit for each, the first in the lowest.
pub(crate) const BLOCK: usize = u64::BITS as usize;

/// Bytes that a processor compares at once.
pub(crate) const LANES: usize = 16;

/// Which bytes of a block are some, where `some` sets the highest bit of those that are.
#[inline]
pub(crate) fn bits(block: &[u8; BLOCK], some: impl Fn(u8x16) -> u8x16) -> u64 {
    let (parts, _) = block.as_chunks::<LANES>();
    parts.iter().rev().fold(0, |bits, part| bits << 16 | u64::from(some(u8x16::new(*part)).to_bitmask()))
}

/// Which bytes are from one to another.
#[inline]
pub(crate) fn within(some: u8x16, from: u8, to: u8) -> u8x16 {
    let from_first = some - u8x16::splat(from);
    from_first.min(u8x16::splat(to - from)).simd_eq(from_first)
}

/// Which bytes are this one.
#[inline]
pub(crate) fn is(some: u8x16, byte: u8) -> u8x16 {
    some.simd_eq(u8x16::splat(byte))
}

/// The blocks of a text; behind its end stands `filler`.
pub(crate) fn blocks(text: &[u8], filler: u8) -> impl Iterator<Item = [u8; BLOCK]> {
    let (whole, rest) = text.as_chunks::<BLOCK>();
    let mut last = [filler; BLOCK];
    last.iter_mut().zip(rest).for_each(|(slot, b)| *slot = *b);
    whole.iter().copied().chain((!rest.is_empty()).then_some(last))
}

/// How many bytes are some.
pub(crate) fn count(text: &[u8], filler: u8, some: impl Fn(u8x16) -> u8x16) -> usize {
    blocks(text, filler).map(|block| bits(&block, &some).count_ones() as usize).sum()
}

/// The characters of a text beyond ASCII, and where they stand.
pub(crate) fn beyond(text: &str) -> impl Iterator<Item = (usize, char)> {
    // Their first bytes are these.
    let first = |block| bits(&block, |b| is(b & u8x16::splat(0xC0), 0xC0));
    blocks(text.as_bytes(), 0).enumerate().flat_map(move |(number, block)| {
        let mut left = first(block);
        std::iter::from_fn(move || {
            let at = number * BLOCK + (left != 0).then(|| left.trailing_zeros())? as usize;
            left &= left - 1;
            Some((at, text.get(at..)?.chars().next()?))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn characters_beyond_ascii(text in "([a-z]|\\PC){0,200}") {
            let want: Vec<_> = text.char_indices().filter(|(_, c)| !c.is_ascii()).collect();
            proptest::prop_assert_eq!(beyond(&text).collect::<Vec<_>>(), want);
        }

        #[test]
        fn as_one_by_one(text in proptest::collection::vec(proptest::num::u8::ANY, 0..200), from: u8, more in 0u8..20) {
            let to = from.saturating_add(more);
            let want: Vec<usize> = (0..text.len()).filter(|at| (from..=to).contains(&text[*at])).collect();
            let filler = from.wrapping_sub(1);
            let found = |block: (usize, [u8; BLOCK])| {
                let bits = bits(&block.1, |some| within(some, from, to));
                (0..BLOCK).filter(move |at| bits >> at & 1 == 1).map(move |at| block.0 * BLOCK + at)
            };
            proptest::prop_assert_eq!(blocks(&text, filler).enumerate().flat_map(found).collect::<Vec<_>>(), want.clone());
            proptest::prop_assert_eq!(count(&text, filler, |some| within(some, from, to)), want.len());
        }
    }
}
