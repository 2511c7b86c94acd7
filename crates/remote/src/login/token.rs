//! The token endpoint: a code or a refresh token for an access token (OAuth 2.1 §3.2), and its revocation (RFC 7009).

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64;
use firedoor_model::{
    Millis,
    login::{Credentials, TokenAuth},
};
use reqwest::{
    Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::Deserialize;

use super::{
    LoginError,
    challenge::scopes,
    fetch::{Answer, Fetch},
};
use crate::http::place;

/// Longest token.
const MAX: usize = 32 << 10;

/// What the endpoint gives.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<Seconds>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

/// Some servers write the number as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

/// Pairs as a form has them.
pub fn form(pairs: &[(&str, &str)]) -> String {
    // Of no meaning but for its query.
    let Ok(mut url) = Url::parse("http://localhost/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// Puts the tokens for a code, or for the refresh token, into credentials.
pub async fn tokens(
    fetch: &Fetch,
    credentials: Credentials,
    grant: &[(&str, &str)],
) -> Result<Credentials, LoginError> {
    let resource = credentials.resource.clone();
    let pairs = [grant, &[("resource", resource.as_str())]].concat();
    let sent = now();
    let answer = post(fetch, &credentials, &credentials.token_endpoint, &pairs).await?;
    read(&answer, credentials, sent)
}

/// Another access token.
pub async fn renew(fetch: &Fetch, credentials: Credentials) -> Result<Credentials, LoginError> {
    let refresh = credentials.refresh_token.clone().ok_or(LoginError::Ended)?;
    tokens(fetch, credentials, &[("grant_type", "refresh_token"), ("refresh_token", &refresh)]).await
}

/// Tells the issuer that a login is over. With its refresh token its access tokens go (RFC 7009 §2.1).
pub async fn revoke(fetch: &Fetch, credentials: &Credentials) -> Result<(), LoginError> {
    let Some(endpoint) = &credentials.revocation_endpoint else { return Err(LoginError::NoRevocation) };
    let (token, hint) = match &credentials.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&credentials.access_token, "access_token"),
    };
    let answer = post(fetch, credentials, endpoint, &[("token", token), ("token_type_hint", hint)]).await?;
    if answer.status.is_success() { Ok(()) } else { Err(refusal(&answer, credentials)) }
}

/// A form, with what shows who asks.
pub async fn post(
    fetch: &Fetch,
    credentials: &Credentials,
    endpoint: &str,
    pairs: &[(&str, &str)],
) -> Result<Answer, LoginError> {
    let at = Url::parse(endpoint).map_err(|_| LoginError::Document(credentials.issuer.clone()))?;
    let (body, basic) = shown(credentials, pairs)?;
    fetch
        .post(&at, |request| {
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
            match basic {
                Some(value) => request.header(AUTHORIZATION, value),
                None => request,
            }
        })
        .await
}

/// The form, and the header, if it takes one.
fn shown(credentials: &Credentials, pairs: &[(&str, &str)]) -> Result<(String, Option<HeaderValue>), LoginError> {
    let (mut pairs, mut basic) = (pairs.to_vec(), None);
    let secret = credentials.client_secret.as_deref().unwrap_or_default();
    match credentials.auth {
        TokenAuth::None => pairs.push(("client_id", &credentials.client_id)),
        TokenAuth::Post => pairs.extend([("client_id", credentials.client_id.as_str()), ("client_secret", secret)]),
        TokenAuth::Basic => {
            // Each part as a form has it (RFC 6749 §2.3.1).
            let part = |text: &str| form(&[("", text)]).trim_start_matches('=').to_owned();
            let both = format!("{}:{}", part(&credentials.client_id), part(secret));
            let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(both.as_bytes())))
                .map_err(|_| LoginError::Registration("its secret cannot be sent".into()))?;
            value.set_sensitive(true);
            basic = Some(value);
        }
    }
    Ok((form(&pairs), basic))
}

fn read(answer: &Answer, mut credentials: Credentials, sent: Millis) -> Result<Credentials, LoginError> {
    if !answer.status.is_success() {
        return Err(refusal(answer, &credentials));
    }
    let wrong = || LoginError::Document(place_of(&credentials));
    let tokens: Tokens = serde_json::from_slice(&answer.body).map_err(|_| wrong())?;
    let good = |token: &str| !token.is_empty() && token.len() <= MAX && token.bytes().all(|b| b.is_ascii_graphic());
    if !tokens.token_type.eq_ignore_ascii_case("bearer") || !good(&tokens.access_token) {
        return Err(wrong());
    }
    let seconds = tokens.expires_in.and_then(|seconds| match seconds {
        Seconds::Number(number) => Some(number),
        Seconds::Text(text) => text.trim().parse().ok(),
    });
    credentials.access_token = tokens.access_token;
    // Negative and absurd ones become the nearest number.
    credentials.expires = seconds.map(|seconds| sent.plus((seconds * 1000.0) as u64));
    // One that is not renewed stays good (OAuth 2.1 §4.3.2).
    credentials.refresh_token = tokens.refresh_token.filter(|t| !t.is_empty()).or(credentials.refresh_token);
    if let Some(scope) = tokens.scope {
        credentials.scopes = scopes(&scope);
    }
    Ok(credentials)
}

