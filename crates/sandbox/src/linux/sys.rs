//! System calls that neither `nix` nor the standard library wraps.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::{
    ffi::{CStr, CString},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use nix::{
    errno::Errno,
    libc::{self, c_char, c_int, c_long},
    unistd::{ForkResult, Pid},
};

use crate::exit::Exit;

/// Turns the result of a call that returns a new descriptor into one.
fn owned(result: c_long) -> nix::Result<OwnedFd> {
    let fd = RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just returned this descriptor to us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A close-on-exec duplicate with a number of at least `lowest`.
pub(crate) fn duplicate_above(fd: BorrowedFd<'_>, lowest: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: takes integers; `fd` is open for the duration of the call.
    owned(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) }.into())
}

/// Standard input, output or error of this process.
pub(crate) fn standard(fd: RawFd) -> BorrowedFd<'static> {
    debug_assert!((0..=2).contains(&fd));
    // SAFETY: descriptors 0 to 2 are never closed by this crate, only replaced.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// `pidfd_open(2)` of a process.
pub(crate) fn pidfd_open(pid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: takes two integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })
}

/// `pidfd_open(2)` of a thread (`PIDFD_THREAD`, Linux 6.9; the flag's value is `O_EXCL`).
pub(crate) fn pidfd_open_thread(tid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: takes two integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid.as_raw(), libc::O_EXCL) })
}

