//! Credentials in text: one pass over all formats' keywords, then one anchored regex where a keyword stands.

mod checksum;
mod edge;
mod plain;
mod shape;

use checksum::Checksum;
use plain::Plain;
pub(crate) use shape::has_shape;
use std::sync::OnceLock;

use firedoor_model::{Confidence, Digest};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::{TableError, decode, keywords::Keywords, randomness};

/// A name that stands for keys and for coins.
const TOKEN: &[u8] = b"token";
/// Most credentials reported for one text.
pub(crate) const MAX_HITS: usize = 256;
/// Bytes behind a keyword that are read as they are meant, but for what goes on over several lines.
const MAX_PLAIN: usize = 1024;
/// Bytes that are read so for each byte of a text: keywords may stand one behind the other.
const PLAIN_SHARE: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    published: Vec<String>,
    rule: Vec<Row>,
    #[serde(default)]
    issuer: Vec<Issuer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    keywords: Vec<String>,
    regex: String,
    #[serde(default = "default_entropy")]
    entropy: f64,
    #[serde(default)]
    inside: bool,
    #[serde(default = "default_window")]
    window: usize,
    #[serde(default)]
    before: usize,
    #[serde(default)]
    lines: bool,
    #[serde(default)]
    generic: bool,
    #[serde(default = "yes")]
    made: bool,
    #[serde(default)]
    chosen: bool,
    #[serde(default)]
    unless: Vec<String>,
    /// Values that everybody knows; and so is one that repeats the name before it.
    #[serde(default)]
    known: Vec<String>,
    #[serde(default)]
    checksum: Option<Checksum>,
    /// Made of an [`Issuer`].
    #[serde(skip)]
    named: bool,
}

impl Row {
    /// Whether capitals count in its keywords. A regex without regard to case says so; of all others the keyword is a part
    /// as it stands.
    fn exact(&self) -> bool {
        !self.regex.contains("(?i")
    }
}

/// A key whose form only its issuer's name tells from other values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Issuer {
    id: String,
    names: Vec<String>,
    form: String,
}

impl Issuer {
    /// The name, up to twenty characters of an identifier, an assignment, the value: the shape of gitleaks' rules. Where what stands
    /// before the value is called a key, a blank is enough; and none is needed before a quoted value right behind the name.
    fn row(self) -> Row {
        let names: Vec<String> = self.names.iter().map(|n| regex::escape(n)).collect();
        let regex = format!(
            r#"^(?i:{})(?:[\w.\- \t]{{0,26}}(?:[\s'"]{{0,3}}(?:=>|:{{1,3}}=|\|\||\?=|[=>:,])[\s'"`=]{{0,5}}|(?i:key|token|secret|password)["']?(?:\s{{1,4}}|\s{{1,3}}-\s{{1,3}})["'`]?)|(?i:_?api|_?client)?[ (]{{0,2}}["'`])(?<secret>{})(?:[\s'"`;,)}}<\\\x1b]|$)"#,
            names.join("|"),
            self.form
        );
        Row {
            id: self.id,
            keywords: self.names,
            regex,
            entropy: 2.5,
            inside: true,
            window: 320,
            before: 0,
            lines: false,
            generic: false,
            made: false,
            chosen: false,
            unless: Vec::new(),
            known: Vec::new(),
            checksum: None,
            named: true,
        }
    }
}

fn yes() -> bool {
    true
}

fn default_entropy() -> f64 {
    3.0
}

fn default_window() -> usize {
    256
}

/// One format, its regex compiled when its keyword is first met.
#[derive(Debug)]
struct Rule {
    row: Row,
    regex: OnceLock<Option<Regex>>,
}

impl Rule {
    /// `None` only for a pattern that does not compile, which a test excludes.
    fn regex(&self) -> Option<&Regex> {
        let build = || RegexBuilder::new(&self.row.regex).unicode(false).size_limit(4 << 20).build().ok();
        self.regex.get_or_init(build).as_ref()
    }
}

