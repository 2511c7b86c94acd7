//! Starting one server.

use std::{
    cell::RefCell,
    env, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    time::Duration,
};

use firedoor_model::{Ability, launch::Step};

use super::{
    GUARDIAN,
    control::{self, Begin, Failure, News},
    tree::Tree,
};
use crate::{
    error::{SpawnError, Stage},
    launch::{Launch, Stderr},
    level::{Level, Outcome, Quota},
};

/// Longest time for a start, the guardian's own included.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The program whose process the guardian is, beside ours.
const PROGRAM: &str = "firedoor-shim";

/// Starts a server under its confinement, with a guardian that outlives us by the time it takes to kill the tree. Returns when the
/// program runs.
pub fn spawn(launch: Launch<'_>) -> Result<Tree, SpawnError> {
    let Launch { step, stdin, stdout, stderr, observe } = launch;
    if observe {
        return Err(Ability::Observing.missing().into());
    }
    if !step.program.is_absolute() {
        return Err(SpawnError::RelativeProgram(step.program.clone()));
    }
    let setup = |e: io::Error| SpawnError::setup(Stage::Guardian, e);
    let stderr: OwnedFd = match stderr {
        Stderr::Inherit => io::stderr().as_fd().try_clone_to_owned().map_err(setup)?,
        Stderr::Fd(fd) => fd,
    };
    let (control, theirs) = UnixStream::pair().map_err(setup)?;
    let (notices, told) = UnixStream::pair().map_err(setup)?;
    let program = env::current_exe().map_err(setup)?.with_file_name(PROGRAM);
    let mut command = Command::new(&program);
    command.arg(GUARDIAN).env_clear().current_dir("/");
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::from(OwnedFd::from(told)));
    let guardian = command.spawn().map_err(setup)?;
    // Closes our copies of its ends.
    drop(command);
    let mut tree = Tree::of(guardian, control, notices);
    // Until the server runs, an error drops the tree, which ends the guardian and what it has started.
    let begun = control::send_stdio(&tree.control, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])
        .and_then(|()| control::send(&tree.control, &Begin { step: step.clone() }))
        .and_then(|()| tree.control.set_read_timeout(Some(START_LIMIT)));
    begun.map_err(|_| SpawnError::GuardianLost)?;
    drop((stdin, stdout, stderr));
    match control::receive::<News>(&tree.control) {
        Ok(Some(News::Started { pid, skipped, missing, judged })) => {
            tree.control.set_read_timeout(None).map_err(setup)?;
            tree.server = pid;
            tree.outcome = Outcome { skipped, missing, judged, ..seated() };
            tree.received = RefCell::default();
            Ok(tree)
        }
        Ok(Some(News::Failed(failure))) => Err(explain(step, failure)),
        Ok(Some(News::Exited { .. }) | None) => Err(SpawnError::GuardianLost),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(SpawnError::Timeout(START_LIMIT.as_secs()))
        }
        Err(e) => Err(setup(e)),
    }
}

/// What is in force for every server here.
pub(super) fn seated() -> Outcome {
    Outcome {
        level: Level::Seatbelt,
        landlock_abi: 0,
        rights: Vec::new(),
        tcp_denied: false,
        scoped: true,
        filter_instructions: 0,
        judged: false,
        quota: Quota::Processes,
        observed: false,
        skipped: Vec::new(),
        missing: Vec::new(),
    }
}

fn explain(step: &Step, failure: Failure) -> SpawnError {
    let os = io::Error::from_raw_os_error;
    match failure {
        Failure::NoSeatbelt => SpawnError::NoSeatbelt,
        Failure::Unseated(why) | Failure::Profile(why) => SpawnError::Seatbelt(why),
        Failure::Cwd(errno) => SpawnError::Cwd { path: step.cwd.clone(), source: os(errno) },
        Failure::Program(errno) => SpawnError::Exec {
            program: step.program.clone(),
            source: os(errno),
            hint: "is the program there, and may you run it?".into(),
        },
        Failure::Guardian(why) => SpawnError::setup(Stage::Guardian, io::Error::other(why)),
        Failure::Slow => SpawnError::Timeout(START_LIMIT.as_secs()),
    }
}
