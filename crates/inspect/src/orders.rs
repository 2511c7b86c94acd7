//! Texts that gave the agent instructions, and whether a call may follow one of them.
//!
//! Whoever has data sent somewhere has to say where: the address, the account, the name of whoever is to get it stands in the text,
//! in another of theirs, or it is the place that the text came from. What a text only hints at is not seen here.

mod hints;
mod named;
mod written;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use firedoor_model::{EntryId, Evidence, Untrusted, wire::Leaves};
use memchr::memmem;

use crate::{
    Call, Sink, Source, hosts::schemes, injection::Hinted, memory::Origin, privacy::SourceWords, sink::words, view,
};
use hints::Hints;
pub(crate) use named::is_checked_iban;
use named::{Named, addresses, naming, packed};
use written::Sent;
pub(crate) use written::Written;

/// Most texts that are kept, and bytes of each on either side of its order.
const MAX_ORDERS: usize = 16;
const AROUND: usize = 8 * 1024;
/// Bytes on either side of an order in which it may say that something is written otherwise.
pub(crate) const NEAR: usize = 400;
/// Shortest word of a tool's name that tells it.
const SPOKEN: usize = 4;
/// Most addresses that outside texts named since.
const MAX_ADDRESSES: usize = 4096;
/// Most servers of which it is known where they were, and hosts of each; results of each whose mailboxes are known, how many of
/// these, and longest of such results.
const MAX_SERVERS: usize = 64;
const HOSTS: usize = 8;
const RESULTS: usize = 3;
const MAILBOXES: usize = 64;
const LISTED: usize = 64 * 1024;

/// Where a text was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) origin: Arc<Origin>,
    pub(crate) pointer: Arc<str>,
    /// What is shown of it.
    pub(crate) excerpt: Untrusted,
}

/// A text that a call may follow.
#[derive(Debug)]
pub(crate) enum Followed<'o> {
    /// It gave the agent instructions.
    Order(&'o Read),
    /// It speaks to an agent or asks for something, and names whom the call names.
    Hint(&'o Read),
}

/// A text that gave the agent instructions.
#[derive(Debug)]
struct Order {
    read: Read,
    said: Said,
    /// The hosts that it may have come from.
    homes: VecDeque<Box<str>>,
    /// The user was shown it, and let a call pass that may follow it.
    allowed: bool,
}

/// What a text says around its order.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// It may mean what does not stand there.
    Anything,
    /// It tells of an attack: no order, unless somebody follows it.
    Told(String),
    /// Normalised, and its letters and digits alone.
    Here(String, String),
}

/// How a text gave its order.
#[derive(Debug)]
pub(crate) enum Given<'t> {
    /// It was hidden, is not known as a whole, or says that it means what does not stand there.
    Hidden,
    /// In this text, there.
    Plain(&'t str, (usize, usize)),
    /// The same, of an attack that it tells of.
    Told(&'t str, (usize, usize)),
}

/// Where a server was, what it sent last, and whom it named.
#[derive(Debug, Default)]
struct Recent {
    sent: Option<Sent>,
    hosts: VecDeque<Box<str>>,
    mailboxes: VecDeque<Vec<String>>,
}

/// All of one agent's session.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    seen: Vec<Order>,
    /// Hosts and mailboxes that texts from outside named since.
    addresses: HashSet<Box<str>>,
    /// There were too many texts, or addresses.
    anything: bool,
    recent: BTreeMap<EntryId, Recent>,
    hints: Hints,
}

