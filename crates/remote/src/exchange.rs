//! One message of the client that wants an answer, from its request over HTTP to the answer.

mod answer;
mod own;
mod refusal;

use std::rc::Rc;

use bytes::Bytes;
use firedoor_model::{remote::Transport, wire::Object};
use reqwest::{Response, StatusCode, header::CONTENT_TYPE};

use refusal::Refusal;

use crate::{
    bridge::Bridge,
    flight::{Flight, Kind},
    http::{place, reason},
};

/// The headers do not match the body (revision 2026-07-28).
const HEADER_MISMATCH: &str = "-32020";

const LOST: &str = "the connection to the server was lost before its answer came; it may have done what it was asked";

impl Bridge {
    /// Sends a message and passes on what comes back.
    pub(crate) async fn exchange(self: Rc<Self>, body: Bytes, flight: Rc<Flight>) {
        let Ok(_place) = self.places.acquire().await else { return };
        let elsewhere = tokio::select! {
            elsewhere = self.converse(&body, &flight) => elsewhere,
            () = flight.closed.notified() => false,
        };
        if !elsewhere {
            self.fail(&flight, LOST);
        }
    }

    /// True when the answer comes on another stream.
    async fn converse(self: &Rc<Self>, body: &Bytes, flight: &Flight) -> bool {
        let (mut again, mut may_renew) = (true, true);
        loop {
            if let Err(why) = self.connect().await {
                self.fail(flight, &why);
                return false;
            }
            let headers = match self.headers(body, flight) {
                Ok(headers) => headers,
                Err(why) => {
                    self.fail(flight, &why);
                    return false;
                }
            };
            let (seen, token) = (self.session.generation(), self.tokens());
            let channel = self.channel.borrow().clone();
            let response =
                match self.http.post(channel.as_ref().unwrap_or(self.http.url()), body.clone(), headers).await {
                    Ok(response) => response,
                    Err(e) => {
                        self.fail(flight, &e.to_string());
                        return false;
                    }
                };
            let status = response.status();
            if status.is_success() && channel.is_some() {
                return true;
            }
            if status.is_success() {
                self.takes_posts.set(true);
                self.receive(response, flight).await;
                return false;
            }
            // It did nothing that it could do twice.
            if status == StatusCode::UNAUTHORIZED && std::mem::take(&mut may_renew) && self.log_in_again(token).await {
                continue;
            }
            if status == StatusCode::NOT_FOUND && self.session.is_open() && flight.kind == Kind::Legacy && again {
                again = false;
                if let Err(why) = self.renew(seen).await {
                    self.fail(flight, &why);
                    self.give_up(&why);
                    return false;
                }
                continue;
            }
            let refusal = Refusal::read(response).await;
            if channel.is_none() && self.transport == Transport::Auto && self.may_be_old(flight, &refusal) {
                let _turn = self.opening_channel.lock().await;
                if self.channel.borrow().is_some() || self.open_channel().await.is_ok() {
                    continue;
                }
            }
            if again
                && refusal
                    .error()
                    .is_some_and(|e| Object::parse(e).and_then(|e| e.get("code")) == Some(HEADER_MISMATCH))
            {
                again = false;
                if self.learn_tools(body).await {
                    continue;
                }
            }
            self.refuse(flight, &refusal);
            return false;
        }
    }

    /// Whether this may be a server of before 2025-03-26 (Streamable HTTP, "Backward Compatibility"): it takes no messages where others do.
    fn may_be_old(&self, flight: &Flight, refusal: &Refusal) -> bool {
        match flight.kind {
            Kind::Initialize => matches!(refusal.status.as_u16(), 400 | 404 | 405) && !refusal.is_modern(),
            // Others have their own words for a revision that they do not know, and for a session that is missing.
            Kind::Modern => {
                matches!(refusal.status.as_u16(), 404 | 405) && refusal.error().is_none() && !self.takes_posts.get()
            }
            Kind::Legacy | Kind::Subscription => false,
        }
    }

    /// Passes a refusal on: as the server's own error where it is one, else in words.
    fn refuse(&self, flight: &Flight, refusal: &Refusal) {
        if let Some(why) = refusal.wants(&self.login) {
            return self.fail(flight, &format!("{} {why}", place(self.http.url())));
        }
        if let (Some(error), Some(id)) = (refusal.error(), flight.single()) {
            return self.pass_on(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes());
        }
        self.fail(flight, &refusal.in_words(&place(self.http.url())));
    }
}

/// Reads a body whole.
async fn collect(mut response: Response, limit: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                return Err(format!(
                    "the server's message has more than {} MiB; limits.message_mib in Firedoor's config.toml raises that \
                     limit",
                    limit >> 20
                ));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(e) => return Err(format!("the server's answer broke off: {}", reason(&e))),
        }
    }
}

/// Whether a response is a stream of events.
pub(crate) fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}
