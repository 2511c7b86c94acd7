//! Compressed data, undone within bounds.

use std::{cell::RefCell, io::Read as _};

use flate2::{Decompress, FlushDecompress};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Most bytes that one compressed part may become, whatever it says about itself.
const MAX_OUT: usize = 64 * 1024;
/// Shortest raw data that is tried.
const MIN_RAW: usize = 18;
/// Literals that a block of fixed codes begins with: there is nothing yet that could be repeated.
const MIN_LITERALS: usize = 4;
/// Most times its own size (DEFLATE reaches 1032; text does not pass 20).
const MAX_RATIO: usize = 64;
/// First bytes of a Zstandard frame (RFC 8878 section 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Largest window of a Zstandard frame, which the decoder makes room for: what RFC 8878 section 3.1.1.1.2 asks every
/// decoder to have.
const MAX_WINDOW: u64 = 8 << 20;

/// The plain form of Zstandard (RFC 8878), gzip (RFC 1952), zlib (RFC 1950) or, where no header stands, raw DEFLATE data
/// (RFC 1951). What is damaged or too large gives what was readable before.
pub(crate) fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.starts_with(&ZSTD) {
        return unpacked(bytes);
    }
    let (body, zlib) = match bytes {
        [0x1F, 0x8B, 8, flags, _, _, _, _, _, _, rest @ ..] => (gzip_body(*flags, rest)?, false),
        [cmf, flg, rest @ ..] if zlib(*cmf, *flg, rest) => (bytes, true),
        // Raw data says nothing of itself. One block that is the last and is compressed (RFC 1951 section 3.2.3) is what
        // short texts give, and setting up a decoder for every other run of characters would cost more than it finds.
        _ if raw(bytes) => (bytes, false),
        _ => return None,
    };
    let mut out = Vec::with_capacity(room(body));
    // Making one takes a hundred times as long as beginning anew with it, and many a token is tried.
    thread_local!(static STATE: RefCell<Decompress> = RefCell::new(Decompress::new(false)));
    let status = STATE.with_borrow_mut(|state| {
        state.reset(zlib);
        // `decompress_vec` writes into the capacity that is there and never grows it.
        state.decompress_vec(body, &mut out, FlushDecompress::Finish)
    });
    let raw = !zlib && !bytes.starts_with(&[0x1F, 0x8B]);
    // Raw data has no mark of its own: it must be read to its end.
    let good = if raw { matches!(status, Ok(flate2::Status::StreamEnd)) } else { true };
    (good && !out.is_empty()).then_some(out)
}

/// How much compressed data may become.
fn room(body: &[u8]) -> usize {
    MAX_OUT.min(body.len().saturating_mul(MAX_RATIO).saturating_add(64))
}

/// The plain form of the first frame of Zstandard data. The decoder reads block by block, so that no more is made of it than
/// was asked for and one block (128 KiB).
fn unpacked(frame: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MAX_WINDOW);
    let reader = StreamingDecoder::new_with_decoder(frame, decoder).ok()?;
    let mut out = Vec::new();
    // An error leaves what was readable before it.
    let _ = reader.take(room(frame) as u64).read_to_end(&mut out);
    (!out.is_empty()).then_some(out)
}

/// Whether bytes begin as something that [`inflated`] tries.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    match bytes {
        [0x1F, 0x8B, ..] => true,
        _ if bytes.starts_with(&ZSTD) => true,
        [cmf, flg, rest @ ..] if zlib(*cmf, *flg, rest) => true,
        _ => raw(bytes),
    }
}

/// Whether two bytes are a header of zlib data without a dictionary (RFC 1950 section 2.2), and what follows can be a block. Of random bytes
/// one in two thousand are such a header.
fn zlib(cmf: u8, flg: u8, rest: &[u8]) -> bool {
    if cmf & 15 != 8 || cmf >> 4 > 7 || flg & 0x20 != 0 || !(u16::from(cmf) << 8 | u16::from(flg)).is_multiple_of(31) {
        return false;
    }
    let Some(head) = rest.first_chunk::<16>() else { return true };
    let bits = u128::from_le_bytes(*head);
    match bits >> 1 & 3 {
        // Stored: its length, and that with all bits turned.
        0 => (bits >> 8 ^ bits >> 24) & 0xFFFF == 0xFFFF,
        1 => true,
        2 => dynamic(bits >> 3),
        _ => false,
    }
}

/// Whether bytes can be one block of raw DEFLATE data that is the last: what chance gives seldom can.
fn raw(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<16>().filter(|_| bytes.len() >= MIN_RAW) else { return false };
    let bits = u128::from_le_bytes(*head);
    match bits & 7 {
        3 => fixed(bits >> 3),
        5 => dynamic(bits >> 3),
        _ => false,
    }
}

