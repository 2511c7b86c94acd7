//! Many entries, two at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    sync::{Mutex, PoisonError, mpsc},
};

use firedoor_model::EntryId;

use super::{Outcome, Verified};
use crate::{catalog::Clients, env::Env};

/// A server mostly waits for the network or one core, and is started twice. More of them would be slow together, and what
/// is slow is given back.
const AT_A_TIME: usize = 2;

/// What is said while entries are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is being checked.
    Begun(EntryId),
    /// It was.
    Done(Outcome),
}

/// Checks all of them, and calls `said` as each begins and ends; outcomes as they came. One that `check` gives
/// up has none. What may be one server under several names is never started twice at once: it may have one port.
pub fn several(
    groups: Vec<Vec<EntryId>>,
    check: impl Fn(&EntryId) -> Option<Outcome> + Sync,
    mut said: impl FnMut(&Progress),
) -> Vec<Outcome> {
    let waiting = Mutex::new(groups.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut outcomes = Vec::new();
    std::thread::scope(|scope| {
        let (sender, progress) = mpsc::channel();
        for _ in 0..AT_A_TIME {
            let (sender, next, check) = (sender.clone(), &next, &check);
            scope.spawn(move || {
                while let Some(group) = next() {
                    for entry in group {
                        // Nobody listens only when this thread's scope is being left.
                        let _ = sender.send(Progress::Begun(entry.clone()));
                        let _ = check(&entry).map(|outcome| sender.send(Progress::Done(outcome)));
                    }
                }
            });
        }
        drop(sender);
        for step in progress {
            said(&step);
            if let Progress::Done(outcome) = step {
                outcomes.push(outcome);
            }
        }
    });
    outcomes
}

impl Clients {
    /// The entries, those together that may be one server: of one name, or started by one command.
    pub fn by_server(
        &self,
        env: &Env<'_>,
        entries: &[EntryId],
        base: &BTreeMap<OsString, OsString>,
    ) -> Vec<Vec<EntryId>> {
        let line = |id: &EntryId| Some(self.invocations(env, id, base).ok()?.direct?).map(|d| (d.command, d.args));
        grouped(entries.iter().map(|id| (id.clone(), line(id))))
    }

    /// Gives entries back, and says so of each.
    pub(super) fn given_back(&self, env: &Env<'_>, entries: &BTreeSet<EntryId>, reason: &str) -> Vec<Outcome> {
        let plan = self.plan_restore(env, entries);
        let results = self.apply(env, &plan);
        let became = |entry: &EntryId| {
            let failed = results.iter().filter(|r| r.entries.contains(entry)).find_map(|r| r.result.as_ref().err());
            let changed =
                results.iter().filter_map(|r| r.result.as_ref().ok()).any(|applied| applied.changed.contains(entry));
            let why = match (changed, failed) {
                (true, None) => return Verified::RolledBack { reason: reason.to_owned() },
                (_, Some(e)) => e.to_string(),
                (false, None) => {
                    let skipped = plan.skipped.iter().find(|s| s.id == *entry).map(|s| s.reason.clone());
                    let unread = plan.problems.first().map(|p| p.problem.message.clone());
                    skipped.or(unread).unwrap_or_else(|| "its file changed meanwhile".into())
                }
            };
            Verified::Stuck { reason: format!("{reason}, and it could not be given back: {why}") }
        };
        entries.iter().map(|entry| Outcome { entry: entry.clone(), verified: became(entry) }).collect()
    }
}

/// Gives entries back that were not checked to the end.
pub fn give_back_unchecked(clients: &Clients, env: &Env<'_>, entries: &BTreeSet<EntryId>) -> Vec<Outcome> {
    clients.given_back(env, entries, "the check was interrupted before it was seen to answer")
}

type Line = Option<(String, Vec<String>)>;

fn grouped(entries: impl Iterator<Item = (EntryId, Line)>) -> Vec<Vec<EntryId>> {
    let mut groups: Vec<Vec<(EntryId, Line)>> = Vec::new();
    for (id, line) in entries {
        let like =
            |(other, theirs): &(EntryId, Line)| other.server() == id.server() || (line.is_some() && *theirs == line);
        // It may show that what stood apart belongs together.
        let (mut same, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.iter().any(like));
        same.push(vec![(id, line)]);
        groups = apart;
        groups.push(same.concat());
    }
    groups.into_iter().map(|group| group.into_iter().map(|(id, _)| id).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    fn ids(names: &[&str]) -> Vec<EntryId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn one_server_under_several_names_is_one_group() {
        let line = |text: &str| Some((text.to_owned(), Vec::new()));
        let all = ids(&["a/user/x", "a/user/y", "b/user/z", "c/user/x", "b/user/none", "c/user/none2"]);
        let lines = [line("1"), line("2"), line("3"), line("2"), None, None];
        let groups = grouped(all.iter().cloned().zip(lines));
        let want = [
            ids(&["b/user/z"]),
            // The last says that the first two are one.
            ids(&["a/user/x", "a/user/y", "c/user/x"]),
            ids(&["b/user/none"]),
            ids(&["c/user/none2"]),
        ];
        assert_eq!(groups, want);
    }

    #[test]
    fn two_are_checked_at_once_and_each_is_told_as_it_comes() {
        let all = ids(&["a/user/1", "a/user/2", "a/user/3", "a/user/4"]);
        // Nobody passes it alone.
        let both = Barrier::new(2);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let check = |id: &EntryId| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            both.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            // One is given up.
            (id.server() != "3").then(|| Outcome { entry: id.clone(), verified: Verified::Same { tools: 1 } })
        };
        let (mut begun, mut done) = (0, 0);
        let outcomes = several(all.iter().map(|id| vec![id.clone()]).collect(), check, |step| match step {
            Progress::Begun(_) => begun += 1,
            Progress::Done(_) => done += 1,
        });
        assert_eq!((begun, done, outcomes.len(), most.into_inner()), (4, 3, 3, 2));
    }
}
