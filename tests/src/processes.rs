//! What runs, read from `/proc`.

use std::{collections::HashMap, fs, process::Child, time::Duration};

use nix::{
    sys::signal::{Signal, kill as send},
    unistd::Pid,
};

use crate::until_within;

/// State and parent of a process (proc(5), `/proc/pid/stat`).
fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold spaces and brackets.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process runs. A zombie does not.
pub fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Processor time that these processes have used, in ticks of 10 ms. None is counted of those that have ended.
pub fn worked(pids: impl IntoIterator<Item = i32>) -> u64 {
    let ticks = |pid: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `utime` and `stime`, the 14th and 15th field (proc(5)); the third is the first behind the name.
        let fields = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
        fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()
    };
    pids.into_iter().filter_map(ticks).sum()
}

/// Sends a signal. That the process has gone is no error.
pub fn kill(pid: i32, signal: Signal) {
    let _ = send(Pid::from_raw(pid), signal);
}

/// Ends a process of ours and waits for it. One that is stopped notices no more than SIGKILL (signal(7)), and one that does not go
/// must not keep a failed test from saying why it failed.
pub fn end(child: &mut Child) {
    let pid = i32::try_from(child.id()).expect("a pid");
    kill(pid, Signal::SIGTERM);
    kill(pid, Signal::SIGCONT);
    if until_within(Duration::from_secs(5), || child.try_wait().ok().flatten()).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Every process below this one, the nearest first.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, (_, parent))) = pid.and_then(|pid| Some((pid, stat(pid)?))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = children.get(pid).cloned().unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found.remove(0);
    found
}

/// The shim that a client started, if it runs.
pub fn shim_of(client: i32) -> Option<i32> {
    descendants(client).into_iter().find(|pid| {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.file_name().is_some_and(|n| n == "firedoor-shim"))
    })
}
