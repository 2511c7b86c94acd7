//! Findings and rules to a verdict.

use firedoor_model::{
    Confidence, Digest, EntryId, Finding, Millis, Mode, Severity, Verdict,
    question::Choice,
    rule::{Match, Origin, Rule},
};

use crate::{
    decision::{Decision, Input, MessageKind, NEW_TOOL, Reason, Subject},
    session::{Intent, SessionRules},
    thresholds::{HOST, Threshold, names, threshold},
};

/// Decides about one message. In this order:
///
/// 1. block rules, managed ones first, then what the user refused in this session;
/// 2. quarantine, and an inspection that failed;
/// 3. a permit for exactly this call (the caller spends it: [`crate::Desk::judge`] does);
/// 4. allow rules, each silencing the findings of its detector; and, in the next round of a call that the user allowed, that
///    answer, silencing what it was given on;
/// 5. the findings that are left, by mode. During a pause nothing is asked (`unasked`).
///
/// 1 and 2 hold in every mode. An answer was given on what could be asked about, so what it allows (a rule of origin
/// Answer or Suggestion, a session rule) silences no finding that blocks by itself; a rule that somebody wrote does.
pub fn judge(input: &Input<'_>, session: &SessionRules) -> Decision {
    let Input { findings, subject, now, .. } = *input;
    if let Some(rule) = blocking_rule(input.rules, subject, findings, now) {
        return settled(Verdict::Block, Reason::Rule { id: rule.id, origin: rule.origin });
    }
    if let Some(reference) = session.denial(subject, findings) {
        return settled(Verdict::Block, Reason::Denied { reference: reference.clone() });
    }
    if input.quarantined || findings.iter().any(|f| threshold(&f.detector) == Threshold::Quarantine) {
        return settled(Verdict::Block, Reason::Quarantined);
    }
    if let Some(failed) = findings.iter().find(|f| threshold(&f.detector) == Threshold::Refuse) {
        return settled(Verdict::Block, Reason::Finding { detector: failed.detector.clone() });
    }
    if input.kind == MessageKind::Call
        && let Some(permit) = session.permit(&subject.call, now)
    {
        return settled(Verdict::Allow, Reason::Permit { reference: permit.reference.clone() });
    }

    let round = input.round.filter(|_| input.kind == MessageKind::Call);
    let round = round.and_then(|round| session.rounds.find(&round, subject, now));
    let mut silenced = None;
    let (mut open, mut known) = (Vec::new(), Vec::new());
    for (place, finding) in findings.iter().enumerate() {
        match weigh(input.mode, finding) {
            Verdict::Allow => {}
            verdict => match allowing(input, session, verdict, Some(finding)) {
                Some(reason) => silenced = Some(reason),
                None => match unasked(input, verdict, finding) {
                    Verdict::Allow => {}
                    Verdict::Ask if round.is_some_and(|allowed| allowed.covers(finding)) => {
                        known.push((Verdict::Ask, finding.severity, place));
                    }
                    verdict => open.push((verdict, finding.severity, place)),
                },
            },
        }
    }
    if open.is_empty() && !known.is_empty() {
        return settled(Verdict::Allow, Reason::Round);
    }
    // Whoever is asked about what is new sees all of it.
    open.extend(known);
    let asks: Vec<_> = open.iter().filter(|(verdict, ..)| *verdict == Verdict::Ask).map(|(.., place)| *place).collect();
    let gravest = open.into_iter().max_by_key(|(verdict, severity, _)| (*verdict, *severity));
    if let Some((verdict, finding)) = gravest.and_then(|(verdict, _, place)| Some((verdict, findings.get(place)?))) {
        let reason = Reason::Finding { detector: finding.detector.clone() };
        let asks = if verdict == Verdict::Ask { asks } else { Vec::new() };
        return Decision { verdict, reason, asks, round: None };
    }
    if input.mode == Mode::Strict && input.new_tool {
        match allowing(input, session, Verdict::Ask, None) {
            Some(reason) => silenced = Some(reason),
            None if round.is_some() => silenced = Some(Reason::Round),
            None if input.paused => {}
            None => return settled(Verdict::Ask, Reason::NewTool),
        }
    }
    let nothing = if findings.is_empty() { Reason::Clean } else { Reason::Recorded };
    settled(Verdict::Allow, silenced.unwrap_or(nothing))
}

/// The verdict on a record that stands alone: Balanced, without rules, pins or a session.
pub fn verdict_for_record(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| weigh(Mode::Balanced, finding)).max().unwrap_or(Verdict::Allow)
}

fn settled(verdict: Verdict, reason: Reason) -> Decision {
    Decision { verdict, reason, asks: Vec::new(), round: None }
}

