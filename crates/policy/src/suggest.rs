//! Rules that would have answered questions as the user did.

use std::collections::BTreeMap;

use firedoor_model::{
    Digest, EntryId, Millis, Severity, Untrusted,
    audit::{Event, What},
    question::{Choice, Ref},
    rule::{Match, Rule},
};

use crate::thresholds::names;

/// Rules are suggested once there is a log of so long.
pub const LEARNING_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The same answer so often, and never the other one.
const ALIKE: u32 = 3;
/// Most suggestions at once: they are read one by one.
const MOST: usize = 20;

/// A rule that is suggested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Allow or block.
    pub effect: Choice,
    /// What.
    pub matches: Match,
    /// Questions that it would have answered.
    pub questions: u32,
}

/// What questions are alike by.
type Kind = (EntryId, Untrusted, String);

/// What an allow rule is bound to.
pub trait Bindings {
    /// The server's launch identity, if it is known.
    fn launch(&self, entry: &EntryId) -> Option<Digest>;
    /// The tool's accepted definition, if there is one.
    fn definition(&self, entry: &EntryId, tool: &Untrusted) -> Option<Digest>;
}

/// Suggestions from what was asked and answered, the most useful first; empty before a week of it.
///
/// Allowing is suggested only where every question of the kind was allowed and at most of medium severity, and only
/// bound to the server and the tool as they are: what is worse is worth a question each time, and what is not known
/// cannot be bound to.
pub fn suggest(
    events: &[Event],
    oldest: Option<Millis>,
    now: Millis,
    rules: &[Rule],
    bindings: &impl Bindings,
) -> Vec<Suggestion> {
    if oldest.is_none_or(|start| now.since(start) < LEARNING_MS) {
        return Vec::new();
    }
    // What each reference was about, and how bad. References come again after weeks: the nearest question counts.
    let mut asked: BTreeMap<&Ref, (Vec<Kind>, Severity)> = BTreeMap::new();
    let mut answers: BTreeMap<Kind, (u32, u32, Severity)> = BTreeMap::new();
    for event in events {
        match &event.what {
            What::Judged { subject: Some(tool), verdict, reference: Some(reference), findings, .. } => {
                if *verdict != firedoor_model::Verdict::Ask {
                    continue;
                }
                let Some(entry) = &event.entry else { continue };
                let kinds = findings.iter().map(|f| (entry.clone(), tool.clone(), f.detector.to_string())).collect();
                let worst = findings.iter().map(|f| f.severity).max().unwrap_or(Severity::Low);
                asked.insert(reference, (kinds, worst));
            }
            What::Answered { reference, choice, .. } => {
                let Some((kinds, worst)) = asked.remove(reference) else { continue };
                for kind in kinds {
                    let (allowed, blocked, most) = answers.entry(kind).or_insert((0, 0, worst));
                    *most = (*most).max(worst);
                    match choice {
                        Choice::Allow => *allowed += 1,
                        Choice::Block => *blocked += 1,
                    }
                }
            }
            _ => {}
        }
    }
    let mut suggestions: Vec<_> = answers
        .into_iter()
        .filter_map(|((entry, tool, detector), (allowed, blocked, worst))| {
            let (effect, questions) = match (allowed, blocked) {
                (n, 0) if n >= ALIKE && worst <= Severity::Medium => (Choice::Allow, n),
                (0, n) if n >= ALIKE => (Choice::Block, n),
                _ => return None,
            };
            if rules.iter().any(|rule| settles(rule, &entry, &tool, &detector, now)) {
                return None;
            }
            let (launch, definition) = match effect {
                // An update of the server must not lift a block.
                Choice::Block => (None, None),
                Choice::Allow => (Some(bindings.launch(&entry)?), Some(bindings.definition(&entry, &tool)?)),
            };
            let matches = Match {
                entry: Some(entry),
                tool: Some(tool),
                detector: Some(detector),
                launch,
                definition,
                ..Match::default()
            };
            Some(Suggestion { effect, matches, questions })
        })
        .collect();
    suggestions.sort_by_key(|s| std::cmp::Reverse(s.questions));
    suggestions.truncate(MOST);
    suggestions
}

