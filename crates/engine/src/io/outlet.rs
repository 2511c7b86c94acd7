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
    sys::socket::{MsgFlags, send},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{Notify, mpsc},
};

use super::{Kind, Way, classify, register};

/// Bytes in the queue from which on [`Outlet::room`] waits.
const HIGH_WATER: usize = 1 << 20;

/// A descriptor that is written.
pub struct Outlet(Rc<Inner>);

struct Inner {
    /// `None` when closed or broken: then the descriptor is closed, too.
    sink: RefCell<Option<Sink>>,
    queue: RefCell<VecDeque<Vec<u8>>>,
    /// Bytes of the queue's first element that are written already.
    written: Cell<usize>,
    queued: Cell<usize>,
    state: Cell<State>,
    /// Something was queued, or closing was asked for.
    work: Notify,
    /// The queue got shorter, or the state changed.
    progress: Notify,
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
    Pipe(Rc<AsyncFd<OwnedFd>>),
    Thread(mpsc::Sender<Vec<u8>>),
}

impl Outlet {
    /// Takes over a descriptor. Needs a running tokio `LocalSet`.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let mut thread = None;
        let sink = match classify(fd, Way::Write)? {
            Kind::Socket(fd) => Sink::Socket(Rc::new(register(fd, Interest::WRITABLE)?)),
            Kind::Pipe(fd) => Sink::Pipe(Rc::new(register(fd, Interest::WRITABLE)?)),
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
            queued: Cell::new(0),
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

    /// Writes `bytes` after everything sent before: now as far as the descriptor takes them, the rest as soon as it does.
    /// After the reader has gone, or after [`Outlet::close`], bytes are dropped. True when nothing is left to write.
    pub fn send(&self, bytes: &[u8]) -> bool {
        let inner = &self.0;
        if inner.state.get() != State::Open || bytes.is_empty() {
            return true;
        }
        let mut done = 0;
        if inner.queue.borrow().is_empty() {
            match inner.try_write(bytes) {
                Ok(count) => done = count,
                Err(Errno::EAGAIN) => {}
                Err(_) => {
                    inner.enter(State::Broken);
                    return true;
                }
            }
        }
        if done < bytes.len() {
            inner.queued.set(inner.queued.get() + bytes.len() - done);
            inner.queue.borrow_mut().push_back(bytes[done..].to_vec());
            inner.work.notify_one();
        }
        done == bytes.len()
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

    /// Waits until everything is written, or the reader is gone.
    pub async fn drained(&self) {
        self.0.until(|inner| inner.queued.get() == 0 || inner.state.get() == State::Broken).await;
    }

    /// Closes, and waits until that is done.
    pub async fn finish(&self) {
        self.close();
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
                Some(Sink::Pipe(fd)) => nix::unistd::write(fd.get_ref(), bytes),
                Some(Sink::Thread(_)) => Err(Errno::EAGAIN),
                None => Err(Errno::EPIPE),
            };
            if outcome != Err(Errno::EINTR) {
                return outcome;
            }
        }
    }

    /// Writes from the queue until the descriptor takes no more. True when the queue is empty.
    fn flush(&self) -> nix::Result<bool> {
        loop {
            let mut queue = self.queue.borrow_mut();
            let Some(first) = queue.front() else { return Ok(true) };
            let from = self.written.get();
            match self.try_write(&first[from..]) {
                Ok(count) => {
                    self.queued.set(self.queued.get().saturating_sub(count));
                    if from + count == first.len() {
                        self.written.set(0);
                        queue.pop_front();
                    } else {
                        self.written.set(from + count);
                    }
                }
                Err(Errno::EAGAIN) => return Ok(false),
                Err(e) => return Err(e),
            }
            drop(queue);
            self.progress.notify_waiters();
        }
    }

    /// Serves queue and hang-up of a socket or a pipe.
    async fn serve(&self) {
        let Some(Sink::Socket(fd) | Sink::Pipe(fd)) = self.sink.borrow().clone() else { return };
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
                Some(bytes) => {
                    let count = bytes.len();
                    if send.send(bytes).await.is_err() {
                        return self.enter(State::Broken);
                    }
                    self.queued.set(self.queued.get().saturating_sub(count));
                    self.progress.notify_waiters();
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
                let outlet = Outlet::new(writer.into()).unwrap();
                let mut want = Vec::new();
                for i in 0..5_000u32 {
                    let line = format!("{i}:{}\n", "x".repeat(600));
                    outlet.send(line.as_bytes());
                    want.extend_from_slice(line.as_bytes());
                }
                let read = tokio::task::spawn_blocking(move || {
                    let mut got = Vec::new();
                    reader.read_to_end(&mut got).unwrap();
                    got
                });
                outlet.room().await;
                outlet.drained().await;
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
                let (pipe, socket) = (Outlet::new(writer.into()).unwrap(), Outlet::new(a.into()).unwrap());
                pipe.send(b"x");
                socket.send(b"x");
                assert!(pipe.0.state.get() == State::Open && socket.0.state.get() == State::Open);
                drop((reader, b));
                pipe.broken().await;
                socket.broken().await;
            })
            .await;
    }

    #[tokio::test]
    async fn closing_closes_the_descriptor_while_the_outlet_lives() {
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let outlet = Outlet::new(writer.into()).unwrap();
                outlet.send(b"last");
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
                let outlet = Outlet::new(file.try_clone().unwrap().into()).unwrap();
                outlet.send(b"one\n");
                outlet.send(b"two\n");
                outlet.close();
                outlet.0.until(|i| i.state.get() == State::Closed).await;
                file.rewind().unwrap();
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(text, "one\ntwo\n");
                let full = Outlet::new(File::options().write(true).open("/dev/full").unwrap().into()).unwrap();
                full.send(b"x");
                full.broken().await;
            })
            .await;
    }
}
