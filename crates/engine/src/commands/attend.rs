//! A desktop, which shows a person what waits.

use std::rc::Rc;

use firedoor_ipc::{command::Reply, process::Peer, wire::WireError};

use super::{settings::Outcome, status};
use crate::{
    connection::{Incoming, Outgoing},
    engine::Engine,
};

/// Streams what waits and the status, now and after every change. While it lasts, the sender may be the desktop that confirms.
pub async fn stream(
    engine: &Rc<Engine>,
    peer: &Peer,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), WireError> {
    let mut place = None;
    let ended = changes(engine, peer, &mut place, incoming, outgoing).await;
    if let Some(place) = place {
        engine.confirmations.borrow_mut().leave(place);
        // Another one may be waiting for the place.
        engine.changed();
    }
    ended
}

async fn changes(
    engine: &Rc<Engine>,
    peer: &Peer,
    place: &mut Option<u64>,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), WireError> {
    let mut changes = engine.changes.subscribe();
    loop {
        changes.mark_unchanged();
        // What an agent has started confirms nothing; who is an agent may become known later.
        let may = engine.authority.objection(peer).is_none();
        if !may && let Some(place) = place.take() {
            engine.confirmations.borrow_mut().leave(place);
        }
        if may && place.is_none() {
            *place = engine.confirmations.borrow_mut().attend(peer.process, engine.next_id());
        }
        let questions = engine.desk.borrow().questions().into_iter().cloned().collect();
        outgoing.send(&Reply::Questions { questions }).await?;
        let confirmations = if place.is_some() { engine.confirmations.borrow().all() } else { Vec::new() };
        outgoing.send(&Reply::Confirmations { confirmations }).await?;
        let mut status = status(engine);
        let other = engine.confirmations.borrow().desktop().filter(|_| place.is_none());
        if let Some(other) = other {
            status.problems.push(format!(
                "process {} confirms commands, not this app: end it if you do not know it, and start this app again",
                other.pid
            ));
        }
        outgoing.send(&Reply::Status(status)).await?;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return Err(WireError::Closed);
            },
            () = incoming.closed() => return Err(WireError::Closed),
        }
    }
}

/// The desktop's word about a command that waits for it.
pub fn confirm(engine: &Engine, peer: &Peer, id: u64, allow: bool) -> Outcome {
    if let Some(reason) = engine.authority.objection(peer) {
        return Err(format!("this process confirms nothing: {reason}"));
    }
    if !engine.confirmations.borrow_mut().say(peer.process, id, allow) {
        return Err("this command does not wait for a word of this process any more".into());
    }
    engine.changed();
    Ok(Reply::Done { text: if allow { "confirmed".into() } else { "refused".into() } })
}
