//! The thread whose call waits for our answer: its memory and its descriptors.

use std::{
    cell::OnceCell,
    io::{IoSlice, IoSliceMut},
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    libc,
    sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev},
    unistd::Pid,
};

use crate::linux::{procfs, sys};

/// A waiting thread.
pub(crate) struct Caller<'a> {
    listener: BorrowedFd<'a>,
    id: u64,
    pub thread: Pid,
    /// Opened when it is needed first, while the thread waits, so it means that thread for good.
    pidfd: OnceCell<OwnedFd>,
}

/// A socket of the caller's, in our process.
pub(crate) struct Socket {
    pub fd: OwnedFd,
    pub domain: i32,
    pub kind: Kind,
    /// Bytes without borders: they may be sent in parts.
    pub stream: bool,
}

/// Kinds of sockets that the filter lets exist, and that may be inherited as standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp,
    Udp,
    /// A stream of bytes or of messages between two Unix sockets.
    UnixConnection,
    UnixDatagram,
    Netlink,
}

impl Kind {
    fn of(domain: i32, kind: i32, protocol: i32) -> Option<Self> {
        Some(match (domain, kind, protocol) {
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, libc::IPPROTO_TCP) => Self::Tcp,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_UDP) => Self::Udp,
            (libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_SEQPACKET, _) => Self::UnixConnection,
            (libc::AF_UNIX, libc::SOCK_DGRAM, _) => Self::UnixDatagram,
            (libc::AF_NETLINK, _, libc::NETLINK_ROUTE) => Self::Netlink,
            _ => return None,
        })
    }
}

impl<'a> Caller<'a> {
    /// Whoever looks something up by the thread's number asks [`Self::still_waits`] afterwards.
    pub fn of(listener: BorrowedFd<'a>, call: &libc::seccomp_notif) -> nix::Result<Self> {
        let thread = Pid::from_raw(i32::try_from(call.pid).map_err(|_| Errno::ESRCH)?);
        Ok(Self { listener, id: call.id, thread, pidfd: OnceCell::new() })
    }

    fn pidfd(&self) -> nix::Result<&OwnedFd> {
        if let Some(open) = self.pidfd.get() {
            return Ok(open);
        }
        let open = match sys::pidfd_open_thread(self.thread) {
            // Before Linux 6.9 a pidfd names the whole process. Its threads share one table: the filter denies the
            // others.
            Err(Errno::EINVAL) => {
                let process = procfs::status_field(self.thread, "Tgid").and_then(|t| t.parse().ok());
                sys::pidfd_open(Pid::from_raw(process.ok_or(Errno::ESRCH)?))?
            }
            other => other?,
        };
        // Still the caller's thread id, so the pidfd is the caller's.
        self.still_waits()?;
        Ok(self.pidfd.get_or_init(|| open))
    }

    /// What was looked up by the thread's number is the caller's only if it is still there.
    pub fn still_waits(&self) -> nix::Result<()> {
        sys::still_waits(self.listener, self.id)
    }

    /// A copy of the caller's memory.
    pub fn read(&self, at: u64, length: usize) -> nix::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        if length == 0 {
            return Ok(bytes);
        }
        let base = usize::try_from(at).map_err(|_| Errno::EFAULT)?;
        let from = [RemoteIoVec { base, len: length }];
        let read = process_vm_readv(self.thread, &mut [IoSliceMut::new(&mut bytes)], &from)?;
        // What was read is the caller's only if it is still there.
        self.still_waits()?;
        if read == length { Ok(bytes) } else { Err(Errno::EFAULT) }
    }

    /// A copy of several blocks of the caller's memory, at most `limit` bytes; whether more is an error.
    pub fn read_blocks(&self, blocks: &[(u64, usize)], (limit, more_is_error): (usize, bool)) -> nix::Result<Vec<u8>> {
        let mut from = Vec::with_capacity(blocks.len());
        let mut left = limit;
        for (at, length) in blocks {
            if *length > left && more_is_error {
                return Err(Errno::EMSGSIZE);
            }
            let len = (*length).min(left);
            left -= len;
            if len > 0 {
                from.push(RemoteIoVec { base: usize::try_from(*at).map_err(|_| Errno::EFAULT)?, len });
            }
        }
        let mut bytes = vec![0; limit - left];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let read = process_vm_readv(self.thread, &mut [IoSliceMut::new(&mut bytes)], &from)?;
        self.still_waits()?;
        if read == bytes.len() { Ok(bytes) } else { Err(Errno::EFAULT) }
    }

    /// A copy of a string that ends in a zero byte, without it: a path.
    pub fn read_string(&self, at: u64) -> nix::Result<Vec<u8>> {
        /// Longest path (`PATH_MAX`, linux/limits.h), with the zero byte.
        const MAX: usize = 4096;
        /// Smallest page: what lies on one is readable as a whole.
        const PAGE: u64 = 4096;
        let mut text = Vec::new();
        let mut at = at;
        while text.len() < MAX {
            let here = usize::try_from(PAGE - at % PAGE).unwrap_or(1).min(MAX - text.len()).min(256);
            let part = self.read(at, here)?;
            if let Some(end) = part.iter().position(|b| *b == 0) {
                text.extend(part.get(..end).unwrap_or_default());
                return Ok(text);
            }
            text.extend(part);
            at = at.wrapping_add(here as u64);
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// Writes to the caller's memory.
    pub fn write(&self, at: u64, bytes: &[u8]) -> nix::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.still_waits()?;
        write(self.thread, at, bytes)
    }

    /// A duplicate of one of the caller's descriptors.
    pub fn descriptor(&self, fd: RawFd) -> nix::Result<OwnedFd> {
        sys::pidfd_getfd(self.pidfd()?.as_fd(), fd)
    }

    /// A duplicate of one of the caller's sockets.
    pub fn socket(&self, fd: RawFd) -> nix::Result<Socket> {
        let fd = self.descriptor(fd)?;
        let domain = sys::socket_domain(fd.as_fd())?;
        let (kind, protocol) = (sys::socket_kind(fd.as_fd())?, sys::socket_protocol(fd.as_fd())?);
        let stream = kind == libc::SOCK_STREAM;
        let kind = Kind::of(domain, kind, protocol).ok_or(Errno::EACCES)?;
        Ok(Socket { fd, domain, kind, stream })
    }

    /// For what goes on after this look at the call.
    pub fn into_pidfd(self) -> nix::Result<OwnedFd> {
        self.pidfd()?;
        self.pidfd.into_inner().ok_or(Errno::ESRCH)
    }
}

