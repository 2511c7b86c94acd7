//! Rules: adding, removing, putting back, and what could become one.

use std::{collections::BTreeMap, rc::Rc};

use firedoor_ipc::command::{self, Reply};
use firedoor_model::{
    Digest, EntryId, Millis, Untrusted,
    audit::What,
    question::Choice,
    rule::{Draft, Match, Origin, Rule},
};
use firedoor_policy::{Bindings, Threshold, suggest, threshold};
use firedoor_store::PinKind;

use super::settings::{Outcome, note, text};
use crate::engine::Engine;

/// Removed rules that can be put back.
const MAX_REMOVED: usize = 64;
/// How far back suggestions look.
const LOOK_BACK_MS: u64 = 30 * 24 * 60 * 60 * 1000;

pub async fn list(engine: &Rc<Engine>) -> Outcome {
    engine.write_uses().await;
    let uses = engine.recorder.with(|store| store.rule_uses()).await.map_err(text)?;
    Ok(Reply::Rules { rules: engine.rules.borrow().clone(), uses: uses.into_iter().collect() })
}

/// Adds one after the other but those that are there. What was added before one fails stays, and is said.
pub async fn add(engine: &Rc<Engine>, rules: Vec<command::WantedRule>) -> Outcome {
    let mut said = Vec::new();
    for rule in rules {
        // An administrator's may go again.
        let same = |known: &Rule| {
            known.origin != Origin::Managed
                && known.effect == rule.effect
                && known.matches == rule.matches
                && known.expires == rule.expires
        };
        if let Some(known) = engine.rules.borrow().iter().find(|known| same(known)) {
            said.push(format!("rule {} is there already: {known}", known.id));
            continue;
        }
        match keep(engine, rule.draft(engine.now()), "added").await {
            Ok(Reply::Done { text }) => said.push(text),
            Ok(_) => {}
            Err(why) if said.is_empty() => return Err(why),
            Err(why) => return Err(format!("{why}; before that: {}", said.join("; "))),
        }
    }
    if said.is_empty() {
        return Err("no rule was named".into());
    }
    Ok(Reply::Done { text: said.join("\n") })
}

/// Keeps a rule, and says what it will not do.
async fn keep(engine: &Rc<Engine>, draft: Draft, how: &str) -> Outcome {
    let rule = stored(engine, draft, how).await?;
    let mut text = format!("rule {}: {rule}", rule.id);
    if rule.effect == Choice::Allow && engine.desk.borrow().still_refuses(&rule.matches) {
        text.push_str("; what was refused in a session that still runs stays refused until that ends");
    }
    Ok(Reply::Done { text })
}

async fn stored(engine: &Rc<Engine>, draft: Draft, how: &str) -> Result<Rule, String> {
    note(engine, draft.matches.entry.as_ref(), format!("rule {how}: {}", draft.clone().numbered(0))).await?;
    let rule = engine.recorder.with(move |store| store.add_rule(&draft)).await.map_err(text)?;
    engine.rules.borrow_mut().push(rule.clone());
    engine.changed();
    Ok(rule)
}

pub async fn remove(engine: &Rc<Engine>, id: i64) -> Outcome {
    let rule = engine.rules.borrow().iter().find(|r| r.id == id).cloned();
    let rule = rule.ok_or_else(|| format!("there is no rule {id}: list them with `firedoor rules list`"))?;
    if rule.origin == Origin::Managed {
        return Err(format!("rule {id} was set by an administrator and cannot be removed"));
    }
    note(engine, rule.matches.entry.as_ref(), format!("rule removed: {rule}")).await?;
    engine.recorder.with(move |store| store.remove_rule(id)).await.map_err(text)?;
    engine.rules.borrow_mut().retain(|r| r.id != id);
    let said = format!("removed rule {id}: {rule}");
    let mut removed = engine.removed.borrow_mut();
    if removed.len() >= MAX_REMOVED {
        removed.remove(0);
    }
    removed.push(rule);
    engine.changed();
    Ok(Reply::Done { text: said })
}

