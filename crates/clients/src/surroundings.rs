//! Variables of an entry that act on firedoor-shim itself: the client starts that with them, outside of the sandbox.

use std::{collections::HashMap, ffi::OsString};

use firedoor_model::paths::Paths;

use crate::{
    catalog::Clients,
    declared,
    discover::{ConfigFile, Located},
    document::{Shape, Stdio},
    env::{Env, System},
    interpolate::Variables,
};

/// By which Firedoor finds its own directories (`Paths::from_env`).
const PLACES: [&str; 8] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];
/// By which an engine that the shim starts finds the keychain, and a client's files.
const FOUND_BY: [&str; 2] = ["DBUS_SESSION_BUS_ADDRESS", "CLAUDE_CONFIG_DIR"];

/// Whether the system's loader takes code, or what decides about it, from a variable (ld.so(8), iconv(1), dyld(1)).
fn is_loaders(system: System, name: &str) -> bool {
    match system {
        System::Linux => name.starts_with("LD_") || ["GLIBC_TUNABLES", "GCONV_PATH"].contains(&name),
        System::Macos => name.starts_with("DYLD_"),
        System::Windows => false,
    }
}

impl Clients {
    /// Why the shim must not be started with what an entry sets, where that differs from what the user has. What only the client can
    /// fill in differs. An `envFile` that cannot be read says nothing.
    pub(crate) fn acts_on_shim(&self, env: &Env<'_>, file: &ConfigFile, entry: &Located) -> Option<String> {
        let stdio: Option<&Stdio> = match &entry.server.shape {
            Shape::Stdio(stdio) => Some(stdio),
            Shape::Remote(remote) => remote.parts.as_ref().ok()?.behind.as_ref().map(|behind| &behind.start),
            Shape::Odd(_) => return None,
        };
        let project = entry.server.project.as_deref().or(file.project.as_deref());
        let client = self.client(&file.client)?;
        let variables =
            Variables::new(client.interpolation, env, project).in_plugin(&client.in_plugins, entry.plugin.as_ref());
        // A variable that is taken away, or that nobody but the client knows, is none.
        let known = |value: &str| variables.expand(value).ok().map(OsString::from);
        let mut set: Vec<(String, Option<OsString>)> = match (stdio, &entry.server.shape) {
            (Some(stdio), _) => {
                let value = |value: &Option<_>| value.as_ref().and_then(|v: &crate::document::Str| known(&v.value));
                stdio.env.iter().map(|(name, v)| (name.clone(), value(v))).collect()
            }
            (None, Shape::Remote(remote)) => remote.env.iter().map(|(name, v)| (name.clone(), known(v))).collect(),
            (None, _) => Vec::new(),
        };
        if let Some(name) = stdio.and_then(|stdio| stdio.env_file.as_deref()) {
            let read = declared::read_env_file(&variables, project, name).unwrap_or_default();
            set.extend(read.into_iter().map(|(name, value)| (name, Some(value.into()))));
        }
        objection(env, &set)
    }
}

fn objection(env: &Env<'_>, set: &[(String, Option<OsString>)]) -> Option<String> {
    let own = |name: &str| env.var(name);
    let differs = |(name, value): &&(String, Option<OsString>)| own(name) != *value;
    let named = |names: &[&str], name: &str| match env.system {
        System::Windows => names.iter().any(|other| other.eq_ignore_ascii_case(name)),
        System::Linux | System::Macos => names.contains(&name),
    };
    let remedy = |name: &str| match env.system {
        System::Windows => format!("take {name} out of the entry"),
        System::Linux | System::Macos => {
            format!("take it out, or let the command be \"env\", and \"{name}=…\" and the program its first arguments")
        }
    };
    if let Some((name, _)) = set.iter().filter(differs).find(|(name, _)| is_loaders(env.system, name)) {
        return Some(format!(
            "it sets {name}, which would change what Firedoor's own program loads, outside of the sandbox: {}",
            remedy(name)
        ));
    }
    if let Some((name, _)) = set.iter().filter(differs).find(|(name, _)| named(&FOUND_BY, name)) {
        return Some(format!("it changes {name} for Firedoor's engine, too: {}", remedy(name)));
    }
    let given: HashMap<String, &Option<OsString>> =
        set.iter().filter(|(name, _)| named(&PLACES, name)).map(|(name, value)| (place(env, name), value)).collect();
    let theirs = Paths::from_env(|name| match given.get(name) {
        Some(value) => (*value).clone(),
        None => own(name),
    });
    // What this program was told otherwise (another runtime directory) is the entry's right, too.
    let usual = |paths: &Paths| *paths == env.paths || Paths::from_env(own).is_ok_and(|own| own == *paths);
    let (name, _) = set.iter().find(|(name, _)| named(&PLACES, name))?;
    match theirs {
        Ok(paths) if usual(&paths) => None,
        _ => Some(format!("with its {name} Firedoor would look for engine, rules and log elsewhere: {}", remedy(name))),
    }
}

/// A name as it is asked for: Windows ignores case.
fn place(env: &Env<'_>, name: &str) -> String {
    if env.system == System::Windows { name.to_ascii_uppercase() } else { name.to_owned() }
}
