//! Texts that are written in other characters: base64, base32, hex, and escapes.
//!
//! Honest programs encode documents: mail, what services answer, addresses. Such a one counts as in plain sight
//! ([`Concealment::Customary`]); a sentence that somebody took the trouble to encode does not.

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;

use super::{
    codes, escapes,
    layers::{Concealment, Found, Inner, MAX_LAYERS, MIN_TEXT},
    pieces,
    places::Places,
};
use crate::{
    decode,
    inflate::{self, inflated},
    language,
};

/// Shortest encoded run that is worth decoding: 24 base64 characters hold 18 bytes.
pub(super) const MIN_RUN: usize = 24;
/// Shortest full line of a block of encoded characters.
const MIN_LINE: usize = 40;
/// How long programs make such lines: GitHub's interface, PEM and openssl, git, mail and base64(1).
const CUSTOMARY: [usize; 4] = [60, 64, 72, 76];
/// Most characters that a line is indented or quoted by.
const MAX_MARGIN: usize = 8;
/// A decoded text that is longer, in bytes, is a document: longer than what is judged at once.
const DOCUMENT: usize = 600;
/// Bytes in which written language shows.
const WINDOW: usize = 32;
/// Bytes before an encoded text that may be none of it.
const MAX_BEFORE: usize = 8;
/// Encoded characters from which is told whether the rest is worth decoding: 64 bytes of hex, more of base64.
const HEAD: usize = 128;

/// Hands on what is encoded in a text.
pub(super) fn find<'a>(text: &'a str, places: &Places, found: &mut Found<'a>) {
    runs(text.as_bytes(), places, found);
    pieces::each(text.as_bytes(), places, in_run, |characters, span| {
        if characters.len() >= MIN_RUN && found.len() < MAX_LAYERS {
            one_run(characters, span, Concealment::Encoded, found);
        }
    });
    escapes::find(text, places, found);
}

/// Base64, base32 and hex, also compressed.
fn runs(bytes: &[u8], places: &Places, found: &mut Found<'_>) {
    // The lines up to here are those of a block that is text as a whole, or that was looked at as one and is none.
    let (mut read, mut looked_at) = (0, 0);
    let armored = armored(bytes);
    decode::each_run_of(places.numbers(|block| block.encoded, 0), places.length(), MIN_RUN, |start, end| {
        if start < read {
            return true;
        }
        let in_armor =
            armored.get(armored.partition_point(|(_, to)| *to <= start)).is_some_and(|(from, _)| *from < start);
        let how = match in_armor || addressed(bytes.get(..start).unwrap_or_default()) {
            true => Concealment::Customary,
            false => Concealment::Encoded,
        };
        if start >= looked_at
            && let Some(block) = wrapped(bytes, (start, end))
        {
            looked_at = block.end;
            if let Some(text) = text_of(&block.characters) {
                let how = if block.customary { Concealment::Customary } else { how };
                found.push(Inner::made(text, how, "base64", (start, block.end)));
                read = block.end;
                return found.len() < MAX_LAYERS;
            }
            // Perhaps compressed. What follows a compressed part is in the lines, which are looked at as well.
            one_run(&block.characters, (start, block.end), how, found);
        }
        one_run(bytes.get(start..end).unwrap_or_default(), (start, end), how, found);
        found.len() < MAX_LAYERS
    });
}

/// Where certificates, keys and signatures stand in their armor (RFC 7468 section 2, RFC 9580 section 6.2): their names and terms of use are
/// sentences, in part.
fn armored(bytes: &[u8]) -> Vec<(usize, usize)> {
    // Made once: most strings are short, and to make one takes longer than to look through them.
    static BEGINS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"-----BEGIN "));
    static ENDS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"-----END "));
    let mut out: Vec<(usize, usize)> = Vec::new();
    for from in BEGINS.find_iter(bytes) {
        if out.last().is_some_and(|(_, to)| from < *to) {
            continue;
        }
        // Where none ends from here on, none does later.
        let Some(length) = bytes.get(from..).and_then(|rest| ENDS.find(rest)) else { break };
        out.push((from, from + length));
    }
    out
}

