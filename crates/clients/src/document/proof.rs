//! A second reader's word on an edit: in YAML what a word means depends on what stands around it, so another parser
//! reads the text before and after, and both must say the same but for the shim.

use yaml_serde::{Mapping, Value};

use super::remote::{HEADER, TYPE, URL, WAS};
use crate::{
    catalog::{Syntax, stem},
    endpoint,
    form::Form,
    wrap::{SHIM, is_wrapped},
};

/// Whether two texts say the same, entries behind the shim taken for what they start, and references to secrets for the
/// secrets as they are `spelled`.
pub(crate) fn holds(
    syntax: Syntax,
    form: &Form,
    before: &str,
    after: &str,
    spelled: &dyn Fn(&str) -> Option<String>,
) -> bool {
    if syntax != Syntax::Yaml {
        return true;
    }
    let read = |text: &str| {
        let mut value: Value = yaml_serde::from_str(text).ok()?;
        unwrap(&mut value, form);
        fill_in(&mut value, spelled);
        Some(value)
    };
    read(before).is_some_and(|before| read(after).is_some_and(|after| before == after))
}

/// Takes every entry out from behind the shim. The parser bounds the depth.
fn unwrap(value: &mut Value, form: &Form) {
    match value {
        Value::Sequence(all) => all.iter_mut().for_each(|v| unwrap(v, form)),
        Value::Mapping(map) => {
            if let Some(reached) = reached(map, form) {
                *map = reached;
            } else if let Some((command, args)) = original(map, form) {
                map.insert(form.command.as_str().into(), command);
                match args {
                    Some(args) => map.insert(form.args.as_str().into(), Value::Sequence(args)),
                    // The order does not count when maps are compared.
                    None => map.remove(form.args.as_str()),
                };
            }
            for key in &form.url {
                if let Some(Value::String(url)) = map.get_mut(key.as_str())
                    && let Some((_, own)) = endpoint::read(url)
                {
                    *url = own;
                }
            }
            map.values_mut().for_each(|v| unwrap(v, form));
        }
        Value::Tagged(tagged) => unwrap(&mut tagged.value, form),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts secrets in the place of their references.
fn fill_in(value: &mut Value, spelled: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::Sequence(all) => all.iter_mut().for_each(|v| fill_in(v, spelled)),
        Value::Mapping(map) => map.values_mut().for_each(|v| fill_in(v, spelled)),
        Value::Tagged(tagged) => fill_in(&mut tagged.value, spelled),
        Value::String(text) => {
            if let Some(secret) = spelled(text).and_then(|token| yaml_serde::from_str(&token).ok()) {
                *value = secret;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The command that a map's shim starts, and its arguments.
fn original(map: &Mapping, form: &Form) -> Option<(Value, Option<Vec<Value>>)> {
    let command = map.get(form.command.as_str())?.as_str()?;
    let args = map.get(form.args.as_str())?.as_sequence()?;
    let words: Vec<&str> = args.iter().map(Value::as_str).collect::<Option<_>>()?;
    let own = is_wrapped(command, &words)?;
    let rest = args.get(own.command_at + 1..)?.to_vec();
    let kept = !(own.no_args && rest.is_empty());
    Some((args.get(own.command_at)?.clone(), kept.then_some(rest)))
}

/// The map that reaches the address which a map's shim is given.
fn reached(map: &Mapping, form: &Form) -> Option<Mapping> {
    let args = map.get(form.args.as_str())?.as_sequence()?;
    let words: Vec<&str> = args.iter().map(Value::as_str).collect::<Option<_>>()?;
    if stem(map.get(form.command.as_str())?.as_str()?) != SHIM || words.get(2) != Some(&URL) {
        return None;
    }
    let all = |flag: &'static str| words.chunks(2).filter(move |pair| pair[0] == flag).filter_map(|pair| pair.get(1));
    let mut was = all(WAS).next()?.split(',');
    let mut reached = map.clone();
    reached.remove(form.command.as_str());
    reached.remove(form.args.as_str());
    reached.insert(was.next()?.into(), args.get(3)?.clone());
    if let Some(kind) = all(TYPE).next() {
        let key = if map.contains_key("type") { "type" } else { "transport" };
        reached.insert(key.into(), (*kind).into());
    }
    if let Some(headers) = was.next() {
        let variables = reached.remove(form.env.first()?.as_str())?;
        let named = |flag: &&str| {
            let (name, variable) = flag.split_once("=env:")?;
            Some((Value::from(name), variables.get(variable)?.clone()))
        };
        let inner: Mapping = all(HEADER).map(named).collect::<Option<_>>()?;
        if inner.len() != variables.as_mapping()?.len() {
            return None;
        }
        reached.insert(headers.into(), inner.into());
    }
    Some(reached)
}
