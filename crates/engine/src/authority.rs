//! Who may weaken protection: not an AI client, not a server, and nothing that descends from one.
//!
//! An injected agent with a shell must not approve itself. Judged by the kernel's word about the peer (pid and start
//! time) and by the chain of parents. A process that hides its parents is refused as well. What this does not see is
//! written down in docs/known-limits.md.

#[cfg_attr(unix, path = "authority/unix.rs")]
#[cfg_attr(windows, path = "authority/windows.rs")]
mod system;

#[cfg(unix)]
use system::Look as _;
pub use system::screens_of_the_user;
use system::{System, objection};

use std::{
    cell::RefCell,
    collections::HashMap,
    env::consts::EXE_SUFFIX,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use firedoor_ipc::process::{self, Peer, Process, Space, Stat};
use firedoor_model::paths::Paths;
use serde::{Deserialize, Serialize};

use crate::{agent, sys};

/// Clients and servers of this engine's sessions, also of those that have ended, while the processes live.
pub struct Authority {
    watched: RefCell<HashMap<Process, Watched>>,
    /// Where they are written down, for the engine after this one.
    file: PathBuf,
    /// The processes that are seen from here; `None` where the system does not say.
    here: Option<Space>,
    /// Why nobody may be trusted here.
    blind: Option<&'static str>,
    look: System,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Watched {
    /// With its control group, which what it starts and leaves behind stays in.
    Client(Option<String>),
    Server,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Numbers of processes mean something within one boot only.
    boot: String,
    process: Process,
    role: Watched,
    /// Where that number is its own. Lines of older versions do not say it.
    #[serde(default)]
    space: Option<Space>,
}

const CLIENTS: &str = "clients";
/// Longest file that is read, in bytes: a hundred times what a day of work leaves.
const MAX_FILE: u64 = 4 << 20;

fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(sys::boot);
    &BOOT
}

/// What the files say: each line that was written since the system started. The usual place counts as well: whoever asks may have pointed
/// the other away from it.
fn lines(paths: &Paths) -> Vec<Line> {
    let (file, usual) = (clients(paths), paths.home.join(".local/state/firedoor").join(CLIENTS));
    let mut all = lines_of(&file);
    if cfg!(unix) && usual != file {
        all.extend(lines_of(&usual));
    }
    all
}

/// Of one file. A line that cannot be read is one that its writer did not finish.
fn lines_of(file: &Path) -> Vec<Line> {
    let mut text = String::new();
    let read = fs::File::open(file).and_then(|f| io::Read::read_to_string(&mut io::Read::take(f, MAX_FILE), &mut text));
    if read.is_err() {
        return Vec::new();
    }
    let boot = boot();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.boot == boot).collect()
}

/// Why it cannot be told from here who started a process. An agent may make a namespace for its commands, in which clients have no
/// numbers, or put something else in the place of `/proc`.
fn blind(here: Option<Space>, lines: &[Line]) -> Option<&'static str> {
    let Some(here) = here else { return Some("the system does not say which processes there are") };
    let elsewhere = |line: &Line| line.space.is_some_and(|space| space != here);
    let outside = "AI clients run outside of its namespace, so nobody can say who started it; run it where they run";
    (!here.sees_all() && lines.iter().any(elsewhere)).then_some(outside)
}

/// Why an engine here could trust nobody, if that is so.
pub(crate) fn blindness(paths: &Paths) -> Option<&'static str> {
    blind(process::space().ok(), &lines(paths))
}

/// Where clients are written down: beside the database, which whoever names another place for it does not reach.
fn clients(paths: &Paths) -> PathBuf {
    paths.state.join(CLIENTS)
}

fn lives(process: Process) -> bool {
    process::stat(process.pid).is_ok_and(|s| s.process == process)
}

