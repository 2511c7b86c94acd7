//! Pins, grants, the mode, and the check of the log.

use std::rc::Rc;

use firedoor_ipc::{
    command::{self, Reply},
    wire::MAX_BODY,
};
use firedoor_model::{
    Digest, EntryId, Mode, Untrusted,
    audit::{Event, What},
    launch::Access,
};
use firedoor_store::{Accepted, EntryGrants, PinKey, PinKind, PinState, Store};

use super::confirm::Shown;
use crate::engine::Engine;

pub(crate) type Outcome = Result<Reply, String>;

pub(crate) fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// Puts a change on record before it takes effect.
pub(crate) async fn note(engine: &Rc<Engine>, entry: Option<&EntryId>, what: String) -> Result<(), String> {
    let event = firedoor_model::audit::Event { entry: entry.cloned(), ..engine.event(What::Command { text: what }) };
    engine.recorder.commit(event).await.map_err(|e| format!("nothing was changed, because it cannot be recorded: {e}"))
}

pub async fn verify(engine: &Rc<Engine>) -> Outcome {
    let verified = engine.recorder.with(|store| store.verify()).await.map_err(text)?;
    Ok(Reply::Verified { rows: verified.rows, bad: verified.first_bad.map(|bad| (bad.seq, bad.why.to_string())) })
}

pub async fn pins(engine: &Rc<Engine>, entry: Option<EntryId>) -> Outcome {
    let of_one = entry.is_some();
    let pins = engine.recorder.with(move |store| store.pins(entry.as_ref())).await.map_err(text)?;
    let mut looked_at = engine.looked_at.borrow_mut();
    let view = |pin: firedoor_store::Pin| {
        let (changed, now) = match pin.state {
            PinState::Pinned => (Vec::new(), None),
            PinState::Changed { to, .. } => {
                looked_at.insert(pin.key.clone(), to.whole);
                (pin.accepted.changed_fields(&to), Some(to))
            }
        };
        command::Pin {
            entry: pin.key.entry,
            kind: pin.key.kind.word().to_owned(),
            name: pin.key.name,
            first_seen: pin.first_seen,
            digest: pin.accepted.whole,
            changed,
            accepted: pin.accepted.text,
            now: now.as_ref().and_then(|n| n.text.clone()),
            seen: now.map(|n| n.whole),
        }
    };
    Ok(Reply::Pins { pins: fitting(pins.into_iter().map(view).collect(), of_one, ROOM)? })
}

/// What pins may take of a message, which has a bound.
const ROOM: usize = MAX_BODY - (1 << 20);

/// Pins that fit into one message. Where not all do, what did not change goes without its text: it is there to be compared,
/// and nothing is.
fn fitting(mut pins: Vec<command::Pin>, of_one: bool, room: usize) -> Result<Vec<command::Pin>, String> {
    let size = |pins: &[command::Pin]| {
        let one = |pin| serde_json::to_vec(pin).map_or(usize::MAX, |text| text.len() + 1);
        pins.iter().map(one).fold(0, usize::saturating_add)
    };
    if size(&pins) > room {
        pins.iter_mut().filter(|pin| pin.seen.is_none()).for_each(|pin| pin.accepted = None);
    }
    match (size(&pins) > room, of_one) {
        (false, _) => Ok(pins),
        (true, false) => Err("there are too many definitions to show at once: name one entry".into()),
        (true, true) => {
            Err("this server's changed definitions are too large to show: look at what its new version says \
             about them, and accept them (firedoor pins accept) or remove the server"
                .into())
        }
    }
}

/// The definitions that wait to be accepted, of one tool or of all.
pub(super) async fn acceptable(
    engine: &Rc<Engine>,
    entry: &EntryId,
    tool: Option<&Untrusted>,
) -> Result<Vec<(PinKey, Digest)>, String> {
    let of = entry.clone();
    let pins = engine.recorder.with(move |store| store.pins(Some(&of))).await.map_err(text)?;
    let wanted = pins.into_iter().filter(|pin| tool.is_none_or(|t| *t == pin.key.name));
    let changed = wanted.filter_map(|pin| match pin.state {
        PinState::Changed { to, .. } => Some((pin.key, to.whole)),
        PinState::Pinned => None,
    });
    Ok(changed.collect())
}

