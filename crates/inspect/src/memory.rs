//! What entered one agent's session, so that it is known again when it leaves.
//!
//! Holds folded text of secrets and of private results in this process's memory only: it has no serialised form and its
//! `Debug` shows numbers.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use firedoor_model::{Digest, EntryId, Millis, Untrusted};

use crate::{Sink, fold, index::Index};

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
        Self { secret_bytes: 256 * 1024, private_bytes: 1024 * 1024, ordinary_bytes: 256 * 1024, items: 4096 }
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
    /// The first of the items that stand for the same text (it may also be remembered reversed).
    pub(crate) group: u32,
    /// How this form differs from what entered.
    pub(crate) form: Option<&'static str>,
    pub(crate) folded: Vec<u8>,
    /// The text as it entered; kept for secrets only.
    pub(crate) raw: Box<[u8]>,
    /// Must be met again exactly: too short or too plain to be recognised in folded form.
    pub(crate) exact: bool,
    pub(crate) pointer: Arc<str>,
    /// Which bytes of `folded` have already left in parts; only for secrets.
    left: Vec<bool>,
}

#[derive(Default)]
struct Class {
    order: VecDeque<u32>,
    bytes: usize,
    index: Index,
}

/// The memory of one agent's session.
pub struct Memory {
    limits: Limits,
    next: u32,
    items: HashMap<u32, Item>,
    secrets: Class,
    private: Class,
    ordinary: Class,
    /// Secrets that the agent itself gave to a server, which may answer with them.
    given: HashSet<Digest>,
    given_order: VecDeque<Digest>,
}

/// Most credentials remembered as given.
const MAX_GIVEN: usize = 256;

impl Memory {
    /// An empty memory.
    pub fn new(limits: Limits) -> Self {
        let class = |width, stride| Class { index: Index::new(width, stride), ..Class::default() };
        Self {
            limits,
            next: 0,
            items: HashMap::new(),
            secrets: class(8, 1),
            private: class(16, 8),
            ordinary: class(16, 16),
            given: HashSet::new(),
            given_order: VecDeque::new(),
        }
    }

    /// Whether nothing labelled secret or private is remembered.
    pub fn is_clean(&self) -> bool {
        self.secrets.order.is_empty() && self.private.order.is_empty()
    }

    /// Bytes of remembered text.
    pub fn bytes(&self) -> usize {
        self.secrets.bytes + self.private.bytes + self.ordinary.bytes
    }

    /// Number of remembered texts.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn index(&self, label: Label) -> &Index {
        match label {
            Label::Secret => &self.secrets.index,
            Label::Private => &self.private.index,
            Label::Ordinary => &self.ordinary.index,
        }
    }

    pub(crate) fn item(&self, id: u32) -> Option<&Item> {
        self.items.get(&id)
    }

    /// Remembers a secret, also backwards and with its letters turned. The first place where it was seen stays its
    /// source. Values that folded are shorter than eight bytes cannot be told from chance and are not kept.
    pub(crate) fn remember_secret(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>, generic: bool) {
        let folded = fold::folded(raw);
        if folded.len() < 8 || fold::distinct(&folded) < 5 || self.knows(&folded) {
            return;
        }
        let exact = generic && folded.len() < 16 || folded.len() < 10;
        let mut forms = vec![(None, folded.clone())];
        if !exact {
            forms.push((Some("reverse"), folded.iter().rev().copied().collect()));
            forms.push((Some("rot13"), fold::rot13(&folded)));
        }
        let group = self.next;
        for (form, folded) in forms {
            let left = Vec::new();
            let (origin, pointer) = (Arc::clone(origin), Arc::clone(&pointer));
            let raw = raw.into();
            self.insert(Item { origin, label: Label::Secret, group, form, folded, raw, exact, pointer, left });
        }
    }

    /// Remembers the text of a leaf.
    pub(crate) fn remember_text(&mut self, origin: &Arc<Origin>, label: Label, folded: Vec<u8>, pointer: Arc<str>) {
        let origin = Arc::clone(origin);
        let (group, raw, left) = (self.next, Box::default(), Vec::new());
        self.insert(Item { origin, label, group, form: None, folded, raw, exact: false, pointer, left });
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
        let class = match item.label {
            Label::Secret => &mut self.secrets,
            Label::Private => &mut self.private,
            Label::Ordinary => &mut self.ordinary,
        };
        while class.bytes + item.folded.len() > limit || class.order.len() >= items {
            let Some(oldest) = class.order.pop_front() else { return };
            if let Some(gone) = self.items.remove(&oldest) {
                class.bytes -= gone.folded.len();
                class.index.remove(oldest, &gone.folded);
            }
        }
        class.bytes += item.folded.len();
        class.order.push_back(id);
        class.index.insert(id, &item.folded);
        self.items.insert(id, item);
    }

    /// Whether exactly this secret is remembered.
    pub(crate) fn knows(&self, folded: &[u8]) -> bool {
        let mut known = false;
        if let Some(first) = folded.get(..8) {
            self.secrets.index.find(first, |_, (id, at)| {
                let start = at as usize;
                known |= self.items.get(&id).is_some_and(|i| i.form.is_none() && start == 0 && i.folded == folded);
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

    /// Notes that a part of a secret left, and gives the share of it that has left by now.
    pub(crate) fn part_left(&mut self, id: u32, start: usize, end: usize) -> f64 {
        let Some(item) = self.items.get_mut(&id) else { return 0.0 };
        item.left.resize(item.folded.len(), false);
        if let Some(part) = item.left.get_mut(start..end) {
            part.fill(true);
        }
        item.left.iter().filter(|l| **l).count() as f64 / item.left.len().max(1) as f64
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
        f.debug_struct("Memory")
            .field("secrets", &self.secrets.order.len())
            .field("private", &self.private.order.len())
            .field("ordinary", &self.ordinary.order.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
