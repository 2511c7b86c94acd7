//! Every string in a JSON value, keys included, with its place.

use std::{borrow::Cow, fmt::Write as _};

use super::string;

/// Longest pointer given out, in bytes. Keys are the sender's: a pointer is for a person to find a place by.
const MAX_POINTER: usize = 512;

/// One string or number leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// The text. Lone surrogates become U+FFFD; numbers stand as written.
    pub text: Cow<'a, str>,
    /// Byte offsets of the raw token in the JSON that was walked, quotes included.
    pub span: (usize, usize),
    /// Whether this is a member's name rather than a value.
    pub key: bool,
}

/// Iterates over the strings and numbers of valid JSON, in order, without recursion. Duplicate members are all visited.
///
/// The input must be JSON that was already checked (a part of a parsed [`super::Frame`]); on anything else the walk ends
/// early but never panics. Leaves carry no pointers, because one long key above a million leaves would make them cost
/// more than the message: [`Leaves::pointer`] makes the one that is needed.
pub struct Leaves<'a> {
    raw: &'a str,
    at: usize,
    /// Open containers.
    stack: Vec<Level>,
}

struct Level {
    /// `None` in an object; in an array the index of the current element, counted from one.
    index: Option<usize>,
    /// In an object: the next string is a key.
    wants_key: bool,
    /// In an object: the raw token of the current key.
    key: (usize, usize),
}

impl<'a> Leaves<'a> {
    /// Walks `raw`.
    pub fn of(raw: &'a str) -> Self {
        Self { raw, at: 0, stack: Vec::new() }
    }

    /// How many containers the leaf that was given last stands in.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// JSON pointer (RFC 6901) of the leaf that was given last; for a key, of its member. At most about 500 bytes, then cut
    /// with an ellipsis.
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for level in &self.stack {
            out.push('/');
            match level.index {
                Some(index) => {
                    let _ = write!(out, "{}", index.saturating_sub(1));
                }
                None => {
                    let key = string::text(self.raw.get(level.key.0..level.key.1).unwrap_or_default());
                    if key.len() <= MAX_POINTER && !key.contains(['~', '/']) {
                        out.push_str(&key);
                    } else {
                        let key = key.replace('~', "~0").replace('/', "~1");
                        out.extend(key.chars().take(MAX_POINTER));
                    }
                }
            }
            if out.len() >= MAX_POINTER {
                let cut = (0..=MAX_POINTER).rev().find(|i| out.is_char_boundary(*i)).unwrap_or(0);
                out.truncate(cut);
                out.push('…');
                break;
            }
        }
        out
    }

    /// Whether the leaf that was given last stands in an element of an array in a member of the whole that is called one of `outer`, in its
    /// member `inner`: as texts stand in the content of a result. Names with escapes are others.
    pub fn is_part(&self, outer: &[&str], inner: &str) -> bool {
        let name = |level: &Level| self.raw.get(level.key.0 + 1..level.key.1.checked_sub(1)?);
        match self.stack.as_slice() {
            [whole, array, element] => {
                array.index.is_some()
                    && name(whole).is_some_and(|name| outer.contains(&name))
                    && name(element) == Some(inner)
            }
            _ => false,
        }
    }

    fn enter_value(&mut self) {
        if let Some(index) = self.stack.last_mut().and_then(|l| l.index.as_mut()) {
            *index += 1;
        }
    }
}

/// [`Leaves::pointer`] of the leaf that starts at byte `offset` of `raw`.
pub fn pointer(raw: &str, offset: usize) -> String {
    let mut walk = Leaves::of(raw);
    for leaf in walk.by_ref() {
        if leaf.span.0 >= offset {
            break;
        }
    }
    walk.pointer()
}

impl<'a> Iterator for Leaves<'a> {
    type Item = Leaf<'a>;

