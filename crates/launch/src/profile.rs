//! Sandbox profiles: what a known server needs beyond the base set.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use firedoor_model::{limits::Limits, network::HostGrant};
use serde::Deserialize;

/// Largest profile file that is read.
const MAX_FILE: u64 = 64 * 1024;
/// Most files in the user's profile directory.
const MAX_FILES: usize = 256;

const BUILT_IN: &[(&str, &str)] = &[
    ("arxiv", include_str!("../../../profiles/sandbox/arxiv.toml")),
    ("aws", include_str!("../../../profiles/sandbox/aws.toml")),
    ("brave-search", include_str!("../../../profiles/sandbox/brave-search.toml")),
    ("context7", include_str!("../../../profiles/sandbox/context7.toml")),
    ("duckduckgo", include_str!("../../../profiles/sandbox/duckduckgo.toml")),
    ("exa", include_str!("../../../profiles/sandbox/exa.toml")),
    ("fetch", include_str!("../../../profiles/sandbox/fetch.toml")),
    ("figma", include_str!("../../../profiles/sandbox/figma.toml")),
    ("filesystem", include_str!("../../../profiles/sandbox/filesystem.toml")),
    ("firecrawl", include_str!("../../../profiles/sandbox/firecrawl.toml")),
    ("git", include_str!("../../../profiles/sandbox/git.toml")),
    ("github", include_str!("../../../profiles/sandbox/github.toml")),
    ("gitlab", include_str!("../../../profiles/sandbox/gitlab.toml")),
    ("google-maps", include_str!("../../../profiles/sandbox/google-maps.toml")),
    ("kubernetes", include_str!("../../../profiles/sandbox/kubernetes.toml")),
    ("linear", include_str!("../../../profiles/sandbox/linear.toml")),
    ("notion", include_str!("../../../profiles/sandbox/notion.toml")),
    ("perplexity", include_str!("../../../profiles/sandbox/perplexity.toml")),
    ("sentry", include_str!("../../../profiles/sandbox/sentry.toml")),
    ("slack", include_str!("../../../profiles/sandbox/slack.toml")),
    ("sqlite", include_str!("../../../profiles/sandbox/sqlite.toml")),
    ("stripe", include_str!("../../../profiles/sandbox/stripe.toml")),
    ("supabase", include_str!("../../../profiles/sandbox/supabase.toml")),
    ("tavily", include_str!("../../../profiles/sandbox/tavily.toml")),
];

/// What paths in a server's arguments are granted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ArgumentAccess {
    /// To read.
    #[serde(rename = "ro")]
    Read,
    /// To read and to write.
    #[serde(rename = "rw")]
    Write,
}

/// Which servers a profile is for. Names are compared whole; PyPI names in their normal form (PEP 503).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Packages started through npx or npm exec.
    pub npm: Vec<String>,
    /// Packages started through uvx or uv tool run.
    pub pypi: Vec<String>,
    /// File names of executables.
    pub executable: Vec<String>,
}

/// What one kind of server may have. Paths are absolute or begin with `~/`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// For people.
    pub description: String,
    /// For which servers.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Paths to read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Paths to write.
    #[serde(default)]
    pub write: Vec<String>,
    /// Directories to list.
    #[serde(default)]
    pub list: Vec<String>,
    /// Paths of the user's home that appear in the private home: to write, or to read when they stand in `read` too.
    #[serde(default)]
    pub state: Vec<String>,
    /// Whether paths in the arguments are granted.
    #[serde(default)]
    pub args: Option<ArgumentAccess>,
    /// Variables that stay although they look like credentials.
    #[serde(default)]
    pub env: Vec<String>,
    /// Hosts to connect to: `api.example.com:443`, `*.example.com`, `127.0.0.1:5432`, or `*` for all public ones.
    #[serde(default)]
    pub hosts: Vec<HostGrant>,
    /// Unix sockets to connect to.
    #[serde(default)]
    pub unix: Vec<String>,
    /// Whether the server may listen, on the loopback interface.
    #[serde(default)]
    pub listen: bool,
    /// What the server may use up; what is left out is as in `base.toml`.
    #[serde(default)]
    pub limits: Limits,
}

