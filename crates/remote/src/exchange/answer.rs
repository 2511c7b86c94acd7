//! The answer to a message of the client: one body, or a stream of events that may break off and go on.

use std::{rc::Rc, time::Duration};

use firedoor_model::{
    remote::PAUSED,
    wire::{Body, Frame},
};
use reqwest::{Response, header::HeaderValue};

use super::{LOST, collect, is_event_stream};
use crate::{
    bridge::Bridge,
    events::Events,
    flight::{Flight, Kind},
    output::one_line,
    patience::{Brought, Patience},
    session::LAST_EVENT,
};

/// A stream whose answer has come is read to its end so long.
const LINGER: Duration = Duration::from_secs(5);

impl Bridge {
    /// Passes on the answer.
    pub(super) async fn receive(self: &Rc<Self>, response: Response, flight: &Flight) {
        if flight.kind == Kind::Initialize {
            self.session.named(response.headers());
        }
        if is_event_stream(&response) {
            return self.stream(response, flight).await;
        }
        match collect(response, self.limit).await {
            Ok(body) if body.trim_ascii().is_empty() => {
                self.fail(flight, "the server took the request without answering it");
            }
            Ok(mut body) => {
                one_line(&mut body);
                if !self.noted(&body) {
                    return self.fail(flight, "the server's answer is no message of MCP");
                }
                self.output.send(body);
                self.output.room().await;
            }
            Err(why) => self.fail(flight, &why),
        }
    }

    /// Passes on what comes in a stream of events until the answer is among it.
    async fn stream(self: &Rc<Self>, mut response: Response, flight: &Flight) {
        let mut events = Events::new(self.limit);
        let mut patience = Patience::default();
        loop {
            match self.follow(response, &mut events, Some(flight)).await {
                Ok(brought) => patience.ended(brought, events.retry()),
                Err(why) => return self.fail(flight, &why),
            };
            if flight.is_answered() {
                return;
            }
            // Nobody waits for an answer, and the server, which was told, owes none.
            if flight.is_given_up() {
                return self.fail(flight, LOST);
            }
            // Streams of later revisions cannot be resumed.
            if flight.kind != Kind::Legacy && flight.kind != Kind::Initialize {
                return self.fail(flight, LOST);
            }
            if let (true, Some(retry), Some(id)) = (self.at_endpoint, events.retry(), flight.any()) {
                let params = format!(r#"{{"requestId":{id},"retry":{retry}}}"#);
                self.output.send(format!(r#"{{"jsonrpc":"2.0","method":"{PAUSED}","params":{params}}}"#).into_bytes());
            }
            response = loop {
                let Some(id) = events.last_id().and_then(|id| HeaderValue::from_str(id).ok()) else {
                    return self.fail(flight, LOST);
                };
                if patience.is_over() {
                    return self.fail(flight, LOST);
                }
                tokio::select! {
                    () = tokio::time::sleep(patience.pause(events.retry())) => {}
                    () = self.flights.given_up(flight) => return self.fail(flight, LOST),
                }
                patience.asks();
                let mut headers = self.session.headers();
                headers.insert(LAST_EVENT, id);
                match self.with_login(|| self.http.listen(headers.clone())).await {
                    Ok(next) if next.status().is_success() && is_event_stream(&next) => break next,
                    Ok(next) if next.status().is_client_error() => {
                        let wants = self.wants_login(next).await.map(|wants| format!("{LOST}; {wants}"));
                        return self.fail(flight, wants.as_deref().unwrap_or(LOST));
                    }
                    Ok(_) | Err(_) => {}
                }
            };
            events.restart();
        }
    }

    /// Passes on what a stream of events brings until it ends.
    pub(crate) async fn follow(
        &self,
        mut response: Response,
        events: &mut Events,
        flight: Option<&Flight>,
    ) -> Result<Brought, String> {
        let mut brought = Brought::default();
        loop {
            let answered = flight.is_some_and(Flight::is_answered);
            let chunk = if answered {
                let Ok(chunk) = tokio::time::timeout(LINGER, response.chunk()).await else { return Ok(brought) };
                chunk
            } else {
                response.chunk().await
            };
            // A stream that breaks off and one that ends are the same: what matters is whether the answer has come.
            let Ok(Some(chunk)) = chunk else { return Ok(brought) };
            for event in events.feed(&chunk).map_err(|e| e.to_string())? {
                brought.events = true;
                if event.kind.is_empty() && !event.data.is_empty() {
                    brought.messages = true;
                    self.pass_on(event.data);
                }
            }
            self.output.room().await;
        }
    }

    /// Passes on one message, or one batch, of the server.
    pub(crate) fn pass_on(&self, mut message: Vec<u8>) {
        one_line(&mut message);
        // What is no message is for the session to say.
        self.noted(&message);
        self.output.send(message);
    }

    /// Whether it is a message, or a batch; then what later requests depend on is remembered.
    fn noted(&self, message: &[u8]) -> bool {
        let Ok(frame) = Frame::parse(message.trim_ascii()) else { return false };
        frame.messages().iter().for_each(|message| self.note(&message.body));
        true
    }

    fn note(&self, body: &Body<'_>) {
        let (id, result) = match body {
            Body::Response { id, result } => (*id, Some(*result)),
            Body::Error { id: Some(id), .. } => (*id, None),
            _ => return,
        };
        let Some(flight) = self.flights.answered(id) else { return };
        match (flight.kind, result) {
            (Kind::Initialize, result) => {
                if let Some(result) = result {
                    self.session.agreed(result);
                }
                self.open();
            }
            (Kind::Modern, Some(result)) if flight.method == "tools/list" => self.mirror.borrow_mut().learn(result),
            _ => {}
        }
    }
}
