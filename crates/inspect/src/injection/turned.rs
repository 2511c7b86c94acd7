//! English backwards, upside down, or with its letters moved.

use super::{
    joined,
    layers::{Concealment, Found, Inner, MAX_SHORT},
    signs::{self, Signs},
    stretches,
};
use crate::{
    decode, lanes,
    language::{Rarity, monotone, rare},
    view,
};

/// Bytes that are looked at together, and how many pairs of letters in them that language seldom has make them strange.
const STRANGE: usize = 24;
const MIN_STRANGE: usize = 4;
/// Letters of a word that may be ordinary, and how many such words in a row end a strange row: of moved words of five letters, one in
/// sixteen looks like one.
const LONG: usize = 4;
const MAX_ORDINARY: usize = 3;
/// Longest word, and longest row to either side, in bytes.
const MAX_WORD: usize = 64;
const MAX_ROW: usize = 512;
/// Bytes of a row by which the way is chosen.
const SAMPLED: usize = 192;
/// Fewest pairs that language seldom has in what was moved, and the commonest words that what says little otherwise has.
const MIN_GAINED: usize = 7;
const MIN_SPOKEN: usize = 2;
/// Most words that look like those of a language behind such as do not.
const MAX_BEHIND: usize = 5;
/// Bytes that are looked at together for moved signs, and how far apart.
const SAMPLE: usize = 48;
const STEP: usize = 80;
/// Bytes before and behind them that are read with them.
const BESIDE: usize = 400;
/// Most such parts of one text.
const MAX_PARTS: usize = 64;
/// Fewest words of a part, and fewest different letters: who leaves a secret out writes one letter many times.
const MIN_WORDS: usize = 3;
const MIN_DIFFERENT: u32 = 8;
/// The way to what is read so.
const MOVED: &str = "moved-letters";
/// Fewest letters upside down of a line, and most such lines of one text.
const MIN_LETTERS: usize = 8;
const MAX_LINES: usize = 256;
/// Letters of ASCII from a on that are written upside down as others.
const UPSIDE_DOWN: &str = "ɐqɔpǝɟƃɥᴉɾʞןɯuodbɹsʇnʌʍxʎz";

/// Hands on what a text says so, told by its commonest words, several of them. Not once more of what was `made` so: that is what was
/// there before. False when there is more than is handed on.
pub(super) fn find(text: &str, signs: Signs, made: &str, rarity: &Rarity, found: &mut Found<'_>) -> bool {
    for (way, name) in [(0, "rot13"), (1, "reverse")] {
        // Parts of names, and of what is encoded, look like short words.
        if !signs.turned(way) || made == name || made == joined::NAME {
            continue;
        }
        for part in stretches::close_around(text, signs::turned_words(text, way).into_iter()) {
            let moved = |c: char| match c {
                'a'..='z' => ((c as u8 - b'a' + 13) % 26 + b'a') as char,
                'A'..='Z' => ((c as u8 - b'A' + 13) % 26 + b'A') as char,
                c => c,
            };
            let said = || part.text.chars();
            let plain = if way == 0 { said().map(moved).collect() } else { said().rev().collect() };
            if way == 1 {
                let words = part.text.split_inclusive(char::is_whitespace).map(|word| {
                    let letters = word.trim_end();
                    letters.chars().rev().chain(word.chars().skip(letters.chars().count())).collect::<String>()
                });
                found.push(Inner::made(words.collect(), Concealment::Encoded, name, part.span));
            }
            found.push(Inner::made(plain, Concealment::Encoded, name, part.span));
        }
    }
    if made != decode::ROT47 {
        signs_moved(text, found);
    }
    // Of names that were taken apart the words are of no language.
    let all = !matches!(made, "" | "base64" | "base32" | "hex" | "url") || moved(text, rarity, found);
    all & upside_down(text, found)
}

