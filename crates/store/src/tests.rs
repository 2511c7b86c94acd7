//! Through the public interface, on scratch directories. Damage is done by a second connection or by writing bytes.

mod audit;
mod open;
mod rows;

use firedoor_model::{
    Millis,
    audit::{Event, What},
};
use tempfile::TempDir;

use super::*;

/// A scratch directory and the path of a database in a directory that does not exist yet.
fn scratch() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state").join("firedoor.db");
    (dir, path)
}

fn open(path: &Path) -> Store {
    let opened = Store::open(path, Millis(77)).unwrap();
    assert_eq!(opened.set_aside, None);
    opened.store
}

fn event(at: u64, entry: &str) -> Event {
    let what = What::Command { text: format!("command at {at}") };
    Event { at: Millis(at), entry: entry.parse().ok(), session: None, client: None, what }
}

/// Does what somebody with the file and a SQLite shell could do.
fn tamper(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}
