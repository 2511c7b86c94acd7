//! What leaves that should not, and what rightly leaves: flows that neither the model of private texts nor any list was made from. They were
//! written without sight of the detector; the thresholds were chosen with the whole set in view, of which this is a part.

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_model::{Confidence, Severity};

/// Of 272 private texts that go as they stand to where they should not, and of 297 honest flows (24 of them such that a question is
/// fair). What it is measured at is in `docs/evaluation.md`; what falls below this is a fault.
const ASKED: usize = 150;
const NEEDLESS: usize = 4;

#[test]
fn private_texts_are_asked_about_and_others_are_not() {
    let inspector = Inspector::new();
    let mut asked = [Vec::new(), Vec::new()];
    for line in include_str!("../../../tests/eval/private.jsonl").lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let report = inspect_record(&inspector, line).unwrap();
        let question = report.findings.iter().any(|finding| {
            let sure = finding.severity >= Severity::Medium && finding.confidence >= Confidence::Likely;
            sure && !finding.detector.starts_with("result/")
        });
        if question && record["meta"]["ask_ok"] != true {
            asked[usize::from(record["label"] == "benign")].push(record["id"].to_string());
        }
    }
    let [leaks, honest] = asked;
    assert!(leaks.len() >= ASKED, "only {} of 272 are asked about", leaks.len());
    assert!(honest.len() <= NEEDLESS, "needless: {honest:?}");
}
