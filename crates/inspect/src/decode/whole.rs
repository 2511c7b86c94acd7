//! Runs that are encoded as a whole, from their first character to their last.

use super::{base32_value, nibble, unpack32, unpack64};

/// Decodes a run that is base64 as a whole, of either alphabet.
pub(crate) fn whole_base64(run: &[u8], out: &mut Vec<u8>) -> bool {
    unpack64(run, out);
    true
}

/// Decodes a run that is base32 as a whole.
pub(crate) fn whole_base32(run: &[u8], out: &mut Vec<u8>) -> bool {
    let fits = run.iter().all(|b| *b == b'=' || base32_value(*b).is_some());
    if fits {
        unpack32(run, out);
    }
    fits
}

/// Decodes a run that is pairs of hex digits as a whole.
pub(crate) fn whole_hex(run: &[u8], out: &mut Vec<u8>) -> bool {
    let run = run.strip_prefix(b"0x").unwrap_or(run);
    out.reserve(run.len() / 2);
    for pair in run.chunks(2) {
        let [h, l] = pair else { return false };
        let (Some(h), Some(l)) = (nibble(*h), nibble(*l)) else { return false };
        out.push(h << 4 | l);
    }
    true
}
