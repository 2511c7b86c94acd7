//! One spelling for all spellings of a text: what a model reads, not what stands in the bytes.
//!
//! Undoes Unicode compatibility forms (UAX #15, NFKD per character), case, accents, invisible characters, look-alike
//! letters inside words (UTS #39 confusables of the Latin letters), HTML entities, JSON escapes and terminal sequences.
//! One pass, no backtracking; the output is at most a small multiple of the input.

use std::sync::OnceLock;

use unicode_normalization::char::decompose_compatible;

/// Longest HTML entity that is looked at, between `&` and `;`.
const MAX_ENTITY: usize = 10;
/// Longest terminal sequence (ECMA-48 gives no bound; real ones have a dozen bytes).
const MAX_SEQUENCE: usize = 32;

/// In [`PLAIN`]: needs more than a look at itself.
const SPECIAL: u8 = 0xFF;

/// What each byte of ordinary text becomes: letters in lower case, white space and control characters a blank.
const PLAIN: [u8; 256] = {
    let mut table = [SPECIAL; 256];
    let mut b = 0u8;
    while b < 0x80 {
        table[b as usize] = match b {
            b'&' | b'\\' | 0x1B => SPECIAL,
            0..=b' ' | 0x7F => b' ',
            _ => b.to_ascii_lowercase(),
        };
        b += 1;
    }
    table
};

/// Bytes that are looked at together where nothing among them needs more.
const TOGETHER: usize = 16;

/// What [`PLAIN`] makes of the bytes of a run from `at` on, if none of them is special and no blank stands behind another.
/// `before` is what was written last. Every byte is looked at in the same way, which a compiler does for many at once.
#[inline]
fn lowered(run: &[u8], at: usize, before: u8) -> Option<[u8; TOGETHER]> {
    let part: &[u8; TOGETHER] = run.get(at..)?.first_chunk()?;
    // Nothing was written yet: no blank.
    let mut previous = [if before == 0 { b'-' } else { before }; TOGETHER];
    match at.checked_sub(1).and_then(|at| run.get(at..)?.first_chunk()) {
        Some(bytes) => previous = *bytes,
        None => previous.iter_mut().skip(1).zip(part).for_each(|(slot, b)| *slot = *b),
    }
    let blank = |b: u8| (b <= b' ') | (b == 0x7F);
    let special = |b: u8| (b >= 0x80) | (b == b'&') | (b == b'\\') | (b == 0x1B);
    let mut no = 0;
    for (b, before) in part.iter().zip(&previous) {
        no |= u8::from(special(*b) | blank(*b) & blank(*before));
    }
    if no != 0 {
        return None;
    }
    let mut out = *part;
    for b in &mut out {
        *b = if blank(*b) { b' ' } else { *b | u8::from(b.wrapping_sub(b'A') < 26) << 5 };
    }
    Some(out)
}

/// The normalised form: lower case, single spaces.
pub(crate) fn normalised(text: &str) -> String {
    let mut out = Writer::with_room(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ordinary = out.plain(rest.as_bytes());
        rest = rest.get(ordinary..).unwrap_or_default();
        rest = match out.letters(rest.as_bytes()) {
            0 => out.special(rest),
            letters => rest.get(letters..).unwrap_or_default(),
        };
    }
    out.end_word();
    out.text.truncate(out.length);
    // Only whole characters were written.
    String::from_utf8(out.text).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// As [`normalised`], written into `room`: only of ASCII without escapes and blanks in a row, and where there is enough
/// room.
pub(crate) fn plain<'r>(text: &str, room: &'r mut [u8]) -> Option<&'r str> {
    let (text, out) = (text.as_bytes(), room.get_mut(..text.len())?);
    let mut before = 0;
    for (at, slots) in (0..).step_by(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
        let all = if slots.len() == TOGETHER {
            lowered(text, at, before)?
        } else {
            let mut last = [b'-'; TOGETHER];
            last.iter_mut().zip(text.get(at..)?).for_each(|(slot, b)| *slot = *b);
            lowered(&last, 0, before)?
        };
        slots.iter_mut().zip(all).for_each(|(slot, b)| *slot = b);
        before = slots.last().copied().unwrap_or_default();
    }
    std::str::from_utf8(out).ok()
}

