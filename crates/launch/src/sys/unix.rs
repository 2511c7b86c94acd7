//! As Unix has it.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use firedoor_model::{Unavailable, launch::LaunchRequest, paths::Paths};
use nix::libc;

use crate::program::Lookup;

/// Where an environment of Python's has its programs.
pub(crate) const VENV_PROGRAMS: &str = "bin";
/// Where a directory is of use that is there for certain.
pub(crate) const ROOT: &str = "/";
/// What runs `npx --call`.
pub(crate) const SHELL: Result<&str, Unavailable> = Ok("/bin/sh");
/// Whether a home is listed to know the links in it.
pub(crate) const LISTS_HOMES: bool = true;

/// Trees that hold the whole system or other processes; they and what is in them are never granted.
const SYSTEM: &[&str] = &["/proc", "/sys", "/run/user"];
/// Trees that are never granted as a whole.
const WHOLE: &[&str] = &["/", "/dev", "/run", "/home", "/var", "/etc", "/tmp", "/var/tmp", "/dev/shm"];
/// Seconds after which a file's next change is sure to get another time.
const SETTLED: u64 = 2;

/// The name of a program, of the file name that it was started with.
pub(crate) fn program_name(file: &str) -> Cow<'_, str> {
    Cow::Borrowed(file)
}

/// What a shell in front of the command was asked to run.
pub(crate) fn unwrapped(_: &LaunchRequest) -> Option<LaunchRequest> {
    None
}

/// Whether this can be the name of a variable.
pub(crate) fn is_variable(name: &OsStr) -> bool {
    !name.is_empty()
}

/// Whether two names are those of one variable.
pub(crate) fn same_variable(a: &OsStr, b: &OsStr) -> bool {
    a == b
}

/// Whether two names are those of one file.
pub(crate) fn same_name(a: &OsStr, b: &OsStr) -> bool {
    a == b
}

/// Whether a path is `place` or lies in it.
pub(crate) fn within(path: &Path, place: &Path) -> bool {
    path.starts_with(place)
}

/// Whether a tree holds too much to be granted as a whole.
pub(crate) fn holds_too_much(path: &Path) -> bool {
    WHOLE.iter().any(|w| path == Path::new(w))
}

/// Whether a tree shows the whole system or other processes, or lies in one that does.
pub(crate) fn shows_the_system(path: &Path) -> bool {
    SYSTEM.iter().any(|s| path.starts_with(s) || Path::new(s).starts_with(path))
}

/// Whether a directory that is nobody's home is narrow enough to be granted whole.
pub(crate) fn is_narrow(dir: &Path) -> bool {
    is_deep(dir) && !["/usr", "/tmp", "/var/tmp", "/dev/shm"].iter().any(|d| dir == Path::new(d))
}

/// Whether a directory lies deeper than those that the system is divided into.
pub(crate) fn is_deep(dir: &Path) -> bool {
    dir.components().count() > 2
}

/// A directory that others may put files into, such as `/tmp`.
pub(crate) fn is_shared(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|m| m.mode() & 0o1000 != 0)
}

/// Whether a text is what an argument says where it means a path, besides one below the working directory.
pub(crate) fn is_path_argument(text: &str) -> bool {
    matches!(text, "." | "..") || text.starts_with("./") || text.starts_with("../") || text.starts_with('/')
}

/// Further places of the user's that stay closed, besides those of `protected.toml`.
pub(crate) fn secret_places(_: &Paths) -> Vec<PathBuf> {
    Vec::new()
}

/// Further places of the user's that are only read, besides those of `protected.toml`.
pub(crate) fn persistence_places(_: &Paths) -> Vec<PathBuf> {
    Vec::new()
}

/// What every server may read besides the base set.
pub(crate) fn base_read() -> Vec<PathBuf> {
    Vec::new()
}

/// Whether a variable makes a program run other code, besides those of `environment.toml`.
pub(crate) fn is_code(_: &str) -> bool {
    false
}

/// Whether an install gets a variable, besides those of `environment.toml`.
pub(crate) fn is_for_install(_: &OsStr) -> bool {
    false
}

/// Adds the variables without which no program works, where they are missing.
pub(crate) fn add_needed(_: &mut Vec<(OsString, OsString)>) {}

