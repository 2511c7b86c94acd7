//! The file in memory: two regions take turns. Records are appended to one until it is long; then the state goes to the other as one
//! record, and a single byte at the start switches over. A record that is cut off by the death of its writer does not count.

use std::{cell::RefCell, io, os::fd::OwnedFd};

use nix::{
    sys::uio::{pread, pwrite},
    unistd::ftruncate,
};

use super::{super::pending::MAX_PENDING, Ledger, Record, State, Way, ages::Ages};

/// Where the regions begin; the byte at 0 says which one counts.
const REGIONS: [u64; 2] = [4096, 1 << 32];
/// A region of this length gives way to the other, but not before the state in it is the smaller part of it.
const LONG: u64 = 1 << 20;
/// Most open requests, as many as an engine itself knows. The oldest is forgotten first: where the server may not have it the next
/// engine does not say so.
const MAX_OPEN: usize = MAX_PENDING;
/// Longest record that is read back.
const MAX_RECORD: usize = 64 << 20;
impl State {
    fn apply(&mut self, record: Record) {
        match record {
            Record::Claim(id, up, claimed) => {
                self.up = up;
                self.requests.insert(id, claimed);
            }
            Record::Sent(requests) => self.requests.extend(requests),
            Record::Answered(ids) => ids.iter().for_each(|id| {
                self.requests.remove(id);
            }),
            Record::Through(Way::Up, offset) => advance(&mut self.up, offset),
            Record::Through(Way::Down, offset) => advance(&mut self.down, offset),
            Record::Begun(Way::Up, end) => self.up_end = end,
            Record::Begun(Way::Down, end) => self.down_end = end,
            Record::Torn(torn) => self.torn = torn,
            Record::Legacy => self.legacy = true,
            Record::Snapshot(state) => *self = state,
        }
    }
}

/// Where a region gives way that begins with a state of this length.
fn due_after(length: u64) -> u64 {
    LONG.max(length.saturating_mul(2))
}

/// One that is written.
pub struct Kept {
    file: OwnedFd,
    region: usize,
    cursor: u64,
    /// From here on the region gives way.
    due: u64,
    state: State,
    ages: Ages,
}

impl Ledger {
    /// Reads what an earlier engine left in `file`; an empty file is a new session.
    pub fn open(file: OwnedFd) -> io::Result<(Self, State)> {
        let mut which = [0];
        let _ = pread(&file, &mut which, 0)?;
        let region = usize::from(which[0] != 0);
        let (mut state, mut cursor) = (State::default(), 0);
        let mut start = REGIONS[region];
        let mut due = LONG;
        while let Some((record, length)) = read_record(&file, start)? {
            if matches!(record, Record::Snapshot(_)) {
                due = due_after(length);
            }
            state.apply(record);
            start += length;
            cursor += length;
        }
        let mut kept = Kept { file, region, cursor, due, state: state.clone(), ages: Ages::default() };
        state.requests.keys().for_each(|id| kept.ages.add(id));
        Ok((Self(Some(RefCell::new(kept))), state))
    }
}

/// Goes on to an offset, or back to the start, never to anything between.
fn advance(through: &mut u64, offset: u64) {
    *through = if offset == 0 { 0 } else { offset.max(*through) };
}

impl Kept {
    /// The offset up to which a log is dealt with.
    pub(super) fn through(&self, way: Way) -> u64 {
        match way {
            Way::Up => self.state.up,
            Way::Down => self.state.down,
        }
    }

    /// Writes records down. What cannot be written any more is emptied.
    pub(super) fn take(&mut self, mut records: Vec<Record>) {
        records.iter().for_each(|record| self.count(record));
        let forgotten = self.ages.above(MAX_OPEN);
        if !forgotten.is_empty() {
            records.push(Record::Answered(forgotten));
        }
        if self.append(&records).is_err() {
            let _ = ftruncate(&self.file, 0);
        }
        records.into_iter().for_each(|record| self.state.apply(record));
    }

    /// Counts the requests that a record opens and ends.
    fn count(&mut self, record: &Record) {
        match record {
            Record::Claim(id, ..) => self.ages.add(id),
            Record::Sent(requests) => requests.iter().for_each(|(id, _)| self.ages.add(id)),
            Record::Answered(ids) => ids.iter().for_each(|id| self.ages.remove(id)),
            Record::Through(..) | Record::Begun(..) | Record::Torn(_) | Record::Legacy | Record::Snapshot(_) => {}
        }
    }

    fn append(&mut self, records: &[Record]) -> io::Result<()> {
        if self.cursor > self.due {
            self.switch()?;
        }
        let mut bytes = Vec::new();
        for record in records {
            frame(record, &mut bytes)?;
        }
        write_all(&self.file, &bytes, REGIONS[self.region] + self.cursor)?;
        self.cursor += bytes.len() as u64;
        Ok(())
    }

    fn switch(&mut self) -> io::Result<()> {
        let other = 1 - self.region;
        let mut bytes = Vec::new();
        frame(&Record::Snapshot(self.state.clone()), &mut bytes)?;
        punch(&self.file, REGIONS[other])?;
        write_all(&self.file, &bytes, REGIONS[other])?;
        write_all(&self.file, &[u8::from(other == 1)], 0)?;
        punch(&self.file, REGIONS[self.region])?;
        (self.region, self.cursor) = (other, bytes.len() as u64);
        self.due = due_after(self.cursor);
        Ok(())
    }
}

