//! HTML comments and elements that a browser does not show.

use std::sync::OnceLock;

use regex::bytes::Regex;

use super::{
    html::{Tag, without_tags},
    layers::{Concealment, Found, Inner, MIN_TEXT},
};

/// Most comments and most elements of one text.
const MAX_COMMENTS: usize = 64;
const MAX_ELEMENTS: usize = 32;
/// Longest text that elements are looked for in.
const MAX_PAGE: usize = 1 << 20;
/// Longest start tag.
const MAX_TAG: usize = 1024;
/// Elements without content, and without an end tag of their own: what follows them is shown.
const EMPTY: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
/// Elements that end where the next one of them begins.
const UNENDED: [&str; 7] = ["p", "li", "dt", "dd", "td", "th", "option"];
/// Longest content of an element.
const MAX_CONTENT: usize = 4000;
/// What hides an element, in its start tag.
const STYLE: &str = r"(?is-u)display\s{0,2}:\s{0,2}none|visibility\s{0,2}:\s{0,2}hidden|font-size\s{0,2}:\s{0,2}0|opacity\s{0,2}:\s{0,2}0[^.]|color\s{0,2}:\s{0,2}(?:white|#fff|transparent)|left\s{0,2}:\s{0,2}-\d{3}|\shidden[\s>]";
/// The shortest of those, with a name before it.
const SHORTEST: usize = 8;

/// What follows `<!--`, as it stands there.
pub(super) fn comments<'a>(text: &'a str, found: &mut Found<'a>) {
    let starts = memchr::memmem::find_iter(text.as_bytes(), "<!--").map(|at| at + 4);
    let mut starts = starts.take(MAX_COMMENTS).peekable();
    while let Some(start) = starts.next() {
        let part = text.get(start..starts.peek().map_or(text.len(), |next| next - 4)).unwrap_or_default();
        let end = memchr::memmem::find(part.as_bytes(), b"-->").unwrap_or(part.len());
        if end >= MIN_TEXT {
            found.push(Inner::part(text, part.get(..end).unwrap_or_default(), Concealment::Markup, "html-comment"));
        }
    }
}

/// What elements say that a style or an attribute hides, with all elements in them.
pub(super) fn elements<'a>(text: &'a str, found: &mut Found<'a>) {
    static HIDES: OnceLock<Option<Regex>> = OnceLock::new();
    let Some(hides) = HIDES.get_or_init(|| Regex::new(STYLE).ok()) else { return };
    if text.len() > MAX_PAGE {
        return;
    }
    let bytes = text.as_bytes();
    let (mut read, mut count) = (0, 0);
    for at in memchr::memchr_iter(b'<', bytes) {
        let Some(rest) = bytes.get(at..).filter(|_| at >= read) else { continue };
        let Some(tag) = Tag::at(rest, MAX_TAG).filter(|tag| !tag.ends() && !tag.name().is_empty()) else { continue };
        let attributes = rest.get(2..tag.len()).unwrap_or_default();
        if attributes.len() < SHORTEST || !may_hide(attributes) || tag.named(&EMPTY) {
            continue;
        }
        let mut styles = hides.find_iter(attributes).peekable();
        let Some(style) = styles.peek().map(regex::bytes::Match::end) else { continue };
        let start = text.ceil_char_boundary(at + if tag.closed { tag.len() } else { 2 + style });
        let most = text.floor_char_boundary(text.len().min(start + MAX_CONTENT));
        let content = text.get(start..most).unwrap_or_default();
        // Of a colour that is also that of buttons and pages, no more than the text that it is given to.
        let deep = tag.closed && styles.any(|style| unseen(style.as_bytes()));
        let end = if deep { end_of(&tag, content.as_bytes()) } else { memchr::memchr(b'<', content.as_bytes()) };
        let content = content.get(..end.unwrap_or(content.len())).unwrap_or_default();
        read = start + content.len();
        let inner = if memchr::memchr(b'<', content.as_bytes()).is_some() {
            Inner::decoded(text, content, without_tags(content), Concealment::Markup, "html-hidden")
        } else {
            Inner::part(text, content, Concealment::Markup, "html-hidden")
        };
        if inner.said() >= MIN_TEXT {
            found.push(inner);
            count += 1;
        }
        if count == MAX_ELEMENTS {
            return;
        }
    }
}

/// Whether a style hides whatever is drawn behind it.
fn unseen(style: &[u8]) -> bool {
    !style.first().is_some_and(|b| b.eq_ignore_ascii_case(&b'c'))
        || style.to_ascii_lowercase().ends_with(b"transparent")
}

/// Where the content of the element that `tag` begins ends: at its end tag, those of its name within it set aside. If it has none,
/// nowhere; or before the next tag, where elements end without one.
fn end_of(tag: &Tag<'_>, content: &[u8]) -> Option<usize> {
    let (unended, mut depth) = (tag.named(&UNENDED), 0usize);
    for at in memchr::memchr_iter(b'<', content) {
        // Its name ends well within so many bytes.
        let name = tag.name().len() + 2;
        let Some(other) = content.get(at..).and_then(|rest| Tag::at(rest, name)) else { continue };
        match other.name().eq_ignore_ascii_case(tag.name()) {
            false => {}
            true if unended || other.ends() && depth == 0 => return Some(at),
            true if other.ends() => depth -= 1,
            true => depth += 1,
        }
    }
    memchr::memchr(b'<', content).filter(|_| unended)
}

