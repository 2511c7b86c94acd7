//! The system's notifications: which directories they are asked for, and what they bring.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use notify::{
    Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind, RenameMode},
};

use super::places::Name;
use crate::sys;

/// More touched files than this are as good as all.
const MAX_TOUCHED: usize = 256;

/// What was touched since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Files by the names that are watched.
    pub paths: BTreeSet<PathBuf>,
    /// Watched directories that are gone or have another name now.
    pub gone: BTreeSet<PathBuf>,
    /// Nobody can say what all was touched.
    pub all: bool,
    /// When the first and the last of it came.
    pub when: Option<(Instant, Instant)>,
}

#[derive(Debug, Default)]
struct Mail {
    touched: Touched,
    names: BTreeMap<PathBuf, BTreeSet<Name>>,
    ended: bool,
}

/// Where notifications arrive. Whoever waits here sleeps until there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Arc<(Mutex<Mail>, Condvar)>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something was touched, at most so long, and says when; `None` when the time is over.
    pub fn wait(&self, limit: Option<Duration>) -> Result<Option<(Instant, Instant)>, Ended> {
        let mut mail = self.lock();
        let end = limit.map(|limit| Instant::now() + limit);
        loop {
            if mail.ended {
                return Err(Ended);
            }
            if let Some(when) = mail.touched.when {
                return Ok(Some(when));
            }
            let bell = &self.0.1;
            mail = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => bell.wait(mail).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => bell.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Sleeps until then, and says when the last touch was meanwhile.
    pub fn sleep_until(&self, due: Instant) -> Result<Option<(Instant, Instant)>, Ended> {
        let mut mail = self.lock();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            match (mail.ended, left) {
                (true, _) => return Err(Ended),
                (false, Duration::ZERO) => return Ok(mail.touched.when),
                // Touches in between do not ring: only the end does.
                (false, left) => mail = self.0.1.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0,
            }
        }
    }

    /// Takes what was touched.
    pub fn take(&self) -> Touched {
        mem::take(&mut self.lock().touched)
    }

    /// Whoever waits is to stop.
    pub fn end(&self) {
        self.lock().ended = true;
        self.0.1.notify_all();
    }

    /// Sorts one notification in. Runs on the thread of the notifications, so it must be quick.
    fn take_in(&self, event: notify::Result<Event>) {
        let mut mail = self.lock();
        let Mail { touched, names, .. } = &mut *mail;
        let mut matters = false;
        match event {
            Err(_) => (touched.all, matters) = (true, true),
            Ok(event) if event.need_rescan() => (touched.all, matters) = (true, true),
            Ok(event) if !writes(&event.kind) => {}
            Ok(event) => {
                for path in event.paths {
                    if names.contains_key(&path) && leaves(&event.kind) {
                        touched.gone.insert(path);
                        (touched.all, matters) = (true, true);
                    } else if named(names, &path) {
                        matters = true;
                        if touched.paths.len() < MAX_TOUCHED {
                            touched.paths.insert(path);
                        } else {
                            touched.all = true;
                        }
                    }
                }
            }
        }
        if matters {
            let now = Instant::now();
            match &mut touched.when {
                Some((_, last)) => *last = now,
                None => {
                    touched.when = Some((now, now));
                    self.0.1.notify_all();
                }
            }
        }
    }
}

fn named(names: &BTreeMap<PathBuf, BTreeSet<Name>>, path: &Path) -> bool {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return false };
    names.get(dir).is_some_and(|all| all.iter().any(|n| n.takes(name)))
}

/// Opening and reading a file changes nothing; we do it ourselves.
fn writes(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}

/// Of a directory that is watched: whether its name is another's from now on.
fn leaves(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)))
}

/// Nobody listens any more.
pub(super) struct Ended;

/// The directories that are watched.
pub(super) struct Tree {
    watcher: Result<Box<dyn Watcher + Send>, String>,
    mail: Inbox,
    watched: BTreeSet<PathBuf>,
}

/// What came of asking for directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether there is one that was not watched before.
    pub more: bool,
    /// How many could not be watched.
    pub failed: usize,
    /// Why the first of them could not.
    pub why: Option<String>,
}

impl Tree {
    /// Nothing is watched yet.
    pub fn new(mail: Inbox) -> Self {
        let into = mail.clone();
        let watcher = RecommendedWatcher::new(move |event| into.take_in(event), Config::default());
        let watcher = watcher.map(|own| Box::new(own) as Box<dyn Watcher + Send>).map_err(|e| in_words(&e));
        Self { watcher, mail, watched: BTreeSet::new() }
    }

    /// How many directories are watched.
    pub fn len(&self) -> usize {
        self.watched.len()
    }