/// Letters moved by some places or keys, or the alphabet backwards: words that no language has, of which one way makes words.
fn moved(text: &str, rarity: &Rarity, found: &mut Found<'_>) -> bool {
    if text.len() > MAX_SHORT {
        return true;
    }
    let (mut read, mut count) = (0, 0);
    for at in (0..text.len()).step_by(STRANGE) {
        let some = text.as_bytes().get(at..text.len().min(at + STRANGE)).unwrap_or_default();
        if at < read || rarity.within(at, STRANGE) < MIN_STRANGE || monotone(some) {
            continue;
        }
        let (from, to) = strange_row(text.as_bytes(), at, read);
        // What stands behind an order in another way must not keep it from being read, nor what stands before it.
        read = to.min(at + SAMPLED);
        let row = text.as_bytes().get(from..to).unwrap_or_default();
        if rare(row) * 8 < row.len() || !words(row) {
            continue;
        }
        // The way that makes most of a part, which is what is read first.
        let part = text.as_bytes().get(from.max(at.saturating_sub(STRANGE))..to.min(at + SAMPLED)).unwrap_or_default();
        let ways = (1..26).map(Way::By).chain([Way::Backwards, Way::Key(1), Way::Key(-1)]);
        let strangeness = |way: &Way| rare(&part.iter().map(|b| way.of(*b)).collect::<Vec<u8>>());
        let Some(way) = ways.min_by_key(strangeness) else { return true };
        let best = Moved::back(row, way);
        let (begin, end) = (from + best.span.0, best.way.goes_on(text, from + best.span.1));
        if !best.speaks() || !words(text.as_bytes().get(begin..end).unwrap_or_default()) {
            continue;
        }
        read = end.max(at + STRANGE);
        let letter = |c: char| if c.is_ascii() { char::from(best.way.of(c as u8)) } else { c };
        let plain = text.get(begin..end).unwrap_or_default().chars().map(letter).collect();
        let name = if best.way == Way::By(13) { "rot13" } else { MOVED };
        found.push(Inner::made(plain, Concealment::Encoded, name, (begin, end)));
        count += 1;
        if count == MAX_PARTS {
            return false;
        }
    }
    true
}

/// Words in a row whose letters were moved in one way.
struct Moved {
    way: Way,
    span: (usize, usize),
    /// How many pairs of letters language seldom has, before and after they were moved back.
    before: usize,
    after: usize,
    /// How many of the commonest words there are.
    common: usize,
}

impl Moved {
    /// Those of a row that gain most by it.
    fn back(row: &[u8], way: Way) -> Self {
        let nothing = |at: usize| Self { way, span: (at, at), before: 0, after: 0, common: 0 };
        let (mut best, mut now, mut at) = (nothing(0), nothing(0), 0);
        for word in row.split(u8::is_ascii_whitespace) {
            let plain: Vec<u8> = word.iter().map(|b| way.of(*b)).collect();
            if now.before < 2 * now.after {
                now = nothing(at);
            }
            at += word.len() + 1;
            now = Self {
                span: (now.span.0, at - 1),
                before: now.before + rare(word),
                after: now.after + rare(&plain),
                common: now.common + usize::from(word.len() > 1 && signs::is_common(&plain)),
                ..now
            };
            // What is moved otherwise, or not at all, loses: as much as it has is strange then. Short words gain nothing.
            let gained = |moved: &Self| moved.before.saturating_sub(2 * moved.after);
            if gained(&now) >= gained(&best).max(1) {
                best = Self { ..now };
            }
        }
        best
    }

    /// Whether they are language then. By chance half of the pairs are such as language has.
    fn speaks(&self) -> bool {
        self.before >= MIN_GAINED
            && (self.after * 10 <= self.before || self.after * 3 <= self.before && self.common >= MIN_SPOKEN)
    }
}

/// The words around a place that no language has, from `floor` on: they end where some in a row are ordinary.
fn strange_row(text: &[u8], at: usize, floor: usize) -> (usize, usize) {
    let blank = |at: &usize| text.get(*at).is_none_or(u8::is_ascii_whitespace);
    let middle = (floor.max(at.saturating_sub(MAX_WORD))..at).rev().find(blank).map_or(at, |at| at + 1);
    // How far the strange words of some in a row reach.
    let reach = |words: &mut dyn Iterator<Item = &[u8]>| {
        let (mut all, mut strange, mut ordinary) = (0, 0, 0);
        for word in words {
            all += word.len() + 1;
            if rare(word) > 0 {
                (strange, ordinary) = (all - 1, 0);
            } else if word.iter().filter(|b| b.is_ascii_alphabetic()).count() >= LONG {
                ordinary += 1;
            }
            if ordinary == MAX_ORDINARY || all > MAX_ROW {
                break;
            }
        }
        strange
    };
    // No row is longer than that, and a word that is ends it.
    let most = MAX_ROW + MAX_WORD;
    let behind = text.get(middle..text.len().min(middle + most)).unwrap_or_default();
    let before = text.get(floor.max(middle.saturating_sub(most))..middle.max(floor + 1) - 1).unwrap_or_default();
    let to = middle + reach(&mut behind.split(u8::is_ascii_whitespace)).max(STRANGE.min(behind.len()));
    let from = match reach(&mut before.rsplit(u8::is_ascii_whitespace)) {
        0 => middle,
        strange => middle - 1 - strange,
    };
    let text = |at: &usize| text.get(*at).is_none_or(|b| !(0x80..0xC0).contains(b));
    ((floor..=from).rev().find(text).unwrap_or(floor), (to..).find(text).unwrap_or(to))
}

