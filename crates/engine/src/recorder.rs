//! The store, from the event loop: one thread owns the database, ordinary audit rows travel to it in batches.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use firedoor_ipc::command::Row;
use firedoor_model::audit::Event;
use firedoor_store::{Store, StoreError, StoredEvent};
use tokio::sync::{broadcast, oneshot};

/// Ordinary rows wait at most this long.
const BATCH: Duration = Duration::from_millis(100);
/// Rows that wait are written at once when there are this many.
const BATCH_ROWS: usize = 512;
/// Rows that could not be written are kept up to this number, the oldest first.
const MAX_KEPT: usize = 20_000;
/// Rows a slow follower of the log may lag behind.
const FOLLOW: usize = 1024;

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// Writes the audit log and everything else that lasts.
pub struct Recorder {
    jobs: mpsc::Sender<Job>,
    waiting: RefCell<Vec<Event>>,
    timer: Cell<bool>,
    shared: Arc<Shared>,
}

struct Shared {
    rows: broadcast::Sender<Row>,
    /// Rows that the database did not take, and why.
    kept: Mutex<(Vec<Event>, Option<String>)>,
}

/// The store's thread has ended, or the database refused.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The database refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread is gone: it panicked.
    #[error("the thread that writes the database has ended; restart the engine")]
    Thread,
}

impl Recorder {
    /// Starts the thread.
    pub fn start(mut store: Store) -> std::io::Result<Rc<Self>> {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new().name("store".into()).spawn(move || {
            while let Ok(job) = queue.recv() {
                job(&mut store);
            }
        })?;
        let shared = Shared { rows: broadcast::Sender::new(FOLLOW), kept: Mutex::default() };
        Ok(Rc::new(Self { jobs, waiting: RefCell::default(), timer: Cell::new(false), shared: Arc::new(shared) }))
    }

    /// Does something with the store, after every row recorded so far.
    pub async fn with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, RecorderError> {
        self.flush();
        let (done, result) = oneshot::channel();
        self.jobs
            .send(Box::new(move |store| {
                // The asker may have gone; the work is done all the same.
                let _ = done.send(work(store));
            }))
            .map_err(|_| RecorderError::Thread)?;
        Ok(result.await.map_err(|_| RecorderError::Thread)??)
    }

    /// Writes a row before anything else happens: for questions, blocks and answers.
    pub async fn commit(&self, event: Event) -> Result<(), RecorderError> {
        let shared = self.shared.clone();
        self.with(move |store| {
            let stored = store.append(std::slice::from_ref(&event));
            match stored {
                Ok(rows) => {
                    shared.publish(rows);
                    Ok(())
                }
                Err(e) => {
                    shared.keep(vec![event], &e);
                    Err(e)
                }
            }
        })
        .await
    }

    /// Writes a row soon.
    pub fn record(self: &Rc<Self>, event: Event) {
        let count = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push(event);
            waiting.len()
        };
        if count >= BATCH_ROWS {
            self.flush();
        } else if !self.timer.replace(true) {
            let this = self.clone();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(BATCH).await;
                this.timer.set(false);
                this.flush();
            });
        }
    }

    /// Hands what waits to the thread.
    pub fn flush(&self) {
        let rows = self.waiting.take();
        if rows.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        let job: Job = Box::new(move |store| shared.append(store, rows));
        // Without its thread nothing can be written; `problem` says so.
        let _ = self.jobs.send(job);
    }

    /// New rows, as they are written.
    pub fn follow(&self) -> broadcast::Receiver<Row> {
        self.shared.rows.subscribe()
    }

    /// What keeps the log from being written, if anything does.
    pub fn problem(&self) -> Option<String> {
        let kept = self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, why) = &*kept;
        why.as_ref().map(|why| format!("{} audit rows could not be written and are kept in memory: {why}", rows.len()))
    }
}

impl Shared {
    /// Appends rows, those kept from earlier failures first.
    fn append(&self, store: &mut Store, rows: Vec<Event>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = std::mem::take(&mut kept.0);
        all.extend(rows);
        match store.append(&all) {
            Ok(stored) => {
                kept.1 = None;
                drop(kept);
                self.publish(stored);
            }
            Err(e) => {
                all.truncate(MAX_KEPT);
                *kept = (all, Some(e.to_string()));
            }
        }
    }

    fn keep(&self, rows: Vec<Event>, why: &StoreError) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.extend(rows);
        kept.0.truncate(MAX_KEPT);
        kept.1 = Some(why.to_string());
    }

    fn publish(&self, stored: Vec<StoredEvent>) {
        for row in stored {
            // Nobody may be following.
            let _ = self.rows.send(to_row(row));
        }
    }
}

/// A stored event as commands see it.
pub fn to_row(stored: StoredEvent) -> Row {
    Row { seq: stored.seq, hash: stored.hash, event: stored.event }
}
