//! The store, from the event loop: one thread owns the database, ordinary audit rows travel to it in batches.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use firedoor_ipc::command::Row;
use firedoor_model::{
    Untrusted,
    audit::{Event, What},
};
use firedoor_store::{MAX_EVENT, ReadOnly, Store, StoreError, StoredEvent};
use tokio::sync::{broadcast, oneshot};

/// Ordinary rows wait at most this long.
const BATCH: Duration = Duration::from_millis(100);
/// Rows that wait are written at once when there are this many.
const BATCH_ROWS: usize = 512;
/// Rows that could not be written are kept up to this number, the oldest first.
const MAX_KEPT: usize = 20_000;
/// Rows on their way to the database from which on [`Recorder::room`] waits.
const MAX_ON_THE_WAY: usize = 4 * BATCH_ROWS;
/// Characters that are left of a name in an event that is too long.
const SHORT: usize = 256;
/// Rows a slow follower of the log may lag behind.
const FOLLOW: usize = 1024;

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// What the thread is asked for.
enum Work {
    /// To use the database.
    Do(Job),
    /// To close it, say so and end.
    Close(oneshot::Sender<()>),
}

/// Writes the audit log and everything else that lasts.
pub struct Recorder {
    /// The database's file.
    file: PathBuf,
    /// A second connection for long reading, which must not keep rows from being written. Opened when it is first needed.
    reader: Arc<Mutex<Option<Store<ReadOnly>>>>,
    jobs: mpsc::Sender<Work>,
    waiting: RefCell<Vec<Event>>,
    timer: Cell<bool>,
    shared: Arc<Shared>,
}

