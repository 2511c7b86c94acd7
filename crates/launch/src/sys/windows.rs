//! As Windows has it: names without regard to case, drives, and directories that their access list closes to others. A new
//! directory has the list of the one that it lies in, which in a user's own directories lets in nobody else.

use std::{
    borrow::Cow,
    env,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf, Prefix},
    sync::LazyLock,
};

use firedoor_model::{
    Unavailable,
    launch::LaunchRequest,
    paths::{Paths, canonicalize},
};
use serde::Deserialize;

use crate::{command, program::Lookup};

/// Where an environment of Python's has its programs.
pub(crate) const VENV_PROGRAMS: &str = "Scripts";
/// Where a directory is of use that is there for certain.
pub(crate) const ROOT: &str = r"C:\";
/// What runs `npx --call`: cmd.exe, which takes what it runs in no form that every starter of programs would give it.
pub(crate) const SHELL: Result<&str, Unavailable> = Err(Unavailable("npx --call"));
/// Whether a home is listed to know the links in it: a name there may be written in another case.
pub(crate) const LISTS_HOMES: bool = false;
/// Directories of a home that programs take for granted.
pub(crate) const HOME_DIRECTORIES: [&str; 3] = ["AppData", r"AppData\Roaming", r"AppData\Local"];

/// Where npm keeps its cache, in the user's home (npm, "config", `cache`).
pub(crate) const NPM_CACHE: &str = r"AppData\Local\npm-cache";

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and is then no regular file.
const NO_LINKS: u32 = 0x0020_0000;
/// `ERROR_CANT_ACCESS_FILE`.
const CANNOT_ACCESS: i32 = 1920;
/// What cmd.exe takes for `PATHEXT`, of what can be started.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// From `profiles/sandbox/windows.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    base: Vec<String>,
    whole: Vec<String>,
    code: Vec<String>,
    install: Vec<String>,
    roaming: Places,
    local: Places,
    home: Places,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Places {
    secret: Vec<PathBuf>,
    persistence: Vec<PathBuf>,
}

#[expect(clippy::expect_used, reason = "built-in data, parsed by a test")]
static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/windows.json"))).expect("windows.toml parses")
});

/// The name of a program, of the file name that it was started with: without the ending, and as it is written elsewhere.
pub(crate) fn program_name(file: &str) -> Cow<'static, str> {
    let lower = file.to_lowercase();
    let name = ["exe", "cmd", "bat", "com"].iter().find_map(|ending| lower.strip_suffix(ending)?.strip_suffix('.'));
    match name.unwrap_or(&lower) {
        // The launcher, and both without a window (docs.python.org, "Using Python on Windows").
        "py" | "pyw" | "pythonw" => "python".into(),
        name => Cow::Owned(name.to_owned()),
    }
}

/// What a shell in front of the command was asked to run.
pub(crate) fn unwrapped(request: &LaunchRequest) -> Option<LaunchRequest> {
    let file = Path::new(&request.program).file_name()?.to_str()?;
    if program_name(file) != "cmd" {
        return None;
    }
    let var = |name: &str| {
        let found = request.env.iter().rev().find(|(n, _)| same_variable(n, OsStr::new(name)));
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned)
    };
    let mut words = command::asked_of_cmd(&request.args, var)?.into_iter();
    let program = words.next()?;
    Some(LaunchRequest { program, args: words.collect(), ..request.clone() })
}

/// Whether this can be the name of a variable. Those that begin with `=` are cmd.exe's notes of where it is on each drive.
pub(crate) fn is_variable(name: &OsStr) -> bool {
    !name.is_empty() && !name.to_string_lossy().starts_with('=')
}

/// Whether two names are those of one variable.
pub(crate) fn same_variable(a: &OsStr, b: &OsStr) -> bool {
    same_name(a, b)
}

/// Whether two names are those of one file.
pub(crate) fn same_name(a: &OsStr, b: &OsStr) -> bool {
    a.eq_ignore_ascii_case(b) || folded(a) == folded(b)
}

