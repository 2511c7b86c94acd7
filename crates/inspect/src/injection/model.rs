//! A linear model over hashed n-grams: does a stretch of text talk to the agent that reads it?
//!
//! Words (1 to 3 in a row), characters (3 to 5 in a row) and classes of words (1 to 5 in a row, with the signs between them) of
//! normalised text each add a weight. Text is cut into blocks;
//! neighbouring blocks make windows, and the window with the highest score counts. Each byte is looked at once, so cost is
//! linear. How the weights were made: `examples/train.rs`; what they were made from and are good for: `docs/model-card.md`.

use super::classes::{self, Row5, Word};
use crate::weights::{Weights, WeightsError};

/// log2 of the number of weights.
pub const BITS: u32 = 20;
/// Bytes of normalised text in a block.
pub const BLOCK: usize = 150;
/// Blocks in a window: about a sentence, and the 600 characters that a paragraph has.
pub const WINDOWS: [usize; 2] = [2, 4];

/// Characters are looked at in so many rounds, each at every fourth place.
const PLACES: usize = 4;
/// The rounds: the place that each begins at, and how far below the floor a window may be by all that was seen so far. In long texts the
/// floor is what the best window looked at reaches; the figures are without that. Of the
/// 28 716 windows of the development corpora that reach the floor, 160 are lower by a quarter of their places and 145 by half
/// of them; of the others 7 % and 4 % come so near. Of 4,547 texts with such a window, the first two rounds lose 41 and all
/// four 58.
const ROUNDS: [(usize, f32); PLACES] = [(0, 2.5), (2, 2.0), (1, 1.75), (3, 1.5)];
/// Blocks of a text from which on the most promising windows are looked at alone, before the others go on; and of how many blocks one
/// such window is taken.
const MANY_BLOCKS: usize = 16;
const STRETCH: usize = 128;
/// What the mean of the looked-at characters is multiplied with for a window: the root of so many times its bytes.
const PER_BYTE: f32 = 3.55;

const MAGIC: &[u8; 4] = b"FDI2";

/// Visits the features of a stretch of normalised text.
pub fn features(text: &[u8], mut visit: impl FnMut(usize)) {
    (0..PLACES).for_each(|first| characters(text, first, &mut visit));
    edges(text, &mut visit);
    words(text, &mut visit);
}

/// Visits the characters at every fourth place from `first` on: three, four and five of them, with the same end.
#[inline]
fn characters(text: &[u8], first: usize, visit: &mut impl FnMut(usize)) {
    let mut add = |key: u64| {
        visit(slot(key & 0xFF_FFFF, 1));
        visit(slot(key & 0xFFFF_FFFF, 2));
        visit(slot(key, 3));
    };
    let mut rest = text.get(first..).unwrap_or_default();
    while let Some(eight) = rest.first_chunk() {
        add(u64::from_be_bytes(*eight) >> 24);
        rest = rest.get(PLACES..).unwrap_or_default();
    }
    // At most one place is left: seven bytes.
    if let Some(five) = rest.first_chunk::<5>() {
        add(five.iter().fold(0, |key, b| key << 8 | u64::from(*b)));
    }
}

/// Visits what [`characters`] leaves out: fewer than five at the start, and those that end with the blank after the text.
fn edges(text: &[u8], visit: &mut impl FnMut(usize)) {
    let key = |bytes: &[u8]| bytes.iter().fold(0, |key, b| key << 8 | u64::from(*b));
    if let Some(three) = text.first_chunk::<3>() {
        visit(slot(key(three), 1));
    }
    if let Some(four) = text.first_chunk::<4>() {
        visit(slot(key(four) & 0xFF_FFFF, 1));
        visit(slot(key(four), 2));
    }
    for (length, kind) in [(3, 1), (4, 2), (5, 3)] {
        if let Some(last) = text.len().checked_sub(length - 1).and_then(|from| text.get(from..)) {
            visit(slot(key(last) << 8 | u64::from(b' '), kind));
        }
    }
}

/// Visits words, one to three in a row, and rows of their classes and of the signs between them.
fn words(text: &[u8], visit: &mut impl FnMut(usize)) {
    let mut before = [0u64; 2];
    let mut classes = Row5::default();
    let mut rest = text;
    loop {
        let (word, length) = Word::first(rest);
        if length > 0 {
            let [first, second] = before;
            visit(slot(word.hash, 4));
            if second != 0 {
                let two = word.hash ^ second.rotate_left(21);
                visit(slot(two, 5));
                if first != 0 {
                    visit(slot(two ^ first.rotate_left(42), 6));
                }
            }
            before = [second, word.hash];
            classes.push(classes::of_word(&word), |row, length| visit(slot(row, 9 + length)));
        }
        let Some((sign, after)) = rest.get(length..).and_then(<[u8]>::split_first) else { return };
        rest = after;
        // Signs separate, however many of the same there are.
        let class = classes::of_sign(*sign);
        if *sign != b' ' && classes.last() != class {
            classes.push(class, |row, length| visit(slot(row, 9 + length)));
        }
    }
}

