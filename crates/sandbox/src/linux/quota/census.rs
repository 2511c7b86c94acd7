//! Counting the tree: processes, threads and memory, out of `/proc` (proc(5)). Only for the guardian, whose descendants are the
//! tree.

use std::fs;

use firedoor_model::limits::Limits;
use nix::unistd::Pid;

use super::Resource;
use crate::linux::procfs;

/// Most processes that are looked at when only memory is limited.
const MAX_PROCESSES: usize = 65_536;

/// What may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    tasks: Option<usize>,
    memory: Option<u64>,
}

impl Bounds {
    pub fn of(limits: &Limits) -> Self {
        let tasks = limits.processes.map(|n| usize::try_from(n.get()).unwrap_or(usize::MAX));
        Self { tasks, memory: limits.memory.map(|m| m.bytes()) }
    }

    /// Whether there is anything to count.
    pub fn any(&self) -> bool {
        self.tasks.is_some() || self.memory.is_some()
    }
}

/// What one process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    threads: usize,
    /// Bytes that are its own, or that it shares with processes it forked; files are left out.
    memory: u64,
}

/// Counts. The limit that is exceeded, and the process with the largest part in it.
pub(crate) fn census(bounds: Bounds) -> Option<(Resource, Pid)> {
    let most = bounds.tasks.unwrap_or(MAX_PROCESSES);
    let processes = procfs::own_descendants(most.saturating_add(1));
    let first = *processes.first()?;
    let used: Vec<(Pid, Use)> = processes.into_iter().filter_map(|pid| Some((pid, of(pid)?))).collect();
    let tasks: usize = used.iter().map(|(_, u)| u.threads.max(1)).sum();
    if bounds.tasks.is_some_and(|most| tasks > most) {
        let greatest = used.iter().max_by_key(|(_, u)| u.threads);
        return Some((Resource::Processes, greatest.map_or(first, |(pid, _)| *pid)));
    }
    let limit = bounds.memory?;
    let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0u64, u64::saturating_add);
    if sum(&mut used.iter().map(|(_, u)| u.memory)) <= limit {
        return None;
    }
    // Pages that a fork shares were counted once for each process. The exact number costs more, so it is asked for now only.
    let exact: Vec<(Pid, u64)> = used.iter().map(|(pid, u)| (*pid, share(*pid).unwrap_or(u.memory))).collect();
    let too_much = sum(&mut exact.iter().map(|(_, m)| *m)) > limit;
    let greatest = exact.iter().max_by_key(|(_, m)| *m);
    too_much.then(|| (Resource::Memory, greatest.map_or(first, |(pid, _)| *pid)))
}

fn of(pid: Pid) -> Option<Use> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok().map(|text| in_status(&text))
}

fn in_status(text: &str) -> Use {
    let threads = field(text, "Threads").unwrap_or(1);
    let kib = ["RssAnon", "RssShmem", "VmSwap"].iter().filter_map(|name| field(text, name)).sum::<u64>();
    Use { threads: usize::try_from(threads).unwrap_or(usize::MAX), memory: kib.saturating_mul(1024) }
}

/// Its share of the memory that it uses, where pages of several processes count in parts. `None` where the kernel does not
/// say, or when it has ended.
fn share(pid: Pid) -> Option<u64> {
    in_rollup(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn in_rollup(text: &str) -> Option<u64> {
    // By kinds since Linux 5.9; files are not the server's.
    let kib = field(text, "Pss_Anon")?.saturating_add(field(text, "Pss_Shmem")?);
    Some(kib.saturating_add(field(text, "SwapPss").unwrap_or(0)).saturating_mul(1024))
}

/// The number in the line of this name.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let status = "Name:\tx\nVmSwap:\t       4 kB\nRssAnon:\t     100 kB\nRssFile:\t 999 kB\nRssShmem:\t  10 kB\nThreads:\t3\n";
        assert_eq!(in_status(status), Use { threads: 3, memory: 114 * 1024 });
        // Kernel threads and zombies have no memory.
        assert_eq!(in_status("Name:\tx\nThreads:\t1\n"), Use { threads: 1, memory: 0 });
        let rollup = "0-1 ---p\nRss: 9 kB\nPss: 8 kB\nPss_Anon: 4 kB\nPss_File: 3 kB\nPss_Shmem: 1 kB\nSwapPss: 2 kB\n";
        assert_eq!(in_rollup(rollup), Some(7 * 1024));
        assert_eq!(in_rollup("Rss: 9 kB\nPss: 8 kB\n"), None);
    }

    #[test]
    fn children_are_counted() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read x"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let bounds = |tasks, memory| Bounds { tasks, memory };
        let what = |b| census(b).map(|(what, _)| what);
        assert_eq!(what(bounds(Some(100_000), Some(u64::MAX))), None);
        assert_eq!(what(bounds(Some(0), None)), Some(Resource::Processes));
        assert_eq!(what(bounds(None, Some(1))), Some(Resource::Memory));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
