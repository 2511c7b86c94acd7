//! What a server says about itself, pinned field by field, so that a later change can be named.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use firedoor_model::{
    Confidence, Digest, Evidence, Finding, Severity, Untrusted,
    finding::Role,
    wire::{Object, unescape},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{canonical, gravest::Gravest};

/// Most definitions in one list. The largest real list seen has a few hundred tools.
pub const MAX_DEFINITIONS: usize = 4096;
/// Most fields of one definition.
pub const MAX_FIELDS: usize = 64;
/// Longest name or URI that is accepted, in bytes.
pub const MAX_NAME: usize = 4096;

/// What kind of thing is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionKind {
    /// `tools/list`.
    Tool,
    /// `prompts/list`.
    Prompt,
    /// `resources/list`; named by its URI.
    Resource,
    /// `resources/templates/list`; named by its URI template.
    ResourceTemplate,
    /// `initialize` or `server/discover`: the server's name and instructions.
    Server,
}

impl DefinitionKind {
    /// The kind that a method's results define, if they define any.
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tools/list" => Self::Tool,
            "prompts/list" => Self::Prompt,
            "resources/list" => Self::Resource,
            "resources/templates/list" => Self::ResourceTemplate,
            "initialize" | "server/discover" => Self::Server,
            _ => return None,
        })
    }

    /// The method whose results define it; of the handshakes, the older.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/list",
            Self::Prompt => "prompts/list",
            Self::Resource => "resources/list",
            Self::ResourceTemplate => "resources/templates/list",
            Self::Server => "initialize",
        }
    }

    /// The list's member in the result, and the member that names an element.
    fn members(self) -> (&'static str, &'static str) {
        match self {
            Self::Tool => ("tools", "name"),
            Self::Prompt => ("prompts", "name"),
            Self::Resource => ("resources", "uri"),
            Self::ResourceTemplate => ("resourceTemplates", "uriTemplate"),
            Self::Server => ("serverInfo", "name"),
        }
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// What is defined.
    pub kind: DefinitionKind,
    /// Its name, URI or URI template, as the server spells it.
    pub name: Untrusted,
    /// Every field but the name, with the digest of its canonical form. Unknown fields are included.
    pub fields: BTreeMap<String, Digest>,
    /// Digest over kind, name and all fields.
    pub digest: Digest,
    /// Byte offsets of the element in the result it came in.
    #[serde(skip)]
    pub span: (usize, usize),
}

/// What one result defines.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The definitions, in order.
    pub list: Vec<Definition>,
    /// What is wrong with the list as a list.
    pub findings: Vec<Finding>,
}

/// Why a result could not be pinned. Such a result is not handed on: what cannot be compared cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionsError {
    /// Not an object with the list in it.
    #[error("the server's list is not an object with the expected list in it")]
    Shape,
    /// A member that decides what is defined stands in the result twice.
    #[error("the server's list repeats a member that decides what is defined")]
    Ambiguous,
    /// Longer than [`MAX_DEFINITIONS`], a definition has more than [`MAX_FIELDS`] fields or a name over [`MAX_NAME`].
    #[error(
        "the server's list is too large: at most {MAX_DEFINITIONS} definitions, {MAX_FIELDS} fields each, names up to \
         {MAX_NAME} bytes"
    )]
    TooLarge,
    /// Nested deeper than 64 levels.
    #[error("a definition is nested deeper than {} levels", canonical::MAX_DEPTH)]
    TooDeep,
}

/// Reads the definitions in one result.
pub fn definitions(kind: DefinitionKind, result: &str) -> Result<Definitions, DefinitionsError> {
    let object = Object::parse(result).ok_or(DefinitionsError::Shape)?;
    let member = |name: &str| object.get_unique(name).map_err(|_| DefinitionsError::Ambiguous);
    let (list, _) = kind.members();
    if kind == DefinitionKind::Server {
        return server(result, &object);
    }
    // A list method may answer with another shape (an `input_required` result, say): no list, no definitions.
    let Some(raw) = member(list)? else { return Ok(Definitions::default()) };
    let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(|_| DefinitionsError::Shape)?;
    if items.len() > MAX_DEFINITIONS {
        return Err(DefinitionsError::TooLarge);
    }
    let mut out = Definitions::default();
    for item in items {
        let start = offset(result, item.get());
        out.list.push(element(kind, item.get(), (start, start + item.get().len()))?);
    }
    out.findings = duplicates(list, &out.list);
    Ok(out)
}

