//! One agent: a client process, across all servers it uses. Flows are judged within one agent.

use std::{cell::Cell, path::PathBuf, rc::Rc, sync::Arc};

use firedoor_inspect::{Limits, Memory};
use firedoor_ipc::process::{self, Process, Stat};
use firedoor_model::{ClientProcess, Untrusted, client::MAX_ANCESTRY};
use firedoor_policy::SessionId;
use tokio::sync::Mutex;

/// One agent.
pub struct Agent {
    /// Its number.
    pub id: SessionId,
    /// The client process.
    pub process: Process,
    /// What the kernel says about it.
    pub client: ClientProcess,
    /// What entered its context. Asynchronous, because a large message is inspected on another thread.
    pub memory: Arc<Mutex<Memory>>,
    /// It lived before this engine did, so that what it has read is not known.
    pub forgotten: Cell<bool>,
}

impl Agent {
    /// A new agent without memories.
    pub fn new(id: SessionId, client: &Client) -> Rc<Self> {
        Rc::new(Self {
            id,
            process: client.process,
            client: client.described.clone(),
            memory: Arc::new(Mutex::new(Memory::new(Limits::default()))),
            forgotten: Cell::new(false),
        })
    }

    /// Whether the client process still lives.
    pub fn lives(&self) -> bool {
        process::stat(self.process.pid).is_ok_and(|s| s.process == self.process)
    }
}

/// The process that started a shim.
#[derive(Clone, Debug)]
pub struct Client {
    /// Which.
    pub process: Process,
    /// What the kernel says about it.
    pub described: ClientProcess,
}

/// Shells, by the name of their executable.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "ash"];

/// What adopts orphans besides the first process: a user's service manager.
const ADOPTERS: [&str; 2] = ["systemd", "init"];

/// Finds the client of a shim: its parent, or the nearest ancestor that is not `sh -c …`, since clients start servers
/// through a shell, too. When a person typed the shim's command into an interactive shell, the shim itself counts: the
/// shell must not be taken for an agent.
pub fn client_of(shim: Process) -> Client {
    let chain = process::ancestry(shim.pid);
    let found = choose(&chain, |stat| {
        let executable = process::executable(stat.process.pid).unwrap_or_default();
        (executable, process::arguments(stat.process.pid))
    });
    let process = found.map_or(shim, |stat| stat.process);
    Client { process, described: describe(process.pid, &chain) }
}

/// The client that connected to an endpoint.
pub fn client_behind(process: Process) -> Client {
    let chain = process::ancestry(process.pid);
    let look = |stat: &Stat| {
        let executable = process::executable(stat.process.pid).unwrap_or_default();
        (executable, process::arguments(stat.process.pid))
    };
    let process = application(&chain, look).map_or(process, |stat| stat.process);
    Client { process, described: describe(process.pid, &chain) }
}

fn choose(chain: &[Stat], look: impl Fn(&Stat) -> (PathBuf, Vec<String>)) -> Option<&Stat> {
    for (i, stat) in chain.iter().enumerate().skip(1) {
        let (executable, arguments) = look(stat);
        let name = executable.file_name().unwrap_or_default().to_string_lossy();
        // A shim whose client has died already was adopted. What adopts is nobody's agent, and everything descends from it.
        // A container's first process may be an agent: what it started itself is still in its session.
        let adopted = stat.process.pid == 1 && chain.first().is_none_or(|shim| shim.session != stat.session);
        if adopted || ADOPTERS.contains(&name.as_ref()) {
            return None;
        }
        if !SHELLS.contains(&name.as_ref()) {
            return chain.get(i..).and_then(|rest| application(rest, &look));
        }
        let mut options = arguments.iter().skip(1);
        if options.clone().any(|a| a.starts_with('-') && !a.starts_with("--") && a.ends_with('c')) {
            continue;
        }
        // Without a terminal nobody types: it reads commands from a pipe.
        let interactive = stat.terminal != 0 && options.all(|a| a.starts_with('-'));
        return if interactive { None } else { Some(stat) };
    }
    None
}

