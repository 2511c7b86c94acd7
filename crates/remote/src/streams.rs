//! Streams on which a server speaks by itself: the one that a session of Streamable HTTP has beside its requests, and the
//! one that is half of HTTP+SSE.

use std::{rc::Rc, time::Duration};

use firedoor_model::remote::Transport;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::{bridge::Bridge, events::Events, exchange::is_event_stream, patience::Patience, session::LAST_EVENT};

/// For the server of HTTP+SSE to say where messages go.
const ENDPOINT: Duration = Duration::from_secs(30);

impl Bridge {
    /// Opens the stream of a session, in place of an earlier one.
    pub(crate) fn listen_anew(self: &Rc<Self>) {
        if self.channel.borrow().is_some() || self.session.is_modern() {
            return;
        }
        let task = tokio::task::spawn_local(self.clone().listen());
        if let Some(earlier) = self.session.listener.replace(Some(task.abort_handle())) {
            earlier.abort();
        }
    }

    /// Listens, and comes back when the stream breaks off, as long as the session lasts.
    async fn listen(self: Rc<Self>) {
        let mut events = Events::new(self.limit);
        let (mut patience, mut may_renew) = (Patience::default(), true);
        loop {
            let token = self.tokens();
            let mut headers = self.session.headers();
            if let Some(id) = events.last_id().and_then(|id| HeaderValue::from_str(id).ok()) {
                headers.insert(LAST_EVENT, id);
            }
            match self.http.listen(headers).await {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    match self.follow(response, &mut events, None).await {
                        Ok(brought) => may_renew |= patience.ended(brought, events.retry()),
                        Err(why) => return crate::say(&why),
                    }
                }
                Ok(response)
                    if response.status().as_u16() == 401
                        && std::mem::take(&mut may_renew)
                        && self.log_in_again(token).await =>
                {
                    continue;
                }
                // A server need not have such a stream (405).
                Ok(response) if !matches!(response.status().as_u16(), 408 | 429 | 500..) => return,
                Ok(_) | Err(_) => {}
            }
            events.restart();
            tokio::time::sleep(patience.pause(events.retry())).await;
            patience.asks();
        }
    }

    /// Opens what has to be open before a message can be sent.
    pub(crate) async fn connect(self: &Rc<Self>) -> Result<(), String> {
        if self.transport == Transport::Sse && self.channel.borrow().is_none() {
            self.open_channel().await?;
        }
        Ok(())
    }

    /// HTTP+SSE: opens the stream, whose first event says where messages go.
    pub(crate) async fn open_channel(self: &Rc<Self>) -> Result<(), String> {
        let response = self.with_login(|| self.http.listen(HeaderMap::new())).await;
        let mut response = response.map_err(|e| e.to_string())?;
        if !response.status().is_success() || !is_event_stream(&response) {
            let status = response.status();
            let wants = self.wants_login(response).await;
            return Err(wants.unwrap_or_else(|| format!("the server offers no stream of events: HTTP {status}")));
        }
        let mut events = Events::new(self.limit);
        let endpoint = async {
            loop {
                let chunk =
                    response.chunk().await.ok().flatten().ok_or("the server's stream of events ended at once")?;
                let mut all = events.feed(&chunk).map_err(|e| e.to_string())?.into_iter();
                if let Some(first) = all.next() {
                    if first.kind != "endpoint" {
                        return Err("the server does not say where messages go".to_owned());
                    }
                    return Ok((String::from_utf8_lossy(&first.data).into_owned(), all.collect::<Vec<_>>()));
                }
            }
        };
        let found = tokio::time::timeout(ENDPOINT, endpoint).await;
        let (endpoint, rest) = found.map_err(|_| "the server does not say in time where messages go")??;
        let to = self.http.url().join(&endpoint).map_err(|_| "the server says no address that messages could go to")?;
        // Headers with tokens go there.
        if to.origin() != self.http.url().origin() {
            return Err("the server wants messages to go to another server, which Firedoor does not do".into());
        }
        self.channel.replace(Some(to));
        for event in rest.into_iter().filter(|e| e.kind.is_empty()) {
            self.pass_on(event.data);
        }
        let bridge = self.clone();
        tokio::task::spawn_local(async move {
            let end = bridge.follow(response, &mut events, None).await;
            bridge
                .give_up(&end.err().unwrap_or_else(|| "the connection to the server was lost; start it again".into()));
        });
        Ok(())
    }
}
