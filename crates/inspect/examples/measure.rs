//! Reads records from the standard input and prints how many interrupt, by source, label and transform. For development;
//! `make eval` is the tool for the record.
//!
//! `measure [GROUP]`: the findings of every record of the groups that begin so, on the standard error.
#![expect(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a measuring program")]

use std::{collections::BTreeMap, io::BufRead as _};

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_model::{Confidence, Severity};

fn main() {
    let show = std::env::args().nth(1);
    let inspector = Inspector::new();
    let mut table: BTreeMap<String, (usize, usize, BTreeMap<String, usize>)> = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let record: serde_json::Value = serde_json::from_str(&line).unwrap();
        let text = |v: &serde_json::Value| v.as_str().unwrap_or("-").to_owned();
        let group =
            format!("{} {} {}", text(&record["source"]), text(&record["label"]), text(&record["payload"]["transform"]));
        let row = table.entry(group.clone()).or_default();
        row.0 += 1;
        match inspect_record(&inspector, &line) {
            Ok(report) => {
                let interrupts = |f: &&firedoor_model::Finding| {
                    f.severity >= Severity::Medium && f.confidence >= Confidence::Likely && f.detector != "call/secret"
                };
                row.1 += usize::from(report.findings.iter().any(|f| interrupts(&f)));
                let mut seen: Vec<String> =
                    report.findings.iter().map(|f| format!("{}:{:?}", f.detector, f.confidence)).collect();
                seen.sort();
                seen.dedup();
                if show.as_deref().is_some_and(|s| group.starts_with(s)) {
                    let excerpts: Vec<_> = report
                        .findings
                        .iter()
                        .flat_map(|f| f.evidence.iter().map(|e| e.excerpt.visible(160)))
                        .collect();
                    let summaries: Vec<_> = report.findings.iter().map(|f| &f.summary).collect();
                    eprintln!("{} {seen:?} {summaries:?} {excerpts:?}", report.id);
                }
                for name in seen {
                    *row.2.entry(name).or_default() += 1;
                }
            }
            Err(error) => *row.2.entry(format!("error: {error}")).or_default() += 1,
        }
    }
    for (group, (records, interrupting, seen)) in table {
        println!("{group} {interrupting}/{records} {seen:?}");
    }
}
