//! What entered through one tool and leaves through another.

use std::borrow::Cow;

use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Millis, Severity, Untrusted,
    finding::{Role, mask},
    wire::pointer,
};

use crate::{
    Call, Privacy,
    arguments::Arguments,
    decode,
    decode::{Budget, Encoding},
    fold,
    hosts::schemes,
    memory::{Label, Memory},
    orders::is_checked_iban,
    reach::{Reach, Toward},
};

mod cut;
mod dress;
mod judge;
mod keyed;
mod runs;
pub(crate) mod split;

use dress::Dress;
pub(crate) use judge::Best;
use judge::{detector, judge};
pub(crate) use runs::runs;
use runs::{legible, turned};

/// Informative bytes of private or ordinary text that must be common. With windows of 16 at every 8th byte such a run is
/// always found in private text; in ordinary text (every 16th) a run of 32 is too.
const MIN_PASSAGE: usize = 32;
/// Bytes of private text that count as a piece of it, and how many bytes of pieces make a passage: text that is sent in
/// several calls.
const MIN_PIECE: usize = 20;
const PIECES: usize = 48;
/// Bytes of a secret that count as a part of it.
const MIN_PART: usize = 8;
/// Which share of a secret that a person wrote counts as all of it.
const NEARLY_ALL: f64 = 0.9;
/// Most values of one call that are taken for where it goes: more are a list that is handed over.
const MAX_DESTINATIONS: usize = 16;
/// Most accounts of one call that are paid to: more are a list of them.
const MAX_ACCOUNTS: usize = 2;
/// Encodings that are undone one after the other.
const MAX_DEPTH: usize = 2;
/// The same, where each gives text that is another encoding of bytes.
const MAX_NESTED: usize = 5;

/// One string that leaves.
pub(crate) struct Outgoing<'a> {
    text: Cow<'a, str>,
    /// Offset in the arguments; `None` for the subject.
    offset: Option<usize>,
    key: bool,
    /// It is a file in base64, where a tool takes such.
    file: bool,
    /// Its first bytes say where the call goes, and nothing else.
    goes_to: usize,
}

/// A run of remembered text in what leaves.
pub(crate) struct Match {
    pub(crate) item: u32,
    /// In the item's folded text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Which outgoing string, and where in it.
    pub(crate) leaf: usize,
    seen: Seen,
    pub(crate) transform: Option<Cow<'static, str>>,
    pub(crate) dress: Dress,
}

impl Match {
    /// The bytes from `start` to `end` of an item, written in these ways.
    fn new(
        (item, start, end): (u32, usize, usize),
        leaf: usize,
        seen: Seen,
        ways: impl Iterator<Item = Encoding> + Clone,
    ) -> Self {
        let names: Vec<&str> = ways.clone().map(Encoding::name).collect();
        let transform = match *names {
            [] => None,
            [one] => Some(Cow::Borrowed(one)),
            _ => Some(Cow::Owned(names.join("+"))),
        };
        Self { item, start, end, leaf, seen, transform, dress: Dress::of(ways) }
    }

    /// The same of what the pieces of several strings make together.
    fn of_pieces((item, start, end): (u32, usize, usize), leaf: usize, how: &'static str) -> Self {
        Self { item, start, end, leaf, seen: Seen::Whole, transform: Some(Cow::Borrowed(how)), dress: Dress::Plain }
    }
}

/// What of the remembered leaves with one call.
pub(crate) struct Leaving<'a> {
    leaves: Vec<Outgoing<'a>>,
    pub(crate) best: Vec<Best>,
    /// Not all encoded parts could be looked at.
    pub(crate) unchecked: bool,
}

/// Where in an outgoing string something was seen.
#[derive(Clone, Copy)]
enum Seen {
    /// These bytes of its folded form.
    Folded(usize, usize),
    /// These bytes of it, or what they are the encoding of.
    Raw(usize, usize),
    /// All of it.
    Whole,
}

impl Seen {
    /// The bytes of the string itself.
    fn span(self, text: &str) -> Option<(usize, usize)> {
        match self {
            Self::Folded(from, to) => Some(fold::unfolded(text.as_bytes(), from, to)),
            Self::Raw(from, to) => Some((from, to)),
            Self::Whole => None,
        }
    }
}

