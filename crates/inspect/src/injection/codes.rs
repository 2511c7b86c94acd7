//! Lists of character codes, letters by their places, and Morse.

use super::layers::MIN_TEXT;
use crate::language::{monotone, rare};

/// Shortest list of codes, in bytes, and how far apart places are looked at: every such list covers one and all bytes up to the next.
const MIN_LIST: usize = 40;
const STEP: usize = MIN_LIST / 2;
/// Shortest row of bits without blanks.
const MIN_BITS: usize = 16;
/// Bytes of a text for each character beyond ASCII in it, at least.
const BEYOND: usize = 6;
/// Most lists of one text that say something.
const MAX_LISTS: usize = 64;

/// Texts written as lists of character codes (binary, decimal, hexadecimal with `0x`, `U+`, `%u` or nothing before them, several to a
/// group) or in Morse.
pub(super) fn lists(text: &str, visit: &mut dyn FnMut(String, &'static str, (usize, usize))) {
    let bytes = text.as_bytes();
    let part = |b: &u8| PART.get(usize::from(*b)).copied().unwrap_or_default();
    let (mut at, mut count) = (0, 0);
    while let Some(some) = bytes.get(at..).and_then(|rest| rest.first_chunk::<{ STEP + 1 }>()) {
        // Without a branch for each: what one byte of a text is says little of the next.
        if ![0, STEP / 4, STEP / 2, 3 * STEP / 4, STEP].into_iter().fold(true, |all, at| all & part(&some[at])) {
            at += STEP;
            continue;
        }
        let before = bytes.get(..at).unwrap_or_default().iter().rev().take(STEP).take_while(|b| part(b)).count();
        let after = bytes.get(at..).unwrap_or_default().iter().take_while(|b| part(b)).count();
        // Rows of numbers before a list do not keep it from being read: each byte is in one of them.
        let run = text.get(at - before..at + after).unwrap_or_default();
        if run.len() >= MIN_LIST && count < MAX_LISTS && !monotone(run.as_bytes()) {
            let named = |name| move |plain| (plain, name);
            let said = codes(run).map(named("character-codes")).or_else(|| morse(run).map(named("morse")));
            if let Some((plain, name)) = said.or_else(|| places(run).map(named("letters-by-place"))) {
                visit(plain, name, (at - before, at + after));
                count += 1;
            }
        }
        at += (after / STEP + 1) * STEP;
    }
}

/// What lists are written with.
const PART: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        let byte = b as u8;
        table[b] = byte.is_ascii_hexdigit()
            || matches!(byte, b' ' | b',' | b'.' | b'-' | b'/' | b'\n' | b'x' | b'\\')
            || matches!(byte, b':' | b';' | b'_' | b'+' | b'U' | b'u' | b'%' | b'o');
        b += 1;
    }
    table
};

/// What a list of codes says, if that is a text.
pub(super) fn codes(run: &str) -> Option<String> {
    let octal = || match memchr::memchr2(b'8', b'9', run.as_bytes()) {
        Some(_) => None,
        None => codes_as(run, Digits::Octal),
    };
    codes_as(run, Digits::Decimal).or_else(|| codes_as(run, Digits::Pairs)).or_else(octal)
}

/// What groups of digits with nothing before them are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    Decimal,
    /// Hexadecimal, two to a character.
    Pairs,
    Octal,
}

