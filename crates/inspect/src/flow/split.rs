//! Data that leaves a few bytes at a time: the short values that one parameter of one tool was given, one after another.
//!
//! A chunk is too short to be known, but the chunks in a row are not. Only what runs over from one call into the next
//! counts here; private text must be cut inside a word as well, because an agent that goes through a list sends its lines
//! in their order.

use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasher as _,
};

use foldhash::fast::RandomState;

use super::{
    MIN_PASSAGE, Match, Outgoing,
    runs::{runs, runs_beyond},
};
use crate::{
    Call, decode, fold,
    memory::{Label, Memory},
};

/// Most parameters whose values are kept, and most of one call.
const MAX_TRAILS: usize = 256;
const MAX_PIECES: usize = 32;
/// Longest value that is a chunk, in folded bytes. Longer ones are known by themselves.
const MAX_PIECE: usize = 64;
/// Folded bytes of a parameter that are kept.
const MAX_TRAIL: usize = 256;
/// Values of one length that may be pieces of something encoded: how many are kept, and how long each is.
const MAX_ROW: usize = 16;
const MIN_ROW_PIECE: usize = 4;
const MAX_ROW_PIECE: usize = 256;
/// Longest query with white space in it, which an address has not.
const MAX_QUERY: usize = 16 * 1024;
/// Most pieces whose every order is tried.
const MAX_ORDERED: usize = 4;

/// The latest short values of many parameters.
#[derive(Default)]
pub(crate) struct Trails {
    by_parameter: HashMap<u64, Trail, RandomState>,
    order: VecDeque<u64>,
    /// Keyed: a server names tools and parameters, and must not make two of them one.
    keys: RandomState,
}

/// The latest short values of one parameter.
#[derive(Default)]
struct Trail {
    folded: Vec<u8>,
    /// Where each value but the first begins.
    cuts: Vec<usize>,
    /// The latest values of one length, as they were; the last may be shorter.
    row: Vec<Box<[u8]>>,
}

impl Trails {
    fn of(&mut self, parameter: u64) -> &mut Trail {
        if !self.by_parameter.contains_key(&parameter) {
            if self.order.len() >= MAX_TRAILS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_parameter.remove(&oldest);
            }
            self.order.push_back(parameter);
        }
        self.by_parameter.entry(parameter).or_default()
    }
}

impl Trail {
    fn push(&mut self, piece: &[u8]) {
        if !self.folded.is_empty() {
            self.cuts.push(self.folded.len());
        }
        self.folded.extend_from_slice(piece);
        let excess = self.folded.len().saturating_sub(MAX_TRAIL);
        self.folded.drain(..excess);
        self.cuts.retain(|cut| *cut > excess);
        self.cuts.iter_mut().for_each(|cut| *cut -= excess);
    }

    /// Adds a value to the row of those that may be pieces of something encoded; whether they may.
    fn extend(&mut self, value: &[u8]) -> bool {
        let length = self.row.first().map_or(value.len(), |first| first.len());
        let ended = self.row.last().is_some_and(|last| last.len() < length || **last == *value);
        if ended || value.len() > length || self.row.len() >= MAX_ROW {
            self.row.clear();
        }
        // The last may be shorter than a piece.
        let least = if self.row.is_empty() { MIN_ROW_PIECE } else { 1 };
        if !(least..=MAX_ROW_PIECE).contains(&value.len()) || value.iter().any(u8::is_ascii_whitespace) {
            self.row.clear();
            return false;
        }
        self.row.push(value.into());
        self.row.len() > 1
    }
}

/// Notes the short values of a call, and hands on what they complete.
pub(super) fn each(memory: &mut Memory, call: &Call<'_>, leaves: &[Outgoing<'_>], out: &mut Vec<Match>) {
    if memory.is_empty() {
        return;
    }
    let mut trails = std::mem::take(&mut memory.trails);
    let mut name = "";
    let mut pieces = 0;
    for (number, leaf) in leaves.iter().enumerate() {
        if leaf.key {
            name = &leaf.text;
            continue;
        }
        values(&leaf.text, &mut |parameter, value| {
            pieces += 1;
            if pieces > MAX_PIECES {
                return;
            }
            let key = trails.keys.hash_one((call.entry, call.method, call.subject, name, parameter));
            let trail = trails.of(key);
            if trail.extend(value) {
                rejoined(memory, &trail.row, number, out);
            }
            if (1..=MAX_PIECE).contains(&fold::length(value)) {
                trail.push(&fold::folded(value));
                complete(memory, trail, number, out);
            }
        });
    }
    memory.trails = trails;
}