/// Puts a rule back as it was, under a new number.
pub async fn restore(engine: &Rc<Engine>, id: i64) -> Outcome {
    let rule = {
        let mut removed = engine.removed.borrow_mut();
        let at = removed.iter().position(|r| r.id == id);
        at.map(|at| removed.remove(at)).ok_or_else(|| format!("rule {id} was not removed since Firedoor started"))?
    };
    let Rule { effect, matches, origin, created, expires, .. } = rule.clone();
    let outcome = keep(engine, Draft { effect, matches, origin, created, expires }, "put back").await;
    if outcome.is_err() {
        engine.removed.borrow_mut().push(rule);
    }
    outcome
}

/// A rule about what a row of the log tells.
pub async fn from_row(engine: &Rc<Engine>, seq: u64, effect: Choice) -> Outcome {
    let row = engine.recorder.with(move |store| store.event(seq)).await.map_err(text)?;
    let event = row.ok_or_else(|| format!("row {seq} is not in the log any more"))?.event;
    let (Some(entry), What::Judged { subject, findings, .. }) = (event.entry, event.what) else {
        return Err(format!("row {seq} is not about a call, so there is nothing to make a rule of"));
    };
    // A changed definition is accepted and not allowed: no rule lets it run.
    let mistaken = findings.iter().filter(|f| threshold(&f.detector) != Threshold::Quarantine);
    let detectors: Vec<String> = mistaken.map(|f| f.detector.to_string()).collect();
    let matches = |detector: Option<String>, launch: Option<Digest>| Match {
        entry: Some(entry.clone()),
        tool: subject.clone(),
        detector,
        launch,
        ..Match::default()
    };
    let wanted: Vec<Match> = match effect {
        // All of it: a block of the tool itself.
        Choice::Block => vec![matches(None, None)],
        Choice::Allow if detectors.len() < findings.len() && detectors.is_empty() => {
            return Err(format!(
                "what row {seq} is about is held back until its definition is accepted: `firedoor pins diff`"
            ));
        }
        Choice::Allow if subject.is_none() || detectors.is_empty() => {
            return Err(format!("nothing was found in row {seq} that could be marked as wrong"));
        }
        Choice::Allow => {
            let launch = engine.starts.borrow().get(&entry).map(|start| start.launch);
            let launch = launch.ok_or_else(|| {
                format!("{entry} was not started since Firedoor was, so a rule cannot be bound to it: start it once")
            })?;
            let mut each: Vec<_> = detectors.into_iter().map(|d| matches(Some(d), Some(launch))).collect();
            each.dedup();
            each
        }
    };
    let mut said = Vec::new();
    for matches in wanted {
        let draft =
            Draft { effect, matches: matches.clone(), origin: Origin::Log, created: engine.now(), expires: None };
        let known = engine.rules.borrow().iter().any(|r| r.effect == effect && r.matches == draft.matches);
        if !known {
            let rule = stored(engine, draft, "made from the log").await?;
            said.push(format!("rule {}: {rule}", rule.id));
        }
        if effect == Choice::Allow {
            said.extend(lifted(engine, &matches));
        }
    }
    if said.is_empty() {
        return Err("there is such a rule already".into());
    }
    Ok(Reply::Done { text: said.join("; ") })
}

/// Takes back what was refused on a finding that is marked as wrong by now, and says so; and what goes on blocking it.
fn lifted(engine: &Engine, wrong: &Match) -> Vec<String> {
    let mut said = Vec::new();
    match engine.desk.borrow_mut().lift(wrong) {
        0 => {}
        1 => said.push("what was refused for it in a session that runs is not any more".to_owned()),
        n => said.push(format!("what was refused for it in {n} sessions that run is not any more")),
    }
    let rules = engine.rules.borrow();
    let stands = beaten(&rules, wrong, engine.now());
    said.extend(
        stands.map(|rule| format!("rule {} blocks it all the same ({rule}): remove that to let it pass", rule.id)),
    );
    said
}

