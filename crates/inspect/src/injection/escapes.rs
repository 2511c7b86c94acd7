//! Texts that are written with escapes: of addresses (percent), of programs (octal, and what nothing shows), of mail ([`quoted`]).

use super::{
    encoded::prose,
    layers::{Concealment, Found, Inner, MIN_TEXT},
    places::Places,
    quoted, stretches, terminal,
};
use crate::{decode, view};

/// Fewest percent escapes of a value, and most values of one text.
const MIN_ESCAPES: usize = 4;
const MAX_VALUES: usize = 32;
/// Bytes in which so many escapes stand where what is around them is read without.
const DENSE: usize = 200;
/// Fewest letters in a row that need not be written as escapes, of words with so many blanks between them, and of anything: addresses are
/// hidden from collectors like this. Bytes from one to the next: blanks and signs may be written so, too.
const MIN_NEEDLESS: usize = 16;
const MIN_BLANKS: usize = 3;
const MANY_NEEDLESS: usize = 40;
const NEAR: usize = 24;

/// Hands on what is escaped in a text.
pub(super) fn find<'a>(text: &'a str, places: &Places, found: &mut Found<'a>) {
    if !places.any(|block| block.escapes) {
        return;
    }
    let escapes = Escapes::of(text.as_bytes(), places);
    by_number(text, &escapes.numbers, found);
    percent(text, &escapes.percent, found);
    quoted::printable(text, &escapes.quoted, found);
    rows(text, &escapes.octal, (b"\\", 3, 8), "octal", found);
    rows(text, &escapes.quoted, (b"=", 2, 16), quoted::NAME, found);
    quoted::needless(text, &escapes.quoted, found);
    rows(text, &escapes.rich, (b"\\'", 2, 16), "rtf", found);
}

/// Where escapes may stand, by what follows the sign that they begin with: most such signs are operators, ends of lines and the like.
#[derive(Default)]
struct Escapes {
    /// Of characters by their number or name.
    numbers: Vec<usize>,
    /// `%` and two hex digits.
    percent: Vec<usize>,
    /// `=` and two hex digits.
    quoted: Vec<usize>,
    /// `\` and three octal digits.
    octal: Vec<usize>,
    /// `\'` and two hex digits (Rich Text Format 1.9.1, "Special Characters").
    rich: Vec<usize>,
}

impl Escapes {
    fn of(text: &[u8], places: &Places) -> Self {
        let mut out = Self::default();
        for at in places.each(|block| block.escapes, 0) {
            let to = match text.get(at..).unwrap_or_default() {
                [b'&', b'#', ..] | [b'\\', b'u' | b'U' | b'x' | b'\\', ..] => &mut out.numbers,
                [b'&', b, ..] if b.is_ascii_alphabetic() => &mut out.numbers,
                [b'\\', b'0'..=b'7', b'0'..=b'7', b'0'..=b'7', ..] => &mut out.octal,
                [b'\\', b'\'', h, l, ..] if h.is_ascii_hexdigit() && l.is_ascii_hexdigit() => &mut out.rich,
                [b'%', h, l, ..] if h.is_ascii_hexdigit() && l.is_ascii_hexdigit() => &mut out.percent,
                [b'=', h, l, ..] if h.is_ascii_hexdigit() && l.is_ascii_hexdigit() => &mut out.quoted,
                _ => continue,
            };
            to.push(at);
        }
        out
    }
}

/// A character that is written as another one would not be.
struct Written {
    at: usize,
    length: usize,
    c: char,
    /// By its number, not by its name.
    number: bool,
}

/// The characters that are written as entities, or as escapes of JSON and programs by their number.
fn written(text: &str, places: &[usize]) -> impl Iterator<Item = Written> {
    let mut read = 0;
    places.iter().filter_map(move |at| {
        // Not at the second of two backslashes once more.
        let rest = text.get(*at..).filter(|_| *at >= read)?;
        let entity = rest.starts_with('&');
        let (c, length) = if entity { view::entity(rest) } else { view::escaped(rest) }?;
        read = at + length;
        Some(Written { at: *at, length, c, number: !entity || rest.starts_with("&#") })
    })
}

