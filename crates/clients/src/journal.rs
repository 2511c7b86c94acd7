//! Original bytes and what was done to which file, in `$XDG_STATE_HOME/firedoor/backups`. Originals with secrets are
//! sealed where there is a keychain for the key.
//!
//! One record per configuration file, replaced atomically, so that a crash leaves the old or the new one. Restoring
//! one entry needs none of this: the entry says itself what it replaced.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use firedoor_model::{Digest, EntryId, Millis};
use serde::{Deserialize, Serialize};

use crate::{env::Env, error::FileError, fault, seal::SealKey, source::MAX_BYTES, sys};

const MAX_RECORD: u64 = 4 * 1024 * 1024;
const MAX_RECORDS: usize = 10_000;
/// Backups kept per file, the first one always among them.
const KEEP: usize = 8;

/// What is known about one configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The file, links resolved.
    pub target: PathBuf,
    /// The name the client knows it by.
    pub path: PathBuf,
    pub client: String,
    /// The project of a project file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Hash of the bytes before our last chain of edits; its backup has the same name. There is none where something of ours
    /// was in them: then only the entries say what they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Digest>,
    /// Hash of what we wrote last.
    pub wrote: Digest,
    /// Hash of what that replaced.
    pub replaced: Digest,
    /// Entries that are protected by what we wrote.
    pub entries: Vec<EntryId>,
    /// Every backup of the file, oldest first.
    pub backups: Vec<Digest>,
    /// When the record was written, and with it the file; from the file system, so that older records have it.
    #[serde(skip)]
    pub at: Option<Millis>,
}

/// All records, read once.
pub(crate) struct Journal {
    dir: PathBuf,
    records: Vec<Record>,
}

impl Record {
    /// Whether bytes with this hash are known: saved, written by us, or just replaced by us.
    pub fn knows(&self, digest: Digest) -> bool {
        self.original == Some(digest) || [self.wrote, self.replaced].contains(&digest) || self.backups.contains(&digest)
    }
}

impl Journal {
    /// Reads what there is. A record that cannot be read is left out: restoring works without it.
    pub fn open(env: &Env<'_>) -> Self {
        let dir = env.backups();
        let names = fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path());
        let mut names: Vec<PathBuf> =
            names.filter(|p| p.extension().is_some_and(|e| e == "json")).take(MAX_RECORDS).collect();
        names.sort();
        let records = names.iter().filter_map(|p| read_record(p)).collect();
        Self { dir, records }
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The record of one file.
    pub fn of(&self, target: &Path) -> Option<&Record> {
        self.records.iter().find(|r| r.target == target)
    }

    /// The bytes of a backup, if they are still what they were and can be opened.
    pub fn original(&self, env: &Env<'_>, digest: Digest) -> Option<Vec<u8>> {
        let plain = read_backup(&backup_path(&self.dir, digest));
        let bytes = plain.or_else(|| {
            let sealed = read_backup(&sealed_path(&self.dir, digest))?;
            SealKey::known(env.keychain().ok()?).ok()??.open(digest, &sealed)
        })?;
        (Digest::of(&bytes) == digest).then_some(bytes)
    }
}

