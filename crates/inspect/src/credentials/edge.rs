//! Where a word begins in a text that may be written with escapes: the last character of `\n`, of `%3D` or of a terminal's colour belongs
//! to no word, though it is a letter.

use super::plain::MAX_COLOUR;

/// Whether what ends a text goes on in a word that begins there: the text ends with a letter, a digit or `_` that is no part of an escape.
pub(super) fn within_word(before: &[u8]) -> bool {
    before.last().is_some_and(|last| last.is_ascii_alphanumeric() || *last == b'_') && !ends_with_escape(before)
}

/// Escapes of JSON, C and Python (`\n`, `\x1b`, `\u0022`), of addresses (`%3D`), and a terminal's colours (`[32m` behind their escape
/// in whatever form).
fn ends_with_escape(before: &[u8]) -> bool {
    let letter = matches!(before, [.., b'\\', b'n' | b'r' | b't' | b'f' | b'b' | b'v' | b'0']);
    let code = |mark: &[u8], digits: usize| {
        let split = before.len().checked_sub(digits).and_then(|at| before.split_at_checked(at));
        split.is_some_and(|(head, code)| head.ends_with(mark) && code.iter().all(u8::is_ascii_hexdigit))
    };
    letter || code(b"%", 2) || code(b"\\x", 2) || code(b"\\u", 4) || is_colour(before)
}

fn is_colour(before: &[u8]) -> bool {
    let Some(numbers) = before.strip_suffix(b"m") else { return false };
    let head = numbers.iter().rev().take(MAX_COLOUR).find(|b| !b.is_ascii_digit() && !matches!(b, b';' | b':'));
    head == Some(&b'[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_begins_behind_an_escape() {
        for before in [
            "",
            " ",
            "=",
            "\\n",
            "a\\r\\n",
            "\\\\n",
            "\\t",
            "\\u0022",
            "\\x1b",
            "?q=%3D",
            "\u{1b}[93m",
            "\\u001b[1;32m",
            "\\x1b[38:5:200m",
            "é",
        ] {
            assert!(!within_word(before.as_bytes()), "{before}");
        }
        for before in ["a", "7", "_", "n", "u0022", "\\q", "3D", "%G0", "32m", "[item", "\\u22"] {
            assert!(within_word(before.as_bytes()), "{before}");
        }
    }
}
