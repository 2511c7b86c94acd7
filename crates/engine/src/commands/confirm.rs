//! What weakens protection is confirmed on the desktop, where there is one.

use std::{rc::Rc, time::Duration};

use firedoor_ipc::{
    command::{Confirmation, Reply, Request},
    process::{self, Peer},
};
use firedoor_model::{
    Digest, Untrusted,
    audit::What,
    question::{Choice, Ref},
};
use firedoor_store::{EntryGrants, PinKey};
use tokio::sync::oneshot;

use crate::{
    connection::{Incoming, Outgoing},
    engine::Engine,
};

/// How long a command waits for a person.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest command line that is shown, in characters.
const LINE: usize = 400;
/// Longest description of what would be done, in characters.
const ACTION: usize = 4000;
/// What the desktop starts for a button of its own.
const PROGRAM: &str = if cfg!(windows) { "firedoor.exe" } else { "firedoor" };
/// Processes above the one that asks that are named.
const ABOVE: usize = 6;

/// What became of the wait.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Allowed,
    Refused,
    /// The desktop has gone.
    Alone,
    Nobody,
    /// Whoever asked has gone.
    Withdrawn,
}

/// Definitions that a person was shown when asked whether to accept them.
pub type Shown = Option<Vec<(PinKey, Digest)>>;

/// Waits for the desktop's word on a request that weakens protection. `Ok` when it may be carried out; else what to say
/// instead, and nothing when nobody is there to hear it. Everything that is no clear yes is a no.
pub async fn confirmed(
    engine: &Rc<Engine>,
    peer: &Peer,
    request: &Request,
    action: &str,
    (incoming, outgoing): (&mut Incoming, &Outgoing),
) -> Result<Shown, Option<Reply>> {
    let (desktop, left) = (engine.confirmations.borrow().desktop(), engine.confirmations.borrow().left());
    // One that still runs connects anew: until then it is not as if there were none.
    let left = left.filter(|left| process::stat(left.pid).is_ok_and(|stat| stat.process == *left));
    let Some(desktop) = desktop.or(left).filter(|desktop| !is_its_own(peer, *desktop)) else { return Ok(None) };
    let (full, definitions) = in_full(engine, request, action).await;
    let by = asked_by(peer);
    let refused = async |why: &str, remedy: &str| {
        let first = by.first().cloned().unwrap_or_else(|| Untrusted::new(""));
        let what = What::Denied { text: full.clone(), by: first, reason: why.to_owned() };
        engine.commit(engine.event(what)).await;
        Err(Some(Reply::Refused { text: format!("{action} was not confirmed, so nothing was changed: {why}{remedy}") }))
    };
    if full.chars().count() > ACTION {
        return refused("it is too long to be shown whole", "; do it in smaller parts").await;
    }
    let asked = engine.now();
    let shown = Confirmation {
        id: engine.next_id(),
        action: Untrusted::new(full.clone()),
        command: command_line(peer),
        asked_by: by.clone(),
        asked,
        until: asked.plus(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)),
    };
    let id = shown.id;
    let begun = engine.confirmations.borrow_mut().ask(shown);
    let hear = match begun {
        Ok(hear) => hear,
        Err(e) => return refused(&e.to_string(), "; try again").await,
    };
    engine.changed();
    let text = format!(
        "confirm it on the desktop within {} s, where Firedoor asks (process {})",
        PATIENCE.as_secs(),
        desktop.pid
    );
    let heard = match outgoing.send(&Reply::Waits { text }).await {
        Ok(()) => wait(hear, PATIENCE, incoming.closed()).await,
        Err(_) => Heard::Withdrawn,
    };
    engine.confirmations.borrow_mut().withdraw(id);
    engine.changed();
    match heard {
        Heard::Allowed => {
            let by = by.iter().map(|p| p.visible(80)).collect::<Vec<_>>().join(", by ");
            let text = format!("confirmed on the desktop: {full}; asked for by {by}");
            // Written first: what cannot be put on record does not count.
            match engine.recorder.commit(engine.event(What::Command { text })).await {
                Ok(()) => Ok(definitions),
                Err(e) => Err(Some(Reply::Failed {
                    text: format!("nothing was changed, because it cannot be recorded: {e}"),
                })),
            }
        }
        Heard::Refused => refused("it was refused on the desktop", "").await,
        Heard::Alone => refused("the desktop app that was to confirm it has gone", "; try again").await,
        Heard::Nobody => {
            let why = format!("nobody confirmed it on the desktop within {} s", PATIENCE.as_secs());
            refused(&why, "; where you cannot reach that screen, end the app on it first").await
        }
        Heard::Withdrawn => {
            let what = What::Denied {
                text: full.clone(),
                by: by.first().cloned().unwrap_or_else(|| Untrusted::new("")),
                reason: "whoever asked gave up before it was confirmed on the desktop".into(),
            };
            engine.commit(engine.event(what)).await;
            Err(None)
        }
    }
}

async fn wait(hear: oneshot::Receiver<bool>, patience: Duration, gone: impl Future<Output = ()>) -> Heard {
    tokio::select! {
        // What is heard counts before anything else that happens at the same moment; but for a person who has gone.
        biased;
        () = gone => Heard::Withdrawn,
        word = hear => match word {
            Ok(true) => Heard::Allowed,
            Ok(false) => Heard::Refused,
            Err(_) => Heard::Alone,
        },
        () = tokio::time::sleep(patience) => Heard::Nobody,
    }
}

