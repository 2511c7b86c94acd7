//! Servers that have appeared, changed or lost Firedoor, and that the user could protect. Pure: time comes in.

use std::{collections::BTreeMap, mem};

use firedoor_clients::watch::Change;
use firedoor_ipc::command::Offer;
use firedoor_model::{EntryId, Millis, Untrusted, notice::Noticed};

/// Most offers kept; what is beyond stands in the log, and in `firedoor scan`.
const MOST: usize = 200;
/// Longest command line that is shown, in characters.
const LINE: usize = 400;

/// What could be protected, by entry.
#[derive(Debug, Default)]
pub struct Offers(BTreeMap<EntryId, Offer>);

impl Offers {
    /// Takes note of a change.
    pub fn take(&mut self, change: &Change, client: &str, now: Millis) {
        let Some(entry) = &change.entry else { return };
        let news = matches!(change.noticed, Noticed::Appeared | Noticed::Changed | Noticed::Dropped);
        if !news || !entry.state.can_protect() {
            // It is protected, gone, the user's own wish, or cannot be protected.
            self.0.remove(&entry.id);
            return;
        }
        if self.0.len() >= MOST && !self.0.contains_key(&entry.id) {
            return;
        }
        let line: Vec<&str> = entry.command.iter().chain(&entry.args).map(Untrusted::raw).collect();
        let offer = Offer {
            entry: entry.id.clone(),
            client: client.to_owned(),
            path: Untrusted::new(change.path.to_string_lossy()),
            project: change.project.as_deref().map(Untrusted::new),
            noticed: change.noticed,
            command: Untrusted::new(line.join(" ").chars().take(LINE).collect::<String>()),
            since: now,
        };
        self.0.insert(entry.id.clone(), offer);
    }

    /// The user does not want it. Whether there was such an offer.
    pub fn ignore(&mut self, entry: &EntryId) -> bool {
        self.0.remove(entry).is_some()
    }

    /// All, the oldest first.
    pub fn all(&self) -> Vec<Offer> {
        let mut all: Vec<Offer> = self.0.values().cloned().collect();
        all.sort_by_key(|offer| offer.since);
        all
    }
}

/// How many rows about configurations go into the log: a file that changes all the time must not push everything else
/// out of it.
#[derive(Debug, Default)]
pub struct Ration {
    since: Millis,
    rows: usize,
    told: bool,
}

impl Ration {
    const SPAN_MS: u64 = 600_000;
    const ROWS: usize = 200;

    /// Whether one more is written.
    pub fn allows(&mut self, now: Millis) -> bool {
        if now.since(self.since) >= Self::SPAN_MS {
            *self = Self { since: now, ..Self::default() };
        }
        self.rows += 1;
        self.rows <= Self::ROWS
    }

    /// Whether this is the first that is not.
    pub fn first_refused(&mut self) -> bool {
        !mem::replace(&mut self.told, true)
    }
}

#[cfg(test)]
mod tests {
    use firedoor_clients::{EntryFound, State};

    use super::*;

    fn change(server: &str, noticed: Noticed, state: State) -> Change {
        let entry = EntryFound {
            id: EntryId::new("cursor", "user", server).unwrap(),
            command: Some("npx".into()),
            args: vec!["-y".into(), "x".into()],
            env_names: Vec::new(),
            secrets: Vec::new(),
            state,
            warnings: Vec::new(),
        };
        Change {
            noticed,
            client: "cursor".into(),
            path: "/h/.cursor/mcp.json".into(),
            first: false,
            project: None,
            entry: Some(entry),
            detail: None,
        }
    }

    #[test]
    fn what_is_offered_and_for_how_long() {
        let open = || State::Unprotected;
        let check = |changes: &[(&str, Noticed, State)], want: &[&str]| {
            let mut offers = Offers::default();
            for (at, (server, noticed, state)) in changes.iter().enumerate() {
                offers.take(&change(server, *noticed, state.clone()), "Cursor", Millis(at as u64));
            }
            let servers: Vec<String> = offers.all().iter().map(|o| o.entry.server().to_owned()).collect();
            assert_eq!(servers, want, "{changes:?}");
        };
        check(&[("a", Noticed::Appeared, open())], &["a"]);
        check(&[("b", Noticed::Appeared, open()), ("a", Noticed::Dropped, open())], &["b", "a"]);
        check(&[("a", Noticed::Appeared, open()), ("a", Noticed::Protected, State::Protected)], &[]);
        check(&[("a", Noticed::Appeared, open()), ("a", Noticed::Removed, open())], &[]);
        check(&[("a", Noticed::Restored, open())], &[]);
        check(&[("a", Noticed::Appeared, State::Protected)], &[]);
        check(&[("a", Noticed::Appeared, State::NotYet { reason: "x".into() })], &[]);
    }

    #[test]
    fn offers_and_rows_are_bounded() {
        let mut offers = Offers::default();
        for n in 0..MOST + 50 {
            offers.take(&change(&n.to_string(), Noticed::Appeared, State::Unprotected), "Cursor", Millis(0));
        }
        assert_eq!(offers.all().len(), MOST);
        let mut ration = Ration::default();
        let start = Millis(1_000_000);
        let written = (0..1000).filter(|_| ration.allows(start)).count();
        assert_eq!((written, ration.first_refused(), ration.first_refused()), (Ration::ROWS, true, false));
        assert!(ration.allows(start.plus(Ration::SPAN_MS)) && ration.first_refused());
    }
}
