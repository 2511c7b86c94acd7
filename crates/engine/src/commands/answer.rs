//! Answers to questions.

use std::rc::Rc;

use firedoor_ipc::command::Reply;
use firedoor_model::{
    audit::What,
    question::{Choice, Connection, Duration, Extent, Ref},
};
use firedoor_policy::{Answered, Refusal, Settled, Standing};
use firedoor_store::EntryGrants;

use crate::engine::Engine;

/// Answers one question, and in the same way those that were shown with it and are still open.
pub async fn together(
    engine: &Rc<Engine>,
    id: &Ref,
    also: &[Ref],
    choice: Choice,
    extent: Extent,
) -> Result<Reply, String> {
    let said = answer(engine, id, choice, extent).await?;
    for other in also {
        // The answer before may have settled it, and its agent may have given it up.
        let open = engine.desk.borrow().question(other).is_some();
        if open {
            answer(engine, other, choice, extent).await?;
        }
    }
    Ok(said)
}

/// Answers one question. The answer and its rules are written down before anything is forwarded.
async fn answer(engine: &Rc<Engine>, id: &Ref, choice: Choice, extent: Extent) -> Result<Reply, String> {
    let duration = extent.duration;
    let quarantined = engine.desk.borrow().question(id).is_some_and(|(question, _)| {
        let sessions = engine.sessions.borrow();
        sessions
            .values()
            .filter(|s| s.entry == question.entry)
            .any(|s| s.tools.borrow().get(question.tool.raw()).is_some_and(|t| t.quarantined))
    });
    // Written first: an answer that cannot be put on record does not count.
    let event = engine.event(What::Answered { reference: id.clone(), choice, duration });
    let known = engine.desk.borrow().question(id).map(|(question, _)| question.entry.clone());
    if let Some(entry) = known {
        let event = firedoor_model::audit::Event { entry: Some(entry), ..event };
        let written = engine.recorder.commit(event).await;
        if let (Err(e), Choice::Allow) = (written, choice) {
            return Err(format!("the answer could not be written down, so it does not count: {e}"));
        }
    }
    let answered = {
        let standing = Standing { rules: &engine.rules.borrow(), quarantined, now: engine.now() };
        engine.desk.borrow_mut().answer(id, choice, extent, &standing)
    };
    let answered = answered.map_err(|e| e.to_string())?;
    store_rules(engine, &answered).await?;
    store_grant(engine, &answered).await;
    note_allowed(engine, &answered).await;
    let Answered { question, released, permit, grant, also, .. } = &answered;
    let settled = Settled { reference: id.clone(), released: released.clone() };
    for Settled { reference, released } in std::iter::once(&settled).chain(also) {
        match choice {
            Choice::Allow => engine.allow_held(released, duration != Duration::Once),
            Choice::Block => engine.refuse_held(released, &Refusal::User, reference),
        }
    }
    engine.wake.notify_one();
    engine.changed();
    let text = match (choice, permit, released.len()) {
        (Choice::Block, ..) => format!("{id} blocked; the same is refused for the rest of the agent's session"),
        (Choice::Allow, Some(_), _) => match &question.connection {
            Some(Connection { to, .. }) => {
                format!("{id} allowed: the server may connect to {to} once within 10 minutes")
            }
            None => format!("{id} allowed: the agent may repeat exactly this call once within 10 minutes"),
        },
        (Choice::Allow, None, _) => match grant {
            Some(to) => format!("{id} allowed, and {to} granted to {}", question.entry),
            None => format!("{id} allowed"),
        },
    };
    Ok(Reply::Done { text })
}

/// Notes that questions are on screen.
pub fn shown(engine: &Rc<Engine>, ids: &[Ref]) -> Reply {
    let mut desk = engine.desk.borrow_mut();
    ids.iter().for_each(|id| desk.shown(id));
    Reply::Done { text: "noted".into() }
}

/// Notes that a prompt was put off. Its questions stay open.
pub fn later(engine: &Rc<Engine>, ids: &[Ref]) -> Reply {
    let events = engine.desk.borrow_mut().later(ids);
    if !events.is_empty() {
        engine.changed();
    }
    Reply::Done { text: "noted".into() }
}

async fn store_rules(engine: &Rc<Engine>, answered: &Answered) -> Result<(), String> {
    for draft in answered.rules.clone() {
        let rule = engine.recorder.with(move |store| store.add_rule(&draft)).await;
        match rule {
            Ok(rule) => engine.rules.borrow_mut().push(rule),
            // The answer holds for the session all the same.
            Err(e) => engine.problem(format!("a rule could not be stored: {e}")),
        }
    }
    Ok(())
}

/// Before anything is forwarded: what the agent sends next is judged by it.
async fn note_allowed(engine: &Rc<Engine>, answered: &Answered) {
    if answered.choice == Choice::Block {
        return;
    }
    let agent = {
        let sessions = engine.sessions.borrow();
        sessions.values().find(|s| s.agent.id == answered.session).map(|s| Rc::clone(&s.agent))
    };
    if let Some(agent) = agent {
        agent.memory.lock().await.allowed(&answered.question.findings);
    }
}

/// A host that was allowed always is a grant like any other.
async fn store_grant(engine: &Rc<Engine>, answered: &Answered) {
    let Some(host) = answered.grant.clone() else { return };
    let entry = answered.question.entry.clone();
    let more = EntryGrants { hosts: vec![host], ..EntryGrants::default() };
    if let Err(e) = super::settings::add_grants(engine, entry, more).await {
        // The answer holds for the session all the same.
        engine.problem(format!("a grant could not be stored: {e}"));
    }
}
