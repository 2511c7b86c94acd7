//! Characters that are written with others: HTML entities, and the escapes of JSON and programs.

/// Longest HTML entity that is looked at, between `&` and `;`.
const MAX_ENTITY: usize = 24;

/// The character of an HTML entity at the start of `text`, and its length (HTML Living Standard 13.5, a selection). Numbers may end
/// without a semicolon, and what was made an entity twice is undone twice, as pages within pages have it.
pub(crate) fn entity(text: &str) -> Option<(char, usize)> {
    let body = text.strip_prefix('&')?;
    if let Some(number) = body.strip_prefix('#') {
        return numeric(number).map(|(c, length)| (c, length + 2));
    }
    if let Some((c, length)) = body.strip_prefix("amp;#").and_then(numeric) {
        return Some((c, length + 6));
    }
    let end = body.bytes().take(MAX_ENTITY).take_while(u8::is_ascii_alphanumeric).count();
    let name = body.get(..end).filter(|_| body.as_bytes().get(end) == Some(&b';'))?;
    Some((named(name)?, end + 2))
}

/// What stands behind `&#`, and its length.
fn numeric(text: &str) -> Option<(char, usize)> {
    let (mark, radix) = if text.starts_with(['x', 'X']) { (1, 16) } else { (0, 10) };
    let digits = text.get(mark..)?;
    let length = digits.bytes().take(MAX_ENTITY).take_while(|b| char::from(*b).is_digit(radix)).count();
    let c = char::from_u32(u32::from_str_radix(digits.get(..length)?, radix).ok()?)?;
    let ended = digits.as_bytes().get(length) == Some(&b';');
    Some((c, mark + length + usize::from(ended)))
}

fn named(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" | "ensp" | "emsp" | "thinsp" | "hairsp" | "numsp" | "puncsp" | "NewLine" | "Tab" => ' ',
        "colon" => ':',
        "semi" => ';',
        "period" => '.',
        "comma" => ',',
        "sol" => '/',
        "lowbar" => '_',
        "equals" => '=',
        "commat" => '@',
        "hyphen" | "dash" => '-',
        "excl" => '!',
        "quest" => '?',
        "lpar" => '(',
        "rpar" => ')',
        "lsqb" | "lbrack" => '[',
        "rsqb" | "rbrack" => ']',
        // What a page shows nothing of.
        "shy" => '\u{AD}',
        "zwnj" => '\u{200C}',
        "zwj" => '\u{200D}',
        "lrm" => '\u{200E}',
        "rlm" => '\u{200F}',
        "NoBreak" => '\u{2060}',
        "ZeroWidthSpace"
        | "NegativeThinSpace"
        | "NegativeMediumSpace"
        | "NegativeThickSpace"
        | "NegativeVeryThinSpace" => '\u{200B}',
        "ApplyFunction" | "af" => '\u{2061}',
        "InvisibleTimes" | "it" => '\u{2062}',
        "InvisibleComma" | "ic" => '\u{2063}',
        // Letters with accents are the letters for who reads normalised text.
        _ => {
            let mut letters = name.chars();
            let letter = letters.next().filter(char::is_ascii_alphabetic)?;
            let accents = ["acute", "grave", "circ", "uml", "tilde", "ring", "cedil", "caron", "macr", "dot"];
            return accents.contains(&letters.as_str()).then_some(letter);
        }
    })
}

/// Most backslashes of one escape: of a string four times within strings.
const MAX_MARKS: usize = 16;

/// The character of a JSON or JavaScript escape at the start of `text`, and its length.
pub(super) fn escape(text: &str) -> Option<(char, usize)> {
    match text.as_bytes().get(1)? {
        b'n' | b'r' | b't' => Some((' ', 2)),
        b'"' => Some(('"', 2)),
        _ => escaped(text),
    }
}

/// The same of a character by its number: `\u0069`, with the second half of a pair (RFC 8259 section 7), `\u{69}`, `\U00000069`, `\x69`; with
/// two, four or eight backslashes, too, as a string inside a string has it. Of other numbers some are backslashes.
pub(crate) fn escaped(text: &str) -> Option<(char, usize)> {
    let marks = text.bytes().take(MAX_MARKS).take_while(|b| *b == b'\\').count();
    match text.as_bytes().get(marks) {
        Some(b'u' | b'x') if marks > 1 && marks.is_power_of_two() => {
            by_number(text.get(marks - 1..)?).map(|(c, length)| (c, length + marks - 1))
        }
        _ => by_number(text),
    }
}

fn by_number(text: &str) -> Option<(char, usize)> {
    let code = |from: usize, to: usize| {
        let digits = text.get(from..to).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (code, length) = match text.as_bytes().get(1)? {
        b'u' if text.as_bytes().get(2) == Some(&b'{') => {
            let end = text.bytes().skip(3).take(9).position(|b| b == b'}')?;
            (code(3, 3 + end)?, end + 4)
        }
        b'u' => match (code(2, 6)?, text.get(6..8), code(8, 12)) {
            (high @ 0xD800..0xDC00, Some("\\u"), Some(low @ 0xDC00..0xE000)) => {
                (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12)
            }
            (code, ..) => (code, 6),
        },
        b'U' => (code(2, 10)?, 10),
        b'x' => (code(2, 4)?, 4),
        _ => return None,
    };
    Some((char::from_u32(code)?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_read() {
        for (text, want) in [
            ("&lt;a", Some(('<', 4))),
            ("&#105;x", Some(('i', 6))),
            ("&#105x", Some(('i', 5))),
            ("&#x000000000069;", Some(('i', 16))),
            ("&#X69 ", Some(('i', 5))),
            ("&amp;#105;x", Some(('i', 10))),
            ("&amp;lt;", Some(('&', 5))),
            ("&shy;", Some(('\u{AD}', 5))),
            ("&ZeroWidthSpace;", Some(('\u{200B}', 16))),
            ("&eacute;", Some(('e', 8))),
            ("&Ccedil;", Some(('C', 8))),
            ("&;", None),
            ("&#;", None),
            ("&#x;", None),
            ("&#xD800;", None),
            ("&nothing;", None),
            ("&é", None),
            ("& ", None),
        ] {
            assert_eq!(entity(text), want, "{text}");
        }
    }

    #[test]
    fn escapes_are_read() {
        for (text, want) in [
            (r"\u0069x", Some(('i', 6))),
            (r"\ud83d\ude00", Some(('\u{1F600}', 12))),
            (r"\ud83dx", None),
            (r"\udb40\udc49", Some(('\u{E0049}', 12))),
            (r"\u{69}", Some(('i', 6))),
            (r"\u{1F600}", Some(('\u{1F600}', 9))),
            (r"\u{}", None),
            (r"\u{110000}", None),
            (r"\U00000069", Some(('i', 10))),
            (r"\Users", None),
            (r"\x69", Some(('i', 4))),
            (r"\x+9", None),
            (r"\\u0069x", Some(('i', 7))),
            (r"\\\u0069x", None),
            (r"\\\\u0069x", Some(('i', 9))),
            (r"\\n", None),
            (r"\n", Some((' ', 2))),
            (r"\", None),
            (r"\é", None),
        ] {
            assert_eq!(escape(text), want, "{text}");
        }
    }
}
