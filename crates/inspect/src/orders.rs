//! Texts that gave the agent instructions, and whether a call may follow one of them.
//!
//! Whoever has data sent somewhere has to say where: the address, the account, the name of whoever is to get it stands in the text,
//! in another of theirs, or it is the place that the text came from. A call that goes to none of these does something else.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use firedoor_model::{EntryId, Untrusted, wire::Leaves};
use memchr::memmem;

use crate::{
    Call, Sink,
    hosts::{hosts, schemes},
    memory::Origin,
    privacy::SourceWords,
    reach::Reach,
    view,
};

/// Most texts that are kept, and bytes of each on either side of its order.
const MAX_ORDERS: usize = 16;
const AROUND: usize = 8 * 1024;
/// Most addresses that outside texts named since, and servers of which it is known where they were last.
const MAX_ADDRESSES: usize = 4096;
const MAX_SERVERS: usize = 64;
/// Most addresses and other values of one call that are compared. One that has more may follow any order.
const MAX_NAMED: usize = 256;
/// Longest value that names something, in bytes; what is longer is what is sent. Longest of an address.
const NAME: usize = 64;
const ADDRESS: usize = 253;
/// Fewest characters of a name, of one in small letters, and of an account's or another's number.
const SHORT: usize = 3;
const SMALL: usize = 4;
const NUMBER: usize = 8;
/// Longest value that carries nothing by itself, and longest URL.
const NOTHING: usize = 24;
const PLAIN_URL: usize = 120;

/// A text that gave the agent instructions.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) origin: Arc<Origin>,
    pub(crate) pointer: Arc<str>,
    /// What is shown of it.
    pub(crate) excerpt: Untrusted,
    /// What it says, normalised. `None` if it may mean what does not stand there.
    said: Option<String>,
    /// The host that it came from.
    home: Option<Box<str>>,
}

/// What a text says around its order.
#[derive(Debug)]
pub(crate) enum Said<'t> {
    /// It was hidden, or written in another way than a program would use.
    Anything,
    /// The text, and where in it the order stands.
    Here(&'t str, (usize, usize)),
}

/// All of one agent's session.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    seen: Vec<Order>,
    /// Hosts and mailboxes that texts from outside named since.
    addresses: HashSet<Box<str>>,
    /// There were too many texts, or addresses.
    anything: bool,
    /// The host that each server was last sent to.
    last: BTreeMap<EntryId, Box<str>>,
}

impl Orders {
    /// The first one.
    pub(crate) fn first(&self) -> Option<&Order> {
        self.seen.first()
    }

    /// Notes that the agent read instructions that are not its user's.
    pub(crate) fn note(&mut self, origin: &Arc<Origin>, pointer: Arc<str>, excerpt: &str, said: Said<'_>) {
        let said = match said {
            Said::Anything => None,
            Said::Here(text, (start, end)) => {
                let from = text.floor_char_boundary(start.saturating_sub(AROUND));
                let to = text.floor_char_boundary(end.saturating_add(AROUND).min(text.len()));
                Some(view::normalised(text.get(from..to).unwrap_or_default())).filter(|said| !spelt(said))
            }
        };
        if self.seen.iter().any(|order| order.said == said && order.origin.entry == origin.entry) {
            return;
        }
        if self.seen.len() >= MAX_ORDERS {
            self.anything = true;
            return;
        }
        let home = self.last.get(&origin.entry).cloned();
        let (origin, excerpt) = (Arc::clone(origin), excerpt.into());
        self.seen.push(Order { origin, pointer, excerpt, said, home });
    }

    /// Notes where a call goes: what comes back is from there.
    pub(crate) fn called(&mut self, call: &Call<'_>) {
        let Some(arguments) = call.arguments.filter(|arguments| schemes(arguments).next().is_some()) else { return };
        let named = Leaves::of(arguments).find_map(|leaf| hosts(&leaf.text).next().map(lower));
        if let Some(host) = named
            && (self.last.len() < MAX_SERVERS || self.last.contains_key(call.entry))
        {
            self.last.insert(call.entry.clone(), host.into());
        }
    }

    /// Notes the addresses of a text that may be of whoever gave the instructions.
    pub(crate) fn read(&mut self, origin: &Origin, result: &str) {
        let theirs = |order: &Order| order.origin.entry == origin.entry;
        if self.anything || !(self.seen.iter().any(theirs) || !self.seen.is_empty() && origin.sink != Sink::Local) {
            return;
        }
        for leaf in Leaves::of(result) {
            for address in addresses(&leaf.text) {
                if self.addresses.len() >= MAX_ADDRESSES {
                    self.anything = true;
                    return;
                }
                self.addresses.insert(address.into());
            }
        }
    }