/// Writes to a thread's memory.
pub(crate) fn write(thread: Pid, at: u64, bytes: &[u8]) -> nix::Result<()> {
    let base = usize::try_from(at).map_err(|_| Errno::EFAULT)?;
    let to = [RemoteIoVec { base, len: bytes.len() }];
    let written = process_vm_writev(thread, &[IoSlice::new(bytes)], &to)?;
    if written == bytes.len() { Ok(()) } else { Err(Errno::EFAULT) }
}

impl Socket {
    /// Whether its calls wait: the flag belongs to the open file, which we share with the caller.
    pub fn waits(&self) -> nix::Result<bool> {
        Ok(!flags(self.fd.as_fd())?.contains(OFlag::O_NONBLOCK))
    }

    /// Connects without ever waiting: the guardian's loop has one thread. The flag is shared with the server, so it is
    /// set for the moment of the call only; the thread that wants to connect waits for us meanwhile.
    pub fn connect(&self, to: &[u8]) -> nix::Result<()> {
        let before = flags(self.fd.as_fd())?;
        if before.contains(OFlag::O_NONBLOCK) {
            return sys::connect(self.fd.as_fd(), to);
        }
        fcntl(&self.fd, FcntlArg::F_SETFL(before | OFlag::O_NONBLOCK))?;
        let result = sys::connect(self.fd.as_fd(), to);
        fcntl(&self.fd, FcntlArg::F_SETFL(before))?;
        result
    }
}

fn flags(fd: BorrowedFd<'_>) -> nix::Result<OFlag> {
    fcntl(fd, FcntlArg::F_GETFL).map(OFlag::from_bits_retain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let (v4, v6, unix) = (libc::AF_INET, libc::AF_INET6, libc::AF_UNIX);
        for (domain, kind, protocol, want) in [
            (v4, libc::SOCK_STREAM, libc::IPPROTO_TCP, Some(Kind::Tcp)),
            (v6, libc::SOCK_STREAM, libc::IPPROTO_TCP, Some(Kind::Tcp)),
            (v4, libc::SOCK_STREAM, libc::IPPROTO_MPTCP, None),
            (v4, libc::SOCK_STREAM, libc::IPPROTO_SCTP, None),
            (v4, libc::SOCK_DGRAM, libc::IPPROTO_UDP, Some(Kind::Udp)),
            (v4, libc::SOCK_DGRAM, libc::IPPROTO_ICMP, None),
            (v4, libc::SOCK_RAW, libc::IPPROTO_TCP, None),
            (unix, libc::SOCK_STREAM, 0, Some(Kind::UnixConnection)),
            (unix, libc::SOCK_SEQPACKET, 0, Some(Kind::UnixConnection)),
            (unix, libc::SOCK_DGRAM, 0, Some(Kind::UnixDatagram)),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, Some(Kind::Netlink)),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT, None),
            (libc::AF_VSOCK, libc::SOCK_STREAM, 0, None),
        ] {
            assert_eq!(Kind::of(domain, kind, protocol), want, "{domain} {kind} {protocol}");
        }
    }
}
