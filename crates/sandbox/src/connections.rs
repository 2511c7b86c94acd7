//! `connect` of the server, judged and performed by the guardian.
//!
//! The address is read once; what is judged is our copy, and what connects is a duplicate of the server's socket in our
//! own process. The call itself is never continued: another thread could change the address between our look and the
//! kernel's.

use std::{
    io::IoSliceMut,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    libc,
    sys::{
        socket::{SockaddrIn, SockaddrLike, connect, getsockopt, sockopt::SockType as SocketType},
        uio::{RemoteIoVec, process_vm_readv},
    },
    unistd::Pid,
};

use crate::{procfs, sys};

/// Blocking connections that may be under way at once. A proxy that accepts keeps this near zero.
const MAX_PENDING: usize = 256;
/// Length of `struct sockaddr_in`; the kernel refuses less (`inet_stream_connect`).
const SOCKADDR_IN: usize = size_of::<libc::sockaddr_in>();
/// Length of `struct sockaddr_storage`; the kernel refuses more (`move_addr_to_kernel`).
const SOCKADDR_MAX: usize = size_of::<libc::sockaddr_storage>();

/// The guardian's end of one filter.
pub(crate) struct Connections {
    listener: OwnedFd,
    proxy: SocketAddrV4,
    pending: Vec<Pending>,
}

/// A blocking connect that has not been decided by the network yet; its caller waits.
struct Pending {
    id: u64,
    socket: OwnedFd,
}

/// What becomes of a call.
enum Answer {
    Now(nix::Result<()>),
    Later(OwnedFd),
}

impl Connections {
    pub fn new(listener: OwnedFd, proxy: SocketAddrV4) -> Self {
        Self { listener, proxy, pending: Vec::new() }
    }

    /// Readable when a call waits; hangs up when the last process with the filter is gone.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Sockets to be watched for writing, in the order that [`Self::advance`] counts them.
    pub fn pending(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pending.iter().map(|p| p.socket.as_fd())
    }

    /// Takes one call and answers it, or keeps its socket until the network has.
    pub fn serve(&mut self) {
        // Without a call: its process was killed before we looked.
        let Ok(call) = sys::notification(self.listener.as_fd()) else { return };
        match self.judge(&call) {
            Ok(Answer::Later(socket)) => self.pending.push(Pending { id: call.id, socket }),
            Ok(Answer::Now(result)) => self.answer(call.id, result),
            Err(errno) => self.answer(call.id, Err(errno)),
        }
    }

    /// Goes on with the pending connections of these indices.
    pub fn advance(&mut self, ready: &[usize]) {
        let mut index = 0;
        let listener = self.listener.as_fd();
        self.pending.retain(|p| {
            let keep = !ready.contains(&index) || {
                // Connecting again tells how the first attempt ended, and marks the socket as connected.
                match connect_without_blocking(p.socket.as_fd(), self.proxy) {
                    Err(Errno::EALREADY | Errno::EINPROGRESS) => true,
                    Ok(()) | Err(Errno::EISCONN) => sys::answer(listener, p.id, Ok(())).is_err_and(retry),
                    Err(errno) => sys::answer(listener, p.id, Err(errno)).is_err_and(retry),
                }
            };
            index += 1;
            keep
        });
    }

    fn answer(&self, id: u64, result: nix::Result<()>) {
        // ENOENT: the caller was killed meanwhile, so nobody is left to be answered.
        while sys::answer(self.listener.as_fd(), id, result).is_err_and(retry) {}
    }

    fn judge(&mut self, call: &libc::seccomp_notif) -> nix::Result<Answer> {
        let [fd, address, length, ..] = call.data.args;
        if i64::from(call.data.nr) != libc::SYS_connect {
            return Err(Errno::EPERM);
        }
        let thread = Pid::from_raw(i32::try_from(call.pid).map_err(|_| Errno::ESRCH)?);
        // The kernel takes both as `int`.
        let low = |n: u64| (n & 0xffff_ffff) as u32;
        let length = usize::try_from(low(length).cast_signed()).map_err(|_| Errno::EINVAL)?;
        if length > SOCKADDR_MAX {
            return Err(Errno::EINVAL);
        }
        let bytes = read_address(thread, address, length)?;
        sys::still_waits(self.listener.as_fd(), call.id)?;
        if decide(&bytes, self.proxy) == Decision::Refuse {
            return Err(Errno::EACCES);
        }
        let socket = self.duplicate(thread, call.id, low(fd).cast_signed())?;
        self.perform(socket)
    }

    /// The caller's socket, in our process. Only TCP over IPv4 is of use to anybody here.
    fn duplicate(&self, thread: Pid, id: u64, fd: RawFd) -> nix::Result<OwnedFd> {
        let pidfd = match sys::pidfd_open_thread(thread) {
            // Before Linux 6.9 a pidfd names the whole process. Its threads share one table: the filter denies the
            // others.
            Err(Errno::EINVAL) => {
                let process = procfs::status_field(thread, "Tgid").and_then(|t| t.parse().ok()).ok_or(Errno::ESRCH)?;
                sys::pidfd_open(Pid::from_raw(process))?
            }
            other => other?,
        };
        // Still the caller's thread id, so the pidfd is the caller's.
        sys::still_waits(self.listener.as_fd(), id)?;
        let socket = sys::pidfd_getfd(pidfd.as_fd(), fd)?;
        let (domain, protocol) = (sys::socket_domain(socket.as_fd())?, sys::socket_protocol(socket.as_fd())?);
        let kind = getsockopt(&socket, SocketType)?;
        if (domain, protocol) == (libc::AF_INET, libc::IPPROTO_TCP) && kind == nix::sys::socket::SockType::Stream {
            Ok(socket)
        } else {
            Err(Errno::EACCES)
        }
    }

