//! Observe mode: writes down what a server opens, starts and changes, and decides nothing.
//!
//! The calls that the table logs (`action = "log"`) would be allowed without observing: about them Landlock decides alone,
//! on the file that the kernel really opens. So they are let go on after a look at their path. That is right only because
//! nothing depends on what was read: a program that changes the path between our look and the kernel's gets a wrong line
//! into its own record, and no right. What the guardian performs
//! itself is written down on the way, and still performed.
//!
//! Architecture invariant: nothing here can refuse a call or fail one.

mod calls;
mod journal;

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use firedoor_model::{
    Untrusted,
    launch::Grant,
    observation::{Observed, Use},
};
use nix::{
    libc,
    sys::{
        memfd::{MFdFlags, memfd_create},
        stat::{SFlag, fstat},
    },
};

use crate::linux::{
    network::caller::Caller,
    paths::{self, Resolved, path_of, resolve},
    script,
    seccomp::Logged,
};
use calls::Named;
pub(crate) use journal::Journal;

/// Different spellings that are remembered, so that each is resolved once.
const MAX_SPELLINGS: usize = 40_000;

/// Writes down what one server does with files.
pub(crate) struct Observer {
    logged: Logged,
    /// With symbolic links resolved.
    grants: Vec<Grant>,
    journal: Journal,
    /// Absolute paths as the server spelled them. What one means may change; this is a log.
    spelled: HashSet<(Vec<u8>, Use)>,
}

/// A file in memory for the record, which grows while the server runs.
pub(crate) fn record() -> io::Result<OwnedFd> {
    memfd_create("firedoor-record", MFdFlags::MFD_CLOEXEC).map_err(Into::into)
}

impl Observer {
    /// Measures by these grants.
    pub fn new(logged: Logged, grants: &[Grant], record: &OwnedFd) -> io::Result<Self> {
        // Missing ones are skipped, and open nothing.
        let real = |g: &Grant| Some(Grant { path: fs::canonicalize(&g.path).ok()?, access: g.access.asked() });
        Ok(Self {
            logged,
            grants: grants.iter().filter_map(real).collect(),
            journal: Journal::new(record)?,
            spelled: HashSet::new(),
        })
    }

    /// What the guardian keeps open.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.journal.as_fd()
    }

    /// A journal of its own for connections, in the same record.
    pub fn for_connections(&self) -> io::Result<Journal> {
        self.journal.another()
    }

    /// Whether a call is only written down.
    pub fn only_logs(&self, call: &libc::seccomp_notif) -> bool {
        self.logged.contains(call.data.nr, &call.data.args)
    }

    /// Writes down what a call does with files, if anything.
    pub fn look(&mut self, listener: BorrowedFd<'_>, call: &libc::seccomp_notif) {
        let Some(named) = calls::decode(i64::from(call.data.nr), call.data.args) else { return };
        // Its process was killed meanwhile, or may not be looked into: nothing to write down.
        let Ok(caller) = Caller::of(listener, call) else { return };
        for one in named {
            let _ = self.note(&caller, &one);
        }
    }

    fn note(&mut self, caller: &Caller<'_>, named: &Named) -> nix::Result<()> {
        let text = caller.read_string(named.path)?;
        let uses = named.uses();
        let Some(greatest) = uses.last().copied() else { return Ok(()) };
        if text.starts_with(b"/") {
            if self.spelled.contains(&(text.clone(), greatest)) {
                return Ok(());
            }
            if self.spelled.len() < MAX_SPELLINGS {
                self.spelled.insert((text.clone(), greatest));
            }
        }
        if let Some(path) = of_processes(&text) {
            uses.iter().for_each(|how| self.write_down(&path, *how));
            return Ok(());
        }
        let there = match text.as_slice() {
            // The descriptor itself (AT_EMPTY_PATH).
            b"" => {
                let fd = caller.descriptor(named.base)?;
                Resolved { path: path_of(fd.as_fd())?, fd }
            }
            text => match resolve(caller, named.base, text, named.follow) {
                Ok(there) => there,
                Err(_) if uses.contains(&Use::Create) => {
                    let (parent, name) = split(text);
                    let parent = resolve(caller, named.base, parent, true)?;
                    self.write_down(&parent.path.join(OsStr::from_bytes(name)), Use::Create);
                    return Ok(());
                }
                Err(e) => return Err(e),
            },
        };
        let Resolved { fd, path } = there;
        // Pipes and memory files have no place in the tree.
        if !path.is_absolute() {
            return Ok(());
        }
        let kind = SFlag::from_bits_truncate(fstat(&fd)?.st_mode) & SFlag::S_IFMT;
        for how in uses {
            match how {
                Use::Read if kind == SFlag::S_IFDIR => self.write_down(&path, Use::List),
                // It exists: O_CREAT makes nothing. Without O_CREAT the place itself is changed.
                Use::Create if named.opens => {}
                Use::Execute if kind == SFlag::S_IFREG => {
                    self.write_down(&path, how);
                    // The kernel opens a script's interpreter without a call of its own.
                    if let Some(interpreter) =
                        script::interpreter(&paths::own(fd.as_fd())).and_then(|i| fs::canonicalize(i).ok())
                    {
                        self.write_down(&interpreter, how);
                    }
                }
                how => self.write_down(&path, how),
            }
        }
        Ok(())
    }

    fn write_down(&mut self, path: &Path, how: Use) {
        let allowed = allows(&self.grants, path, how);
        self.journal.note(Observed::File { path: Untrusted::new(path.to_string_lossy()), how, allowed });
    }
}

