//! Whether a text says of itself that it is private: that it is confidential, or that it tells about a person.
//!
//! Programs are written about pay, patients and accounts, too. So words alone do not count in the sources of programs, and a field
//! ("salary: 52,000") counts with a value, beside another of the same person.

use serde::Deserialize;

use crate::{Privacy, TableError, contacts, injection::signs, keywords::Keywords, telling::Telling};

/// Words of a line that marks a document.
const MAX_MARK: usize = 10;
/// Bytes of a line that are looked at on either side of a mark.
const MAX_LINE: usize = 160;
/// Lines above or below it at an edge of a text.
const MAX_EDGE: usize = 6;
/// Where the source of a program says whose it is.
const MAX_HEAD: usize = 400;
/// How much of a text is looked at for what it is.
const MAX_LOOKED: usize = 16 * 1024;
/// Shortest number of a person's document.
const MIN_NUMBER: usize = 7;
/// Digits in the first rows of a table.
const MIN_DIGITS: usize = 4;
/// Bytes of the first rows of a table.
const MAX_ROW: usize = 256;
/// How much more log-odds a text in a script of East Asia needs.
const EASTERN: f32 = 1.5;
/// Shortest word that is looked for in every text.
const MIN_SOUGHT: usize = 5;
/// Shortest text that the model is asked about.
const MIN_TOLD: usize = 60;
/// Bytes of the names of columns behind one.
const MAX_HEADING: usize = 256;
/// Blanks and signs of emphasis beside a field's name.
const MAX_SOFT: usize = 32;
/// Lines that tell whether a text is a program.
const MAX_LINES: usize = 100;
/// Bytes between the name of a field and its value.
const MAX_BETWEEN: usize = 8;
/// Bytes in which a value shows a digit.
const MAX_VALUE: usize = 24;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    words: Vec<String>,
    marks: Vec<String>,
    program_marks: Vec<String>,
    person: Vec<String>,
    field: Vec<Field>,
    telling: Bounds,
}

/// Log-odds of the model from which on a text is private where it is sent to.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    /// An address, or where everybody reads it.
    telling: f32,
    /// Where many may read it.
    revealing: f32,
}

/// Names of one thing that is told about a person.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    names: Vec<String>,
    /// Whether its value is a number.
    #[serde(default)]
    number: bool,
    /// One with its value is enough.
    #[serde(default)]
    enough: bool,
}

/// What a word is looked for as.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// It says so wherever it stands.
    Alone,
    /// It says so where it marks a document.
    Mark,
    /// The name of this field.
    Field { field: u32, number: bool, enough: bool },
    /// Whose.
    Person(u32),
}

/// The words of `profiles/detect/private-words.toml`.
#[derive(Debug)]
pub(crate) struct Confidential {
    /// Those that are looked for in every text.
    words: Vec<String>,
    matcher: Keywords,
    kinds: Vec<Kind>,
    program_marks: Vec<String>,
    model: Telling,
    bounds: Bounds,
}

impl Confidential {
    pub(crate) fn load(text: &str, weights: &'static [u8]) -> Result<Self, TableError> {
        let model = Telling::read(weights).map_err(|e| TableError::new("telling.weights", &e))?;
        let file: File = toml::from_str(text).map_err(|e| TableError::new("private-words.toml", &e))?;
        let (mut words, mut kinds): (Vec<String>, Vec<Kind>) = (Vec::new(), Vec::new());
        let mut add = |list: Vec<String>, kind: &dyn Fn(usize) -> Kind| {
            for (number, word) in list.into_iter().enumerate() {
                words.push(word);
                kinds.push(kind(number));
            }
        };
        add(file.words, &|_| Kind::Alone);
        add(file.marks, &|_| Kind::Mark);
        for (number, field) in (0u32..).zip(file.field) {
            add(field.names, &|_| Kind::Field { field: number % 32, number: field.number, enough: field.enough });
        }
        add(file.person, &|number| Kind::Person((number % 32) as u32));
        let matcher = Keywords::new(&words);
        // Short ones stand in too many texts; they count beside a longer one.
        let sought = |(word, kind): (String, &Kind)| {
            (word.len() >= MIN_SOUGHT && !matches!(kind, Kind::Person(_))).then_some(word)
        };
        let words = words.into_iter().zip(&kinds).filter_map(sought).collect();
        Ok(Self { matcher, words, kinds, program_marks: file.program_marks, model, bounds: file.telling })
    }

