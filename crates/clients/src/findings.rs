//! What a configuration says about its servers that their user should know: codes that stay the same, each with an
//! explanation and a remedy. `docs/scan-codes.md` lists them.
//!
//! Only the text of the configuration is looked at: nothing is started, nothing is looked up. A finding never holds a
//! value that may be a secret, and shows names only with their invisible characters made visible.

mod code;
mod names;
mod runner;

use std::path::{Path, PathBuf};

use firedoor_model::{EntryId, Severity, Untrusted};
use serde::Serialize;

pub use code::Code;
pub(crate) use names::Packages;

use crate::{
    catalog::{Interpolation, stem},
    discover::{ConfigFile, Located},
    document::{Remote, Shape, Span, Stdio, Str},
    error::Problem,
    secret,
    wrap::wrapped,
};

/// One thing to know about one server, or about one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which kind of thing.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Which server; none when it is about the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Where it stands.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What was found, in one sentence. Safe to show.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// After this many findings in one file, the rest of its servers is not looked at; that is a finding, too.
const MAX_PER_FILE: usize = 1000;

/// Collects findings over all files.
pub(crate) struct Findings<'p> {
    packages: &'p Packages,
    all: Vec<Finding>,
    /// How many there were before the file at hand.
    before: usize,
    /// It has too many.
    full: bool,
    /// The last name in it.
    mark: Mark,
    /// What each server is, to find it again in another client: its own command line, or its address.
    seen: Vec<(Vec<String>, usize, Finding)>,
}

/// One word of a command line, and the string of the file that it stands in.
#[derive(Clone)]
struct Word {
    text: String,
    span: Span,
    /// It is, or carries, a secret: never shown.
    hidden: bool,
}

/// The entry that findings are about.
struct Place<'a> {
    file: &'a ConfigFile,
    text: &'a str,
    id: &'a EntryId,
    /// Where its name stands: what is counted from is near, because a file can have many megabytes.
    name: Mark,
}

/// A place in a text, in bytes and as people count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: usize,
    line: usize,
    column: usize,
}

impl Mark {
    /// The beginning.
    pub const START: Self = Self { at: 0, line: 1, column: 1 };

    /// A place behind this one; one in front of it is counted from the beginning.
    fn go(self, text: &str, at: usize) -> Self {
        let from = if at < self.at { Self::START } else { self };
        let between = text.get(from.at..at).unwrap_or_default();
        let lines = between.matches('\n').count();
        let last = between.rsplit('\n').next().unwrap_or_default().chars().count();
        let column = if lines == 0 { from.column + last } else { last + 1 };
        Self { at, line: from.line + lines, column }
    }
}

impl Place<'_> {
    fn finding(&self, code: Code, at: &Span, message: String) -> Finding {
        let Mark { line, column, .. } = self.name.go(self.text, at.start);
        let (severity, remedy) = (code.severity(), code.remedy());
        let (entry, path) = (Some(self.id.clone()), self.file.path.clone());
        Finding { code, severity, entry, path, line, column, message, remedy }
    }
}

impl<'p> Findings<'p> {
    pub fn new(packages: &'p Packages) -> Self {
        Self { packages, all: Vec::new(), before: 0, full: false, mark: Mark::START, seen: Vec::new() }
    }

    /// A file whose servers are not known.
    pub fn unread(&mut self, path: &Path, problem: &Problem) {
        let (line, column) = (problem.line.unwrap_or(1), problem.column.unwrap_or(1));
        self.unseen(path, line, column, Untrusted::new(problem.message.as_str()).visible(400));
    }

    /// Servers whose names are too long.
    pub fn left_out(&mut self, path: &Path, count: usize) {
        self.unseen(path, 1, 1, format!("{count} servers are left out: their names are too long"));
    }

    fn unseen(&mut self, path: &Path, line: usize, column: usize, message: String) {
        let code = Code::Unread;
        let (severity, remedy) = (code.severity(), code.remedy());
        self.all.push(Finding { code, severity, entry: None, path: path.to_owned(), line, column, message, remedy });
    }

    /// Begins a file.
    pub fn begin(&mut self) {
        self.mark = Mark::START;
        self.before = self.all.len();
        self.full = false;
    }

    /// Looks at one server of the file that was begun.
    pub fn judge(&mut self, file: &ConfigFile, text: &str, located: &Located, rules: Interpolation) {
        if self.all.len() - self.before >= MAX_PER_FILE {
            if !std::mem::replace(&mut self.full, true) {
                let message = format!("{MAX_PER_FILE} findings and more: the rest of the file was not looked at");
                self.unseen(&file.path, 1, 1, message);
            }
            return;
        }
        let name = &located.server.name.span;
        self.mark = self.mark.go(text, name.start);
        let place = Place { file, text, id: &located.id, name: self.mark };
        match &located.server.shape {
            Shape::Stdio(stdio) => {
                let line = own_line(stdio, rules);
                self.secrets_in_env(&place, stdio, rules);
                for word in line.iter().filter(|w| w.hidden) {
                    let message = "a word of its command line looks like a secret in clear".to_owned();
                    self.all.push(place.finding(Code::Secret, &word.span, message));
                }
                self.command(&place, &line);
                let words = line.into_iter().map(|w| w.text).collect();
                self.remember(words, &place, name);
            }
            Shape::Remote(remote) => {
                self.remote(&place, remote, rules);
                let url = remote.url.as_ref().map(|u| u.value.clone());
                url.into_iter().for_each(|url| self.remember(vec![url], &place, name));
            }
            // What cannot be rewritten is not read further; its state says why.
            Shape::Odd(_) => {}
        }
    }