/// Whether [`STYLE`] may stand in a tag: a colon behind the last letter of a property's name, or the attribute. Most tags have
/// neither.
fn may_hide(tag: &[u8]) -> bool {
    let before = |at: usize| tag.get(..at).unwrap_or_default();
    let property = |at: usize| {
        let name = before(at).trim_ascii_end();
        matches!(name.last(), Some(b'y' | b'e' | b'r' | b't' | b'Y' | b'E' | b'R' | b'T'))
    };
    let attribute = |at: usize| {
        let word = tag.get(at..at + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"hidden"));
        word && before(at).last().is_some_and(u8::is_ascii_whitespace)
    };
    memchr::memchr_iter(b':', tag).any(property) || memchr::memchr2_iter(b'h', b'H', tag).any(attribute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        elements(text, &mut found);
        found.into_iter().map(|inner| &text[inner.span().0..inner.span().1]).collect()
    }

    #[test]
    fn what_is_hidden_is_found() {
        let long = "x".repeat(300);
        for (tag, whole) in [
            ("<p style=\"display: none\">", true),
            ("<P STYLE='color:white'>", true),
            ("<a href=\"https://example.com/\" style=\"font-size :0px\">", true),
            ("<div hidden>", true),
            ("<div\nhidden class=b>", true),
            ("<span style=opacity:0;>", true),
            ("<i style=\"position:absolute;left:-9999px\">", true),
            (&format!("<p style=\"visibility:hidden\" title=\"{long}\">"), true),
            (&format!("<p title=\"{long}\" style=\"visibility:hidden\">"), true),
            ("<p style=\"opacity:0.5\">", false),
            ("<p class=hidden>", false),
            ("<p title=\"display:inline\">", false),
            ("< style=\"display:none\">", false),
            ("display:none >", false),
            ("<p><span>display:none</span>", false),
        ] {
            let name: String = tag.chars().skip(1).take_while(char::is_ascii_alphabetic).collect();
            let text = format!("before {tag}send it to the other one</{name}> behind");
            let want: &[&str] = if whole { &["send it to the other one"] } else { &[] };
            assert_eq!(hidden(&text), want, "{text}");
        }
        for (text, want) in [
            ("<div style=\"display:none\"><p>Run the script <b>now</b>.</p></div> shown", " Run the script now. "),
            ("<div title=\">\" style=\"display:none\">Run the script now.</div> shown", "Run the script now."),
            ("<div hidden><div>one and</div> <Div>two of it</DIV></div> shown", " one and   two of it "),
            ("<div hidden><p>one and two of it, without an end", " one and two of it, without an end"),
            ("<p hidden>one <i>and</i> two of it<p>shown", "one and two of it"),
            ("<p hidden>one and two of it<div>shown", "one and two of it"),
            ("<p style=\"color:white;display:none\">one <i>and</i> the two</p>", "one and the two"),
            ("<p style=\"color:#fff\">one and two of <i>it</i></p>", "one and two of "),
        ] {
            let mut found = Vec::new();
            elements(text, &mut found);
            assert_eq!(found.iter().map(Inner::text).collect::<Vec<_>>(), [want], "{text}");
        }
        assert_eq!(hidden("<img style=\"display:none\" src=\"a.png\">send it to the other one"), [""; 0]);
        // A tag that does not end is no reason to read nothing.
        assert_eq!(hidden("<p style=\"display:none\" send it to the other one"), ["\" send it to the other one"]);
        assert_eq!(hidden("<p hidden>short</p><p hidden>é and so much more</p>"), ["é and so much more"]);
    }

    #[test]
    fn work_is_linear() {
        for part in [
            "<",
            "<a",
            "<a :",
            "<a hidden",
            "<a hidden>",
            "<a color:white>of all that there is",
            "<p hidden x>é",
            "<a b=\"",
            "<a b='>' c=\"",
            "<a hidden b=\">\">",
            "<b hidden><b>",
        ] {
            let text = part.repeat(MAX_PAGE / part.len());
            assert!(hidden(&text).len() <= MAX_ELEMENTS, "{part}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_style_is_missed(s in "[ayertlcdo :;\"=x]{0,6}(?:display|visibility|font-size|opacity|color|left| hidden)? {0,3}:?(?: ?none|hidden|0|white|-100|>)?[ ;\"]{0,3}") {
            let hides = Regex::new(STYLE).unwrap();
            proptest::prop_assert!(!hides.is_match(s.as_bytes()) || may_hide(s.as_bytes()), "{}", s);
        }

        #[test]
        fn total(s in "(?:<|p|>| hidden|color:white|é|\u{1F600}| |x)*") {
            hidden(&s);
        }
    }
}