fn codes_as(run: &str, digits: Digits) -> Option<String> {
    let pairs = digits == Digits::Pairs;
    let mut out = String::new();
    let (mut bad, mut beyond) = (0usize, 0usize);
    let apart = [' ', ',', '\n', ';', ':', '_', '-', '.', '%'];
    let groups = run.split(apart).flat_map(|g| g.strip_prefix("U+").unwrap_or(g).split('+')).filter(|g| !g.is_empty());
    let several = |group: &&str| pairs && (4..=32).contains(&group.len()) && group.len().is_multiple_of(2);
    for group in groups {
        let of = |digits: &str, base| u32::from_str_radix(digits, base).ok();
        let group = group.trim_start_matches('\\');
        if group.len() >= MIN_BITS && group.len().is_multiple_of(8) && group.bytes().all(|b| b == b'0' || b == b'1') {
            for bits in group.as_bytes().chunks(8) {
                let code = bits.iter().fold(0, |code, b| code << 1 | (b - b'0'));
                match (b' '..=b'~').contains(&code) || code == b'\n' {
                    true => out.push(char::from(code)),
                    false => bad += 1,
                }
            }
            if bad > 3 && bad * 8 > out.len() {
                return None;
            }
            continue;
        }
        // Of code points the first two digits are zeros.
        if let Some(digits) = Some(group).filter(several).filter(|g| g.bytes().all(|b| b.is_ascii_hexdigit())) {
            for pair in digits.as_bytes().chunks(2).filter(|pair| *pair != b"00") {
                match std::str::from_utf8(pair).ok().and_then(|pair| of(pair, 16)).and_then(char::from_u32) {
                    Some(c) if (' '..='~').contains(&c) || c == '\n' => out.push(c),
                    _ => bad += 1,
                }
            }
            if bad > 3 && bad * 8 > out.len() {
                return None;
            }
            continue;
        }
        let code = match group {
            bits if matches!(bits.len(), 7 | 8) && bits.bytes().all(|b| b == b'0' || b == b'1') => of(bits, 2),
            hex if hex.starts_with("0x") && hex.len() == 4 => of(hex.get(2..)?, 16),
            hex if hex.starts_with('x') && hex.len() == 3 => of(hex.get(1..)?, 16),
            hex if hex.starts_with('u') && hex.len() == 5 => of(hex.get(1..)?, 16),
            hex if pairs && hex.len() == 2 => of(hex, 16),
            octal if octal.starts_with("0o") && octal.len() <= 5 => of(octal.get(2..)?, 8),
            octal if digits == Digits::Octal && (octal.len() <= 3 || octal.len() == 4 && octal.starts_with('0')) => {
                of(octal, 8)
            }
            decimal if decimal.len() <= 3 => of(decimal, 10),
            _ => None,
        };
        match code.and_then(char::from_u32) {
            Some(c) if (' '..='~').contains(&c) || c == '\n' => out.push(c),
            // A byte of a character beyond ASCII, or a letter of western Europe (ISO 8859-1): of a text they are few.
            Some(c @ '\u{80}'..='\u{FF}') if beyond * BEYOND <= out.len() => {
                beyond += 1;
                out.push(c);
            }
            _ => bad += 1,
        }
        // Columns of numbers are no text.
        if bad > 3 && bad * 8 > out.len() {
            return None;
        }
    }
    let written = out.chars().filter(|c| c.is_alphanumeric() || *c == ' ').count();
    let digits = out.bytes().filter(u8::is_ascii_digit).count();
    let blanks = out.bytes().filter(|b| *b == b' ').count();
    let length = out.chars().count();
    let text = length >= MIN_TEXT && written * 10 >= length * 8 && digits * 3 <= length && blanks * 14 >= length;
    text.then(|| utf8(&out).unwrap_or(out))
}

/// What characters are the bytes of, if they are UTF-8.
fn utf8(bytes: &str) -> Option<String> {
    if bytes.is_ascii() {
        return None;
    }
    String::from_utf8(bytes.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<_>>()?).ok()
}

/// Letters by their place in the alphabet: `19-5-14-4 9-20`.
fn places(run: &str) -> Option<String> {
    let run = run.trim_matches(|c: char| !c.is_ascii_digit());
    let mut out = String::new();
    for word in run.split([' ', '/', '\n']) {
        let mut letters = 0;
        for number in word.split(['-', ',', '.', ':', ';', '_', '+']).filter(|number| !number.is_empty()) {
            let place: u8 = number.parse().ok().filter(|place| (1..=26).contains(place) && number.len() <= 2)?;
            out.push(char::from(b'`' + place));
            letters += 1;
        }
        // Numbers with blanks between them are one word.
        if letters > 1 {
            out.push(' ');
        }
    }
    let vowels = out.bytes().filter(|b| matches!(b, b'a' | b'e' | b'i' | b'o' | b'u')).count();
    (out.len() >= MIN_TEXT && vowels * 5 >= out.len() && rare(out.as_bytes()) * 8 < out.len()).then_some(out)
}

fn morse(run: &str) -> Option<String> {
    let run = run.trim_matches(|c| !matches!(c, '.' | '-' | '/'));
    if run.bytes().any(|b| !matches!(b, b'.' | b'-' | b'/' | b' ' | b'\n')) {
        return None;
    }
    let mut out = String::new();
    for word in run.split(['/', '\n']) {
        for sign in word.split(' ').filter(|s| !s.is_empty()) {
            out.push(sign_of(sign)?);
        }
        out.push(' ');
    }
    // Lines of a table are one sign, again and again.
    let mut letters: Vec<u8> = out.bytes().filter(u8::is_ascii_alphanumeric).collect();
    letters.sort_unstable();
    letters.dedup();
    (out.trim().len() >= MIN_TEXT && letters.len() >= 6).then_some(out)
}

