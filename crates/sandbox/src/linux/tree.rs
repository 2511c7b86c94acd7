//! A running server and everything it started, as the caller sees it.

use std::{
    cell::Cell,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use firedoor_model::network::HostRuling;
use nix::{
    sys::{
        signal::{Signal, kill},
        socket::{Shutdown, shutdown},
    },
    unistd::Pid,
};

use crate::linux::{
    control::{self, News, Order},
    orphans::Orphans,
    reap,
};
use crate::{exit::Exit, level::Outcome, notice::Notice};

/// How long a guardian may take to end after its tree did.
const GUARDIAN_END: Duration = Duration::from_secs(2);
/// How long a guardian may take to kill its tree when it is told to.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A running server with its guardian. Dropping it kills everything the server started.
#[derive(Debug)]
pub struct Tree {
    pub(crate) server: Pid,
    pub(crate) guardian: Pid,
    pub(crate) control: OwnedFd,
    pub(crate) notices: OwnedFd,
    pub(crate) record: Option<OwnedFd>,
    pub(crate) outcome: Outcome,
    pub(crate) orphans: Orphans,
    pub(crate) exit: Option<Exit>,
    /// A guardian that does not do it until then is killed, and its work done here.
    pub(crate) kill_by: Cell<Option<Instant>>,
    /// Its number may be another's by now.
    pub(crate) guardian_reaped: Cell<bool>,
}

impl Tree {
    /// Pid of the server's main process.
    pub fn pid(&self) -> i32 {
        self.server.as_raw()
    }

    /// What is really enforced.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Sends a signal to the server's process group, once, as the client would have. Nothing happens when the server
    /// has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.order(Order::Signal(signal))
    }

    /// Kills the server and everything it started. [`Tree::wait`] tells when that is done.
    pub fn kill(&self) -> io::Result<()> {
        let limit = self.kill_by.get().unwrap_or_else(|| Instant::now() + KILL_LIMIT);
        self.kill_by.set(Some(limit));
        self.order(Order::Kill)
    }

    /// Answers a question of [`Notice::Asked`]. One that is no longer open is passed over.
    pub fn rule(&self, ruling: HostRuling) -> io::Result<()> {
        self.order(Order::Rule(ruling))
    }

    /// Asks for the open questions to be reported once more: whoever had them is gone.
    pub fn ask_again(&self) -> io::Result<()> {
        self.order(Order::AskAgain)
    }

    /// Refuses what waits for an answer: nobody will give one.
    pub fn refuse_open(&self) -> io::Result<()> {
        self.order(Order::RefuseOpen)
    }

    /// Becomes readable when [`Tree::next_notice`] has something, and hangs up at the end.
    pub fn notices_fd(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }

    /// What the server was refused or wants to be asked about, if there is something new.
    pub fn next_notice(&self) -> Option<Notice> {
        match reap::readable(&self.notices, Duration::ZERO) {
            // Nobody but the guardian holds the other end; what does not read is dropped.
            Ok(true) => control::receive(&self.notices).ok().flatten(),
            Ok(false) | Err(_) => None,
        }
    }

    /// The record of an observed server, which grows while it runs: a file in memory, for
    /// [`firedoor_model::observation::Record::from_lines`].
    pub fn record(&self) -> Option<BorrowedFd<'_>> {
        self.record.as_ref().filter(|_| self.outcome.observed).map(AsFd::as_fd)
    }

    /// Becomes readable (or hangs up) when [`Tree::wait`] will return without blocking for long.
    pub fn exited_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Waits until the main process has ended and everything else the server started is dead. The guardian, which has nothing left to
    /// do, may need a moment longer: it is reaped when this is dropped.
    pub fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let in_time = match self.kill_by.get() {
            Some(limit) => reap::readable(&self.control, limit.saturating_duration_since(Instant::now()))?,
            None => true,
        };
        if !in_time {
            // Stopped, or held up by a file system that does not answer.
            let _ = kill(self.guardian, Signal::SIGKILL);
        }
        let exit = match control::receive::<News>(&self.control) {
            Ok(Some(News::Exited { code, by_signal: false })) => Exit::Code(code),
            Ok(Some(News::Exited { code, by_signal: true })) => Exit::Signal(code),
            // The guardian was killed: what it guarded is ours now.
            Ok(_) | Err(_) => self.take_over().unwrap_or(Exit::Signal(nix::libc::SIGKILL)),
        };
        self.exit = Some(exit);
        Ok(exit)
    }

    /// Makes sure that the guardian is dead, and reaps it.
    fn end_guardian(&self) {
        if self.guardian_reaped.replace(true) {
            return;
        }
        if !reap::wait_bounded(self.guardian, GUARDIAN_END) {
            // It is stuck, or was stopped.
            let _ = kill(self.guardian, Signal::SIGKILL);
            reap::wait_bounded(self.guardian, GUARDIAN_END);
        }
    }

    /// Kills what the guardian left. Only once it is dead: a process that ends closes its descriptors, which is the
    /// hang-up we see, before its children get their new parent (`do_exit` in kernel/exit.c), so that a look at the
    /// moment of the hang-up would find none.
    fn take_over(&self) -> Option<Exit> {
        self.end_guardian();
        self.orphans.kill(self.server)
    }

    fn order(&self, order: Order) -> io::Result<()> {
        match control::send(&self.control, &order) {
            // The guardian has reported the end already, or is gone, which wait() deals with.
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            other => other,
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.exit.is_some() {
            return self.end_guardian();
        }
        // The guardian sees the hang-up, kills, and ends.
        let _ = shutdown(self.control.as_raw_fd(), Shutdown::Both);
        self.take_over();
    }
}