/// What is known about a server when its profile is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// An npm package's name.
    Npm(&'a str),
    /// A PyPI package's name.
    Pypi(&'a str),
    /// An executable's file name.
    Executable(&'a str),
}

/// A profile file that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which file.
    pub file: PathBuf,
    /// Its line, when it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub text: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// All profiles.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    user: Vec<Profile>,
    built_in: Vec<Profile>,
    /// Texts of the user's files that do not parse: what they mention gets no profile at all, because the file may
    /// have been meant to be tighter than the one that would count instead.
    broken: Vec<String>,
    /// A user's file could not even be read, so it may mention anything.
    unreadable: bool,
}

/// The outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Profile(&'a Profile),
    /// A broken file of the user's may be about this server.
    Withheld,
    Nothing,
}

impl Profiles {
    /// Loads the built-in profiles and the user's `*.toml` in `user_dir`, which need not exist. A user's profile goes
    /// before a built-in one, and replaces the built-in one of the same name.
    pub fn load(user_dir: &Path) -> (Self, Vec<Problem>) {
        let mut all = Self::default();
        let mut problems = Vec::new();
        for (name, text) in BUILT_IN {
            match parse(name, text) {
                Ok(profile) => all.built_in.push(profile),
                Err((line, text)) => {
                    problems.push(Problem { file: PathBuf::from(format!("built-in {name}.toml")), line, text });
                }
            }
        }
        let files = match user_files(user_dir) {
            Ok(files) => files,
            Err(text) => {
                all.unreadable = true;
                problems.push(Problem { file: user_dir.to_owned(), line: None, text });
                return (all, problems);
            }
        };
        for (name, file) in files {
            let text = match read_bounded(&file) {
                Ok(text) => text,
                Err(e) => {
                    all.unreadable = true;
                    let text = format!("could not be read: {e}. Until it can be, servers run without any profile");
                    problems.push(Problem { file, line: None, text });
                    continue;
                }
            };
            all.built_in.retain(|p| p.name != name);
            match parse(&name, &text) {
                Ok(profile) => all.user.push(profile),
                Err((line, why)) => {
                    let why = format!("{why}. Until it is corrected, servers it mentions run without any profile");
                    problems.push(Problem { file, line, text: why });
                    all.broken.push(normal(&text));
                }
            }
        }
        (all, problems)
    }

    /// The profile of that name; the user's own before a built-in one. None while a file of the user's cannot be read:
    /// it may have been meant to be this one.
    pub(crate) fn named(&self, name: &str) -> Option<&Profile> {
        self.user.iter().chain(&self.built_in).find(|p| p.name == name && !self.unreadable)
    }

    /// The profile for a server known under any of `subjects`.
    pub(crate) fn find(&self, subjects: &[Subject<'_>]) -> Found<'_> {
        let mentions = |s: &Subject<'_>| {
            let name = normal(s.name());
            self.broken.iter().any(|text| text.contains(&name))
        };
        if !subjects.is_empty() && (self.unreadable || subjects.iter().any(mentions)) {
            return Found::Withheld;
        }
        let fits = |p: &&Profile| subjects.iter().any(|s| p.matches.fits(*s));
        self.user.iter().find(fits).or_else(|| self.built_in.iter().find(fits)).map_or(Found::Nothing, Found::Profile)
    }
}

impl Subject<'_> {
    /// The list of [`Match`] that names of this kind stand in.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Npm(_) => "npm",
            Self::Pypi(_) => "pypi",
            Self::Executable(_) => "executable",
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Npm(n) | Self::Pypi(n) | Self::Executable(n) => n,
        }
    }
}

impl Match {
    fn fits(&self, subject: Subject<'_>) -> bool {
        match subject {
            Subject::Npm(name) => self.npm.iter().any(|n| n == name),
            Subject::Pypi(name) => self.pypi.iter().any(|n| normal(n) == normal(name)),
            Subject::Executable(name) => self.executable.iter().any(|n| n == name),
        }
    }
}

