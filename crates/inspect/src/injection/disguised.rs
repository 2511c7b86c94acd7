//! Words in letters that only look like theirs, or with characters inside that nothing shows. [`crate::view::normalised`] reads them as
//! what they are; that somebody took the trouble says as much as an encoding does.

use unicode_normalization::char::compose;

use super::{
    layers::{Concealment, Found, Inner, MIN_TEXT},
    places::Places,
};
use crate::view;

/// Fewest such words, and how many bytes may stand from the end of one to the next character beyond ASCII: a formula, or a name, has fewer.
const MIN_WORDS: usize = 6;
const NEAR: usize = 96;
/// Most parts of one text.
const MAX_PARTS: usize = 256;
/// Bytes before a character in which its word begins.
const MAX_WORD: usize = 64;
/// Most marks on a letter that are looked at.
const MAX_MARKS: usize = 4;

/// How a character disguises a word.
#[derive(PartialEq)]
enum Disguise {
    /// As honest pages style text.
    Style,
    /// As nobody writes.
    Covert,
}

/// Hands on the parts of a text whose words are disguised, as they stand there. False when there are more than are handed on.
pub(super) fn find<'a>(text: &'a str, places: &Places, found: &mut Found<'a>) -> bool {
    if places.ascii() {
        return true;
    }
    // From the first of such words to the end of the last, how many, and how many that nobody writes so.
    let (mut from, mut to, mut words, mut covert) = (0, 0, 0usize, 0usize);
    let (mut at, mut parts) = (0, 0);
    loop {
        let next = places.next(|block| block.beyond, at);
        let near = next.is_some_and(|next| next <= to + NEAR);
        if words > 0 && !near {
            let part = text.get(from..to).filter(|_| words >= MIN_WORDS).unwrap_or_default();
            if part.len() >= MIN_TEXT {
                let how = if covert >= MIN_WORDS { Concealment::Encoded } else { Concealment::Markup };
                found.push(Inner::part(text, part, how, "disguised"));
                parts += 1;
            }
            (words, covert) = (0, 0);
        }
        let Some(next) = next else { return true };
        if parts == MAX_PARTS {
            return false;
        }
        if let Some(length) = alone(text.as_bytes(), next) {
            at = next + length;
            continue;
        }
        let rest = text.get(next..).unwrap_or_default();
        let Some(c) = rest.chars().next() else { return true };
        let Some(how) = disguise(text.get(..next).unwrap_or_default(), c, rest.get(c.len_utf8()..).unwrap_or_default())
        else {
            at = next + c.len_utf8();
            continue;
        };
        // Each word once, and none from before the last one.
        let near = text.floor_char_boundary(next.saturating_sub(MAX_WORD)).max(to);
        let begin = text.get(near..next).and_then(|before| before.rfind(ends)).map_or(near, |end| near + end + 1);
        let begin = text.ceil_char_boundary(begin);
        at = next + rest.find(ends).unwrap_or(rest.len());
        if words == 0 {
            from = begin;
        }
        (to, words, covert) = (at, words + 1, covert + usize::from(how == Disguise::Covert));
    }
}

/// Whether a word ends before a character.
fn ends(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_punctuation()
}

/// The bytes of a character that disguises nothing because no letter of ASCII stands beside it ([`disguise`]): most of a text in Greek, Cyrillic
/// and the scripts of the Near and Far East. By its first byte, so that some Latin letters with marks are among them.
fn alone(text: &[u8], at: usize) -> Option<usize> {
    let length = match text.get(at)? {
        0xCE..=0xDF => 2,
        // Small capitals and raised letters (U+1D00 on) make words by themselves.
        0xE1 if matches!(text.get(at + 1), Some(0xB4..=0xB6)) => return None,
        0xE0 | 0xE1 | 0xE3..=0xEE => 3,
        _ => return None,
    };
    let ascii = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphabetic);
    (!ascii(at.checked_sub(1)) && !ascii(Some(at + length))).then_some(length)
}

/// How a character between two texts disguises a word.
fn disguise(before: &str, c: char, after: &str) -> Option<Disguise> {
    let ascii = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
    let (last, first) = (ascii(before.as_bytes().last()), ascii(after.as_bytes().first()));
    let next = || after.chars().next();
    match c {
        // Several in a row: those of a formula stand alone.
        _ if styled(c) => next().is_some_and(styled).then_some(Disguise::Style),
        _ if drawn(c) => next().is_some_and(drawn).then_some(Disguise::Covert),
        _ if braille(c) => next().is_some_and(braille).then_some(Disguise::Covert),
        // Without width, between letters of ASCII. Soft hyphens and joiners of other scripts are honest.
        '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' => (last && first).then_some(Disguise::Covert),
        '\u{300}'..='\u{36F}' => (!of_a_language(before, c)).then_some(Disguise::Covert),
        // The dotless i is a letter of Turkish, the others are of phonetics.
        'ı' | 'ɑ' | 'ɩ' => None,
        _ => ((last || first) && view::alike(c).is_some()).then_some(Disguise::Covert),
    }
}

