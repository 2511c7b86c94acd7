//! Starting one server.

use std::{
    cell::Cell,
    ffi::{CString, OsStr},
    io::{self, IsTerminal},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use firedoor_model::launch::{Access, Network, Step};
use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::{ForkResult, Pid},
};

use crate::linux::{
    control::{self, Failure, News, Place},
    elf,
    filesystem::{Domain, Version},
    guardian,
    layers::{ABI_SCOPE, ABI_TCP, missing_from},
    machine::Machine,
    network::{self, Duty},
    observe::{self, Observer},
    orphans::Orphans,
    procfs, reap, script,
    seccomp::{self, Arch, Listener, Logged, Program, Reach, Scope},
    server::{Newcomer, Plan},
    stdio::stdio,
    sys::{self, Vector},
    tree::Tree,
    trees::Trees,
};
use crate::{
    error::{SpawnError, Stage},
    launch::Launch,
    level::{Level, Outcome, Quota},
};

/// Longest time for a start. Honest ones take milliseconds; a granted path on a dead network share takes for ever.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a guardian may take to end after a failed start.
const GUARDIAN_END: Duration = Duration::from_secs(2);
/// Why a server has no network.
const NOT_JUDGED: &str =
    "judged connections: this machine does not hand system calls to Firedoor (see `firedoor sandbox doctor`)";
/// Most grants of one confinement; a profile has a few dozen.
const MAX_GRANTS: usize = 4096;

/// The filter of most servers, and what it is for.
static PREPARED: OnceLock<(Scope, Program)> = OnceLock::new();

/// Does what a start does alike for most servers, for callers that have to wait anyway before they know which one it is.
pub fn prepare() {
    // What is wrong is found again at the start, and explained.
    let (Some(arch), Ok(landlock)) = (Arch::native(), Version::running()) else { return };
    let scope =
        Scope { reach: Reach::Listed, trees: false, terminal: false, landlock: landlock.number, observed: false };
    if let Ok(filter) = seccomp::compile(arch, scope) {
        let _ = PREPARED.set((scope, filter));
    }
}

/// Starts a server under its confinement, with a guardian that outlives us by the time it takes to kill the tree.
///
/// Makes the caller a subreaper, for good. Fails unless the caller has one thread. Returns when the program runs.
pub fn spawn(launch: Launch<'_>) -> Result<Tree, SpawnError> {
    spawn_on(launch, Machine::THIS)
}

/// The same, as if the machine were no better than this.
pub fn spawn_on(launch: Launch<'_>, machine: Machine) -> Result<Tree, SpawnError> {
    let guardian_setup = |e: io::Error| SpawnError::setup(Stage::Guardian, e);
    match procfs::own_threads().map_err(guardian_setup)? {
        1 => {}
        threads => return Err(SpawnError::Threads(threads)),
    }
    let Launch { step, stdin, stdout, stderr, observe } = launch;
    let terminal = stdin.is_terminal();
    let (plan, reach, observed) = plan(step, (observe, terminal), machine)?;
    let stdio = stdio(stdin, stdout, stderr)?;
    let mut outcome = outcome(&plan);
    let record = if observe { Some(observe::record().map_err(guardian_setup)?) } else { None };
    let observer = match (&record, observed) {
        (Some(record), Some(logged)) => {
            Some(Observer::new(logged, &step.confinement.grants, record).map_err(guardian_setup)?)
        }
        _ => None,
    };
    let duty = reach.map(|reach| Duty { reach, observer });

    prctl::set_child_subreaper(true).map_err(|e| SpawnError::setup(Stage::Guardian, e))?;
    let orphans = Orphans::before_start();
    let pair = || control::pair().map_err(|e| SpawnError::setup(Stage::Guardian, e));
    let ((ours, theirs), (attempts, attempts_end), (opener, opened)) = (pair()?, pair()?, pair()?);
    let domain = Domain::new(plan.landlock).map_err(|failure| explain(step, failure))?;
    let newcomer = Newcomer { stdio, domain, opened };
    let guardian = match sys::fork().map_err(|e| SpawnError::setup(Stage::Fork, e))? {
        ForkResult::Child => {
            drop((ours, attempts, opener));
            guardian::become_guardian(&plan, duty, newcomer, theirs, attempts_end)
        }
        ForkResult::Parent { child } => child,
    };
    drop((duty, theirs, attempts_end));
    // The same ruleset as the server's. A server that is gone already needs none; its guardian tells why.
    let _ = control::send(&opener, &newcomer.domain.open_shared(plan.grants));
    drop((newcomer, opener));

    let news = match reap::readable(&ours, START_LIMIT) {
        Ok(true) => control::receive::<News>(&ours).map_err(guardian_setup),
        Ok(false) => Err(SpawnError::Timeout(START_LIMIT.as_secs())),
        Err(e) => Err(guardian_setup(e)),
    };
    let error = match news {
        Ok(Some(News::Started { pid, skipped, judged, quota })) => {
            let path = |i: u32| step.confinement.grants.get(usize::try_from(i).ok()?).map(|g| g.path.clone());
            outcome.skipped = skipped.into_iter().filter_map(path).collect();
            outcome.level = Level::of(outcome.landlock_abi, true, judged);
            if !judged {
                outcome.missing = missing_from(outcome.landlock_abi, false);
                outcome.missing.push(NOT_JUDGED.to_owned());
            }
            outcome.judged &= judged;
            if !outcome.judged && step.confinement.grants.iter().any(|g| g.access == Access::Edit) {
                outcome.missing.push("a guardian that answers calls: trees granted to write can only be read".into());
            }
            outcome.quota = quota;
            outcome.observed = record.is_some() && judged;
            let server = Pid::from_raw(pid);
            return Ok(Tree {
                server,
                guardian,
                control: ours,
                notices: attempts,
                record,
                outcome,
                orphans,
                exit: None,
                kill_by: Cell::new(None),
                guardian_reaped: Cell::new(false),
            });
        }
        Ok(Some(News::Failed(failure))) => explain(step, failure),
        Ok(Some(News::Exited { .. }) | None) => SpawnError::GuardianLost,
        Err(e) => e,
    };
    // Hanging up tells a guardian that still lives to kill; one that does not end is killed, and its tree is ours.
    drop(ours);
    if !reap::wait_bounded(guardian, GUARDIAN_END) {
        let _ = kill(guardian, Signal::SIGKILL);
        reap::wait_bounded(guardian, GUARDIAN_END);
    }
    orphans.kill(Pid::from_raw(0));
    Err(error)
}