/// Where bytes `span` of the normalised form of `text` stand in it, to the character. Look-alikes make it shorter once their
/// word has ended; what stands behind such a word is found a few bytes too early at most.
pub(crate) fn place(text: &str, span: (usize, usize)) -> (usize, usize) {
    let mut out = Writer::with_room(0);
    let (mut start, mut rest) = (None, text);
    while !rest.is_empty() && out.length < span.1 {
        let at = text.len() - rest.len();
        rest = match out.plain(rest.as_bytes().get(..1).unwrap_or_default()) {
            0 => out.special(rest),
            _ => rest.get(1..).unwrap_or_default(),
        };
        if out.length > span.0 && start.is_none() {
            start = Some(at);
        }
    }
    let end = text.len() - rest.len();
    (start.unwrap_or(end), end)
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
    /// What is written, and room.
    text: Vec<u8>,
    length: usize,
    /// Where the current word begins, if it holds letters of other scripts, and what else it holds.
    word: Option<usize>,
    latin: bool,
    alike: bool,
}

impl Writer {
    fn with_room(room: usize) -> Self {
        Self { text: vec![0; room], length: 0, word: None, latin: false, alike: false }
    }

    /// Writes what stands at the start of `rest`, which is no ordinary byte; gives what is left.
    fn special<'t>(&mut self, rest: &'t str) -> &'t str {
        let (c, length) = match rest.as_bytes().first() {
            None => return rest,
            Some(b'&') => entity(rest).unwrap_or(('&', 1)),
            Some(b'\\') => escape(rest).unwrap_or(('\\', 1)),
            // A terminal sequence is nothing at all.
            Some(0x1B) => return rest.get(sequence(rest)..).unwrap_or_default(),
            Some(_) => rest.chars().next().map_or((' ', 1), |c| (c, c.len_utf8())),
        };
        self.push(c);
        rest.get(length..).unwrap_or_default()
    }

    /// Writes the ordinary bytes at the start of `run`; gives how many there are. Many at once where all of them stay as
    /// many; else every byte is written and then kept or not, because blanks come too irregularly for a processor to guess.
    fn plain(&mut self, run: &[u8]) -> usize {
        let mut taken = 0;
        if self.word.is_some() {
            taken = run.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(run.len());
            self.latin |= taken > 0;
            self.room(taken);
            for b in run.iter().take(taken) {
                self.byte(b.to_ascii_lowercase());
            }
            match run.get(taken) {
                Some(b) if PLAIN.get(usize::from(*b)) != Some(&SPECIAL) => self.end_word(),
                _ => return taken,
            }
        }
        let run = run.get(taken..).unwrap_or_default();
        self.room(run.len());
        let mut before = self.last();
        let mut at = self.length;
        let mut from = 0;
        while from < run.len() {
            let all = lowered(run, from, before);
            if let (Some(all), Some(slots)) = (all, self.text.get_mut(at..at + TOGETHER)) {
                slots.copy_from_slice(&all);
                (at, from) = (at + TOGETHER, from + TOGETHER);
                before = all.last().copied().unwrap_or_default();
                continue;
            }
            let mut left_out = false;
            for b in run.get(from..).unwrap_or_default().iter().take(TOGETHER) {
                let plain = PLAIN.get(usize::from(*b)).copied().unwrap_or(SPECIAL);
                // Behind a special byte somebody else goes on, and behind blanks in a row again many at once.
                if plain == SPECIAL {
                    self.length = at;
                    return taken + from;
                }
                if left_out && plain != b' ' {
                    break;
                }
                if let Some(slot) = self.text.get_mut(at) {
                    *slot = plain;
                }
                let again = plain == b' ' && before == b' ';
                at += usize::from(!again);
                left_out |= again;
                before = plain;
                from += 1;
            }
        }
        self.length = at;
        taken + from
    }

    /// Writes the words of other scripts at the start of `run`, and what of ordinary text stands between them; gives how many
    /// bytes that are. Only letters of which each becomes one letter: all else is for [`Writer::special`].
    fn letters(&mut self, run: &[u8]) -> usize {
        // No letter becomes longer.
        self.room(run.len());
        let table = letters_of_two();
        let mut rest = run;
        loop {
            rest = match rest {
                [first @ 0xC2..=0xDF, second, after @ ..] => {
                    let number = usize::from(first & 0x1F) << 6 | usize::from(second & 0x3F);
                    match table.get(number).copied().unwrap_or(Letter::NONE) {
                        Letter::NONE => break,
                        Letter { bytes: [ascii, 0], .. } => {
                            self.latin |= self.word.is_some();
                            self.byte(ascii);
                        }
                        letter => {
                            self.begin_word();
                            self.alike |= letter.alike;
                            letter.bytes.into_iter().for_each(|b| self.byte(b));
                        }
                    }
                    after
                }
                // Ideographs have one form (UAX #15: the unified ones do not decompose) and no case.
                [first @ 0xE4..=0xE9, second, third, after @ ..] if *first != 0xE4 || *second >= 0xB8 => {
                    self.begin_word();
                    [*first, *second, *third].into_iter().for_each(|b| self.byte(b));
                    after
                }
                [ascii, after @ ..] => match PLAIN.get(usize::from(*ascii)).copied().unwrap_or(SPECIAL) {
                    SPECIAL => break,
                    plain if plain.is_ascii_alphanumeric() => {
                        // Words without other letters are for those who take many at once.
                        if self.word.is_none() {
                            break;
                        }
                        self.latin = true;
                        self.byte(plain);
                        after
                    }
                    plain => {
                        self.end_word();
                        if plain != b' ' || self.last() != b' ' {
                            self.byte(plain);
                        }
                        after
                    }
                },
                [] => break,
            };
        }
        run.len() - rest.len()
    }

    /// Makes room for so many more bytes.
    fn room(&mut self, more: usize) {
        if self.text.len() < self.length + more {
            self.text.resize(self.length + more, 0);
        }
    }

    fn byte(&mut self, b: u8) {
        if let Some(slot) = self.text.get_mut(self.length) {
            *slot = b;
            self.length += 1;
        }
    }

    fn last(&self) -> u8 {
        self.length.checked_sub(1).and_then(|at| self.text.get(at)).copied().unwrap_or_default()
    }

    fn character(&mut self, c: char) {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        self.room(bytes.len());
        bytes.iter().for_each(|b| self.byte(*b));
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
            self.latin |= self.word.is_some();
            self.character(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            self.letter(c);
        } else {
            self.end_word();
            let blank = c.is_whitespace() || c.is_control();
            if !blank {
                self.character(c);
            } else if self.last() != b' ' {
                self.character(' ');
            }
        }
    }

    /// A letter of another script.
    fn letter(&mut self, c: char) {
        self.begin_word();
        self.alike |= alike(c).is_some();
        self.character(c);
    }

    /// Begins a word with letters of another script, unless one has begun: with the letters that stand before it.
    #[inline]
    fn begin_word(&mut self) {
        if self.word.is_none() {
            let written = self.text.get(..self.length).unwrap_or_default();
            let ascii = written.iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
            self.word = Some(self.length - ascii);
            self.latin = ascii > 0;
        }
    }

    /// A word of Latin letters with look-alikes among them is the Latin word.
    #[inline]
    fn end_word(&mut self) {
        let Some(start) = self.word.take() else { return };
        if self.latin && self.alike {
            self.latin_word(start);
        }
        (self.latin, self.alike) = (false, false);
    }

    #[inline(never)]
    fn latin_word(&mut self, start: usize) {
        let word = String::from_utf8_lossy(self.text.get(start..self.length).unwrap_or_default()).into_owned();
        self.length = start;
        word.chars().for_each(|c| self.character(alike(c).unwrap_or(c)));
    }
}

