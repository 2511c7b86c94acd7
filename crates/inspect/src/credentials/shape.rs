//! Credentials without a fixed beginning, known by the lengths of their parts: a Discord bot's token is its number in base64, a time of
//! six characters and a digest, with dots between them.

/// Length of the middle part, and shortest and longest of the others. The first begins as base64 of a digit does.
const TIME: usize = 6;
const NUMBER: std::ops::RangeInclusive<usize> = 24..=26;
const DIGEST: std::ops::RangeInclusive<usize> = 27..=38;

/// Of which rule such a token is.
pub(super) const RULE: &str = "discord-bot-token";

/// Where the digests of such tokens stand.
pub(super) fn each(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    memchr::memchr_iter(b'.', text).filter_map(|dot| digest(text, dot))
}

/// Whether a text holds such a token.
pub(crate) fn has_shape(text: &[u8]) -> bool {
    each(text).next().is_some()
}

fn digest(text: &[u8], dot: usize) -> Option<(usize, usize)> {
    let from = dot + TIME + 2;
    if text.get(from - 1) != Some(&b'.') {
        return None;
    }
    let part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'-');
    let before = text.get(..dot)?.iter().rev().take(*NUMBER.end()).take_while(part).count();
    let begins = |length: &usize| matches!(text.get(dot - length), Some(b'M' | b'N' | b'O'));
    let number = (*NUMBER.start()..=before).rev().find(begins)?;
    let length = text.get(from..)?.iter().take(DIGEST.end() + 1).take_while(part).count();
    let (first, time, last) =
        (text.get(dot - number..dot)?, text.get(dot + 1..from - 1)?, text.get(from..from + length)?);
    let fits = DIGEST.contains(&length) && text.get(from + length) != Some(&b'.') && time.iter().all(|b| part(&b));
    // Each has capitals, small letters and digits; a time of six need not have all of them.
    let kinds = |text: &[u8]| {
        [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit]
            .iter()
            .filter(|kind| text.iter().any(kind))
            .count()
    };
    (fits && kinds(first) == 3 && kinds(last) == 3 && kinds(time) >= 2).then_some((from, from + length))
}
