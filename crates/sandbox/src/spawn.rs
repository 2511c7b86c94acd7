//! Starting one server.

use std::{io, os::fd::OwnedFd};

use firedoor_model::launch::Step;

use crate::{error::SpawnError, procfs, tree::Tree};

/// One server to start.
pub struct Launch<'a> {
    /// What to run, and what it may do.
    pub step: &'a Step,
    /// The server's standard input.
    pub stdin: OwnedFd,
    /// The server's standard output.
    pub stdout: OwnedFd,
    /// The server's standard error.
    pub stderr: Stderr,
}

/// The server's standard error. A datagram socket is replaced by `/dev/null`: through it the server could send to any
/// other datagram socket by path.
#[derive(Debug)]
pub enum Stderr {
    /// The caller's own.
    Inherit,
    /// This descriptor.
    Fd(OwnedFd),
}

/// Starts a server under its confinement, with a guardian that outlives us by the time it takes to kill the tree.
///
/// Makes the caller a subreaper. Fails unless the caller has one thread.
pub fn spawn(launch: Launch<'_>) -> Result<Tree, SpawnError> {
    match procfs::own_threads() {
        Ok(1) => {}
        Ok(n) => return Err(SpawnError::Threads(n)),
        Err(e) => return Err(SpawnError::setup(crate::Stage::Guardian, e)),
    }
    drop(launch);
    Err(SpawnError::NoLandlock(io::Error::from(nix::errno::Errno::ENOSYS)))
}
