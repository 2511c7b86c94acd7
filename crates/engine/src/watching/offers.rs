//! Servers that have appeared, changed or lost Firedoor, and that the user could protect. Pure: time comes in.

use std::{collections::BTreeMap, mem};

use firedoor_clients::{EntryFound, watch::Change};
use firedoor_ipc::command::Offer;
use firedoor_model::{Digest, EntryId, Millis, Untrusted, notice::Noticed};

/// Most offers kept; what is beyond stands in the log, and in `firedoor scan`.
const MOST: usize = 200;
/// Longest command line that is shown, in characters.
const LINE: usize = 400;

/// What could be protected, by entry, each with the hash of its command line or address.
#[derive(Debug, Default)]
pub struct Offers {
    open: BTreeMap<EntryId, (Offer, Digest)>,
    /// What the user did not want, as it was then, and when that was.
    declined: BTreeMap<EntryId, (Digest, Millis)>,
}

impl Offers {
    /// None yet; these were declined in earlier runs.
    pub fn new(declined: BTreeMap<EntryId, (Digest, Millis)>) -> Self {
        Self { open: BTreeMap::new(), declined }
    }

    /// Takes note of a change. Returns the entry whose declining does not count any more.
    pub fn take(&mut self, change: &Change, client: &str, now: Millis) -> Option<EntryId> {
        let entry = change.entry.as_ref()?;
        // Whoever protected it has changed their mind, be it while nobody watched.
        let since = self.declined.get(&entry.id).map(|(_, at)| *at);
        let protected = match change.noticed {
            Noticed::Protected => true,
            Noticed::Dropped => change.written > since,
            _ => false,
        };
        let forget = (protected && self.declined.remove(&entry.id).is_some()).then(|| entry.id.clone());
        let news = matches!(change.noticed, Noticed::Appeared | Noticed::Changed | Noticed::Dropped);
        if !news || !entry.state.can_protect() {
            // It is protected, gone, the user's own wish, or cannot be protected.
            self.open.remove(&entry.id);
            return forget;
        }
        let (line, hash) = line(entry);
        let declined = self.declined.get(&entry.id).is_some_and(|(then, _)| *then == hash);
        let full = self.open.len() >= MOST && !self.open.contains_key(&entry.id);
        if full || (declined && change.noticed != Noticed::Changed) {
            return forget;
        }
        let offer = Offer {
            entry: entry.id.clone(),
            client: client.to_owned(),
            path: Untrusted::new(change.path.to_string_lossy()),
            project: change.project.as_deref().map(Untrusted::new),
            noticed: change.noticed,
            command: Untrusted::new(line.chars().take(LINE).collect::<String>()),
            since: now,
            under_way: false,
        };
        self.open.insert(entry.id.clone(), (offer, hash));
        forget
    }

    /// The user does not want it: the hash of its command line, if there was such an offer.
    pub fn decline(&mut self, entry: &EntryId, now: Millis) -> Option<Digest> {
        let (_, hash) = self.open.remove(entry)?;
        self.declined.insert(entry.clone(), (hash, now));
        Some(hash)
    }

    /// These are being protected without a question, or no longer.
    pub fn under_way(&mut self, entries: &[EntryId], on: bool) {
        for entry in entries {
            if let Some((offer, _)) = self.open.get_mut(entry) {
                offer.under_way = on;
            }
        }
    }

    /// All, the oldest first.
    pub fn all(&self) -> Vec<Offer> {
        let mut all: Vec<Offer> = self.open.values().map(|(offer, _)| offer.clone()).collect();
        all.sort_by_key(|offer| offer.since);
        all
    }
}

