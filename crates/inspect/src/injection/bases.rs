//! Texts as digits of bases that honest programs seldom write sentences in: base85, base91, base58 and the like, and uuencode.

use super::{
    encoded,
    layers::{Concealment, Found, Inner, MAX_LAYERS},
    places::Places,
};
use crate::{decode, language::rare};

/// Shortest token: 32 bytes are 40 characters of base85. How far apart places are looked at: every token covers one and all bytes up to
/// the next.
const MIN_TOKEN: usize = 40;
const STEP: usize = MIN_TOKEN / 2;
/// Longest part of one that is read, and characters from which is told whether the rest is worth it: whole groups of all bases.
const MAX_TOKEN: usize = 1024;
const HEAD: usize = 60;
/// Bytes of its start in which so many pairs of letters and digits are rare: programs and addresses have fewer.
const LOOKED_AT: usize = 40;
const MIN_RARE: usize = 4;
/// Longest token that is one number: reading it takes time with its square.
const MAX_NUMBER: usize = 320;
/// Most tokens of a text that are read, and most time for those, in squares of digits.
const MAX_TOKENS: usize = 256;
const MAX_NUMBERS: usize = 16 * MAX_NUMBER * MAX_NUMBER;
/// Characters before an encoded text that name it.
const MAX_NAME: usize = 24;
/// Shortest line of uuencode, and longest: 45 bytes.
const MIN_LINE: usize = 21;
const MAX_LINE: usize = 62;

/// Hands on what such tokens and lines say.
pub(super) fn find(text: &str, places: &Places, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    let (mut at, mut tokens, mut numbers) = (0, 0, MAX_NUMBERS);
    while let Some(some) = bytes.get(at..).and_then(|rest| rest.first_chunk::<{ STEP + 1 }>()) {
        let white = [0, STEP / 4, STEP / 2, 3 * STEP / 4, STEP].into_iter().any(|at| some[at].is_ascii_whitespace());
        if white {
            at += STEP;
            continue;
        }
        let before = bytes.get(..at).unwrap_or_default().iter().rev().take(STEP);
        let from = at - before.take_while(|b| !b.is_ascii_whitespace()).count();
        let rest = bytes.get(at..).unwrap_or_default();
        let end = at + memchr::memchr3(b' ', b'\n', b'\t', rest).unwrap_or(rest.len());
        at = end.max(at + STEP);
        if end - from < MIN_TOKEN || tokens == MAX_TOKENS || found.len() >= MAX_LAYERS {
            continue;
        }
        let token = bytes.get(from..end.min(from + MAX_TOKEN)).unwrap_or_default();
        if rare(token.get(..LOOKED_AT).unwrap_or(token)) < MIN_RARE {
            continue;
        }
        let number = bare(token).iter().all(u8::is_ascii_alphanumeric);
        if number {
            let time = token.len() * token.len();
            if end - from > MAX_NUMBER || time > numbers || !mixed(bare(token)) {
                continue;
            }
            numbers -= time;
        }
        tokens += 1;
        let (lines, to) = if number { (token.to_vec(), end) } else { with_lines(bytes, (from, end)) };
        for part in parts(&lines) {
            if read(part, (from, to), found) {
                at = to;
                break;
            }
        }
    }
    if places.any(|block| block.lines) {
        uuencoded(bytes, found);
    }
}

/// Whether a token has small letters, capitals and digits, as numbers of so many digits have, and no names of programs.
fn mixed(token: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| token.iter().filter(|b| is(b)).count() * 16 >= token.len();
    has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit)
}

