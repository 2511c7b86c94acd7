//! Network calls of the server, judged and performed by the guardian.
//!
//! The arguments are read once; what is judged is our copy, and what acts is a duplicate of the server's socket in our own
//! process. A call that is judged is never continued: another thread could change its memory between our look and the
//! kernel's. What goes on is decided by Landlock (see [`crate::linux::trees`] and [`crate::linux::observe`]), or only receives.
//!
//! Architecture invariant: nothing here waits. What the network has not decided yet is kept in [`pending`].

mod address;
mod asking;
pub(crate) mod attempts;
pub(crate) mod caller;
mod dns;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod judge;
mod listed;
mod message;
mod names;
mod pending;
mod receive;
mod relay;
mod resolver;
mod send;
mod stream;
mod stub;
mod unix;

use std::{
    net::SocketAddrV4,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    time::{Duration, Instant},
};

use firedoor_model::{
    limits::Rates,
    network::{AttemptKind, HostRuling, Hosts},
};
use nix::{
    errno::Errno,
    libc,
    poll::{PollFd, PollFlags},
};

use crate::hosts::{caps, policy, public};
use crate::linux::{
    metadata::Writable,
    observe::Observer,
    priorities,
    signals::{self, Sent},
    sys,
    trees::{Answer, Trees},
};
use asking::Asking;
use attempts::Attempts;
use caller::Caller;
use judge::Judge;
use pending::{Pending, Work};

/// How often calls whose callers may have died are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// Why a name in a granted tree is refused.
const PROTECTED: &str =
    "other programs run by themselves what has this name; if it is right: firedoor grants add ENTRY --rw PATH";

/// What is allowed.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// One loopback address.
    Proxy {
        /// Where the proxy listens.
        address: SocketAddrV4,
        /// Where modes and times of files may be changed.
        writable: Vec<PathBuf>,
        /// Where the guardian writes for the server.
        trees: Trees,
    },
    /// What the lists say.
    Listed {
        hosts: Hosts,
        /// How much of it is too much.
        rates: Rates,
        /// Unix sockets that may be connected to.
        sockets: Vec<PathBuf>,
        /// Firedoor's own directories, in which none is.
        own: Vec<PathBuf>,
        /// Directories in which the server may make sockets of its own, and change modes and times of files.
        writable: Vec<PathBuf>,
        /// The same, and where the guardian writes for the server.
        trees: Trees,
    },
}

/// What a supervisor has to do.
pub(crate) struct Duty {
    /// What is allowed.
    pub reach: Reach,
    /// Who writes down what is done, if that is wanted.
    pub observer: Option<Observer>,
}

/// What a supervisor needs before there is a filter: made while the server confines itself.
pub(crate) struct Prepared {
    observer: Option<Observer>,
    judge: Judge,
    files: Writable,
    trees: Trees,
}

/// The guardian's end of one filter.
pub(crate) struct Supervisor {
    listener: OwnedFd,
    observer: Option<Observer>,
    judge: Judge,
    files: Writable,
    trees: Trees,
    pending: Pending,
}

/// What becomes of a call.
enum Outcome {
    /// The caller does it itself, as it could without us: receiving is never refused, nor what a process sends itself, and
    /// about files Landlock decides. Nor is what a process does to its own tree's priorities.
    Unjudged,
    /// It returns this.
    Done(i64),
    /// Its caller waits until the network has decided.
    Later(Work),
    /// It returns this file.
    File { file: OwnedFd, close_on_exec: bool },
}

impl Prepared {
    pub fn new(Duty { reach, observer }: Duty, attempts: OwnedFd) -> nix::Result<Self> {
        let errno = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO));
        let journal = observer.as_ref().map(Observer::for_connections).transpose().map_err(errno)?;
        let (Reach::Proxy { writable, trees, .. } | Reach::Listed { writable, trees, .. }) = &reach;
        let (files, trees) = (Writable::new(writable), trees.clone());
        let judge = Judge::new(reach, Attempts::new(attempts, journal))?;
        Ok(Self { observer, judge, files, trees })
    }
}

