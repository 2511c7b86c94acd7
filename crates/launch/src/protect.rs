//! Grants that come from outside, cut so that they never open a protected place.
//!
//! Landlock opens whole trees and cannot close a part of one again. So a grant of a directory that holds a protected
//! place becomes the right to list it, and one grant for each of its other children.

mod looks;
mod way;

use std::{
    fs,
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use firedoor_model::{
    keychain::KeptInFile,
    launch::{Access, Grant},
    paths::{Paths, canonicalize},
    protected::ProtectedNames,
};
use serde::Deserialize;

use crate::{profile_path, sys};
use looks::Looks;
pub(crate) use way::Way;

/// Most children that one grant is taken apart into.
const MAX_CHILDREN: usize = 4096;
/// Deepest directory that is taken apart.
const MAX_DEPTH: usize = 64;

/// From `profiles/sandbox/protected.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Places {
    secret: Vec<String>,
    plugins: Vec<String>,
    persistence: Vec<String>,
    tree: ProtectedNames,
}

#[expect(clippy::expect_used, reason = "built-in data, parsed by a test")]
static PLACES: LazyLock<Places> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/protected.json"))).expect("protected.toml parses")
});

/// Names that stay closed in every tree that may be written.
pub(crate) fn names() -> &'static ProtectedNames {
    &PLACES.tree
}

/// Who asks for a grant. What names a protected place itself opens it only when a person, or a profile, said so:
/// arguments may come from a project's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `firedoor grants add`, or a profile.
    Named,
    /// An argument, a script's project: derived from the command.
    Derived,
}

/// Why a path is not offered to be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// It belongs to Firedoor, and is never granted.
    Own,
    /// It is the whole home or system, or holds protected places.
    TooMuch,
    /// It is a protected place.
    Protected,
}

/// What must stay closed, with symbolic links resolved.
#[derive(Clone, Debug)]
pub(crate) struct Protected {
    home: PathBuf,
    own: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    /// Patterns of directories in the secret places; see [`in_plugin`].
    plugins: Vec<PathBuf>,
    persistence: Vec<PathBuf>,
}

/// What became of one grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) grants: Vec<Grant>,
    /// What the user should know, without private contents.
    pub(crate) notes: Vec<String>,
}

/// The real path of `path`, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for at in path.ancestors() {
        if let Ok(found) = canonicalize(at) {
            return path.strip_prefix(at).map_or_else(|_| found.clone(), |rest| found.join(rest));
        }
    }
    path.to_owned()
}

/// Whether a path is the directory that a pattern describes, or lies in it. `*` is any one name.
fn in_plugin(path: &Path, pattern: &Path) -> bool {
    let mut names = path.components();
    let is_same = |wanted: Component<'_>, name: Component<'_>| {
        wanted.as_os_str() == "*" || sys::same_name(wanted.as_os_str(), name.as_os_str())
    };
    pattern.components().all(|wanted| names.next().is_some_and(|name| is_same(wanted, name)))
}

/// What the user has put elsewhere and opens the file of secrets, as it stands and where it leads to. As good as the file itself,
/// it is as closed.
fn opener(paths: &Paths, looks: &mut Looks) -> Vec<PathBuf> {
    // What is anything else than the small file that it should be opens nothing (`store::private`).
    const MOST: u64 = 64 << 10;
    let file = paths.kept_in_file();
    let kept = fs::symlink_metadata(&file)
        .ok()
        .filter(|meta| meta.is_file() && meta.len() <= MOST)
        .and_then(|_| serde_json::from_slice::<KeptInFile>(&fs::read(&file).ok()?).ok());
    let Some(path) = kept.and_then(|kept| kept.identity) else { return Vec::new() };
    let stands = path.parent().zip(path.file_name()).map(|(parent, name)| looks.real(parent).join(name));
    stands.into_iter().chain([looks.real(&path)]).collect()
}

impl Protected {
    pub(crate) fn new(paths: &Paths) -> Self {
        let mut looks = Looks::at(&paths.home);
        let home = looks.real(&paths.home);
        let mut own: Vec<PathBuf> = paths.own().into_iter().map(|p| looks.real(p)).collect();
        own.extend(opener(paths, &mut looks));
        let mut both = |places: &[String], further: Vec<PathBuf>| {
            let all = places.iter().map(|p| profile_path(p, &paths.home)).chain(further);
            all.flat_map(|place| looks.both(place)).collect::<Vec<_>>()
        };
        Self {
            own,
            secret: both(&PLACES.secret, sys::secret_places(paths)),
            plugins: PLACES.plugins.iter().map(|p| profile_path(p, &home)).collect(),
            persistence: both(&PLACES.persistence, sys::persistence_places(paths)),
            home,
        }
    }

    /// The user's home, with symbolic links resolved.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Firedoor's own places, with symbolic links resolved.
    pub(crate) fn own(&self) -> &[PathBuf] {
        &self.own
    }

