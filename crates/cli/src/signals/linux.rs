//! Signals on Linux, from a descriptor (signalfd(2)).

use std::{io, os::fd::AsFd};

use firedoor_sandbox::Tree;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};

use crate::failure::Failure;

/// Signals that are passed on to the command: the first is, a second one kills.
pub struct Signals(SignalFd);

impl Signals {
    /// From now on they do not end this process.
    pub fn block() -> Result<Self, Failure> {
        let failed = |e: Errno| Failure::environment(format!("signals cannot be caught: {e}"));
        let mask: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
        mask.thread_block().map_err(failed)?;
        SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map(Self).map_err(failed)
    }

    /// Waits for the command's end.
    pub fn pass_on_until_end(&self, tree: &Tree) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::environment(format!("waiting for the command failed: {e}"));
        let mut asked = false;
        loop {
            let mut fds =
                [PollFd::new(tree.exited_fd(), PollFlags::POLLIN), PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(failed(e.into())),
            }
            if fds.first().and_then(PollFd::any).unwrap_or(false) {
                return Ok(());
            }
            while let Some(signal) = self.0.read_signal().map_err(|e| failed(e.into()))? {
                let number = i32::try_from(signal.ssi_signo).unwrap_or(Signal::SIGTERM as i32);
                let passed = if asked { tree.kill() } else { tree.signal(number) };
                passed.map_err(failed)?;
                asked = true;
            }
        }
    }
}