/// Characters that nothing shows, written as escapes of JSON and programs or as entities, several near each other: as they are, so that
/// they are read as such. And letters and digits that are written so, of which none needs to be, many in a row: normalising undoes them; that
/// they are written so is no accident. Addresses are hidden from collectors like this, which are shorter.
fn by_number<'a>(text: &'a str, places: &[usize], found: &mut Found<'a>) {
    // What a terminal is told counts where it hides.
    let hides = |one: &Written| text.get(one.at + one.length..).is_some_and(terminal::hides);
    let (mut invisible, mut overrides) = (Vec::new(), false);
    // From the first to the last of a row, and how many.
    let mut row = (0, 0, 0usize);
    let mut end = |(from, to, many): (usize, usize, usize)| {
        let several = |part: &str| view::normalised(part).matches(' ').count() >= MIN_BLANKS;
        if let Some(part) =
            text.get(from..to).filter(|part| many >= MANY_NEEDLESS || many >= MIN_NEEDLESS && several(part))
        {
            found.push(Inner::part(text, part, Concealment::Encoded, "needless-escapes"));
        }
    };
    for one in written(text, places) {
        if view::invisible(one.c) || one.c == '\u{1B}' && hides(&one) {
            invisible.push((one.at, one.at + one.length));
            overrides |= matches!(one.c, '\u{202E}' | '\u{1B}');
        } else if one.number && one.c.is_ascii_alphanumeric() {
            let begins = row.2 == 0 || one.at > row.1 + NEAR;
            if begins {
                end(row);
            }
            row = (if begins { one.at } else { row.0 }, one.at + one.length, if begins { 1 } else { row.2 + 1 });
        }
    }
    end(row);
    if invisible.len() < MIN_ESCAPES && !overrides {
        return;
    }
    for part in stretches::around(text, invisible.into_iter()) {
        let (mut said, mut rest) = (String::with_capacity(part.text.len()), &*part.text);
        while let Some(at) = memchr::memchr2(b'\\', b'&', rest.as_bytes()) {
            let (before, escape) = rest.split_at(at);
            said.push_str(before);
            let entity = escape.starts_with('&');
            let (c, length) = if entity { view::entity(escape) } else { view::escaped(escape) }.unwrap_or(('\\', 0));
            match length {
                0 => said.push_str(escape.get(..1).unwrap_or_default()),
                _ => said.push(c),
            }
            rest = escape.get(length.max(1)..).unwrap_or_default();
        }
        said.push_str(rest);
        found.push(Inner::made(said, Concealment::None, "escapes", part.span));
    }
}

/// Percent escapes (RFC 3986): words that are full of them, and all of a text or what is around them where there are many.
fn percent(text: &str, places: &[usize], found: &mut Found<'_>) {
    if places.len() < MIN_ESCAPES {
        return;
    }
    let bytes = text.as_bytes();
    // Addresses have to escape what is no ASCII.
    let how = |part: &[u8]| if decode::needless(part) { Concealment::Encoded } else { Concealment::Customary };
    let mut plain = Vec::new();
    let (mut read, mut count) = (0, 0);
    for at in places.iter().copied() {
        if at < read {
            continue;
        }
        let before = bytes.get(read..at).unwrap_or_default();
        let start = before.iter().rposition(|b| begins_value(*b)).map_or(read, |place| read + place + 1);
        read = at + bytes.iter().skip(at).position(|b| ends_value(*b)).unwrap_or(bytes.len() - at);
        let value = text.get(start..read).unwrap_or_default();
        if value.bytes().filter(|b| *b == b'%').count() < MIN_ESCAPES || value.len() == text.len() {
            continue;
        }
        decode::percent(value.as_bytes(), &mut plain);
        if let Some(said) = prose(&plain) {
            found.push(Inner::decoded(text, value, said, how(value.as_bytes()), "url"));
            count += 1;
        }
        if count == MAX_VALUES {
            break;
        }
    }
    if places.len() < MIN_TEXT {
        return;
    }
    let dense = stretches::dense::<MIN_ESCAPES>(places.iter().map(|at| (*at, at + 3)), DENSE);
    for part in stretches::around(text, dense) {
        decode::percent(part.text.as_bytes(), &mut plain);
        if part.span != (0, text.len()) {
            // It begins and ends anywhere, and most of it is not escaped.
            let said = String::from_utf8_lossy(&plain).into_owned();
            found.push(Inner::made(said, Concealment::Customary, "url", part.span));
        } else if let Some(said) = prose(&plain) {
            found.push(Inner::made(said, how(bytes), "url", (0, bytes.len())));
        }
    }
}

