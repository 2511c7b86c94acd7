//! Entries behind Firedoor: the text that protects them, as far as it can be taken back.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use firedoor_model::{EntryId, SecretRef};

use super::{Secrets, Skipped, Text, behind, restoring::restored};
use crate::{
    catalog::Clients,
    discover::{ConfigFile, Located},
    document::{Remote, Shape},
    endpoint,
    env::Env,
    error::FileError,
    moved::{self, Moves},
    remote, secret,
    state::{State, state},
    wrap::{repair, splice, wrap},
};

impl Clients {
    #[expect(clippy::too_many_arguments, reason = "each is another thing that decides")]
    pub(super) fn protected(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        text: &str,
        all: &[Located],
        chosen: &BTreeSet<EntryId>,
        shim: &str,
        endpoints: &BTreeMap<EntryId, String>,
        secrets: Secrets<'_>,
    ) -> Result<Text, FileError> {
        let (mut wraps, mut repairs, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        let (mut fresh, mut with_secrets) = (BTreeSet::new(), BTreeSet::new());
        let mut new = Text::default();
        for entry in all.iter().filter(|l| chosen.contains(&l.id)) {
            let Located { id, server, .. } = entry;
            let skip = |reason: String| Skipped { id: id.clone(), reason };
            let state = state(self, env, file, entry, Some(Path::new(shim)));
            let mut moved = false;
            // Neither repairing nor an address of Firedoor's keeps them from the shim.
            if let Some(why) = self.acts_on_shim(env, file, entry) {
                new.skipped.push(skip(why));
                continue;
            }
            match &state {
                _ if let (Some(address), Shape::Remote(remote)) = (endpoints.get(id), &server.shape) => {
                    let Some(url) = remote.url.as_ref().filter(|_| self.can_have_endpoint(id, &server.shape).is_ok())
                    else {
                        new.skipped.push(skip("it cannot have an address of Firedoor's in front of its own".into()));
                        continue;
                    };
                    let edits = endpoint::wrap(text, url, remote.endpoint.as_deref(), id, address);
                    match &remote.endpoint {
                        None => {
                            wraps.extend(edits);
                            // What is restored of one with references is not what it is now.
                            let none = moved::references(server.shape.values()).is_empty();
                            if none { &mut fresh } else { &mut with_secrets }.insert(id.clone());
                        }
                        Some(at) if at.address == *address && at.id == *id => {}
                        Some(_) => {
                            repairs.extend(edits);
                            moved = true;
                        }
                    }
                }
                State::Misrouted { .. } if behind(&server.shape) => {
                    repairs.extend(match &server.shape {
                        Shape::Remote(Remote { endpoint: Some(_), .. }) => {
                            new.skipped.push(skip(reason(&state)));
                            continue;
                        }
                        Shape::Stdio(stdio) => repair(stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::repair(parts, id, shim),
                        _ => continue,
                    });
                }
                State::Unprotected | State::Misrouted { .. } => {
                    wraps.extend(match &server.shape {
                        Shape::Stdio(stdio) => wrap(text, stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::wrap(text, parts, id, shim),
                        _ => continue,
                    });
                    // As above: one with references is misrouted.
                    if state == State::Unprotected { &mut fresh } else { &mut with_secrets }.insert(id.clone());
                }
                State::Protected => {}
                other => {
                    new.skipped.push(skip(reason(other)));
                    continue;
                }
            }
            let moves = self.moves(env, text, id, &server.shape, secrets);
            if moves.edits.is_empty() && state == State::Protected && !moved {
                new.skipped.push(skip(reason(&state)));
                continue;
            }
            if !moves.edits.is_empty() {
                with_secrets.insert(id.clone());
            }
            new.changed.push(id.clone());
            edits.extend(moves.edits);
            new.moves.extend(moves.moves);
            new.left.extend(moves.left);
        }
        let repaired = splice(text, repairs.clone());
        new.text = splice(text, [wraps, repairs, edits].concat());
        self.reversible(env, file, &new, &repaired, &fresh, &with_secrets)?;
        Ok(new)
    }

    /// The server's address of an entry that can stay one with an address, with Firedoor's in front of it; or why not.
    pub fn endpoint_for(&self, env: &Env<'_>, id: &EntryId) -> Result<String, String> {
        let found = self.first(env, id, |_, l| Some(self.can_have_endpoint(id, &l.server.shape)));
        found.unwrap_or_else(|| Err("there is no such entry".into()))
    }

    fn can_have_endpoint(&self, id: &EntryId, shape: &Shape) -> Result<String, String> {
        let Shape::Remote(remote) = shape else { return Err("it is no entry with an address".into()) };
        if remote.parts.as_ref().is_ok_and(|parts| parts.behind.is_some()) {
            return Err("it starts the shim: restore it first".into());
        }
        let url = remote.url.as_ref().ok_or("its address is no text")?.value.clone();
        let rules = self.interpolation(id);
        if remote.sse {
            return Err("its client speaks HTTP+SSE to it, which Firedoor's addresses do not".into());
        }
        if !(url.starts_with("http://") || url.starts_with("https://"))
            || rules.refers(&url)
            || url.contains(['"', '\\'])
        {
            return Err("its address is not http, or the client fills something in".into());
        }
        if secret::in_url(rules, &url) {
            return Err("its address looks like a secret in clear".into());
        }
        if let Some(sign) = rules.touches(&id.to_string()) {
            return Err(format!("its name contains {sign:?}, which the client would replace"));
        }
        endpoint::objection(id).map_or(Ok(url), |why| Err(why.into()))
    }

    fn moves(&self, env: &Env<'_>, text: &str, id: &EntryId, shape: &Shape, secrets: Secrets<'_>) -> Moves {
        let rules = self.interpolation(id);
        let foreign = moved::references(shape.values()).iter().any(|r| r.entry() != id);
        if !foreign && !moved::has_secret(shape, rules) {
            return Moves::default();
        }
        let stay = |reason: &str| Moves { left: moved::all_left(shape, id, rules, reason), ..Moves::default() };
        match secrets {
            Secrets::Stay(reason) => stay(reason),
            Secrets::Move | Secrets::Show => match env.vault() {
                Ok((keychain, _)) => moved::moves(text, shape, id, rules, |r| moved::lookup(keychain, r).ok()),
                Err(reason) => stay(&reason),
            },
        }
    }

    /// What cannot be taken back exactly is not done.
    fn reversible(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        new: &Text,
        repaired: &str,
        fresh: &BTreeSet<EntryId>,
        with_secrets: &BTreeSet<EntryId>,
    ) -> Result<(), FileError> {
        let touched: BTreeSet<EntryId> = fresh.union(with_secrets).cloned().collect();
        let Some(first) = touched.first() else { return Ok(()) };
        let known = |reference: &SecretRef| match new.moves.iter().find(|m| m.reference == *reference) {
            Some(moved) => Ok(moved.kept.clone()),
            None => moved::lookup(env.keychain().map_err(|e| e.to_string())?, reference),
        };
        let back = |text: &str, ids: &BTreeSet<EntryId>| {
            let (all, _) = file.servers(text).ok()?;
            Some(restored(text, &all, ids, &known).text)
        };
        // Of entries that were protected before, or refer to secrets, only what restoring makes of them can be compared.
        let before: BTreeSet<EntryId> = with_secrets.difference(fresh).cloned().collect();
        let want = if before.is_empty() { Some(repaired.to_owned()) } else { back(repaired, &before) };
        match (back(&new.text, &touched), want) {
            (Some(back), Some(want)) if back == want => Ok(()),
            _ => Err(file.irreversible(std::slice::from_ref(first))),
        }
    }
}

fn reason(state: &State) -> String {
    match state {
        State::Protected => "it is protected already".to_owned(),
        State::Unprotected => "it is not protected".to_owned(),
        State::Misrouted { reason } | State::NotYet { reason } => reason.clone(),
        State::WrappedByOther { by } => format!("{by} stands in front of it: remove that first"),
    }
}