/// What becomes of a letter of two bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Letter {
    /// One letter of two bytes, or one of ASCII and zero.
    bytes: [u8; 2],
    /// It looks like a Latin one.
    alike: bool,
}

impl Letter {
    /// It needs more than a look into a table.
    const NONE: Self = Self { bytes: [0; 2], alike: false };

    fn of(c: char) -> Self {
        let mut all = String::new();
        decompose_compatible(c, |d| all.extend(d.to_lowercase().filter(|_| !('\u{300}'..='\u{36F}').contains(&d))));
        let mut letters = all.chars();
        let (Some(one), None) = (letters.next(), letters.next()) else { return Self::NONE };
        match all.as_bytes() {
            _ if !one.is_alphanumeric() || invisible(c) => Self::NONE,
            [ascii] => Self { bytes: [*ascii, 0], alike: false },
            [first, second] => Self { bytes: [*first, *second], alike: alike(one).is_some() },
            _ => Self::NONE,
        }
    }
}

/// For the letters of two bytes (Latin ones with accents, Greek, Cyrillic, Hebrew, Arabic …), by their number.
fn letters_of_two() -> &'static [Letter; 0x800] {
    static LETTERS: OnceLock<Box<[Letter; 0x800]>> = OnceLock::new();
    LETTERS.get_or_init(|| {
        let mut all = Box::new([Letter::NONE; 0x800]);
        ('\0'..'\u{800}').zip(all.iter_mut()).for_each(|(c, letter)| *letter = Letter::of(c));
        all
    })
}

/// Characters without a shape of their own (Default_Ignorable_Code_Point, UAX #44, and the byte-order mark).
pub(crate) fn invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

