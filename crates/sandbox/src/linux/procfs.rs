//! Reading processes from `/proc` (proc(5)).

use std::{
    fs::{self, File},
    io::Read as _,
};

use nix::unistd::Pid;

/// Direct children of every thread of this process. Reads `task/*/children` where the kernel has it
/// (`CONFIG_PROC_CHILDREN`), else compares the parent of every process.
pub(crate) fn own_children() -> Vec<Pid> {
    from_children_files().unwrap_or_else(from_parents)
}

fn from_children_files() -> Option<Vec<Pid>> {
    children_of(Pid::this())
}

fn children_of(parent: Pid) -> Option<Vec<Pid>> {
    let tasks = format!("/proc/{parent}/task");
    let mut out = Vec::new();
    for task in fs::read_dir(&tasks).ok()?.flatten() {
        let text = match fs::read_to_string(task.path().join("children")) {
            Ok(text) => text,
            // Other threads come and go; only the absence of the feature matters.
            Err(_) if fs::exists(&tasks).unwrap_or(false) && fs::exists(task.path()).unwrap_or(false) => {
                return None;
            }
            Err(_) => continue,
        };
        out.extend(text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).map(Pid::from_raw));
    }
    Some(out)
}

/// Every descendant of this process, at most so many. Without the feature, those that one look at all processes shows.
pub(crate) fn own_descendants(most: usize) -> Vec<Pid> {
    let mut found = own_children();
    let with_children_files = fs::exists(format!("/proc/self/task/{}/children", Pid::this())).unwrap_or(false);
    let parents: Vec<(Pid, Pid)> = if with_children_files { Vec::new() } else { parents() };
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        if found.len() >= most {
            break;
        }
        if with_children_files {
            found.extend(children_of(parent).unwrap_or_default());
        } else {
            found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        }
        next += 1;
    }
    found.truncate(most);
    found
}

/// Every process with its parent.
fn parents() -> Vec<(Pid, Pid)> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .filter_map(|pid| Some((pid, Stat::of(pid)?.parent)))
        .collect()
}

/// The executable of a process or thread, as the kernel names it.
pub(crate) fn program(pid: Pid) -> String {
    const MAX: usize = 300;
    let link = fs::read_link(format!("/proc/{pid}/exe"));
    link.map(|p| p.to_string_lossy().chars().take(MAX).collect()).unwrap_or_default()
}

fn from_parents() -> Vec<Pid> {
    let own = Pid::this();
    parents().into_iter().filter(|(_, parent)| *parent == own).map(|(pid, _)| pid).collect()
}

/// What `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub parent: Pid,
    /// In clock ticks since boot; with the pid, names a process for good.
    pub started: u64,
}

impl Stat {
    pub fn of(pid: Pid) -> Option<Self> {
        Self::parse(&about(pid, "stat")?)
    }

    /// The second field is the name in parentheses, and may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { parent: Pid::from_raw(parent), started })
    }
}

/// A short file about a process. Mostly the first read gives all there is: the kernel makes the text at once (seq_file.rst).
fn about(pid: Pid, file: &str) -> Option<String> {
    let mut bytes = [0; 4096];
    let path = format!("/proc/{pid}/{file}");
    let length = File::open(&path).ok()?.read(&mut bytes).ok()?;
    match bytes.get(..length).filter(|_| length < bytes.len()) {
        Some(all) => Some(String::from_utf8_lossy(all).into_owned()),
        None => fs::read_to_string(&path).ok(),
    }
}

/// The value of one line of `/proc/PID/status`, such as `Tgid`.
pub(crate) fn status_field(pid: Pid, name: &str) -> Option<String> {
    let text = about(pid, "status")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Number of threads of this process: each is a directory, which its parent counts as a link (`proc_task_getattr`, fs/proc/base.c).
pub(crate) fn own_threads() -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata("/proc/self/task")?.nlink().saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_a_child() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read x"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        assert!(own_children().contains(&pid));
        assert!(from_parents().contains(&pid));
        assert_eq!(status_field(pid, "PPid"), Some(Pid::this().to_string()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(Stat::of(pid), None);
    }

    #[test]
    fn a_name_cannot_forge_fields() {
        let line = "7 (a) R 1 (b) S 42 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9999 0 0";
        assert_eq!(Stat::parse(line), Some(Stat { parent: Pid::from_raw(42), started: 9999 }));
        assert_eq!(Stat::parse(""), None);
        assert_eq!(Stat::parse("7 (a) R"), None);
    }
}
