//! Writing: at once where the reader keeps up, from a queue where it does not.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd},
    rc::Rc,
};

use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, SpliceFFlags, fallocate, splice},
    sys::{
        socket::{MsgFlags, send},
        uio::pwrite,
    },
    unistd::{Whence, lseek},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{Notify, mpsc},
};

use super::{Kind, Way, classify, register};

/// Bytes in the queue from which on [`Outlet::room`] waits.
const HIGH_WATER: usize = 1 << 20;

/// Longest message that a pipe takes whole or not at all (PIPE_BUF, pipe(7)).
const ATOMIC: usize = 4096;

/// Messages in a [`Remainder`] begin at multiples of this, so that none shares a page with another.
const PAGE: u64 = 4096;

/// What is done when a message is sure to reach its reader whole, whatever becomes of this engine.
pub type Done = Box<dyn FnOnce()>;

/// A descriptor that is written.
pub struct Outlet(Rc<Inner>);

/// Where a long message waits while a pipe takes it piece by piece: a file in memory that outlives the engine.
///
/// The kernel moves the bytes from the file to the pipe (splice(2)), and the file's position, which belongs to the shared
/// open file description, says how many. So the next engine goes on at exactly the byte where this one was killed. The
/// pipe then holds the file's pages themselves, so a page is never written twice.
pub struct Remainder {
    file: OwnedFd,
    /// Where the message that is being written ends.
    end: Cell<u64>,
    /// Notes that end for the next engine.
    note: Box<dyn Fn(u64)>,
}

impl Remainder {
    /// Goes on with what an earlier engine left; `end` is what it noted last, zero for nothing. `note` is called with
    /// the end of each message that is begun.
    pub fn new(file: OwnedFd, end: u64, note: impl Fn(u64) + 'static) -> Self {
        Self { file, end: Cell::new(end), note: Box::new(note) }
    }

    fn position(&self) -> nix::Result<u64> {
        Ok(u64::try_from(lseek(&self.file, 0, Whence::SeekCur)?).unwrap_or_default())
    }

    /// Bytes that the pipe has not taken.
    fn left(&self) -> nix::Result<usize> {
        Ok(usize::try_from(self.end.get().saturating_sub(self.position()?)).unwrap_or(usize::MAX))
    }

    /// Puts a message into the file. From here on it reaches its reader.
    fn begin(&self, bytes: &[u8]) -> nix::Result<()> {
        let offset = |at: u64| i64::try_from(at).map_err(|_| Errno::EFBIG);
        let start = self.end.get().next_multiple_of(PAGE);
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        if start > 0 {
            // What the pipe still holds of it stays with the pipe.
            fallocate(&self.file, flags, 0, offset(start)?)?;
        }
        let mut done = 0;
        while done < bytes.len() {
            done += pwrite(&self.file, &bytes[done..], offset(start + done as u64)?)?;
        }
        // In this order: a position behind the noted end means that nothing is left.
        lseek(&self.file, offset(start)?, Whence::SeekSet)?;
        self.end.set(start + bytes.len() as u64);
        (self.note)(self.end.get());
        Ok(())
    }
}

struct Inner {
    /// `None` when closed or broken: then the descriptor is closed, too.
    sink: RefCell<Option<Sink>>,
    queue: RefCell<VecDeque<Item>>,
    /// Bytes of the queue's first element that are written already. Stays zero where there is a remainder.
    written: Cell<usize>,
    queued: Cell<usize>,
    state: Cell<State>,
    /// Something was queued, or closing was asked for.
    work: Notify,
    /// The queue got shorter, or the state changed.
    progress: Notify,
}

struct Item {
    bytes: Vec<u8>,
    done: Done,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Close when the queue is empty.
    Closing,
    /// We closed it, with everything written.
    Closed,
    /// The reader is gone.
    Broken,
}

#[derive(Clone)]
enum Sink {
    Socket(Rc<AsyncFd<OwnedFd>>),
    Pipe(Rc<AsyncFd<OwnedFd>>, Option<Rc<Remainder>>),
    Thread(mpsc::Sender<Vec<u8>>),
}

