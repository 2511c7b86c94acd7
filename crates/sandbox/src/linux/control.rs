//! What caller, guardian and server-to-be tell each other before and while a server runs.
//!
//! Both channels are `SOCK_SEQPACKET` pairs, so that a message is whole and the other side's death is an end of file.
//! Nobody outside these three processes ever holds an end: the server's own is closed by `execve`.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockType},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) use crate::order::Order;

use crate::linux::sys;
use crate::{error::Stage, level::Quota};

/// Longest message. The longest honest one lists the skipped grants.
const MAX_MESSAGE: usize = 64 * 1024;

/// Guardian → caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// The server runs.
    Started {
        /// Its pid.
        pid: i32,
        /// Indices of grants that were skipped.
        skipped: Vec<u32>,
        /// Whether what was asked of the network is in force; otherwise there is none.
        judged: bool,
        /// How the limits of the whole tree are kept.
        quota: Quota,
    },
    /// The server did not start.
    Failed(Failure),
    /// The server ended, and nothing of its tree is left.
    Exited {
        /// As `waitpid` reports it: exit code, or the signal's number.
        code: i32,
        /// Whether `code` is a signal.
        by_signal: bool,
    },
}

/// Server-to-be → guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Progress {
    /// Try to take this descriptor, as the listener would be taken, and answer with one message: whether that worked.
    Trial(i32),
    /// The ruleset is built.
    Granted {
        /// Indices of grants that were skipped.
        skipped: Vec<u32>,
        /// Whether this process is in the control group that was made for it.
        in_group: bool,
    },
    /// The filter is installed; take its listener, then answer with one message: whether that worked.
    Listener(i32),
    /// This machine has no notifications, so the filter that allows no network is installed.
    Offline,
    /// `execve` comes next: an end of file after this means that it worked.
    Executing,
    /// Could not go on.
    Failed(Failure),
}

/// What went wrong, with an errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Where.
    pub at: Place,
    /// Why.
    pub errno: i32,
}

/// Where a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// A step.
    Stage(Stage),
    /// The working directory.
    Cwd,
    /// The grant of this index.
    Grant(u32),
    /// `execve`.
    Exec,
    /// The guardian's child ended without a word.
    Lost,
}

/// A connected pair, close-on-exec, clear of the numbers of standard input, output and error, which get replaced.
pub(crate) fn pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (a, b) = socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((sys::duplicate_above(a.as_fd(), 3)?, sys::duplicate_above(b.as_fd(), 3)?))
}

/// Sends one message. A peer that is gone is an error, never a signal.
pub(crate) fn send<T: Serialize>(fd: impl AsFd, message: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_MESSAGE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    loop {
        match socket::send(fd.as_fd().as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Receives one message; `None` when the peer is gone.
pub(crate) fn receive<T: DeserializeOwned>(fd: impl AsFd) -> io::Result<Option<T>> {
    let receive = |bytes: &mut [u8], flags| {
        loop {
            match socket::recv(fd.as_fd().as_raw_fd(), bytes, flags) {
                // The peer is gone and has not read all that we said, which is told once, before what it said last (`unix_release_sock`,
                // net/unix/af_unix.c).
                Err(Errno::EINTR | Errno::ECONNRESET) => {}
                other => return other,
            }
        }
    };
    // Its length first: most are short, and each page of a buffer that a freshly forked process touches is a fault.
    let length = match receive(&mut [], MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC) {
        Ok(0) => return Ok(None),
        Ok(n) if n > MAX_MESSAGE => return Err(io::ErrorKind::FileTooLarge.into()),
        Ok(n) => n,
        Err(e) => return Err(e.into()),
    };
    let mut bytes = vec![0; length];
    match receive(&mut bytes, MsgFlags::empty()) {
        Ok(0) => Ok(None),
        Ok(n) => Ok(Some(serde_json::from_slice(bytes.get(..n).unwrap_or_default())?)),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_hang_up_is_none() {
        let (a, b) = pair().unwrap();
        let sent = News::Started { pid: 7, skipped: (0..5000).collect(), judged: true, quota: Quota::Counted };
        send(&a, &sent).unwrap();
        assert_eq!(receive::<News>(&b).unwrap(), Some(sent));
        assert!(
            send(
                &a,
                &News::Started { pid: 7, skipped: vec![1_000_000_000; 10_000], judged: true, quota: Quota::Counted }
            )
            .is_err()
        );
        drop(a);
        assert_eq!(receive::<News>(&b).unwrap(), None);
        assert!(send(&b, &Order::Kill).is_err());
    }

    /// Whoever has not read everything is heard to the end all the same.
    #[test]
    fn last_words_are_heard() {
        let (a, b) = pair().unwrap();
        send(&b, &Order::Kill).unwrap();
        let last = Progress::Listener(3);
        send(&a, &last).unwrap();
        drop(a);
        assert_eq!(receive::<Progress>(&b).unwrap(), Some(last));
        assert_eq!(receive::<Progress>(&b).unwrap(), None);
    }
}
