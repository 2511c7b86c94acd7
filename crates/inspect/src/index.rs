//! Fixed-width windows of remembered text, found in one pass over another text.
//!
//! A window costs 12 bytes in a table that holds no text: what a place stands for is compared by whoever has the text.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// Filter bits per window, of which each sets four in one word: with sixteen, an unknown byte passes the filter in one of 120 cases at
/// most (as long as the filter may grow), and far more seldom just after the filter was built. What passes costs a look into each table, far apart in memory.
const BITS_PER_WINDOW: usize = 16;
/// Smallest and largest size of the filter, in bits, as powers of two (1 KiB to 1 MiB).
const FILTER_SIZE: (u32, u32) = (13, 23);
/// The filter knows the last bytes of each window, so that one look per byte serves all kinds, and both directions.
pub(crate) const FILTERED: usize = 6;

/// Places of a text that are looked at before any of its windows is; a power of two, so that none is out of bounds. And bytes of the text
/// that are looked at for them, eight at a time.
const STRETCH: usize = 64;
const READ: usize = STRETCH + 7;

/// Where a window stands: item and offset in the item's folded text.
pub(crate) type Place = (u32, u32);

/// How a kind of text is cut into windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// 6 to 16.
    pub(crate) width: usize,
    /// From one window to the next: a run of `width + stride - 1` common bytes is always found. Without it there is one window, the last:
    /// only all of a text is found.
    pub(crate) stride: Option<usize>,
}

/// A place under the hash of its window.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    item: u32,
    at: u32,
}

/// What stands for a slot in which nothing was put, and for one of a removed place. Others have eight bits of their tag.
const EMPTY: u8 = 0;
const GONE: u8 = 1;

fn mark(tag: u32) -> u8 {
    (tag as u8).max(GONE + 1)
}

/// Open addressing with linear steps (Knuth, TAOCP 6.4). Tags are of a keyed hash, because servers choose what is put in.
#[derive(Default)]
struct Table {
    /// One for each slot, beside each other: most searches end here, and this is what fits into a processor's caches.
    marks: Vec<u8>,
    slots: Vec<Slot>,
    /// Slots that are not empty, those of removed places included.
    used: usize,
    live: usize,
}

impl Table {
    /// Where the search for a tag begins.
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.marks.len() as u64) >> 32) as usize
    }

    /// The places under a tag, with the numbers of their slots. Written out, because this is what a call costs most where much is remembered.
    fn each(&self, tag: u32, mut visit: impl FnMut(usize, Place)) {
        let (home, wanted) = (self.home(tag), mark(tag));
        let (before, after) = self.marks.split_at_checked(home).unwrap_or_default();
        for (from, marks) in [(home, after), (0, before)] {
            for (number, mark) in (from..).zip(marks) {
                if *mark == EMPTY {
                    return;
                }
                if *mark == wanted
                    && let Some(slot) = self.slots.get(number).filter(|slot| slot.tag == tag)
                {
                    visit(number, (slot.item, slot.at));
                }
            }
        }
    }

    /// Puts a place in, instead of one of the `same` window where there are `most` already. Of the windows of one item the first stays: a
    /// text that repeats itself is then known from its start.
    fn insert(&mut self, new: Slot, most: usize, same: impl Fn(Place) -> bool) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let (mut free, mut known, mut alike) = (None, None, 0);
        let (mut end, wanted) = (self.home(new.tag), mark(new.tag));
        // Some slot is empty.
        while let Some(mark) = self.marks.get(end).filter(|mark| **mark != EMPTY) {
            if *mark == GONE {
                free = free.or(Some(end));
            } else if *mark == wanted
                && let Some(slot) = self.slots.get(end).filter(|slot| slot.tag == new.tag)
                && same((slot.item, slot.at))
            {
                if slot.item == new.item {
                    return;
                }
                alike += 1;
                if alike == most {
                    known = Some(end);
                    break;
                }
            }
            end = if end + 1 < self.marks.len() { end + 1 } else { 0 };
        }
        if known.is_none() {
            self.live += 1;
            self.used += usize::from(free.is_none());
        }
        let number = known.or(free).unwrap_or(end);
        if let (Some(mark), Some(slot)) = (self.marks.get_mut(number), self.slots.get_mut(number)) {
            (*mark, *slot) = (wanted, new);
        }
    }

    fn remove(&mut self, tag: u32, place: Place) {
        let mut found = None;
        self.each(tag, |number, other| found = found.or((other == place).then_some(number)));
        if let Some(mark) = found.and_then(|number| self.marks.get_mut(number)) {
            *mark = GONE;
            self.live -= 1;
        }
    }

    /// Makes room, or only clears what is gone.
    fn grow(&mut self) {
        let size = (self.live * 2).next_power_of_two().max(64);
        let marks = std::mem::replace(&mut self.marks, vec![EMPTY; size]);
        let slots = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        (self.used, self.live) = (0, 0);
        for (_, slot) in marks.into_iter().zip(slots).filter(|(mark, _)| *mark > GONE) {
            self.insert(slot, 1, |_| false);
        }
    }
}