impl Authority {
    /// Knows the clients of engines before, and those of shims that run already: killing engine and shims must not make
    /// an agent a stranger.
    pub fn new(paths: &Paths) -> Self {
        let file = clients(paths);
        let look = System::of(paths);
        let here = process::space().ok();
        let lines = lines(paths);
        let blind = blind(here, &lines);
        let known = lines.into_iter().filter(|line| lives(line.process)).map(|line| (line.process, line.role));
        let authority = Self { watched: RefCell::new(known.collect()), file, here, blind, look };
        for pid in process::all() {
            let shim = process::executable(pid).is_some_and(|path| is_shim(&path));
            if let (true, Ok(stat)) = (shim, process::stat(pid)) {
                authority.watch_client(agent::client_of(stat.process).process);
            }
        }
        authority
    }
}

/// Whether this is the file of a shim, whosever it is.
fn is_shim(file: &Path) -> bool {
    let shim = format!("{}{EXE_SUFFIX}", firedoor_clients::SHIM);
    // Windows says a name as whoever started it wrote it.
    file.file_name().is_some_and(|name| name.eq_ignore_ascii_case(&shim))
}

/// Why this process may not weaken protection when no engine runs that could say so; `None` when it may.
pub fn objection_to_this_process(paths: &Paths) -> Option<String> {
    let authority = Authority::new(paths);
    if let Some(reason) = authority.blind {
        return Some(reason.to_owned());
    }
    let chain = process::ancestry(std::process::id());
    objection(&chain, &authority.watched.borrow(), &authority.look)
}

/// More processes than this are not remembered: dead ones are forgotten first.
const MAX_WATCHED: usize = 4096;

impl Authority {
    /// Remembers a client process.
    pub fn watch_client(&self, process: Process) {
        self.watch(process, Watched::Client(self.look.group(process.pid)));
    }

    /// Remembers a server's process.
    pub fn watch_server(&self, process: Process) {
        self.watch(process, Watched::Server);
    }

    fn watch(&self, process: Process, role: Watched) {
        let mut watched = self.watched.borrow_mut();
        if watched.len() >= MAX_WATCHED {
            watched.retain(|p, _| lives(*p));
        }
        let new = watched.insert(process, role.clone()).is_none();
        drop(watched);
        // Where nobody is trusted the lines would be of no use to an engine elsewhere.
        if new && self.blind.is_none() {
            // Without the line an engine after this one knows the client by its shims only.
            let _ = self.write_down(self.line(process, role));
        }
    }

    fn line(&self, process: Process, role: Watched) -> Line {
        Line { boot: boot().to_owned(), process, role, space: self.here }
    }

    fn write_down(&self, line: Line) -> io::Result<()> {
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut file = sys::append(&self.file)?;
        // What has died is left out once the file is long.
        if file.metadata()?.len() > MAX_FILE / 4 {
            file.set_len(0)?;
            for (process, role) in self.watched.borrow().iter().filter(|(p, _)| lives(**p)) {
                serde_json::to_writer(&mut file, &self.line(*process, role.clone()))?;
                file.write_all(b"\n")?;
            }
        }
        file.write_all(text.as_bytes())
    }

    /// Why this peer may not weaken protection; `None` when it may.
    pub fn objection(&self, peer: &Peer) -> Option<String> {
        if let Some(reason) = self.blind {
            return Some(reason.to_owned());
        }
        let chain = process::ancestry(peer.process.pid);
        if chain.first().map(|s| s.process) != Some(peer.process) {
            return Some("the process that asked has ended, so nobody can say who started it".to_owned());
        }
        let watched = self.watched.borrow();
        // The desktop app that holds this engine, or that this engine's program started; but not a check of a server, what
        // that started, and anything at all where an AI client started the engine as its own child.
        if chain.iter().any(|stat| stat.process.pid == std::process::id()) {
            return started_by(&chain, &watched);
        }
        objection(&chain, &watched, &self.look)
    }
}

