//! Makes the weights of the injection model from the corpora and `kinds.toml`, and says what they are worth on texts that
//! were held out.
//!
//! `cargo run --release -p firedoor-inspect --example train -- CORPORA OUT [DIRECTORY OF ORDINARY TEXTS…]`
//! `cargo run --release -p firedoor-inspect --example train -- judge CORPORA OUT [DIRECTORY OF ORDINARY TEXTS…]`
//! `cargo run --release -p firedoor-inspect --example train -- weights CORPORA OUT [DIRECTORY OF ORDINARY TEXTS…]`
//!
//! The models that did not see a source are kept beside OUT; `judge` makes no weights, but lets those models judge what they
//! did not see again, with the phrases and thresholds of today. `weights` makes the same OUT and nothing else.
//!
//! Records are split by their `group`: about a fifth of each source's groups is never trained on. Thresholds come from
//! three folds within the rest. Whole sources are left out in turn, to see what a source that nobody knew would look like.
//! The seed is fixed; the same inputs give the same file.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use firedoor_inspect::{
    Inspector,
    injection::{
        model::{BITS, Model, blocks, features, windows},
        readings,
    },
    record::inspect_record,
};
use firedoor_model::{Confidence, Digest, Severity};

mod kinds;

use kinds::{Draw, Kinds};

/// Texts drawn of each kind: attacks in results, in definitions, honest ones.
const DRAWN: [(&str, usize); 3] = [("attack", 4000), ("poison", 1500), ("honest", 3500)];

/// Rounds: in each, an attack's highest-scoring window stands for it.
const ROUNDS: usize = 4;
const EPOCHS: usize = 3;
const RATE: f32 = 0.12;
const DECAY: f32 = 2e-7;
/// Attacks of one source together weigh at most so many records.
const SOURCE_WEIGHT: f32 = 350.0;
/// What one attack weighs at most.
const MOST: f32 = 6.0;
/// Most windows of an attack that the first round learns from.
const MAX_FIRST: f32 = 26.0;
/// Bytes of one ordinary text that are used.
const ORDINARY: usize = 12_000;

struct Bag {
    source: String,
    group: String,
    malicious: bool,
    /// Normalised texts and how each was hidden.
    texts: Vec<(String, u8)>,
    weight: f32,
    definition: bool,
    /// The record, for the whole detector to judge; empty where there is none.
    line: String,
}

