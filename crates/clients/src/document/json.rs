//! JSON and its relatives. What a client would not read is an error here too, so that it is never written.

use std::{borrow::Cow, collections::HashSet};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, Value},
    common::Ranged,
    parse_to_ast,
};

use super::{
    Layout, MAX_SERVERS, Server, Shape, Span, Str, SyntaxError,
    entry::{self, Field},
    too_many,
};
use crate::{catalog::Syntax, form::Form};

pub(super) fn servers(text: &str, syntax: Syntax, path: &[String], form: &Form) -> Result<Vec<Server>, SyntaxError> {
    let shadow = shadow(text);
    let Some(root) = parse(text, &shadow, syntax)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let none: &[String] = &[];
    let whole = form.bare && is_bare(&root, path);
    descend(&root, if whole { none } else { path }, None, &mut |project, value| {
        let named: Vec<(Str, &Value<'_>)> = match (value, &form.name) {
            (Value::Object(map), _) if whole => {
                last_of_each(map).into_iter().filter(|(_, value)| looks_like_one(value, form)).collect()
            }
            (Value::Object(map), _) => last_of_each(map),
            (Value::Array(all), Some(key)) => {
                let numbered = all.elements.iter().enumerate();
                numbered.map(|(at, value)| (name_of(value, key, at), value)).collect()
            }
            (Value::Array(parts), None) if form.parts => {
                last_of_all(parts.elements.iter().filter_map(Value::as_object))
            }
            _ => Vec::new(),
        };
        if named.len() > MAX_SERVERS {
            return Err(too_many(text, value.start()));
        }
        found.extend(named.into_iter().map(|(name, value)| server(text, project, name, value, form)));
        Ok(())
    })?;
    Ok(found)
}

/// Whether the file has nothing at the first key: its top is the map then.
fn is_bare(root: &Value<'_>, path: &[String]) -> bool {
    let at = |key: &String| root.as_object().map(last_of_each)?.into_iter().find(|(name, _)| name.value == *key);
    path.first().and_then(at).is_none_or(|(_, value)| matches!(value, Value::NullKeyword(_)))
}

/// Whether it is a server and not one of the other things that stand at the top of a file.
fn looks_like_one(value: &Value<'_>, form: &Form) -> bool {
    let says = |key: &str| *key == form.command || form.url.iter().any(|url| url == key);
    value.as_object().is_some_and(|object| object.properties.iter().any(|p| says(p.name.as_str())))
}

pub(super) fn keys(text: &str, syntax: Syntax, path: &[String]) -> Result<Vec<String>, SyntaxError> {
    let shadow = shadow(text);
    let Some(root) = parse(text, &shadow, syntax)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    descend(&root, path, None, &mut |_, value| {
        names.extend(value.as_object().map(last_of_each).unwrap_or_default().into_iter().map(|(key, _)| key.value));
        Ok(())
    })?;
    Ok(names)
}

pub(super) fn texts(text: &str, syntax: Syntax, path: &[String]) -> Result<Vec<(Option<String>, String)>, SyntaxError> {
    fn walk(value: &Value<'_>, path: &[String], star: Option<&str>, out: &mut Vec<(Option<String>, String)>) {
        match (path.split_first(), value) {
            (None, Value::StringLit(s)) => out.push((star.map(str::to_owned), s.value.to_string())),
            (Some((key, rest)), Value::Object(object)) => {
                for (name, value) in last_of_each(object) {
                    if key == "*" {
                        walk(value, rest, star.or(Some(&name.value)), out);
                    } else if *key == name.value {
                        walk(value, rest, star, out);
                    }
                }
            }
            (Some((key, rest)), Value::Array(array)) if key == "*" => {
                for (at, value) in array.elements.iter().enumerate() {
                    walk(value, rest, star.or(Some(&at.to_string())), out);
                }
            }
            _ => {}
        }
    }
    let shadow = shadow(text);
    let mut out = Vec::new();
    if let Some(root) = parse(text, &shadow, syntax)? {
        walk(&root, path, None, &mut out);
    }
    Ok(out)
}

/// The name of a server in a list.
fn name_of(value: &Value<'_>, key: &str, at: usize) -> Str {
    let own = value.as_object().map(last_of_each).unwrap_or_default().into_iter().find(|(name, _)| name.value == key);
    match own {
        Some((_, Value::StringLit(s))) => Str { span: s.start()..s.end(), value: s.value.to_string() },
        _ => Str { span: value.start()..value.start(), value: (at + 1).to_string() },
    }
}

