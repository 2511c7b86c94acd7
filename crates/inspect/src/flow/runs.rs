//! Where a text that leaves holds what is remembered.

use std::collections::HashMap;

use super::{MIN_PART, MIN_PASSAGE, MIN_PIECE};
use crate::{
    decode::{self, Encoding},
    fold,
    index::FILTERED,
    memory::{ENDS, Grasp, Label, Memory},
};

/// What [`turned`] calls: item, start and end in the item, start in the text, and how the text was turned.
pub(super) type OnRun<'v> = &'v mut dyn FnMut(u32, usize, usize, usize, Option<Encoding>);

/// Runs of folded text as it is and, where that is not one encoding too many, backwards.
pub(super) fn turned(memory: &Memory, mut text: Vec<u8>, opaque: bool, deeper: bool, visit: OnRun<'_>) {
    let ends = memory.index().ends(&text, 0);
    if ends.is_empty() {
        return;
    }
    runs_at(memory, &text, 0, ends.iter().copied(), opaque, &mut |item, start, end, at| {
        visit(item, start, end, at, None);
    });
    if !deeper {
        return;
    }
    text.reverse();
    let last = text.len();
    // What the end of a window is forwards, is the place behind it backwards.
    let ends = ends.iter().rev().map(|end| last + FILTERED - end);
    runs_at(memory, &text, 0, ends, true, &mut |item, start, end, at| {
        visit(item, start, end, last.saturating_sub(at + 1), Some(Encoding::Reverse));
    });
}

/// The same of decoded bytes, of which `text` is what may be text. Where in them a run stands is not said.
pub(super) fn legible(memory: &Memory, bytes: &[u8], text: &[u8], opaque: bool, deeper: bool, visit: OnRun<'_>) {
    runs(memory, &fold::folded(text), opaque, &mut |item, start, end, _| visit(item, start, end, 0, None));
    if deeper {
        // Characters of several bytes are text in one direction only.
        let back: Vec<u8> = bytes.iter().rev().copied().collect();
        let text = fold::folded(&decode::legible(&back));
        runs(memory, &text, true, &mut |item, start, end, _| visit(item, start, end, 0, Some(Encoding::Reverse)));
    }
}

/// Every run of `text` that is remembered: `visit(item, start in item, end in item, start in text)`. Ordinary text counts
/// only where it was hidden.
pub(crate) fn runs(memory: &Memory, text: &[u8], opaque: bool, visit: &mut dyn FnMut(u32, usize, usize, usize)) {
    runs_beyond(memory, text, 0, opaque, visit);
}

/// The same, of those that go on beyond a place; others may be among them. Of such a run the last window begins no further before that place
/// than windows are long and apart. Where another text has that window, the run is found as one of that text, as far as both are alike.
pub(super) fn runs_beyond(
    memory: &Memory,
    text: &[u8],
    place: usize,
    opaque: bool,
    visit: &mut dyn FnMut(u32, usize, usize, usize),
) {
    let from = place.saturating_sub(MIN_PASSAGE);
    runs_at(memory, text, from, memory.index().ends(text, from).into_iter(), opaque, visit);
}

/// The same, of windows with these ends, from a place on.
fn runs_at(
    memory: &Memory,
    text: &[u8],
    from: usize,
    ends: impl Iterator<Item = usize>,
    opaque: bool,
    visit: &mut dyn FnMut(u32, usize, usize, usize),
) {
    let index = memory.index();
    let mut found = Vec::new();
    // Nothing before these places is looked at again, so that all runs together cost no more than the text; of the secrets that may begin
    // alike, of which the index has a few for each window, each has its own.
    let mut floors = [0usize; 3];
    let mut kept_floors: HashMap<u32, usize> = HashMap::new();
    const ALWAYS: [usize; 3] = [ENDS, Label::Secret as usize, Label::Private as usize];
    const HIDDEN: [usize; 4] = [ENDS, Label::Secret as usize, Label::Private as usize, Label::Ordinary as usize];
    let kinds = if opaque { HIDDEN.as_slice() } else { ALWAYS.as_slice() };
    index.find_at(text, from, ends, kinds, |kind, end, (id, at)| {
        let Some(item) = memory.item(id) else { return 0 };
        if kind == ENDS {
            let to = item.folded.len();
            if let Some(start) = end.checked_sub(to).filter(|start| text.get(*start..end) == Some(&item.folded)) {
                // One that has to stand there as it is may turn out not to.
                found.push(Run { id, from: 0, to, at: start, secret: true, covers: item.grasp != Grasp::Exact });
            }
            return 0;
        }
        let floor = if item.kept { Some(kept_floors.entry(id).or_default()) } else { floors.get_mut(kind) };
        let Some(floor) = floor else { return 0 };
        let width = index.cut(kind).width;
        let (start, at) = (end.saturating_sub(width), at as usize);
        if start < *floor || item.folded.get(at..at + width) != text.get(start..end) {
            return 0;
        }
        // Many that Firedoor keeps begin alike, and a digit may be all that tells them apart.
        let same: fn(u8, u8) -> bool = if item.kept { |a, b| a == b } else { fold::alike };
        let left = common_end(same, part(&item.folded, 0, at), part(text, *floor, start));
        let right = common(same, part(&item.folded, at + width, usize::MAX), part(text, end, usize::MAX));
        let (from, to) = (at - left, at + width + right);
        let shortest = match item.label {
            Label::Secret => MIN_PART,
            Label::Private => MIN_PIECE,
            Label::Ordinary => MIN_PASSAGE,
        };
        if to - from >= shortest {
            *floor = end + right;
            if !(item.kept && to - from == item.folded.len()) {
                let secret = item.label == Label::Secret;
                found.push(Run { id, from, to, at: start - left, secret, covers: false });
            }
        }
        // Of secrets others may stand there that have a floor of their own.
        if item.label == Label::Secret { 0 } else { *floor }
    });
    for Run { id, from, to, at, .. } in meant(found) {
        visit(id, from, to, at);
    }
}

