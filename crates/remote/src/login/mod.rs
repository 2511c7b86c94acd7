//! Logging in at a server (OAuth 2.1 as MCP's revisions 2025-11-25 and 2026-07-28 have it), for `firedoor login`, which keeps
//! what comes of it, and for the engine, which has it renewed. Says and hears lines: [`Task`], then [`Told`].

mod address;
mod challenge;
mod consent;
mod device;
mod fetch;
mod metadata;
mod registration;
mod token;

use std::io::Write as _;

use firedoor_model::login::{Credentials, MAX_LINE, Task, Told};
use reqwest::{
    StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::{http::SetupError, session::SESSION};
use address::Reach;
pub use challenge::Challenge;
use consent::{Consent, Rejected};
use fetch::Fetch;
use metadata::Issuer;
use registration::{Registration, Way};

/// Opens a session, as any client would, to see whether the server wants a login.
const PROBE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"firedoor","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

/// Uses it.
const TOOLS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("the server is reached over http, without encryption, where everybody on the way could read a token")]
    Plain,
    #[error("{what} is {address:?}, which is no https address that Firedoor would go to")]
    Address { what: &'static str, address: String },
    #[error("{place} cannot be reached: {why}")]
    Unreachable { place: String, why: String },
    #[error("{place} answers with HTTP {status}")]
    Status { place: String, status: StatusCode },
    #[error("the issuer {issuer} offers no login with a code: log in without --device")]
    NoDevice { issuer: String },
    #[error("nobody entered the code in time: log in again")]
    NobodyEntered,
    #[error("what {0} says is not what the standard wants there")]
    Document(String),
    #[error("what {0} says is too long")]
    TooLarge(String),
    #[error("the server wants a login, but does not say who gives one (RFC 9728): ask its makers for a token")]
    NoResource,
    #[error("the server's metadata are those of another one, {resource:?}, which does not say so itself")]
    OtherResource { resource: String },
    #[error("the server names nobody who issues tokens for it")]
    NoIssuer,
    #[error("the issuer {issuer} has no metadata (RFC 8414, OpenID Connect Discovery)")]
    NoMetadata { issuer: String },
    #[error("the issuer {wanted} says that it is {found:?}")]
    OtherIssuer { wanted: String, found: String },
    #[error("the issuer {issuer} does not offer PKCE with S256, without which codes can be stolen")]
    NoPkce { issuer: String },
    #[error(
        "the issuer {issuer} registers nobody by itself: register a client there, and give its name with --client-id"
    )]
    NoRegistration { issuer: String },
    #[error(
        "the issuer {issuer} does not read documents about clients: give it a registered name instead of an address"
    )]
    NoDocuments { issuer: String },
    #[error(
        "the issuer {issuer} takes no client's secret in a way that Firedoor knows (client_secret_basic, client_secret_post)"
    )]
    NoSecrets { issuer: String },
    #[error("the client's secret was not given")]
    NotGiven,
    #[error("the issuer {issuer} gives this client no tokens: are its name and its secret right?")]
    WrongSecret { issuer: String },
    #[error("the issuer did not register Firedoor: {0}")]
    Registration(String),
    #[error("{place} refused it: {error}")]
    Refused { place: String, error: String },
    #[error("the login has ended, or was revoked: log in again")]
    Ended,
    #[error("the issuer takes no word that a login is over: end it on its own pages")]
    NoRevocation,
    #[error("there is no randomness: {0}")]
    Random(String),
    #[error("{0}")]
    Over(String),
}

/// An error's name as the standards have them, which is all that is shown of what an issuer says.
pub fn word(error: &str) -> &str {
    let plain = !error.is_empty() && error.len() <= 60 && error.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if plain { error } else { "(another error)" }
}

fn tell(told: &Told) -> Result<(), String> {
    let mut line = serde_json::to_vec(told).map_err(|e| e.to_string())?;
    line.push(b'\n');
    std::io::stdout().write_all(&line).map_err(|e| format!("stdout cannot be written: {e}"))
}

/// Does what the first line says.
pub async fn serve(mut input: impl AsyncBufRead + Unpin) -> Result<(), String> {
    let line = line(&mut input).await.ok_or("there is nothing to do")?;
    let task = serde_json::from_str::<Task>(&line).map_err(|_| "this is started by `firedoor login`")?;
    let done = match task {
        Task::Login { url, redirect, client_id, client_secret, scopes, device } => {
            login(&mut input, Wanted { url, redirect, client_id, client_secret, scopes, device }).await
        }
        Task::Renew(credentials) => renew(*credentials).await.map(|c| Told::Done(Box::new(c))),
        Task::Revoke(credentials) => revoke(&credentials).await.map(|()| Told::Revoked),
    };
    tell(&done.unwrap_or_else(|e| Told::Failed { over: matches!(e, LoginError::Ended), why: e.to_string() }))
}

async fn line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    input.take(MAX_LINE as u64).read_until(b'\n', &mut line).await.ok().filter(|count| *count > 0)?;
    String::from_utf8(line).ok().map(|text| text.trim_end().to_owned())
}

async fn renew(credentials: Credentials) -> Result<Credentials, LoginError> {
    token::renew(&Fetch::new()?, credentials).await
}

async fn revoke(credentials: &Credentials) -> Result<(), LoginError> {
    token::revoke(&Fetch::new()?, credentials).await
}

struct Wanted {
    url: String,
    redirect: String,
    client_id: Option<String>,
    client_secret: bool,
    scopes: Vec<String>,
    device: bool,
}

