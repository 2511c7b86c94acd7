//! Windows, where threads write everything.

use std::{fs::File, io};

use firedoor_ipc::wire::Descriptor;

/// What a thread must write.
pub(super) enum Opened {
    #[expect(dead_code, reason = "there is none")]
    Direct(Direct),
    File(File),
}

/// What is written directly: nothing is.
#[derive(Clone)]
pub(super) enum Direct {}

/// One that takes no more.
pub(super) enum Full {}

/// What a pipe has not taken, for the next engine: nothing is kept.
pub enum Remainder {}

/// Takes a handle over.
pub(super) fn open(handle: Descriptor, _: Option<Remainder>) -> io::Result<Opened> {
    Ok(Opened::File(handle.into()))
}

impl Direct {
    pub(super) fn completes(&self) -> bool {
        match *self {}
    }

    pub(super) fn left(&self) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn pass_on(&self, _: usize) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn begin(&self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn write(&self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn full(&self) -> io::Result<Full> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "as where there is something to wait for")]
    pub(super) async fn changed(&self, _: Option<&Full>) -> bool {
        match *self {}
    }
}
