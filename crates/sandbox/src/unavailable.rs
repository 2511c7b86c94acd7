//! Systems on which servers cannot be confined yet. Nothing is started there: [`Tree`] has no value.

use std::{io, os::fd::BorrowedFd};

use firedoor_model::{Unavailable, network::HostRuling};

use crate::{
    error::SpawnError,
    exit::Exit,
    launch::Launch,
    level::{Level, Outcome, Report},
    notice::Notice,
};

/// What is missing.
const CONFINING: Unavailable = Unavailable("confining servers");

/// Refuses.
pub fn spawn(_: Launch<'_>) -> Result<Tree, SpawnError> {
    Err(CONFINING.into())
}

/// Says that servers are refused.
pub fn doctor() -> Report {
    Report {
        level: Level::Refused,
        summary: Level::Refused.sentence().to_owned(),
        landlock_abi: 0,
        filter: false,
        notification: false,
        descriptors: false,
        limits: CONFINING.to_string(),
        missing: vec![CONFINING.to_string()],
    }
}

/// A running server. There is none.
#[derive(Debug)]
pub enum Tree {}

impl Tree {
    /// Pid of the server's main process.
    pub fn pid(&self) -> i32 {
        match *self {}
    }

    /// What is really enforced.
    pub fn outcome(&self) -> &Outcome {
        match *self {}
    }

    /// Sends a signal to the server's process group.
    pub fn signal(&self, _: i32) -> io::Result<()> {
        match *self {}
    }

    /// Kills the server and everything it started.
    pub fn kill(&self) -> io::Result<()> {
        match *self {}
    }

    /// Answers a question of [`Notice::Asked`].
    pub fn rule(&self, _: HostRuling) -> io::Result<()> {
        match *self {}
    }

    /// Asks for the open questions to be reported once more.
    pub fn ask_again(&self) -> io::Result<()> {
        match *self {}
    }

    /// Refuses what waits for an answer.
    pub fn refuse_open(&self) -> io::Result<()> {
        match *self {}
    }

    /// Becomes readable when [`Tree::next_notice`] has something.
    pub fn notices_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    /// What the server was refused or wants to be asked about.
    pub fn next_notice(&self) -> Option<Notice> {
        match *self {}
    }

    /// The record of an observed server.
    pub fn record(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    /// Becomes readable when [`Tree::wait`] will return without blocking for long.
    pub fn exited_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    /// Waits until everything that the server started is dead.
    pub fn wait(&mut self) -> io::Result<Exit> {
        match *self {}
    }
}