/// Multiplicative hashing (Knuth, TAOCP 6.4), with another multiplier for each kind.
#[inline]
fn slot(key: u64, kind: u64) -> usize {
    let spread =
        (key ^ key >> 29 ^ kind << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15u64.wrapping_add((kind << 33) | (2 * kind)));
    (spread >> (64 - BITS)) as usize
}

/// Where a text is cut into blocks: at most [`BLOCK`] bytes each, at a space where there is one.
pub fn blocks(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|r| !r.is_empty())?;
        let cut = if rest.len() <= BLOCK {
            rest.len()
        } else {
            let later = rest.get(BLOCK / 2..BLOCK)?;
            memchr::memrchr(b' ', later).map_or(BLOCK, |p| BLOCK / 2 + p + 1)
        };
        let block = (at, at + cut);
        at += cut;
        Some(block)
    })
}

/// The windows of a text of so many blocks: first block and the one after the last. Short texts are one window.
pub fn windows(blocks: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut narrower = 0;
    WINDOWS.into_iter().flat_map(move |width| {
        // A text that is too short for this width is one window, unless the narrower width has it whole.
        let starts = if blocks < width { usize::from(blocks > narrower) } else { blocks - width + 1 };
        narrower = width;
        (0..starts).map(move |start| (start, (start + width).min(blocks)))
    })
}

/// The weights.
#[derive(Clone, Debug)]
pub struct Model(Weights<{ 1 << BITS }>);

/// The best window of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Its log-odds.
    pub score: f32,
    /// Its bytes in the normalised text.
    pub span: (usize, usize),
}

impl Model {
    /// Quantises weights to a byte each.
    pub fn quantised(weights: &[f32], bias: f32) -> Self {
        Self(Weights::quantised(weights, bias))
    }

    /// Reads a file of weights.
    pub fn read(file: &'static [u8]) -> Result<Self, WeightsError> {
        Weights::read(file, MAGIC).map(Self)
    }

    /// The file that [`Model::read`] reads.
    pub fn file(&self) -> Vec<u8> {
        self.0.file(MAGIC)
    }

    /// The window of normalised text that talks to the agent most.
    pub fn best(&self, text: &str) -> Best {
        self.best_from(text, f32::NEG_INFINITY, |_| true)
    }

    /// As [`Model::best`] where some window reaches `floor`; else a window below it, or none. The characters are looked at in
    /// rounds, and after each only windows that come near the floor go on (`ROUNDS`); words come last. In a long text the
    /// windows that promise most after the first round are looked at as a whole, and what they reach is the floor from there on.
    ///
    /// Of a text of several blocks only windows that `counts` takes are seen: what is no sentence must not keep an order from being
    /// seen, however high it scores.
    pub fn best_from(&self, normal: &str, floor: f32, counts: impl Fn(&str) -> bool) -> Best {
        let text = normal.as_bytes();
        let counts = |(from, to): (usize, usize)| {
            counts(normal.get(normal.floor_char_boundary(from)..normal.floor_char_boundary(to)).unwrap_or_default())
        };
        if text.len() <= BLOCK {
            return self.only(text, floor);
        }
        let mut best = Best { score: f32::NEG_INFINITY, span: (0, 0) };
        let spans: Vec<(usize, usize)> = blocks(text).collect();
        let block = |(start, end): (usize, usize)| text.get(start..end).unwrap_or_default();
        let (mut open, mut seen) = (vec![true; spans.len()], vec![Sum::default(); spans.len()]);
        let mut first_round = spans.len() >= MANY_BLOCKS;
        for (first, within) in ROUNDS {
            for (seen, (_, span)) in seen.iter_mut().zip(open.iter().zip(&spans)).filter(|(_, (open, _))| **open) {
                *seen = self.characters(block(*span), first, *seen);
            }
            let promising = self.keep_near(&spans, &seen, &mut open, floor.max(best.score) - within);
            if std::mem::take(&mut first_round) {
                let promising = promising.into_iter().filter(|(promised, _)| *promised >= floor);
                let whole =
                    promising.map(|(_, window)| self.whole(text, &spans, window)).filter(|best| counts(best.span));
                best = whole.max_by(|one, other| one.score.total_cmp(&other.score)).unwrap_or(best);
                if best.score > floor {
                    self.keep_near(&spans, &seen, &mut open, best.score - within);
                }
            }
            if !open.contains(&true) {
                return best;
            }
        }
        for (seen, (_, span)) in seen.iter_mut().zip(open.iter().zip(&spans)).filter(|(_, (open, _))| **open) {
            *seen = self.rest(block(*span), *seen);
        }
        for (first, after) in windows(spans.len()) {
            if !open.get(first..after).unwrap_or_default().iter().all(|open| *open) {
                continue;
            }
            let sum = Sum::of(seen.get(first..after).unwrap_or_default());
            let score = self.score(sum);
            let span = (spans.get(first).map_or(0, |s| s.0), spans.get(after - 1).map_or(0, |s| s.1));
            if score > best.score && counts(span) {
                best = Best { score, span };
            }
        }
        best
    }

