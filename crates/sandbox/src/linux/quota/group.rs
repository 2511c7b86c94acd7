//! A control group for one server (cgroups(7), version 2; Documentation/admin-guide/cgroup-v2.rst of Linux).
//!
//! It is made beside the group that we are in, where the user may make groups: below `user@UID.service` in a systemd
//! session. Whether that works is found out by doing it. The name tells the guardian (its name space, pid and start), so that
//! what a crash left behind is known and removed with the next start.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use firedoor_model::limits::Limits;
use nix::{
    sys::statfs::{CGROUP2_SUPER_MAGIC, statfs},
    unistd::Pid,
};

use super::Resource;
use crate::linux::procfs::Stat;

/// Where every system that has delegation mounts it.
pub(super) const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "firedoor-";
/// What a busy server may have moved to swap, as a part of its memory.
const SWAP_PART: u64 = 4;
/// Groups of others that are looked at in one sweep.
const MAX_SWEPT: usize = 1024;

/// A group, made and not yet removed.
pub(crate) struct Group {
    path: PathBuf,
    /// Events of memory and of processes, and how often each was reached.
    events: [(File, Resource, u64); 2],
}

impl Group {
    /// Makes a group with these limits. The error is why there is none; nothing is left then.
    pub fn make(limits: &Limits) -> io::Result<Self> {
        let parent = parent(Path::new(MOUNT), &fs::read_to_string("/proc/self/cgroup")?)?;
        Self::make_in(&parent, limits)
    }

    fn make_in(parent: &Path, limits: &Limits) -> io::Result<Self> {
        sweep(parent, name_space()?);
        let own = Pid::this();
        let started = Stat::of(own).ok_or(io::ErrorKind::NotFound)?.started;
        let path = parent.join(format!("{PREFIX}{}-{own}-{started}", name_space()?));
        fs::create_dir(&path)?;
        match Self::set_up(&path, limits) {
            Ok(events) => Ok(Self { path, events }),
            Err(e) => {
                let _ = fs::remove_dir(&path);
                Err(e)
            }
        }
    }

    fn set_up(path: &Path, limits: &Limits) -> io::Result<[(File, Resource, u64); 2]> {
        let set = |name: &str, value: String| {
            existing(&path.join(name)).and_then(|mut f| io::Write::write_all(&mut f, value.as_bytes()))
        };
        if let Some(memory) = limits.memory {
            set("memory.max", memory.bytes().to_string())?;
            // The whole group ends, not one process of it that others wait for.
            set("memory.oom.group", "1".into())?;
            // Absent without swap accounting.
            let _ = set("memory.swap.max", (memory.bytes() / SWAP_PART).to_string());
        }
        if let Some(tasks) = limits.processes {
            set("pids.max", tasks.get().to_string())?;
        }
        if let Some(percent) = limits.cpu {
            // So many microseconds in each tenth of a second.
            set("cpu.max", format!("{} 100000", u64::from(percent.get()) * 1000))?;
        }
        let watch = |name: &str, what| -> io::Result<_> {
            let mut file = File::open(path.join(name))?;
            // An event is one since the last reading.
            let count = count(&mut file, what)?;
            Ok((file, what, count))
        };
        Ok([watch("memory.events", Resource::Memory)?, watch("pids.events", Resource::Processes)?])
    }

    /// What a process writes `0` to, to get in.
    pub fn entrance(&self) -> io::Result<OwnedFd> {
        existing(&self.path.join("cgroup.procs")).map(OwnedFd::from)
    }