/// Whether a rule in force speaks about the same already.
fn settles(rule: &Rule, entry: &EntryId, tool: &Untrusted, detector: &str, now: Millis) -> bool {
    let Match { entry: e, tool: t, detector: d, call, address, client, .. } = &rule.matches;
    rule.expires.is_none_or(|end| now < end)
        && call.is_none()
        && address.is_none()
        && client.is_none()
        && e.as_ref().is_none_or(|e| e == entry)
        && t.as_ref().is_none_or(|t| t == tool)
        && d.as_ref().is_none_or(|d| names(d, detector))
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Confidence, Finding, Verdict, question::Duration, rule::Origin};

    use super::*;

    const WEEK: u64 = LEARNING_MS;

    struct Known(bool);

    impl Bindings for Known {
        fn launch(&self, _: &EntryId) -> Option<Digest> {
            self.0.then(|| Digest::of(b"launch"))
        }
        fn definition(&self, _: &EntryId, _: &Untrusted) -> Option<Digest> {
            Some(Digest::of(b"definition"))
        }
    }

    /// A question about a tool, and the answer.
    fn asked(n: usize, tool: &str, severity: Severity, choice: Choice) -> [Event; 2] {
        let reference = Ref(format!("{n:04X}"));
        let event = |what| Event {
            at: Millis(n as u64),
            entry: "cursor/user/fs".parse().ok(),
            session: None,
            client: None,
            what,
        };
        let finding = Finding {
            detector: "flow/private".into(),
            severity,
            confidence: Confidence::Likely,
            summary: String::new(),
            evidence: Vec::new(),
        };
        let judged = What::Judged {
            method: "tools/call".into(),
            subject: Some(tool.into()),
            verdict: Verdict::Ask,
            reference: Some(reference.clone()),
            rule: None,
            findings: vec![finding],
        };
        [event(judged), event(What::Answered { reference, choice, duration: Duration::Once })]
    }

    fn check(events: &[Event], age: u64, rules: &[Rule], known: bool, want: &[(Choice, &str, u32)]) {
        let now = Millis(WEEK * 10);
        let found = suggest(events, Some(Millis(now.0 - age)), now, rules, &Known(known));
        let shown: Vec<_> =
            found.iter().map(|s| (s.effect, s.matches.tool.as_ref().map_or("", |t| t.raw()), s.questions)).collect();
        assert_eq!(shown, want);
        for s in found {
            let bound = s.matches.launch.is_some() && s.matches.definition.is_some();
            assert_eq!(bound, s.effect == Choice::Allow);
        }
    }

    #[test]
    fn what_is_always_answered_alike_is_suggested() {
        use Choice::{Allow, Block};
        use Severity::{High, Medium};
        let events: Vec<Event> = [
            (0..4, "post", Medium, Allow),
            (10..13, "send", High, Block),
            (20..25, "leak", High, Allow),
            (30..32, "rare", Medium, Allow),
            (40..44, "both", Medium, Allow),
            (50..51, "both", Medium, Block),
        ]
        .into_iter()
        .flat_map(|(range, tool, severity, choice)| range.flat_map(move |n| asked(n, tool, severity, choice)))
        .collect();
        check(&events, WEEK, &[], true, &[(Allow, "post", 4), (Block, "send", 3)]);
        // Too early, or nothing to bind to.
        check(&events, WEEK - 1, &[], true, &[]);
        check(&events, WEEK, &[], false, &[(Block, "send", 3)]);
        assert_eq!(suggest(&events, None, Millis(WEEK * 10), &[], &Known(true)), []);
        // There is such a rule.
        let rule = |detector: &str, expires| Rule {
            id: 1,
            effect: Allow,
            matches: Match { tool: Some("post".into()), detector: Some(detector.into()), ..Match::default() },
            origin: Origin::User,
            created: Millis(0),
            expires,
        };
        check(&events, WEEK, &[rule("flow/", None)], true, &[(Block, "send", 3)]);
        check(&events, WEEK, &[rule("flow/", Some(Millis(5)))], true, &[(Allow, "post", 4), (Block, "send", 3)]);
        check(&events, WEEK, &[rule("call/", None)], true, &[(Allow, "post", 4), (Block, "send", 3)]);
    }
}
