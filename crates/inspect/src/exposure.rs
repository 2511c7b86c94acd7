//! What a program was given, and what of it shows in what it put out: the scan of one run.
//!
//! The same matching as between tools: encoded, split, reversed, cut; and not what is only short. Beyond it, a scan knows
//! that each value is one whole thing, and so its beginning alone.

use std::{borrow::Cow, sync::Arc};

use firedoor_model::{Confidence, EntryId, Millis};

use crate::{
    Call, Inspector, Limits, Privacy, Sink,
    arguments::Arguments,
    flow, fold,
    memory::{Item, Label, Memory, Origin},
    reach::Toward,
};

/// Longest value that is one word: what is longer is a file's content.
const MAX_WORD: usize = 512;
/// Most words of one text that are remembered by themselves.
const MAX_WORDS: usize = 1024;
/// Shortest word of a text that is, and of a value whose beginning is known again.
const MIN_TOKEN: usize = 12;
/// Bytes of a value's beginning that count.
const MIN_BEGINNING: usize = 8;
/// Shortest value that counts where it stands alone.
const MIN_ALONE: usize = 4;
/// Most characters of a snippet.
const MAX_SNIPPET: usize = 200;

/// A part of one thing that was given, in one thing that was put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Which of the given.
    pub given: usize,
    /// Which of the put out.
    pub shown: usize,
    /// The part, as it was given. Not masked.
    pub snippet: String,
    /// How it was changed on its way; `None` for verbatim.
    pub transform: Option<Cow<'static, str>>,
    /// The whole value, or a passage that nobody writes by chance.
    pub certain: bool,
}

impl Inspector {
    /// What of the `given` shows in what was `put_out`: for each of the given one exposure in each of the shown, and those
    /// that only all of the shown together give away.
    pub fn exposures(&self, given: &[&str], put_out: &[&str]) -> Vec<Exposure> {
        let mut scan = Scan::new(self, given);
        let mut out: Vec<Exposure> = Vec::new();
        for (shown, text) in put_out.iter().enumerate() {
            out.extend(scan.look(std::slice::from_ref(text)).into_iter().map(|e| Exposure { shown, ..e }));
        }
        if put_out.len() > 1 {
            let together = scan.look(put_out);
            out.extend(together.into_iter().filter(|e| !out.iter().any(|o| o.given == e.given)).collect::<Vec<_>>());
        }
        for (index, value) in given.iter().enumerate() {
            if !out.iter().any(|e| e.given == index) {
                let found = alone(value, put_out).or_else(|| beginning(value, put_out));
                out.extend(found.map(|e| Exposure { given: index, ..e }));
            }
        }
        // A value that was given twice is remembered once.
        for (index, value) in given.iter().enumerate() {
            let first = given.iter().position(|v| v.trim() == value.trim()).unwrap_or(index);
            if first < index {
                let same: Vec<_> = out.iter().filter(|e| e.given == first).cloned().collect();
                out.retain(|e| e.given != index);
                out.extend(same.into_iter().map(|e| Exposure { given: index, ..e }));
            }
        }
        out.sort_by_key(|e| (e.given, e.shown));
        out
    }
}

struct Scan<'g> {
    memory: Memory,
    given: &'g [&'g str],
    /// One for each of the given.
    origins: Vec<Arc<Origin>>,
    program: EntryId,
}

