//! Answers a client whose server may not or cannot run, so that it reads the reason instead of waiting.

use std::{
    io::{self, BufRead, Read, Write},
    process::ExitCode,
};

use firedoor_model::{
    told_by_firedoor,
    wire::{Body, Frame},
};

#[cfg(unix)]
mod client;

#[cfg(unix)]
pub use client::Client;

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

/// The reply to one line, if it wants one. -32000 is the first of JSON-RPC's codes for errors of an implementation.
fn answer(line: &[u8], text: &str) -> Option<String> {
    let frame = Frame::parse(line).ok()?;
    let error = serde_json::json!({"code": -32000, "message": told_by_firedoor(text)});
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