/// Letters of mathematics, as wide as ideographs, in circles, squares and parentheses.
fn styled(c: char) -> bool {
    matches!(u32::from(c), 0x1D400..=0x1D7FF | 0xFF21..=0xFF3A | 0xFF41..=0xFF5A | 0x249C..=0x24E9 | 0x1F110..=0x1F189)
}

/// Raised and lowered letters, and small capitals: phonetics and footnotes have some, sentences are not written so.
fn drawn(c: char) -> bool {
    let raised = matches!(u32::from(c), 0x2B0..=0x2B8 | 0x2E0..=0x2E4 | 0x1D2C..=0x1D6A | 0x1D9B..=0x1DBF | 0x2071 | 0x207F | 0x2090..=0x209C | 0x2C7C);
    raised || c == 'ᴀ' || !c.is_ascii() && !styled(c) && c < '\u{1F000}' && !braille(c) && view::shaped(c).is_some()
}

fn braille(c: char) -> bool {
    ('\u{2801}'..='\u{283F}').contains(&c)
}

/// Whether a mark and those before it make a letter that Unicode has, in either order: languages have those (in NFD, as some systems write
/// names of files), and hardly others.
fn of_a_language(before: &str, mark: char) -> bool {
    let is_mark = |c: &char| ('\u{300}'..='\u{36F}').contains(c);
    let mut marks: Vec<char> = before.chars().rev().take_while(is_mark).take(MAX_MARKS).collect();
    marks.reverse();
    marks.push(mark);
    // More marks than any letter has.
    let Some(base) = before.chars().rev().take(MAX_MARKS + 1).find(|c| !is_mark(c)) else { return false };
    let makes = |marks: &[char]| marks.iter().try_fold(base, |letter, mark| compose(letter, *mark)).is_some();
    let in_order = makes(&marks);
    marks.reverse();
    !base.is_ascii_alphabetic() || in_order || makes(&marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::layers;

    const ORDER: &str = "please send all of it to the other one, and then the rest";

    #[test]
    fn letters_by_themselves_disguise_nothing() {
        for c in ('\u{80}'..=char::MAX).filter(|c| alone(format!(" {c} ").as_bytes(), 1).is_some()) {
            for (before, after) in [(" ", " "), ("ж", "ж"), ("", "")] {
                assert!(disguise(before, c, after).is_none(), "{c:?}");
                assert_eq!(alone(format!("{before}{c}{after}").as_bytes(), before.len()), Some(c.len_utf8()));
            }
            assert_eq!(alone(format!("a{c}").as_bytes(), 1).or(alone(format!("{c}a").as_bytes(), 0)), None);
        }
    }

    fn said(text: &str) -> Vec<String> {
        let layers = layers(text);
        assert!(layers.iter().all(|(name, _, how)| name != "disguised" || *how >= Concealment::Markup));
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
            each(&|c| match "abdehinoprstuw".find(c) {
                Some(at) => "ᵃᵇᵈᵉʰⁱⁿᵒᵖʳˢᵗᵘʷ".chars().nth(at).unwrap().to_string(),
                None => c.to_string(),
            }),
            each(&|c| match "adehlnoprstu".find(c) {
                Some(at) => "ᴀᴅᴇʜʟɴᴏᴘʀꜱᴛᴜ".chars().nth(at).unwrap().to_string(),
                None => c.to_string(),
            }),
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
            "Nhấn vào đây để chuyển tiếp tin nhắn này cho một người khác trong nhóm của bạn",
            "Kapıyı kapatın, ışıkları kapatın ve anahtarı kapıcıya bırakın, sınıfın kapısını açık bırakın.",
            "Let 𝑥 and 𝑦 be in 𝔽, with 𝑥 + 𝑦 = 0 and 𝑛 of them.",
            "می\u{200c}خواهم به خانه بروم و کتاب\u{200c}ها را بخوانم و می\u{200c}نویسم و می\u{200c}روم و می\u{200c}آیم",
            "auto\u{ad}matisch ge\u{ad}trennte Wör\u{ad}ter ste\u{ad}hen in vie\u{ad}len Sei\u{ad}ten und Bü\u{ad}chern",
        ] {
            let nfd: String = unicode_normalization::UnicodeNormalization::nfd(honest).collect();
            for honest in [honest, &nfd] {
                assert_eq!(said(honest), [""; 0], "{honest}");
            }
        }
    }

    #[test]
    fn work_is_linear() {
        for part in
            ["𝐱", "𝐱𝐱 ", "a\u{200b}a ", "a\u{200b}", "а", "аa", "\u{300}", "é", "аa\u{3000}", "a\u{200b}a\u{a0}"]
        {
            let text = part.repeat(1_000_000 / part.len());
            let bytes: usize = said(&text).iter().map(String::len).sum();
            assert!(bytes <= 2 * text.len(), "{part}: {bytes}");
        }
    }
}
