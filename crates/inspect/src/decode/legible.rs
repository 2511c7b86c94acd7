//! What of decoded bytes may be text. Most parts that could be encoded are not, and what they decode to is noise.

use std::borrow::Cow;

use wide::u8x16;

use super::each_run_of;
use crate::lanes::{self, BLOCK};

/// Fewest bytes of text in a row: fewer of what is remembered are not known.
const SHORTEST: usize = 8;
/// Between two rows: it stands in no text, and folding keeps it.
const BETWEEN: u8 = 0xFF;

/// The rows of bytes that may be UTF-8, each whole, with [`BETWEEN`] between them. All of the bytes where nothing else stands in them.
pub(crate) fn legible(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut before = Before::default();
    let numbers = lanes::blocks(bytes, BETWEEN).map(|block| text(&block, &mut before));
    let mut rows: Vec<u8> = Vec::new();
    let mut all = false;
    each_run_of(numbers, bytes.len(), SHORTEST, |from, to| {
        all = (from, to) == (0, bytes.len());
        if !all {
            rows.extend(bytes.get(from..to).unwrap_or_default());
            rows.push(BETWEEN);
        }
        true
    });
    if all { Cow::Borrowed(bytes) } else { Cow::Owned(rows) }
}

/// Which bytes belong to characters of two, three and four bytes that began in the block before.
#[derive(Clone, Copy, Default)]
struct Before([u64; 3]);

/// Which bytes of a block are ASCII, or belong to a character as UTF-8 writes it (RFC 3629 section 3). Of a character that goes on
/// into the next block it is not known, and taken for granted.
fn text(block: &[u8; BLOCK], before: &mut Before) -> u64 {
    let high = lanes::bits(block, |b| b);
    let begins = |mask: u8, bits: u8| lanes::bits(block, |b| lanes::is(b & u8x16::splat(mask), bits));
    let more = begins(0xC0, 0x80);
    let (two, three, four) = (begins(0xE0, 0xC0), begins(0xF0, 0xE0), begins(0xF8, 0xF0));
    // Whether the next, the one after it and the third are what goes on.
    let next = |many: u32| more >> many | !(u64::MAX >> many);
    let two = two & next(1);
    let three = three & next(1) & next(2);
    let four = four & next(1) & next(2) & next(3);
    let [one_more, two_more, three_more] = [two | three | four, three | four, four];
    let good = !high | one_more | one_more << 1 | two_more << 2 | three_more << 3;
    // What stands at the beginning may go on what began before.
    let carried = before.0;
    let open = carried[0] >> 63 | carried[1] >> 62 | carried[2] >> 61;
    *before = Before([one_more, two_more, three_more]);
    good | open & more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_left_out() {
        for (bytes, want) in [
            (b"all of it is text".as_slice(), b"all of it is text".as_slice()),
            ("ä€😀ü".as_bytes(), "ä€😀ü".as_bytes()),
            (b"\xC3(\xA0\xA1short\xF0\x9F", b""),
            (b"\x80\x81some text\x92\xFFand more of it", b"some text\xFFand more of it\xFF"),
            (b"s\0e\0c\0r\0e\0t\0", b"s\0e\0c\0r\0e\0t\0"),
            (b"", b""),
        ] {
            assert_eq!(*legible(bytes), *want, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_left_out(
            parts in proptest::collection::vec(("[a-z]{8,70}|\\PC{4,40}", proptest::collection::vec(proptest::num::u8::ANY, 0..90)), 0..9),
        ) {
            let mut bytes = Vec::new();
            for (text, noise) in &parts {
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(noise);
            }
            let legible = legible(&bytes);
            for (text, _) in parts.iter().filter(|(text, _)| text.len() >= SHORTEST) {
                proptest::prop_assert!(legible.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
            }
        }

        #[test]
        fn of_what_is_valid_all_is_text(text in "\\PC{8,90}") {
            proptest::prop_assert!(matches!(legible(text.as_bytes()), Cow::Borrowed(_)));
        }
    }
}