/// Windows of several kinds of text.
pub(crate) struct Index<const KINDS: usize> {
    cuts: [Cut; KINDS],
    tables: [Table; KINDS],
    keys: RandomState,
    filter: Vec<u64>,
    /// log2 of the filter's bits.
    bits: u32,
    /// Windows that the filter was told of, removed ones included.
    filled: usize,
}

/// The windows of a text: their offsets and their bytes.
fn windows(cut: Cut, text: &[u8]) -> impl Iterator<Item = (u32, u128)> {
    let first = cut.stride.map_or_else(|| text.len().saturating_sub(cut.width), |_| 0);
    let ends = first + cut.width..=text.len();
    let bytes = u128::MAX >> (128 - 8 * cut.width);
    ends.step_by(cut.stride.unwrap_or(1)).filter_map(move |end| {
        let window = before(text, end)? & bytes;
        Some(((end - cut.width) as u32, window))
    })
}

/// The last bytes of a text before a place as a number, as many as the widest window has; the last come last.
#[inline]
fn before(text: &[u8], end: usize) -> Option<u128> {
    let before = text.get(..end)?;
    Some(match before.last_chunk() {
        Some(widest) => u128::from_be_bytes(*widest),
        None => before.iter().fold(0, |number, b| number << 8 | u128::from(*b)),
    })
}

/// What the filter knows of a window.
fn last(window: u128) -> u64 {
    window as u64 & (u64::MAX >> REST)
}

impl<const KINDS: usize> Index<KINDS> {
    pub(crate) fn new(cuts: [Cut; KINDS]) -> Self {
        let tables = std::array::from_fn(|_| Table::default());
        Self { cuts, tables, keys: RandomState::default(), filter: Vec::new(), bits: 0, filled: 0 }
    }

    pub(crate) fn cut(&self, kind: usize) -> Cut {
        self.cuts.get(kind).copied().unwrap_or(Cut { width: 16, stride: None })
    }

    /// How many windows a text of this length has.
    pub(crate) fn count(&self, kind: usize, length: usize) -> usize {
        let cut = self.cut(kind);
        let all = (length + 1).saturating_sub(cut.width);
        cut.stride.map_or(all.min(1), |stride| all.div_ceil(stride))
    }

    fn tag(&self, window: u128) -> u32 {
        (self.keys.hash_one(window) >> 32) as u32
    }

    /// Puts a text in. `same` says whether a place that is there holds these bytes, too: of equal windows the last stays, or so many.
    /// False when the filter is full: [`Index::refilter`] is due.
    #[must_use]
    pub(crate) fn insert(
        &mut self,
        kind: usize,
        item: u32,
        text: &[u8],
        most: usize,
        same: impl Fn(Place, &[u8]) -> bool,
    ) -> bool {
        let cut = self.cut(kind);
        for (at, window) in windows(cut, text) {
            let tag = self.tag(window);
            // What the filter knows already does not fill it.
            if !has(&self.filter, self.bits, last(window)) {
                set(&mut self.filter, self.bits, last(window));
                self.filled += 1;
            }
            let Some(table) = self.tables.get_mut(kind) else { continue };
            let bytes = text.get(at as usize..at as usize + cut.width).unwrap_or_default();
            let own = |at: u32| text.get(at as usize..).is_some_and(|t| t.starts_with(bytes));
            table.insert(
                Slot { tag, item, at },
                most,
                |place| if place.0 == item { own(place.1) } else { same(place, bytes) },
            );
        }
        BITS_PER_WINDOW * self.filled <= 1 << self.bits
    }

