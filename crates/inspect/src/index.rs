//! Fixed-width windows of remembered text, found in one pass over another text.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Filter bits per window. With eight, an unknown byte passes the filter in one of eight cases at most.
const BITS_PER_WINDOW: usize = 8;
/// Smallest and largest size of the filter, in bits, as powers of two (1 KiB to 256 KiB).
const FILTER_SIZE: (u32, u32) = (13, 21);

/// Where a window stands: item and offset in the item's folded text.
pub(crate) type Place = (u32, u32);

/// How a kind of text is cut into windows: a run of `width + stride - 1` common bytes is always found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// 8 to 16.
    pub(crate) width: usize,
    pub(crate) stride: usize,
}

/// Keyed per map, because servers choose what is put in; fast, because a long text is thousands of windows.
type Map = HashMap<u128, Place, RandomState>;

/// Windows of several kinds of text, by their exact bytes. The filter knows only the last eight bytes of each window, so
/// that one look per byte serves all kinds.
pub(crate) struct Index<const KINDS: usize> {
    cuts: [Cut; KINDS],
    maps: [Map; KINDS],
    filter: Vec<u64>,
    /// log2 of the filter's bits.
    bits: u32,
    /// Windows inserted since the filter was built, removed ones included.
    filled: usize,
}

impl<const KINDS: usize> Index<KINDS> {
    pub(crate) fn new(cuts: [Cut; KINDS]) -> Self {
        Self { cuts, maps: std::array::from_fn(|_| Map::default()), filter: Vec::new(), bits: 0, filled: 0 }
    }

    pub(crate) fn cut(&self, kind: usize) -> Cut {
        self.cuts.get(kind).copied().unwrap_or(Cut { width: 16, stride: 1 })
    }

    fn windows<'t>(&self, kind: usize, text: &'t [u8]) -> impl Iterator<Item = (u32, u128)> + use<'t, KINDS> {
        let cut = self.cut(kind);
        let windows = text.windows(cut.width).enumerate().step_by(cut.stride);
        windows.map(|(at, w)| (at as u32, w.iter().fold(0u128, |key, b| key << 8 | u128::from(*b))))
    }

    pub(crate) fn insert(&mut self, kind: usize, item: u32, text: &[u8]) {
        let windows = self.windows(kind, text);
        let more = text.len() / self.cut(kind).stride;
        let room = BITS_PER_WINDOW * (self.filled + more) <= 1 << self.bits;
        if self.filter.is_empty() || !room {
            self.rebuild(more);
        }
        for (at, key) in windows {
            set(&mut self.filter, self.bits, key as u64);
            self.filled += 1;
            if let Some(map) = self.maps.get_mut(kind) {
                map.insert(key, (item, at));
            }
        }
    }

    pub(crate) fn remove(&mut self, kind: usize, item: u32, text: &[u8]) {
        let windows = self.windows(kind, text);
        let Some(map) = self.maps.get_mut(kind) else { return };
        for (_, key) in windows {
            // Another item may have taken the window over.
            if map.get(&key).is_some_and(|(owner, _)| *owner == item) {
                map.remove(&key);
            }
        }
    }

    /// Builds the filter anew, with room for twice what is there.
    fn rebuild(&mut self, more: usize) {
        let windows = self.maps.iter().map(HashMap::len).sum::<usize>();
        let bits = ((windows + more) * 2 * BITS_PER_WINDOW).next_power_of_two().ilog2();
        self.bits = bits.clamp(FILTER_SIZE.0, FILTER_SIZE.1);
        self.filter.clear();
        self.filter.resize(1 << (self.bits - 6), 0);
        self.filled = windows;
        for key in self.maps.iter().flat_map(HashMap::keys) {
            set(&mut self.filter, self.bits, *key as u64);
        }
    }

    /// Every place where a window of `text` is known, of the first `kinds` kinds: `(kind, end of the window in text,
    /// place)`, in order.
    pub(crate) fn find(&self, text: &[u8], kinds: usize, mut visit: impl FnMut(usize, usize, Place)) {
        if self.maps.iter().take(kinds).all(HashMap::is_empty) {
            return;
        }
        let mut key = 0u128;
        for (i, b) in text.iter().enumerate() {
            key = key << 8 | u128::from(*b);
            if !has(&self.filter, self.bits, key as u64) {
                continue;
            }
            for (kind, (map, cut)) in self.maps.iter().zip(&self.cuts).take(kinds).enumerate() {
                let window = key & u128::MAX >> (128 - 8 * cut.width);
                if i + 1 >= cut.width
                    && let Some(place) = map.get(&window)
                {
                    visit(kind, i + 1, *place);
                }
            }
        }
    }
}

/// Word and bit of the filter. Only a filter: a forged collision costs one look into the (keyed) maps.
fn bit(bits: u32, key: u64) -> (usize, u32) {
    let bit = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits);
    ((bit >> 6) as usize, (bit & 63) as u32)
}

fn set(filter: &mut [u64], bits: u32, key: u64) {
    let (word, bit) = bit(bits, key);
    if let Some(word) = filter.get_mut(word) {
        *word |= 1 << bit;
    }
}

fn has(filter: &[u64], bits: u32, key: u64) -> bool {
    let (word, bit) = bit(bits, key);
    filter.get(word).is_some_and(|w| w >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUTS: [Cut; 2] = [Cut { width: 8, stride: 4 }, Cut { width: 16, stride: 8 }];

    fn found(index: &Index<2>, text: &[u8]) -> Vec<(usize, usize, Place)> {
        let mut out = Vec::new();
        index.find(text, 2, |kind, end, place| out.push((kind, end, place)));
        out
    }

    #[test]
    fn windows_come_and_go() {
        let mut index = Index::new(CUTS);
        index.insert(0, 1, b"0123456789abcdef");
        assert_eq!(found(&index, b"xx456789abxx"), [(0, 10, (1, 4))]);
        index.insert(0, 2, b"456789ab");
        assert_eq!(found(&index, b"456789ab"), [(0, 8, (2, 0))]);
        index.remove(0, 1, b"0123456789abcdef");
        assert_eq!(found(&index, b"0123456789ab"), [(0, 12, (2, 0))]);
        index.remove(0, 2, b"456789ab");
        assert_eq!(found(&index, b"0123456789abcdef"), []);
    }

    #[test]
    fn the_filter_grows_and_forgets_nothing() {
        let mut index = Index::new(CUTS);
        let text = |i: u32| format!("{i:08x}{:08x}", i.wrapping_mul(2_654_435_761));
        for i in 0..20_000 {
            index.insert(0, i, text(i).as_bytes());
            if i >= 5000 {
                index.remove(0, i - 5000, text(i - 5000).as_bytes());
            }
        }
        for i in 15_000..20_000 {
            assert!(found(&index, text(i).as_bytes()).iter().any(|(_, _, (item, _))| *item == i), "{i}");
        }
        assert!(index.filter.len() <= 1 << (FILTER_SIZE.1 - 6));
    }

    proptest::proptest! {
        #[test]
        fn a_long_enough_common_run_is_found(
            item in proptest::collection::vec(0u8..4, 40..100),
            at in 0usize..17,
            before in proptest::collection::vec(5u8..9, 0..20),
        ) {
            let mut index = Index::new(CUTS);
            index.insert(1, 7, &item);
            let mut text = before;
            text.extend_from_slice(&item[at..at + 23]);
            proptest::prop_assert!(!found(&index, &text).is_empty());
        }
    }
}
