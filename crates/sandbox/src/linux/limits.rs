//! Limits that the kernel keeps for each process and for the user (getrlimit(2)), and the order in which it ends processes
//! when memory runs out (proc(5), `oom_score_adj`).
//!
//! Address space (`RLIMIT_AS`) and private writable mappings (`RLIMIT_DATA`) are left alone: engines of JavaScript and
//! WebAssembly map far more than they use. What the whole tree uses is limited elsewhere.

use std::fs;

use firedoor_model::limits::Limits;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Room for the user's other programs below the ceiling for processes, which counts them too.
const OTHERS: u64 = 4096;
/// The kernel ends servers before the user's own programs. The same step that desktops give to background work.
const EXPENDABLE: i32 = 500;

/// Limits this process, and with it everything that it starts.
pub(crate) fn set(limits: &Limits) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    if let Some(files) = limits.files {
        let (soft, hard) = lowered(Resource::RLIMIT_NOFILE, files.get().into())?;
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
    }
    if let Some(size) = limits.file_size {
        let (soft, hard) = lowered(Resource::RLIMIT_FSIZE, size.bytes())?;
        setrlimit(Resource::RLIMIT_FSIZE, soft, hard)?;
    }
    if let Some(tasks) = limits.processes
        && let Some(running) = tasks_of_machine()
    {
        // A ceiling for what forks faster than it is counted. It counts all processes of the user, so it must lie far above
        // what else the user may start later.
        let ceiling = running + u64::from(tasks.get()) + OTHERS;
        let (soft, hard) = lowered(Resource::RLIMIT_NPROC, ceiling)?;
        setrlimit(Resource::RLIMIT_NPROC, soft, hard)?;
    }
    make_expendable();
    Ok(())
}

/// The limits in force, with `wanted` as the most.
fn lowered(resource: Resource, wanted: u64) -> nix::Result<(rlim_t, rlim_t)> {
    let (soft, hard) = getrlimit(resource)?;
    Ok((soft.min(wanted), hard.min(wanted)))
}

/// Processes and threads of the whole machine: at least those of the user.
fn tasks_of_machine() -> Option<u64> {
    tasks_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// The number after the slash in the fourth field (proc_loadavg(5)).
fn tasks_in(loadavg: &str) -> Option<u64> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Where it cannot be set, nothing is lost but this preference.
fn make_expendable() {
    const FILE: &str = "/proc/self/oom_score_adj";
    let now: i32 = fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if now < EXPENDABLE {
        let _ = fs::write(FILE, EXPENDABLE.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read() {
        for (text, want) in [("0.20 0.18 0.12 1/80 11206\n", Some(80)), ("0.20 0.18 0.12 80 11206", None), ("", None)] {
            assert_eq!(tasks_in(text), want, "{text:?}");
        }
        assert!(tasks_of_machine().is_some_and(|n| n > 0));
    }

    #[test]
    fn limits_are_only_lowered() {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(lowered(Resource::RLIMIT_NOFILE, u64::MAX).unwrap(), (soft, hard));
        assert_eq!(lowered(Resource::RLIMIT_NOFILE, 7).unwrap(), (7, 7));
    }
}