/// Names of the fields that differ, sorted; empty when nothing but the order changed. A definition under another name
/// has `name` among them.
pub fn diff(old: &Definition, new: &Definition) -> Vec<String> {
    let mut changed: Vec<String> = Vec::new();
    if old.name != new.name {
        changed.push("name".into());
    }
    let names = old.fields.keys().chain(new.fields.keys().filter(|n| !old.fields.contains_key(*n)));
    changed.extend(names.filter(|n| old.fields.get(*n) != new.fields.get(*n)).cloned());
    changed.sort();
    changed
}

fn element(kind: DefinitionKind, raw: &str, span: (usize, usize)) -> Result<Definition, DefinitionsError> {
    let object = Object::parse(raw).ok_or(DefinitionsError::Shape)?;
    if object.0.len() > MAX_FIELDS {
        return Err(DefinitionsError::TooLarge);
    }
    let (_, namer) = kind.members();
    let name = object.get_unique(namer).map_err(|_| DefinitionsError::Ambiguous)?;
    let name = name.and_then(unescape).ok_or(DefinitionsError::Shape)?;
    let others = object.0.iter().filter(|(n, _)| n != namer);
    build(kind, &name, others.map(|(n, v)| (n.clone(), *v)), span)
}

/// The handshake's texts. Version and capabilities are left out: they change with every honest upgrade and no model
/// reads them.
fn server(result: &str, object: &Object<'_>) -> Result<Definitions, DefinitionsError> {
    let member = |o: &Object<'_>, name: &str| -> Result<bool, DefinitionsError> {
        o.get_unique(name).map(|m| m.is_some()).map_err(|_| DefinitionsError::Ambiguous)
    };
    member(object, "instructions")?;
    member(object, "serverInfo")?;
    let mut name = Cow::Borrowed("");
    let mut fields: Vec<(Cow<'_, str>, &str)> = Vec::new();
    if let Some(text) = object.get("instructions") {
        fields.push(("instructions".into(), text));
    }
    // Modern revisions carry the server's identity in `_meta` (2026-07-28, `io.modelcontextprotocol/serverInfo`).
    let meta = object.get("_meta").and_then(Object::parse);
    let info = object.get("serverInfo").or_else(|| meta?.get("io.modelcontextprotocol/serverInfo"));
    if let Some(info) = info.and_then(Object::parse) {
        member(&info, "name")?;
        name = info.get("name").and_then(unescape).unwrap_or_default();
        let told = info.0.iter().filter(|(n, _)| n != "name" && n != "version");
        for (n, v) in told {
            fields.push((format!("serverInfo/{n}").into(), v));
        }
    }
    if fields.len() > MAX_FIELDS {
        return Err(DefinitionsError::TooLarge);
    }
    let one = build(DefinitionKind::Server, &name, fields.into_iter(), (0, result.len()))?;
    Ok(Definitions { list: vec![one], findings: Vec::new() })
}

fn build<'a>(
    kind: DefinitionKind,
    name: &str,
    members: impl Iterator<Item = (Cow<'a, str>, &'a str)>,
    span: (usize, usize),
) -> Result<Definition, DefinitionsError> {
    if name.len() > MAX_NAME {
        return Err(DefinitionsError::TooLarge);
    }
    let mut fields: BTreeMap<String, Digest> = BTreeMap::new();
    for (field, value) in members {
        if field.len() > MAX_NAME {
            return Err(DefinitionsError::TooLarge);
        }
        let digest = canonical::digest(value).map_err(|_| DefinitionsError::TooDeep)?;
        // A repeated field is one field whose digest covers all its values, in order.
        fields
            .entry(field.into_owned())
            .and_modify(|d| *d = Digest::of_fields([&d.0[..], &digest.0]))
            .or_insert(digest);
    }
    let kind_name = format!("{kind:?}");
    let parts = fields.iter().flat_map(|(n, d)| [n.as_bytes(), &d.0]);
    let digest = Digest::of_fields([kind_name.as_bytes(), name.as_bytes()].into_iter().chain(parts));
    Ok(Definition { kind, name: name.into(), fields, digest, span })
}

