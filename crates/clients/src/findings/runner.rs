//! What a command line starts: past what stands in front of it, and which packages a runner fetches. Read so that
//! something is found in lines that Firedoor would not start.
//!
//! Sources: npm 11 `npm exec --help`, uv 0.13 `uvx --help`, `bunx --help`, `pnpm dlx --help`, `pipx run --help`, sudo(8), env(1).

use super::{Code, Word};
use crate::catalog::stem;

/// Where a package is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    Npm,
    Pypi,
}

/// A package that a runner fetches.
pub(super) struct Package {
    pub registry: Registry,
    pub spec: Word,
}

/// Most programs that stand in front of one another.
const MAX_LAYERS: usize = 8;

/// The command line without the programs in front that start another one, with what there is to say about those.
pub(super) fn unwrapped(line: &[Word], add: &mut impl FnMut(Code, &Word, String)) -> Vec<Word> {
    let mut line = line.to_vec();
    for _ in 0..MAX_LAYERS {
        let Some(first) = line.first().cloned() else { break };
        let name = program(&first.text);
        let rest = line.get(1..).unwrap_or_default();
        line = match name.as_str() {
            "sudo" | "doas" | "pkexec" => {
                let (user, command) =
                    behind(rest, &["-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C"]);
                if user.is_none_or(|u| matches!(u.as_str(), "root" | "#0")) {
                    add(Code::Root, &first, format!("{name} starts it as root"));
                }
                command
            }
            "env" => behind(rest, &["-u", "--unset", "-C", "--chdir"]).1,
            "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "cmd" | "powershell" | "pwsh" => {
                let Some(at) = rest.iter().position(|w| gives_script(&name, &w.text)) else { break };
                let script = rest.get(at + 1..).unwrap_or_default();
                add(Code::Shell, &first, format!("{name} starts it, and reads its arguments as a program of its own"));
                let words: Vec<Word> = script.iter().flat_map(words).collect();
                let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
                if downloads_and_runs(&texts) {
                    add(
                        Code::DownloadAndRun,
                        script.first().unwrap_or(&first),
                        "it downloads a program and runs it in one go".into(),
                    );
                }
                // Past what sets variables or is done before: `cd x && exec npx y`.
                let start = texts.iter().rposition(|t| matches!(*t, "&&" | ";" | "exec")).map_or(0, |n| n + 1);
                let start = start + texts.iter().skip(start).take_while(|t| assignment(t)).count();
                words.get(start..).unwrap_or_default().to_vec()
            }
            _ => break,
        };
    }
    line
}

/// File name without directory and without what Windows writes behind it.
fn program(command: &str) -> String {
    let name = stem(command);
    name.strip_suffix(".cmd").map(str::to_owned).unwrap_or(name)
}

/// `-c`, also joined as in `-lc`; `/c`; `-Command`.
fn gives_script(shell: &str, word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    match shell {
        "cmd" => matches!(word.as_str(), "/c" | "/k"),
        "powershell" | "pwsh" => matches!(word.as_str(), "-c" | "-command"),
        _ => word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'),
    }
}

/// The words of a script, all at its place. A quote belongs to no name that is looked for.
fn words(script: &Word) -> impl Iterator<Item = Word> + '_ {
    let spaced = script.text.replace(';', " ; ").replace('|', " | ").replace("&&", " && ");
    let texts: Vec<String> =
        spaced.split_whitespace().map(|w| w.trim_matches(['"', '\'', '(', ')']).to_owned()).collect();
    texts.into_iter().filter(|t| !t.is_empty()).map(|text| Word { text, ..script.clone() })
}

fn assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// `curl … | sh`, `sh -c "$(curl …)"`, `bash <(curl …)`.
fn downloads_and_runs(words: &[&str]) -> bool {
    let fetches =
        |w: &&str| matches!(stem(w.trim_start_matches(['$', '(', '<', '`'])).as_str(), "curl" | "wget" | "iwr" | "irm");
    let Some(at) = words.iter().position(fetches) else { return false };
    let substituted = words.get(at).is_some_and(|w| w.starts_with(['$', '<', '`']));
    let runs = |w: &str| {
        let name = stem(w);
        matches!(name.as_str(), "sh" | "bash" | "zsh" | "dash" | "node" | "perl" | "ruby" | "iex" | "sudo")
            || name.starts_with("python")
    };
    let piped = words.iter().skip(at).zip(words.iter().skip(at + 1)).any(|(a, b)| *a == "|" && runs(b));
    substituted || piped
}

