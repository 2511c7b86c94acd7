//! Reading.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{MsgFlags, recv},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
};

use super::{Kind, Lines, Way, classify, register};

/// Bytes that a thread hands over at once.
const CHUNK: usize = 64 << 10;

/// A descriptor that is read.
pub struct Inlet(Source);

enum Source {
    Socket(AsyncFd<OwnedFd>),
    Pipe(AsyncFd<OwnedFd>),
    Thread(Reader),
}

struct Reader {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    /// Closed when dropped: it ends the thread's wait.
    _cancel: io::PipeWriter,
}

impl Inlet {
    /// Takes over a descriptor. Needs a running tokio runtime.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self(match classify(fd, Way::Read)? {
            Kind::Socket(fd) => Source::Socket(register(fd, Interest::READABLE)?),
            Kind::Pipe(fd) => Source::Pipe(register(fd, Interest::READABLE)?),
            Kind::Other(file) => Source::Thread(Reader::start(file)?),
        }))
    }

    /// Reads once into `lines`. Zero is the end of the stream.
    pub async fn read(&mut self, lines: &mut Lines) -> io::Result<usize> {
        let space = lines.space();
        let count = match &mut self.0 {
            Source::Socket(fd) => {
                read_ready(fd, space, |fd, space| recv(fd.as_raw_fd(), space, MsgFlags::MSG_DONTWAIT)).await?
            }
            Source::Pipe(fd) => read_ready(fd, space, |fd, space| nix::unistd::read(fd, space)).await?,
            Source::Thread(reader) => reader.read(space).await?,
        };
        lines.filled(count);
        Ok(count)
    }
}

async fn read_ready(
    fd: &AsyncFd<OwnedFd>,
    space: &mut [u8],
    mut read: impl FnMut(&OwnedFd, &mut [u8]) -> nix::Result<usize>,
) -> io::Result<usize> {
    loop {
        let mut ready = fd.readable().await?;
        match read(fd.get_ref(), space) {
            Ok(count) => {
                // Less than asked for: the descriptor is empty, and epoll will tell when it no longer is. That saves the
                // read that would only say so.
                if count > 0 && count < space.len() {
                    ready.clear_ready();
                }
                return Ok(count);
            }
            Err(Errno::EAGAIN) => ready.clear_ready(),
            Err(Errno::EINTR) => {}
            // The peer of a socketpair closed with bytes of ours unread: the stream has ended all the same.
            Err(Errno::ECONNRESET) => return Ok(0),
            Err(e) => return Err(e.into()),
        }
    }
}

impl Reader {
    fn start(mut file: File) -> io::Result<Self> {
        let (cancelled, cancel) = io::pipe()?;
        let (send, chunks) = mpsc::channel(2);
        std::thread::Builder::new().name("read".into()).stack_size(128 << 10).spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                match wait(&file, &cancelled) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(e) => {
                        let _ = send.blocking_send(Err(e));
                        return;
                    }
                }
                let outcome = match file.read(&mut chunk) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    // A terminal that has hung up (termios(3)).
                    Err(e) if e.raw_os_error() == Some(nix::libc::EIO) => Ok(Vec::new()),
                    other => other.map(|n| chunk[..n].to_vec()),
                };
                let last = outcome.as_ref().map_or(true, Vec::is_empty);
                if send.blocking_send(outcome).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, rest: Vec::new(), _cancel: cancel })
    }

    async fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = match self.chunks.recv().await {
                Some(chunk) => chunk?,
                None => Vec::new(),
            };
        }
        let count = self.rest.len().min(space.len());
        space[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

/// Waits until `file` can be read. False when the wait was cancelled.
fn wait(file: &File, cancelled: &io::PipeReader) -> io::Result<bool> {
    let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLIN), PollFd::new(cancelled.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) => return Ok(fds[1].revents().is_none_or(|r| r.is_empty())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::net::UnixStream};

    use super::*;
    use crate::io::Line;

    async fn all(inlet: &mut Inlet) -> String {
        let mut lines = Lines::new(1 << 20);
        let mut out = String::new();
        while inlet.read(&mut lines).await.unwrap() > 0 {
            while let Some(Line::Whole(line)) = lines.next() {
                out.push_str(std::str::from_utf8(line).unwrap());
            }
        }
        out
    }

    #[tokio::test]
    async fn every_kind_of_descriptor_is_read_to_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (a, mut b) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        writer.write_all(b"pipe\n").unwrap();
        b.write_all(b"socket\n").unwrap();
        file.write_all(b"file\n").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        drop((writer, b));
        let null = File::open("/dev/null").unwrap();
        for (fd, want) in [
            (OwnedFd::from(reader), "pipe\n"),
            (OwnedFd::from(a), "socket\n"),
            (OwnedFd::from(file), "file\n"),
            (OwnedFd::from(null), ""),
        ] {
            assert_eq!(all(&mut Inlet::new(fd).unwrap()).await, want);
        }
    }

    #[tokio::test]
    async fn shared_descriptions_keep_their_flags() {
        let flags = |fd: &OwnedFd| nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        let (a, _b) = UnixStream::pair().unwrap();
        for fd in [OwnedFd::from(reader), OwnedFd::from(a)] {
            let before = flags(&fd);
            let _inlet = Inlet::new(fd.try_clone().unwrap()).unwrap();
            assert_eq!(flags(&fd), before);
        }
    }
}