/// Encoded characters in lines.
struct Block {
    /// Without the line ends.
    characters: Vec<u8>,
    /// Where it ends.
    end: usize,
    /// The lines are as long as programs make them.
    customary: bool,
}

/// Whether what follows is the content of a `data:` address (RFC 2397).
fn addressed(before: &[u8]) -> bool {
    let near = before.get(before.len().saturating_sub(100)..).unwrap_or_default();
    let Some(kind) = near.strip_suffix(b";base64,") else { return false };
    memchr::memmem::rfind(kind, b"data:")
        .and_then(|at| kind.get(at + 5..))
        .is_some_and(|kind| kind.iter().all(|b| b.is_ascii_alphanumeric() || b"/;=.+-".contains(b)))
}

/// Base64 of a text from its first character to its last: UTF-8, or the characters of western Europe (ISO 8859-1).
fn text_of(block: &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    decode::whole_base64(block, &mut bytes);
    let good = |b: &u8| *b >= 0x20 && *b != 0x7F || b.is_ascii_whitespace();
    if bytes.len() < MIN_TEXT || !bytes.iter().all(good) {
        return None;
    }
    // Random bytes are letters of western Europe in part; texts are mostly ASCII there.
    let other = bytes.iter().filter(|b| **b >= 0x80).count();
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(e) if other * 4 <= e.as_bytes().len() => Some(e.as_bytes().iter().copied().map(char::from).collect()),
        Err(_) => None,
    }
}

/// The block of lines that begins with the run `first`: as mail (RFC 2045), PEM and services wrap what they encode. All lines are as
/// long as the second one, but for the first, which may have words before it, and the last. They may be indented or quoted.
fn wrapped(text: &[u8], first: (usize, usize)) -> Option<Block> {
    let mut block = text.get(first.0..first.1)?.to_vec();
    let (mut end, mut length) = (first.1, None);
    while let Some(rest) = text.get(end..).and_then(next_line) {
        let margin = rest.iter().take(MAX_MARGIN).take_while(|b| matches!(b, b' ' | b'\t' | b'>')).count();
        let line = rest.get(margin..).unwrap_or_default();
        let count = line.iter().position(|b| !in_run(*b)).unwrap_or(line.len());
        // What is filled up ends there, and programs break between groups of four: another encoded text begins.
        if block.ends_with(b"=") || block.len() % 4 != 0 {
            break;
        }
        // What stands behind a run belongs to it: then this is a line of words.
        let ends = matches!(line.get(count), None | Some(b'\r' | b'\n' | b'"' | b'\'' | b'<' | b'\\'));
        let full = *length.get_or_insert(if count >= MIN_LINE { count } else { first.1 - first.0 });
        if count == 0 || count > full || full < MIN_LINE || !ends {
            break;
        }
        block.extend(line.get(..count).unwrap_or_default());
        end = text.len() - line.len() + count;
        if count < full {
            break;
        }
    }
    let customary = length.is_some_and(|length| CUSTOMARY.contains(&length));
    (end > first.1).then_some(Block { characters: block, end, customary })
}

/// What follows a line end, which in a string of JSON inside the text is written with escapes.
fn next_line(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"\r").or(text.strip_prefix(b"\\r")).unwrap_or(text);
    text.strip_prefix(b"\n").or(text.strip_prefix(b"\\n"))
}

/// What base64 of both alphabets, base32 and hex are written with.
#[inline]
pub(super) fn in_run(b: u8) -> bool {
    b.is_ascii_alphanumeric() | (b == b'+') | (b == b'/') | (b == b'=') | (b == b'-') | (b == b'_')
}

