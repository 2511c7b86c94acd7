//! What letters become in the normalised form, and what Latin letters they look like.

use std::sync::OnceLock;

use unicode_normalization::char::decompose_compatible;

/// What becomes of a letter of two bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Letter {
    /// One letter of two bytes, or one of ASCII and zero.
    pub(super) bytes: [u8; 2],
    /// The bit of its script ([`script_alike`]), if it looks like a Latin one.
    pub(super) alike: u8,
}

impl Letter {
    /// It needs more than a look into a table.
    pub(super) const NONE: Self = Self { bytes: [0; 2], alike: 0 };

    fn of(c: char) -> Self {
        if let Some(ascii) = shaped(c) {
            return Self { bytes: [ascii as u8, 0], alike: 0 };
        }
        let mut all = String::new();
        decompose_compatible(c, |d| all.extend(d.to_lowercase().filter(|_| !('\u{300}'..='\u{36F}').contains(&d))));
        let mut letters = all.chars();
        let (Some(one), None) = (letters.next(), letters.next()) else { return Self::NONE };
        match all.as_bytes() {
            _ if !one.is_alphanumeric() || invisible(c) => Self::NONE,
            [ascii] => Self { bytes: [*ascii, 0], alike: 0 },
            [first, second] => Self { bytes: [*first, *second], alike: script_alike(one) },
            _ => Self::NONE,
        }
    }
}

/// For the letters of two bytes (Latin ones with accents, Greek, Cyrillic, Hebrew, Arabic …), by their number.
pub(super) fn letters_of_two() -> &'static [Letter; 0x800] {
    static LETTERS: OnceLock<Box<[Letter; 0x800]>> = OnceLock::new();
    LETTERS.get_or_init(|| {
        let mut all = Box::new([Letter::NONE; 0x800]);
        ('\0'..'\u{800}').zip(all.iter_mut()).for_each(|(c, letter)| *letter = Letter::of(c));
        all
    })
}

/// What holds of each character of the basic plane, found out for 256 of them when one of these is first met: the library looks through a
/// list each time, which takes longer than all else that is done to a letter here.
struct Plane {
    holds: fn(char) -> bool,
    rows: [OnceLock<[u64; 4]>; 256],
}

impl Plane {
    const fn of(holds: fn(char) -> bool) -> Self {
        Self { holds, rows: [const { OnceLock::new() }; 256] }
    }

    #[inline]
    fn has(&self, c: char) -> bool {
        let number = c as usize;
        let Some(row) = self.rows.get(number >> 8) else { return (self.holds)(c) };
        let bits = row.get_or_init(|| self.row(number as u32 & !0xFF));
        bits.get(number >> 6 & 3).is_some_and(|bits| bits >> (number & 63) & 1 == 1)
    }

    #[cold]
    fn row(&self, first: u32) -> [u64; 4] {
        let mut row = [0; 4];
        for (bits, first) in row.iter_mut().zip((first..).step_by(64)) {
            let held = (0..64).filter(|bit| char::from_u32(first + bit).is_some_and(self.holds));
            *bits = held.fold(0, |bits, bit| bits | 1 << bit);
        }
        row
    }
}

/// [`char::is_alphabetic`].
#[inline]
pub(crate) fn alphabetic(c: char) -> bool {
    static LETTERS: Plane = Plane::of(char::is_alphabetic);
    LETTERS.has(c)
}

/// [`char::is_alphanumeric`].
#[inline]
pub(crate) fn alphanumeric(c: char) -> bool {
    static BOTH: Plane = Plane::of(char::is_alphanumeric);
    BOTH.has(c)
}

/// Whether [`char::to_lowercase`] gives something else.
#[inline]
pub(super) fn capital(c: char) -> bool {
    static CAPITALS: Plane = Plane::of(|c| c.to_lowercase().ne([c]));
    CAPITALS.has(c)
}

/// Characters without a shape of their own (Default_Ignorable_Code_Point, UAX #44, and the byte-order mark).
pub(crate) fn invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

/// The ASCII letter that is drawn in another shape and that Unicode does not decompose into it: small capitals, white letters in black
/// circles and squares, letters in parentheses, those that flags are made of, and Braille.
pub(crate) fn shaped(c: char) -> Option<char> {
    /// Braille letters in their order (ISO 11548-1), of which each is a pattern of dots from U+2800 on.
    const BRAILLE: [u8; 26] =
        [1, 3, 9, 25, 17, 11, 27, 19, 10, 26, 5, 7, 13, 29, 21, 15, 31, 23, 14, 30, 37, 39, 58, 45, 61, 53];
    /// From the letters for a to those for z.
    const OTHERS: [u32; 4] = [0x1F150, 0x1F170, 0x249C, 0x1F1E6];
    Some(match c {
        'ᴀ' => 'a',
        'ʙ' => 'b',
        'ᴄ' => 'c',
        'ᴅ' => 'd',
        'ᴇ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'ʜ' => 'h',
        'ɪ' => 'i',
        'ᴊ' => 'j',
        'ᴋ' => 'k',
        'ʟ' => 'l',
        'ᴍ' => 'm',
        'ɴ' => 'n',
        'ᴏ' => 'o',
        'ᴘ' => 'p',
        'ꞯ' => 'q',
        'ʀ' => 'r',
        'ꜱ' => 's',
        'ᴛ' => 't',
        'ᴜ' => 'u',
        'ᴠ' => 'v',
        'ᴡ' => 'w',
        'ʏ' => 'y',
        'ᴢ' => 'z',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{283F}' => {
            let dots = (u32::from(c) - 0x2800) as u8;
            char::from(b'a' + BRAILLE.iter().position(|letter| *letter == dots)? as u8)
        }
        _ => {
            let of = |first: &u32| u32::from(c).checked_sub(*first).filter(|number| *number < 26);
            let number = OTHERS.iter().find_map(of)?;
            char::from(b'a' + number as u8)
        }
    })
}