    /// The words without which [`Confidential::says`] is never true.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// How private a text is by its words; `words` says whether one of [`Confidential::words`] stands in it.
    pub(crate) fn judge(&self, text: &str, words: bool) -> Privacy {
        if !words && text.len() < MIN_TOLD {
            return Privacy::Unknown;
        }
        if is_program(text) {
            return if words && self.is_marked(text) { Privacy::Telling } else { Privacy::Unknown };
        }
        if words && self.says(text) {
            return Privacy::Private;
        }
        let mut score = self.model.of(text);
        // Most of what it has learnt from is in Latin letters.
        let head = || text.get(..text.floor_char_boundary(MAX_LOOKED)).unwrap_or_default();
        if score >= self.bounds.telling && signs::eastern(head()) {
            score -= EASTERN;
        }
        match score {
            score if score >= self.bounds.revealing => Privacy::Revealing,
            score if score >= self.bounds.telling => Privacy::Telling,
            _ if contacts::listed(text) => Privacy::Telling,
            _ => Privacy::Unknown,
        }
    }

    /// Whether the source of a program says in its first lines that it is not for everybody.
    fn is_marked(&self, text: &str) -> bool {
        let head = text.get(..text.floor_char_boundary(MAX_HEAD)).unwrap_or_default();
        let mut marked = false;
        self.matcher.each(head.as_bytes(), |met| {
            let said = head.get(met.start..met.end).unwrap_or_default();
            marked |= self.program_marks.iter().any(|mark| mark.eq_ignore_ascii_case(said));
            !marked
        });
        marked
    }

    fn says(&self, text: &str) -> bool {
        let (mut fields, mut persons, mut said) = (0u32, 0u32, false);
        let (bytes, edges) = (text.as_bytes(), Edges::of(text));
        self.matcher.each(bytes, |met| {
            let word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
            let before = met.start.checked_sub(1).and_then(|at| bytes.get(at));
            let inside = word(before);
            match self.kinds.get(met.word) {
                _ if inside => {}
                Some(Kind::Alone) => said = !word(bytes.get(met.end)),
                Some(Kind::Mark) => said = !word(bytes.get(met.end)) && marks(text, met.start, met.end, &edges),
                Some(Kind::Field { enough: true, .. }) if numbered(bytes.get(met.end..).unwrap_or_default()) => {
                    said = true
                }
                Some(Kind::Field { field, number, .. }) if names(bytes, met.start, met.end, *number) => {
                    fields |= 1 << field;
                }
                Some(Kind::Person(person)) if names(bytes, met.start, met.end, false) => persons |= 1 << person,
                _ => {}
            }
            said |= fields.count_ones() > 1 || fields > 0 && persons.count_ones() > 1;
            !said
        });
        said
    }
}

/// Where the first lines of a text end, and where its last begin.
struct Edges {
    first: usize,
    last: usize,
}

impl Edges {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        Self {
            first: memchr::memchr_iter(b'\n', bytes).nth(MAX_EDGE).unwrap_or(bytes.len()),
            last: memchr::memrchr_iter(b'\n', bytes).nth(MAX_EDGE).unwrap_or(0),
        }
    }
}

/// Whether a mark stands at the edge of a line that says little else, at an edge of the text or in capitals.
fn marks(text: &str, start: usize, end: usize, edges: &Edges) -> bool {
    let capitals = text.get(start..end).is_some_and(|mark| !mark.contains(|c: char| c.is_ascii_lowercase()));
    if !(capitals || start < edges.first || end > edges.last) {
        return false;
    }
    // A longer line says more.
    let before = text.get(text.ceil_char_boundary(start.saturating_sub(MAX_LINE))..start).unwrap_or_default();
    let behind = text.get(end..text.floor_char_boundary((end + MAX_LINE).min(text.len()))).unwrap_or_default();
    let first = before.rsplit_once('\n').map_or(before, |(_, first)| first);
    let last = behind.split_once('\n').map_or(behind, |(last, _)| last);
    let bare = |part: &str| !part.contains(char::is_alphanumeric);
    let words = first.split_ascii_whitespace().chain(last.split_ascii_whitespace());
    // "Classification: confidential", "Minutes - confidential"; not the last word of a sentence, nor one that is quoted.
    let labelled = first.trim_end_matches(|c: char| !c.is_alphanumeric() && c != ':').ends_with(':');
    let apart = first.trim_end().ends_with(|c: char| !c.is_alphanumeric() && !"`\"'".contains(c));
    words.count() < MAX_MARK && (bare(first) || labelled || bare(last) && apart)
}