    pub(crate) fn remove(&mut self, kind: usize, item: u32, text: &[u8]) {
        for (at, window) in windows(self.cut(kind), text) {
            let tag = self.tag(window);
            if let Some(table) = self.tables.get_mut(kind) {
                table.remove(tag, (item, at));
            }
        }
    }

    /// Builds the filter anew from all texts, with room for twice what is there.
    pub(crate) fn refilter<'t>(&mut self, texts: impl Iterator<Item = (usize, &'t [u8])>) {
        let count = self.tables.iter().map(|t| t.live).sum::<usize>();
        let bits = (count * 2 * BITS_PER_WINDOW).next_power_of_two().ilog2();
        self.bits = bits.clamp(FILTER_SIZE.0, FILTER_SIZE.1);
        self.filter.clear();
        self.filter.resize(1 << (self.bits - 6), 0);
        // A filter that may not grow is not built for every text.
        self.filled = if bits > FILTER_SIZE.1 { 0 } else { count };
        for (kind, text) in texts {
            let cut = self.cut(kind);
            for (_, window) in windows(cut, text) {
                set(&mut self.filter, self.bits, last(window));
            }
        }
    }

    /// The ends of those stretches of a text, from `from` on, that a window may end with, forwards or backwards: there the text has to be
    /// looked at.
    pub(crate) fn ends(&self, text: &[u8], from: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        if self.filter.is_empty() {
            return ends;
        }
        for at in (from..(text.len() + 1).saturating_sub(FILTERED)).step_by(STRETCH) {
            // Those that pass the filter are noted first: no step asks a processor to guess.
            let (mut places, mut many) = ([0u8; STRETCH], 0);
            let mut look = |stretch: &[u8; READ], place: usize| {
                let eight = stretch.get(place..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
                places[many % STRETCH] = place as u8;
                many += usize::from(has(&self.filter, self.bits, u64::from_be_bytes(eight) >> REST));
            };
            let rest = text.get(at..).unwrap_or_default();
            match rest.first_chunk() {
                Some(stretch) => (0..STRETCH).for_each(|place| look(stretch, place)),
                None => {
                    let mut stretch = [0; READ];
                    stretch.iter_mut().zip(rest).for_each(|(slot, b)| *slot = *b);
                    (0..(rest.len() + 1 - FILTERED).min(STRETCH)).for_each(|place| look(&stretch, place));
                }
            }
            ends.extend(places.iter().take(many).map(|place| at + usize::from(*place) + FILTERED));
        }
        ends
    }

    /// Every place from `from` on where a window of `text` may be known, of these kinds: `(kind, end of the window in text, place)`, in
    /// order. `visit` says from where on windows of that kind are wanted.
    pub(crate) fn find(
        &self,
        text: &[u8],
        from: usize,
        kinds: &[usize],
        visit: impl FnMut(usize, usize, Place) -> usize,
    ) {
        if self.tables.iter().enumerate().any(|(kind, table)| table.live > 0 && kinds.contains(&kind)) {
            self.find_at(text, from, self.ends(text, from).into_iter(), kinds, visit);
        }
    }

    /// The same, of windows with these ends.
    pub(crate) fn find_at(
        &self,
        text: &[u8],
        from: usize,
        ends: impl Iterator<Item = usize>,
        kinds: &[usize],
        mut visit: impl FnMut(usize, usize, Place) -> usize,
    ) {
        let used = |kind: &usize| {
            let (table, width) = (self.tables.get(*kind).filter(|table| table.live > 0)?, self.cut(*kind).width);
            Some((*kind, table, width, u128::MAX >> (128 - 8 * width)))
        };
        let used: [_; KINDS] = std::array::from_fn(|n| kinds.get(n).and_then(used));
        let mut wanted = [from; KINDS];
        for end in ends {
            let Some(widest) = before(text, end) else { continue };
            let mut hashed: Option<(usize, u32)> = None;
            for ((kind, table, width, bytes), wanted) in used.iter().flatten().zip(&mut wanted) {
                if end < *wanted + width {
                    continue;
                }
                let tag = hashed.filter(|(of, _)| of == width).map_or_else(|| self.tag(widest & bytes), |(_, tag)| tag);
                hashed = Some((*width, tag));
                table.each(tag, |_, place| *wanted = visit(*kind, end, place).max(*wanted));
            }
        }
    }
}