struct Window {
    bag: usize,
    text: usize,
    span: (usize, usize),
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let first = |word: &str| args.first().is_some_and(|first| first == word);
    let (judge, only) = (first("judge"), first("weights"));
    args.drain(..usize::from(judge || only));
    let [corpora, out, ordinary @ ..] = args.as_slice() else {
        println!("usage: train [judge | weights] CORPORA OUT [DIRECTORY…]");
        return;
    };
    let mut bags = Vec::new();
    for path in files(Path::new(corpora), "gz") {
        let bytes = fs::read(&path).unwrap();
        println!("data {} {}", Digest::of(&bytes), path.file_name().unwrap().to_string_lossy());
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        bags.extend(text.lines().filter_map(bag));
        bags.extend(text.lines().filter_map(carrier));
    }
    for written in [
        include_str!("written.jsonl"),
        include_str!("written-results.jsonl"),
        include_str!("written-definitions.jsonl"),
    ] {
        bags.extend(written.lines().filter_map(bag));
    }
    bags.extend(drawn(&bags));
    let mut count: BTreeMap<(String, bool), f32> = BTreeMap::new();
    bags.iter().for_each(|b| *count.entry((b.source.clone(), b.malicious)).or_default() += 1.0);
    for b in &mut bags {
        let n = count[&(b.source.clone(), b.malicious)];
        if b.malicious {
            // Plain task hijacks carry no sign of their own; too much of them teaches that every request is an attack.
            // Kinds are what is known of sources that nobody has seen yet.
            let most = match b.source.as_str() {
                "bipia" => SOURCE_WEIGHT / 4.0,
                "kinds/attack" | "written_results" | "written_definitions" => SOURCE_WEIGHT * 4.0,
                "kinds/poison" | "written" => SOURCE_WEIGHT * 2.0,
                _ => SOURCE_WEIGHT,
            };
            b.weight = (most / n).min(MOST);
        }
        // Honest texts with the words that attacks use, or with the surroundings that attacks stand in.
        if !b.malicious {
            b.weight = match b.source.as_str() {
                "notinject"
                | "injecagent_benign_wrapper"
                | "agentdojo_benign"
                | "agentdojo_honest"
                | "agent_threat_bench" => 8.0,
                "written" | "written_results" | "written_definitions" => 4.0,
                "piguard_valid" | "ipi_coding_agent" | "agentdojo_tools" => 6.0,
                "bipia_benign" | "benign_results_hard_security_docs" => 2.0,
                "carrier" => 0.5,
                _ => 1.0,
            };
        }
    }
    let mut texts = 0;
    for path in ordinary.iter().flat_map(|d| files(Path::new(d), "md").into_iter().chain(files(Path::new(d), "rs"))) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let hash = Digest::of(text.as_bytes()).0;
        if path.extension().is_some_and(|e| e == "rs") && hash[0] & 7 != 0 {
            continue;
        }
        let text: String = text.chars().take(ORDINARY).collect();
        // Packages of one directory are one group.
        let group = path.components().rev().nth(1).map(|c| c.as_os_str().to_string_lossy().into_owned()).unwrap();
        let texts_of = readings(&serde_json::to_string(&text).unwrap());
        texts += 1;
        bags.push(Bag {
            source: "ordinary".into(),
            group,
            malicious: false,
            texts: texts_of,
            weight: 1.0,
            definition: false,
            line: String::new(),
        });
    }
    println!("ordinary texts: {texts}");
    let held: Vec<bool> = held_out(&bags);
    let train: Vec<usize> = (0..bags.len()).filter(|i| !held[*i]).collect();
    if only {
        let file = learn(&bags, &train).file();
        fs::write(out, &file).unwrap();
        return println!("weights {} {out}", Digest::of(&file));
    }
    if judge {
        return leave_out(&bags, &train, Path::new(out), &|path, _| fs::read(path).unwrap());
    }
    let chosen = bags.iter().zip(&held).filter(|(b, held)| **held && !b.line.is_empty());
    let chosen: BTreeSet<(&str, u64)> = chosen.map(|(b, _)| (b.source.as_str(), hash(&b.group))).collect();
    chosen.iter().for_each(|(source, group)| println!("held\t{source}\t{group:x}"));
    let mut scores = vec![[f32::NEG_INFINITY; 4]; bags.len()];
    for fold in 0..3u8 {
        let part = |i: &usize| hash(&format!("fold/{}", bags[*i].group)) % 3 == u64::from(fold);
        let rest: Vec<usize> = train.iter().copied().filter(|i| !part(i)).collect();
        let model = learn(&bags, &rest);
        for i in train.iter().copied().filter(part) {
            scores[i] = score(&model, &bags[i]);
        }
    }
    let model = learn(&bags, &train);
    for i in (0..bags.len()).filter(|i| held[*i]) {
        scores[i] = score(&model, &bags[i]);
    }
    report(&bags, &held, &scores);
    leave_out(&bags, &train, Path::new(out), &|path, rest| {
        let file = learn(&bags, rest).file();
        fs::write(path, &file).unwrap();
        file
    });
    fs::write(out, model.file()).unwrap();
    println!("weights {} {out}", Digest::of(&model.file()));
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn bag(line: &str) -> Option<Bag> {
    let record: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let (source, kind) = (text("source"), text("kind"));
    let malicious = text("label") == "malicious";
    if source == "agentdojo_honest" && kind == "session" {
        let steps = record["payload"]["steps"].as_array()?;
        let texts = steps.iter().flat_map(|s| readings(&s["result"].to_string())).collect();
        let line = line.to_owned();
        return Some(Bag { source, group: text("group"), malicious, texts, weight: 1.0, definition: false, line });
    }
    // Requests of users that are attacks only beside a certain server.
    if source == "mcpsecbench" || !["tool_result", "prompt", "tool_description"].contains(&kind.as_str()) {
        return None;
    }
    let definition = kind == "tool_description";
    let raw = if definition && record["payload"].is_object() {
        record["payload"].to_string()
    } else {
        record["text"].to_string()
    };
    let mut texts = readings(&raw);
    // A poisoned definition whose text says nothing of it teaches nothing.
    if definition && malicious && texts.iter().map(|t| t.0.len()).sum::<usize>() < 120 {
        return None;
    }
    if definition {
        let joined = texts.iter().filter(|t| t.1 == 0).map(|t| t.0.as_str()).collect::<Vec<_>>().join(" ");
        texts.retain(|t| t.1 > 0);
        texts.push((joined, 0));
    }
    Some(Bag { source, group: text("group"), malicious, texts, weight: 1.0, definition, line: line.to_owned() })
}

