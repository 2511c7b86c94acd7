//! A server's own words about a file that it was refused: error texts of the system, with a path.
//!
//! The words are the server's, or those of whatever it read: what they say is checked by others, who know its grants.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use firedoor_model::{
    observation::Use,
    wire::{Leaves, Object},
};

/// What the system and its languages say when a file is refused (errno(3), Python's and Go's error texts, Windows).
const WORDS: [&str; 7] = [
    "eacces",
    "eperm",
    "permission denied",
    "operation not permitted",
    "permissionerror",
    "access is denied",
    "access denied",
];
/// Calls and phrases that need more than reading.
const CHANGES: [&str; 13] = [
    "mkdir", "rmdir", "unlink", "rename", "symlink", "copyfile", "write", "create", "writing", "remove", "delete",
    "touch", "truncate",
];
const LISTS: [&str; 5] = ["scandir", "opendir", "readdir", "listdir", "open directory"];
const STARTS: [&str; 2] = ["spawn ", "exec "];

/// A text without an error's mark is looked at only when it is no longer than this: an error text is short, and what a
/// server read may say anything.
const MAX_PLAIN: usize = 1000;
/// A path stands at most this far from the words, in bytes.
const NEAR: usize = 400;
/// Most paths of one message.
const MAX_PATHS: usize = 8;
/// Longest path (`PATH_MAX`, linux/limits.h).
const MAX_PATH: usize = 4096;

#[expect(clippy::expect_used, reason = "built-in words")]
static WORDS_IN: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasickBuilder::new().ascii_case_insensitive(true).build(WORDS).expect("the words make an automaton")
});

/// A path that a server says it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Absolute, or relative to the server's working directory.
    pub path: String,
    /// What it says that it did there.
    pub how: Use,
}

/// The paths that a result (`error`: a JSON-RPC error) says were refused.
pub fn denied(payload: &str, error: bool) -> Vec<Denied> {
    if !WORDS_IN.is_match(payload) {
        return Vec::new();
    }
    let marked = error || Object::parse(payload).is_some_and(|o| o.get("isError") == Some("true"));
    let mut found: Vec<Denied> = Vec::new();
    for leaf in Leaves::of(payload).filter(|leaf| !leaf.key) {
        if !marked && leaf.text.len() > MAX_PLAIN {
            continue;
        }
        for word in WORDS_IN.find_iter(leaf.text.as_bytes()) {
            let near = around(&leaf.text, word.start(), word.end());
            let how = purpose(near);
            for path in paths(near) {
                if found.len() >= MAX_PATHS {
                    return found;
                }
                let one = Denied { path, how };
                if !found.contains(&one) {
                    found.push(one);
                }
            }
        }
    }
    found
}

/// The line that the words stand in, as far as it is near.
fn around(text: &str, start: usize, end: usize) -> &str {
    let from = text.floor_char_boundary(start.saturating_sub(NEAR));
    let to = text.ceil_char_boundary((end + NEAR).min(text.len()));
    let before = text.get(from..start).unwrap_or_default();
    let after = text.get(end..to).unwrap_or_default();
    let from = before.rfind('\n').map_or(from, |at| from + at + 1);
    let to = after.find('\n').map_or(to, |at| end + at);
    text.get(from..to).unwrap_or_default()
}

fn purpose(line: &str) -> Use {
    let line = line.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| line.contains(w));
    if says(&CHANGES) {
        Use::Create
    } else if says(&LISTS) {
        Use::List
    } else if says(&STARTS) {
        Use::Execute
    } else {
        Use::Read
    }
}

