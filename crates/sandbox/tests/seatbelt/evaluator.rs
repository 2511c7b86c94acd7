//! What a profile decides, as sandbox(7)'s kernel part does: the last rule that matches. It knows the part of SBPL that our
//! profiles use and panics on anything else, so that no rule goes unread.

use std::{collections::BTreeMap, iter::Peekable, str::Chars};

use regex::Regex;

/// An S-expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    Word(String),
    Text(String),
    List(Vec<Form>),
}

impl Form {
    fn list(&self) -> &[Form] {
        match self {
            Self::List(items) => items,
            other => panic!("no list: {other:?}"),
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            other => panic!("no word: {other:?}"),
        }
    }
}

/// Reads every form of a text.
pub fn read(text: &str) -> Vec<Form> {
    let mut chars = text.chars().peekable();
    let mut forms = Vec::new();
    while let Some(form) = form(&mut chars) {
        forms.push(form);
    }
    assert!(chars.next().is_none(), "a parenthesis too many");
    forms
}

fn form(chars: &mut Peekable<Chars<'_>>) -> Option<Form> {
    while let Some(c) = chars.peek() {
        match c {
            c if c.is_whitespace() => drop(chars.next()),
            ';' => drop(chars.by_ref().find(|c| *c == '\n')),
            _ => break,
        }
    }
    match chars.peek()? {
        ')' => None,
        '(' => {
            chars.next();
            let mut items = Vec::new();
            while let Some(item) = form(chars) {
                items.push(item);
            }
            assert_eq!(chars.next(), Some(')'), "a list is not closed");
            Some(Form::List(items))
        }
        '"' => {
            chars.next();
            let text: String = chars.by_ref().take_while(|c| *c != '"').collect();
            assert!(!text.contains('\\'), "no text of ours needs a backslash: {text}");
            Some(Form::Text(text))
        }
        _ => {
            let mut word = String::new();
            while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"()\";".contains(*c)) {
                word.push(c);
            }
            Some(Form::Word(word))
        }
    }
}

/// What an operation is about. What does not apply is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct On<'a> {
    /// Canonical path of a file or socket.
    pub path: &'a str,
    /// As SBPL names it; empty for a regular file.
    pub kind: &'a str,
    /// Service, sysctl, shared memory, class.
    pub name: &'a str,
    /// `host:port`, the far end.
    pub remote: &'a str,
    /// Domain and protocol of a socket.
    pub socket: (&'a str, &'a str),
    /// The other process is in the same sandbox.
    pub same_sandbox: bool,
}

/// A profile that can be asked.
pub struct Evaluator {
    rules: Vec<(bool, Vec<String>, Vec<Form>)>,
    parameters: BTreeMap<String, String>,
    regexes: BTreeMap<String, Regex>,
}

impl Evaluator {
    pub fn new(text: &str, parameters: &[(String, String)]) -> Self {
        let mut rules = Vec::new();
        for form in read(text) {
            let items = form.list();
            let allow = match items[0].word() {
                "version" => continue,
                "allow" => true,
                "deny" => false,
                other => panic!("no rule: {other}"),
            };
            let operations = items[1..].iter().take_while(|i| matches!(i, Form::Word(_)));
            let operations: Vec<String> = operations.map(|o| o.word().to_owned()).collect();
            assert!(!operations.is_empty(), "a rule about nothing");
            let filters: Vec<Form> = items[1 + operations.len()..].to_vec();
            let modifier = |f: &Form| f.list()[0].word() == "with";
            let filters = filters.into_iter().filter(|f| !modifier(f)).collect();
            rules.push((allow, operations, filters));
        }
        let regexes = parameters
            .iter()
            .filter(|(name, _)| name.starts_with("NAME") || name.starts_with("EXCEPT"))
            .map(|(_, regex)| (regex.clone(), Regex::new(regex).unwrap()))
            .collect();
        Self { rules, parameters: parameters.iter().cloned().collect(), regexes }
    }

    /// Whether an operation is allowed.
    pub fn allows(&self, operation: &str, on: On<'_>) -> bool {
        let about = |name: &String| match name.strip_suffix('*') {
            _ if name == "default" => true,
            Some(stem) => operation.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
            None => name == operation,
        };
        let fits = |(_, operations, filters): &&(bool, Vec<String>, Vec<Form>)| {
            operations.iter().any(about) && (filters.is_empty() || filters.iter().any(|f| self.matches(f, on)))
        };
        self.rules.iter().rev().find(fits).is_some_and(|(allow, ..)| *allow)
    }

    /// Whether each `deny` but the default stands after each `allow`.
    pub fn denies_come_last(&self) -> bool {
        let first = self.rules.iter().skip(1).position(|(allow, ..)| !allow).unwrap_or(self.rules.len());
        !self.rules[0].0 && self.rules.iter().skip(first + 1).all(|(allow, ..)| !allow)
    }

    fn text(&self, form: &Form) -> String {
        match form {
            Form::Text(text) => text.clone(),
            Form::List(items) if items[0].word() == "param" => {
                let Form::Text(name) = &items[1] else { panic!("no parameter's name: {form:?}") };
                self.parameters.get(name).unwrap_or_else(|| panic!("{name} has no value")).clone()
            }
            other => panic!("no text: {other:?}"),
        }
    }

    fn matches(&self, filter: &Form, on: On<'_>) -> bool {
        let items = filter.list();
        let rest = &items[1..];
        let named = || self.text(&rest[0]);
        match items[0].word() {
            "require-all" => rest.iter().all(|f| self.matches(f, on)),
            "require-not" => !self.matches(&rest[0], on),
            "literal" => on.path == named(),
            "subpath" => {
                let top = named();
                let below = on.path.strip_prefix(top.trim_end_matches('/'));
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            "regex" => self.regexes[&named()].is_match(on.path),
            "vnode-type" => rest[0].word() == if on.kind.is_empty() { "REGULAR-FILE" } else { on.kind },
            "global-name" | "sysctl-name" | "ipc-posix-name" | "iokit-registry-entry-class" => on.name == named(),
            "sysctl-name-prefix" | "ipc-posix-name-prefix" => on.name.starts_with(&named()),
            "target" => {
                assert_eq!(rest[0].word(), "same-sandbox");
                on.same_sandbox
            }
            "remote" => {
                assert_eq!(rest[0].word(), "ip");
                let Form::Text(want) = &rest[1] else { panic!("no address: {filter:?}") };
                let (host, port) = want.rsplit_once(':').unwrap();
                assert_eq!(host, "localhost");
                on.remote.rsplit_once(':').is_some_and(|(h, p)| p == port && matches!(h, "127.0.0.1" | "[::1]"))
            }
            "socket-domain" => on.socket.0 == rest[0].word(),
            "socket-protocol" => on.socket.1 == rest[0].word(),
            other => panic!("no filter of ours: {other}"),
        }
    }
}
