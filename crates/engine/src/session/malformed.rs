//! What the client sends that is not passed on, because it is no message or too long.

use std::rc::Rc;

use firedoor_model::wire::{Object, WireError};

use super::{Session, held::REFUSED, oversize};
use crate::engine::Engine;

/// JSON-RPC codes (JSON-RPC 2.0 §5.1).
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

impl Session {
    /// Answers what is no message.
    pub(super) fn malformed(&self, engine: &Rc<Engine>, body: &[u8], error: WireError) {
        let (code, id) = match error {
            WireError::NotJson => (PARSE_ERROR, None),
            WireError::NotRpc | WireError::Ambiguous | WireError::Batch => (INVALID_REQUEST, single_id(body)),
        };
        engine.recorder.record(self.failed(engine, &format!("from the client: {error}")));
        self.reply_error(id.as_deref(), code, &format!("Firedoor: {error}; it was not passed on"));
    }

    pub(super) fn too_long(&self, engine: &Rc<Engine>, bytes: u64, head: &[u8], tail: &[u8]) {
        let remains = oversize::remains(head, tail);
        let limit = engine.config.limits.message_mib;
        engine.recorder.record(self.failed(engine, &format!("from the client: a message of {bytes} bytes")));
        let text = format!(
            "Firedoor: the message has {bytes} bytes, more than the limit of {limit} MiB, and was not passed on; \
             limits.message_mib in Firedoor's config.toml raises it"
        );
        // Without a method it answers a request of the server, which gets the error instead.
        match (&remains.id, remains.request) {
            (Some(id), false) => {
                let error = firedoor_policy::as_error(REFUSED, &text);
                self.tell_server(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").as_bytes());
            }
            (id, _) => self.reply_error(id.as_deref(), REFUSED, &text),
        }
    }

    fn reply_error(&self, id: Option<&str>, code: i64, text: &str) {
        let (id, error) = (id.unwrap_or("null"), firedoor_policy::as_error(code, text));
        self.tell_client(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").as_bytes());
    }
}

/// The id of a message that is otherwise not understood, if it has exactly one.
fn single_id(body: &[u8]) -> Option<String> {
    let object = Object::parse(std::str::from_utf8(body).ok()?)?;
    let id = object.get_unique("id").ok()??;
    id.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).then(|| id.to_owned())
}
