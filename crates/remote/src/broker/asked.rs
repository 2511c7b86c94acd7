//! The body of a request on its way to a service. It passes as it comes; a placeholder in it ends it.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use firedoor_model::broker::{PLACEHOLDER, RANDOM, Seen, placeholder_in};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::{lane::Lane, notices::Notices};

/// Why a body was broken off.
#[derive(Debug, thiserror::Error)]
pub enum AskedError {
    /// It holds a placeholder.
    #[error("the placeholder of a credential stands in the body")]
    Misplaced,
    /// The server broke it off.
    #[error("the request was broken off: {0}")]
    Broken(#[from] hyper::Error),
}

/// See the module.
pub struct Asked {
    body: Incoming,
    /// The last bytes before: a placeholder may be cut over pieces.
    tail: Vec<u8>,
    misplaced: Arc<OnceLock<()>>,
    notices: Arc<Notices>,
    secret: String,
    host: String,
}

impl Asked {
    /// The body of a request on this lane.
    pub fn new(body: Incoming, lane: &Lane, notices: Arc<Notices>) -> Self {
        let (secret, host) = (lane.route.secret.clone(), lane.host.clone());
        Self { body, tail: Vec::new(), misplaced: Arc::default(), notices, secret, host }
    }

    /// Set once there was a placeholder in it.
    pub fn misplaced(&self) -> Arc<OnceLock<()>> {
        self.misplaced.clone()
    }

    /// As the client takes it. None at all is none there, too.
    pub fn into_body(self) -> reqwest::Body {
        if self.body.is_end_stream() { reqwest::Body::default() } else { reqwest::Body::wrap(self) }
    }

    fn looked_at(&mut self, piece: &Bytes) -> Result<(), AskedError> {
        const KEPT: usize = PLACEHOLDER.len() + RANDOM - 1;
        let edge = piece.get(..KEPT.min(piece.len())).unwrap_or_default();
        let across = [self.tail.as_slice(), edge].concat();
        if placeholder_in(piece).or_else(|| placeholder_in(&across)).is_some() {
            let _ = self.misplaced.set(());
            self.notices.tell_of(&self.secret, &self.host, Seen::Misplaced, "the body of a request");
            return Err(AskedError::Misplaced);
        }
        let whole = if piece.len() < KEPT { across } else { piece.to_vec() };
        self.tail = whole.get(whole.len().saturating_sub(KEPT)..).unwrap_or_default().to_vec();
        Ok(())
    }
}

impl Body for Asked {
    type Data = Bytes;
    type Error = AskedError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, AskedError>>> {
        let this = self.get_mut();
        loop {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(e)) => return Poll::Ready(Some(Err(e.into()))),
                Some(Ok(frame)) => frame,
            };
            // Trailers are headers that nobody has looked at.
            if let Ok(piece) = frame.into_data() {
                return Poll::Ready(Some(this.looked_at(&piece).map(|()| Frame::data(piece))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