/// What stands behind the options and variables of a program in front, and the user it names.
fn behind(rest: &[Word], with_value: &[&str]) -> (Option<String>, Vec<Word>) {
    let mut user = None;
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        at += 1;
        let (option, inline) = word.text.split_once('=').map_or((word.text.as_str(), None), |(o, v)| (o, Some(v)));
        if option == "--" {
            break;
        }
        if option.starts_with('-') {
            let takes = inline.is_none() && with_value.contains(&option);
            let value = inline.or_else(|| rest.get(at).filter(|_| takes).map(|w| w.text.as_str()));
            if matches!(option, "-u" | "--user") {
                user = value.map(str::to_owned);
            }
            at += usize::from(takes);
        } else if !assignment(&word.text) {
            at -= 1;
            break;
        }
    }
    (user, rest.get(at..).unwrap_or_default().to_vec())
}

/// How one runner writes packages.
struct Runner {
    registry: Registry,
    /// Options that name the package instead of the first word.
    instead: &'static [&'static str],
    /// Options that name further packages, separated by commas.
    also: &'static [&'static str],
    /// Other options with a value.
    with_value: &'static [&'static str],
}

const NPX: Runner = Runner {
    registry: Registry::Npm,
    instead: &["-p", "--package"],
    also: &[],
    with_value: &[
        "-c",
        "--call",
        "--registry",
        "--cache",
        "--userconfig",
        "--prefix",
        "--loglevel",
        "-w",
        "--workspace",
    ],
};
const UVX: Runner = Runner {
    registry: Registry::Pypi,
    instead: &["--from", "--spec"],
    also: &["--with", "-w"],
    with_value: &[
        "-p",
        "--python",
        "--index",
        "--default-index",
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "--with-requirements",
        "--with-editable",
        "-c",
        "--constraints",
        "--overrides",
        "--directory",
        "--project",
        "--cache-dir",
        "--config-file",
        "--env-file",
        "--pip-args",
        "--prerelease",
        "--resolution",
    ],
};

/// The packages that a program with these arguments fetches and runs.
pub(super) fn packages(name: &str, args: &[Word]) -> Vec<Package> {
    let name = name.strip_suffix(".cmd").unwrap_or(name);
    let word = |n: usize| args.get(n).map_or("", |w| w.text.as_str());
    let (runner, skip) = match (name, word(0), word(1)) {
        ("npx" | "bunx" | "pnpx", ..) => (NPX, 0),
        ("npm", "exec" | "x", _) | ("pnpm" | "yarn", "dlx", _) | ("bun", "x", _) => (NPX, 1),
        ("uvx", ..) => (UVX, 0),
        ("uv", "x", _) | ("pipx", "run", _) => (UVX, 1),
        ("uv", "tool", "run") => (UVX, 2),
        _ => return Vec::new(),
    };
    let package = |spec: Word| Package { registry: runner.registry, spec };
    let mut found = Vec::new();
    let mut instead = false;
    let mut rest = args.iter().skip(skip);
    while let Some(word) = rest.next() {
        let (option, inline) = word.text.split_once('=').map_or((word.text.as_str(), None), |(o, v)| (o, Some(v)));
        if !option.starts_with('-') || option == "--" {
            let first = if option == "--" { rest.next() } else { Some(word) };
            found.extend(first.filter(|_| !instead).cloned().map(package));
            break;
        }
        let names = |list: &[&str]| list.contains(&option);
        if !(names(runner.instead) || names(runner.also) || names(runner.with_value)) {
            continue;
        }
        let value = match inline {
            Some(value) => Some(Word { text: value.to_owned(), ..word.clone() }),
            None => rest.next().cloned(),
        };
        if names(runner.instead) {
            instead = true;
            found.extend(value.map(package));
        } else if names(runner.also) {
            let Some(value) = value else { continue };
            found.extend(
                value.text.split(',').map(|text| package(Word { text: text.trim().to_owned(), ..value.clone() })),
            );
        }
    }
    found
}
