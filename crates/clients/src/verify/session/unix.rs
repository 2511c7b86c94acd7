//! A server with a process group of its own.

use std::{
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
// nix has no waitid(2) for macOS.
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::{Invocation, VerifyError};

/// A started server.
pub(super) struct Process(Child);

impl Process {
    /// Starts it; its input and output.
    pub(super) fn start(
        invocation: &Invocation,
    ) -> Result<(Self, Option<ChildStdin>, Option<ChildStdout>), VerifyError> {
        let program = Path::new(&invocation.command);
        let mut child = invocation.of(program).process_group(0).spawn().map_err(VerifyError::Start)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok((Self(child), stdin, stdout))
    }

    /// Whether the server has ended; it stays to be reaped.
    pub(super) fn ended(&mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.0);
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(pid), flags), Ok(None))
    }

    /// Ends everything in its group. It is not reaped before, so that the group's id cannot belong to anybody else.
    pub(super) fn end(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.0.wait();
    }
}