/// Findings of one call.
pub(crate) fn inspect(
    memory: &mut Memory,
    call: &Call<'_>,
    arguments: &Arguments<'_>,
    toward: Toward<'_>,
) -> Vec<Finding> {
    let Leaving { leaves, best, unchecked } = leaving(memory, call, arguments, toward);
    let mut out: Vec<Finding> = best.iter().filter_map(|b| finding(memory, call, &leaves, b)).collect();
    if unchecked || arguments.cut {
        out.push(Finding {
            detector: "flow/unchecked".into(),
            severity: Severity::Medium,
            confidence: Confidence::Likely,
            summary: if unchecked {
                "The arguments hold more encoded parts than can be checked.".into()
            } else {
                "The arguments hold more values than can be checked.".into()
            },
            evidence: Vec::new(),
        });
    }
    out
}

/// What of the remembered leaves with this call.
pub(crate) fn leaving<'a>(
    memory: &mut Memory,
    call: &Call<'a>,
    arguments: &'a Arguments<'a>,
    toward: Toward<'_>,
) -> Leaving<'a> {
    if memory.is_empty() {
        return Leaving { leaves: Vec::new(), best: Vec::new(), unchecked: false };
    }
    let (reach, leaves) = (toward.reach, outgoing(call, arguments, toward));
    let size: usize = leaves.iter().map(|l| l.text.len()).sum();
    let mut matches: Vec<Match> = Vec::new();
    // All values as one text, then all keys: a secret that was cut over several members is whole again.
    for keys in [false, true] {
        let mut text = Vec::with_capacity(size);
        let mut starts = Vec::new();
        for (i, leaf) in leaves.iter().enumerate().filter(|(_, l)| l.key == keys) {
            starts.push((text.len(), i));
            fold::fold(leaf.text.as_bytes(), &mut text);
        }
        let leaf_at = |at: usize| {
            let next = starts.partition_point(|(start, _)| *start <= at);
            starts.get(next.saturating_sub(1)).copied().unwrap_or_default()
        };
        turned(
            memory,
            text,
            matches!(reach, Reach::Beside | Reach::Shared | Reach::Open | Reach::There),
            true,
            &mut |item, start, end, at, turn| {
                let (first, leaf) = leaf_at(at);
                let length = end - start;
                let seen = match turn {
                    // Backwards, `at` is the last byte, and the first may stand in the string before.
                    Some(Encoding::Reverse) => Seen::Folded((at + 1).saturating_sub(first + length), at + 1 - first),
                    _ => Seen::Folded(at - first, at - first + length),
                };
                matches.push(Match::new((item, start, end), leaf, seen, turn.into_iter()));
            },
        );
    }
    let mut budget = Budget::for_size(size);
    for (i, leaf) in leaves.iter().enumerate() {
        let mut chain = Vec::new();
        encoded(memory, leaf.text.as_bytes(), (i, None), &mut chain, &mut budget, &mut matches);
    }
    cut::each(memory, &leaves, &mut budget, &mut matches);
    split::each(memory, call, &leaves, &mut matches);
    let best = judge(memory, call, toward, &leaves, matches);
    Leaving { leaves, best, unchecked: budget.exhausted }
}

fn outgoing<'a>(call: &Call<'a>, arguments: &'a Arguments<'a>, toward: Toward<'_>) -> Vec<Outgoing<'a>> {
    let mut out = Vec::new();
    // A tool's name is the server's; a resource's URI is what the agent says.
    if call.method != "tools/call" {
        out.push(Outgoing { text: Cow::Borrowed(call.subject), offset: None, key: false, file: false, goes_to: 0 });
    }
    let (mut member, mut files) = (None, Vec::new());
    // Elements of a list have its name.
    let (mut goes, mut paid, mut accounts) = (false, false, 0);
    let pays = !matches!(toward.reach, Reach::There | Reach::Open);
    for leaf in &arguments.leaves {
        let name: Option<usize> = std::mem::take(&mut member);
        let holds = |out: &Vec<Outgoing<'_>>| toward.words?.holds_file(&out.get(name?)?.text, &leaf.text);
        let goes_to = match toward.words {
            Some(words) if leaf.key => {
                goes = words.says_where(&leaf.text);
                paid = pays && words.says_paid_to(&leaf.text);
                0
            }
            _ if paid && accounts < MAX_ACCOUNTS && is_checked_iban(&leaf.text) => {
                accounts += 1;
                leaf.text.len()
            }
            _ if goes => destination(&leaf.text),
            _ => 0,
        };
        if leaf.key {
            member = Some(out.len());
        } else if let Some(enclosed) = holds(&out) {
            files.push((out.len(), enclosed));
        }
        let text = Cow::Borrowed(leaf.text.as_ref());
        out.push(Outgoing { offset: Some(leaf.span.0), key: leaf.key, text, file: false, goes_to });
    }
    if out.iter().filter(|leaf| leaf.goes_to > 0).count() > MAX_DESTINATIONS {
        out.iter_mut().for_each(|leaf| leaf.goes_to = 0);
    }
    if let (Some(words), false) = (toward.words, files.is_empty()) {
        let members = || out.iter().filter(|leaf| leaf.key).map(|leaf| leaf.text.as_ref());
        let (named, enclosed) = (words.hands_over(members(), false), words.hands_over(members(), true));
        for (at, alone) in files {
            if let Some(leaf) = out.get_mut(at) {
                leaf.file = named || alone && enclosed;
            }
        }
    }
    out
}

