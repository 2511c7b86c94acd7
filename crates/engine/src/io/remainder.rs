//! What a pipe has not taken yet of a long message, kept where the next engine finds it.

use std::{cell::Cell, os::fd::OwnedFd};

use nix::{
    errno::Errno,
    sys::uio::pwrite,
    unistd::{Whence, lseek},
};

use crate::sys;

/// Messages in a [`Remainder`] begin at multiples of this, so that none shares a page with another.
const PAGE: u64 = 4096;

/// Where a long message waits while a pipe takes it piece by piece: a file in memory that outlives the engine.
///
/// The kernel moves the bytes from the file to the pipe (splice(2)), and the file's position, which belongs to the shared
/// open file description, says how many. So the next engine goes on at exactly the byte where this one was killed. The
/// pipe then holds the file's pages themselves, so a page is never written twice.
pub struct Remainder {
    file: OwnedFd,
    /// Where the message that is being written ends.
    end: Cell<u64>,
    /// Notes that end for the next engine.
    note: Box<dyn Fn(u64)>,
}

impl Remainder {
    /// Goes on with what an earlier engine left; `end` is what it noted last, zero for nothing. `note` is called with
    /// the end of each message that is begun.
    pub fn new(file: OwnedFd, end: u64, note: impl Fn(u64) + 'static) -> Self {
        Self { file, end: Cell::new(end), note: Box::new(note) }
    }

    fn position(&self) -> nix::Result<u64> {
        Ok(u64::try_from(lseek(&self.file, 0, Whence::SeekCur)?).unwrap_or_default())
    }

    /// Bytes that the pipe has not taken.
    pub(super) fn left(&self) -> nix::Result<usize> {
        Ok(usize::try_from(self.end.get().saturating_sub(self.position()?)).unwrap_or(usize::MAX))
    }

    /// Moves as many as the pipe takes, at most `left`.
    pub(super) fn pass_on(&self, pipe: &OwnedFd, left: usize) -> nix::Result<usize> {
        sys::splice(&self.file, pipe, left)
    }

    /// Puts a message into the file. From here on it reaches its reader.
    pub(super) fn begin(&self, bytes: &[u8]) -> nix::Result<()> {
        let offset = |at: u64| i64::try_from(at).map_err(|_| Errno::EFBIG);
        let start = self.end.get().next_multiple_of(PAGE);
        if start > 0 {
            // What the pipe still holds of it stays with the pipe.
            sys::punch(&self.file, 0, offset(start)?)?;
        }
        let mut done = 0;
        while done < bytes.len() {
            done += pwrite(&self.file, &bytes[done..], offset(start + done as u64)?)?;
        }
        // In this order: a position behind the noted end means that nothing is left.
        lseek(&self.file, offset(start)?, Whence::SeekSet)?;
        self.end.set(start + bytes.len() as u64);
        (self.note)(self.end.get());
        Ok(())
    }
}
