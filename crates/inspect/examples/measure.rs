//! Reads records from the standard input and prints how many raise each detector, by source, label and transform. For
//! development; `firedoor inspect` is the tool for users.
#![expect(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a measuring program")]

use std::{collections::BTreeMap, io::BufRead as _};

use firedoor_inspect::{Inspector, record::inspect_record};

fn main() {
    let show = std::env::args().nth(1);
    let inspector = Inspector::new();
    let mut table: BTreeMap<String, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
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
                let mut seen: Vec<String> =
                    report.findings.iter().map(|f| format!("{}:{:?}", f.detector, f.confidence)).collect();
                seen.sort();
                seen.dedup();
                if show.as_deref().is_some_and(|s| group.starts_with(s)) {
                    eprintln!(
                        "{} {seen:?} {:?}",
                        report.id,
                        report.findings.iter().map(|f| &f.summary).collect::<Vec<_>>()
                    );
                }
                for name in seen {
                    *row.1.entry(name).or_default() += 1;
                }
            }
            Err(error) => *row.1.entry(format!("error: {error}")).or_default() += 1,
        }
    }
    for (group, (records, seen)) in table {
        println!("{group} {records} {seen:?}");
    }
}