/// The variables that say where home, temporary files and caches are.
pub(crate) fn home_variables(home: &Path, tmp: &Path, cache: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut all = vec![("HOME", home.to_owned())];
    all.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name, tmp.to_owned())));
    all.extend([
        ("XDG_CACHE_HOME", cache.to_owned()),
        ("XDG_CONFIG_HOME", home.join(".config")),
        ("XDG_DATA_HOME", home.join(".local/share")),
        ("XDG_STATE_HOME", home.join(".local/state")),
    ]);
    all
}

/// Directories of a home that programs take for granted.
pub(crate) const HOME_DIRECTORIES: [&str; 0] = [];

/// Where npm keeps its cache, in the user's home (npm, "config", `cache`).
pub(crate) const NPM_CACHE: &str = ".npm";

/// A file that is empty for certain. `own` is a directory that no server can write.
pub(crate) fn empty_file(_own: &Path) -> PathBuf {
    "/dev/null".into()
}

/// The directory of an installation that a program belongs to.
pub(crate) fn prefix(program: &Path) -> Option<&Path> {
    program.parent()?.parent()
}

/// Whether a directory is the installation of an interpreter: it has the library tree that only those have.
pub(crate) fn is_interpreter_prefix(prefix: &Path) -> bool {
    if prefix.join("lib/node_modules").is_dir() || prefix.join("include/node").is_dir() {
        return true;
    }
    let Ok(lib) = fs::read_dir(prefix.join("lib")) else { return false };
    lib.take(512).flatten().any(|e| {
        let name = e.file_name();
        let name = name.to_string_lossy();
        (name.starts_with("python3") || name == "ruby" || name == "perl5") && e.path().is_dir()
    })
}

/// Whether a directory is the installation of a Python: its standard library lies there.
pub(crate) fn is_python_prefix(prefix: &Path) -> bool {
    // Those of PyPy before 3.9 lie apart.
    if prefix.join("lib-python/3/os.py").is_file() {
        return true;
    }
    ["lib", "lib64"].iter().filter_map(|lib| fs::read_dir(prefix.join(lib)).ok()).any(|lib| {
        lib.take(8192).flatten().any(|e| {
            let name = e.file_name();
            let name = name.to_string_lossy();
            (name.starts_with("python") || name.starts_with("pypy")) && e.path().join("os.py").is_file()
        })
    })
}

/// Whether a file may be started.
pub(crate) fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

/// A program of that name in a directory that has one version of a tool.
pub(crate) fn of_version(dir: &Path, name: &OsStr) -> Option<PathBuf> {
    Some(dir.join("bin").join(name)).filter(|file| file.exists())
}

/// A program of an environment of Python's.
pub(crate) fn in_venv(venv: &Path, name: &Path) -> PathBuf {
    venv.join("bin").join(name)
}

/// Directories of packages in an environment of Python's, each with what stands for its Python.
pub(crate) fn site_packages(venv: &Path, subdirs: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    subdirs(&venv.join("lib")).into_iter().map(|python| python.join("site-packages")).collect()
}

/// Configurations of npm's that count for all of its users. @npmcli/config, `loadGlobalPrefix`: two directories above the real
/// executable.
pub(crate) fn npm_global(_: &Lookup<'_>, node: &Path) -> Vec<PathBuf> {
    node.parent().and_then(Path::parent).map(|prefix| prefix.join("etc/npmrc")).into_iter().collect()
}

/// The user's configuration of uv.
pub(crate) fn uv_config(at: &Lookup<'_>) -> PathBuf {
    let config_home = at.var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    config_home.unwrap_or_else(|| at.home.join(".config")).join("uv/uv.toml")
}

/// Where uv keeps the Pythons that it has installed, if it is told nothing else.
pub(crate) fn uv_pythons(at: &Lookup<'_>) -> PathBuf {
    let data = at.var("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    data.unwrap_or_else(|| at.home.join(".local/share")).join("uv/python")
}

/// Makes directories that only the user can enter.
pub(crate) fn private_directories() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Makes files that only the user can read.
pub(crate) fn private_files() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Opens to read, without following a link and without waiting for a pipe's other end.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// What tells that a file is as it was: every change of a file sets its change time, which only the superuser can turn back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Version {
    /// `None` for a file that was changed so lately that the clock may not tell a further change.
    pub(crate) fn of(meta: &fs::Metadata) -> Option<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let settled = u64::try_from(meta.ctime()).ok()?.saturating_add(SETTLED) < now;
        let changed = (meta.ctime(), meta.ctime_nsec());
        settled.then(|| Self { device: meta.dev(), inode: meta.ino(), length: meta.len(), changed })
    }
}
