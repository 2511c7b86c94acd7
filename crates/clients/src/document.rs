//! The servers in one JSON or JSONC text, as spans of it. Nothing is ever serialised from this view: edits splice the
//! original text.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, StringLit, Value},
    common::Ranged,
    parse_to_ast,
};

use crate::catalog::Syntax;

/// Most servers in one map. More is no configuration that anybody wrote.
pub(crate) const MAX_SERVERS: usize = 1000;

/// A place in the text, in bytes.
pub(crate) type Span = Range<usize>;

/// Where and why a text is not what the client reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

/// A string in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Str {
    pub span: Span,
    pub value: String,
}

/// One member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub key: Span,
    pub value: Span,
}

/// One server as the client reads it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Key that a `*` in the path matched: the project.
    pub project: Option<String>,
    pub name: Str,
    pub shape: Shape,
}

/// What stands at the server's name.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Starts a program.
    Stdio(Box<Stdio>),
    /// Reaches a URL.
    Remote,
    /// Something that cannot be rewritten, and why.
    Odd(String),
}

/// An entry that starts a program.
#[derive(Clone, Debug)]
pub(crate) struct Stdio {
    pub members: Vec<Member>,
    /// Index of the `command` that counts.
    pub command_at: usize,
    pub command: Str,
    /// Index of the `args` that count, their span and elements.
    pub args: Option<(usize, Span, Vec<Str>)>,
    pub env: Vec<(String, String)>,
    pub env_file: Option<String>,
}

impl Stdio {
    pub fn args(&self) -> &[Str] {
        self.args.as_ref().map_or(&[], |(_, _, all)| all)
    }
}

/// Every server under `path` (keys from the root; `*` matches all), in the order of the text. Where a name stands twice
/// only the last is listed, as clients read it (checked with six of them).
pub(crate) fn servers(text: &str, syntax: Syntax, path: &[String]) -> Result<Vec<Server>, SyntaxError> {
    let shadow = shadow(text);
    let Some(root) = parse(text, &shadow, syntax)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    descend(&root, path, None, &mut |project, map| {
        for (key, value) in last_of_each(map).into_iter().take(MAX_SERVERS) {
            found.push(server(text, project, key, value));
        }
        if map.properties.len() > MAX_SERVERS {
            let (line, column) = position(text, map.range.start);
            return Err(SyntaxError { line, column, what: format!("more than {MAX_SERVERS} servers") });
        }
        Ok(())
    })?;
    Ok(found)
}

/// The keys of the object at `path`, such as the projects of a user file.
pub(crate) fn keys(text: &str, syntax: Syntax, path: &[String]) -> Result<Vec<String>, SyntaxError> {
    let shadow = shadow(text);
    let Some(root) = parse(text, &shadow, syntax)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    descend(&root, path, None, &mut |_, map| {
        names.extend(last_of_each(map).into_iter().map(|(key, _)| key.value));
        Ok(())
    })?;
    Ok(names)
}

/// Calls `each` with every string value of the text and the key it stands at (or that of the array it stands in).
pub(crate) fn strings(
    text: &str,
    syntax: Syntax,
    mut each: impl FnMut(Option<&str>, Span, &str),
) -> Result<(), SyntaxError> {
    fn walk(value: &Value<'_>, key: Option<&str>, each: &mut impl FnMut(Option<&str>, Span, &str)) {
        match value {
            Value::StringLit(s) => each(key, s.start()..s.end(), &s.value),
            Value::Array(a) => a.elements.iter().for_each(|v| walk(v, key, each)),
            Value::Object(o) => o.properties.iter().for_each(|p| walk(&p.value, Some(p.name.as_str()), each)),
            Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }
    let shadow = shadow(text);
    if let Some(root) = parse(text, &shadow, syntax)? {
        walk(&root, None, &mut each);
    }
    Ok(())
}

fn parse<'t>(text: &str, shadow: &'t str, syntax: Syntax) -> Result<Option<Value<'t>>, SyntaxError> {
    let jsonc = syntax == Syntax::Jsonc;
    let options = ParseOptions {
        allow_comments: jsonc,
        allow_trailing_commas: jsonc,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let value = parse_to_ast(shadow, &CollectOptions::default(), &options)
        .map_err(|e| SyntaxError {
            line: e.line_display(),
            column: e.column_display(),
            what: e.kind().to_string().to_lowercase(),
        })?
        .value;
    // A second reader for strict files, because the clients that read them lose everything over a slip: jsonc-parser
    // takes raw control characters in strings and leading zeros, for example. An empty file holds no server and is
    // no concern of ours.
    if !jsonc && value.is_some() {
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|e| {
            let what = e.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            SyntaxError { line: e.line(), column: e.column(), what }
        })?;
    }
    Ok(value)
}

