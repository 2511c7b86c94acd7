//! What entered one agent's session, so that it is known again when it leaves.
//!
//! Holds folded text of secrets and of private results in this process's memory only: it has no serialised form and its
//! `Debug` shows numbers.

mod class;
mod item;
pub(crate) mod paths;

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use firedoor_model::{Digest, EntryId, Finding, finding::Role};

use crate::{
    flow::split::Trails,
    fold,
    index::{Cut, Index, Place},
    orders::Orders,
    trifecta::Trifecta,
    usage::Usage,
};

use class::Class;
pub use item::Label;
use item::Parts;
pub(crate) use item::{Grasp, Item, Left, Origin};

/// Bounds of one [`Memory`], in bytes of this process's memory: texts, their windows, and what is kept beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All that is remembered.
    pub bytes: usize,
    /// What private texts may keep when there are more secrets than fit.
    pub private: usize,
    /// What ordinary texts may keep when there is more than fits.
    pub ordinary: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 48 << 20, private: 6 << 20, ordinary: 3 << 20 }
    }
}

/// How texts are cut, by [`Label`]: eight bytes of a secret are always found. Of the secrets that Firedoor put into a start the ends are
/// known as well, because those of one issuer begin alike.
const CUTS: [Cut; 4] = [
    Cut { width: 6, stride: Some(3) },
    Cut { width: 16, stride: Some(8) },
    Cut { width: 16, stride: Some(16) },
    Cut { width: TAIL, stride: None },
];
/// The kind of those ends.
pub(crate) const ENDS: usize = 3;
/// Folded bytes from which on a value may be told from chance.
const TAIL: usize = 8;

/// One text takes no more than this part of the memory, in bytes of text: with its windows that is a quarter.
const MAX_SHARE: usize = 16;

/// What a window costs: a place in a table that is between three eighths and three quarters full, and its filter bits.
const WINDOW: usize = 24;
/// What an item costs besides its texts and windows: itself, its number, and its three allocations.
const ITEM: usize = size_of::<Option<Item>>() + 64;

/// The memory of one agent's session.
pub struct Memory {
    limits: Limits,
    /// By number.
    items: Vec<Option<Item>>,
    /// Numbers that are free again.
    free: Vec<u32>,
    /// By [`Label`].
    classes: [Class; 3],
    index: Index<4>,
    /// Secrets that the agent itself gave to a server, which may answer with them.
    given: HashSet<Digest>,
    /// What servers have in their start, each with the server, as a digest.
    owners: HashSet<Digest>,
    given_order: VecDeque<Digest>,
    /// Texts that gave the agent instructions.
    pub(crate) orders: Orders,
    /// What the agent has read so far.
    pub(crate) trifecta: Trifecta,
    /// What left in short values.
    pub(crate) trails: Trails,
    /// How often and with how much tools were called.
    pub(crate) usage: Usage,
}

/// Kept secrets that may have the same window; of more the parts are known of the latest. All of each is known whatever it has in common.
const ALIKE: usize = 8;
/// Longest ordinary text of which it is kept where words begin.
const MAX_WORDS: usize = 256;
/// Most pairs of a server and a value in its start.
const MAX_OWNERS: usize = 16 * 1024;
/// Most credentials remembered as given.
const MAX_GIVEN: usize = 256;

