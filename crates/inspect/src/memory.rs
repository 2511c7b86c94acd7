//! What entered one agent's session, so that it is known again when it leaves.
//!
//! Holds folded text of secrets and of private results in this process's memory only: it has no serialised form and its
//! `Debug` shows numbers.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use firedoor_model::{Digest, EntryId, Millis, Untrusted};

use crate::{
    Sink, fold,
    index::{Cut, Index},
};

/// Bounds of one [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of secrets. The last to be forgotten.
    pub secret_bytes: usize,
    /// Bytes of private results.
    pub private_bytes: usize,
    /// Bytes of ordinary results.
    pub ordinary_bytes: usize,
    /// Remembered items of each of the three.
    pub items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { secret_bytes: 256 * 1024, private_bytes: 512 * 1024, ordinary_bytes: 256 * 1024, items: 4096 }
    }
}

/// How well what entered must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// A credential.
    Secret,
    /// The result of a call that named a private path.
    Private,
    /// Anything else: only known again when it leaves encoded.
    Ordinary,
}

/// Where something entered.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) entry: EntryId,
    pub(crate) tool: Untrusted,
    pub(crate) at: Millis,
    /// Where the arguments of the call went that brought it.
    pub(crate) sink: Sink,
    /// Whether that call named a private path.
    pub(crate) private: bool,
}

/// One remembered text.
pub(crate) struct Item {
    pub(crate) origin: Arc<Origin>,
    pub(crate) label: Label,
    pub(crate) folded: Vec<u8>,
    /// The text as it entered; kept for secrets only.
    pub(crate) raw: Box<[u8]>,
    /// Must be met again exactly: too short or too plain to be recognised in folded form.
    pub(crate) exact: bool,
    pub(crate) pointer: Arc<str>,
    /// Which bytes of `folded` have already left in parts, and how many; empty until one has.
    left: Vec<bool>,
    gone: usize,
}

/// How much of an item has left in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) bytes: usize,
    of: usize,
}

impl Left {
    pub(crate) fn share(self) -> f64 {
        self.bytes as f64 / self.of as f64
    }
}

/// What is remembered under one label, by server, oldest first. A full memory forgets the oldest of the server that fills
/// most of it, so that no server can wash out what came from another.
#[derive(Default)]
struct Class {
    shares: BTreeMap<EntryId, VecDeque<u32>>,
    items: usize,
    bytes: usize,
}

impl Class {
    fn push(&mut self, entry: &EntryId, id: u32, bytes: usize) {
        self.items += 1;
        self.bytes += bytes;
        match self.shares.get_mut(entry) {
            Some(share) => share.push_back(id),
            None => {
                self.shares.insert(entry.clone(), VecDeque::from([id]));
            }
        }
    }

    fn oldest_of_largest(&mut self) -> Option<u32> {
        let (entry, share) = self.shares.iter_mut().max_by_key(|(_, share)| share.len())?;
        let oldest = share.pop_front();
        if share.is_empty() {
            let entry = entry.clone();
            self.shares.remove(&entry);
        }
        self.items -= usize::from(oldest.is_some());
        oldest
    }
}

/// How texts are cut, by [`Label`].
const CUTS: [Cut; 3] = [Cut { width: 8, stride: 1 }, Cut { width: 16, stride: 8 }, Cut { width: 16, stride: 16 }];

/// The memory of one agent's session.
pub struct Memory {
    limits: Limits,
    next: u32,
    items: HashMap<u32, Item>,
    /// By [`Label`].
    classes: [Class; 3],
    index: Index<3>,
    /// Secrets that the agent itself gave to a server, which may answer with them.
    given: HashSet<Digest>,
    given_order: VecDeque<Digest>,
    /// The first text that gave the agent instructions.
    injected: Option<Injected>,
}

/// A text that gave the agent instructions.
#[derive(Debug)]
pub(crate) struct Injected {
    pub(crate) origin: Arc<Origin>,
    pub(crate) pointer: Arc<str>,
    /// What is shown of it.
    pub(crate) excerpt: Untrusted,
}

/// Most credentials remembered as given.
const MAX_GIVEN: usize = 256;