    fn perform(&mut self, socket: OwnedFd) -> nix::Result<Answer> {
        let waits = !status_flags(socket.as_fd())?.contains(OFlag::O_NONBLOCK);
        if waits && self.pending.len() >= MAX_PENDING {
            let listener = self.listener.as_fd();
            self.pending.retain(|p| sys::still_waits(listener, p.id).is_ok());
            if self.pending.len() >= MAX_PENDING {
                return Err(Errno::EAGAIN);
            }
        }
        match connect_without_blocking(socket.as_fd(), self.proxy) {
            Err(Errno::EINPROGRESS) if waits => Ok(Answer::Later(socket)),
            result => Ok(Answer::Now(result)),
        }
    }
}

fn retry(errno: Errno) -> bool {
    errno == Errno::EINTR
}

/// What is decided about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// It is the proxy's.
    Connect,
    /// Anything else.
    Refuse,
}

/// Pure. `bytes` is our copy of the address.
fn decide(bytes: &[u8], proxy: SocketAddrV4) -> Decision {
    // struct sockaddr_in: family in the machine's order, port and address in the network's (ip(7)).
    let Some((&[f0, f1, p0, p1, a, b, c, d], _)) = bytes.split_first_chunk::<8>() else { return Decision::Refuse };
    let family = i32::from(u16::from_ne_bytes([f0, f1]));
    let target = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p0, p1]));
    if bytes.len() >= SOCKADDR_IN && family == libc::AF_INET && target == proxy {
        Decision::Connect
    } else {
        Decision::Refuse
    }
}

fn read_address(thread: Pid, address: u64, length: usize) -> nix::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    if length == 0 {
        return Ok(bytes);
    }
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    let read = process_vm_readv(thread, &mut [IoSliceMut::new(&mut bytes)], &[RemoteIoVec { base, len: length }])?;
    if read == length { Ok(bytes) } else { Err(Errno::EFAULT) }
}

fn status_flags(socket: BorrowedFd<'_>) -> nix::Result<OFlag> {
    fcntl(socket, FcntlArg::F_GETFL).map(OFlag::from_bits_retain)
}

/// Connects without ever waiting: the guardian has one thread. The flag belongs to the open file, which the server
/// shares, so it is set for the moment of the call only; the thread that wants to connect waits for us meanwhile.
fn connect_without_blocking(socket: BorrowedFd<'_>, to: SocketAddrV4) -> nix::Result<()> {
    let flags = status_flags(socket)?;
    if flags.contains(OFlag::O_NONBLOCK) {
        return connect_to(socket, to);
    }
    fcntl(socket, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    let result = connect_to(socket, to);
    fcntl(socket, FcntlArg::F_SETFL(flags))?;
    result
}

fn connect_to(socket: BorrowedFd<'_>, to: SocketAddrV4) -> nix::Result<()> {
    let address = SockaddrIn::from(to);
    debug_assert_eq!(address.len() as usize, SOCKADDR_IN);
    connect(socket.as_raw_fd(), &address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(family: i32, port: u16, ip: [u8; 4]) -> Vec<u8> {
        let mut out = u16::try_from(family).unwrap().to_ne_bytes().to_vec();
        out.extend(port.to_be_bytes());
        out.extend(ip);
        out.extend([0; 8]);
        out
    }

    #[test]
    fn only_the_proxy_is_connected_to() {
        let proxy = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080);
        let right = address(libc::AF_INET, 8080, [127, 0, 0, 1]);
        let mut longer = right.clone();
        longer.extend([0xff; 100]);
        for (bytes, want) in [
            (right.clone(), Decision::Connect),
            (longer, Decision::Connect),
            (right[..15].to_vec(), Decision::Refuse),
            (right[..1].to_vec(), Decision::Refuse),
            (Vec::new(), Decision::Refuse),
            (address(libc::AF_INET, 8081, [127, 0, 0, 1]), Decision::Refuse),
            (address(libc::AF_INET, 8080, [127, 0, 0, 2]), Decision::Refuse),
            (address(libc::AF_INET, 8080, [0, 0, 0, 0]), Decision::Refuse),
            (address(libc::AF_INET6, 8080, [127, 0, 0, 1]), Decision::Refuse),
            (address(libc::AF_UNIX, 8080, [127, 0, 0, 1]), Decision::Refuse),
            (address(libc::AF_UNSPEC, 8080, [127, 0, 0, 1]), Decision::Refuse),
        ] {
            assert_eq!(decide(&bytes, proxy), want, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_other_bytes_are_connected_to(bytes in prop::collection::vec(any::<u8>(), 0..SOCKADDR_MAX)) {
            let proxy = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080);
            let start = address(libc::AF_INET, 8080, [127, 0, 0, 1]);
            let same = bytes.len() >= SOCKADDR_IN && bytes[..8] == start[..8];
            prop_assert_eq!(decide(&bytes, proxy) == Decision::Connect, same);
        }
    }
}