    fn secrets_in_env(&mut self, place: &Place<'_>, stdio: &Stdio, rules: Interpolation) {
        for (variable, value) in &stdio.env {
            let Some(value) = value.as_ref().filter(|v| secret::in_clear(rules, Some(variable), &v.value)) else {
                continue;
            };
            let shown = Untrusted::new(variable.as_str()).visible(80);
            let message = format!("the value of {shown} in its env looks like a secret in clear");
            self.all.push(place.finding(Code::Secret, &value.span, message));
        }
    }

    fn remote(&mut self, place: &Place<'_>, remote: &Remote, rules: Interpolation) {
        if let Some(Str { span, value }) = &remote.url {
            if plain_http(value) {
                let message = "it is reached over http, without encryption".to_owned();
                self.all.push(place.finding(Code::PlainHttp, span, message));
            }
            if secret::in_url(rules, value) {
                let message = "its address holds what looks like a secret in clear".to_owned();
                self.all.push(place.finding(Code::RemoteSecret, span, message));
            }
        }
        for (header, value) in &remote.headers {
            if secret::in_clear(rules, Some(header), &value.value) {
                let shown = Untrusted::new(header.as_str()).visible(80);
                let message = format!("the value of its header {shown} looks like a secret in clear");
                self.all.push(place.finding(Code::RemoteSecret, &value.span, message));
            }
        }
    }

    fn command(&mut self, place: &Place<'_>, line: &[Word]) {
        let mut add = |code: Code, at: &Word, message: String| {
            let finding = place.finding(code, &at.span, message);
            if !self.all.contains(&finding) {
                self.all.push(finding);
            }
        };
        let line = runner::unwrapped(line, &mut add);
        let Some(program) = line.first() else { return };
        let name = stem(&program.text);
        if matches!(name.as_str(), "docker" | "podman") {
            let words: Vec<&str> = line.iter().skip(1).map(|w| w.text.as_str()).collect();
            let container = firedoor_model::container::container(&words);
            for opening in container.openings.iter().filter(|o| !o.path) {
                add(Code::OpenContainer, program, Untrusted::new(opening.text.as_str()).visible(300));
            }
            if let Some(image) = container.image {
                let at = line.iter().find(|w| w.text == image).unwrap_or(program);
                names::image(self.packages, &image, at, &mut add);
            }
            return;
        }
        for package in runner::packages(&name, line.get(1..).unwrap_or_default()) {
            names::package(self.packages, &package, &mut add);
        }
    }

    fn remember(&mut self, what: Vec<String>, place: &Place<'_>, name: &Span) {
        let finding = place.finding(Code::Duplicate, name, String::new());
        self.seen.push((what, self.all.len(), finding));
    }

    /// Everything, in the order of the files, with servers that stand in several clients.
    pub fn all(mut self) -> Vec<Finding> {
        let mut groups = std::collections::BTreeMap::<&[String], Vec<usize>>::new();
        for (at, (what, ..)) in self.seen.iter().enumerate() {
            groups.entry(what).or_default().push(at);
        }
        let client = |at: &usize| self.seen.get(*at).and_then(|(.., f)| f.entry.as_ref()).map(EntryId::client);
        let mut duplicates = Vec::new();
        for group in groups.values() {
            let mut clients: Vec<&str> = group.iter().filter_map(client).collect();
            clients.sort_unstable();
            clients.dedup();
            let Some((_, behind, first)) = group.first().and_then(|at| self.seen.get(*at)) else { continue };
            if clients.len() > 1 {
                let message =
                    format!("the same server is configured in {} clients: {}", clients.len(), clients.join(", "));
                duplicates.push((*behind, Finding { message, ..first.clone() }));
            }
        }
        // From the end, so that earlier places stay where they are.
        duplicates.sort_by_key(|(behind, _)| std::cmp::Reverse(*behind));
        for (behind, finding) in duplicates {
            self.all.insert(behind, finding);
        }
        self.all
    }
}

/// The server's own command and arguments; of a protected entry those behind the shim's.
fn own_line(stdio: &Stdio, rules: Interpolation) -> Vec<Word> {
    let skip = wrapped(stdio).map_or(0, |w| w.command_at + 1);
    let line: Vec<&Str> = std::iter::once(&stdio.command).chain(stdio.args()).skip(skip).collect();
    let texts: Vec<&str> = line.iter().map(|s| s.value.as_str()).collect();
    let word = |(at, s): (usize, &&Str)| Word {
        text: s.value.clone(),
        span: s.span.clone(),
        hidden: secret::arg_in_clear(rules, &texts, at),
    };
    line.iter().enumerate().map(word).collect()
}

/// Whether an address is not encrypted and leaves this machine.
fn plain_http(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("ws") {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    !(loopback || host == "localhost" || host.ends_with(".localhost"))
}

#[cfg(test)]
mod tests;
