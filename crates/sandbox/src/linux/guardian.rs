//! The guardian: a small process between caller and server that leaves nothing alive.
//!
//! It has a session of its own, so that no terminal or group signal meant for the client reaches it; it is the reaper of
//! every orphan below it; and it holds a channel to the caller, whose end of file, whatever the reason, means: kill
//! everything. It holds none of the server's descriptors, and one thread does everything but look names up.
//!
//! Architecture invariant: it never waits for anything but its descriptors, so a hang-up is always noticed.

use std::{
    fs::OpenOptions,
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd},
};

use firedoor_model::{limits::Limits, network::Attempt};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{self, ForkResult, Pid},
};

use crate::linux::{
    control::{self, Failure, News, Order, Place, Progress},
    machine::Machine,
    network::{Duty, Supervisor, attempts},
    quota::{Found, Keeper, group::Group},
    reap,
    server::{Plan, Stdio, become_server},
    sys,
};
use crate::{error::Stage, exit::Exit, level::Quota, notice::Notice};

/// Its name in process lists.
const NAME: &std::ffi::CStr = c"firedoor-guard";

/// Descriptors that it may have open.
pub(crate) const DESCRIPTORS: usize = 960;

/// Runs the guardian in this freshly forked process. Returns to nobody.
pub(crate) fn become_guardian(
    plan: &Plan<'_>,
    duty: Option<Duty>,
    stdio: Stdio,
    control: OwnedFd,
    attempts: OwnedFd,
) -> ! {
    let end = || {
        let setup = |errno: Errno| Failure { at: Place::Stage(Stage::Guardian), errno: errno as i32 };
        let news = match set_up(&stdio, &control, &attempts, duty.as_ref()).map_err(setup) {
            Ok(signals) => match start(plan, stdio) {
                Ok(started) => {
                    // Ours stays open to the end, so that it hangs up only then.
                    match duty.map(|duty| Ok((duty, attempts.try_clone()?))).transpose() {
                        Ok(network) => {
                            let channels = Channels { control: &control, attempts: &attempts };
                            Guardian::new(started, plan, network, signals, channels).watch()
                        }
                        Err(e) => {
                            reap::kill_everything(|_, _| {});
                            News::Failed(setup(io_errno(&e)))
                        }
                    }
                }
                Err(failure) => News::Failed(failure),
            },
            Err(failure) => News::Failed(failure),
        };
        let _ = control::send(&control, &news);
    };
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(end)).is_err() {
        // The hook has written to stderr; what is left to do is what we are for.
        reap::kill_everything(|_, _| {});
    }
    sys::exit_now(0)
}

fn set_up(stdio: &Stdio, control: &OwnedFd, attempts: &OwnedFd, duty: Option<&Duty>) -> nix::Result<SignalFd> {
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
    let mut kept: Vec<RawFd> =
        [&stdio.stdin, &stdio.stdout, &stdio.stderr, control, attempts].map(AsRawFd::as_raw_fd).to_vec();
    kept.extend([0, 1, 2]);
    kept.extend(duty.and_then(|d| d.observer.as_ref()).map(|o| o.descriptor().as_raw_fd()));
    close_all_but(&mut kept)?;
    let mut watched = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        watched.add(signal);
    }
    SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Closes every descriptor but these.
fn close_all_but(kept: &mut [RawFd]) -> nix::Result<()> {
    kept.sort_unstable();
    let mut next = 0;
    for fd in kept.iter().map(|fd| fd.unsigned_abs()) {
        if fd > next {
            sys::close_range(next, fd - 1)?;
        }
        next = next.max(fd + 1);
    }
    sys::close_range(next, u32::MAX)
}

/// The server's process, which reports on its way.
struct Started {
    server: Pid,
    progress: OwnedFd,
    /// Made for it, where one could be made.
    group: Option<Group>,
}

/// Forks the server, and lets go of its descriptors.
fn start(plan: &Plan<'_>, stdio: Stdio) -> Result<Started, Failure> {
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
            become_server(plan, stdio, guardian, theirs, entrance)
        }
        ForkResult::Parent { child } => {
            drop((stdio, theirs));
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

fn io_errno(e: &std::io::Error) -> Errno {
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

/// What to do next.
enum Next {
    GoOn,
    /// Kill everything and say this.
    End(Option<Failure>),
}

/// To the caller.
#[derive(Clone, Copy)]
struct Channels<'a> {
    control: &'a OwnedFd,
    attempts: &'a OwnedFd,
}

impl Channels<'_> {
    fn tell(&self, attempt: Attempt) {
        attempts::send(self.attempts, &Notice::Attempted(attempt));
    }
}