/// What the server asks for, if it asks for anything. One that does not at once is asked for its tools as well, since it may want to know who
/// uses them.
async fn challenged(fetch: &Fetch, server: &Url) -> Result<Option<Challenge>, LoginError> {
    let probe = |body: &'static str, session: Option<HeaderValue>| {
        let headers: HeaderMap = session.map(|id| (SESSION, id)).into_iter().collect();
        move |r: reqwest::RequestBuilder| r.headers(headers).header(CONTENT_TYPE, "application/json").body(body)
    };
    let mut answer = fetch.post(server, probe(PROBE, None)).await?;
    if answer.status != StatusCode::UNAUTHORIZED {
        let session = answer.headers.get(&SESSION).cloned();
        // Whatever else becomes of that says nothing about a login.
        answer = fetch.post(server, probe(TOOLS, session)).await.unwrap_or(answer);
    }
    let asks = |headers: &HeaderMap| Challenge::of(headers).unwrap_or_default();
    Ok((answer.status == StatusCode::UNAUTHORIZED).then(|| asks(&answer.headers)))
}

/// What the user registered at this issuer. A secret is asked for with the issuer's name, and is for this one alone.
async fn given(
    input: &mut (impl AsyncBufRead + Unpin),
    issuer: &Issuer,
    client_id: String,
    has_secret: bool,
) -> Result<Registration, LoginError> {
    let auth = registration::auth(issuer, &client_id, has_secret)?;
    let mut client_secret = None;
    if has_secret {
        tell(&Told::Secret { issuer: issuer.issuer.clone() }).map_err(LoginError::Over)?;
        let line = line(input).await.ok_or(LoginError::NotGiven)?;
        client_secret = Some(serde_json::from_str(&line).map_err(|_| LoginError::NotGiven)?);
    }
    Ok(Registration { client_id, client_secret, auth })
}

async fn login(input: &mut (impl AsyncBufRead + Unpin), wanted: Wanted) -> Result<Told, LoginError> {
    let server = Url::parse(&wanted.url).map_err(|_| SetupError::Url)?;
    let reach = Reach::of(&server)?;
    let fetch = Fetch::new()?;
    let challenge = challenged(&fetch, &server).await?;
    let named = challenge.as_ref().and_then(|c| c.metadata.as_deref());
    let Some(resource) = metadata::resource(&fetch, reach, &server, named).await? else {
        return if challenge.is_some() { Err(LoginError::NoResource) } else { Ok(Told::NotNeeded) };
    };
    let issuer = metadata::issuer(&fetch, reach, &resource.issuer).await?;
    let way = if wanted.device { Way::Device } else { Way::Browser(&wanted.redirect) };
    let registration = match wanted.client_id {
        Some(client_id) => given(input, &issuer, client_id, wanted.client_secret).await?,
        None => registration::registration(&fetch, reach, &issuer, way).await?,
    };
    let asked = challenge.map(|c| c.scopes).filter(|s| !s.is_empty()).unwrap_or(resource.scopes);
    let mut scopes = Vec::new();
    let offline = issuer.scopes_supported.iter().filter(|s| *s == "offline_access").cloned();
    for scope in wanted.scopes.into_iter().chain(asked).chain(offline) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let credentials = Credentials {
        url: wanted.url,
        resource: resource.resource,
        issuer: issuer.issuer.clone(),
        token_endpoint: issuer.token_endpoint.clone(),
        revocation_endpoint: issuer
            .revocation_endpoint
            .clone()
            .filter(|place| reach.address("its place for revocation", place).is_ok()),
        client_id: registration.client_id,
        client_secret: registration.client_secret,
        auth: registration.auth,
        access_token: String::new(),
        refresh_token: None,
        expires: None,
        scopes,
    };
    // There is no login yet that could have ended.
    let refused = |e: LoginError| match e {
        LoginError::Ended if wanted.client_secret => LoginError::WrongSecret { issuer: issuer.issuer.clone() },
        e => e,
    };
    let done = |c: Credentials| Told::Done(Box::new(c));
    if wanted.device {
        return device::log_in(&fetch, reach, &issuer, credentials).await.map(done).map_err(refused);
    }
    let consent = Consent::new(&issuer)?;
    let address = consent.address(
        reach,
        &issuer,
        &credentials.client_id,
        &wanted.redirect,
        &credentials.resource,
        &credentials.scopes,
    )?;
    let over = |why: String| LoginError::Over(why);
    tell(&Told::Visit { address: address.into(), issuer: issuer.issuer.clone() }).map_err(over)?;
    let code = answered(input, &consent).await?;
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", wanted.redirect.as_str()),
        ("code_verifier", consent.verifier.as_str()),
    ];
    token::tokens(&fetch, credentials, &grant).await.map(done).map_err(refused)
}

/// Waits for the browser. What anybody else on this machine says in between changes nothing.
async fn answered(input: &mut (impl AsyncBufRead + Unpin), consent: &Consent) -> Result<String, LoginError> {
    // Whoever reads them gives up after a while.
    while let Some(query) = line(input).await {
        match consent.code(&query) {
            Ok(code) => return Ok(code),
            Err(Rejected::Over(why)) => return Err(LoginError::Over(why)),
            Err(Rejected::Ignored(why)) => tell(&Told::Ignored { why: why.into() }).map_err(LoginError::Over)?,
        }
    }
    Err(LoginError::Over("no answer came from the browser".into()))
}
