//! What arguments should not hold, wherever it comes from: destructive commands, shells to elsewhere, addresses of
//! credentials. Data of `profiles/detect/calls.toml`.

mod administrators;

use std::{borrow::Cow, sync::OnceLock};

use firedoor_model::{
    Confidence, Finding, Severity,
    finding::Role,
    wire::{Leaves, pointer},
};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use administrators::Administrators;

use crate::{
    Call, Inspector, TableError, arguments::Arguments, decode, evidence, hosts, keywords::Keywords,
    privacy::SourceWords, sink::words, view,
};

/// Characters around a keyword that its regex may look at.
const AROUND: usize = 700;
/// Longest string with characters beyond ASCII that is read as a name is looked up.
const MAX_FOLDED: usize = 4096;
/// Most keywords of one string that are followed up.
const MAX_TRIES: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    passive: Vec<String>,
    documents: Documents,
    administrators: Administrators,
    rule: Vec<Row>,
}

/// Which calls write a text down that nobody runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Documents {
    writing: Vec<String>,
    saying: Vec<String>,
    unless: Vec<String>,
    members: Vec<String>,
    folders: Vec<String>,
    texts: Vec<String>,
    files: Vec<String>,
    names: Vec<String>,
}

impl Documents {
    /// Whether a call writes nothing but documents: every member is one that such a call has, and every file that it names a document.
    fn written(&self, call: &Call<'_>, sources: &SourceWords) -> bool {
        let named = words(call.subject);
        let any = |list: &[String]| named.iter().any(|word| list.contains(word));
        if any(&self.unless) || !(any(&self.writing) || any(&self.saying)) {
            return false;
        }
        let (mut path, mut paths) = (false, 0);
        let documents = Leaves::of(call.arguments.unwrap_or_default()).all(|leaf| {
            if leaf.key {
                let name = leaf.text.to_ascii_lowercase();
                path = sources.names_file(&leaf.text) && !self.folders.contains(&name);
                return self.members.contains(&name);
            }
            // All elements of a list of files.
            paths += usize::from(path);
            !path || self.is_document(&leaf.text)
        });
        documents && (paths > 0 || any(&self.saying))
    }

