//! Texts inside a text: what a person who looks at it does not see, but a model may read.

use std::borrow::Cow;

use super::{
    codes, encoded, leet, markup,
    signs::{self, Signs},
    spaced, stretches, woven,
};
use crate::view;

/// Encodings inside encodings that are undone.
const MAX_DEPTH: usize = 3;
/// Shortest hidden text that can say something.
pub(super) const MIN_TEXT: usize = 12;
/// White space that pushes what follows off the screen.
const FAR: usize = 160;
/// Bytes behind it that are looked at, and how often in one text.
const BEHIND: usize = 600;
const MAX_FAR: usize = 16;
/// Most texts inside one text that are looked at.
pub(super) const MAX_LAYERS: usize = 256;
/// How honest a way of writing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concealment {
    /// In plain sight.
    None,
    /// Encoded as honest programs encode documents: mail, answers of services, addresses.
    Customary,
    /// Honest pages and programs hide text like this, too: comments, styles, long white space.
    Markup,
    /// Encoded: honest data is, but seldom a sentence.
    Encoded,
    /// No honest program writes like this.
    Covert,
}

/// A text inside a text.
#[derive(Debug)]
pub(crate) struct Layer<'a> {
    /// As written, decoded.
    pub(crate) text: Cow<'a, str>,
    /// How it was hidden.
    pub(crate) how: Concealment,
    /// The ways, outermost first, such as `base64+gzip`.
    pub(crate) transform: String,
    /// Where in the outermost text it stands, or what it was made of.
    pub(crate) span: (usize, usize),
    /// Whether it stands there as it is.
    pub(crate) verbatim: bool,
}

/// Hands on every text inside `text`, decoded, deepest last. `signs` are those of the normalised text. `budget` bounds the
/// bytes that are decoded.
pub(crate) fn each(text: &str, signs: Signs, budget: &mut usize, visit: &mut dyn FnMut(&Layer<'_>)) {
    let mut work = Work { budget, count: 0, visit };
    walk(text, signs, &Outer { transform: "", how: Concealment::None, depth: 0, span: None }, &mut work);
}

/// What a text that is walked was found in.
struct Outer<'o> {
    transform: &'o str,
    how: Concealment,
    depth: usize,
    /// Where in the outermost text; `None` for that text itself.
    span: Option<(usize, usize)>,
}

/// A text inside another, before it is looked at.
pub(super) struct Inner<'a> {
    text: Cow<'a, str>,
    how: Concealment,
    name: &'static str,
    /// Where in the other text.
    span: (usize, usize),
}

impl<'a> Inner<'a> {
    /// A part of `outer` as it stands there.
    pub(super) fn part(outer: &str, text: &'a str, how: Concealment, name: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), how, name, span: place_of(outer, text) }
    }

    /// What `part` of a text says.
    pub(super) fn decoded(outer: &str, part: &str, text: String, how: Concealment, name: &'static str) -> Self {
        Self::made(text, how, name, place_of(outer, part))
    }

    #[cfg(test)]
    pub(super) fn span(&self) -> (usize, usize) {
        self.span
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What bytes `span` of a text say.
    pub(super) fn made(text: String, how: Concealment, name: &'static str, span: (usize, usize)) -> Self {
        Self { text: Cow::Owned(text), how, name, span }
    }
}

/// Where a part of a text stands in it.
fn place_of(text: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    (start, start + part.len())
}

/// What is left to do for one text, and who gets what is found.
struct Work<'w> {
    budget: &'w mut usize,
    count: usize,
    visit: &'w mut dyn FnMut(&Layer<'_>),
}

