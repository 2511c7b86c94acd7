//! Which entries a command is about.

use std::{collections::BTreeSet, str::FromStr};

use firedoor_model::{EntryId, entry::EntryIdError};

use crate::{catalog::Clients, scan::Scan};

/// What a user names on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Everything.
    All,
    /// One client.
    Client(String),
    /// One server of a client, in all its scopes.
    Server {
        /// The client's id.
        client: String,
        /// The server's name.
        server: String,
    },
    /// Exactly one entry.
    Entry(EntryId),
}

/// A selection that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No such client.
    #[error("no client {name:?} was found: there is {known}")]
    Client {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such server.
    #[error("{client} has no server {name:?}: it has {known}")]
    Server {
        /// The client.
        client: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Not of a form that names anything.
    #[error("{text:?} names no entry: {source}. Use CLIENT, CLIENT/SERVER or CLIENT/SCOPE/SERVER")]
    Form {
        /// What was given.
        text: String,
        /// Why not.
        source: EntryIdError,
    },
}

impl FromStr for Selection {
    type Err = SelectError;
    fn from_str(text: &str) -> Result<Self, SelectError> {
        let form = |source| SelectError::Form { text: text.chars().take(200).collect(), source };
        match text.split('/').count() {
            1 if text.is_empty() => Err(form(EntryIdError::Empty)),
            1 => Ok(Self::Client(text.to_owned())),
            2 => {
                // The parts are spelled as in a full id, so that a name with "/" or a space can be given.
                let (client, server) = text.split_once('/').unwrap_or((text, ""));
                let id: EntryId = format!("{client}/user/{server}").parse().map_err(form)?;
                Ok(Self::Server { client: id.client().to_owned(), server: id.server().to_owned() })
            }
            _ => text.parse().map(Self::Entry).map_err(form),
        }
    }
}

impl Selection {
    /// The client that it is about; `None` for all.
    pub fn client(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Client(client) | Self::Server { client, .. } => Some(client),
            Self::Entry(entry) => Some(entry.client()),
        }
    }

    fn takes(&self, id: &EntryId) -> bool {
        match self {
            Self::All => true,
            Self::Client(client) => id.client() == client,
            Self::Server { client, server } => id.client() == client && id.server() == server,
            Self::Entry(entry) => id == entry,
        }
    }
}

/// The entries that the selections name. One that names nothing is an error that lists what there is.
pub fn select(clients: &Clients, scan: &Scan, selections: &[Selection]) -> Result<BTreeSet<EntryId>, SelectError> {
    let all = || scan.clients.iter().flat_map(|c| &c.files).flat_map(|f| &f.entries).map(|e| &e.id);
    let mut chosen = BTreeSet::new();
    for selection in selections {
        let before = all().filter(|id| selection.takes(id));
        let mut some = false;
        for id in before {
            some = true;
            chosen.insert(id.clone());
        }
        if some {
            continue;
        }
        let (client, server) = match selection {
            Selection::All => continue,
            Selection::Client(client) => (client.as_str(), None),
            Selection::Server { client, server } => (client.as_str(), Some(server.clone())),
            Selection::Entry(id) => (id.client(), Some(id.to_string())),
        };
        if clients.client(client).is_none() {
            return Err(SelectError::Client {
                name: client.to_owned(),
                known: listed(clients.known().map(|(id, _)| id)),
            });
        }
        if let Some(name) = server {
            let known: BTreeSet<String> = all().filter(|id| id.client() == client).map(EntryId::to_string).collect();
            return Err(SelectError::Server {
                client: client.to_owned(),
                name,
                known: listed(known.iter().map(String::as_str)),
            });
        }
    }
    Ok(chosen)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
