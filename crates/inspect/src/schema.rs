//! Do a call's arguments fit the tool's own `inputSchema`?
//!
//! A small part of JSON Schema (draft 2020-12), each keyword judged by itself: `type`, `enum`, `required`, `properties`,
//! `additionalProperties: false`, `items`. What else a schema says is not looked at, so that what is found is always a
//! violation. A schema with `$ref` in it says at that place what this does not resolve: nothing is checked there.

use std::borrow::Cow;

use firedoor_model::{Confidence, Finding, Severity, finding::Role, wire::Object};
use serde_json::{Value, value::RawValue};

use crate::{Call, evidence};

/// Longest schema that is read, in bytes.
const MAX_SCHEMA: usize = 64 * 1024;
/// Most schemas inside one schema.
const MAX_NODES: usize = 2048;
/// Deepest value that is checked.
const MAX_DEPTH: usize = 16;
/// Most values of one call that are checked.
const MAX_VALUES: usize = 4096;
/// Longest value that is compared with an `enum`, in bytes.
const MAX_ENUM_VALUE: usize = 4096;
/// Longest name that is shown.
const MAX_SHOWN: usize = 80;

/// A tool's `inputSchema`, as far as it is understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    types: Vec<Kind>,
    values: Vec<Value>,
    required: Vec<String>,
    properties: Vec<(String, Schema)>,
    closed: bool,
    items: Option<Box<Schema>>,
}

/// A type of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// What is wrong with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Type,
    Value,
    Missing,
    Unknown,
}

impl Schema {
    /// Reads the schema of a tool's definition (an element of `tools/list`). `None` where there is none to check against.
    pub fn of_definition(definition: &str) -> Option<Self> {
        let raw = Object::parse(definition)?.get("inputSchema").filter(|raw| raw.len() <= MAX_SCHEMA)?;
        let value: Value = serde_json::from_str(raw).ok()?;
        let mut nodes = 0;
        let schema = Self::read(&value, 0, &mut nodes);
        (nodes <= MAX_NODES && schema != Self::default()).then_some(schema)
    }

    fn read(value: &Value, depth: usize, nodes: &mut usize) -> Self {
        let mut out = Self::default();
        *nodes += 1;
        let Some(object) = value.as_object() else { return out };
        if depth > MAX_DEPTH || *nodes > MAX_NODES || object.contains_key("$ref") || object.contains_key("$dynamicRef")
        {
            return out;
        }
        // A type that is not known could be anything: then none is checked.
        let names: Vec<&Value> = match object.get("type") {
            Some(Value::Array(list)) => list.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let kinds: Option<Vec<Kind>> = names.iter().map(|n| n.as_str().and_then(Kind::named)).collect();
        out.types = kinds.unwrap_or_default();
        if let Some(Value::Array(values)) = object.get("enum") {
            out.values.clone_from(values);
        }
        if let Some(Value::Array(names)) = object.get("required") {
            out.required = names.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
        }
        if let Some(Value::Object(properties)) = object.get("properties") {
            out.properties =
                properties.iter().map(|(name, inner)| (name.clone(), Self::read(inner, depth + 1, nodes))).collect();
            out.properties.sort_by(|a, b| a.0.cmp(&b.0));
        }
        out.closed = object.get("additionalProperties") == Some(&Value::Bool(false))
            && !object.contains_key("patternProperties");
        // `prefixItems` gives the first elements schemas of their own.
        if !object.contains_key("prefixItems") {
            out.items =
                object.get("items").filter(|i| i.is_object()).map(|i| Box::new(Self::read(i, depth + 1, nodes)));
        }
        out
    }

    fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        self.properties.get(at).map(|(_, schema)| schema)
    }

    /// The first fault, with the JSON pointer to it.
    fn fault(&self, raw: &str, depth: usize, values: &mut usize) -> Option<(Fault, String)> {
        *values += 1;
        if depth > MAX_DEPTH || *values > MAX_VALUES {
            return None;
        }
        let here = |fault| Some((fault, String::new()));
        if !self.types.is_empty() && !self.types.iter().any(|kind| kind.fits(raw)) {
            return here(Fault::Type);
        }
        if !self.values.is_empty() && raw.len() <= MAX_ENUM_VALUE {
            let value: Value = serde_json::from_str(raw).ok()?;
            if !self.values.iter().any(|v| same(v, &value)) {
                return here(Fault::Value);
            }
        }
        let inside = |name: &str, (fault, rest): (Fault, String)| (fault, format!("/{}{rest}", escaped(name)));
        if raw.starts_with('{') && (self.closed || !self.properties.is_empty() || !self.required.is_empty()) {
            let object = Object::parse(raw)?;
            for (name, value) in &object.0 {
                match self.property(name) {
                    Some(schema) => {
                        if let Some(found) = schema.fault(value, depth + 1, values) {
                            return Some(inside(name, found));
                        }
                    }
                    None if self.closed => return Some((Fault::Unknown, format!("/{}", escaped(name)))),
                    None => {}
                }
            }
            let missing = self.required.iter().find(|r| !object.0.iter().any(|(name, _)| name == r.as_str()));
            return missing.map(|name| (Fault::Missing, format!("/{}", escaped(name))));
        }
        if let Some(items) = self.items.as_ref().filter(|_| raw.starts_with('[')) {
            let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            return elements.iter().enumerate().take(MAX_VALUES).find_map(|(i, element)| {
                items.fault(element.get(), depth + 1, values).map(|found| inside(&i.to_string(), found))
            });
        }
        None
    }
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// By the first byte, which decides in JSON; whole numbers may be written `1.0` (section 6.1.1 of the specification).
    fn fits(self, raw: &str) -> bool {
        match raw.as_bytes().first() {
            Some(b'n') => self == Self::Null,
            Some(b't' | b'f') => self == Self::Boolean,
            Some(b'"') => self == Self::String,
            Some(b'[') => self == Self::Array,
            Some(b'{') => self == Self::Object,
            Some(_) if self == Self::Integer => {
                raw.bytes().all(|b| b.is_ascii_digit() || b == b'-') || raw.parse().is_ok_and(|n: f64| n.fract() == 0.0)
            }
            Some(_) => self == Self::Number,
            None => true,
        }
    }
}