struct Guardian<'a> {
    server: Pid,
    keeper: Keeper,
    /// Of the whole tree.
    limits: &'a Limits,
    machine: Machine,
    exit: Option<Exit>,
    /// What is allowed, until the listener is there.
    network: Option<(Duty, OwnedFd)>,
    supervisor: Option<Supervisor>,
    judged: bool,
    /// Until the program runs.
    progress: Option<OwnedFd>,
    executing: bool,
    skipped: Vec<u32>,
    signals: SignalFd,
    channels: Channels<'a>,
    /// What the caller said about connections, until the supervisor has dealt with what it watched.
    about_connections: Vec<Order>,
}

/// Which descriptors have something for us.
#[derive(Default)]
struct Ready {
    control: bool,
    signals: bool,
    progress: bool,
    limits: bool,
    /// Of the supervisor's descriptors, in its order.
    network: Vec<PollFlags>,
}

impl<'a> Guardian<'a> {
    fn new(
        started: Started,
        plan: &Plan<'a>,
        network: Option<(Duty, OwnedFd)>,
        signals: SignalFd,
        channels: Channels<'a>,
    ) -> Self {
        Self {
            server: started.server,
            keeper: Keeper::new(plan.limits, started.group),
            limits: plan.limits,
            machine: plan.machine,
            exit: None,
            network,
            supervisor: None,
            judged: true,
            progress: Some(started.progress),
            executing: false,
            skipped: Vec::new(),
            signals,
            channels,
            about_connections: Vec::new(),
        }
    }

    /// Watches until the server has ended or is to end, kills what is left, and returns how it ended.
    fn watch(mut self) -> News {
        let failure = loop {
            match self.turn() {
                Ok(Next::GoOn) => {}
                Ok(Next::End(failure)) => break failure,
                Err(errno) => break Some(Failure { at: Place::Stage(Stage::Guardian), errno: errno as i32 }),
            }
        };
        // It may hold descriptors of the server's until we have none left to look for its processes with.
        self.supervisor = None;
        self.keeper.kill();
        reap::kill_everything(|pid, exit| {
            if pid == self.server {
                self.exit = Some(exit);
            }
        });
        if let Some(attempt) = self.keeper.end(self.server) {
            self.channels.tell(attempt);
        }
        match (failure, self.progress, self.exit) {
            (Some(failure), Some(_), _) => News::Failed(failure),
            (_, _, Some(Exit::Code(code))) => News::Exited { code, by_signal: false },
            (_, _, Some(Exit::Signal(code))) => News::Exited { code, by_signal: true },
            (_, _, None) => News::Exited { code: Signal::SIGKILL as i32, by_signal: true },
        }
    }

    fn turn(&mut self) -> nix::Result<Next> {
        let ready = self.wait()?;
        // Progress first: a server that starts and ends at once has started.
        if ready.progress
            && let Next::End(failure) = self.hear_progress()
        {
            return Ok(Next::End(failure));
        }
        if ready.control
            && let Next::End(failure) = self.obey()
        {
            return Ok(Next::End(failure));
        }
        if ready.limits || self.keeper.patience().is_some_and(|p| p.is_zero()) {
            match self.keeper.look(self.server) {
                Found::Fine => {}
                Found::Reached(attempt) => self.channels.tell(attempt),
                Found::Exceeded(attempt) => {
                    self.channels.tell(attempt);
                    return Ok(Next::End(None));
                }
            }
        }
        if let Some(supervisor) = &mut self.supervisor
            && !supervisor.act(&ready.network)
        {
            self.supervisor = None;
        }
        for order in std::mem::take(&mut self.about_connections) {
            match (order, &mut self.supervisor) {
                (Order::Rule(ruling), Some(supervisor)) => supervisor.rule(ruling),
                (Order::AskAgain, Some(supervisor)) => supervisor.ask_again(),
                (Order::RefuseOpen, Some(supervisor)) => supervisor.refuse_open(),
                (Order::Signal(_) | Order::Kill, _) | (_, None) => {}
            }
        }
        if ready.signals { self.hear_signals() } else { Ok(Next::GoOn) }
    }

    fn wait(&self) -> nix::Result<Ready> {
        let mut fds = vec![input(self.channels.control.as_fd()), input(self.signals.as_fd())];
        let progress = self.progress.as_ref().map(|p| {
            fds.push(input(p.as_fd()));
            fds.len() - 1
        });
        let limits = fds.len();
        fds.extend(self.keeper.watched().map(|fd| PollFd::new(fd, PollFlags::POLLPRI)));
        let network = fds.len();
        let patience = self.supervisor.as_ref().and_then(|s| {
            s.watch(&mut fds);
            s.patience()
        });
        let patience = [patience, self.keeper.patience()].into_iter().flatten().min();
        let timeout = patience.map_or(PollTimeout::NONE, |p| {
            // Whole milliseconds, and never too early.
            let millis = if p.is_zero() { 0 } else { p.as_millis() + 1 };
            PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Ready::default()),
            Err(e) => return Err(e),
        }
        let events = |index: usize| fds.get(index).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        let any = |index: usize| !events(index).is_empty();
        Ok(Ready {
            control: any(0),
            signals: any(1),
            progress: progress.is_some_and(any),
            limits: (limits..network).any(any),
            network: (network..fds.len()).map(events).collect(),
        })
    }

