//! How often the login of a session's server is renewed. The program that speaks to that server counts as well, and may be the
//! server's by now.

use std::{cell::Cell, rc::Rc};

use firedoor_ipc::{shim::ToShim, wire::WireError};
use firedoor_model::{Digest, Millis, remote::RemoteRequest};

use super::Session;
use crate::{connection::Outgoing, engine::Engine, launches};

/// How often within [`SPAN_MS`]: a server that refuses every token is not worth more.
const MOST: u32 = 5;
const SPAN_MS: u64 = 60_000;

/// What was asked for.
#[derive(Default)]
pub struct Renewals {
    under_way: Cell<bool>,
    since: Cell<Millis>,
    count: Cell<u32>,
}

/// Whether there is another one.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// It begins.
    Begins,
    /// One is under way, whose answer is the answer.
    UnderWay,
    /// There were enough.
    TooOften,
}

impl Renewals {
    fn begin(&self, now: Millis) -> Turn {
        if self.under_way.get() {
            return Turn::UnderWay;
        }
        if now.since(self.since.get()) >= SPAN_MS {
            self.since.set(now);
            self.count.set(0);
        }
        if self.count.get() >= MOST {
            return Turn::TooOften;
        }
        self.count.set(self.count.get() + 1);
        self.under_way.set(true);
        Turn::Begins
    }

    fn end(&self) {
        self.under_way.set(false);
    }
}

impl Session {
    /// Gets another token, because the server refuses this one.
    pub(super) async fn renew_login(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        request: RemoteRequest,
        refused: Digest,
        outgoing: &Outgoing,
    ) -> Result<(), WireError> {
        match self.renewals.begin(engine.now()) {
            Turn::UnderWay => return Ok(()),
            Turn::TooOften => return outgoing.send(&ToShim::LoginRenewed { refused, value: None }).await,
            Turn::Begins => {}
        }
        let (session, engine, outgoing) = (self.clone(), engine.clone(), outgoing.clone());
        // The issuer takes its time, and nobody else waits for it.
        tokio::task::spawn_local(async move {
            launches::remote::renew_login(&engine, &session.agent, request, refused, outgoing).await;
            session.renewals.end();
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_a_few_in_a_while() {
        let (renewals, start) = (Renewals::default(), Millis(1_000_000));
        for _ in 0..MOST {
            assert_eq!(renewals.begin(start), Turn::Begins);
            assert_eq!(renewals.begin(start), Turn::UnderWay);
            renewals.end();
        }
        assert_eq!(renewals.begin(start.plus(SPAN_MS - 1)), Turn::TooOften);
        assert_eq!(renewals.begin(start.plus(SPAN_MS)), Turn::Begins);
    }
}
