//! Characters as numbers, bits, or words.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use wide::u8x16;

use super::{
    super::{Budget, Encoding, nibble},
    OnBytes, OnForm, bases, bits, emit,
};
use crate::lanes;

/// Fewest characters that are worth it.
pub(super) const MIN_CODES: usize = 8;
/// Bytes between two numbers: `, `, `&#`, `+chr(`.
const MAX_GAP: usize = 8;
/// Longest text that is looked through as a whole for rows of numbers, and how many of 64 bytes are digits in one of a longer text: of
/// `chr(65) + ` a fifth are.
const SHORT: usize = 1024;
const MIN_DIGITS: u32 = 12;
/// Distance between the places of a text that are looked at for what fills it.
const SAMPLE: usize = 32;

/// Offsets of lines end with a zero.
static OFFSETS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["0: ", "0  "].map(Finder::new));

/// Numbers, bits and words for characters.
pub(super) fn each(text: &[u8], budget: &mut Budget, visit: OnForm<'_>) {
    let all = (0, text.len());
    let mut visit =
        |bytes: &[u8], how: Encoding, deeper: bool, budget: &mut Budget| visit(bytes, how, deeper, all, budget);
    let digits = lanes::count(text, b' ', digit);
    for (from, to) in of_digits(text, digits) {
        if budget.take(to - from) {
            numbers(text.get(from..to).unwrap_or_default(), budget, &mut visit);
        }
    }
    let marks = [(b"%u".as_slice(), 4), (b"U+", 4), (b"u+", 4), (b"0x", 2)];
    for (mark, length) in marks.into_iter().filter(|_| digits >= MIN_CODES * 2) {
        if memchr::memmem::find_iter(text, mark).nth(MIN_CODES - 1).is_some() && budget.take(text.len()) {
            marked(text, mark, length, budget, &mut visit);
        }
    }
    let escapes = memchr::memchr_iter(b'=', text)
        .filter(|at| matches!(text.get(at + 1..at + 3), Some([h, l]) if nibble(*h).is_some() && nibble(*l).is_some()));
    if escapes.take(MIN_CODES).count() == MIN_CODES && budget.take(text.len()) {
        quoted_printable(text, budget, &mut visit);
    }
    if OFFSETS.iter().any(|end| end.find(text).is_some()) {
        dump(text, budget, &mut visit);
    }
    bits::each(text, budget, &mut visit);
    if sampled(text, in_morse) && budget.take(text.len()) {
        morse(text, budget, &mut visit);
    }
    if spelt(text) && budget.take(text.len()) {
        words(text, budget, &mut visit);
    }
}

fn digit(b: u8x16) -> u8x16 {
    lanes::within(b, b'0', b'9')
}

/// The stretches of a text with so many digits that have as many as rows of codes have, with what is beside them. Short texts are one.
fn of_digits(text: &[u8], digits: usize) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    if digits < MIN_CODES * 2 {
        return out;
    }
    if text.len() <= SHORT {
        out.extend((digits * 12 >= text.len()).then_some((0, text.len())));
        return out;
    }
    for (number, block) in lanes::blocks(text, b' ').enumerate() {
        if lanes::bits(&block, digit).count_ones() < MIN_DIGITS {
            continue;
        }
        let from = number.saturating_sub(1) * lanes::BLOCK;
        let to = text.len().min((number + 2) * lanes::BLOCK);
        match out.last_mut() {
            Some((_, last)) if from <= *last => *last = to,
            _ => out.push((from, to)),
        }
    }
    out
}

/// Whether some place of a text is inside of what it could be.
fn sampled(text: &[u8], inside: fn(&[u8]) -> bool) -> bool {
    (0..text.len()).step_by(SAMPLE).any(|at| inside(text.get(at..(at + SAMPLE * 3 / 4)).unwrap_or_default()))
}

/// Decimal, octal and binary numbers in a row, and numbers of a fixed length without anything between them.
fn numbers(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let mut row: Vec<&[u8]> = Vec::new();
    let (mut at, mut gap) = (0, 0);
    while at <= text.len() {
        let rest = text.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            gap += 1;
            at += 1;
            if gap > MAX_GAP || at > text.len() {
                row_of_codes(&row, budget, visit);
                row.clear();
            }
            continue;
        }
        let number = rest.get(..length).unwrap_or_default();
        if length > 8 {
            row_of_codes(&row, budget, visit);
            row.clear();
            joined(number, budget, visit);
        } else {
            row.push(number);
        }
        gap = 0;
        at += length;
    }
}