impl Memory {
    /// An empty memory.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 0,
            items: HashMap::new(),
            classes: Default::default(),
            index: Index::new(CUTS),
            given: HashSet::new(),
            given_order: VecDeque::new(),
            injected: None,
        }
    }

    /// Whether nothing labelled secret or private is remembered.
    pub fn is_clean(&self) -> bool {
        self.classes.iter().take(2).all(|c| c.items == 0)
    }

    /// Bytes of remembered text.
    pub fn bytes(&self) -> usize {
        self.classes.iter().map(|c| c.bytes).sum()
    }

    /// Number of remembered texts.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn index(&self) -> &Index<3> {
        &self.index
    }

    pub(crate) fn item(&self, id: u32) -> Option<&Item> {
        self.items.get(&id)
    }

    /// Remembers a secret. The first place where it was seen stays its source. Values that folded are shorter than eight
    /// bytes cannot be told from chance and are not kept.
    pub(crate) fn remember_secret(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>, generic: bool) {
        let folded = fold::folded(raw);
        if folded.len() < 8 || fold::distinct(&folded) < 5 || self.knows(&folded) {
            return;
        }
        let exact = generic && folded.len() < 16 || folded.len() < 10;
        let (origin, raw, left) = (Arc::clone(origin), raw.into(), Vec::new());
        self.insert(Item { origin, label: Label::Secret, folded, raw, exact, pointer, left, gone: 0 });
    }

    /// Remembers the text of a leaf.
    pub(crate) fn remember_text(&mut self, origin: &Arc<Origin>, label: Label, folded: Vec<u8>, pointer: Arc<str>) {
        let (origin, raw, left) = (Arc::clone(origin), Box::default(), Vec::new());
        self.insert(Item { origin, label, folded, raw, exact: false, pointer, left, gone: 0 });
    }

    fn insert(&mut self, mut item: Item) {
        let limit = match item.label {
            Label::Secret => self.limits.secret_bytes,
            Label::Private => self.limits.private_bytes,
            Label::Ordinary => self.limits.ordinary_bytes,
        };
        item.folded.truncate(limit);
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let items = self.limits.items;
        let label = item.label as usize;
        let Some(class) = self.classes.get_mut(label) else { return };
        while class.bytes + item.folded.len() > limit || class.items >= items {
            let Some(oldest) = class.oldest_of_largest() else { return };
            if let Some(gone) = self.items.remove(&oldest) {
                class.bytes -= gone.folded.len();
                self.index.remove(label, oldest, &gone.folded);
            }
        }
        class.push(&item.origin.entry, id, item.folded.len());
        self.index.insert(label, id, &item.folded);
        self.items.insert(id, item);
    }

    /// Whether exactly this secret is remembered.
    pub(crate) fn knows(&self, folded: &[u8]) -> bool {
        let mut known = false;
        if let Some(first) = folded.get(..8) {
            self.index.find(first, 1, |_, _, (id, at)| {
                let start = at as usize;
                known |= self.items.get(&id).is_some_and(|i| start == 0 && i.folded == folded);
            });
        }
        known
    }

    /// Notes that the agent gave this credential to a server.
    pub(crate) fn give(&mut self, entry: &EntryId, folded: &[u8]) {
        let key = given_key(entry, folded);
        if self.given.insert(key) {
            self.given_order.push_back(key);
        }
        if self.given_order.len() > MAX_GIVEN
            && let Some(oldest) = self.given_order.pop_front()
        {
            self.given.remove(&oldest);
        }
    }

    /// Whether the agent gave this credential to that server.
    pub(crate) fn gave(&self, entry: &EntryId, folded: &[u8]) -> bool {
        !self.given.is_empty() && self.given.contains(&given_key(entry, folded))
    }

    /// Notes that the agent read instructions that are not its user's. The first place stays the source.
    pub(crate) fn note_injected(&mut self, origin: &Arc<Origin>, pointer: Arc<str>, excerpt: &str) {
        self.injected.get_or_insert_with(|| Injected { origin: Arc::clone(origin), pointer, excerpt: excerpt.into() });
    }

    /// The instructions that the agent read, if any.
    pub(crate) fn injected(&self) -> Option<&Injected> {
        self.injected.as_ref()
    }

    /// Notes that a part of an item left, and gives what of it has left by now.
    pub(crate) fn part_left(&mut self, id: u32, start: usize, end: usize) -> Left {
        let Some(item) = self.items.get_mut(&id) else { return Left { bytes: 0, of: 1 } };
        item.left.resize(item.folded.len(), false);
        let mut fresh = 0;
        for left in item.left.get_mut(start..end).unwrap_or_default() {
            fresh += usize::from(!*left);
            *left = true;
        }
        item.gone += fresh;
        Left { bytes: item.gone, of: item.folded.len().max(1) }
    }
}