struct Shared {
    rows: broadcast::Sender<Row>,
    /// Rows that were handed to the thread and are not dealt with yet.
    on_the_way: AtomicUsize,
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
        let (jobs, queue) = mpsc::channel::<Work>();
        let file = store.path().to_owned();
        thread::Builder::new().name("store".into()).spawn(move || {
            while let Ok(work) = queue.recv() {
                match work {
                    Work::Do(job) => job(&mut store),
                    Work::Close(done) => {
                        drop(store);
                        // Whoever asked may have gone.
                        let _ = done.send(());
                        return;
                    }
                }
            }
        })?;
        let shared =
            Shared { rows: broadcast::Sender::new(FOLLOW), on_the_way: AtomicUsize::default(), kept: Mutex::default() };
        let reader = Arc::default();
        Ok(Rc::new(Self {
            file,
            reader,
            jobs,
            waiting: RefCell::default(),
            timer: Cell::new(false),
            shared: Arc::new(shared),
        }))
    }

    /// Does something with the store, after every row recorded so far.
    pub async fn with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, RecorderError> {
        self.flush();
        self.at_once(work).await
    }

    /// Does something that has nothing to do with rows, and so need not wait until those recorded so far are on the disk.
    pub async fn at_once<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, RecorderError> {
        let (done, result) = oneshot::channel();
        self.jobs
            .send(Work::Do(Box::new(move |store| {
                // The asker may have gone; the work is done all the same.
                let _ = done.send(work(store));
            })))
            .map_err(|_| RecorderError::Thread)?;
        Ok(result.await.map_err(|_| RecorderError::Thread)??)
    }

    /// Reads, as it stands after every row recorded so far, without keeping anybody from writing meanwhile.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Store<ReadOnly>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, RecorderError> {
        self.with(|_| Ok(())).await?;
        let (reader, file) = (self.reader.clone(), self.file.clone());
        let read = move || {
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            let store = match reader.take() {
                Some(store) => store,
                None => Store::open_read_only(&file)?,
            };
            work(reader.insert(store))
        };
        Ok(tokio::task::spawn_blocking(read).await.map_err(|_| RecorderError::Thread)??)
    }

    /// Writes a row before anything else happens: for questions, blocks and answers.
    pub async fn commit(&self, event: Event) -> Result<(), RecorderError> {
        let shared = self.shared.clone();
        self.with(move |store| {
            let mut event = [event];
            match write(store, &mut event) {
                Ok(rows) => {
                    shared.publish(rows);
                    Ok(())
                }
                Err(e) => {
                    shared.keep(event.into(), &e);
                    Err(e)
                }
            }
        })
        .await
    }

    /// Does something with the store that puts itself on record.
    pub async fn on_record<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<(R, Vec<StoredEvent>), StoreError> + Send + 'static,
    ) -> Result<R, RecorderError> {
        let shared = self.shared.clone();
        self.with(move |store| {
            let (done, rows) = work(store)?;
            shared.publish(rows);
            Ok(done)
        })
        .await
    }

    /// Writes a row soon. Noise of one session that comes before that is one row, and so is a failure that comes
    /// again: a server must not push everything else out of the log with lines of two bytes.
    pub fn record(self: &Rc<Self>, event: Event) {
        let count = {
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.iter_mut().any(|row| joined(row, &event)) {
                waiting.push(event);
            }
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

    /// Waits while the database is behind, so that what causes rows faster than they can be written has to wait itself.
    pub async fn room(&self) {
        while self.shared.on_the_way.load(Ordering::Relaxed) > MAX_ON_THE_WAY {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Hands what waits to the thread.
    pub fn flush(&self) {
        let rows = self.waiting.take();
        if rows.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        let count = rows.len();
        shared.on_the_way.fetch_add(count, Ordering::Relaxed);
        let job: Job = Box::new(move |store| {
            shared.append(store, rows);
            shared.on_the_way.fetch_sub(count, Ordering::Relaxed);
        });
        // Without its thread nothing can be written; `problem` says so.
        let _ = self.jobs.send(Work::Do(job));
    }

    /// Writes whatever waits and closes the database, so that the next engine can open it. What cannot be written now is
    /// lost with us, and [`Recorder::problem`] has said so.
    pub async fn close(&self) {
        self.flush();
        let (done, closed) = oneshot::channel();
        // Without its thread it is closed already.
        let _ = self.jobs.send(Work::Close(done));
        let _ = closed.await;
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
        match write(store, &mut all) {
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

/// Appends events. One that is too long is shortened: it must not keep the others from being written, for ever.
fn write(store: &mut Store, events: &mut [Event]) -> Result<Vec<StoredEvent>, StoreError> {
    match store.append(events) {
        Err(StoreError::Refused { .. }) => {
            events.iter_mut().for_each(shorten);
            store.append(events)
        }
        other => other,
    }
}

fn shorten(event: &mut Event) {
    let length = |event: &Event| serde_json::to_vec(event).map_or(usize::MAX, |text| text.len());
    if length(event) <= MAX_EVENT {
        return;
    }
    if let What::Judged { method, subject, findings, .. } = &mut event.what {
        *method = Untrusted::new(method.visible(SHORT));
        *subject = subject.take().map(|s| Untrusted::new(s.visible(SHORT)));
        findings.iter_mut().for_each(|finding| finding.evidence.clear());
    }
    if length(event) > MAX_EVENT {
        event.what = What::Failed { reason: "an event was too long for the audit log".into() };
    }
}

/// Adds noise to a row of the same session's noise, and the same failure to the one before it.
fn joined(row: &mut Event, event: &Event) -> bool {
    let same = (&row.entry, row.session) == (&event.entry, event.session);
    match (&mut row.what, &event.what) {
        (What::Noise { bytes, lines }, What::Noise { bytes: more, lines: further }) if same => {
            *bytes = bytes.saturating_add(*more);
            *lines = lines.saturating_add(*further);
            true
        }
        (What::Failed { reason }, What::Failed { reason: again }) => same && reason == again,
        _ => false,
    }
}

/// A stored event as commands see it.
pub fn to_row(stored: StoredEvent) -> Row {
    Row { seq: stored.seq, hash: stored.hash, event: stored.event }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Millis, Verdict, audit::What};
    use tokio::task::LocalSet;

    use super::*;

    fn event(session: u64, what: What) -> Event {
        Event { at: Millis(1), entry: None, session: Some(session), client: None, what }
    }

    /// The rows that recording these events leaves.
    async fn recorded(events: Vec<Event>) -> (Vec<What>, Option<String>) {
        LocalSet::new()
            .run_until(async {
                let dir = tempfile::tempdir().unwrap();
                let store = Store::open(&dir.path().join("state/firedoor.db"), Millis(1)).unwrap().store;
                let recorder = Recorder::start(store).unwrap();
                events.into_iter().for_each(|e| recorder.record(e));
                let rows = recorder.with(|store| store.events(&firedoor_store::Query::default())).await.unwrap();
                recorder.room().await;
                (rows.into_iter().map(|row| row.event.what).collect(), recorder.problem())
            })
            .await
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_is_shortened_and_the_rest_is_written() {
        let called = |name: String| What::Judged {
            method: "tools/call".into(),
            subject: Some(Untrusted::new(name)),
            verdict: Verdict::Block,
            reference: None,
            rule: None,
            findings: Vec::new(),
        };
        let failed = |reason: String| What::Failed { reason };
        let long = "x".repeat(2 << 20);
        let events = vec![
            event(1, called("before".into())),
            event(1, called(long.clone())),
            event(1, failed(long)),
            event(1, called("after".into())),
        ];
        let (rows, problem) = recorded(events).await;
        assert_eq!(rows.len(), 4);
        assert_eq!((&rows[0], &rows[3]), (&called("before".into()), &called("after".into())));
        assert!(
            matches!(&rows[1], What::Judged { verdict: Verdict::Block, subject: Some(s), .. } if s.raw().len() < 300)
        );
        assert_eq!(rows[2], failed("an event was too long for the audit log".into()));
        assert_eq!(problem, None);
    }

    #[tokio::test]
    async fn noise_of_one_session_is_one_row() {
        let noise = |bytes, lines| What::Noise { bytes, lines };
        let failed = || What::Failed { reason: "again".into() };
        let mut events: Vec<_> = (0..1000).flat_map(|_| [event(1, noise(2, 1)), event(1, failed())]).collect();
        events.push(event(2, noise(5, 1)));
        events.push(event(1, noise(2, 1)));
        assert_eq!(recorded(events).await, (vec![noise(2002, 1001), failed(), noise(5, 1)], None));
    }
}
