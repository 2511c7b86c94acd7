//! What an entry's form says about it: protected, or why not.

use std::path::Path;

use firedoor_model::EntryId;
use serde::Serialize;

use crate::{
    catalog::{Clients, Directory, stem},
    discover::{ConfigFile, Located},
    document::{Remote, Shape, Stdio, Str, remote::URL},
    env::Env,
    moved, secret, sys,
    wrap::{ENTRY, SHIM, wrapped},
};

/// Whether an entry runs through Firedoor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// The client starts the server itself.
    Unprotected,
    /// The client starts the shim, for this entry.
    Protected,
    /// It starts a shim, but another one than ours, or in another entry's name (copied or renamed), or it starts none
    /// and its secrets are in the keychain: protecting repairs it.
    Misrouted {
        /// What is wrong.
        reason: String,
    },
    /// It is left as it is, for now.
    NotYet {
        /// Why.
        reason: String,
    },
    /// Another tool stands in front of the server.
    WrappedByOther {
        /// Its program.
        by: String,
    },
}

impl State {
    /// Whether protecting changes the entry.
    pub fn can_protect(&self) -> bool {
        matches!(self, Self::Unprotected | Self::Misrouted { .. })
    }

    /// Whether restoring changes the entry.
    pub fn can_restore(&self) -> bool {
        matches!(self, Self::Protected | Self::Misrouted { .. })
    }
}

fn not_yet(reason: impl Into<String>) -> State {
    State::NotYet { reason: reason.into() }
}

/// Judges one entry.
pub(crate) fn state(
    clients: &Clients,
    env: &Env<'_>,
    file: &ConfigFile,
    entry: &Located,
    shim: Option<&Path>,
) -> State {
    let acts = || clients.acts_on_shim(env, file, entry);
    match (formed(clients, &entry.id, &entry.server.shape, shim), &entry.kept) {
        (State::Unprotected, Some(why)) => not_yet(format!("not yet protected: {why}")),
        (State::Unprotected, None) => {
            acts().map_or(State::Unprotected, |why| not_yet(format!("not yet protected: {why}")))
        }
        (State::Protected, _) => acts().map_or(State::Protected, |reason| State::Misrouted { reason }),
        (state, _) => state,
    }
}

fn formed(clients: &Clients, id: &EntryId, shape: &Shape, shim: Option<&Path>) -> State {
    let stdio = match shape {
        Shape::Odd(why) => return not_yet(format!("not yet protected: {why}")),
        Shape::Remote(remote) => return reached(clients, id, remote, shim),
        Shape::Stdio(stdio) => stdio,
    };
    match wrapped(stdio) {
        Some(wrapped) => routed(id, &stdio.command.value, &wrapped.id, shim),
        None if stdio.splits
            && shim.and_then(Path::to_str).is_some_and(|s| s.contains([' ', '\t', '"', '\'', '\\'])) =>
        {
            not_yet(
                "not yet protected: the client would take Firedoor's own path apart, which has a blank, a quote or a backslash in it",
            )
        }
        // As people write it by hand, without what restoring needs.
        None if let Some(own) = by_hand(stdio) => routed(id, &stdio.command.value, &own, shim),
        // It would be put behind itself. Another program of that name is a server like every other.
        None if shim.is_some_and(|shim| sys::same_name(shim, Path::new(&stdio.command.value))) => not_yet(
            "not yet protected: it starts firedoor-shim, but not as Firedoor writes it: write the server's own command",
        ),
        None => direct(clients, id, stdio),
    }
}

/// The entry that a start of the shim for an address is for, with or without the words that restoring needs.
fn by_hand(stdio: &Stdio) -> Option<EntryId> {
    let [entry, id, url, _, ..] = stdio.args() else { return None };
    let form = stem(&stdio.command.value) == SHIM && entry.value == ENTRY && url.value == URL;
    form.then(|| id.value.parse().ok()).flatten()
}

