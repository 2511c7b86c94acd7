//! Writing to client and server, and noting in the ledger what has been written.

use std::{cell::RefCell, rc::Rc};

use super::{
    Session,
    ledger::{Record, Way},
};
use crate::io::Outlet;

/// Longest message that a pipe takes whole or not at all (PIPE_BUF, pipe(7)). A longer one may be cut off.
const ATOMIC: usize = 4096;

/// Records that wait until the queue before them is written, for each way.
#[derive(Default)]
pub struct Late {
    up: RefCell<Vec<Record>>,
    down: RefCell<Vec<Record>>,
}

impl Session {
    /// Writes to the server; the records count once it has everything.
    pub(super) fn send_up(self: &Rc<Self>, bytes: &[u8], records: Vec<Record>) {
        self.send(Way::Up, bytes, records);
    }

    /// Writes to the client; the records count once it has everything.
    pub(super) fn send_down(self: &Rc<Self>, bytes: &[u8], records: Vec<Record>) {
        self.send(Way::Down, bytes, records);
    }

    /// Writes something of our own to the client that is no answer.
    pub(super) fn tell_client(&self, bytes: &[u8]) {
        self.to_client.send(bytes);
    }

    /// Writes something of our own to the server.
    pub(super) fn tell_server(&self, bytes: &[u8]) {
        self.to_server.send(bytes);
    }

    fn outlet(&self, way: Way) -> (&Outlet, &RefCell<Vec<Record>>) {
        match way {
            Way::Up => (&self.to_server, &self.late.up),
            Way::Down => (&self.to_client, &self.late.down),
        }
    }

    fn send(self: &Rc<Self>, way: Way, bytes: &[u8], records: Vec<Record>) {
        let (outlet, late) = self.outlet(way);
        let long = bytes.len() > ATOMIC;
        if long {
            self.ledger.write(Record::Torn(way, true));
        }
        let whole = outlet.send(bytes);
        if whole && late.borrow().is_empty() {
            records.into_iter().for_each(|r| self.ledger.write(r));
            if long {
                self.ledger.write(Record::Torn(way, false));
            }
            return;
        }
        let first = late.borrow().is_empty();
        // Never empty from here on until everything is written, so that one task serves it.
        late.borrow_mut().push(Record::Torn(way, false));
        late.borrow_mut().extend(records);
        if first {
            let session = Rc::downgrade(self);
            tokio::task::spawn_local(async move {
                let Some(session) = session.upgrade() else { return };
                let (outlet, late) = session.outlet(way);
                outlet.drained().await;
                late.take().into_iter().for_each(|r| session.ledger.write(r));
            });
        }
    }
}