/// The client or the server nearest above the asking process, as a reason.
fn started_by(chain: &[Stat], watched: &HashMap<Process, Watched>) -> Option<String> {
    chain.iter().find_map(|stat| match watched.get(&stat.process)? {
        Watched::Client(_) => Some(format!(
            "it was started by the AI client with process id {}; answer from a terminal outside that client",
            stat.process.pid
        )),
        Watched::Server => Some(format!("it was started by the MCP server with process id {}", stat.process.pid)),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::{system::Look, *};

    fn stat(pid: u32, parent: u32, session: u32, terminal: i32) -> Stat {
        Stat { process: Process { pid, start: u64::from(pid) }, parent, session, terminal }
    }

    /// Process 2 is the user's service manager, 600 to 699 are root's, 700 to 799 live in another control group. With the
    /// processes behind its screens.
    struct Scene(Vec<Vec<Stat>>);

    impl Look for Scene {
        fn reaps(&self, pid: u32) -> bool {
            pid == 1 || pid == 2
        }
        fn ours(&self, pid: u32) -> bool {
            !(600..700).contains(&pid)
        }
        fn group(&self, pid: u32) -> Option<String> {
            Some(if (700..800).contains(&pid) { "/terminal" } else { "/app" }.into())
        }
        fn screens(&self) -> Vec<Vec<Stat>> {
            self.0.clone()
        }
    }

    #[test]
    fn clients_are_remembered_while_they_live() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| home.path().into())).unwrap();
        fs::create_dir_all(&paths.state).unwrap();
        let own = process::stat(std::process::id()).unwrap().process;
        let gone = Process { pid: own.pid, start: own.start + 1 };
        let first = Authority::new(&paths);
        first.watch_client(own);
        first.watch_server(gone);
        fs::OpenOptions::new().append(true).open(&first.file).unwrap().write_all(b"{\"boot\":").unwrap();
        drop(first);
        let next = Authority::new(&paths);
        assert!(matches!(next.watched.borrow().get(&own), Some(Watched::Client(_))));
        assert!(!next.watched.borrow().contains_key(&gone));
    }

    #[cfg(unix)]
    #[test]
    fn clients_are_known_where_the_state_is_said_to_lie_elsewhere() {
        let home = tempfile::tempdir().unwrap();
        let at = |state: Option<&str>| {
            let var = |name: &str| match name {
                "HOME" => Some(home.path().into()),
                "XDG_STATE_HOME" | "XDG_RUNTIME_DIR" => state.map(|state| home.path().join(state).into()),
                _ => None,
            };
            Paths::from_env(var).unwrap()
        };
        fs::create_dir_all(&at(None).state).unwrap();
        let own = process::stat(std::process::id()).unwrap().process;
        Authority::new(&at(None)).watch_client(own);
        assert!(Authority::new(&at(Some("elsewhere"))).watched.borrow().contains_key(&own));
        assert!(objection_to_this_process(&at(Some("elsewhere"))).unwrap().contains("AI client"));
    }

    #[test]
    fn in_another_namespace_nobody_is_trusted() {
        let [inside, outside] = [7, 8].map(|processes| Space { processes, users: 9 });
        let line =
            |space| Line { boot: String::new(), process: Process { pid: 1, start: 1 }, role: Watched::Server, space };
        let first = Space { processes: 0xEFFF_FFFC, users: 0xEFFF_FFFD };
        for (here, lines, want) in [
            (None, vec![], true),
            (Some(inside), vec![], false),
            (Some(inside), vec![line(Some(inside)), line(None)], false),
            (Some(inside), vec![line(Some(inside)), line(Some(outside))], true),
            (Some(inside), vec![line(Some(first))], true),
            // A namespace of a user's own cannot lock out who sees all.
            (Some(first), vec![line(Some(outside))], false),
            (Some(Space { users: 9, ..first }), vec![line(Some(first))], true),
        ] {
            assert_eq!(blind(here, &lines).is_some(), want, "{here:?}");
        }
    }

    #[test]
    fn what_the_engines_own_process_started_may_unless_it_plays_a_client() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        fs::create_dir_all(&paths.state).unwrap();
        let authority = Authority::new(&paths);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = process::stat(child.id()).unwrap().process;
        let peer = Peer { process, uid: nix::unistd::getuid().as_raw() };
        assert_eq!(authority.objection(&peer), None);
        // A check that has started a shim.
        authority.watch_client(process);
        assert!(authority.objection(&peer).unwrap().contains("AI client"));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn shims_are_known_by_their_file() {
        for (file, want) in [("/opt/firedoor-shim", true), ("/opt/firedoor-shim2", false), ("/opt/firedoor", false)] {
            assert_eq!(is_shim(&Path::new(file).with_extension(std::env::consts::EXE_EXTENSION)), want, "{file}");
        }
    }

    #[test]
    fn who_may() {
        let client = Process { pid: 50, start: 50 };
        let reused = Process { pid: 10, start: 999 };
        let role = || Watched::Client(Some("/app".into()));
        let watched = HashMap::from([(client, role()), (reused, role())]);
        // A compositor that was there before the client.
        let screen = vec![stat(30, 2, 10, 0), stat(2, 1, 2, 0), stat(1, 0, 1, 0)];
        let check = |chain: &[Stat]| objection(chain, &watched, &Scene(vec![screen.clone()]));
        let check_headless = |chain: &[Stat]| objection(chain, &watched, &Scene(Vec::new()));
        // Terminal beside the client; one of its numbers was a client's once.
        assert_eq!(check(&[stat(20, 10, 10, 1), stat(10, 5, 10, 1), stat(5, 1, 5, 0)]), None);
        // Child and grandchild of the client.
        assert!(check(&[stat(60, 50, 10, 0), stat(50, 10, 10, 1), stat(10, 1, 10, 1)]).is_some());
        assert!(check(&[stat(61, 60, 10, 0), stat(60, 50, 10, 0), stat(50, 10, 10, 1)]).is_some());
        // Double fork: the session's leader is no ancestor any more.
        assert!(check(&[stat(61, 1, 10, 0), stat(1, 0, 1, 0)]).is_some());
        // setsid and orphaned.
        assert!(check(&[stat(61, 1, 61, 0), stat(1, 0, 1, 0)]).is_some());
        assert!(check(&[stat(61, 2, 61, 0), stat(2, 1, 2, 0), stat(1, 0, 1, 0)]).is_some());
        // A detached shell in between, with and without a terminal that it made itself.
        let below = |orphan, terminal| [stat(901, orphan, orphan, terminal), stat(orphan, 1, orphan, terminal)];
        assert!(check(&below(900, 0)).is_some());
        assert!(check(&[stat(901, 900, 899, 0), stat(900, 2, 899, 0), stat(899, 1, 899, 0)]).is_some());
        let script = [stat(902, 901, 901, 1), stat(901, 900, 901, 1), stat(900, 1, 900, 0)];
        assert!(check_headless(&script).is_some());
        // What looks alike: a terminal that a window manager started, a daemon older than the client, one of root, one
        // with a control group of its own.
        assert_eq!(check(&script), None);
        assert_eq!(check_headless(&below(40, 0)), None);
        assert_eq!(check_headless(&below(650, 0)), None);
        assert_eq!(check_headless(&below(750, 0)), None);
        // Screens that the client made: its child, one that it left behind, and one that came after it from elsewhere.
        for made in [
            vec![stat(60, 50, 10, 0), stat(50, 10, 10, 1), stat(10, 1, 10, 1)],
            vec![stat(61, 1, 61, 0), stat(1, 0, 1, 0)],
            vec![stat(750, 2, 2, 0), stat(2, 1, 2, 0), stat(1, 0, 1, 0)],
        ] {
            assert!(objection(&script, &watched, &Scene(vec![made.clone()])).is_some(), "{made:?}");
            assert_eq!(objection(&script, &watched, &Scene(vec![made, screen.clone()])), None);
        }
        // A shell that is the first process of a container, and one that entered it.
        assert_eq!(check(&[stat(7, 1, 1, 0), stat(1, 0, 1, 0)]), None);
        assert_eq!(check(&[stat(7, 0, 0, 0)]), None);
        assert!(check(&[]).is_some());
    }
}
