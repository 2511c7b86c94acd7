//! Reading.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::{
        socket::{MsgFlags, recv},
        uio::pread,
    },
    unistd::{Whence, ftruncate, lseek},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    Lines,
    direct::{Kind, Way, classify, register},
    reader::Reader,
};
use crate::sys;

/// Bytes moved into a log at once: what a pipe holds.
const MOVE: usize = 64 << 10;

/// A log longer than this is started anew when everything in it is dealt with. While something is not, the memory of what is
/// goes back in pieces of this length.
const LONG: u64 = 1 << 20;

/// What was read from a stream and is not dealt with: a file in memory that outlives the engine.
///
/// The kernel moves bytes from the stream into the file without their ever being in our memory only (splice(2)), and
/// its position, which belongs to the shared open file description, says how many. So an engine that is killed at any
/// instruction loses none.
pub struct Log {
    file: OwnedFd,
    /// Offset up to which bytes were given out.
    read: u64,
    /// Offset up to which bytes are in it.
    end: u64,
    /// Offset up to which its memory went back.
    freed: u64,
    /// Between a socket and the file, since splice needs a pipe at one end.
    between: Option<(OwnedFd, OwnedFd)>,
}

impl Log {
    /// Goes on with a log of which `done` bytes are dealt with.
    pub fn open(file: OwnedFd, between: Option<(OwnedFd, OwnedFd)>, done: u64) -> io::Result<Self> {
        let mut log = Self { file, read: 0, end: 0, freed: 0, between };
        while log.settle()? > 0 {}
        log.end = u64::try_from(lseek(&log.file, 0, Whence::SeekCur)?).unwrap_or_default();
        // A log that is shorter than what was dealt with has been started anew since.
        log.read = if done <= log.end { done } else { 0 };
        Ok(log)
    }

    /// Moves what is in between into the file.
    fn settle(&mut self) -> nix::Result<usize> {
        let Some((out, _)) = &self.between else { return Ok(0) };
        match sys::splice(out, &self.file, MOVE) {
            Err(Errno::EAGAIN) => Ok(0),
            other => other,
        }
    }

    /// Moves what `from` has into the file. Zero is the end of the stream.
    fn take(&mut self, from: &OwnedFd) -> nix::Result<usize> {
        let Some((_, into)) = &self.between else {
            let count = sys::splice(from, &self.file, MOVE)?;
            self.end += count as u64;
            return Ok(count);
        };
        let count = sys::splice(from, into, MOVE)?;
        let mut left = count;
        while left > 0 {
            left = left.saturating_sub(self.settle()?);
        }
        self.end += count as u64;
        Ok(count)
    }

    /// Gives out what is in the file already.
    fn give(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let at = i64::try_from(self.read).map_err(io::Error::other)?;
        let count = pread(&self.file, space, at)?;
        self.read += count as u64;
        Ok(count)
    }
}

/// A descriptor that is read.
pub struct Inlet {
    source: Source,
    log: Option<Log>,
}

enum Source {
    Socket(AsyncFd<OwnedFd>),
    Pipe(AsyncFd<OwnedFd>),
    Thread(Reader),
}

impl Inlet {
    /// Takes over a descriptor. Needs a running tokio runtime. What a thread reads cannot be logged.
    pub fn new(fd: OwnedFd, log: Option<Log>) -> io::Result<Self> {
        Ok(match classify(fd, Way::Read)? {
            Kind::Socket(fd) => {
                let log = log.filter(|log| log.between.is_some());
                Self { source: Source::Socket(register(fd, Interest::READABLE)?), log }
            }
            Kind::Pipe(fd) => {
                let log = log.map(|log| Log { between: None, ..log });
                Self { source: Source::Pipe(register(fd, Interest::READABLE)?), log }
            }
            Kind::Other(file) => Self { source: Source::Thread(Reader::start(file)?), log: None },
        })
    }

    /// Whether the next engine can go on from the log.
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Offset in the log up to which everything is dealt with, when `held` bytes of what was given out are not.
    pub fn done(&self, held: usize) -> u64 {
        self.log.as_ref().map_or(0, |log| log.read.saturating_sub(held as u64))
    }

