//! `firedoor inspect`.

use std::{
    io::{self, BufRead, Read},
    ops::Range,
    process::ExitCode,
};

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_model::{Finding, Verdict};
use firedoor_policy::verdict_for_record;
use serde::Serialize;

use crate::{failure::Failure, output};

/// Longest record, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// What is said about one record.
#[derive(Serialize)]
struct Judged {
    id: String,
    findings: Vec<Explained>,
    /// What Balanced would do.
    verdict: Verdict,
    /// The calls of a session that Balanced would not just pass on, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Vec<usize>>,
}

/// A finding for somebody who wants to know what to do about it.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    finding: Finding,
    /// What would make it go away.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl From<Finding> for Explained {
    fn from(finding: Finding) -> Self {
        Self { remedy: finding.remedy(), finding }
    }
}

/// Judges each line alone.
pub fn run() -> Result<ExitCode, Failure> {
    let inspector = Inspector::new();
    let mut input = io::stdin().lock();
    let mut worst = Verdict::Allow;
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let count = input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|e| Failure::environment(format!("cannot read stdin: {e}")))?;
        if count == 0 {
            break;
        }
        if count as u64 == MAX_LINE && line.last() != Some(&b'\n') {
            return Err(Failure::environment(format!("line {number}: longer than {MAX_LINE} bytes")));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|e| Failure::environment(format!("line {number}: not UTF-8: {e}")))?
            .trim();
        if text.is_empty() {
            continue;
        }
        let report =
            inspect_record(&inspector, text).map_err(|e| Failure::environment(format!("line {number}: {e}")))?;
        let verdict = verdict_for_record(&report.findings);
        worst = worst.max(verdict);
        let stops = |found: &Range<usize>| {
            report.findings.get(found.clone()).map_or(Verdict::Block, verdict_for_record) > Verdict::Allow
        };
        let stopped = report.calls.iter().enumerate().filter(|(_, found)| stops(found)).map(|(at, _)| at).collect();
        output::json(&Judged {
            id: report.id,
            findings: report.findings.into_iter().map(Into::into).collect(),
            verdict,
            stopped: (!report.calls.is_empty()).then_some(stopped),
        })?;
    }
    Ok(if worst == Verdict::Allow { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