/// Two definitions of one name: which one a client takes is not decided, so a harmless one can hide the other.
fn duplicates(list: &str, all: &[Definition]) -> Vec<Finding> {
    let mut first: HashMap<&Untrusted, usize> = HashMap::new();
    let mut out: Gravest<Finding> = Gravest::default();
    for (at, one) in all.iter().enumerate() {
        let Some(&earlier) = first.get(&one.name) else {
            first.insert(&one.name, at);
            continue;
        };
        // The same thing said twice is no trap.
        let differs = all.get(earlier).is_some_and(|e| e.digest != one.digest);
        out.push(Finding {
            detector: "definition/duplicate".into(),
            severity: if differs { Severity::High } else { Severity::Low },
            confidence: Confidence::Certain,
            summary: "Two definitions in one list have the same name.".into(),
            evidence: [earlier, at].map(|i| place(list, i, one)).to_vec(),
        });
    }
    out.into_vec()
}

fn place(list: &str, index: usize, one: &Definition) -> Evidence {
    Evidence {
        role: Role::Place,
        entry: None,
        tool: Some(one.name.clone()),
        pointer: Untrusted::new(format!("/{list}/{index}")),
        span: None,
        excerpt: Untrusted::new(one.name.raw().chars().take(200).collect::<String>()),
        transform: None,
        age_ms: None,
    }
}

