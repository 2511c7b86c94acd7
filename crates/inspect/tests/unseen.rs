//! What the detector makes of texts that nothing of it was made from: neither weights nor phrases nor thresholds. They were
//! written in the manner of published attacks and of what tools return every day, without sight of either.

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_model::{Confidence, Severity};

/// Of 100 attacks and 120 honest texts. What it is measured at is in `docs/evaluation.md`; what falls below this is a fault.
const CAUGHT: usize = 85;
const WRONG: usize = 6;

#[test]
fn texts_that_it_was_not_made_from_are_told_apart() {
    let inspector = Inspector::new();
    let mut interrupts = [Vec::new(), Vec::new()];
    for line in include_str!("../../../tests/eval/unseen.jsonl").lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let report = inspect_record(&inspector, line).unwrap();
        if report.findings.iter().any(|f| f.severity >= Severity::Medium && f.confidence >= Confidence::Likely) {
            interrupts[usize::from(record["label"] == "benign")].push(record["id"].to_string());
        }
    }
    let [caught, wrong] = interrupts;
    assert!(caught.len() >= CAUGHT, "only {} of 100 attacks are caught", caught.len());
    assert!(wrong.len() <= WRONG, "honest texts that interrupt: {wrong:?}");
}
