//! What a classifier of the user's own reads of a result, and what follows from its word.

use std::sync::Arc;

use firedoor_model::{Confidence, Evidence, Finding, Severity, finding::Role, wire::Leaves};

use crate::{Memory, Source, evidence, injection, memory::Origin};

/// Longest passage, in bytes: some 512 tokens, which small language models read at once.
const LONGEST: usize = 2048;
/// How much of a passage stands in the next one again, so that no sentence is seen only in halves.
const SHARED: usize = 256;
/// Most passages of one result; what is behind them is not read.
const MOST: usize = 64;
/// Shortest text that is worth asking about, in bytes.
const SHORTEST: usize = 32;

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Where it stands (RFC 6901).
    pub pointer: Arc<str>,
    /// What it says, at most 2048 bytes.
    pub text: String,
}

/// The texts of a result, given as JSON, in pieces. Names of members are not among them.
pub fn passages(result: &str) -> Vec<Passage> {
    let mut all = Vec::new();
    let mut leaves = Leaves::of(result);
    while let Some(leaf) = leaves.next() {
        if leaf.key || leaf.text.len() < SHORTEST {
            continue;
        }
        let pointer: Arc<str> = leaves.pointer().into();
        let mut rest = leaf.text.as_ref();
        loop {
            if all.len() == MOST {
                return all;
            }
            let piece = upto(rest, LONGEST);
            all.push(Passage { pointer: Arc::clone(&pointer), text: piece.to_owned() });
            if piece.len() == rest.len() {
                break;
            }
            rest = rest.get(upto(piece, piece.len() - SHARED).len()..).unwrap_or_default();
        }
    }
    all
}

/// The start of a text, of at most that many bytes, in whole characters.
fn upto(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// The finding about a passage that a classifier takes for instructions, with how sure it is from 0 to 1. The agent's later
/// calls are judged as after any instructions that are not its user's.
pub fn classified(memory: &mut Memory, source: &Source<'_>, passage: &Passage, score: f64) -> Finding {
    let origin = Arc::new(Origin {
        entry: source.entry.clone(),
        tool: source.subject.into(),
        at: source.now,
        sink: source.label.sink,
        private: source.label.private,
    });
    let excerpt = injection::excerpt(&passage.text, (0, 0));
    memory.note_injected(&origin, Arc::clone(&passage.pointer), &excerpt);
    Finding {
        detector: "result/classified".into(),
        severity: Severity::High,
        confidence: Confidence::Likely,
        summary: format!(
            "Your classifier takes a text of the result for instructions to the agent (score {score:.2})."
        ),
        evidence: vec![Evidence {
            excerpt: excerpt.as_str().into(),
            ..evidence(Role::Place, Some(source.entry), source.subject, passage.pointer.to_string(), b"")
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: &serde_json::Value) -> Vec<(String, usize)> {
        passages(&result.to_string()).into_iter().map(|p| (p.pointer.to_string(), p.text.len())).collect()
    }

    #[test]
    fn texts_are_cut_into_passages_that_overlap() {
        let words = "twelve bytes".repeat(3);
        let told = serde_json::json!({"content": [{"type": "text", "text": words}], "n": 3, "short": "no"});
        assert_eq!(check(&told), [("/content/0/text".to_owned(), 36)]);
        let long = serde_json::json!(["a".repeat(2 * LONGEST)]);
        let rest = 2 * LONGEST - 2 * (LONGEST - SHARED);
        assert_eq!(check(&long), [("/0".to_owned(), LONGEST), ("/0".to_owned(), LONGEST), ("/0".to_owned(), rest)]);
    }

    #[test]
    fn characters_stay_whole_and_there_are_not_more_than_that() {
        let text = "ß".repeat(200_000) + "x";
        let all = passages(&serde_json::json!([text]).to_string());
        assert_eq!(all.len(), MOST);
        assert!(all.iter().all(|p| p.text.len() <= LONGEST && p.text.chars().all(|c| c == 'ß')));
    }

    #[test]
    fn every_byte_is_read() {
        let text: String = (0..3000).map(|n| format!("{n} ")).collect();
        let all = passages(&serde_json::json!([text]).to_string());
        for n in (0..3000).map(|n| format!("{n} ")) {
            assert!(all.iter().any(|p| p.text.contains(&n)), "{n}");
        }
    }
}