/// The desktop itself, where a person has pressed a button already, and `firedoor` that it has started for such a button.
fn is_its_own(peer: &Peer, desktop: process::Process) -> bool {
    if peer.process == desktop {
        return true;
    }
    let child = process::ancestry(peer.process.pid);
    let beside = |pid| process::executable(pid).and_then(|path| Some((path.parent()?.to_owned(), path)));
    let ours = beside(peer.process.pid).zip(beside(desktop.pid)).is_some_and(|((theirs, program), (own, _))| {
        theirs == own && program.file_name().is_some_and(|name| name == PROGRAM)
    });
    ours && child.get(1).is_some_and(|parent| parent.process == desktop)
}

/// The process that asks and those above it, by name.
fn asked_by(peer: &Peer) -> Vec<Untrusted> {
    let name = |pid: u32| process::name(pid).unwrap_or_else(|| "a process".into());
    let chain = process::ancestry(peer.process.pid);
    // A process of ours that a client started is named in a refusal; whoever reads this looks for a terminal.
    let above = chain.iter().take(ABOVE).filter(|stat| stat.process.pid != 1);
    above.map(|stat| Untrusted::new(format!("{} ({})", name(stat.process.pid), stat.process.pid))).collect()
}

fn command_line(peer: &Peer) -> Untrusted {
    let words = process::arguments(peer.process.pid);
    Untrusted::new(words.join(" ").chars().take(LINE + 1).collect::<String>())
}

/// What would be done, with what a person needs to know to say yes.
async fn in_full(engine: &Rc<Engine>, request: &Request, action: &str) -> (String, Shown) {
    let mut shown = None;
    let rule =
        |id: i64, among: &[firedoor_model::rule::Rule]| among.iter().find(|r| r.id == id).map(ToString::to_string);
    let more = match request {
        Request::Answer { id, choice: Choice::Allow, duration, scope, also } => {
            let desk = engine.desk.borrow();
            let call = |id: &Ref| {
                desk.question(&Ref(id.0.to_ascii_uppercase())).map_or_else(
                    || format!("{id}, which is not asked about any more"),
                    |(q, _)| format!("{} of {}", q.tool.visible(120), Untrusted::new(q.entry.to_string()).visible(200)),
                )
            };
            let calls = std::iter::once(id).chain(also).map(call).collect::<Vec<_>>().join("; ");
            let word = |value: serde_json::Result<serde_json::Value>| {
                value.ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
            };
            let (long, scope) = (word(serde_json::to_value(duration)), word(serde_json::to_value(scope)));
            Some(format!("{calls}; for {long}, scope {scope}"))
        }
        Request::AddRules { rules } => {
            let sentences = rules
                .iter()
                .filter(|r| r.effect == Choice::Allow)
                .map(|r| r.clone().draft(engine.now()).numbered(0).to_string());
            Some(sentences.collect::<Vec<_>>().join("; "))
        }
        Request::RemoveRule { id } => rule(*id, &engine.rules.borrow()),
        Request::RestoreRule { id } => rule(*id, &engine.removed.borrow()),
        Request::AddGrants { grants, env, hosts, sockets, .. } => {
            let (grants, env) = (grants.clone(), env.clone());
            let all = EntryGrants { grants, env, hosts: hosts.clone(), sockets: sockets.clone() };
            Some(super::settings::words(&all))
        }
        Request::AddEndpoint { target, .. } => Some(target.to_string()),
        Request::AcceptPins { entry, tool, .. } => {
            let pins = super::settings::acceptable(engine, entry, tool.as_ref()).await.unwrap_or_default();
            let names = pins.iter().map(|(key, _)| key.name.visible(120)).collect::<Vec<_>>().join(", ");
            shown = Some(pins);
            Some(names)
        }
        Request::AcceptSuggestion { id } => super::rules::suggestion(engine, *id).await,
        Request::RuleFromRow { seq, effect: Choice::Allow } => super::rules::row(engine, *seq).await,
        _ => None,
    };
    let full =
        more.filter(|more| !more.is_empty()).map_or_else(|| action.to_owned(), |more| format!("{action}: {more}"));
    (full, shown)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn only_a_clear_yes_is_a_yes() {
        let long = Duration::from_secs(600);
        let said = |word: Option<bool>| {
            let (say, hear) = oneshot::channel();
            word.map(|word| say.send(word));
            hear
        };
        assert_eq!(wait(said(Some(true)), long, pending()).await, Heard::Allowed);
        assert_eq!(wait(said(Some(false)), long, pending()).await, Heard::Refused);
        assert_eq!(wait(said(None), long, pending()).await, Heard::Alone);
        let (_say, hear) = oneshot::channel();
        assert_eq!(wait(hear, Duration::ZERO, pending()).await, Heard::Nobody);
        assert_eq!(wait(said(Some(true)), long, ready(())).await, Heard::Withdrawn);
    }

    #[test]
    fn the_desktop_is_itself_and_no_other_process_is() {
        let own = process::stat(std::process::id()).unwrap();
        let peer = Peer { uid: 0, process: own.process };
        assert!(is_its_own(&peer, own.process));
        let parent = process::stat(own.parent).unwrap().process;
        // A child of it, but not the command line.
        assert!(!is_its_own(&peer, parent));
        assert!(asked_by(&peer).len() > 1 && !command_line(&peer).raw().is_empty());
    }
}