/// Length, then JSON. A length of zero is the end: what was never written reads as zeros.
fn frame(record: &Record, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    bytes.extend([0; 4]);
    serde_json::to_writer(&mut *bytes, record)?;
    let length = u32::try_from(bytes.len() - start - 4).map_err(io::Error::other)?;
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn read_record(file: &OwnedFd, at: u64) -> io::Result<Option<(Record, u64)>> {
    let mut length = [0; 4];
    if pread(file, &mut length, offset(at)?)? < length.len() {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if length == 0 || length > MAX_RECORD {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    if pread(file, &mut bytes, offset(at + 4)?)? < length {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&bytes).ok().map(|record| (record, 4 + length as u64)))
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = pwrite(file, bytes, offset(at)?)?;
        bytes = bytes.get(count..).unwrap_or_default();
        at += count as u64;
    }
    Ok(())
}

fn punch(file: &OwnedFd, at: u64) -> io::Result<()> {
    Ok(crate::sys::punch(file, offset(at)?, offset(REGIONS[1] - REGIONS[0])?)?)
}

fn offset(at: u64) -> io::Result<i64> {
    i64::try_from(at).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use nix::sys::memfd::{MFdFlags, memfd_create};

    use firedoor_inspect::{CallLabel, Privacy, Sink};

    use super::{
        super::{Asked, Request},
        *,
    };

    fn asked(subject: &str) -> Asked {
        let label = CallLabel { privacy: Privacy::Sensitive, sink: Sink::External };
        Asked { method: "tools/call".into(), subject: subject.into(), label, allowed: None }
    }

    fn claim(id: &str, up: u64) -> Record {
        Record::claim(&Request { id: id.into(), tool_call: true, modern: false }, up)
    }

    #[test]
    fn the_next_engine_reads_what_this_one_wrote() {
        let file = memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
        let (ledger, state) = Ledger::open(file.try_clone().unwrap()).unwrap();
        assert_eq!(state, State::default());
        ledger.write(claim("1", 10));
        ledger.write(claim("2", 20));
        ledger.write(Record::sent(&[("1".into(), asked("a"))]));
        ledger.write(Record::Legacy);
        ledger.write(Record::Through(Way::Down, 7));
        ledger.write(claim("3", 30));
        ledger.write(Record::Answered(vec!["3".into()]));
        ledger.write(Record::Torn(true));
        ledger.write(Record::Begun(Way::Up, 8192));
        let (_, state) = Ledger::open(file).unwrap();
        assert_eq!((state.up, state.down, state.legacy), (30, 7, true));
        assert_eq!((state.up_end, state.down_end, state.torn), (8192, 0, true));
        let requests: Vec<_> = state.requests.iter().map(|(id, c)| (id.as_str(), c.asked())).collect();
        assert_eq!(requests, [("1", Some(asked("a"))), ("2", None)]);
    }

    #[test]
    fn a_long_ledger_stays_short_and_a_cut_record_does_not_count() {
        let file = memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
        let (ledger, _) = Ledger::open(file.try_clone().unwrap()).unwrap();
        ledger.write(claim("open", 1));
        for i in 0..40_000u64 {
            ledger.write(claim(&i.to_string(), i));
            ledger.write(Record::sent(&[(i.to_string(), asked("tool"))]));
            ledger.write(Record::Answered(vec![i.to_string()]));
        }
        let blocks = nix::sys::stat::fstat(&file).unwrap().st_blocks * 512;
        assert!(blocks < 4 << 20, "{blocks}");
        let (_, state) = Ledger::open(file.try_clone().unwrap()).unwrap();
        assert_eq!((state.up, state.requests.len()), (39_999, 1));
        // Cut the last record.
        let (cursor, region) = ledger.0.as_ref().map(|i| (i.borrow().cursor, i.borrow().region)).unwrap();
        write_all(&file, &[0; 8], REGIONS[region] + cursor - 8).unwrap();
        let (_, state) = Ledger::open(file).unwrap();
        assert_eq!(state.requests.len(), 2);
    }

    #[test]
    fn open_requests_are_few_and_the_state_is_not_written_for_each() {
        let file = memfd_create("t", MFdFlags::MFD_CLOEXEC).unwrap();
        let (ledger, _) = Ledger::open(file.try_clone().unwrap()).unwrap();
        let id = |n: usize| format!("{n:1000}");
        let kept = ledger.0.as_ref().unwrap();
        let (mut switches, mut region) = (0, kept.borrow().region);
        for n in 0..2 * MAX_OPEN {
            ledger.write(claim(&id(n), n as u64));
            ledger.write(Record::sent(&[(id(n), asked("tool"))]));
            switches += usize::from(kept.borrow().region != region);
            region = kept.borrow().region;
        }
        // Of 16 MiB, a state of up to 4 MiB.
        assert!((1..12).contains(&switches), "{switches}");
        let (next, state) = Ledger::open(file).unwrap();
        assert_eq!(state.requests.len(), MAX_OPEN);
        let claimed = Record::claim(&Request { id: id(MAX_OPEN), tool_call: true, modern: false }, 0);
        let Record::Claim(oldest, ..) = claimed else { panic!() };
        assert!(state.requests.contains_key(&oldest), "the oldest go first");
        // The next engine counts on.
        assert!(next.0.as_ref().unwrap().borrow().due > LONG);
        next.write(claim("\"new\"", 1));
        assert_eq!(next.0.as_ref().unwrap().borrow().state.requests.len(), MAX_OPEN);
    }
}