impl Outlet {
    /// Takes over a descriptor. Needs a running tokio `LocalSet`. Only a pipe makes use of a remainder.
    pub fn new(fd: OwnedFd, remainder: Option<Remainder>) -> io::Result<Self> {
        let mut thread = None;
        let mut left = 0;
        let sink = match classify(fd, Way::Write)? {
            Kind::Socket(fd) => Sink::Socket(Rc::new(register(fd, Interest::WRITABLE)?)),
            Kind::Pipe(fd) => {
                left = remainder.as_ref().map_or(Ok(0), Remainder::left)?;
                Sink::Pipe(Rc::new(register(fd, Interest::WRITABLE)?), remainder.map(Rc::new))
            }
            Kind::Other(file) => {
                let (sender, broken) = writer_thread(file)?;
                thread = Some(broken);
                Sink::Thread(sender)
            }
        };
        let inner = Rc::new(Inner {
            sink: RefCell::new(Some(sink)),
            queue: RefCell::default(),
            written: Cell::new(0),
            queued: Cell::new(left),
            state: Cell::new(State::Open),
            work: Notify::new(),
            progress: Notify::new(),
        });
        let weak = Rc::downgrade(&inner);
        tokio::task::spawn_local(async move {
            let Some(inner) = weak.upgrade() else { return };
            match thread {
                None => inner.serve().await,
                Some(broken) => inner.serve_thread(broken).await,
            }
        });
        Ok(Self(inner))
    }

    /// Whether a message that is cut off by the engine's death is completed by the next one.
    pub fn completes(&self) -> bool {
        matches!(&*self.0.sink.borrow(), Some(Sink::Pipe(_, Some(_))))
    }

    /// Writes `bytes` after everything sent before: now as far as the descriptor takes them, the rest as soon as it does.
    /// After the reader has gone, or after [`Outlet::close`], bytes are dropped, and `done` with them.
    pub fn send(&self, bytes: &[u8], done: Done) {
        let inner = &self.0;
        if inner.state.get() != State::Open || bytes.is_empty() {
            return;
        }
        let direct = bytes.len() <= ATOMIC || !self.completes();
        let mut written = 0;
        if direct && inner.queued.get() == 0 {
            match inner.try_write(bytes) {
                Ok(count) => written = count,
                Err(Errno::EAGAIN) => {}
                Err(_) => return inner.enter(State::Broken),
            }
        }
        if written == bytes.len() {
            return done();
        }
        inner.queued.set(inner.queued.get() + bytes.len() - written);
        inner.queue.borrow_mut().push_back(Item { bytes: bytes[written..].to_vec(), done });
        match inner.flush() {
            Ok(_) => inner.work.notify_one(),
            Err(_) => inner.enter(State::Broken),
        }
    }

    /// Closes the descriptor once everything is written.
    pub fn close(&self) {
        if self.0.state.get() == State::Open {
            self.0.enter(State::Closing);
            self.0.work.notify_one();
        }
    }

    /// Waits until the queue is short enough to go on.
    pub async fn room(&self) {
        if self.0.queued.get() > HIGH_WATER {
            self.0.until(|inner| inner.queued.get() <= HIGH_WATER || inner.state.get() == State::Broken).await;
        }
    }

    /// Closes, and waits until that is done.
    pub async fn finish(&self) {
        self.close();
        self.finished().await;
    }

    /// Waits until it is closed, or the reader is gone.
    pub async fn finished(&self) {
        self.0.until(|inner| matches!(inner.state.get(), State::Closed | State::Broken)).await;
    }

    /// Waits until the reader is gone.
    pub async fn broken(&self) {
        self.0.until(|inner| inner.state.get() == State::Broken).await;
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        // Ends the task that serves the queue.
        self.close();
    }
}

impl Inner {
    fn enter(&self, state: State) {
        self.state.set(state);
        if matches!(state, State::Closed | State::Broken) {
            self.sink.take();
        }
        if state == State::Broken {
            self.queue.borrow_mut().clear();
            self.queued.set(0);
        }
        self.work.notify_one();
        self.progress.notify_waiters();
    }