/// A text in one case. What is no text is taken for other text that is none, too, which closes more and opens nothing.
fn folded(text: &OsStr) -> String {
    text.to_string_lossy().to_lowercase()
}

/// The parts of a path in one form, `\\?\C:\` as `C:\`.
fn parts(path: &Path) -> Vec<String> {
    let part = |part: Component<'_>| match part {
        Component::Prefix(prefix) => match prefix.kind() {
            Prefix::Disk(drive) | Prefix::VerbatimDisk(drive) => format!("{}:", char::from(drive).to_ascii_lowercase()),
            Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                format!(r"\\{}\{}", folded(server), folded(share))
            }
            _ => folded(prefix.as_os_str()),
        },
        other => folded(other.as_os_str()),
    };
    path.components().map(part).collect()
}

/// Whether a path is `place` or lies in it.
pub(crate) fn within(path: &Path, place: &Path) -> bool {
    parts(path).starts_with(&parts(place))
}

/// The directories that variables of this program's own environment name.
fn named(variables: &[String]) -> impl Iterator<Item = PathBuf> + use<> {
    let directory = |name: &String| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // As they are written, and where they really lie: what is granted has no links in it.
    let found: Vec<PathBuf> = variables.iter().filter_map(directory).collect();
    found.into_iter().flat_map(|path| {
        let real = canonicalize(&path).ok().filter(|real| *real != path);
        [Some(path), real].into_iter().flatten()
    })
}

/// Whether a tree holds too much to be granted as a whole: a drive, what lies in one and everybody uses.
pub(crate) fn holds_too_much(path: &Path) -> bool {
    let same = |place: &Path| within(path, place) && within(place, path);
    // Where everybody's home lies.
    let users = named(&["PUBLIC".to_owned()]).any(|public| public.parent().is_some_and(same));
    users || path.parent().is_none() || named(&LISTS.whole).any(|place| same(&place))
}

/// Whether a path leads to devices, pipes or volumes instead of files.
pub(crate) fn shows_the_system(path: &Path) -> bool {
    let files = |prefix: Prefix<'_>| {
        matches!(prefix, Prefix::Disk(_) | Prefix::VerbatimDisk(_) | Prefix::UNC(..) | Prefix::VerbatimUNC(..))
    };
    !matches!(path.components().next(), Some(Component::Prefix(prefix)) if files(prefix.kind()))
}

/// Whether a directory that is nobody's home is narrow enough to be granted whole.
pub(crate) fn is_narrow(dir: &Path) -> bool {
    is_deep(dir) && !holds_too_much(dir)
}

/// Whether a directory lies deeper than those that a drive is divided into: `C:\`, `C:\Users`.
pub(crate) fn is_deep(dir: &Path) -> bool {
    dir.components().count() > 3
}

/// A directory that is for files of all programs.
pub(crate) fn is_shared(dir: &Path) -> bool {
    let temporary = ["TEMP".to_owned(), "TMP".to_owned(), "PUBLIC".to_owned()];
    named(&temporary).any(|place| within(dir, &place) && within(&place, dir))
}

