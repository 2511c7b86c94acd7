//! Sentences that stand beside what a page shows: what pictures are described by, comments of Markdown, elements that are never drawn.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::{
    html::Tag,
    layers::{Concealment, Found, Inner},
};

/// Elements that are never drawn (HTML Living Standard 4.12, SVG 2 section 5.8), as they begin and end; in capitals, too. The last is data for
/// search engines, in the tag of a script.
const UNDRAWN: [(&str, &str); 5] = [
    ("<desc", "</desc"),
    ("<metadata", "</metadata"),
    ("<template", "</template"),
    ("<noscript", "</noscript"),
    (DATA, "</script"),
];
const DATA: &str = "application/ld+json";
/// Longest tag of one.
const MAX_TAG: usize = 400;
/// Shortest value, and fewest blanks in it; longest one, and most of each kind in one text.
const MIN_VALUE: usize = 40;
const MIN_BLANKS: usize = 5;
const MAX_VALUE: usize = 4000;
const MAX_VALUES: usize = 4096;
/// Longest name of a definition.
const MAX_NAME: usize = 100;

/// Adds a value if it is as long as a sentence, and in words; whether it is.
fn add<'a>(text: &'a str, value: &'a str, name: &'static str, found: &mut Found<'a>) -> bool {
    if value.len() < MIN_VALUE || value.bytes().filter(|b| *b == b' ').count() < MIN_BLANKS {
        return false;
    }
    found.push(Inner::part(text, value, Concealment::Markup, name));
    true
}

/// At most so much of what stands from a place on.
fn from(text: &str, at: usize) -> &str {
    text.get(at..text.floor_char_boundary(text.len().min(at + MAX_VALUE))).unwrap_or_default()
}

fn up_to(text: &str, end: u8) -> &str {
    text.get(..memchr::memchr(end, text.as_bytes()).unwrap_or(text.len())).unwrap_or_default()
}

/// What pictures are described by, which honest pages ask nobody for anything in; other attributes tell people what a click does. False when there
/// are more than are looked at.
pub(super) fn descriptions<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    static ALT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("alt="));
    let (mut read, most) = (0, found.len() + MAX_VALUES);
    for at in ALT.find_iter(text.as_bytes()) {
        let Some(quote @ (b'"' | b'\'')) = text.as_bytes().get(at + 4).filter(|_| at >= read) else { continue };
        let value = up_to(from(text, at + 5), *quote);
        if add(text, value, "html-description", found) {
            read = at + 5 + value.len();
        }
        if found.len() == most {
            return false;
        }
    }
    true
}

/// Whether data for search engines begins in a text: the one of [`UNDRAWN`] that no sign stands for, as an escape may take its first letter.
pub(super) fn data(text: &str) -> bool {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(DATA));
    FINDER.find(text.as_bytes()).is_some()
}

/// What stands in elements that are never drawn; of data each string. False when there are more than are looked at.
pub(super) fn undrawn<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    static EDGES: LazyLock<Option<[AhoCorasick; 2]>> = LazyLock::new(|| {
        let of = |edges: [&str; 5]| AhoCorasick::builder().ascii_case_insensitive(true).build(edges).ok();
        Some([of(UNDRAWN.map(|(begin, _)| begin))?, of(UNDRAWN.map(|(_, end)| end))?])
    });
    let Some([begins, ends]) = &*EDGES else { return true };
    let (mut read, most) = (0, found.len() + MAX_VALUES);
    for begin in begins.find_iter(text) {
        let data = UNDRAWN.get(begin.pattern().as_usize()).is_some_and(|(begin, _)| *begin == DATA);
        let Some(at) = inside(text, begin.range(), data).filter(|_| begin.start() >= read) else { continue };
        let content = from(text, at);
        let end = ends.find_iter(content).find(|end| end.pattern() == begin.pattern());
        let content = content.get(..end.map_or(content.len(), |end| end.start())).unwrap_or_default();
        // What stands in it is read with it.
        read = at + content.len();
        for string in content.split(|c| data && c == '"') {
            add(text, string, "html-undrawn", found);
        }
        if found.len() >= most {
            return false;
        }
    }
    true
}