/// What one finding demands.
fn weigh(mode: Mode, finding: &Finding) -> Verdict {
    match (mode, threshold(&finding.detector)) {
        (_, Threshold::Quarantine | Threshold::Refuse) | (Mode::Watch, Threshold::Consent) => Verdict::Block,
        (Mode::Balanced | Mode::Strict, Threshold::Consent) => Verdict::Ask,
        (Mode::Strict, Threshold::Strict) if finding.severity >= Severity::Medium => Verdict::Ask,
        (Mode::Watch, _) | (_, Threshold::Record | Threshold::Strict) => Verdict::Allow,
        (Mode::Balanced | Mode::Strict, Threshold::Interrupt(from)) => {
            if finding.severity == Severity::Critical && finding.confidence == Confidence::Certain {
                Verdict::Block
            } else if finding.severity >= Severity::Medium && finding.confidence >= from {
                Verdict::Ask
            } else {
                Verdict::Allow
            }
        }
    }
}

/// What becomes of a demand while the user is not asked: what would be asked about passes and stays on record, as in
/// Watch. What needs somebody's leave does not pass, as in Watch. What blocks by itself goes on doing so.
fn unasked(input: &Input<'_>, demand: Verdict, finding: &Finding) -> Verdict {
    match demand {
        Verdict::Ask if !input.paused => Verdict::Ask,
        Verdict::Ask => weigh(Mode::Watch, finding),
        Verdict::Allow | Verdict::Block => demand,
    }
}

/// The block rule in force, a managed one before all others.
pub(crate) fn blocking_rule<'a>(
    rules: &'a [Rule],
    subject: &Subject,
    findings: &[Finding],
    now: Millis,
) -> Option<&'a Rule> {
    let found = |detector: &str| findings.iter().any(|f| names(detector, &f.detector));
    rules
        .iter()
        .filter(|rule| rule.effect == Choice::Block && in_force(rule, now) && blocks(&rule.matches, subject))
        .filter(|rule| rule.matches.detector.as_deref().is_none_or(found))
        .max_by_key(|rule| rule.origin == Origin::Managed)
}

/// What allows a finding here, or without one the tool's first use.
fn allowing(input: &Input<'_>, session: &SessionRules, demand: Verdict, finding: Option<&Finding>) -> Option<Reason> {
    let detector = finding.map_or(NEW_TOOL, |f| f.detector.as_ref());
    let answers_count = demand != Verdict::Block;
    let rule = input.rules.iter().find(|rule| {
        rule.effect == Choice::Allow
            && (answers_count || !matches!(rule.origin, Origin::Answer | Origin::Suggestion))
            && in_force(rule, input.now)
            && covers(&rule.matches, input.subject)
            // A rule about calls is no grant: one that opens the network says so.
            && rule.matches.detector.as_deref().map_or(detector != HOST, |d| names(d, detector))
    });
    if let Some(rule) = rule {
        return Some(Reason::Rule { id: rule.id, origin: rule.origin });
    }
    let intents = Intent::all(input.subject, finding);
    let allow = session.allows.iter().find(|allow| answers_count && allow.covers(input.subject, &intents))?;
    Some(Reason::SessionRule { reference: allow.reference.clone() })
}

fn in_force(rule: &Rule, now: Millis) -> bool {
    rule.expires.is_none_or(|end| now < end)
}

/// As [`covers`]; but an address counts wherever it is named, because what is blocked must not pass beside another one.
fn blocks(matches: &Match, subject: &Subject) -> bool {
    match &matches.address {
        Some(address) if subject.mentions.contains(address) => {
            covers(&Match { address: None, ..matches.clone() }, subject)
        }
        Some(_) | None => covers(matches, subject),
    }
}

/// Whether every present field but the detector matches. A bound identity that is not known does not match.
fn covers(matches: &Match, subject: &Subject) -> bool {
    // Destructured, so that a field added to `Match` cannot be forgotten here.
    let Match { entry, client, tool, detector: _, call, address, launch, definition } = matches;
    entry.as_ref().is_none_or(|e: &EntryId| *e == subject.entry)
        && client.as_ref().is_none_or(|c| subject.client.as_ref().is_some_and(|known| known.is(c.raw())))
        && tool.as_ref().is_none_or(|t| subject.tool.as_ref() == Some(t))
        && call.as_ref().is_none_or(|c: &Digest| *c == subject.call.digest())
        && address.as_ref().is_none_or(|a| subject.address.as_ref() == Some(a))
        && launch.as_ref().is_none_or(|l| subject.launch.as_ref() == Some(l))
        && definition.as_ref().is_none_or(|d| subject.definition.as_ref() == Some(d))
}

#[cfg(test)]
mod tests;
