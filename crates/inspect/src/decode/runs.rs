//! Stretches of encoded characters inside a text: hex, base64, base32, and characters with gaps between them.

use wide::u8x16;

use super::{Budget, Encoding, MIN_RUN, NONE, OnPart, nibble, values};
use crate::{
    lanes::{self, BLOCK, is, within},
    language::monotone,
};

/// Lines of wrapped base64 are at least this long (RFC 2045 and PEM use 76 and 64).
const MIN_WRAPPED: usize = 32;
/// Lines of one length that are shorter are at least this long.
const MIN_SHORT: usize = 4;

/// Hands on the start and end of every run of at least `shortest` bytes that are `part` of one, until `visit` returns
/// false. `shortest` is eight at least, so that most blocks of a text are done with when none of so many stands in them.
fn each_run(text: &[u8], shortest: usize, part: impl Fn(u8x16) -> u8x16, visit: impl FnMut(usize, usize) -> bool) {
    let numbers = lanes::blocks(text, NO_PART).map(|block| lanes::bits(&block, &part));
    each_run_of(numbers, text.len(), shortest, visit);
}

/// A byte that is part of no run.
const NO_PART: u8 = 0xFF;

/// The same of a text of so many bytes, by numbers that say of 64 bytes each which are part of one, the first in the lowest bit.
pub(crate) fn each_run_of(
    numbers: impl Iterator<Item = u64>,
    length: usize,
    shortest: usize,
    mut visit: impl FnMut(usize, usize) -> bool,
) {
    debug_assert!(shortest >= 8, "shorter runs within a block are not seen");
    // Where the run begins that goes on into the block.
    let mut begin = 0;
    for (number, mut parts) in numbers.enumerate() {
        if parts == u64::MAX {
            continue;
        }
        let at = number * BLOCK;
        let head = at + parts.trailing_ones() as usize;
        if head - begin >= shortest && !visit(begin, head) {
            return;
        }
        let tail = parts.leading_ones() as usize;
        begin = at + BLOCK - tail;
        // What neither comes from the block before nor goes on into the next one.
        parts &= parts.wrapping_add(1) & (u64::MAX >> tail);
        if !each_within(parts, shortest, &mut |from, to| visit(at + from, at + to)) {
            return;
        }
    }
    if length.saturating_sub(begin) >= shortest {
        visit(begin, length);
    }
}

/// Hands on the runs of at least `shortest` bits. False when `visit` returned that.
#[inline]
fn each_within(bits: u64, shortest: usize, visit: &mut impl FnMut(usize, usize) -> bool) -> bool {
    let two = bits & bits >> 1;
    let four = two & two >> 2;
    // Where at least eight begin.
    let mut long = four & four >> 4;
    while long != 0 {
        let from = long.trailing_zeros();
        let to = from + (bits >> from).trailing_ones();
        if (to - from) as usize >= shortest && !visit(from as usize, to as usize) {
            return false;
        }
        long &= u64::MAX.checked_shl(to).unwrap_or_default();
    }
    true
}

/// `l i k e   t h i s`, at least [`MIN_RUN`] characters.
pub(super) fn spaced_runs(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    if !spaced(text) {
        return;
    }
    let mut run: Vec<u8> = Vec::new();
    let mut separator = 0;
    let (mut at, mut begin) = (0, 0);
    while let Some(b) = text.get(at) {
        let next = text.get(at + 1).copied();
        if b.is_ascii_graphic()
            && next.is_some_and(|n| !n.is_ascii_alphanumeric() && (run.is_empty() || n == separator))
        {
            if run.is_empty() {
                begin = at;
            }
            separator = next.unwrap_or_default();
            run.push(*b);
            at += 2;
            continue;
        }
        // The last one has no separator after it.
        if b.is_ascii_graphic() && !run.is_empty() {
            run.push(*b);
        }
        if run.len() >= MIN_RUN && budget.take(run.len()) {
            visit(&run, Encoding::Spaced, (begin, at + 1), budget);
        }
        // The same character may begin the next run.
        at += usize::from(run.is_empty());
        run.clear();
    }
    if run.len() >= MIN_RUN && budget.take(run.len()) {
        visit(&run, Encoding::Spaced, (begin, text.len()), budget);
    }
}