/// Whether a text is what an argument says where it means a path, besides one below the working directory. Not one on another
/// machine: only to look at it would tell that machine who the user is.
pub(crate) fn is_path_argument(text: &str) -> bool {
    let relative = [r".\", r"..\", "./", "../"].iter().any(|begin| text.starts_with(begin));
    let drive = || matches!(Path::new(text).components().next(), Some(Component::Prefix(p)) if matches!(p.kind(), Prefix::Disk(_)));
    matches!(text, "." | "..") || relative || drive() && Path::new(text).is_absolute()
}

/// Further places of the user's that stay closed, besides those of `protected.toml`.
pub(crate) fn secret_places(paths: &Paths) -> Vec<PathBuf> {
    places(paths, |places| &places.secret)
}

/// Further places of the user's that are only read, besides those of `protected.toml`.
pub(crate) fn persistence_places(paths: &Paths) -> Vec<PathBuf> {
    places(paths, |places| &places.persistence)
}

fn places(paths: &Paths, which: impl Fn(&Places) -> &Vec<PathBuf>) -> Vec<PathBuf> {
    // Firedoor's own lie in both: `config` in the one, `data` two deep in the other.
    let below = |dir: Option<&Path>, places: &Places| {
        let dir = dir.map(Path::to_owned);
        which(places).iter().filter_map(|place| Some(dir.as_ref()?.join(place))).collect::<Vec<_>>()
    };
    let local = paths.data.parent().and_then(Path::parent);
    let all =
        [(paths.config.parent(), &LISTS.roaming), (local, &LISTS.local), (Some(paths.home.as_path()), &LISTS.home)];
    all.into_iter().flat_map(|(dir, places)| below(dir, places)).collect()
}

/// What every server may read besides the base set.
pub(crate) fn base_read() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for place in named(&LISTS.base) {
        if !all.iter().any(|there| within(&place, there)) {
            all.push(place);
        }
    }
    all
}

/// Whether a variable makes a program run other code, besides those of `environment.toml`.
pub(crate) fn is_code(name: &str) -> bool {
    LISTS.code.iter().any(|code| code.eq_ignore_ascii_case(name))
}

/// Whether an install gets a variable, besides those of `environment.toml`.
pub(crate) fn is_for_install(name: &OsStr) -> bool {
    LISTS.install.iter().any(|known| same_variable(name, OsStr::new(known)))
}

/// Adds the variables without which no program works, where they are missing: sockets, random numbers and cmd.exe are looked for
/// below `SystemRoot`.
pub(crate) fn add_needed(env: &mut Vec<(OsString, OsString)>) {
    let own = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let root = own("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let drive = Path::new(&root).components().next().map_or("C:".into(), |drive| drive.as_os_str().to_owned());
    let shell = Path::new(&root).join(r"System32\cmd.exe").into_os_string();
    for (name, value) in [
        ("SystemRoot", root.clone()),
        ("windir", root),
        ("SystemDrive", drive),
        ("ComSpec", shell),
        ("PATHEXT", own("PATHEXT").unwrap_or_else(|| ENDINGS.into())),
    ] {
        if !env.iter().any(|(there, value)| same_variable(there, OsStr::new(name)) && !value.is_empty()) {
            env.retain(|(there, _)| !same_variable(there, OsStr::new(name)));
            env.push((name.into(), value));
        }
    }
}

/// The variables that say where home, temporary files and caches are.
pub(crate) fn home_variables(home: &Path, tmp: &Path, cache: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut all = vec![
        ("USERPROFILE", home.to_owned()),
        // What comes from Unix, git among it, looks for this one first.
        ("HOME", home.to_owned()),
        ("APPDATA", home.join(r"AppData\Roaming")),
        ("LOCALAPPDATA", home.join(r"AppData\Local")),
        ("XDG_CACHE_HOME", cache.to_owned()),
        ("XDG_CONFIG_HOME", home.join(".config")),
        ("XDG_DATA_HOME", home.join(r".local\share")),
        ("XDG_STATE_HOME", home.join(r".local\state")),
    ];
    all.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name, tmp.to_owned())));
    let mut parts = home.components();
    if let Some(Component::Prefix(drive)) = parts.next() {
        all.push(("HOMEDRIVE", drive.as_os_str().into()));
        all.push(("HOMEPATH", parts.as_path().to_owned()));
    }
    all
}

/// A file that is empty for certain, or not there. `own` is a directory that no server can write.
pub(crate) fn empty_file(own: &Path) -> PathBuf {
    own.join("none")
}

/// The directory of an installation that a program belongs to: an environment of Python's has its programs one deeper.
pub(crate) fn prefix(program: &Path) -> Option<&Path> {
    let dir = program.parent()?;
    let deeper = ["Scripts", "bin"].iter().any(|name| dir.file_name().is_some_and(|n| same_name(n, OsStr::new(name))));
    if deeper { dir.parent() } else { Some(dir) }
}