pub(super) fn strings(
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
    let json5 = syntax == Syntax::Json5;
    let options = ParseOptions {
        allow_comments: json5 || matches!(syntax, Syntax::Jsonc | Syntax::JsonComments),
        allow_trailing_commas: json5 || syntax == Syntax::Jsonc,
        allow_loose_object_property_names: json5,
        allow_missing_commas: false,
        allow_single_quoted_strings: json5,
        allow_hexadecimal_numbers: json5,
        allow_unary_plus_numbers: json5,
        allow_bare_decimal_point_numbers: json5,
        allow_non_finite_numbers: json5,
        allow_extended_string_escapes: json5,
    };
    let value = parse_to_ast(shadow, &CollectOptions::default(), &options)
        .map_err(|e| SyntaxError {
            line: e.line_display(),
            column: e.column_display(),
            what: e.kind().to_string().to_lowercase(),
        })?
        .value;
    // A second reader for strict files, because the clients that read them stop or lose everything over a slip:
    // jsonc-parser takes raw control characters in strings and leading zeros, for example. An empty file holds no
    // server and is no concern of ours.
    let strict = match syntax {
        Syntax::Json => Cow::Borrowed(text),
        Syntax::JsonComments => Cow::Owned(without_comments(text)),
        Syntax::Jsonc | Syntax::Json5 | Syntax::Toml | Syntax::Yaml => return Ok(value),
    };
    if value.is_some() {
        serde_json::from_str::<serde::de::IgnoredAny>(&strict).map_err(|e| {
            let what = e.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            SyntaxError { line: e.line(), column: e.column(), what }
        })?;
    }
    Ok(value)
}

/// The text with every comment replaced by blanks, as the clients do it that then take the rest for strict JSON (npm
/// package strip-json-comments). Lines stay lines.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, comment) = match first {
            '"' => (string_end(rest), false),
            '/' if rest.starts_with("//") => (rest.find(['\n', '\r']).unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => (block_end(rest), true),
            other => (other.len_utf8(), false),
        };
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if comment {
            out.extend(token.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { ' ' }));
        } else {
            out.push_str(token);
        }
        rest = behind;
    }
    out
}

/// Length of the `/* … */` that the text begins with.
pub(crate) fn block_end(text: &str) -> usize {
    text.get(2..).and_then(|inside| inside.find("*/")).map_or(text.len(), |n| n + 4)
}

/// Length of the string that the text begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
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
    each: &mut impl FnMut(Option<&str>, &'v Value<'v>) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    let Some((key, rest)) = path.split_first() else { return each(project, value) };
    let object = match value {
        Value::Object(object) => object,
        // Of two with the same name the first counts, as for Claude Code.
        Value::Array(all) => {
            let named = all.elements.iter().find(|one| key != "*" && name_of(one, "name", 0).value == *key);
            return named.map_or(Ok(()), |one| descend(one, rest, project, each));
        }
        _ => return Ok(()),
    };
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
    last_of_all(std::iter::once(object))
}

fn last_of_all<'v>(objects: impl DoubleEndedIterator<Item = &'v Object<'v>>) -> Vec<(Str, &'v Value<'v>)> {
    let mut seen = HashSet::new();
    let mut all: Vec<_> = objects
        .rev()
        .flat_map(|object| object.properties.iter().rev())
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

fn server(text: &str, project: Option<&str>, name: Str, value: &Value<'_>, form: &Form) -> Server {
    let shape = match value {
        // See `shadow`: two such names would look the same.
        _ if shadow(text.get(name.span.clone()).unwrap_or_default()) != text[name.span.clone()] => {
            Shape::Odd("its name is not valid Unicode".into())
        }
        // Assigning this key in JavaScript sets an object's prototype instead, so clients differ on what it means.
        _ if name.value == "__proto__" => Shape::Odd("its name means something else to JavaScript clients".into()),
        Value::Object(object) => entry::shape(Layout::Object, &fields(object), form),
        _ => Shape::Odd("it is not an object".into()),
    };
    Server { project: project.map(str::to_owned), name, shape }
}

fn fields(object: &Object<'_>) -> Vec<Field> {
    let field = |p: &jsonc_parser::ast::ObjectProp<'_>| {
        let key = p.name.range();
        Field {
            key: Str { span: key.start..key.end, value: p.name.as_str().to_owned() },
            span: span(&p.value),
            value: of_value(&p.value),
        }
    };
    object.properties.iter().map(field).collect()
}

fn of_value(value: &Value<'_>) -> entry::Value {
    match value {
        Value::StringLit(s) => entry::Value::Text(s.value.to_string()),
        Value::NumberLit(n) => entry::Value::Number(n.value.to_owned()),
        Value::BooleanLit(b) => entry::Value::Bool(b.value),
        Value::NullKeyword(_) => entry::Value::Null,
        Value::Array(a) => entry::Value::List(a.elements.iter().map(|v| (span(v), of_value(v))).collect()),
        Value::Object(o) => entry::Value::Map(fields(o)),
    }
}
