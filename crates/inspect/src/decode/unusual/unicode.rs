//! Other characters for those of ASCII: forms of letters, signs that stand for bytes or bits, and what nobody sees.

use unicode_normalization::char::decompose_compatible;

use super::{
    super::{Budget, Encoding},
    OnBytes, OnForm, codes, emit,
};
use crate::view;

/// What letters in another form are called.
const LOOKALIKES: &str = "look-alikes";
/// Fewest characters that stand for bytes.
const MIN_CODES: usize = 8;

/// Pairs of a character and the letter that it stands for: what has no compatibility form. Small capitals, letters upside down, Braille.
const FORMS: &str = "ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢzɐaɔcǝeɟfƃgɥhᴉiɾjʞkןlɯmɹrʇtʌvʍwʎyⱯA\
    ⠁a⠃b⠉c⠙d⠑e⠋f⠛g⠓h⠊i⠚j⠅k⠇l⠍m⠝n⠕o⠏p⠟q⠗r⠎s⠞t⠥u⠧v⠺w⠭x⠽y⠵z";

/// Every reading of a text that is not all ASCII.
pub(super) fn each(text: &str, budget: &mut Budget, visit: OnForm<'_>) {
    if !budget.take(text.len() * 2) {
        return;
    }
    let all = (0, text.len());
    let (plain, changed) = plain(text);
    if changed > 0 {
        // Where most of it was something else, somebody hid it; a few typographic signs stand in many texts.
        let letters = plain.iter().filter(|b| b.is_ascii_alphanumeric()).count();
        let hidden = changed * 3 >= letters && changed >= MIN_CODES;
        let how = if hidden { Encoding::Named(LOOKALIKES) } else { Encoding::Laid(LOOKALIKES) };
        visit(&plain, how, hidden, all, budget);
        if text.contains(['ɐ', 'ǝ', 'ɹ', 'ʇ', 'ɥ']) {
            visit(&turned(&plain), Encoding::Named("upside down"), false, all, budget);
        }
    }
    let mut visit =
        |bytes: &[u8], how: Encoding, deeper: bool, budget: &mut Budget| visit(bytes, how, deeper, all, budget);
    let codes = || text.chars().map(u32::from).filter(|c| *c >= 0x2000);
    if codes().nth(MIN_CODES - 1).is_none() {
        return;
    }
    let low = |c: u32| match c {
        // Variation selectors go on elsewhere after sixteen.
        0xFE00..=0xFE0F => c as u8 & 15,
        0xE0100..=0xE01EF => (c as u8).wrapping_add(16),
        _ => c as u8,
    };
    let bytes: Vec<u8> = codes().map(low).collect();
    if !emit(&bytes, "code points", budget, &mut visit) {
        // A sign before them, or one for all sixteen.
        emit(bytes.get(1..).unwrap_or_default(), "code points", budget, &mut visit);
    }
    bits(text, budget, &mut visit);
}

/// Runs of two characters.
fn bits(text: &str, budget: &mut Budget, visit: OnBytes<'_>) {
    let mut row: Vec<char> = Vec::new();
    let mut two: [Option<char>; 2] = [None, None];
    for c in text.chars().filter(|c| !c.is_ascii()) {
        match two {
            [Some(a), _] if a == c => {}
            [_, Some(b)] if b == c => {}
            [None, _] => two[0] = Some(c),
            [_, None] => two[1] = Some(c),
            _ => {
                codes::of_two(&row, budget, visit);
                row.clear();
                two = [Some(c), None];
            }
        }
        row.push(c);
    }
    codes::of_two(&row, budget, visit);
}

/// ASCII for every character that looks like it or is it in another form, without what is not seen; and how many there were.
fn plain(text: &str) -> (Vec<u8>, usize) {
    let (mut out, mut changed) = (Vec::with_capacity(text.len()), 0);
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c as u8);
            continue;
        }
        let code = u32::from(c);
        let from = |first: u32| u8::try_from(code - first).ok().map(|n| b'a' + n);
        let known = match code {
            0x1F150..=0x1F169 => from(0x1F150),
            0x1F170..=0x1F189 => from(0x1F170),
            0x1F1E6..=0x1F1FF => from(0x1F1E6),
            _ => capital(c)
                .or_else(|| c.to_lowercase().next().and_then(view::alike))
                .or_else(|| form(c))
                .and_then(|c| u8::try_from(c).ok()),
        };
        if let Some(b) = known {
            out.push(b);
            changed += 1;
        } else if view::invisible(c) || matches!(code, 0x300..=0x36F | 0x20D0..=0x20FF) {
            changed += 1;
        } else {
            let mut any = false;
            decompose_compatible(c, |d| {
                if d.is_ascii() {
                    out.push(d as u8);
                    any = true;
                } else if let Some(b) = d.to_lowercase().next().and_then(view::alike) {
                    out.push(b as u8);
                    any = true;
                } else if !matches!(u32::from(d), 0x300..=0x36F) {
                    out.extend_from_slice(d.encode_utf8(&mut [0; 4]).as_bytes());
                }
            });
            changed += usize::from(any);
        }
    }
    (out, changed)
}

/// Capitals that look like another letter than their small form does.
fn capital(c: char) -> Option<char> {
    Some(match c {
        'Ζ' => 'z',
        'Η' => 'h',
        'Ν' => 'n',
        'Υ' => 'y',
        'Μ' => 'm',
        _ => return None,
    })
}

/// Letters of ASCII that are others upside down.
fn turned(plain: &[u8]) -> Vec<u8> {
    let turned = |b: &u8| match *b {
        b'b' => b'q',
        b'q' => b'b',
        b'd' => b'p',
        b'p' => b'd',
        b'n' => b'u',
        b'u' => b'n',
        _ => *b,
    };
    plain.iter().rev().map(turned).collect()
}

fn form(c: char) -> Option<char> {
    let mut pairs = FORMS.chars();
    while let (Some(form), Some(letter)) = (pairs.next(), pairs.next()) {
        if form == c {
            return Some(letter);
        }
    }
    None
}