/// A run of what is remembered: `from..to` of it stands at `at` in the text.
struct Run {
    id: u32,
    from: usize,
    to: usize,
    at: usize,
    secret: bool,
    /// It is all of a secret that Firedoor keeps, and nothing else is meant by what lies in it.
    covers: bool,
}

impl Run {
    fn end(&self) -> usize {
        self.at + self.to - self.from
    }
}

/// Without runs of secrets that lie in one that covers them: what two have in common is meant as a part of the one that stands there, and
/// so is a shorter one in a longer. Of two that are equally long both stay.
fn meant(mut runs: Vec<Run>) -> Vec<Run> {
    let mut covering: Vec<(usize, usize)> =
        runs.iter().filter(|run| run.covers).map(|run| (run.at, run.end())).collect();
    // Of those that begin in one place the longest.
    covering.sort_unstable_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)));
    covering.dedup_by_key(|(at, _)| *at);
    let furthest: Vec<usize> = covering
        .iter()
        .scan(0, |most, (_, end)| {
            *most = (*most).max(*end);
            Some(*most)
        })
        .collect();
    runs.retain(|run| {
        let earlier = covering.partition_point(|(at, _)| *at < run.at);
        let lies_in_earlier = earlier.checked_sub(1).and_then(|i| furthest.get(i)).is_some_and(|end| *end >= run.end());
        let beside = covering.get(earlier).filter(|(at, _)| *at == run.at).map(|(_, end)| *end);
        let lies_in_longer = beside.is_some_and(|end| end > run.end() || end == run.end() && !run.covers);
        !(run.secret && (lies_in_earlier || lies_in_longer))
    });
    runs
}

fn part(text: &[u8], from: usize, to: usize) -> &[u8] {
    text.get(from..to.min(text.len())).unwrap_or_default()
}

/// Bytes that two texts begin with both. Most are the same eight at a time.
fn common(same: fn(u8, u8) -> bool, a: &[u8], b: &[u8]) -> usize {
    let alike = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(x, y)| same(**x, **y)).count();
    let eights = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let many = eights.take_while(|(a, b)| a == b || alike(*a, *b) == 8).count() * 8;
    many + alike(part(a, many, usize::MAX), part(b, many, usize::MAX))
}

/// The same of their ends.
fn common_end(same: fn(u8, u8) -> bool, a: &[u8], b: &[u8]) -> usize {
    let alike = |a: &[u8], b: &[u8]| a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| same(**x, **y)).count();
    let eights = a.as_rchunks::<8>().1.iter().rev().zip(b.as_rchunks::<8>().1.iter().rev());
    let many = eights.take_while(|(a, b)| a == b || alike(*a, *b) == 8).count() * 8;
    many + alike(part(a, 0, a.len().saturating_sub(many)), part(b, 0, b.len().saturating_sub(many)))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_common_is_counted(a in "[a-c0o]{0,40}", b in "[a-c0o]{0,40}", both in "[a-z0-9]{0,60}") {
            let one_by_one = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(x, y)| fold::alike(**x, **y)).count();
            let (one, other) = (format!("{both}{a}"), format!("{}{b}", both.replace('o', "0")));
            proptest::prop_assert_eq!(
                common(fold::alike, one.as_bytes(), other.as_bytes()),
                one_by_one(one.as_bytes(), other.as_bytes())
            );
            let (one, other) = (format!("{a}{both}"), format!("{b}{}", both.replace('o', "0")));
            let back = |text: &str| text.bytes().rev().collect::<Vec<_>>();
            proptest::prop_assert_eq!(
                common_end(fold::alike, one.as_bytes(), other.as_bytes()),
                one_by_one(&back(&one), &back(&other))
            );
        }
    }
}