/// The application that the first process belongs to. Applications made with Electron, and editors' servers on other
/// machines, consist of several processes of one executable whose arguments say `--type=…`: one of them starts servers,
/// another the agent's shell, and only what is above both knows the two to be one agent.
fn application(chain: &[Stat], look: impl Fn(&Stat) -> (PathBuf, Vec<String>)) -> Option<&Stat> {
    let mut found = chain.first()?;
    let (executable, mut arguments) = look(found);
    for parent in chain.iter().skip(1) {
        let (of_parent, next) = look(parent);
        let is_part = arguments.iter().any(|a| a.starts_with("--type="));
        if !is_part || executable != of_parent || executable.as_os_str().is_empty() {
            break;
        }
        (found, arguments) = (parent, next);
    }
    Some(found)
}

/// Executable, script and ancestry, from /proc. What runs a script is told by its first argument being a path. The chain goes
/// through the process.
fn describe(pid: u32, chain: &[Stat]) -> ClientProcess {
    let path = |pid| process::executable(pid).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let executable = path(pid);
    let script = process::arguments(pid)
        .into_iter()
        .nth(1)
        .filter(|first| !first.starts_with('-') && first.contains('/') && *first != executable);
    let base = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let above = chain.iter().skip_while(|stat| stat.process.pid != pid).skip(1).take(MAX_ANCESTRY);
    ClientProcess {
        pid,
        executable: Untrusted::new(executable),
        script: script.map(Untrusted::new),
        ancestry: above.map(|stat| Untrusted::new(base(path(stat.process.pid)))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_not_a_shell_in_between() {
        let stat = |pid: u32| Stat { process: Process { pid, start: 1 }, parent: pid + 1, session: 9, terminal: 1 };
        let chain = [stat(1), stat(2), stat(3), stat(4)];
        let check = |parent: (&str, &[&str]), want: Option<u32>| {
            let chosen = choose(&chain, |s| {
                let (name, args) = if s.process.pid == 2 { parent } else { ("/opt/code", &["code"] as &[&str]) };
                (name.into(), args.iter().map(ToString::to_string).collect())
            });
            assert_eq!(chosen.map(|s| s.process.pid), want, "{parent:?}");
        };
        check(("node", &["node", "app.js"]), Some(2));
        check(("dash", &["sh", "-c", "firedoor-shim x"]), Some(3));
        check(("bash", &["bash", "-lc", "firedoor-shim x"]), Some(3));
        check(("bash", &["bash", "agent.sh"]), Some(2));
        check(("bash", &["-bash"]), None);
        check(("zsh", &["zsh", "-i"]), None);
        check(("/lib/systemd/systemd", &["systemd", "--user"]), None);
        let container = [stat(7), stat(1)];
        let agent = choose(&container, |_| ("/opt/agent".into(), vec!["agent".into()]));
        assert_eq!(agent.map(|s| s.process.pid), Some(1));
        let orphan = [Stat { session: 7, ..stat(7) }, stat(1)];
        assert!(choose(&orphan, |_| ("/opt/agent".into(), vec!["agent".into()])).is_none());
        check(("/opt/code", &["code", "--type=utility", "--inspect"]), Some(3));
        check(("/opt/code", &["code"]), Some(2));
        check(("/opt/other", &["other", "--type=utility"]), Some(2));
    }

    #[test]
    fn a_shell_without_a_terminal_is_no_person() {
        let stat = |pid: u32| Stat { process: Process { pid, start: 1 }, parent: pid + 1, session: 9, terminal: 0 };
        let chain = [stat(1), stat(2)];
        let chosen = choose(&chain, |_| ("/bin/bash".into(), vec!["bash".into(), "-l".into()]));
        assert_eq!(chosen.map(|s| s.process.pid), Some(2));
    }
}
