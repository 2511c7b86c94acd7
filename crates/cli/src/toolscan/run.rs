//! One bounded run in the sandbox.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use firedoor_launch::{Context, Plan, Profiles, UserGrants};
use firedoor_model::{
    EntryId,
    launch::LaunchRequest,
    network::{Attempt, AttemptKind},
    observation::{Basis, Record},
    paths::Paths,
};
use firedoor_sandbox::{Exit, Launch, Notice, Stderr, Tree};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

use super::dialogue::Dialogue;
use crate::{failure::Failure, log, observe};

/// How long a program may take to end by itself once nothing more is wanted of it.
const GRACE: Duration = Duration::from_secs(1);
/// How much longer than its time our runtime may take: it counts from when it has compiled the module, and says in words that
/// the time was over.
const RUNTIME_GRACE: Duration = Duration::from_secs(20);

/// What is to be run.
pub struct Job<'a> {
    pub request: LaunchRequest,
    pub profile: Option<&'a str>,
    pub user: &'a UserGrants,
    pub stdin: Stdin<'a>,
    pub timeout: Duration,
    /// It is our runtime, which keeps to the same time.
    pub keeps_time: bool,
    /// Most bytes of each output.
    pub output: usize,
}

/// What it gets to read.
pub enum Stdin<'a> {
    Nothing,
    File(&'a Path),
    /// It is spoken to.
    Mcp,
}

/// What became of it.
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Exit,
    pub duration: Duration,
    /// `time` or `output`.
    pub stopped_by: Option<&'static str>,
    pub sandbox: String,
    pub notes: Vec<String>,
    pub attempts: Vec<Attempt>,
    /// `None` where this machine cannot observe.
    pub record: Option<Record>,
    pub basis: Basis,
}

/// Runs it. Its private directories are new and do not outlive it.
pub fn run(job: &Job<'_>, paths: &Paths) -> Result<Outcome, Failure> {
    let outcome = start_and_watch(job, paths);
    let removed = firedoor_launch::forget(paths, &job.request.entry);
    let outcome = outcome?;
    removed?;
    Ok(outcome)
}

/// A name for one run, so that nothing is left over from another.
pub fn entry() -> Result<EntryId, Failure> {
    let moment = log::now();
    Ok(EntryId::new("firedoor", "scan", &format!("{}-{}", std::process::id(), moment.0))?)
}

fn start_and_watch(job: &Job<'_>, paths: &Paths) -> Result<Outcome, Failure> {
    let (profiles, problems) = Profiles::load(&paths.config.join("profiles"));
    let declared = job.user.env.clone();
    let context = Context {
        profile: job.profile,
        declared_env: Some(&declared),
        identify: false,
        ..Context::new(paths, &profiles, job.user, log::now())
    };
    let Plan::Run(plan) = firedoor_launch::plan(&job.request, &context)? else {
        return Err(Failure::environment(
            "the command would have to be installed first, which needs the engine: install the package, and scan its program",
        ));
    };
    let failed = |e: io::Error| Failure::environment(format!("the command cannot be watched: {e}"));
    let pipe = || io::pipe().map(|(out, end)| (OwnedFd::from(out), OwnedFd::from(end))).map_err(failed);
    let ((out, out_end), (err, err_end)) = (pipe()?, pipe()?);
    let (stdin, dialogue) = match job.stdin {
        Stdin::Nothing => (File::open("/dev/null").map_err(failed)?.into(), None),
        Stdin::File(path) => {
            let cannot = |e| Failure::environment(format!("{}: cannot be read: {e}", path.display()));
            (File::open(path).map_err(cannot)?.into(), None)
        }
        Stdin::Mcp => {
            let (end, ours) = pipe()?;
            (end, Some(Dialogue::new(ours).map_err(failed)?))
        }
    };
    let launch = Launch { step: &plan.step, stdin, stdout: out_end, stderr: Stderr::Fd(err_end), observe: true };
    let started = Instant::now();
    let mut tree = firedoor_sandbox::spawn(launch)?;
    let mut streams = [Stream::new(out, job.output).map_err(failed)?, Stream::new(err, job.output).map_err(failed)?];
    let deadline = started + job.timeout + if job.keeps_time { RUNTIME_GRACE } else { Duration::ZERO };
    let stopped_by = watch(&tree, &mut streams, dialogue, deadline).map_err(failed)?;
    let exit = tree.wait().map_err(failed)?;
    let duration = started.elapsed();
    for stream in &mut streams {
        stream.take().map_err(failed)?;
    }
    let mut attempts = Vec::new();
    while let Some(notice) = tree.next_notice() {
        if let Notice::Attempted(attempt) = notice {
            attempts.push(attempt);
        }
    }
    let record = tree.record().map(|file| observe::record(Some(file))).transpose()?;
    let over = streams.iter().any(|s| s.over);
    let [out, err] = streams;
    let mut notes = plan.notes.clone();
    notes.extend(problems.iter().map(ToString::to_string));
    Ok(Outcome {
        stdout: out.bytes,
        stderr: err.bytes,
        exit,
        duration,
        stopped_by: stopped_by.or(over.then_some("output")),
        sandbox: format!("{:?}", tree.outcome().level).to_lowercase(),
        notes,
        attempts,
        record,
        basis: plan.basis,
    })
}