/// The text with every lone surrogate escape replaced by `\ufffd`, byte for byte as long, so that all spans are those
/// of the original. Clients written in JavaScript write such escapes (a prompt cut in the middle of an emoji); a Rust
/// string cannot hold them.
fn shadow(text: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let here = at + found;
        match unit(text, here) {
            Some(0xD800..=0xDBFF) if matches!(unit(text, here + 6), Some(0xDC00..=0xDFFF)) => at = here + 12,
            Some(0xD800..=0xDFFF) => {
                out.get_or_insert_with(|| text.to_owned()).replace_range(here..here + 6, "\\ufffd");
                at = here + 6;
            }
            // The character behind a backslash is never the start of another escape.
            _ => at = here + 1 + text.get(here + 1..).and_then(|r| r.chars().next()).map_or(0, char::len_utf8),
        }
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The UTF-16 unit of an escape `\uXXXX` at `at`.
fn unit(text: &str, at: usize) -> Option<u16> {
    let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(hex, 16).ok()
}

fn descend<'v>(
    value: &'v Value<'v>,
    path: &[String],
    project: Option<&str>,
    each: &mut impl FnMut(Option<&str>, &'v Object<'v>) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let Some((key, rest)) = path.split_first() else { return each(project, object) };
    for (name, value) in last_of_each(object) {
        if key == "*" {
            descend(value, rest, Some(&name.value), each)?;
        } else if *key == name.value {
            descend(value, rest, project, each)?;
        }
    }
    Ok(())
}

/// The members that count: of equal names the last.
fn last_of_each<'v>(object: &'v Object<'v>) -> Vec<(Str, &'v Value<'v>)> {
    let mut seen = HashSet::new();
    let mut all: Vec<_> = object
        .properties
        .iter()
        .rev()
        .filter(|p| seen.insert(p.name.as_str()))
        .map(|p| {
            let range = p.name.range();
            (Str { span: range.start..range.end, value: p.name.as_str().to_owned() }, &p.value)
        })
        .collect();
    all.reverse();
    all
}

fn span(value: &Value<'_>) -> Span {
    value.start()..value.end()
}

fn str_of(lit: &StringLit<'_>) -> Str {
    Str { span: lit.start()..lit.end(), value: lit.value.to_string() }
}

fn server(text: &str, project: Option<&str>, name: Str, value: &Value<'_>) -> Server {
    let shape = match value {
        // See `shadow`: two such names would look the same.
        _ if shadow(text.get(name.span.clone()).unwrap_or_default()) != text[name.span.clone()] => {
            Shape::Odd("its name is not valid Unicode".into())
        }
        // Assigning this key in JavaScript sets an object's prototype instead, so clients differ on what it means.
        _ if name.value == "__proto__" => Shape::Odd("its name means something else to JavaScript clients".into()),
        Value::Object(object) => entry(object),
        _ => Shape::Odd("it is not an object".into()),
    };
    Server { project: project.map(str::to_owned), name, shape }
}

fn entry(object: &Object<'_>) -> Shape {
    let members: Vec<Member> = object
        .properties
        .iter()
        .map(|p| {
            let key = p.name.range();
            Member { key: key.start..key.end, value: span(&p.value) }
        })
        .collect();
    let last = |name: &str| object.properties.iter().rposition(|p| p.name.as_str() == name);
    let value = |at: usize| object.properties.get(at).map(|p| &p.value);
    let at = |name: &str| last(name).and_then(value);
    let odd = |why: &str| Shape::Odd(why.to_owned());

    let remote = ["url", "serverUrl", "httpUrl"].iter().find(|name| at(name).is_some());
    let kind = match at("type") {
        None => None,
        Some(Value::StringLit(s)) => Some(s.value.as_ref()),
        Some(_) => return odd("its type is not a string"),
    };
    let Some(command_at) = last("command") else {
        return if remote.is_some() { Shape::Remote } else { odd("it has no command") };
    };
    if let Some(name) = remote {
        return Shape::Odd(format!("it has both a command and {name}, and clients differ on which one counts"));
    }
    if let Some(kind) = kind.filter(|k| *k != "stdio") {
        return Shape::Odd(format!("it has a command, but its type is {kind:.20?}"));
    }
    let Some(Value::StringLit(command)) = value(command_at) else { return odd("its command is not a string") };
    if command.value.trim().is_empty() {
        return odd("its command is empty");
    }
    let args = match last("args").map(|at| (at, value(at))) {
        None => None,
        Some((at, Some(Value::Array(array)))) => {
            let all: Option<Vec<Str>> = array.elements.iter().map(|v| v.as_string_lit().map(str_of)).collect();
            let Some(all) = all else { return odd("its args are not all strings") };
            Some((at, array.start()..array.end(), all))
        }
        Some(_) => return odd("its args are not an array"),
    };
    let env = match at("env") {
        None | Some(Value::NullKeyword(_)) => Vec::new(),
        Some(Value::Object(env)) => {
            let mut all = Vec::new();
            for (key, value) in last_of_each(env) {
                let Value::StringLit(value) = value else { return odd("its env has a value that is not a string") };
                all.push((key.value, value.value.to_string()));
            }
            all
        }
        Some(_) => return odd("its env is not an object"),
    };
    let env_file = at("envFile").and_then(Value::as_string_lit).map(|s| s.value.to_string());
    Shape::Stdio(Box::new(Stdio { members, command_at, command: str_of(command), args, env, env_file }))
}

/// Line and column (in characters) of a byte, counted from 1.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}
