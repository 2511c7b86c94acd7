//! Bytes as digits of other bases, and base64 and hex with something done to them.

use super::{
    super::{Budget, Encoding, MIN_RUN, nibble, runs::unpack64},
    OnBytes, emit,
};

/// Longest token that is read as one number: that takes time with its square.
const MAX_NUMBER: usize = 512;
/// The same of decimal digits.
const MAX_DECIMAL: usize = 1024;

/// Alphabets of 32 characters, in small letters.
static FIVE_BITS: [(&str, Values); 4] = [
    ("base32", Values::of(b"abcdefghijklmnopqrstuvwxyz234567")),
    ("base32hex", Values::of(b"0123456789abcdefghijklmnopqrstuv")),
    ("base32 (Crockford)", Values::of(b"0123456789abcdefghjkmnpqrstvwxyz")),
    ("base32 (z)", Values::of(b"ybndrfg8ejkmcpqxot1uwisza345h769")),
];

/// Alphabets of 85 characters: Adobe's, RFC 1924's, ZeroMQ's.
static BASE85: [(&str, Values); 3] = [
    ("ascii85", Values::of(b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu")),
    ("base85", Values::of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~")),
    ("z85", Values::of(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")),
];
static BASE91: Values =
    Values::of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&()*+,./:;<=>?@[]^_`{|}~\"");
static BASE45: Values = Values::of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:");

/// Alphabets of which a whole token is one number.
static NUMBERS: [(&str, u32, Values); 7] = [
    ("base58", 58, Values::of(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")),
    ("base58 (Flickr)", 58, Values::of(b"123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")),
    ("base62", 62, Values::of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")),
    ("base62", 62, Values::of(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("base62", 62, Values::of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")),
    ("base36", 36, Values::of(b"0123456789abcdefghijklmnopqrstuvwxyz")),
    ("base36", 36, Values::of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
];

/// A value for each byte; 255 for none.
struct Values([u8; 256]);

impl Values {
    const fn of(alphabet: &[u8]) -> Self {
        let mut table = [255; 256];
        let mut value = 0;
        while value < alphabet.len() {
            table[alphabet[value] as usize] = value as u8;
            value += 1;
        }
        Self(table)
    }

    fn get(&self, b: u8) -> Option<u32> {
        self.0.get(usize::from(b)).filter(|v| **v != 255).map(|v| u32::from(*v))
    }
}

/// Every base that the tokens of a piece may be written in.
pub(super) fn each(piece: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let mut out = Vec::new();
    for line in piece.split(|b| matches!(b, b'\n' | b'\r')).filter(|line| line.len() >= MIN_RUN) {
        for start in [0, memchr::memmem::find(line, b": ").map_or(0, |at| at + 2)] {
            base45(line.get(start..).unwrap_or_default(), &mut out);
            emit(&out, "base45", budget, visit);
        }
    }
    if uuencoded(piece, &mut out) {
        emit(&out, "uuencode", budget, visit);
    }
    // In groups of one length, with white space between them.
    let groups: Vec<&[u8]> = piece.split(u8::is_ascii_whitespace).filter(|g| !g.is_empty()).collect();
    if let [first, .., last] = groups.as_slice()
        && groups.len() > 3
        && last.len() <= first.len()
        && groups.iter().rev().skip(1).all(|g| g.len() == first.len())
    {
        let joined = groups.concat();
        base64(&joined, budget, visit);
        alphanumeric(&joined, budget, visit);
    }
    for wide in piece.split(u8::is_ascii_whitespace).filter(|t| t.len() >= MIN_RUN) {
        base85(wide, budget, visit);
        if base91(wide, &mut out) {
            emit(&out, "base91", budget, visit);
        }
        for part in wide.split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_' | b'='))) {
            base64(part, budget, visit);
        }
        let tokens: Vec<&[u8]> = wide.split(|b| !b.is_ascii_alphanumeric()).collect();
        for token in tokens.iter().filter(|t| t.len() >= MIN_RUN) {
            alphanumeric(token, budget, visit);
        }
        if tokens.len() > 1 {
            let joined = tokens.concat();
            alphanumeric(&joined, budget, visit);
            base64(&joined, budget, visit);
            // Labels of a host's name, or parts of a path: of one length but for the last.
            let mut labels: Vec<&[u8]> = Vec::new();
            for label in &tokens {
                let longest = labels.first().map_or(0, |first| first.len());
                if longest >= MIN_RUN
                    && label.len() <= longest
                    && labels.last().is_some_and(|last| last.len() == longest)
                {
                    labels.push(label);
                } else if label.len() >= MIN_RUN {
                    labels = vec![label];
                }
            }
            if labels.len() > 1 {
                alphanumeric(&labels.concat(), budget, visit);
                base64(&labels.concat(), budget, visit);
            }
        }
    }
}

/// What a token may be as digits of bases with signs among theirs; where it has none but letters and digits, of the others.
pub(super) fn token(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    if token.iter().all(u8::is_ascii_alphanumeric) {
        return alphanumeric(token, budget, visit);
    }
    base85(token, budget, visit);
    let mut out = Vec::new();
    if base91(token, &mut out) {
        emit(&out, "base91", budget, visit);
    }
}

/// A token of letters and digits.
fn alphanumeric(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let mut out = Vec::new();
    if token.iter().all(u8::is_ascii_hexdigit) {
        return hex(token, budget, visit);
    }
    let (mut small, mut large) = (false, false);
    for b in token {
        small |= b.is_ascii_lowercase();
        large |= b.is_ascii_uppercase();
    }
    if !(small && large) {
        for (name, values) in &FIVE_BITS {
            let all: Option<Vec<u32>> = token.iter().map(|b| values.get(b.to_ascii_lowercase())).collect();
            if let Some(all) = all {
                pack(&all, 5, &mut out);
                emit(&out, name, budget, visit);
            }
        }
    }
    if token.len() > MAX_NUMBER {
        return;
    }
    for (name, base, values) in &NUMBERS {
        // Digits of a base that has both are not all of one case.
        let fits = if *base == 36 { !(small && large) } else { small && large };
        if !fits {
            continue;
        }
        let digits: Option<Vec<u32>> = token.iter().map(|b| values.get(*b)).collect();
        if let Some(digits) = digits {
            number(&digits, u64::from(*base), &mut out);
            emit(&out, name, budget, visit);
        }
    }
}

/// A token of digits alone: hex of which the digits happen to be such, or a number.
pub(super) fn digits(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    hex(token, budget, visit);
    if token.len() <= MAX_DECIMAL {
        let (digits, mut out): (Vec<u32>, _) = (token.iter().map(|b| u32::from(b - b'0')).collect(), Vec::new());
        number(&digits, 10, &mut out);
        emit(&out, "a number", budget, visit);
    }
}

/// Hex of which the pairs or all of it are turned round.
fn hex(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let pairs =
        |token: &[u8], turned: bool| -> Vec<u8> {
            let digits: Vec<u8> = token.iter().filter_map(|b| nibble(*b)).collect();
            digits
                .chunks_exact(2)
                .map(|p| {
                    if turned { p.iter().rev().fold(0, |a, d| a << 4 | d) } else { p.iter().fold(0, |a, d| a << 4 | d) }
                })
                .collect()
        };
    let mut back = token.to_vec();
    back.reverse();
    emit(&pairs(&back, false), "hex backwards", budget, visit);
    emit(&pairs(token, true), "hex backwards", budget, visit);
    let plain = pairs(token, false);
    if !super::is_text(&plain) {
        visit(&plain, Encoding::Keyed, false, budget);
        super::super::each_binary(&plain, budget, &mut |bytes, how, _, budget| visit(bytes, how, false, budget));
    }
}

/// Base64 as it is, and backwards, of the other case, with its letters moved, and of crypt(3)'s order.
fn base64(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let core: Vec<u8> = token.iter().copied().filter(|b| *b != b'=').collect();
    if core.len() < MIN_RUN {
        return;
    }
    let mut out = Vec::new();
    let mut tried = |text: &[u8], name: &'static str, budget: &mut Budget| {
        unpack64(text, &mut out);
        if !emit(&out, name, budget, visit) && name == "base64" {
            visit(&out, Encoding::Keyed, false, budget);
            super::super::each_binary(&out, budget, &mut |bytes, how, _, budget| visit(bytes, how, false, budget));
        }
    };
    tried(&core, "base64", budget);
    let mut back = core.clone();
    back.reverse();
    tried(&back, "base64 backwards", budget);
    let swapped: Vec<u8> = core.iter().map(|b| if b.is_ascii_alphabetic() { b ^ 32 } else { *b }).collect();
    tried(&swapped, "base64 of the other case", budget);
    let moved: Vec<u8> = core.iter().map(|b| rot13(*b)).collect();
    tried(&moved, "base64 in rot13", budget);
    back.iter_mut().for_each(|b| *b = rot13(*b));
    tried(&back, "base64 in rot13, backwards", budget);
    let joined: Vec<u8> = core.iter().copied().filter(|b| !matches!(b, b'-' | b'_')).collect();
    if joined.len() < core.len() {
        tried(&joined, "base64", budget);
    }
}

fn rot13(b: u8) -> u8 {
    match b {
        b'a'..=b'z' => (b - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (b - b'A' + 13) % 26 + b'A',
        b => b,
    }
}

/// Concatenates `width` bits each.
fn pack(values: &[u32], width: u32, out: &mut Vec<u8>) {
    out.clear();
    let (mut bits, mut count) = (0u32, 0);
    for value in values {
        bits = bits << width | value;
        count += width;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
}

/// The bytes of a number, big-endian.
fn number(digits: &[u32], base: u64, out: &mut Vec<u8>) {
    let mut limbs: Vec<u32> = Vec::new();
    for digit in digits {
        let mut carry = u64::from(*digit);
        for limb in &mut limbs {
            carry += u64::from(*limb) * base;
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
    }
    out.clear();
    out.extend(limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).skip_while(|b| *b == 0));
}

fn base85(token: &[u8], budget: &mut Budget, visit: OnBytes<'_>) {
    let token = token.strip_prefix(b"<~").unwrap_or(token);
    let token = token.strip_suffix(b"~>").unwrap_or(token);
    let mut out = Vec::new();
    for (name, values) in &BASE85 {
        // A quotation mark may stand around it.
        let inner = Some(unquoted(token)).filter(|inner| inner.len() < token.len());
        for text in [Some(token), inner].into_iter().flatten() {
            out.clear();
            let all = text.chunks(5).try_for_each(|five| {
                // What is missing is filled up with the last digit.
                let digit = |at| five.get(at).map_or(Some(84), |b| values.get(*b));
                let number = (0..5).try_fold(0u64, |n, at| Some(n * 85 + u64::from(digit(at)?)))?;
                let bytes = (number as u32).to_be_bytes();
                out.extend_from_slice(bytes.get(..five.len() - 1)?);
                Some(())
            });
            if all.is_some() && emit(&out, name, budget, visit) {
                break;
            }
        }
    }
}

fn unquoted(token: &[u8]) -> &[u8] {
    match token {
        [b'"' | b'\'' | b'`', inner @ .., b'"' | b'\'' | b'`'] => inner,
        _ => token,
    }
}

/// basE91 (Henke): 13 or 14 bits in two characters.
fn base91(token: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let (mut bits, mut count) = (0u32, 0);
    for pair in token.chunks(2) {
        let Some(first) = pair.first().and_then(|b| BASE91.get(*b)) else { return false };
        let Some(second) = pair.get(1) else { break };
        let Some(second) = BASE91.get(*second) else { return false };
        let value = first + second * 91;
        bits |= value << count;
        count += if value & 8191 > 88 { 13 } else { 14 };
        while count > 7 {
            out.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
    true
}

/// RFC 9285; nothing where another character stands.
fn base45(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for three in text.chunks(3) {
        let digits: Option<Vec<u32>> = three.iter().map(|b| BASE45.get(*b)).collect();
        let Some(digits) = digits else { return out.clear() };
        let number = digits.iter().rev().fold(0, |n, d| n * 45 + d);
        match three.len() {
            3 => out.extend_from_slice(&(number as u16).to_be_bytes()),
            2 => out.push(number as u8),
            _ => {}
        }
    }
}

/// Lines whose first character says how many bytes they hold (POSIX uuencode).
pub(super) fn uuencoded(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    for line in text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end) {
        let Some((first, rest)) = line.split_first() else { continue };
        let length = usize::from(first.wrapping_sub(32) & 63);
        if length == 0 || rest.len() < (length * 4).div_ceil(3) || rest.len() > length.div_ceil(3) * 4 + 1 {
            continue;
        }
        let six: Vec<u32> = rest.iter().map(|b| u32::from(b.wrapping_sub(32) & 63)).collect();
        let start = out.len();
        let mut bytes = Vec::new();
        pack(&six, 6, &mut bytes);
        out.extend_from_slice(&bytes);
        out.truncate(start + length);
    }
    out.len() >= MIN_RUN / 2
}