/// The reading end of an output.
struct Stream {
    file: File,
    bytes: Vec<u8>,
    limit: usize,
    /// There was more.
    over: bool,
    ended: bool,
}

impl Stream {
    fn new(end: OwnedFd, limit: usize) -> io::Result<Self> {
        // The file description of a pipe's reading end is ours alone.
        nix::fcntl::fcntl(&end, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { file: end.into(), bytes: Vec::new(), limit, over: false, ended: false })
    }

    /// Takes what is there.
    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        while !self.ended && !self.over {
            match self.file.read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    let room = self.limit - self.bytes.len();
                    self.bytes.extend(buffer.get(..count.min(room)).unwrap_or_default());
                    self.over = count > room;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Reads until the program has ended, its time is over, or it wrote too much; then nothing of it runs any more.
fn watch(
    tree: &Tree,
    streams: &mut [Stream; 2],
    mut dialogue: Option<Dialogue>,
    mut deadline: Instant,
) -> io::Result<Option<&'static str>> {
    let mut stopped = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if stopped.is_none() && dialogue.as_ref().is_none_or(|d| !d.over()) {
                stopped = Some("time");
            }
            tree.kill()?;
            return Ok(stopped);
        }
        let wait = PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
        let mut fds = vec![PollFd::new(tree.exited_fd(), PollFlags::POLLIN)];
        let open: Vec<_> = streams.iter().filter(|s| !s.ended).collect();
        fds.extend(open.iter().map(|s| PollFd::new(s.file.as_fd(), PollFlags::POLLIN)));
        if let Some(fd) = dialogue.as_ref().and_then(Dialogue::wants_to_write) {
            fds.push(PollFd::new(fd, PollFlags::POLLOUT));
        }
        match poll(&mut fds, wait) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let exited = fds.first().and_then(PollFd::any).unwrap_or(false);
        drop(fds);
        for stream in streams.iter_mut() {
            stream.take()?;
        }
        if exited {
            return Ok(stopped);
        }
        if streams.iter().any(|s| s.over) {
            tree.kill()?;
            return Ok(Some("output"));
        }
        if let (Some(talk), [out, _]) = (&mut dialogue, &*streams) {
            let before = talk.over();
            talk.go_on(&out.bytes)?;
            if talk.over() && !before {
                // It has said everything, and its input has ended: it may end by itself.
                deadline = deadline.min(Instant::now() + GRACE);
            }
        }
    }
}

/// What an attempt is called in a report.
pub fn kind(attempt: AttemptKind) -> &'static str {
    match attempt {
        AttemptKind::Network => "network",
        AttemptKind::Listen => "listen",
        AttemptKind::Socket => "socket",
        AttemptKind::Resource => "limit",
        AttemptKind::File => "filesystem",
    }
}
