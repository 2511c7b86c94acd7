//! `firedoor pending` and `firedoor answer`.

use std::{collections::BTreeSet, process::ExitCode};

use firedoor_ipc::command::{Offer, Reply, Request};
use firedoor_model::{
    EntryId, Evidence, Severity, Untrusted,
    finding::Role,
    notice::Noticed,
    question::{Choice, Duration, Question, Ref, Scope},
    quoted,
};

use crate::{
    arguments::decisions::{ChoiceArgument, DurationArgument, ScopeArgument},
    engine::{Engine, unexpected},
    failure::Failure,
    output, withheld,
};

impl From<ChoiceArgument> for Choice {
    fn from(choice: ChoiceArgument) -> Self {
        match choice {
            ChoiceArgument::Allow => Self::Allow,
            ChoiceArgument::Block => Self::Block,
        }
    }
}

impl From<DurationArgument> for Duration {
    fn from(duration: DurationArgument) -> Self {
        match duration {
            DurationArgument::Once => Self::Once,
            DurationArgument::Session => Self::Session,
            DurationArgument::Always => Self::Always,
        }
    }
}

impl From<ScopeArgument> for Scope {
    fn from(scope: ScopeArgument) -> Self {
        match scope {
            ScopeArgument::Call => Self::Call,
            ScopeArgument::Tool => Self::Tool,
        }
    }
}

