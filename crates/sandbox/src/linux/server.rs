//! The server's process between `fork` and `execve`.

use std::{
    ffi::CString,
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd},
};

use firedoor_model::{launch::Grant, limits::Limits};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::{
        prctl,
        signal::{SigSet, Signal},
    },
    unistd::{self, Pid},
};

use crate::error::Stage;
use crate::linux::{
    control::{self, Failure, Place, Progress},
    filesystem::{Domain, Opened, Version},
    limits,
    machine::Machine,
    seccomp::{self, Arch, Listener, Program, Scope},
    sys::{self, Vector},
};

/// Lowest descriptor for what must not be in the way of 0, 1 and 2.
const ABOVE_STDIO: RawFd = 10;

/// Exit code of a server that never became one; nobody sees it, the reason goes to the guardian.
const NOT_STARTED: i32 = 127;

/// Everything decided before the first `fork`.
pub(crate) struct Plan<'a> {
    pub program: CString,
    pub args: Vector,
    pub env: Vector,
    pub cwd: CString,
    pub grants: &'a [Grant],
    pub limits: &'a Limits,
    pub machine: Machine,
    pub landlock: Version,
    pub filter: Program,
    pub listener: Listener,
    /// What is compiled and installed instead where the listener cannot be had. Absent: then nothing runs.
    pub fallback: Option<(Arch, Scope)>,
}

/// Standard input, output and error for the server.
pub(crate) struct Stdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// What the server's process begins with.
pub(crate) struct Newcomer {
    pub stdio: Stdio,
    /// What it enters. The caller adds to it meanwhile.
    pub domain: Domain,
    /// Where the caller says what became of the grants, a [`Result`] of [`Opened`].
    pub opened: OwnedFd,
}

/// What is left open besides standard input, output and error. All of it closes when the program is executed.
struct Channels {
    progress: OwnedFd,
    domain: Domain,
    opened: OwnedFd,
}

/// Confines this process and becomes the server. Reports why it could not.
pub(crate) fn become_server(
    plan: &Plan<'_>,
    newcomer: Newcomer,
    guardian: Pid,
    progress: OwnedFd,
    entrance: Option<OwnedFd>,
) -> ! {
    // Even a panic must not return into the guardian's stack.
    let end = || match prepare(plan, newcomer, guardian, progress, entrance) {
        Err((failure, progress)) => {
            let _ = control::send(&progress, &Progress::Failed(failure));
        }
        Ok(never) => match never {},
    };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(end));
    sys::exit_now(NOT_STARTED)
}

enum Never {}

fn prepare(
    plan: &Plan<'_>,
    newcomer: Newcomer,
    guardian: Pid,
    progress: OwnedFd,
    entrance: Option<OwnedFd>,
) -> Result<Never, (Failure, OwnedFd)> {
    // "0" means whoever writes (cgroups(7)). Closed below, with everything else.
    let in_group = entrance.as_ref().is_some_and(|e| unistd::write(e, b"0") == Ok(1));
    let _ = entrance.map(IntoRawFd::into_raw_fd);
    let Channels { progress, domain, opened } = match place(newcomer, progress) {
        Ok(channels) => channels,
        Err((errno, progress)) => return Err((stage(Stage::Descriptors)(errno), progress)),
    };
    match confine_and_execute(plan, guardian, progress.as_fd(), (domain, opened), in_group) {
        Ok(never) => Ok(never),
        Err(failure) => Err((failure, progress)),
    }
}

fn stage(stage: Stage) -> impl Fn(Errno) -> Failure {
    move |errno| Failure { at: Place::Stage(stage), errno: errno as i32 }
}

/// Leaves 0, 1, 2 and the channels (close-on-exec) open, nothing else.
fn place(Newcomer { stdio, domain, opened }: Newcomer, progress: OwnedFd) -> Result<Channels, (Errno, OwnedFd)> {
    let placed = || -> nix::Result<()> {
        let lift = |fd: BorrowedFd<'_>| sys::duplicate_above(fd, ABOVE_STDIO);
        let stdio = [lift(stdio.stdin.as_fd())?, lift(stdio.stdout.as_fd())?, lift(stdio.stderr.as_fd())?];
        let [stdin, stdout, stderr] = &stdio;
        unistd::dup2_stdin(stdin)?;
        unistd::dup2_stdout(stdout)?;
        unistd::dup2_stderr(stderr)?;
        // The originals are closed by number below.
        let _ = stdio.map(IntoRawFd::into_raw_fd);
        Ok(())
    };
    if let Err(e) = placed() {
        return Err((e, progress));
    }
    let _ = (stdio.stdin.into_raw_fd(), stdio.stdout.into_raw_fd(), stdio.stderr.into_raw_fd());
    let mut kept = [0, 1, 2, progress.as_raw_fd(), domain.ruleset.as_raw_fd(), opened.as_raw_fd()];
    match sys::close_all_but(&mut kept) {
        Ok(()) => Ok(Channels { progress, domain, opened }),
        Err(e) => Err((e, progress)),
    }
}

