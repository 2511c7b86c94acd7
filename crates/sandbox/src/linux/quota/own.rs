//! The files in which the control groups of this process say what it may use (cgroups(7)). Databases and runtimes size
//! themselves by them: `/proc/self/cgroup` says where they are.

use std::{
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use super::group::MOUNT;

/// Whoever may read this may read what it names.
pub(crate) const NAMED_BY: &str = "/proc/self/cgroup";
/// Longer than any: a path has at most 4096 bytes, and a hierarchy takes a line.
const MAX: u64 = 256 * 1024;

/// Of version 2, in the group itself.
const UNIFIED: [&str; 3] = ["memory.max", "memory.high", "cpu.max"];
/// Of version 1, each below its controller.
const CONTROLLED: [(&str, &[&str]); 2] =
    [("memory", &["memory.limit_in_bytes"]), ("cpu", &["cpu.cfs_quota_us", "cpu.cfs_period_us"])];

/// The files of the groups that this process is in; none where that cannot be read.
pub(crate) fn limits() -> Vec<PathBuf> {
    let mut text = String::new();
    match File::open(NAMED_BY).and_then(|file| file.take(MAX).read_to_string(&mut text)) {
        Ok(_) => named(&text),
        Err(_) => Vec::new(),
    }
}

fn named(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next().and_then(below)) else { continue };
        let mount = Path::new(MOUNT);
        if controllers.is_empty() {
            files.extend(UNIFIED.iter().map(|file| mount.join(group).join(file)));
        }
        for (controller, own) in CONTROLLED.iter().filter(|(name, _)| controllers.split(',').any(|c| c == *name)) {
            files.extend(own.iter().map(|file| mount.join(controller).join(group).join(file)));
        }
    }
    files
}

/// A group's path relative to its mount. Another name space's is shown with `..`: what is there is not ours.
fn below(group: &str) -> Option<&Path> {
    let group = Path::new(group.strip_prefix('/')?);
    group.components().all(|part| matches!(part, Component::Normal(_))).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_limits_of_the_own_groups_are_named() {
        for (text, want) in [
            (
                "0::/user.slice/a\n",
                &["user.slice/a/memory.max", "user.slice/a/memory.high", "user.slice/a/cpu.max"][..],
            ),
            ("0::/\n", &["memory.max", "memory.high", "cpu.max"]),
            ("4:memory:/docker/1\n9:name=systemd:/x\n8:pids:/x\n", &["memory/docker/1/memory.limit_in_bytes"]),
            ("3:cpu,cpuacct:/a:b\n", &["cpu/a:b/cpu.cfs_quota_us", "cpu/a:b/cpu.cfs_period_us"]),
            ("0::/../other\n4:memory:/a/../../b\n", &[]),
            ("0::relative\n0:\n\n::\n", &[]),
        ] {
            let want: Vec<PathBuf> = want.iter().map(|file| Path::new(MOUNT).join(file)).collect();
            assert_eq!(named(text), want, "{text}");
        }
    }
}
