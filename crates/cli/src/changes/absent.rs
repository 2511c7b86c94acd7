//! Where no engine can run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use firedoor_clients::{Clients, Env, SHIM};
use firedoor_model::{EntryId, Unavailable};

use crate::{engine::sibling, failure::Failure, output};

/// What entries are to start. Firedoor has no shim for this system yet; without one every server would be gone.
pub fn shim() -> Result<PathBuf, Failure> {
    let shim = sibling(SHIM)?;
    if shim.is_file() {
        return Ok(shim);
    }
    let why = Unavailable("starting servers through Firedoor");
    Err(Failure::environment(format!("nothing was changed: {why}; there is no {shim:?}")))
}

/// Nobody listens.
pub fn addresses(
    _: &Clients,
    _: &Env<'_>,
    _: &BTreeSet<EntryId>,
    _: bool,
) -> Result<BTreeMap<EntryId, String>, Failure> {
    Err(Unavailable("listening for clients").into())
}

/// No engine starts servers here, and so none is told what opens the file of secrets.
pub fn share() -> Result<(), Failure> {
    Ok(())
}

/// The next engine must not begin to listen for entries that were given back.
pub fn stop_listening(entries: &[EntryId]) -> Result<(), Failure> {
    super::forget_endpoints(entries)
}

/// Giving configurations back must work without an engine. Which processes may not is known by their sessions, which there
/// are none of; that nobody looked is said.
pub fn authorize(action: &str) -> Result<(), Failure> {
    output::remark(&format!("{action}: {}", Unavailable("looking whether an AI client asks for it")));
    Ok(())
}