impl Supervisor {
    pub fn new(listener: OwnedFd, Prepared { observer, judge, files, trees }: Prepared) -> Self {
        sys::take_turns(listener.as_fd());
        Self { listener, observer, judge, files, trees, pending: Pending::default() }
    }

    /// Adds what is to be watched.
    pub fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let input = |fd: BorrowedFd<'a>| PollFd::new(fd, PollFlags::POLLIN);
        fds.push(input(self.listener.as_fd()));
        fds.extend(self.judge.watched().map(input));
        fds.extend(self.pending.watched().map(|fd| PollFd::new(fd, PollFlags::POLLOUT)));
        fds.extend(self.asking().into_iter().flat_map(Asking::watched).map(|(fd, flags)| PollFd::new(fd, flags)));
    }

    /// Whether only [`Self::listener`] and [`Self::watched_always`] have anything to say, and no time has to pass for anything.
    pub fn is_quiet(&self) -> bool {
        self.patience().is_none() && self.asking().is_none_or(|asking| asking.watched().next().is_none())
    }

    /// Readable when there is a call.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// What is watched besides for as long as it exists, while [`Self::is_quiet`].
    pub fn watched_always(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.judge.watched()
    }

    fn asking(&self) -> Option<&Asking> {
        self.judge.listed.as_ref().and_then(|listed| listed.asking.as_ref())
    }

    /// Does what was answered to a question about a connection. Not between [`Self::watch`] and [`Self::act`].
    pub fn rule(&mut self, ruling: HostRuling) {
        self.judge.rule(ruling);
    }

    /// Reports the open questions once more.
    pub fn ask_again(&self) {
        if let Some(asking) = self.asking() {
            asking.ask_again(&self.judge.attempts);
        }
    }

    /// Refuses what waits for an answer. Not between [`Self::watch`] and [`Self::act`].
    pub fn refuse_open(&mut self) {
        if let Some(asking) = self.judge.listed.as_mut().and_then(|listed| listed.asking.as_mut()) {
            asking.refuse_open(&self.judge.attempts, Instant::now());
        }
    }

    /// After this long [`Self::act`] is wanted in any case.
    pub fn patience(&self) -> Option<Duration> {
        let unsettled = !self.pending.is_empty() || !self.judge.is_idle();
        (unsettled || self.asking().is_some_and(Asking::is_unsettled)).then_some(SWEEP)
    }

    /// Goes on with whatever is ready, in the order of [`Self::watch`]. `false` when no process with the filter is left.
    pub fn act(&mut self, ready: &[PollFlags]) -> bool {
        let (calls, rest) = match ready.split_first() {
            Some((calls, rest)) => (*calls, rest),
            None => (PollFlags::empty(), ready),
        };
        let own = self.judge.watched().count();
        let listener = self.listener.as_fd();
        let (calls_waiting, relays) =
            rest.get(own..).unwrap_or_default().split_at_checked(self.pending.watched().count()).unwrap_or_default();
        self.pending.advance(listener, calls_waiting);
        if let Some(listed) = &mut self.judge.listed
            && let Some(asking) = &mut listed.asking
        {
            asking.advance(relays, &mut listed.caps, &mut self.judge.attempts);
            asking.sweep(&self.judge.attempts, SWEEP);
        }
        if rest.iter().take(own).any(|r| !r.is_empty()) || !self.judge.is_idle() {
            self.judge.serve_names();
        }
        if calls.contains(PollFlags::POLLIN) {
            self.serve();
            return true;
        }
        calls.is_empty()
    }

    /// Takes one call and answers it, or keeps it until the network has decided.
    fn serve(&mut self) {
        // Without a call: its process was killed before we looked.
        let Ok(call) = sys::notification(self.listener.as_fd()) else { return };
        if let Some(observer) = &mut self.observer {
            observer.look(self.listener.as_fd(), &call);
            if observer.only_logs(&call) {
                return leave(self.listener.as_fd(), call.id);
            }
        }
        let decided = self.decide(&call);
        let listener = self.listener.as_fd();
        let result = match decided {
            Ok(Outcome::Later(work)) => match self.pending.keep(listener, call.id, work) {
                Ok(()) => return,
                Err(errno) => Err(errno),
            },
            Ok(Outcome::File { file, close_on_exec }) => {
                match sys::answer_with_file(listener, call.id, file.as_fd(), close_on_exec) {
                    Ok(()) => return,
                    // Its table of descriptors may be full.
                    Err(errno) => Err(errno),
                }
            }
            Ok(Outcome::Done(value)) => Ok(value),
            Ok(Outcome::Unjudged) => return leave(listener, call.id),
            Err(errno) => Err(errno),
        };
        answer(listener, call.id, result);
    }

    fn decide(&mut self, call: &libc::seccomp_notif) -> nix::Result<Outcome> {
        let caller = Caller::of(self.listener.as_fd(), call)?;
        let [a0, a1, a2, a3, a4, a5] = call.data.args;
        // The kernel takes these as `int` or `unsigned int`.
        let int = |n: u64| ((n & 0xffff_ffff) as u32).cast_signed();
        let number = i64::from(call.data.nr);
        let args = call.data.args;
        let changed = self.files.change(&self.trees, &caller, number, args);
        if let Some(answer) = changed.or_else(|| self.trees.act(&caller, number, args)) {
            return match answer? {
                Answer::Done => Ok(Outcome::Done(0)),
                Answer::File { file, close_on_exec } => Ok(Outcome::File { file, close_on_exec }),
                Answer::Kernel => Ok(Outcome::Unjudged),
                Answer::Protected(path) => {
                    Err(self.judge.refuse(&caller, AttemptKind::File, &path.to_string_lossy(), PROTECTED))
                }
            };
        }
        if let Some(sent) = signals::send(&caller, number, call.data.args) {
            return sent.map(|sent| match sent {
                Sent::Here => Outcome::Done(0),
                Sent::ByCaller => Outcome::Unjudged,
            });
        }
        if let Some(allowed) = priorities::judge(&caller, number, args) {
            return allowed.map(|()| Outcome::Unjudged);
        }
        if matches!(self.judge.reach, Reach::Proxy { .. }) && number != libc::SYS_connect {
            return Err(Errno::EPERM);
        }
        let fd = int(a0);
        match number {
            libc::SYS_connect => self.judge.connect(&caller, fd, a1, int(a2)),
            libc::SYS_bind => self.judge.bind(&caller, fd, a1, int(a2)),
            libc::SYS_listen => self.judge.listen(&caller, fd, int(a1)),
            libc::SYS_sendto => {
                let length = usize::try_from(a2).map_err(|_| Errno::EINVAL)?;
                self.judge.send_to(caller, fd, (a1, length), int(a3), (a4, int(a5)))
            }
            libc::SYS_sendmsg => self.judge.send_message(caller, fd, a1, int(a2)),
            libc::SYS_sendmmsg => self.judge.send_messages(caller, fd, (a1, int(a2)), int(a3)),
            libc::SYS_recvfrom => {
                let length = usize::try_from(a2).map_err(|_| Errno::EINVAL)?;
                self.judge.receive_from(&caller, fd, (a1, length), int(a3), (a4, a5))
            }
            libc::SYS_recvmsg => self.judge.receive_message(&caller, fd, a1, int(a2)),
            _ => Err(Errno::EPERM),
        }
    }
}

/// Lets a call go on that is not decided here.
fn leave(listener: BorrowedFd<'_>, id: u64) {
    while sys::let_go_on(listener, id) == Err(Errno::EINTR) {}
}

/// Answers a call. `ENOENT` means that the caller was killed meanwhile, so nobody is left to be answered.
fn answer(listener: BorrowedFd<'_>, id: u64, result: nix::Result<i64>) {
    while sys::answer(listener, id, result) == Err(Errno::EINTR) {}
}
