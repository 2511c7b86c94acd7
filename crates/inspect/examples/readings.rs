//! Prints what the detector reads in records: `readings [NETWORK] < records.jsonl > readings.jsonl`. For `network/`.
//!
//! Of each line `{text | payload, kind, …}` the normalised texts and how each was hidden, the linear model's log-odds and where they were highest, and, if a file
//! of a network is named, that network's, and whether the whole detector interrupts; beside the record's other members.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for training")]

use std::io::BufRead as _;

use firedoor_inspect::{
    Inspector,
    injection::{
        model::Model,
        network::{Answer, Network},
        readings,
    },
    record::inspect_record,
};
use firedoor_model::{Confidence, Severity};

fn main() {
    let model = Model::read(include_bytes!("../../../profiles/detect/injection.weights")).unwrap();
    let file = std::env::args().nth(1).map(|path| std::fs::read(path).unwrap());
    let network = file.as_deref().map(|file| Network::read(file).unwrap());
    let inspector = Inspector::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let Ok(record) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let kind = record["kind"].as_str().unwrap_or_default();
        let definition = kind == "tool_description";
        let text = record["text"].as_str().unwrap_or_default();
        let parsed = serde_json::from_str::<serde_json::Value>(text).ok().filter(serde_json::Value::is_object);
        let raw = match (&record["payload"], parsed) {
            (payload, _) if kind == "session" => {
                let steps = payload["steps"].as_array().cloned().unwrap_or_default();
                serde_json::Value::Array(steps.into_iter().map(|mut step| step["result"].take()).collect()).to_string()
            }
            (payload, _) if definition && payload.is_object() => payload.to_string(),
            (_, Some(parsed)) if definition => parsed.to_string(),
            _ => record["text"].to_string(),
        };
        let mut texts = readings(&raw);
        if definition {
            let joined: Vec<&str> = texts.iter().filter(|t| t.1 == 0).map(|t| t.0.as_str()).collect();
            let joined = joined.join("\n ");
            texts.retain(|t| t.1 > 0);
            texts.insert(0, (joined, 0));
        }
        let best: Vec<_> = texts.iter().map(|t| model.best(&t.0)).collect();
        let linear: Vec<f32> = best.iter().map(|best| best.score.max(-99.0)).collect();
        let spans: Vec<_> = best.iter().map(|best| best.span).collect();
        let answer = if definition { Answer::Definition } else { Answer::Result };
        let second: Vec<f32> = texts
            .iter()
            .filter_map(|t| Some(network.as_ref()?.best(&t.0, answer).map_or(-99.0, |judged| judged.score)))
            .collect();
        // As in Balanced, without rules: what is likely and not slight.
        let interrupts = inspect_record(&inspector, &line).is_ok_and(|report| {
            let counts =
                |f: &firedoor_model::Finding| f.severity >= Severity::Medium && f.confidence >= Confidence::Likely;
            report.findings.iter().any(|f| counts(f) && f.detector != "call/secret")
        });
        let member = |name: &str| record[name].clone();
        println!(
            "{}",
            serde_json::json!({
                "id": member("id"), "source": member("source"), "group": member("group"), "label": member("label"),
                "kind": kind, "texts": texts, "linear": linear, "spans": spans, "network": second, "interrupts": interrupts,
            })
        );
    }
}