/// The Latin letter that one of another script looks like (a selection of UTS #39 `confusables.txt`).
pub(crate) fn alike(c: char) -> Option<char> {
    Some(match c {
        'α' | 'а' | 'ᗅ' | 'ꓮ' | 'ꭺ' | 'ɑ' => 'a',
        'ƅ' | 'β' | 'в' | 'ь' | 'ᏼ' | 'ᑲ' | 'ᖯ' | 'ᗷ' | 'ꓐ' | 'ꞵ' | 'ꮟ' => 'b',
        'с' | 'ϲ' | 'ⲥ' | 'ꓚ' | 'ꮯ' => 'c',
        'ԁ' | 'ᑯ' | 'ᗞ' | 'ᗪ' | 'ꓒ' | 'ꓓ' | 'ꭰ' | 'ꮷ' => 'd',
        'ε' | 'е' | 'ҽ' | 'ꓰ' | 'ꬲ' | 'ꭼ' => 'e',
        'ϝ' | 'ք' | 'ᖴ' | 'ẝ' | 'ꓝ' | 'ꞙ' | 'ꬵ' => 'f',
        'ɡ' | 'ԍ' | 'ց' | 'ᏻ' | 'ꓖ' | 'ꮐ' => 'g',
        'н' | 'һ' | 'հ' | 'ᕼ' | 'ⲏ' | 'ꓧ' | 'ꮋ' | 'ꮒ' => 'h',
        'ı' | 'ι' | 'і' | 'ꙇ' | 'ꭵ' | 'ɩ' => 'i',
        'ј' | 'ᒍ' | 'ꓙ' | 'ꭻ' => 'j',
        'κ' | 'к' | 'ⲕ' | 'ꓗ' | 'ꮶ' => 'k',
        'ӏ' | 'ⅼ' | 'ᒪ' | 'ⲓ' | 'ⳑ' | 'ꓡ' | 'ꓲ' | 'ꮮ' => 'l',
        'м' | 'ϻ' | 'ᗰ' | 'ⲙ' | 'ꓟ' | 'ꮇ' => 'm',
        'ո' | 'η' | 'ռ' | 'ⲛ' | 'ꓠ' => 'n',
        'о' | 'ο' | 'օ' | 'σ' | 'ᴑ' | 'ⲟ' | 'ꓳ' | 'ꬽ' => 'o',
        'р' | 'ρ' | 'ᑭ' | 'ⲣ' | 'ꓑ' | 'ꮲ' => 'p',
        'ԛ' | 'գ' | 'զ' => 'q',
        'г' | 'ᖇ' | 'ᴦ' | 'ⲅ' | 'ꓣ' | 'ꭇ' | 'ꭈ' | 'ꭱ' | 'ꮁ' | 'ꮢ' => 'r',
        'ѕ' | 'ƽ' | 'տ' | 'ꓢ' | 'ꮥ' | 'ꮪ' => 's',
        'т' | 'τ' | 'ⲧ' | 'ꓔ' | 'ꭲ' => 't',
        'υ' | 'ս' | 'ᑌ' | 'ꓴ' | 'ꞟ' | 'ꭎ' | 'ꭒ' => 'u',
        'ν' | 'ѵ' | 'ᐯ' | 'ꓦ' | 'ꛟ' | 'ꮩ' => 'v',
        'ω' | 'ԝ' | 'ѡ' | 'ա' | 'ꓪ' | 'ꮃ' | 'ꮤ' => 'w',
        'х' | 'χ' | 'ᕁ' | 'ᕽ' | 'ⲭ' | 'ꓫ' | 'ꭓ' => 'x',
        'у' | 'γ' | 'ү' | 'ỿ' | 'ⲩ' | 'ꓬ' | 'ꭚ' | 'ꭹ' | 'ꮍ' => 'y',
        'ꓜ' | 'ꮓ' => 'z',
        _ => return None,
    })
}

/// Which script a letter is of that looks like a Latin one, as a bit (Greek, Cyrillic, Armenian, Cherokee, Canadian, Coptic, Lisu, others);
/// none for other letters.
pub(super) fn script_alike(c: char) -> u8 {
    match c {
        _ if alike(c).is_none() => 0,
        '\u{370}'..='\u{3FF}' => 1,
        '\u{400}'..='\u{52F}' => 2,
        '\u{530}'..='\u{58F}' => 4,
        '\u{13A0}'..='\u{13FF}' | '\u{AB70}'..='\u{ABBF}' => 8,
        '\u{1400}'..='\u{167F}' => 16,
        '\u{2C80}'..='\u{2CFF}' => 32,
        '\u{A4D0}'..='\u{A4FF}' => 64,
        _ => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_library() {
        for c in '\0'..=char::MAX {
            assert_eq!((alphabetic(c), alphanumeric(c)), (c.is_alphabetic(), c.is_alphanumeric()), "{c:?}");
            assert_eq!(capital(c), c.to_lowercase().to_string() != c.to_string(), "{c:?}");
        }
    }
}
