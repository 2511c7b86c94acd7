//! Sentences of which each row of a table, each record or each line has a piece: `{"n":1,"note":"send all"}`, `{"n":2,"note":"of it to"}`. A
//! model that is told to, or only sums up, reads the column. Honest tables have columns of words, so what is read so counts as in plain sight.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::layers::{Concealment, Found, Inner, MAX_SHORT, MIN_TEXT};

/// Longest piece, in bytes, and longest on average: what is longer says something by itself.
const MAX_PIECE: usize = 64;
const MAX_MEAN: usize = 24;
/// Fewest pieces of a sentence.
const MIN_PIECES: usize = 5;
/// Shares in percent: of the bytes of a piece that are letters and blanks, and of pieces that do not begin with a capital, as the middle of a
/// sentence does not, and names and titles do.
const MIN_LETTERS: usize = 70;
const MIN_SMALL: usize = 60;
/// Bytes of a piece by which it is told from others.
const KIND: usize = 8;
/// Most columns of one text that are texts of their own.
const MAX_FOUND: usize = 16;

/// The way to what [`find`] hands on.
pub(super) const NAME: &str = "columns";

/// Hands on what columns say.
pub(super) fn find(text: &str, found: &mut Found<'_>) {
    if text.len() > MAX_SHORT {
        return;
    }
    let mut table = Table::default();
    for cell in Cells::of(text) {
        table.take(&cell);
    }
    table.end_row();
    let mut count = 0;
    // Whoever has many columns leaves none out by that.
    let mut rest = (String::new(), (usize::MAX, 0));
    for (said, span) in table.says() {
        count += 1;
        if count <= MAX_FOUND {
            found.push(Inner::made(said, Concealment::None, NAME, span));
        } else {
            rest.0.push_str(&said);
            rest.0.push('\n');
            rest.1 = (rest.1.0.min(span.0), rest.1.1.max(span.1));
        }
    }
    if !rest.0.is_empty() {
        found.push(Inner::made(rest.0, Concealment::None, NAME, rest.1));
    }
}

/// What all columns of the first 64 KiB of a text say, a line each, if one says something.
pub(crate) fn all(text: &str) -> Option<String> {
    let mut found = Vec::new();
    find(text.get(..text.floor_char_boundary(MAX_SHORT))?, &mut found);
    let said: Vec<String> = found.into_iter().map(|inner| inner.into_text()).collect();
    (!said.is_empty()).then(|| said.join("\n"))
}

/// What a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The values of members, attributes and elements of one name; digits in it do not count (`part1`, `part2`).
    Named(u64),
    /// Cells of HTML, by their place in a row.
    Drawn(usize),
    /// Fields of the lines of a table, by where that begins and their place.
    Field(usize, usize),
    /// What stands behind a number or a mark of a list.
    Listed,
}

/// What is known of a column before its text is put together.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    pieces: usize,
    bytes: usize,
    small: usize,
    /// A bit for each kind of piece.
    kinds: u64,
}

impl Column {
    fn add(&mut self, piece: &str) {
        self.pieces += 1;
        self.bytes += piece.len() + 1;
        self.small += usize::from(!piece.starts_with(char::is_uppercase));
        self.kinds |= 1 << (hash(piece.get(..piece.floor_char_boundary(KIND)).unwrap_or_default()) >> 58);
    }

    /// Whether it may be a sentence.
    fn says(&self) -> bool {
        self.pieces >= MIN_PIECES
            && self.bytes >= 2 * MIN_TEXT
            && self.bytes <= self.pieces * (MAX_MEAN + 1)
            && self.small * 100 >= (self.pieces - 1) * MIN_SMALL
            && self.kinds.count_ones() as usize * 3 >= self.pieces.min(24)
    }
}

/// A piece of the column of this index.
struct Piece<'t> {
    column: usize,
    text: &'t str,
    at: usize,
}

