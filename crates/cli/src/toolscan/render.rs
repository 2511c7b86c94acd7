//! Reports for people and for code scanning. Values are masked here: these are made to be passed on.

use firedoor_model::{Untrusted, finding::mask};
use serde_json::{Value, json};

use super::report::{Flow, Level, Report, SinkKind, SourceKind};

/// Longest text that is shown, in characters.
const MAX_TEXT: usize = 200;

/// For a terminal.
pub fn words(report: &Report) -> String {
    let exec = &report.exec;
    let mut out = format!(
        "{}: exit code {} after {} ms, {} sources, {} sinks, {} flows, {} violations\n",
        shown(&report.target.join(" ")),
        exec.exit_code,
        exec.duration_ms,
        report.summary.sources,
        report.summary.sinks,
        report.summary.flows,
        report.summary.violations
    );
    exec.notes.iter().for_each(|note| out.push_str(&format!("note: {}\n", shown(note))));
    for flow in &report.flows {
        out.push_str(&format!("flow ({}): {}\n", level(flow), sentence(report, flow)));
    }
    for violation in &report.violations {
        let target = shown(&violation.target);
        out.push_str(&format!("violation ({}): {target}: {}\n", violation.kind, shown(&violation.evidence)));
    }
    out
}

/// For a pull request or a wiki.
pub fn markdown(report: &Report) -> String {
    let cell =
        |text: &str| shown(text).replace('\\', "\\\\").replace('|', "\\|").replace('`', "'").replace('<', "&lt;");
    let mut out = format!("# Scan of `{}`\n\n", cell(&report.target.join(" ")));
    let (exec, sum) = (&report.exec, &report.summary);
    out.push_str("| exit | ms | sources | sinks | flows | violations |\n|--:|--:|--:|--:|--:|--:|\n");
    out.push_str(&format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        exec.exit_code, exec.duration_ms, sum.sources, sum.sinks, sum.flows, sum.violations
    ));
    if !report.flows.is_empty() {
        out.push_str("\n| source | sink | snippet | changed | confidence |\n|---|---|---|---|---|\n");
    }
    for flow in &report.flows {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            cell(&source(report, flow)),
            cell(&sink(report, flow)),
            cell(&mask(&flow.snippet)),
            cell(flow.transform.as_deref().unwrap_or("–")),
            level(flow)
        ));
    }
    if !report.violations.is_empty() {
        out.push_str("\n| violation | target | evidence |\n|---|---|---|\n");
    }
    for v in &report.violations {
        out.push_str(&format!("| {} | {} | {} |\n", v.kind, cell(&v.target), cell(&v.evidence)));
    }
    out
}

/// For code scanning: SARIF 2.1.0 (OASIS standard).
pub fn sarif(report: &Report) -> Value {
    let file = report.target.first().cloned().unwrap_or_default();
    let place = json!([{"physicalLocation": {"artifactLocation": {"uri": crate::sarif::encoded(file.as_ref())}}}]);
    let result = |rule: &str, level: &str, text: String| json!({"ruleId": rule, "level": level, "message": {"text": text}, "locations": place});
    let flows = report.flows.iter().map(|flow| {
        let level = if flow.confidence == Level::High { "error" } else { "warning" };
        result("scan/flow", level, sentence(report, flow))
    });
    let violations = report.violations.iter().map(|v| {
        result("scan/violation", "warning", format!("{}: {}: {}", v.kind, shown(&v.target), shown(&v.evidence)))
    });
    let rule = |id: &str, text: &str| json!({"id": id, "shortDescription": {"text": text}, "properties": {"tags": ["security"]}});
    json!({
        "$schema": crate::sarif::SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "firedoor", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": [
                rule("scan/flow", "What a tool was given shows in what an agent reads of it"),
                rule("scan/violation", "A tool tried what it may not"),
            ]}},
            "results": flows.chain(violations).collect::<Vec<_>>(),
        }],
    })
}

fn sentence(report: &Report, flow: &Flow) -> String {
    let how = flow.transform.as_deref().map(|t| format!(" ({t})")).unwrap_or_default();
    format!("{} shows in {}{how}: {}", source(report, flow), sink(report, flow), mask(&flow.snippet))
}

fn source(report: &Report, flow: &Flow) -> String {
    let Some(source) = report.sources.get(flow.source) else { return String::new() };
    let kind = match source.kind {
        SourceKind::Env => "variable",
        SourceKind::File => "file",
        SourceKind::Http => "address",
        SourceKind::Host => "host",
    };
    format!("{kind} {}", shown(&source.name))
}

fn sink(report: &Report, flow: &Flow) -> String {
    let Some(sink) = report.sinks.get(flow.sink) else { return String::new() };
    let kind = match sink.kind {
        SinkKind::PromptLine => "a line with PROMPT:",
        SinkKind::JsonPrompt => "the prompt",
        SinkKind::ToolReturn => "the result",
        SinkKind::Text => "a line",
    };
    // A value may stand in a member's name.
    let value = report.sources.get(flow.source).map(|s| s.value.trim()).filter(|v| !v.is_empty());
    let path = value.map_or_else(|| sink.path.clone(), |v| sink.path.replace(v, &mask("")));
    if path.is_empty() { kind.to_owned() } else { format!("{kind} {}", shown(&path.replace(&flow.snippet, &mask("")))) }
}

fn level(flow: &Flow) -> &'static str {
    match flow.confidence {
        Level::High => "high",
        Level::Low => "low",
    }
}

fn shown(text: &str) -> String {
    Untrusted::new(text).visible(MAX_TEXT)
}
