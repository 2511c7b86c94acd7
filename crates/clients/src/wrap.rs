//! The edit itself: an entry is put behind the shim, and taken back out, by splicing spans.
//!
//! ```json
//! {"command":"npx","args":["-y","srv"]}
//! {"command":"/…/firedoor-shim","args":["--entry","cursor/user/srv","--","npx","-y","srv"]}
//! ```
//!
//! Only the value of `command` changes, and a prefix is put into `args`: the original command's own token, so that its
//! escapes survive. An entry without `args` gets some, with the mark `--no-args`, and loses them again. In TOML the same,
//! with its own signs. Where the command is an array, shim and prefix are put in front of its first element.

use firedoor_model::EntryId;

use crate::{
    catalog::stem,
    document::{Layout, Member, Span, Stdio, Str, block_end},
};

/// File name of the shim, on every system (`.exe` is ignored).
pub const SHIM: &str = "firedoor-shim";
pub(crate) const ENTRY: &str = "--entry";
const NO_ARGS: &str = "--no-args";
const END: &str = "--";
/// The same for clients that take a bare `--` for their own.
const PROGRAM: &str = "--program";

/// A splice: the bytes of the span become the text.
pub(crate) type Edit = (Span, String);

/// What an entry that starts the shim says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapped {
    /// Which entry it was when it was written.
    pub id: EntryId,
    /// Whether the original had no `args` at all.
    pub no_args: bool,
    /// Index of the original command in `args`; what follows are its arguments.
    pub command_at: usize,
}

/// Reads a command line; `None` when it does not start the shim. The shim is known by its file name and the form of its
/// arguments, wherever it lies.
pub fn is_wrapped<S: AsRef<str>>(command: &str, args: &[S]) -> Option<Wrapped> {
    if stem(command) != SHIM {
        return None;
    }
    let at = |i: usize| args.get(i).map(AsRef::as_ref);
    if at(0) != Some(ENTRY) {
        return None;
    }
    let id = at(1)?.parse().ok()?;
    let no_args = at(2) == Some(NO_ARGS);
    let end = if no_args { 3 } else { 2 };
    if !matches!(at(end), Some(END | PROGRAM)) || at(end + 1).is_none() {
        return None;
    }
    Some(Wrapped { id, no_args, command_at: end + 1 })
}

pub(crate) fn wrapped(stdio: &Stdio) -> Option<Wrapped> {
    let args: Vec<&str> = stdio.args().iter().map(|a| a.value.as_str()).collect();
    is_wrapped(&stdio.command.value, &args)
}

/// A string in quotes that JSON and TOML read alike; TOML wants DEL escaped, too.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

pub(crate) fn slice(text: &str, span: Span) -> &str {
    text.get(span).unwrap_or_default()
}

/// The edits that put an entry behind the shim.
pub(crate) fn wrap(text: &str, stdio: &Stdio, id: &EntryId, shim: &str) -> Vec<Edit> {
    let command = &stdio.command;
    let (entry, id) = (quoted(ENTRY), quoted(&id.to_string()));
    let end = quoted(if stdio.no_dashes { PROGRAM } else { END });
    let own = |mark: &str| format!("{entry},{id},{mark}{end},{}", slice(text, command.span.clone()));
    if stdio.in_command {
        let at = command.span.start;
        return vec![(at..at, format!("{},{entry},{id},{end},", quoted(shim)))];
    }
    let mut edits = vec![(command.span.clone(), quoted(shim))];
    match &stdio.args {
        Some((_, _, all)) if stdio.args_block => {
            let at = all.first().map_or(command.span.start, |first| dash(text, first));
            let behind = format!("{}{}", end_of_line(text, at), slice(text, line_start(text, at)..at));
            let own = [&entry, &id, &end, slice(text, command.span.clone())];
            edits.push((at..at, own.iter().map(|item| format!("- {item}{behind}")).collect()));
        }
        Some((_, span, all)) => {
            let comma = if all.is_empty() { "" } else { "," };
            let at = span.start + 1;
            edits.push((at..at, own("") + comma));
        }
        None => {
            let at = command.span.end;
            let args = own(&(quoted(NO_ARGS) + ","));
            edits.push((at..at, format!("{}[{args}]", new_key(text, stdio))));
        }
    }
    edits
}

/// What stands between the command's value and that of a new `args`.
fn new_key(text: &str, stdio: &Stdio) -> String {
    let member = stdio.members.get(stdio.command_at);
    member.map_or(String::new(), |member| new_member(text, stdio.layout, member, &stdio.args_key))
}