/// PyPI's normal form of a name (PEP 503): lower case, runs of `-`, `_` and `.` as one `-`.
pub(crate) fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if matches!(c, '-' | '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    out
}

/// The user's profile files, sorted by name.
fn user_files(dir: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let unreadable =
        |e: io::Error| format!("could not be listed: {e}. Until it can be, servers run without any profile");
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(unreadable(e)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let Some(name) = path.file_stem().and_then(|n| n.to_str()) else { continue };
        files.insert(name.to_owned(), path);
        if files.len() > MAX_FILES {
            return Err(format!("holds more than {MAX_FILES} profiles: remove some. Until then no profile counts"));
        }
    }
    Ok(files)
}

fn read_bounded(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(file)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, (Option<usize>, String)> {
    let mut profile: Profile = toml::from_str(text).map_err(|e| {
        let line = e.span().map(|s| text.get(..s.start).unwrap_or_default().matches('\n').count() + 1);
        (line, e.message().to_owned())
    })?;
    name.clone_into(&mut profile.name);
    let paths = [&profile.read, &profile.write, &profile.list, &profile.state, &profile.unix];
    for path in paths.into_iter().flatten() {
        let line = text.lines().position(|l| l.contains(path.as_str())).map(|n| n + 1);
        let in_home = path.strip_prefix("~/").is_some_and(|rest| !rest.is_empty());
        if !in_home && !path.starts_with('/') {
            return Err((line, format!("{path:?} is no path: write it absolute or beginning with ~/")));
        }
        if Path::new(path).components().any(|c| c.as_os_str() == "..") {
            return Err((line, format!("{path:?} has a part \"..\": write the path without it")));
        }
    }
    if let Some(path) = profile.state.iter().find(|p| !p.starts_with("~/")) {
        let line = text.lines().position(|l| l.contains(path.as_str())).map(|n| n + 1);
        return Err((line, format!("state {path:?} does not begin with ~/: only paths of your home can be linked")));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_parse_and_are_all_loaded() {
        let none = tempfile::tempdir().unwrap();
        let (profiles, problems) = Profiles::load(&none.path().join("missing"));
        assert_eq!(problems, []);
        let Found::Profile(p) = profiles.find(&[Subject::Npm("@modelcontextprotocol/server-filesystem")]) else {
            panic!("no profile")
        };
        assert_eq!((p.name.as_str(), p.args), ("filesystem", Some(ArgumentAccess::Write)));
        assert!(matches!(profiles.find(&[Subject::Pypi("MCP_Server.Git")]), Found::Profile(p) if p.name == "git"));
        assert_eq!(profiles.find(&[Subject::Pypi("@modelcontextprotocol/server-filesystem")]), Found::Nothing);
        assert_eq!(profiles.find(&[]), Found::Nothing);
        for (name, text) in BUILT_IN {
            assert!(parse(name, text).is_ok(), "{name}");
        }
    }

    /// One user file named `name`: the problem's text, its line, and what look-ups of two packages give.
    fn check(name: &str, text: &[u8]) -> (Option<String>, Option<usize>, String, String) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), text).unwrap();
        let (profiles, mut problems) = Profiles::load(dir.path());
        let look = |s: Subject<'_>| match profiles.find(&[s]) {
            Found::Profile(p) => p.description.clone(),
            Found::Withheld => "withheld".into(),
            Found::Nothing => "nothing".into(),
        };
        let files = look(Subject::Npm("@modelcontextprotocol/server-filesystem"));
        let git = look(Subject::Pypi("mcp-server-git"));
        assert_eq!(profiles.named("git").is_none(), profiles.unreadable);
        let problem = problems.pop();
        (problem.as_ref().map(ToString::to_string), problem.and_then(|p| p.line), files, git)
    }

    #[test]
    fn the_users_profile_goes_first() {
        let (problem, _, files, git) = check(
            "mine.toml",
            b"description = \"mine\"\n[match]\nnpm = [\"@modelcontextprotocol/server-filesystem\"] # comment\n",
        );
        assert_eq!((problem, files.as_str()), (None, "mine"));
        assert!(git.starts_with("Git server"));
        let (_, _, files, git) = check("filesystem.toml", b"description = \"mine\"\nmatch = {}\n");
        assert_eq!(files, "nothing", "a profile replaces the built-in one of its name");
        assert!(git.starts_with("Git server"));
    }

    #[test]
    fn limits_are_read_key_by_key() {
        let text = "description = \"x\"\nmatch = {}\n[limits]\nmemory = \"2GiB\"\ncpu = 150\n";
        let own = parse("x", text).unwrap().limits;
        let all = own.over(crate::grants::base_limits());
        assert_eq!((all.memory.unwrap().to_string(), all.cpu.unwrap().get()), ("2GiB".to_owned(), 150));
        assert!(all.processes.is_some() && all.files.is_some() && all.file_size.is_some(), "from base.toml");
    }

    #[test]
    fn a_broken_profile_loosens_nothing() {
        let head = "description = \"x\"\n";
        for (name, text, line, want) in [
            ("filesystem.toml", "description = [".to_owned(), Some(1), "expected"),
            (
                "x.toml",
                format!("{head}\nreed = []\n[match]\nnpm = [\"@modelcontextprotocol/server-filesystem\"]"),
                Some(3),
                "unknown field `reed`",
            ),
            (
                "x.toml",
                format!("{head}read = [\"rel\"] # @modelcontextprotocol/server-filesystem\nmatch = {{}}"),
                Some(2),
                "write it absolute",
            ),
            (
                "x.toml",
                format!("{head}match={{npm=[\"@modelcontextprotocol/server-filesystem\"]}}\nwrite = [\"~/a/../..\"]"),
                Some(3),
                "\"..\"",
            ),
            (
                "x.toml",
                format!("{head}match={{npm=[\"@modelcontextprotocol/server-filesystem\"]}}\nstate = [\"/etc\"]"),
                Some(3),
                "only paths of your home",
            ),
            (
                "x.toml",
                format!(
                    "{head}hosts = [\"https://a.example\"]\nmatch = {{}} # @modelcontextprotocol/server-filesystem"
                ),
                Some(2),
                "is no host",
            ),
            (
                "x.toml",
                format!("{head}unix = [\"run/x\"] # @modelcontextprotocol/server-filesystem\nmatch = {{}}"),
                Some(2),
                "write it absolute",
            ),
            (
                "x.toml",
                format!("{head}match = {{}} # @modelcontextprotocol/server-filesystem\n[limits]\nmemory = \"4GB\""),
                Some(4),
                "KiB, MiB, GiB or TiB",
            ),
            (
                "x.toml",
                format!("{head}match = {{}} # @modelcontextprotocol/server-filesystem\n[limits]\nprocesses = 0"),
                Some(4),
                "out of bounds",
            ),
            ("x.toml", "# @modelcontextprotocol/server-filesystem".to_owned(), None, "missing field"),
        ] {
            let (problem, at, files, git) = check(name, text.as_bytes());
            let problem = problem.expect(&text);
            assert!(problem.contains(want) && problem.contains(name), "{problem}");
            if line.is_some() {
                assert_eq!(at, line, "{text}");
            }
            assert!(["withheld", "nothing"].contains(&files.as_str()), "{text}: {files}");
            assert!(git.starts_with("Git server"), "other servers are not touched");
        }
        let (problem, _, files, git) = check("x.toml", &[0xff, 0xfe]);
        assert!(problem.unwrap().contains("could not be read"));
        assert_eq!((files.as_str(), git.as_str()), ("withheld", "withheld"));
        let (problem, ..) = check("x.toml", &vec![b'#'; 70_000]);
        assert!(problem.unwrap().contains("larger than"));
    }
}
