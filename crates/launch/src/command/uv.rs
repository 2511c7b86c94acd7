//! uvx, uv tool run and uv run.

use std::{ffi::OsString, path::PathBuf};

use super::{INSTALL_YOURSELF, PackageCommand, RegistryOption, Spec, UvRun, Word, Words, refuse};
use crate::{error::PlanError, identity::Ecosystem, profile::normal};

pub(super) fn uvx(tool: &'static str, args: &[OsString]) -> Result<PackageCommand, PlanError> {
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
            first @ (Word::End | Word::Positional(_)) => {
                positional = words.positional(first)?;
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
    Ok(PackageCommand { ecosystem: Ecosystem::Pypi, packages, command, call: None, rest, repeat, registries, python })
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

pub(super) fn uv_run(args: &[OsString]) -> Result<UvRun, PlanError> {
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