/// Numbers in a row, in each base that they can be of.
fn row_of_codes(row: &[&[u8]], budget: &mut Budget, visit: OnBytes<'_>) {
    if row.len() < MIN_CODES {
        return;
    }
    let read = |base: u32| -> Vec<u8> {
        let code = |digits: &&[u8]| {
            digits.iter().try_fold(0u32, |n, b| (u32::from(b - b'0') < base).then(|| n * base + u32::from(b - b'0')))
        };
        // What is no character separates those that are: a number of a line, or of a part.
        row.iter().filter_map(|n| code(n).and_then(|n| u8::try_from(n).ok())).collect()
    };
    for (base, name) in [(10, "decimal codes"), (8, "octal codes"), (2, "binary codes")] {
        let bytes = read(base);
        if bytes.len() * 8 >= row.len() * 7 && emit(&bytes, name, budget, visit) {
            return;
        }
    }
    let letters: Vec<u8> = row
        .iter()
        .filter_map(|n| std::str::from_utf8(n).ok()?.parse::<u8>().ok())
        .filter(|n| (1..=26).contains(n))
        .map(|n| n - 1 + b'a')
        .collect();
    if letters.len() == row.len() {
        visit(&letters, Encoding::Named("numbers of letters"), true, budget);
    }
}

/// One long number: codes of three digits, or of two and three, or bits.
fn joined(digits: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let value = |digits: &[u8]| digits.iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
    if digits.len() >= MIN_CODES * 3 && digits.len().is_multiple_of(3) {
        let bytes: Option<Vec<u8>> = digits.chunks(3).map(|n| u8::try_from(value(n)).ok()).collect();
        if let Some(bytes) = bytes {
            emit(&bytes, "decimal codes", budget, visit);
        }
        let octal: Vec<u8> =
            digits.chunks(3).map(|n| n.iter().fold(0u8, |n, b| n.wrapping_mul(8).wrapping_add(b - b'0'))).collect();
        emit(&octal, "octal codes", budget, visit);
    }
    // Printable characters have two digits from 32 on, and three from 100 on.
    let mut bytes = Vec::new();
    let mut rest = digits;
    while let Some(first) = rest.first() {
        let length = if *first == b'1' { 3 } else { 2 };
        let Some((code, tail)) = rest.split_at_checked(length) else { break };
        bytes.push(value(code) as u8);
        rest = tail;
    }
    if bytes.len() >= MIN_CODES {
        emit(&bytes, "decimal codes", budget, visit);
    }
    if digits.len() >= super::MIN_TEXT {
        bases::digits(digits, budget, visit);
    }
}

/// Hex digits behind a mark.
fn marked(text: &[u8], mark: &[u8], most: usize, budget: &mut Budget, visit: OnBytes<'_>) {
    let mut out = Vec::new();
    for at in memchr::memmem::find_iter(text, mark) {
        let digits = text.get(at + mark.len()..).unwrap_or_default().iter().take(most).map_while(|b| nibble(*b));
        let code = digits.fold(0u32, |n, d| n << 4 | u32::from(d));
        if let Some(c) = char::from_u32(code) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    emit(&out, "code points", budget, visit);
}

/// Bytes in hex, in lines that begin with an offset, as xxd and hexdump write them.
fn dump(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let hex = |b: &u8| b.is_ascii_hexdigit();
    let mut out = Vec::new();
    for line in text.split(|b| *b == b'\n') {
        let Some((offset, rest)) = line.split_at_checked(7) else { continue };
        if !offset.iter().rev().take(6).all(hex) {
            continue;
        }
        let rest = rest
            .iter()
            .position(|b| matches!(b, b' ' | b':'))
            .map_or(rest, |at| rest.get(at + 1..).unwrap_or_default());
        let mut digits = Vec::new();
        for part in rest.split(|b| *b == b' ').filter(|p| !p.is_empty()) {
            if part.len() % 2 != 0 || part.len() > 16 || !part.iter().all(hex) || digits.len() >= 32 {
                break;
            }
            digits.extend(part.iter().filter_map(|b| nibble(*b)));
        }
        out.extend(digits.chunks_exact(2).map(|p| p.iter().fold(0, |a, d| a << 4 | d)));
    }
    if out.len() >= MIN_CODES && budget.take(out.len()) {
        emit(&out, "hex dump", budget, visit);
    }
}

/// Quoted-printable (RFC 2045 section 6.7).
fn quoted_printable(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let (mut out, mut needless) = (Vec::with_capacity(text.len()), 0);
    let mut rest = text;
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        match (b, tail) {
            (b'=', [b'\r', b'\n', tail @ ..] | [b'\n', tail @ ..]) => rest = tail,
            (b'=', [h, l, tail @ ..]) if nibble(*h).is_some() && nibble(*l).is_some() => {
                let byte = nibble(*h).unwrap_or_default() << 4 | nibble(*l).unwrap_or_default();
                needless += usize::from(byte.is_ascii_alphanumeric());
                out.push(byte);
                rest = tail;
            }
            _ => out.push(b),
        }
    }
    // Values of parameters (`a=10`) look like a few.
    let hidden = needless >= MIN_CODES && needless * 2 >= out.len();
    let how = if hidden { Encoding::Named("quoted-printable") } else { Encoding::Laid("quoted-printable") };
    visit(&out, how, hidden, budget);
}

fn in_morse(part: &[u8]) -> bool {
    part.len() == SAMPLE * 3 / 4
        && part.iter().all(|b| matches!(b, b'.' | b'-' | b' ' | b'/' | b'|' | b'_'))
        && part.contains(&b'.')
        && part.contains(&b' ')
        && part.iter().any(|b| matches!(b, b'-' | b'_'))
}