fn place_of(credentials: &Credentials) -> String {
    Url::parse(&credentials.token_endpoint).map(|url| place(&url)).unwrap_or_default()
}

/// What an issuer says instead (RFC 6749 §5.2). What it says in words is shown nowhere.
pub fn refusal(answer: &Answer, credentials: &Credentials) -> LoginError {
    #[derive(Deserialize)]
    struct Refused {
        error: String,
    }
    match serde_json::from_slice::<Refused>(&answer.body) {
        Ok(refused) if refused.error == "invalid_grant" => LoginError::Ended,
        // The registration is gone, and with it what it got.
        Ok(refused) if refused.error == "invalid_client" => LoginError::Ended,
        Ok(refused) => {
            LoginError::Refused { place: place_of(credentials), error: super::word(&refused.error).to_owned() }
        }
        Err(_) => LoginError::Status { place: place_of(credentials), status: answer.status },
    }
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use reqwest::{StatusCode, header::HeaderMap};

    use super::*;

    fn check(status: u16, body: &str) -> Result<(String, Option<String>, Option<u64>, String), String> {
        let answer =
            Answer { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), body: body.into() };
        let credentials = Credentials::example("old");
        read(&answer, credentials, Millis(1000))
            .map(|c| (c.access_token, c.refresh_token, c.expires.map(|e| e.0), c.scopes.join(" ")))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn answers_of_the_endpoint() {
        let got = |access: &str, refresh: &str, expires, scopes: &str| {
            Ok((access.to_owned(), Some(refresh.to_owned()), expires, scopes.to_owned()))
        };
        assert_eq!(check(200, r#"{"access_token":"a","token_type":"bearer"}"#), got("a", "refresh-old", None, "s"));
        let whole = r#"{"access_token":"a","token_type":"Bearer","expires_in":"60","refresh_token":"b","scope":"x y"}"#;
        assert_eq!(check(200, whole), got("a", "b", Some(61_000), "x y"));
        let odd = r#"{"access_token":"a","token_type":"Bearer","expires_in":-1e99}"#;
        assert_eq!(check(201, odd), got("a", "refresh-old", Some(1000), "s"));
        for (status, body, part) in [
            (200, r#"{"access_token":"a","token_type":"mac"}"#, "not what"),
            (200, r#"{"access_token":"a\nb","token_type":"bearer"}"#, "not what"),
            (200, r#"{"access_token":"","token_type":"bearer"}"#, "not what"),
            (200, "<html>", "not what"),
            (400, r#"{"error":"invalid_grant"}"#, "log in again"),
            (401, r#"{"error":"invalid_client"}"#, "log in again"),
            (400, r#"{"error":"invalid_target"}"#, "invalid_target"),
            (400, r#"{"error":"\u001b[2Jx"}"#, "(another error)"),
            (503, "busy", "503"),
        ] {
            let error = check(status, body).unwrap_err();
            assert!(error.contains(part) && !error.contains('\u{1b}'), "{body}: {error}");
        }
    }

    #[test]
    fn a_secret_stands_in_one_place() {
        let with = |auth| {
            let (client_id, client_secret) = ("a:b".to_owned(), Some("c d=é%".to_owned()));
            shown(&Credentials { client_id, client_secret, auth, ..Credentials::example("t") }, &[("x", "y")]).unwrap()
        };
        assert_eq!(with(TokenAuth::None), ("x=y&client_id=a%3Ab".into(), None));
        assert_eq!(with(TokenAuth::Post), ("x=y&client_id=a%3Ab&client_secret=c+d%3D%C3%A9%25".into(), None));
        let (body, header) = with(TokenAuth::Basic);
        let header = header.unwrap();
        let encoded = header.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(
            (body.as_str(), BASE64.decode(encoded.as_bytes()).unwrap().as_slice()),
            ("x=y", &b"a%3Ab:c+d%3D%C3%A9%25"[..])
        );
        assert!(!format!("{header:?}").contains(encoded));
    }

    #[test]
    fn forms() {
        assert_eq!(form(&[("a", "b c&d=é"), ("e", "")]), "a=b+c%26d%3D%C3%A9&e=");
    }
}
