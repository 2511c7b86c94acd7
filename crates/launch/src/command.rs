//! The command lines of npx, npm exec, uvx and uv, read as those tools read them. An option that is not known here is
//! refused: whether it takes a value decides which word is the package.
//!
//! Sources: npm 11 `bin/npx-cli.js` and `npm exec --help`; uv 0.13 `uvx --help`.

use std::{ffi::OsString, path::PathBuf};

use crate::{error::PlanError, identity::Ecosystem, profile::normal};

/// A package named on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// As written, without a comment on what it is.
    pub(crate) text: String,
    pub(crate) name: String,
    /// Whether it names one version only.
    pub(crate) exact: bool,
    /// Whether it names no version at all.
    pub(crate) bare: bool,
}

/// A command that installs packages before it runs one of their programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageCommand {
    pub(crate) ecosystem: Ecosystem,
    /// What is installed; the first one is the server.
    pub(crate) packages: Vec<Spec>,
    /// The program that runs, if it is named apart from the package.
    pub(crate) command: Option<String>,
    /// What that program gets.
    pub(crate) rest: Vec<OsString>,
    /// Options that the install must repeat to fill the same cache.
    pub(crate) repeat: Vec<String>,
    /// Registry addresses given as options.
    pub(crate) registries: Vec<RegistryOption>,
    /// `--python`, for uvx.
    pub(crate) python: Option<String>,
}

/// A registry given as an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistryOption {
    /// Replaces the default one, rather than standing beside it.
    pub(crate) default: bool,
    pub(crate) url: String,
}

/// `uv run`: a project that must be synchronised already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UvRun {
    /// `--directory` or `--project`.
    pub(crate) directory: Option<PathBuf>,
    /// The command and its arguments.
    pub(crate) rest: Vec<OsString>,
}

/// What a program's name and arguments mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Package(PackageCommand),
    UvRun(UvRun),
    /// Anything else.
    Plain,
}

fn refuse(tool: &'static str, what: String, remedy: &'static str) -> PlanError {
    PlanError::Command { tool, what, remedy }
}

const INSTALL_YOURSELF: &str =
    "Install the package yourself, and name its program as the command in the client's configuration";

/// Reads a command line. `program` is the file name of the configured program.
pub(crate) fn classify(program: &str, args: &[OsString]) -> Result<Command, PlanError> {
    let word = |n: usize| args.get(n).and_then(|a| a.to_str()).unwrap_or_default();
    let from = |n: usize| args.get(n..).unwrap_or_default();
    match (program, word(0), word(1)) {
        ("npx", ..) => npx("npx", args).map(Command::Package),
        ("npm", "exec" | "x", _) => npx("npm exec", from(1)).map(Command::Package),
        ("uvx", ..) => uvx("uvx", args).map(Command::Package),
        ("uv", "tool", "run") => uvx("uv tool run", from(2)).map(Command::Package),
        ("uv", "x", _) => uvx("uvx", from(1)).map(Command::Package),
        ("uv", "run", _) => uv_run(from(1)).map(Command::UvRun),
        ("uv", ..) => Err(refuse(
            "uv",
            "only `uv run`, `uv tool run` and `uvx` can start a server".into(),
            "Write one of these, without options between uv and its command",
        )),
        ("bunx" | "pnpx", ..) | ("pnpm" | "yarn", "dlx", _) | ("pipx", "run", _) | ("bun", "x", _) => Err(refuse(
            "package runner",
            format!("{program} would download the server at each start, which Firedoor does for npx and uvx only"),
            "Use npx or uvx, or install the package and name its program as the command",
        )),
        _ => Ok(Command::Plain),
    }
}

/// The words of a command line, split at `=` where an option carries its value.
struct Words<'a> {
    tool: &'static str,
    rest: std::slice::Iter<'a, OsString>,
}