/// What stands between the value of a member and that of a new one behind it, in the style of the first: a separator, the
/// new key and its sign.
pub(crate) fn new_member(text: &str, layout: Layout, member: &Member, key: &str) -> String {
    let between = slice(text, member.key.end..member.value.start);
    let sign =
        |plain: &'static str, default: &'static str| if between.trim() == plain { between } else { default }.to_owned();
    let line = |sign: &str, indent: &str| format!("{}{indent}{key}{sign}", end_of_line(text, member.value.end));
    let start = line_start(text, member.key.start);
    let before = slice(text, start..member.key.start);
    match layout {
        Layout::Object => format!(",{}\"{key}\"{}", gap(text, member.key.start), sign(":", ":")),
        Layout::Inline => {
            // With the dotted path in front of the key.
            let path = slice(text, member.key.clone()).rsplit_once('.').map_or(String::new(), |(p, _)| format!("{p}."));
            format!(",{}{path}{key}{}", gap(text, member.key.start), sign("=", " = "))
        }
        Layout::Flow => format!(",{}{key}: ", gap(text, member.key.start)),
        // As far in as the first, which may stand behind the dash of a list.
        Layout::Block => line(": ", &before.replace('-', " ")),
        // With the indentation and the dotted path in front of the key.
        Layout::Lines => line(&sign("=", " = "), before),
    }
}

/// White space before a key: of blank lines only the last line end is repeated.
fn gap(text: &str, key: usize) -> &str {
    let before = slice(text, 0..key);
    let run = &before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..];
    match run.rfind('\n') {
        Some(n) if run[..n].ends_with('\r') => &run[n - 1..],
        Some(n) => &run[n..],
        None => run,
    }
}

fn line_start(text: &str, at: usize) -> usize {
    slice(text, 0..at).rfind('\n').map_or(0, |n| n + 1)
}

/// A line end as it is written behind a place, or in front of it.
fn end_of_line(text: &str, at: usize) -> &'static str {
    let crlf = |line: &str| if line.ends_with('\r') { "\r\n" } else { "\n" };
    match slice(text, at..text.len()).split_once('\n') {
        Some((line, _)) => crlf(line),
        None => slice(text, 0..at).rsplit_once('\n').map_or("\n", |(line, _)| crlf(line)),
    }
}

/// The dash of an item that begins a line.
fn dash(text: &str, item: &Str) -> usize {
    slice(text, 0..item.span.start).rfind('-').unwrap_or(item.span.start)
}

/// The edits that point a wrapped entry at this shim and this id.
pub(crate) fn repair(stdio: &Stdio, id: &EntryId, shim: &str) -> Vec<Edit> {
    let mut edits = vec![(stdio.command.span.clone(), quoted(shim))];
    if let Some(arg) = stdio.args().get(1) {
        edits.push((arg.span.clone(), quoted(&id.to_string())));
    }
    edits
}

/// The edits that take an entry back out: the exact inverse of [`wrap`], and still right when the client has written
/// the file anew in its own style.
pub(crate) fn unwrap(text: &str, stdio: &Stdio, wrapped: &Wrapped) -> Vec<Edit> {
    let command = &stdio.command;
    let Some((args_at, span, all)) = &stdio.args else { return Vec::new() };
    let Some(original) = all.get(wrapped.command_at) else { return Vec::new() };
    if stdio.in_command {
        return vec![(stdio.command.span.start..original.span.start, String::new())];
    }
    let mut edits = vec![(stdio.command.span.clone(), slice(text, original.span.clone()).to_owned())];
    let next = all.get(wrapped.command_at + 1);
    if wrapped.no_args && next.is_none() {
        edits.extend(match stdio.layout {
            Layout::Object | Layout::Inline | Layout::Flow => without_member(text, &stdio.members, *args_at),
            Layout::Lines | Layout::Block => without_lines(text, stdio.layout, &stdio.members, &command.span, *args_at),
        });
    } else if stdio.args_block {
        edits.push(match (all.first(), next) {
            (Some(first), Some(next)) => (dash(text, first)..dash(text, next), String::new()),
            // Lines with a dash cannot be none.
            _ => {
                let key = stdio.members.get(*args_at).map_or(span.start, |member| member.key.end);
                (key..span.end, ": []".to_owned())
            }
        });
    } else {
        edits.push((prefix(text, span, all, original, next), String::new()));
    }
    edits
}

/// The part of the array from its bracket to the comma behind the original command.
fn prefix(text: &str, array: &Span, all: &[Str], original: &Str, next: Option<&Str>) -> Span {
    let (open, close) = (array.start + 1, array.end.saturating_sub(1));
    let first = all.first().map_or(open, |s| s.span.start);
    let blank = |span: Span| slice(text, span).trim().is_empty();
    // A comment that somebody has put in front stays.
    let start = if blank(open..first) { open } else { first };
    let behind = next.map_or(close, |s| s.span.start);
    let end = comma(text, original.span.end, behind).map_or(original.span.end, |at| at + 1);
    // One element per line, none left: "[]", not a bracket on each of two lines. In our own form the gap is empty.
    if next.is_none() && first > open && start == open && blank(end..close) {
        return open..close;
    }
    start..end
}