    /// One window, of which everything is looked at.
    fn whole(&self, text: &[u8], spans: &[(usize, usize)], (first, after): (usize, usize)) -> Best {
        let spans = spans.get(first..after).unwrap_or_default();
        let mut sum = Sum::default();
        for block in spans.iter().filter_map(|(start, end)| text.get(*start..*end)) {
            sum = ROUNDS.iter().fold(sum, |sum, (first, _)| self.characters(block, *first, sum));
            sum = self.rest(block, sum);
        }
        let span = (spans.first().map_or(0, |s| s.0), spans.last().map_or(0, |s| s.1));
        Best { score: self.score(sum), span }
    }

    /// As [`Model::best_from`], of a text that is one block. Most strings are.
    fn only(&self, text: &[u8], floor: f32) -> Best {
        let nothing = Best { score: f32::NEG_INFINITY, span: (0, 0) };
        if text.is_empty() {
            return nothing;
        }
        let mut seen = Sum::default();
        for (first, within) in ROUNDS {
            seen = self.characters(text, first, seen);
            if self.promises(seen, text.len()) < floor - within {
                return nothing;
            }
        }
        seen = self.rest(text, seen);
        Best { score: self.score(seen), span: (0, text.len()) }
    }

    /// Adds one round over the characters.
    // Each of these three is a loop that needs all registers.
    #[inline(never)]
    fn characters(&self, block: &[u8], first: usize, mut seen: Sum) -> Sum {
        characters(block, first, &mut |slot| seen.add(self.0.of(slot)));
        seen
    }

    /// Adds what the rounds over the characters leave out.
    #[inline(never)]
    fn rest(&self, block: &[u8], mut seen: Sum) -> Sum {
        edges(block, &mut |slot| seen.add(self.0.of(slot)));
        words(block, &mut |slot| seen.add(self.0.of(slot)));
        seen
    }

    fn score(&self, seen: Sum) -> f32 {
        self.0.score(seen.sum, seen.count)
    }

    /// What a window of so many bytes comes to, by what was seen of it.
    fn promises(&self, seen: Sum, bytes: usize) -> f32 {
        match seen.count {
            0 => f32::INFINITY,
            count => self.0.bias + self.0.scale * seen.sum as f32 / count as f32 * (bytes as f32 * PER_BYTE).sqrt(),
        }
    }

    /// Leaves those blocks open that belong to a window that comes to `floor` by what was seen of it. Windows with a block
    /// that was given up are given up. The windows that promise most, one of each stretch of blocks and width at most: what, and the
    /// first block and the one after the last. None without a floor.
    #[inline(never)]
    fn keep_near(
        &self,
        spans: &[(usize, usize)],
        seen: &[Sum],
        open: &mut Vec<bool>,
        floor: f32,
    ) -> Vec<(f32, (usize, usize))> {
        let mut most: Vec<(f32, (usize, usize))> = Vec::new();
        if floor == f32::NEG_INFINITY {
            return most;
        }
        // Sums and numbers of open blocks from the first on: those of a window are a difference.
        let (mut sum, mut many) = (Sum::default(), 0);
        let mut until = vec![(sum, many)];
        until.extend(seen.iter().zip(open.iter()).map(|(seen, open)| {
            sum = Sum::of(&[sum, *seen]);
            many += usize::from(*open);
            (sum, many)
        }));
        let mut near = vec![false; spans.len()];
        for (first, after) in windows(spans.len()) {
            let (Some(from), Some(to)) = (until.get(first), until.get(after)) else { continue };
            let (Some((start, _)), Some((_, end))) = (spans.get(first), spans.get(after - 1)) else { continue };
            if to.1 - from.1 != after - first {
                continue;
            }
            let promised = self.promises(to.0.without(from.0), end - start);
            if promised >= floor {
                near.get_mut(first..after).unwrap_or_default().fill(true);
                match most.last_mut().filter(|(_, (other, _))| other / STRETCH == first / STRETCH) {
                    Some(most) if most.0 >= promised => {}
                    Some(most) => *most = (promised, (first, after)),
                    None => most.push((promised, (first, after))),
                }
            }
        }
        *open = near;
        most
    }
}