impl Memory {
    /// An empty memory.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            items: Vec::new(),
            free: Vec::new(),
            classes: Default::default(),
            index: Index::new(CUTS),
            given: HashSet::new(),
            owners: HashSet::new(),
            given_order: VecDeque::new(),
            orders: Orders::default(),
            trifecta: Trifecta::default(),
            trails: Trails::default(),
            usage: Usage::default(),
        }
    }

    /// Whether nothing labelled secret or private is remembered.
    pub fn is_clean(&self) -> bool {
        self.classes.iter().take(2).all(|c| c.items == 0)
    }

    /// Bytes of remembered text.
    pub fn bytes(&self) -> usize {
        self.classes.iter().map(|c| c.text).sum()
    }

    /// Number of remembered texts.
    pub fn len(&self) -> usize {
        self.classes.iter().map(|c| c.items).sum()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that the user let a call pass of which this was found.
    pub fn allowed(&mut self, findings: &[Finding]) {
        for finding in findings.iter().filter(|f| f.detector == "flow/after-injection") {
            finding.evidence.iter().filter(|e| e.role == Role::Source).for_each(|source| self.orders.allow(source));
        }
    }

    pub(crate) fn index(&self) -> &Index<4> {
        &self.index
    }

    /// So many secrets, those that came last.
    pub(crate) fn latest_secrets(&self, most: usize) -> impl Iterator<Item = (u32, &Item)> {
        let [secrets, ..] = &self.classes;
        secrets.latest(most).filter_map(|id| Some((id, self.item(id)?)))
    }

    pub(crate) fn item(&self, id: u32) -> Option<&Item> {
        self.items.get(id as usize)?.as_ref()
    }

    /// Remembers a secret. The first place where it was seen stays its source. Values that folded are shorter than eight
    /// bytes cannot be told from chance and are not kept.
    pub(crate) fn remember_secret(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>, generic: bool) {
        self.remember_as(origin, raw, pointer, (generic, false));
    }

    /// The same of a value without an issuer's form that a tool made for somebody to be told.
    pub(crate) fn remember_made(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>) {
        self.remember_as(origin, raw, pointer, (true, true));
    }

    fn remember_as(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>, (generic, made): (bool, bool)) {
        let folded = fold::folded(raw);
        if is_telling(&folded) && self.known(&folded).is_none() {
            let exact = generic && folded.len() < 16 || folded.len() < SHORT;
            let grasp = if exact { Grasp::Exact } else { Grasp::Parts };
            self.insert(Item { made, ..Item::secret(origin, raw, folded, pointer, grasp, false) });
        }
    }

    /// Remembers a secret that Firedoor put into a server's start, whatever has been seen before: from now on that is its
    /// source. Whether it can be known again.
    pub(crate) fn remember_kept(&mut self, origin: &Arc<Origin>, raw: &[u8], pointer: Arc<str>, grasp: Grasp) -> bool {
        let folded = fold::folded(raw);
        if !is_telling(&folded) {
            return false;
        }
        // Two servers may have the same one.
        if self.kept_as(&folded, raw).is_some() {
            self.has_itself(&origin.entry, raw);
        } else {
            let grasp = if folded.len() < SHORT { Grasp::Exact } else { grasp };
            self.insert(Item::secret(origin, raw, folded, pointer, grasp, true));
        }
        true
    }

    /// Whether this is a server's own: it came from it, or stands in its start as well.
    pub(crate) fn is_own(&self, entry: &EntryId, item: &Item) -> bool {
        item.origin.entry == *entry
            || item.kept && self.owners.contains(&at_server(entry, identity(&item.folded, &item.raw)))
    }

    /// Notes that a server has this in its start: it may be a secret that Firedoor puts, or will put, into another's.
    pub(crate) fn has_itself(&mut self, entry: &EntryId, raw: &[u8]) {
        let folded = fold::folded(raw);
        if self.owners.len() < MAX_OWNERS && is_telling(&folded) {
            self.owners.insert(at_server(entry, identity(&folded, raw)));
        }
    }

    /// The secret that is exactly this, if Firedoor put it into a start.
    fn kept_as(&self, folded: &[u8], raw: &[u8]) -> Option<&Item> {
        let same = |item: &&Item| identity(&item.folded, &item.raw) == identity(folded, raw);
        self.kept_like(folded).into_iter().filter(same).find(|item| *item.folded == *folded)
    }

    /// The secrets that Firedoor put into a start and that end like this.
    fn kept_like(&self, folded: &[u8]) -> Vec<&Item> {
        let mut alike = Vec::new();
        let end = folded.last_chunk::<TAIL>().map_or([].as_slice(), |end| end);
        self.index.find(end, 0, &[ENDS], |_, _, (id, _)| {
            alike.extend(self.item(id));
            0
        });
        alike
    }

    /// Remembers the text of a leaf; `folded` is its folded form. A text that the server sent at the same place before is kept once.
    pub(crate) fn remember_text(
        &mut self,
        origin: &Arc<Origin>,
        label: Label,
        text: &[u8],
        folded: &[u8],
        pointer: Arc<str>,
    ) {
        let most = self.limits.bytes / MAX_SHARE;
        let folded = folded.get(..most.min(folded.len())).unwrap_or_default();
        let short = label == Label::Ordinary && text.len() <= MAX_WORDS;
        let words = if label == Label::Private || short { fold::words(text, folded.len()) } else { Box::default() };
        // Whom a file of keys and logins names is a part of it.
        let mailboxes = origin.privacy != crate::Privacy::Sensitive;
        let paths =
            if label == Label::Private { paths::beside_a_text(text, folded.len(), mailboxes) } else { Box::default() };
        let origin = Arc::clone(origin);
        let same = |item: &Item| {
            (item.label, &item.origin.entry, &item.pointer) == (label, &origin.entry, &pointer)
                && (&item.words, &item.paths) == (&words, &paths)
                && *item.folded == *folded
        };
        if let Some((id, mut item)) = self.take_alike(label, folded, same) {
            item.origin = origin;
            item.again = true;
            // Others may have come to have its windows since.
            return self.place(id, item);
        }
        let (folded, raw, grasp, kept) = (folded.into(), Box::default(), Grasp::Parts, false);
        self.insert(Item {
            origin,
            label,
            folded,
            raw,
            grasp,
            kept,
            made: false,
            pointer,
            words,
            paths,
            left: None,
            again: false,
        });
    }

    /// Takes out what is remembered that is the `same`, if one of its ends still leads to it.
    fn take_alike(&mut self, label: Label, folded: &[u8], same: impl Fn(&Item) -> bool) -> Option<(u32, Item)> {
        let kind = label as usize;
        let Cut { width, stride } = self.index.cut(kind);
        let last = folded.len().checked_sub(width)?;
        let mut found = None;
        for at in [0, last - last % stride?] {
            self.index.find(folded.get(at..at + width)?, 0, &[kind], |_, _, (id, _)| {
                found = found.or_else(|| self.item(id).is_some_and(&same).then_some(id));
                0
            });
        }
        let id = found?;
        Some((id, self.items.get_mut(id as usize)?.take()?))
    }

    fn cost(&self, item: &Item) -> usize {
        let windows = self.index.count(item.label as usize, item.folded.len()) + usize::from(item.kept);
        ITEM + item.folded.len()
            + item.raw.len()
            + (item.words.len() + item.paths.len()) * 8
            + item.pointer.len()
            + WINDOW * windows
    }

    fn insert(&mut self, item: Item) {
        let cost = self.cost(&item);
        let label = item.label as usize;
        while self.classes.iter().map(|c| c.cost).sum::<usize>() + cost > self.limits.bytes {
            if !self.forget(item.label) {
                return;
            }
        }
        let id = self.free.pop().unwrap_or(self.items.len() as u32);
        if let Some(class) = self.classes.get_mut(label) {
            class.push(&item.origin.entry, id, item.folded.len(), cost);
        }
        self.place(id, item);
    }

    /// Puts an item in its slot, and its windows into the index.
    fn place(&mut self, id: u32, item: Item) {
        let (label, items) = (item.label as usize, &self.items);
        // Kept secrets may begin alike (`sk-ant-api03-`), and none may be hidden by what others have said.
        let most = if item.kept { ALIKE } else { 1 };
        let same = |(id, at): Place, bytes: &[u8]| {
            let other = items.get(id as usize).and_then(Option::as_ref).filter(|other| other.kept == item.kept);
            other.is_some_and(|i| i.folded.get(at as usize..).is_some_and(|t| t.starts_with(bytes)))
        };
        let mut room = self.index.insert(label, id, &item.folded, most, same);
        if item.kept {
            room &= self.index.insert(ENDS, id, &item.folded, usize::MAX, |_, _| false);
        }
        match self.items.get_mut(id as usize) {
            Some(slot) => *slot = Some(item),
            None => self.items.push(Some(item)),
        }
        if !room {
            let items = self.items.iter().flatten();
            let kinds = |item: &Item| [Some(item.label as usize), item.kept.then_some(ENDS)];
            self.index.refilter(items.flat_map(|i| kinds(i).into_iter().flatten().map(|kind| (kind, &*i.folded))));
        }
    }

    /// Forgets one text, so that one of this label finds room: an ordinary one, then a private one, each down to what is
    /// kept for it; then one of its own kind.
    fn forget(&mut self, room_for: Label) -> bool {
        let over = |label: Label, kept: usize| {
            let cost = self.classes.get(label as usize).map_or(0, |c| c.cost);
            (cost > kept).then_some(label)
        };
        let lower = over(Label::Ordinary, self.limits.ordinary);
        let lower = lower.or_else(|| over(Label::Private, self.limits.private).filter(|_| room_for != Label::Ordinary));
        let label = lower.unwrap_or(room_for) as usize;
        let Some(class) = self.classes.get_mut(label) else { return false };
        let items = &mut self.items;
        // What came again since then goes behind the others, once for each time that it was next.
        let again =
            |id| items.get_mut(id as usize).and_then(Option::as_mut).is_some_and(|i| std::mem::take(&mut i.again));
        let Some(id) = class.next_to_go(again) else { return false };
        let Some(gone) = self.items.get_mut(id as usize).and_then(Option::take) else { return false };
        let cost = self.cost(&gone);
        if let Some(class) = self.classes.get_mut(label) {
            class.pop(&gone.origin.entry, gone.folded.len(), cost);
        }
        self.index.remove(label, id, &gone.folded);
        if gone.kept {
            self.index.remove(ENDS, id, &gone.folded);
        }
        self.free.push(id);
        true
    }

    /// Whether exactly this secret is remembered.
    pub(crate) fn knows(&self, folded: &[u8]) -> bool {
        self.known(folded).is_some()
    }

    /// The remembered secret that is exactly this; one that Firedoor put into a start before others.
    fn known(&self, folded: &[u8]) -> Option<&Item> {
        let mut known = self.kept_like(folded).into_iter().find(|item| *item.folded == *folded);
        if let (None, Some(first)) = (known, folded.get(..CUTS[0].width)) {
            self.index.find(first, 0, &[Label::Secret as usize], |_, _, (id, at)| {
                known = self.item(id).filter(|i| at == 0 && *i.folded == *folded).or(known);
                0
            });
        }
        known
    }

    /// Notes that the agent gave this credential to a server.
    pub(crate) fn give(&mut self, entry: &EntryId, folded: &[u8]) {
        let key = at_server(entry, folded);
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
        !self.given.is_empty() && self.given.contains(&at_server(entry, folded))
    }

    /// Notes that a part of an item left, and gives what of it has left by now.
    pub(crate) fn part_left(&mut self, id: u32, start: usize, end: usize) -> Left {
        let Some(item) = self.items.get_mut(id as usize).and_then(Option::as_mut) else {
            return Left { bytes: 0, of: 1 };
        };
        let length = item.folded.len();
        let parts = item.left.get_or_insert_with(|| Box::new(Parts { bytes: vec![false; length], count: 0 }));
        for left in parts.bytes.get_mut(start..end).unwrap_or_default() {
            parts.count += usize::from(!*left);
            *left = true;
        }
        Left { bytes: parts.count, of: length.max(1) }
    }
}

/// Folded bytes below which a secret has to be met again exactly.
const SHORT: usize = 10;

/// Whether a folded value says enough to be told from chance.
fn is_telling(folded: &[u8]) -> bool {
    folded.len() >= TAIL && fold::distinct(folded) >= 5
}

/// What makes a secret the one that it is: a short one has to be met again as it stands.
fn identity<'a>(folded: &'a [u8], raw: &'a [u8]) -> &'a [u8] {
    if folded.len() < SHORT { raw } else { folded }
}

/// What is kept of a credential and a server that has it: a digest is enough to know both again.
fn at_server(entry: &EntryId, secret: &[u8]) -> Digest {
    Digest::of_fields([entry.to_string().as_bytes(), secret])
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
mod tests;