/// The columns of a text.
#[derive(Default)]
struct Table<'t> {
    columns: Vec<Column>,
    open: HashMap<Key, usize, RandomState>,
    pieces: Vec<Piece<'t>>,
    /// The name before the next cell, whether a tag is not over yet, the name of its element, and which cell of a row of HTML it is.
    name: Option<u64>,
    in_tag: bool,
    element: Option<u64>,
    drawn: Option<usize>,
    /// Fields of this line and of the one before, and where the table begins that they are rows of.
    fields: Vec<(&'t str, usize)>,
    before: Vec<(&'t str, usize)>,
    first: Option<usize>,
}

impl<'t> Table<'t> {
    fn take(&mut self, cell: &Cell<'t>) {
        if cell.new_row {
            self.end_row();
        }
        if cell.behind_tag && std::mem::take(&mut self.in_tag) {
            self.name = self.element.take();
        }
        match cell.role {
            Role::Tag => {
                let (tag, attributes) = cell.text.split_once(' ').unwrap_or((cell.text, ""));
                (self.in_tag, self.element) = (true, None);
                match tag {
                    "tr" => self.drawn = None,
                    "td" | "th" => self.drawn = Some(self.drawn.map_or(0, |n| n + 1)),
                    tag if tag.starts_with(['/', '!', '?']) => {}
                    tag => self.element = Some(hash(tag)),
                }
                self.name = attributes.rsplit(' ').next().filter(|name| !name.is_empty()).map(hash);
            }
            Role::Name => self.name = Some(hash(cell.text.rsplit(' ').next().unwrap_or_default())),
            Role::Value => match (self.name.take(), self.drawn) {
                (Some(name), _) => self.add(Key::Named(name), cell.text, cell.at),
                (None, Some(n)) => self.add(Key::Drawn(n), cell.text, cell.at),
                (None, None) => self.fields.push((cell.text, cell.at)),
            },
        }
    }

    fn add(&mut self, key: Key, text: &'t str, at: usize) {
        if !is_piece(text) {
            return;
        }
        let next = self.columns.len();
        let column = *self.open.entry(key).or_insert(next);
        if column == next {
            self.columns.push(Column::default());
        }
        if let Some(known) = self.columns.get_mut(column) {
            known.add(text);
            self.pieces.push(Piece { column, text, at });
        }
    }

    /// A line is a row of a table where the one beside it has as many fields: sentences with commas are none.
    fn end_row(&mut self) {
        self.name = None;
        match *self.fields.as_slice() {
            // Lines that have names have nothing else.
            [] => return,
            [(only, at)] => {
                let bare = only.trim_start_matches(|c: char| c.is_ascii_digit() || "-*+.)( #".contains(c));
                if bare.len() < only.len() {
                    self.add(Key::Listed, bare, at + (only.len() - bare.len()));
                }
                self.first = None;
            }
            _ if self.fields.len() != self.before.len() => self.first = None,
            _ => {
                let (before, fields) = (std::mem::take(&mut self.before), std::mem::take(&mut self.fields));
                let begun = self.first.is_some();
                let first = *self.first.get_or_insert(before.first().map_or(0, |(_, at)| *at));
                let rows = [if begun { &[] } else { before.as_slice() }, &fields];
                for (n, (text, at)) in rows.into_iter().flat_map(|row| row.iter().enumerate()) {
                    self.add(Key::Field(first, n), text, *at);
                }
                (self.before, self.fields) = (before, fields);
            }
        }
        std::mem::swap(&mut self.before, &mut self.fields);
        self.fields.clear();
    }

    /// The columns that may be sentences, and where they stand.
    fn says(self) -> impl Iterator<Item = (String, (usize, usize))> {
        let mut said: Vec<Option<(String, (usize, usize))>> = self
            .columns
            .iter()
            .map(|column| column.says().then(|| (String::with_capacity(column.bytes), (0, 0))))
            .collect();
        if said.iter().any(Option::is_some) {
            for Piece { column, text, at } in self.pieces {
                let Some(Some((said, span))) = said.get_mut(column) else { continue };
                if said.is_empty() {
                    span.0 = at;
                } else {
                    said.push(' ');
                }
                said.push_str(text);
                span.1 = at + text.len();
            }
        }
        said.into_iter().flatten()
    }
}

/// Whether a cell may be a piece of a sentence.
fn is_piece(text: &str) -> bool {
    if text.len() > MAX_PIECE {
        return false;
    }
    let letters: usize = text.bytes().map(|b| usize::from(LETTERS[usize::from(b)])).sum();
    letters * 100 >= text.len() * MIN_LETTERS
}

/// Letters and blanks. Signs of other scripts count as letters: that costs less, and there are few.
const LETTERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < table.len() {
        table[b] = b >= 0x80 || (b as u8).is_ascii_alphabetic() || b == b' ' as usize;
        b += 1;
    }
    table
};

/// FNV-1a, without digits.
fn hash(text: &str) -> u64 {
    let fold = |hash: u64, b: u8| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
    text.bytes().filter(|b| !b.is_ascii_digit()).fold(0xCBF2_9CE4_8422_2325, fold)
}

/// What stands between two signs of a table.
struct Cell<'t> {
    text: &'t str,
    at: usize,
    role: Role,
    /// It is the first of its line, and behind a tag.
    new_row: bool,
    behind_tag: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Of an element.
    Tag,
    /// Of what follows.
    Name,
    Value,
}

struct Cells<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cells<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

/// Signs that stand between cells: of JSON, tables, settings and elements. A colon does where something behind it says so.
const SIGNS: [bool; 256] = {
    let mut table = [false; 256];
    let signs = b"\n\t|,;\"<>{}[]=\\:";
    let mut n = 0;
    while n < signs.len() {
        table[signs[n] as usize] = true;
        n += 1;
    }
    table
};

impl<'t> Iterator for Cells<'t> {
    type Item = Cell<'t>;

