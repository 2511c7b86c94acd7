//! Writing to client and server, and noting in the ledger what has been written.

use super::{Session, ledger::Record};
use crate::io::Outlet;

impl Session {
    /// Writes to the server; the records count once it is sure to get everything.
    pub(super) fn send_up(&self, bytes: &[u8], records: Vec<Record>) {
        let ledger = self.ledger.clone();
        self.to_server.send(bytes, Box::new(move || ledger.write_all(records)));
    }

    /// Writes to the client; the records count once it is sure to get everything.
    pub(super) fn send_down(&self, bytes: &[u8], mut records: Vec<Record>) {
        let ledger = self.ledger.clone();
        let cut = may_be_cut(&self.to_client, bytes);
        if cut {
            self.ledger.write(Record::Torn(true));
            records.push(Record::Torn(false));
        }
        self.to_client.send(bytes, Box::new(move || ledger.write_all(records)));
    }

    /// Notes what became of a line of which the client gets nothing, once it has everything before: notes in another order would
    /// lose that with this engine.
    pub(super) async fn note_down(&self, records: Vec<Record>) {
        self.to_client.written().await;
        self.ledger.write_all(records);
    }

    /// Writes something of our own to the client that nothing depends on.
    pub(super) fn tell_client(&self, bytes: &[u8]) {
        self.to_client.send(bytes, Box::new(|| {}));
    }

    /// Writes an answer of our own to the server that nothing depends on.
    pub(super) fn tell_server(&self, bytes: &[u8]) {
        self.owed.send(&self.to_server, bytes);
    }
}

/// Whether a socket may take only a part of this. It takes short messages whole or not at all.
fn may_be_cut(outlet: &Outlet, bytes: &[u8]) -> bool {
    bytes.len() > 4096 && !outlet.completes()
}
