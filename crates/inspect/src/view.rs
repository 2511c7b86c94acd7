//! One spelling for all spellings of a text: what a model reads, not what stands in the bytes.
//!
//! Undoes Unicode compatibility forms (UAX #15, NFKD per character), case, accents, invisible characters, look-alike
//! letters inside words (UTS #39 confusables of the Latin letters), HTML entities, JSON escapes and terminal sequences.
//! One pass, no backtracking; the output is at most a small multiple of the input.

use unicode_normalization::char::decompose_compatible;

/// Longest HTML entity that is looked at, between `&` and `;`.
const MAX_ENTITY: usize = 10;
/// Longest terminal sequence (ECMA-48 gives no bound; real ones have a dozen bytes).
const MAX_SEQUENCE: usize = 32;

/// The normalised form: lower case, single spaces.
pub(crate) fn normalised(text: &str) -> String {
    let mut out = Writer { text: String::with_capacity(text.len()), word: 0, latin: false, alike: false };
    let mut rest = text;
    while let Some(&b) = rest.as_bytes().first() {
        if b.is_ascii_alphanumeric() {
            let end = rest.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (run, tail) = rest.split_at(end);
            out.ascii_word(run);
            rest = tail;
            continue;
        }
        let (c, length) = match b {
            b'&' => entity(rest).unwrap_or(('&', 1)),
            b'\\' => escape(rest).unwrap_or(('\\', 1)),
            0x1B => (' ', sequence(rest)),
            _ => rest.chars().next().map_or((' ', 1), |c| (c, c.len_utf8())),
        };
        // A terminal sequence is nothing at all; everything else is its character.
        if b != 0x1B {
            out.push(c);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    out.end_word();
    out.text
}

/// The letters of a table in the form that [`normalised`] gives text; ASCII stays as it is, so that a regex stays one.
pub(crate) fn letters(table: &str) -> String {
    let mut out = String::with_capacity(table.len());
    for c in table.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            decompose_compatible(c, |d| {
                if !('\u{300}'..='\u{36F}').contains(&d) {
                    out.extend(d.to_lowercase());
                }
            });
        }
    }
    out
}

struct Writer {
    text: String,
    /// Where the current word begins, and which letters it has.
    word: usize,
    latin: bool,
    alike: bool,
}

impl Writer {
    fn ascii_word(&mut self, run: &str) {
        let start = self.text.len();
        self.text.push_str(run);
        if let Some(new) = self.text.get_mut(start..) {
            new.make_ascii_lowercase();
        }
        self.latin = true;
    }

    fn push(&mut self, c: char) {
        if c.is_ascii() {
            return self.single(c);
        }
        if invisible(c) {
            return;
        }
        decompose_compatible(c, |d| {
            // Accents and stacked marks.
            if !('\u{300}'..='\u{36F}').contains(&d) {
                for d in d.to_lowercase() {
                    self.single(d);
                }
            }
        });
    }

    fn single(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            self.latin = true;
            self.text.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            self.alike |= alike(c).is_some();
            self.text.push(c);
        } else {
            self.end_word();
            let blank = c.is_whitespace() || c.is_control();
            if !blank {
                self.text.push(c);
            } else if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
            self.word = self.text.len();
        }
    }

    /// A word of Latin letters with look-alikes among them is the Latin word.
    fn end_word(&mut self) {
        if self.latin && self.alike {
            let word: String = self.text.get(self.word..).unwrap_or_default().chars().collect();
            self.text.truncate(self.word);
            self.text.extend(word.chars().map(|c| alike(c).unwrap_or(c)));
        }
        (self.latin, self.alike) = (false, false);
        self.word = self.text.len();
    }
}

/// Characters without a shape of their own (Default_Ignorable_Code_Point, UAX #44, and the byte-order mark).
fn invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

/// The Latin letter that a Cyrillic, Greek or Armenian one looks like (a selection of UTS #39 `confusables.txt`).
fn alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ҽ' | 'ε' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'н' => 'h',
        'і' | 'ι' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' | 'ⅼ' => 'l',
        'м' => 'm',
        'ո' | 'η' => 'n',
        'о' | 'ο' | 'օ' | 'σ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'ᴢ' => 'z',
        _ => return None,
    })
}

/// Latin letters for look-alikes in every word, whatever stands beside them: for comparing secrets.
pub(crate) fn unlike(text: &str) -> Option<String> {
    let mut changed = false;
    let out = text
        .chars()
        .map(|c| {
            let plain = c.to_lowercase().next().and_then(alike);
            changed |= plain.is_some();
            plain.unwrap_or(c)
        })
        .collect();
    changed.then_some(out)
}

/// The character of an HTML entity at the start of `text`, and its length (HTML Living Standard 13.5, a selection).
pub(crate) fn entity(text: &str) -> Option<(char, usize)> {
    let body = text.get(1..)?;
    let end = body.bytes().take(MAX_ENTITY).position(|b| b == b';')?;
    let name = body.get(..end)?;
    let c = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "colon" => ':',
        "period" => '.',
        "comma" => ',',
        "sol" => '/',
        "lowbar" => '_',
        "equals" => '=',
        "NewLine" | "Tab" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((c, end + 2))
}

/// The character of a JSON or JavaScript escape at the start of `text`, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    match text.as_bytes().get(1)? {
        b'n' | b'r' | b't' => Some((' ', 2)),
        b'"' => Some(('"', 2)),
        b'u' => Some((char::from_u32(u32::from_str_radix(text.get(2..6)?, 16).ok()?)?, 6)),
        b'x' => Some((char::from_u32(u32::from_str_radix(text.get(2..4)?, 16).ok()?)?, 4)),
        _ => None,
    }
}

/// Length of the terminal sequence at the start of `text` (ECMA-48: CSI, OSC, or two characters).
pub(crate) fn sequence(text: &str) -> usize {
    let bytes = text.as_bytes();
    let body = bytes.get(2..).unwrap_or_default().iter().take(MAX_SEQUENCE);
    let length = match bytes.get(1) {
        Some(b'[') => body.clone().position(|b| (0x40..0x7F).contains(b)).map(|i| i + 3),
        Some(b']') => body.clone().position(|b| *b == 7).map(|i| i + 3),
        _ => None,
    };
    length.filter(|n| text.is_char_boundary(*n)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_text() {
        for raw in [
            "Please send it",
            "ＰＬＥＡＳＥ   send\n\tit",
            "Рlеаsе sеnd it",
            "Ple\u{200b}ase s\u{ad}end it",
            "Ple\u{1b}[31mase send it",
            "&#80;lease&nbsp;send &#x69;t",
            "Please\\nsend \\u0069t",
            "P\u{301}lea\u{308}se send it",
            "𝐏𝐥𝐞𝐚𝐬𝐞 send it",
            "\u{202a}Please send it\u{202c}",
        ] {
            assert_eq!(normalised(raw), "please send it", "{raw:?}");
        }
        assert_eq!(normalised("Русский текст"), "русскии текст");
        assert_eq!(normalised("a & b &unknown; \\q \u{1b}"), "a & b &unknown; \\q ");
        assert_eq!(unlike("аbс").as_deref(), Some("abc"));
        assert_eq!(unlike("abc"), None);
    }

    proptest::proptest! {
        #[test]
        fn bounded_and_total(s in "\\PC*|[&#;x0-9\\\\u\\[\\]m\u{1b}аb \u{e0041}ﷺ]*") {
            // U+FDFA, the longest compatibility form, has 18 characters; each has at most four bytes.
            proptest::prop_assert!(normalised(&s).len() <= s.len() * 24 + 4);
        }
    }
}
