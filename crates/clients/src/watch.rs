//! Notices what becomes of clients' configurations while it happens.
//!
//! ```text
//! places ──> tree ──────> clock ──────> seen ──────> change
//!  (names in  (the        (burst →      (what the    (two moments →
//!  directories) system)    one look)     files say)   what happened)
//! ```
//!
//! One thread, which sleeps until something that matters was touched. Where not everything can be watched, the rest is
//! looked at again and again, slowly, and [`Watching`] says so.

mod change;
mod clock;
mod places;
mod seen;
mod tree;

use std::{
    io, thread,
    time::{Duration, Instant},
};

pub use change::Change;

use self::{
    places::Places,
    seen::Seen,
    tree::{Ended, Inbox, Touched, Tree},
};
use crate::{catalog::Clients, env::Env, journal::Journal};

/// Most directories that are watched: a fourth of what the smallest usual bound allows one user (inotify(7), Linux
/// before 5.11: 8192).
const MAX_WATCHES: usize = 2048;

/// How often what cannot be watched is looked at.
pub const SLOWLY: Duration = Duration::from_secs(60);

/// How often directories may appear while they are asked for.
const ROUNDS: u32 = 4;

/// How far watching reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// How many directories are watched.
    pub directories: usize,
    /// How many are looked at every [`SLOWLY`] only.
    pub slowly: usize,
    /// Why, if there are any.
    pub why: Option<String>,
}

/// What is told.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// What happened; at first, what Firedoor protected and was dropped while nobody watched.
    pub changes: Vec<Change>,
    /// How far watching reaches now.
    pub watching: Watching,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch(Inbox);

impl Watch {
    /// Starts watching. `tell` hears of the start, and of each change after that; it must not wait for long.
    pub fn start(
        clients: &'static Clients,
        env: Env<'static>,
        tell: impl FnMut(News) + Send + 'static,
    ) -> io::Result<Self> {
        Self::bounded(clients, env, MAX_WATCHES, tell)
    }

    fn bounded(
        clients: &'static Clients,
        env: Env<'static>,
        most: usize,
        mut tell: impl FnMut(News) + Send + 'static,
    ) -> io::Result<Self> {
        let inbox = Inbox::default();
        let mail = inbox.clone();
        thread::Builder::new().name("configurations".into()).spawn(move || {
            let tree = Tree::new(mail.clone());
            let watcher = Watcher { clients, env, tree, mail, most, seen: Seen::default(), reach: Watching::default() };
            // It ends when nobody listens any more.
            let Err(Ended) = watcher.run(&mut tell);
        })?;
        Ok(Self(inbox))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Watcher {
    clients: &'static Clients,
    env: Env<'static>,
    tree: Tree,
    mail: Inbox,
    most: usize,
    seen: Seen,
    reach: Watching,
}

impl Watcher {
    fn run(mut self, tell: &mut impl FnMut(News)) -> Result<std::convert::Infallible, Ended> {
        let begin = Instant::now();
        self.look_at_all(&Touched::default());
        let changes = change::at_first(&self.seen);
        tell(News { changes, watching: self.reach.clone() });
        let mut rested = clock::rested(Instant::now(), begin.elapsed());
        loop {
            let slowly = (self.reach.slowly > 0).then_some(SLOWLY);
            let mut when = self.mail.wait(slowly)?;
            // More may come while we wait for quiet.
            while let Some((first, last)) = when {
                let due = clock::due(first, last, rested);
                if due <= Instant::now() {
                    break;
                }
                when = self.mail.sleep_until(due)?;
            }
            let begin = Instant::now();
            let reach = self.reach.clone();
            let changes = self.look(when.is_none());
            rested = clock::rested(Instant::now(), begin.elapsed());
            if !changes.is_empty() || reach != self.reach {
                tell(News { changes, watching: self.reach.clone() });
            }
        }
    }

    /// Looks at what was touched, or at everything.
    fn look(&mut self, slowly: bool) -> Vec<Change> {
        let touched = self.mail.take();
        if !slowly
            && !touched.all
            && let Some(changes) = self.look_at_some(&touched)
        {
            return changes;
        }
        let mut before = std::mem::take(&mut self.seen);
        self.look_at_all(&touched);
        self.seen.keep_unread(&mut before);
        change::between(&before, &self.seen)
    }

    /// Looks at the files that were touched, if they are all known; clients write some of them every few seconds.
    /// `None` when there may be more to it.
    fn look_at_some(&mut self, touched: &Touched) -> Option<Vec<Change>> {
        let journal = Journal::open(&self.env);
        let (mut old, mut new) = (Seen::default(), Seen::default());
        for path in &touched.paths {
            let before = new.files.len();
            // Several clients may share one file, through links.
            for (name, seen) in self.seen.files.iter().filter(|(_, f)| f.target.as_ref() == Some(path)) {
                let now = self.clients.file_seen(&self.env, &journal, seen.file.clone())?;
                if now.target != seen.target || (now.problem.is_none() && now.projects != seen.projects) {
                    return None;
                }
                new.files.insert(name.clone(), now);
            }
            if new.files.len() == before {
                return None;
            }
        }
        for name in new.files.keys() {
            old.files.extend(self.seen.files.remove_entry(name));
        }
        new.keep_unread(&mut old);
        let changes = change::between(&old, &new);
        self.seen.files.append(&mut new.files);
        Some(changes)
    }

    /// Watches everything that there is to watch, and looks at it.
    fn look_at_all(&mut self, touched: &Touched) {
        let mut gone = touched.gone.clone();
        for _ in 0..ROUNDS {
            let (names, left_out) = Places::of(self.clients, &self.env).at_most(self.most);
            let asked = self.tree.watch(names, &gone);
            gone.clear();
            let full = (left_out > 0).then(|| format!("Firedoor watches at most {} directories", self.most));
            self.reach =
                Watching { directories: self.tree.len(), slowly: left_out + asked.failed, why: asked.why.or(full) };
            // Once nothing new has come up, whatever appears from now on is noticed.
            if !asked.more {
                break;
            }
        }
        self.seen = self.clients.seen(&self.env);
    }
}

#[cfg(test)]
mod tests;
