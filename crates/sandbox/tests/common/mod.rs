//! A scratch place, a step, and the `confine` example to run it.

use std::{
    fs,
    io::Read,
    net::{SocketAddr, SocketAddrV4, TcpListener},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use firedoor_model::{
    launch::{Access, Confinement, Grant, Network, Step},
    limits::Limits,
    protected::ProtectedNames,
};
use tempfile::TempDir;

/// An ordinary user: `nobody`.
const ORDINARY: u32 = 65534;

/// Users to run as: this one, and an ordinary one where this is root.
pub fn users() -> Vec<Option<u32>> {
    if nix::unistd::geteuid().is_root() { vec![None, Some(ORDINARY)] } else { vec![None] }
}

/// The example, copied to where every user may run it.
fn confine() -> &'static Path {
    static COPY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let built = test.parent().unwrap().parent().unwrap().join("examples/confine");
        let dir = open_dir();
        let path = dir.path().join("confine");
        // By a process of its own: what another test forks meanwhile would hold the copy open for writing, and what is
        // open so cannot be run (ETXTBSY).
        let copied = Command::new("cp").arg(&built).arg(&path).status().unwrap();
        assert!(copied.success(), "{}: build the examples", built.display());
        (dir, path)
    });
    path
}

fn open_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

pub fn grant(path: impl AsRef<Path>, access: Access) -> Grant {
    Grant { path: path.as_ref().into(), access }
}

pub fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// One confined step of one user.
pub struct Setup {
    pub user: Option<u32>,
    pub step: Step,
    dir: TempDir,
}

impl Setup {
    /// Runs `confine probe` with what a program needs to start, and nothing else.
    pub fn new(user: Option<u32>) -> Self {
        let dir = open_dir();
        let mut grants: Vec<Grant> =
            ["/lib", "/lib64", "/usr", "/bin", "/etc/ld.so.cache"].map(|p| grant(p, Access::Read)).into();
        grants.push(grant("/dev/null", Access::Write));
        grants.push(grant(confine(), Access::Read));
        let step = Step {
            program: confine().into(),
            args: vec!["probe".into()],
            env: Vec::new(),
            cwd: "/".into(),
            confinement: Confinement {
                grants,
                protected: ProtectedNames::default(),
                network: Network::None,
                sockets: Vec::new(),
                own: Vec::new(),
                limits: Limits::default(),
            },
        };
        let setup = Self { user, step, dir };
        setup.own_everything();
        setup
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn grant(&mut self, name: &str, access: Access) {
        let path = self.dir().join(name);
        self.step.confinement.grants.push(grant(path, access));
    }

    /// Gives the scratch place to the user.
    pub fn own_everything(&self) {
        if let Some(user) = self.user {
            own(self.dir(), user);
        }
    }

    /// Command that runs the step.
    pub fn command(&self, words: &[&str]) -> Command {
        let path = self.dir().join(".step.json");
        fs::write(&path, serde_json::to_vec(&self.step).unwrap()).unwrap();
        let mut command = Command::new(confine());
        command.arg("run").arg(&path).args(words).env("SECRET", "1").current_dir("/");
        if let Some(user) = self.user {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            command.uid(user).gid(user);
        }
        command
    }

    /// Output and errors of the step.
    pub fn run(&self, words: &[&str]) -> (String, String) {
        let output = self.command(words).stdin(Stdio::null()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// What probes answer.
    pub fn probe(&self, names: &[&str]) -> String {
        let mut with_names = Self { user: self.user, step: self.step.clone(), dir: open_dir() };
        with_names.step.args = ["probe"].iter().chain(names).map(Into::into).collect();
        let (output, errors) = with_names.run(&[]);
        if output.is_empty() { errors } else { output }
    }

    /// The outcome of running probes, as JSON.
    pub fn run_verbose(&self, names: &[&str]) -> String {
        let mut with_names = Self { user: self.user, step: self.step.clone(), dir: open_dir() };
        with_names.step.args = ["probe"].iter().chain(names).map(Into::into).collect();
        with_names.run(&["verbose"]).1
    }
}

fn own(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path).unwrap().for_each(|e| own(&e.unwrap().path(), user));
    }
}

pub fn v4(listener: &TcpListener) -> SocketAddrV4 {
    match listener.local_addr().unwrap() {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address} is not IPv4"),
    }
}

/// A listener that accepts and reads for as long as the test runs.
pub fn sink() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for mut stream in accepting.incoming().flatten() {
            std::thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    listener
}

/// A listener that accepts nothing yet and has no room left in its queue.
pub fn full_listener() -> TcpListener {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, socket};
    use std::os::fd::AsRawFd;
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    listen(&socket, Backlog::new(0).unwrap()).unwrap();
    let listener = TcpListener::from(socket);
    let first = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // It stays in the queue although it is closed here.
    drop(first);
    listener
}
