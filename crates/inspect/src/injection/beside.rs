//! Sentences that stand beside what a page shows: in attributes, in titles and definitions of Markdown, in elements that are never drawn.

use std::sync::LazyLock;

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
/// Shortest value, and fewest blanks in it; longest one, and most of one kind in one text.
const MIN_VALUE: usize = 40;
const MIN_BLANKS: usize = 5;
const MAX_VALUE: usize = 4000;
const MAX_VALUES: usize = 64;

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

/// What attributes say that a page does not show, or only to those who ask.
pub(super) fn attributes<'a>(text: &'a str, found: &mut Found<'a>) {
    let bytes = text.as_bytes();
    let (mut read, most) = (0, found.len() + MAX_VALUES);
    for at in memchr::memchr_iter(b'=', bytes) {
        let (Some(before), Some([quote @ (b'"' | b'\''), ..])) = (bytes.get(read..at), bytes.get(at + 1..)) else {
            continue;
        };
        let name = before.get(before.len().saturating_sub(MIN_VALUE)..).unwrap_or_default();
        let name = name.rsplit(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let data = name.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"data-"));
        if !data && !ATTRIBUTES.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            continue;
        }
        let value = up_to(from(text, at + 2), *quote);
        if add(text, value, "html-attribute", found) {
            read = at + 2 + value.len();
        }
        if found.len() == most {
            return;
        }
    }
}

/// What stands in elements that are never drawn; of data each string.
pub(super) fn undrawn<'a>(text: &'a str, found: &mut Found<'a>) {
    static BEGINS: LazyLock<[Finder<'static>; 5]> = LazyLock::new(|| UNDRAWN.map(|(begin, _)| Finder::new(begin)));
    for ((begin, end), finder) in UNDRAWN.iter().zip(BEGINS.iter()) {
        for at in finder.find_iter(text.as_bytes()).take(MAX_VALUES) {
            let content = from(text, at + begin.len());
            let content = content.split(end).next().unwrap_or_default();
            if *end != "</script>" {
                add(text, content, "html-undrawn", found);
                continue;
            }
            for string in content.split('"') {
                add(text, string, "html-data", found);
            }
        }
    }
}

/// Titles of links and images in Markdown (CommonMark 6.3), and definitions of links, notes and comments (4.7), which nothing need refer to.
pub(super) fn titles<'a>(text: &'a str, found: &mut Found<'a>) {
    static LINKS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["](", "]: "].map(Finder::new));
    let [links, definitions] = &*LINKS;
    for at in links.find_iter(text.as_bytes()).take(MAX_VALUES * 4) {
        // An address has no blanks.
        let rest = from(text, at + 2);
        let address = rest.bytes().position(|b| matches!(b, b' ' | b')' | b'\n')).unwrap_or(rest.len());
        if let Some(quote @ (b'"' | b'\'')) = rest.as_bytes().get(address + 1) {
            add(text, up_to(rest.get(address + 2..).unwrap_or_default(), *quote), "markdown-title", found);
        }
    }
    for at in definitions.find_iter(text.as_bytes()).take(MAX_VALUES * 4) {
        let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default().trim_start();
        // Fields of logs stand in brackets, too, but hold more than a name.
        if line.starts_with('[') && !line.contains([' ', ']']) {
            add(text, up_to(from(text, at + 3), b'\n'), "markdown-definition", found);
        }
    }
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
        assert!(found.iter().all(|inner| inner.how() == Concealment::Markup));
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
            assert!(bytes <= 6 * MAX_VALUES * MAX_VALUE, "{part}: {bytes}");
        }
    }
}
