//! Carrying a plan out, file by file.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use firedoor_model::{EntryId, SecretRef};

use crate::{
    catalog::{Clients, Interpolation},
    client_lock::ClientLock,
    discover::ConfigFile,
    env::Env,
    error::FileError,
    fault,
    journal::{Journal, Locked, Record},
    moved::SecretLeft,
    plan::{Action, Plan, Rewritten, Secrets, Skipped, has_ours},
    replace::{Outcome, replace, sweep},
    seal::SealKey,
    source::Source,
};

/// Attempts at one file, when its client keeps writing it.
const TRIES: u32 = 5;
/// Attempts at our own lock, 20 ms apart.
const LOCK_TRIES: u32 = 250;
/// The same for the client's lock, which it holds for milliseconds.
const CLIENT_LOCK_TRIES: u32 = 150;

/// What became of one file.
#[derive(Debug)]
pub struct FileResult {
    /// Where the client looks for it.
    pub path: PathBuf,
    /// Entries that were to change.
    pub entries: Vec<EntryId>,
    /// What was done. On an error the file is as it was.
    pub result: Result<Applied, FileError>,
}

/// What was done to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Entries that were changed.
    pub changed: Vec<EntryId>,
    /// Entries that were not, since the plan was made.
    pub skipped: Vec<Skipped>,
    /// Whether the file is byte for byte what it was before Firedoor.
    pub original: bool,
    /// Secrets that moved into the keychain; of a restore, those that came back.
    pub secrets: Vec<SecretRef>,
    /// Secrets that stayed where they were; of a restore, those that are missing.
    pub secrets_left: Vec<SecretLeft>,
}

impl Clients {
    /// Carries a plan out. The files are read again: what changed since the plan was made is taken into account.
    pub fn apply(&self, env: &Env<'_>, plan: &Plan) -> Vec<FileResult> {
        plan.files
            .iter()
            .map(|planned| {
                let chosen = planned.entries.iter().cloned().collect();
                FileResult {
                    path: planned.path.clone(),
                    entries: planned.entries.clone(),
                    result: self.apply_file(env, &planned.file, &chosen, &plan.action),
                }
            })
            .collect()
    }

    fn apply_file(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        chosen: &BTreeSet<EntryId>,
        action: &Action,
    ) -> Result<Applied, FileError> {
        let gone = || FileError::Gone { path: file.path.clone() };
        let mut source = Source::read(&file.path, file.max_bytes)?.ok_or_else(gone)?;
        let target = source.target.clone();
        let lock = Locked::take(env, &target, LOCK_TRIES)?;
        if let Some(known) = lock.record() {
            sweep(&target, |digest| known.knows(digest));
        }
        // Why the keychain took no secret: then they stay, because protecting is worth more than moving.
        let mut stay: Option<String> = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(20 << attempt));
            }
            let Some(_theirs) = ClientLock::take(&file.path, file.lock_suffix.as_deref(), CLIENT_LOCK_TRIES) else {
                return Err(FileError::ClientBusy { path: file.path.clone() });
            };
            fault::point();
            source = Source::read(&file.path, file.max_bytes)?.ok_or_else(gone)?;
            if source.target != target {
                // The link points elsewhere now, and our lock is for the old target.
                break;
            }
            let secrets = stay.as_deref().map_or(Secrets::Move, Secrets::Stay);
            let new = self.rewrite(env, file, &source, chosen, action, &Journal::open(env), secrets)?;
            let missing =
                |r: &&SecretRef| !new.left.iter().any(|l| (&l.entry, &l.name) == (r.entry(), &r.name().into()));
            let applied = Applied {
                changed: new.changed.clone(),
                skipped: new.skipped.clone(),
                original: new.whole,
                secrets: new.moves.iter().map(|m| &m.reference).chain(&new.back).filter(missing).cloned().collect(),
                secrets_left: new.left.clone(),
            };
            if new.changed.is_empty() {
                return Ok(applied);
            }
            // Before the file refers to them.
            let kept = env.keychain().and_then(|k| new.moves.iter().try_for_each(|m| m.carry_out(k)));
            if let Err(e) = kept
                && !new.moves.is_empty()
            {
                stay = Some(e.to_string());
                continue;
            }
            let key = self.key_for(env, file, &source, &new)?;
            let record = record(env, &lock, file, &source, &new, key)?;
            // Written first: after a crash in between, its hash is that of no file, and restoring goes by the entries.
            lock.write(record)?;
            match replace(&file.path, &target, source.digest(), &new.bytes)? {
                Outcome::Replaced => {
                    fault::point();
                    return Ok(applied);
                }
                Outcome::Changed => {}
            }
        }
        Err(FileError::Changing { path: file.path.clone(), tries: TRIES })
    }
}

impl Clients {
    /// The key to seal the original with: if it holds secrets, and there is one.
    fn key_for<'e>(
        &self,
        env: &'e Env<'_>,
        file: &ConfigFile,
        source: &Source,
        new: &Rewritten,
    ) -> Result<Option<&'e SealKey>, FileError> {
        let rules = self.client(&file.client).map_or(Interpolation::None, |client| client.interpolation);
        let (_, text) = file.text(&source.bytes)?;
        if new.moves.is_empty() && !file.has_secret(text, rules) {
            return Ok(None);
        }
        Ok(env.vault().ok().map(|(_, key)| key))
    }
}

/// Saves the original and says what the file will be.
fn record(
    env: &Env<'_>,
    lock: &Locked,
    file: &ConfigFile,
    source: &Source,
    new: &Rewritten,
    key: Option<&SealKey>,
) -> Result<Record, FileError> {
    let known = lock.record();
    if let (Some(known), Some(key)) = (&known, key) {
        lock.seal_all(known, key)?;
    }
    let ours = known.as_ref().is_some_and(|r| r.wrote == source.digest());
    let mut backups = known.as_ref().map(|r| r.backups.clone()).unwrap_or_default();
    // We wrote what is there: the original is the one from before that, if that one is an original.
    let before = known.and_then(|known| known.original).filter(|_| ours);
    let journal = Journal::open(env);
    let before = before.filter(|saved| journal.original(env, *saved).is_none_or(|bytes| !has_ours(file, &bytes)));
    let original = match before {
        Some(original) => Some(original),
        // A file that somebody wrote since: what it is now is what a restore of it as a whole would go back to. Where entries in it
        // are protected, as before a restore, or while others are, it is kept as a copy only.
        None => {
            let saved = lock.back_up(&source.bytes, key)?;
            backups.retain(|b| *b != saved);
            backups.push(saved);
            (!has_ours(file, &source.bytes)).then_some(saved)
        }
    };
    Ok(Record {
        target: source.target.clone(),
        path: file.path.clone(),
        client: file.client.clone(),
        project: file.project.clone(),
        original,
        wrote: new.digest(),
        replaced: source.digest(),
        entries: new.protected.clone(),
        backups,
        at: None,
    })
}
