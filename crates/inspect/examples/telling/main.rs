//! Makes `profiles/detect/telling.weights`: `telling PAIRS… -- ORDINARY… [-- JUDGED…]`.
//!
//! PAIRS are files of lines `{"private": "…", "ordinary": "…"}`; ORDINARY files of texts, and of lines `{"text": "…"}` where they end with
//! `.jsonl`. The same inputs give the same file, byte for byte; it is written to standard output. JUDGED are files of lines `{"text", "label"}`: what share
//! of each label reaches which threshold goes to standard error.
#![expect(clippy::print_stderr, reason = "a measuring program")]

use std::{collections::BTreeMap, error::Error, fs, io::Write as _};

use firedoor_inspect::telling::{BITS, Telling, WINDOW, features, windows};
use serde::Deserialize;

#[derive(Deserialize)]
struct Pair {
    private: String,
    ordinary: String,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    #[serde(default)]
    label: String,
}

/// Features of one window, what it is, and how much it counts.
struct Example {
    slots: Vec<usize>,
    private: bool,
    weight: f32,
}

impl Example {
    fn of(window: &str, private: bool, weight: f32) -> Self {
        let mut slots = Vec::new();
        features(window, |slot| slots.push(slot));
        Self { slots, private, weight }
    }
}

/// All windows of a text.
fn all(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (window, after) = rest.split_at(rest.floor_char_boundary(WINDOW.min(rest.len())));
        rest = after;
        (!window.trim().is_empty()).then_some(window)
    })
}

fn lines<T: serde::de::DeserializeOwned>(path: &str) -> Result<Vec<T>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|e| format!("{path}: {e}").into())).collect()
}

/// xorshift64
fn shuffled<T>(items: &mut [T], seed: &mut u64) {
    for at in (1..items.len()).rev() {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        items.swap(at, (*seed % (at as u64 + 1)) as usize);
    }
}

const EPOCHS: usize = 12;
const RATE: f32 = 0.25;
const DECAY: f32 = 2e-6;
/// How much a window of an ordinary text counts, beside those of pairs.
const ORDINARY: f32 = 0.2;

/// Logistic loss, Adagrad, with the mean of the weights of all epochs but the first.
fn train(examples: &mut [Example]) -> Telling {
    let mut weights = vec![0f32; 1 << BITS];
    let mut squares = vec![1e-3f32; 1 << BITS];
    let (mut bias, mut seed) = (0f32, 0x5EED_u64);
    let mut mean = vec![0f64; 1 << BITS];
    let mut mean_bias = 0f64;
    for epoch in 0..EPOCHS {
        shuffled(examples, &mut seed);
        for example in examples.iter() {
            let scale = 1.0 / (example.slots.len().max(1) as f32).sqrt();
            let sum: f32 = example.slots.iter().map(|slot| weights[*slot]).sum();
            let score = bias + scale * sum;
            let wanted = if example.private { 1.0 } else { 0.0 };
            let slope = example.weight * (1.0 / (1.0 + (-score).exp()) - wanted);
            bias -= 0.01 * slope;
            for slot in &example.slots {
                let step = slope * scale + DECAY * weights[*slot];
                squares[*slot] += step * step;
                weights[*slot] -= RATE * step / squares[*slot].sqrt();
            }
        }
        if epoch > 0 {
            mean.iter_mut().zip(&weights).for_each(|(mean, weight)| *mean += f64::from(*weight));
            mean_bias += f64::from(bias);
        }
    }
    let epochs = (EPOCHS - 1) as f64;
    let weights: Vec<f32> = mean.into_iter().map(|sum| (sum / epochs) as f32).collect();
    Telling::quantised(&weights, (mean_bias / epochs) as f32)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = arguments.split(|argument| argument == "--");
    let (pairs, ordinary, judged) = (parts.next(), parts.next(), parts.next());
    let mut examples = Vec::new();
    for path in pairs.unwrap_or_default() {
        for pair in lines::<Pair>(path)? {
            examples.extend(all(&pair.private).map(|window| Example::of(window, true, 1.0)));
            examples.extend(all(&pair.ordinary).map(|window| Example::of(window, false, 1.0)));
        }
    }
    let of_pairs = examples.len();
    for path in ordinary.unwrap_or_default() {
        let texts = match path.ends_with(".jsonl") {
            true => lines::<Text>(path)?.into_iter().map(|line| line.text).collect(),
            false => vec![String::from_utf8_lossy(&fs::read(path)?).into_owned()],
        };
        let looked_at = texts.iter().flat_map(|text| windows(text));
        examples.extend(looked_at.map(|window| Example::of(window, false, ORDINARY)));
    }
    eprintln!("{of_pairs} windows of pairs, {} of ordinary texts", examples.len() - of_pairs);
    let telling = train(&mut examples);
    std::io::stdout().write_all(&telling.file())?;
    let mut scores: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for path in judged.unwrap_or_default() {
        for line in lines::<Text>(path)? {
            scores.entry(line.label).or_default().push(telling.of(&line.text));
        }
    }
    for (label, scores) in scores {
        let share = |least: f32| {
            let reached = scores.iter().filter(|score| **score >= least).count();
            format!("{least}: {:.2} %", 100.0 * reached as f64 / scores.len() as f64)
        };
        let shares: Vec<String> = [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0].into_iter().map(share).collect();
        eprintln!("{label} ({}): {}", scores.len(), shares.join(", "));
    }
    Ok(())
}
