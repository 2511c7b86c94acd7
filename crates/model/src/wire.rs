//! Views of JSON-RPC messages over the raw bytes of one line.
//!
//! Nothing is copied and nothing is re-serialised: a view borrows spans of the line, so that what was judged is exactly
//! what is forwarded. Where two readers could disagree about a message (a repeated `method`, say), the view is
//! [`WireError::Ambiguous`] and the message is not forwarded.
//!
//! Sources: JSON-RPC 2.0; MCP specification 2024-11-05 to 2026-07-28, "Base protocol" and "Transports".

mod leaves;
mod object;
mod string;

pub use leaves::{Leaf, Leaves, pointer};
pub use object::{Object, unescape};

use std::borrow::Cow;

use serde_json::value::RawValue;

/// Most messages in one batch. Larger batches are refused.
pub const MAX_BATCH: usize = 1024;

/// A JSON-RPC id as it stands in the message: a string or a number, raw. Two ids are equal when their raw text is;
/// the peer is bound to echo the id, and implementations that rewrite `1` as `1.0` are not known.
pub type RawId<'a> = &'a str;

/// One message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The message's own bytes (inside a batch: without the commas and white space around it).
    pub raw: &'a str,
    /// What it is.
    pub body: Body<'a>,
}

/// The four kinds of message.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// Wants an answer.
    Request {
        /// Its id.
        id: RawId<'a>,
        /// Its method.
        method: Cow<'a, str>,
        /// Raw JSON of `params`, if present.
        params: Option<&'a str>,
    },
    /// Wants none.
    Notification {
        /// Its method.
        method: Cow<'a, str>,
        /// Raw JSON of `params`, if present.
        params: Option<&'a str>,
    },
    /// A result.
    Response {
        /// The request's id.
        id: RawId<'a>,
        /// Raw JSON of `result`.
        result: &'a str,
    },
    /// An error; `id` is absent or `null` when the peer could not read the request.
    Error {
        /// The request's id.
        id: Option<RawId<'a>>,
        /// Raw JSON of `error`.
        error: &'a str,
    },
}

/// One line.
#[derive(Clone, Debug)]
pub enum Frame<'a> {
    /// One message.
    Single(Message<'a>),
    /// A batch (only protocol revision 2025-03-26 has them); never empty.
    Batch(Vec<Message<'a>>),
}

/// Why a line has no view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not JSON, or not UTF-8.
    #[error("the line is not JSON")]
    NotJson,
    /// JSON, but not a JSON-RPC message.
    #[error("the line is JSON but not a JSON-RPC message")]
    NotRpc,
    /// A member that decides what the message means stands in it twice or in capitals, or a carriage return stands
    /// between its tokens.
    #[error(
        "the message can be read in two ways: it repeats a member that decides its meaning, spells one in capitals, or \
         has a carriage return between its parts"
    )]
    Ambiguous,
    /// More than [`MAX_BATCH`] messages.
    #[error("the batch has more than {MAX_BATCH} messages")]
    Batch,
}

impl<'a> Frame<'a> {
    /// Reads one line, without its line end. White space around the JSON is fine.
    pub fn parse(line: &'a [u8]) -> Result<Self, WireError> {
        let text = std::str::from_utf8(line).map_err(|_| WireError::NotJson)?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| WireError::NotJson)?;
        let raw = raw.get();
        // White space to JSON, the end of a line to readers with universal newlines (Python's text streams): what stands
        // between two of them would be a message that nobody has looked at.
        if raw.as_bytes().contains(&b'\r') {
            return Err(WireError::Ambiguous);
        }
        if raw.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(|_| WireError::NotJson)?;
            if items.is_empty() {
                return Err(WireError::NotRpc);
            }
            if items.len() > MAX_BATCH {
                return Err(WireError::Batch);
            }
            return items.into_iter().map(|m| Message::parse(m.get())).collect::<Result<_, _>>().map(Frame::Batch);
        }
        Message::parse(raw).map(Frame::Single)
    }

    /// The messages, in order.
    pub fn messages(&self) -> &[Message<'a>] {
        match self {
            Self::Single(m) => std::slice::from_ref(m),
            Self::Batch(all) => all,
        }
    }
}

