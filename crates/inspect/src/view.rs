//! One spelling for all spellings of a text: what a model reads, not what stands in the bytes.
//!
//! Undoes Unicode compatibility forms (UAX #15, NFKD per character), case, accents, invisible characters, look-alike
//! letters inside words (UTS #39 confusables of the Latin letters), HTML entities, JSON escapes and terminal sequences.
//! One pass, no backtracking; the output is at most a small multiple of the input.

mod letters;
pub(crate) mod written;

use unicode_normalization::char::decompose_compatible;

use letters::{Letter, capital, letters_of_two, script_alike};
pub(crate) use letters::{alike, alphabetic, alphanumeric, invisible, shaped};
use written::escape;
pub(crate) use written::{entity, escaped};

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

/// What [`PLAIN`] makes of the bytes of a run from `at` on, and how many of them stay as many: those before the first that is
/// special or a blank behind another. `None` where fewer are left. `before` is what was written last. Every byte is looked at in
/// the same way, which a compiler does for many at once.
#[inline]
fn lowered(run: &[u8], at: usize, before: u8) -> Option<([u8; TOGETHER], usize)> {
    let part: &[u8; TOGETHER] = run.get(at..)?.first_chunk()?;
    // Nothing was written yet: no blank.
    let mut previous = [if before == 0 { b'-' } else { before }; TOGETHER];
    match at.checked_sub(1).and_then(|at| run.get(at..)?.first_chunk()) {
        Some(bytes) => previous = *bytes,
        None => previous.iter_mut().skip(1).zip(part).for_each(|(slot, b)| *slot = *b),
    }
    let blank = |b: u8| (b <= b' ') | (b == 0x7F);
    let special = |b: u8| (b >= 0x80) | (b == b'&') | (b == b'\\') | (b == 0x1B);
    let mut no = [0u8; TOGETHER];
    for (no, (b, before)) in no.iter_mut().zip(part.iter().zip(&previous)) {
        *no = u8::from(special(*b) | blank(*b) & blank(*before));
    }
    let mut out = *part;
    for b in &mut out {
        *b = if blank(*b) { b' ' } else { *b | u8::from(b.wrapping_sub(b'A') < 26) << 5 };
    }
    Some((out, (u128::from_le_bytes(no).trailing_zeros() / 8) as usize))
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
        let (all, good) = if slots.len() == TOGETHER {
            lowered(text, at, before)?
        } else {
            let mut last = [b'-'; TOGETHER];
            last.iter_mut().zip(text.get(at..)?).for_each(|(slot, b)| *slot = *b);
            lowered(&last, 0, before)?
        };
        if good < TOGETHER {
            return None;
        }
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
        // No byte becomes more than one here, so that this many do not reach beyond where the place begins.
        let many = span.0.saturating_sub(out.length).max(1);
        let run = rest.as_bytes().get(..many).unwrap_or(rest.as_bytes());
        let taken = match out.plain(run) {
            0 => out.letters(run),
            plain => plain,
        };
        rest = if taken == 0 { out.special(rest) } else { rest.get(taken..).unwrap_or_default() };
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
    /// Scripts of its letters that look like Latin ones.
    alike: u8,
}

impl Writer {
    fn with_room(room: usize) -> Self {
        Self { text: vec![0; room], length: 0, word: None, latin: false, alike: 0 }
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

    /// Writes the ordinary bytes at the start of `run`; gives how many there are. Many at once, of which those count that
    /// stay as many; blanks in a row are left out together.
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
            if let (Some((all, good)), Some(slots)) = (lowered(run, from, before), self.text.get_mut(at..at + TOGETHER))
            {
                slots.copy_from_slice(&all);
                (at, from) = (at + good, from + good);
                before = good.checked_sub(1).and_then(|last| all.get(last)).copied().unwrap_or(before);
                if good == TOGETHER {
                    continue;
                }
            } else {
                // The last ones, one by one.
                let plain = run.get(from).and_then(|b| PLAIN.get(usize::from(*b))).copied().unwrap_or(SPECIAL);
                if plain != SPECIAL && !(plain == b' ' && before == b' ') {
                    if let Some(slot) = self.text.get_mut(at) {
                        *slot = plain;
                    }
                    (at, from, before) = (at + 1, from + 1, plain);
                    continue;
                }
            }
            // Behind a special byte somebody else goes on.
            let rest = run.get(from..).unwrap_or_default();
            if rest.first().is_some_and(|b| PLAIN.get(usize::from(*b)) == Some(&SPECIAL)) {
                break;
            }
            if before == b' ' {
                from += rest.iter().take_while(|b| PLAIN.get(usize::from(**b)) == Some(&b' ')).count();
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
        if let Some(ascii) = shaped(c) {
            return self.single(ascii);
        }
        decompose_compatible(c, |d| {
            // Accents and stacked marks.
            if ('\u{300}'..='\u{36F}').contains(&d) {
                return;
            }
            match capital(d) {
                true => d.to_lowercase().for_each(|d| self.single(d)),
                false => self.single(d),
            }
        });
    }

    fn single(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            self.latin |= self.word.is_some();
            self.character(c.to_ascii_lowercase());
        } else if alphanumeric(c) {
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
        self.alike |= script_alike(c);
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

    /// A word of Latin letters with look-alikes among them is the Latin word, and so is one of look-alikes of several scripts.
    #[inline]
    fn end_word(&mut self) {
        let Some(start) = self.word.take() else { return };
        if self.alike != 0 && (self.latin || self.alike.count_ones() > 1) {
            self.latin_word(start);
        }
        (self.latin, self.alike) = (false, 0);
    }

    #[inline(never)]
    fn latin_word(&mut self, start: usize) {
        let word = String::from_utf8_lossy(self.text.get(start..self.length).unwrap_or_default()).into_owned();
        self.length = start;
        word.chars().for_each(|c| self.character(alike(c).unwrap_or(c)));
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
mod tests;