fn reached(clients: &Clients, id: &EntryId, remote: &Remote, shim: Option<&Path>) -> State {
    if let Some(at) = &remote.endpoint {
        return match at.id == *id {
            true => State::Protected,
            false => {
                State::Misrouted { reason: format!("it runs in the name of {}: protect it with --endpoint", at.id) }
            }
        };
    }
    match &remote.parts {
        Ok(parts) if let Some(behind) = &parts.behind => routed(id, &behind.shim.value, &behind.id, shim),
        Ok(_) if let Some(sign) = clients.interpolation(id).touches(&id.to_string()) => named(sign),
        // It would stand in arguments, which every program can read.
        Ok(_) if remote.url.as_ref().is_some_and(|u| secret::in_url(clients.interpolation(id), &u.value)) => {
            not_yet("not yet protected: its address looks like a secret in clear")
        }
        Ok(_) => unprotected(remote.values()),
        Err(why) => not_yet(format!("not yet protected: it is a remote server, and {why}")),
    }
}

fn named(sign: &str) -> State {
    not_yet(format!("not yet protected: its name or project contains {sign:?}, which the client would replace"))
}

fn routed(id: &EntryId, command: &str, own: &EntryId, shim: Option<&Path>) -> State {
    let command = Path::new(command);
    let reason = match shim {
        _ if own != id => format!("it runs in the name of {own}"),
        Some(shim) if !sys::same_name(shim, command) => format!("it starts {command:?} instead of {shim:?}"),
        None if !command.is_absolute() => format!("it starts {command:?}, whatever that is, not an installed {SHIM}"),
        _ => return State::Protected,
    };
    State::Misrouted { reason }
}

/// Whether what a command names depends on the directory it is started in.
pub(crate) fn relative(command: &str) -> bool {
    if cfg!(windows) { relative_on_windows(command) } else { relative_on_unix(command) }
}

fn relative_on_unix(command: &str) -> bool {
    command.contains('/') && !command.starts_with(['/', '$', '~'])
}

/// `C:x` is relative to what is current on that drive; `%` begins a variable.
fn relative_on_windows(command: &str) -> bool {
    let drive = matches!(command.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let parts = command.contains(['/', '\\']) || command.as_bytes().get(1) == Some(&b':');
    parts && !drive && !command.starts_with(['/', '\\', '$', '~', '%'])
}

fn direct(clients: &Clients, id: &EntryId, stdio: &Stdio) -> State {
    let rules = clients.interpolation(id);
    let args: Vec<String> = stdio.args().iter().map(|a| a.value.clone()).collect();
    // The id becomes an argument, where the client would fill in what looks like a variable.
    if let Some(sign) = rules.touches(&id.to_string()) {
        return named(sign);
    }
    if let Some(client) = clients.client(id.client())
        && client.directory == Directory::Undefined
        && (relative(&stdio.command.value) || stdio.command.value.starts_with('~'))
    {
        return not_yet(format!(
            "not yet protected: its command is relative, and {} starts servers in no directory of their own: \
             write the command's full path",
            client.name
        ));
    }
    if let Some(by) = clients.wrappers.wraps(&stdio.command.value, &args) {
        return State::WrappedByOther { by };
    }
    unprotected(stdio.values())
}

/// An entry that could be protected, with these strings.
fn unprotected<'s>(values: impl IntoIterator<Item = &'s Str>) -> State {
    if moved::references(values).is_empty() {
        return State::Unprotected;
    }
    let reason = "it starts without Firedoor, but its secrets are in the keychain: protect it, or restore it".into();
    State::Misrouted { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_directory() {
        for (command, unix, windows) in [
            ("npx", false, false),
            ("./srv", true, true),
            ("bin/srv", true, true),
            ("/usr/bin/srv", false, false),
            ("~/srv", false, false),
            ("${HOME}/srv", false, false),
            (r".\srv.exe", false, true),
            (r"bin\srv.exe", false, true),
            (r"C:\tools\srv.exe", false, false),
            (r"\\host\share\srv.exe", false, false),
            (r"%APPDATA%\srv.exe", false, false),
            ("c:srv.exe", false, true),
        ] {
            assert_eq!((relative_on_unix(command), relative_on_windows(command)), (unix, windows), "{command}");
        }
        assert!(!relative_on_windows("C:/tools/srv.exe"));
    }
}
