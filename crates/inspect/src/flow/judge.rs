//! Which of the matches counts, and how much: what entered, where it goes, and how it looks there.

use std::collections::HashMap;

use firedoor_model::{Confidence, Severity};

use super::{Dress, MIN_PASSAGE, MIN_PIECE, Match, NEARLY_ALL, Outgoing, PIECES, Seen, contains};
use crate::{
    Call, Privacy, Sink,
    decode::{Encoding, LOOKALIKES},
    fold,
    gravest::{Graded, Gravest},
    memory::{Grasp, Item, Label, Memory, paths},
    reach::{Reach, Toward},
};

/// Bytes of a passage that is personal.
const MIN_PERSONAL: usize = 120;
/// Most bytes of paths in one call that are taken for such.
const MAX_NAMED: usize = 2048;
/// Longest string whose paths are looked for.
const MAX_NAMING: usize = 4096;

/// How much folded text says, in letters of alphabets: those beyond ASCII have two bytes or three, and what East Asia writes is half a word.
fn letters(passage: &[u8]) -> usize {
    let letter = |b: u8| usize::from(!matches!(b, 0x80..=0xBF)) + usize::from(matches!(b, 0xE3..=0xED));
    passage.iter().map(|b| letter(*b)).sum()
}

/// How sure it is that data of `item` reaches somebody new, if it does.
fn sureness(memory: &Memory, item: &Item, call: &Call<'_>) -> Option<Confidence> {
    let origin = &item.origin;
    if !memory.is_own(call.entry, item) {
        return Some(if call.sink == Sink::Local { Confidence::Likely } else { Confidence::Certain });
    }
    match (call.sink, origin.privacy == Privacy::Sensitive, origin.sink) {
        (Sink::External, false, Sink::External) => Some(Confidence::Possible),
        (Sink::External, false, Sink::Unknown) => Some(Confidence::Likely),
        (Sink::External, _, _) => Some(Confidence::Certain),
        _ => None,
    }
}

/// What is found about one remembered text, the best of its matches.
pub(crate) struct Best {
    pub(crate) matched: Match,
    pub(crate) confidence: Confidence,
    pub(crate) whole: bool,
    pub(super) label: Label,
}

impl Graded for Best {
    fn detector(&self) -> &str {
        detector(self.label, &self.matched)
    }

    fn grade(&self) -> (Severity, Confidence) {
        (Severity::High, self.confidence)
    }
}

pub(super) fn detector(label: Label, matched: &Match) -> &'static str {
    match label {
        Label::Secret => "flow/secret",
        Label::Private => "flow/private",
        Label::Ordinary if matched.transform.is_none() => "flow/private",
        Label::Ordinary => "flow/encoded",
    }
}