impl<'a> Message<'a> {
    fn parse(raw: &'a str) -> Result<Self, WireError> {
        let object = Object::parse(raw).ok_or(WireError::NotRpc)?;
        let member = |name: &str| object.get_unique(name).map_err(|_| WireError::Ambiguous);
        let id = member("id")?;
        let method = member("method")?;
        let params = member("params")?;
        let (result, error) = (member("result")?, member("error")?);
        // An id must be a string or a number (JSON-RPC 2.0 §4); `null` only answers what could not be read (§5).
        let id = match id {
            None => None,
            Some("null") if error.is_some() => None,
            Some(id) if id.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => Some(id),
            Some(_) => return Err(WireError::NotRpc),
        };
        let body = match (method, result, error, id) {
            (Some(method), None, None, id) => {
                let method = unescape(method).ok_or(WireError::NotRpc)?;
                match id {
                    Some(id) => Body::Request { id, method, params },
                    None => Body::Notification { method, params },
                }
            }
            (None, Some(result), None, Some(id)) => Body::Response { id, result },
            (None, None, Some(error), id) => Body::Error { id, error },
            // Some servers send `"error": null` beside a result, or the reverse.
            (None, Some(result), Some("null"), Some(id)) => Body::Response { id, result },
            (None, Some("null"), Some(error), id) => Body::Error { id, error },
            _ => return Err(WireError::NotRpc),
        };
        Ok(Self { raw, body })
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.body {
            Body::Request { method, .. } | Body::Notification { method, .. } => Some(method),
            Body::Response { .. } | Body::Error { .. } => None,
        }
    }
}

/// The `params` of a `tools/call`, `prompts/get` or `resources/read`, where both sides must agree on what is meant.
#[derive(Clone, Debug)]
pub struct CallView<'a> {
    /// Tool, prompt or resource name (`name` or `uri`).
    pub subject: Cow<'a, str>,
    /// Raw JSON of `arguments`, if present.
    pub arguments: Option<&'a str>,
    /// Raw JSON of `_meta.progressToken`, if the client wants progress.
    pub progress_token: Option<&'a str>,
}

