//! What the configurations say at one moment, as far as changes of it matter.

use std::{collections::BTreeMap, path::PathBuf};

use firedoor_model::{Digest, EntryId, Millis};

use crate::{
    catalog::Clients, discover::ConfigFile, document::Shape, env::Env, error::FileError, journal::Journal,
    scan::EntryFound, source::Source, wrap::wrapped,
};

/// Everything at one moment.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub files: BTreeMap<PathBuf, FileSeen>,
    /// Files that are left alone, and whose they are.
    pub left_alone: BTreeMap<PathBuf, String>,
}

/// One file that exists.
#[derive(Debug)]
pub(super) struct FileSeen {
    pub file: ConfigFile,
    /// The file itself, links resolved; `None` when it could not be read.
    pub target: Option<PathBuf>,
    pub entries: BTreeMap<EntryId, EntrySeen>,
    pub problem: Option<String>,
    /// Nothing stands in it: somebody may be about to write it.
    pub empty: bool,
    /// The projects that it lists.
    pub projects: Vec<PathBuf>,
    /// When Firedoor last wrote it.
    pub written: Option<Millis>,
}

/// One server.
#[derive(Clone, Debug)]
pub(super) struct EntrySeen {
    pub found: EntryFound,
    /// Everything that the entry says about the server itself, without the shim in front of it.
    pub content: Digest,
    /// Whether what Firedoor last wrote to this file protected the entry.
    pub ours: bool,
}

impl Clients {
    /// Looks at every file.
    pub(super) fn seen(&self, env: &Env<'_>) -> Seen {
        let journal = Journal::open(env);
        let mut seen = Seen::default();
        for (client, (files, shown)) in self.clients.iter().zip(self.files_and_unsupported(env)) {
            let files = files.into_iter().filter_map(|file| self.file_seen(env, &journal, file));
            seen.files.extend(files.map(|f| (f.file.path.clone(), f)));
            seen.left_alone.extend(shown.into_iter().map(|s| (s.path, client.id.clone())));
        }
        seen
    }

    /// Looks at one file; `None` when it is not there.
    pub(super) fn file_seen(&self, env: &Env<'_>, journal: &Journal, file: ConfigFile) -> Option<FileSeen> {
        let (entries, projects) = (BTreeMap::new(), Vec::new());
        let mut seen = FileSeen { file, target: None, entries, problem: None, empty: false, projects, written: None };
        let read = match Source::read(&seen.file.path, seen.file.max_bytes) {
            Ok(None) => return None,
            Ok(Some(source)) => self.fill_seen(env, &mut seen, &source, journal),
            Err(error) => Err(error),
        };
        seen.problem = read.err().map(|e| e.to_string());
        Some(seen)
    }

    fn fill_seen(
        &self,
        env: &Env<'_>,
        seen: &mut FileSeen,
        source: &Source,
        journal: &Journal,
    ) -> Result<(), FileError> {
        seen.target = Some(source.target.clone());
        seen.empty = source.bytes.trim_ascii().is_empty();
        let (_, text) = seen.file.text(&source.bytes)?;
        let (located, _) = seen.file.servers(text)?;
        seen.projects = seen.file.projects(text);
        let own = journal.of(&source.target);
        // A plugin that was renewed has new files: what protected it stands in the old ones.
        let renewed = seen.file.of_plugin().then(|| journal.records());
        let records = own.map(std::slice::from_ref).or(renewed).unwrap_or_default();
        seen.written = own.and_then(|record| record.at);
        let entry = |l: &crate::discover::Located| {
            let content = content(&l.server.shape);
            let ours = records.iter().any(|record| record.entries.contains(&l.id));
            let entry = EntrySeen { found: self.entry_found(env, &seen.file, l), content, ours };
            (l.id.clone(), entry)
        };
        seen.entries = located.iter().map(entry).collect();
        Ok(())
    }
}

impl Seen {
    /// The entry with this id.
    pub fn entry(&self, id: &EntryId) -> Option<&EntrySeen> {
        self.files.values().find_map(|file| file.entries.get(id))
    }

    /// A file that can no longer be read, or is empty all at once, says nothing about its servers: they stand as they were.
    pub fn keep_unread(&mut self, before: &mut Self) {
        for (path, now) in &mut self.files {
            let Some(old) = before.files.get(path) else { continue };
            if now.empty && !old.entries.is_empty() {
                now.problem = Some(format!("{}: the file is empty, and held servers before", path.display()));
            }
            if now.problem.is_some() {
                now.entries = old.entries.clone();
                now.projects = old.projects.clone();
            }
        }
    }
}

/// Everything that decides what is started or reached, however it is written.
fn content(shape: &Shape) -> Digest {
    let json = match shape {
        Shape::Stdio(stdio) => {
            let line: Vec<&str> =
                std::iter::once(&stdio.command).chain(stdio.args()).map(|s| s.value.as_str()).collect();
            let own = wrapped(stdio).map_or(0, |w| w.command_at + 1);
            let line = line.get(own..).unwrap_or_default();
            let env = stdio.env.iter().map(|(name, value)| (name, value.as_ref().map(|v| &v.value)));
            let env: Vec<_> = env.collect();
            serde_json::to_vec(&(line, env, &stdio.env_passed, &stdio.env_file, &stdio.cwd))
        }
        Shape::Remote(remote) => {
            let headers: Vec<_> = remote.headers.iter().map(|(name, value)| (name, &value.value)).collect();
            serde_json::to_vec(&(remote.url.as_ref().map(|u| &u.value), headers, &remote.env))
        }
        Shape::Odd(why) => serde_json::to_vec(why),
    };
    // Texts always encode.
    Digest::of(&json.unwrap_or_default())
}
