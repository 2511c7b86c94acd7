//! Reading processes from `/proc` (proc(5)).

use std::fs;

use nix::unistd::Pid;

/// Direct children of every thread of this process. Reads `task/*/children` where the kernel has it
/// (`CONFIG_PROC_CHILDREN`), else compares the parent of every process.
pub(crate) fn own_children() -> Vec<Pid> {
    from_children_files().unwrap_or_else(from_parents)
}

fn from_children_files() -> Option<Vec<Pid>> {
    let mut out = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let text = match fs::read_to_string(task.path().join("children")) {
            Ok(text) => text,
            // Other threads come and go; only the absence of the feature matters.
            Err(_) if fs::exists("/proc/self/task").unwrap_or(false) && fs::exists(task.path()).unwrap_or(false) => {
                return None;
            }
            Err(_) => continue,
        };
        out.extend(text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).map(Pid::from_raw));
    }
    Some(out)
}

fn from_parents() -> Vec<Pid> {
    let own = Pid::this();
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .filter(|pid| Stat::of(*pid).is_some_and(|s| s.parent == own))
        .collect()
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
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
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

/// The value of one line of `/proc/PID/status`, such as `Tgid`.
pub(crate) fn status_field(pid: Pid, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Number of threads of this process.
pub(crate) fn own_threads() -> std::io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
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