/// A token and the lines below it that hold nothing but one, none longer than the one before, as one; and where that ends.
fn with_lines(text: &[u8], (from, end): (usize, usize)) -> (Vec<u8>, usize) {
    let first = text.get(from..end.min(from + MAX_TOKEN)).unwrap_or_default();
    let (mut out, mut to, mut longest) = (first.to_vec(), end, end - from);
    while out.len() < MAX_TOKEN {
        let Some(rest) = text.get(to..).and_then(|rest| rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n"))
        else {
            break;
        };
        let line = rest.iter().take(longest + 1).position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        if line == 0 || line > longest || !rest.get(line).is_none_or(|b| matches!(b, b'\r' | b'\n')) {
            break;
        }
        out.extend_from_slice(rest.get(..line).unwrap_or_default());
        (to, longest) = (text.len() - rest.len() + line, line);
    }
    out.truncate(MAX_TOKEN);
    (out, to)
}

/// What of a token may be encoded: all of it, what stands between its marks or quotes, what stands behind its name.
fn parts(token: &[u8]) -> impl Iterator<Item = &[u8]> {
    let marked = memchr::memmem::find(token, b"<~").and_then(|at| token.get(at..)).map(|rest| {
        let end = memchr::memmem::find(rest, b"~>").map_or(rest.len(), |at| at + 2);
        rest.get(..end).unwrap_or_default()
    });
    let quoted = token.split(|b| matches!(b, b'"' | b'\'')).max_by_key(|part| part.len());
    let name = token.iter().take(MAX_NAME).position(|b| matches!(b, b'=' | b':' | b','));
    let named = name.and_then(|at| token.get(at + 1..));
    let less = |part: &&[u8]| part.len() < token.len();
    let rest = [Some(bare(token)).filter(less), marked, quoted.filter(less), named];
    let long = |part: &&[u8]| part.len() >= MIN_TOKEN && (!part.iter().all(u8::is_ascii_alphanumeric) || mixed(part));
    std::iter::once(token).chain(rest.into_iter().flatten().filter(long))
}

/// A token without the signs that text has around it.
fn bare(token: &[u8]) -> &[u8] {
    let around = |b: &u8| b"()[]{}`'\".,;:!?".contains(b);
    let from = token.iter().position(|b| !around(b)).unwrap_or_default();
    let to = token.iter().rposition(|b| !around(b)).map_or(0, |at| at + 1);
    token.get(from..to).unwrap_or_default()
}

/// Whether a token says something.
fn read(token: &[u8], span: (usize, usize), found: &mut Found<'_>) -> bool {
    let number = token.iter().all(u8::is_ascii_alphanumeric);
    if !number && token.len() > HEAD {
        let mut says = false;
        decode::other_bases(token.get(..HEAD).unwrap_or_default(), &mut |bytes, _| {
            says |= encoded::prose(bytes).is_some();
        });
        if !says {
            return false;
        }
    }
    let before = found.len();
    decode::other_bases(token, &mut |bytes, name| {
        // These are read wherever they stand, and what was combined with a key is sought in calls only.
        if found.len() == before
            && !matches!(name, "base32" | "hex" | "xor" | "compressed")
            && let Some(plain) = encoded::prose(bytes)
        {
            found.push(Inner::made(plain, Concealment::Encoded, name, span));
        }
    });
    found.len() > before
}

/// Lines of which each begins with its length, several of them or one for itself.
fn uuencoded(text: &[u8], found: &mut Found<'_>) {
    let mut block: Option<(usize, usize)> = None;
    let mut from = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = text.get(from..end).unwrap_or_default();
        let says = is_uuencoded(line);
        // The last line may be short.
        let short = || line.len() < MIN_LINE && block.is_some() && is_length(line);
        if says || short() {
            block = Some((block.map_or(from, |(from, _)| from), end));
        }
        if (!says || end == text.len())
            && let Some(span) = block.take()
            && let Some(plain) =
                text.get(span.0..span.1).and_then(decode::uuencoded).as_deref().and_then(encoded::prose)
        {
            found.push(Inner::made(plain, Concealment::Encoded, "uuencode", span));
            if found.len() >= MAX_LAYERS {
                return;
            }
        }
        from = end + 1;
    }
}

fn is_uuencoded(line: &[u8]) -> bool {
    (MIN_LINE..=MAX_LINE).contains(&line.len()) && is_length(line) && line.iter().all(|b| matches!(b, b' '..=b'`'))
}

