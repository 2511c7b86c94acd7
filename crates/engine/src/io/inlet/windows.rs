//! Reading, by a thread. Nothing that was read is kept for the next engine.

use std::{fs::File, io};

use firedoor_ipc::wire::Descriptor;

use super::{Lines, reader::Reader};

/// A handle that is read.
pub struct Inlet(Reader);

impl Inlet {
    /// Takes over a handle.
    pub fn new(handle: Descriptor) -> io::Result<Self> {
        Reader::start(File::from(handle)).map(Self)
    }

    /// There is no log.
    pub fn done(&self, _held: usize) -> u64 {
        0
    }

    /// There is none that grows.
    pub fn is_long(&self) -> bool {
        false
    }

    /// There is none whose memory could go back.
    pub fn release(&mut self, _through: u64) {}

    /// There is none to start anew.
    pub fn renew(&mut self, _held: usize) -> bool {
        false
    }

    /// Reads once into `lines`. Zero is the end of the stream.
    pub async fn read(&mut self, lines: &mut Lines) -> io::Result<usize> {
        let count = self.0.read(lines.space()).await?;
        lines.filled(count);
        Ok(count)
    }
}