/// What is kept of a given credential: a digest is enough to know it again.
fn given_key(entry: &EntryId, folded: &[u8]) -> Digest {
    Digest::of_fields([entry.to_string().as_bytes(), folded])
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [secrets, private, ordinary] = &self.classes;
        f.debug_struct("Memory")
            .field("secrets", &secrets.items)
            .field("private", &private.items)
            .field("ordinary", &ordinary.items)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(server: &str) -> Arc<Origin> {
        let entry = EntryId::new("c", "s", server).unwrap();
        Arc::new(Origin { entry, tool: "t".into(), at: Millis(0), sink: Sink::Unknown, private: false })
    }

    /// A value with no meaning, different for every number.
    fn value(i: u32) -> Vec<u8> {
        format!("k{:08x}z{:08x}q{i:04}", i.wrapping_mul(2_654_435_761), i.wrapping_mul(40_503) ^ 0x55).into_bytes()
    }

    #[test]
    fn one_server_cannot_wash_out_another() {
        let mut memory = Memory::new(Limits { items: 100, ..Limits::default() });
        memory.remember_secret(&origin("files"), &value(0), "".into(), false);
        for i in 1..1000 {
            memory.remember_secret(&origin("hostile"), &value(i), "".into(), false);
        }
        assert!(memory.knows(&value(0)) && memory.knows(&value(999)) && !memory.knows(&value(1)));
        assert_eq!(memory.len(), 100);
    }

    #[test]
    fn bytes_are_bounded_and_secrets_stay_longest() {
        let limits = Limits { secret_bytes: 4096, private_bytes: 4096, ordinary_bytes: 4096, items: 1000 };
        let mut memory = Memory::new(limits);
        memory.remember_secret(&origin("files"), &value(0), "".into(), false);
        for i in 0..200 {
            let label = if i % 2 == 0 { Label::Private } else { Label::Ordinary };
            memory.remember_text(&origin("files"), label, value(i).repeat(9), "".into());
            memory.remember_text(&origin("files"), label, vec![b'x'; 100_000], "".into());
        }
        assert!(memory.bytes() <= 3 * 4096, "{memory:?}");
        assert!(memory.knows(&value(0)));
    }

    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        let mut memory = Memory::new(Limits { secret_bytes: 0, private_bytes: 0, ordinary_bytes: 0, items: 0 });
        memory.remember_secret(&origin("files"), &value(0), "".into(), false);
        memory.remember_text(&origin("files"), Label::Private, value(0), "".into());
        assert!(memory.is_empty() && memory.bytes() == 0);
    }

    #[test]
    fn debug_shows_no_text() {
        let mut memory = Memory::default();
        memory.remember_secret(&origin("files"), &value(7), "".into(), false);
        assert!(!format!("{memory:?}").contains("k7") && format!("{memory:?}").contains("secrets: 1"));
    }

    #[test]
    fn short_and_plain_values_are_no_secrets() {
        let mut memory = Memory::default();
        for short in ["abc12", "aaaaaaaaaaaaaaaa", "1-2-3-4", ""] {
            memory.remember_secret(&origin("files"), short.as_bytes(), "".into(), false);
        }
        assert!(memory.is_clean());
    }

    #[test]
    fn given_credentials_are_known_again_by_server() {
        let mut memory = Memory::default();
        let (a, b) = (origin("a"), origin("b"));
        memory.give(&a.entry, b"value");
        assert!(memory.gave(&a.entry, b"value") && !memory.gave(&b.entry, b"value"));
        for i in 0..MAX_GIVEN as u32 {
            memory.give(&b.entry, &value(i));
        }
        assert!(!memory.gave(&a.entry, b"value"));
    }
}