fn walk(text: &str, signs: Signs, outer: &Outer<'_>, work: &mut Work<'_>) {
    if outer.depth >= MAX_DEPTH || text.len() < MIN_TEXT {
        return;
    }
    let mut found: Found<'_> = Vec::new();
    if !signs.plain() {
        if !text.is_ascii() {
            tags(text, &mut found);
            bidi(text, &mut found);
            unseen_borders(text, &mut found);
        }
        terminal(text, &mut found);
    }
    if memchr::memchr(b'<', text.as_bytes()).is_some() {
        markup::comments(text, &mut found);
        if signs.styles() {
            markup::elements(text, &mut found);
        }
    }
    if !signs.plain() {
        far(text, &mut found);
    }
    turned(text, signs, outer.transform, &mut found);
    if let Some(plain) = leet::whole(text) {
        found.push(Inner::made(plain, Concealment::Encoded, "leet", (0, text.len())));
    } else {
        leet::parts(text, &mut |part, plain| {
            found.push(Inner::decoded(text, part, plain, Concealment::Encoded, "leet"));
        });
    }
    codes::lists(text, &mut |plain, name, span| found.push(Inner::made(plain, Concealment::Encoded, name, span)));
    spaced::find(text, &mut found);
    woven::broken(text, &mut found);
    // Names of programs that have digits are no order because they lose them.
    if !outer.transform.ends_with("leet") {
        woven::joined(text, &mut found);
    }
    encoded::find(text, &mut found);
    for Inner { text: inner, how, name, span } in found {
        work.count += 1;
        if work.count > MAX_LAYERS || inner.len() > *work.budget {
            return;
        }
        *work.budget -= inner.len();
        let transform =
            if outer.transform.is_empty() { name.to_owned() } else { format!("{}+{name}", outer.transform) };
        let (span, verbatim) = (outer.span.unwrap_or(span), outer.span.is_none() && matches!(inner, Cow::Borrowed(_)));
        let layer = Layer { text: inner, how: how.max(outer.how), transform, span, verbatim };
        (work.visit)(&layer);
        // What was cut out of the same text is walked with that text already.
        if how != Concealment::Markup {
            let outer = Outer { transform: &layer.transform, how: layer.how, depth: outer.depth + 1, span: Some(span) };
            walk(&layer.text, Signs::of(&layer.text), &outer, work);
        }
    }
}

pub(super) type Found<'a> = Vec<Inner<'a>>;

/// Tag characters U+E0020–U+E007E spell ASCII that nothing shows. Flags of regions (UTS #51) are the honest use: at most
/// six letters.
fn tags(text: &str, found: &mut Found<'_>) {
    // U+E0000–U+E007F are F3 A0 80 xx and F3 A0 81 xx in UTF-8.
    if memchr::memmem::find(text.as_bytes(), &[0xF3, 0xA0]).is_none() {
        return;
    }
    let spelt: String = text
        .chars()
        .filter_map(|c| char::from_u32(u32::from(c).checked_sub(0xE0000).filter(|c| (0x20..0x7F).contains(c))?))
        .collect();
    if spelt.len() >= MIN_TEXT {
        let tag = |c: char| ('\u{E0000}'..'\u{E0080}').contains(&c);
        let span = (text.find(tag).unwrap_or(0), text.rfind(tag).map_or(text.len(), |at| at + 4));
        found.push(Inner::made(spelt, Concealment::Covert, "unicode-tags", span));
    }
}

/// `oneIgnore` with characters before the capital that nothing shows (U+200B to U+206F): read as `one Ignore`, where
/// [`view::normalised`] leaves them out.
fn unseen_borders(text: &str, found: &mut Found<'_>) {
    let mut out = String::new();
    let (mut copied, mut first, mut at) = (0, None, 0);
    while let Some(next) = memchr::memchr(0xE2, text.as_bytes().get(at..).unwrap_or_default()) {
        let from = at + next;
        let rest = text.get(from..).unwrap_or_default();
        let run: usize = rest.chars().take_while(|c| view::invisible(*c)).map(char::len_utf8).sum();
        at = from + run.max(1);
        let before = text.get(..from).and_then(|t| t.chars().next_back());
        let after = text.get(from + run..).and_then(|t| t.chars().next());
        if run > 0 && before.is_some_and(char::is_lowercase) && after.is_some_and(char::is_uppercase) {
            out.push_str(text.get(copied..from).unwrap_or_default());
            out.push(' ');
            (copied, first) = (from + run, first.or(Some(from)));
        }
    }
    if let Some(first) = first {
        out.push_str(text.get(copied..).unwrap_or_default());
        found.push(Inner::made(out, Concealment::None, "invisible-border", (first, text.len())));
    }
}

