//! Collecting grants and what there is to say about them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use firedoor_model::{
    launch::{Access, Grant},
    limits::Limits,
};
use serde::Deserialize;

use crate::{
    environment,
    protect::{Origin, Protected},
    sys,
};

/// From `profiles/sandbox/base.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    limits: Limits,
    closed: Vec<PathBuf>,
}

#[expect(clippy::expect_used, reason = "built-in data, parsed by a test")]
static BASE: LazyLock<Base> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/base.json"))).expect("base.toml parses")
});

/// What every server may use up, unless its profile says otherwise.
pub(crate) fn base_limits() -> Limits {
    BASE.limits
}

/// Whether a path is closed to every server on purpose.
pub(crate) fn closed_on_purpose(path: &Path) -> bool {
    BASE.closed.iter().any(|closed| path.starts_with(closed))
}

/// Whether the base set lets every server read and list a path.
fn opened_by_base() -> impl Fn(&Path) -> bool {
    let further = sys::base_read();
    move |path| BASE.read.iter().any(|b| path.starts_with(b)) || further.iter().any(|b| sys::within(path, b))
}

/// The grants of one plan, in the order they were made.
pub(crate) struct Grants {
    protected: Protected,
    pub(crate) grants: Vec<Grant>,
    pub(crate) notes: Vec<String>,
}

impl Grants {
    pub(crate) fn new(protected: Protected) -> Self {
        Self { protected, grants: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// A path that Firedoor itself chose: its own private directories.
    pub(crate) fn trusted(&mut self, path: PathBuf, access: Access) {
        self.push(Grant { path, access });
    }

    /// What every server gets.
    pub(crate) fn base(&mut self) {
        for (paths, access) in [(&BASE.read, Access::Read), (&BASE.write, Access::Write)] {
            // Of another system's paths none is absolute.
            for path in paths.iter().filter(|path| path.is_absolute()) {
                self.push(Grant { path: path.clone(), access });
            }
        }
        sys::base_read().into_iter().for_each(|path| self.push(Grant { path, access: Access::Read }));
    }

    /// Paths that follow from the command. What the base set opens anyway is left out.
    pub(crate) fn derived(&mut self, paths: impl IntoIterator<Item = PathBuf>, access: Access) {
        let opened = opened_by_base();
        for path in paths {
            if access > Access::Read || !opened(&path) {
                self.cut(&path, access, Origin::Derived);
            }
        }
    }

    /// The authorities that the environment names.
    pub(crate) fn certificates(&mut self, env: &[(OsString, OsString)]) {
        let (files, directories) = environment::certificates(env, opened_by_base());
        self.derived(files, Access::Read);
        self.derived(directories, Access::List);
    }

    /// A path that a person named.
    pub(crate) fn named(&mut self, path: &Path, access: Access) {
        self.cut(path, access, Origin::Named);
    }

    /// A path that a profile names; whether it is there.
    pub(crate) fn named_if_there(&mut self, path: &Path, access: Access) -> bool {
        path.exists() && self.cut(path, access, Origin::Named)
    }

    /// Whether a Unix socket that was named may be reached.
    pub(crate) fn socket(&mut self, path: &Path) -> bool {
        let own = self.protected.is_own(path);
        if own {
            self.note(format!("{} is not granted: it belongs to Firedoor", path.display()));
        }
        !own
    }

    /// Where no socket is reached whatever is granted: a name that was granted may be a link by then.
    pub(crate) fn own_places(&self) -> Vec<PathBuf> {
        self.protected.own().to_vec()
    }

    fn cut(&mut self, path: &Path, access: Access, origin: Origin) -> bool {
        let cut = self.protected.cut(path, access, origin);
        let any = !cut.grants.is_empty();
        cut.grants.into_iter().for_each(|g| self.push(g));
        cut.notes.into_iter().for_each(|n| self.note(n));
        any
    }

    /// The sandbox adds up what several grants of one path allow, so a weaker one beside a stronger one is noise.
    fn push(&mut self, grant: Grant) {
        // Compared as text: the same path written in two ways is opened twice, which changes nothing.
        match self.grants.iter_mut().find(|g| g.path.as_os_str() == grant.path.as_os_str()) {
            Some(there) => there.access = there.access.max(grant.access),
            None => self.grants.push(grant),
        }
    }
}