    /// Whether the log has grown so much that some of it should go.
    pub fn is_long(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.read.saturating_sub(log.freed) > LONG)
    }

    /// Gives back the memory of a log's first `through` bytes, which nobody reads again. Offsets stay as they are.
    pub fn release(&mut self, through: u64) {
        let Some(log) = self.log.as_mut().filter(|log| through.saturating_sub(log.freed) > LONG) else { return };
        // From the start, because only whole pages go: the last one of the piece before is whole by now.
        if i64::try_from(through).is_ok_and(|length| sys::punch(&log.file, 0, length).is_ok()) {
            log.freed = through;
        }
    }

    /// Starts a long log anew, if everything in it is dealt with. True when it did: the ledger's offset is then zero.
    pub fn renew(&mut self, held: usize) -> bool {
        let Some(log) = self.log.as_mut().filter(|log| held == 0 && log.read == log.end && log.end > LONG) else {
            return false;
        };
        // In this order: a log that is shorter than the ledger says counts as started anew.
        if lseek(&log.file, 0, Whence::SeekSet).is_err() {
            return false;
        }
        let _ = ftruncate(&log.file, 0);
        (log.read, log.end, log.freed) = (0, 0, 0);
        true
    }

    /// Reads once into `lines`. Zero is the end of the stream.
    pub async fn read(&mut self, lines: &mut Lines) -> io::Result<usize> {
        let space = lines.space();
        let count = match (&mut self.source, &mut self.log) {
            (Source::Socket(fd) | Source::Pipe(fd), Some(log)) => {
                // splice takes all that a pipe has. Of a socket it takes no more pieces than the pipe in between has slots,
                // which says nothing.
                let whole = log.between.is_none();
                let emptied = |count| whole && count < MOVE;
                if log.read == log.end && when_ready(fd, |fd| log.take(fd), emptied).await? == 0 {
                    return Ok(0);
                }
                log.give(space)?
            }
            (Source::Socket(fd), None) => {
                let room = space.len();
                let take = |fd: &OwnedFd| recv(fd.as_raw_fd(), space, MsgFlags::MSG_DONTWAIT);
                when_ready(fd, take, |count| count < room).await?
            }
            (Source::Pipe(fd), None) => {
                let room = space.len();
                when_ready(fd, |fd| nix::unistd::read(fd, space), |count| count < room).await?
            }
            (Source::Thread(reader), _) => reader.read(space).await?,
        };
        lines.filled(count);
        Ok(count)
    }
}

/// Moves bytes from a descriptor once it has some. Zero is the end of the stream. `emptied` says of a count whether
/// nothing can be left: epoll will tell when there is something again, which saves the read that would only say so.
async fn when_ready(
    fd: &AsyncFd<OwnedFd>,
    mut take: impl FnMut(&OwnedFd) -> nix::Result<usize>,
    emptied: impl Fn(usize) -> bool,
) -> io::Result<usize> {
    loop {
        let mut ready = fd.readable().await?;
        match take(fd.get_ref()) {
            Ok(count) => {
                if count > 0 && emptied(count) {
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

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::Write,
        os::unix::{fs::FileTypeExt, net::UnixStream},
    };

    use super::*;
    use crate::io::Line;

    async fn all(inlet: &mut Inlet) -> String {
        let mut lines = Lines::new(1 << 20);
        let mut out = String::new();
        while inlet.read(&mut lines).await.unwrap() > 0 {
            while let Some((Line::Whole(line), _)) = lines.next() {
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
            assert_eq!(all(&mut Inlet::new(fd, None).unwrap()).await, want);
        }
    }

    #[tokio::test]
    async fn shared_descriptions_keep_their_flags() {
        let flags = |fd: &OwnedFd| nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        let (a, _b) = UnixStream::pair().unwrap();
        for fd in [OwnedFd::from(reader), OwnedFd::from(a)] {
            let before = flags(&fd);
            let _inlet = Inlet::new(fd.try_clone().unwrap(), None).unwrap();
            assert_eq!(flags(&fd), before);
        }
    }

    #[tokio::test]
    async fn a_log_keeps_what_an_engine_did_not_deal_with() {
        use nix::{
            fcntl::OFlag,
            sys::memfd::{MFdFlags, memfd_create},
            unistd::pipe2,
        };
        let memory = || memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
        let between = pipe2(OFlag::O_CLOEXEC).unwrap();
        let copy = || (between.0.try_clone().unwrap(), between.1.try_clone().unwrap());
        let (reader, mut writer) = io::pipe().unwrap();
        let (a, mut b) = UnixStream::pair().unwrap();
        for (fd, write) in
            [(OwnedFd::from(reader), &mut writer as &mut dyn Write), (OwnedFd::from(a), &mut b as &mut dyn Write)]
        {
            let file = memory();
            let log = |done| Log::open(file.try_clone().unwrap(), Some(copy()), done).unwrap();
            write.write_all(b"one\ntwo\nthr").unwrap();
            let mut first = Inlet::new(fd.try_clone().unwrap(), Some(log(0))).unwrap();
            let mut lines = Lines::new(100);
            first.read(&mut lines).await.unwrap();
            let (line, held) = lines.next().unwrap();
            assert_eq!(line, Line::Whole(b"one\n"));
            let done = first.done(held);
            assert_eq!(done, 4);
            // The first engine dies here. Bytes may still be between the socket and the file.
            drop(first);
            write.write_all(b"ee\n").unwrap();
            if !fd.try_clone().map(File::from).unwrap().metadata().unwrap().file_type().is_fifo() {
                sys::splice(&fd, &between.1, MOVE).unwrap();
            }
            let mut second = Inlet::new(fd.try_clone().unwrap(), Some(log(done))).unwrap();
            let mut lines = Lines::new(100);
            let mut got = Vec::new();
            while got.len() < 2 {
                second.read(&mut lines).await.unwrap();
                while let Some((Line::Whole(line), _)) = lines.next() {
                    got.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            assert_eq!(got, ["two\n", "three\n"]);
            assert!(!second.renew(lines.held()));
        }
    }
}