/// Decodes a run. What a name is joined to by `=` is read without it, and what begins with it backwards, too: it fills up the end.
fn one_run(run: &[u8], span: (usize, usize), how: Concealment, found: &mut Found<'_>) {
    if language::monotone(run) || forwards(run, span, how, found) {
        return;
    }
    let filled = run.iter().rposition(|b| *b != b'=').unwrap_or_default();
    if let Some(name) = run.get(..filled).and_then(|run| memchr::memrchr(b'=', run))
        && forwards(run.get(name + 1..).unwrap_or_default(), span, how, found)
    {
        return;
    }
    if run.starts_with(b"=") {
        forwards(&run.iter().rev().copied().collect::<Vec<u8>>(), span, how, found);
    }
}

/// Decodes a run as it stands. Whether it says something.
fn forwards(run: &[u8], span: (usize, usize), how: Concealment, found: &mut Found<'_>) -> bool {
    let head = run.get(..run.len().min(HEAD)).unwrap_or_default();
    // Base64 of anything has other characters among so many; a digest has none.
    let digits = head.iter().all(u8::is_ascii_hexdigit);
    let mut bytes = Vec::new();
    for (name, decoder) in [
        ("hex", decode::whole_hex as fn(&[u8], &mut Vec<u8>) -> bool),
        ("base64", decode::whole_base64),
        ("base32", decode::whole_base32),
    ] {
        if digits && name == "base64" {
            continue;
        }
        // Most runs are names and data, as their first bytes show.
        bytes.clear();
        let text = decoder(head, &mut bytes) && {
            let head = narrowed(&bytes);
            !begun(&head).iter().any(controls) && (run.len() > HEAD || reads(&head))
        };
        if !text && !inflate::begins(&bytes) {
            continue;
        }
        bytes.clear();
        if !decoder(run, &mut bytes) {
            continue;
        }
        if let Some(text) = prose(&narrowed(&bytes)) {
            // Documents are encoded, sentences seldom.
            let document = matches!(name, "base64" | "hex") && text.len() > DOCUMENT;
            found.push(Inner::made(text, if document { Concealment::Customary } else { how }, name, span));
            return true;
        }
        if let Some(text) = inflated(&bytes).as_deref().and_then(prose) {
            found.push(Inner::made(text, Concealment::Encoded, "base64+compressed", span));
            return true;
        }
    }
    false
}

/// Whether bytes are written language somewhere: mostly letters, with blanks, no control characters. What comes before and behind it
/// may be numbers: rows of a log would hide an order otherwise.
fn reads(bytes: &[u8]) -> bool {
    let count = |part: &[u8], is: fn(&u8) -> bool| part.iter().filter(|b| is(b)).count();
    let further = bytes.len() >= MIN_RUN && bytes.iter().all(|b| in_run(*b));
    let language = |part: &[u8]| {
        let letters = count(part, |b| b.is_ascii_alphabetic() || *b == b' ' || *b >= 0x80);
        // Some languages have no blanks, nor has a further encoding.
        let spoken = count(part, |b| *b == b' ') * 14 >= part.len()
            || count(part, |b| *b >= 0xC0) > count(part, u8::is_ascii)
            || further;
        letters * 4 >= part.len() * 3 && spoken && !part.iter().any(controls)
    };
    let last = bytes.get(bytes.len().saturating_sub(WINDOW)..).unwrap_or_default();
    let windows = || bytes.windows(WINDOW).step_by(WINDOW / 2).chain([last, begun(last)]);
    begun(bytes).len() >= MIN_TEXT && (windows().any(language) || digits(bytes))
}

