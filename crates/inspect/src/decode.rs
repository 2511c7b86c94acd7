//! Encodings that text leaves in. Every step is linear; what a call may cost in all is a [`Budget`].

mod around;
mod binary;
mod legible;
mod markup;
mod runs;
mod unusual;
mod whole;

use around::Around;
pub(crate) use binary::each_binary;
pub(crate) use legible::legible;
pub(crate) use runs::each_run_of;
use runs::{base_runs, base32_value, hex_runs, spaced_runs, unpack32, unpack64};
pub(crate) use unusual::{LOOKALIKES, ROT47, is_text, other_bases, unusual, uuencoded};
pub(crate) use whole::{whole_base32, whole_base64, whole_hex};

/// Shortest run of encoded characters that is worth decoding: 16 hex digits or base64 characters hold 8–12 bytes.
const MIN_RUN: usize = 16;

/// Bytes of strange text of one message that are tried in many ways.
const MAX_STRANGE: usize = 4096;

/// What may still be decoded for one message.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: usize,
    parts: usize,
    /// For keys of one byte. Its end is not reported: such keys are a chance find.
    xor: usize,
    /// Bytes for ways to write that no program needs, and whether they are what is used now. Their end is not reported either.
    spare: usize,
    apart: bool,
    /// For strange text, which is tried in many ways. Its end is not reported either.
    strange: usize,
    /// Something was left undecoded.
    pub(crate) exhausted: bool,
}

impl Budget {
    /// For a message of `size` bytes. A base64 file in a document with URL and JSON escapes is read about twenty times,
    /// the most that an honest message was seen to need.
    pub(crate) fn for_size(size: usize) -> Self {
        Self {
            bytes: size.saturating_mul(32).saturating_add(64 * 1024),
            parts: size.saturating_add(1024),
            xor: size.saturating_mul(8).saturating_add(64 * 1024),
            spare: size.saturating_mul(16).saturating_add(64 * 1024),
            apart: false,
            strange: MAX_STRANGE,
            exhausted: false,
        }
    }

    /// Does something with what is set apart for it, so that nothing else is left undone for it.
    pub(crate) fn aside(&mut self, mut work: impl FnMut(&mut Self)) {
        if self.apart {
            return work(self);
        }
        let (bytes, parts, exhausted) = (self.bytes, self.parts, self.exhausted);
        (self.bytes, self.apart) = (self.spare, true);
        work(self);
        self.spare = self.bytes;
        (self.bytes, self.parts, self.exhausted, self.apart) = (bytes, parts, exhausted, false);
    }

    fn take(&mut self, bytes: usize) -> bool {
        if self.parts == 0 || bytes > self.bytes {
            self.exhausted = true;
            return false;
        }
        self.parts -= 1;
        self.bytes -= bytes;
        true
    }
}

/// How a part was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Base64,
    Base32,
    Hex,
    /// Percent escapes.
    Url,
    /// Percent escapes of characters that need none.
    UrlNeedless,
    Json,
    /// Escapes of letters and digits, which need none.
    JsonNeedless,
    Tags,
    /// Single characters with one and the same character between them.
    Spaced,
    /// The query of an image's address in Markdown: whoever shows the image sends it.
    Image,
    /// HTML entities.
    Html,
    /// HTML entities of letters and digits, which need none.
    HtmlNeedless,
    /// gzip, zlib, DEFLATE or Zstandard.
    Compressed,
    /// Every byte combined with one and the same byte.
    Xor,
    /// Backwards; of folded text.
    Reverse,
    /// Letters moved by 13 places; of folded text.
    Rot13,
    /// Letters moved by other places; of folded text.
    Moved,
    /// Bytes that are no text: they may be combined with a key of several bytes.
    Keyed,
    /// Digits for letters that look like them; of folded text.
    Leet,
    /// Any other that nobody can read as it stands.
    Named(&'static str),
    /// Any other that a person can read, or that honest programs write.
    Laid(&'static str),
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Base32 => "base32",
            Self::Hex => "hex",
            Self::Url | Self::UrlNeedless => "url",
            Self::Json | Self::JsonNeedless => "json",
            Self::Tags => "unicode-tags",
            Self::Spaced => "spaced",
            Self::Image => "markdown-image",
            Self::Html | Self::HtmlNeedless => "html-entities",
            Self::Compressed => "compressed",
            Self::Xor | Self::Keyed => "xor",
            Self::Reverse => "reverse",
            Self::Rot13 => "rot13",
            Self::Moved => "moved letters",
            Self::Leet => "leet",
            Self::Named(name) | Self::Laid(name) => name,
        }
    }

    /// Whether it is a way to write bytes, and not one to write a text.
    pub(crate) fn of_bytes(self) -> bool {
        matches!(self, Self::Base64 | Self::Base32 | Self::Hex | Self::Compressed)
    }

    /// Whether a person cannot read the encoded form. URL, JSON and HTML escapes are what honest programs must use.
    pub(crate) fn opaque(self) -> bool {
        !matches!(self, Self::Url | Self::Json | Self::Html | Self::Leet | Self::Laid(_))
    }
}