/// A credential in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit<'r> {
    /// The rule's id.
    pub(crate) rule: &'r str,
    /// Byte offsets of the secret part.
    pub(crate) span: (usize, usize),
    /// The secret part, where it is written with escapes.
    meant: Option<Box<[u8]>>,
    /// Known by its place only, not by its form.
    pub(crate) generic: bool,
    /// Its checksum is right.
    pub(crate) checked: bool,
}

impl Hit<'_> {
    /// The secret part, of the text that was scanned.
    pub(crate) fn value<'h>(&'h self, text: &'h [u8]) -> &'h [u8] {
        self.meant.as_deref().unwrap_or_else(|| text.get(self.span.0..self.span.1).unwrap_or_default())
    }

    /// How sure it is that this is a credential.
    pub(crate) fn confidence(&self) -> Confidence {
        match (self.generic, self.checked) {
            (true, _) => Confidence::Possible,
            (false, false) => Confidence::Likely,
            (false, true) => Confidence::Certain,
        }
    }
}

/// The formats of `profiles/detect/credentials.toml`.
#[derive(Debug)]
pub(crate) struct Credentials {
    rules: Vec<Rule>,
    matcher: Keywords,
    /// The rule of each keyword.
    owner: Vec<usize>,
    /// First 16 hex digits of the digests of secrets that are none, sorted.
    published: Vec<String>,
}

