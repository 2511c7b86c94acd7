//! The edit of an entry that reaches a server over HTTP: it becomes one that starts the shim for the address, and back.
//!
//! ```json
//! {"type":"http","url":"https://mcp.example/mcp","headers":{"X-Team":"blue"}}
//! {"type":"stdio","command":"/…/firedoor-shim","args":["--entry","cursor/user/srv","--url","https://mcp.example/mcp",
//!  "--transport","http","--header","X-Team=env:FIREDOOR_HEADER_1","--was","url,headers","--type","http"],
//!  "env":{"FIREDOOR_HEADER_1":"blue"}}
//! ```
//!
//! What the client sends in headers stays where it stands, byte for byte: only its keys change, so that it becomes the
//! shim's environment, where the client fills in the same variables. Nothing secret gets into arguments.

use firedoor_model::EntryId;

use crate::{
    document::{
        Layout, RemoteParts, Span, Str,
        remote::{HEADER, TRANSPORT, TYPE, URL, VARIABLE, WAS, transport},
    },
    wrap::{ENTRY, Edit, new_member, quoted, slice, without_lines, without_member},
};

/// The edits that put an entry behind the shim; none where its form does not allow it.
pub(crate) fn wrap(text: &str, parts: &RemoteParts, id: &EntryId, shim: &str) -> Vec<Edit> {
    let Some(member) = parts.members.get(parts.line_at) else { return Vec::new() };
    let mut edits = Vec::new();
    let mut args =
        vec![quoted(ENTRY), quoted(&id.to_string()), quoted(URL), slice(text, parts.line.span.clone()).into()];
    let word = parts.kind.as_ref().and_then(|(_, kind)| transport(&kind.value)).filter(|word| *word != "auto");
    args.extend(word.into_iter().flat_map(|word| [quoted(TRANSPORT), quoted(word)]));
    let mut was = bare(slice(text, last_part(text, &member.key))).to_owned();
    if let Some((at, keys)) = &parts.vars {
        if let Some(headers) = parts.members.get(*at) {
            was = format!("{was},{}", bare(slice(text, last_part(text, &headers.key))));
            edits.push(rename(text, headers.key.clone(), &parts.words.env));
        }
        for (number, key) in (1..).zip(keys) {
            let variable = format!("{VARIABLE}{number}");
            args.extend([quoted(HEADER), quoted(&format!("{}=env:{variable}", key.value))]);
            edits.push(rename(text, key.span.clone(), &variable));
        }
    }
    args.extend([quoted(WAS), quoted(&was)]);
    if let Some((_, kind)) = &parts.kind {
        args.extend([quoted(TYPE), slice(text, kind.span.clone()).to_owned()]);
        edits.push((kind.span.clone(), quoted(if parts.words.array { "local" } else { "stdio" })));
    }
    let args = args.join(",");
    edits.push(rename(text, member.key.clone(), &parts.words.command));
    if parts.words.array {
        edits.push((parts.line.span.clone(), format!("[{},{args}]", quoted(shim))));
    } else {
        let key = new_member(text, parts.layout, member, &parts.words.args);
        edits.push((parts.line.span.clone(), format!("{}{key}[{args}]", quoted(shim))));
    }
    edits
}

/// The edits that point an entry behind the shim at this shim and this id.
pub(crate) fn repair(parts: &RemoteParts, id: &EntryId, shim: &str) -> Vec<Edit> {
    let Some(behind) = &parts.behind else { return Vec::new() };
    vec![(behind.shim.span.clone(), quoted(shim)), (behind.id_arg.span.clone(), quoted(&id.to_string()))]
}

/// The edits that take an entry back out, or why it cannot be: the exact inverse of [`wrap`], and still right when the
/// client has written the file anew.
pub(crate) fn unwrap(text: &str, parts: &RemoteParts, url: &Str) -> Result<Vec<Edit>, String> {
    let (Some(behind), Some(member)) = (&parts.behind, parts.members.get(parts.line_at)) else {
        return Err("it is not protected: nothing to restore".into());
    };
    let mut edits = vec![
        rename(text, member.key.clone(), &behind.url_key),
        (member.value.clone(), slice(text, url.span.clone()).to_owned()),
    ];
    if let Some(at) = behind.args_at {
        edits.extend(match parts.layout {
            Layout::Object | Layout::Inline | Layout::Flow => without_member(text, &parts.members, at),
            Layout::Lines | Layout::Block => without_lines(text, parts.layout, &parts.members, &member.value, at),
        });
    }
    if let (Some((_, now)), Some(kind)) = (&parts.kind, &behind.kind) {
        edits.push((now.span.clone(), slice(text, kind.span.clone()).to_owned()));
    }
    match (&parts.vars, &behind.headers_key) {
        (_, None) => {}
        (None, Some(_)) => return Err("its headers are gone from its variables: write its address yourself".into()),
        (Some((at, keys)), Some(headers_key)) => {
            let headers = parts.members.get(*at).map(|m| m.key.clone()).unwrap_or_default();
            edits.push(rename(text, headers, headers_key));
            for key in keys {
                let name = behind.headers.iter().find(|(_, variable)| *variable == key.value).map(|(name, _)| name);
                let Some(name) = name else {
                    return Err(format!("the variable {:.80?} was added to it, and no header is called so", key.value));
                };
                edits.push(rename(text, key.span.clone(), name));
            }
        }
    }
    Ok(edits)
}

/// The key as it is, or in the quotes that it stands in, without the dotted path in front of it.
fn rename(text: &str, key: Span, to: &str) -> Edit {
    let key = last_part(text, &key);
    let new = match slice(text, key.clone()).chars().next() {
        Some('"') => quoted(to),
        Some('\'') => format!("'{to}'"),
        _ => to.to_owned(),
    };
    (key, new)
}

/// The last part of a dotted key.
fn last_part(text: &str, key: &Span) -> Span {
    let whole = slice(text, key.clone());
    let quote = whole.chars().last().filter(|last| matches!(last, '"' | '\''));
    let at = match quote {
        Some(quote) => whole.strip_suffix(quote).and_then(|inside| inside.rfind(quote)),
        None => whole.rfind('.').map(|dot| dot + 1),
    };
    let start = key.start + at.unwrap_or_default();
    // Blanks may stand around the dots.
    let blanks = slice(text, start..key.end).len() - slice(text, start..key.end).trim_start().len();
    start + blanks..key.end
}

/// A key without its quotes. Those that are known have nothing in them that would be escaped.
fn bare(key: &str) -> &str {
    key.trim_matches(['"', '\''])
}