/// `shown`: what a person was shown when asked, and nothing else is accepted.
pub async fn accept_pins(
    engine: &Rc<Engine>,
    entry: EntryId,
    tool: Option<Untrusted>,
    seen: Option<Digest>,
    shown: Shown,
) -> Outcome {
    let mut changed = acceptable(engine, &entry, tool.as_ref()).await?;
    if changed.is_empty() {
        return Err(format!("nothing of {entry} waits to be accepted: see `firedoor pins list`"));
    }
    changed.retain(|pin| {
        let last = engine.looked_at.borrow().get(&pin.0).copied();
        seen.or(last).is_none_or(|seen| pin.1 == seen) && shown.as_ref().is_none_or(|shown| shown.contains(pin))
    });
    if changed.is_empty() {
        return Err("the definition changed again since it was shown: look at it once more".into());
    }
    let names: Vec<_> = changed.iter().map(|(key, _)| key.name.visible(80)).collect();
    note(engine, Some(&entry), format!("definitions accepted: {}", names.join(", "))).await?;
    for (key, whole) in changed {
        let (kind, name, pin) = (key.kind, key.name.clone(), key.clone());
        let accepted = engine.recorder.with(move |store| store.accept_pin(&pin, whole)).await.map_err(text)?;
        if accepted != Accepted::Done {
            return Err(format!("{} changed again meanwhile: look at it once more", name.visible(80)));
        }
        engine.decided(&key);
        if kind == PinKind::Tool {
            for session in engine.sessions.borrow().values().filter(|s| s.entry == entry) {
                session.accepted(name.raw(), whole);
            }
        }
    }
    Ok(Reply::Done { text: format!("accepted: {}", names.join(", ")) })
}

/// A definition that the user has seen and does not accept.
pub async fn keep_withheld(engine: &Rc<Engine>, entry: EntryId, seen: Digest) -> Outcome {
    let of = entry.clone();
    let pins = engine.recorder.with(move |store| store.pins(Some(&of))).await.map_err(text)?;
    let meant = pins.into_iter().find(|pin| matches!(&pin.state, PinState::Changed { to, .. } if to.whole == seen));
    let key = meant.ok_or("the definition changed again since it was shown: look at it once more")?.key;
    let name = key.name.visible(80);
    note(engine, Some(&entry), format!("definition kept back: {name}")).await?;
    let pin = key.clone();
    let kept = engine.recorder.with(move |store| store.keep_back(&pin, seen)).await.map_err(text)?;
    if kept != Accepted::Done {
        return Err(format!("{name} changed again meanwhile: look at it once more"));
    }
    engine.decided(&key);
    Ok(Reply::Done { text: format!("{name} stays kept from agents, until it is accepted with `firedoor pins accept`") })
}

pub async fn grants(engine: &Rc<Engine>, entry: Option<EntryId>) -> Outcome {
    let all = engine.recorder.with(|store| store.all_grants()).await.map_err(text)?;
    let grants = all
        .into_iter()
        .filter(|(of, _)| entry.as_ref().is_none_or(|e| e == of))
        .map(|(entry, EntryGrants { grants, env, hosts, sockets })| command::EntryGrants {
            entry,
            grants,
            env,
            hosts,
            sockets,
        })
        .collect();
    Ok(Reply::Grants { grants })
}

pub async fn add_grants(engine: &Rc<Engine>, entry: EntryId, more: EntryGrants) -> Outcome {
    let event = told(engine, &entry, format!("granted to {entry}: {}", words(&more)));
    let of = entry.clone();
    let add = move |store: &mut Store| Ok(((), store.add_grants_on_record(&of, &more, &[event])?));
    engine.recorder.on_record(add).await.map_err(text)?;
    Ok(Reply::Done { text: format!("granted to {entry}; it holds from the server's next start") })
}

