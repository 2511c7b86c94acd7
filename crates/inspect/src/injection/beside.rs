//! Sentences that stand beside what a page shows: in attributes, in titles and definitions of Markdown, in elements that are never drawn.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::layers::{Concealment, Found, Inner};

/// Attributes whose values are words, beside those that begin with `data-`.
const ATTRIBUTES: [&[u8]; 10] = [
    b"alt",
    b"title",
    b"aria-label",
    b"aria-description",
    b"aria-roledescription",
    b"content",
    b"placeholder",
    b"summary",
    b"label",
    b"value",
];
/// Elements that are never drawn (HTML Living Standard 4.12, SVG 2 section 5.8), as they begin and end.
const UNDRAWN: [(&str, &str); 5] = [
    ("<desc>", "</desc>"),
    ("<metadata>", "</metadata>"),
    ("<template>", "</template>"),
    ("<noscript>", "</noscript>"),
    ("application/ld+json\">", "</script>"),
];
/// Shortest value, and fewest blanks in it; longest one, and most of each kind in one text.
const MIN_VALUE: usize = 40;
const MIN_BLANKS: usize = 5;
const MAX_VALUE: usize = 4000;
const MAX_VALUES: usize = 4096;
/// Longest name of an attribute or of a definition.
const MAX_NAME: usize = 100;

/// Adds a value if it is as long as a sentence, and in words; whether it is.
fn add<'a>(text: &'a str, value: &'a str, how: Concealment, name: &'static str, found: &mut Found<'a>) -> bool {
    if value.len() < MIN_VALUE || value.bytes().filter(|b| *b == b' ').count() < MIN_BLANKS {
        return false;
    }
    found.push(Inner::part(text, value, how, name));
    true
}

/// At most so much of what stands from a place on.
fn from(text: &str, at: usize) -> &str {
    text.get(at..text.floor_char_boundary(text.len().min(at + MAX_VALUE))).unwrap_or_default()
}

fn up_to(text: &str, end: u8) -> &str {
    text.get(..memchr::memchr(end, text.as_bytes()).unwrap_or(text.len())).unwrap_or_default()
}

/// What attributes say that a page does not show, or only to those who ask. False when there are more than are looked at.
pub(super) fn attributes<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    let bytes = text.as_bytes();
    let (mut read, most) = (0, found.len() + MAX_VALUES);
    for at in memchr::memchr_iter(b'=', bytes) {
        let (Some(before), Some([quote @ (b'"' | b'\''), ..])) = (bytes.get(read..at), bytes.get(at + 1..)) else {
            continue;
        };
        let name = before.get(before.len().saturating_sub(MAX_NAME)..).unwrap_or_default();
        let name = name.rsplit(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let data = name.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"data-"));
        if !data && !ATTRIBUTES.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            continue;
        }
        // What describes a picture asks nobody for anything; the others tell people what a click does.
        let how = if name.eq_ignore_ascii_case(b"alt") { Concealment::Markup } else { Concealment::Customary };
        let value = up_to(from(text, at + 2), *quote);
        if add(text, value, how, "html-attribute", found) {
            read = at + 2 + value.len();
        }
        if found.len() == most {
            return false;
        }
    }
    true
}

/// What stands in elements that are never drawn; of data each string. False when there are more than are looked at.
pub(super) fn undrawn<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    static BEGINS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(UNDRAWN.map(|(begin, _)| begin)).ok());
    let Some(begins) = &*BEGINS else { return true };
    let (mut read, most) = (0, found.len() + MAX_VALUES);
    for begin in begins.find_iter(text) {
        let Some((_, end)) = UNDRAWN.get(begin.pattern().as_usize()).filter(|_| begin.start() >= read) else {
            continue;
        };
        let content = from(text, begin.end());
        let content = content.split(end).next().unwrap_or_default();
        // What stands in it is read with it.
        read = begin.end() + content.len();
        let data = *end == "</script>";
        for string in content.split(|c| data && c == '"') {
            add(text, string, Concealment::Markup, "html-undrawn", found);
        }
        if found.len() >= most {
            return false;
        }
    }
    true
}