type Planned<'a> = (Plan<'a>, Option<network::Reach>, Option<Logged>);

fn plan(step: &Step, (observe, terminal): (bool, bool), machine: Machine) -> Result<Planned<'_>, SpawnError> {
    let grants = &step.confinement.grants;
    if !step.program.is_absolute() {
        return Err(SpawnError::RelativeProgram(step.program.clone()));
    }
    if grants.len() > MAX_GRANTS {
        return Err(SpawnError::TooMany { what: "granted paths", limit: MAX_GRANTS });
    }
    if let Some(grant) = grants.iter().find(|g| !g.path.is_absolute()) {
        return Err(SpawnError::RelativeGrant(grant.path.clone()));
    }
    let granted =
        |access| -> Vec<PathBuf> { grants.iter().filter(|g| g.access == access).map(|g| g.path.clone()).collect() };
    let (writable, edited) = (granted(Access::Write), granted(Access::Edit));
    let trees = Trees::new(&edited, step.confinement.protected.clone());
    let (reach, filter) = match &step.confinement.network {
        Network::None => (None, Reach::None),
        Network::Proxy(address) if address.ip().is_loopback() => {
            (Some(network::Reach::Proxy { address: *address, writable, trees }), Reach::Proxy)
        }
        Network::Proxy(address) => return Err(SpawnError::Proxy(*address)),
        Network::Hosts(hosts) => {
            let (sockets, own) = (step.confinement.sockets.clone(), step.confinement.own.clone());
            let filter = if elf::may_use_musl(&step.program) { Reach::ListedMusl } else { Reach::Listed };
            let (hosts, rates) = (hosts.clone(), step.confinement.limits.rates);
            (Some(network::Reach::Listed { hosts, rates, sockets, own, writable, trees }), filter)
        }
    };
    let landlock =
        Version::running().and_then(|v| v.at_most(machine.landlock)).map_err(|e| SpawnError::NoLandlock(e.into()))?;
    let listener = if reach.is_some() { Listener::Wanted } else { Listener::None };
    if observe && !filter.is_listed() {
        return Err(SpawnError::Unobservable);
    }
    let arch = Arch::native().ok_or_else(|| SpawnError::Table("it has no numbers for this architecture".into()))?;
    let compiled = |scope| match PREPARED.get() {
        Some((prepared, filter)) if *prepared == scope => Ok(filter.clone()),
        _ => seccomp::compile(arch, scope).map_err(|e| SpawnError::Table(e.to_string())),
    };
    let trees = reach.is_some() && !edited.is_empty();
    let scope = Scope { reach: filter, trees, terminal, landlock: landlock.number, observed: observe };
    // An install step without its proxy is of no use; a server without a network, that writes to no tree, may be.
    let offline = Scope { reach: Reach::None, trees: false, observed: false, ..scope };
    let fallback = filter.is_listed().then_some((arch, offline));
    let observed = observe.then(|| Logged::of(arch, scope));
    let filter = compiled(scope)?;

    let program = c_string("the program", step.program.as_os_str())?;
    let mut args = vec![program.clone()];
    for arg in &step.args {
        args.push(c_string("an argument", arg)?);
    }
    let mut env = Vec::with_capacity(step.env.len());
    for (name, value) in &step.env {
        env.push(variable(name, value)?);
    }
    let cwd = c_string("the working directory", step.cwd.as_os_str())?;
    let (args, env) = (Vector::new(args), Vector::new(env));
    let limits = &step.confinement.limits;
    Ok((
        Plan { program, args, env, cwd, grants, limits, machine, landlock, filter, listener, fallback },
        reach,
        observed,
    ))
}

