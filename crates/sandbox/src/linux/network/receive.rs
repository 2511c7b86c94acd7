//! Answers of the stub to programs that use musl.
//!
//! musl drops an answer that does not come from the very address and port that it asked (`res_msend.c`), and nobody but
//! root can answer from port 53. For such programs, which are known by their loader, the guardian receives what the stub
//! has sent, and names the address that was asked. Everything else is received by the caller itself: receiving is never
//! refused, so nothing is gained by changing memory between our look and the kernel's.

use std::{net::SocketAddr, os::fd::AsFd};

use nix::{errno::Errno, libc};

use super::{
    Outcome,
    address::{self, Address},
    caller::{Caller, Kind, Socket},
    judge::Judge,
    message::{self, Header, IOVEC, MSGHDR},
};
use crate::linux::sys;

/// Longest datagram that is received here; the stub's answers have some hundred bytes.
const MAX_ANSWER: usize = 4096;
/// Flags that are understood here.
const FLAGS: i32 = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;

/// Where the caller wants what it receives.
struct Wanted {
    blocks: Vec<(u64, usize)>,
    flags: i32,
    name: u64,
    name_length: usize,
    /// Where the length of the name goes, as `int`.
    length_at: u64,
    /// The message's header, where there is one.
    header: Option<u64>,
}

impl Judge {
    pub fn receive_from(
        &mut self,
        caller: &Caller<'_>,
        fd: i32,
        (data, length): (u64, usize),
        flags: i32,
        (name, length_at): (u64, u64),
    ) -> nix::Result<Outcome> {
        let Some((socket, asked)) = self.led(caller, fd, flags)? else { return Ok(Outcome::Unjudged) };
        let bytes = caller.read(length_at, 4)?;
        let name_length = bytes.first_chunk::<4>().map_or(-1, |b| i32::from_ne_bytes(*b));
        let name_length = usize::try_from(name_length).map_err(|_| Errno::EINVAL)?;
        let wanted = Wanted { blocks: vec![(data, length)], flags, name, name_length, length_at, header: None };
        self.receive(caller, &socket, asked, &wanted)
    }

    pub fn receive_message(&mut self, caller: &Caller<'_>, fd: i32, at: u64, flags: i32) -> nix::Result<Outcome> {
        let Some((socket, asked)) = self.led(caller, fd, flags)? else { return Ok(Outcome::Unjudged) };
        let header = Header::decode(&caller.read(at, MSGHDR)?)?;
        let blocks = message::blocks(&caller.read(header.blocks, header.block_count * IOVEC)?)?;
        let Header { name, name_length, .. } = header;
        let length_at = at.wrapping_add(message::NAME_LENGTH_AT);
        self.receive(caller, &socket, asked, &Wanted { blocks, flags, name, name_length, length_at, header: Some(at) })
    }

    /// The socket, and what was asked through it, if it was led to the stub.
    fn led(&mut self, caller: &Caller<'_>, fd: i32, flags: i32) -> nix::Result<Option<(Socket, SocketAddr)>> {
        // Sockets of a kind that the filter lets nobody make are inherited ones, and no business of ours.
        let Ok(socket) = caller.socket(fd) else { return Ok(None) };
        if socket.kind != Kind::Udp || flags & !FLAGS != 0 {
            return Ok(None);
        }
        let Address::Inet(own) = Address::decode(&sys::own_address(socket.fd.as_fd())?, socket.domain)? else {
            return Ok(None);
        };
        let asked = self.listed()?.stub.asked(own);
        Ok(asked.map(|asked| (socket, asked)))
    }

    fn receive(
        &mut self,
        caller: &Caller<'_>,
        socket: &Socket,
        asked: SocketAddr,
        wanted: &Wanted,
    ) -> nix::Result<Outcome> {
        let mut bytes = [0; MAX_ANSWER];
        let flags = (wanted.flags & libc::MSG_PEEK) | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        let waits = wanted.flags & libc::MSG_DONTWAIT == 0 && socket.waits()?;
        let (length, from) = match sys::receive_datagram(socket.fd.as_fd(), &mut bytes, flags) {
            // It waits by itself, which musl does not: it polls.
            Err(Errno::EAGAIN) if waits => return Ok(Outcome::Unjudged),
            result => result?,
        };
        let from = match Address::decode(&from, socket.domain)? {
            Address::Inet(from) if self.listed()?.stub.address(asked) == Some(from) => asked,
            Address::Inet(from) => from,
            _ => return Err(Errno::EIO),
        };
        let mut rest = bytes.get(..length.min(MAX_ANSWER)).unwrap_or_default();
        for (at, room) in &wanted.blocks {
            let (now, later) = rest.split_at(rest.len().min(*room));
            caller.write(*at, now)?;
            rest = later;
        }
        let whole = rest.is_empty() && length <= MAX_ANSWER;
        let received = length.min(MAX_ANSWER) - rest.len();
        let name = address::encode(from, socket.domain);
        if wanted.name != 0 {
            caller.write(wanted.name, name.get(..name.len().min(wanted.name_length)).unwrap_or_default())?;
            let length = i32::try_from(name.len()).map_err(|_| Errno::EINVAL)?;
            caller.write(wanted.length_at, &length.to_ne_bytes())?;
        }
        if let Some(header) = wanted.header {
            let flags = if whole { 0 } else { libc::MSG_TRUNC };
            caller.write(header.wrapping_add(message::CONTROL_LENGTH_AT), &0u64.to_ne_bytes())?;
            caller.write(header.wrapping_add(message::FLAGS_AT), &flags.to_ne_bytes())?;
        }
        let result = if wanted.flags & libc::MSG_TRUNC == 0 { received } else { length };
        i64::try_from(result).map(Outcome::Done).map_err(|_| Errno::EMSGSIZE)
    }
}