impl Credentials {
    pub(crate) fn load(text: &str) -> Result<Self, TableError> {
        let table = |e: &dyn std::fmt::Display| TableError::new("credentials.toml", e);
        let file: File = toml::from_str(text).map_err(|e| table(&e))?;
        // Of overlapping hits the first rule's counts: a form of its own, then an issuer's name, then a mere place.
        let (generic, exact): (Vec<Row>, Vec<Row>) = file.rule.into_iter().partition(|r| r.generic);
        let rows: Vec<Row> = exact.into_iter().chain(file.issuer.into_iter().map(Issuer::row)).chain(generic).collect();
        let mut keywords = Vec::new();
        let mut owner = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            keywords.extend(row.keywords.iter().map(|k| (k, row.exact())));
            owner.extend(row.keywords.iter().map(|_| i));
        }
        let matcher = Keywords::with_case(keywords);
        let rules = rows.into_iter().map(|row| Rule { row, regex: OnceLock::new() }).collect();
        let mut published = file.published;
        published.sort();
        Ok(Self { rules, matcher, owner, published })
    }

    /// The words that credentials are found by, and whether capitals count in them.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&str, bool)> {
        self.rules.iter().flat_map(|rule| rule.row.keywords.iter().map(|word| (word.as_str(), rule.row.exact())))
    }

    /// The credentials in `text`, by place; of overlapping ones the format that is listed first. At most [`MAX_HITS`] that have a form
    /// of their own and as many that only their place tells, so that one kind hides none of the other, and the regexes may look at 64 bytes for each byte of text.
    pub(crate) fn scan(&self, text: &[u8]) -> Vec<Hit<'_>> {
        let mut hits: Vec<(usize, Hit<'_>)> = Vec::new();
        // Of those with a form of their own, and of the others.
        let mut room = [MAX_HITS; 2];
        let mut budget = text.len().saturating_mul(64).saturating_add(64 * 1024);
        let mut plain_budget = text.len().saturating_mul(PLAIN_SHARE).saturating_add(64 * 1024);
        self.matcher.each(text, |met| {
            let index = self.owner.get(met.word).copied().unwrap_or_default();
            let Some(rule) = self.rules.get(index) else { return true };
            let Some(room) = room.get_mut(usize::from(rule.row.generic)).filter(|room| **room > 0) else { return true };
            let start = met.start.saturating_sub(rule.row.before);
            if !rule.row.unless.is_empty() && preceded(text, start, &rule.row.unless) {
                return true;
            }
            if !rule.row.inside && edge::within_word(text.get(..start).unwrap_or_default()) {
                return true;
            }
            // Inside a credential that was already found at this place by the same rule.
            if hits.iter().rev().take(4).any(|(i, h)| *i == index && start < h.span.1) {
                return true;
            }
            let behind = text.get(start..).unwrap_or_default();
            let window = behind.get(..behind.len().min(met.start - start + rule.row.window)).unwrap_or_default();
            let mut found = self.secret(rule, window, &mut budget).map(|(from, to)| ((from, to), None));
            let most = if rule.row.lines { window.len() } else { window.len().min(MAX_PLAIN) };
            if found.is_none()
                && plain_budget >= most
                && let Some(plain) = Plain::of(behind, (met.end - start, most), rule.row.lines)
            {
                plain_budget -= most;
                found = self.secret(rule, &plain.bytes, &mut budget).and_then(|(from, to)| {
                    let (meant, place) = (plain.bytes.get(from..to)?, plain.place((from, to))?);
                    let stands = behind.get(place.0..place.1).is_some_and(|text| text == meant);
                    Some((place, (!stands).then(|| meant.into())))
                });
            }
            if let Some(((from, to), meant)) = found {
                let (rule, generic) = (&rule.row, rule.row.generic);
                let span = (start + from, start + to);
                let secret = meant.as_deref().or_else(|| text.get(span.0..span.1)).unwrap_or_default();
                let checked = rule.checksum.is_some_and(|c| c.holds(secret));
                hits.push((index, Hit { rule: &rule.id, span, meant, generic, checked }));
                *room -= 1;
            }
            if budget == 0 {
                return false;
            }
            true
        });
        for span in shape::each(text).take(room[0]) {
            let secret = text.get(span.0..span.1).unwrap_or_default();
            if randomness::entropy(secret) >= 3.5 && !randomness::placeholder(secret) {
                hits.push((
                    self.rules.len(),
                    Hit { rule: shape::RULE, span, meant: None, generic: false, checked: false },
                ));
            }
        }
        // The same characters under two rules are one credential: the more exact rule stands first in the file.
        hits.sort_by_key(|(index, h)| (*index, h.span));
        let mut out: Vec<Hit<'_>> = Vec::new();
        for (_, hit) in hits {
            if !out.iter().any(|o| o.span.0 < hit.span.1 && hit.span.0 < o.span.1) {
                out.push(hit);
            }
        }
        out.sort_by_key(|h| h.span);
        out
    }

    /// Where the secret stands in what a rule's keyword begins, if the rule finds one there.
    fn secret(&self, rule: &Rule, window: &[u8], budget: &mut usize) -> Option<(usize, usize)> {
        let Some(captures) = rule.regex().and_then(|r| r.captures(window)) else {
            *budget = budget.saturating_sub(8);
            return None;
        };
        *budget = budget.saturating_sub(captures.get(0).map_or(0, |m| m.len()));
        let secret = ["secret", "claims", "other", "third", "fourth", "only"]
            .into_iter()
            .find_map(|name| captures.name(name))?;
        let json = captures.name("json").is_none_or(|m| decode::base64_json(m.as_bytes()));
        let basic = captures.name("basic").is_none_or(|m| decode::base64_pair(m.as_bytes()));
        // A token of a chain is known by its contract's address, which is public.
        let contract = rule.row.generic
            && window.get(..TOKEN.len()).is_some_and(|name| name.eq_ignore_ascii_case(TOKEN))
            && randomness::chain_address(secret.as_bytes());
        let is = json && basic && plausible(&rule.row, secret.as_bytes()) && !self.is_published(secret.as_bytes());
        let identifier = rule.row.named && {
            let begins =
                |name: &&String| window.get(..name.len()).is_some_and(|w| w.eq_ignore_ascii_case(name.as_bytes()));
            let issuer = rule.row.keywords.iter().filter(begins).map(String::len).max().unwrap_or_default();
            names_identifier(window.get(issuer..secret.start()).unwrap_or_default())
        };
        let wrong = rule.row.checksum.is_some_and(|c| c.needed() && !c.holds(secret.as_bytes()));
        let is = is && !contract && !identifier && !wrong && !known(&rule.row, window, (secret.start(), secret.end()));
        is.then(|| (secret.start(), secret.end()))
    }

    /// Whether documentation shows this very secret as an example.
    fn is_published(&self, secret: &[u8]) -> bool {
        let digest = Digest::of(secret).to_string();
        let start = digest.get(..16).unwrap_or_default();
        self.published.binary_search_by(|p| p.as_str().cmp(start)).is_ok()
    }

    /// Whether a member of this name holds a secret, so that its value is read as an assignment.
    pub(crate) fn names_secret(&self, key: &str) -> bool {
        let mut names = false;
        if key.len() <= 64 && !key.contains("://") {
            self.matcher.each(key.as_bytes(), |met| {
                let rule = self.owner.get(met.word).and_then(|i| self.rules.get(*i));
                names = rule.is_some_and(|r| r.row.inside && r.row.before == 0);
                !names
            });
        }
        names
    }
}

