//! Other characters for those of ASCII: forms of letters, signs that stand for bytes or bits, and what nobody sees.

use std::{collections::HashMap, sync::LazyLock};

use unicode_normalization::char::decompose_compatible;
use wide::u8x16;

use super::{
    super::{Around, Budget, Encoding, around::AROUND},
    OnBytes, OnForm, bits, emit,
};
use crate::{lanes, view};

/// What letters in another form are called.
pub(crate) const LOOKALIKES: &str = "look-alikes";
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
    let beyond = || lanes::beyond(text);
    let (mut changed, mut letters, mut upside_down) = (0, lanes::count(text.as_bytes(), b' ', alphanumeric), false);
    let places = beyond().filter(|(_, c)| {
        let is = reading(*c, &mut |bytes| letters += bytes.iter().filter(|b| b.is_ascii_alphanumeric()).count());
        upside_down |= is && matches!(c, 'ɐ' | 'ǝ' | 'ɹ' | 'ʇ' | 'ɥ');
        changed += usize::from(is);
        is
    });
    if let Some(around) = Around::new(text.as_bytes(), AROUND, places.map(|(at, _)| at)) {
        // Where most of it was something else, somebody hid it; a few typographic signs stand in many texts.
        let hidden = changed * 3 >= letters && changed >= MIN_CODES;
        let how = if hidden { Encoding::Named(LOOKALIKES) } else { Encoding::Laid(LOOKALIKES) };
        let plain = around.decoded(plain);
        visit(&plain, how, hidden, all, budget);
        if upside_down {
            visit(&turned(&plain), Encoding::Named("upside down"), false, all, budget);
        }
    }
    let mut visit =
        |bytes: &[u8], how: Encoding, deeper: bool, budget: &mut Budget| visit(bytes, how, deeper, all, budget);
    let codes = || beyond().map(|(_, c)| u32::from(c)).filter(|c| *c >= 0x2000);
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
    of_characters(beyond().map(|(_, c)| c), budget, &mut visit);
}

fn alphanumeric(b: u8x16) -> u8x16 {
    lanes::within(b | u8x16::splat(0x20), b'a', b'z') | lanes::within(b, b'0', b'9')
}

/// Runs of two characters.
fn of_characters(text: impl Iterator<Item = char>, budget: &mut Budget, visit: OnBytes<'_>) {
    let mut row: Vec<char> = Vec::new();
    let mut two: [Option<char>; 2] = [None, None];
    for c in text {
        match two {
            [Some(a), _] if a == c => {}
            [_, Some(b)] if b == c => {}
            [None, _] => two[0] = Some(c),
            [_, None] => two[1] = Some(c),
            _ => {
                bits::of_two(&row, budget, visit);
                row.clear();
                two = [Some(c), None];
            }
        }
        row.push(c);
    }
    bits::of_two(&row, budget, visit);
}

/// ASCII for every character that looks like it or is it in another form, without what is not seen.
fn plain(stretch: &[u8], out: &mut Vec<u8>) {
    // A character may be cut where a run of them is too long.
    for c in String::from_utf8_lossy(stretch).chars() {
        if c.is_ascii() {
            out.push(c as u8);
        } else {
            reading(c, &mut |bytes| out.extend_from_slice(bytes));
        }
    }
}

/// What a character beyond ASCII is read as. Whether that is something else.
fn reading(c: char, add: &mut dyn FnMut(&[u8])) -> bool {
    let code = u32::from(c);
    let from = |first: u32| u8::try_from(code - first).ok().map(|n| b'a' + n);
    let known = match code {
        0x1F150..=0x1F169 => from(0x1F150),
        0x1F170..=0x1F189 => from(0x1F170),
        0x1F1E6..=0x1F1FF => from(0x1F1E6),
        _ => capital(c)
            .or_else(|| c.to_lowercase().next().and_then(view::alike))
            .or_else(|| FORMS_OF.get(&c).copied())
            .and_then(|c| u8::try_from(c).ok()),
    };
    if let Some(b) = known {
        add(&[b]);
        return true;
    }
    if view::invisible(c) || matches!(code, 0x300..=0x36F | 0x20D0..=0x20FF) {
        return true;
    }
    let mut any = false;
    decompose_compatible(c, |d| {
        if d.is_ascii() {
            add(&[d as u8]);
            any = true;
        } else if let Some(b) = d.to_lowercase().next().and_then(view::alike) {
            add(&[b as u8]);
            any = true;
        } else if !matches!(u32::from(d), 0x300..=0x36F) {
            add(d.encode_utf8(&mut [0; 4]).as_bytes());
        }
    });
    any
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

static FORMS_OF: LazyLock<HashMap<char, char>> =
    LazyLock::new(|| FORMS.chars().zip(FORMS.chars().skip(1)).step_by(2).collect());