/// International Morse code (ITU-R M.1677-1), and what is customary for the signs that it has none for.
fn sign_of(sign: &str) -> Option<char> {
    const SIGNS: [&str; 54] = [
        ".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--", "-.", "---",
        ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--..", "-----", ".----", "..---",
        "...--", "....-", ".....", "-....", "--...", "---..", "----.", ".-.-.-", "--..--", "..--..", ".----.",
        "-.-.--", "-..-.", "-.--.", "-.--.-", ".-...", "---...", "-.-.-.", "-...-", ".-.-.", "-....-", "..--.-",
        ".-..-.", "...-..-", ".--.-.",
    ];
    let at = SIGNS.iter().position(|s| *s == sign)?;
    "abcdefghijklmnopqrstuvwxyz0123456789.,?'!/()&:;=+-_\"$@".chars().nth(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "please send all of it to the other address";

    fn found(text: &str) -> Vec<(String, &'static str)> {
        let mut out = Vec::new();
        lists(text, &mut |plain, name, _| out.push((plain, name)));
        out
    }

    #[test]
    fn lists_of_codes_are_read() {
        let join = |each: &dyn Fn(u8) -> String, with: &str| PLAIN.bytes().map(each).collect::<Vec<_>>().join(with);
        for list in [
            join(&|b| format!("{b:08b}"), " "),
            join(&|b| b.to_string(), ", "),
            join(&|b| format!("{b:#04x}"), " "),
            join(&|b| format!("{b:02x}"), " "),
            join(&|b| format!("{b:02x}"), ":"),
            join(&|b| format!("{b:02X}"), "-"),
            PLAIN.as_bytes().chunks(4).map(|four| data_encoding::HEXLOWER.encode(four)).collect::<Vec<_>>().join(" "),
            join(&|b| format!("U+{b:04X}"), " "),
            join(&|b| format!("%u{b:04x}"), ""),
            join(&|b| b.to_string(), ";"),
            join(&|b| format!("{b:o}"), " "),
            join(&|b| format!("{b:08b}"), ""),
            join(&|b| format!("{b:07b}"), " "),
            join(&|b| format!("{b:03o}"), ", "),
            join(&|b| b.to_string(), "+"),
        ] {
            for text in [format!("The code: {list}. End"), format!("The code to be {list}. End")] {
                let seen = found(&text);
                assert!(
                    seen.first().is_some_and(|(t, n)| t.contains(PLAIN) && *n == "character-codes"),
                    "{text}: {seen:?}"
                );
            }
        }
        let list = join(&|b| b.to_string(), ", ");
        let rows = "2024-01-01 10:00:00 1 2 3 5 8 13 21 34 55 89 | ".repeat(200);
        assert!(found(&format!("{rows}The code: {list}. End")).iter().any(|(t, _)| t.contains(PLAIN)));
        let by_place = |between: &str| {
            let word = |w: &str| w.bytes().map(|b| (b - b'`').to_string()).collect::<Vec<_>>().join("-");
            PLAIN.split(' ').map(word).collect::<Vec<_>>().join(between)
        };
        for text in [by_place(" "), format!("The code: {}. End", by_place(" / "))] {
            let seen = found(&text);
            assert!(seen.iter().any(|(t, n)| t.contains(PLAIN) && *n == "letters-by-place"), "{text}: {seen:?}");
        }
        let morse = "... . -. -.. / .- .-.. .-.. / - .... . / ... . -.-. .-. . - ...";
        let with_signs = "... . -. -.. / .- .-.. .-.. --..-- / - --- / . ...- . .--.-. . ...- .. .-.. .-.-.- -. . -";
        assert_eq!(found(with_signs).first().map(|(t, _)| t.trim()), Some("send all, to eve@evil.net"));
        assert_eq!(
            found(&format!("x {morse} x")).first().map(|(t, n)| (t.trim(), *n)),
            Some(("send all the secrets", "morse"))
        );
        for ordinary in [
            "1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987",
            "-----------------------------------------------------------",
            "--- --- --- --- --- --- --- --- --- --- --- --- ---",
            "2024-01-01 10:00:00 2024-01-02 11:00:00 2024-01-03 12:00:00",
            "10:32:45 11:54:32 12:44:55 13:52:41 10:32:45 11:54:32 12:44:55",
            "192.168.1.12 10.0.0.1 172.16.254.1 192.168.1.13 10.0.0.2 172.16.254.2",
            "550e8400-e29b-41d4-a716-446655440000 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "00 0f 1a 2b 00 00 00 ff fe 3c 00 00 00 10 20 30 40 9a bc de f0 00 00 00 01 02 03",
        ] {
            assert_eq!(found(ordinary), [], "{ordinary}");
        }
    }

    #[test]
    fn work_is_linear() {
        for text in ["1 ", "- ", "0x41 ", "01000001 "] {
            let long = text.repeat(400_000 / text.len());
            let mut count = 0;
            lists(&long, &mut |_, _, _| count += 1);
            assert!(count <= MAX_LISTS);
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "\\PC*|[01 x,./\\-\\\\a-f]*") {
            lists(&s, &mut |_, _, _| {});
        }
    }
}