/// Whether a run of spaced characters can be there: it takes 31 bytes, which cover one of these places and the five after
/// it.
fn spaced(text: &[u8]) -> bool {
    let separated = |at: usize| {
        matches!(text.get(at..at + 5), Some([a, b, c, d, e])
            if a == c && c == e && !a.is_ascii_alphanumeric() && b.is_ascii_graphic() && d.is_ascii_graphic())
    };
    // Most are told by whether every second byte is the same.
    let alike = |at: usize| {
        let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk()) else { return true };
        let eight = u64::from_le_bytes(*eight);
        let differ = eight ^ eight >> 16;
        differ & 0x00FF_00FF == 0 || differ & 0xFF00_FF00 == 0
    };
    (0..text.len()).step_by(16).any(|at| alike(at) && (separated(at) || separated(at + 1)))
}

/// Runs of hex digits, also with separators, `0x` or `\x` between the pairs, at both alignments.
pub(super) fn hex_runs(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let part = |b: u8x16| {
        let small = b | u8x16::splat(0x20);
        let digits = within(b, b'0', b':') | within(small, b'a', b'f') | is(small, b'x');
        let between = is(b, b' ') | within(b, b',', b'.') | is(b, b'\\') | is(b, b'_') | is(b, b'\n') | is(b, b'\r');
        digits | between
    };
    each_run(text, MIN_RUN, part, |start, end| {
        let run = text.get(start..end).filter(|run| !monotone(run)).unwrap_or_default();
        hex_run(run, budget, &mut |bytes, how, _, budget| {
            visit(bytes, how, (start, end), budget);
        });
        true
    });
}

/// The same, where nothing else stands.
fn hex_run(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let mut digits: Vec<u8> = Vec::new();
    let mut gap = 0;
    let mut at = 0;
    loop {
        let b = text.get(at).copied();
        match (b, b.and_then(nibble)) {
            // The zero of `0x` is not a digit.
            (Some(b'0'), _) if matches!(text.get(at + 1), Some(b'x' | b'X')) => {
                gap += 1;
                at += 2;
            }
            (_, Some(digit)) => {
                digits.push(digit);
                gap = 0;
                at += 1;
            }
            (Some(b' ' | b':' | b'-' | b',' | b'\\' | b'x' | b'\n' | b'\r' | b'_' | b'.'), _)
                if gap < 3 && !digits.is_empty() =>
            {
                gap += 1;
                at += 1;
            }
            _ => {
                if digits.len() >= MIN_RUN {
                    for start in 0..2 {
                        let pairs = digits.get(start..).unwrap_or_default().chunks_exact(2);
                        if !budget.take(digits.len() / 2) {
                            return;
                        }
                        let bytes: Vec<u8> = pairs.map(|p| p.iter().fold(0, |a, d| a << 4 | d)).collect();
                        visit(&bytes, Encoding::Hex, (0, text.len()), budget);
                    }
                }
                digits.clear();
                gap = 0;
                if b.is_none() {
                    return;
                }
                at += 1;
            }
        }
    }
}

/// Runs of base64 (both alphabets) and base32 characters, also over line ends, at every alignment.
pub(super) fn base_runs(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let part = |b: u8x16| {
        let letters = within(b | u8x16::splat(0x20), b'a', b'z') | within(b, b'/', b'9');
        letters | is(b, b'+') | is(b, b'-') | is(b, b'_') | is(b, b'\n') | is(b, b'\r')
    };
    each_run(text, MIN_RUN, part, |start, end| {
        let run = text.get(start..end).filter(|run| !monotone(run)).unwrap_or_default();
        lines(run, budget, &mut |bytes, how, _, budget| {
            visit(bytes, how, (start, end), budget);
        });
        true
    });
}

/// The runs in lines of base64 characters. A run goes on over the end of a line that is long enough, or as long as all before it while
/// none is longer.
fn lines(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let mut run: Vec<u8> = Vec::new();
    let (mut first, mut last) = (0, 0);
    let lines = text.split(|b| matches!(b, b'\n' | b'\r')).filter(|line| !line.is_empty());
    for line in lines.map(Some).chain([None]) {
        let length = line.map_or(usize::MAX, <[u8]>::len);
        let goes_on = last >= MIN_WRAPPED || last >= MIN_SHORT && last == first && length <= last;
        if line.is_none() || !goes_on {
            if run.len() >= MIN_RUN {
                base_run(&run, budget, visit);
            }
            run.clear();
            first = length;
        }
        run.extend(line.unwrap_or_default());
        last = length;
    }
}