/// Weights that were added up, and how many.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: i32,
    count: u32,
}

impl Sum {
    #[inline]
    fn add(&mut self, weight: i8) {
        self.sum += i32::from(weight);
        self.count += 1;
    }

    /// Of all together. The sum of a long text may wrap around; those of its windows do not.
    fn of(parts: &[Self]) -> Self {
        let both = |a: Self, b: &Self| Self { sum: a.sum.wrapping_add(b.sum), count: a.count.wrapping_add(b.count) };
        parts.iter().fold(Self::default(), both)
    }

    /// Of the rest of all.
    fn without(self, part: Self) -> Self {
        Self { sum: self.sum.wrapping_sub(part.sum), count: self.count.wrapping_sub(part.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_round_trip() {
        let mut weights = vec![0f32; 1 << BITS];
        features(b"please send it", |slot| weights[slot] = 2.0);
        let model = Model::quantised(&weights, -1.0);
        let again = Model::read(model.file().leak()).unwrap();
        let (a, b) = (model.best("please send it"), again.best("please send it"));
        assert_eq!(a, b);
        assert!(a.score > 1.0 && a.span == (0, 14));
        assert!(again.best("nothing of the kind").score < 0.0);
        assert!(again.best("").score == f32::NEG_INFINITY);
        for bad in [&b"FDI2"[..], b"", b"XXXX00000000", &model.file().leak()[..100]] {
            assert_eq!(Model::read(bad).err(), Some(WeightsError));
        }
    }

    #[test]
    fn the_window_is_found_in_a_long_text() {
        let mut weights = vec![-0.01f32; 1 << BITS];
        features(b"please send it", |slot| weights[slot] = 2.0);
        let model = Model::quantised(&weights, -1.0);
        let long = format!("{}please send it {}", "some words here ".repeat(200), "and others there ".repeat(200));
        let best = model.best(&long);
        assert!((best.span.0..best.span.1).contains(&3205), "{best:?}");
    }

    #[test]
    fn with_a_floor_the_best_of_what_counts_is_found() {
        let mut weights = vec![-0.01f32; 1 << BITS];
        features(b"please send it", |slot| weights[slot] = 1.0);
        features(b"zq/zq/zq", |slot| weights[slot] = 2.0);
        let model = Model::quantised(&weights, -1.0);
        let (order, decoy) = ("please send it ".repeat(20), "zq/zq/zq/zq/ ".repeat(40));
        for many in [60, 2000] {
            let filling = "some words here ".repeat(many);
            let text = format!("{filling}{decoy}{filling}{order}{filling}");
            let at = text.find("please").unwrap();
            let hit = |best: Best| best.span.0 < at + order.len() && at < best.span.1;
            let all = model.best_from(&text, 0.0, |_| true);
            assert!(!hit(all) && all == model.best(&text), "{many} {all:?}");
            let counted = model.best_from(&text, 0.0, |window| !window.contains("zq"));
            assert!(hit(counted) && counted.score > 0.0, "{many} {counted:?}");
            let none = model.best_from(&text, 0.0, |_| false);
            assert_eq!(none.score, f32::NEG_INFINITY, "{many}");
        }
    }

    #[test]
    fn each_byte_is_looked_at_once() {
        for n in [0usize, 1, 149, 150, 151, 10_000] {
            let text = vec![b'a'; n];
            let covered: usize = blocks(&text).map(|(s, e)| e - s).sum();
            assert_eq!(covered, n);
            let mut seen = 0;
            blocks(&text).for_each(|(s, e)| features(&text[s..e], |_| seen += 1));
            assert!(seen <= 11 * (n + 2), "{n} {seen}");
            let count = blocks(&text).count();
            assert!(windows(count).count() <= 2 * count.max(1));
        }
        for (count, want) in [(0, vec![]), (1, vec![(0, 1)]), (2, vec![(0, 2)]), (3, vec![(0, 2), (1, 3), (0, 3)])] {
            assert_eq!(windows(count).collect::<Vec<_>>(), want);
        }
    }
}