/// Whether the first character of a line says how many bytes the others are.
fn is_length(line: &[u8]) -> bool {
    line.split_first().is_some_and(|(first, rest)| {
        let length = usize::from(first.wrapping_sub(b' ') & 63);
        let characters = rest.trim_ascii_end().len();
        length > 0 && characters <= length.div_ceil(3) * 4 + 1 && rest.len() + 1 >= (length * 4).div_ceil(3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::layers;

    const ORDER: &str = "please send all of it to the other one, and then the rest of it to the one after that";

    fn base85(alphabet: &[u8; 85]) -> String {
        let mut out = String::new();
        for four in ORDER.as_bytes().chunks(4) {
            let mut bytes = [0; 4];
            bytes[..four.len()].copy_from_slice(four);
            let number = u32::from_be_bytes(bytes);
            let digits = (0..5).rev().map(|at| alphabet[(number / 85u32.pow(at) % 85) as usize]);
            out.extend(digits.take(four.len() + 1).map(char::from));
        }
        out
    }

    fn said(text: &str, name: &str) -> bool {
        layers(text).iter().any(|(is, said, how)| is == name && said.contains(ORDER) && *how == Concealment::Encoded)
    }

    #[test]
    fn other_bases_are_read() {
        let ascii = base85(b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu");
        let other = base85(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~");
        let lines: String = ascii.as_bytes().chunks(72).map(|l| format!("{}\n", String::from_utf8_lossy(l))).collect();
        for (text, name) in [
            (ascii.clone(), "ascii85"),
            (format!("It says:\n{lines}\nand no more"), "ascii85"),
            (format!("data=<~{ascii}~> and more"), "ascii85"),
            (other.clone(), "base85"),
            (format!("token:{other}"), "base85"),
            (format!("[\"{other}\"]"), "base85"),
            (format!("It is `{other}`, is it?"), "base85"),
        ] {
            assert!(said(&text, name), "{text}: {:?}", layers(&text));
        }
        // Base58 of 41 bytes.
        let number = "RBqxbWJ6hGEaLPXYRTeYnGjDmDtP3unFWpGxLXTPvYsA5mFbYdxyNLY7";
        assert!(layers(number).iter().all(|(_, said, _)| said.contains("send")), "{:?}", layers(number));
    }

    #[test]
    fn uuencode_is_read() {
        let six = |b: u32| char::from(if b == 0 { b'`' } else { b as u8 + 32 });
        let line = |bytes: &[u8]| {
            let mut out = String::from(six(bytes.len() as u32));
            for three in bytes.chunks(3) {
                let number = (0..3).fold(0, |n, at| n << 8 | u32::from(three.get(at).copied().unwrap_or_default()));
                out.extend((0..4).rev().map(|at| six(number >> (6 * at) & 63)));
            }
            out
        };
        let lines: Vec<String> = ORDER.as_bytes().chunks(45).map(line).collect();
        for text in [
            format!("begin 644 a.txt\n{}\n`\nend\n", lines.join("\n")),
            format!("Read this.\n{}\n\nAnd that.", lines.join("\n")),
        ] {
            assert!(said(&text, "uuencode"), "{text}: {:?}", layers(&text));
        }
        assert_eq!(layers("TOTAL OF ALL ROWS IN THIS TABLE: 12,345\nAND OF THE OTHER ONE: 54,321\n"), []);
    }

    #[test]
    fn honest_tokens_say_nothing() {
        for text in [
            "function(t,e){return t=e[0]||{},n.prototype.constructor=t,r(e,function(t){return n(t)})}var s=\"\";",
            "https://a.example/path/to/a/page?query=of&some=length&that=goes&on=for&a=while#and-a-fragment",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.SflKxwRJSMeKKF2QT4f",
            "{\"a\":[1,2,3],\"b\":{\"c\":\"d\",\"e\":null},\"f\":[{\"g\":true},{\"h\":false}],\"i\":\"j\"}",
        ] {
            assert!(layers(text).iter().all(|(name, ..)| !name.contains("85") && !name.contains("91")), "{text}");
        }
    }

    #[test]
    fn work_is_bounded() {
        for part in ["aB3", "!", "~<", "M", "aZ9+", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0 "] {
            let text = part.repeat(400_000 / part.len());
            let mut found = Vec::new();
            find(&text, &Places::of(&text), &mut found);
            assert!(found.len() <= MAX_LAYERS);
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "\\PC*|[!-u]{30,90}|([ -`]{20,62}\n)*") {
            let mut found = Vec::new();
            find(&s, &Places::of(&s), &mut found);
        }
    }
}
