//! The record in the making: one line for each different thing, up to a bound.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use firedoor_model::observation::Observed;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Most lines of one journal. A server of node or Python leaves some hundreds.
const MAX_LINES: usize = 20_000;
/// Most bytes of one journal.
const MAX_BYTES: usize = 2 << 20;

/// Appends to a record.
pub(crate) struct Journal {
    file: File,
    told: HashSet<Observed>,
    left: usize,
    full: bool,
}

impl Journal {
    /// Appends to a file in memory; several may append to one.
    pub fn new(record: &OwnedFd) -> io::Result<Self> {
        fcntl(record.as_fd(), FcntlArg::F_SETFL(OFlag::O_APPEND | OFlag::O_RDWR))?;
        Ok(Self { file: record.try_clone()?.into(), told: HashSet::new(), left: MAX_BYTES, full: false })
    }

    /// Another one for the same record, with bounds of its own.
    pub fn another(&self) -> io::Result<Self> {
        Self::new(&self.file.try_clone()?.into())
    }

    /// Writes a thing down, once. What is too much is said once, and left out.
    pub fn note(&mut self, seen: Observed) {
        if self.full || self.told.contains(&seen) {
            return;
        }
        let line = line(&seen);
        if self.told.len() < MAX_LINES && line.len() <= self.left {
            self.left -= line.len();
            self.told.insert(seen);
            self.write(&line);
        } else {
            self.full = true;
            self.write(&self::line(&Observed::Truncated));
        }
    }

    /// Memory that is not to be had loses a line of a log.
    fn write(&mut self, line: &[u8]) {
        self.full |= self.file.write_all(line).is_err();
    }
}

fn line(seen: &Observed) -> Vec<u8> {
    let mut line = serde_json::to_vec(seen).unwrap_or_default();
    line.push(b'\n');
    line
}

impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_model::observation::{Record, Use};
    use std::os::unix::fs::FileExt;

    fn written(record: &OwnedFd) -> Record {
        let file = File::from(record.try_clone().unwrap());
        let mut text = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut text, 0).unwrap();
        Record::from_lines(&text).unwrap()
    }

    #[test]
    fn each_thing_is_written_once_and_too_much_is_said() {
        let record = super::super::record().unwrap();
        let mut journal = Journal::new(&record).unwrap();
        let mut other = journal.another().unwrap();
        let file = |n: usize, length| Observed::File {
            path: firedoor_model::Untrusted::new(format!("/{n}{}", "x".repeat(length))),
            how: Use::Read,
            allowed: true,
        };
        for _ in 0..3 {
            journal.note(file(1, 0));
            other.note(file(2, 0));
        }
        assert_eq!((written(&record).seen.len(), written(&record).is_truncated()), (2, false));
        (0..MAX_LINES + 10).for_each(|n| journal.note(file(n, 0)));
        assert_eq!((written(&record).files().count(), written(&record).is_truncated()), (MAX_LINES, true));
        (0..MAX_BYTES / 4000 + 10).for_each(|n| other.note(file(n, 4000)));
        assert!(written(&record).is_truncated());
        assert!(File::from(record).metadata().unwrap().len() < 2 * MAX_BYTES as u64 + 200);
    }
}