/// ITU-R M.1677, letters and digits; what else there is separates and is nothing.
const MORSE: [&[u8]; 36] = [
    b".-", b"-...", b"-.-.", b"-..", b".", b"..-.", b"--.", b"....", b"..", b".---", b"-.-", b".-..", b"--", b"-.",
    b"---", b".--.", b"--.-", b".-.", b"...", b"-", b"..-", b"...-", b".--", b"-..-", b"-.--", b"--..", b"-----",
    b".----", b"..---", b"...--", b"....-", b".....", b"-....", b"--...", b"---..", b"----.",
];

fn morse(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let mut out = Vec::new();
    let mut sign = Vec::new();
    for b in text.iter().chain(b" ") {
        match b {
            b'.' | b'-' => sign.push(*b),
            b'_' => sign.push(b'-'),
            _ => {
                if let Some(at) = MORSE.iter().position(|m| *m == sign.as_slice()) {
                    out.push(b"abcdefghijklmnopqrstuvwxyz0123456789".get(at).copied().unwrap_or_default());
                }
                sign.clear();
            }
        }
    }
    visit(&out, Encoding::Named("Morse"), true, budget);
}

/// Words that spell letters (ICAO Annex 10), without their first letter, in its order; then digits.
const SPELLING: [&[u8]; 26] = [
    b"l", b"ravo", b"harlie", b"elta", b"cho", b"oxtrot", b"olf", b"otel", b"ndia", b"uliet", b"ilo", b"ima", b"ike",
    b"ovember", b"scar", b"apa", b"uebec", b"omeo", b"ierra", b"ango", b"niform", b"ictor", b"hisk", b"ray", b"ankee",
    b"ulu",
];
const DIGITS: [&[u8]; 10] = [b"zero", b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine"];

/// The letter or digit that a word spells.
fn letter(word: &[u8]) -> Option<u8> {
    let mut small = [0; 8];
    let small = small.get_mut(..word.len())?;
    small.iter_mut().zip(word).for_each(|(slot, b)| *slot = b.to_ascii_lowercase());
    let (first, rest) = small.split_first()?;
    let rest = if *first == b'x' { rest.strip_prefix(b"-").unwrap_or(rest) } else { rest };
    let at = usize::from(first.checked_sub(b'a')?);
    let spelling = SPELLING.get(at)?;
    let fits = match *first {
        b'a' => matches!(rest, b"lfa" | b"lpha"),
        b'j' => matches!(rest, b"uliet" | b"uliett"),
        b'w' => matches!(rest, b"hiskey" | b"hisky"),
        _ => rest == *spelling,
    };
    let digit = || DIGITS.iter().position(|d| *d == small.iter().as_slice()).map(|d| b'0' + d as u8);
    if fits { Some(*first) } else { digit() }
}

fn between(b: u8) -> bool {
    !(b.is_ascii_alphanumeric() || b == b'-')
}

/// Whether words in a row spell letters.
fn spelt(text: &[u8]) -> bool {
    let spells = |at: usize| {
        let part = text.get(at..(at + 40).min(text.len())).unwrap_or_default();
        let mut words = part.split(|b| !b.is_ascii_alphanumeric()).skip(1).filter(|w| w.len() > 2);
        let mut next = || words.next().and_then(letter).is_some();
        next() && next()
    };
    text.len() > 48 && (0..text.len()).step_by(SAMPLE * 2).any(spells)
}

fn words(text: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let mut out = Vec::new();
    for word in text.split(|b| between(*b)) {
        if let Some(c) = letter(word) {
            out.push(c);
            continue;
        }
        // With dashes between them, too; single characters stand for themselves.
        for part in word.split(|b| *b == b'-') {
            match (part, letter(part)) {
                (_, Some(c)) => out.push(c),
                ([c], None) => out.push(*c),
                _ => {}
            }
        }
    }
    visit(&out, Encoding::Named("spelling words"), true, budget);
}

/// `\u{…}`, octal escapes and those of style sheets: the character and what follows the backslash's escape.
pub(in super::super) fn braced(tail: &[u8]) -> Option<(char, usize)> {
    let hex = |digits: &[u8]| digits.iter().try_fold(0u32, |n, b| Some(n << 4 | u32::from(nibble(*b)?)));
    let (code, length) = match tail {
        [b'u', b'{', rest @ ..] => {
            let end = rest.iter().take(7).position(|b| *b == b'}')?;
            (hex(rest.get(..end)?)?, end + 3)
        }
        [b'U', rest @ ..] if rest.len() >= 8 => (hex(rest.get(..8)?)?, 9),
        [b'0', b'0', ..] if tail.get(..6).and_then(hex).is_some() => (hex(tail.get(..6)?)?, 6),
        [b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => {
            (tail.iter().take(3).fold(0, |n, b| n << 3 | u32::from(b - b'0')), 3)
        }
        [b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F', b, b' ', ..] if nibble(*b).is_some() => (hex(tail.get(..2)?)?, 3),
        _ => return None,
    };
    Some((char::from_u32(code)?, length))
}
