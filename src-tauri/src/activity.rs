//! The latest rows of the audit log, read from the engine's stream.

use std::{
    collections::VecDeque,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use firedoor_ipc::command::{LogQuery, Reply, Request};
use firedoor_model::Millis;

use crate::{
    known::{Known, lock},
    link::{Link, LinkError, Retries},
    view::{ActivityView, Offer, RowView},
};

/// Rows kept. The rest is in the log.
const KEPT: usize = 2000;
/// Rows given at once.
const PAGE: usize = 500;
/// How far back the list begins.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// News are told at most this often.
const PAUSE: Duration = Duration::from_millis(250);

/// The latest rows, oldest first.
#[derive(Debug, Default)]
pub struct Activity {
    rows: VecDeque<RowView>,
    cut: bool,
    block: Option<RowView>,
}

impl Activity {
    fn push(&mut self, row: RowView) {
        // After a reconnection the stream begins a little earlier.
        if self.rows.back().is_some_and(|last| last.seq >= row.seq) {
            return;
        }
        if self.rows.len() == KEPT {
            self.rows.pop_front();
            self.cut = true;
        }
        if row.blocked() {
            self.block = Some(row.clone());
        }
        self.rows.push_back(row);
    }

    /// Rows after that number; the newest page of them.
    pub fn after(&self, seq: u64) -> ActivityView {
        let from = self.rows.partition_point(|row| row.seq <= seq);
        let count = self.rows.len() - from;
        let rows = self.rows.iter().skip(from.max(self.rows.len().saturating_sub(PAGE))).cloned().collect();
        ActivityView { rows, cut: self.cut || count > PAGE }
    }

    /// The folder that a row offers to grant.
    pub fn offer(&self, seq: u64) -> Option<Offer> {
        let at = self.rows.binary_search_by_key(&seq, |row| row.seq).ok()?;
        self.rows.get(at)?.offer.clone()
    }

    /// The newest refused call.
    pub fn last_block(&self) -> Option<&RowView> {
        self.block.as_ref()
    }
}

/// Follows the log for ever. `tell` is called after news.
pub fn run(known: &Known, tell: impl Fn()) {
    let mut retries = Retries::new();
    loop {
        // Without an engine there is no news; the watcher says so and starts one.
        if follow(known, &tell).is_err() {
            thread::sleep(retries.after_failure(Instant::now()).min(Duration::from_secs(2)));
        }
    }
}

fn follow(known: &Known, tell: &impl Fn()) -> Result<(), LinkError> {
    let mut link = Link::open(&known.paths)?;
    let since = lock(&known.activity).rows.back().map_or(Millis(now().saturating_sub(DAY_MS)), |row| Millis(row.at));
    link.send(&Request::Log(LogQuery { server: None, since: Some(since), follow: true }))?;
    let mut untold: Option<Instant> = None;
    loop {
        let wait = untold.map(|since| PAUSE.saturating_sub(since.elapsed()));
        match link.next(wait)? {
            Some(Reply::Event(row)) => {
                lock(&known.activity).push(RowView::new(&row, &known.clients));
                untold.get_or_insert_with(Instant::now);
            }
            Some(Reply::Done { .. }) => return Ok(()),
            Some(_) => return Err(LinkError::Unexpected),
            None => {}
        }
        if untold.is_some_and(|since| since.elapsed() >= PAUSE) {
            untold = None;
            tell();
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use firedoor_clients::Clients;
    use firedoor_ipc::command::Row;
    use firedoor_model::{
        Digest, Verdict,
        audit::{Event, What},
    };

    use super::*;

    fn row(clients: &Clients, seq: u64, verdict: Verdict) -> RowView {
        let what = What::Judged {
            method: "tools/call".into(),
            subject: Some("post".into()),
            verdict,
            reference: None,
            findings: Vec::new(),
        };
        let event = Event { at: Millis(seq), entry: "cursor/user/fs".parse().ok(), session: None, client: None, what };
        RowView::new(&Row { seq, hash: Digest::of(b""), event }, clients)
    }

    #[test]
    fn the_latest_rows_are_kept_once_each() {
        let clients = Clients::load().unwrap();
        let mut activity = Activity::default();
        for seq in [1, 2, 2, 1, 3] {
            activity.push(row(&clients, seq, Verdict::Allow));
        }
        let seqs = |view: ActivityView| view.rows.iter().map(|r| r.seq).collect::<Vec<_>>();
        assert_eq!(seqs(activity.after(0)), [1, 2, 3]);
        assert_eq!(seqs(activity.after(2)), [3]);
        assert_eq!(seqs(activity.after(9)), [0; 0]);
        assert!(!activity.after(0).cut && activity.last_block().is_none());
        for seq in 4..=KEPT as u64 + 4 {
            activity.push(row(&clients, seq, if seq == 5 { Verdict::Block } else { Verdict::Ask }));
        }
        let page = activity.after(0);
        assert!(page.cut && page.rows.len() == PAGE);
        assert_eq!(page.rows.last().map(|r| r.seq), Some(KEPT as u64 + 4));
        // Also after its row has left the list.
        assert_eq!(activity.last_block().map(|r| r.seq), Some(5));
    }
}
