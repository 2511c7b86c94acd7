//! One entry's server: how it was started, and ending it.

use std::rc::Rc;

use firedoor_ipc::{
    command::{self, EntryGrants, Reply},
    shim::ToShim,
};
use firedoor_model::EntryId;

use super::settings::{Outcome, note, text};
use crate::engine::Engine;

pub async fn show(engine: &Rc<Engine>, entry: EntryId) -> Outcome {
    let of = entry.clone();
    let granted = engine.recorder.with(move |store| store.grants(&of)).await.map_err(text)?;
    let granted = EntryGrants {
        entry: entry.clone(),
        grants: granted.grants,
        env: granted.env,
        hosts: granted.hosts,
        sockets: granted.sockets,
    };
    let sessions = engine.sessions.borrow();
    let mut running = sessions.values().filter(|s| s.entry == entry);
    // What the user allowed for this run only is no grant, so an answer does not show here.
    let restart = running.any(|s| s.granted.as_ref().is_some_and(|then| !same(then, &granted)));
    let start = engine.starts.borrow().get(&entry).cloned();
    Ok(Reply::Server(Box::new(command::Server { start, restart })))
}

/// Whether the same is granted, in whatever order.
fn same(a: &EntryGrants, b: &EntryGrants) -> bool {
    fn all<T: ToString>(of: &[T]) -> Vec<String> {
        let mut texts: Vec<_> = of.iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    }
    let paths = |of: &EntryGrants| {
        let mut paths = of.grants.clone();
        paths.sort();
        paths
    };
    let sockets = |of: &EntryGrants| {
        let mut sockets = of.sockets.clone();
        sockets.sort();
        sockets
    };
    paths(a) == paths(b) && sockets(a) == sockets(b) && all(&a.env) == all(&b.env) && all(&a.hosts) == all(&b.hosts)
}

pub async fn stop(engine: &Rc<Engine>, entry: EntryId) -> Outcome {
    let shims: Vec<_> = {
        let sessions = engine.sessions.borrow();
        sessions.values().filter(|s| s.entry == entry).map(|s| s.shim.clone()).collect()
    };
    if shims.is_empty() {
        return Err(format!("{entry} does not run"));
    }
    note(engine, Some(&entry), format!("{entry} stopped")).await?;
    for shim in &shims {
        // One that has gone in the meantime has ended its server.
        let _ = shim.send(&ToShim::Stop).await;
    }
    Ok(Reply::Done { text: format!("{entry} is being stopped; its client may start it again") })
}

#[cfg(test)]
mod tests {
    use firedoor_model::launch::{Access, Grant};

    use super::*;

    #[test]
    fn order_makes_no_difference() {
        let grant = |path: &str, access| Grant { path: path.into(), access };
        let of = |grants: Vec<Grant>, hosts: &[&str]| EntryGrants {
            entry: "c/s/x".parse().unwrap(),
            grants,
            env: Vec::new(),
            hosts: hosts.iter().map(|h| h.parse().unwrap()).collect(),
            sockets: Vec::new(),
        };
        let (a, b) = (grant("/a", Access::Read), grant("/b", Access::Write));
        let both = of(vec![a.clone(), b.clone()], &["a.example:443", "b.example:443"]);
        assert!(same(&both, &of(vec![b.clone(), a.clone()], &["b.example:443", "a.example:443"])));
        assert!(!same(&both, &of(vec![a.clone(), b], &["a.example:443"])));
        assert!(!same(&of(vec![a], &[]), &of(vec![grant("/a", Access::Write)], &[])));
    }
}