/// The spans to cut so that a member on lines of its own is gone.
pub(crate) fn without_lines(text: &str, layout: Layout, members: &[Member], command: &Span, at: usize) -> Vec<Edit> {
    let Some(member) = members.get(at) else { return Vec::new() };
    let start = line_start(text, member.key.start);
    let end = member.value.end;
    let command = command.end;
    // As we have written it: on the line after the command's value, with what stood behind that now behind this.
    if command < start && matches!(slice(text, command..start), "\n" | "\r\n") {
        return vec![(command..end, String::new())];
    }
    // Behind the dash of a list the next key takes its place.
    if let (false, Some(next)) = (slice(text, start..member.key.start).trim().is_empty(), members.get(at + 1))
        && layout == Layout::Block
    {
        return vec![(member.key.start..next.key.start, String::new())];
    }
    let line = slice(text, end..text.len());
    let rest = line.find('\n').map_or(line.len(), |n| n + 1);
    // A comment behind it stays.
    let cut = if line[..rest].trim().is_empty() { end + rest } else { end };
    vec![(start..cut, String::new())]
}

/// The spans to cut so that a member and one comma are gone.
pub(crate) fn without_member(text: &str, members: &[Member], at: usize) -> Vec<Edit> {
    let Some(member) = members.get(at) else { return Vec::new() };
    let plain = |span: Span| slice(text, span).chars().all(|c| c == ',' || c.is_ascii_whitespace());
    let cut = |span: Span| (span, String::new());
    if let Some(before) = at.checked_sub(1).and_then(|i| members.get(i)) {
        if plain(before.value.end..member.key.start) {
            return vec![cut(before.value.end..member.value.end)];
        }
        let comma = comma(text, before.value.end, member.key.start).map(|c| cut(c..c + 1));
        return comma.into_iter().chain([cut(member.key.start..member.value.end)]).collect();
    }
    let Some(after) = members.get(at + 1) else { return vec![cut(member.key.start..member.value.end)] };
    if plain(member.value.end..after.key.start) {
        return vec![cut(member.key.start..after.key.start)];
    }
    let end = comma(text, member.value.end, after.key.start).map_or(member.value.end, |c| c + 1);
    vec![cut(member.key.start..end)]
}

/// The comma between two tokens, past white space and comments. (Outside of these no syntax has `#` or `/` there.)
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = slice(text, at..to);
        let skip = if rest.starts_with(',') {
            return Some(at);
        } else if rest.starts_with("//") || rest.starts_with('#') {
            rest.find(['\n', '\r']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_end(rest)
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += skip;
    }
    None
}

/// Applies edits, which must not overlap.
pub(crate) fn splice(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for (span, new) in edits {
        out.push_str(slice(text, at..span.start));
        out.push_str(&new);
        at = span.end;
    }
    out.push_str(slice(text, at..text.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::Syntax,
        document::{self, Shape},
        form::Form,
    };

    /// The text with its first server behind the shim; taken out again it is what it was.
    fn check(syntax: Syntax, before: &str, want: &str) {
        let first = |text: &str| {
            let all = document::servers(text, syntax, &["s".to_owned()], &Form::default()).unwrap();
            match all.into_iter().next().map(|server| server.shape) {
                Some(Shape::Stdio(stdio)) => *stdio,
                other => panic!("{text}: {other:?}"),
            }
        };
        let after = splice(before, wrap(before, &first(before), &"c/u/a".parse().unwrap(), "/firedoor-shim"));
        assert_eq!(after, want);
        let stdio = first(&after);
        assert_eq!(splice(&after, unwrap(&after, &stdio, &wrapped(&stdio).unwrap())), before);
    }

    #[test]
    fn json5() {
        check(
            Syntax::Json5,
            "// c\n{s: {a: {command: 'it\\'s', timeout: +.5, nope: NaN, hex: 0xFF,},},}",
            "// c\n{s: {a: {command: \"/firedoor-shim\",\"args\": [\"--entry\",\"c/u/a\",\"--no-args\",\"--\",'it\\'s'], timeout: +.5, nope: NaN, hex: 0xFF,},},}",
        );
        check(
            Syntax::Json5,
            "{'s': {$a: {command: \"x\", args: ['\\x41', /* c */],}}}",
            "{'s': {$a: {command: \"/firedoor-shim\", args: [\"--entry\",\"c/u/a\",\"--\",\"x\",'\\x41', /* c */],}}}",
        );
    }

    #[test]
    fn dotted_keys_between_braces() {
        check(
            Syntax::Toml,
            "s = { a.command = 'x', b.command = 'y', a.env.K = 'v' }",
            "s = { a.command = \"/firedoor-shim\", a.args = [\"--entry\",\"c/u/a\",\"--no-args\",\"--\",'x'], b.command = 'y', a.env.K = 'v' }",
        );
        check(
            Syntax::Toml,
            "s.a = { env.K = 'v', command = 'x' }",
            "s.a = { env.K = 'v', command = \"/firedoor-shim\", args = [\"--entry\",\"c/u/a\",\"--no-args\",\"--\",'x'] }",
        );
        check(
            Syntax::Toml,
            "s = {\"a\" . args=['1'],\"a\" . command='x'}",
            "s = {\"a\" . args=[\"--entry\",\"c/u/a\",\"--\",'x','1'],\"a\" . command=\"/firedoor-shim\"}",
        );
    }
}