/// Where the content of an element begins whose tag, or whose kind of data, begins there.
fn inside(text: &str, begin: std::ops::Range<usize>, data: bool) -> Option<usize> {
    if data {
        let rest = text.as_bytes().get(begin.end..)?;
        let tag = memchr::memchr(b'>', rest.get(..MAX_TAG).unwrap_or(rest))?;
        return Some(begin.end + tag + 1);
    }
    let tag = Tag::at(text.as_bytes().get(begin.start..)?, MAX_TAG)?;
    let named = tag.closed && tag.name().len() + 1 == begin.len();
    named.then_some(begin.start + tag.len())
}

/// Comments of Markdown: definitions of links that lead nowhere (CommonMark 4.7). False when there are more than are looked at.
pub(super) fn comments<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    static DEFINES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("]: "));
    let most = found.len() + MAX_VALUES;
    for at in DEFINES.find_iter(text.as_bytes()) {
        let before = text.get(text.floor_char_boundary(at.saturating_sub(MAX_NAME))..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
        let said = up_to(from(text, at + 3), b'\n');
        if line.starts_with('[') && (said.starts_with('#') || said.starts_with("<>")) {
            add(text, said, "markdown-comment", found);
        }
        if found.len() == most {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{super::signs::Signs, *};

    const SAID: &str = "please send all of it to the other one, and then the rest";

    fn said(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        assert!(descriptions(text, &mut found) & undrawn(text, &mut found) & comments(text, &mut found));
        assert!(found.iter().all(|inner| inner.how() == Concealment::Markup));
        found.iter().map(|inner| text.get(inner.span().0..inner.span().1).unwrap()).collect()
    }

    #[test]
    fn what_stands_beside_a_page_is_read() {
        for text in [
            format!("<img src=\"a.png\" alt=\"{SAID}\">"),
            format!("<svg><title>icon</title><desc>{SAID}</desc></svg>"),
            format!("<template>{SAID}</template>"),
            format!("<DESC id=\"x>y\" lang=en>{SAID}</Desc>"),
            format!("<noscript class='a'>{SAID}"),
            format!("<script type=application/ld+json>{{\"c\": \"{SAID}\"}}</script>"),
            format!("<script type='application/ld+json' id='x'>{{\"c\": \"{SAID}\"}}</SCRIPT>"),
            format!("<script type=\"application/ld+json\">{{\"a\": \"b\", \"c\": \"{SAID}\"}}</script>"),
            format!("[//]: # ({SAID})"),
            format!("text\n  [comment]: <> ({SAID})\nmore"),
        ] {
            let found = said(&text);
            assert!(matches!(found.as_slice(), [one] if one.contains(SAID)), "{text}: {found:?}");
        }
        for text in [
            "<img alt=\"a picture of it\"> <a title=\"a title that is as long as a sentence, and in words\">",
            "[12:00:01 INFO server]: a line of a log that is as long as a sentence and in words",
            "<description>a description that is as long as a sentence, and in words</description>",
            "<template a sentence that never closes the tag that it seems to begin with",
            "it is application/ld+json and what follows it is a sentence, in words, of no tag at all",
            "[anna]: hi\n[ben]: print this page and hand it over to the person at the desk",
            "[note]: https://a.example \"a title that is as long as a sentence, and in words\"",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
        let many = format!("<desc>{SAID}</desc>").repeat(MAX_VALUES + 1);
        assert!(!undrawn(&many, &mut Vec::new()));
    }

    /// No element is looked for where no sign stands for it.
    #[test]
    fn each_element_has_a_sign() {
        for (begin, _) in UNDRAWN {
            assert!(Signs::of(begin).beside() || data(begin), "{begin}");
        }
        assert!(Signs::of("<!--").beside() && Signs::of("[a]: #").defines() && Signs::of("[a]: <>").defines());
    }

    #[test]
    fn work_is_linear() {
        for part in [
            "alt=\"",
            "alt='a b c d e f g h i j k l m n o p q r s t u v w' ",
            "]: ",
            "[a]: #\n",
            "<desc>",
            "<desc></desc>",
            "<desc ",
            "<desc a='",
            "application/ld+json",
            "application/ld+json>",
            "<desc><template>a b ",
        ] {
            let text = part.repeat(1_000_000 / part.len());
            let mut found = Vec::new();
            let _ = descriptions(&text, &mut found) & undrawn(&text, &mut found) & comments(&text, &mut found);
            let bytes: usize = found.iter().map(Inner::said).sum();
            assert!(bytes <= 2 * text.len(), "{part}: {bytes}");
        }
    }
}
