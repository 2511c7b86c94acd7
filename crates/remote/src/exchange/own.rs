//! What the bridge asks the server by itself. The client does not hear the answers.

use std::rc::Rc;

use bytes::Bytes;
use firedoor_model::wire::{Body, Frame, Object};
use reqwest::{Response, StatusCode, header::HeaderMap};

use super::{collect, is_event_stream, refusal::Refusal};
use crate::{
    bridge::{Bridge, params},
    events::Events,
    http::place,
    output::one_line,
    session::SESSION,
};

/// Pages of a list of tools that are read for its annotations.
const MAX_PAGES: usize = 100;

const ENDED: &str = "the server has ended the session";

impl Bridge {
    /// The server has ended the session: opens another with the client's own words. What the server says about itself
    /// must not have changed, because the client will not hear it.
    pub(crate) async fn renew(self: &Rc<Self>, seen: u64) -> Result<(), String> {
        let _turn = self.session.renewing.lock().await;
        if self.session.generation() != seen {
            return Ok(());
        }
        let (body, before) = self.session.opening().ok_or(ENDED)?;
        let response = self.with_login(|| self.http.post(self.http.url(), body.clone(), HeaderMap::new())).await;
        let response = response.map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(self.not_renewed(response, "opens no other").await);
        }
        let headers = response.headers().clone();
        let now = self.result_of(response).await.ok_or(ENDED)?;
        if now != before {
            return Err(format!("{ENDED}, and introduces itself differently now: start it again"));
        }
        let notice = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let begin = || self.http.post(self.http.url(), notice.clone(), self.session.headers_as(headers.get(&SESSION)));
        let response = self.with_login(begin).await.map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(self.not_renewed(response, "refuses the first message of another").await);
        }
        // Nothing else is sent in it before.
        self.session.named(&headers);
        self.listen_anew();
        Ok(())
    }

    /// Why there is no other session.
    async fn not_renewed(&self, response: Response, what: &str) -> String {
        let status = response.status();
        let wants = self.wants_login(response).await.map(|wants| format!("{ENDED}, and {wants}"));
        wants.unwrap_or_else(|| format!("{ENDED}, and {what}: HTTP {status}"))
    }

    /// Reads the list of tools for its annotations alone. True when the call may be tried again.
    pub(super) async fn learn_tools(&self, call: &Bytes) -> bool {
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
}