/// Whether a word is the name of a field that has a value, or of a column.
fn names(text: &[u8], start: usize, end: usize, number: bool) -> bool {
    let soft = |b: &u8| matches!(b, b' ' | b'"' | b'\'' | b'*' | b'_' | b'`' | b'-');
    let near = start.saturating_sub(MAX_SOFT)..start;
    let first = text.get(near).unwrap_or_default().iter().rev().find(|b| !soft(b));
    let opens =
        first.is_none_or(|b| matches!(b, b'\n' | b'\r' | b',' | b';' | b'|' | b'{' | b'\t' | b'[' | b'(' | b'.'));
    // Units and the like may follow: `salary_eur`, "Salary (EUR)".
    let rest = text.get(end..).unwrap_or_default();
    let unit =
        rest.iter().take(MAX_BETWEEN).take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b' ' | b'(' | b')'));
    let rest = rest.get(unit.count()..).unwrap_or_default();
    let rest = rest.get(rest.iter().take(MAX_SOFT).take_while(|b| soft(b)).count()..).unwrap_or_default();
    let Some((sign, value)) = rest.split_first() else { return false };
    match sign {
        b':' | b'=' => opens && (!number || digits(value)),
        b'|' | b',' | b';' | b'\t' => opens && (!number || rows(rest)),
        // The last of the columns.
        b'\n' | b'\r' => first.is_some_and(|b| b"|,;\t".contains(b)) && (!number || rows(rest)),
        _ => false,
    }
}

/// Whether the lines below the names of columns hold numbers.
fn rows(rest: &[u8]) -> bool {
    let below = rest.iter().take(MAX_HEADING + MAX_ROW).skip_while(|b| **b != b'\n').take(MAX_ROW);
    below.filter(|b| b.is_ascii_digit()).count() >= MIN_DIGITS
}

/// Whether the number of a document follows: "passport no. G52C1HVL7".
fn numbered(behind: &[u8]) -> bool {
    let between = behind.iter().take(MAX_BETWEEN).take_while(|b| b" .:#=\"'*|,".contains(b)).count();
    let value = behind.get(between..).unwrap_or_default();
    let value = value.iter().take(MAX_VALUE).take_while(|b| b.is_ascii_alphanumeric() || **b == b'-');
    let (mut length, mut digits) = (0, 0);
    for b in value {
        length += 1;
        digits += usize::from(b.is_ascii_digit());
    }
    between > 0 && length >= MIN_NUMBER && digits * 3 >= length
}

/// Whether a value begins with a number: behind signs of currencies and quotes.
fn digits(value: &[u8]) -> bool {
    let line = value.iter().take(MAX_VALUE).take_while(|b| **b != b'\n');
    line.take_while(|b| !matches!(b, b'{' | b'[' | b'<')).any(u8::is_ascii_digit)
}