    fn is_document(&self, path: &str) -> bool {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let known = |list: &[String], part: &str| list.iter().any(|known| part.eq_ignore_ascii_case(known));
        match name.rsplit_once('.') {
            Some((_, kind)) if known(&self.files, kind) => true,
            Some((first, _)) => known(&self.names, first),
            None => known(&self.names, name),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    says: String,
    severity: Severity,
    confidence: Confidence,
    #[serde(default)]
    runs: bool,
    #[serde(default)]
    now: bool,
    #[serde(default)]
    lasting: bool,
    keywords: Vec<String>,
    regex: String,
}

/// The rules of `profiles/detect/calls.toml`.
#[derive(Debug)]
pub(crate) struct Commands {
    passive: Vec<String>,
    documents: Documents,
    administrators: Administrators,
    rows: Vec<(Row, OnceLock<Option<Regex>>)>,
    /// Of all rules, and of those that are looked for in arguments as a whole.
    each: Words,
    whole: Words,
}

/// Keywords, and the rule of each.
#[derive(Debug)]
struct Words {
    keywords: Keywords,
    owners: Vec<usize>,
}

impl Words {
    fn of(rows: &[Row], wanted: impl Fn(&Row) -> bool) -> Self {
        let rows = || rows.iter().enumerate().filter(|(_, row)| wanted(row));
        let keywords: Vec<&String> = rows().flat_map(|(_, row)| &row.keywords).collect();
        let owners = rows().flat_map(|(number, row)| row.keywords.iter().map(move |_| number)).collect();
        Self { keywords: Keywords::new(keywords), owners }
    }
}

impl Commands {
    /// The members of a call that hold what it writes down and nothing that it reads; none where it does not write.
    pub(crate) fn texts(&self, call: &Call<'_>) -> &[String] {
        self.texts_of(&words(call.subject))
    }

    /// The same of a tool with such words in its name.
    fn texts_of(&self, named: &[String]) -> &[String] {
        let Documents { writing, unless, texts, .. } = &self.documents;
        let any = |list: &[String]| named.iter().any(|word| list.contains(word));
        if any(writing) && !any(unless) { texts } else { &[] }
    }

    /// The members of a call that hold what it sends, which nobody runs or opens by that; none where it may.
    pub(crate) fn sent(&self, call: &Call<'_>) -> &[String] {
        let Documents { unless, texts, .. } = &self.documents;
        if words(call.subject).iter().any(|word| unless.contains(word)) { &[] } else { texts }
    }

    /// Whether a call writes nothing but documents ([`Documents::written`]).
    pub(crate) fn writes_documents(&self, call: &Call<'_>, sources: &SourceWords) -> bool {
        self.documents.written(call, sources)
    }

    /// Whether what a finding of a call says cannot be undone.
    pub(crate) fn cannot_be_undone(&self, detector: &str) -> bool {
        let id = detector.strip_prefix("call/").unwrap_or_default();
        self.rows.iter().any(|(row, _)| row.lasting && row.id == id)
    }

    pub(crate) fn load(text: &str) -> Result<Self, TableError> {
        let table = |e: &dyn std::fmt::Display| TableError::new("calls.toml", e);
        let file: File = toml::from_str(text).map_err(|e| table(&e))?;
        let (each, whole) = (Words::of(&file.rule, |_| true), Words::of(&file.rule, |row| row.now));
        let rows = file.rule.into_iter().map(|row| (row, OnceLock::new())).collect();
        let File { passive, documents, administrators, .. } = file;
        Ok(Self { passive, documents, administrators, rows, each, whole })
    }

    /// Numbers of the rules that a string breaks.
    fn broken(&self, text: &str, words: &Words) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        let mut seen: Vec<(usize, usize)> = Vec::new();
        words.keywords.each(text.as_bytes(), |met| {
            let Some(&rule) = words.owners.get(met.word) else { return true };
            // What one window holds is not looked for again in the next.
            let near = seen.iter().any(|(r, at)| *r == rule && met.start < at + AROUND / 2);
            if out.contains(&rule) || near || seen.len() >= MAX_TRIES {
                return true;
            }
            seen.push((rule, met.start));
            let Some((row, regex)) = self.rows.get(rule) else { return true };
            let from = text.floor_char_boundary(met.start.saturating_sub(AROUND));
            let to = text.floor_char_boundary(text.len().min(met.end + AROUND));
            let regex = regex.get_or_init(|| compile(&row.regex));
            if regex.as_ref().is_some_and(|r| r.is_match(text.get(from..to).unwrap_or_default().as_bytes())) {
                out.push(rule);
            }
            true
        });
        out
    }
}

/// Longest arguments that are looked at as a whole, and longest text with lines that go on, in bytes.
const MAX_JOINED: usize = 64 * 1024;
/// Bytes beside an escape in which a command may stand that it hides.
const REACH: usize = 512;

/// Only ASCII letters have two cases here: Unicode's tables are large. Letters of other alphabets belong to words still.
fn compile(pattern: &str) -> Option<Regex> {
    let pattern = pattern.replace(r"\w", r"[\w\x80-\xFF]");
    RegexBuilder::new(&pattern).unicode(false).case_insensitive(true).size_limit(8 << 20).build().ok()
}

impl Inspector {
    /// What the arguments of a call hold that they should not.
    pub(crate) fn commands(&self, call: &Call<'_>, arguments: &Arguments<'_>) -> Vec<Finding> {
        let mut out: Vec<Finding> = Vec::new();
        let mut written = None;
        let named = words(call.subject);
        let passive = named.iter().any(|word| self.commands.passive.contains(word));
        let mut check = |text: &str, later: bool, whole: bool, place: &dyn Fn() -> String| {
            let mut forms = vec![Cow::Borrowed(text)];
            if let Some(plain) = decode::percent_around(text.as_bytes(), REACH) {
                forms.push(Cow::Owned(String::from_utf8_lossy(&plain).into_owned()));
            }
            // Digits in circles and the like are digits to whoever looks the name up.
            if !text.is_ascii() && text.len() <= MAX_FOLDED && hosts::schemes(text).next().is_some() {
                forms.push(Cow::Owned(view::normalised(text)));
            }
            // A line goes on behind a backslash, and quotes within quotes have one before them.
            if text.len() <= MAX_JOINED && (text.contains("\\\n") || text.contains("\\\"")) {
                forms.push(Cow::Owned(text.replace("\\\n", " ").replace("\\\"", "\"")));
            }
            let usual: Vec<String> = forms.iter().filter_map(|form| hosts::as_usual(form)).collect();
            forms.extend(usual.into_iter().map(Cow::Owned));
            let words = if whole { &self.commands.whole } else { &self.commands.each };
            for rule in forms.iter().flat_map(|form| self.commands.broken(form, words)) {
                let Some((row, _)) = self.commands.rows.get(rule) else { continue };
                let recorded = row.now && later
                    || row.runs && *written.get_or_insert_with(|| self.commands.writes_documents(call, &self.sources));
                let confidence = if recorded { Confidence::Possible } else { row.confidence };
                let known = out.iter_mut().find(|f| f.detector.strip_prefix("call/") == Some(row.id.as_str()));
                if let Some(known) = known {
                    // What is only written down stands in the place of nothing that is done.
                    if known.confidence < confidence {
                        known.confidence = confidence;
                        known.evidence = vec![evidence(Role::Sink, Some(call.entry), call.subject, place(), b"")];
                    }
                    continue;
                }
                out.push(Finding {
                    detector: format!("call/{}", row.id).into(),
                    severity: row.severity,
                    confidence,
                    summary: row.says.clone(),
                    evidence: vec![evidence(Role::Sink, Some(call.entry), call.subject, place(), b"")],
                });
            }
        };
        if call.method != "tools/call" {
            check(call.subject, false, false, &|| crate::flow::subject_pointer(call.method).to_owned());
        }
        // A file that is written is used later, by somebody.
        let texts = self.commands.texts_of(&named);
        let keys = || arguments.leaves.iter().filter(|leaf| leaf.key);
        let files = !texts.is_empty() && keys().any(|leaf| self.sources.names_file(&leaf.text));
        let mut text = false;
        for leaf in &arguments.leaves {
            if leaf.key {
                text = texts.iter().any(|member| leaf.text.eq_ignore_ascii_case(member));
            }
            if leaf.text.len() >= 4 {
                let place = || format!("/arguments{}", pointer(arguments.raw, leaf.span.0));
                check(&leaf.text, passive || files && text, false, &place);
            }
        }
        if arguments.nested && arguments.raw.len() <= MAX_JOINED {
            check(arguments.raw, passive || files, true, &|| "/arguments".to_owned());
        }
        if let Some(place) = self.commands.administrators.made(call, &named) {
            out.retain(|finding| finding.detector != administrators::DETECTOR);
            out.push(administrators::finding(call, &place));
        }
        out
    }
}

#[cfg(test)]
mod tests;
