//! Bodies that are no longer, and no slower, than they may be.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use wasmtime_wasi_http::Error;

/// The body of a request or a response. It is passed on as it comes.
pub struct Bounded<B> {
    body: B,
    most: u64,
    /// How much more.
    left: u64,
    /// Ends a response that stays away; requests come from the program, whose time is bounded otherwise.
    silence: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl<B> Bounded<B> {
    /// At most `most` bytes.
    pub fn request(body: B, most: u64) -> Self {
        Self { body, most, left: most, silence: None }
    }

    /// At most `most` bytes, with no longer pauses than `silence`.
    pub fn response(body: B, most: u64, silence: Duration) -> Self {
        Self { body, most, left: most, silence: Some((silence, Box::pin(sleep(silence)))) }
    }
}

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Bounded<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let Some(left) = this.left.checked_sub(length) else {
                    return Poll::Ready(Some(Err(match this.silence {
                        None => Error::HttpRequestBodySize(Some(this.most)),
                        Some(_) => Error::HttpResponseBodySize(Some(this.most)),
                    })));
                };
                this.left = left;
                if let Some((silence, timer)) = &mut this.silence {
                    timer.as_mut().reset(Instant::now() + *silence);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending => {
                let Some((_, timer)) = &mut this.silence else { return Poll::Pending };
                timer.as_mut().poll(cx).map(|()| Some(Err(Error::ConnectionReadTimeout)))
            }
            done => done,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