/// `pidfd_getfd(2)`: a duplicate of another process's descriptor, close-on-exec.
pub(crate) fn pidfd_getfd(pidfd: BorrowedFd<'_>, fd: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: takes three integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

/// `close_range(2)`, both ends included. Linux 5.9, older than anything Landlock runs on.
pub(crate) fn close_range(first: u32, last: u32) -> nix::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: closes descriptors by number. Callers are freshly forked processes that own their whole table and end
    // without running destructors, so that no `OwnedFd` is used or dropped after its descriptor was closed here.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Closes every descriptor but these.
pub(crate) fn close_all_but(kept: &mut [RawFd]) -> nix::Result<()> {
    kept.sort_unstable();
    let mut next = 0;
    for fd in kept.iter().map(|fd| fd.unsigned_abs()) {
        if fd > next {
            close_range(next, fd - 1)?;
        }
        next = next.max(fd + 1);
    }
    close_range(next, u32::MAX)
}

/// Reaps one ended child; `None` when there are children but none has ended. Unlike `nix`'s `waitpid` this accepts
/// real-time signals.
pub(crate) fn wait_any() -> nix::Result<Option<(Pid, Exit)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` is valid for writing for the duration of the call.
    let pid = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) })?;
    if pid == 0 {
        return Ok(None);
    }
    let exit = if libc::WIFEXITED(status) {
        Exit::Code(libc::WEXITSTATUS(status))
    } else {
        Exit::Signal(libc::WTERMSIG(status))
    };
    Ok(Some((Pid::from_raw(pid), exit)))
}

/// Signals a process group by number, real-time signals included.
pub(crate) fn signal_group(group: Pid, signal: c_int) -> nix::Result<()> {
    // SAFETY: takes two integers.
    Errno::result(unsafe { libc::kill(-group.as_raw(), signal) }).map(drop)
}

/// `tgkill(2)`: to one thread of a process.
pub(crate) fn signal_thread(process: Pid, thread: Pid, signal: c_int) -> nix::Result<()> {
    // SAFETY: takes three integers.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process.as_raw(), thread.as_raw(), signal) };
    Errno::result(result).map(drop)
}

/// Ends this process at once, without destructors or exit handlers.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// Version of the running Landlock (`landlock_create_ruleset(2)` with `LANDLOCK_CREATE_RULESET_VERSION`).
pub(crate) fn landlock_version() -> nix::Result<u32> {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes a null pointer and size 0, and only returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, CREATE_RULESET_VERSION)
    };
    u32::try_from(Errno::result(version)?).map_err(|_| Errno::ENOSYS)
}

/// Empties all capability sets of this process, `capset(2)`, and the ambient set. With `no_new_privs` no program can
/// give them back.
pub(crate) fn drop_capabilities() -> nix::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522; // _LINUX_CAPABILITY_VERSION_3, linux/capability.h
    let header = Header { version: VERSION_3, pid: 0 };
    // Version 3: two structures of effective, permitted and inheritable.
    let none = [0u32; 6];
    // SAFETY: both structures have the layout and size that version 3 demands, and are only read.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) })?;
    // SAFETY: integers only.
    Errno::result(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }).map(drop)
}

/// Default handling for every signal. What was ignored would stay ignored across `execve`.
pub(crate) fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL runs none of our code. Signals that cannot be changed (SIGKILL, SIGSTOP, and those that libc
        // keeps for itself) are refused, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// `execve(2)`; returns only when it failed. The vectors are those of [`Vector`].
pub(crate) fn execute(program: &CStr, args: &Vector, env: &Vector) -> Errno {
    // SAFETY: the program is a C string, and both vectors end in a null pointer, with every other element pointing to a
    // C string that the vector owns.
    unsafe { libc::execve(program.as_ptr(), args.pointers.as_ptr(), env.pointers.as_ptr()) };
    Errno::last()
}

/// Strings with a null-terminated vector of pointers to them. Built before `fork`.
pub(crate) struct Vector {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Vector {
    pub fn new(strings: Vec<CString>) -> Self {
        // A CString's bytes are on the heap: moving the strings does not move them.
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }
}

/// `fork(2)`. The caller has one thread, so that the child may allocate.
pub(crate) fn fork() -> nix::Result<ForkResult> {
    // SAFETY: `spawn` refuses to go on unless this process has one thread, and the guardian starts none before it has
    // forked the server, so no lock is held by a thread that the child would lack.
    unsafe { nix::unistd::fork() }
}

/// `ioctl(SECCOMP_IOCTL_NOTIF_RECV)`: the next call that waits for an answer. ENOENT when its process has gone.
pub(crate) fn notification(listener: BorrowedFd<'_>) -> nix::Result<libc::seccomp_notif> {
    // SAFETY: plain integers, for which zero is valid; the kernel demands a zeroed structure.
    let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one this request writes, and valid for writing during the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    Errno::result(result).map(|_| notification)
}

/// `ioctl(SECCOMP_IOCTL_NOTIF_SEND)`: answers a call with a value or with an error.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, result: nix::Result<i64>) -> nix::Result<()> {
    let (val, error) = result.map_or_else(|e| (0, -(e as i32)), |value| (value, 0));
    let mut response = libc::seccomp_notif_resp { id, val, error, flags: 0 };
    // SAFETY: the structure is the one this request reads, and valid during the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    Errno::result(result).map(drop)
}

/// `SECCOMP_IOCTL_NOTIF_SEND` with `SECCOMP_USER_NOTIF_FLAG_CONTINUE`: the kernel performs the call as the caller made it,
/// with what the caller's memory holds *then*. So this is no verdict: it is right only for calls that something below the
/// filter decides about, and whose worst outcome there is no more than what the server may do anyway: see `trees`, and
/// `observe`.
pub(crate) fn let_go_on(listener: BorrowedFd<'_>, id: u64) -> nix::Result<()> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the structure is the one this request reads, and valid during the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    Errno::result(result).map(drop)
}

/// `ioctl(SECCOMP_IOCTL_NOTIF_ADDFD)` with `SECCOMP_ADDFD_FLAG_SEND`: puts an open file at the lowest free number of the
/// caller's table and answers the call with that number, in one step. Linux 5.14.
pub(crate) fn answer_with_file(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> nix::Result<()> {
    const SEND: u32 = 2; // linux/seccomp.h
    let addfd = libc::seccomp_notif_addfd {
        id,
        flags: SEND,
        srcfd: u32::try_from(file.as_raw_fd()).map_err(|_| Errno::EBADF)?,
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
    };
    // SAFETY: the structure is the one this request reads, and valid during the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const addfd) };
    Errno::result(result).map(drop)
}

/// `ioctl(SECCOMP_IOCTL_NOTIF_ID_VALID)`: whether the caller still waits, so that its thread id still means it.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> nix::Result<()> {
    // SAFETY: the request reads one 64-bit integer, which is valid during the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    Errno::result(result).map(drop)
}

/// `ioctl(SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)`: caller and supervisor take turns on one
/// processor, which makes an answer faster. Linux 6.6; before, nothing changes.
pub(crate) fn take_turns(listener: BorrowedFd<'_>) {
    const SET_FLAGS: libc::c_ulong = 0x4008_2104; // _IOW('!', 4, __u64), linux/seccomp.h
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: the request takes its flags by value.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
}

/// How large the files of a process may become (`RLIMIT_FSIZE`).
pub(crate) fn file_size_limit(process: Pid) -> nix::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: nothing is set, and `limit` is valid for writing.
    let result = unsafe { libc::prlimit(process.as_raw(), libc::RLIMIT_FSIZE, std::ptr::null(), &raw mut limit) };
    Errno::result(result).map(|_| limit.rlim_cur)
}

/// `SO_DOMAIN` of a socket, such as `AF_INET`.
pub(crate) fn socket_domain(socket: BorrowedFd<'_>) -> nix::Result<c_int> {
    socket_option(socket, libc::SO_DOMAIN)
}

/// `SO_PROTOCOL` of a socket, such as `IPPROTO_TCP`.
pub(crate) fn socket_protocol(socket: BorrowedFd<'_>) -> nix::Result<c_int> {
    socket_option(socket, libc::SO_PROTOCOL)
}

fn socket_option(socket: BorrowedFd<'_>, option: c_int) -> nix::Result<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: both out-parameters are valid for writing, and `length` is the size of the first.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw mut value).cast(), &raw mut length)
    };
    Errno::result(result).map(|_| value)
}

/// `SO_TYPE` of a socket, such as `SOCK_STREAM`.
pub(crate) fn socket_kind(socket: BorrowedFd<'_>) -> nix::Result<c_int> {
    socket_option(socket, libc::SO_TYPE)
}

/// `connect(2)` to an address in the kernel's form.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> nix::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads `length` bytes, which the slice has, and checks what they mean.
    Errno::result(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) }).map(drop)
}

/// `bind(2)` to an address in the kernel's form.
pub(crate) fn bind(socket: BorrowedFd<'_>, address: &[u8]) -> nix::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads `length` bytes, which the slice has, and checks what they mean.
    Errno::result(unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length) }).map(drop)
}

/// `listen(2)`.
pub(crate) fn listen(socket: BorrowedFd<'_>, backlog: c_int) -> nix::Result<()> {
    // SAFETY: takes integers; the descriptor is open.
    Errno::result(unsafe { libc::listen(socket.as_raw_fd(), backlog) }).map(drop)
}

/// `getsockname(2)`, in the kernel's form.
pub(crate) fn own_address(socket: BorrowedFd<'_>) -> nix::Result<Vec<u8>> {
    let mut bytes = vec![0u8; size_of::<libc::sockaddr_storage>()];
    let mut length = libc::socklen_t::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `bytes` is valid for writing `length` bytes, and `length` for writing.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(result)?;
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    Ok(bytes)
}

/// `sendmsg(2)` of one block of data. `control` holds control messages in the kernel's form.
pub(crate) fn send_message(
    socket: BorrowedFd<'_>,
    address: &[u8],
    data: &[u8],
    control: &[u64],
    control_length: usize,
    flags: c_int,
) -> nix::Result<usize> {
    if control_length > size_of_val(control) {
        return Err(Errno::EINVAL);
    }
    let mut block = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: plain integers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut block;
    message.msg_iovlen = 1;
    if !address.is_empty() {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    }
    if control_length > 0 {
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control_length;
    }
    // SAFETY: every pointer in `message` is valid for reading the length beside it during the call; `sendmsg` writes to
    // none of them.
    let sent = Errno::result(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) })?;
    usize::try_from(sent).map_err(|_| Errno::EINVAL)
}

/// `recvfrom(2)`: the length, and who sent it in the kernel's form.
pub(crate) fn receive_datagram(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: c_int,
) -> nix::Result<(usize, Vec<u8>)> {
    let mut from = vec![0u8; size_of::<libc::sockaddr_storage>()];
    let mut length = libc::socklen_t::try_from(from.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: both buffers are valid for writing the length given beside them, and `length` for writing.
    let received = Errno::result(unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            flags,
            from.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    from.truncate(usize::try_from(length).unwrap_or(0));
    Ok((usize::try_from(received).map_err(|_| Errno::EINVAL)?, from))
}

/// `pidfd_send_signal(2)`: to the thread or process of the pidfd.
pub(crate) fn signal_pidfd(pidfd: BorrowedFd<'_>, signal: c_int) -> nix::Result<()> {
    // SAFETY: takes integers and a null pointer, which means no details.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<libc::siginfo_t>(), 0)
    };
    Errno::result(result).map(drop)
}

/// `landlock_add_rule(2)`: opens these rights on a file, or on a directory and everything below it. EINVAL where the file can have
/// no such right, or the ruleset does not govern it. `landlock`'s own does the same, and looks at each file once more.
pub(crate) fn landlock_add_path(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, rights: u64) -> nix::Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        allowed_access: u64,
        parent_fd: c_int,
    }
    const PATH_BENEATH: c_int = 1; // linux/landlock.h
    let rule = PathBeneath { allowed_access: rights, parent_fd: path.as_raw_fd() };
    // SAFETY: a structure of the layout of `struct landlock_path_beneath_attr`, which is only read, and integers.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) };
    Errno::result(result).map(drop)
}

/// `landlock_restrict_self(2)`: this thread, and all that it starts, for good.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> nix::Result<()> {
    // SAFETY: takes two integers; the descriptor is open.
    Errno::result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// `openat2(2)` for a path only, without following magic links (`/proc/PID/fd/N`); at the end of the path a symbolic link
/// is followed or opened itself.
pub(crate) fn open_resolved(base: Option<BorrowedFd<'_>>, path: &CStr, follow: bool) -> nix::Result<OwnedFd> {
    let last = if follow { 0 } else { libc::O_NOFOLLOW };
    // No descriptor: what is not absolute then begins nowhere (EBADF).
    open_how(base.map_or(-1, |base| base.as_raw_fd()), path, last, libc::RESOLVE_NO_MAGICLINKS)
}

/// `openat2(2)` for an absolute path only, without a link of any kind on the way or at its end (ELOOP).
pub(crate) fn open_without_links(path: &Path) -> nix::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    open_how(-1, &path, 0, libc::RESOLVE_NO_SYMLINKS)
}

fn open_how(base: RawFd, path: &CStr, flags: c_int, resolve: u64) -> nix::Result<OwnedFd> {
    #[repr(C)]
    struct How {
        flags: u64,
        mode: u64,
        resolve: u64,
    }
    let flags = u64::from((libc::O_PATH | libc::O_CLOEXEC | flags).unsigned_abs());
    let how = How { flags, mode: 0, resolve };
    // SAFETY: a C string and a structure of the layout and size of `struct open_how`, both only read.
    owned(unsafe { libc::syscall(libc::SYS_openat2, base, path.as_ptr(), &raw const how, size_of::<How>()) })
}

/// When an open file came into being, in seconds and nanoseconds (`statx(2)`); `None` where the file system does not know.
pub(crate) fn born(file: BorrowedFd<'_>) -> Option<(i64, u32)> {
    // SAFETY: plain integers, for which zero is valid.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty C string, integers, and a structure that is valid for writing.
    let result =
        unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_BTIME, &raw mut found) };
    let known = result == 0 && found.stx_mask & libc::STATX_BTIME != 0;
    known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

/// The clock that file systems take their times from.
pub(crate) fn file_time() -> Option<(i64, u32)> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writing.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    (result == 0).then(|| (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0)))
}

/// `chmod(2)` of an open file, also of one that was opened for its path only.
pub(crate) fn change_mode(file: BorrowedFd<'_>, mode: u32) -> nix::Result<()> {
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| Errno::EINVAL)?;
    // SAFETY: a C string and an integer.
    Errno::result(unsafe { libc::chmod(path.as_ptr(), mode) }).map(drop)
}

/// `utimensat(2)` of an open file, also of one that was opened for its path only, and of a symbolic link itself.
pub(crate) fn change_times(file: BorrowedFd<'_>, times: Option<&[libc::timespec; 2]>) -> nix::Result<()> {
    let times = times.map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: an empty C string, and null or two structures, which are only read.
    let result =
        unsafe { libc::syscall(libc::SYS_utimensat, file.as_raw_fd(), c"".as_ptr(), times, libc::AT_EMPTY_PATH) };
    Errno::result(result).map(drop)
}
