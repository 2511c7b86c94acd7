//! Variables of an entry that act on firedoor-shim itself: the client starts that with them, outside of the sandbox.

use std::ffi::OsString;

use firedoor_model::paths::Paths;

use crate::{
    catalog::Clients,
    declared,
    discover::{ConfigFile, Located},
    document::{Shape, Stdio, Str},
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

/// What an entry makes of a variable.
enum Given {
    /// This value.
    Value(OsString),
    /// It is taken away.
    Away,
    /// Only the client knows.
    Unknown,
}

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
        let given = |value: &str| variables.expand(value).map_or(Given::Unknown, |value| Given::Value(value.into()));
        let mut set: Vec<(String, Given)> = match (stdio, &entry.server.shape) {
            (Some(stdio), _) => {
                let value = |value: &Option<Str>| value.as_ref().map_or(Given::Away, |value| given(&value.value));
                stdio.env.iter().map(|(name, v)| (name.clone(), value(v))).collect()
            }
            (None, Shape::Remote(remote)) => remote.env.iter().map(|(name, v)| (name.clone(), given(v))).collect(),
            (None, _) => Vec::new(),
        };
        if let Some(name) = stdio.and_then(|stdio| stdio.env_file.as_deref()) {
            let read = declared::read_env_file(&variables, project, name).unwrap_or_default();
            set.extend(read.into_iter().map(|(name, value)| (name, Given::Value(value.into()))));
        }
        objection(env, &set)
    }
}

fn objection(env: &Env<'_>, set: &[(String, Given)]) -> Option<String> {
    let own = |name: &str| env.var(name);
    let differs = |(name, given): &&(String, Given)| match given {
        Given::Value(value) => own(name).as_ref() != Some(value),
        Given::Away => own(name).is_some(),
        Given::Unknown => true,
    };
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
    let other = |is: &dyn Fn(&str) -> bool| set.iter().filter(differs).map(|(name, _)| name).find(|name| is(name));
    if let Some(name) = other(&|name| is_loaders(env.system, name)) {
        return Some(format!(
            "it sets {name}, which would change what Firedoor's own program loads, outside of the sandbox: {}",
            remedy(name)
        ));
    }
    if let Some(name) = other(&|name| named(&FOUND_BY, name)) {
        return Some(format!("it changes {name} for Firedoor's engine, too: {}", remedy(name)));
    }
    let name = other(&|name| named(&PLACES, name))?;
    let theirs = |asked: &str| {
        let same = |name: &str| name == asked || env.system == System::Windows && name.eq_ignore_ascii_case(asked);
        match set.iter().find(|(name, _)| same(name)) {
            Some((_, Given::Value(value))) => Some(value.clone()),
            Some((_, Given::Away | Given::Unknown)) => None,
            None => own(asked),
        }
    };
    let unknown = set.iter().any(|(name, given)| matches!(given, Given::Unknown) && named(&PLACES, name));
    // What this program was told otherwise (another runtime directory) is the entry's right, too.
    let usual = |paths: Paths| paths == env.paths || Paths::from_env(own).is_ok_and(|own| own == paths);
    if !unknown && Paths::from_env(theirs).is_ok_and(usual) {
        return None;
    }
    Some(format!("with its {name} Firedoor would look for engine, rules and log elsewhere: {}", remedy(name)))
}
