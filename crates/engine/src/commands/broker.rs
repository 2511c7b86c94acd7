//! Secrets in broker mode.

use std::rc::Rc;

use firedoor_ipc::command::Reply;
use firedoor_model::{Ability, EntryId, Untrusted, broker::Route};
use firedoor_store::Store;

use super::settings::{Outcome, note, text};
use crate::engine::Engine;

/// Every entry's secrets in broker mode.
pub async fn list(engine: &Rc<Engine>) -> Outcome {
    let all = engine.recorder.with(|store| store.all_routes()).await.map_err(text)?;
    let routes =
        all.into_iter().flat_map(|(entry, routes)| routes.into_iter().map(move |route| (entry.clone(), route)));
    Ok(Reply::Routes { routes: routes.collect() })
}

/// Puts a secret into broker mode.
pub async fn add(engine: &Rc<Engine>, entry: EntryId, route: Route) -> Outcome {
    Ability::Brokering.here().map_err(text)?;
    let route = firedoor_launch::route(route).map_err(text)?;
    let visible = |text: &str| Untrusted::new(text).visible(80);
    let shown = visible(&route.secret);
    let taken = |other: Route| {
        format!(
            "connections of {entry} to this host are intercepted for {} already, and one secret is put in there: run \
             `firedoor broker remove` for that one first",
            visible(&other.secret)
        )
    };
    let of = entry.clone();
    let others = engine.recorder.with(move |store| store.routes(&of)).await.map_err(text)?;
    if let Some(other) = in_the_way(others, &route) {
        return Err(taken(other));
    }
    let how = if route.intercept { ", its connections there intercepted" } else { "" };
    note(engine, Some(&entry), format!("{shown} of {entry} in broker mode: sent to {} only{how}", route.url)).await?;
    let (of, kept) = (entry.clone(), route.clone());
    // Asked again in the same turn of the one thread that writes, because another command may have come in between.
    let put = move |store: &mut Store| match in_the_way(store.routes(&of)?, &kept) {
        None => store.put_route(&of, &kept).map(|()| None),
        other => Ok(other),
    };
    if let Some(other) = engine.recorder.with(put).await.map_err(text)? {
        note(engine, Some(&entry), format!("{shown} of {entry} not in broker mode: another secret came first")).await?;
        return Err(taken(other));
    }
    let mut text = format!(
        "{entry} does not get {shown} any more from its next start: requests to {} get it, in the header {}",
        route.url, route.header
    );
    if route.intercept {
        text.push_str(
            ". Its encrypted connections to this host then end at Firedoor, which reads what server and service say to each \
             other there and looks for the secret in it. The server is shown a certificate that Firedoor makes at each start, \
             and is told by variables to trust that; nothing else on this machine trusts it. A server that trusts only \
             certificates of its own cannot connect, nor one that needs HTTP/2 or WebSocket",
        );
    }
    Ok(Reply::Done { text })
}

/// The secret that is put into the same connections as this one would be.
fn in_the_way(others: Vec<Route>, route: &Route) -> Option<Route> {
    let same = |other: &Route| other.secret != route.secret && firedoor_launch::same_connections(route, other);
    others.into_iter().find(same)
}

/// Takes it out again.
pub async fn remove(engine: &Rc<Engine>, entry: EntryId, secret: String) -> Outcome {
    let shown = Untrusted::new(secret.as_str()).visible(80);
    note(engine, Some(&entry), format!("{shown} of {entry} no longer in broker mode")).await?;
    let of = entry.clone();
    match engine.recorder.with(move |store| store.remove_route(&of, &secret)).await.map_err(text)? {
        true => Ok(Reply::Done { text: format!("{entry} gets {shown} itself from its next start") }),
        false => Err(format!("{shown} of {entry} is not in broker mode: see `firedoor broker list`")),
    }
}
