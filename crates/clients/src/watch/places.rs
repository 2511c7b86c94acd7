//! Which directories to watch, and which names in them matter.
//!
//! Directories and not files, because programs replace files by renaming others over them. A name matters where a
//! client's file, or a directory or symbolic link on the way to it, has it or could get it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    catalog::Clients,
    env::Env,
    place::{MAX_MATCHES, Project, matched, names_in, starred},
    sys,
};

/// Most symbolic links on one way; the kernel's own bound (path_resolution(7)).
const MAX_LINKS: u32 = 40;

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// This one.
    Is(OsString),
    /// Every one of this pattern, which begins with a `*`.
    Like(OsString),
}

impl Name {
    fn of(part: &OsStr) -> Self {
        if starred(part) { Self::Like(part.into()) } else { Self::Is(part.into()) }
    }

    /// Whether a name is this one.
    pub fn takes(&self, name: &OsStr) -> bool {
        match self {
            Self::Is(own) => own == name,
            Self::Like(pattern) => matched(pattern, name).is_some(),
        }
    }
}

/// What matters where. Directories are without symbolic links, so each stands here once.
#[derive(Debug, Default)]
pub(super) struct Places {
    names: BTreeMap<PathBuf, BTreeSet<Name>>,
    /// The most important first: those of the home, then those of projects, the last changed first.
    order: Vec<PathBuf>,
}

impl Places {
    /// All there are.
    pub fn of(clients: &Clients, env: &Env<'_>) -> Self {
        let mut places = Self::default();
        for (dir, file) in clients.home_places(env) {
            places.way(&dir, &file);
        }
        // Clients' own lists of projects stand in files of the home; the journal grows with every protected project.
        let mut projects: Vec<PathBuf> = clients.known_projects(env).into_iter().collect();
        let changed = |dir: &PathBuf| dir.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        projects.sort_by_cached_key(|dir| std::cmp::Reverse(changed(dir)));
        let files = clients.project_places(env);
        for project in projects {
            let project = Project::new(project);
            for file in &files {
                if project.may_hold(file) {
                    places.way(&project.dir, file);
                } else if let Some(first) = file.iter().next() {
                    places.add(&project.dir, Name::of(first));
                }
            }
        }
        places
    }

    /// At most so many directories, and how many are left out.
    pub fn at_most(mut self, most: usize) -> (BTreeMap<PathBuf, BTreeSet<Name>>, usize) {
        let out = self.order.split_off(self.order.len().min(most));
        for dir in &out {
            self.names.remove(dir);
        }
        (self.names, out.len())
    }

    fn add(&mut self, dir: &Path, name: Name) {
        if let Some(names) = self.names.get_mut(dir) {
            names.insert(name);
        } else {
            self.names.insert(dir.to_owned(), BTreeSet::from([name]));
            self.order.push(dir.to_owned());
        }
    }

    /// Everything on the way to a file whose directory may not be there yet.
    fn way(&mut self, base: &Path, file: &Path) {
        let there = sys::canonicalize(base).ok().filter(|dir| dir.is_dir());
        let from = match there {
            // From the top, so that a directory on the way can be moved or replaced.
            Some(dir) => Some((dir, VecDeque::new())),
            None => nearest(base),
        };
        if let Some((dir, mut parts)) = from {
            parts.extend(file.iter().map(Name::of));
            self.steps(dir, parts, &mut MAX_LINKS.clone());
        }
    }

