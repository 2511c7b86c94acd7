//! Messages that the server sends: `sendto` with an address, `sendmsg` and `sendmmsg`.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use nix::{errno::Errno, libc, unistd::Pid};

use super::{
    Outcome,
    address::{self, Address},
    caller::{self, Caller, Kind, Socket},
    judge::{Judge, address_length},
    message::{self, Header, IOVEC, MMSGHDR, MSGHDR},
    pending::Work,
};
use crate::linux::sys;

/// Bytes of a stream that one call sends. A program that has more calls again (send(2)).
const MAX_STREAM: usize = 256 << 10;
/// Longest message of another socket; the kernel's own default limit is 208 KiB.
const MAX_MESSAGE: usize = 1 << 20;
/// Messages that one `sendmmsg` sends. A program that has more calls again (sendmmsg(2)).
const MAX_MESSAGES: i32 = 64;
/// What is passed on. The rest makes no difference, or would connect or pin memory.
const FLAGS: i32 = libc::MSG_OOB | libc::MSG_EOR | libc::MSG_MORE;
/// Port of name servers.
const DNS: u16 = 53;

/// One message on its way.
pub(crate) struct Outgoing {
    socket: Socket,
    address: Vec<u8>,
    /// Keeps the socket that `address` names.
    target: Option<super::unix::Resolved>,
    data: Vec<u8>,
    sent: usize,
    control: Vec<u64>,
    control_length: usize,
    rights: Vec<OwnedFd>,
    flags: i32,
    waits: bool,
    /// Gets SIGPIPE when nobody reads any more.
    sigpipe: Option<OwnedFd>,
    /// Where `sendmmsg` wants the length.
    length_at: Option<(Pid, u64)>,
}

/// What a message consists of, in our memory.
struct Parts {
    name: Vec<u8>,
    data: Vec<u8>,
    control: Vec<u8>,
    flags: i32,
}

impl Outgoing {
    pub fn socket(&self) -> &OwnedFd {
        &self.socket.fd
    }

    /// What it occupies while it waits.
    pub fn bytes(&self) -> usize {
        self.data.len() + size_of_val(self.control.as_slice())
    }

    pub fn descriptors(&self) -> usize {
        1 + self.rights.len() + usize::from(self.target.is_some()) + usize::from(self.sigpipe.is_some())
    }

    /// Sends what can be sent now. `None`: the caller has to wait.
    pub fn send(&mut self) -> Option<nix::Result<i64>> {
        loop {
            let rest = self.data.get(self.sent..).unwrap_or_default();
            let control = if self.sent == 0 { self.control_length } else { 0 };
            let flags = (self.flags & FLAGS) | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            let fd = self.socket.fd.as_fd();
            match sys::send_message(fd, &self.address, rest, &self.control, control, flags) {
                Ok(n) => {
                    self.sent += n;
                    if n == 0 || !self.socket.stream || !self.waits || self.sent >= self.data.len() {
                        return Some(self.done());
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) if self.waits => return None,
                Err(_) if self.sent > 0 => return Some(self.done()),
                Err(errno) => {
                    if errno == Errno::EPIPE
                        && let Some(caller) = &self.sigpipe
                    {
                        // It may have died meanwhile.
                        let _ = sys::signal_pidfd(caller.as_fd(), libc::SIGPIPE);
                    }
                    return Some(Err(errno));
                }
            }
        }
    }

    fn done(&self) -> nix::Result<i64> {
        let Some((thread, at)) = self.length_at else {
            return i64::try_from(self.sent).map_err(|_| Errno::EMSGSIZE);
        };
        let sent = u32::try_from(self.sent).map_err(|_| Errno::EMSGSIZE)?;
        caller::write(thread, at, &sent.to_ne_bytes())?;
        Ok(1)
    }

    fn perform(mut self) -> nix::Result<Outcome> {
        match self.send() {
            Some(result) => result.map(Outcome::Done),
            None => Ok(Outcome::Later(Work::Send(Box::new(self)))),
        }
    }
}

impl Judge {
    pub fn send_to(
        &mut self,
        caller: Caller<'_>,
        fd: i32,
        (data, length): (u64, usize),
        flags: i32,
        (name, name_length): (u64, i32),
    ) -> nix::Result<Outcome> {
        let socket = caller.socket(fd)?;
        let name = if name == 0 { Vec::new() } else { caller.read(name, address_length(name_length)?)? };
        let data = caller.read_blocks(&[(data, length)], limit(&socket))?;
        let parts = Parts { name, data, control: Vec::new(), flags };
        let mut outgoing = self.judged(&caller, socket, parts)?;
        outgoing.sigpipe = outgoing.sigpipe_of(caller, flags)?;
        outgoing.perform()
    }

    pub fn send_message(&mut self, caller: Caller<'_>, fd: i32, at: u64, flags: i32) -> nix::Result<Outcome> {
        let socket = caller.socket(fd)?;
        let parts = parts(&caller, &socket, at, flags)?;
        let mut outgoing = self.judged(&caller, socket, parts)?;
        outgoing.sigpipe = outgoing.sigpipe_of(caller, flags)?;
        outgoing.perform()
    }

