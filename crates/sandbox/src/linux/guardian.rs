//! The guardian: a small process between caller and server that leaves nothing alive.
//!
//! It has a session of its own, so that no terminal or group signal meant for the client reaches it; it is the reaper of
//! every orphan below it; and it holds a channel to the caller, whose end of file, whatever the reason, means: kill
//! everything. It holds none of the server's descriptors, and one thread does everything but look names up.
//!
//! Architecture invariant: it never waits for anything but its descriptors, so a hang-up is always noticed.

mod start;

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
    time::Duration,
};

use firedoor_model::{limits::Limits, network::Attempt};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        signal::Signal,
        signalfd::SignalFd,
    },
    unistd::Pid,
};

use crate::linux::{
    control::{self, Failure, News, Order, Place, Progress},
    machine::Machine,
    network::{Duty, Prepared, Supervisor, attempts},
    quota::{Found, Keeper},
    reap,
    server::{Newcomer, Plan},
    sys,
};
use crate::{error::Stage, exit::Exit, level::Quota, notice::Notice};
use start::{Started, io_errno, set_up, start};

/// Descriptors that it may have open.
pub(crate) const DESCRIPTORS: usize = 960;

/// Runs the guardian in this freshly forked process. Returns to nobody.
pub(crate) fn become_guardian(
    plan: &Plan<'_>,
    duty: Option<Duty>,
    newcomer: Newcomer,
    control: OwnedFd,
    attempts: OwnedFd,
) -> ! {
    let end = || {
        let setup = |errno: Errno| Failure { at: Place::Stage(Stage::Guardian), errno: errno as i32 };
        let news = match set_up(&newcomer, &control, &attempts, duty.as_ref()).map_err(setup) {
            Ok(signals) => match start(plan, newcomer) {
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
    /// What will judge, until the listener is there.
    prepared: Option<nix::Result<Prepared>>,
    supervisor: Option<Supervisor>,
    judged: bool,
    /// Until the program runs.
    progress: Option<OwnedFd>,
    executing: bool,
    skipped: Vec<u32>,
    signals: SignalFd,
    channels: Channels<'a>,
    /// What is watched while nothing but calls is going on, once that is.
    quiet: Quiet,
    /// What the caller said about connections, until the supervisor has dealt with what it watched.
    about_connections: Vec<Order>,
}

/// What is watched while nothing but calls is going on.
enum Quiet {
    NotYet,
    Watched(Epoll),
    /// It cannot be had: then `poll` does.
    Never,
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
            prepared: network.map(|(duty, attempts)| Prepared::new(duty, attempts)),
            supervisor: None,
            judged: true,
            progress: Some(started.progress),
            executing: false,
            skipped: Vec::new(),
            signals,
            channels,
            quiet: Quiet::NotYet,
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

    /// Waits as long as nothing but calls is going on, which is nearly always: one at a time, without telling the kernel anew what
    /// is watched, which takes longer than many a call. `None` when something else is going on, too.
    fn wait_quietly(&mut self) -> nix::Result<Option<Ready>> {
        const OTHER: u64 = 0;
        const CALL: u64 = 1;
        let (None, Some(supervisor)) = (&self.progress, &self.supervisor) else { return Ok(None) };
        if !supervisor.is_quiet() {
            return Ok(None);
        }
        if matches!(self.quiet, Quiet::NotYet) {
            let watched = || {
                let quiet = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
                let add = |fd: BorrowedFd<'_>, flags, what| quiet.add(fd, EpollEvent::new(flags, what));
                add(supervisor.listener(), EpollFlags::EPOLLIN, CALL)?;
                let own = [self.channels.control.as_fd(), self.signals.as_fd()];
                for fd in own.into_iter().chain(supervisor.watched_always()) {
                    add(fd, EpollFlags::EPOLLIN, OTHER)?;
                }
                for fd in self.keeper.watched() {
                    add(fd, EpollFlags::EPOLLPRI, OTHER)?;
                }
                nix::Result::Ok(quiet)
            };
            // What a user may watch so is limited, and others may have used it up (`fs.epoll.max_user_watches`).
            self.quiet = watched().map_or(Quiet::Never, Quiet::Watched);
        }
        let Quiet::Watched(quiet) = &self.quiet else { return Ok(None) };
        let timeout = match millis(self.keeper.patience()) {
            None => EpollTimeout::NONE,
            Some(millis) => EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::MAX),
        };
        let mut events = [EpollEvent::empty(); 2];
        match quiet.wait(&mut events, timeout) {
            Ok(0) | Err(Errno::EINTR) => Ok(Some(Ready::default())),
            Ok(1) if events[0].data() == CALL && events[0].events() == EpollFlags::EPOLLIN => {
                Ok(Some(Ready { network: vec![PollFlags::POLLIN], ..Ready::default() }))
            }
            // Seldom, and `poll` says what it is.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn wait(&mut self) -> nix::Result<Ready> {
        if let Some(ready) = self.wait_quietly()? {
            return Ok(ready);
        }
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
        let timeout = millis(patience)
            .map_or(PollTimeout::NONE, |millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
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
                match reap::readable(progress, Duration::ZERO) {
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
            Ok(Some(Progress::Trial(fd))) => {
                if control::send(progress, &take(self.server, fd, self.machine).is_ok()).is_err() {
                    return lost();
                }
            }
            Ok(Some(Progress::Granted { skipped, in_group })) => {
                self.skipped = skipped;
                if !in_group && self.keeper.quota() == Quota::Group {
                    // What was made is empty, and goes.
                    let made = std::mem::replace(&mut self.keeper, Keeper::new(self.limits, None));
                    made.end(self.server);
                }
            }
            Ok(Some(Progress::Listener(fd))) => {
                let Some(prepared) = self.prepared.take() else { return lost() };
                match prepared.and_then(|prepared| Ok((take(self.server, fd, self.machine)?, prepared))) {
                    Ok((listener, prepared)) => self.supervisor = Some(Supervisor::new(listener, prepared)),
                    Err(errno) => {
                        return Next::End(Some(Failure { at: Place::Stage(Stage::Listener), errno: errno as i32 }));
                    }
                }
                if control::send(progress, &true).is_err() {
                    return lost();
                }
            }
            Ok(Some(Progress::Offline)) => {
                self.judged = false;
                self.prepared = None;
            }
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

/// Whole milliseconds, and never too early.
fn millis(patience: Option<Duration>) -> Option<u128> {
    patience.map(|p| if p.is_zero() { 0 } else { p.as_millis() + 1 })
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
