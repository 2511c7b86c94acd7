//! Secrets that are combined with a key of a few bytes (XOR), again and again.
//!
//! Two bytes that are as far apart as the key is long have the same byte of it: combined with each other, they say what the two of the
//! secret do. So no key has to be guessed.

use crate::memory::Memory;

/// Longest key.
const MAX_KEY: usize = 8;
/// Longest part that is looked at, and how many secrets are looked for in it, the latest.
const MAX_BYTES: usize = 1024;
const MAX_SECRETS: usize = 128;
/// Shortest secret, and the bytes of it that a filter knows.
const MIN_SECRET: usize = 16;
const HEAD: usize = 3;

/// Hands on every secret that stands in `bytes` under some key: its number, and the length of its folded form.
pub(super) fn each(memory: &Memory, bytes: &[u8], visit: &mut dyn FnMut(u32, usize)) {
    if !(MIN_SECRET..=MAX_BYTES).contains(&bytes.len()) {
        return;
    }
    let secrets: Vec<_> = memory.latest_secrets(MAX_SECRETS).filter(|(_, item)| item.raw.len() >= MIN_SECRET).collect();
    if secrets.is_empty() {
        return;
    }
    let mut apart = Vec::with_capacity(bytes.len());
    for key in 1..=MAX_KEY {
        apart.clear();
        apart.extend(bytes.iter().zip(bytes.iter().skip(key)).map(|(a, b)| a ^ b));
        let mut heads = [0u64; 32];
        for head in apart.windows(HEAD) {
            let (word, bit) = place(head);
            if let Some(word) = heads.get_mut(word) {
                *word |= bit;
            }
        }
        for (id, item) in &secrets {
            let difference = || item.raw.iter().zip(item.raw.iter().skip(key)).map(|(a, b)| a ^ b);
            let mut head = [0; HEAD];
            head.iter_mut().zip(difference()).for_each(|(slot, b)| *slot = b);
            let (word, bit) = place(&head);
            if heads.get(word).is_none_or(|w| w & bit == 0) {
                continue;
            }
            let whole: Vec<u8> = difference().collect();
            if memchr::memmem::find(&apart, &whole).is_some() {
                visit(*id, item.folded.len());
            }
        }
    }
}

/// Word and bit of a filter.
fn place(head: &[u8]) -> (usize, u64) {
    let hash = head.iter().fold(0u32, |h, b| h << 8 | u32::from(*b)).wrapping_mul(0x9E37_79B1) >> 21;
    ((hash >> 6) as usize, 1 << (hash & 63))
}
