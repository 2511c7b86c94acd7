//! Whom texts name beside words to an agent, or beside a request. Most such texts are honest, and so is nearly every call to somebody whom
//! they name elsewhere: only where both meet, a call is worth a question.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use super::{
    Read,
    named::{Named, addresses, packed},
};
use crate::{injection::Hinted, memory::Origin};

/// Most texts that are kept, and addresses of each.
const MAX_TEXTS: usize = 32;
const MAX_ADDRESSES: usize = 128;
/// Fewest digits of an account or a telephone, and most bytes that are compared with such.
const DIGITS: usize = 8;
const PACKED: usize = 4096;
/// Shortest name of an account, longest, and shortest half of one that has an `@` in it.
const SHORTEST: usize = 5;
const HANDLE: usize = 3;
const LONGEST: usize = 40;

#[derive(Debug)]
struct Hint {
    read: Read,
    /// Hosts, mailboxes, names of accounts (`name@bank` among them) and nicknames that begin with `@`.
    addresses: HashSet<Box<str>>,
    /// Its letters and digits, where it has many of the latter.
    packed: String,
    /// Normalised.
    text: Box<str>,
}

#[derive(Debug, Default)]
pub(super) struct Hints(VecDeque<Hint>);

impl Hints {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps whom a text names, but for where it comes from.
    pub(super) fn note(
        &mut self,
        origin: &Arc<Origin>,
        hinted: &Hinted,
        home: impl Fn(&str) -> bool,
        pointer: impl FnOnce() -> Arc<str>,
    ) {
        let text = hinted.around.as_str();
        let others = addresses(text).chain(bare_hosts(text).map(str::to_owned)).filter(|address| !home(address));
        let nicknames = text.split_whitespace().filter_map(nickname).map(str::to_owned);
        let names = words(text).filter(|word| is_account_name(word) || is_handle(word)).map(str::to_owned);
        let addresses: HashSet<Box<str>> =
            others.chain(names).chain(nicknames).take(MAX_ADDRESSES).map(Into::into).collect();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let mut packed = if digits >= DIGITS { packed(text) } else { String::new() };
        packed.truncate(packed.floor_char_boundary(PACKED));
        // The same again must not push others out.
        let known = |hint: &Hint| {
            hint.read.origin.entry == origin.entry && hint.packed == packed && hint.addresses.is_superset(&addresses)
        };
        if addresses.is_empty() && packed.is_empty() || self.0.iter().any(known) {
            return;
        }
        if self.0.len() >= MAX_TEXTS {
            self.0.pop_front();
        }
        let read = Read { origin: Arc::clone(origin), pointer: pointer(), excerpt: hinted.excerpt.as_str().into() };
        self.0.push_back(Hint { read, addresses, packed, text: text.into() });
    }

    /// The text that names whom a call names.
    pub(super) fn followed(&self, named: &Named) -> Option<&Read> {
        let follows = |hint: &&Hint| {
            let known = |address: &str| hint.addresses.contains(address);
            let hosts = named.all().chain(&named.parents);
            // Whoever opens a page as the text has its address brings nothing there.
            let new = || named.pages.iter().any(|page| !has_address(&hint.text, page));
            let brings = |address: &&String| address.contains('@') || named.carries || new();
            hosts.filter(brings).any(|address| known(address))
                || named.values.iter().any(|value| known(&format!("@{value}")))
                || named.users.iter().any(|user| (is_account_name(user) || is_handle(user)) && known(user))
                || !hint.packed.is_empty() && named.accounts.iter().any(|number| hint.packed.contains(number.as_str()))
        };
        self.0.iter().find(follows).map(|hint| &hint.read)
    }
}

/// Whether an address stands in a text as a whole.
fn has_address(text: &str, address: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')' | ']' | '}' | ',' | ';');
    text.match_indices(address).any(|(at, _)| {
        let behind = text.get(at + address.len()..).unwrap_or_default();
        behind.chars().next().is_none_or(ends)
    })
}

/// What an address, or the name of an account, may be.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@')));
    words.map(|word| word.trim_matches(['.', '-', '_']))
}

/// Whether a word may be the name of an account: one with a digit or an underscore in it. Names without are words like any other, and
/// texts that only have those must not take others' place.
fn is_account_name(word: &str) -> bool {
    let sign = |c: char| c.is_ascii_digit() || c == '_';
    (SHORTEST..=LONGEST).contains(&word.len())
        && word.starts_with(char::is_alphabetic)
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && word.contains(sign)
}

/// Whether a word names an account at a service that is no host, as banks do (`name@bank`).
fn is_handle(word: &str) -> bool {
    let part = |part: &str| {
        part.len() >= HANDLE && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    word.split_once('@').is_some_and(|(name, at)| part(name) && part(at) && !at.contains('.'))
}

/// What may be hosts, without a scheme.
fn bare_hosts(text: &str) -> impl Iterator<Item = &str> {
    let host = |word: &&str| {
        let last = word.rsplit_once('.').map(|(_, last)| last);
        !word.contains('@') && last.is_some_and(|last| last.len() > 1 && last.chars().all(char::is_alphabetic))
    };
    words(text).filter(host)
}

/// A word that names somebody by an `@` before it.
fn nickname(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '@' | '_')));
    let name = word.strip_prefix('@')?;
    (name.len() > 2 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).then_some(word)
}
