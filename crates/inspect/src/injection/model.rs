//! A linear model over hashed n-grams: does a stretch of text talk to the agent that reads it?
//!
//! Words (1 to 3 in a row), characters (3 to 5 in a row) and classes of words (1 to 5 in a row, with the signs between them) of
//! normalised text each add a weight. Text is cut into blocks;
//! neighbouring blocks make windows, and the window with the highest score counts. Each byte is looked at once, so cost is
//! linear. How the weights were made: `examples/train.rs`; what they were made from and are good for: `docs/model-card.md`.

use super::classes::{self, Row5};

/// log2 of the number of weights.
pub const BITS: u32 = 20;
/// Bytes of normalised text in a block.
pub const BLOCK: usize = 150;
/// Blocks in a window: about a sentence, and the 600 characters that a paragraph has.
pub const WINDOWS: [usize; 2] = [2, 4];

/// Rough looks: at the characters of every fourth place from the first on, and how far below the floor a window may be by all
/// that was seen so far. Of the 28 716 windows of the development corpora that reach the floor, 160 are lower by a quarter of
/// their places and 145 by half of them; of the others 7 % and 4 % come so near.
const ROUGH: [(usize, f32); 2] = [(0, 2.5), (2, 2.0)];
/// What the mean of the looked-at characters is multiplied with for a window: the root of so many times its bytes.
const PER_BYTE: f32 = 3.55;

/// Length of the file's head: magic, scale and bias as `f32`.
const HEAD: usize = 12;
const MAGIC: &[u8; 4] = b"FDI2";