    /// Sends messages until one fails or has to wait; the first may wait.
    pub fn send_messages(
        &mut self,
        caller: Caller<'_>,
        fd: i32,
        (at, count): (u64, i32),
        flags: i32,
    ) -> nix::Result<Outcome> {
        // The kernel takes an unsigned number and no more than UIO_MAXIOV.
        let count = if count < 0 { MAX_MESSAGES } else { count.min(MAX_MESSAGES) };
        let mut sent: i64 = 0;
        for i in 0..u64::from(count.unsigned_abs()) {
            let one = at.wrapping_add(i * MMSGHDR as u64);
            let mut message = || -> nix::Result<(Outgoing, u64)> {
                let socket = caller.socket(fd)?;
                let parts = parts(&caller, &socket, one, flags)?;
                Ok((self.judged(&caller, socket, parts)?, one.wrapping_add(MSGHDR as u64)))
            };
            let result = message().and_then(|(mut outgoing, length_at)| {
                outgoing.length_at = Some((caller.thread, length_at));
                match outgoing.send() {
                    Some(result) => result.map(|_| None),
                    None => Ok(Some(outgoing)),
                }
            });
            match result {
                Ok(None) => sent += 1,
                Ok(Some(outgoing)) if sent == 0 => return Ok(Outcome::Later(Work::Send(Box::new(outgoing)))),
                Err(errno) if sent == 0 => return Err(errno),
                Ok(Some(_)) | Err(_) => break,
            }
        }
        Ok(Outcome::Done(sent))
    }

    /// A message that may be sent.
    fn judged(&mut self, caller: &Caller<'_>, socket: Socket, parts: Parts) -> nix::Result<Outgoing> {
        let (address, target) = self.destination(caller, &socket, &parts.name, parts.data.len())?;
        let unix = matches!(socket.kind, Kind::UnixConnection | Kind::UnixDatagram);
        match socket.kind {
            _ if unix || parts.control.is_empty() => {}
            Kind::Udp => message::datagram_options(&parts.control)?,
            _ => return Err(Errno::EACCES),
        }
        let mut bytes = parts.control;
        let mut rights = Vec::new();
        for at in if unix { message::rights(&bytes)? } else { Vec::new() } {
            let ours = caller.descriptor(message::right(&bytes, at)?)?;
            if let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&ours.as_raw_fd().to_ne_bytes());
            }
            rights.push(ours);
        }
        let word = |b: &[u8]| {
            let mut word = [0; 8];
            word.iter_mut().zip(b).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(word)
        };
        let control = bytes.chunks(8).map(word).collect();
        // A full receiver is not seen by waiting for our own socket.
        let waits = parts.flags & libc::MSG_DONTWAIT == 0 && socket.kind != Kind::UnixDatagram && socket.waits()?;
        Ok(Outgoing {
            socket,
            address,
            target,
            data: parts.data,
            sent: 0,
            control,
            control_length: bytes.len(),
            rights,
            flags: parts.flags,
            waits,
            sigpipe: None,
            length_at: None,
        })
    }

    /// Where a message of so many bytes goes, in the kernel's form; empty for a connected socket's peer.
    fn destination(
        &mut self,
        caller: &Caller<'_>,
        socket: &Socket,
        name: &[u8],
        bytes: usize,
    ) -> nix::Result<(Vec<u8>, Option<super::unix::Resolved>)> {
        // The kernel ignores a name given to a connected TCP socket.
        if name.is_empty() || socket.kind == Kind::Tcp {
            return Ok((Vec::new(), None));
        }
        match (socket.kind, Address::decode(name, socket.domain)?) {
            (Kind::UnixConnection, _) => Err(Errno::EISCONN),
            (Kind::UnixDatagram, Address::Path(path)) => {
                let found = self.unix(caller, &path)?;
                Ok((found.address(), Some(found)))
            }
            (Kind::Udp, Address::Inet(to)) if to.port() == DNS => {
                let stub = self.listed()?.stub.address(to).ok_or(Errno::ENETUNREACH)?;
                if let Address::Inet(own) = Address::decode(&sys::own_address(socket.fd.as_fd())?, socket.domain)?
                    && own.port() == 0
                {
                    let here = if stub.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                    self.listed()?.bind_udp(socket, SocketAddr::new(here, 0))?;
                }
                self.listed()?.admit(caller, socket, to)?;
                Ok((address::encode(stub, socket.domain), None))
            }
            (Kind::Udp, Address::Inet(to)) => Ok((address::encode(self.udp(caller, to, bytes)?, socket.domain), None)),
            (Kind::Netlink, Address::Netlink { port: 0, groups: 0 }) => Ok((address::netlink(0, 0), None)),
            _ => Err(Errno::EACCES),
        }
    }
}

impl Outgoing {
    /// Whom SIGPIPE is for, if anybody: streams only (send(2)).
    fn sigpipe_of(&self, caller: Caller<'_>, flags: i32) -> nix::Result<Option<OwnedFd>> {
        (self.socket.stream && flags & libc::MSG_NOSIGNAL == 0).then(|| caller.into_pidfd()).transpose()
    }
}

/// How much is taken at most, and whether more is an error.
fn limit(socket: &Socket) -> (usize, bool) {
    if socket.stream { (MAX_STREAM, false) } else { (MAX_MESSAGE, true) }
}

/// Reads a message out of the caller's memory.
fn parts(caller: &Caller<'_>, socket: &Socket, at: u64, flags: i32) -> nix::Result<Parts> {
    let header = Header::decode(&caller.read(at, MSGHDR)?)?;
    let blocks = message::blocks(&caller.read(header.blocks, header.block_count * IOVEC)?)?;
    Ok(Parts {
        name: caller.read(header.name, header.name_length)?,
        data: caller.read_blocks(&blocks, limit(socket))?,
        control: caller.read(header.control, header.control_length)?,
        flags,
    })
}
