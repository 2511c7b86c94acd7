//! One form for all spellings of the same JSON, so that a pin does not change when a server reorders members.

use firedoor_model::{
    Digest, lists,
    wire::{Object, unescape},
};
use serde_json::value::RawValue;

/// Deepest nesting in a definition. Each level is read once more by the levels above it, so depth costs time.
pub(crate) const MAX_DEPTH: usize = 64;

/// The value is nested deeper than [`MAX_DEPTH`], or is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// Digest of `raw` that does not depend on the order of members, on white space outside strings, or on how a string is
/// escaped. Numbers count as they are written (`1` is not `1.0`), because two readers may disagree about them. Repeated
/// members all count, in their order.
pub(crate) fn digest(raw: &str) -> Result<Digest, TooDeep> {
    let mut out = Vec::with_capacity(raw.len());
    write(raw.trim(), MAX_DEPTH, Lists::AsTheyAre, &mut out)?;
    Ok(Digest::of(&out))
}

/// Whether two definitions differ in nothing but the order of lists: the strings of `enum` and `required` (JSON Schema 2020-12, 6.1.2 and
/// 6.5.3), and what a text says there is to choose from ([`lists::in_order`]). False where one cannot be read.
pub fn same_in_any_order(one: &str, other: &str) -> bool {
    let form = |raw: &str| {
        let mut out = Vec::with_capacity(raw.len());
        write(raw.trim(), MAX_DEPTH, Lists::InOrder, &mut out).map(|()| out)
    };
    form(one).is_ok_and(|one| form(other).is_ok_and(|other| one == other))
}

/// What is made of lists whose order says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    AsTheyAre,
    /// Those in texts.
    InOrder,
    /// Those in texts, and the array that this is.
    Sorted,
}

fn write(raw: &str, depth: usize, lists: Lists, out: &mut Vec<u8>) -> Result<(), TooDeep> {
    match raw.as_bytes().first() {
        Some(b'{') => {
            let inner = depth.checked_sub(1).ok_or(TooDeep)?;
            let mut members = Object::parse(raw).ok_or(TooDeep)?.0;
            // Stable: repeated members keep their order, which decides which one a reader takes.
            members.sort_by(|a, b| a.0.cmp(&b.0));
            out.push(b'{');
            for (name, value) in members {
                string(&name, out);
                out.push(b':');
                let sorted = lists != Lists::AsTheyAre && matches!(name.as_ref(), "enum" | "required");
                let lists = if lists == Lists::AsTheyAre { lists } else { Lists::InOrder };
                write(value, inner, if sorted { Lists::Sorted } else { lists }, out)?;
                out.push(b',');
            }
            out.push(b'}');
        }
        Some(b'[') => {
            let inner = depth.checked_sub(1).ok_or(TooDeep)?;
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(|_| TooDeep)?;
            let within = if lists == Lists::Sorted { Lists::InOrder } else { lists };
            let written = |item: &RawValue| {
                let mut out = Vec::new();
                write(item.get(), inner, within, &mut out).map(|()| out)
            };
            let strings = items.iter().all(|item| item.get().starts_with('"'));
            out.push(b'[');
            if lists == Lists::Sorted && strings {
                let mut items = items.into_iter().map(written).collect::<Result<Vec<_>, _>>()?;
                items.sort_unstable();
                items.iter().for_each(|item| {
                    out.extend_from_slice(item);
                    out.push(b',');
                });
            } else {
                for item in items {
                    write(item.get(), inner, within, out)?;
                    out.push(b',');
                }
            }
            out.push(b']');
        }
        Some(b'"') => match unescape(raw) {
            Some(text) if lists == Lists::AsTheyAre => string(&text, out),
            Some(text) => string(&lists::in_order(&text), out),
            // A lone surrogate has no text of its own: its raw token stands for it. No string's form starts with `!`.
            None => {
                out.push(b'!');
                string(raw, out);
            }
        },
        _ => out.extend_from_slice(raw.as_bytes()),
    }
    Ok(())
}

