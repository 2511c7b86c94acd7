//! One message of the client that wants an answer, from its request over HTTP to the answer.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use firedoor_model::{
    remote::{PAUSED, Transport},
    wire::{Body, Frame, Object},
};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
};

use crate::{
    bridge::{Bridge, Login, params},
    events::Events,
    flight::{Flight, Kind},
    http::{place, reason},
    login::Challenge,
    output::one_line,
    patience::{Brought, Patience},
    session::LAST_EVENT,
};

/// A stream whose answer has come is read to its end so long.
const LINGER: Duration = Duration::from_secs(5);
/// How much is read of an answer that says no.
const MAX_REFUSAL: usize = 1 << 20;
/// How much of it is shown, in characters.
const SHOWN: usize = 500;
/// Longest form of a date in a header (RFC 9110 §5.6.7), generously.
const MAX_DATE: usize = 40;
/// Pages of a list of tools that are read for its annotations.
const MAX_PAGES: usize = 100;
/// The headers do not match the body (revision 2026-07-28).
const HEADER_MISMATCH: &str = "-32020";

const LOST: &str = "the connection to the server was lost before its answer came; it may have done what it was asked";

/// An answer that says no.
struct Refusal {
    status: StatusCode,
    /// Where it points instead.
    elsewhere: Option<String>,
    /// What it asks for.
    challenge: Option<Challenge>,
    /// When to try again: seconds, or a date.
    again: Option<String>,
    /// Its body on one line.
    body: Vec<u8>,
}

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

    /// Passes on the answer.
    async fn receive(self: &Rc<Self>, response: Response, flight: &Flight) {
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

    /// The server has ended the session: opens another with the client's own words. What the server says about itself
    /// must not have changed, because the client will not hear it.
    pub(crate) async fn renew(self: &Rc<Self>, seen: u64) -> Result<(), String> {
        const ENDED: &str = "the server has ended the session";
        let _turn = self.session.renewing.lock().await;
        if self.session.generation() != seen {
            return Ok(());
        }
        let (body, before) = self.session.opening().ok_or(ENDED)?;
        let response = self.with_login(|| self.http.post(self.http.url(), body.clone(), HeaderMap::new())).await;
        let response = response.map_err(|e| e.to_string())?;
        let status = response.status();
        if !status.is_success() {
            let wants = self.wants_login(response).await.map(|wants| format!("{ENDED}, and {wants}"));
            return Err(wants.unwrap_or_else(|| format!("{ENDED}, and opens no other: HTTP {status}")));
        }
        let headers = response.headers().clone();
        let now = self.result_of(response).await.ok_or(ENDED)?;
        if now != before {
            return Err(format!("{ENDED}, and introduces itself differently now: start it again"));
        }
        self.session.named(&headers);
        let notice = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.http.post(self.http.url(), notice, self.session.headers()).await.map_err(|e| e.to_string())?;
        self.listen_anew();
        Ok(())
    }

    /// Reads the list of tools for its annotations alone. True when the call may be tried again.
    async fn learn_tools(&self, call: &Bytes) -> bool {
        let Ok(Frame::Single(message)) = Frame::parse(call) else { return false };
        let Some(meta) = params(&message).and_then(Object::parse).and_then(|p| p.get("_meta")) else { return false };
        let Some(version) = crate::mirror::version(params(&message)) else { return false };
        let mut cursor = None;
        for page in 0..MAX_PAGES {
            let at = cursor.map(|c: String| format!(r#","cursor":{c}"#)).unwrap_or_default();
            let params = format!(r#"{{"_meta":{meta}{at}}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":"firedoor-{page}","method":"tools/list","params":{params}}}"#);
            let headers = self.mirror.borrow().headers(&version, "tools/list", Some(&params));
            let Ok(headers) = headers else { return false };
            let Ok(response) = self.http.post(self.http.url(), body.into(), headers).await else { return false };
            if !response.status().is_success() {
                return false;
            }
            let Some(result) = self.result_of(response).await else { return false };
            self.mirror.borrow_mut().learn(&result);
            cursor = Object::parse(&result).and_then(|r| r.get("nextCursor")).map(str::to_owned);
            if cursor.is_none() {
                return true;
            }
        }
        false
    }

    /// The first result in a response. It is not passed on.
    async fn result_of(&self, mut response: Response) -> Option<String> {
        let result = |mut message: Vec<u8>| {
            one_line(&mut message);
            match Frame::parse(message.trim_ascii()) {
                Ok(Frame::Single(m)) => match m.body {
                    Body::Response { result, .. } => Some(result.to_owned()),
                    _ => None,
                },
                _ => None,
            }
        };
        if !is_event_stream(&response) {
            return result(collect(response, self.limit).await.ok()?);
        }
        let mut events = Events::new(self.limit);
        while let Ok(Some(chunk)) = response.chunk().await {
            for event in events.feed(&chunk).ok()? {
                if let Some(result) = result(event.data) {
                    return Some(result);
                }
            }
        }
        None
    }

    /// What to do where the server refuses something of our own because it wants a login.
    pub(crate) async fn wants_login(&self, response: Response) -> Option<String> {
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let why = Refusal::read(response).await.wants(&self.login)?;
        Some(format!("{} {why}", place(self.http.url())))
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

impl Refusal {
    async fn read(response: Response) -> Self {
        let status = response.status();
        let target = response.headers().get(LOCATION).and_then(|l| l.to_str().ok());
        let elsewhere = target.and_then(|l| response.url().join(l).ok()).map(|url| place(&url));
        let challenge = Challenge::of(response.headers());
        let again = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()).filter(|v| v.len() <= MAX_DATE);
        let again = again.map(str::to_owned);
        let mut body = collect(response, MAX_REFUSAL).await.unwrap_or_default();
        one_line(&mut body);
        Self { status, elsewhere, challenge, again, body }
    }

    /// The error in it, if it is one of JSON-RPC's.
    fn error(&self) -> Option<&str> {
        match Frame::parse(self.body.trim_ascii()) {
            Ok(Frame::Single(message)) => match message.body {
                Body::Error { error, .. } if error.starts_with('{') => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it comes from a server of revision 2026-07-28 or later: its error codes are of the range that MCP keeps for
    /// itself.
    fn is_modern(&self) -> bool {
        let code = self.error().and_then(Object::parse).and_then(|e| e.get("code")).and_then(|c| c.parse::<i64>().ok());
        code.is_some_and(|code| (-32022..=-32020).contains(&code))
    }

    /// What to do where it wants a login, or more of one.
    fn wants(&self, login: &Login) -> Option<String> {
        let Login::Command(entry) = login else { return None };
        match (self.status, self.challenge.as_ref()) {
            (StatusCode::UNAUTHORIZED, _) => Some(format!(
                "wants a login (HTTP 401): run `firedoor login {entry}`, and try again; where that finds none, give the entry a header with a token"
            )),
            (StatusCode::FORBIDDEN, Some(Challenge { error: Some(error), scopes, .. }))
                if error == "insufficient_scope" =>
            {
                // The words stand in a command that somebody will copy.
                let plain = |s: &&String| s.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b));
                let scopes: String = scopes.iter().filter(plain).map(|s| format!(" --scope {s}")).collect();
                Some(format!(
                    "wants to be allowed more than it was (HTTP 403): run `firedoor login {entry}{scopes}`, and start the \
                     server again"
                ))
            }
            _ => None,
        }
    }

    fn in_words(&self, server: &str) -> String {
        let status = self.status;
        match (status.as_u16(), &self.elsewhere) {
            (300..=399, Some(to)) => format!(
                "{server} points to {to}, and Firedoor does not send this server's messages and headers there (HTTP \
                 {status}); if it is right, put that address into the client's configuration"
            ),
            (401, _) => format!(
                "{server} wants to know who you are (HTTP {status}): give the entry a header with a token, as the \
                 server's documentation says"
            ),
            _ => {
                let text = String::from_utf8_lossy(self.body.trim_ascii());
                let text: String =
                    if text.starts_with('<') { String::new() } else { text.chars().take(SHOWN).collect() };
                // Whoever asked decides about trying again: Firedoor does not know whether that does any good.
                let again = self.again.as_ref().map(|when| format!(" (Retry-After: {when})")).unwrap_or_default();
                format!("{server} refused the message: HTTP {status}{again} {text}").trim_end().to_owned()
            }
        }
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

#[cfg(test)]
mod tests {
    use reqwest::header::WWW_AUTHENTICATE;

    use super::*;

    #[test]
    fn refusals_in_words() {
        let refusal = |status: u16, elsewhere: Option<&str>, body: &str| Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            elsewhere: elsewhere.map(str::to_owned),
            challenge: None,
            again: None,
            body: body.into(),
        };
        let busy = Refusal { again: Some("120".into()), ..refusal(429, None, "slowly") };
        for (refusal, want) in [
            (refusal(302, Some("https://b.example"), ""), "points to https://b.example"),
            (refusal(401, None, "secret"), "wants to know who you are (HTTP 401"),
            (refusal(503, None, "<html>x</html>"), "HTTP 503 Service Unavailable"),
            (refusal(500, None, "{\"oops\":1}"), "HTTP 500 Internal Server Error {\"oops\":1}"),
            (busy, "HTTP 429 Too Many Requests (Retry-After: 120) slowly"),
        ] {
            let words = refusal.in_words("https://a.example");
            assert!(words.contains(want) && !words.contains("secret") && !words.contains('<'), "{words}");
        }
        let modern = refusal(400, None, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"x"}}"#);
        assert!(modern.is_modern() && modern.error() == Some(r#"{"code":-32022,"message":"x"}"#));
        assert!(!refusal(400, None, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}"#).is_modern());
        assert!(refusal(400, None, r#"{"error":"x"}"#).error().is_none());
    }

    #[test]
    fn a_login_that_is_missing_or_too_small_names_the_command() {
        let wants = |status: u16, text: &str| {
            let headers = [(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap())].into_iter().collect();
            let status = StatusCode::from_u16(status).unwrap();
            let challenge = Challenge::of(&headers);
            let refusal = Refusal { status, elsewhere: None, challenge, again: None, body: Vec::new() };
            let own = Login::Own;
            assert_eq!(refusal.wants(&own), None);
            refusal.wants(&Login::Command("cursor/user/s".into())).unwrap_or_default()
        };
        assert!(wants(401, "Bearer").contains("`firedoor login cursor/user/s`"));
        let more = wants(403, r#"Bearer error="insufficient_scope", scope="a:b $(reboot) c""#);
        assert!(more.contains("`firedoor login cursor/user/s --scope a:b --scope c`"), "{more}");
        assert_eq!(wants(403, "Bearer error=\"invalid_token\"") + &wants(403, "Basic"), "");
    }
}
