//! What the grant of a Unix socket names.

use std::{
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

/// Links on one way; the kernel follows as many (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// Where a granted path leads. What is not there yet is meant by the name as it is written: programs make their sockets when
/// they start, and links to them before.
///
/// None for a way that leads into what the server may write and out of it again: an earlier session may have laid it.
pub(super) fn find(path: &Path, is_writable: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut at = PathBuf::from("/");
    let mut left = parts(path);
    let (mut links, mut entered) = (0, false);
    while let Some(name) = left.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        match fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                left.extend(parts(&target));
            }
            Err(_) => at = next,
        }
        entered |= is_writable(&at);
    }
    (!entered || is_writable(&at)).then_some(at)
}

/// Names of a path, the first at the end.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