/// Who gets what was decoded: the plain bytes, how they were encoded, and where in the text.
pub(crate) type OnPart<'v> = &'v mut dyn FnMut(&[u8], Encoding, (usize, usize), &mut Budget);

/// Decodes every part of `text` that could be encoded, once, and hands each on.
pub(crate) fn each(text: &[u8], budget: &mut Budget, visit: OnPart<'_>) {
    let all = (0, text.len());
    if let Some(plain) = percent_around(text, around::AROUND)
        && budget.take(plain.len())
    {
        let how = if needless(text) { Encoding::UrlNeedless } else { Encoding::Url };
        visit(&plain, how, all, budget);
    }
    if let Some(around) = Around::new(text, around::AROUND, memchr::memchr_iter(b'\\', text))
        && budget.take(around.bytes)
    {
        let mut needless = 0;
        let plain = around.decoded(|stretch, out| needless += json_escapes(stretch, out));
        // Where a few stand, the rest is read as it is.
        let hidden = needless >= MIN_RUN / 2 && needless * 2 >= plain.len() + text.len() - around.bytes;
        visit(&plain, if hidden { Encoding::JsonNeedless } else { Encoding::Json }, all, budget);
    }
    // Tag characters U+E0000–U+E007F are F3 A0 80 xx and F3 A0 81 xx in UTF-8.
    let tags_at = || memchr::memchr_iter(0xF3, text).filter(|at| text.get(at + 1) == Some(&0xA0));
    if tags_at().any(|at| !in_flag(text, at)) && budget.take(text.len()) {
        let mut plain = Vec::with_capacity(text.len());
        tags(text, &mut plain);
        visit(&plain, Encoding::Tags, all, budget);
    }
    if let Ok(text) = std::str::from_utf8(text) {
        markup::images(text, budget, visit);
        markup::entities(text, budget, visit);
    }
    spaced_runs(text, budget, visit);
    hex_runs(text, budget, visit);
    base_runs(text, budget, visit);
}

/// Bytes of a flag (UTS #51, RGI emoji tag sequences: a black flag, five tags, their end), and of a tag.
const FLAG: usize = 28;
const TAG: usize = 4;

/// Whether a tag character is one of England's, Scotland's or Wales' flag.
fn in_flag(text: &[u8], at: usize) -> bool {
    const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
    let is_flag = |begin: usize| {
        let flag = std::str::from_utf8(text.get(begin..begin + FLAG)?).ok()?;
        let tags = flag.strip_prefix('\u{1F3F4}')?.strip_suffix('\u{E007F}')?;
        let letters = tags.chars().map(|c| char::from_u32(u32::from(c).wrapping_sub(0xE0000)));
        FLAGS.contains(&letters.collect::<Option<String>>()?.as_str()).then_some(())
    };
    (1..FLAG / TAG).any(|tags| at.checked_sub(tags * TAG).is_some_and(|begin| is_flag(begin).is_some()))
}

/// Percent escapes (RFC 3986); false when there is none. `+` is a space in form data; both are dropped when folded.
pub(crate) fn percent(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    percent_onto(text, out)
}

/// The same, behind what is there.
fn percent_onto(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut any = false;
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, escape) = rest.split_at(at);
        out.extend_from_slice(before);
        let (byte, length) = escaped(rest, at).map_or((b'%', 1), |byte| (byte, 3));
        any |= length > 1;
        out.push(byte);
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    any
}

/// What is so near to percent escapes, without them; `None` where there are none.
pub(crate) fn percent_around(text: &[u8], beside: usize) -> Option<Vec<u8>> {
    let escapes = memchr::memchr_iter(b'%', text).filter(|at| escaped(text, *at).is_some());
    let around = Around::new(text, beside, escapes)?;
    Some(around.decoded(|stretch, out| {
        percent_onto(stretch, out);
    }))
}

/// What the percent escape at a place stands for.
fn escaped(text: &[u8], at: usize) -> Option<u8> {
    let [h, l] = text.get(at + 1..at + 3)? else { return None };
    Some(nibble(*h)? << 4 | nibble(*l)?)
}

/// Whether most percent escapes stand for letters and digits, which need none (RFC 3986 section 2.3): no honest encoder
/// does that.
pub(crate) fn needless(text: &[u8]) -> bool {
    let (mut all, mut plain) = (0usize, 0usize);
    for at in memchr::memchr_iter(b'%', text) {
        if let Some(byte) = escaped(text, at) {
            all += 1;
            plain += usize::from(byte.is_ascii_alphanumeric());
        }
    }
    plain >= MIN_RUN && plain * 2 > all
}