/// How many bytes of a match are a path in the remembered text and in what leaves.
fn path_in(item: &Item, leaves: &[Outgoing<'_>], matched: &Match) -> usize {
    let there = item.of_paths(matched.start, matched.end);
    // As it stands, or with letters for its digits.
    let plain = matched.transform.as_deref().is_none_or(|how| how == Encoding::Leet.name());
    let text = leaves.get(matched.leaf).map(|leaf| leaf.text.as_bytes()).filter(|_| plain && there > 0);
    let Some(text) = text.filter(|text| text.len() <= MAX_NAMING) else { return 0 };
    let length = |from: usize, to: usize| fold::length(text.get(from..to).unwrap_or_default());
    let (from, to) = match matched.seen {
        Seen::Folded(from, to) => (from, to),
        Seen::Raw(from, to) => (length(0, from), length(0, to)),
        Seen::Whole => return 0,
    };
    there.min(paths::count(&paths::bits(text, length(0, text.len()), true), from, to))
}

/// Most passages of one call that are looked for in it as they stand.
const MAX_COMPARED: usize = 32;

/// Whether a folded passage stands in what leaves, as it is. `folded` keeps what was folded for that.
fn stands_in(folded: &mut HashMap<usize, Vec<u8>>, leaves: &[Outgoing<'_>], leaf: usize, passage: &[u8]) -> bool {
    let Some(text) = leaves.get(leaf).map(|leaf| leaf.text.as_bytes()) else { return false };
    contains(folded.entry(leaf).or_insert_with(|| fold::folded(text)), passage)
}

/// Most strings, names of members among them, between a value and the next.
const NEXT: usize = 16;

/// Whether the address of a value stands in the remembered text, and less than a piece of what stands before and behind that value: it is used,
/// and not sent. What stands before may be there by chance, as in "at https://".
fn is_destination(leaves: &[Outgoing<'_>], matched: &Match) -> bool {
    let Some(first) = leaves.get(matched.leaf) else { return false };
    let Seen::Folded(from, to) = matched.seen else { return false };
    let length = |leaf: &Outgoing<'_>| fold::length(leaf.text.as_bytes());
    let (leaf, upto) = if from == 0 && first.goes_to > 0 {
        (first, to)
    } else {
        if first.text.len() > MAX_NAMING {
            return false;
        }
        let before = length(first);
        if from > before || before - from >= MIN_PIECE {
            return false;
        }
        let mut next = leaves.iter().skip(matched.leaf + 1).take(NEXT);
        match next.find(|leaf| leaf.key == first.key).filter(|next| next.goes_to > 0) {
            Some(next) => (next, to.saturating_sub(before)),
            None => return false,
        }
    };
    let address = leaf.text.as_bytes().get(..leaf.goes_to).unwrap_or_default();
    matched.transform.is_none() && upto >= fold::length(address) && upto < length(leaf) + MIN_PIECE
}

pub(super) fn judge(
    memory: &mut Memory,
    call: &Call<'_>,
    toward: Toward<'_>,
    leaves: &[Outgoing<'_>],
    matches: Vec<Match>,
) -> Vec<Best> {
    let reach = toward.reach;
    let typed = reach == Reach::Asked && toward.words.is_some_and(|words| words.shows_pages(call));
    let published = reach == Reach::Open && toward.words.is_some_and(|words| words.publishes(call));
    let mut best: Gravest<Best> = Gravest::default();
    // Looked for once each: a string may hold one of them thousands of times.
    let mut verbatim: HashMap<(u32, usize), bool> = HashMap::new();
    let (mut named, mut compared, mut folded) = (0, 0, HashMap::new());
    for matched in matches {
        let Some(item) = memory.item(matched.item) else { continue };
        let Some(limit) = sureness(memory, item, call) else { continue };
        let (label, length) = (item.label, item.folded.len());
        let run = matched.end - matched.start;
        // What is only noted must not stand in the place of what is asked about.
        let noted = label == Label::Ordinary && matched.transform.is_none();
        // What is personal goes to one's own services, too, what says that it is private into files and notes of this machine, and a file
        // in base64 to where it could go as it stands: that is on record, and no question.
        let sent = matches!(reach, Reach::Open | Reach::There);
        let given = sent || reach == Reach::Asked;
        let file = || !given && leaves.get(matched.leaf).is_some_and(|leaf| leaf.file);
        // Its own service has what only its words make private already.
        let back = || !given && memory.is_own(call.entry, item);
        let own = match (label, matched.dress, item.origin.privacy) {
            (Label::Secret, ..) => false,
            (Label::Private, Dress::Plain, _) if is_destination(leaves, &matched) => true,
            (Label::Private, _, Privacy::Sensitive) => false,
            (Label::Ordinary, Dress::Plain, _) if !noted => false,
            (Label::Private, Dress::Plain, Privacy::Telling) => !given,
            (Label::Private, Dress::Plain, Privacy::Revealing) => !given && (reach != Reach::Shared || back()),
            (Label::Ordinary, Dress::Plain, Privacy::Personal) => !sent || published,
            (Label::Ordinary, Dress::Plain, _) => reach != Reach::There,
            (Label::Private, Dress::File, Privacy::Telling | Privacy::Revealing)
            | (Label::Ordinary, Dress::File, _) => file(),
            (Label::Private, _, Privacy::Telling | Privacy::Revealing) | (_, Dress::Hidden, _) => false,
            (Label::Private, Dress::Plain, Privacy::Private) => reach == Reach::Here || back(),
            (Label::Private, ..) => reach == Reach::Here,
        };
        // A line out of a text that only its words may make private, if no more of that text leaves.
        let by_words = label == Label::Private && matches!(item.origin.privacy, Privacy::Telling | Privacy::Revealing);
        let alike = |how: &str| how.starts_with(LOOKALIKES);
        let plain = matched.dress == Dress::Plain && matched.transform.as_deref().is_none_or(alike);
        let line = by_words && plain && (typed || reach == Reach::Open);
        // What was made to be told to somebody.
        let told_to = !matches!(reach, Reach::There | Reach::Open | Reach::Beside | Reach::Asked);
        let limit = if item.made && told_to { Confidence::Possible } else { limit };
        let whole = run == length && !noted;
        let confidence = match label {
            Label::Secret if whole => {
                let mut stands = || {
                    let here = || leaves.get(matched.leaf).is_some_and(|l| contains(l.text.as_bytes(), &item.raw));
                    *verbatim.entry((matched.item, matched.leaf)).or_insert_with(here)
                };
                if item.grasp == Grasp::Exact && matched.transform.is_none() && !stands() {
                    continue;
                }
                limit
            }
            Label::Secret if item.grasp == Grasp::Exact => continue,
            Label::Secret if item.grasp == Grasp::Whole => {
                if memory.part_left(matched.item, matched.start, matched.end).share() < NEARLY_ALL {
                    continue;
                }
                limit.min(Confidence::Likely)
            }
            Label::Secret => {
                let left = memory.part_left(matched.item, matched.start, matched.end);
                // Half of it at its start or end is what somebody sends who cuts it off.
                let half = (matched.start == 0 || matched.end == length) && run * 2 >= length;
                let much = run >= 12 && (run * 5 >= length * 2 || run >= 64) || run >= 10 && run * 2 >= length;
                if !(much || half || left.share() >= 0.6) {
                    continue;
                }
                limit.min(Confidence::Likely)
            }
            // As it stands, and not as what belongs together in an encoding.
            Label::Ordinary
                if noted
                    && !(matches!(item.origin.privacy, Privacy::Personal | Privacy::Kept) && run >= MIN_PERSONAL) =>
            {
                continue;
            }
            Label::Private | Label::Ordinary => {
                let passage = item.folded.get(matched.start..matched.end).unwrap_or_default();
                // Where a file lies is no passage of what it says, where it goes to nobody and as the path that it is.
                let near = matches!(reach, Reach::Here | Reach::Nowhere | Reach::Shared) && named < MAX_NAMED;
                let path = if near { path_in(item, leaves, &matched) } else { 0 };
                named += path;
                let letters = letters(passage);
                let told = letters.saturating_sub(path);
                if told < MIN_PIECE || fold::distinct(passage) < 8 {
                    continue;
                }
                // Latin letters among Russian or Greek ones that leave as they stand were not hidden.
                let disguised = label == Label::Ordinary && matched.transform.as_deref().is_some_and(alike);
                compared += usize::from(disguised);
                if disguised && compared <= MAX_COMPARED && stands_in(&mut folded, leaves, matched.leaf, passage) {
                    continue;
                }
                // What has left of it in pieces, in letters: as many to the byte as in this one.
                let mut left =
                    || memory.part_left(matched.item, matched.start, matched.end).bytes * letters / run.max(1);
                if told < MIN_PASSAGE && left() < PIECES {
                    continue;
                }
                let line = line && left() < MIN_PERSONAL;
                limit.min(if own || line { Confidence::Possible } else { Confidence::Likely })
            }
        };
        match best.find(|b| b.matched.item == matched.item) {
            Some(b) if (b.whole, b.confidence) >= (whole, confidence) => {}
            Some(b) => *b = Best { matched, confidence, whole, label },
            None => best.push(Best { matched, confidence, whole, label }),
        }
    }
    // The surroundings of a secret say nothing that the secret does not.
    let mut best = best.into_vec();
    let worse = best.iter().any(|b| b.label != Label::Ordinary);
    best.retain(|b| !worse || b.label != Label::Ordinary);
    best
}
