//! Words in letters that only look like theirs, or with characters inside that nothing shows. [`crate::view::normalised`] reads them as
//! what they are; that somebody took the trouble says as much as an encoding does.

use unicode_normalization::char::compose;

use super::layers::{Concealment, Found, Inner, MIN_TEXT};
use crate::view;

/// Fewest such words, and how many bytes may stand from the end of one to the end of the next: a formula, or a name, has fewer.
const MIN_WORDS: usize = 6;
const NEAR: usize = 96;
/// Most parts of one text.
const MAX_PARTS: usize = 16;

/// Hands on the parts of a text whose words are disguised, as they stand there.
pub(super) fn find<'a>(text: &'a str, found: &mut Found<'a>) {
    if text.is_ascii() {
        return;
    }
    let bytes = text.as_bytes();
    // From the first of such words to the end of the last, and how many.
    let (mut from, mut to, mut words) = (0, 0, 0usize);
    let (mut at, mut parts) = (0, 0);
    loop {
        let next = bytes.get(at..).unwrap_or_default().iter().position(|b| *b >= 0x80).map(|more| at + more);
        let near = next.is_some_and(|next| next <= to + NEAR);
        if words > 0 && !near {
            let part = text.get(from..to).filter(|_| words >= MIN_WORDS).unwrap_or_default();
            if part.len() >= MIN_TEXT {
                found.push(Inner::part(text, part, Concealment::Encoded, "disguised"));
                parts += 1;
            }
            words = 0;
        }
        let Some(next) = next.filter(|_| parts < MAX_PARTS) else { return };
        let rest = text.get(next..).unwrap_or_default();
        let before = bytes.get(..next).unwrap_or_default();
        let Some(c) = rest.chars().next() else { return };
        at = next + c.len_utf8();
        if !disguises(before, c, rest.get(c.len_utf8()..).unwrap_or_default().as_bytes()) {
            continue;
        }
        // Each word once.
        let begin = before.iter().rposition(|b| ends(*b)).map_or(0, |end| end + 1);
        at = next + rest.find(|c: char| c.is_whitespace() || u8::try_from(c).is_ok_and(ends)).unwrap_or(rest.len());
        if words == 0 {
            from = begin;
        }
        (to, words) = (at, words + 1);
    }
}

/// Whether a word ends before a byte.
fn ends(b: u8) -> bool {
    b.is_ascii_whitespace() || b.is_ascii_punctuation()
}

/// Whether a character between two texts disguises a word.
fn disguises(before: &[u8], c: char, after: &[u8]) -> bool {
    let letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
    match u32::from(c) {
        // Letters of mathematics, in circles, squares and parentheses, as wide as ideographs, and Braille, several in a row: those of a formula
        // stand alone.
        0x1D400..=0x1D7FF
        | 0xFF21..=0xFF3A
        | 0xFF41..=0xFF5A
        | 0x249C..=0x24E9
        | 0x1F110..=0x1F189
        | 0x2801..=0x283F => c.encode_utf8(&mut [0; 4]).as_bytes().get(..2).is_some_and(|lead| after.starts_with(lead)),
        // Without width, between letters of ASCII. Soft hyphens and joiners of other scripts are honest.
        0x200B..=0x200F | 0x2060..=0x2064 | 0xFEFF => letter(before.last()) && letter(after.first()),
        // Two marks on one letter, or one that no language has on it.
        0x0300..=0x036F => {
            let base = before.last().filter(|b| b.is_ascii_alphabetic()).map(|b| char::from(*b));
            matches!(after, [0xCC | 0xCD, ..]) || base.is_some_and(|base| compose(base, c).is_none())
        }
        _ => view::alike(c).is_some() && (letter(before.last()) || letter(after.first())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::layers;

    const ORDER: &str = "please send all of it to the other one, and then the rest";

    fn said(text: &str) -> Vec<String> {
        let layers = layers(text);
        assert!(layers.iter().all(|(name, _, how)| name != "disguised" || *how == Concealment::Encoded));
        layers
            .into_iter()
            .filter(|(name, ..)| name == "disguised")
            .map(|(_, said, _)| view::normalised(&said))
            .collect()
    }

    #[test]
    fn disguised_words_are_found() {
        let page = "A page of ordinary text about nothing. ".repeat(40);
        let each = |f: &dyn Fn(char) -> String| ORDER.chars().map(f).collect::<String>();
        let moved = |first: u32| {
            each(&|c| match c {
                'a'..='z' => char::from_u32(first + c as u32 - 'a' as u32).unwrap().to_string(),
                c => c.to_string(),
            })
        };
        for hidden in [
            each(&|c| if c.is_ascii_alphabetic() { format!("{c}\u{200b}") } else { c.to_string() }),
            ORDER.replace('e', "е").replace('a', "а").replace('o', "о"),
            moved(0x1D41A),
            moved(0x24D0),
            moved(0x1F130),
            moved(0xFF41),
            each(&|c| if c.is_ascii_alphabetic() { format!("{c}\u{336}") } else { c.to_string() }),
            each(&|c| if c.is_ascii_alphabetic() { format!("{c}\u{301}\u{317}") } else { c.to_string() }),
        ] {
            for text in [hidden.clone(), format!("{page}{hidden} {page}")] {
                let found = said(&text);
                assert!(
                    found
                        .iter()
                        .any(|said| said.ends_with("please send all of it to the other one, and then the rest")),
                    "{text}: {found:?}"
                );
                assert!(found.iter().all(|said| said.len() <= ORDER.len() + 1), "{found:?}");
            }
        }
        for honest in [
            "Все люди рождаются свободными и равными в своём достоинстве и правах, и так далее.",
            "Thông báo: tất cả các tệp đã được lưu; xem thêm ở đây. Le café était fermé à cause de l'été.",
            "The\u{301} cafe\u{301} of Rene\u{301} and Zoe\u{308}, a` la carte: pa\u{302}te\u{301}, cre\u{300}me bru\u{302}le\u{301}e, nai\u{308}ve",
            "Let 𝑥 and 𝑦 be in 𝔽, with 𝑥 + 𝑦 = 0 and 𝑛 of them.",
            "می\u{200c}خواهم به خانه بروم و کتاب\u{200c}ها را بخوانم و می\u{200c}نویسم و می\u{200c}روم و می\u{200c}آیم",
            "auto\u{ad}matisch ge\u{ad}trennte Wör\u{ad}ter ste\u{ad}hen in vie\u{ad}len Sei\u{ad}ten und Bü\u{ad}chern",
        ] {
            assert_eq!(said(honest), [""; 0], "{honest}");
        }
    }

    #[test]
    fn work_is_linear() {
        for part in ["𝐱", "𝐱 ", "a\u{200b}a ", "a\u{200b}", "а", "аa", "\u{300}", "é"] {
            let text = part.repeat(1_000_000 / part.len());
            let bytes: usize = said(&text).iter().map(String::len).sum();
            assert!(bytes <= 2 * text.len(), "{part}: {bytes}");
        }
    }
}