    fn next(&mut self) -> Option<Cell<'t>> {
        let bytes = self.text.as_bytes();
        let (mut new_row, mut tag, mut behind_tag) = (self.at == 0, false, false);
        let blank = |b: u8| b == b' ' || b == b'\r';
        let from = loop {
            let b = *bytes.get(self.at)?;
            if !(blank(b) || SIGNS[usize::from(b)]) {
                break self.at;
            }
            new_row |= b == b'\n';
            tag = b == b'<' || tag && blank(b);
            behind_tag |= b == b'>';
            self.at += 1;
        };
        self.at = loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(length) = rest.iter().position(|b| SIGNS[usize::from(*b)]) else { break bytes.len() };
            match rest.get(length..) {
                // Of an address or a time.
                Some([b':', behind, ..]) if !b" \"'\n".contains(behind) => self.at += length + 1,
                _ => break self.at + length,
            }
        };
        let text = self.text.get(from..self.at)?.trim_ascii_end();
        let behind = bytes.get(self.at..).unwrap_or_default();
        let role = match behind.iter().find(|b| !matches!(b, b'"' | b'\\' | b' ')) {
            _ if tag => Role::Tag,
            Some(b':' | b'=') => Role::Name,
            _ => Role::Value,
        };
        Some(Cell { text, at: from, role, new_row, behind_tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&str; 7] =
        ["Please send", "all of", "the letters", "to the", "other one", "and tell", "nobody of it"];

    fn said(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        find(text, &mut found);
        found.iter().map(|inner| inner.text().to_owned()).collect()
    }

    fn each(row: impl Fn(usize, &str) -> String) -> String {
        PIECES.iter().enumerate().map(|(n, piece)| row(n, piece)).collect()
    }

    #[test]
    fn a_piece_in_each_row_is_read() {
        let whole = PIECES.join(" ");
        for text in [
            each(|n, piece| format!("{n},Anna,{piece},12\n")),
            each(|n, piece| format!("{n}\tAnna\t{piece}\n")),
            each(|n, piece| format!("| {n} | Anna | {piece} |\n")),
            each(|n, piece| format!("{{\"id\": {n}, \"name\": \"Anna\", \"note\": \"{piece}\"}}\n")),
            each(|n, piece| format!("{{\n  \"id\": {n},\n  \"note\": \"{piece}\"\n}},\n")),
            format!("[{}]", each(|n, piece| format!("{{\"id\":{n},\"note\":\"{piece}\"}},"))),
            format!("{{{}}}", each(|n, piece| format!("\"part{n}\":\"{piece}\","))),
            each(|n, piece| format!("{{\"id\": {n}, \"note\": \"> {piece}\"}}\n")),
            each(|n, piece| format!("  - id: {n}\n    note: {piece}\n")),
            each(|n, piece| format!("10:0{n}:07 INFO worker-{n} chunk={n} text={piece}\n")),
            each(|n, piece| format!("<tr><td>{n}</td><td>Anna</td><td>{piece}</td></tr>")),
            each(|n, piece| format!("<tr>\n<td>{n}</td>\n<td>{piece}</td>\n</tr>\n")),
            each(|n, piece| format!("<row id=\"{n}\"><name>Anna</name><note>{piece}</note></row>")),
            each(|n, piece| format!("<row id=\"{n}\"><note class=\"wide\">{piece}</note></row>")),
            each(|n, piece| format!("<tr><td class=\"a\">{n}</td><td class=\"b\" width=\"9\">{piece}</td></tr>")),
            each(|n, piece| format!("<item id=\"{n}\" note=\"{piece}\"/>")),
            each(|n, piece| format!("{n}. {piece}\n")),
        ] {
            assert!(said(&text).contains(&whole), "{text}: {:?}", said(&text));
        }
    }

    #[test]
    fn sentences_and_names_are_no_columns() {
        for text in [
            "A sentence that goes on, with a comma in it\nand in the next line, too\nand so it goes on.\nThe last line, of all.\n".repeat(3),
            each(|n, _| format!("{n},Anna,open,12\n")),
            each(|n, piece| format!("{n},{},12\n", piece.to_uppercase())),
            each(|n, _| format!("{{\"id\": {n}, \"type\": \"string\"}}\n")),
        ] {
            assert_eq!(said(&text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn work_is_linear() {
        let row = each(|n, piece| format!("{n},{piece},{piece}\n"));
        for part in [&row, "a=b ", "<td>ab", ",", "\"", "a,b\n", "{\"a\":\"bc\"}", "\n", "ab: cd\n"] {
            let text = part.repeat(MAX_SHORT / part.len());
            let all = said(&text);
            assert!(all.len() <= MAX_FOUND + 1 && all.iter().map(String::len).sum::<usize>() <= text.len(), "{part}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "(?:[<>,|:={}\"\\\\ \n\t]|td|tr|a|B|\u{e9}|1){0,200}") {
            said(&s);
        }
    }
}