/// Shows the open questions.
pub fn pending(json: bool) -> Result<ExitCode, Failure> {
    let (questions, offers, held_back) = match Engine::running()? {
        None => (Vec::new(), Vec::new(), Vec::new()),
        Some(mut engine) => match (engine.ask(&Request::Pending)?, engine.ask(&Request::Status)?) {
            (Reply::Questions { questions }, Reply::Status(status)) => (questions, status.offers, status.withheld),
            _ => return Err(unexpected()),
        },
    };
    if json {
        output::json(&serde_json::json!({ "questions": questions, "offers": offers, "withheld": held_back }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if questions.is_empty() {
        output::line("No open questions.");
    }
    questions.iter().for_each(|question| output::line(&in_words(question)));
    withheld::in_words(&held_back).iter().for_each(|held| output::line(held));
    offers.iter().for_each(|offer| output::line(&offered(offer)));
    Ok(ExitCode::SUCCESS)
}

/// "New server "x" in Cursor: protect?", and how to say yes or no.
pub fn offered(offer: &Offer) -> String {
    let server = format!("{:?}", Untrusted::new(offer.entry.server()));
    let client = &offer.client;
    let what = match offer.noticed {
        Noticed::Dropped => format!("{client} dropped Firedoor from {server}"),
        Noticed::Changed => format!("Changed server {server} in {client}"),
        _ => format!("New server {server} in {client}"),
    };
    let entry = offer.entry.quoted();
    let of = offer.project.as_ref().map(|dir| format!(" --project {}", quoted(dir.raw())));
    let of = of.unwrap_or_default();
    format!(
        "{what}: protect?\n  FILE   {}\n  RUNS   {}\n  yes: firedoor protect {entry}{of}\n  no:  firedoor ignore {entry}",
        offer.path.visible(300),
        offer.command.visible(400),
    )
}

/// Leaves a server as it is.
pub fn ignore(entry: EntryId, json: bool) -> Result<ExitCode, Failure> {
    let Some(mut engine) = Engine::running()? else {
        return Err(Failure::environment("no Firedoor engine is running, so nothing is offered"));
    };
    settled(&mut engine, &Request::Ignore { entry }, json)
}

fn in_words(question: &Question) -> String {
    let what = match &question.connection {
        Some(connection) => format!("a connection to {}, by {}", connection.to, connection.program.visible(200)),
        None => question.tool.visible(80),
    };
    let mut out = format!(
        "{}  {} → {}\n  WHAT   {}\n",
        question.id,
        question.client.visible(80),
        firedoor_model::Untrusted::new(question.entry.to_string()).visible(200),
        what,
    );
    for finding in &question.findings {
        out.push_str(&format!(
            "  WHY    {} [{}, {:?}, {:?}]\n",
            finding.summary, finding.detector, finding.severity, finding.confidence
        ));
        for evidence in &finding.evidence {
            out.push_str(&format!("         {}\n", place(evidence)));
        }
    }
    if question.connection.is_none() {
        out.push_str(&format!("  ARGS   {}\n", question.arguments.visible(4000)));
    }
    out.push_str(&format!("  answer with: firedoor answer {} allow|block [--for once|session|always]", question.id));
    if question.connection.is_none() {
        out.push_str(&lasting(question));
    }
    out
}

/// How not to be asked about this again. A rule for a detector lets everything pass that it finds, to wherever it goes: every
/// other credential as well. So where data flows, and where it is grave, only the answer is offered, which holds for where
/// this call sends it.
fn lasting(question: &Question) -> String {
    let Question { id, entry, tool, findings, exact, .. } = question;
    if findings.iter().any(|finding| finding.severity >= Severity::High || finding.detector.starts_with("flow/")) {
        let what = if *exact { "this exact call" } else { "this tool, to where this call sends" };
        return format!("\n  allow {what}, from now on: firedoor answer {id} allow --for always");
    }
    // One rule names one detector, and any that is left out asks again.
    let detectors: BTreeSet<&str> = findings.iter().map(|finding| finding.detector.as_ref()).collect();
    let entry = entry.to_string();
    let commands: Option<Vec<String>> =
        detectors.into_iter().map(|detector| silencing(&entry, tool.raw(), detector)).collect();
    let mut out = String::new();
    for (place, command) in commands.into_iter().flatten().enumerate() {
        let label = if place == 0 { "never ask about this again" } else { "                       and" };
        out.push_str(&format!("\n  {label}: {command}"));
    }
    out
}

/// The rule that silences one detector for one tool. `None` where a shell could read a name as more than a word.
fn silencing(entry: &str, tool: &str, detector: &str) -> Option<String> {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':');
    let word = |text: &str| !text.is_empty() && !text.starts_with('-') && text.bytes().all(part);
    let plain = word(entry) && word(tool) && word(detector);
    plain.then(|| format!("firedoor rules add allow --entry {entry} --tool {tool} --detector {detector}"))
}

pub fn place(evidence: &Evidence) -> String {
    let role = match evidence.role {
        Role::Source => "from",
        Role::Sink => "to  ",
        Role::Place => "in  ",
    };
    let entry = evidence.entry.as_ref().map(|e| firedoor_model::Untrusted::new(e.to_string()).visible(200));
    let tool = evidence.tool.as_ref().map(|t| t.visible(80));
    let parts = [entry, tool, Some(evidence.pointer.visible(120)), Some(evidence.excerpt.visible(200))];
    let mut text = format!("{role} {}", parts.into_iter().flatten().collect::<Vec<_>>().join("  "));
    if let Some((start, end)) = evidence.span {
        text.push_str(&format!("  bytes {start}–{end}"));
    }
    if let Some(transform) = &evidence.transform {
        text.push_str(&format!("  ({transform})"));
    }
    if let Some(age) = evidence.age_ms {
        text.push_str(&format!("  {} s ago", age / 1000));
    }
    text
}

/// Answers one question. Exit code 1 when the answer does not count.
pub fn answer(
    id: Ref,
    choice: ChoiceArgument,
    duration: DurationArgument,
    scope: ScopeArgument,
    json: bool,
) -> Result<ExitCode, Failure> {
    let Some(mut engine) = Engine::running()? else {
        return Err(Failure::environment("no Firedoor engine is running, so there is no question to answer"));
    };
    let (choice, duration, scope) = (choice.into(), duration.into(), scope.into());
    let request = Request::Answer { id, choice, duration, scope, also: Vec::new() };
    settled(&mut engine, &request, json)
}

/// Sends a command that is answered with a sentence, and shows that.
pub fn settled(engine: &mut Engine, request: &Request, json: bool) -> Result<ExitCode, Failure> {
    match engine.ask(request)? {
        Reply::Done { text } => {
            if json {
                output::json(&serde_json::json!({ "text": text }))?;
            } else {
                output::line(&text);
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Confidence, Digest, Finding, Millis};

    use super::*;

    #[test]
    fn a_command_to_copy_holds_plain_words_only() {
        let want = "firedoor rules add allow --entry c/user/s --tool send_email --detector call/volume";
        assert_eq!(silencing("c/user/s", "send_email", "call/volume").as_deref(), Some(want));
        for tool in ["a; rm -rf ~", "$(id)", "-x", "", "a b", "a\nb"] {
            assert_eq!(silencing("c/user/s", tool, "call/volume"), None, "{tool}");
        }
    }

    fn question(findings: &[(&'static str, Severity)]) -> Question {
        let finding = |(detector, severity): &(&'static str, Severity)| Finding {
            detector: (*detector).into(),
            severity: *severity,
            confidence: Confidence::Likely,
            summary: "made up".into(),
            evidence: Vec::new(),
        };
        Question {
            id: Ref("7F3A".into()),
            entry: EntryId::new("c", "user", "s").unwrap(),
            client: Untrusted::new("c"),
            tool: Untrusted::new("fetch"),
            connection: None,
            address: None,
            exact: false,
            findings: findings.iter().map(finding).collect(),
            arguments: Untrusted::new("{}"),
            call: Digest([0; 32]),
            asked: Millis(0),
            held_until: Millis(0),
            open_until: Millis(0),
        }
    }

    #[test]
    fn no_rule_is_offered_that_lets_other_data_out() {
        let answer = "firedoor answer 7F3A allow --for always";
        for findings in [
            &[("flow/secret", Severity::High)][..],
            &[("flow/private", Severity::Medium)],
            &[("call/volume", Severity::Medium), ("flow/private", Severity::Low)],
            &[("call/destructive", Severity::High)],
        ] {
            let said = in_words(&question(findings));
            assert!(!said.contains("rules add") && said.contains(answer), "{said}");
        }
        let exact = Question { exact: true, ..question(&[("flow/secret", Severity::High)]) };
        assert!(in_words(&exact).contains("allow this exact call, from now on"));
    }

    #[test]
    fn every_detector_that_asks_has_its_rule() {
        let said = in_words(&question(&[
            ("call/volume", Severity::Medium),
            ("call/rate", Severity::Medium),
            ("call/rate", Severity::Medium),
        ]));
        let commands: Vec<&str> = said.lines().filter(|line| line.contains("rules add")).collect();
        assert_eq!(
            commands,
            [
                "  never ask about this again: firedoor rules add allow --entry c/user/s --tool fetch --detector call/rate",
                "                         and: firedoor rules add allow --entry c/user/s --tool fetch --detector call/volume",
            ]
        );
        // A tool's first use is asked about without a finding.
        assert!(!in_words(&question(&[])).contains("again"));
    }
}
