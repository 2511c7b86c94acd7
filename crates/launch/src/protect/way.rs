//! The way to a file through symbolic links: who can change one of them decides where the path ends.

use std::{
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

use firedoor_model::paths::canonicalize;

/// Most links on a way (the kernel's own bound, path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The links on it, those that links lead to as well, each where it really stands.
    pub(crate) links: Vec<PathBuf>,
    /// Its end, as far as there is something.
    pub(crate) end: PathBuf,
}

enum Part {
    Up,
    Name(OsString),
    Root(PathBuf),
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> impl Iterator<Item = Part> + '_ {
    path.components().rev().filter_map(|part| match part {
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::RootDir | Component::Prefix(_) => Some(Part::Root(part.as_os_str().into())),
    })
}

impl Way {
    /// Of an absolute path.
    pub(crate) fn of(path: &Path) -> Self {
        let mut way = Self { links: Vec::new(), end: PathBuf::new() };
        let mut left: Vec<Part> = parts(path).collect();
        while let Some(part) = left.pop() {
            match part {
                // Of what a prefix and a root are pushed to, an absolute one stays.
                Part::Root(root) => way.end.push(root),
                Part::Up => {
                    way.end.pop();
                }
                Part::Name(name) => {
                    let at = way.end.join(name);
                    match fs::read_link(&at) {
                        Ok(target) if way.links.len() < MAX_LINKS => {
                            way.links.push(real_parent(&way.end, &at));
                            left.extend(parts(&target));
                        }
                        _ => way.end = at,
                    }
                }
            }
        }
        way
    }
}

/// The same place, below a parent that is written as other paths are compared.
fn real_parent(parent: &Path, at: &Path) -> PathBuf {
    let name = at.file_name().unwrap_or_default();
    canonicalize(parent).unwrap_or_else(|_| parent.to_owned()).join(name)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        fs::write(root.join("real/deep/f"), "").unwrap();
        symlink("../../real", root.join("a/b/rel")).unwrap();
        symlink(root.join("a/b/rel/deep"), root.join("two")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        for (path, links, end) in [
            ("real/deep/f", vec![], "real/deep/f"),
            ("a/b/rel/deep/f", vec!["a/b/rel"], "real/deep/f"),
            ("two/f", vec!["two", "a/b/rel"], "real/deep/f"),
            ("two/../x", vec!["two", "a/b/rel"], "real/x"),
            ("a/./b/../b/absent/y", vec![], "a/b/absent/y"),
            ("dangling", vec!["dangling"], "nothing"),
        ] {
            let links = links.into_iter().map(|l| root.join(l)).collect();
            assert_eq!(Way::of(&root.join(path)), Way { links, end: root.join(end) }, "{path}");
        }
        assert_eq!(Way::of(&root.join("loop")).links.len(), MAX_LINKS);
    }
}