    /// The caller's orders. Its end of file, or anything we do not understand, is the order to kill.
    fn obey(&mut self) -> Next {
        match control::receive::<Order>(self.channels.control) {
            Ok(Some(Order::Signal(signal))) => {
                // Not reaped, or we would have ended: the group's number still means this group.
                let _ = sys::signal_group(self.server, signal);
                Next::GoOn
            }
            Ok(Some(order @ (Order::Rule(_) | Order::AskAgain | Order::RefuseOpen))) => {
                self.about_connections.push(order);
                Next::GoOn
            }
            Ok(Some(Order::Kill) | None) | Err(_) => Next::End(None),
        }
    }

    fn hear_signals(&mut self) -> nix::Result<Next> {
        let mut told_to_end = false;
        while let Some(info) = self.signals.read_signal()? {
            told_to_end |= info.ssi_signo != Signal::SIGCHLD as u32;
        }
        let _ = reap::reap_ended(|pid, exit| {
            if pid == self.server {
                self.exit = Some(exit);
            }
        });
        if self.exit.is_some() && self.progress.is_some() {
            // Its last message, if any, was sent before it ended; without one it was killed on the way.
            let lost = Failure { at: Place::Lost, errno: Errno::ECHILD as i32 };
            while let Some(progress) = &self.progress {
                match reap::readable(progress, std::time::Duration::ZERO) {
                    Ok(true) => match self.hear_progress() {
                        Next::GoOn => {}
                        end @ Next::End(_) => return Ok(end),
                    },
                    Ok(false) | Err(_) => return Ok(Next::End(Some(lost))),
                }
            }
        }
        Ok(if told_to_end || self.exit.is_some() { Next::End(None) } else { Next::GoOn })
    }

    /// What the server's process says before it is one.
    fn hear_progress(&mut self) -> Next {
        let Some(progress) = &self.progress else { return Next::GoOn };
        match control::receive::<Progress>(progress) {
            Ok(Some(Progress::Granted { skipped, in_group })) => {
                self.skipped = skipped;
                if !in_group && self.keeper.quota() == Quota::Group {
                    // What was made is empty, and goes.
                    let made = std::mem::replace(&mut self.keeper, Keeper::new(self.limits, None));
                    made.end(self.server);
                }
            }
            Ok(Some(Progress::Trial(fd))) => {
                if control::send(progress, &take(self.server, fd, self.machine).is_ok()).is_err() {
                    return lost();
                }
            }
            Ok(Some(Progress::Listener(fd))) => {
                let Some((duty, attempts)) = self.network.take() else { return lost() };
                match take(self.server, fd, self.machine).and_then(|listener| Supervisor::new(listener, duty, attempts))
                {
                    Ok(supervisor) => self.supervisor = Some(supervisor),
                    Err(errno) => {
                        return Next::End(Some(Failure { at: Place::Stage(Stage::Listener), errno: errno as i32 }));
                    }
                }
                if control::send(progress, &true).is_err() {
                    return lost();
                }
            }
            Ok(Some(Progress::Offline)) => self.judged = false,
            Ok(Some(Progress::Executing)) => self.executing = true,
            Ok(Some(Progress::Failed(failure))) => return Next::End(Some(failure)),
            Ok(None) if self.executing => {
                self.progress = None;
                let started = News::Started {
                    pid: self.server.as_raw(),
                    skipped: std::mem::take(&mut self.skipped),
                    judged: self.judged,
                    quota: self.keeper.quota(),
                };
                if control::send(self.channels.control, &started).is_err() {
                    return Next::End(None);
                }
            }
            Ok(None) | Err(_) => return lost(),
        }
        Next::GoOn
    }
}

fn lost() -> Next {
    Next::End(Some(Failure { at: Place::Lost, errno: Errno::ECHILD as i32 }))
}

fn input(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::POLLIN)
}

/// A descriptor, out of the server's process, which nothing but our own code has run in so far.
fn take(server: Pid, fd: RawFd, machine: Machine) -> nix::Result<OwnedFd> {
    if !machine.descriptors {
        return Err(Errno::EPERM);
    }
    sys::pidfd_getfd(sys::pidfd_open(server)?.as_fd(), fd)
}