/// Bytes of a value that are its address: of a URL up to the end of its host, of one mailbox all of it. What else a URL says may be data.
fn destination(text: &str) -> usize {
    let mailbox = |text: &str| {
        let (name, host) = text.split_once('@').unwrap_or_default();
        !name.is_empty() && host.contains('.') && !text.contains(|c: char| c.is_whitespace() || ",;:/?".contains(c))
    };
    let scheme = schemes(text).next().filter(|at| *at <= "https://".len() && !text.contains(['?', '#', '@', '\\']));
    match scheme.and_then(|at| text.get(at..).map(|rest| at + rest.find('/').unwrap_or(rest.len()))) {
        Some(end) => end,
        None if mailbox(text) => text.len(),
        None => 0,
    }
}

/// Undoes encodings, to [`MAX_DEPTH`] of them. `place` is the outgoing string and, inside an encoding, where that stands
/// in it.
fn encoded(
    memory: &Memory,
    text: &[u8],
    place: (usize, Option<(usize, usize)>),
    chain: &mut Vec<Encoding>,
    budget: &mut Budget,
    out: &mut Vec<Match>,
) {
    decode::each(text, budget, &mut |bytes, how, span, budget| {
        chain.push(how);
        let leaf = place.0;
        let (from, to) = place.1.unwrap_or(span);
        let seen = Seen::Raw(from, to);
        let opaque = chain.iter().any(|e| e.opaque());
        // Most runs of such characters are no encoding of a text.
        let text = if how.of_bytes() { decode::legible(bytes) } else { Cow::Borrowed(bytes) };
        let deeper = chain.len() < MAX_DEPTH;
        let mut note = |item, start, end, _, turn: Option<Encoding>| {
            out.push(Match::new((item, start, end), leaf, seen, chain.iter().copied().chain(turn)));
        };
        if how.of_bytes() {
            legible(memory, bytes, &text, opaque, deeper, &mut note);
        } else {
            turned(memory, fold::folded(bytes), opaque, deeper, &mut note);
        }
        if !text.is_empty() {
            // What is encoded again and again is text each time, which nothing becomes by chance.
            let again = chain.len() < MAX_NESTED && chain.iter().all(|e| e.of_bytes()) && decode::is_text(bytes);
            if deeper || again {
                encoded(memory, &text, (leaf, Some((from, to))), chain, budget, out);
            }
        }
        if how.of_bytes() {
            decode::each_binary(bytes, budget, &mut |plain, how, _, _| {
                runs(memory, &fold::folded(plain), true, &mut |item, start, end, _| {
                    let matched = Match::new((item, start, end), leaf, seen, chain.iter().copied().chain([how]));
                    out.push(Match { dress: Dress::Hidden, ..matched });
                });
            });
        }
        chain.pop();
    });
    // What was only escaped is text as before, whatever the escapes stand for.
    let escaped = chain.last().is_none_or(|how| !how.of_bytes());
    if chain.len() < MAX_DEPTH && (escaped || decode::is_text(text)) {
        budget.aside(|budget| unusual(memory, text, place, chain, budget, out));
    }
}

/// The same of what is encoded in ways that no program needs.
fn unusual(
    memory: &Memory,
    text: &[u8],
    place: (usize, Option<(usize, usize)>),
    chain: &mut Vec<Encoding>,
    budget: &mut Budget,
    out: &mut Vec<Match>,
) {
    let leaf = place.0;
    decode::unusual(text, budget, &mut |bytes, how, deeper, span, budget| {
        let span = place.1.unwrap_or(span);
        if how == Encoding::Keyed {
            return keyed::each(memory, bytes, &mut |item, end| {
                let seen = Seen::Raw(span.0, span.1);
                let matched = Match::new((item, 0, end), leaf, seen, [how].into_iter());
                out.push(Match { dress: Dress::Hidden, ..matched });
            });
        }
        chain.push(how);
        let opaque = chain.iter().any(|e| e.opaque());
        let deeper =
            deeper && (chain.len() < MAX_DEPTH || chain.len() < MAX_NESTED && chain.iter().all(|e| e.of_bytes()));
        let all = how == Encoding::Named(decode::ROT47);
        let moved = all || matches!(how, Encoding::Rot13 | Encoding::Moved);
        // Digits and other scripts stay as they are: without letters nothing was moved. What was moved is folded already.
        let letters = |at: usize, length: usize| {
            let run = bytes.get(at..at + length).unwrap_or_default();
            run.iter().filter(|b| b.is_ascii_lowercase() || all && b.is_ascii_digit()).count() >= MIN_PART
        };
        turned(memory, fold::folded(bytes), opaque, deeper, &mut |item, start, end, at, turn| {
            // Runs of secrets are the same with digits for letters ([`common`]).
            let secret = || memory.item(item).is_some_and(|i| i.label == Label::Secret);
            if moved && !letters(at, end - start) || how == Encoding::Leet && secret() {
                return;
            }
            let seen = Seen::Raw(span.0, span.1);
            out.push(Match::new((item, start, end), leaf, seen, chain.iter().copied().chain(turn)));
        });
        if deeper {
            encoded(memory, bytes, (leaf, Some(span)), chain, budget, out);
        }
        chain.pop();
    });
}

