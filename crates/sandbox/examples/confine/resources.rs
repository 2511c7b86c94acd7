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
        "stuck" => stuck(number),
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

/// N: so many threads that each hand descriptors to a peer that does not read: many at first, then single ones, so that
/// none is left. Prints `ready` when no more may wait.
fn stuck(count: u64) -> io::Result<()> {
    let (done, one_done) = std::sync::mpsc::channel();
    for n in 0..count {
        let done = done.clone();
        thread::Builder::new().stack_size(256 << 10).spawn(move || {
            let mut ends = [0; 2];
            // SAFETY: the kernel writes two integers.
            if unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) } == 0 {
                let _ = done.send(hand_over(ends[0], if n < 3 { 253 } else { 1 }));
            }
        })?;
    }
    let first = one_done.recv().map_err(io::Error::other)?;
    io::Write::write_all(&mut io::stdout(), format!("ready {first:?}\n").as_bytes())?;
    thread::sleep(PATIENCE);
    Ok(())
}

/// Fills the queue of a socket, then sends so many descriptors, which waits; until it fails.
fn hand_over(socket: i32, descriptors: usize) -> Option<i32> {
    let mut data = vec![0u8; 64 << 10];
    // SAFETY: the data have the length that is given.
    while unsafe { libc::send(socket, data.as_ptr().cast(), data.len(), libc::MSG_DONTWAIT) } > 0 {}
    let mut block = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // A `cmsghdr` of 16 bytes, then the numbers.
    let mut control = vec![0u64; 2 + descriptors.div_ceil(2)];
    control[0] = 16 + 4 * descriptors as u64;
    control[1] = u64::from(libc::SOL_SOCKET.cast_unsigned()) | (u64::from(libc::SCM_RIGHTS.cast_unsigned()) << 32);
    // SAFETY: plain integers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut block;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 16 + 4 * descriptors;
    loop {
        // SAFETY: every pointer in the message is valid for the length beside it.
        if unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) } < 0 {
            return io::Error::last_os_error().raw_os_error();
        }
    }
}

/// N: whether the kernel would end this process before others, by at least so much.
fn score(least: u64) -> io::Result<()> {
    let text = fs::read_to_string("/proc/self/oom_score_adj")?;
    let score: i64 = text.trim().parse().map_err(io::Error::other)?;
    if score >= i64::try_from(least).unwrap_or(0) { Ok(()) } else { Err(io::Error::other(text)) }
}
