//! From two moments to what happened in between. Pure.

use std::path::PathBuf;

use firedoor_model::{EntryId, Millis, Untrusted, notice::Noticed};

use super::seen::{EntrySeen, FileSeen, Seen};
use crate::{scan::EntryFound, state::State};

/// One thing that happened to an entry or a file.
#[derive(Clone, Debug)]
pub struct Change {
    /// What.
    pub noticed: Noticed,
    /// The client's id.
    pub client: String,
    /// Which file.
    pub path: PathBuf,
    /// Whether the client had no file before.
    pub first: bool,
    /// The project that the file belongs to; it may be shared with others.
    pub project: Option<String>,
    /// The entry as it is now; as it was, when it was removed.
    pub entry: Option<EntryFound>,
    /// What is wrong with the file or the entry.
    pub detail: Option<Untrusted>,
    /// When Firedoor last wrote the file. An entry that was dropped was protected then.
    pub written: Option<Millis>,
}

impl Change {
    fn of_file(noticed: Noticed, seen: &FileSeen) -> Self {
        Self {
            noticed,
            client: seen.file.client.clone(),
            path: seen.file.path.clone(),
            first: false,
            project: seen.file.project.clone(),
            entry: None,
            detail: None,
            written: seen.written,
        }
    }

    fn of_entry(noticed: Noticed, seen: &FileSeen, entry: &EntrySeen) -> Self {
        let detail = match &entry.found.state {
            State::Misrouted { reason } | State::NotYet { reason } => Some(Untrusted::new(reason.as_str())),
            State::WrappedByOther { by } => Some(Untrusted::new(format!("{by} stands in front of it"))),
            State::Protected | State::Unprotected => None,
        };
        let detail = detail.filter(|_| noticed != Noticed::Removed);
        Self { entry: Some(entry.found.clone()), detail, ..Self::of_file(noticed, seen) }
    }

    /// The entry's id.
    pub fn id(&self) -> Option<&EntryId> {
        self.entry.as_ref().map(|e| &e.id)
    }
}

/// What somebody did while nobody watched: entries that Firedoor protected and that are not any more.
pub(super) fn at_first(now: &Seen) -> Vec<Change> {
    let dropped = |e: &&EntrySeen| e.ours && !routed(&e.found.state);
    let of = |file: &FileSeen| -> Vec<Change> {
        file.entries.values().filter(dropped).map(|e| Change::of_entry(Noticed::Dropped, file, e)).collect()
    };
    now.files.values().flat_map(of).collect()
}

/// What happened between two moments, file by file.
pub(super) fn between(old: &Seen, now: &Seen) -> Vec<Change> {
    let mut all = Vec::new();
    for file in now.files.values() {
        if let Some(problem) = &file.problem {
            let before = old.files.get(&file.file.path).and_then(|f| f.problem.as_ref());
            if before != Some(problem) {
                let detail = Some(Untrusted::new(problem.as_str()));
                all.push(Change { detail, ..Change::of_file(Noticed::Unreadable, file) });
            }
            continue;
        }
        let first = !old.files.values().any(|f| f.file.client == file.file.client);
        for (id, entry) in &file.entries {
            if let Some(noticed) = to_entry(old.entry(id), entry) {
                all.push(Change { first, ..Change::of_entry(noticed, file, entry) });
            }
        }
    }
    for file in old.files.values() {
        let gone = file.entries.iter().filter(|(id, _)| now.entry(id).is_none());
        all.extend(gone.map(|(_, entry)| Change::of_entry(Noticed::Removed, file, entry)));
    }
    for (path, client) in now.left_alone.iter().filter(|(path, _)| !old.left_alone.contains_key(*path)) {
        all.push(Change {
            noticed: Noticed::LeftAlone,
            client: client.clone(),
            path: path.clone(),
            first: false,
            project: None,
            entry: None,
            detail: None,
            written: None,
        });
    }
    all
}

fn to_entry(old: Option<&EntrySeen>, now: &EntrySeen) -> Option<Noticed> {
    let Some(old) = old else { return Some(Noticed::Appeared) };
    match (routed(&old.found.state), routed(&now.found.state)) {
        (true, false) if now.ours => Some(Noticed::Dropped),
        (true, false) => Some(Noticed::Restored),
        (false, true) => Some(Noticed::Protected),
        // It was protected and dropped between two looks.
        (false, false) if now.ours && !old.ours => Some(Noticed::Dropped),
        _ if old.content != now.content => Some(Noticed::Changed),
        _ if old.found.state != now.found.state => Some(Noticed::Changed),
        _ => None,
    }
}

/// Whether the client starts a shim of ours, the right one or not.
fn routed(state: &State) -> bool {
    matches!(state, State::Protected | State::Misrouted { .. })
}

#[cfg(test)]
mod tests {
    use firedoor_model::Digest;

    use super::*;
    use crate::{catalog::Clients, discover::ConfigFile};

    /// One Cursor file: (server, content, state, ours).
    type Of<'a> = &'a [(&'a str, &'a str, State, bool)];