/// Equal as JSON Schema means it: numbers by value.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

/// A name in a JSON pointer (RFC 6901 section 3), cut.
fn escaped(name: &str) -> String {
    name.chars().take(MAX_SHOWN).collect::<String>().replace('~', "~0").replace('/', "~1")
}

/// What a call's arguments say that the tool's schema does not allow.
pub(crate) fn inspect(call: &Call<'_>) -> Option<Finding> {
    let schema = call.schema?;
    let arguments = call.arguments.map_or(Cow::Borrowed("{}"), Cow::Borrowed);
    let (fault, place) = schema.fault(arguments.trim(), 0, &mut 0)?;
    // A model that leaves a member out or writes a number as a string is a slip; a member that nobody declared may be
    // meant for somebody else.
    let summary = match fault {
        Fault::Type => "An argument is of another type than the tool's schema says.",
        Fault::Value => "An argument is none of the values that the tool's schema lists.",
        Fault::Missing => "An argument that the tool's schema requires is missing.",
        Fault::Unknown => "The arguments hold a member that the tool's schema does not have.",
    };
    Some(Finding {
        detector: "call/schema".into(),
        severity: Severity::Low,
        confidence: Confidence::Certain,
        summary: summary.into(),
        evidence: vec![evidence(Role::Sink, Some(call.entry), call.subject, format!("/arguments{place}"), b"")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(schema: &str, arguments: &str) -> Option<(Fault, String)> {
        let schema = Schema::of_definition(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#))?;
        schema.fault(arguments, 0, &mut 0)
    }

    #[test]
    fn violations_are_found() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":["string","null"]},
            "e":{"enum":["a","b",1]},"l":{"type":"array","items":{"type":"object","required":["x"]}},"a/b":{"type":"number"}},
            "required":["n"],"additionalProperties":false}"#;
        for (arguments, want) in [
            (r#"{"n":1}"#, None),
            (r#"{"n":-1.0,"s":null,"e":1.0,"l":[{"x":0}],"a/b":1e3}"#, None),
            (r#"{"n":1.5}"#, Some((Fault::Type, "/n"))),
            (r#"{"n":"1"}"#, Some((Fault::Type, "/n"))),
            (r#"{"s":"x"}"#, Some((Fault::Missing, "/n"))),
            (r#"{"n":1,"s":5}"#, Some((Fault::Type, "/s"))),
            (r#"{"n":1,"e":"c"}"#, Some((Fault::Value, "/e"))),
            (r#"{"n":1,"l":[{"x":1},{}]}"#, Some((Fault::Missing, "/l/1/x"))),
            (r#"{"n":1,"a/b":true}"#, Some((Fault::Type, "/a~1b"))),
            (r#"{"n":1,"sidenote":"x"}"#, Some((Fault::Unknown, "/sidenote"))),
            ("[]", Some((Fault::Type, ""))),
        ] {
            let got = fault(schema, arguments);
            assert_eq!(got.as_ref().map(|(f, p)| (*f, p.as_str())), want, "{arguments}");
        }
    }

    #[test]
    fn what_is_not_understood_allows() {
        for (schema, arguments) in [
            (r##"{"$ref":"#/x","type":"object"}"##, "5"),
            (r#"{"type":"any"}"#, "5"),
            (r#"{"properties":{"a":{}},"additionalProperties":false,"patternProperties":{"^x":{}}}"#, r#"{"x1":1}"#),
            (r#"{"type":"array","items":{"type":"string"},"prefixItems":[{"type":"integer"}]}"#, "[1]"),
            ("true", "5"),
            ("5", "5"),
            (r#"{"properties":[]}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(fault(schema, arguments), None, "{schema}");
        }
        assert_eq!(Schema::of_definition("{}"), None);
        assert_eq!(Schema::of_definition("not json"), None);
    }

    #[test]
    fn work_is_bounded() {
        let deep = format!("{}{}", r#"{"items":"#.repeat(60), "{}".to_owned() + &"}".repeat(60));
        assert_eq!(fault(&deep, &format!("{}{}", "[".repeat(60), "]".repeat(60))), None);
        let wide: Vec<String> = (0..MAX_NODES + 1).map(|i| format!("\"p{i}\":{{}}")).collect();
        let wide = format!(r#"{{"type":"object","properties":{{{}}}}}"#, wide.join(","));
        assert_eq!(Schema::of_definition(&format!(r#"{{"inputSchema":{wide}}}"#)), None);
        let long = format!("[{}1]", "1,".repeat(100_000));
        assert_eq!(fault(r#"{"items":{"type":"number"}}"#, &long), None);
    }

    proptest::proptest! {
        #[test]
        fn total(schema in "[\\[\\]{}\":,a-z0-9$]*", arguments in "[\\[\\]{}\":,a-z0-9.]*") {
            fault(&schema, &arguments);
        }
    }
}
