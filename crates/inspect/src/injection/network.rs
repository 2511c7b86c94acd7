//! A second opinion on texts that the linear model comes near to: a small network of convolutions over pieces of words.
//!
//! Vectors of pieces and of pairs of neighbours are added, three layers look at five neighbours each, and what is highest and
//! what is usual over a window gives its log-odds. The weights are learnt by `examples/network/`; docs/model-card.md says of what.
//! All arithmetic is in single precision and in a fixed order: a text has the same score on every machine.

mod file;
mod pieces;

pub use file::NetworkError;

use std::sync::LazyLock;

use pieces::Pieces;

/// Numbers of a vector.
const WIDTH: usize = 128;
/// Neighbours that a layer looks at, the piece itself among them.
const REACH: usize = 5;
/// Numbers between the pooled vectors and the answers.
const HIDDEN: usize = 32;
/// Pieces of a window, and from one window to the next: as in training.
const WINDOW: usize = 104;
const STEP: usize = 64;
/// Most pieces of one text that are read: what a judgement costs is bounded by it, whatever the text.
const MOST: usize = 4096;
/// What is added to a variance before the root.
const EPSILON: f32 = 1e-5;

type Row = [f32; WIDTH];

/// Which of the two answers of the network is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Does a result talk to the agent?
    Result,
    /// Does a definition?
    Definition,
}

/// The network that ships with this program; read when a text first needs it.
pub(crate) fn shipped() -> Option<&'static Network<'static>> {
    static SHIPPED: LazyLock<Option<Network<'static>>> =
        LazyLock::new(|| Network::read(include_bytes!("../../../../profiles/detect/injection.network")).ok());
    SHIPPED.as_ref()
}

/// One byte with a sign for each number, as they stand in the file, and for each row what a step is worth.
#[derive(Debug)]
struct Table<'f> {
    rows: &'f [[u8; WIDTH]],
    steps: Box<[f32]>,
}

impl Table<'_> {
    /// Adds a row; one that is not there adds nothing.
    fn add(&self, at: usize, to: &mut Row) {
        if let (Some(row), Some(step)) = (self.rows.get(at), self.steps.get(at)) {
            to.iter_mut().zip(row).for_each(|(to, number)| *to += step * f32::from(number.cast_signed()));
        }
    }
}

/// Each number with its neighbours' of the same place; then all numbers of a piece with each other; then to a mean of zero and
/// a spread of one.
#[derive(Debug)]
struct Layer {
    near: [Row; REACH],
    near_bias: Row,
    across: Box<[Row; WIDTH]>,
    across_bias: Row,
    gain: Row,
    shift: Row,
}

/// See the module. What is large stays in the file.
#[derive(Debug)]
pub struct Network<'f> {
    pieces: Pieces<'f>,
    single: Table<'f>,
    pairs: Table<'f>,
    layers: Vec<Layer>,
    hidden: Box<[[f32; HIDDEN]; 2 * WIDTH]>,
    hidden_bias: [f32; HIDDEN],
    answers: [[f32; HIDDEN]; 2],
    answers_bias: [f32; 2],
}

/// A window and its log-odds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Its log-odds.
    pub score: f32,
    /// Its bytes.
    pub span: (usize, usize),
}