    async fn until(&self, reached: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.progress.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached(self) {
                return;
            }
            changed.await;
        }
    }

    fn try_write(&self, bytes: &[u8]) -> nix::Result<usize> {
        loop {
            let outcome = match &*self.sink.borrow() {
                Some(Sink::Socket(fd)) => {
                    send(fd.get_ref().as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)
                }
                Some(Sink::Pipe(fd, _)) => nix::unistd::write(fd.get_ref(), bytes),
                Some(Sink::Thread(_)) => Err(Errno::EAGAIN),
                None => Err(Errno::EPIPE),
            };
            if outcome != Err(Errno::EINTR) {
                return outcome;
            }
        }
    }

    /// Writes until the descriptor takes no more. True when everything is written.
    fn flush(&self) -> nix::Result<bool> {
        let sink = self.sink.borrow().clone();
        match &sink {
            Some(Sink::Pipe(fd, Some(remainder))) => self.flush_whole(fd.get_ref(), remainder),
            Some(Sink::Socket(_) | Sink::Pipe(_, None)) => self.flush_pieces(),
            Some(Sink::Thread(_)) | None => Ok(false),
        }
    }

    /// Every message is either short, and goes whole or not at all, or goes through the remainder.
    fn flush_whole(&self, pipe: &OwnedFd, remainder: &Remainder) -> nix::Result<bool> {
        loop {
            let left = remainder.left()?;
            if left > 0 {
                match splice(&remainder.file, None, pipe, None, left, SpliceFFlags::SPLICE_F_NONBLOCK) {
                    Ok(count) => self.wrote(count),
                    Err(Errno::EAGAIN) => return Ok(false),
                    Err(Errno::EINTR) => {}
                    Err(e) => return Err(e),
                }
                continue;
            }
            let Some(Item { bytes, done }) = self.queue.borrow_mut().pop_front() else { return Ok(true) };
            if bytes.len() > ATOMIC {
                remainder.begin(&bytes)?;
                done();
                continue;
            }
            match self.try_write(&bytes) {
                Ok(count) => {
                    self.wrote(count);
                    done();
                }
                Err(Errno::EAGAIN) => {
                    self.queue.borrow_mut().push_front(Item { bytes, done });
                    return Ok(false);
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn flush_pieces(&self) -> nix::Result<bool> {
        loop {
            let mut queue = self.queue.borrow_mut();
            let Some(first) = queue.front() else { return Ok(true) };
            let from = self.written.get();
            match self.try_write(&first.bytes[from..]) {
                Ok(count) if from + count == first.bytes.len() => {
                    self.written.set(0);
                    let item = queue.pop_front();
                    drop(queue);
                    self.wrote(count);
                    if let Some(item) = item {
                        (item.done)();
                    }
                }
                Ok(count) => {
                    self.written.set(from + count);
                    drop(queue);
                    self.wrote(count);
                }
                Err(Errno::EAGAIN) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
    }

    fn wrote(&self, count: usize) {
        self.queued.set(self.queued.get().saturating_sub(count));
        self.progress.notify_waiters();
    }

    /// Serves queue and hang-up of a socket or a pipe.
    async fn serve(&self) {
        let Some(Sink::Socket(fd) | Sink::Pipe(fd, _)) = self.sink.borrow().clone() else { return };
        loop {
            match self.flush() {
                Err(_) => return self.enter(State::Broken),
                Ok(true) if self.state.get() == State::Closing => return self.enter(State::Closed),
                Ok(_) => {}
            }
            if self.state.get() == State::Broken {
                return;
            }
            tokio::select! {
                () = self.work.notified() => {}
                // Readiness is cleared each time, so that this wakes on changes only: the descriptor takes bytes again, or
                // its reader has gone.
                ready = fd.writable() => match ready {
                    Ok(mut guard) => {
                        if guard.ready().is_write_closed() {
                            return self.enter(State::Broken);
                        }
                        guard.clear_ready();
                    }
                    Err(_) => return self.enter(State::Broken),
                },
            }
        }
    }

    /// Moves the queue to the writing thread.
    async fn serve_thread(&self, mut broken: mpsc::Receiver<()>) {
        let Some(Sink::Thread(send)) = self.sink.borrow().clone() else { return };
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                Some(Item { bytes, done }) => {
                    let count = bytes.len();
                    if send.send(bytes).await.is_err() {
                        return self.enter(State::Broken);
                    }
                    self.wrote(count);
                    done();
                }
                None if self.state.get() == State::Closing => {
                    // The thread writes what it has, then ends; its last act closes the channel.
                    self.sink.take();
                    drop(send);
                    broken.recv().await;
                    return self.enter(State::Closed);
                }
                None => tokio::select! {
                    () = self.work.notified() => {}
                    _ = broken.recv() => return self.enter(State::Broken),
                },
            }
        }
    }
}

/// Starts the thread that writes to a terminal, a file or a device. The second channel closes when it has ended.
fn writer_thread(mut file: File) -> io::Result<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>)> {
    let (send, mut chunks) = mpsc::channel::<Vec<u8>>(2);
    let (ended, broken) = mpsc::channel(1);
    std::thread::Builder::new().name("write".into()).stack_size(128 << 10).spawn(move || {
        let _ended = ended;
        while let Some(chunk) = chunks.blocking_recv() {
            if file.write_all(&chunk).is_err() {
                return;
            }
        }
    })?;
    Ok((send, broken))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Seek},
        os::unix::net::UnixStream,
    };

    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn what_is_sent_arrives_in_order_when_the_reader_is_slow() {
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let outlet = Outlet::new(writer.into(), None).unwrap();
                let mut want = Vec::new();
                for i in 0..5_000u32 {
                    let line = format!("{i}:{}\n", "x".repeat(600));
                    outlet.send(line.as_bytes(), Box::new(|| {}));
                    want.extend_from_slice(line.as_bytes());
                }
                let read = tokio::task::spawn_blocking(move || {
                    let mut got = Vec::new();
                    reader.read_to_end(&mut got).unwrap();
                    got
                });
                outlet.room().await;
                outlet.0.until(|i| i.queued.get() == 0).await;
                outlet.close();
                drop(outlet);
                assert!(read.await.unwrap() == want);
            })
            .await;
    }

    #[tokio::test]
    async fn a_reader_that_goes_is_noticed_while_idle() {
        LocalSet::new()
            .run_until(async {
                let (reader, writer) = io::pipe().unwrap();
                let (a, b) = UnixStream::pair().unwrap();
                let (pipe, socket) = (Outlet::new(writer.into(), None).unwrap(), Outlet::new(a.into(), None).unwrap());
                pipe.send(b"x", Box::new(|| {}));
                socket.send(b"x", Box::new(|| {}));
                assert!(pipe.0.state.get() == State::Open && socket.0.state.get() == State::Open);
                drop((reader, b));
                pipe.broken().await;
                socket.broken().await;
            })
            .await;
    }

    #[tokio::test]
    async fn the_next_engine_goes_on_at_the_byte_where_this_one_was_killed() {
        use nix::sys::memfd::{MFdFlags, memfd_create};
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let file = memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
                let end = Rc::new(Cell::new(0));
                let remainder = || {
                    let noted = end.clone();
                    Remainder::new(file.try_clone().unwrap(), end.get(), move |end| noted.set(end))
                };
                let open = || Outlet::new(writer.try_clone().unwrap().into(), Some(remainder())).unwrap();
                let mut want = Vec::new();
                let mut got = Vec::new();
                let mut chunk = vec![0; 7001];
                for round in 0..40u8 {
                    // More than the pipe holds, then a new engine.
                    let outlet = open();
                    let message = vec![b'a' + round % 26; 150_000 + usize::from(round)];
                    let sure = Rc::new(Cell::new(false));
                    let told = sure.clone();
                    outlet.0.until(|i| i.queued.get() == 0).await;
                    outlet.send(&message, Box::new(move || told.set(true)));
                    assert!(sure.get());
                    want.extend(message);
                    outlet.0.sink.take();
                    outlet.0.state.set(State::Broken);
                    drop(outlet);
                    let next = open();
                    while next.0.queued.get() > 0 {
                        let count = reader.read(&mut chunk).unwrap();
                        got.extend_from_slice(&chunk[..count]);
                        tokio::task::yield_now().await;
                        let _ = next.0.flush();
                    }
                    next.0.sink.take();
                    next.0.state.set(State::Broken);
                }
                drop(writer);
                let rest = tokio::task::spawn_blocking(move || {
                    let mut rest = Vec::new();
                    reader.read_to_end(&mut rest).map(|_| rest)
                });
                got.extend(rest.await.unwrap().unwrap());
                assert!(got == want);
                assert!(nix::sys::stat::fstat(&file).unwrap().st_blocks * 512 < 1 << 20);
            })
            .await;
    }

    #[tokio::test]
    async fn closing_closes_the_descriptor_while_the_outlet_lives() {
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let outlet = Outlet::new(writer.into(), None).unwrap();
                outlet.send(b"last", Box::new(|| {}));
                outlet.close();
                let read = tokio::task::spawn_blocking(move || {
                    let mut text = String::new();
                    reader.read_to_string(&mut text).map(|_| text)
                });
                assert_eq!(read.await.unwrap().unwrap(), "last");
                drop(outlet);
            })
            .await;
    }

    #[tokio::test]
    async fn files_and_devices_are_written_by_a_thread() {
        LocalSet::new()
            .run_until(async {
                let mut file = tempfile::tempfile().unwrap();
                let outlet = Outlet::new(file.try_clone().unwrap().into(), None).unwrap();
                outlet.send(b"one\n", Box::new(|| {}));
                outlet.send(b"two\n", Box::new(|| {}));
                outlet.close();
                outlet.0.until(|i| i.state.get() == State::Closed).await;
                file.rewind().unwrap();
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(text, "one\ntwo\n");
                let full = Outlet::new(File::options().write(true).open("/dev/full").unwrap().into(), None).unwrap();
                full.send(b"x", Box::new(|| {}));
                full.broken().await;
            })
            .await;
    }
}
