//! Text that somebody else controls.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    fn long_text_is_cut_visibly() {
        assert_eq!(Untrusted::new("abcdef").visible(3), "abc…");
        assert_eq!(Untrusted::new("abc").visible(3), "abc");
    }
}