fn confine_and_execute(
    plan: &Plan<'_>,
    guardian: Pid,
    progress: BorrowedFd<'_>,
    (domain, opened): (Domain, OwnedFd),
    in_group: bool,
) -> Result<Never, Failure> {
    let process = stage(Stage::Process);
    let own = Pid::from_raw(0);
    unistd::setpgid(own, own).map_err(&process)?;
    // What signals do is already what it is by default: the guardian, whose fork this is, has seen to that.
    SigSet::empty().thread_set_mask().map_err(&process)?;
    limits::set(plan.limits).map_err(stage(Stage::Limits))?;
    unistd::chdir(plan.cwd.as_c_str()).map_err(|e| Failure { at: Place::Cwd, errno: e as i32 })?;
    for fd in [0, 1, 2] {
        clear_close_on_exec(fd).map_err(stage(Stage::Descriptors))?;
    }

    let mut opened = match control::receive::<Result<Opened, Failure>>(&opened) {
        Ok(Some(opened)) => opened?,
        // The caller is gone.
        Ok(None) | Err(_) => return Err(stage(Stage::Guardian)(Errno::EPIPE)),
    };
    let give_up = || {
        sys::drop_capabilities().map_err(stage(Stage::Capabilities))?;
        // After the last change of credentials, which would clear it (prctl(2), PR_SET_PDEATHSIG).
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(&process)?;
        if unistd::getppid() != guardian {
            return Err(process(Errno::ESRCH));
        }
        // From here on this process is to the guardian what it will be: so it is told to try now, while we go on.
        if plan.fallback.is_some() { say(progress, &Progress::Trial(progress.as_raw_fd())) } else { Ok(()) }
    };
    // Without its capabilities root may be kept from what another user granted.
    let last = unistd::geteuid().is_root();
    if !last {
        give_up()?;
    }
    match control::receive::<Vec<u32>>(progress) {
        Ok(Some(done)) => opened.left.retain(|index| !done.contains(index)),
        Ok(None) | Err(_) => return Err(stage(Stage::Guardian)(Errno::EPIPE)),
    }
    let skipped = domain.open_rest(plan.grants, opened)?;
    if last {
        give_up()?;
    }
    say(progress, &Progress::Granted { skipped, in_group })?;
    prctl::set_no_new_privs().map_err(stage(Stage::NoNewPrivileges))?;
    let failed = stage(Stage::Filter);
    let supervised = || match plan.machine.notification {
        true => seccomp::install(&plan.filter, Listener::Wanted),
        false => Err(Errno::EBUSY),
    };
    let listener = match (plan.listener, &plan.fallback) {
        (Listener::Wanted, Some((arch, scope))) => {
            let without = || {
                let filter = seccomp::compile(*arch, *scope).map_err(|_| Errno::E2BIG)?;
                seccomp::install(&filter, Listener::None)
            };
            match may_be_supervised(progress)? {
                true => supervised().or_else(|_| without()),
                false => without(),
            }
        }
        (Listener::Wanted, None) => supervised(),
        (Listener::None, _) => seccomp::install(&plan.filter, Listener::None),
    };
    let listener = listener.map_err(failed)?;
    match &listener {
        None if plan.listener == Listener::Wanted => say(progress, &Progress::Offline)?,
        None => {}
        Some(listener) => say(progress, &Progress::Listener(listener.as_raw_fd()))?,
    }
    domain.enter()?;
    // The guardian answers that it has taken its duplicate; an end of file means that it could not.
    if listener.is_some() && !matches!(control::receive::<bool>(progress), Ok(Some(true))) {
        return Err(stage(Stage::Listener)(Errno::EPIPE));
    }
    say(progress, &Progress::Executing)?;
    let errno = sys::execute(&plan.program, &plan.args, &plan.env);
    Err(Failure { at: Place::Exec, errno: errno as i32 })
}

/// Whether the guardian may look into this process, which it has tried. To be known before the filter is there: a call that
/// nobody answers would fail for good.
fn may_be_supervised(progress: BorrowedFd<'_>) -> Result<bool, Failure> {
    match control::receive(progress) {
        Ok(Some(may)) => Ok(may),
        Ok(None) | Err(_) => Err(stage(Stage::Listener)(Errno::EPIPE)),
    }
}

fn say(progress: BorrowedFd<'_>, message: &Progress) -> Result<(), Failure> {
    control::send(progress, message).map_err(|e| {
        let errno = e.raw_os_error().unwrap_or(Errno::EPIPE as i32);
        Failure { at: Place::Stage(Stage::Guardian), errno }
    })
}

/// `dup2` leaves the flag off, except when both numbers are equal.
fn clear_close_on_exec(fd: RawFd) -> nix::Result<()> {
    fcntl(sys::standard(fd), FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
}
