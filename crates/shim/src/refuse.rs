//! Answers a client whose server may not or cannot run, so that it reads the reason instead of waiting.

use std::{
    io::{self, BufRead, Read, Write},
    process::ExitCode,
};

use firedoor_model::wire::{Body, Frame};
use nix::errno::Errno;

/// Longest line that is looked at, in bytes. A client's first messages are far shorter.
const LIMIT: u64 = 1 << 20;

/// Answers every request on stdin with an error until stdin ends.
pub fn serve(text: &str) -> ExitCode {
    // Nothing is running: signals may end us as they would any program.
    crate::sys::Signals::release();
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.by_ref().take(LIMIT).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return ExitCode::FAILURE,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LIMIT {
            // The rest of the line would look like messages of its own.
            return ExitCode::FAILURE;
        }
        let Some(reply) = answer(&line, text) else { continue };
        if output.write_all(reply.as_bytes()).and_then(|()| output.flush()).is_err() {
            return ExitCode::FAILURE;
        }
    }
}

/// A client that is answered while its server waits for an engine.
#[derive(Default)]
pub struct Client {
    /// What was read of a message that is not complete.
    part: Vec<u8>,
    /// The rest of a message that is too long is skipped.
    skipping: bool,
    closed: bool,
}

impl Client {
    /// Whether the client has closed its side.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Whether nothing was read of a message that is not complete.
    pub fn between_messages(&self) -> bool {
        self.part.is_empty() && !self.skipping
    }

    /// Reads what there is, once, and answers the requests in it.
    pub fn answer(&mut self, text: &str) {
        let mut chunk = [0; 16 << 10];
        let count = match nix::unistd::read(io::stdin(), &mut chunk) {
            Ok(0) => {
                self.closed = true;
                return;
            }
            Ok(count) => count,
            // Somebody else's descriptor may be non-blocking; poll comes back.
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            Err(_) => {
                self.closed = true;
                return;
            }
        };
        for reply in self.replies(chunk.get(..count).unwrap_or_default(), text) {
            let mut output = io::stdout().lock();
            if output.write_all(reply.as_bytes()).and_then(|()| output.flush()).is_err() {
                self.closed = true;
            }
        }
    }

    fn replies(&mut self, mut bytes: &[u8], text: &str) -> Vec<String> {
        let mut replies = Vec::new();
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            self.part.extend_from_slice(line);
            bytes = rest;
            if !self.skipping {
                replies.extend(answer(&self.part, text));
            }
            self.part.clear();
            self.skipping = false;
        }
        self.part.extend_from_slice(bytes);
        if self.part.len() as u64 > LIMIT {
            self.part.clear();
            self.skipping = true;
        }
        replies
    }
}

/// The reply to one line, if it wants one. -32000 is the first of JSON-RPC's codes for errors of an implementation.
fn answer(line: &[u8], text: &str) -> Option<String> {
    let frame = Frame::parse(line).ok()?;
    let error = serde_json::json!({"code": -32000, "message": format!("Firedoor: {text}")});
    let replies: Vec<String> = frame
        .messages()
        .iter()
        .filter_map(|m| match &m.body {
            Body::Request { id, .. } => Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)),
            _ => None,
        })
        .collect();
    match (&frame, replies.as_slice()) {
        (_, []) => None,
        (Frame::Single(_), [one]) => Some(format!("{one}\n")),
        _ => Some(format!("[{}]\n", replies.join(","))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_pieces_are_answered_once_and_long_ones_not_at_all() {
        let mut client = Client::default();
        assert!(client.replies(br#"{"id":1,"#, "off").is_empty());
        assert!(!client.between_messages());
        let replies = client.replies(b"\"method\":\"a\"}\n{\"method\":\"n\"}\n", "off");
        assert_eq!((replies.len(), client.between_messages()), (1, true));
        assert!(client.replies(&vec![b'x'; LIMIT as usize + 1], "off").is_empty());
        assert!(!client.between_messages());
        assert!(client.replies(b"{\"id\":2,\"method\":\"a\"}\n", "off").is_empty());
        assert_eq!(client.replies(b"{\"id\":3,\"method\":\"a\"}\n", "off").len(), 1);
    }

    #[test]
    fn requests_are_answered_and_nothing_else() {
        let reply = |line: &str| answer(line.as_bytes(), "not \"now\"");
        let error = r#""error":{"code":-32000,"message":"Firedoor: not \"now\""}"#;
        let one = format!(r#"{{"jsonrpc":"2.0","id":"x",{error}}}"#);
        assert_eq!(reply(r#"{"id":"x","method":"initialize"}"#), Some(format!("{one}\n")));
        assert_eq!(reply(r#"[{"id":"x","method":"a"},{"method":"b"}]"#), Some(format!("[{one}]\n")));
        assert_eq!(reply(r#"{"method":"notifications/initialized"}"#), None);
        assert_eq!(reply(r#"{"id":1,"result":{}}"#), None);
        assert_eq!(reply("noise"), None);
    }
}