/// Length and bytes: nothing inside a string can end it.
fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, same: bool) {
        assert_eq!(digest(a).unwrap() == digest(b).unwrap(), same, "{a} / {b}");
    }

    #[test]
    fn what_counts() {
        check(r#"{"a":1,"b":[1,2]}"#, " { \"b\" : [ 1 , 2 ] ,\n\"a\":1 } ", true);
        check(r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#, true);
        check(r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#, true);
        check("[1,2]", "[2,1]", false);
        check("1", "1.0", false);
        check("123456789012345678901234567890", "123456789012345678901234567891", false);
        check(r#"{"a":"x"}"#, r#"{"a":"x "}"#, false);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false);
        check(r#"{"a":1}"#, r#"{"a":1,"a":1}"#, false);
        check(r#""\ud800""#, r#""\\ud800""#, false);
        check("null", "\"null\"", false);
        check("[[1],2]", "[1,[2]]", false);
    }

    #[test]
    fn the_order_of_lists_may_say_nothing() {
        let tool = |text: &str, values: &str| {
            format!(r#"{{"name":"run","description":"{text}","inputSchema":{{"enum":{values}}}}}"#)
        };
        let one = tool("Allowed commands: cat, ls\\nRuns one.", r#"["a","b"]"#);
        for (other, want) in [
            (one.clone(), true),
            (tool("Allowed commands: ls, cat\\nRuns one.", r#"["b", "a"]"#), true),
            (tool("Allowed commands: ls, cat, rm\\nRuns one.", r#"["a","b"]"#), false),
            (tool("Allowed commands: cat, ls\\nRuns two.", r#"["a","b"]"#), false),
            (tool("Allowed commands: cat, ls\\nRuns one.", r#"["a","b","b"]"#), false),
            (tool("Allowed commands: cat, ls\\nRuns one.", r#"[["b"],"a"]"#), false),
            (one.replace('{', "[").replace('}', "]"), false),
            (one.replace("{", "{\"description\":\"x\","), false),
            (String::new(), false),
        ] {
            assert_eq!(same_in_any_order(&one, &other), want, "{other}");
        }
        for (one, other) in [
            ("[1,2]", "[2,1]"),
            (r#"["a","b"]"#, r#"["b","a"]"#),
            (r#"{"default":["cp","a","b"]}"#, r#"{"default":["cp","b","a"]}"#),
            (r#"{"enum":[{"a":["x","y"]}]}"#, r#"{"enum":[{"a":["y","x"]}]}"#),
        ] {
            assert!(!same_in_any_order(one, other), "{one}");
        }
        assert!(same_in_any_order(r#"{"required":["a","b"]}"#, r#"{"required":["b","a"]}"#));
    }

    #[test]
    fn depth_is_bounded() {
        let nest = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(digest(&nest(MAX_DEPTH)).is_ok());
        assert_eq!(digest(&nest(MAX_DEPTH + 1)), Err(TooDeep));
        assert_eq!(digest(&nest(100_000)), Err(TooDeep));
    }

    proptest::proptest! {
        #[test]
        fn order_never_matters(mut members in proptest::collection::btree_map("[a-z]{1,4}", "[ -~]{0,12}", 0..8)) {
            let forward = serde_json::to_string(&members).unwrap();
            let body: Vec<String> = members.iter().rev().map(|(k, v)| {
                format!("{} : {}", serde_json::to_string(k).unwrap(), serde_json::to_string(v).unwrap())
            }).collect();
            let backward = format!("{{ {} }}", body.join(" , "));
            proptest::prop_assert_eq!(digest(&forward), digest(&backward));
            members.insert("zzzzz".into(), String::new());
            proptest::prop_assert_ne!(digest(&forward), digest(&serde_json::to_string(&members).unwrap()));
        }
    }
}