/// Text between a right-to-left override and its end, as it is shown.
fn bidi(text: &str, found: &mut Found<'_>) {
    if memchr::memmem::find(text.as_bytes(), "\u{202E}".as_bytes()).is_none() {
        return;
    }
    for part in text.split('\u{202E}').skip(1).take(16) {
        let end = part.find(['\u{202C}', '\n']).unwrap_or(part.len());
        let inner = part.get(..end).unwrap_or_default();
        if inner.len() >= MIN_TEXT {
            let shown = inner.chars().rev().collect();
            found.push(Inner::decoded(text, inner, shown, Concealment::Covert, "bidi"));
        }
    }
}

/// Text that a terminal is told to conceal (SGR 8), or to overwrite at once.
fn terminal<'a>(text: &'a str, found: &mut Found<'a>) {
    if memchr::memchr(0x1B, text.as_bytes()).is_none() {
        return;
    }
    for part in text.split("\u{1b}[8m").skip(1).take(16) {
        let inner = part.split('\u{1b}').next().unwrap_or_default();
        if inner.len() >= MIN_TEXT {
            found.push(Inner::part(text, inner, Concealment::Covert, "ansi-concealed"));
        }
    }
    let mut parts = text.split("\u{1b}[2K").take(17).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_some() {
            let line = part.trim_end_matches(|c: char| c.is_control() || "[]0123456789AFG".contains(c));
            let line = line.rsplit(['\n', '\r']).next().unwrap_or_default();
            if line.len() >= MIN_TEXT {
                found.push(Inner::part(text, line, Concealment::Markup, "ansi-overwritten"));
            }
        }
    }
}

/// What follows white space that no screen shows the end of.
fn far<'a>(text: &'a str, found: &mut Found<'a>) {
    let bytes = text.as_bytes();
    let mut count = 0;
    // A long enough stretch covers one of these places, whose surroundings then say how long it is.
    let mut at = FAR - 1;
    while let Some(b) = bytes.get(at) {
        if !b.is_ascii_whitespace() {
            at += FAR;
            continue;
        }
        let before = bytes.get(..at).unwrap_or_default().iter().rev().take_while(|b| b.is_ascii_whitespace());
        let after = bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count();
        let start = at + after;
        if before.take(FAR).count() + after >= FAR && count < MAX_FAR {
            let end = text.floor_char_boundary(text.len().min(start + BEHIND));
            let behind = text.get(start..end).unwrap_or_default();
            // Both the line and what follows it: an order may be either.
            let line = behind.split('\n').next().filter(|line| line.len() < behind.len());
            let long = |part: &&str| part.len() >= MIN_TEXT;
            found.extend(
                line.into_iter()
                    .chain([behind])
                    .filter(long)
                    .map(|part| Inner::part(text, part, Concealment::Markup, "far-whitespace")),
            );
            count += 1;
        }
        at = start + FAR;
    }
}

/// English backwards, or with its letters moved by 13: told by its commonest words, several of them. Not once more of what was
/// `made` so: that is what was there before.
fn turned(text: &str, signs: Signs, made: &str, found: &mut Found<'_>) {
    for (way, name) in [(0, "rot13"), (1, "reverse")] {
        if !signs.turned(way) || made.ends_with(name) {
            continue;
        }
        for part in stretches::around(text, signs::turned_words(text, way).into_iter()) {
            let moved = |c: char| match c {
                'a'..='z' => ((c as u8 - b'a' + 13) % 26 + b'a') as char,
                'A'..='Z' => ((c as u8 - b'A' + 13) % 26 + b'A') as char,
                c => c,
            };
            let plain = if way == 0 { part.chars().map(moved).collect() } else { part.chars().rev().collect() };
            if way == 1 {
                let words = part.split_inclusive(char::is_whitespace).map(|word| {
                    let letters = word.trim_end();
                    letters.chars().rev().chain(word.chars().skip(letters.chars().count())).collect::<String>()
                });
                found.push(Inner::decoded(text, part, words.collect(), Concealment::Encoded, name));
            }
            found.push(Inner::decoded(text, part, plain, Concealment::Encoded, name));
        }
    }
}

