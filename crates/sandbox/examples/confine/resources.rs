//! Using things up. Everything here is bounded, so that a machine without limits survives it.
#![expect(unsafe_code, reason = "probes call the kernel directly")]

use std::{fs, io, thread, time::Duration};

use nix::libc;

/// How long a probe waits to be ended.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn probe(kind: &str, argument: &str) -> Option<io::Result<()>> {
    let number: u64 = argument.parse().unwrap_or(0);
    Some(match kind {
        "hog" => hog(number),
        "shared" => shared(number),
        "fork" => fork(number),
        "bomb" => bomb(number),
        "threads" => threads(number),
        "files" => files(number),
        "filesize" => file_size(argument),
        "oomscore" => score(number),
        _ => return None,
    })
}

fn touched(mebibytes: u64) -> Vec<u8> {
    let length = usize::try_from(mebibytes << 20).unwrap_or(0);
    let mut memory = vec![0u8; length];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    memory
}

/// MIB: uses so much memory, then waits.
fn hog(mebibytes: u64) -> io::Result<()> {
    let memory = touched(mebibytes);
    thread::sleep(PATIENCE);
    if memory.is_empty() { Err(io::Error::other("nothing used")) } else { Ok(()) }
}

/// MIB: ten forked processes share so much memory, for as long as three counts take.
fn shared(mebibytes: u64) -> io::Result<()> {
    let memory = touched(mebibytes);
    let children = (0..10).map(|_| child(Duration::from_secs(4))).collect::<io::Result<Vec<_>>>()?;
    thread::sleep(Duration::from_millis(3500));
    drop(memory);
    children.into_iter().for_each(end);
    Ok(())
}

/// N: so many processes that wait.
fn fork(count: u64) -> io::Result<()> {
    for _ in 0..count {
        child(PATIENCE)?;
    }
    thread::sleep(PATIENCE);
    Ok(())
}

fn child(time: Duration) -> io::Result<i32> {
    // SAFETY: the child only sleeps and ends.
    match unsafe { libc::fork() } {
        0 => {
            thread::sleep(time);
            // SAFETY: ends the process without destructors.
            unsafe { libc::_exit(0) }
        }
        pid if pid > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

fn end(pid: i32) {
    // SAFETY: integers, and a null pointer for a status that nobody wants.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// N: a fork bomb that ends itself N generations on, whose processes leave their sessions and parents.
fn bomb(generations: u64) -> io::Result<()> {
    for generation in 0..generations {
        // SAFETY: parent and child go on with the same loop; nothing is shared.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            thread::sleep(Duration::from_millis(10));
        }
        if generation % 3 == 0 {
            // SAFETY: no arguments.
            unsafe { libc::setsid() };
        }
    }
    thread::sleep(PATIENCE);
    Ok(())
}

/// N: so many threads that wait.
fn threads(count: u64) -> io::Result<()> {
    for _ in 0..count {
        thread::Builder::new().stack_size(64 << 10).spawn(|| thread::sleep(PATIENCE))?;
    }
    thread::sleep(PATIENCE);
    Ok(())
}

/// N: so many open files.
fn files(count: u64) -> io::Result<()> {
    (0..count).map(|_| fs::File::open("/dev/null")).collect::<io::Result<Vec<_>>>().map(drop)
}

/// PATH: a file of 4 MiB.
fn file_size(path: &str) -> io::Result<()> {
    // SAFETY: the signal is ignored, so that the call fails instead.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    fs::write(path, vec![0; 4 << 20])
}

/// N: whether the kernel would end this process before others, by at least so much.
fn score(least: u64) -> io::Result<()> {
    let text = fs::read_to_string("/proc/self/oom_score_adj")?;
    let score: i64 = text.trim().parse().map_err(io::Error::other)?;
    if score >= i64::try_from(least).unwrap_or(0) { Ok(()) } else { Err(io::Error::other(text)) }
}