/// The ordinary sentence that a made-up attack begins with.
fn carrier(line: &str) -> Option<Bag> {
    let record: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    if text("source") != "obfuscated_injections" {
        return None;
    }
    let sentence = text("text").split_once(". ")?.0.to_owned() + ".";
    let texts = vec![(readings(&serde_json::to_string(&sentence).ok()?).into_iter().next()?.0, 0)];
    Some(Bag {
        source: "carrier".into(),
        group: text("group"),
        malicious: false,
        texts,
        weight: 0.5,
        definition: false,
        line: String::new(),
    })
}

/// Texts of the kinds that `kinds.toml` knows, half of the attacks between pieces of honest texts.
fn drawn(honest: &[Bag]) -> Vec<Bag> {
    let kinds = Kinds::load();
    let mut draw = Draw::new(0x5EED);
    let held = held_out(honest);
    let carriers: Vec<&str> = honest
        .iter()
        .zip(held)
        .filter(|(b, held)| !held && !b.malicious && !b.definition && b.source.starts_with("benign"))
        .filter_map(|(b, _)| b.texts.first().map(|t| t.0.as_str()).filter(|t| t.len() > 400 && t.is_ascii()))
        .collect();
    let mut out = Vec::new();
    for (kind, count) in DRAWN {
        for i in 0..count {
            let mut text = kinds.one(kind, &mut draw);
            if kind == "attack" && i % 2 == 0 && !carriers.is_empty() {
                let carrier = carriers[draw.below(carriers.len())];
                let at = draw.below(carrier.len() - 300);
                text = format!("{} {text} {}", &carrier[at..at + 150], &carrier[at + 150..at + 300]);
            }
            let texts =
                vec![(readings(&serde_json::to_string(&text).unwrap()).into_iter().next().unwrap_or_default().0, 0)];
            out.push(Bag {
                source: format!("kinds/{kind}"),
                group: format!("{kind} {i}"),
                malicious: kind != "honest",
                texts,
                weight: 1.0,
                definition: kind == "poison",
                line: String::new(),
            });
        }
    }
    out
}

/// Sources that share texts with each other.
fn family(source: &str) -> &str {
    match source {
        "xinjectagent" | "obfuscated_injections" => "injecagent",
        "cyberseceval_pi_multilingual" => "cyberseceval_pi",
        "cisco_yara_tests" => "cisco_evals",
        other => other,
    }
}