/// The block rules in force that speak about every call that such a rule allows: a block beats every allow.
fn beaten<'a>(rules: &'a [Rule], allowed: &'a Match, now: Millis) -> impl Iterator<Item = &'a Rule> {
    fn within<T: PartialEq>(block: Option<&T>, allowed: Option<&T>) -> bool {
        block.is_none_or(|block| allowed == Some(block))
    }
    rules.iter().filter(move |rule| {
        let Match { entry, client: None, tool, detector, call: None, address: None, launch, definition: None } =
            &rule.matches
        else {
            return false;
        };
        rule.effect == Choice::Block
            && rule.expires.is_none_or(|end| now < end)
            && within(entry.as_ref(), allowed.entry.as_ref())
            && within(tool.as_ref(), allowed.tool.as_ref())
            && within(detector.as_ref(), allowed.detector.as_ref())
            && within(launch.as_ref(), allowed.launch.as_ref())
    })
}

/// What rules are bound to, looked up before.
struct Known {
    launches: BTreeMap<EntryId, Digest>,
    definitions: BTreeMap<(EntryId, Untrusted), Digest>,
}

impl Bindings for Known {
    fn launch(&self, entry: &EntryId) -> Option<Digest> {
        self.launches.get(entry).copied()
    }
    fn definition(&self, entry: &EntryId, tool: &Untrusted) -> Option<Digest> {
        self.definitions.get(&(entry.clone(), tool.clone())).copied()
    }
}

async fn suggested(engine: &Rc<Engine>) -> Result<(Vec<command::Suggestion>, u32), String> {
    let now = engine.now();
    let since = Millis(now.0.saturating_sub(LOOK_BACK_MS));
    let look = move |store: &mut firedoor_store::Store| Ok((store.asked(since)?, store.oldest()?, store.pins(None)?));
    let (events, oldest, pins) = engine.recorder.with(look).await.map_err(text)?;
    let definitions = pins
        .into_iter()
        .filter(|pin| pin.key.kind == PinKind::Tool)
        .map(|pin| ((pin.key.entry, pin.key.name), pin.accepted.whole))
        .collect();
    let launches = engine.starts.borrow().iter().map(|(entry, start)| (entry.clone(), start.launch)).collect();
    let found = suggest(&events, oldest, now, &engine.rules.borrow(), &Known { launches, definitions });
    let questions = events.iter().filter(|e| matches!(e.what, What::Answered { .. })).count();
    let suggestions = found.into_iter().map(|s| {
        let draft =
            Draft { effect: s.effect, matches: s.matches, origin: Origin::Suggestion, created: now, expires: None };
        let named = serde_json::to_vec(&(&draft.effect, &draft.matches)).map_err(|e| e.to_string())?;
        Ok(command::Suggestion { id: Digest::of(&named), rule: draft.numbered(0), questions: s.questions })
    });
    Ok((suggestions.collect::<Result<_, String>>()?, u32::try_from(questions).unwrap_or(u32::MAX)))
}

pub async fn suggestions(engine: &Rc<Engine>) -> Outcome {
    let (suggestions, questions) = suggested(engine).await?;
    Ok(Reply::Suggestions { suggestions, questions })
}

/// What accepting a suggestion would add, in words.
pub(super) async fn suggestion(engine: &Rc<Engine>, id: Digest) -> Option<String> {
    let (suggestions, _) = suggested(engine).await.ok()?;
    suggestions.into_iter().find(|s| s.id == id).map(|s| s.rule.to_string())
}

/// What a row of the log is about, in words.
pub(super) async fn row(engine: &Rc<Engine>, seq: u64) -> Option<String> {
    let event = engine.recorder.with(move |store| store.event(seq)).await.ok()??.event;
    let (Some(entry), What::Judged { subject, findings, .. }) = (event.entry, event.what) else { return None };
    let what = findings.iter().map(|f| f.detector.to_string()).collect::<Vec<_>>().join(", ");
    let tool = subject.map(|tool| tool.visible(120)).unwrap_or_default();
    Some(format!("{what} in {tool} of {}", Untrusted::new(entry.to_string()).visible(200)))
}

pub async fn accept(engine: &Rc<Engine>, id: Digest) -> Outcome {
    let (suggestions, _) = suggested(engine).await?;
    let meant = suggestions.into_iter().find(|s| s.id == id);
    let Rule { effect, matches, origin, created, expires, .. } =
        meant.ok_or("this is not suggested any more: look again")?.rule;
    keep(engine, Draft { effect, matches, origin, created, expires }, "added as suggested").await
}