impl Network<'_> {
    /// The window of a normalised text that talks to the agent most. Of a long text its start is read.
    pub fn best(&self, text: &str, answer: Answer) -> Option<Judged> {
        let pieces = self.pieces.cut(text, MOST);
        let rows = self.rows(&pieces);
        let mut best: Option<Judged> = None;
        let mut from = 0;
        while let Some(rest) = pieces.get(from..).filter(|rest| !rest.is_empty()) {
            let to = pieces.len().min(from + WINDOW);
            let score = self.window(rows.get(from..to).unwrap_or_default(), answer);
            if best.is_none_or(|best| score > best.score) {
                let end = rest.get(WINDOW).map_or(text.len(), |(_, at)| *at);
                best = Some(Judged { score, span: (rest.first().map_or(0, |(_, at)| *at), end) });
            }
            if rest.len() <= WINDOW {
                break;
            }
            from += STEP;
        }
        best
    }

    /// What the layers make of all pieces of a text.
    fn rows(&self, pieces: &[(u16, usize)]) -> Vec<Row> {
        let mut before = 0;
        let mut rows: Vec<Row> = Vec::with_capacity(pieces.len());
        for (piece, _) in pieces {
            let mut row = [0.0; WIDTH];
            self.single.add(usize::from(*piece), &mut row);
            self.pairs.add(pair(before, *piece, self.pairs.rows.len()), &mut row);
            rows.push(row);
            before = *piece;
        }
        for layer in &self.layers {
            rows = (0..rows.len()).map(|at| layer.at(&rows, at)).collect();
        }
        rows
    }

    /// The log-odds of a window.
    fn window(&self, rows: &[Row], answer: Answer) -> f32 {
        let (mut mean, mut highest) = ([0.0; WIDTH], [f32::MIN; WIDTH]);
        for row in rows {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            highest.iter_mut().zip(row).for_each(|(most, x)| *most = x.max(*most));
        }
        let count = rows.len().max(1) as f32;
        mean.iter_mut().for_each(|x| *x /= count);
        let mut hidden = self.hidden_bias;
        for (x, weights) in mean.iter().chain(&highest).zip(self.hidden.iter()) {
            hidden.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
        }
        let [result, definition] = self.answers;
        let [result_bias, definition_bias] = self.answers_bias;
        let (weights, bias) = match answer {
            Answer::Result => (result, result_bias),
            Answer::Definition => (definition, definition_bias),
        };
        hidden.iter().zip(weights).fold(bias, |sum, (x, weight)| sum + x.max(0.0) * weight)
    }
}

impl Layer {
    /// What the layer makes of one piece.
    fn at(&self, rows: &[Row], at: usize) -> Row {
        let mut near = self.near_bias;
        for (step, weights) in self.near.iter().enumerate() {
            // What is before the first and after the last is nothing.
            if let Some(row) = (at + step).checked_sub(REACH / 2).and_then(|at| rows.get(at)) {
                near.iter_mut().zip(row.iter().zip(weights)).for_each(|(sum, (x, weight))| *sum += x * weight);
            }
        }
        let mut out = self.across_bias;
        // Four at a time: sums are fetched and put back a quarter as often.
        for (x, weights) in near.chunks_exact(4).zip(self.across.chunks_exact(4)) {
            let ([a, b, c, d], [wa, wb, wc, wd]) = (x, weights) else { continue };
            for ((((sum, wa), wb), wc), wd) in out.iter_mut().zip(wa).zip(wb).zip(wc).zip(wd) {
                *sum += a * wa + b * wb + (c * wc + d * wd);
            }
        }
        if let Some(row) = rows.get(at) {
            out.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.max(0.0) + x);
        }
        let mean = total(&out, |x| x) / WIDTH as f32;
        let spread = total(&out, |x| (x - mean) * (x - mean)) / WIDTH as f32;
        let scale = 1.0 / (spread + EPSILON).sqrt();
        for ((x, gain), shift) in out.iter_mut().zip(&self.gain).zip(&self.shift) {
            *x = (*x - mean) * scale * gain + shift;
        }
        out
    }
}

/// The sum over a row, in eight sums that do not wait for each other.
fn total(row: &Row, of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; 8];
    for part in row.as_chunks::<8>().0 {
        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += of(*x));
    }
    sums.iter().sum()
}

/// Where the vector of two neighbours stands in a table of so many, a power of two.
fn pair(before: u16, piece: u16, many: usize) -> usize {
    let key = u32::from(before).wrapping_mul(0x9E37_79B1) ^ u32::from(piece).wrapping_mul(0x85EB_CA77);
    let key = (key ^ key >> 15).wrapping_mul(0x2C1B_3C6D);
    ((u64::from(key) * many as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