/// Bits of a number of eight bytes that the filter does not look at.
const REST: usize = 64 - 8 * FILTERED;

/// Two of a word's bits, of which each window sets two pairs. A table, because it is quicker than moving bits twice.
const PAIRS: [u64; 256] = {
    let mut pairs = [0; 256];
    let mut number = 0;
    while number < pairs.len() {
        let first = number % 64;
        // The second is one to 63 bits behind it.
        let second = (first + 1 + number / 64 * 16 + first % 15) % 64;
        pairs[number] = 1 << first | 1 << second;
        number += 1;
    }
    pairs
};

/// Word of the filter, and four bits in it, for as many bytes as it knows and for the same backwards. Only a filter: a forged collision costs
/// one look into the (keyed) tables.
#[inline]
fn bits_of(bits: u32, key: u64) -> (usize, u64) {
    let either = key.min(key.swap_bytes() >> REST);
    let spread = either.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let pair = |at: u32| PAIRS.get(usize::from((spread >> at) as u8)).copied().unwrap_or_default();
    ((spread >> (64 - bits.max(7) + 6)) as usize, pair(34) | pair(26))
}

fn set(filter: &mut [u64], bits: u32, key: u64) {
    let (word, mask) = bits_of(bits, key);
    if let Some(word) = filter.get_mut(word) {
        *word |= mask;
    }
}