/// Whether `run` is base64url of a JSON object.
pub(crate) fn base64_json(run: &[u8]) -> bool {
    let mut out = Vec::new();
    unpack64(run, &mut out);
    matches!(out.as_slice(), [b'{', .., b'}']) && serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok()
}

/// Whether `run` is base64 of a name, a colon and a password, all of them visible characters (RFC 7617). A registry's password may be a
/// file of JSON, on several lines.
pub(crate) fn base64_pair(run: &[u8]) -> bool {
    base64_password(run).is_some()
}

/// The password of such a pair.
pub(crate) fn base64_password(run: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    unpack64(run, &mut out);
    let visible = |b: &u8| (0x20..0x7F).contains(b) || *b >= 0x80;
    let colon = out.iter().position(|b| *b == b':').filter(|at| *at > 0)?;
    let (name, password) = out.split_at(colon);
    let is = name.iter().all(visible)
        && password.iter().all(|b| visible(b) || b"\t\n\r".contains(b))
        && std::str::from_utf8(&out).is_ok();
    is.then(|| out.split_off(colon + 1))
}

/// The escapes of JSON and of most programming languages, leniently. How many letters and digits were escaped.
fn json_escapes(text: &[u8], out: &mut Vec<u8>) -> usize {
    let mut needless = 0;
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        out.extend_from_slice(before);
        let tail = escape.get(1..).unwrap_or_default();
        rest = tail;
        match tail {
            [b'u', hex @ ..] if unit(hex).is_some() => {
                let mut tail = hex.get(4..).unwrap_or_default();
                let mut code = unit(hex).unwrap_or_default();
                if (0xD800..0xDC00).contains(&code)
                    && let [b'\\', b'u', low @ ..] = tail
                    && let Some(low_code @ 0xDC00..0xE000) = unit(low)
                {
                    code = 0x10000 + ((code - 0xD800) << 10) + (low_code - 0xDC00);
                    tail = low.get(4..).unwrap_or_default();
                }
                let c = char::from_u32(code).unwrap_or('\u{FFFD}');
                needless += usize::from(c.is_ascii_alphanumeric());
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail;
            }
            [b'x', h, l, tail @ ..] if nibble(*h).is_some() && nibble(*l).is_some() => {
                let byte = nibble(*h).unwrap_or_default() << 4 | nibble(*l).unwrap_or_default();
                needless += usize::from(byte.is_ascii_alphanumeric());
                out.push(byte);
                rest = tail;
            }
            _ if let Some((c, length)) = unusual::braced(tail) => {
                needless += usize::from(c.is_ascii_alphanumeric());
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail.get(length..).unwrap_or_default();
            }
            // Lines of base64 are lines.
            [line @ (b'n' | b'r'), tail @ ..] => {
                out.push(if *line == b'n' { b'\n' } else { b'\r' });
                rest = tail;
            }
            [b't' | b'b' | b'f', tail @ ..] => {
                out.push(b' ');
                rest = tail;
            }
            [c, tail @ ..] => {
                out.push(*c);
                rest = tail;
            }
            [] => {}
        }
    }
    out.extend_from_slice(rest);
    needless
}

fn unit(hex: &[u8]) -> Option<u32> {
    let [a, b, c, d, ..] = hex else { return None };
    let mut code = 0;
    for digit in [a, b, c, d] {
        code = code << 4 | u32::from(nibble(*digit)?);
    }
    Some(code)
}

fn tags(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&b, tail)) = rest.split_first() {
        match rest {
            [0xF3, 0xA0, 0x80, low @ 0xA0..=0xBF, tail @ ..] => {
                out.push(low - 0x80);
                rest = tail;
            }
            [0xF3, 0xA0, 0x81, low @ 0x80..=0xBE, tail @ ..] => {
                out.push(low - 0x40);
                rest = tail;
            }
            _ => {
                out.push(b);
                rest = tail;
            }
        }
    }
}

/// The value of a hex digit.
pub(crate) fn nibble(b: u8) -> Option<u8> {
    HEX.get(usize::from(b)).copied().filter(|value| *value < NONE)
}

/// What characters of an alphabet stand for; [`NONE`] for all others.
const fn values(alphabets: &[&[u8]]) -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut number = 0;
    while number < alphabets.len() {
        let mut value = 0;
        while value < alphabets[number].len() {
            table[alphabets[number][value] as usize] = value as u8;
            value += 1;
        }
        number += 1;
    }
    table
}

const NONE: u8 = 0xFF;
const HEX: [u8; 256] = values(&[b"0123456789abcdef", b"0123456789ABCDEF"]);

#[cfg(test)]
mod tests;
