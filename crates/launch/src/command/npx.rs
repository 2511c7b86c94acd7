//! npx and npm exec.

use std::ffi::OsString;

use super::{INSTALL_YOURSELF, PackageCommand, RegistryOption, Spec, Word, Words, refuse};
use crate::{error::PlanError, identity::Ecosystem};

pub(super) fn npx(tool: &'static str, args: &[OsString]) -> Result<PackageCommand, PlanError> {
    let mut words = Words { tool, rest: args.iter() };
    let mut packages = Vec::new();
    let mut repeat = Vec::new();
    let mut registries = Vec::new();
    let mut call = None;
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
                ("-c" | "--call", _) => call = Some(words.value(name, value)?.to_owned()),
                ("--registry", _) => {
                    let url = words.value(name, value)?.to_owned();
                    registries.push(RegistryOption { default: true, url });
                }
                _ => return Err(words.unknown(name)),
            },
            first @ (Word::End | Word::Positional(_)) => {
                positional = words.positional(first)?;
                break;
            }
        }
    }
    // `npm exec PACKAGE -- ARGS`: npm itself takes the second `--` away, npx hands it on.
    let rest: Vec<OsString> = words.rest.cloned().collect();
    let mut command = None;
    match positional {
        Some(text) if packages.is_empty() && call.is_none() => packages.push(npm_spec(tool, text)?),
        Some(_) if call.is_some() => {
            return Err(refuse(tool, "-c takes no further words".into(), "Put them into what -c runs"));
        }
        Some(text) => command = Some(text.to_owned()),
        None if call.is_none() => {
            return Err(refuse(tool, "no package is named".into(), "Name it in the client's configuration"));
        }
        None => {}
    }
    if packages.is_empty() {
        return Err(refuse(tool, "-c needs --package".into(), "Name the packages with --package"));
    }
    let ecosystem = Ecosystem::Npm;
    Ok(PackageCommand { ecosystem, packages, command, call, rest, repeat, registries, python: None })
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