impl Orders {
    /// Whether no text was read that a call may follow.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.hints.is_empty()
    }

    /// The first one that is no attack that is told of.
    pub(crate) fn first(&self) -> Option<&Read> {
        self.seen.iter().find(|order| !order.is_told()).map(|order| &order.read)
    }

    /// The first of these that the user has not been asked about, or did not let pass.
    fn first_unanswered(&self) -> Option<&Read> {
        self.seen.iter().find(|order| !(order.is_told() || order.allowed)).map(|order| &order.read)
    }

    /// Notes that the user let a call pass when asked about what this text says. Where several texts are shown alike, none of them was.
    pub(crate) fn allow(&mut self, source: &Evidence) {
        let same = |read: &Read| {
            source.entry.as_ref() == Some(&read.origin.entry)
                && source.tool.as_ref() == Some(&read.origin.tool)
                && *read.pointer == *source.pointer.raw()
                && read.excerpt.raw() == source.excerpt.raw()
        };
        let mut shown = self.seen.iter_mut().filter(|order| same(&order.read));
        // Nobody can have seen what is hidden.
        if let (Some(order), None) = (shown.next(), shown.next())
            && order.said != Said::Anything
        {
            order.allowed = true;
        }
    }

    /// Notes that the agent read instructions that are not its user's.
    pub(crate) fn note(&mut self, origin: &Arc<Origin>, pointer: Arc<str>, excerpt: &str, given: &Given<'_>) {
        let said = match *given {
            Given::Hidden => Said::Anything,
            Given::Plain(text, span) => {
                let said = around(text, span, AROUND);
                let packed = packed(&said);
                Said::Here(said, packed)
            }
            Given::Told(text, span) => Said::Told(around(text, span, AROUND)),
        };
        let recent = self.recent.get(&origin.entry);
        let homes = recent.map(|recent| recent.hosts.clone()).unwrap_or_default();
        let same = |order: &&Order| order.said == said && order.read.origin.entry == origin.entry;
        if self.seen.iter().filter(same).any(|order| order.homes == homes) {
            return;
        }
        let allowed = self.seen.iter().filter(same).any(|order| order.allowed);
        if self.seen.len() >= MAX_ORDERS {
            let told = self.seen.iter().position(Order::is_told);
            // What is told of never takes the place of an order.
            match told.filter(|_| !matches!(said, Said::Told(_))) {
                Some(told) => drop(self.seen.remove(told)),
                None => {
                    self.anything |= !matches!(said, Said::Told(_));
                    return;
                }
            }
        }
        for mailbox in recent.into_iter().flat_map(|recent| &recent.mailboxes).flatten() {
            self.addresses.insert(mailbox.as_str().into());
        }
        let (origin, excerpt) = (Arc::clone(origin), excerpt.into());
        self.seen.push(Order { read: Read { origin, pointer, excerpt }, said, homes, allowed });
    }

    /// Notes what a text says around words to an agent: no order that is known for one, unless a call goes where it says.
    pub(crate) fn hint(&mut self, origin: &Arc<Origin>, hints: &Hinted, pointer: impl FnOnce() -> Arc<str>) {
        let home = |address: &str| {
            self.recent.get(&origin.entry).is_some_and(|recent| recent.hosts.iter().any(|home| **home == *address))
        };
        self.hints.note(origin, hints, home, pointer);
    }

    fn recent(&mut self, entry: &EntryId) -> Option<&mut Recent> {
        let room = self.recent.len() < MAX_SERVERS || self.recent.contains_key(entry);
        room.then(|| self.recent.entry(entry.clone()).or_default())
    }

    /// What the agent wrote, where a result answers the call that sent it.
    pub(crate) fn written(&self, source: &Source<'_>) -> Option<Written> {
        self.recent.get(source.entry)?.sent.as_ref()?.written(source.subject)
    }

    /// Notes what a call hands on, if it does, and where it goes: what comes back is from there.
    pub(crate) fn called(&mut self, call: &Call<'_>, hands_on: bool) {
        let arguments = call.arguments.unwrap_or_default();
        let resource = call.method != "tools/call";
        let sent = if hands_on { Sent::of(call.subject, arguments) } else { None };
        if sent.is_some() {
            if let Some(recent) = self.recent(call.entry) {
                recent.sent = sent;
            }
        } else if let Some(recent) = self.recent.get_mut(call.entry) {
            recent.sent = None;
        }
        if !resource && schemes(arguments).next().is_none() {
            return;
        }
        let mut named: Vec<String> = Vec::new();
        let subject = resource.then_some(call.subject);
        for leaf in Leaves::of(arguments).map(|leaf| leaf.text).chain(subject.map(Into::into)) {
            named.extend(addresses(&leaf).filter(|address| !address.contains('@')).take(HOSTS - named.len()));
        }
        let Some(recent) = self.recent(call.entry).filter(|_| !named.is_empty()) else { return };
        for host in named {
            recent.hosts.retain(|known| **known != *host);
            recent.hosts.push_back(host.into());
        }
        let more = recent.hosts.len().saturating_sub(HOSTS);
        recent.hosts.drain(..more);
    }

    /// Notes the addresses of a text that may be of whoever gave the instructions, or will.
    pub(crate) fn read(&mut self, origin: &Origin, result: &str) {
        let theirs = |order: &Order| order.read.origin.entry == origin.entry;
        if self.seen.iter().any(theirs) || !self.seen.is_empty() && origin.sink != Sink::Local {
            for leaf in Leaves::of(result) {
                for word in naming(&leaf.text).map(apart) {
                    for address in addresses(&word) {
                        if self.addresses.len() >= MAX_ADDRESSES {
                            self.anything = true;
                            return;
                        }
                        self.addresses.insert(address.into());
                    }
                }
            }
        }
        // Mails are listed before one is read.
        if result.len() > LISTED || memchr::memchr(b'@', result.as_bytes()).is_none() {
            return;
        }
        let leaves = Leaves::of(result).filter(|leaf| leaf.text.contains('@'));
        let all =
            leaves.flat_map(|leaf| addresses(&leaf.text).filter(|address| address.contains('@')).collect::<Vec<_>>());
        let mailboxes = all.take(MAILBOXES).collect();
        if let Some(recent) = self.recent(&origin.entry) {
            recent.mailboxes.truncate(RESULTS - 1);
            recent.mailboxes.push_front(mailboxes);
        }
    }

    /// What a call may follow. One that is not known to send is an order's by an address alone.
    pub(crate) fn followed(&self, call: &Call<'_>, words: &SourceWords, sends: bool) -> Option<Followed<'_>> {
        if self.is_empty() {
            return None;
        }
        let named = Named::of(call, words);
        let order = if sends { self.order(call, &named, words) } else { self.naming(&named) };
        order.map(Followed::Order).or_else(|| self.hints.followed(&named).map(Followed::Hint))
    }

    /// The order that a call which need not send goes to whom it names.
    pub(crate) fn names(&self, call: &Call<'_>, words: &SourceWords) -> Option<Followed<'_>> {
        let named = || self.naming(&Named::of(call, words)).map(Followed::Order);
        if self.seen.is_empty() { None } else { named() }
    }

    fn naming(&self, named: &Named) -> Option<&Read> {
        let everybody = self.first().filter(|_| named.everybody);
        let named = || self.seen.iter().find(|order| order.names(named)).map(|order| &order.read);
        everybody.or_else(named)
    }

    fn order(&self, call: &Call<'_>, named: &Named, words: &SourceWords) -> Option<&Read> {
        let any = self.first().filter(|_| self.anything || named.more || named.everybody);
        let open = words.for_everybody(call) && !named.little;
        let sent = || open || self.names_outside(named);
        if let Some(first) = any.or_else(|| self.first_unanswered().filter(|_| sent())) {
            return Some(first);
        }
        if let Some(order) = self.seen.iter().find(|order| open && order.allowed && order.speaks_of(call)) {
            return Some(&order.read);
        }
        self.seen.iter().find(|order| order.may_mean(call, named)).map(|order| &order.read)
    }

    /// Whether a call names an address of a text that was read since. Where all of these came from is no sign by itself.
    fn names_outside(&self, named: &Named) -> bool {
        let home = |address: &String| self.seen.iter().any(|order| order.is_home(address));
        let outside = |address: &&String| self.addresses.contains(address.as_str());
        named.all().filter(outside).any(|address| named.carries || !home(address))
            || named.parents.iter().filter(outside).any(|parent| !home(parent))
    }
}

impl Order {
    fn is_told(&self) -> bool {
        matches!(self.said, Said::Told(_))
    }

    fn is_home(&self, address: &str) -> bool {
        self.homes.iter().any(|home| **home == *address)
    }

    fn may_mean(&self, call: &Call<'_>, named: &Named) -> bool {
        match &self.said {
            Said::Anything => true,
            Said::Told(said) => named.all().any(|address| !self.is_home(address) && names(said, address)),
            Said::Here(said, packed) => {
                // An answer, a form, another message in the same place.
                let back =
                    !self.allowed && self.read.origin.entry == *call.entry && named.goes.is_empty() && !named.little;
                back || self.comes_home(said, named)
                    || named.all().any(|address| !self.is_home(address) && names(said, address))
                    || named.values.iter().any(|value| stands(said, value))
                    || named.numbers.iter().any(|number| packed.contains(number.as_str()))
            }
        }
    }

    /// Whether the text has a word that the names of server and tool have: "tweet it", "open an issue".
    fn speaks_of(&self, call: &Call<'_>) -> bool {
        let Said::Here(said, _) = &self.said else { return false };
        let names = [words(call.subject), words(call.entry.server())].concat();
        names.iter().filter(|word| word.len() >= SPOKEN).any(|word| said.contains(word.as_str()))
    }

    /// Whether a call that need not send has an address that the text names, or brings something to where it came from.
    fn names(&self, named: &Named) -> bool {
        match &self.said {
            Said::Anything => named.all().any(|address| !self.is_home(address) || named.carries),
            Said::Told(_) => false,
            Said::Here(said, packed) => {
                let whom = |address: &String| match self.is_home(address) {
                    true => named.carries,
                    false => names(said, address),
                };
                named.all().any(whom)
                    || self.comes_home(said, named)
                    || named.accounts.iter().any(|number| packed.contains(number.as_str()))
            }
        }
    }

    /// Whether a call brings something to a host that the text came from, or to one of its names.
    fn comes_home(&self, said: &str, named: &Named) -> bool {
        let new = || named.segments.iter().any(|segment| !said.contains(segment.as_str()));
        named.goes.iter().any(|address| self.is_home(address)) && (named.carries || new())
            || named.parents.iter().any(|parent| self.is_home(parent))
            || named.parents.iter().any(|parent| stands(said, parent))
    }
}

/// The normalised text around a place.
pub(crate) fn around(text: &str, (start, end): (usize, usize), bytes: usize) -> String {
    let from = text.floor_char_boundary(start.saturating_sub(bytes));
    let to = text.floor_char_boundary(end.saturating_add(bytes).min(text.len()));
    view::normalised(&apart(text.get(from..to).unwrap_or_default()))
}

/// Whether a text names an address: as it stands, as its two halves apart, or as any mailbox of a host.
fn names(text: &str, address: &str) -> bool {
    let halves = || {
        let (name, host) = address.split_once('@').unwrap_or_default();
        let any = || {
            let at = address.find('@').and_then(|at| address.get(at..)).unwrap_or_default();
            let part = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-".contains(b);
            memmem::find_iter(text.as_bytes(), at)
                .any(|at| !at.checked_sub(1).and_then(|at| text.as_bytes().get(at)).is_some_and(part))
        };
        !host.is_empty() && (stands(text, name) && stands(text, host) || any())
    };
    stands(text, address) || halves()
}

/// Whether a word stands in a text, and not in another.
fn stands(text: &str, word: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    let is = |at: Option<usize>, b: u8| at.and_then(|at| bytes.get(at)) == Some(&b);
    !word.is_empty()
        && memmem::find_iter(bytes, word).any(|at| {
            let (before, two) = (at.checked_sub(1), at.checked_sub(2));
            let (after, further) = (Some(at + word.len()), Some(at + word.len() + 1));
            // The `@` of a nickname begins it, that of a mailbox does not.
            let begun =
                alphanumeric(before) || is(before, b'-') || is(before, b'.') || is(before, b'@') && alphanumeric(two);
            let goes_on =
                alphanumeric(after) || is(after, b'-') || is(after, b'@') || is(after, b'.') && alphanumeric(further);
            !(begun || goes_on)
        })
}

/// A text with a blank behind each dot that ends a sentence: the next one may begin right behind it.
fn apart(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut dot = false;
    for c in text.chars() {
        if dot && c.is_uppercase() {
            out.push(' ');
        }
        dot = c == '.';
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