fn c_string(what: &'static str, text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::Text(what))
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, SpawnError> {
    const WHAT: &str = "an environment variable";
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(SpawnError::Text(WHAT));
    }
    let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
    CString::new(bytes).map_err(|_| SpawnError::Text(WHAT))
}

fn outcome(plan: &Plan<'_>) -> Outcome {
    let abi = plan.landlock.number;
    Outcome {
        // Here the network is what was asked for: either nothing or judged.
        level: Level::of(abi, true, true),
        landlock_abi: abi,
        rights: plan.landlock.rights(),
        tcp_denied: abi >= ABI_TCP,
        scoped: abi >= ABI_SCOPE,
        filter_instructions: plan.filter.len(),
        judged: plan.listener == Listener::Wanted,
        quota: Quota::Counted,
        observed: false,
        skipped: Vec::new(),
        missing: missing_from(abi, plan.listener == Listener::Wanted),
    }
}

fn explain(step: &Step, failure: Failure) -> SpawnError {
    let source = io::Error::from_raw_os_error(failure.errno);
    match failure.at {
        Place::Stage(stage) => SpawnError::Setup { stage, source },
        Place::Cwd => SpawnError::Cwd { path: step.cwd.clone(), source },
        Place::Grant(index) => {
            let grant = usize::try_from(index).ok().and_then(|i| step.confinement.grants.get(i));
            SpawnError::Grant { path: grant.map(|g| g.path.clone()).unwrap_or_default(), source }
        }
        Place::Exec => {
            let hint = exec_hint(&step.program, Errno::from_raw(failure.errno));
            SpawnError::Exec { program: step.program.clone(), source, hint }
        }
        Place::Lost => SpawnError::GuardianLost,
    }
}

/// What to look at when `execve` failed. Reads the program from outside the sandbox.
fn exec_hint(program: &Path, errno: Errno) -> String {
    match errno {
        Errno::ENOENT if program.exists() => match script::interpreter(program) {
            Some(name) => format!("its interpreter {name:?} does not exist"),
            None => "the loader it was linked for does not exist".into(),
        },
        Errno::ENOENT => "there is no such file: is it installed?".into(),
        Errno::EACCES => match script::interpreter(program) {
            Some(name) => {
                format!("is it executable, and does the sandbox grant reading it and its interpreter {name:?}?")
            }
            None => "is it executable, and does the sandbox grant reading it and the loader?".into(),
        },
        Errno::ENOEXEC => "it is neither a script that names its interpreter nor a program for this machine".into(),
        Errno::E2BIG => "arguments and environment are too long together".into(),
        _ => "execve failed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_names_and_values() {
        let check = |name: &str, value: &str| variable(OsStr::new(name), OsStr::new(value)).ok();
        assert_eq!(check("A", "b=c"), Some(c"A=b=c".into()));
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\0y")] {
            assert_eq!(check(name, value), None, "{name:?}");
        }
    }

    #[test]
    fn hints_name_the_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("s");
        std::fs::write(&script, "#! /no/such/node --flag\nx").unwrap();
        assert_eq!(exec_hint(&script, Errno::ENOENT), "its interpreter \"/no/such/node\" does not exist");
        assert_eq!(exec_hint(&dir.path().join("none"), Errno::ENOENT), "there is no such file: is it installed?");
        assert!(exec_hint(dir.path(), Errno::EACCES).contains("loader"));
    }
}
