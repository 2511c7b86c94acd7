//! Encodings that no library of ours writes.

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression, write};

/// A number to another base, big-endian, leading zero bytes as leading zero digits.
pub(crate) fn base(bytes: &[u8], alphabet: &str) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut digits: Vec<u32> = Vec::new();
    for &byte in bytes {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % alphabet.len() as u32;
            carry /= alphabet.len() as u32;
        }
        while carry > 0 {
            digits.push(carry % alphabet.len() as u32);
            carry /= alphabet.len() as u32;
        }
    }
    digits.iter().rev().map(|d| alphabet[*d as usize]).collect()
}

pub(crate) const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
pub(crate) const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(crate) const BASE36: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
pub(crate) const ASCII85: &str =
    "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu";
/// RFC 1924, as Python's `b85encode` and Git write it.
pub(crate) const BASE85: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
pub(crate) const Z85: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Four bytes as five characters.
pub(crate) fn base85(bytes: &[u8], alphabet: &str) -> String {
    let alphabet = alphabet.as_bytes();
    let mut out = String::new();
    for chunk in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes(four);
        for place in 0..=chunk.len() as u32 {
            out.push(char::from(alphabet[(number / 85_u32.pow(4 - place) % 85) as usize]));
        }
    }
    out
}

/// RFC 9285.
pub(crate) fn base45(bytes: &[u8]) -> String {
    let alphabet = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
    let mut out = String::new();
    for pair in bytes.chunks(2) {
        let mut number = pair.iter().fold(0, |n, b| n << 8 | usize::from(*b));
        for _ in 0..=pair.len() {
            out.push(char::from(alphabet[number % 45]));
            number /= 45;
        }
    }
    out
}

pub(crate) fn uuencode(bytes: &[u8]) -> String {
    let six = |n: u8| char::from(if n == 0 { b'`' } else { n + 32 });
    let mut out = String::from("begin 644 data\n");
    for line in bytes.chunks(45) {
        out.push(six(line.len() as u8));
        for three in line.chunks(3) {
            let [a, b, c] = [three[0], three.get(1).copied().unwrap_or(0), three.get(2).copied().unwrap_or(0)];
            out.extend([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63].map(six));
        }
        out.push('\n');
    }
    out + "`\nend"
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut out = write::GzEncoder::new(Vec::new(), Compression::best());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

pub(crate) fn zlib(text: &str) -> Vec<u8> {
    let mut out = write::ZlibEncoder::new(Vec::new(), Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

pub(crate) fn deflate(text: &str) -> Vec<u8> {
    let mut out = write::DeflateEncoder::new(Vec::new(), Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

pub(crate) fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

const MORSE: &str = "A.- B-... C-.-. D-.. E. F..-. G--. H.... I.. J.--- K-.- L.-.. M-- N-. O--- P.--. Q--.- R.-. S... T- U..- V...- W.-- \
    X-..- Y-.-- Z--.. 0----- 1.---- 2..--- 3...-- 4....- 5..... 6-.... 7--... 8---.. 9----. :---... /-..-. @.--.-. _..--.- +.-.-. \
    ..-.-.- --....-";

pub(crate) fn morse(text: &str) -> String {
    let code = |c: char| MORSE.split(' ').find_map(|m| m.strip_prefix(c.to_ascii_uppercase())).unwrap_or("/");
    text.chars().map(code).collect::<Vec<_>>().join(" ")
}

const NATO: &str = "Alfa Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo Sierra \
    Tango Uniform Victor Whiskey X-ray Yankee Zulu";
const DIGITS: &str = "zero one two three four five six seven eight nine";

/// Letters as words; capitals in capitals, so that nothing is lost.
pub(crate) fn nato(text: &str) -> String {
    let word = |c: char| match c {
        'a'..='z' => NATO.split(' ').nth(c as usize - 97).unwrap_or_default().to_lowercase(),
        'A'..='Z' => NATO.split(' ').nth(c as usize - 65).unwrap_or_default().to_uppercase(),
        '0'..='9' => DIGITS.split(' ').nth(c as usize - 48).unwrap_or_default().to_owned(),
        c => c.to_string(),
    };
    text.chars().map(word).collect::<Vec<_>>().join(" ")
}

/// Lines of `xxd`.
pub(crate) fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (i, line) in bytes.chunks(16).enumerate() {
        let pairs: Vec<String> = line.chunks(2).map(|p| p.iter().map(|b| format!("{b:02x}")).collect()).collect();
        let plain: String = line.iter().map(|b| if (0x20..0x7F).contains(b) { char::from(*b) } else { '.' }).collect();
        let _ = writeln!(out, "{:08x}: {:39}  {plain}", i * 16, pairs.join(" "));
    }
    out
}