/// Whether bytes are a further encoding in digits, of written language: hex, percent escapes, or codes. Digests and other identifiers are
/// encoded, too, and say nothing.
fn digits(bytes: &[u8]) -> bool {
    let mut plain = Vec::new();
    if bytes.iter().all(u8::is_ascii_hexdigit) {
        return decode::whole_hex(bytes, &mut plain) && reads(&plain);
    }
    if bytes.first() == Some(&b'%') && bytes.is_ascii() {
        decode::percent(bytes, &mut plain);
        return plain.first() != Some(&b'%') && reads(&plain);
    }
    let code = |b: &u8| b.is_ascii_digit() || matches!(b, b' ' | b',');
    bytes.iter().all(code) && std::str::from_utf8(bytes).is_ok_and(|list| codes::codes(list).is_some())
}

/// Without what stands in the first bytes and is no text: a mark of the order of bytes, a length, or what hides the rest.
fn begun(bytes: &[u8]) -> &[u8] {
    let first = bytes.get(..bytes.len().min(MAX_BEFORE)).unwrap_or_default();
    let from = first.iter().rposition(|b| controls(b) || *b >= 0xF8).map_or(0, |at| at + 1);
    bytes.get(from..).unwrap_or_default()
}

/// ASCII of UTF-16 (RFC 2781), as PowerShell takes commands, of either order; other bytes as they are.
fn narrowed(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let of = |high: usize| pairs.iter().filter(|pair| pair.get(high) == Some(&0)).count() * 8 >= pairs.len() * 7;
    match (of(0), of(1)) {
        (true, false) => Cow::Owned(pairs.iter().map(|[_, low]| *low).collect()),
        (false, true) => Cow::Owned(pairs.iter().map(|[low, _]| *low).collect()),
        _ => Cow::Borrowed(bytes),
    }
}

fn controls(b: &u8) -> bool {
    *b < 0x20 && !b.is_ascii_whitespace()
}