/// Visits the features of a stretch of normalised text.
pub fn features(text: &[u8], mut visit: impl FnMut(usize)) {
    let mut recent = 0u64;
    let mut words = [0u64; 3];
    let mut word = 0u64;
    let mut count = 0u32;
    let mut classes = Row5::default();
    let mut start = 0;
    for (at, &b) in text.iter().chain(b" ").enumerate() {
        recent = recent << 8 | u64::from(b);
        count += 1;
        if count >= 3 {
            visit(slot(recent & 0xFF_FFFF, 1));
        }
        if count >= 4 {
            visit(slot(recent & 0xFFFF_FFFF, 2));
        }
        if count >= 5 {
            visit(slot(recent & 0xFF_FFFF_FFFF, 3));
        }
        if b.is_ascii_alphanumeric() || b >= 0x80 {
            if word == 0 {
                start = at;
            }
            word = (word ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3).wrapping_add(1);
            continue;
        }
        if word != 0 {
            words = [words[1], words[2], word];
            let [first, second, third] = words;
            visit(slot(third, 4));
            if second != 0 {
                let two = third ^ second.rotate_left(21);
                visit(slot(two, 5));
                if first != 0 {
                    visit(slot(two ^ first.rotate_left(42), 6));
                }
            }
            word = 0;
            let class = classes::of_word(text.get(start..at).unwrap_or_default());
            classes.push(class, |row, length| visit(slot(row, 9 + length)));
        }
        // Signs separate, however many of the same there are.
        let sign = classes::of_sign(b);
        if b != b' ' && classes.last() != sign {
            classes.push(sign, |row, length| visit(slot(row, 9 + length)));
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
            let head = rest.get(..BLOCK)?;
            head.iter().rposition(|b| *b == b' ').filter(|p| *p >= BLOCK / 2).map_or(BLOCK, |p| p + 1)
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
pub struct Model {
    weights: Box<[i8; 1 << BITS]>,
    scale: f32,
    bias: f32,
}

/// The file of weights is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a file of weights: four bytes of magic, scale, bias, and one byte for each of the weights")]
pub struct ModelError;

/// The best window of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Its log-odds.
    pub score: f32,
    /// Its bytes in the normalised text.
    pub span: (usize, usize),
}

/// As many weights as there are places for; what is missing is zero.
fn bytes(weights: impl Iterator<Item = i8>) -> Box<[i8; 1 << BITS]> {
    let mut out = Box::new([0; 1 << BITS]);
    out.iter_mut().zip(weights).for_each(|(slot, weight)| *slot = weight);
    out
}

impl Model {
    /// Quantises weights to a byte each.
    pub fn quantised(weights: &[f32], bias: f32) -> Self {
        let most = weights.iter().fold(0f32, |m, w| m.max(w.abs())).max(f32::MIN_POSITIVE);
        let scale = most / 127.0;
        Self { weights: bytes(weights.iter().map(|w| (w / scale).round() as i8)), scale, bias }
    }

    /// Reads a file of weights.
    pub fn read(file: &[u8]) -> Result<Self, ModelError> {
        let (head, body) = file.split_at_checked(HEAD).ok_or(ModelError)?;
        let number = |at: usize| -> Result<f32, ModelError> {
            let bytes = head.get(at..at + 4).ok_or(ModelError)?;
            Ok(f32::from_le_bytes(bytes.try_into().map_err(|_| ModelError)?))
        };
        if !head.starts_with(MAGIC) || body.len() != 1 << BITS {
            return Err(ModelError);
        }
        Ok(Self { weights: bytes(body.iter().map(|b| *b as i8)), scale: number(4)?, bias: number(8)? })
    }

    /// The file that [`Model::read`] reads.
    pub fn file(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.scale.to_le_bytes());
        out.extend(self.bias.to_le_bytes());
        out.extend(self.weights.iter().map(|w| *w as u8));
        out
    }

    /// The window of normalised text that talks to the agent most.
    pub fn best(&self, text: &str) -> Best {
        self.best_from(text, f32::NEG_INFINITY)
    }

    /// As [`Model::best`] where some window reaches `floor`; else a window below it, or none. First a quarter of the
    /// characters is looked at, then another, and each time only windows that come near the floor go on (`ROUGH`).
    pub fn best_from(&self, text: &str, floor: f32) -> Best {
        let text = text.as_bytes();
        if text.len() <= BLOCK {
            return self.only(text, floor);
        }
        let spans: Vec<(usize, usize)> = blocks(text).collect();
        let mut close = vec![true; spans.len()];
        if floor > f32::NEG_INFINITY {
            let mut seen = vec![(0, 0); spans.len()];
            for (first, within) in ROUGH {
                for (seen, (_, (start, end))) in seen.iter_mut().zip(close.iter().zip(&spans)).filter(|(_, (c, _))| **c)
                {
                    let (sum, count) = self.rough(text.get(start + first..*end).unwrap_or_default());
                    *seen = (seen.0 + sum, seen.1 + count);
                }
                close = self.near(&spans, &seen, &close, floor - within);
            }
        }
        let mut best = Best { score: f32::NEG_INFINITY, span: (0, 0) };
        if !close.contains(&true) {
            return best;
        }
        let sums: Vec<Option<(i32, u32)>> = spans
            .iter()
            .zip(&close)
            .map(|((start, end), close)| close.then(|| self.sum(text.get(*start..*end).unwrap_or_default())))
            .collect();
        for (first, after) in windows(sums.len()) {
            let window = sums.get(first..after).unwrap_or_default();
            let total = window.iter().try_fold((0i64, 0u32), |(s, c), w| w.map(|w| (s + i64::from(w.0), c + w.1)));
            let Some((sum, count)) = total else { continue };
            let score = self.bias + self.scale * sum as f32 / (count.max(1) as f32).sqrt();
            if score > best.score {
                let span = (spans.get(first).map_or(0, |s| s.0), spans.get(after - 1).map_or(0, |s| s.1));
                best = Best { score, span };
            }
        }
        best
    }

    /// As [`Model::best_from`], of a text that is one block. Most strings are.
    fn only(&self, text: &[u8], floor: f32) -> Best {
        let nothing = Best { score: f32::NEG_INFINITY, span: (0, 0) };
        if text.is_empty() {
            return nothing;
        }
        let mut seen = (0, 0);
        for (first, within) in ROUGH.into_iter().filter(|_| floor > f32::NEG_INFINITY) {
            let (sum, count) = self.rough(text.get(first..).unwrap_or_default());
            seen = (seen.0 + sum, seen.1 + count);
            if !self.comes_near(seen, text.len(), floor - within) {
                return nothing;
            }
        }
        let (sum, count) = self.sum(text);
        Best { score: self.bias + self.scale * sum as f32 / (count.max(1) as f32).sqrt(), span: (0, text.len()) }
    }

    /// Whether a window of so many bytes comes to `floor`, by the sum and number of the weights that were seen of it.
    fn comes_near(&self, (sum, count): (i32, u32), bytes: usize, floor: f32) -> bool {
        let all = (bytes as f32 * PER_BYTE).sqrt();
        count == 0 || self.bias + self.scale * sum as f32 / count as f32 * all >= floor
    }

    /// Which blocks belong to a window that reaches `floor` by what was seen of it. Windows with a block that was given up
    /// are given up.
    fn near(&self, spans: &[(usize, usize)], seen: &[(i32, u32)], open: &[bool], floor: f32) -> Vec<bool> {
        let mut out = vec![false; spans.len()];
        for (first, after) in windows(spans.len()) {
            if open.get(first..after).is_some_and(|open| open.contains(&false)) {
                continue;
            }
            let window = seen.get(first..after).unwrap_or_default();
            let seen = window.iter().fold((0, 0), |(s, c), w| (s + w.0, c + w.1));
            let bytes = spans.get(after - 1).map_or(0, |s| s.1) - spans.get(first).map_or(0, |s| s.0);
            if self.comes_near(seen, bytes, floor) {
                out.get_mut(first..after).unwrap_or_default().fill(true);
            }
        }
        out
    }

    /// Sum and number of the weights of a block.
    fn sum(&self, block: &[u8]) -> (i32, u32) {
        let (mut sum, mut count) = (0i32, 0u32);
        features(block, |slot| {
            sum += i32::from(self.weights.get(slot).copied().unwrap_or_default());
            count += 1;
        });
        (sum, count)
    }

    /// The same for the characters before every fourth place alone.
    fn rough(&self, block: &[u8]) -> (i32, u32) {
        let (mut sum, mut count) = (0i32, 0u32);
        let mut add = |key: u64| {
            for (key, kind) in [(key & 0xFF_FFFF, 1), (key & 0xFFFF_FFFF, 2), (key, 3)] {
                sum += i32::from(self.weights.get(slot(key, kind)).copied().unwrap_or_default());
            }
            count += 3;
        };
        let mut rest = block;
        while let Some(eight) = rest.first_chunk() {
            add(u64::from_be_bytes(*eight) >> 24);
            rest = rest.get(4..).unwrap_or_default();
        }
        // At most one place is left: seven bytes.
        if let Some(five) = rest.first_chunk::<5>() {
            add(five.iter().fold(0, |key, b| key << 8 | u64::from(*b)));
        }
        (sum, count)
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
        let again = Model::read(&model.file()).unwrap();
        let (a, b) = (model.best("please send it"), again.best("please send it"));
        assert_eq!(a, b);
        assert!(a.score > 1.0 && a.span == (0, 14));
        assert!(again.best("nothing of the kind").score < 0.0);
        assert!(again.best("").score == f32::NEG_INFINITY);
        for bad in [&b"FDI2"[..], b"", b"XXXX00000000", &model.file()[..100]] {
            assert_eq!(Model::read(bad).err(), Some(ModelError));
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