/// Whether what stands before a value calls it an identifier: `ISSUER_ORG_ID=`.
fn names_identifier(before: &[u8]) -> bool {
    let end = before.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |at| at + 1);
    let name = before.get(..end).unwrap_or_default();
    [b"_id".as_slice(), b"-id", b" id"].iter().any(|id| {
        name.len()
            .checked_sub(id.len())
            .and_then(|from| name.get(from..))
            .is_some_and(|end| end.eq_ignore_ascii_case(id))
    }) || name.ends_with(b"Id")
}

/// Whether one of these words stands just before `at`, with at most one `-` or `_` between.
fn preceded(text: &[u8], at: usize, words: &[String]) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let head = head.strip_suffix(b"_").or_else(|| head.strip_suffix(b"-")).unwrap_or(head);
    words.iter().any(|w| {
        head.len()
            .checked_sub(w.len())
            .and_then(|from| head.get(from..))
            .is_some_and(|t| t.eq_ignore_ascii_case(w.as_bytes()))
    })
}

/// Whether everybody knows a value, or it repeats the whole name before it, and it opens something on this machine or beside it: a host
/// without a dot is a container's.
fn known(row: &Row, window: &[u8], (from, to): (usize, usize)) -> bool {
    if row.known.is_empty() {
        return false;
    }
    let part = |range: std::ops::Range<usize>| window.get(range).unwrap_or_default();
    let (before, secret) = (part(0..from), part(from..to));
    let name = before.strip_prefix(b"://").and_then(|rest| rest.strip_suffix(b":"));
    let again = name == Some(secret) && !randomness::looks_made(secret);
    let host = part(to..window.len()).strip_prefix(b"@").unwrap_or_default();
    let host = host.split(|b| b":/?#\"' \n\r,".contains(b)).next().unwrap_or_default();
    let near = host == b"127.0.0.1" || !host.contains(&b'.');
    near && (again || row.known.iter().any(|word| secret.eq_ignore_ascii_case(word.as_bytes())))
}

fn plausible(row: &Row, secret: &[u8]) -> bool {
    if randomness::entropy(secret) < row.entropy || randomness::placeholder(secret) {
        return false;
    }
    if row.named {
        return secret.iter().any(u8::is_ascii_digit) && !randomness::typed(secret);
    }
    let made = || {
        !row.made
            || randomness::looks_made(secret)
            || randomness::hex(secret)
            || randomness::generated(secret)
            || row.chosen && (randomness::chosen(secret) || randomness::word_and_number(secret))
    };
    !row.generic || made() && !randomness::written(secret) && !randomness::typed(secret)
}

#[cfg(test)]
mod tests;