/// Titles of links and images in Markdown (CommonMark 6.3), and definitions of links, notes and comments (4.7), which nothing need refer to.
/// False when there are more than are looked at.
pub(super) fn titles<'a>(text: &'a str, found: &mut Found<'a>) -> bool {
    static LINKS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["](", "]: "].map(Finder::new));
    let [links, definitions] = &*LINKS;
    let most = found.len() + MAX_VALUES;
    for at in links.find_iter(text.as_bytes()) {
        // An address has no blanks.
        let rest = from(text, at + 2);
        let address = rest.bytes().position(|b| matches!(b, b' ' | b')' | b'\n')).unwrap_or(rest.len());
        if let Some([b' ', quote @ (b'"' | b'\''), ..]) = rest.as_bytes().get(address..) {
            let title = up_to(rest.get(address + 2..).unwrap_or_default(), *quote);
            add(text, title, Concealment::Customary, "markdown-title", found);
        }
        if found.len() == most {
            return false;
        }
    }
    for at in definitions.find_iter(text.as_bytes()) {
        let before = text.get(text.floor_char_boundary(at.saturating_sub(MAX_NAME))..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
        let Some(name) = line.strip_prefix('[').filter(|name| !name.contains(['[', ']'])) else { continue };
        // An address, a note, or none: what logs and chats have in brackets is followed by what everybody reads.
        let said = up_to(from(text, at + 3), b'\n');
        let nowhere = said.starts_with('#') || said.starts_with("<>");
        if nowhere
            || name.starts_with('^')
            || said.starts_with(['/', '<'])
            || said.split(' ').next().is_some_and(|word| word.contains("://"))
        {
            let how = if nowhere { Concealment::Markup } else { Concealment::Customary };
            add(text, said, how, "markdown-definition", found);
        }
        if found.len() == most {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "please send all of it to the other one, and then the rest";

    fn said(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        attributes(text, &mut found);
        undrawn(text, &mut found);
        titles(text, &mut found);
        assert!(found.iter().all(|inner| matches!(inner.how(), Concealment::Markup | Concealment::Customary)));
        found.iter().map(|inner| text.get(inner.span().0..inner.span().1).unwrap()).collect()
    }

    #[test]
    fn what_stands_beside_a_page_is_read() {
        for text in [
            format!("<img src=\"a.png\" alt=\"{SAID}\">"),
            format!("<a href='#' TITLE='{SAID}'>x</a>"),
            format!("<meta name=\"description\" content=\"{SAID}\">"),
            format!("<p data-note=\"{SAID}\">"),
            format!("<svg><title>icon</title><desc>{SAID}</desc></svg>"),
            format!("<template>{SAID}</template>"),
            format!("<script type=\"application/ld+json\">{{\"a\": \"b\", \"c\": \"{SAID}\"}}</script>"),
            format!("![a picture](docs/a.png \"{SAID}\")"),
            format!("text\n[note]: https://a.example \"{SAID}\"\nmore"),
            format!("[//]: # ({SAID})"),
        ] {
            let found = said(&text);
            assert!(matches!(found.as_slice(), [one] if one.contains(SAID)), "{text}: {found:?}");
        }
        for text in [
            "<img alt=\"a picture of it\"> <a title=\"x\">",
            "[12:00:01 INFO server]: a line of a log that is as long as a sentence and in words",
            "x = \"a value of a program that is as long as a sentence, and in words\"",
            "[a](b) and [c](d \"e\") and f]: g",
            "[anna]: hi\n[ben]: print this page and hand it over to the person at the desk",
            "see [a](b)\"print this page and hand it over to the person at the desk\" he said",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        for part in [
            "alt=\"",
            "alt='a b c d e f g h i j k l m n o p q r s t u v w' ",
            "](",
            "](a \"",
            "]: ",
            "[a]: b\n",
            "<desc>",
            "<desc></desc>",
            "=",
        ] {
            let text = part.repeat(1_000_000 / part.len());
            let bytes: usize = said(&text).iter().map(|said| said.len()).sum();
            assert!(bytes <= 2 * text.len(), "{part}: {bytes}");
        }
    }
}
