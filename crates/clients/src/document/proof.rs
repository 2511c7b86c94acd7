//! A second reader's word on an edit: in YAML what a word means depends on what stands around it, so another parser
//! reads the text before and after, and both must say the same but for the shim.

use yaml_serde::{Mapping, Value};

use crate::{catalog::Syntax, form::Form, wrap::is_wrapped};

/// Whether two texts say the same, entries behind the shim taken for what they start.
pub(crate) fn holds(syntax: Syntax, form: &Form, before: &str, after: &str) -> bool {
    if syntax != Syntax::Yaml {
        return true;
    }
    let read = |text: &str| {
        let mut value: Value = yaml_serde::from_str(text).ok()?;
        unwrap(&mut value, form);
        Some(value)
    };
    read(before).is_some_and(|before| read(after).is_some_and(|after| before == after))
}

/// Takes every entry out from behind the shim. The parser bounds the depth.
fn unwrap(value: &mut Value, form: &Form) {
    match value {
        Value::Sequence(all) => all.iter_mut().for_each(|v| unwrap(v, form)),
        Value::Mapping(map) => {
            if let Some((command, args)) = original(map, form) {
                map.insert(form.command.as_str().into(), command);
                match args {
                    Some(args) => map.insert(form.args.as_str().into(), Value::Sequence(args)),
                    // The order does not count when maps are compared.
                    None => map.remove(form.args.as_str()),
                };
            }
            map.values_mut().for_each(|v| unwrap(v, form));
        }
        Value::Tagged(tagged) => unwrap(&mut tagged.value, form),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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
