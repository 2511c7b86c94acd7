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
    protect::{Origin, Protected, Way},
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
    /// What the server is to write, whoever asks for it.
    writes: Vec<(PathBuf, Origin)>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) notes: Vec<String>,
}

impl Grants {
    pub(crate) fn new(protected: Protected) -> Self {
        Self { protected, writes: Vec::new(), grants: Vec::new(), notes: Vec::new() }
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

    /// Paths that arguments or variables of the entry name for the server.
    pub(crate) fn asked(&mut self, paths: impl IntoIterator<Item = PathBuf>, access: Access) {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        if access > Access::Read {
            self.writes.extend(paths.iter().map(|path| (path.clone(), Origin::Derived)));
        }
        let paths: Vec<PathBuf> = paths.into_iter().filter(|path| !self.is_planted(path)).collect();
        self.derived(paths, access);
    }

    /// Says what will be named to be written, before anything is granted: what lies in there may be the server's doing.
    pub(crate) fn foresee(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.writes.extend(paths.into_iter().map(|path| (path, Origin::Named)));
    }

    /// Whether the way to a path leads through a link that the server can have put there at an earlier start, which then is
    /// no word of the user's. Says so.
    pub(crate) fn is_planted(&mut self, path: &Path) -> bool {
        let way = Way::of(path);
        if way.links.is_empty() {
            return false;
        }
        let open =
            self.writes.iter().flat_map(|(path, origin)| self.protected.cut(path, Access::Write, *origin).grants);
        let trees: Vec<PathBuf> = open.filter(|g| g.access > Access::Read).map(|g| g.path).collect();
        let Some(link) = way.links.iter().find(|link| trees.iter().any(|tree| sys::within(link, tree))) else {
            return false;
        };
        self.note(format!(
            "{} is not granted: {} is a link in a directory that the server may write, so the server may have put it there. It \
             leads to {} now. If the server is to have that, grant it by this path",
            path.display(),
            link.display(),
            way.end.display()
        ));
        true
    }

    /// The authorities that the environment names.
    pub(crate) fn certificates(&mut self, env: &[(OsString, OsString)]) {
        let (files, directories) = environment::certificates(env, opened_by_base());
        self.derived(files, Access::Read);
        self.derived(directories, Access::List);
    }

    /// A path that a person named.
    pub(crate) fn named(&mut self, path: &Path, access: Access) {
        if !self.is_planted(path) {
            self.cut(path, access, Origin::Named);
        }
    }

    /// A path that a profile names; whether it is there.
    pub(crate) fn named_if_there(&mut self, path: &Path, access: Access) -> bool {
        path.exists() && !self.is_planted(path) && self.cut(path, access, Origin::Named)
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
