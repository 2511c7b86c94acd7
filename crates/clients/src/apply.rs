//! Carrying a plan out, file by file.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use firedoor_model::EntryId;

use crate::{
    catalog::Clients,
    client_lock::ClientLock,
    discover::ConfigFile,
    env::Env,
    error::FileError,
    fault,
    journal::{Journal, Locked, Record},
    plan::{Action, Plan, Rewritten, Skipped},
    replace::{Outcome, replace, sweep},
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

    /// Gives one entry back: after a failed verification, say.
    pub fn rollback_entry(&self, env: &Env<'_>, id: &EntryId) -> Result<(), FileError> {
        let plan = self.plan_restore(env, &BTreeSet::from([id.clone()]));
        self.apply(env, &plan).into_iter().try_for_each(|r| r.result.map(drop))
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
            let new = self.rewrite(file, &source, chosen, action, &Journal::open(env))?;
            let applied = Applied { changed: new.changed.clone(), skipped: new.skipped.clone(), original: new.whole };
            if new.changed.is_empty() {
                return Ok(applied);
            }
            let record = record(&lock, file, &source, &new, action)?;
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

/// Saves the original and says what the file will be.
fn record(
    lock: &Locked,
    file: &ConfigFile,
    source: &Source,
    new: &Rewritten,
    action: &Action,
) -> Result<Record, FileError> {
    let known = lock.record();
    let ours = known.as_ref().is_some_and(|r| r.wrote == source.digest());
    let mut backups = known.as_ref().map(|r| r.backups.clone()).unwrap_or_default();
    let original = match (&known, action) {
        // We wrote what is there: the original is the one from before that.
        (Some(known), _) if ours => known.original,
        // A file that somebody wrote since: what it is now is what a restore of it as a whole would go back to.
        _ => {
            let saved = lock.back_up(&source.bytes)?;
            backups.retain(|b| *b != saved);
            backups.push(saved);
            saved
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
    })
}