/// Whether a directory is the installation of an interpreter: it has the library tree that only those have.
pub(crate) fn is_interpreter_prefix(prefix: &Path) -> bool {
    [r"node_modules\npm", r"Lib\encodings", r"Lib\site-packages", r"lib\ruby", r"lib\perl5"]
        .iter()
        .any(|d| prefix.join(d).is_dir())
}

/// Whether a directory is the installation of a Python: its standard library lies there.
pub(crate) fn is_python_prefix(prefix: &Path) -> bool {
    [r"Lib\os.py", r"lib-python\3\os.py"].iter().any(|file| prefix.join(file).is_file())
}

/// Whether a file may be started.
pub(crate) fn is_program(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("exe")) && file.is_file()
}

/// A program of that name in a directory that has one version of a tool, whatever its stand-in ends with.
pub(crate) fn of_version(dir: &Path, name: &OsStr) -> Option<PathBuf> {
    let stem = Path::new(name).file_stem()?.to_str()?;
    let places = [dir.to_owned(), dir.join("bin"), dir.join("Scripts")];
    let files = places.iter().flat_map(|place| ["exe", "cmd"].map(|ending| place.join(format!("{stem}.{ending}"))));
    files.into_iter().find(|file| file.is_file())
}

/// A program of an environment of Python's.
pub(crate) fn in_venv(venv: &Path, name: &Path) -> PathBuf {
    let mut file = venv.join(VENV_PROGRAMS).join(name).into_os_string();
    if !file.to_string_lossy().to_ascii_lowercase().ends_with(".exe") {
        file.push(".exe");
    }
    file.into()
}

/// Directories of packages in an environment of Python's.
pub(crate) fn site_packages(venv: &Path, _: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    vec![venv.join(r"Lib\site-packages")]
}

/// Configurations of npm's that count for all of its users. @npmcli/config, `loadGlobalPrefix`: the directory of the real
/// executable, and what the npm that comes with node says instead.
pub(crate) fn npm_global(at: &Lookup<'_>, node: &Path) -> Vec<PathBuf> {
    let own = node.parent().map(|prefix| prefix.join(r"etc\npmrc"));
    [Some(roaming(at).join(r"npm\etc\npmrc")), own].into_iter().flatten().collect()
}

/// The user's configuration of uv. uv, "Storage".
pub(crate) fn uv_config(at: &Lookup<'_>) -> PathBuf {
    roaming(at).join(r"uv\uv.toml")
}

/// Where uv keeps the Pythons that it has installed, if it is told nothing else.
pub(crate) fn uv_pythons(at: &Lookup<'_>) -> PathBuf {
    let data = roaming(at).join("uv");
    let (older, newer) = (data.join("python"), data.join(r"data\python"));
    if newer.is_dir() && !older.is_dir() { newer } else { older }
}

/// The user's settings.
fn roaming(at: &Lookup<'_>) -> PathBuf {
    let set = at.var("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    set.unwrap_or_else(|| at.home.join(r"AppData\Roaming"))
}

/// Makes directories below the user's own.
pub(crate) fn private_directories() -> DirBuilder {
    DirBuilder::new()
}

/// Makes files below the user's own.
pub(crate) fn private_files() -> OpenOptions {
    OpenOptions::new()
}

/// Opens to read, without following a link.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NO_LINKS).open(path)
}

/// Whether a file is what the Microsoft Store puts into `PATH`: it can be started, and nothing else can be done with it.
pub(crate) fn is_alias(e: &io::Error) -> bool {
    e.raw_os_error() == Some(CANNOT_ACCESS)
}

/// What tells that a file is as it was. Nothing does: whoever may write a file may set all of its times.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Version {}

impl Version {
    /// Always `None`.
    pub(crate) fn of(_: &fs::Metadata) -> Option<Self> {
        None
    }
}

#[cfg(test)]
#[path = "windows/tests.rs"]
mod tests;