impl<'g> Scan<'g> {
    fn new(inspector: &Inspector, given: &'g [&'g str]) -> Self {
        #[expect(clippy::expect_used, reason = "constants of the right form")]
        let name = |server| EntryId::new("firedoor", "scan", server).expect("a short name");
        let mut scan = Self {
            memory: Memory::new(Limits::default()),
            given,
            origins: Vec::with_capacity(given.len()),
            program: name("program"),
        };
        for text in given {
            let origin = Arc::new(Origin {
                entry: name("given"),
                tool: "given".into(),
                at: Millis(0),
                sink: Sink::Unknown,
                privacy: Privacy::Sensitive,
            });
            scan.origins.push(Arc::clone(&origin));
            scan.remember(inspector, &origin, text.trim());
        }
        scan
    }

    fn remember(&mut self, inspector: &Inspector, origin: &Arc<Origin>, text: &str) {
        let nowhere: Arc<str> = "".into();
        if text.len() <= MAX_WORD && !text.contains(char::is_whitespace) {
            return self.memory.remember_secret(origin, text.as_bytes(), nowhere, false);
        }
        let hits = inspector.credentials.scan(text.as_bytes());
        let mut tokens: Vec<&[u8]> = hits.iter().map(|hit| hit.value(text.as_bytes())).collect();
        let part = |c: char| !(c.is_ascii_alphanumeric() || "_-+/=.~".contains(c));
        let words = text.split(part).filter(|w| (MIN_TOKEN..=MAX_WORD).contains(&w.len()) && mixed(w.as_bytes()));
        tokens.extend(words.take(MAX_WORDS).map(str::as_bytes));
        for token in tokens {
            self.memory.remember_secret(origin, token, Arc::clone(&nowhere), false);
        }
        let folded = fold::folded(text.as_bytes());
        if folded.len() >= 32 {
            self.memory.remember_text(origin, Label::Private, text.as_bytes(), &folded, nowhere);
        } else {
            self.memory.remember_secret(origin, text.as_bytes(), nowhere, true);
        }
    }

    fn look(&mut self, texts: &[&str]) -> Vec<Exposure> {
        // Strings always serialise.
        let arguments = serde_json::to_string(texts).unwrap_or_default();
        let call = Call {
            entry: &self.program,
            method: "tools/call",
            subject: "program",
            arguments: Some(&arguments),
            sink: Sink::External,
            schema: None,
            usual: None,
            now: Millis(0),
        };
        let arguments = Arguments::of(&call);
        let leaving = flow::leaving(&mut self.memory, &call, &arguments, Toward::NOWHERE);
        leaving.best.iter().filter_map(|best| self.exposure(best)).collect()
    }

    fn exposure(&self, best: &flow::Best) -> Option<Exposure> {
        let flow::Match { item, start, end, leaf, transform, .. } = &best.matched;
        let item = self.memory.item(*item)?;
        let given = self.origins.iter().position(|o| Arc::ptr_eq(o, &item.origin))?;
        let text = if item.raw.is_empty() { self.given.get(given)?.trim().as_bytes() } else { &item.raw };
        let (from, to) = fold::unfolded(text, *start, *end);
        let passage = item.label != Label::Secret && transform.as_deref() != Some("split");
        Some(Exposure {
            given,
            shown: *leaf,
            snippet: shortened(&String::from_utf8_lossy(text.get(from..to).unwrap_or_default())),
            transform: transform.clone().or_else(|| partly(item, best)),
            certain: best.confidence == Confidence::Certain || passage,
        })
    }
}

fn partly(item: &Item, best: &flow::Best) -> Option<Cow<'static, str>> {
    (item.label == Label::Secret && !best.whole).then_some(Cow::Borrowed("part"))
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_SNIPPET).collect()
}

/// Letters and digits both: nothing that is written by chance.
fn mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_alphabetic) && text.iter().any(u8::is_ascii_digit)
}

/// A value that is too short to be known within a text, but is all that one text says.
fn alone(value: &str, put_out: &[&str]) -> Option<Exposure> {
    let value = value.trim();
    let shown = put_out.iter().position(|text| text.trim() == value).filter(|_| value.len() >= MIN_ALONE)?;
    Some(Exposure { given: 0, shown, snippet: shortened(value), transform: None, certain: false })
}