/// What the value of a query, or a part of an address, begins behind.
fn begins_value(b: u8) -> bool {
    ends_value(b) || matches!(b, b'/' | b'?' | b'&' | b'=' | b'#' | b':')
}

fn ends_value(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`' | b'|' | b'(' | b')' | b'&')
}

/// Rows of nothing but escapes of one kind: `mark` and so many digits to base `radix`. No program writes ASCII letters so; names of
/// files in other scripts are written so by git, for one.
fn rows(
    text: &str,
    places: &[usize],
    (mark, digits, radix): (&[u8], usize, u32),
    name: &'static str,
    found: &mut Found<'_>,
) {
    let bytes = text.as_bytes();
    let value = |at: usize| {
        let digits = bytes.get(at..)?.strip_prefix(mark)?.get(..digits)?;
        let digit = |b: &u8| decode::nibble(*b).map(u32::from).filter(|digit| *digit < radix);
        let value = |sum: u32, b: &u8| Some(sum * radix + digit(b)?);
        u8::try_from(digits.iter().try_fold(0, value)?).ok()
    };
    let (mut read, mut count) = (0, 0);
    for at in places.iter().copied() {
        if at < read || value(at).is_none() {
            continue;
        }
        let mut said = Vec::new();
        read = at;
        while let Some(byte) = value(read) {
            said.push(byte);
            // With a blank or a soft line end between them, or without.
            read += mark.len() + digits;
            let between: &[&[u8]] = if mark == b"=" { &[b" ", b"=\n", b"=\r\n"] } else { &[b" "] };
            let length = |between: &&&[u8]| {
                bytes.get(read..).is_some_and(|rest| rest.starts_with(between)) && value(read + between.len()).is_some()
            };
            read += between.iter().find(length).map_or(0, |between| between.len());
        }
        let foreign = said.iter().filter(|b| !b.is_ascii()).count();
        let how = if foreign * 2 > said.len() { Concealment::Customary } else { Concealment::Encoded };
        if said.len() >= MIN_TEXT
            && let Some(said) = prose(&said)
        {
            found.push(Inner::made(said, how, name, (at, read)));
            count += 1;
        }
        if count == MAX_VALUES {
            return;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const PLAIN: &str = "please send all of it to the other one";

    /// What is escaped in a text: the way, what it says, and how it was hidden.
    pub(in crate::injection) fn said(text: &str) -> Vec<(&'static str, String, Concealment)> {
        let mut all = Vec::new();
        find(text, &Places::of(text), &mut all);
        all.iter().map(|inner| (inner.name(), inner.text().to_owned(), inner.how())).collect()
    }

    fn each(text: &str, escape: impl Fn(u8) -> String) -> String {
        text.bytes().map(escape).collect()
    }

    #[test]
    fn rows_of_escapes_are_read() {
        let chinese = "\u{4e2d}\u{6587}\u{6587}\u{4ef6}\u{540d}\u{5b57}\u{7b26}\u{4e32}";
        let octal = |text: &str| each(text, |b| format!("\\{b:03o}"));
        let quoted = |text: &str| each(text, |b| format!("={b:02X}"));
        for (text, name, want, how) in [
            (octal(PLAIN), "octal", PLAIN, Concealment::Encoded),
            (each(PLAIN, |b| format!("\\{b:03o} ")), "octal", PLAIN, Concealment::Encoded),
            (each(PLAIN, |b| format!("\\'{b:02x}")), "rtf", PLAIN, Concealment::Encoded),
            (quoted(PLAIN), "quoted-printable", PLAIN, Concealment::Encoded),
            (quoted(PLAIN).to_lowercase(), "quoted-printable", PLAIN, Concealment::Encoded),
            // As git writes names (core.quotePath).
            (format!(" M \"{}.md\"", octal(chinese)), "octal", chinese, Concealment::Customary),
        ] {
            assert_eq!(said(&text), [(name, want.to_owned(), how)], "{text}");
            let page = format!("before {text} behind");
            assert!(said(&page).contains(&(name, want.to_owned(), how)), "{page}");
        }
        for text in
            ["\\777\\777\\777\\777\\777\\777\\777\\777\\777\\777\\777\\777", "\\1\\2 and \\01\\02", "a=1&b=22&c=33"]
        {
            assert_eq!(said(text), [], "{text}");
        }
    }

    #[test]
    fn values_of_addresses_are_read() {
        let blanks = PLAIN.replace(' ', "%20");
        let all = each(PLAIN, |b| format!("%{b:02x}"));
        for (text, want, how) in [
            (format!("see https://a.example/?q={blanks}&r=2"), PLAIN, Concealment::Customary),
            (format!("see https://a.example/{blanks} x"), PLAIN, Concealment::Customary),
            (format!("see <a href=\"?q={all}\">"), PLAIN, Concealment::Encoded),
        ] {
            assert!(said(&text).contains(&("url", want.to_owned(), how)), "{text}: {:?}", said(&text));
        }
        for text in ["10 % of them, 20 % of those, 5 %, 6 %", "https://a.example/a%20b", ""] {
            assert_eq!(said(text), [], "{text}");
        }
    }

    /// What a program that writes ASCII makes of characters that nothing shows is read as those.
    #[test]
    fn what_nothing_shows_may_be_escaped() {
        let tags: String = PLAIN.bytes().map(|b| char::from_u32(0xE0000 + u32::from(b)).unwrap()).collect();
        let escaped = |text: &str| text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
        let entities = |text: &str| text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect::<String>();
        let page = "A page of ordinary text about nothing. ".repeat(200);
        for text in [escaped(&tags), entities(&tags)] {
            for text in [format!("ok {text}"), format!("{page}{text}{page}")] {
                let layers = crate::injection::layers::tests::layers(&text);
                let found = layers.iter().find(|(name, ..)| name == "escapes+unicode-tags");
                assert!(found.is_some_and(|(_, said, how)| said == PLAIN && *how == Concealment::Covert), "{layers:?}");
            }
        }
        let back: String = PLAIN.chars().rev().collect();
        let layers = crate::injection::layers::tests::layers(&format!("ok \\u202e{back}\\u202c"));
        assert!(layers.iter().any(|(name, said, _)| name == "escapes+bidi" && said == PLAIN), "{layers:?}");
        for text in ["a\\u200db and\\u00e9 &amp; &shy;", r"C:\users\name \x \u12"] {
            assert_eq!(said(text), [], "{text}");
        }
    }

    #[test]
    fn what_needs_no_escape_is_found_where_it_has_some() {
        let plain = format!("{PLAIN}, and then the rest");
        let page = "A page of ordinary text about nothing, R&#38;D &amp; caf\\u00e9. ".repeat(40);
        for hidden in [
            each(&plain, |b| format!("&#{b};")),
            each(&plain, |b| if b == b' ' { " ".into() } else { format!("&#x{b:x};") }),
            each(&plain, |b| format!("\\u{b:04x}")),
            each(&plain, |b| format!("\\x{b:02x}")),
        ] {
            let text = format!("{page}{hidden} {page}");
            let layers = crate::injection::layers::tests::layers(&text);
            let found = layers.iter().find(|(name, ..)| name == "needless-escapes");
            let says = |said: &str| view::normalised(said) == plain;
            assert!(
                found.is_some_and(|(_, said, how)| says(said) && *how == Concealment::Encoded),
                "{hidden}: {layers:?}"
            );
        }
        let address = each("mailto:someone@somewhere.example", |b| format!("&#{b};"));
        assert!(
            said(&format!("<a href=\"{address}\">write to us</a> {page}"))
                .iter()
                .all(|(name, ..)| *name != "needless-escapes")
        );
    }

    #[test]
    fn work_is_linear() {
        for part in [
            "\\101",
            "=41",
            "%41",
            "=C3=BC ",
            "%41 ",
            "\\",
            "%4",
            "\\160\\154\\145\\141\\163\\145\\040\\163\\145\\156\\144\\040\\151\\164 no ",
        ] {
            let text = part.repeat(400_000 / part.len());
            let found = said(&text);
            let bytes: usize = found.iter().map(|(_, said, _)| said.len()).sum();
            assert!(
                found.len() <= 3 * MAX_VALUES && bytes <= 3 * text.len(),
                "{part}: {} of {bytes} bytes",
                found.len()
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "(?:[=%\\\\]|[0-9A-F]{2}|[0-7]{3}|\u{e9}| |\r\n|a){0,200}") {
            said(&s);
        }
    }
}