pub async fn remove_grants(engine: &Rc<Engine>, entry: EntryId, less: EntryGrants) -> Outcome {
    let event = told(engine, &entry, String::new());
    let of = entry.clone();
    let remove = move |store: &mut Store| {
        // With the access that they had.
        let gone = store.grants(&of)?.common(&less);
        if gone.is_empty() {
            return Ok((0, Vec::new()));
        }
        let what = What::Command { text: format!("grants removed from {of}: {}", words(&gone)) };
        store.remove_grants_on_record(&of, &gone, &[Event { what, ..event }])
    };
    match engine.recorder.on_record(remove).await.map_err(text)? {
        0 => Err(format!("{entry} had none of these grants: see `firedoor grants list`")),
        n => Ok(Reply::Done { text: format!("{n} removed from {entry}; it holds from the server's next start") }),
    }
}

fn told(engine: &Rc<Engine>, entry: &EntryId, text: String) -> Event {
    Event { entry: Some(entry.clone()), ..engine.event(What::Command { text }) }
}

pub(super) fn words(of: &EntryGrants) -> String {
    let access = |access: Access| match access {
        Access::Write | Access::Edit => " (to write)",
        Access::Read => " (to read)",
        Access::List => " (names only)",
    };
    let files = of.grants.iter().map(|g| format!("{}{}", g.path.display(), access(g.access)));
    let paths = files.chain(of.sockets.iter().map(|p| p.display().to_string()));
    let hosts = of.hosts.iter().map(ToString::to_string);
    paths.chain(hosts).chain(of.env.iter().map(|name| format!("${name}"))).collect::<Vec<_>>().join(", ")
}

/// A server that the user leaves as it is.
pub async fn ignore(engine: &Rc<Engine>, entry: EntryId) -> Outcome {
    let at = engine.now();
    let Some(line) = engine.offers.borrow_mut().decline(&entry, at) else {
        return Err(format!("{entry} is not among the servers that could be protected: see `firedoor pending`"));
    };
    let of = entry.clone();
    engine.recorder.with(move |store| store.decline(&of, line, at)).await.map_err(text)?;
    let event = engine.event(What::Command { text: format!("{entry} is left unprotected") });
    engine.commit(firedoor_model::audit::Event { entry: Some(entry.clone()), ..event }).await;
    engine.changed();
    Ok(Reply::Done { text: format!("{entry} stays as it is") })
}

pub async fn mode(engine: &Rc<Engine>, set: Option<Mode>) -> Outcome {
    if let Some(mode) = set {
        if engine.managed.at_least(mode) != mode {
            let floor = engine.managed.at_least(mode);
            return Err(format!("an administrator asks for mode {floor} at least"));
        }
        note(engine, None, format!("mode {mode}")).await?;
        engine.recorder.with(move |store| store.set_mode(mode)).await.map_err(text)?;
        engine.mode.set(mode);
        engine.changed();
    }
    Ok(Reply::Mode { mode: engine.mode.get() })
}

#[cfg(test)]
mod tests {
    use firedoor_model::Millis;

    use super::*;

    fn pin(name: &str, text: usize, changed: bool) -> command::Pin {
        let digest = Digest::of(name.as_bytes());
        command::Pin {
            entry: "a/b/c".parse().unwrap(),
            kind: "tool".into(),
            name: Untrusted::new(name),
            first_seen: Millis(1),
            digest,
            changed: Vec::new(),
            accepted: Some(Untrusted::new("x".repeat(text))),
            now: changed.then(|| Untrusted::new("y".repeat(text))),
            seen: changed.then_some(digest),
        }
    }

    #[test]
    fn pins_fit_into_a_message_or_it_is_said_what_to_do() {
        let all = || vec![pin("same", 4000, false), pin("changed", 1000, true)];
        let check = |of_one, room| {
            let texts =
                |pins: Vec<command::Pin>| pins.iter().map(|p| (p.accepted.is_some(), p.now.is_some())).collect();
            fitting(all(), of_one, room).map(texts)
        };
        assert_eq!(check(false, 10_000), Ok(vec![(true, false), (true, true)]));
        // What waits to be accepted keeps its text.
        assert_eq!(check(false, 5_000), Ok(vec![(false, false), (true, true)]));
        assert!(check(false, 1_000).is_err_and(|why| why.contains("name one entry")));
        assert!(check(true, 1_000).is_err_and(|why| why.contains("firedoor pins accept")));
        assert!(fitting(Vec::new(), false, 0).is_ok_and(|pins| pins.is_empty()));
    }
}
