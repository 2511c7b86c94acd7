//! The audit log as the app needs it: what is new is heard as it is written, everything else is asked for in pieces.

use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use firedoor_ipc::command::{LogQuery, PageQuery, Reply, Request};
use firedoor_model::{
    Millis,
    audit::{Filter, Outcome, What},
};

use crate::{
    known::{Known, lock},
    link::{Link, LinkError, Retries},
    view::{Offer, RowView},
};

/// How far back the last block is looked for.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// News are told at most this often.
const PAUSE: Duration = Duration::from_millis(250);

/// What is kept of the log.
#[derive(Debug, Default)]
pub struct Activity {
    newest: Option<(u64, Millis)>,
    block: Option<RowView>,
}

impl Activity {
    /// Takes a row in; false when it came before.
    fn take(&mut self, row: RowView) -> bool {
        // After a reconnection the stream begins a little earlier.
        if self.newest.is_some_and(|(seq, _)| seq >= row.seq) {
            return false;
        }
        self.newest = Some((row.seq, Millis(row.at)));
        if row.blocked() {
            self.block = Some(row);
        }
        true
    }

    /// The newest refused call.
    pub fn last_block(&self) -> Option<&RowView> {
        self.block.as_ref()
    }
}

/// The folder that a row of the log offers to grant.
pub fn offer(known: &Known, seq: u64) -> Result<Option<Offer>, LinkError> {
    let query =
        PageQuery { before: seq.checked_add(1), after: seq.saturating_sub(1), limit: 1, ..PageQuery::default() };
    match Link::ask(&known.paths, &Request::Page(query))? {
        Reply::Page { rows, .. } => Ok(rows.first().and_then(|row| RowView::new(row, known.clients).offer)),
        _ => Err(LinkError::Unexpected),
    }
}

/// Follows the log for ever. `tell` is called after news.
pub fn run(known: &Known, tell: impl Fn()) {
    // For the tray, also when no window was ever opened.
    known.scan();
    let mut retries = Retries::new();
    loop {
        // Without an engine there is no news; the watcher says so and starts one.
        if follow(known, &tell).is_err() {
            thread::sleep(retries.after_failure(Instant::now()).min(Duration::from_secs(2)));
        }
    }
}

/// The newest row of the last day that says that a call was blocked.
fn look_back(known: &Known) -> Result<(), LinkError> {
    let since = Some(Millis(now().saturating_sub(DAY_MS)));
    let filter = Filter { outcome: Some(Outcome::Blocked), since, ..Filter::default() };
    let query = PageQuery { filter, limit: 20, ..PageQuery::default() };
    let Reply::Page { rows, .. } = Link::ask(&known.paths, &Request::Page(query))? else {
        return Err(LinkError::Unexpected);
    };
    let mut blocks = rows.iter().map(|row| RowView::new(row, known.clients));
    lock(&known.activity).block = blocks.find(RowView::blocked);
    Ok(())
}

fn follow(known: &Known, tell: &impl Fn()) -> Result<(), LinkError> {
    let newest = lock(&known.activity).newest;
    if newest.is_none() {
        look_back(known)?;
    }
    let since = newest.map_or(Millis(now()), |(_, at)| at);
    let mut link = Link::open(&known.paths)?;
    link.send(&Request::Log(LogQuery { server: None, since: Some(since), follow: true }))?;
    tell();
    let mut untold: Option<Instant> = None;
    // A configuration has changed: what is protected may be something else.
    let mut configured = false;
    loop {
        let wait = untold.map(|since| PAUSE.saturating_sub(since.elapsed()));
        match link.next(wait)? {
            Some(Reply::Event(row)) => {
                configured |= matches!(row.event.what, What::Noticed(_));
                if lock(&known.activity).take(RowView::new(&row, known.clients)) {
                    untold.get_or_insert_with(Instant::now);
                }
            }
            None => {}
            Some(Reply::Done { .. }) => return Ok(()),
            Some(_) => return Err(LinkError::Unexpected),
        }
        if untold.is_some_and(|since| since.elapsed() >= PAUSE) {
            untold = None;
            if std::mem::take(&mut configured) {
                known.scan();
            }
            tell();
        }
    }
}

/// Milliseconds since 1970, as the log counts them.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use firedoor_clients::Clients;
    use firedoor_ipc::command::Row;
    use firedoor_model::{Digest, Verdict, audit::Event};

    use super::*;

    fn row(clients: &Clients, seq: u64, verdict: Verdict) -> RowView {
        let what = What::Judged {
            method: "tools/call".into(),
            subject: Some("post".into()),
            verdict,
            reference: None,
            rule: None,
            findings: Vec::new(),
        };
        let event = Event { at: Millis(seq), entry: "cursor/user/fs".parse().ok(), session: None, client: None, what };
        RowView::new(&Row { seq, hash: Digest::of(b""), event }, clients)
    }

    #[test]
    fn rows_come_once_and_the_last_block_stays() {
        let clients = Clients::load().unwrap();
        let mut activity = Activity::default();
        let mut take = |seq, verdict| activity.take(row(clients, seq, verdict));
        let taken =
            [take(1, Verdict::Allow), take(5, Verdict::Block), take(5, Verdict::Block), take(2, Verdict::Block)];
        assert_eq!(taken, [true, true, false, false]);
        for seq in 6..5000 {
            take(seq, Verdict::Ask);
        }
        assert_eq!(activity.last_block().map(|r| r.seq), Some(5));
    }
}
