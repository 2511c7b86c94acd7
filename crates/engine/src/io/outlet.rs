//! Writing: at once where the reader keeps up, from a queue where it does not.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    rc::Rc,
};

use firedoor_ipc::wire::Descriptor;
use tokio::sync::{Notify, mpsc};

#[cfg(unix)]
use super::Remainder;

#[cfg_attr(unix, path = "outlet/direct.rs")]
#[cfg_attr(windows, path = "outlet/absent.rs")]
mod direct;

#[cfg(windows)]
pub use direct::Remainder;
use direct::{Direct, Opened};

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
    Direct(Direct),
    Thread(mpsc::Sender<Vec<u8>>),
}

impl Outlet {
    /// Takes over a descriptor. Needs a running tokio `LocalSet`. Only a pipe makes use of a remainder.
    pub fn new(fd: Descriptor, remainder: Option<Remainder>) -> io::Result<Self> {
        let mut thread = None;
        let mut left = 0;
        let sink = match direct::open(fd, remainder)? {
            Opened::Direct(direct) => {
                left = direct.left()?;
                Sink::Direct(direct)
            }
            Opened::File(file) => {
                let (sender, written) = writer_thread(file)?;
                thread = Some(written);
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
                Some(written) => inner.serve_thread(written).await,
            }
        });
        Ok(Self(inner))
    }

    /// Whether a message that is cut off by the engine's death is completed by the next one.
    pub fn completes(&self) -> bool {
        matches!(&*self.0.sink.borrow(), Some(Sink::Direct(direct)) if direct.completes())
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
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
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

    /// Whether everything is written that was to be.
    pub fn is_empty(&self) -> bool {
        self.0.queued.get() == 0
    }

    /// Whether what is sent is dropped: it is closed, or the reader has gone.
    pub fn is_gone(&self) -> bool {
        matches!(self.0.state.get(), State::Closed | State::Broken)
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
        self.0.until(|_| self.is_empty()).await;
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

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let outcome = match &*self.sink.borrow() {
                Some(Sink::Direct(direct)) => direct.write(bytes),
                Some(Sink::Thread(_)) => Err(io::ErrorKind::WouldBlock.into()),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            };
            match outcome {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes until the descriptor takes no more. True when everything is written.
    fn flush(&self) -> io::Result<bool> {
        let sink = self.sink.borrow().clone();
        match &sink {
            Some(Sink::Direct(direct)) if direct.completes() => self.flush_whole(direct),
            Some(Sink::Direct(_)) => self.flush_pieces(),
            Some(Sink::Thread(_)) | None => Ok(false),
        }
    }

    /// Every message is either short, and goes whole or not at all, or goes through the remainder.
    fn flush_whole(&self, pipe: &Direct) -> io::Result<bool> {
        loop {
            let left = pipe.left()?;
            if left > 0 {
                match pipe.pass_on(left) {
                    Ok(count) => self.wrote(count),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
                continue;
            }
            let Some(Item { bytes, done }) = self.queue.borrow_mut().pop_front() else { return Ok(true) };
            if bytes.len() > ATOMIC {
                pipe.begin(&bytes)?;
                done();
                continue;
            }
            match self.try_write(&bytes) {
                Ok(count) => {
                    self.wrote(count);
                    done();
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.queue.borrow_mut().push_front(Item { bytes, done });
                    return Ok(false);
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn flush_pieces(&self) -> io::Result<bool> {
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
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
    }

    fn wrote(&self, count: usize) {
        self.queued.set(self.queued.get().saturating_sub(count));
        self.progress.notify_waiters();
    }

    /// Serves queue and hang-up of what is written directly.
    async fn serve(&self) {
        let Some(Sink::Direct(direct)) = self.sink.borrow().clone() else { return };
        let mut full = None;
        loop {
            full = match (self.flush(), full) {
                (Ok(true), _) if self.state.get() == State::Closing => return self.enter(State::Closed),
                (Ok(true), _) => None,
                (Ok(false), Some(full)) => Some(full),
                (Ok(false), None) => match direct.full() {
                    Ok(full) => Some(full),
                    Err(_) => return self.enter(State::Broken),
                },
                (Err(_), _) => return self.enter(State::Broken),
            };
            if self.state.get() == State::Broken {
                return;
            }
            tokio::select! {
                () = self.work.notified() => {}
                lives = direct.changed(full.as_ref()) => if !lives {
                    return self.enter(State::Broken);
                },
            }
        }
    }

    /// Moves the queue to the writing thread, a message at a time: what is said to be written is.
    async fn serve_thread(&self, mut written: mpsc::Receiver<()>) {
        let Some(Sink::Thread(send)) = self.sink.borrow().clone() else { return };
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                Some(Item { bytes, done }) => {
                    let count = bytes.len();
                    if send.send(bytes).await.is_err() || written.recv().await.is_none() {
                        return self.enter(State::Broken);
                    }
                    self.wrote(count);
                    done();
                }
                None if self.state.get() == State::Closing => {
                    // The thread ends, and its last act closes the descriptor and the channel.
                    self.sink.take();
                    drop(send);
                    written.recv().await;
                    return self.enter(State::Closed);
                }
                None => tokio::select! {
                    () = self.work.notified() => {}
                    // Nothing was sent, so nothing is written: the thread has ended.
                    _ = written.recv() => return self.enter(State::Broken),
                },
            }
        }
    }
}

/// Starts the thread that writes to a terminal, a file or a device. The second channel hears of each message that is written, and closes when
/// the thread has ended.
fn writer_thread(file: File) -> io::Result<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>)> {
    let (send, mut chunks) = mpsc::channel::<Vec<u8>>(1);
    let (wrote, written) = mpsc::channel(1);
    std::thread::Builder::new().name("write".into()).stack_size(128 << 10).spawn(move || {
        // Dropped after the file, in whatever order closures drop what they hold.
        let wrote = wrote;
        let mut file = file;
        while let Some(chunk) = chunks.blocking_recv() {
            if file.write_all(&chunk).is_err() || wrote.blocking_send(()).is_err() {
                return;
            }
        }
    })?;
    Ok((send, written))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