    /// One that a call which sends may follow.
    pub(crate) fn followed(&self, call: &Call<'_>, words: &SourceWords) -> Option<&Order> {
        let first = self.seen.first()?;
        let named = Named::of(call, words);
        let everybody = matches!(words.toward(call).reach, Reach::Open | Reach::Shared);
        if self.anything || named.more || everybody {
            return Some(first);
        }
        let among = |order: &&Order| {
            let Some(said) = &order.said else { return true };
            // An answer, a form, another message in the same place.
            let back = order.origin.entry == *call.entry && named.addresses.is_empty();
            let home = |address: &String| order.home.as_deref() == Some(address);
            let elsewhere = |address: &&String| !home(address) || named.carries;
            let known = |address: &String| self.addresses.contains(address.as_str()) || stands(said, address);
            back || named.addresses.iter().any(|address| home(address) && named.carries)
                || named.addresses.iter().filter(elsewhere).any(known)
                || named.values.iter().any(|value| stands(said, value))
        };
        self.seen.iter().find(among)
    }
}

/// What a call names.
#[derive(Debug, Default)]
struct Named {
    /// Hosts, with those that they belong to, and mailboxes.
    addresses: Vec<String>,
    /// Other short values and numbers.
    values: Vec<String>,
    /// There is more.
    more: bool,
    /// It says more than where it goes.
    carries: bool,
}

impl Named {
    fn of(call: &Call<'_>, words: &SourceWords) -> Self {
        let mut out = Self::default();
        for leaf in Leaves::of(call.arguments.unwrap_or_default()).filter(|leaf| !leaf.key) {
            let text = &*leaf.text;
            let url = schemes(text).next().is_some();
            out.carries |= match url {
                true => text.len() > PLAIN_URL || text.contains(['?', '#']),
                false => text.len() > NOTHING,
            };
            for address in addresses(text) {
                let within = address.match_indices('.').filter_map(|(at, _)| address.get(at + 1..));
                let hosts = within.filter(|host| host.contains('.') && !address.contains('@')).map(str::to_owned);
                out.addresses.extend(hosts);
                out.addresses.push(address);
            }
            let normal = view::normalised(text);
            let value = normal.trim();
            if !url && text.len() <= NAME && telling(text.trim()) && !words.is_common(value) {
                out.values.push(value.to_owned());
            }
            let number = |token: &&str| token.len() >= NUMBER && token.bytes().filter(u8::is_ascii_digit).count() > 2;
            let tokens = normal.split(|c: char| !c.is_alphanumeric()).filter(number);
            out.values.extend(tokens.take(MAX_NAMED + 1).map(str::to_owned));
            if out.addresses.len() > MAX_NAMED || out.values.len() > MAX_NAMED {
                out.more = true;
                break;
            }
        }
        out
    }
}

/// Whether a value may name somebody or something.
fn telling(value: &str) -> bool {
    let count = value.chars().count();
    let digits = value.chars().any(|c| c.is_ascii_digit());
    let mut letters = value.chars().filter(|c| c.is_alphabetic());
    let name = letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase);
    // In scripts without small letters a word is short.
    let other = value.chars().any(|c| c >= '\u{2E80}') && count > 1;
    count > SMALL || other || count >= SHORT && (digits || name)
}

/// Whether a word stands in a text, and not in another.
fn stands(text: &str, word: &str) -> bool {
    let inside = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'@');
    let bytes = text.as_bytes();
    memmem::find_iter(bytes, word).any(|at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let (after, further) = (bytes.get(at + word.len()), bytes.get(at + word.len() + 1));
        let goes_on = after == Some(&b'.') && inside(further);
        !(inside(before) || before == Some(&b'.') || inside(after) || goes_on)
    })
}

/// Whether a text writes addresses so that no program would use them as they stand, or says that something has to be decoded.
fn spelt(said: &str) -> bool {
    const OTHERWISE: [&str; 14] = [
        "(at)",
        "[at]",
        "{at}",
        "(dot)",
        "[dot]",
        "{dot}",
        " dot ",
        "[.]",
        "(.)",
        "base64",
        "rot13",
        "decod",
        "backwards",
        "reversed",
    ];
    OTHERWISE.iter().any(|sign| said.contains(sign))
}

/// The hosts and mailboxes that a text names, in small letters.
fn addresses(text: &str) -> impl Iterator<Item = String> {
    let mailbox = |word: &&str| {
        let (name, host) = word.split_once('@').unwrap_or_default();
        !name.is_empty() && host.contains('.') && word.len() <= ADDRESS
    };
    let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '@'));
    let mail = memchr::memchr(b'@', text.as_bytes()).map(|_| text.split(ends));
    let mail = mail.into_iter().flatten().map(|word| word.trim_matches(['.', '-'])).filter(mailbox);
    hosts(text).filter(|host| !host.is_empty() && host.len() <= ADDRESS).chain(mail).map(lower)
}

fn lower(host: &str) -> String {
    host.trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests;
