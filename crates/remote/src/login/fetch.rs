//! Small documents over HTTP: bounded in size and time, without redirects.

use std::time::Duration;

use reqwest::{
    Client, Method, RequestBuilder, StatusCode, Url,
    header::{ACCEPT, HeaderMap},
    redirect::Policy,
};
use serde::de::DeserializeOwned;

use super::LoginError;
use crate::http::{self, place, reason};

/// Largest document.
const MAX: usize = 256 << 10;
/// For one request.
const LIMIT: Duration = Duration::from_secs(20);

/// The client.
pub struct Fetch(Client);

/// What came back.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Fetch {
    pub fn new() -> Result<Self, LoginError> {
        let client = http::builder().and_then(|b| http::built(b.redirect(Policy::none()).timeout(LIMIT)))?;
        Ok(Self(client))
    }

    /// A document; `None` when there is none.
    pub async fn json<T: DeserializeOwned>(&self, at: &Url) -> Result<Option<T>, LoginError> {
        let answer = self.send(at, self.0.request(Method::GET, at.clone())).await?;
        match answer.status {
            StatusCode::OK => {
                serde_json::from_slice(&answer.body).map(Some).map_err(|_| LoginError::Document(place(at)))
            }
            // What a server has no metadata under, it may answer in any way.
            status if status.is_client_error() => Ok(None),
            status => Err(LoginError::Status { place: place(at), status }),
        }
    }

    /// Posts something.
    pub async fn post(
        &self,
        at: &Url,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, LoginError> {
        self.send(at, with(self.0.request(Method::POST, at.clone()))).await
    }

    async fn send(&self, at: &Url, request: RequestBuilder) -> Result<Answer, LoginError> {
        let failed = |e: reqwest::Error| LoginError::Unreachable { place: place(at), why: reason(&e) };
        let mut response =
            request.header(ACCEPT, "application/json, text/event-stream").send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        // A stream of events is not waited for: what matters then is that the server answered at all.
        while !crate::exchange::is_event_stream(&response)
            && let Some(chunk) = response.chunk().await.map_err(failed)?
        {
            if body.len() + chunk.len() > MAX {
                return Err(LoginError::TooLarge(place(at)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body })
    }
}
