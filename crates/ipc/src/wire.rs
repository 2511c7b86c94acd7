//! Frames on a stream socket: a header of five bytes (length of the body, little-endian `u32`; number of descriptors,
//! `u8`), then a JSON body. The descriptors ride as `SCM_RIGHTS` on the header's bytes (unix(7)).

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
};
use serde::{Serialize, de::DeserializeOwned};

/// Largest body, in bytes. A launch request carries an environment, which Linux bounds at 6 MiB with arguments.
pub const MAX_BODY: usize = 16 << 20;

/// Most descriptors in one frame.
pub const MAX_FDS: usize = 12;

const HEADER: usize = 5;

/// A socket whose other end is closed is an error and no signal; what arrives is not inherited.
#[cfg(target_os = "linux")]
const SENDING: MsgFlags = MsgFlags::MSG_NOSIGNAL;
#[cfg(target_os = "linux")]
const RECEIVING: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
/// macOS has neither flag. std sets SO_NOSIGPIPE on its sockets; the descriptors that arrive are marked one by one, and nothing
/// is started meanwhile by a thread that receives.
#[cfg(target_os = "macos")]
const SENDING: MsgFlags = MsgFlags::empty();
#[cfg(target_os = "macos")]
const RECEIVING: MsgFlags = MsgFlags::empty();

/// What can be wrong with a frame.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The peer closed the connection.
    #[error("the other side closed the connection")]
    Closed,
    /// Larger than [`MAX_BODY`] or with more than [`MAX_FDS`] descriptors.
    #[error("a frame is larger than the protocol allows")]
    TooLarge,
    /// Not the JSON that was expected.
    #[error("a frame does not hold the expected message: {0}")]
    Body(#[from] serde_json::Error),
    /// A frame promised descriptors that did not come.
    #[error("a frame came without its descriptors")]
    Descriptors,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Io(#[from] io::Error),
}

impl WireError {
    /// Whether the other side is gone.
    pub fn lost(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Io(e) => matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
            Self::TooLarge | Self::Body(_) | Self::Descriptors => false,
        }
    }
}

/// Encodes one message as a frame that announces `fds` descriptors.
pub fn encode<T: Serialize>(message: &T, fds: usize) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message)?;
    let body = frame.len() - HEADER;
    if body > MAX_BODY || fds > MAX_FDS {
        return Err(WireError::TooLarge);
    }
    let (length, count) = (u32::try_from(body).unwrap_or(u32::MAX), u8::try_from(fds).unwrap_or(u8::MAX));
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4] = count;
    Ok(frame)
}

/// Sends as much of `frame` as the socket takes, with the descriptors on its first byte. Returns the bytes taken; when
/// that is more than zero the descriptors went along. Retries on `EINTR`.
pub fn send(socket: BorrowedFd<'_>, frame: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(frame)], control, SENDING, None) {
            Err(Errno::EINTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

/// Collects frames from what [`Receiver::receive`] reads.
#[derive(Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    fds: VecDeque<OwnedFd>,
}

/// A whole frame.
pub struct Frame {
    body: Vec<u8>,
    /// Its descriptors.
    pub fds: Vec<OwnedFd>,
}

impl Frame {
    /// The message in it.
    pub fn message<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Receiver {
    /// Reads once from the socket. `Ok(0)` is the end of the stream. All descriptors are close-on-exec.
    #[expect(unsafe_code, reason = "descriptors from SCM_RIGHTS arrive as integers")]
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut chunk = [0; 16 << 10];
        let mut space = cmsg_space!([RawFd; MAX_FDS]);
        let mut slices = [IoSliceMut::new(&mut chunk)];
        let received = loop {
            match recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), RECEIVING) {
                Err(Errno::EINTR) => {}
                other => break other.map_err(io::Error::from)?,
            }
        };
        let count = received.bytes;
        let truncated = received.flags.contains(MsgFlags::MSG_CTRUNC);
        if let Ok(messages) = received.cmsgs() {
            for message in messages {
                if let ControlMessageOwned::ScmRights(raw) = message {
                    for fd in raw {
                        // SAFETY: the kernel has just put this descriptor into our table and nobody else knows it.
                        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                        #[cfg(target_os = "macos")]
                        nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
                        self.fds.push_back(fd);
                    }
                }
            }
        }
        if truncated || self.fds.len() > 2 * MAX_FDS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many descriptors in one frame"));
        }
        self.bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Takes the next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let count = usize::from(header[4]);
        if length > MAX_BODY || count > MAX_FDS {
            return Err(WireError::TooLarge);
        }
        if rest.len() < length {
            return Ok(None);
        }
        if self.fds.len() < count {
            return Err(WireError::Descriptors);
        }
        let body = rest[..length].to_vec();
        self.bytes.drain(..HEADER + length);
        Ok(Some(Frame { body, fds: self.fds.drain(..count).collect() }))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read, Write},
        os::{fd::AsFd, unix::net::UnixStream},
    };

    use super::*;

    #[test]
    fn frames_and_descriptors_arrive_together() {
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let first = encode(&"first", 1).unwrap();
        let second = encode(&"second", 0).unwrap();
        assert_eq!(send(a.as_fd(), &first, &[reader.as_fd()]).unwrap(), first.len());
        // The second frame arrives in two pieces.
        send(a.as_fd(), &second[..3], &[]).unwrap();
        let mut receiver = Receiver::default();
        receiver.receive(b.as_fd()).unwrap();
        let mut frame = receiver.next_frame().unwrap().unwrap();
        assert_eq!(frame.message::<String>().unwrap(), "first");
        writer.write_all(b"x").unwrap();
        drop(writer);
        let mut text = String::new();
        File::from(frame.fds.pop().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        receiver.receive(b.as_fd()).unwrap();
        assert!(receiver.next_frame().unwrap().is_none());
        send(a.as_fd(), &second[3..], &[]).unwrap();
        receiver.receive(b.as_fd()).unwrap();
        assert_eq!(receiver.next_frame().unwrap().unwrap().message::<String>().unwrap(), "second");
    }

    #[test]
    fn bad_frames_are_errors() {
        let check = |bytes: &[u8]| {
            let (a, b) = UnixStream::pair().unwrap();
            send(a.as_fd(), bytes, &[]).unwrap();
            let mut receiver = Receiver::default();
            receiver.receive(b.as_fd()).unwrap();
            receiver.next_frame().and_then(|f| f.map(|f| f.message::<String>()).transpose())
        };
        assert!(matches!(check(&[0xff, 0xff, 0xff, 0xff, 0]), Err(WireError::TooLarge)));
        assert!(matches!(check(&[0, 0, 0, 0, 200]), Err(WireError::TooLarge)));
        assert!(matches!(check(&[1, 0, 0, 0, 2, b'1']), Err(WireError::Descriptors)));
        assert!(matches!(check(&[1, 0, 0, 0, 0, b'{']), Err(WireError::Body(_))));
        assert!(matches!(check(&[1, 0, 0]), Ok(None)));
    }
}
