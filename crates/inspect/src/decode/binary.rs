//! What only bytes that were encoded as text can be: compressed, or combined with one byte.

use super::{Budget, Encoding, MIN_RUN, OnPart};
use crate::inflate;

/// Longest part that is tried with keys of one byte.
const MAX_XOR: usize = 8192;

/// Undoes what only bytes that were encoded as text can be: compression, and a combination with one byte.
pub(crate) fn each_binary(bytes: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    if std::str::from_utf8(bytes).is_err()
        && budget.take(bytes.len())
        && let Some(plain) = inflate::inflated(bytes)
        && budget.take(plain.len())
    {
        visit(&plain, Encoding::Compressed, (0, bytes.len()), budget);
    }
    if bytes.len() < MIN_RUN / 2 || bytes.len() > MAX_XOR {
        return;
    }
    // Text has no byte above 0x7F, and one key changes the first bit of all bytes or of none.
    if !(bytes.is_ascii() || bytes.iter().all(|b| *b >= 0x80)) {
        return;
    }
    let mut present = [false; 256];
    for b in bytes {
        if let Some(seen) = present.get_mut(usize::from(*b)) {
            *seen = true;
        }
    }
    let present: Vec<u8> = (0..=255u8).zip(present).filter_map(|(b, seen)| seen.then_some(b)).collect();
    // The key that gives text gives nothing but text.
    let text = |b: u8| (0x20..0x7F).contains(&b) || b.is_ascii_whitespace();
    if present.len() > 100 {
        return;
    }
    for key in 1..=255u8 {
        if bytes.len() > budget.xor {
            return;
        }
        if present.iter().all(|b| text(b ^ key)) {
            budget.xor -= bytes.len();
            let plain: Vec<u8> = bytes.iter().map(|b| b ^ key).collect();
            visit(&plain, Encoding::Xor, (0, bytes.len()), budget);
        }
    }
}