impl<'a> CallView<'a> {
    /// Reads the params of a call. `subject` is the member that names what is called: `name` or `uri`.
    pub fn parse(params: Option<&'a str>, subject: &str) -> Result<Self, WireError> {
        let object = params.and_then(Object::parse).ok_or(WireError::NotRpc)?;
        let member = |name: &str| object.get_unique(name).map_err(|_| WireError::Ambiguous);
        let name = member(subject)?.and_then(unescape).ok_or(WireError::NotRpc)?;
        let meta = member("_meta")?.and_then(Object::parse);
        let progress_token = match &meta {
            Some(meta) => meta.get_unique("progressToken").map_err(|_| WireError::Ambiguous)?,
            None => None,
        };
        Ok(Self { subject: name, arguments: member("arguments")?, progress_token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match Frame::parse(line.as_bytes()) {
            Ok(Frame::Batch(all)) => format!("batch of {}", all.len()),
            Ok(Frame::Single(m)) => match m.body {
                Body::Request { id, method, params } => format!("request {id} {method} {}", params.unwrap_or("-")),
                Body::Notification { method, .. } => format!("notification {method}"),
                Body::Response { id, result } => format!("response {id} {result}"),
                Body::Error { id, .. } => format!("error {}", id.unwrap_or("-")),
            },
            Err(e) => format!("{e:?}"),
        }
    }

    #[test]
    fn lines() {
        for (line, want) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping -"),
            (r#" {"id":"a","method":"tools\/call","params":{"x":1e400}} "#, r#"request "a" tools/call {"x":1e400}"#),
            (r#"{"method":"notifications/x","params":{}}"#, "notification notifications/x"),
            (r#"{"id":-1,"result":{"a":[1,2]}}"#, r#"response -1 {"a":[1,2]}"#),
            (r#"{"id":1,"result":null}"#, "response 1 null"),
            (r#"{"id":1,"result":{},"error":null}"#, "response 1 {}"),
            (r#"{"id":null,"error":{"code":-32700}}"#, "error -"),
            (r#"{"error":{"code":-32700}}"#, "error -"),
            (r#"[{"id":1,"method":"a"},{"method":"b"}]"#, "batch of 2"),
            ("[]", "NotRpc"),
            ("[1]", "NotRpc"),
            ("this is not json", "NotJson"),
            ("", "NotJson"),
            (r#"{"id":1,"method":"a"} trailing"#, "NotJson"),
            (r#"{"id":1}"#, "NotRpc"),
            (r#"{"id":null,"method":"a"}"#, "NotRpc"),
            (r#"{"id":{},"method":"a"}"#, "NotRpc"),
            (r#"{"id":1,"method":5}"#, "NotRpc"),
            (r#"{"id":1,"method":"a","result":{}}"#, "NotRpc"),
            (r#"{"id":1,"method":"ping","method":"tools/call"}"#, "Ambiguous"),
            (r#"{"id":1,"method":"ping","m\u0065thod":"tools/call"}"#, "Ambiguous"),
            (r#"{"id":1,"method":"ping","Method":"tools/call"}"#, "Ambiguous"),
            (r#"{"id":1,"method":"a","paramS":{}}"#, "Ambiguous"),
            (r#"{"id":1,"method":"a","param\u017f":{}}"#, "Ambiguous"),
            (r#"{"Id":1,"method":"tools/call"}"#, "Ambiguous"),
            (r#"{"id":1,"result":{},"Result":{}}"#, "Ambiguous"),
            ("{\"id\":1,\"method\":\"a\",\"params\":{\"x\":\r{\"id\":2,\"method\":\"tools/call\"}\r}}", "Ambiguous"),
            ("\r{\"id\":1,\"method\":\"a\"}\r", "request 1 a -"),
            (
                r#"{"id":1,"method":"a","params":{"d":1,"d":2,"e":"\ud800"}}"#,
                r#"request 1 a {"d":1,"d":2,"e":"\ud800"}"#,
            ),
        ] {
            assert_eq!(kind(line), want, "{line}");
        }
        assert_eq!(Frame::parse(b"{\"id\":1,\"method\":\"\xff\"}").err(), Some(WireError::NotJson));
        let big = format!("[{}]", vec![r#"{"method":"a"}"#; MAX_BATCH + 1].join(","));
        assert_eq!(Frame::parse(big.as_bytes()).err(), Some(WireError::Batch));
    }

    #[test]
    fn deep_nesting_is_no_crash() {
        let deep = format!(r#"{{"id":1,"method":"a","params":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        assert!(Frame::parse(deep.as_bytes()).is_ok());
    }

    #[test]
    fn calls() {
        let view =
            CallView::parse(Some(r#"{"name":"t","arguments":{"a":1},"_meta":{"progressToken":"p"}}"#), "name").unwrap();
        assert_eq!(
            (view.subject.as_ref(), view.arguments, view.progress_token),
            ("t", Some(r#"{"a":1}"#), Some(r#""p""#))
        );
        let twice = CallView::parse(Some(r#"{"name":"safe","name":"evil"}"#), "name");
        assert_eq!(twice.err(), Some(WireError::Ambiguous));
        assert_eq!(CallView::parse(None, "name").err(), Some(WireError::NotRpc));
        assert_eq!(CallView::parse(Some("[1]"), "name").err(), Some(WireError::NotRpc));
    }
}