/// Whether grants cover a use of a path. Both with symbolic links resolved.
fn allows(grants: &[Grant], path: &Path, how: Use) -> bool {
    let place = if how == Use::Create { path.parent().unwrap_or(path) } else { path };
    grants
        .iter()
        .any(|g| g.access >= how.needs() && place.starts_with(&g.path) && (how != Use::Create || g.path != path))
}

/// The path of a process's own view of itself, which means something else for us: as it is spelled.
fn of_processes(text: &[u8]) -> Option<PathBuf> {
    let rest = text.strip_prefix(b"/proc/")?;
    let first = rest.split(|b| *b == b'/').next()?;
    let own = matches!(first, b"self" | b"thread-self") || first.iter().all(u8::is_ascii_digit);
    own.then(|| PathBuf::from(OsStr::from_bytes(text)))
}

/// Directory and last part of a path.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    match path.iter().rposition(|b| *b == b'/') {
        None => (b".", path),
        Some(0) => (b"/", path.get(1..).unwrap_or_default()),
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::launch::Access;

    use super::*;

    #[test]
    fn grants_cover_what_landlock_would_allow() {
        let grant = |path: &str, access| Grant { path: path.into(), access };
        let grants = [
            grant("/l", Access::List),
            grant("/r", Access::Read),
            grant("/w", Access::Write),
            grant("/f.db", Access::Write),
        ];
        for (path, how, want) in [
            ("/l/a", Use::List, true),
            ("/l/a", Use::Read, false),
            ("/r", Use::List, true),
            ("/r/a/b", Use::Read, true),
            ("/r/a", Use::Execute, true),
            ("/r/a", Use::Write, false),
            ("/rest", Use::Read, false),
            ("/w/a", Use::Create, true),
            ("/w/a", Use::Write, true),
            ("/w", Use::Create, false),
            ("/f.db", Use::Write, true),
            ("/f.db", Use::Create, false),
            ("/f.db-journal", Use::Create, false),
        ] {
            assert_eq!(allows(&grants, Path::new(path), how), want, "{path} {how:?}");
        }
    }

    #[test]
    fn paths_are_split_and_processes_known() {
        for (path, want) in
            [("a", (".", "a")), ("/a", ("/", "a")), ("a/b/", ("a", "b")), ("/a//b", ("/a/", "b")), ("/", (".", ""))]
        {
            let (parent, name) = split(path.as_bytes());
            assert_eq!((parent, name), (want.0.as_bytes(), want.1.as_bytes()), "{path}");
        }
        for (path, want) in [
            ("/proc/self/maps", true),
            ("/proc/17/fd", true),
            ("/proc/cpuinfo", false),
            ("/proc/thread-self", true),
            ("/proc", false),
        ] {
            assert_eq!(of_processes(path.as_bytes()).is_some(), want, "{path}");
        }
    }
}
