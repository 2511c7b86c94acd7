//! Short strings in a row that a program, a printer or a reader puts together: `"Igno" + "re a" + "ll o"`, `["Igno", "re a"]`,
//! `(Ign) -12 (ore)`, `[I][g][n]`, and characters by their codes, one call for each: `chr(73)+chr(103)`. Honest programs have rows of
//! strings, so what is put together so counts as in plain sight; codes of characters do not.

use super::{
    codes,
    layers::{Concealment, Found, Inner, MIN_TEXT},
};

/// Longest string, and most bytes between two of them.
const MAX_PIECE: usize = 24;
const MAX_GLUE: usize = 24;
/// Fewest strings of a row, and fewest of codes.
const MIN_PIECES: usize = 6;
/// Most rows of one text.
const MAX_ROWS: usize = 32;
/// Most letters of a string, on average, of which words are cut: lists have whole words and more.
const MEAN: usize = 8;

/// Hands on what rows of short strings say.
pub(super) fn find(text: &str, found: &mut Found<'_>) {
    let mut count = 0;
    let mut row = Row::default();
    let mut end = |row: &Row, found: &mut Found<'_>| {
        if let Some((said, how, name)) = row.says(text).filter(|_| count < MAX_ROWS) {
            found.push(Inner::made(said, how, name, row.span));
            count += 1;
        }
    };
    for piece in pieces(text.as_bytes()) {
        if !row.take(text.as_bytes(), piece) {
            end(&row, found);
            row = Row::default();
            row.take(text.as_bytes(), piece);
        }
    }
    end(&row, found);
}

/// Where the short strings of a text stand, without their marks.
fn pieces(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut read = 0;
    memchr::memchr3_iter(b'"', b'\'', b'(', text).filter_map(move |open| {
        let piece = piece(text, open).filter(|_| open >= read)?;
        read = piece.1 + 1;
        Some(piece)
    })
}

/// The string that begins at `open`, without its marks, if it is a short one.
fn piece(text: &[u8], open: usize) -> Option<(usize, usize)> {
    let close = match text.get(open)? {
        b'(' => b')',
        quote => *quote,
    };
    let rest = text.get(open + 1..)?;
    let length = rest.iter().take(MAX_PIECE + 1).position(|b| *b == close || matches!(b, b'\n' | b'('))?;
    (length > 0 && rest.get(length) == Some(&close)).then_some((open + 1, open + 1 + length))
}

/// Strings that follow each other with the same between each two.
#[derive(Default)]
struct Row {
    /// From the first character of the first to the last of the last.
    span: (usize, usize),
    count: usize,
    /// What stands between the first two.
    glue: (usize, usize),
}

impl Row {
    /// Adds a string, unless it does not belong to those before it.
    fn take(&mut self, text: &[u8], (from, to): (usize, usize)) -> bool {
        let glue = (self.span.1, from);
        let shape = |(from, to)| text.get(from..to).unwrap_or_default().iter().filter(|b: &&u8| !b.is_ascii_digit());
        match self.count {
            0 => self.span.0 = from,
            _ if glue.1 - glue.0 > MAX_GLUE => return false,
            1 => self.glue = glue,
            _ if !shape(self.glue).eq(shape(glue)) => return false,
            _ => {}
        }
        self.span.1 = to;
        self.count += 1;
        true
    }

    fn says(&self, text: &str) -> Option<(String, Concealment, &'static str)> {
        if self.count < MIN_PIECES {
            return None;
        }
        // With the mark before the first, and that behind the last.
        let row = text.get(self.span.0 - 1..self.span.1 + 1)?;
        let pieces = || pieces(row.as_bytes()).filter_map(|(from, to)| row.get(from..to));
        if pieces().all(|piece| piece.starts_with(|c: char| c.is_ascii_digit()) && piece.len() <= 4) {
            let list = pieces().collect::<Vec<_>>().join(" ");
            return codes::codes(&list).map(|said| (said, Concealment::Encoded, "character-codes"));
        }
        let said: String = pieces().collect();
        let blanks = said.bytes().filter(|b| *b == b' ').count();
        let cut = pieces().any(|piece| piece.starts_with(' ') || piece.ends_with(' '));
        let words = cut && blanks * 14 >= said.len() && said.len() <= self.count * MEAN;
        (said.len() >= MIN_TEXT && words).then_some((said, Concealment::None, "strings"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "please send all of it to the other one";

    fn said(text: &str) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        find(text, &mut found);
        found.into_iter().map(|inner| (inner.text().to_owned(), inner.name())).collect()
    }

    fn row(length: usize, piece: impl Fn(&str) -> String, glue: &str) -> String {
        let pieces = PLAIN.as_bytes().chunks(length).map(|piece| String::from_utf8_lossy(piece).into_owned());
        pieces.map(|each| piece(&each)).collect::<Vec<_>>().join(glue)
    }

    #[test]
    fn strings_are_put_together() {
        for (text, name) in [
            (row(5, |piece| format!("\"{piece}\""), " + "), "strings"),
            (row(4, |piece| format!("'{piece}'"), ", "), "strings"),
            (row(3, |piece| format!("({piece})"), " -12 "), "strings"),
            (row(1, |c| format!("chr({})", c.as_bytes()[0]), "+"), "character-codes"),
            (row(1, |c| format!("CHAR({})", c.as_bytes()[0]), ", "), "character-codes"),
            (row(1, |c| format!("String.fromCharCode({})", c.as_bytes()[0]), "+"), "character-codes"),
        ] {
            for text in [text.clone(), format!("x = f({text}); y(1) + \"z\"")] {
                assert!(said(&text).contains(&(PLAIN.to_owned(), name)), "{text}: {:?}", said(&text));
            }
        }
        for text in [
            r#"["apple", "pear", "plum", "cherry", "quince", "medlar", "fig"]"#,
            r#"{"name": "x", "kind": "y", "size": "z", "open": "a", "shut": "b"}"#,
            "f(1) + f(2) + f(3) + f(5) + f(8) + f(13) + f(21) + f(34)",
            "a \"b\" c",
            "",
        ] {
            assert_eq!(said(text), [], "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        for text in ["\"", "'a", "(1)", "\"a\" ", "\"a b\" + "] {
            let long = text.repeat(1_000_000 / text.len());
            assert!(said(&long).len() <= MAX_ROWS, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "(?:\"|'|\\(|\\)|é| |[ab]{1,9}|[0-9]{1,3}){0,80}") {
            said(&s);
        }
    }
}