fn base_run(run: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let all = |value: fn(u8) -> Option<u8>| run.iter().map(|b| value(*b).unwrap_or_default()).collect::<Vec<u8>>();
    let (values, mut out) = (if cased(run) { all(base64_value) } else { Vec::new() }, Vec::new());
    // Text before the run may have added up to three characters to it.
    for start in 0..if values.is_empty() { 0 } else { 4 } {
        let part = values.get(start..).unwrap_or_default();
        if !budget.take(part.len()) {
            return;
        }
        pack::<6, 4, 3>(part, &mut out);
        visit(&out, Encoding::Base64, (0, run.len()), budget);
    }
    if run.iter().all(|b| base32_value(*b).is_some()) {
        let values = all(base32_value);
        for start in 0..8 {
            let part = values.get(start..).unwrap_or_default();
            if !budget.take(part.len()) {
                return;
            }
            pack::<5, 8, 5>(part, &mut out);
            visit(&out, Encoding::Base32, (0, run.len()), budget);
        }
    }
}

/// Whether base64 of a value may look like this. Paths, names of programs and identifiers in hex have no capitals. Of random values of
/// twelve bytes, which are sixteen characters, one in 4,200 has none either (38 of the 64 characters are no capitals), of fifteen bytes one in
/// 33,000; small letters have one of their first two characters among the capitals, mostly.
fn cased(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_uppercase)
}

/// Decodes base64. A library refuses what a sloppy or hostile encoder leaves in the last bits; here that must not hide anything.
pub(super) fn unpack64(run: &[u8], out: &mut Vec<u8>) {
    pack::<6, 4, 3>(&values_of(run, base64_value), out);
}

/// The same of base32.
pub(super) fn unpack32(run: &[u8], out: &mut Vec<u8>) {
    pack::<5, 8, 5>(&values_of(run, base32_value), out);
}

/// What the characters of an alphabet stand for; others are left out.
fn values_of(run: &[u8], value: fn(u8) -> Option<u8>) -> Vec<u8> {
    run.iter().filter_map(|b| value(*b)).collect()
}

/// Puts `WIDTH` bits of each value together, those of so many values at once as make whole bytes. Bits that are left over are dropped.
fn pack<const WIDTH: usize, const VALUES: usize, const BYTES: usize>(values: &[u8], out: &mut Vec<u8>) {
    let number = |values: &[u8]| values.iter().fold(0u64, |number, value| number << WIDTH | u64::from(*value));
    let (whole, rest) = values.as_chunks::<VALUES>();
    out.clear();
    out.resize(whole.len() * BYTES, 0);
    let (bytes, _) = out.as_chunks_mut::<BYTES>();
    for (bytes, values) in bytes.iter_mut().zip(whole) {
        if let Some(last) = number(values).to_be_bytes().last_chunk() {
            *bytes = *last;
        }
    }
    let bits = rest.len() * WIDTH;
    let last = (number(rest) >> (bits % 8)).to_be_bytes();
    out.extend_from_slice(last.get(last.len() - bits / 8..).unwrap_or_default());
}

/// Of both alphabets (RFC 4648 sections 4 and 5).
#[inline]
fn base64_value(b: u8) -> Option<u8> {
    BASE64.get(usize::from(b)).copied().filter(|value| *value < NONE)
}

#[inline]
pub(super) fn base32_value(b: u8) -> Option<u8> {
    BASE32.get(usize::from(b)).copied().filter(|value| *value < NONE)
}

const BASE64: [u8; 256] = values(&[
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
]);
const BASE32: [u8; 256] = values(&[b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"abcdefghijklmnopqrstuvwxyz234567"]);

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &[u8], shortest: usize) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        each_run(
            text,
            shortest,
            |b| is(b, b'a'),
            |from, to| {
                out.push((from, to));
                true
            },
        );
        out
    }

    #[test]
    fn a_visitor_can_stop() {
        let mut count = 0;
        each_run(
            "aaaaaaaaaa b ".repeat(99).as_bytes(),
            8,
            |b| is(b, b'a'),
            |_, _| {
                count += 1;
                count < 7
            },
        );
        assert_eq!(count, 7);
    }

    proptest::proptest! {
        #[test]
        fn as_one_by_one(parts in proptest::collection::vec((0usize..150, 1usize..90), 0..9), shortest in 8usize..30) {
            let text: String = parts.iter().map(|(a, b)| "a".repeat(*a) + &"b".repeat(*b)).collect();
            for text in [text.as_str(), text.trim_end_matches('b')] {
                let (mut want, mut from) = (Vec::new(), 0);
                for run in text.split('b') {
                    if run.len() >= shortest {
                        want.push((from, from + run.len()));
                    }
                    from += run.len() + 1;
                }
                proptest::prop_assert_eq!(runs(text.as_bytes(), shortest), want);
            }
        }
    }
}
