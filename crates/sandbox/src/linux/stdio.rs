//! The streams that a server is given.

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl, open},
    libc,
    sys::{
        socket::{SockType, getsockopt, sockopt},
        stat::{Mode, SFlag, fstat},
    },
};

use crate::{
    error::{SpawnError, Stage},
    launch::Stderr,
    linux::{paths, server::Stdio, sys},
};

/// Looks the streams over. Output that could be read is opened anew to write only, unless somebody types to the server anyway.
pub(super) fn stdio(stdin: OwnedFd, stdout: OwnedFd, stderr: Stderr) -> Result<Stdio, SpawnError> {
    for (fd, name) in [(&stdin, "input"), (&stdout, "output")] {
        if leads_elsewhere(fd.as_fd()) {
            return Err(SpawnError::Stdio(name));
        }
    }
    let setup = |e: io::Error| SpawnError::setup(Stage::Descriptors, e);
    let stderr = match stderr {
        Stderr::Fd(fd) if !leads_elsewhere(fd.as_fd()) => fd,
        Stderr::Inherit if !leads_elsewhere(sys::standard(2)) => {
            match sys::duplicate_above(sys::standard(2), 3) {
                Ok(fd) => fd,
                // The caller was started without one.
                Err(Errno::EBADF) => null().map_err(setup)?,
                Err(e) => return Err(setup(e.into())),
            }
        }
        Stderr::Fd(_) | Stderr::Inherit => null().map_err(setup)?,
    };
    if stdin.is_terminal() {
        return Ok(Stdio { stdin, stdout, stderr });
    }
    let [stdout, stderr] = [write_only(stdout).map_err(setup)?, write_only(stderr).map_err(setup)?];
    Ok(Stdio { stdin, stdout, stderr })
}

/// The same file, so that nothing can be read from it: a terminal is opened for both ways, and who reads its output reads the
/// keyboard. What cannot be opened so (another user's terminal) is replaced by `/dev/null`, and so is what could not be written.
///
/// A socket cannot be opened anew. Through it comes what its peer, the client, writes to the server's errors, which is nothing.
fn write_only(fd: OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    let is_socket = SFlag::from_bits_truncate(fstat(&fd)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK;
    match flags & OFlag::O_ACCMODE {
        OFlag::O_WRONLY => Ok(fd),
        _ if is_socket => Ok(fd),
        OFlag::O_RDWR => {
            let path = paths::own(fd.as_fd());
            let flags = OFlag::O_WRONLY | OFlag::O_NOCTTY | OFlag::O_APPEND | OFlag::O_CLOEXEC;
            // Without waiting for a modem or a reader. The flag is this open file's alone.
            let again = open(&path, flags | OFlag::O_NONBLOCK, Mode::empty());
            match again.and_then(|fd| fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_APPEND)).map(|_| fd)) {
                Ok(fd) => Ok(fd),
                Err(_) => null(),
            }
        }
        _ => null(),
    }
}

/// Whether this is a socket that sends to addresses of the sender's choice. Connected streams do not.
fn leads_elsewhere(fd: BorrowedFd<'_>) -> bool {
    let Ok(kind) = getsockopt(&fd, sockopt::SockType) else { return false };
    match sys::socket_domain(fd) {
        Ok(libc::AF_UNIX) => !matches!(kind, SockType::Stream | SockType::SeqPacket),
        Ok(libc::AF_INET | libc::AF_INET6) => kind != SockType::Stream,
        Ok(_) | Err(_) => true,
    }
}

fn null() -> io::Result<OwnedFd> {
    OpenOptions::new().write(true).open("/dev/null").map(OwnedFd::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, socketpair};

    #[test]
    fn sockets_that_send_anywhere_are_known() {
        let pair = |kind| socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap().0;
        for (fd, want) in [
            (pair(SockType::Stream), false),
            (pair(SockType::SeqPacket), false),
            (pair(SockType::Datagram), true),
            (std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(), true),
            (std::net::TcpListener::bind("127.0.0.1:0").unwrap().into(), false),
            (null().unwrap(), false),
        ] {
            assert_eq!(leads_elsewhere(fd.as_fd()), want, "{fd:?}");
        }
    }

    #[test]
    fn output_can_be_written_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        std::fs::write(&file, "before\n").unwrap();
        let opened = |read, write| OwnedFd::from(OpenOptions::new().read(read).write(write).open(&file).unwrap());
        let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let (_reader, pipe) = nix::unistd::pipe().unwrap();
        for (name, fd, access, same) in [
            ("file", opened(false, true), OFlag::O_WRONLY, true),
            ("file for both", opened(true, true), OFlag::O_WRONLY, true),
            ("file to read", opened(true, false), OFlag::O_WRONLY, false),
            ("pipe", pipe, OFlag::O_WRONLY, true),
            ("socket", pair.0, OFlag::O_RDWR, true),
            ("terminal", nix::pty::openpty(None, None).unwrap().slave, OFlag::O_WRONLY, true),
        ] {
            let what = |fd: &OwnedFd| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).unwrap();
            let before = what(&fd);
            let after = write_only(fd).unwrap();
            let flags = OFlag::from_bits_retain(fcntl(&after, FcntlArg::F_GETFL).unwrap());
            let got = (flags & OFlag::O_ACCMODE, flags.contains(OFlag::O_NONBLOCK), what(&after) == before);
            assert_eq!(got, (access, false, same), "{name}");
        }
        nix::unistd::write(write_only(opened(true, true)).unwrap(), b"after\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before\nafter\n");
    }
}