    fn seen(of: Of<'_>) -> Seen {
        let file = cursor();
        let entries = of.iter().map(|(name, content, state, ours)| {
            let id = EntryId::new("cursor", "user", name).unwrap();
            let found = EntryFound {
                id: id.clone(),
                command: None,
                args: Vec::new(),
                env_names: Vec::new(),
                reached: None,
                secrets: Vec::new(),
                state: state.clone(),
                warnings: Vec::new(),
            };
            (id, EntrySeen { found, content: Digest::of(content.as_bytes()), ours: *ours })
        });
        let entries = entries.collect();
        let path = file.path.clone();
        let seen =
            FileSeen { file, target: None, entries, problem: None, empty: false, projects: Vec::new(), written: None };
        Seen { files: [(path, seen)].into(), ..Seen::default() }
    }

    fn cursor() -> ConfigFile {
        let paths = firedoor_model::paths::Paths::from_env(|n| (n == "HOME").then(|| "/nonexistent".into())).unwrap();
        let env = crate::Env::new(paths, "/nonexistent", |_| None);
        let all = Clients::load().unwrap().files(&env).into_iter().flatten();
        all.into_iter().find(|f| f.client == "cursor").unwrap()
    }

    fn broken(of: Of<'_>, problem: &str) -> Seen {
        let mut seen = seen(of);
        for file in seen.files.values_mut() {
            (file.entries, file.problem) = (Default::default(), Some(problem.into()));
        }
        seen
    }

    fn words(changes: &[Change]) -> Vec<String> {
        let word = |c: &Change| format!("{:?} {}", c.noticed, c.id().map_or("", |id| id.server()));
        changes.iter().map(word).collect()
    }

    #[test]
    fn what_happened_to_an_entry() {
        let elsewhere = || State::Misrouted { reason: "x".into() };
        let remote = || State::NotYet { reason: "x".into() };
        let (open, shut) = (|| State::Unprotected, || State::Protected);
        let check = |old: Of<'_>, now: Of<'_>, want: &[&str]| {
            assert_eq!(words(&between(&seen(old), &seen(now))), want, "{old:?} → {now:?}");
        };
        check(&[], &[], &[]);
        check(&[], &[("a", "1", open(), false)], &["Appeared a"]);
        check(&[], &[("a", "1", remote(), false)], &["Appeared a"]);
        check(&[("a", "1", open(), false)], &[("a", "1", open(), false)], &[]);
        check(&[("a", "1", open(), false)], &[("a", "2", open(), false)], &["Changed a"]);
        check(&[("a", "1", open(), false)], &[("a", "1", shut(), true)], &["Protected a"]);
        // The client's own hand, and ours.
        check(&[("a", "1", shut(), true)], &[("a", "1", open(), true)], &["Dropped a"]);
        check(&[("a", "1", shut(), true)], &[("a", "2", remote(), true)], &["Dropped a"]);
        check(&[("a", "1", shut(), true)], &[("a", "1", open(), false)], &["Restored a"]);
        check(&[("a", "1", open(), false)], &[("a", "1", open(), true)], &["Dropped a"]);
        check(&[("a", "1", open(), true)], &[("a", "1", open(), true)], &[]);
        check(&[("a", "1", elsewhere(), true)], &[("a", "1", open(), true)], &["Dropped a"]);
        check(&[("a", "1", shut(), true)], &[("a", "1", elsewhere(), true)], &["Changed a"]);
        check(&[("a", "1", shut(), true)], &[("a", "2", shut(), true)], &["Changed a"]);
        check(&[("a", "1", shut(), true)], &[], &["Removed a"]);
        check(&[("a", "1", open(), false)], &[("b", "1", open(), false)], &["Appeared b", "Removed a"]);
    }

    #[test]
    fn a_file_that_breaks_says_nothing_about_its_servers() {
        let of: Of<'_> = &[("a", "1", State::Protected, true)];
        let mut old = seen(of);
        let mut bad = broken(of, "line 1");
        bad.keep_unread(&mut old);
        assert_eq!(words(&between(&old, &bad)), ["Unreadable "]);
        let mut still = broken(of, "line 1");
        still.keep_unread(&mut bad);
        assert_eq!(words(&between(&bad, &still)), [""; 0]);
        // Whole again, and as before.
        assert_eq!(words(&between(&still, &seen(of))), [""; 0]);
        assert_eq!(words(&between(&still, &seen(&[("a", "1", State::Unprotected, true)]))), ["Dropped a"]);
    }

    #[test]
    fn a_client_is_new_once() {
        let of: Of<'_> = &[("a", "1", State::Unprotected, false)];
        assert!(between(&Seen::default(), &seen(of)).iter().all(|c| c.first));
        assert!(!between(&seen(&[]), &seen(of)).iter().any(|c| c.first));
    }

    #[test]
    fn what_was_dropped_before_is_said_at_the_start() {
        let check = |of: Of<'_>, want: &[&str]| assert_eq!(words(&at_first(&seen(of))), want);
        check(&[("a", "1", State::Unprotected, true)], &["Dropped a"]);
        check(&[("a", "1", State::Unprotected, false)], &[]);
        check(&[("a", "1", State::Protected, true)], &[]);
    }
}
