//! Fixed-width windows of remembered text, found in one pass over another text.

use std::collections::HashMap;

/// Bits of the filter that keeps ordinary text away from the map.
const FILTER_BITS: u32 = 16;

/// Where a window stands: item and offset in the item's folded text.
pub(crate) type Place = (u32, u32);

/// Windows of `width` bytes (at most 16), by their exact bytes.
#[derive(Default)]
pub(crate) struct Index {
    width: u32,
    stride: usize,
    map: HashMap<u128, Place>,
    filter: Vec<u64>,
    /// Windows removed since the filter was built.
    stale: usize,
}

impl Index {
    /// Windows of `width` bytes at every `stride`th byte: a run of `width + stride - 1` common bytes is always found.
    pub(crate) fn new(width: u32, stride: usize) -> Self {
        Self { width: width.min(16), stride: stride.max(1), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    fn mask(&self) -> u128 {
        u128::MAX >> (128 - 8 * self.width)
    }

    fn windows<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (u32, u128)> + use<'t> {
        let width = self.width as usize;
        text.windows(width)
            .enumerate()
            .step_by(self.stride)
            .map(|(at, w)| (at as u32, w.iter().fold(0u128, |key, b| key << 8 | u128::from(*b))))
    }

    pub(crate) fn insert(&mut self, item: u32, text: &[u8]) {
        if self.filter.is_empty() {
            self.filter = vec![0; 1 << (FILTER_BITS - 6)];
        }
        for (at, key) in self.windows(text) {
            set(&mut self.filter, key);
            self.map.insert(key, (item, at));
        }
    }

    pub(crate) fn remove(&mut self, item: u32, text: &[u8]) {
        for (_, key) in self.windows(text) {
            // Another item may have taken the window over.
            if self.map.get(&key).is_some_and(|(owner, _)| *owner == item) {
                self.map.remove(&key);
                self.stale += 1;
            }
        }
        if self.stale > self.map.len() + 1024 {
            self.filter.fill(0);
            for key in self.map.keys() {
                set(&mut self.filter, *key);
            }
            self.stale = 0;
        }
    }

    /// Every place where a window of `text` is known: `(end of the window in text, place)`, in order.
    pub(crate) fn find(&self, text: &[u8], mut visit: impl FnMut(usize, Place)) {
        if self.map.is_empty() {
            return;
        }
        let (mask, width) = (self.mask(), self.width as usize);
        let mut key = 0u128;
        for (i, b) in text.iter().enumerate() {
            key = (key << 8 | u128::from(*b)) & mask;
            if i + 1 >= width
                && has(&self.filter, key)
                && let Some(place) = self.map.get(&key)
            {
                visit(i + 1, *place);
            }
        }
    }
}

/// Which bit of the filter. Only a filter: a forged collision costs one look into the (keyed) map.
fn bit(key: u128) -> usize {
    let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - FILTER_BITS)) as usize
}

fn set(filter: &mut [u64], key: u128) {
    let bit = bit(key);
    if let Some(word) = filter.get_mut(bit >> 6) {
        *word |= 1 << (bit & 63);
    }
}

fn has(filter: &[u64], key: u128) -> bool {
    let bit = bit(key);
    filter.get(bit >> 6).is_some_and(|word| word >> (bit & 63) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &Index, text: &[u8]) -> Vec<(usize, Place)> {
        let mut out = Vec::new();
        index.find(text, |end, place| out.push((end, place)));
        out
    }

    #[test]
    fn windows_come_and_go() {
        let mut index = Index::new(8, 4);
        index.insert(1, b"0123456789abcdef");
        assert_eq!(found(&index, b"xx456789abxx"), [(10, (1, 4))]);
        index.insert(2, b"456789ab");
        assert_eq!(found(&index, b"456789ab"), [(8, (2, 0))]);
        index.remove(1, b"0123456789abcdef");
        assert_eq!(found(&index, b"0123456789ab"), [(12, (2, 0))]);
        index.remove(2, b"456789ab");
        assert!(index.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn a_long_enough_common_run_is_found(
            item in proptest::collection::vec(0u8..4, 40..100), at in 0usize..17, before in proptest::collection::vec(5u8..9, 0..20),
        ) {
            let mut index = Index::new(16, 8);
            index.insert(7, &item);
            let mut text = before;
            text.extend_from_slice(&item[at..at + 23]);
            proptest::prop_assert!(!found(&index, &text).is_empty());
        }
    }
}