fn read_backup(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // What sealing adds is much less.
    File::open(path).ok()?.take(MAX_BYTES + 1024).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read_record(path: &Path) -> Option<Record> {
    let file = sys::open(path).ok()?;
    let mut bytes = Vec::new();
    let modified = file.metadata().and_then(|meta| meta.modified()).ok();
    file.take(MAX_RECORD).read_to_end(&mut bytes).ok()?;
    let at = modified.and_then(|at| u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok());
    let record = Record { at: at.map(Millis), ..serde_json::from_slice(&bytes).ok()? };
    // A record counts for the file that its own name is made of.
    (path.file_stem()?.to_str()? == key(&record.target)).then_some(record)
}

fn key(target: &Path) -> String {
    Digest::of(target.as_os_str().as_encoded_bytes()).to_string()
}

fn backup_path(dir: &Path, digest: Digest) -> PathBuf {
    dir.join(format!("{digest}.orig"))
}

fn sealed_path(dir: &Path, digest: Digest) -> PathBuf {
    dir.join(format!("{digest}.sealed"))
}

/// The journal, locked for one configuration file.
pub(crate) struct Locked {
    dir: PathBuf,
    target: PathBuf,
    /// Held until dropped; the system lets go of it when the process ends.
    _lock: File,
}

impl Locked {
    /// Takes the lock of one file, waiting at most `tries` times 20 ms.
    pub fn take(env: &Env<'_>, target: &Path, tries: u32) -> Result<Self, FileError> {
        let dir = env.backups();
        for dir in [&env.paths.state, &dir] {
            sys::private_dir(dir).map_err(|e| FileError::io("create", dir, e))?;
        }
        let name = dir.join(format!("{}.lock", key(target)));
        let io = |e| FileError::io("lock", &name, e);
        let lock = sys::open_lock(&name).map_err(io)?;
        for _ in 0..tries {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { dir, target: target.to_owned(), _lock: lock }),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(20)),
                Err(fs::TryLockError::Error(e)) => return Err(io(e)),
            }
        }
        Err(FileError::Busy { path: target.to_owned() })
    }

    /// The record of the file, as it is now.
    pub fn record(&self) -> Option<Record> {
        read_record(&self.record_path())
    }

    fn record_path(&self) -> PathBuf {
        self.dir.join(format!("{}.json", key(&self.target)))
    }

    /// Saves bytes under their hash, durably, before anything is edited; sealed if there is a key.
    pub fn back_up(&self, bytes: &[u8], key: Option<&SealKey>) -> Result<Digest, FileError> {
        let digest = Digest::of(bytes);
        let path = if key.is_some() { sealed_path(&self.dir, digest) } else { backup_path(&self.dir, digest) };
        let saved = read_backup(&path);
        let saved = key.map_or(saved.clone(), |key| key.open(digest, &saved.unwrap_or_default()));
        if saved.as_deref() == Some(bytes) {
            return Ok(digest);
        }
        let io = |e| FileError::io("save a copy of the original in", &path, e);
        let content = match key {
            Some(key) => key.seal(digest, bytes).map_err(|e| io(io::Error::other(e)))?,
            None => bytes.to_owned(),
        };
        write_private(&self.dir, &path, &content).map_err(io)?;
        Ok(digest)
    }

    /// Seals what was saved of the file before there was a key, and removes the copies in clear.
    pub fn seal_all(&self, record: &Record, key: &SealKey) -> Result<(), FileError> {
        for digest in record.backups.iter().chain(&record.original) {
            let path = backup_path(&self.dir, *digest);
            let Some(bytes) = read_backup(&path).filter(|bytes| Digest::of(bytes) == *digest) else { continue };
            self.back_up(&bytes, Some(key))?;
            fs::remove_file(&path).map_err(|e| FileError::io("remove the copy in clear in", &path, e))?;
        }
        Ok(())
    }

    /// Replaces the record and removes backups that are no longer kept.
    pub fn write(&self, mut record: Record) -> Result<(), FileError> {
        let path = self.record_path();
        let mut dropped = Vec::new();
        while record.backups.len() > KEEP {
            // The first is the file as it was before Firedoor; the last ones are the recent past.
            dropped.push(record.backups.remove(1));
        }
        let io = |e| FileError::io("write the journal", &path, e);
        let bytes = serde_json::to_vec_pretty(&record).map_err(|e| io(io::Error::other(e)))?;
        write_private(&self.dir, &path, &bytes).map_err(io)?;
        for digest in dropped.iter().filter(|d| !record.backups.contains(d) && record.original != Some(**d)) {
            self.remove_backup(*digest);
        }
        Ok(())
    }

    /// Removes a backup, unless another file's record has the same bytes.
    fn remove_backup(&self, digest: Digest) {
        let elsewhere = |p: PathBuf| read_record(&p).is_some_and(|r| r.backups.contains(&digest));
        let mut all = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|e| e.path());
        if !all.any(elsewhere) {
            // Left behind at worst.
            let _ = fs::remove_file(backup_path(&self.dir, digest));
            let _ = fs::remove_file(sealed_path(&self.dir, digest));
        }
    }
}

/// Writes a file of mode 0600 so that after a crash it has its old content or all of the new.
fn write_private(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir)?;
    fault::point();
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    fault::point();
    file.persist(path).map_err(|e| e.error)?;
    fault::point();
    sys::sync_names(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_model::paths::Paths;

    #[test]
    fn one_command_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().to_owned();
        let look = move |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let env = Env::new(Paths::from_env(&look).unwrap(), "/", look);
        let (a, b) = (Path::new("/a.json"), Path::new("/b.json"));
        let held = Locked::take(&env, a, 1).unwrap();
        assert!(matches!(Locked::take(&env, a, 2), Err(FileError::Busy { .. })));
        assert!(Locked::take(&env, b, 1).is_ok());
        drop(held);
        // A program that another test starts at this moment has the lock, too, until it is executed.
        assert!(Locked::take(&env, a, 500).is_ok());
    }
}
