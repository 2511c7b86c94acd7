//! What a server is started with.

use std::os::fd::OwnedFd;

use firedoor_model::launch::Step;

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
    /// Whether what it does with files and connections is written down: [`crate::Tree::record`]. Costs time with each open.
    pub observe: bool,
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
