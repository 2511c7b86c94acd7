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

use super::{Kind, Remainder, Way, classify, register};
use crate::sys;

/// Bytes in the queue from which on [`Outlet::room`] waits.
const HIGH_WATER: usize = 1 << 20;

/// Longest message that a pipe takes whole or not at all (PIPE_BUF, pipe(7)).
const ATOMIC: usize = 4096;

/// What is done when a message is sure to reach its reader whole, whatever becomes of this engine.
pub type Done = Box<dyn FnOnce()>;

/// A descriptor that is written.
pub struct Outlet(Rc<Inner>);

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

    /// Waits until everything is written that was to be, or the reader is gone.
    pub async fn written(&self) {
        self.0.until(|inner| inner.queued.get() == 0).await;
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
                    send(fd.get_ref().as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | sys::NO_SIGNAL)
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
                match remainder.pass_on(pipe, left) {
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
mod tests;
