//! Processes on macOS, from libproc and sysctl(3).

use std::{ffi::OsStr, io, os::fd::BorrowedFd, os::unix::ffi::OsStrExt as _, path::PathBuf, ptr};

use nix::{
    libc,
    sys::socket::{getsockopt, sockopt::LocalPeerToken},
    unistd::{Pid, getsid},
};

use super::{Peer, Process, Space, Stat};

/// Longest arguments that are read, with the environment behind them.
const MAX_ARGUMENTS: usize = 64 << 10;
/// Most processes that are listed; the kernel's own bound (kern.maxproc) is a few thousand.
const MAX_PROCESSES: usize = 1 << 16;

/// `struct kinfo_proc` of sysctl.h, as 64-bit kernels fill it: its size and where its fields begin.
mod kinfo {
    pub const SIZE: usize = 648;
    /// `kp_proc.p_starttime`: seconds in 64 bits, then microseconds in 32.
    pub const START: usize = 0;
    /// `kp_proc.p_pid`
    pub const PID: usize = 40;
    /// `kp_proc.p_comm`, with a zero at its end.
    pub const NAME: std::ops::Range<usize> = 243..260;
    /// `kp_eproc.e_pcred.p_ruid`
    pub const USER: usize = 392;
    /// `kp_eproc.e_ppid`
    pub const PARENT: usize = 560;
    /// `kp_eproc.e_tdev`
    pub const TERMINAL: usize = 572;
}

/// What the kernel tells of a process.
struct Information([u8; kinfo::SIZE]);

impl Information {
    /// Of any user's process: `proc_pidinfo` tells nothing of those that run as root, such as login(1), through which Terminal starts
    /// its shells, and without which a chain of parents ends too early.
    #[expect(unsafe_code, reason = "sysctl has no safe wrapper")]
    fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
        let mut name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid];
        let mut all = Self([0; kinfo::SIZE]);
        let mut size = kinfo::SIZE;
        // SAFETY: `name` has the four numbers that are announced; the kernel writes at most `size` bytes into `all` and then the
        // length into `size`; both live until the call returns. Nothing is set.
        let failed =
            unsafe { libc::sysctl(name.as_mut_ptr(), 4, all.0.as_mut_ptr().cast(), &raw mut size, ptr::null_mut(), 0) }
                != 0;
        match size {
            _ if failed => Err(io::Error::last_os_error()),
            0 => Err(io::ErrorKind::NotFound.into()),
            kinfo::SIZE if all.number(kinfo::PID) == Some(pid) => Ok(all),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "this kernel describes processes in another way")),
        }
    }

    fn number(&self, at: usize) -> Option<i32> {
        self.0.get(at..)?.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
    }

    fn unsigned(&self, at: usize) -> u32 {
        self.number(at).map_or(0, i32::cast_unsigned)
    }

    /// In microseconds since 1970.
    fn start(&self) -> u64 {
        let seconds =
            self.0.get(kinfo::START..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u64::from_ne_bytes(*b));
        seconds.saturating_mul(1_000_000).saturating_add(self.unsigned(kinfo::START + 8).into())
    }
}

/// Asks about one process. `NotFound` when it is gone.
pub fn stat(pid: u32) -> io::Result<Stat> {
    let all = Information::of(pid)?;
    let session = i32::try_from(pid).ok().and_then(|pid| getsid(Some(Pid::from_raw(pid))).ok());
    Ok(Stat {
        process: Process { pid, start: all.start() },
        parent: all.unsigned(kinfo::PARENT),
        session: session.and_then(|s| u32::try_from(s.as_raw()).ok()).unwrap_or(0),
        // NODEV is all ones.
        terminal: all.number(kinfo::TERMINAL).filter(|terminal| *terminal > 0).unwrap_or(0),
    })
}

/// There is one for all.
#[expect(clippy::unnecessary_wraps, reason = "Linux can fail to say it")]
pub fn space() -> io::Result<Space> {
    Ok(Space::ONLY)
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

/// The name of the executable, at most 16 bytes of it.
pub fn name(pid: u32) -> Option<String> {
    let all = Information::of(pid).ok()?;
    let name = all.0.get(kinfo::NAME)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The real user id.
pub fn user(pid: u32) -> Option<u32> {
    Some(Information::of(pid).ok()?.unsigned(kinfo::USER))
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
