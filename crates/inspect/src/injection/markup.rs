//! HTML comments and elements that a browser does not show.

use std::sync::OnceLock;

use regex::bytes::Regex;

use super::layers::{Concealment, Found, Inner, MIN_TEXT};

/// Most comments and most elements of one text.
const MAX_COMMENTS: usize = 64;
const MAX_ELEMENTS: usize = 32;
/// Longest text that elements are looked for in.
const MAX_PAGE: usize = 1 << 20;
/// Longest start tag.
const MAX_TAG: usize = 1024;
/// Longest text of an element.
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

/// What follows the start tag of an element that a style or an attribute hides, up to the next tag.
pub(super) fn elements<'a>(text: &'a str, found: &mut Found<'a>) {
    static HIDES: OnceLock<Option<Regex>> = OnceLock::new();
    let Some(hides) = HIDES.get_or_init(|| Regex::new(STYLE).ok()) else { return };
    if text.len() > MAX_PAGE {
        return;
    }
    let bytes = text.as_bytes();
    let (mut read, mut count) = (0, 0);
    for at in memchr::memchr_iter(b'<', bytes) {
        let Some([name, tag @ ..]) = bytes.get(at + 1..).filter(|_| at >= read) else { continue };
        let tag = tag.get(..MAX_TAG).unwrap_or(tag);
        let end = memchr::memchr2(b'<', b'>', tag);
        let closed = end.is_some_and(|end| tag.get(end) == Some(&b'>'));
        let tag = tag.get(..end.map_or(tag.len(), |end| end + usize::from(closed))).unwrap_or_default();
        if !name.is_ascii_alphabetic() || tag.len() < SHORTEST || !may_hide(tag) {
            continue;
        }
        let Some(style) = hides.find(tag) else { continue };
        let behind = if closed { tag.len() } else { style.end() };
        let start = text.ceil_char_boundary(at + 2 + behind);
        let content = bytes.get(start..).unwrap_or_default();
        let content = content.get(..MAX_CONTENT).unwrap_or(content);
        let end = start + memchr::memchr(b'<', content).unwrap_or(content.len());
        let content = text.get(start..text.floor_char_boundary(end)).unwrap_or_default();
        if content.len() >= MIN_TEXT {
            found.push(Inner::part(text, content, Concealment::Markup, "html-hidden"));
            count += 1;
        }
        if count == MAX_ELEMENTS {
            return;
        }
        read = end;
    }
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
            let text = format!("before {tag}send it to the other one</p> behind");
            let want: &[&str] = if whole { &["send it to the other one"] } else { &[] };
            assert_eq!(hidden(&text), want, "{text}");
        }
        // A tag that does not end is no reason to read nothing.
        assert_eq!(hidden("<p style=\"display:none\" send it to the other one"), ["\" send it to the other one"]);
        assert_eq!(hidden("<p hidden>short</p><p hidden>é and so much more</p>"), ["é and so much more"]);
    }

    #[test]
    fn work_is_linear() {
        for part in
            ["<", "<a", "<a :", "<a hidden", "<a hidden>", "<a color:white>of all that there is", "<p hidden x>é"]
        {
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