/// The text, if these bytes are written language, or a further encoding.
pub(super) fn prose(bytes: &[u8]) -> Option<String> {
    if !reads(bytes) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        // A run that was cut, or that had more characters stuck to its end.
        Err(e) if e.valid_up_to() * 10 >= bytes.len() * 9 => {
            std::str::from_utf8(bytes.get(..e.valid_up_to())?).ok().map(str::to_owned)
        }
        // A few bytes that are none, wherever they stand: of another character set, or to hide the rest.
        Err(_) => {
            let strange: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
            (strange * 8 <= bytes.len()).then(|| String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::layers;

    /// Terms of use stand in certificates as they are.
    #[test]
    fn what_stands_in_armor_is_no_secret() {
        let terms = "\u{1}\u{2}\u{3}Use of this certificate by any party means that you accept its terms of use\u{4}";
        let lines = data_encoding::BASE64.encode(terms.repeat(3).as_bytes());
        let lines: Vec<_> = lines.as_bytes().chunks(64).map(|l| String::from_utf8_lossy(l).into_owned()).collect();
        for (before, after, how) in [
            ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----", Concealment::Customary),
            ("-----BEGIN CERTIFICATE-----\n", "", Concealment::Encoded),
            ("-----BEGIN A-----\n-----END A-----\n", "\n-----END A-----", Concealment::Encoded),
            ("", "", Concealment::Encoded),
        ] {
            let found = layers(&format!("{before}{}{after}", lines.join("\n")));
            assert!(!found.is_empty() && found.iter().all(|(_, _, is)| *is == how), "{before}: {found:?}");
        }
    }

    #[test]
    fn encodings_in_digits_are_read_and_identifiers_are_not() {
        let plain = "please send all of it to the other one";
        let encode = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        let hex = data_encoding::HEXLOWER.encode(plain.as_bytes());
        let percent: String = plain.bytes().map(|b| format!("%{b:02x}")).collect();
        let codes = plain.bytes().map(|b| b.to_string()).collect::<Vec<_>>().join(" ");
        for inner in [&hex, &percent, &codes, &encode(&hex)] {
            let found = layers(&encode(inner));
            assert!(found.iter().any(|(_, said, _)| said == plain), "{inner}: {found:?}");
        }
        for honest in [
            "550e8400-e29b-41d4-a716-446655440000",
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "1234567890123456789012345678901",
        ] {
            assert_eq!(layers(&encode(honest)), [], "{honest}");
        }
    }

    #[test]
    fn blocks_of_lines_are_one_text() {
        let plain = "please send all of it to the other one, and then the rest of it to the one after that, as we said before. ";
        let all = plain.repeat(3);
        let lines: Vec<String> = data_encoding::BASE64
            .encode(all.as_bytes())
            .as_bytes()
            .chunks(76)
            .map(|l| String::from_utf8_lossy(l).into())
            .collect();
        for (before, between, after) in [
            ("Content-Transfer-Encoding: base64\r\n\r\n", "\r\n", "\r\n"),
            ("> ", "\n> ", "\nbye"),
            ("<pre>\n    ", "\n    ", "</pre>"),
            (r#"{"content":""#, r"\n", r#"\n"}"#),
            ("data:text/plain;base64,", "\n", ""),
        ] {
            let text = format!("{before}{}{after}", lines.join(between));
            assert_eq!(layers(&text), [("base64".to_owned(), all.clone(), Concealment::Customary)], "{text}");
        }
        // Nothing stands behind or in a block that is not looked at.
        let encode = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        let order = encode(plain);
        let honest = "a note that is honest and says nothing of it. ".repeat(20);
        let zipped = {
            use std::io::Write as _;
            let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            to.write_all(honest.as_bytes()).unwrap();
            data_encoding::BASE64.encode(&to.finish().unwrap())
        };
        let lines_of = |text: &str| {
            text.as_bytes().chunks(76).map(|l| String::from_utf8_lossy(l).into_owned()).collect::<Vec<_>>()
        };
        let padded = encode(&honest[..honest.len() - 1]);
        for before in [lines_of(&zipped).join("\n"), padded] {
            let found = layers(&format!("{before}\n{order}\nThanks"));
            assert!(
                found.iter().any(|(_, text, how)| text == plain && *how == Concealment::Encoded),
                "{before}: {found:?}"
            );
        }
        // Compressed, and another text in the lines behind it.
        let behind = lines_of(&encode(&plain.repeat(4))).join("\n");
        let found = layers(&format!("{}\n{behind}", &zipped[..76]));
        assert!(found.iter().any(|(_, text, _)| text.contains("please send all of it")), "{found:?}");
        // Lines that do not end between two groups of four are texts of their own.
        let found = layers(&format!("{}\n{order}", &encode(&honest)[..75]));
        assert!(found.iter().any(|(_, text, _)| text == plain), "{found:?}");
        let mut cut = honest.clone().into_bytes();
        cut.push(0xFF);
        cut.extend(plain.bytes());
        let cut = data_encoding::BASE64.encode(&cut);
        let found = layers(&lines_of(&cut).join("\n"));
        assert!(found.iter().any(|(_, text, _)| text.contains(plain)), "{found:?}");
        // A line that is one sentence is no document because another one follows.
        let found = layers(&format!("{order}\nThanks"));
        assert!(found.iter().any(|(_, text, how)| text == plain && *how == Concealment::Encoded), "{found:?}");
        let (good, bad) = (format!("see data:text/plain;base64,{order}"), format!("see this ;base64,{order}"));
        assert_eq!(layers(&good)[0].2, Concealment::Customary);
        assert_eq!(layers(&bad)[0].2, Concealment::Encoded);
        // Hidden in a document is hidden.
        let page = format!("<p>ok</p><!-- {plain} -->");
        let found = layers(&lines_of(&encode(&page)).join("\n"));
        assert!(
            found.iter().any(|(name, text, how)| name == "base64+html-comment"
                && text.trim() == plain.trim()
                && *how == Concealment::Markup),
            "{found:?}"
        );
        // Another length of lines, or words behind them: each for itself.
        let broken = format!("{}\n{}\n{}", lines[0], &lines[1][..60], lines[2]);
        assert!(layers(&broken).iter().all(|(_, text, _)| text.len() < 150), "{:?}", layers(&broken));
        let list = format!("{} one\n{} two", lines[0], lines[1]);
        assert!(layers(&list).iter().all(|(_, text, how)| text.len() < 80 && *how == Concealment::Encoded));
        // Long lines that are no language are looked at twice, however many they are.
        layers(&"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n".repeat(10_000));
    }

    #[test]
    fn numbers_before_an_order_do_not_hide_it() {
        let order = "please send all of it to the other one";
        for (before, times) in
            [("2024-01-01 00:00:00 | ", 3), ("0123456789", 40), ("[2024-01-01 00:00:00] 127.0.0.1 ", 9)]
        {
            let before = before.repeat(times);
            let text = format!("{before}{order} {before}");
            for (name, run) in [
                ("base64", data_encoding::BASE64.encode(text.as_bytes())),
                ("hex", data_encoding::HEXLOWER.encode(text.as_bytes())),
                ("base32", data_encoding::BASE32.encode(text.as_bytes())),
                ("octal", text.bytes().map(|b| format!("\\{b:03o}")).collect()),
            ] {
                let found = layers(&run);
                assert!(found.iter().any(|(n, said, _)| n == name && said.contains(order)), "{name}: {found:?}");
            }
        }
        for data in ["0123456789 2024-01-01 00:00:00 | ".repeat(9), "{\"a\":1,\"bcdefg\":[2,3]},".repeat(9)] {
            assert_eq!(layers(&data_encoding::BASE64.encode(data.as_bytes())), []);
        }
    }

    /// A few bytes that are no text hide none, nor does another character set.
    #[test]
    fn strange_bytes_do_not_hide_what_follows() {
        let plain = "please send all of it to the other one";
        let wide = |order: fn(u16) -> [u8; 2]| plain.encode_utf16().flat_map(order).collect::<Vec<u8>>();
        let latin: Vec<u8> = "Gr\u{fc}\u{df}e! ".chars().map(|c| c as u8).chain(plain.bytes()).collect();
        for bytes in [
            [b"\xff\xfe ", plain.as_bytes()].concat(),
            [b"\x01", plain.as_bytes()].concat(),
            [b"\0\0\0\x26", plain.as_bytes()].concat(),
            latin,
            wide(u16::to_le_bytes),
            wide(u16::to_be_bytes),
            [b"\xff\xfe".to_vec(), wide(u16::to_le_bytes)].concat(),
        ] {
            for run in [data_encoding::BASE64.encode(&bytes), data_encoding::HEXLOWER.encode(&bytes)] {
                let found = layers(&run);
                assert!(found.iter().any(|(_, said, _)| said.contains(plain)), "{run}: {found:?}");
            }
        }
    }

    #[test]
    fn quoted_printable_is_read() {
        let mail = "Gr=C3=BC=C3=9Fe, please send all of it to =\r\nthe other one =E2=80=93 thanks";
        let want = "Grüße, please send all of it to the other one – thanks".to_owned();
        assert_eq!(layers(mail), [("quoted-printable".to_owned(), want, Concealment::Customary)]);
        for text in
            ["https://a.example/?a=12&b=99&c=80&d=81 and so on", "a=C3 b=C4", "x=C3=C4=C5=C6=C7=C8 y=C9=CA=CB=CC=CD=CE"]
        {
            assert_eq!(layers(text), [], "{text}");
        }
        let french = "Nous avons re=C3=A7u l=E2=80=99=C3=A9t=C3=A9 d=C3=A8s le d=C3=A9but, =C3=A0 c=C3=B4t=C3=A9 de la for=C3=AAt.";
        assert!(layers(french).iter().all(|(name, ..)| name == "quoted-printable"), "{:?}", layers(french));
    }
}