    /// Whether a path, with symbolic links resolved, lies in a directory of Firedoor's.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        let target = real(path);
        self.own.iter().any(|own| sys::within(&target, own))
    }

    /// What forbids opening `path` to a server that nobody named it for. Symbolic links in `path` count as resolved.
    pub(crate) fn objection(&self, path: &Path, access: Access) -> Option<Objection> {
        let inside = |places: &[PathBuf]| places.iter().any(|p| sys::within(path, p));
        let above = |places: &[PathBuf]| places.iter().any(|p| sys::within(p, path));
        if inside(&self.own) {
            Some(Objection::Own)
        } else if sys::holds_too_much(path) || sys::shows_the_system(path) || sys::within(&self.home, path) {
            Some(Objection::TooMuch)
        } else if inside(&self.secret) || (access == Access::Write && inside(&self.persistence)) {
            Some(Objection::Protected)
        } else if access != Access::List
            && (above(&self.own) || above(&self.secret) || (access == Access::Write && above(&self.persistence)))
        {
            Some(Objection::TooMuch)
        } else {
            None
        }
    }

    /// Cuts one grant. A path that is missing is left out, with a note.
    pub(crate) fn cut(&self, path: &Path, access: Access, origin: Origin) -> Cut {
        let mut cut = Cut::default();
        if let Err(why) = self.try_cut(path, access, origin, &mut cut) {
            cut.grants.clear();
            cut.notes.push(format!("{} is not granted: {why}", path.display()));
        }
        cut
    }

    fn try_cut(&self, path: &Path, access: Access, origin: Origin, cut: &mut Cut) -> Result<(), String> {
        if !path.is_absolute() {
            return Err("the path is not absolute".into());
        }
        let target = match canonicalize(path) {
            Ok(target) => target,
            // What would be closed in a tree that another grant opens can be opened before it is there.
            Err(_) if origin == Origin::Named && access == Access::Write && names().look(path).closed > 0 => real(path),
            Err(e) => return Err(e.to_string()),
        };
        if sys::holds_too_much(&target) {
            return Err("it holds too much: grant a directory in it instead".into());
        }
        if sys::shows_the_system(&target) {
            return Err("it shows other processes and the system's state".into());
        }
        if self.own.iter().any(|own| sys::within(&target, own)) {
            return Err("it belongs to Firedoor".into());
        }
        let inside = |places: &[PathBuf]| places.iter().any(|p| sys::within(&target, p));
        let plugin = self.plugins.iter().any(|pattern| in_plugin(&target, pattern));
        if origin == Origin::Derived && inside(&self.secret) && !plugin {
            return Err(format!(
                "it is a protected place. If the server really needs it: firedoor grants add ENTRY --ro {}",
                target.display()
            ));
        }
        let look = names().look(&target);
        let run_by_others =
            plugin || inside(&self.persistence) || look.closed > 0 || look.directory_only && !target.is_dir();
        let access = if origin == Origin::Derived && access == Access::Write && run_by_others {
            cut.notes
                .push(format!("{} is granted to read only: other programs run what is there, outside the sandbox. If the server is to write \
                     it: firedoor grants add ENTRY --rw {0}",
                    target.display()));
            Access::Read
        } else {
            access
        };
        let mut left = MAX_CHILDREN;
        self.tree(&target, access, cut, &mut left, 0)?;
        for grant in &mut cut.grants {
            // The guardian opens nothing but files for others. A device or a pipe has no names in it to protect.
            let file = |kind: fs::FileType| kind.is_dir() || kind.is_file();
            if grant.access == Access::Write && fs::metadata(&grant.path).map_or(true, |m| file(m.file_type())) {
                grant.access = Access::Edit;
            }
        }
        if cut.grants.len() > 1 {
            cut.notes.push(format!(
                "{} holds protected places, so its other parts are granted one by one. The names of all files in it can be \
                 listed, and files directly in it that appear later are not granted",
                target.display()
            ));
        }
        Ok(())
    }

    /// Whether a protected place lies below `dir`, so that `dir` must be taken apart.
    fn holds_protected(&self, dir: &Path, access: Access) -> bool {
        let below = |places: &[PathBuf]| places.iter().any(|p| sys::within(p, dir) && !sys::within(dir, p));
        below(&self.own) || below(&self.secret) || (access == Access::Write && below(&self.persistence))
    }

    fn tree(&self, at: &Path, access: Access, cut: &mut Cut, left: &mut usize, depth: usize) -> Result<(), String> {
        // Listing shows names only, and those of the whole tree anyway.
        if access == Access::List || !self.holds_protected(at, access) || !at.is_dir() {
            cut.grants.push(Grant { path: at.to_owned(), access });
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            return Err(format!("{} is too deep", at.display()));
        }
        cut.grants.push(Grant { path: at.to_owned(), access: Access::List });
        let entries = fs::read_dir(at).map_err(|e| format!("{} cannot be listed: {e}", at.display()))?;
        let mut children = Vec::new();
        for entry in entries {
            *left = left.checked_sub(1).ok_or_else(|| {
                format!("it has more than {MAX_CHILDREN} children around protected places: grant the directories that are needed instead")
            })?;
            let entry = entry.map_err(|e| format!("{} cannot be listed: {e}", at.display()))?;
            let kind = entry.file_type().map_err(|e| format!("{}: {e}", entry.path().display()))?;
            // What a link points at is granted where it lies, or not at all. Sockets and pipes lead to other programs.
            if kind.is_dir() || kind.is_file() {
                children.push(entry.path());
            }
        }
        children.sort();
        for child in children {
            let is_one = |places: &[PathBuf]| places.iter().any(|p| sys::within(p, &child) && sys::within(&child, p));
            if is_one(&self.own) || is_one(&self.secret) {
                continue;
            }
            let access = if access == Access::Write && is_one(&self.persistence) { Access::Read } else { access };
            self.tree(&child, access, cut, left, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