/// What an entry starts or reaches, in words, and what it is compared by.
fn line(entry: &EntryFound) -> (String, Digest) {
    let Some(reached) = &entry.reached else {
        let line: Vec<&str> = entry.command.iter().chain(&entry.args).map(Untrusted::raw).collect();
        return (line.join(" "), Digest::of(line.join("\0").as_bytes()));
    };
    let raw = |names: &[Untrusted]| names.iter().map(|name| name.raw().to_owned()).collect::<Vec<_>>();
    let (headers, variables) = (raw(&reached.header_names), raw(&entry.env_names));
    let mut line = reached.place.raw().to_owned();
    for (what, names) in [("headers", &headers), ("variables", &variables)] {
        if !names.is_empty() {
            line.push_str(&format!(", with the {what} {}", names.join(", ")));
        }
    }
    let address = reached.address.to_string();
    let fields = [b"reached", address.as_bytes(), &[0]].into_iter();
    let (headers, variables) = (headers.iter().map(String::as_bytes), variables.iter().map(String::as_bytes));
    (line, Digest::of_fields(fields.chain(headers).chain([b"variables".as_slice()]).chain(variables)))
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
    use firedoor_clients::{Reached, State};

    use super::*;

    fn change(server: &str, noticed: Noticed, state: State) -> Change {
        let entry = EntryFound {
            id: EntryId::new("cursor", "user", server).unwrap(),
            command: Some("npx".into()),
            args: vec!["-y".into(), "x".into()],
            env_names: Vec::new(),
            reached: None,
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
            written: Some(Millis(1)),
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
    fn what_was_declined_is_offered_again_only_when_it_is_another() {
        let open = || State::Unprotected;
        let appeared = change("a", Noticed::Appeared, open());
        let mut offers = Offers::default();
        let take =
            |offers: &mut Offers, change: &Change| (offers.take(change, "Cursor", Millis(0)), offers.all().len());
        assert_eq!(take(&mut offers, &appeared), (None, 1));
        let id = EntryId::new("cursor", "user", "a").unwrap();
        let line = offers.decline(&id, Millis(2)).unwrap();
        assert_eq!(offers.decline(&id, Millis(2)), None);
        // In this run and in the next.
        for mut offers in [offers, Offers::new([(id.clone(), (line, Millis(2)))].into())] {
            assert_eq!(take(&mut offers, &change("a", Noticed::Removed, open())), (None, 0));
            assert_eq!(take(&mut offers, &appeared), (None, 0));
            assert_eq!(take(&mut offers, &change("a", Noticed::Dropped, open())), (None, 0));
            let mut other = change("a", Noticed::Appeared, open());
            other.entry.as_mut().unwrap().args.push("y".into());
            assert_eq!(take(&mut offers, &other), (None, 1));
            offers.decline(&id, Millis(2)).unwrap();
            assert_eq!(take(&mut offers, &change("a", Noticed::Changed, open())), (None, 1));
            offers.decline(&id, Millis(2)).unwrap();
            let protected = change("a", Noticed::Protected, State::Protected);
            assert_eq!(take(&mut offers, &protected), (Some(id.clone()), 0));
            assert_eq!(take(&mut offers, &change("a", Noticed::Dropped, open())), (None, 1));
            // Protected while nobody watched, and dropped.
            offers.decline(&id, Millis(2)).unwrap();
            let dropped = |at| Change { written: at, ..change("a", Noticed::Dropped, open()) };
            assert_eq!(take(&mut offers, &dropped(None)), (None, 0));
            assert_eq!(take(&mut offers, &dropped(Some(Millis(2)))), (None, 0));
            assert_eq!(take(&mut offers, &dropped(Some(Millis(3)))), (Some(id.clone()), 1));
        }
    }

    #[test]
    fn servers_with_an_address_are_told_apart_and_shown() {
        let appeared = |address: &str, headers: &[&str], env: &[&str]| {
            let mut change = change("a", Noticed::Appeared, State::Unprotected);
            let entry = change.entry.as_mut().unwrap();
            let names = |all: &[&str]| all.iter().map(|name| Untrusted::new(*name)).collect();
            (entry.command, entry.args, entry.env_names) = (None, Vec::new(), names(env));
            let address = Digest::of(address.as_bytes());
            entry.reached = Some(Reached { place: "https://a.example".into(), header_names: names(headers), address });
            change
        };
        let first = appeared("https://a.example/mcp", &["X-Team"], &[]);
        let mut offers = Offers::default();
        offers.take(&first, "Cursor", Millis(0));
        assert_eq!(offers.all()[0].command.raw(), "https://a.example, with the headers X-Team");
        offers.decline(&EntryId::new("cursor", "user", "a").unwrap(), Millis(0)).unwrap();
        offers.take(&first, "Cursor", Millis(0));
        assert!(offers.all().is_empty());
        for other in [
            appeared("https://a.example/other", &["X-Team"], &[]),
            appeared("https://a.example/mcp", &["X-Other"], &[]),
            appeared("https://a.example/mcp", &["X-Team"], &["HTTPS_PROXY"]),
            appeared("https://a.example/mcp", &[], &["X-Team"]),
        ] {
            let mut offers = Offers::new(offers.declined.clone());
            offers.take(&other, "Cursor", Millis(0));
            assert_eq!(offers.all().len(), 1, "{other:?}");
        }
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
