//! What a classifier of the user's own reads of a result, and what follows from its word.

use std::{borrow::Cow, sync::Arc};

use firedoor_model::{Confidence, Evidence, Finding, Severity, finding::Role, wire::Leaves};

use crate::{Memory, Source, evidence, injection, memory::Origin, orders::Given};

/// Longest passage, in bytes: some 512 tokens, which small language models read at once.
const LONGEST: usize = 2048;
/// How much of a passage stands in the next one again, so that no sentence is seen only in halves.
const SHARED: usize = 256;
/// Most passages of one result; what is behind them is not read.
const MOST: usize = 64;
/// Shortest text that is worth asking about, in bytes.
const SHORTEST: usize = 32;
/// How much of a result is looked through for them, in bytes: the engine's one loop does it.
const LOOKED_AT: usize = 256 * 1024;
/// Longest escape of JSON, in bytes: a pair of surrogates (RFC 8259, section 7).
const ESCAPE: usize = 12;

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Where it stands (RFC 6901).
    pub pointer: Arc<str>,
    /// What it says, at most 2048 bytes.
    pub text: String,
}

/// The texts of a result, given as JSON, in pieces. Names of members are not among them. Of a result that is longer than that the
/// first 256 KiB are looked at.
pub fn passages(result: &str) -> Vec<Passage> {
    let mut all = Vec::new();
    let beginning = beginning(result);
    let mut leaves = Leaves::of(&beginning);
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

/// The beginning of JSON, with the string in which it stops, if it does in one, brought to an end.
fn beginning(result: &str) -> Cow<'_, str> {
    if result.len() <= LOOKED_AT {
        return Cow::Borrowed(result);
    }
    let head = upto(result, LOOKED_AT);
    // An escape may be cut in two.
    let last = upto(head, head.len() - ESCAPE).len();
    let whole = head.get(last..).and_then(|end| end.find('\\')).map_or(head.len(), |at| last + at);
    let head = upto(head, whole);
    // Two backslashes are one that is said.
    let odd = head.bytes().rev().take_while(|b| *b == b'\\').count() % 2;
    Cow::Owned(format!("{}\"", upto(head, head.len() - odd)))
}

/// The start of a text, of at most that many bytes, in whole characters.
fn upto(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// The finding about a passage that a classifier takes for instructions, with how sure it is from 0 to 1. The agent's later
/// calls are judged as after any instructions that are not its user's.
pub fn classified(memory: &mut Memory, source: &Source<'_>, passage: &Passage, score: f64) -> Finding {
    let origin = Arc::new(Origin::of(source));
    let excerpt = injection::excerpt(&passage.text, (0, 0));
    // The rest of the result, where an address may stand, is gone by now.
    memory.orders.note(&origin, Arc::clone(&passage.pointer), &excerpt, &Given::Hidden);
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
    fn a_huge_result_is_looked_at_in_part() {
        let short = vec!["x"; 200_000];
        assert_eq!(check(&serde_json::json!([short, "a text that is long enough to be read"])), []);
        assert_eq!(check(&serde_json::json!([short[..60_000], "a text that is long enough to be read"])).len(), 1);
    }

    #[test]
    fn a_string_that_is_cut_off_is_read_as_far_as_it_goes() {
        for text in ["a", "\u{1}", "😀", "\\", "\"", "ß"] {
            let escaped = "\\ud83d\\ude00".repeat(LOOKED_AT / 8);
            for token in
                [serde_json::to_string(&text.repeat(LOOKED_AT / text.len() + 99)).unwrap(), format!("\"{escaped}\"")]
            {
                for before in 0..ESCAPE + 2 {
                    let all = passages(&format!("[\"{}\",{token}]", "x".repeat(before)));
                    // Six bytes and more stand for one.
                    assert!(all.len() > LOOKED_AT / 6 / LONGEST, "{text:?} {before}: {}", all.len());
                    let last = all.last().unwrap().text.trim_end_matches('\u{FFFD}');
                    assert!(last.chars().all(|c| text.contains(c) || c == '😀'), "{text:?} {before}: {last:?}");
                }
            }
        }
        // Where the string began just before the end, its beginning is read.
        let late = serde_json::json!(["x", "y".repeat(LOOKED_AT - 200), "this is an order to the agent ".repeat(50)]);
        assert!(passages(&late.to_string()).len() == MOST);
        let short: String = vec!["\"x\""; LOOKED_AT / 4 - 100].join(",");
        let all = passages(&format!("[{short},\"{}\"]", "an order ".repeat(200)));
        assert_eq!(all.len(), 1);
        assert!(all[0].text.starts_with("an order an order") && all[0].text.len() < 1000, "{all:?}");
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
