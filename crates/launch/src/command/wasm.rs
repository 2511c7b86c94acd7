//! `wasmtime run`, our own `firedoor-wasm run`, and modules that are named as the command.
//!
//! Source: `wasmtime run --help` (48). What tunes the compiler is passed over, because our runtime has its own settings.

use std::{ffi::OsString, path::Path};

use super::{Word, Words, refuse};
use crate::error::PlanError;

/// A module, and what its command line gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WasmCommand {
    /// The file; `None` where the command itself is the module.
    pub(crate) module: Option<OsString>,
    /// `HOST[::GUEST]`, to write and to read.
    pub(crate) write: Vec<String>,
    pub(crate) read: Vec<String>,
    /// `NAME` or `NAME=VALUE`.
    pub(crate) env: Vec<String>,
    /// Gets every variable that the entry, its profile or the user names.
    pub(crate) inherits: bool,
    /// Options that our runtime takes as they are.
    pub(crate) limits: Vec<(&'static str, String)>,
    /// What the module gets.
    pub(crate) rest: Vec<OsString>,
}

/// Whether a program of this file name is a module.
pub(super) fn is_module(program: &str) -> bool {
    Path::new(program).extension().is_some_and(|e| e.eq_ignore_ascii_case("wasm"))
}

/// A module as the command: the system's binfmt_misc would have it run with all of the environment.
pub(super) fn module(args: &[OsString]) -> WasmCommand {
    WasmCommand { inherits: true, rest: args.to_vec(), ..WasmCommand::default() }
}

/// `args` without the program.
pub(super) fn run(tool: &'static str, args: &[OsString]) -> Result<WasmCommand, PlanError> {
    let mut words = Words { tool, rest: args.iter() };
    let mut found = WasmCommand::default();
    let mut first = true;
    while let Some(word) = words.next()? {
        match word {
            Word::Option(name, value) => option(&mut words, &mut found, name, value)?,
            Word::End => {}
            Word::Positional("run") if first => first = false,
            Word::Positional(other) if first && !is_module(other) => {
                let what = format!("{other:?} is no module (*.wasm), and only `{tool} run` can start a server");
                return Err(refuse(tool, what, "Write wasmtime run MODULE.wasm"));
            }
            Word::Positional(module) => {
                found.module = Some(module.into());
                found.rest = words.rest.cloned().collect();
                return Ok(found);
            }
        }
    }
    Err(refuse(tool, "no module is named".into(), "Name it in the client's configuration"))
}

fn option<'a>(
    words: &mut Words<'a>,
    found: &mut WasmCommand,
    name: &'a str,
    value: Option<&'a str>,
) -> Result<(), PlanError> {
    // Groups of settings, also as one word: -Wfuel=1.
    let (name, value) = match name.split_at_checked(2) {
        Some((group @ ("-W" | "-S" | "-O" | "-C" | "-D"), key)) if !key.is_empty() => {
            let setting = value.map_or_else(|| key.to_owned(), |v| format!("{key}={v}"));
            return settings(words.tool, found, group, &setting);
        }
        _ => (name, value),
    };
    match name {
        "-W" | "--wasm" | "-S" | "--wasi" | "-O" | "--optimize" | "-C" | "--codegen" | "-D" | "--debug" => {
            let setting = words.value(name, value)?;
            let group = match name {
                "-W" | "--wasm" => "-W",
                "-S" | "--wasi" => "-S",
                _ => "-O",
            };
            return settings(words.tool, found, group, setting);
        }
        "--dir" => found.write.push(words.value(name, value)?.to_owned()),
        "--dir-ro" => found.read.push(words.value(name, value)?.to_owned()),
        "--env" => found.env.push(words.value(name, value)?.to_owned()),
        _ => {
            const LIMITS: [&str; 6] = ["--argv0", "--memory", "--files", "--output", "--fuel", "--timeout"];
            let Some(known) = LIMITS.iter().find(|l| **l == name) else { return Err(words.unknown(name)) };
            let value = words.value(name, value)?.to_owned();
            found.limits.push((known, value));
        }
    }
    Ok(())
}

/// `KEY[=VALUE],…` of one group. Compiler settings, and interfaces of WASI that are there or not whatever is said, are passed
/// over; what bounds the module is kept.
fn settings(tool: &'static str, found: &mut WasmCommand, group: &str, text: &str) -> Result<(), PlanError> {
    for setting in text.split(',') {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "y"));
        match (group, key) {
            ("-W", "max-memory-size") => found.limits.push(("--memory", value.to_owned())),
            ("-W", "fuel") => found.limits.push(("--fuel", value.to_owned())),
            ("-W", "timeout") => {
                let limit = milliseconds(value).ok_or_else(|| {
                    refuse(tool, "the value of -W timeout does not read".into(), "Write it as 500ms, 10s or 2m")
                })?;
                found.limits.push(("--timeout", limit.to_string()));
            }
            ("-S", "inherit-env") => found.inherits = value == "y",
            _ => {}
        }
    }
    Ok(())
}

fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let scale = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}