/// What stands between quotes and looks like a path, and what begins with a slash after a space.
fn paths(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['\'', '"', '`', '‘', '“']) {
        let (_, tail) = rest.split_at(at);
        let open = tail.chars().next().unwrap_or('"');
        let close = match open {
            '‘' => '’',
            '“' => '”',
            other => other,
        };
        let inside = tail.get(open.len_utf8()..).unwrap_or_default();
        let Some(end) = inside.find(close) else { break };
        let text = inside.get(..end).unwrap_or_default();
        if text.contains('/') && !text.contains("://") {
            found.push(text.to_owned());
        }
        rest = inside.get(end + close.len_utf8()..).unwrap_or_default();
    }
    if found.is_empty() {
        let bare = line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | '[' | ']'));
        let trimmed = bare.map(|word| word.trim_matches([':', ',', ';', '.', '\'', '"']));
        found.extend(trimmed.filter(|word| word.starts_with('/') && word.len() > 1).map(str::to_owned));
    }
    found.retain(|path| path.len() <= MAX_PATH);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(payload: &str, want: &[(&str, Use)]) {
        let got: Vec<_> = denied(payload, false).into_iter().map(|d| (d.path, d.how)).collect();
        let want: Vec<_> = want.iter().map(|(path, how)| ((*path).to_owned(), *how)).collect();
        assert_eq!(got, want, "{payload}");
    }

    fn text(text: &str) -> String {
        serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string()
    }

    #[test]
    fn error_texts_of_real_programs() {
        for (said, path, how) in [
            ("Error: EACCES: permission denied, open '/home/u/a b.txt'", "/home/u/a b.txt", Use::Read),
            ("EPERM: operation not permitted, mkdir '/home/u/d'", "/home/u/d", Use::Create),
            ("EACCES: permission denied, scandir '/home/u'", "/home/u", Use::List),
            ("[Errno 13] Permission denied: '/home/u/x'", "/home/u/x", Use::Read),
            ("PermissionError: [Errno 1] Operation not permitted: \"/home/u/it's\"", "/home/u/it's", Use::Read),
            ("open /home/u/x: permission denied", "/home/u/x", Use::Read),
            ("cat: /home/u/x: Permission denied", "/home/u/x", Use::Read),
            ("fatal: could not open '/home/u/x' for writing: Permission denied", "/home/u/x", Use::Create),
            ("touch: cannot touch ‘/home/u/x’: Permission denied", "/home/u/x", Use::Create),
            ("spawn /home/u/bin/tool EACCES", "/home/u/bin/tool", Use::Execute),
            ("EACCES: permission denied, open 'notes/a.md'", "notes/a.md", Use::Read),
            ("Access is denied. (/home/u/x)", "/home/u/x", Use::Read),
        ] {
            check(&text(said), &[(path, how)]);
        }
        check(
            &text("rename '/home/u/a' -> '/home/u/b': EACCES: permission denied"),
            &[("/home/u/a", Use::Create), ("/home/u/b", Use::Create)],
        );
        check(&text("first line '/not/this'\nEACCES: permission denied, open '/this'"), &[("/this", Use::Read)]);
    }

    #[test]
    fn what_is_no_refusal() {
        for said in [
            "all is well with '/home/u/x'",
            "Permission denied",
            "EACCES: permission denied, connect 'https://a.example/x'",
            "you need permission to read /home/u/x",
        ] {
            check(&text(said), &[]);
        }
        let long = format!("{} EACCES: permission denied, open '/home/u/x'", "a page about errors. ".repeat(100));
        check(&text(&long), &[]);
        let marked = serde_json::json!({"isError": true, "content": [{"type": "text", "text": long}]}).to_string();
        check(&marked, &[("/home/u/x", Use::Read)]);
        assert_eq!(denied(r#"{"code":-1,"message":"EACCES: permission denied, open '/a/b'"}"#, true).len(), 1);
        let many = (0..100).map(|n| format!("EACCES '/a/{n}'\n")).collect::<String>();
        assert_eq!(denied(&serde_json::json!({"isError": true, "text": many}).to_string(), false).len(), MAX_PATHS);
    }

    proptest! {
        #[test]
        fn anything_is_survived(said in "(EACCES|permission denied|['\"`‘’“”/: ä\n(]|[a-z/]{1,3}){0,60}") {
            for one in denied(&text(&said), false) {
                prop_assert!(said.contains(&one.path));
            }
        }
    }
}