/// What pieces of one length are when they are put together: in another order, backwards, or encoded. The last has to have a part
/// in it: what those before it hold was seen when they left.
fn rejoined(memory: &Memory, row: &[Box<[u8]>], leaf: usize, out: &mut Vec<Match>) {
    let Some((last, before)) = row.split_last() else { return };
    // `from` and `to`: where the last piece stands in the text.
    let mut seen = |text: &[u8], how: &'static str, encoded: bool, (from, to): (usize, usize)| {
        let place = |at: usize| fold::length(text.get(..at).unwrap_or(text));
        let (from, to) = (place(from), place(to));
        runs(memory, &fold::folded(text), encoded, &mut |item, start, end, at| {
            let has_part = at < to && at + (end - start) > from;
            // In another order an agent may go through any list; only a secret is cut so, and what one value holds alone is not
            // what they make together.
            let secret = memory.item(item).is_some_and(|i| i.label == Label::Secret);
            if has_part && (encoded || secret && row.iter().all(|piece| end - start > piece.len())) {
                out.push(Match::of_pieces((item, start, end), leaf, how));
            }
        });
    };
    let joined = row.concat();
    let mut back = joined.clone();
    back.reverse();
    seen(&back, "split+reverse", false, (0, last.len()));
    back = row.iter().flat_map(|piece| piece.iter().rev().copied()).collect();
    seen(&back, "split+reverse", false, (joined.len() - last.len(), joined.len()));
    if row.len() <= MAX_ORDERED {
        for order in orders(row.len()) {
            let pieces = order.iter().filter_map(|at| row.get(*at));
            let from =
                pieces.clone().zip(&order).take_while(|(_, at)| **at != before.len()).map(|(p, _)| p.len()).sum();
            let other: Vec<u8> = pieces.flat_map(|piece| piece.iter().copied()).collect();
            seen(&other, "split+order", false, (from, from + last.len()));
        }
    }
    let mut plain = Vec::new();
    let ways = [
        ("split+hex", decode::whole_hex as fn(&[u8], &mut Vec<u8>) -> bool),
        ("split+base64", decode::whole_base64),
        ("split+base32", decode::whole_base32),
    ];
    for (how, way) in ways {
        plain.clear();
        if way(&joined, &mut plain) && decode::is_text(&plain) {
            let from = plain.len() * (joined.len() - last.len()) / joined.len().max(1);
            seen(&plain, how, true, (from, plain.len()));
        }
        let (mut all, mut from) = (Vec::new(), 0);
        let each = row.iter().all(|piece| {
            plain.clear();
            let fits = way(piece, &mut plain);
            from = all.len();
            all.extend_from_slice(&plain);
            fits
        });
        if each && decode::is_text(&all) {
            seen(&all, how, true, (from, all.len()));
        }
    }
}

/// Every order of so many things but their own.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new()];
    for next in 0..count {
        let longer = |order: &Vec<usize>| {
            (0..=order.len())
                .map(|at| {
                    let mut order = order.clone();
                    order.insert(at, next);
                    order
                })
                .collect::<Vec<_>>()
        };
        out = out.iter().flat_map(longer).collect();
    }
    out.retain(|order| !order.is_sorted());
    out
}

/// What the last value of a trail completes.
fn complete(memory: &Memory, trail: &Trail, leaf: usize, out: &mut Vec<Match>) {
    let Some(last) = trail.cuts.last() else { return };
    // Whether ordinary text counts is decided below.
    runs_beyond(memory, &trail.folded, *last, true, &mut |id, start, end, at| {
        let Some(item) = memory.item(id) else { return };
        let length = end - start;
        // Places in the item where one call ended and the next went on.
        let cuts = trail.cuts.iter().filter(|cut| (at + 1..at + length).contains(*cut)).map(|cut| start + cut - at);
        let (mut all, mut inside) = (0, 0);
        for cut in cuts {
            all += 1;
            inside += usize::from(!item.begins_word(cut));
        }
        let counts = match item.label {
            Label::Secret => true,
            Label::Private => length >= MIN_PASSAGE && inside * 2 >= all,
            Label::Ordinary => item.knows_words() && length >= MIN_PASSAGE && inside == all,
        };
        if counts && all > 0 && at + length > *last {
            out.push(Match::of_pieces((id, start, end), leaf, "split"));
        }
    });
}

/// The values in a string: those of a URL's query by their names, or the string itself.
pub(super) fn values(text: &str, visit: &mut dyn FnMut(&[u8], &[u8])) {
    let Some((_, query)) = text.split_once('?').filter(|(_, q)| q.contains('=')) else {
        return visit(b"", text.as_bytes());
    };
    // A file is no query because a question mark stands in it. An address has no white space.
    let most = if query.contains(char::is_whitespace) { query.floor_char_boundary(MAX_QUERY) } else { query.len() };
    let query = query.get(..most).unwrap_or(query);
    let mut plain = Vec::new();
    for pair in query.split(['&', ';', '#']) {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        decode::percent(value.as_bytes(), &mut plain);
        visit(name.as_bytes(), &plain);
    }
}