/// All signs of ASCII moved by 47 places: words without small letters, with digits and the signs before the capitals in them.
fn signs_moved(text: &str, found: &mut Found<'_>) {
    if text.len() > MAX_SHORT {
        return;
    }
    let (mut read, mut count) = (0, 0);
    for at in (0..text.len()).step_by(STEP) {
        let some = text.as_bytes().get(at..text.len().min(at + SAMPLE)).unwrap_or_default();
        if at < read || count == MAX_PARTS || !is_moved(some) || !some.is_ascii() {
            continue;
        }
        let plain: Vec<u8> = some.iter().map(|b| turned_by_47(*b)).collect();
        if !words(&plain) || rare(&plain) * 8 > plain.len() {
            continue;
        }
        let (from, to) = (at.saturating_sub(BESIDE).max(read), text.len().min(at + SAMPLE + BESIDE));
        let (from, to) = (text.floor_char_boundary(from), text.ceil_char_boundary(to));
        let letter = |c: char| if c.is_ascii() { char::from(turned_by_47(c as u8)) } else { c };
        let plain = text.get(from..to).unwrap_or_default().chars().map(letter).collect();
        found.push(Inner::made(plain, Concealment::Encoded, decode::ROT47, (from, to)));
        (read, count) = (to, count + 1);
    }
}

/// Whether bytes look like that: small letters have become digits, signs and capitals up to K.
fn is_moved(some: &[u8]) -> bool {
    let count = |from: u8, to: u8| lanes::count(some, 0, |b| lanes::within(b, from, to));
    count(b':', b'@') * 8 >= some.len() && count(b'a', b'z') * 6 <= some.len()
}

fn turned_by_47(b: u8) -> u8 {
    if b.is_ascii_graphic() { (b - b'!' + 47) % 94 + b'!' } else { b }
}

/// Rows of keys: what is typed beside is the next one.
const KEYS: [&[u8]; 3] = [b"qwertyuiop[]", b"asdfghjkl;'", b"zxcvbnm,./"];

/// How letters are moved back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    By(u8),
    Backwards,
    /// By so many keys.
    Key(isize),
}

impl Way {
    /// Up to where words behind a place become none that language seldom has: at its end moved words may look like others.
    fn goes_on(self, text: &str, from: usize) -> usize {
        let mut end = from;
        let words = text.get(from..).unwrap_or_default().split_inclusive(|c: char| c.is_ascii_whitespace());
        for word in words.take(MAX_BEHIND) {
            let plain: Vec<u8> = word.bytes().map(|b| self.of(b)).collect();
            if !word.is_ascii() || rare(&plain) > 0 {
                break;
            }
            end += word.len();
        }
        end
    }

    fn of(&self, b: u8) -> u8 {
        let first = if b.is_ascii_uppercase() { b'A' } else { b'a' };
        match self {
            Self::Key(by) => {
                let key = |row: &&[u8]| row.iter().position(|key| *key == b.to_ascii_lowercase());
                let moved = KEYS.iter().find_map(|row| row.get(key(row)?.checked_add_signed(*by)?));
                moved.copied().unwrap_or(b)
            }
            _ if !b.is_ascii_alphabetic() => b,
            Self::By(places) => (b - first + places) % 26 + first,
            Self::Backwards => first + 25 - (b - first),
        }
    }
}

/// Whether bytes are words of letters with blanks between them.
fn words(some: &[u8]) -> bool {
    let letters = some.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let ends = some.array_windows().filter(|[a, b]| a.is_ascii_alphabetic() && b.is_ascii_whitespace()).count();
    let different = some.iter().filter(|b| b.is_ascii_alphabetic()).fold(0u32, |seen, b| seen | 1 << (b & 31));
    letters * 3 >= some.len() * 2
        && ends >= MIN_WORDS
        && ends * 14 >= some.len()
        && different.count_ones() >= MIN_DIFFERENT
}