fn finding(memory: &Memory, call: &Call<'_>, leaves: &[Outgoing<'_>], best: &Best) -> Option<Finding> {
    let item = memory.item(best.matched.item)?;
    let leaf = leaves.get(best.matched.leaf)?;
    let summary = match (item.label, best.whole) {
        (Label::Secret, true) if item.kept => "A secret that Firedoor keeps for a server would leave through a tool.",
        (Label::Secret, false) if item.kept => {
            "A part of a secret that Firedoor keeps for a server would leave through a tool."
        }
        (Label::Secret, true) => "A credential that one tool returned would leave through another.",
        (Label::Secret, false) => "A part of a credential that one tool returned would leave through another.",
        (Label::Private, _) if item.origin.privacy == Privacy::Sensitive => {
            "Text from a private file would leave through another tool."
        }
        (Label::Private, _) if item.origin.privacy == Privacy::Document => {
            "Text that is private by where it was read would leave through another tool."
        }
        (Label::Private, _) if matches!(item.origin.privacy, Privacy::Telling | Privacy::Revealing) => {
            "A text that may be private by its words would be sent away."
        }
        (Label::Private, _) => "A text that is private by its words would leave through another tool.",
        (Label::Ordinary, _) if best.matched.transform.is_none() => {
            "Text from your messages or documents would be sent to an address on the network."
        }
        (Label::Ordinary, _) => "Text that one tool returned would leave through another in encoded form.",
    };
    let run = item.folded.get(best.matched.start..best.matched.end).unwrap_or_default();
    let shown: &[u8] = match (item.kept, item.raw.is_empty()) {
        (true, _) => b"",
        (false, true) => run,
        (false, false) => &item.raw,
    };
    let shown = mask(&String::from_utf8_lossy(shown));
    let mut transform: Vec<Cow<'static, str>> = best.matched.transform.clone().into_iter().collect();
    if transform.is_empty() && item.label == Label::Secret && !contains(leaf.text.as_bytes(), &item.raw) {
        transform.push(if best.whole { "reformatted" } else { "part" }.into());
    }
    let place = match leaf.offset {
        Some(offset) => format!("/arguments{}", pointer(call.arguments.unwrap_or_default(), offset)),
        None => subject_pointer(call.method).to_owned(),
    };
    let transform = (!transform.is_empty()).then(|| Cow::Owned(transform.join("+")));
    let source = end(Role::Source, &item.origin.entry, item.origin.tool.clone(), &item.pointer, &shown);
    let sink = end(Role::Sink, call.entry, call.subject.into(), &place, &shown);
    Some(Finding {
        detector: detector(item.label, &best.matched).into(),
        severity: Severity::High,
        confidence: best.confidence,
        summary: summary.into(),
        evidence: vec![
            Evidence { age_ms: Some(age(call.now, item.origin.at)), ..source },
            Evidence { transform, span: best.matched.seen.span(&leaf.text), ..sink },
        ],
    })
}

/// Where a request names what it asks for.
pub(crate) fn subject_pointer(method: &str) -> &'static str {
    if method.starts_with("resources/") { "/uri" } else { "/name" }
}

fn age(now: Millis, at: Millis) -> u64 {
    now.since(at)
}

fn end(role: Role, entry: &EntryId, tool: Untrusted, pointer: &str, excerpt: &str) -> Evidence {
    Evidence {
        role,
        entry: Some(entry.clone()),
        tool: Some(tool),
        pointer: pointer.into(),
        span: None,
        excerpt: excerpt.into(),
        transform: None,
        age_ms: None,
    }
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && memchr::memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests;