/// The Latin letter that a Cyrillic, Greek or Armenian one looks like (a selection of UTS #39 `confusables.txt`).
pub(crate) fn alike(c: char) -> Option<char> {
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
    }

    #[test]
    fn letters_of_two_bytes_are_as_special_ones() {
        for c in '\u{80}'..'\u{800}' {
            let text = format!("{c}x {c}{c}");
            let (mut out, mut rest) = (Writer::with_room(0), text.as_str());
            while !rest.is_empty() {
                rest = out.special(rest);
            }
            out.end_word();
            out.text.truncate(out.length);
            assert_eq!(normalised(&text).into_bytes(), out.text, "{c:?}");
        }
    }

    #[test]
    fn places_are_those_of_the_text() {
        for (raw, normal, want) in [
            ("a  b\tsend it", "send it", "send it"),
            ("x \u{200b}s\u{200b}end it.", "send it", "s\u{200b}end it"),
            ("Ple\u{1b}[31mase s&#101;nd\\nit", "send it", "s&#101;nd\\nit"),
            ("é ﬀ ＳＥＮＤ it", "send it", "ＳＥＮＤ it"),
            ("no", "no", "no"),
        ] {
            let form = normalised(raw);
            let at = form.find(normal).unwrap();
            let (start, end) = place(raw, (at, at + normal.len()));
            assert_eq!(&raw[start..end], want, "{raw:?}");
        }
        assert_eq!(place("", (0, 5)), (0, 0));
    }

    #[test]
    fn in_place() {
        let mut room = [0; 40];
        for (text, want) in [
            ("An ordinary Sentence, 12 words.", Some("an ordinary sentence, 12 words.")),
            (" a", Some(" a")),
            ("", Some("")),
            ("line\nline", Some("line line")),
            ("line\n\nline", None),
            ("two  blanks", None),
            ("line \u{1b}[1m", None),
            ("caf\u{e9}", None),
            ("&lt;", None),
            ("longer than there is room for in all of it", None),
        ] {
            assert_eq!(plain(text, &mut room), want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn places_are_inside(s in "\\PC*|[&#;x0-9\\\\u\\[\\]m\u{1b}аb \u{e0041}ﷺ]*", from in 0usize..80, length in 0usize..80) {
            let (start, end) = place(&s, (from, from + length));
            proptest::prop_assert!(s.get(start..end).is_some());
        }

        #[test]
        fn many_at_once_are_as_one_by_one(s in "[ -~\n\t\u{7f}]{0,80}|[a-zA-Z &\\\\é\u{1b}\n]{0,80}", before in "[ a]?") {
            let (mut together, mut apart) = (Writer::with_room(0), Writer::with_room(0));
            for out in [&mut together, &mut apart] {
                out.plain(before.as_bytes());
            }
            let taken = together.plain(s.as_bytes());
            let one_by_one = s.as_bytes().chunks(1).take_while(|one| apart.plain(one) == 1).count();
            proptest::prop_assert_eq!(taken, one_by_one);
            proptest::prop_assert_eq!(together.text.get(..together.length), apart.text.get(..apart.length));
        }

        #[test]
        fn words_of_other_scripts_are_as_one_by_one(s in "[a-cA-C а-яА-ЯёЙіο中国語éÉßﬀאبı\u{301}\u{AD}\n.,&\\\u{1b}\u{7f}ｅ]{0,60}") {
            let mut apart = Writer::with_room(0);
            let mut rest = s.as_str();
            while !rest.is_empty() {
                rest = match apart.plain(rest.as_bytes().get(..1).unwrap_or_default()) {
                    0 => apart.special(rest),
                    _ => &rest[1..],
                };
            }
            apart.end_word();
            apart.text.truncate(apart.length);
            proptest::prop_assert_eq!(normalised(&s).into_bytes(), apart.text);
        }

        #[test]
        fn in_place_is_the_same(s in "[ -~]{0,60}|[a-zA-Z\\t\\n ]{0,40}|[a-zA-Z &\\\\é\n]{0,20}") {
            let mut room = [0; 64];
            if let Some(plain) = plain(&s, &mut room) {
                proptest::prop_assert_eq!(plain, normalised(&s));
            }
        }

        #[test]
        fn bounded_and_total(s in "\\PC*|[&#;x0-9\\\\u\\[\\]m\u{1b}аb \u{e0041}ﷺ]*") {
            // U+FDFA, the longest compatibility form, has 18 characters; each has at most four bytes.
            proptest::prop_assert!(normalised(&s).len() <= s.len() * 24 + 4);
        }
    }
}