enum Word<'a> {
    /// An option, with the value after `=`.
    Option(&'a str, Option<&'a str>),
    /// `--`.
    End,
    /// Anything else.
    Positional(&'a str),
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<Option<Word<'a>>, PlanError> {
        let Some(arg) = self.rest.next() else { return Ok(None) };
        let text = self.text(arg)?;
        Ok(Some(match text {
            "--" => Word::End,
            _ if text.len() > 1 && text.starts_with('-') => match text.split_once('=') {
                Some((name, value)) => Word::Option(name, Some(value)),
                None => Word::Option(text, None),
            },
            _ => Word::Positional(text),
        }))
    }

    fn text(&self, arg: &'a OsString) -> Result<&'a str, PlanError> {
        arg.to_str().ok_or_else(|| refuse(self.tool, "an option or package is not UTF-8".into(), "Rewrite it"))
    }

    fn value(&mut self, option: &str, inline: Option<&'a str>) -> Result<&'a str, PlanError> {
        match inline {
            Some(v) => Ok(v),
            None => match self.rest.next() {
                Some(arg) => self.text(arg),
                None => Err(refuse(self.tool, format!("{option} has no value"), "Add it")),
            },
        }
    }

    fn unknown(&self, option: &str) -> PlanError {
        let what = format!("the option {option} is not known to Firedoor, or cannot be used with it");
        refuse(self.tool, what, INSTALL_YOURSELF)
    }
}

fn npx(tool: &'static str, args: &[OsString]) -> Result<PackageCommand, PlanError> {
    let mut words = Words { tool, rest: args.iter() };
    let mut packages = Vec::new();
    let mut repeat = Vec::new();
    let mut registries = Vec::new();
    let mut call = false;
    let mut positional = None;
    while let Some(word) = words.next()? {
        match word {
            Word::Option(name, value) => match (name, value) {
                ("-y" | "--yes" | "-q" | "--quiet" | "-s" | "--silent" | "--verbose" | "-d", None)
                | (
                    "--prefer-offline" | "--prefer-online" | "--no-audit" | "--no-fund" | "--no-update-notifier",
                    None,
                )
                | ("--yes" | "--loglevel" | "--audit" | "--fund" | "--update-notifier" | "--no-progress", Some(_))
                | ("--no-progress", None) => {}
                ("--loglevel", None) => {
                    words.value(name, value)?;
                }
                ("--ignore-scripts" | "--legacy-peer-deps" | "--force" | "-f", None) => repeat.push(name.to_owned()),
                ("-p" | "--package", _) => packages.push(npm_spec(tool, words.value(name, value)?)?),
                ("-c" | "--call", _) => {
                    words.value(name, value)?;
                    call = true;
                }
                ("--registry", _) => {
                    let url = words.value(name, value)?.to_owned();
                    registries.push(RegistryOption { default: true, url });
                }
                _ => return Err(words.unknown(name)),
            },
            Word::End => {
                positional = words.rest.next().map(|a| words.text(a)).transpose()?;
                break;
            }
            Word::Positional(text) => {
                positional = Some(text);
                break;
            }
        }
    }
    // `npm exec PACKAGE -- ARGS`: npm itself takes the second `--` away, npx hands it on.
    let rest: Vec<OsString> = words.rest.cloned().collect();
    let mut command = None;
    match positional {
        Some(text) if packages.is_empty() && !call => packages.push(npm_spec(tool, text)?),
        Some(text) => command = Some(text.to_owned()),
        None if !call => {
            return Err(refuse(tool, "no package is named".into(), "Name it in the client's configuration"));
        }
        None => {}
    }
    if packages.is_empty() {
        return Err(refuse(tool, "-c needs --package".into(), "Name the packages with --package"));
    }
    let ecosystem = Ecosystem::Npm;
    Ok(PackageCommand { ecosystem, packages, command, rest, repeat, registries, python: None })
}

/// A registry package: `name`, `@scope/name`, and either with `@version`, `@range` or `@tag` (npm-package-arg).
fn npm_spec(tool: &'static str, text: &str) -> Result<Spec, PlanError> {
    let other = || {
        let what = "only packages of a registry can be installed, not directories, archives, aliases or git addresses";
        refuse(tool, what.into(), INSTALL_YOURSELF)
    };
    let scope_end = if text.starts_with('@') { text.find('/').ok_or_else(other)? } else { 0 };
    let version_at = text.get(scope_end..).and_then(|t| t.find('@')).map(|at| at + scope_end).filter(|at| *at > 0);
    let (name, version) = match version_at {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-', '~'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
    };
    let good = match name.strip_prefix('@').map(|n| n.split_once('/')) {
        Some(Some((scope, name))) => plain(scope) && plain(name),
        Some(None) => false,
        None => plain(name),
    };
    let archive = [".tgz", ".tar.gz", ".tar"].iter().any(|end| text.ends_with(end));
    if !good || archive || text.len() > 512 || version.is_some_and(|v| v.contains([':', '/']) || v.starts_with('.')) {
        return Err(other());
    }
    let exact = version.is_some_and(|v| exact_version(v.trim_start_matches(['=', 'v'])));
    Ok(Spec { text: text.into(), name: name.into(), exact, bare: version.is_none_or(str::is_empty) })
}

/// `1.2.3`, perhaps with a pre-release or build part.
fn exact_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    numbers.split('.').count() == 3
        && numbers.split('.').all(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-+.".contains(c))
}

fn uvx(tool: &'static str, args: &[OsString]) -> Result<PackageCommand, PlanError> {
    let mut words = Words { tool, rest: args.iter() };
    let mut from = None;
    let mut with = Vec::new();
    let mut repeat: Vec<String> = Vec::new();
    let mut registries = Vec::new();
    let mut python = None;
    let mut positional = None;
    while let Some(word) = words.next()? {
        match word {
            Word::Option(name, value) => match (name, value) {
                ("-q" | "--quiet" | "-v" | "--verbose" | "--no-progress" | "--offline", None)
                | ("--no-config" | "--no-env-file" | "--no-python-downloads", None) => {}
                (
                    "--isolated" | "--native-tls" | "--system-certs" | "--no-build" | "--no-binary" | "--no-sources",
                    None,
                )
                | ("--managed-python" | "--no-managed-python", None) => repeat.push(name.into()),
                ("--color" | "--link-mode", _) => {
                    words.value(name, value)?;
                }
                ("--resolution" | "--prerelease" | "--exclude-newer" | "--index-strategy" | "--fork-strategy", _) => {
                    let value = words.value(name, value)?;
                    repeat.extend([name.into(), value.into()]);
                }
                ("--from", _) => from = Some(pypi_spec(tool, words.value(name, value)?)?),
                ("--with" | "-w", _) => {
                    for part in words.value(name, value)?.split(',') {
                        let spec = pypi_spec(tool, part.trim())?;
                        repeat.extend(["--with".into(), spec.text.clone()]);
                        with.push(spec);
                    }
                }
                ("-p" | "--python", _) => {
                    let value = words.value(name, value)?;
                    repeat.extend(["--python".into(), value.into()]);
                    python = Some(value.to_owned());
                }
                ("-i" | "--index-url" | "--default-index" | "--index" | "--extra-index-url", _) => {
                    let url = words.value(name, value)?.to_owned();
                    let default = !matches!(name, "--index" | "--extra-index-url");
                    registries.push(RegistryOption { default, url });
                }
                ("--refresh" | "-U" | "--upgrade" | "--reinstall" | "-n" | "--no-cache", None) => {
                    let what = format!("with {name} the server could not start from what is installed");
                    return Err(refuse(tool, what, "Remove the option: Firedoor looks for a newer version once a day"));
                }
                _ => return Err(words.unknown(name)),
            },
            Word::End => {
                positional = words.rest.next().map(|a| words.text(a)).transpose()?;
                break;
            }
            Word::Positional(text) => {
                positional = Some(text);
                break;
            }
        }
    }
    let Some(text) = positional else {
        return Err(refuse(tool, "no package is named".into(), "Name it in the client's configuration"));
    };
    let (first, command) = match from {
        Some(spec) => (spec, Some(text.to_owned())),
        None => (pypi_spec(tool, text)?, None),
    };
    let packages = std::iter::once(first).chain(with).collect();
    let rest = words.rest.cloned().collect();
    Ok(PackageCommand { ecosystem: Ecosystem::Pypi, packages, command, rest, repeat, registries, python })
}

/// A registry package: `name`, `name[extra]`, with `@version`, `@latest`, or a PEP 440 specifier.
fn pypi_spec(tool: &'static str, text: &str) -> Result<Spec, PlanError> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut good = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.len() <= 512;
    if let Some(extras) = rest.strip_prefix('[') {
        let (inside, after) = extras.split_once(']').unwrap_or_default();
        good &= !inside.is_empty() && inside.chars().all(|c| c.is_ascii_alphanumeric() || "-_., ".contains(c));
        rest = after;
    }
    good &= rest.is_empty() || rest.starts_with(['@', '=', '<', '>', '~', '!']);
    good &= rest.chars().all(|c| c.is_ascii_alphanumeric() || "@=<>~!.,*+- ".contains(c));
    // A file of the working directory is not a package.
    good &= ![".py", ".whl", ".zip", ".tar.gz"].iter().any(|end| name.ends_with(end));
    if !good {
        let what = "only packages of an index can be installed, not directories, files or git addresses";
        return Err(refuse(tool, what.into(), INSTALL_YOURSELF));
    }
    let version = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@'));
    let exact = version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()) && !v.contains(['*', ',']));
    Ok(Spec { text: text.into(), name: normal(name), exact, bare: rest.is_empty() })
}