    fn next(&mut self) -> Option<Leaf<'a>> {
        let bytes = self.raw.as_bytes();
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b'{' | b'[' => {
                    self.enter_value();
                    let array = b == b'[';
                    self.stack.push(Level { index: array.then_some(0), wants_key: !array, key: (0, 0) });
                    self.at += 1;
                }
                b'}' | b']' => {
                    self.stack.pop()?;
                    self.at += 1;
                }
                b',' => {
                    if let Some(level) = self.stack.last_mut() {
                        level.wants_key = level.index.is_none();
                    }
                    self.at += 1;
                }
                b'"' => {
                    let (end, text) = string::read(self.raw, self.at);
                    let (span, mut key) = ((self.at, end), false);
                    match self.stack.last_mut() {
                        Some(level) if level.wants_key => {
                            level.wants_key = false;
                            level.key = span;
                            key = true;
                        }
                        _ => self.enter_value(),
                    }
                    self.at = end;
                    return Some(Leaf { text, span, key });
                }
                b'-' | b'0'..=b'9' => {
                    self.enter_value();
                    let len = bytes[self.at..]
                        .iter()
                        .position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                        .unwrap_or(bytes.len() - self.at);
                    let span = (self.at, self.at + len);
                    self.at = span.1;
                    let text = Cow::Borrowed(self.raw.get(span.0..span.1).unwrap_or_default());
                    return Some(Leaf { text, span, key: false });
                }
                b't' | b'f' | b'n' => {
                    self.enter_value();
                    self.at += if b == b'f' { 5 } else { 4 };
                }
                _ => self.at += 1,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_content() {
        let raw = r#"{"content":[{"type":"text","text":"a"},{"text":["b"],"te\u0078t":"c"},"d"],"contents":[{"text":"e"}],
            "text":"f","other":[{"text":"g"}],"x":{"content":[{"text":"h"}]}}"#;
        let mut walk = Leaves::of(raw);
        let mut found = Vec::new();
        while let Some(leaf) = walk.next() {
            if !leaf.key && walk.is_part(&["content", "contents"], "text") {
                found.push(leaf.text.into_owned());
            }
        }
        assert_eq!(found, ["a", "e"]);
    }

    #[test]
    fn pointers_and_texts() {
        let raw =
            r#"{"a":["x",{"b/c":"y"},null,"z"],"n":-1.5e3,"a":"again","e":"\u00e9\ud800","o":{}, "t":true,"l":"last"}"#;
        let got: Vec<_> =
            Leaves::of(raw).filter(|l| !l.key).map(|l| (pointer(raw, l.span.0), l.text.into_owned())).collect();
        let want = [
            ("/a/0", "x"),
            ("/a/1/b~1c", "y"),
            ("/a/3", "z"),
            ("/n", "-1.5e3"),
            ("/a", "again"),
            ("/e", "é\u{FFFD}"),
            ("/l", "last"),
        ];
        assert_eq!(got, want.map(|(p, t)| (p.to_owned(), t.to_owned())));
        for leaf in Leaves::of(raw).filter(|l| l.text == "y") {
            assert_eq!(&raw[leaf.span.0..leaf.span.1], r#""y""#);
        }
        let keys: Vec<_> = Leaves::of(raw).filter(|l| l.key).map(|l| pointer(raw, l.span.0)).collect();
        assert_eq!(keys, ["/a", "/a/1/b~1c", "/n", "/a", "/e", "/o", "/t", "/l"]);
    }

    #[test]
    fn scalars_and_depth() {
        assert_eq!(Leaves::of(r#""s""#).count(), 1);
        let deep = format!("{}\"x\"{}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(Leaves::of(&deep).count(), 1);
        assert!(pointer(&deep, 50_000).len() <= MAX_POINTER + 3);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(s in "\\PC*|[\\[\\]{}\",:\\\\u0-9dD8-9a-f ]*") {
            for leaf in Leaves::of(&s) {
                pointer(&s, leaf.span.0);
            }
        }
    }
}
