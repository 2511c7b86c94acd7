//! Secrets in broker mode.

use std::rc::Rc;

use firedoor_ipc::command::Reply;
use firedoor_model::{EntryId, Untrusted, broker::Route};

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
    let route = firedoor_launch::route(route).map_err(text)?;
    let shown = Untrusted::new(route.secret.as_str()).visible(80);
    note(engine, Some(&entry), format!("{shown} of {entry} in broker mode: sent to {} only", route.url)).await?;
    let (of, kept) = (entry.clone(), route.clone());
    engine.recorder.with(move |store| store.put_route(&of, &kept)).await.map_err(text)?;
    Ok(Reply::Done {
        text: format!(
            "{entry} does not get {shown} any more from its next start: requests to {} get it, in the header {}",
            route.url, route.header
        ),
    })
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