    fn steps(&mut self, mut dir: PathBuf, mut parts: VecDeque<Name>, links: &mut u32) {
        while let Some(name) = parts.pop_front() {
            self.add(&dir, name.clone());
            let part = match name {
                Name::Is(part) => part,
                Name::Like(pattern) => {
                    let names = names_in(&dir).unwrap_or_default();
                    for found in names.into_iter().filter(|n| matched(&pattern, n).is_some()).take(MAX_MATCHES) {
                        let mut behind = parts.clone();
                        behind.push_front(Name::Is(found));
                        self.steps(dir.clone(), behind, links);
                    }
                    return;
                }
            };
            let path = dir.join(&part);
            let Ok(meta) = path.symlink_metadata() else { return };
            if meta.is_symlink() {
                *links = links.saturating_sub(1);
                let target = path.read_link().ok().filter(|_| *links > 0);
                let Some((to, mut ahead)) = target.and_then(|t| nearest(&dir.join(t))) else { return };
                ahead.append(&mut parts);
                (dir, parts) = (to, ahead);
            } else if meta.is_dir() {
                dir = path;
            } else {
                return;
            }
        }
    }
}

/// The deepest directory on the way that exists, without links, and the parts behind it. The last part stays a part,
/// so that its name is watched also where it is a directory or a link.
fn nearest(path: &Path) -> Option<(PathBuf, VecDeque<Name>)> {
    let mut parts = VecDeque::new();
    let mut way = path;
    loop {
        // Ends in "..", or is the root: there is no name to watch.
        parts.push_front(Name::Is(way.file_name()?.to_owned()));
        way = way.parent()?;
        if let Ok(dir) = sys::canonicalize(way) {
            return dir.is_dir().then_some((dir, parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn watched(base: &Path, file: &str) -> Vec<String> {
        let mut places = Places::default();
        places.way(base, Path::new(file));
        let of = |(dir, names): (&PathBuf, &BTreeSet<Name>)| {
            let dir = dir.strip_prefix(base).unwrap_or(dir).display().to_string();
            let names = names.iter().map(|n| match n {
                Name::Is(name) | Name::Like(name) => name.to_string_lossy().into_owned(),
            });
            format!("{dir}: {}", names.collect::<Vec<_>>().join(" "))
        };
        places.names.iter().map(of).collect()
    }

    #[test]
    fn the_way_to_a_file_is_watched_as_far_as_it_exists() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let check = |file: &str, want: &[&str]| assert_eq!(watched(&base, file), want, "{file}");
        check("a/b/c.json", &[": a"]);
        fs::create_dir(base.join("a")).unwrap();
        check("a/b/c.json", &[": a", "a: b"]);
        fs::create_dir(base.join("a/b")).unwrap();
        check("a/b/c.json", &[": a", "a: b", "a/b: c.json"]);
        fs::write(base.join("a/b/c.json"), "").unwrap();
        // A file where a directory should be.
        check("a/b/c.json/d", &[": a", "a: b", "a/b: c.json"]);
        // The base itself is not there yet.
        assert_eq!(watched(&base.join("x/y"), "c.json"), [format!("{}: x", base.display())]);
    }

    #[test]
    fn links_are_watched_at_both_ends() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let check = |file: &str, want: &[&str]| assert_eq!(watched(&base, file), want, "{file}");
        fs::create_dir_all(base.join("dot/files")).unwrap();
        symlink("dot/files/c.json", base.join("c.json")).unwrap();
        check("c.json", &[": c.json", "dot/files: c.json"]);
        symlink("loop", base.join("loop")).unwrap();
        check("loop", &[": loop"]);
        symlink(base.join("dot/none/x.json"), base.join("x.json")).unwrap();
        check("x.json", &[": x.json", "dot: none"]);
    }

    #[test]
    fn stars_are_watched_and_what_they_stand_for() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("p/one")).unwrap();
        fs::create_dir_all(base.join("p/two")).unwrap();
        assert_eq!(watched(&base, "p/*/mcp.json"), [": p", "p: one two *", "p/one: mcp.json", "p/two: mcp.json"]);
        assert_eq!(watched(&base, "p/*.json"), [": p", "p: *.json"]);
        // A name with a star in it is a name.
        fs::write(base.join("p/*x.json"), "").unwrap();
        assert_eq!(watched(&base, "p/*.json"), [": p", "p: *x.json *.json"]);
    }
}
