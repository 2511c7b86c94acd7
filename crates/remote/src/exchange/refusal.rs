//! An answer over HTTP that says no.

use firedoor_model::wire::{Body, Frame, Object};
use reqwest::{
    Response, StatusCode,
    header::{LOCATION, RETRY_AFTER},
};

use super::collect;
use crate::{bridge::Login, http::place, login::Challenge, output::one_line};

/// How much is read of an answer that says no.
const MAX_REFUSAL: usize = 1 << 20;
/// How much of it is shown, in characters.
const SHOWN: usize = 500;
/// Longest form of a date in a header (RFC 9110 §5.6.7), generously.
const MAX_DATE: usize = 40;

/// An answer that says no.
pub(super) struct Refusal {
    pub status: StatusCode,
    /// Where it points instead.
    elsewhere: Option<String>,
    /// What it asks for.
    challenge: Option<Challenge>,
    /// When to try again: seconds, or a date.
    again: Option<String>,
    /// Its body on one line.
    body: Vec<u8>,
}

impl Refusal {
    pub(super) async fn read(response: Response) -> Self {
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
    pub(super) fn error(&self) -> Option<&str> {
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
    pub(super) fn is_modern(&self) -> bool {
        let code = self.error().and_then(Object::parse).and_then(|e| e.get("code")).and_then(|c| c.parse::<i64>().ok());
        code.is_some_and(|code| (-32022..=-32020).contains(&code))
    }

    /// What to do where it wants a login, or more of one.
    pub(super) fn wants(&self, login: &Login) -> Option<String> {
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

    pub(super) fn in_words(&self, server: &str) -> String {
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

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderValue, WWW_AUTHENTICATE};

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
