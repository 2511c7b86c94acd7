//! Processes on macOS, from libproc and sysctl(3). What the kernel tells about the processes of other users is less, and then
//! nothing is known of them.

use std::{ffi::OsStr, io, mem, os::fd::BorrowedFd, os::unix::ffi::OsStrExt as _, path::PathBuf, ptr};

use nix::{
    libc,
    sys::socket::{getsockopt, sockopt::LocalPeerToken},
    unistd::{Pid, getsid},
};

use super::{Peer, Process, Stat};

/// Longest arguments that are read, with the environment behind them.
const MAX_ARGUMENTS: usize = 64 << 10;
/// Most processes that are listed; the kernel's own bound (kern.maxproc) is a few thousand.
const MAX_PROCESSES: usize = 1 << 16;

#[expect(unsafe_code, reason = "libproc has no safe wrapper")]
fn information(pid: u32) -> io::Result<libc::proc_bsdinfo> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    // SAFETY: a structure of integers and arrays of them, for which zeros are values.
    let mut all: libc::proc_bsdinfo = unsafe { mem::zeroed() };
    let size = libc::c_int::try_from(size_of_val(&all)).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `size` bytes into `all`, which lives until the call returns.
    let got = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, (&raw mut all).cast(), size) };
    match got {
        got if got == size => Ok(all),
        got if got < 0 => Err(io::Error::last_os_error()),
        // proc_pidinfo returns 0 and sets errno: ESRCH when it is gone, EPERM when it is another user's.
        _ => Err(match io::Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::ESRCH) => io::ErrorKind::NotFound.into(),
            e => e,
        }),
    }
}

/// Asks about one process. `NotFound` when it is gone.
pub fn stat(pid: u32) -> io::Result<Stat> {
    let all = information(pid)?;
    let session = i32::try_from(pid).ok().and_then(|pid| getsid(Some(Pid::from_raw(pid))).ok());
    Ok(Stat {
        process: Process { pid, start: all.pbi_start_tvsec.saturating_mul(1_000_000) + all.pbi_start_tvusec },
        parent: all.pbi_ppid,
        session: session.and_then(|s| u32::try_from(s.as_raw()).ok()).unwrap_or(0),
        // NODEV is all ones.
        terminal: i32::try_from(all.e_tdev).unwrap_or(0),
    })
}

/// Every process there is now.
#[expect(unsafe_code, reason = "libproc has no safe wrapper")]
pub fn all() -> Vec<u32> {
    let mut pids: Vec<libc::pid_t> = vec![0; MAX_PROCESSES];
    let Ok(size) = libc::c_int::try_from(size_of_val(pids.as_slice())) else { return Vec::new() };
    // SAFETY: the kernel writes at most `size` bytes into `pids`, which lives until the call returns.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0).collect()
}

/// The name of the executable, at most 15 bytes of it.
pub fn name(pid: u32) -> Option<String> {
    let all = information(pid).ok()?;
    let bytes: Vec<u8> = all.pbi_comm.iter().map(|c| c.cast_unsigned()).take_while(|b| *b != 0).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The real user id.
pub fn user(pid: u32) -> Option<u32> {
    Some(information(pid).ok()?.pbi_ruid)
}

/// None: macOS has nothing like control groups.
pub fn group(_pid: u32) -> Option<String> {
    None
}

/// The executable, where it may be read.
#[expect(unsafe_code, reason = "libproc has no safe wrapper")]
pub fn executable(pid: u32) -> Option<PathBuf> {
    let mut path = vec![0_u8; libc::PROC_PIDPATHINFO_MAXSIZE as usize];
    let (pid, size) = (i32::try_from(pid).ok()?, u32::try_from(path.len()).ok()?);
    // SAFETY: the kernel writes at most `size` bytes into `path`, which lives until the call returns.
    let length = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), size) };
    path.truncate(usize::try_from(length).ok().filter(|length| *length > 0)?);
    Some(PathBuf::from(OsStr::from_bytes(&path)))
}

/// The arguments, the program's name first. At most 64 KiB are read.
#[expect(unsafe_code, reason = "sysctl has no safe wrapper")]
pub fn arguments(pid: u32) -> Vec<String> {
    let Ok(pid) = i32::try_from(pid) else { return Vec::new() };
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut bytes = vec![0_u8; MAX_ARGUMENTS];
    let mut size = bytes.len();
    // SAFETY: `name` has the three numbers that are announced; the kernel writes at most `size` bytes into `bytes` and then
    // the length into `size`; both live until the call returns. Nothing is set.
    let failed =
        unsafe { libc::sysctl(name.as_mut_ptr(), 3, bytes.as_mut_ptr().cast(), &raw mut size, ptr::null_mut(), 0) }
            != 0;
    if failed {
        return Vec::new();
    }
    bytes.truncate(size);
    super::parse_arguments(&bytes)
}

/// Asks the kernel for the peer: the audit token that it made at `connect` (LOCAL_PEERTOKEN, sys/un.h), whose second number is
/// the effective user and whose sixth is the process (bsm/libbsm.h, audit_token_to_pid).
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let [_, uid, _, _, _, pid, _, _] = getsockopt(&socket, LocalPeerToken)?.val;
    Ok(Peer { uid, process: stat(pid)?.process })
}