/// Whether a text is the source of a program: most of its lines begin or end as in one.
fn is_program(text: &str) -> bool {
    const BEGIN: [&str; 34] = [
        "//", "/*", "*/", "#include", "#!", "import ", "from ", "def ", "class ", "fn ", "pub ", "func ", "const ",
        "let ", "var ", "return ", "return;", "if (", "if let", "if not ", "elif ", "else", "for (", "@", "</",
        "SELECT ", "CREATE ", "INSERT ", "ALTER ", "async ", "export ", "public ", "private ", "package ",
    ];
    let head = text.get(..text.floor_char_boundary(MAX_LOOKED)).unwrap_or_default();
    const FIRST: &[u8] = b"/*#ifdcpvler@<SCIA";
    // Data has lines that end so, too.
    if head.trim_start().starts_with(['{', '[']) {
        return false;
    }
    let (mut lines, mut program) = (0, 0);
    for line in head.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LINES) {
        lines += 1;
        let begins = line.bytes().next().is_some_and(|b| FIRST.contains(&b))
            && BEGIN.iter().any(|begin| line.starts_with(begin));
        program += usize::from(begins || line.ends_with(['{', '}', ';', '(', ')', '[', ']', '\\']));
    }
    lines > 2 && program * 5 > lines * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Confidential {
        Confidential::load(
            include_str!("../../../profiles/detect/private-words.toml"),
            include_bytes!("../../../profiles/detect/telling.weights"),
        )
        .unwrap()
    }

    #[test]
    fn a_broken_table_is_named() {
        let weights = include_bytes!("../../../profiles/detect/telling.weights");
        let error = Confidential::load("words = 5", weights).unwrap_err().to_string();
        assert!(error.starts_with("profiles/detect/private-words.toml: "), "{error}");
        let error = Confidential::load("", b"FDT1").unwrap_err().to_string();
        assert!(error.starts_with("profiles/detect/telling.weights: "), "{error}");
    }

    #[test]
    fn what_says_that_it_is_private() {
        let confidential = loaded();
        for text in [
            "Salary review: Dana north, pending, band amber",
            "STRICTLY CONFIDENTIAL\n\nMinutes of the board, 3 May. We let the certificate lapse.",
            "# Management meeting - CONFIDENTIAL\n\nPresent: Ana, Bo",
            "Classification: confidential\nThe offer stands at 22.7 million.",
            "name,role,salary_eur,bonus_percent,date of birth\nGrace,Support,42500,17,1990-01-02\n",
            "Patient: R. Doe\nDate of birth: 12 March 1980\nDiagnosis: migraine\n",
            "| Name | Email | Salary (EUR) |\n|---|---|---|\n| Bo | bo@x.example | 52,000 |\n",
            "{\"name\": \"Bo\", \"email\": \"bo@x.example\", \"salary\": 52000}",
            "Aoife, passport no. J4GY4WH0T, born 2003-11-23",
        ] {
            assert!(confidential.says(text), "{text}");
        }
        for text in [
            "",
            "Test results: 44 passed, 1 failed in 3.2s",
            // The source of a program, and what describes one.
            "from pydantic import BaseModel\n\nclass Employee(BaseModel):\n    name: str\n    salary: float\n    dob: date\n",
            "fn check() {\n    let salary = 5;\n    // Strictly confidential.\n}\n",
            "# How the `confidential` flag works\n\nA document is `public`, `internal` or `confidential`.",
            "    alt confidential treatment\n        C->>I: claim without diagnosis text\n",
            "{\"properties\": {\"salary\": {\"type\": \"number\"}, \"dateOfBirth\": {\"type\": \"string\"}}}",
            "group,may_read\npayroll,\"salary,bank_account,tax_id\"\nit,\"name,phone\"\n",
            "We are hiring a clerk. Salary: 34,000 to 39,500 pounds.",
            "This e-mail is confidential and may be privileged; whoever is not named above shall delete it at once.",
            "features for internal use only are not listed in the manual of this crate or anywhere else",
        ] {
            assert!(is_program(text) || !confidential.says(text), "{text}");
        }
    }

    #[test]
    fn sources_of_programs_that_are_marked() {
        let confidential = loaded();
        let source = "import os\n\ndef shade(bid):\n    return bid * 2\n";
        for (line, want) in [
            ("# Copyright Lumenpost Ltd - proprietary, do not distribute\n", Privacy::Telling),
            ("/* Corvid Robotics, TRADE SECRET, rev 311 */\n", Privacy::Telling),
            ("# For internal use only: call shade_all instead.\n", Privacy::Unknown),
            ("# Confidential values are masked here.\n", Privacy::Unknown),
        ] {
            assert_eq!(confidential.judge(&format!("{line}{source}"), true), want, "{line}");
        }
    }

    /// Made up for this test: each private one has an ordinary one of its topic.
    #[test]
    fn what_tells_about_people_and_what_does_not() {
        let confidential = loaded();
        for (private, ordinary) in [
            (
                "Ilka rang again last night. The scan shows it has spread to the liver; she has not told the boys yet and asks us to pretend that \
                 the trip in June is on. I lent her 2,400 and she cried.",
                "A CT scan shows organs in slices. Drink plenty of water before it, and bring earlier pictures if you have some. The appointment \
                 takes about twenty minutes, and the report goes to your doctor within a week.",
            ),
            (
                "Call with Ferro, 9 Oct: they walk if we go below 38 a share. Bodo will leave after closing, he does not know. 212 jobs in Plauen are gone \
                 by spring; the works council must hear it from us and not from the paper.",
                "The share price is shown with a delay of fifteen minutes. Choose a company, a currency and a period, and press Show. Prices are in \
                 local currency, and figures of subsidiaries are part of the group's.",
            ),
        ] {
            assert!(confidential.judge(private, false) >= Privacy::Telling, "{private}");
            assert_eq!(confidential.judge(ordinary, false), Privacy::Unknown, "{ordinary}");
        }
        // Too short to be judged.
        assert_eq!(confidential.judge("Ilka cried.", false), Privacy::Unknown);
    }

    /// What is looked at around each word is bounded; with all of the line these would take minutes.
    #[test]
    fn long_lines_are_looked_at_once() {
        let confidential = loaded();
        for text in [
            "x confidential ".repeat(60_000),
            "salary,".repeat(100_000),
            format!("salary{}", " ".repeat(800_000)),
            "salary: ".repeat(90_000),
        ] {
            assert!(!confidential.says(&text), "{}", &text[..20]);
        }
    }

    #[test]
    fn its_words_are_those_without_which_nothing_is_said() {
        let confidential = loaded();
        let words = confidential.words();
        assert!(words.iter().any(|word| word == "salary") && !words.iter().any(|word| word == "email"));
        assert!(words.iter().all(|word| *word == word.to_lowercase()), "{words:?}");
    }

    proptest::proptest! {
        #[test]
        fn total(s in "(salary|name|iban|confidential|[ :,|\n\"{}0-9a-zA-Z]|\\PC)*") {
            loaded().judge(&s, true);
        }
    }
}