#[inline]
fn has(filter: &[u64], bits: u32, key: u64) -> bool {
    let (word, mask) = bits_of(bits, key);
    filter.get(word).is_some_and(|w| w & mask == mask)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CUTS: [Cut; 3] =
        [Cut { width: 8, stride: Some(4) }, Cut { width: 16, stride: Some(8) }, Cut { width: 8, stride: None }];

    /// An index and the texts that it does not hold.
    struct Known {
        index: Index<3>,
        texts: BTreeMap<u32, (usize, Vec<u8>)>,
    }

    impl Known {
        fn new() -> Self {
            Self { index: Index::new(CUTS), texts: BTreeMap::new() }
        }

        fn insert(&mut self, kind: usize, item: u32, text: &[u8]) {
            let texts = &self.texts;
            let same = |(item, at): Place, bytes: &[u8]| {
                texts.get(&item).is_some_and(|(_, t)| t.get(at as usize..).is_some_and(|t| t.starts_with(bytes)))
            };
            let room = self.index.insert(kind, item, text, if kind == 2 { 9 } else { 1 }, same);
            self.texts.insert(item, (kind, text.to_vec()));
            if !room {
                self.index.refilter(self.texts.values().map(|(kind, text)| (*kind, text.as_slice())));
            }
        }

        fn remove(&mut self, item: u32) {
            let (kind, text) = self.texts.remove(&item).unwrap();
            self.index.remove(kind, item, &text);
        }

        fn found(&self, text: &[u8]) -> Vec<(usize, usize, Place)> {
            let mut out = Vec::new();
            self.index.find(text, 0, &[0, 1, 2], |kind, end, place| {
                out.push((kind, end, place));
                0
            });
            out
        }
    }

    #[test]
    fn windows_come_and_go() {
        let mut known = Known::new();
        known.insert(0, 1, b"0123456789abcdef");
        assert_eq!(known.found(b"xx456789abxx"), [(0, 10, (1, 4))]);
        known.insert(0, 2, b"456789ab");
        assert_eq!(known.found(b"456789ab"), [(0, 8, (2, 0))]);
        known.remove(1);
        assert_eq!(known.found(b"0123456789ab"), [(0, 12, (2, 0))]);
        known.remove(2);
        assert_eq!(known.found(b"0123456789abcdef"), []);
    }

    #[test]
    fn a_last_window_says_where_a_text_may_end() {
        let mut known = Known::new();
        known.insert(2, 1, b"sk-0123456789");
        known.insert(2, 2, b"0123456789");
        known.insert(2, 3, b"seven77");
        assert_eq!(known.found(b"sk-0123456789-0123456780"), [(2, 13, (1, 5)), (2, 13, (2, 2))]);
        known.remove(1);
        assert_eq!(known.found(b"xx0123456789"), [(2, 12, (2, 2))]);
        assert_eq!(known.found(b"sk-01234567 3456789"), []);
        assert_eq!((known.index.count(2, 7), known.index.count(2, 8), known.index.count(2, 100)), (0, 1, 1));
    }

    #[test]
    fn it_grows_and_forgets_nothing() {
        let mut known = Known::new();
        let text = |i: u32| format!("{i:08x}{:08x}", i.wrapping_mul(2_654_435_761));
        for i in 0..20_000 {
            known.insert(0, i, text(i).as_bytes());
            if i >= 5000 {
                known.remove(i - 5000);
            }
        }
        for i in 15_000..20_000 {
            assert!(known.found(text(i).as_bytes()).iter().any(|(_, _, (item, _))| *item == i), "{i}");
        }
        assert_eq!(known.index.tables[0].live, 15_000);
        assert!(known.index.tables[0].slots.len() <= 1 << 16, "removed places are cleared");
        assert!(known.index.filter.len() <= 1 << 14);
    }

    #[test]
    fn few_unknown_bytes_pass_the_filter() {
        let (bits, mut filter) = (16, vec![0; 1 << 10]);
        let mut state = 7u64;
        let mut key = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> REST
        };
        (0..(1 << bits) / BITS_PER_WINDOW).for_each(|_| set(&mut filter, bits, key()));
        let passed = (0..100_000).filter(|_| has(&filter, bits, key())).count();
        assert!((500..1000).contains(&passed), "{passed}");
    }

    #[test]
    fn one_window_many_times_is_one_place() {
        let mut known = Known::new();
        known.insert(0, 1, &[b'a'; 100_000]);
        known.insert(0, 2, &[b'a'; 100_000]);
        assert_eq!(known.index.tables[0].live, 1);
        assert_eq!(known.index.count(0, 8), 1);
        assert_eq!(known.index.count(0, 12), 2);
        assert_eq!(known.index.count(0, 7), 0);
    }

    proptest::proptest! {
        #[test]
        fn a_long_enough_common_run_is_found(
            item in proptest::collection::vec(0u8..4, 40..100),
            at in 0usize..17,
            before in proptest::collection::vec(5u8..9, 0..20),
        ) {
            let mut known = Known::new();
            known.insert(1, 7, &item);
            let mut text = before;
            text.extend_from_slice(&item[at..at + 23]);
            proptest::prop_assert!(!known.found(&text).is_empty());
        }

        #[test]
        fn what_is_found_forwards_is_found_backwards(
            item in proptest::collection::vec(0u8..4, 16..60),
            before in proptest::collection::vec(5u8..9, 0..20),
            after in proptest::collection::vec(5u8..9, 0..20),
        ) {
            let mut known = Known::new();
            (0..3).for_each(|kind| known.insert(kind, kind as u32, &item));
            let text = [before, item, after].concat();
            let back: Vec<u8> = text.iter().rev().copied().collect();
            let ends: Vec<usize> =
                known.index.ends(&back, 0).into_iter().rev().map(|end| text.len() + FILTERED - end).collect();
            let mut found = Vec::new();
            known.index.find_at(&text, 0, ends.into_iter(), &[0, 1, 2], |kind, end, place| {
                found.push((kind, end, place));
                0
            });
            proptest::prop_assert_eq!(found, known.found(&text));
        }
    }
}