/// Leaves each family of sources out in turn and lets the whole detector, with phrases and thresholds as they are, judge
/// its attacks; honest texts are judged by the models that did not see their third. `weights` gives those that are made of the
/// chosen texts, or were, and kept in the file of this name.
fn leave_out(bags: &[Bag], train: &[usize], out: &Path, weights: &dyn Fn(&Path, &[usize]) -> Vec<u8>) {
    let kept = |name: &str| PathBuf::from(format!("{}.{name}", out.display()));
    let caught = |inspector: &Inspector, bag: &Bag| {
        inspect_record(inspector, &bag.line).is_ok_and(|r| {
            r.findings.iter().any(|f| {
                f.severity >= Severity::Medium && f.confidence >= Confidence::Likely && f.detector != "call/secret"
            })
        })
    };
    let families: BTreeSet<&str> =
        bags.iter().filter(|b| b.malicious && !b.line.is_empty()).map(|b| family(&b.source)).collect();
    println!("--- whole sources left out, judged by the whole detector");
    for left in families {
        let rest: Vec<usize> =
            train.iter().copied().filter(|i| !bags[*i].malicious || family(&bags[*i].source) != left).collect();
        let inspector = Inspector::with_weights(weights(&kept(&format!("without-{left}")), &rest).leak()).unwrap();
        let mut table: BTreeMap<(&str, bool), (usize, usize)> = BTreeMap::new();
        for bag in bags.iter().filter(|b| b.malicious && !b.line.is_empty() && family(&b.source) == left) {
            let row = table.entry((&bag.source, bag.definition)).or_default();
            row.0 += usize::from(caught(&inspector, bag));
            row.1 += 1;
        }
        for ((source, definition), (hit, all)) in table {
            println!("  {source:30} definition={definition} {hit} of {all}, {:.1} %", 100.0 * hit as f32 / all as f32);
        }
    }
    let mut wrong: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for fold in 0..3u64 {
        let part = |i: &usize| hash(&format!("fold/{}", bags[*i].group)) % 3 == fold;
        let rest: Vec<usize> = train.iter().copied().filter(|i| !part(i)).collect();
        let inspector = Inspector::with_weights(weights(&kept(&format!("fold-{fold}")), &rest).leak()).unwrap();
        let honest = train.iter().filter(|i| part(i) && !bags[**i].malicious && !bags[**i].line.is_empty());
        for bag in honest.map(|i| &bags[*i]) {
            let row = wrong.entry(&bag.source).or_default();
            let is = caught(&inspector, bag);
            row.0 += usize::from(is);
            row.1 += 1;
            if is {
                println!("  wrong: {} {}", bag.source, bag.group.chars().take(80).collect::<String>());
            }
        }
    }
    wrong.iter().for_each(|(source, (hit, all))| println!("  {source:36} {hit} of {all} honest"));
}

/// FNV-1a: the split must not depend on a library's hash.
fn hash(text: &str) -> u64 {
    let h = text.bytes().fold(0xCBF2_9CE4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3));
    (h ^ h >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

/// A fifth of the groups of each source, at least one where there are several.
fn held_out(bags: &[Bag]) -> Vec<bool> {
    let mut groups: BTreeMap<&str, BTreeSet<(u64, &str)>> = BTreeMap::new();
    for b in bags {
        groups.entry(&b.source).or_default().insert((hash(&b.group), &b.group));
    }
    let held: BTreeSet<(&str, &str)> = groups
        .iter()
        .flat_map(|(source, groups)| {
            let n = if groups.len() < 2 { 0 } else { (groups.len() / 5).max(1) };
            groups.iter().take(n).map(|(_, g)| (*source, *g))
        })
        .collect();
    bags.iter().map(|b| held.contains(&(b.source.as_str(), b.group.as_str()))).collect()
}

fn learn(bags: &[Bag], chosen: &[usize]) -> Model {
    let mut negative = Vec::new();
    let mut positive = Vec::new();
    for &b in chosen {
        for (t, (text, _)) in bags[b].texts.iter().enumerate() {
            let blocks: Vec<_> = blocks(text.as_bytes()).collect();
            for (first, after) in windows(blocks.len()) {
                let window = Window { bag: b, text: t, span: (blocks[first].0, blocks[after - 1].1) };
                if bags[b].malicious {
                    positive.push(window);
                } else if first % 2 == 0 {
                    negative.push(window);
                }
            }
        }
    }
    let mut weights = vec![0f32; 1 << BITS];
    let mut squares = vec![1e-2f32; 1 << BITS];
    let (mut bias, mut bias_square) = (-2.0f32, 1.0f32);
    let mut state = 0x5EED_u64;
    for round in 0..ROUNDS {
        // The first round knows nothing yet: all windows of an attack share its weight.
        let mut chosen: Vec<(&Window, f32, f32)> = negative.iter().map(|w| (w, 0.0, bags[w.bag].weight)).collect();
        if round == 0 {
            let mut n: BTreeMap<usize, f32> = BTreeMap::new();
            positive.iter().for_each(|w| *n.entry(w.bag).or_default() += 1.0);
            // Long ones are mostly ordinary text, which must not be learnt as an attack.
            let short = positive.iter().filter(|w| n[&w.bag] <= MAX_FIRST);
            chosen.extend(short.map(|w| (w, 1.0, bags[w.bag].weight / n[&w.bag])));
        } else {
            let mut best: BTreeMap<usize, (f32, &Window)> = BTreeMap::new();
            for w in &positive {
                let z = logit(&weights, bias, of(bags, w)).0;
                let entry = best.entry(w.bag).or_insert((z, w));
                if z > entry.0 {
                    *entry = (z, w);
                }
            }
            chosen.extend(best.iter().map(|(b, (_, w))| (*w, 1.0, bags[*b].weight)));
        }
        if round > 0 {
            // What is far from an attack already teaches little: one in four of it stays.
            chosen = chosen
                .into_iter()
                .enumerate()
                .filter(|(i, (w, label, _))| *label > 0.0 || i % 4 == 0 || logit(&weights, bias, of(bags, w)).0 > -6.0)
                .map(|(_, c)| c)
                .collect();
        }
        for _ in 0..EPOCHS {
            for i in (1..chosen.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                chosen.swap(i, (state >> 33) as usize % (i + 1));
            }
            for (w, label, weight) in &chosen {
                let text = of(bags, w);
                let (z, count) = logit(&weights, bias, text);
                let error = weight * (1.0 / (1.0 + (-z).exp()) - label);
                if error.abs() < 1e-3 {
                    continue;
                }
                let step = error / (count.max(1) as f32).sqrt();
                features(text, |slot| {
                    squares[slot] += step * step;
                    weights[slot] -= RATE * (step / squares[slot].sqrt() + DECAY * weights[slot]);
                });
                bias_square += error * error;
                bias -= RATE * error / bias_square.sqrt();
            }
        }
    }
    Model::quantised(&weights, bias)
}

fn of<'b>(bags: &'b [Bag], w: &Window) -> &'b [u8] {
    &bags[w.bag].texts[w.text].0.as_bytes()[w.span.0..w.span.1]
}