fn uv_run(args: &[OsString]) -> Result<UvRun, PlanError> {
    let mut words = Words { tool: "uv run", rest: args.iter() };
    let mut directory = None;
    let mut rest = Vec::new();
    while let Some(word) = words.next()? {
        match word {
            Word::Option(name, value) => match (name, value) {
                (
                    "-q" | "--quiet" | "-v" | "--verbose" | "--no-progress" | "--offline" | "--no-sync" | "--frozen",
                    None,
                )
                | ("--locked" | "--no-dev" | "--no-env-file", None) => {}
                ("--directory" | "--project", _) => directory = Some(PathBuf::from(words.value(name, value)?)),
                ("--with", _) => {
                    let what = "--with would download packages at each start".into();
                    return Err(refuse(
                        "uv run",
                        what,
                        "Add them to the project with `uv add`, and run `uv sync` there",
                    ));
                }
                _ => return Err(words.unknown(name)),
            },
            Word::End => break,
            Word::Positional(text) => {
                rest.push(OsString::from(text));
                break;
            }
        }
    }
    rest.extend(words.rest.cloned());
    if rest.is_empty() {
        return Err(refuse("uv run", "no command is named".into(), "Name it in the client's configuration"));
    }
    Ok(UvRun { directory, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A one-line picture of what a command line means.
    fn shown(line: &str) -> String {
        let mut words = line.split(' ');
        let program = words.next().unwrap();
        let args: Vec<OsString> = words.map(Into::into).collect();
        match classify(program, &args) {
            Ok(Command::Plain) => "plain".into(),
            Ok(Command::UvRun(r)) => format!("{:?} {:?}", r.directory, r.rest),
            Ok(Command::Package(p)) => {
                let packages: Vec<String> = p
                    .packages
                    .iter()
                    .map(|s| format!("{}{}{}", s.name, if s.exact { "!" } else { "" }, if s.bare { "" } else { "@" }))
                    .collect();
                let rest: Vec<_> = p.rest.iter().map(|r| r.to_string_lossy()).collect();
                format!(
                    "{} | {} | {} | {}",
                    packages.join(" "),
                    p.command.unwrap_or_default(),
                    rest.join(" "),
                    p.repeat.join(" ")
                )
            }
            Err(e) => format!("error {e}"),
        }
    }

    #[test]
    fn command_lines() {
        for (line, want) in [
            ("node x.js", "plain"),
            (
                "npx -y @modelcontextprotocol/server-filesystem /tmp",
                "@modelcontextprotocol/server-filesystem |  | /tmp | ",
            ),
            ("npx --yes a@1.2.3 --port 1", "a!@ |  | --port 1 | "),
            ("npx a@latest -y", "a@ |  | -y | "),
            ("npx -y -- a@^1 x", "a@ |  | x | "),
            ("npx -p a --package=b@2.0.0-rc.1 cmd arg", "a b!@ | cmd | arg | "),
            ("npx --package a -c cmd", "a |  |  | "),
            ("npx -q --ignore-scripts --loglevel error a", "a |  |  | --ignore-scripts"),
            ("npm exec --yes -- a b", "a |  | b | "),
            ("npm x a", "a |  |  | "),
            ("uvx mcp_Server.time --local-timezone x", "mcp-server-time |  | --local-timezone x | "),
            ("uvx --from mcp[cli]==1.2 mcp run", "mcp!@ | mcp | run | "),
            ("uvx -q --with a,b>=2 --python 3.12 c@latest", "c@ a b@ |  |  | --with a --with b>=2 --python 3.12"),
            ("uv tool run a@1.2", "a!@ |  |  | "),
            ("uv run --directory /p --frozen srv --x", r#"Some("/p") ["srv", "--x"]"#),
            ("uv run -- python s.py", r#"None ["python", "s.py"]"#),
        ] {
            assert_eq!(shown(line), want, "{line}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (line, want) in [
            ("npx", "no package is named"),
            ("npx -y", "no package is named"),
            ("npx -p", "-p has no value"),
            ("npx -p a", "no package is named"),
            ("npx -c cmd", "-c needs --package"),
            ("npx --userconfig x a", "--userconfig is not known"),
            ("npx --cache=/x a", "--cache is not known"),
            ("npx .", "only packages of a registry"),
            ("npx ./x", "only packages of a registry"),
            ("npx /x", "only packages of a registry"),
            ("npx github:u/r", "only packages of a registry"),
            ("npx u/r", "only packages of a registry"),
            ("npx https://h/x.tgz", "only packages of a registry"),
            ("npx a@npm:b@1", "only packages of a registry"),
            ("npx a@file:../x", "only packages of a registry"),
            ("npx a.tgz", "only packages of a registry"),
            ("npx @scope", "only packages of a registry"),
            ("npx @../x", "only packages of a registry"),
            ("uvx", "no package is named"),
            ("uvx --from git+https://h/x srv", "only packages of an index"),
            ("uvx --from /x srv", "only packages of an index"),
            ("uvx a@git+https://x", "only packages of an index"),
            ("uvx ./x", "only packages of an index"),
            ("uvx a;b", "only packages of an index"),
            ("uvx --refresh a", "Remove the option"),
            ("uvx --cache-dir /x a", "--cache-dir is not known"),
            ("uvx --with-editable . a", "--with-editable is not known"),
            ("uv run --with a x", "uv add"),
            ("uv run", "no command"),
            ("uv sync", "only `uv run`"),
            ("bunx a", "npx and uvx only"),
            ("pnpm dlx a", "npx and uvx only"),
            ("pipx run a", "npx and uvx only"),
        ] {
            let got = shown(line);
            assert!(got.starts_with("error ") && got.contains(want), "{line}: {got}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_text_is_refused_before_the_package_only() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = OsString::from_vec(vec![0xff]);
        assert!(classify("npx", std::slice::from_ref(&odd)).is_err());
        assert!(classify("npx", &["a".into(), odd]).is_ok());
    }
}
