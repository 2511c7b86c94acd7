//! Finds the id of a message that was too long to be kept, so that its sender or its asker gets an answer.

/// What can still be said about a message of which only the start and the end are known.
#[derive(Debug, PartialEq, Eq)]
pub struct Remains {
    /// Its raw id, if it stands at the top level in the known parts.
    pub id: Option<String>,
    /// Whether it has a method, and so wants an answer from the other side, as far as is known.
    pub request: bool,
}

/// Looks at the first bytes, and at the last ones if those do not tell.
pub fn remains(head: &[u8], tail: &[u8]) -> Remains {
    let (id, request) = head_members(head);
    Remains { id: id.or_else(|| tail_id(tail)), request }
}

/// Walks the tokens of a JSON object that is cut off, noting what stands at its top level.
fn head_members(head: &[u8]) -> (Option<String>, bool) {
    let (mut depth, mut at) = (0usize, 0usize);
    let (mut id, mut request) = (None, false);
    let mut key: Option<&[u8]> = None;
    while let Some(&b) = head.get(at) {
        match b {
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' => (depth, at) = (depth.saturating_sub(1), at + 1),
            b',' => (key, at) = (if depth == 1 { None } else { key }, at + 1),
            b' ' | b'\t' | b'\r' | b':' => at += 1,
            _ => {
                let Some(end) = token_end(head, at) else { break };
                let token = &head[at..end];
                if depth == 1 {
                    match key {
                        None => {
                            key = Some(token);
                            request |= token == b"\"method\"";
                        }
                        Some(b"\"id\"") if id.is_none() => id = scalar(token),
                        Some(_) => {}
                    }
                }
                at = end;
            }
        }
    }
    (id, request)
}

/// End of the string, number or word at `at`; `None` when it is cut off.
fn token_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) == Some(&b'"') {
        let mut i = at + 1;
        loop {
            match bytes.get(i)? {
                b'"' => return Some(i + 1),
                b'\\' => i += 2,
                _ => i += 1,
            }
        }
    }
    let length = bytes.get(at..)?.iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b':'))?;
    Some(at + length.max(1))
}

/// An id as the last member: `… ,"id":TOKEN}` and nothing after it. Since the line ends there, it is the top level.
fn tail_id(tail: &[u8]) -> Option<String> {
    let body = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let text = std::str::from_utf8(body.get(body.len().saturating_sub(600)..)?).ok()?;
    let (before, token) = text.rsplit_once("\"id\"")?;
    if !before.trim_end().ends_with([',', '{']) {
        return None;
    }
    scalar(token.trim_start().strip_prefix(':')?.trim().as_bytes())
}

/// The token, if it is a JSON string or number and short enough for an id.
fn scalar(token: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(token).ok().filter(|t| t.len() <= 512)?;
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    (value.is_string() || value.is_number()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_at_either_end() {
        let check = |head: &str, tail: &str, id: Option<&str>, request: bool| {
            let want = Remains { id: id.map(str::to_owned), request };
            assert_eq!(remains(head.as_bytes(), tail.as_bytes()), want, "{head} … {tail}");
        };
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":9,"x":"aaa"#,
            r#"aaa"}}"#,
            Some("7"),
            true,
        );
        check(r#"{"id":"a\"b","result":{"x":"aaa"#, r#"aaa"}}"#, Some(r#""a\"b""#), false);
        check(r#"{"method":"m","params":{"id":9,"x":"aaa"#, r#"aaa"},"id": 8 }"#, Some("8"), true);
        check(r#"{"method":"m","params":{"x":"aaa"#, r#"aaa","id":8}}"#, None, true);
        check(r#"{"method":"m","params":{"x":"aaa"#, r#"aaa\",\"id\":8}"}"#, None, true);
        check("xxxx", "xxxx", None, false);
        check(r#"{"id":{"a":1},"x":"#, "", None, false);
        check("", "", None, false);
    }
}