fn logit(weights: &[f32], bias: f32, text: &[u8]) -> (f32, u32) {
    let (mut sum, mut count) = (0f32, 0u32);
    features(text, |slot| {
        sum += weights[slot];
        count += 1;
    });
    (bias + sum / (count.max(1) as f32).sqrt(), count)
}

/// The best score by how the text was hidden.
fn score(model: &Model, bag: &Bag) -> [f32; 4] {
    let mut out = [f32::NEG_INFINITY; 4];
    for (text, how) in &bag.texts {
        let best = &mut out[usize::from(*how)];
        *best = best.max(model.best(text).score);
    }
    out
}

fn report(bags: &[Bag], held: &[bool], scores: &[[f32; 4]]) {
    for held_only in [false, true] {
        println!("--- {}", if held_only { "held out" } else { "folds of the training part" });
        for definition in [false, true] {
            let rows = |malicious: bool| {
                (0..bags.len()).filter(move |i| {
                    held[*i] == held_only && bags[*i].malicious == malicious && bags[*i].definition == definition
                })
            };
            for (how, name) in ["plain", "markup", "encoded", "covert"].into_iter().enumerate() {
                let mut honest: Vec<(f32, &Bag)> = rows(false).map(|i| (scores[i][how], &bags[i])).collect();
                honest.sort_by(|a, b| b.0.total_cmp(&a.0));
                println!("definition={definition} {name}: of {} honest the highest", honest.len());
                for (score, bag) in honest.iter().take(16).filter(|h| h.0 > -2.0) {
                    println!("    {score:.2} {} {}", bag.source, bag.group.chars().take(70).collect::<String>());
                }
            }
            let mut table: BTreeMap<&str, Vec<[f32; 4]>> = BTreeMap::new();
            rows(true).for_each(|i| table.entry(&bags[i].source).or_default().push(scores[i]));
            for (source, all) in table {
                let share = |t: f32, from: usize| {
                    all.iter().filter(|s| s[from..].iter().any(|v| *v >= t)).count() as f32 * 100.0 / all.len() as f32
                };
                let at: Vec<String> =
                    [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0].iter().map(|t| format!("{:.0}", share(*t, 0))).collect();
                println!("  {source:30} {:5} caught % at -2..4: {}", all.len(), at.join(" "));
            }
        }
    }
}
