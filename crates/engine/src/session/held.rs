//! A line that waits for the user.

use std::{
    cell::{Cell, RefCell},
    rc::{Rc, Weak},
    time::Duration,
};

use firedoor_policy::{HeldId, as_error, as_tool_result};

use super::{
    Session,
    ledger::Record,
    pending::{Asked, canonical},
};

/// Between two signs of life to a client that asked for progress. Clients that honour it wait longer than 60 s.
const PROGRESS: Duration = Duration::from_secs(10);

/// JSON-RPC error code of a refusal: the first of those left to implementations (JSON-RPC 2.0 §5.1).
pub const REFUSED: i64 = -32000;

/// A request, as far as answering it needs.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its raw id.
    pub id: String,
    /// A tool call is refused with a result, anything else with an error.
    pub tool_call: bool,
    /// From protocol revision 2026-07-28 on, results need a `resultType`.
    pub modern: bool,
}

impl Request {
    /// The raw JSON-RPC answer that carries a refusal.
    pub fn refusal(&self, text: &str) -> String {
        let id = &self.id;
        if self.tool_call {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, as_tool_result(text, self.modern))
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, as_error(REFUSED, text))
        }
    }
}

/// Answers for all requests of a line, as one line.
pub fn answer_line(requests: &[Request], batch: bool, text: impl Fn(&Request) -> String) -> Option<String> {
    let answers: Vec<String> = requests.iter().map(|r| r.refusal(&text(r))).collect();
    match (batch, answers.as_slice()) {
        (_, []) => None,
        (false, [one]) => Some(format!("{one}\n")),
        _ => Some(format!("[{}]\n", answers.join(","))),
    }
}

/// A held line. A batch may wait for several answers.
pub struct HeldLine {
    pub session: Weak<Session>,
    /// The original bytes.
    pub line: Vec<u8>,
    /// Whether it is a batch.
    pub batch: bool,
    /// All requests in it.
    pub requests: Vec<Request>,
    /// The raw ids of all answers in it, to requests of the server.
    pub answers: Vec<String>,
    /// What to remember when it is forwarded.
    pub asked: RefCell<Vec<(String, Asked)>>,
    /// Questions that are still open.
    pub waits: Cell<usize>,
    /// Forwarded, refused or withdrawn.
    pub settled: Cell<bool>,
    /// The numbers under which the desk knows it, each with its request's id.
    pub ids: RefCell<Vec<(HeldId, String)>>,
}

impl HeldLine {
    /// One of its questions was answered with Allow. Forwards it when it was the last one.
    pub fn allow(&self) {
        self.waits.set(self.waits.get().saturating_sub(1));
        if self.waits.get() > 0 || self.settled.replace(true) {
            return;
        }
        if let Some(session) = self.session.upgrade() {
            let asked = self.asked.take();
            let sent = Record::sent(&asked);
            session.remember(asked);
            session.send_up(&self.line, vec![sent]);
        }
    }

    /// Refuses it. `text` is for the request `id`; the others of its batch share its fate.
    pub fn refuse(&self, id: &str, text: &str) {
        if self.settled.replace(true) {
            return;
        }
        let Some(session) = self.session.upgrade() else { return };
        let with_batch = "Blocked by Firedoor with its batch: another request in the same batch was refused.";
        let say = |r: &Request| if r.id == id { text.to_owned() } else { with_batch.to_owned() };
        let answered = Record::Answered(self.request_ids());
        if let Some(answer) = answer_line(&self.requests, self.batch, say) {
            session.send_down(answer.as_bytes(), vec![answered]);
        }
        for id in &self.answers {
            let error = as_error(REFUSED, "Firedoor (local security policy) did not pass the client's answer on.");
            session.tell_server(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").as_bytes());
        }
    }

    fn request_ids(&self) -> Vec<String> {
        self.requests.iter().map(|r| canonical(&r.id)).collect()
    }

    /// Forgets it without an answer: the client cancelled it or has gone.
    pub fn withdraw(&self) {
        if !self.settled.replace(true)
            && let Some(session) = self.session.upgrade()
        {
            session.ledger.write(Record::Answered(self.request_ids()));
        }
    }

    /// Sends signs of life while it is held. `token` is the raw progress token.
    pub fn keep_alive(self: &Rc<Self>, token: String) {
        let this = Rc::downgrade(self);
        tokio::task::spawn_local(async move {
            for step in 1u32.. {
                tokio::time::sleep(PROGRESS).await;
                let Some(held) = this.upgrade().filter(|h| !h.settled.get()) else { return };
                let Some(session) = held.session.upgrade() else { return };
                // Far below any server's first step, since progress must increase (MCP, "Progress").
                session.tell_client(
                    format!(
                        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\
                         \"progress\":{},\"message\":\"Waiting for the user's answer in Firedoor\"}}}}\n",
                        f64::from(step) * 1e-6
                    )
                    .as_bytes(),
                );
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_the_shape_of_the_line() {
        let call = Request { id: "7".into(), tool_call: true, modern: false };
        let read = Request { id: "\"r\"".into(), tool_call: false, modern: false };
        let text = |_: &Request| "no".to_owned();
        insta::assert_snapshot!(answer_line(std::slice::from_ref(&call), false, text).unwrap().trim_end(), @r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#);
        insta::assert_snapshot!(answer_line(&[call, read], true, text).unwrap().trim_end(), @r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"no"}],"isError":true}},{"jsonrpc":"2.0","id":"r","error":{"code":-32000,"message":"no"}}]"#);
        assert_eq!(answer_line(&[], true, text), None);
    }
}
