//! Firedoor's own answers to a server, which it may cause faster than it reads them.
//!
//! Waiting until it reads could be for ever: it may write all that it has to say first. So they are few in bytes, and further
//! ones are dropped. The client's messages do not count: they wait on the client's side.

use std::{cell::Cell, rc::Rc};

use crate::io::Outlet;

/// Most bytes of answers that wait for a server. One has some 200.
const MOST: usize = 1 << 20;

/// What waits.
#[derive(Default)]
pub struct Owed {
    bytes: Rc<Cell<usize>>,
    dropped: Cell<bool>,
    told: Cell<bool>,
}

/// The part of one answer, until that is written or dropped.
struct Share {
    of: Rc<Cell<usize>>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.set(self.of.get().saturating_sub(self.bytes));
    }
}

impl Owed {
    /// Sends an answer, unless too much waits.
    pub fn send(&self, to: &Outlet, answer: &[u8]) {
        let bytes = self.bytes.get().saturating_add(answer.len());
        if bytes > MOST {
            return self.dropped.set(true);
        }
        self.bytes.set(bytes);
        let share = Share { of: self.bytes.clone(), bytes: answer.len() };
        to.send(answer, Box::new(move || drop(share)));
    }

    /// Whether answers were dropped; only the first time.
    pub fn is_news(&self) -> bool {
        self.dropped.get() && !self.told.replace(true)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn a_server_that_never_reads_is_owed_little() {
        LocalSet::new()
            .run_until(async {
                let (mut reader, writer) = io::pipe().unwrap();
                let to = Outlet::new(writer.into(), None).unwrap();
                let owed = Owed::default();
                let answer = [b'x'; 500];
                for n in 0..2 * MOST / answer.len() {
                    assert!(n > 0 || !owed.is_news());
                    owed.send(&to, &answer);
                }
                assert!(owed.bytes.get() <= MOST);
                assert_eq!((owed.is_news(), owed.is_news()), (true, false));
                // What it is owed it gets, and then it is owed more.
                let server = tokio::task::spawn_blocking(move || {
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).unwrap();
                    all
                });
                to.written().await;
                assert_eq!(owed.bytes.get(), 0);
                owed.send(&to, b"last");
                drop(to);
                let all = server.await.unwrap();
                assert!(all.ends_with(b"xlast"));
            })
            .await;
    }

    #[tokio::test]
    async fn the_clients_messages_and_those_of_a_server_that_is_gone_do_not_count() {
        LocalSet::new()
            .run_until(async {
                let (reader, writer) = io::pipe().unwrap();
                let to = Outlet::new(writer.into(), None).unwrap();
                let owed = Owed::default();
                to.send(&vec![b'x'; 4 * MOST], Box::new(|| {}));
                owed.send(&to, b"one\n");
                assert_eq!((owed.bytes.get(), owed.is_news()), (4, false));
                drop(reader);
                to.broken().await;
                owed.send(&to, b"two\n");
                assert_eq!((owed.bytes.get(), owed.is_news()), (0, false));
            })
            .await;
    }
}
