//! How the guardian comes to be one, and starts the server.

use std::{
    fs::OpenOptions,
    os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd},
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{self, ForkResult, Pid},
};

use super::DESCRIPTORS;
use crate::error::Stage;
use crate::linux::{
    control::{self, Failure, Place},
    network::Duty,
    quota::{Keeper, group::Group},
    server::{Newcomer, Plan, become_server},
    sys,
};

/// Its name in process lists.
const NAME: &std::ffi::CStr = c"firedoor-guard";

/// Prepares this process: its signals, its session, its descriptors.
pub(super) fn set_up(
    Newcomer { stdio, domain, opened }: &Newcomer,
    control: &OwnedFd,
    attempts: &OwnedFd,
    duty: Option<&Duty>,
) -> nix::Result<SignalFd> {
    // Somebody may have stopped us when the caller dies: then we go on, and see that it has (prctl(2), PR_SET_PDEATHSIG).
    prctl::set_pdeathsig(Signal::SIGCONT)?;
    // Blocked before anything else: from here on no signal but SIGKILL ends us without our tree.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
    // A caller that ignores SIGCHLD would make the kernel reap for us, and statuses would be lost.
    sys::default_signals();
    unistd::setsid()?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(NAME)?;
    fill_stdio()?;
    // 0 and 1 are replaced once the server has its own; until then they keep others off their numbers.
    let mut kept: Vec<RawFd> = [&stdio.stdin, &stdio.stdout, &stdio.stderr, &domain.ruleset, opened, control, attempts]
        .map(AsRawFd::as_raw_fd)
        .to_vec();
    kept.extend([0, 1, 2]);
    kept.extend(duty.and_then(|d| d.observer.as_ref()).map(|o| o.descriptor().as_raw_fd()));
    sys::close_all_but(&mut kept)?;
    let mut watched = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        watched.add(signal);
    }
    SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// The server's process, which reports on its way.
pub(super) struct Started {
    pub server: Pid,
    pub progress: OwnedFd,
    /// Made for it, where one could be made.
    pub group: Option<Group>,
}

/// Forks the server, and lets go of its descriptors.
pub(super) fn start(plan: &Plan<'_>, newcomer: Newcomer) -> Result<Started, Failure> {
    let failed = |stage| move |e: Errno| Failure { at: Place::Stage(stage), errno: e as i32 };
    let (ours, theirs) = control::pair().map_err(failed(Stage::Guardian))?;
    let guardian = Pid::this();
    // Where none can be made, the guardian counts.
    let group =
        (plan.machine.groups && Keeper::wants_group(plan.limits)).then(|| Group::make(plan.limits).ok()).flatten();
    let entrance = group.as_ref().and_then(|g| g.entrance().ok());
    match sys::fork().map_err(failed(Stage::Fork))? {
        ForkResult::Child => {
            drop(ours);
            become_server(plan, newcomer, guardian, theirs, entrance)
        }
        ForkResult::Parent { child } => {
            let Newcomer { domain, stdio, opened } = newcomer;
            drop((stdio, opened, theirs));
            // Should it have died meanwhile, that is found out soon.
            let _ = control::send(&ours, &domain.open_for(plan.grants, child));
            drop(domain);
            // Ours may be the client's, or have been closed above. Standard error stays for our own last words.
            occupy_stdio().map_err(failed(Stage::Guardian))?;
            limit_descriptors().map_err(failed(Stage::Guardian))?;
            // What is done in the server's stead must not be more than the server could do, which has none either.
            sys::drop_capabilities().map_err(failed(Stage::Capabilities))?;
            Ok(Started { server: child, progress: ours, group })
        }
    }
}

/// Descriptors that the server passes on count for the whole user, against the limit of whoever sends them, which is us
/// (`too_many_unix_fds` in net/core/scm.c). Below the usual limit of 1024, they keep no other program from passing its own.
fn limit_descriptors() -> nix::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let most = u64::try_from(DESCRIPTORS).unwrap_or(soft);
    setrlimit(Resource::RLIMIT_NOFILE, most.min(hard), hard)
}

pub(super) fn io_errno(e: &std::io::Error) -> Errno {
    Errno::from_raw(e.raw_os_error().unwrap_or(0))
}

fn null() -> nix::Result<OwnedFd> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    null.map(OwnedFd::from).map_err(|e| io_errno(&e))
}

/// Opens `/dev/null` on whichever of 0, 1 and 2 is closed.
fn fill_stdio() -> nix::Result<()> {
    loop {
        let fd = null()?;
        if fd.as_raw_fd() > 2 {
            return Ok(());
        }
        let _ = fd.into_raw_fd();
    }
}

fn occupy_stdio() -> nix::Result<()> {
    fill_stdio()?;
    let null = null()?;
    unistd::dup2_stdin(&null)?;
    unistd::dup2_stdout(&null)
}
