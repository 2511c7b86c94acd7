//! One JSON object as a list of raw members, duplicates kept.

use std::{borrow::Cow, fmt};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one object, in order, values raw.
#[derive(Clone, Debug)]
pub struct Object<'a>(pub Vec<(Cow<'a, str>, &'a str)>);

/// A member stands in the object more than once, or in another spelling that some readers take for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

impl<'a> Object<'a> {
    /// Reads the top level of an object; `None` for any other JSON.
    pub fn parse(raw: &'a str) -> Option<Self> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de str)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<&RawValue>()? {
                    // A key with a lone surrogate escape is no Rust string: it keeps its raw form, which equals no name.
                    let name = unescape(key.get()).unwrap_or(Cow::Borrowed(key.get()));
                    members.push((name, map.next_value::<&RawValue>()?.get()));
                }
                Ok(members)
            }
        }
        let mut de = serde_json::Deserializer::from_str(raw);
        let members = de.deserialize_map(Members).ok()?;
        de.end().ok()?;
        Some(Self(members))
    }

    /// The last member of that name (what every known MCP implementation uses).
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// The member of that name, or an error when readers could disagree about it: it stands there twice, or spelled
    /// `Method` or `METHOD`, which Go's encoding/json takes for `method` (package documentation, "Unmarshal").
    pub fn get_unique(&self, name: &str) -> Result<Option<&'a str>, Repeated> {
        let mut all = self.0.iter().filter(|(n, _)| n == name || folds_to(n, name));
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some((found, value)), None) if found == name => Ok(Some(value)),
            _ => Err(Repeated),
        }
    }
}

/// Whether Go takes `spelled` for the ASCII `name`: without regard to case, and with the two characters outside ASCII that
/// fold into it, U+017F (long s) and U+212A (Kelvin sign).
fn folds_to(spelled: &str, name: &str) -> bool {
    let folded = spelled.chars().map(|c| match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        c => c.to_ascii_lowercase(),
    });
    spelled.len() <= 3 * name.len() && folded.eq(name.chars().map(|c| c.to_ascii_lowercase()))
}

/// The text of a raw JSON string; `None` for other JSON and for lone surrogates.
pub fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    if let Some(inner) = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'))
        && !inner.contains('\\')
    {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}
