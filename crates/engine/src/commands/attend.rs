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
    // What an agent has started confirms nothing.
    let may = engine.authority.objection(peer).is_none();
    let mut changes = engine.changes.subscribe();
    loop {
        changes.mark_unchanged();
        if may && place.is_none() {
            *place = engine.confirmations.borrow_mut().attend(peer.process, engine.next_id());
        }
        let questions = engine.desk.borrow().questions().into_iter().cloned().collect();
        outgoing.send(&Reply::Questions { questions }).await?;
        let confirmations = if place.is_some() { engine.confirmations.borrow().all() } else { Vec::new() };
        outgoing.send(&Reply::Confirmations { confirmations }).await?;
        outgoing.send(&Reply::Status(status(engine))).await?;
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
    if !engine.confirmations.borrow_mut().say(peer.process, id, allow) {
        return Err("this command does not wait for a word of this process any more".into());
    }
    engine.changed();
    Ok(Reply::Done { text: if allow { "confirmed".into() } else { "refused".into() } })
}
