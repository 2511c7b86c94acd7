//! One remembered text: where it entered, how well it must be kept, and what of it has left.

use std::sync::Arc;

use firedoor_model::{EntryId, Millis, Untrusted};

use super::paths;
use crate::{Privacy, Sink, Source};

/// How well what entered must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// A credential.
    Secret,
    /// The result of a call that named a private path, or a text that says of itself that it is private.
    Private,
    /// Anything else: only known again when it leaves encoded.
    Ordinary,
}

/// How a secret is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grasp {
    /// In part, too.
    Parts,
    /// All of it, however it is written: of words that a person chose each may stand anywhere.
    Whole,
    /// All of it as it stands: too short or too plain to be recognised in folded form.
    Exact,
}

/// Where something entered.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) entry: EntryId,
    pub(crate) tool: Untrusted,
    pub(crate) at: Millis,
    /// Where the arguments of the call went that brought it.
    pub(crate) sink: Sink,
    /// How private the text is.
    pub(crate) privacy: Privacy,
}

impl Origin {
    /// Of what a server has just sent.
    pub(crate) fn of(source: &Source<'_>) -> Self {
        Self {
            entry: source.entry.clone(),
            tool: source.subject.into(),
            at: source.now,
            sink: source.label.sink,
            privacy: source.label.privacy,
        }
    }
}

/// One remembered text.
pub(crate) struct Item {
    pub(crate) origin: Arc<Origin>,
    pub(crate) label: Label,
    pub(crate) folded: Box<[u8]>,
    /// The text as it entered; kept for secrets only.
    pub(crate) raw: Box<[u8]>,
    pub(crate) grasp: Grasp,
    /// Firedoor put it into a server's start itself. Its name says what it is, so that nothing of it need be shown.
    pub(crate) kept: bool,
    /// A tool made it for somebody to be told ([`crate::privacy::SourceWords::makes_for_others`]).
    pub(crate) made: bool,
    pub(crate) pointer: Arc<str>,
    /// Bit by bit, which bytes of a private or short text begin a word ([`crate::fold::words`]).
    pub(super) words: Box<[u64]>,
    /// Bit by bit, which bytes of a private text belong to a path ([`super::paths`]); empty where none does.
    pub(super) paths: Box<[u64]>,
    /// What has already left in parts.
    pub(super) left: Option<Box<Parts>>,
    /// Whether the server sent it again since it was last thought of forgetting it.
    pub(super) again: bool,
}

impl Item {
    /// A secret, of which nothing has left.
    pub(super) fn secret(
        origin: &Arc<Origin>,
        raw: &[u8],
        folded: Vec<u8>,
        pointer: Arc<str>,
        grasp: Grasp,
        kept: bool,
    ) -> Self {
        Self {
            origin: Arc::clone(origin),
            label: Label::Secret,
            folded: folded.into(),
            raw: raw.into(),
            grasp,
            kept,
            made: false,
            pointer,
            words: Box::default(),
            paths: Box::default(),
            left: None,
            again: false,
        }
    }

    /// How many bytes of the folded text from one place to another belong to a path.
    pub(crate) fn of_paths(&self, from: usize, to: usize) -> usize {
        paths::count(&self.paths, from, to)
    }

    /// Whether it is known where its words begin.
    pub(crate) fn knows_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether a word begins at this place of the folded text. Not known of secrets, which are one word.
    pub(crate) fn begins_word(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }
}

/// Which bytes of an item have left in parts, and how many.
pub(super) struct Parts {
    pub(super) bytes: Vec<bool>,
    pub(super) count: usize,
}

/// How much of an item has left in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) bytes: usize,
    pub(super) of: usize,
}

impl Left {
    pub(crate) fn share(self) -> f64 {
        self.bytes as f64 / self.of as f64
    }
}