/// Whether a hidden text is language: at least three words of letters.
pub(crate) fn speaks(text: &str) -> bool {
    let normal = view::normalised(text);
    normal
        .split(' ')
        .filter(|w| w.chars().count() >= 2 && w.chars().all(|c| c.is_alphabetic() || ".,'!?:;\"".contains(c)))
        .count()
        >= 3
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Every layer of a text: how it was reached, what it says, and how it was hidden.
    pub(in crate::injection) fn layers(text: &str) -> Vec<(String, String, Concealment)> {
        let mut out = Vec::new();
        each(text, Signs::of(text), &mut 1_000_000, &mut |l| {
            out.push((l.transform.clone(), l.text.clone().into_owned(), l.how))
        });
        out
    }

    #[test]
    fn hidden_texts_are_found() {
        let plain = "please send all of it to the other one";
        let tagged: String = plain.bytes().map(|b| char::from_u32(0xE0000 + u32::from(b)).unwrap()).collect();
        let b64 = data_encoding::BASE64.encode(plain.as_bytes());
        let rot: String = {
            let mut r = plain.as_bytes().to_vec();
            crate::fold::rot13(&mut r);
            String::from_utf8(r).unwrap()
        };
        for (text, name) in [
            (format!("ok {tagged}"), "unicode-tags"),
            (format!("ok \u{202e}{}\u{202c}", plain.chars().rev().collect::<String>()), "bidi"),
            (format!("ok \u{1b}[8m{plain}\u{1b}[28m"), "ansi-concealed"),
            (format!("ok\n{plain}\u{1b}[1A\u{1b}[2K\r"), "ansi-overwritten"),
            (format!("<p>ok</p><!-- {plain} -->"), "html-comment"),
            (format!("<span style=\"display: none\">{plain}</span>"), "html-hidden"),
            (format!("ok{}{plain}", " ".repeat(300)), "far-whitespace"),
            (format!("ok {rot} end"), "rot13"),
            (format!("ok {} end", plain.chars().rev().collect::<String>()), "reverse"),
            (format!("do {b64}"), "base64"),
            (data_encoding::HEXLOWER.encode(plain.as_bytes()), "hex"),
            (data_encoding::BASE32.encode(plain.as_bytes()), "base32"),
            (data_encoding::BASE64.encode(b64.as_bytes()), "base64+base64"),
            (plain.chars().map(|c| format!("{c} ")).collect(), "spaced"),
            (plain.bytes().map(|b| format!("%{b:02x}")).collect(), "url"),
            (format!("all operations\u{200b}\u{200b}Now {plain}"), "invisible-border"),
        ] {
            let found = layers(&text);
            assert!(found.iter().any(|(n, t, _)| n == name && t.trim().contains(plain)), "{name}: {found:?}");
        }
    }

    #[test]
    fn what_was_turned_is_not_turned_back() {
        let turned = |text: &str| -> String {
            let mut bytes = text.as_bytes().to_vec();
            crate::fold::rot13(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        let both =
            format!("take the other one and give it to me please. {}", turned("take the other one and give it to me"));
        for text in [both.clone(), both.chars().rev().collect()] {
            let names: Vec<String> = layers(&text).into_iter().map(|(name, ..)| name).collect();
            assert!(names.iter().any(|n| n == "rot13") || names.iter().any(|n| n == "reverse"), "{names:?}");
            assert!(!names.iter().any(|n| n.contains("rot13+rot13") || n.contains("reverse+reverse")), "{names:?}");
        }
    }

    #[test]
    fn ordinary_text_has_none() {
        for text in [
            "An ordinary sentence about find_repositories_by_name_and_owner and others.",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            // Shares of a hundred, and one escape.
            "10 % of them, 20 % of those, 5 %, 6 %, 7 %, 8 %, 9 %, 11 %, 12 %, 13 %, 14 %, 15 % and a%20name",
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F} flag",
            "",
        ] {
            assert_eq!(layers(text), [], "{text}");
        }
        assert!(speaks("please send it") && !speaks("x1 y2 z3"));
    }

    #[test]
    fn work_is_bounded() {
        let mut text = "please send all of it to the other one".to_owned();
        for _ in 0..6 {
            text = data_encoding::BASE64.encode(text.as_bytes());
        }
        assert!(layers(&text).len() <= MAX_DEPTH);
        let many = "<!-- please send all of it -->".repeat(10_000);
        assert!(layers(&many).len() <= MAX_LAYERS);
    }

    proptest::proptest! {
        #[test]
        fn total(s in "\\PC*|[<!\\-> \u{1b}\\[28mK%a-f0-9=\u{202e}\u{e0041}]*") {
            layers(&s);
        }
    }
}
