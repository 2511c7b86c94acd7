//! Entries as they were before Firedoor stood in front of them.

use std::{collections::BTreeSet, path::Path};

use firedoor_model::{EntryId, SecretRef, secret::SCHEME};

use super::{Skipped, Text, behind, wrapped_ids};
use crate::{
    discover::{ConfigFile, Located},
    document::{Remote, Shape},
    endpoint,
    env::Env,
    journal::Journal,
    moved::{self, Kept},
    remote,
    source::{MAX_BYTES, Source, read_regular, resolve},
    wrap::{SHIM, splice, unwrap, wrapped},
};

pub(super) fn restored(
    text: &str,
    all: &[Located],
    chosen: &BTreeSet<EntryId>,
    known: &dyn Fn(&SecretRef) -> Result<Kept, String>,
) -> Text {
    let (mut edits, mut new) = (Vec::new(), Text::default());
    for Located { id, server, .. } in all.iter().filter(|l| chosen.contains(&l.id)) {
        let references = moved::references(server.shape.values());
        let own = match &server.shape {
            shape if !behind(shape) && !references.is_empty() => Ok(Vec::new()),
            Shape::Stdio(stdio) if let Some(own) = wrapped(stdio) => Ok(unwrap(text, stdio, &own)),
            Shape::Remote(Remote { endpoint: Some(at), url: Some(url), .. }) => Ok(endpoint::unwrap(text, at, url)),
            Shape::Remote(Remote { parts: Ok(parts), url: Some(url), .. }) => remote::unwrap(text, parts, url),
            _ => Err("it is not protected: nothing to restore".into()),
        };
        match own {
            Ok(own) => {
                edits.extend(own);
                let (secrets, missing) = moved::put_back(&server.shape, known);
                edits.extend(secrets);
                new.back.extend(references);
                new.left.extend(missing);
                new.changed.push(id.clone());
            }
            Err(reason) => new.skipped.push(Skipped { id: id.clone(), reason }),
        }
    }
    new.text = splice(text, edits);
    new
}

/// The saved original, if the file is still what we wrote last and the original has nothing of ours in it.
pub(super) fn original(env: &Env<'_>, file: &ConfigFile, source: &Source, journal: &Journal) -> Option<Vec<u8>> {
    let record = journal.of(&source.target).filter(|r| r.wrote == source.digest())?;
    let original = journal.original(env, record.original?)?;
    (!has_ours(file, &original)).then_some(original)
}

/// Whether bytes of a file have something of ours in them, which makes them nobody's original. Several clients may keep servers in one
/// file, so not only what this one would start counts.
pub(crate) fn has_ours(file: &ConfigFile, bytes: &[u8]) -> bool {
    let holds = |mark: &str| bytes.windows(mark.len()).any(|at| at == mark.as_bytes());
    [SHIM, endpoint::MARK].into_iter().any(holds) || wrapped_ids(file, bytes).map_or(true, |ids| !ids.is_empty())
}

/// Whether a file that cannot be taken apart may hold something of ours: the last that we wrote there was protected, or it speaks
/// of Firedoor. What was never ours needs nothing from a restore, and must not keep anybody from removing Firedoor.
pub(super) fn may_be_ours(path: &Path, journal: &Journal) -> bool {
    let target = resolve(path).ok().flatten();
    let known = |r: &&crate::journal::Record| r.path == path || Some(&r.target) == target.as_ref();
    if journal.records().iter().filter(known).any(|r| !r.entries.is_empty()) {
        return true;
    }
    let Some((mut bytes, _)) = target.and_then(|target| read_regular(path, &target, MAX_BYTES).ok()) else {
        return false;
    };
    // An editor may have saved it as UTF-16.
    bytes.retain(|byte| *byte != 0);
    let holds = |mark: &str| bytes.windows(mark.len()).any(|at| at == mark.as_bytes());
    [SHIM, endpoint::MARK, SCHEME].into_iter().any(holds)
}