/// A block of fixed codes (RFC 1951 section 3.2.6) begins with literals; those of text are mostly letters.
fn fixed(mut bits: u128) -> bool {
    let (mut literals, mut letters) = (0, 0);
    for _ in 0..12 {
        // Codes are packed from their most significant bit.
        let code = (bits as u16).reverse_bits();
        let (literal, length) = match code >> 8 {
            short @ 0x30..=0xBF => ((short - 0x30) as u8, 8),
            0xC8..=0xFF => ((144 + (code >> 7) - 0x190) as u8, 9),
            _ => break,
        };
        if literal < 0x20 && !literal.is_ascii_whitespace() {
            return false;
        }
        literals += 1;
        letters += usize::from(literal.is_ascii_alphabetic() || literal == b' ' || literal >= 0x80);
        bits >>= length;
    }
    literals >= MIN_LITERALS && letters * 2 >= literals
}

/// The lengths of the codes that a dynamic block begins with (RFC 1951 section 3.2.7) leave no code unused.
fn dynamic(bits: u128) -> bool {
    let (literals, distances, lengths) = (bits & 31, bits >> 5 & 31, (bits >> 10 & 15) + 4);
    let used = (0..lengths).map(|at| (bits >> (14 + 3 * at) & 7) as u32).filter(|length| *length > 0);
    let space: u32 = used.map(|length| 128 >> length).sum();
    literals <= 29 && distances <= 29 && space == 128
}

/// What follows the optional fields of a gzip header.
fn gzip_body(flags: u8, mut rest: &[u8]) -> Option<&[u8]> {
    if flags & 4 != 0 {
        let [low, high, tail @ ..] = rest else { return None };
        rest = tail.get(usize::from(*high) << 8 | usize::from(*low)..)?;
    }
    for text in [8, 16] {
        if flags & text != 0 {
            rest = rest.get(rest.iter().position(|b| *b == 0)? + 1..)?;
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::*;

    #[test]
    fn three_forms() {
        let plain = b"some plain text, some plain text".as_slice();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(plain).unwrap();
        zlib.write_all(plain).unwrap();
        raw.write_all(plain).unwrap();
        for form in [gzip.finish().unwrap(), zlib.finish().unwrap(), raw.finish().unwrap()] {
            assert_eq!(inflated(&form).as_deref(), Some(plain));
            inflated(&form[..form.len() / 2]);
        }
        let zstd = ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(inflated(&zstd).as_deref(), Some(plain));
        inflated(&zstd[..zstd.len() / 2]);
        assert_eq!(inflated(&ZSTD), None);
        assert_eq!(inflated(b"not compressed at all"), None);
        assert_eq!(inflated(b""), None);
    }

    #[test]
    fn every_zlib_stream_is_tried() {
        let plain = b"some plain text, and some other text that is plain; ".repeat(20);
        for level in 0..=9 {
            for flush in [false, true] {
                let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(level));
                if flush {
                    zlib.flush().unwrap();
                }
                zlib.write_all(&plain).unwrap();
                assert_eq!(inflated(&zlib.finish().unwrap()).as_deref(), Some(&plain[..]), "{level} {flush}");
            }
        }
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&plain).unwrap();
        let good = zlib.finish().unwrap();
        // A window that is too large, a dictionary, a wrong sum.
        for header in [[0x88, 0x1C], [0x78, 0xBB], [0x78, 0x9D]] {
            assert!(!begins(&[&header[..], &good[2..]].concat()), "{header:?}");
        }
    }

    #[test]
    fn bombs_stay_small() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![b'a'; 10 << 20]).unwrap();
        let out = inflated(&gzip.finish().unwrap()).unwrap();
        assert!(out.len() <= MAX_OUT, "{}", out.len());
        // Zstandard: a window descriptor of 1 KiB, then blocks of one repeated byte (RFC 8878 section 3.1.1.2), each of which
        // says in four bytes that it becomes 1 KiB.
        let block = |last: u32| ((1024 << 3) | 2 | last).to_le_bytes();
        let mut frame = [&ZSTD[..], &[0, 0]].concat();
        for i in 0..50_000 {
            frame.extend_from_slice(&block(u32::from(i == 49_999))[..3]);
            frame.push(b'a');
        }
        let out = inflated(&frame).unwrap();
        assert!(out.len() == MAX_OUT && out.iter().all(|b| *b == b'a'), "{}", out.len());
        // A window of 3.75 TiB is not made room for.
        assert_eq!(inflated(&[&ZSTD[..], &[0, 0xFF], &block(1)[..3], b"a"].concat()), None);
    }

    proptest::proptest! {
        #[test]
        fn total(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), flags in 0u8..32) {
            inflated(&bytes);
            inflated(&[&[0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 0][..], &bytes].concat());
            inflated(&[&ZSTD[..], &bytes].concat());
        }
    }
}
