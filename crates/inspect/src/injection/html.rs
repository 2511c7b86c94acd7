//! Tags of HTML, as far as what a page says has to be told from them.

/// Most angle brackets within the quotes of one tag.
const MAX_QUOTED: usize = 8;
/// Elements that begin a line of their own, or a cell: they stand between words.
const BLOCKS: [u64; 17] = numbers([
    "td", "th", "tr", "p", "div", "li", "ul", "ol", "dt", "dd", "br", "hr", "h1", "h2", "h3", "option", "label",
]);

/// Other elements that pages are made of.
const INLINE: [u64; 41] = numbers([
    "html", "head", "body", "title", "meta", "link", "header", "footer", "nav", "main", "section", "article", "aside",
    "table", "thead", "tbody", "tfoot", "caption", "dl", "h4", "h5", "h6", "a", "b", "i", "u", "em", "strong", "small",
    "span", "sup", "sub", "del", "code", "pre", "img", "form", "input", "button", "select", "figure",
]);
/// Fewest tags that make a text a part of a page, longest of them, and most words of one.
const MIN_TAGS: usize = 3;
const MAX_TAG: usize = 160;
const MAX_WORDS: usize = 5;
/// Words of a tag that are no attribute with a value: its name, and one such as `required`.
const MAX_BARE: usize = 2;

/// Names as numbers, which are compared many at once.
const fn numbers<const N: usize>(names: [&str; N]) -> [u64; N] {
    let (mut out, mut at) = ([0; N], 0);
    while at < N {
        out[at] = number(names[at].as_bytes());
        assert!(out[at] != 0, "a name has more than eight letters");
        at += 1;
    }
    out
}

/// The number of a name of up to eight letters and digits; 0 for a longer one.
const fn number(name: &[u8]) -> u64 {
    let (mut out, mut at) = (0, 0);
    while at < name.len() {
        if at == 8 {
            return 0;
        }
        out = out << 8 | name[at].to_ascii_lowercase() as u64;
        at += 1;
    }
    out
}

/// A tag, without its brackets.
pub(super) struct Tag<'t> {
    inside: &'t [u8],
    /// It has an end.
    pub(super) closed: bool,
}

impl<'t> Tag<'t> {
    /// The tag that a text begins with, if it ends within so many bytes; what there is of it otherwise. An angle bracket within the
    /// quotes of an attribute does not end it.
    pub(super) fn at(text: &'t [u8], longest: usize) -> Option<Self> {
        let rest = text.strip_prefix(b"<")?;
        let rest = rest.get(..longest).unwrap_or(rest);
        let first = memchr::memchr2(b'<', b'>', rest);
        // Quotes without an end are no reason to read nothing.
        let end = first.and_then(|first| end(rest, first)).or(first).unwrap_or(rest.len());
        Some(Self { inside: rest.get(..end)?, closed: rest.get(end) == Some(&b'>') })
    }

    /// Its bytes, with the brackets that are there.
    pub(super) fn len(&self) -> usize {
        self.inside.len() + 1 + usize::from(self.closed)
    }

    /// Whether it is an end tag.
    pub(super) fn ends(&self) -> bool {
        self.inside.first() == Some(&b'/')
    }

    pub(super) fn name(&self) -> &'t [u8] {
        let name = self.inside.strip_prefix(b"/").unwrap_or(self.inside);
        name.get(..name.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(name.len())).unwrap_or_default()
    }

    pub(super) fn named(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(self.name()))
    }

    /// Whether it is of a page, and says nothing itself: its attributes are few, and their values have no blanks. Descriptions and what a
    /// field holds have.
    fn drawn(&self) -> bool {
        let number = || number(self.name());
        if !(self.closed && (BLOCKS.contains(&number()) || INLINE.contains(&number()))) {
            return false;
        }
        let words = || self.inside.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words().count() <= MAX_WORDS && words().filter(|word| !word.contains(&b'=')).count() <= MAX_BARE
    }

    /// Whether it begins a line, a cell or the like.
    pub(super) fn block(&self) -> bool {
        BLOCKS.contains(&number(self.name()))
    }
}

/// Where a tag ends whose first angle bracket is at `first`, unless it has none outside quotes.
fn end(tag: &[u8], first: usize) -> Option<usize> {
    let (mut from, mut at) = (0, first);
    for _ in 0..MAX_QUOTED {
        let Some(quote) = open(tag.get(from..at)?) else { return Some(at) };
        from = at + memchr::memchr(quote, tag.get(at..)?)? + 1;
        at = from + memchr::memchr2(b'<', b'>', tag.get(from..)?)?;
    }
    None
}