    /// Watches these directories from now on, and no others. `gone` are those that are not what they were.
    pub fn watch(&mut self, names: BTreeMap<PathBuf, BTreeSet<Name>>, gone: &BTreeSet<PathBuf>) -> Asked {
        let mut asked = Asked::default();
        let watcher = match &mut self.watcher {
            Ok(watcher) => watcher,
            Err(why) => return Asked { failed: names.len(), why: Some(why.clone()), ..asked },
        };
        let wanted: BTreeSet<PathBuf> = names.keys().cloned().collect();
        // Before they are asked for: what comes at once must be known.
        self.mail.lock().names = names;
        self.watched.retain(|dir| {
            let keep = wanted.contains(dir) && !gone.contains(dir);
            if !keep {
                // A directory that is gone is not watched any more: that is an error here, and as it should be.
                let _ = watcher.unwatch(dir);
            }
            keep
        });
        let mut new: VecDeque<PathBuf> = wanted.into_iter().filter(|dir| !self.watched.contains(dir)).collect();
        while let Some(dir) = new.pop_front() {
            match watcher.watch(&dir, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    asked.more = true;
                    self.watched.insert(dir);
                }
                // It was there a moment ago; its parent says when it is there again.
                Err(e) if gone_meanwhile(&e) => {}
                Err(e) => {
                    // The bound is the user's, over all programs: asking for the others would only take time.
                    let rest = if full(&e) { mem::take(&mut new).len() } else { 0 };
                    asked.failed += 1 + rest;
                    asked.why.get_or_insert_with(|| in_words(&e));
                }
            }
        }
        asked
    }
}

fn full(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(e) => sys::no_more_watches(e),
        _ => false,
    }
}

fn gone_meanwhile(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(e) => e.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// inotify(7): `fs.inotify.max_user_watches` and `max_user_instances` bound what one user may watch.
fn in_words(error: &notify::Error) -> String {
    match &error.kind {
        _ if full(error) => "the system allows no more watched directories (raise fs.inotify.max_user_watches)".into(),
        ErrorKind::Io(e) if sys::no_more_watchers(e) => {
            "the system allows no more programs that watch (raise fs.inotify.max_user_instances)".into()
        }
        ErrorKind::Io(e) => e.to_string(),
        _ => "the system does not allow it".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use notify::{EventHandler, WatcherKind, event::Flag};

    use super::*;

    /// Watches so many directories, and fails then as the system does.
    struct Bounded(usize, fn() -> notify::Error);

    impl Watcher for Bounded {
        fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
            Err(notify::Error::generic("made by the test"))
        }

        fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
            self.0 = self.0.checked_sub(1).ok_or_else(self.1)?;
            Ok(())
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            Ok(())
        }

        fn kind() -> WatcherKind {
            WatcherKind::NullWatcher
        }
    }

    fn os(number: i32) -> notify::Error {
        notify::Error::io(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn what_the_system_does_not_watch_is_counted_and_explained() {
        let names: BTreeMap<_, _> = (0..5).map(|n| (PathBuf::from(format!("/d/{n}")), BTreeSet::new())).collect();
        let check = |error: fn() -> notify::Error, failed: usize, why: &str| {
            let watcher: Box<dyn Watcher + Send> = Box::new(Bounded(2, error));
            let mut tree = Tree { watcher: Ok(watcher), mail: Inbox::default(), watched: BTreeSet::new() };
            let asked = tree.watch(names.clone(), &BTreeSet::new());
            assert_eq!((tree.len(), asked.failed, asked.more), (2, failed, true), "{why}");
            assert!(asked.why.unwrap_or_default().contains(why), "{why}");
        };
        check(|| notify::Error::new(ErrorKind::MaxFilesWatch), 3, "max_user_watches");
        check(|| os(nix::libc::ENOSPC), 3, "max_user_watches");
        check(|| os(nix::libc::EMFILE), 3, "max_user_instances");
        check(|| os(nix::libc::EACCES), 3, "denied");
        // It has just gone: nothing is missing.
        check(|| os(nix::libc::ENOENT), 0, "");
        let mut none = Tree { watcher: Err("no".into()), mail: Inbox::default(), watched: BTreeSet::new() };
        let asked = none.watch(names, &BTreeSet::new());
        assert_eq!((none.len(), asked.failed, asked.why), (0, 5, Some("no".to_owned())));
    }

    #[test]
    fn where_notifications_were_lost_everything_is_looked_at() {
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        for event in [Ok(lost), Err(os(nix::libc::EIO))] {
            let inbox = Inbox::default();
            inbox.take_in(event);
            assert!(matches!(inbox.wait(Some(Duration::ZERO)), Ok(Some(_))));
            let touched = inbox.take();
            assert!(touched.all && touched.paths.is_empty());
            assert!(matches!(inbox.wait(Some(Duration::ZERO)), Ok(None)));
        }
    }

    #[test]
    fn more_touched_files_than_are_kept_are_as_good_as_all() {
        let inbox = Inbox::default();
        let name: BTreeSet<Name> = [Name::Like("*".into())].into();
        inbox.lock().names = [(PathBuf::from("/d"), name)].into();
        for n in 0..=MAX_TOUCHED {
            let event = Event::new(EventKind::Modify(ModifyKind::Any)).add_path(format!("/d/{n}").into());
            inbox.take_in(Ok(event));
        }
        let touched = inbox.take();
        assert!(touched.all && touched.paths.len() == MAX_TOUCHED);
    }
}