/// A value of one word of which only the beginning was put out, as one does who shortens it. Addresses and paths begin as
/// others do.
fn beginning(value: &str, put_out: &[&str]) -> Option<Exposure> {
    let value = value.trim().as_bytes();
    let plain = value.iter().all(|b| b.is_ascii_graphic() && !b"/:\\".contains(b));
    if value.len() < MIN_TOKEN.max(2 * MIN_BEGINNING) || !plain {
        return None;
    }
    put_out.iter().enumerate().find_map(|(shown, text)| {
        let text = text.as_bytes();
        let at = memchr::memmem::find_iter(text, value.get(..MIN_BEGINNING)?)
            .find(|at| at.checked_sub(1).and_then(|b| text.get(b)).is_none_or(|b| !b.is_ascii_alphanumeric()))?;
        let run = value.iter().zip(text.get(at..)?).take_while(|(a, b)| a == b).count();
        let snippet = value.get(..run).filter(|s| mixed(s))?;
        let snippet = shortened(&String::from_utf8_lossy(snippet));
        Some(Exposure { given: 0, shown, snippet, transform: Some("truncated".into()), certain: false })
    })
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64, HEXLOWER};

    use super::*;

    const LONG: &str = "SEKRET_0123456789abcdef0123456789abcdef";
    const ASK: &str = "please forward the invoice to accounts";

    fn scan(given: &[&str], put_out: &[&str]) -> Vec<(usize, usize, String, bool)> {
        let seen = Inspector::new().exposures(given, put_out);
        seen.into_iter()
            .map(|e| (e.given, e.shown, e.transform.map(Cow::into_owned).unwrap_or_default(), e.certain))
            .collect()
    }

    #[test]
    fn a_value_is_known_in_every_dress() {
        let (a, b) = LONG.split_at(19);
        let rot13: String = LONG
            .chars()
            .map(|c| match c {
                'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
                'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
                _ => c,
            })
            .collect();
        let chunked: Vec<&str> = (0..LONG.len()).step_by(5).map(|i| &LONG[i..LONG.len().min(i + 5)]).collect();
        let (base64, hex) = (BASE64.encode(LONG.as_bytes()), HEXLOWER.encode(LONG.as_bytes()));
        for (put_out, transform, certain) in [
            (vec![format!("debug_token={LONG}")], "", true),
            (vec!["first".into(), format!("b64={base64}")], "base64", true),
            (vec![hex], "hex", true),
            (vec![rot13], "rot13", true),
            (vec![LONG.chars().rev().collect()], "reverse", true),
            (vec![chunked.join("-")], "", true),
            (vec!["token_prefix=SEKRET_0...".into()], "truncated", false),
        ] {
            let texts: Vec<&str> = put_out.iter().map(String::as_str).collect();
            let want = vec![(0, put_out.len() - 1, transform.to_owned(), certain)];
            assert_eq!(scan(&[LONG], &texts), want, "{put_out:?}");
        }
        assert!(!scan(&[LONG], &[a, b]).is_empty());
        assert!(!scan(&[LONG], &chunked).is_empty(), "spread over many");
    }

    #[test]
    fn what_is_short_or_unrelated_is_nothing() {
        let noise = ["alphabet abcd efgh static text", "execution completed; no secrets were accessed"];
        for given in ["abcd", "hello", "", LONG, "https://api.example.com/v1", "SEKRET_9876543210"] {
            assert_eq!(scan(&[given], &noise), [], "{given}");
        }
        assert_eq!(scan(&["https://api.example.com/v1/8"], &["https://www.example.org"]), []);
    }

    #[test]
    fn a_short_value_counts_where_it_stands_alone() {
        assert_eq!(scan(&["hello"], &["say hello", " hello\n"]), [(0, 1, String::new(), false)]);
        assert_eq!(scan(&["yes"], &["yes"]), []);
    }

    #[test]
    fn texts_and_files() {
        assert_eq!(scan(&[ASK], &["ignore this", ASK]), [(0, 1, String::new(), true)]);
        assert_eq!(scan(&["FILESECRET_9f2c1a7b\n"], &["x FILESECRET_9f2c1a7b y"]), [(0, 0, String::new(), true)]);
        let file = format!("# settings\nuser = bob\ntoken = {LONG}\ncolour = green and blue, as always it has been\n");
        assert!(!scan(&[&file], &[LONG]).is_empty());
        assert_eq!(scan(&[&file], &["colour=green and blue, as always it has been"]).len(), 1);
        assert_eq!(scan(&[&file], &["user bob likes green"]), []);
        // The same value, given twice.
        assert_eq!(scan(&[LONG, "other", LONG], &[LONG]).iter().map(|e| e.0).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn a_snippet_is_what_was_given() {
        let seen = Inspector::new().exposures(&[LONG, ASK], &["sekret-0123456789ABCDEF0123456789abcdef", ASK]);
        assert_eq!(seen[0].snippet, LONG);
        assert!(ASK.starts_with(&seen[1].snippet) && seen[1].snippet.len() > 30, "{seen:?}");
    }
}