/// The lines that are written with letters upside down, from their end: a joke of honest pages, too.
fn upside_down(text: &str, found: &mut Found<'_>) -> bool {
    // All those that are no ASCII begin with C6, C7, C9, CA, CB, D7 or E1: IPA extensions (U+0250 on) with C9 and CA.
    let may = |text: &str| memchr::memchr2(0xC9, 0xCA, text.as_bytes()).is_some();
    if text.is_ascii() || !may(text) {
        return true;
    }
    let most = found.len() + MAX_LINES;
    let upright = |c: char| {
        let at =
            UPSIDE_DOWN.chars().position(|other| other == c || other == 'ᴉ' && c == 'ı' || other == 'ן' && c == 'l')?;
        u8::try_from(at).ok().map(|at| char::from(b'a' + at))
    };
    for line in text.lines().filter(|line| may(line)) {
        let letters = || line.chars().filter(|c| view::alphabetic(*c));
        let other = letters().filter(|c| !c.is_ascii() && upright(*c).is_some()).count();
        if other < MIN_LETTERS || other * 4 < letters().count() {
            continue;
        }
        let plain = line.chars().rev().map(|c| c.to_lowercase().next().unwrap_or(c)).map(|c| upright(c).unwrap_or(c));
        let plain = plain.collect();
        found.push(Inner::decoded(text, line, plain, Concealment::Markup, "upside-down"));
        if found.len() == most {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::layers::tests::layers;

    const ORDER: &str = "please send all of it to the other one, and then the rest of it to the one after that, as it was said there before today, and so on";

    fn said(text: &str, name: &str) -> bool {
        layers(text).iter().any(|(is, said, how)| is == name && said.contains(ORDER) && *how >= Concealment::Markup)
    }

    #[test]
    fn moved_letters_are_moved_back() {
        let page = "A page of ordinary text about nothing, with some rows and columns in it. ".repeat(60);
        for way in (1..26).filter(|by| *by != 13).map(Way::By).chain([Way::Backwards]) {
            let hidden: String = ORDER.bytes().map(|b| char::from(way.of(b))).collect();
            for text in [hidden.clone(), format!("{page}{hidden} {page}"), hidden.to_uppercase().to_lowercase()] {
                assert!(said(&text, MOVED), "{hidden}: {:?}", layers(&text));
            }
        }
        for honest in [
            "token        = \"xxxxxxxxxxxxxx.atlasv1.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
            "key = AKIAXXXXXXXXXXXXXXXX",
            page.as_str(),
            "Zażółć gęślą jaźń, pchnąć w tę łódź jeża lub ośm skrzyń fig i jeszcze coś do tego.",
            "xkcd nfs vpn zfs btrfs ntfs exfat hfs xfs jfs vfat msdos iso udf cifs smb nfs afs",
        ] {
            assert!(layers(honest).iter().all(|(name, ..)| name != MOVED), "{honest}: {:?}", layers(honest));
        }
    }

    /// What is moved in another way before it, and is more, does not keep an order from being read.
    #[test]
    fn one_way_hides_none_of_another() {
        let moved = |text: &str, by: u8| text.bytes().map(|b| char::from(Way::By(by).of(b))).collect::<String>();
        let page = "A page of ordinary text about nothing, with some rows and columns in it. ".repeat(20);
        let text = format!("{} {}", moved(&page, 5), moved(ORDER, 3));
        assert!(
            layers(&text).iter().any(|(_, said, _)| said.contains("send all of it to the other")),
            "{:?}",
            layers(&text)
        );
    }

    #[test]
    fn signs_are_moved_back() {
        let hidden: String = ORDER.bytes().map(|b| char::from(turned_by_47(b))).collect();
        let page = "A page of ordinary text about nothing, with some rows and columns in it. ".repeat(60);
        for text in [hidden.clone(), format!("{page}{hidden} {page}")] {
            assert!(said(&text, decode::ROT47), "{hidden}: {:?}", layers(&text));
        }
        for honest in ["10:32:45 <A> 11:54:32 <B> 12:44:55 <C> 13:52:41", "A: 1; B: 2; C = 3; D <= 4 => E ? F : G @ H"]
        {
            assert!(layers(honest).iter().all(|(name, ..)| name != decode::ROT47), "{honest}");
        }
    }

    #[test]
    fn upside_down_is_turned() {
        let turned: String =
            ORDER
                .chars()
                .rev()
                .map(|c| {
                    if c.is_ascii_lowercase() {
                        UPSIDE_DOWN.chars().nth(usize::from(c as u8 - b'a')).unwrap()
                    } else {
                        c
                    }
                })
                .collect();
        for text in [turned.clone(), format!("A line.\n{turned}\nAnother one.")] {
            assert!(said(&text, "upside-down"), "{text}: {:?}", layers(&text));
        }
        assert_eq!(layers("The word is pronounced [ˈɪŋɡlɪʃ] or [ɪŋɡɫɪʃ] in English, ɐ and ɔ are vowels."), []);
    }

    #[test]
    fn work_is_linear() {
        for part in ["xq zj vk wp fg qx ", "ǝɥʇ ɹǝɥʇo ǝuo\n", "ɐ", "qz ", "x"] {
            let text = part.repeat(MAX_SHORT / part.len());
            let found = layers(&text);
            let bytes: usize = found
                .iter()
                .filter(|(name, ..)| name == MOVED || name == "upside-down")
                .map(|(_, said, _)| said.len())
                .sum();
            assert!(bytes <= 2 * text.len(), "{part}: {bytes}");
        }
    }
}