/// Where the slice `part` stands in `whole`.
fn offset(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(list: &str) -> Definitions {
        definitions(DefinitionKind::Tool, &format!(r#"{{"tools":[{list}]}}"#)).unwrap()
    }

    #[test]
    fn changes_are_named() {
        let base = r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}"#;
        for (other, want) in [
            (r#"{"inputSchema":{"properties":{"b":{},"a":{}}, "type":"object"},"description":"d","name":"t"}"#, vec![]),
            (&base.replace(r#""d""#, r#""e""#), vec!["description"]),
            (&base.replace(r#""a":{}"#, r#""a":{"x":1}"#), vec!["inputSchema"]),
            (&base.replace(r#""name":"t""#, r#""name":"u""#), vec!["name"]),
            (
                &base.replace(r#""name":"t""#, r#""name":"t","x-new":null,"annotations":{}"#),
                vec!["annotations", "x-new"],
            ),
            (&base.replace(r#""description":"d","#, ""), vec!["description"]),
            (&base.replace(r#""description":"d""#, r#""description":"d","description":"d2""#), vec!["description"]),
        ] {
            let (old, new) = (tools(base), tools(other));
            assert_eq!(diff(&old.list[0], &new.list[0]), want, "{other}");
            assert_eq!(old.list[0].digest == new.list[0].digest, want.is_empty(), "{other}");
        }
    }

    #[test]
    fn spans_are_the_elements() {
        let raw = r#"{ "x":1, "tools" : [ {"name":"é"} , {"name":"b","title":"B"} ] }"#;
        let all = definitions(DefinitionKind::Tool, raw).unwrap();
        let spans: Vec<_> = all.list.iter().map(|d| &raw[d.span.0..d.span.1]).collect();
        assert_eq!(spans, [r#"{"name":"é"}"#, r#"{"name":"b","title":"B"}"#]);
    }

    #[test]
    fn every_kind_has_its_list_and_name() {
        for (method, raw, name) in [
            ("prompts/list", r#"{"prompts":[{"name":"p"}]}"#, "p"),
            ("resources/list", r#"{"resources":[{"uri":"file:///r","name":"n"}]}"#, "file:///r"),
            ("resources/templates/list", r#"{"resourceTemplates":[{"uriTemplate":"f:{x}","name":"n"}]}"#, "f:{x}"),
            ("initialize", r#"{"serverInfo":{"name":"s","version":"1"},"instructions":"i"}"#, "s"),
            (
                "server/discover",
                r#"{"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m"}}}"#,
                "m",
            ),
            ("initialize", r#"{"capabilities":{}}"#, ""),
        ] {
            let kind = DefinitionKind::of_method(method).unwrap();
            assert_eq!(DefinitionKind::of_method(kind.method()), Some(kind));
            assert_eq!(definitions(kind, raw).unwrap().list[0].name.raw(), name, "{raw}");
        }
        assert_eq!(DefinitionKind::of_method("tools/call"), None);
    }

    #[test]
    fn the_handshake_is_pinned_without_its_version() {
        let one = |raw: &str| definitions(DefinitionKind::Server, raw).unwrap().list.remove(0);
        let old = one(r#"{"serverInfo":{"name":"s","version":"1"},"instructions":"i"}"#);
        assert_eq!(diff(&old, &one(r#"{"instructions":"i","serverInfo":{"version":"2","name":"s"}}"#)), [""; 0]);
        let new = one(r#"{"serverInfo":{"name":"s","title":"T"},"instructions":"j"}"#);
        assert_eq!(diff(&old, &new), ["instructions", "serverInfo/title"]);
    }

    #[test]
    fn duplicates_are_found() {
        for (list, want) in [
            (r#"{"name":"a"},{"name":"b"}"#, None),
            (r#"{"name":"a"},{"name":"a"}"#, Some(Severity::Low)),
            (r#"{"name":"a"},{"name":"\u0061","title":"t"}"#, Some(Severity::High)),
            // However often something is said twice before.
            (&format!(r#"{}{{"name":"a","title":"t"}}"#, r#"{"name":"a"},"#.repeat(40)), Some(Severity::High)),
        ] {
            let all = tools(list);
            assert_eq!(all.findings.iter().map(|f| f.severity).max(), want, "{list}");
        }
    }

    #[test]
    fn what_cannot_be_pinned_is_refused() {
        let many = format!(r#"{{"tools":[{}]}}"#, vec![r#"{"name":"a"}"#; MAX_DEFINITIONS + 1].join(","));
        let wide: Vec<String> = (0..=MAX_FIELDS).map(|i| format!("\"f{i}\":1")).collect();
        let wide = format!(r#"{{"tools":[{{"name":"a",{}}}]}}"#, wide.join(","));
        let deep = format!(r#"{{"tools":[{{"name":"a","x":{}{}}}]}}"#, "[".repeat(99), "]".repeat(99));
        let long = format!(r#"{{"tools":[{{"name":"{}"}}]}}"#, "a".repeat(MAX_NAME + 1));
        for (raw, want) in [
            ("[]", DefinitionsError::Shape),
            (r#"{"tools":{}}"#, DefinitionsError::Shape),
            (r#"{"tools":[1]}"#, DefinitionsError::Shape),
            (r#"{"tools":[{"title":"nameless"}]}"#, DefinitionsError::Shape),
            (r#"{"tools":[],"tools":[]}"#, DefinitionsError::Ambiguous),
            (r#"{"tools":[{"name":"a","name":"b"}]}"#, DefinitionsError::Ambiguous),
            (&many, DefinitionsError::TooLarge),
            (&wide, DefinitionsError::TooLarge),
            (&long, DefinitionsError::TooLarge),
            (&deep, DefinitionsError::TooDeep),
        ] {
            assert_eq!(definitions(DefinitionKind::Tool, raw).err(), Some(want), "{}", &raw[..raw.len().min(80)]);
        }
        let server = definitions(DefinitionKind::Server, r#"{"instructions":"a","instructions":"b"}"#);
        assert_eq!(server.err(), Some(DefinitionsError::Ambiguous));
        assert!(definitions(DefinitionKind::Tool, r#"{"resultType":"input_required"}"#).unwrap().list.is_empty());
    }
}