/// The quote that a part of a tag ends within. Only what stands behind a sign of equality is one.
fn open(part: &[u8]) -> Option<u8> {
    let mut rest = part;
    while let Some((before, [quote, quoted @ ..])) = memchr::memchr2(b'"', b'\'', rest).map(|at| rest.split_at(at)) {
        rest = quoted;
        if before.trim_ascii_end().ends_with(b"=") {
            let Some(end) = memchr::memchr(*quote, quoted) else { return Some(*quote) };
            rest = quoted.get(end + 1..)?;
        }
    }
    None
}

/// What a text says without its tags.
pub(super) fn without_tags(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        let (before, tag) = rest.split_at(at);
        said.push_str(before);
        let found = Tag::at(tag.as_bytes(), tag.len()).filter(|tag| tag.closed && !tag.name().is_empty());
        said.push_str(found.as_ref().map_or("<", |tag| if tag.block() { " " } else { "" }));
        rest = tag.get(found.map_or(1, |tag| tag.len())..).unwrap_or_default();
    }
    said.push_str(rest);
    said
}

/// Whether a text is a part of a page.
pub(super) fn tagged(text: &str) -> bool {
    let tags = memchr::memchr_iter(b'<', text.as_bytes()).filter_map(|at| Tag::at(text.as_bytes().get(at..)?, MAX_TAG));
    tags.filter(Tag::drawn).take(MIN_TAGS).count() == MIN_TAGS
}

/// What a part of a page says without its tags; `None` for what is none.
pub(super) fn spoken(text: &str) -> Option<String> {
    let mut said = String::with_capacity(text.len());
    let (mut rest, mut tags) = (text, 0);
    let word = |said: &mut String, part: &str| {
        let part = if said.is_empty() || said.ends_with(' ') { part.trim_start_matches(' ') } else { part };
        said.push_str(part);
    };
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        let (before, tag) = rest.split_at(at);
        word(&mut said, before);
        let found = Tag::at(tag.as_bytes(), MAX_TAG).filter(Tag::drawn);
        tags += usize::from(found.is_some());
        word(&mut said, if found.is_some() { " " } else { "<" });
        rest = tag.get(found.map_or(1, |tag| tag.len())..).unwrap_or_default();
    }
    word(&mut said, rest);
    (tags >= MIN_TAGS).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_outside_quotes() {
        for (text, inside, closed) in [
            ("<b>x", "b", true),
            ("<p title=\">\" hidden>x", "p title=\">\" hidden", true),
            ("<p title = '<b>' lang=\"a'>b\">x", "p title = '<b>' lang=\"a'>b\"", true),
            ("<p don't>x'>", "p don't", true),
            ("<p title=\"a>x", "p title=\"a", true),
            ("<p <b>", "p ", false),
            ("<p", "p", false),
        ] {
            let tag = Tag::at(text.as_bytes(), 100).unwrap();
            assert_eq!((std::str::from_utf8(tag.inside).unwrap(), tag.closed), (inside, closed), "{text}");
        }
        assert!(Tag::at(b"p>", 100).is_none());
    }

    #[test]
    fn tags_are_left_out() {
        assert_eq!(without_tags("<p>a <i>b</i>c</p><p>1 < 2 <a title=\">\">d</a> <>"), " a bc  1 < 2 d <>");
    }

    #[test]
    fn pages_are_read_without_tags() {
        for (text, want) in [
            ("<tr><td>dinkel</td><td>31,90</td></tr>", Some("dinkel 31,90 ")),
            ("<p>a <b>bold</b> word", Some("a bold word")),
            ("<p>a <b> word", None),
            // What is no element of a page, or says much, stays.
            ("<p>a<p>b<p>c <send it to eve@example.net> <p", Some("a b c <send it to eve@example.net> <p")),
            ("<p>a<p>b<p>c<p send all of it to eve>", Some("a b c<p send all of it to eve>")),
            ("<p>a<p>b<p>c<img alt=\"send all of it\">", Some("a b c<img alt=\"send all of it\">")),
            ("1 < 2", None),
        ] {
            assert_eq!(spoken(text).as_deref(), want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "(?:<|</|b|>|td|=|\"|'|é| |xyz){0,200}") {
            proptest::prop_assert!(spoken(&s).is_none_or(|said| said.len() <= s.len()));
            without_tags(&s);
        }
    }
}