    pub fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.events.iter().map(|(file, ..)| file.as_fd())
    }

    /// What was reached since the last look. Processes are told once: a program at its limit tries again and again.
    pub fn news(&mut self) -> Option<Resource> {
        let mut found = None;
        for (file, what, before) in &mut self.events {
            let Ok(now) = count(file, *what) else { continue };
            if now > *before && (*what == Resource::Memory || *before == 0) {
                found = found.or(Some(*what));
            }
            *before = now;
        }
        found
    }

    /// Kills what is in it (`cgroup.kill`, Linux 5.14).
    pub fn kill(&self) {
        kill_all(&self.path);
    }

    /// Removes it. What still holds something stays for the next sweep.
    pub fn remove(self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn kill_all(path: &Path) {
    let _ = existing(&path.join("cgroup.kill")).and_then(|mut f| io::Write::write_all(&mut f, b"1"));
}

/// Opens a file of the kernel's for writing: never makes one.
fn existing(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// The group above ours, if the kernel lets this user make groups there and limits can be set in them.
fn parent(mount: &Path, own: &str) -> io::Result<PathBuf> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::Unsupported, why.to_owned()));
    if statfs(mount)?.filesystem_type() != CGROUP2_SUPER_MAGIC {
        return refuse("there is no hierarchy of version 2 for control groups");
    }
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return refuse("this process is in no control group of version 2");
    };
    // A path that leaves the mount is shown with "..": another name space's group.
    if path.is_empty() || path.split('/').any(|part| part == "..") {
        return refuse("this process is in the topmost control group");
    }
    let path = mount.join(path);
    let parent = path.parent().unwrap_or(mount);
    let controllers = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
    let has = |name: &str| controllers.split_ascii_whitespace().any(|c| c == name);
    if has("memory") && has("pids") { Ok(parent.to_owned()) } else { refuse("memory and pids are not delegated") }
}

/// Removes groups whose guardians have died, and kills what they left.
fn sweep(parent: &Path, own: u64) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let left = entry.file_name().to_str().and_then(guardian).is_some_and(|(space, pid, started)| {
            // A pid of another name space means nothing here.
            space == own && Stat::of(pid).is_none_or(|stat| stat.started != started)
        });
        if left {
            kill_all(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The guardian that a group's name tells.
fn guardian(name: &str) -> Option<(u64, Pid, u64)> {
    let (space, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let (pid, started) = rest.split_once('-')?;
    Some((space.parse().ok()?, Pid::from_raw(pid.parse().ok().filter(|n| *n > 0)?), started.parse().ok()?))
}

/// Our name space for pids.
fn name_space() -> io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid")?))
}

/// How often a limit was reached: `oom_kill` of `memory.events`, `max` of `pids.events`.
fn count(file: &mut File, what: Resource) -> io::Result<u64> {
    let mut text = String::new();
    file.rewind()?;
    file.take(4096).read_to_string(&mut text)?;
    let key = match what {
        Resource::Memory => "oom_kill ",
        Resource::Processes => "max ",
    };
    Ok(text.lines().find_map(|line| line.strip_prefix(key)?.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_guardian() {
        for (name, want) in [
            ("firedoor-9-7-42", Some((9, 7, 42))),
            ("firedoor-7-42", None),
            ("firedoor-9-0-1", None),
            ("firedoor-9--1-1", None),
            ("app-9-7-42.scope", None),
            ("firedoor-9-x-1", None),
        ] {
            assert_eq!(guardian(name), want.map(|(space, pid, n)| (space, Pid::from_raw(pid), n)), "{name}");
        }
        assert!(name_space().is_ok_and(|n| n > 0));
    }

    #[test]
    fn groups_are_made_only_where_they_can_be() {
        let dir = tempfile::tempdir().unwrap();
        let error = parent(dir.path(), "0::/a/b\n").unwrap_err().to_string();
        assert!(error.contains("no hierarchy"), "{error}");
        if statfs(MOUNT).is_ok_and(|s| s.filesystem_type() == CGROUP2_SUPER_MAGIC) {
            for (own, want) in
                [("0::/\n", "topmost"), ("0::/../x\n", "topmost"), ("4:memory:/x\n", "in no control group")]
            {
                let error = parent(Path::new(MOUNT), own).unwrap_err().to_string();
                assert!(error.contains(want), "{own:?}: {error}");
            }
        }
    }

    #[test]
    fn what_dead_guardians_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let own = Stat::of(Pid::this()).unwrap().started;
        let names = [
            (format!("firedoor-9-{}-{own}", Pid::this()), true),
            (format!("firedoor-9-{}-{}", Pid::this(), own + 1), false),
            (format!("firedoor-8-{}-{}", Pid::this(), own + 1), true),
            ("firedoor-9-2147483647-1".into(), false),
            ("other".into(), true),
        ];
        for (name, _) in &names {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        sweep(dir.path(), 9);
        for (name, stays) in &names {
            assert_eq!(dir.path().join(name).exists(), *stays, "{name}");
        }
    }

    #[test]
    fn counts_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        for (text, what, want) in [
            ("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n", Resource::Memory, 3),
            ("max 5\n", Resource::Processes, 5),
            ("", Resource::Processes, 0),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(count(&mut File::open(&path).unwrap(), what).unwrap(), want, "{text:?}");
        }
    }
}
