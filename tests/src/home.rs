//! A scratch home with its own XDG directories, and programs that run in it.

use std::{
    fs,
    io::{self, PipeReader, PipeWriter},
    os::{
        fd::AsFd,
        unix::{
            fs::{PermissionsExt, chown, fchown, lchown},
            net::UnixStream,
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use nix::{
    sys::{
        signal::Signal,
        socket::{getsockopt, sockopt::PeerCredentials},
    },
    unistd::{User, geteuid},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{alive, kill, programs, until_within};

/// How a program ended.
#[derive(Debug)]
pub struct Output {
    /// Its exit code; 128 plus the signal's number when a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Fails the test unless the exit code is this.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Fails the test unless stdout or stderr hold this.
    #[track_caller]
    pub fn expect_said(self, part: &str) -> Self {
        assert!(self.stdout.contains(part) || self.stderr.contains(part), "{part:?} is missing in {self:#?}");
        self
    }

    /// What it printed, as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e} in {self:#?}"))
    }
}

/// The home. Dropping it stops its engine and removes it.
pub struct Home {
    root: TempDir,
    user: Option<User>,
    env: Mutex<Vec<(String, String)>>,
    python: PathBuf,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Makes one, with copies of our programs and of the test servers.
    pub fn new() -> Self {
        // Short, because a socket's path has at most 107 bytes (unix(7)).
        let root = tempfile::Builder::new().prefix("fd-").tempdir_in("/tmp").expect("a scratch directory");
        let user = geteuid().is_root().then(|| User::from_name("nobody").expect("passwd").expect("a user nobody"));
        let mut home = Self { root, user, env: Mutex::default(), python: PathBuf::new() };
        let at = |name: &str| home.root.path().join(name);
        for directory in ["home", "run", "tmp", "bin", "servers"] {
            fs::create_dir(at(directory)).expect("scratch directories");
        }
        fs::set_permissions(at("run"), fs::Permissions::from_mode(0o700)).expect("mode of the runtime directory");
        fs::set_permissions(home.root.path(), fs::Permissions::from_mode(0o755))
            .expect("mode of the scratch directory");
        // Not where they were built: another user may not be able to go there.
        for program in programs::PROGRAMS.into_iter().chain(programs::built_wasm()) {
            let (from, to) = (programs::built().join(program), at("bin").join(program));
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).expect("our programs");
        }
        for server in fs::read_dir(programs::sources().join("servers")).expect("test servers").flatten() {
            if server.path().extension().is_some_and(|e| e == "py") {
                fs::copy(server.path(), at("servers").join(server.file_name())).expect("a test server");
            }
        }
        for directory in ["home", "run", "tmp"] {
            home.own(&at(directory));
        }
        let path = programs::search_path(home.user.is_some());
        let text = |p: PathBuf| p.into_os_string().into_string().expect("scratch paths are UTF-8");
        let env = [
            ("HOME", text(at("home"))),
            ("PATH", format!("{}:{path}", text(at("bin")))),
            ("TMPDIR", text(at("tmp"))),
            ("XDG_CACHE_HOME", text(at("home/.cache"))),
            ("XDG_CONFIG_HOME", text(at("home/.config"))),
            ("XDG_DATA_HOME", text(at("home/.local/share"))),
            ("XDG_RUNTIME_DIR", text(at("run"))),
            ("XDG_STATE_HOME", text(at("home/.local/state"))),
        ];
        home.env = Mutex::new(env.map(|(name, value)| (name.to_owned(), value)).into());
        let python = home.run("python3", &["-c", "import os, sys; print(os.path.realpath(sys.executable))"]);
        home.python = python.expect_code(0).stdout.trim().into();
        home
    }

    /// The user's home directory.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// A file of Firedoor's state directory.
    pub fn state(&self, name: &str) -> PathBuf {
        self.path().join(".local/state/firedoor").join(name)
    }

    /// The directory of the engine's socket.
    pub fn runtime(&self) -> PathBuf {
        self.root.path().join("run/firedoor")
    }

    /// One of our programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.path().join("bin").join(name)
    }

    /// A test server's script.
    pub fn script(&self, name: &str) -> PathBuf {
        self.root.path().join("servers").join(name)
    }

    /// The interpreter itself, not a wrapper around it.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Sets a variable for everything that is started from now on.
    pub fn set(&self, name: &str, value: &str) {
        self.env.lock().expect("no test panics in here").push((name.to_owned(), value.to_owned()));
    }

    /// Gives a path to the user of this home.
    pub fn own(&self, path: &Path) {
        if let Some(user) = &self.user {
            lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("chown in the scratch directory");
        }
    }

    /// A pipe of the user of this home. Programs open their pipes anew, which only the owner of one may (pipe(7)).
    pub fn pipe(&self) -> (PipeReader, PipeWriter) {
        let (reader, writer) = io::pipe().expect("a pipe");
        if let Some(user) = &self.user {
            fchown(&reader, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("chown of a pipe");
        }
        (reader, writer)
    }

    /// Starts a program with its input and output connected to us.
    pub fn spawn(&self, command: &mut Command) -> (Child, PipeWriter, PipeReader) {
        let ((input, to_child), (from_child, output)) = (self.pipe(), self.pipe());
        let child = command.stdin(input).stdout(output).spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        // Our copies of the child's ends would hide the end of a stream.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        (child, to_child, from_child)
    }

    /// Writes a file below the home, with its directories, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        let mut missing: Vec<_> = path.ancestors().skip(1).take_while(|p| !p.exists()).map(Path::to_path_buf).collect();
        fs::create_dir_all(path.parent().expect("a file has a parent")).expect("directories in the scratch home");
        fs::write(&path, content).expect("a file in the scratch home");
        missing.push(path.clone());
        missing.iter().for_each(|p| self.own(p));
        path
    }

    /// A program with this home's environment and user, and nothing else of ours.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(self.env.lock().expect("no test panics in here").iter().cloned());
        // The program itself is looked up in our PATH, not in the child's.
        command.current_dir(self.path()).stdin(Stdio::null());
        if let Some(user) = &self.user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command
    }

    /// Runs a program to its end.
    #[track_caller]
    pub fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        finish(self.command(program).args(args))
    }

    /// Runs `firedoor`, in a session of its own: whoever started the tests may be gone, and a command whose session has
    /// lost its leader is one that hides who gave it.
    #[track_caller]
    pub fn firedoor(&self, args: &[&str]) -> Output {
        finish(self.command("setsid").arg(self.program("firedoor")).args(args))
    }

    /// Runs `firedoor` without a terminal, with this line on its stdin.
    #[track_caller]
    pub fn firedoor_typing(&self, args: &[&str], line: &str) -> Output {
        let file = self.write("input.txt", format!("{line}\n"));
        let input = fs::File::open(&file).expect("it was written");
        fs::remove_file(file).expect("it is ours");
        finish(self.command("setsid").arg(self.program("firedoor")).args(args).stdin(input))
    }

    /// Runs `firedoor … --json` and reads what it prints; exit code 0 or 1.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.firedoor(&[args, &["--json"]].concat());
        assert!(output.code == 0 || output.code == 1, "{output:#?}");
        output.json()
    }

    /// An entry that starts a test server.
    pub fn entry(&self, script: &str, args: &[&str]) -> Value {
        let script = self.script(script).into_os_string().into_string().expect("scratch paths are UTF-8");
        let args = [&[script.as_str()], args].concat();
        json!({"command": self.python, "args": args})
    }

    /// Writes a Cursor configuration with these servers.
    pub fn cursor(&self, servers: Value) -> PathBuf {
        let text = serde_json::to_string_pretty(&json!({"mcpServers": servers})).expect("plain JSON");
        self.write(".cursor/mcp.json", text + "\n")
    }

    /// Protects everything without starting the servers.
    #[track_caller]
    pub fn protect(&self) {
        self.firedoor(&["protect", "--all", "--yes", "--no-verify"]).expect_code(0);
    }

    /// The command line that the Cursor configuration now holds for a server.
    pub fn command_line(&self, server: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path().join(".cursor/mcp.json")).expect("a Cursor configuration");
        let config: Value = serde_json::from_str(&text).expect("a JSON configuration");
        let entry = &config["mcpServers"][server];
        let args = entry["args"].as_array().into_iter().flatten();
        std::iter::once(&entry["command"]).chain(args).map(|v| v.as_str().expect("text").to_owned()).collect()
    }

    /// Open questions.
    pub fn pending(&self) -> Vec<Value> {
        self.json(&["pending"])["questions"].as_array().cloned().unwrap_or_default()
    }

    /// The engine behind the socket.
    pub fn engine(&self) -> Option<i32> {
        let socket = UnixStream::connect(self.runtime().join("engine.sock")).ok()?;
        // The credentials of the process that listens (unix(7)).
        getsockopt(&socket.as_fd(), PeerCredentials).ok().map(|peer| peer.pid())
    }

    /// Makes a path read-only for the user, or writable again.
    pub fn set_mode(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod in the scratch home");
    }

    /// Makes a directory below the home.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).expect("a directory in the scratch home");
        if let Some(user) = &self.user {
            chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("chown in the scratch directory");
        }
        path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(pid) = self.engine() {
            kill(pid, Signal::SIGTERM);
            if until_within(Duration::from_secs(5), || (!alive(pid)).then_some(())).is_none() {
                kill(pid, Signal::SIGKILL);
            }
        }
    }
}

/// Runs a program to its end, at most two minutes.
#[track_caller]
pub fn finish(command: &mut Command) -> Output {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let pid = i32::try_from(child.id()).expect("a pid");
    let drain = |mut stream: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        })
    };
    let out = drain(Box::new(child.stdout.take().expect("a pipe")));
    let err = drain(Box::new(child.stderr.take().expect("a pipe")));
    let status = until_within(Duration::from_secs(120), || child.try_wait().expect("waitpid"));
    if status.is_none() {
        kill(pid, Signal::SIGKILL);
    }
    let status = status.unwrap_or_else(|| panic!("{command:?} did not end"));
    let code = status.code().or_else(|| std::os::unix::process::ExitStatusExt::signal(&status).map(|s| 128 + s));
    Output { code: code.unwrap_or(-1), stdout: out.join().expect("stdout"), stderr: err.join().expect("stderr") }
}
