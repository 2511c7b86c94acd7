//! Secrets by their names.

use firedoor_clients::Clients;
use firedoor_engine::kept::Secret;
use serde::Serialize;

use super::{name, sentence, server};

/// The secrets that protected servers get at their start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SecretsView {
    pub secrets: Vec<SecretView>,
    /// Why the keychain cannot say what it has.
    pub problem: Option<String>,
}

/// One secret, without its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SecretView {
    /// What the window names it by.
    pub id: String,
    pub name: String,
    /// The server it was moved out of.
    pub of: String,
    pub used_by: Vec<String>,
    /// Whether the keychain has it; `null` when it cannot say.
    pub kept: Option<bool>,
}

impl SecretsView {
    /// For showing.
    pub fn new(secrets: &[Secret], problem: Option<&str>, clients: &Clients) -> Self {
        Self {
            secrets: secrets.iter().map(|secret| SecretView::new(secret, clients)).collect(),
            problem: problem.map(sentence),
        }
    }
}

impl SecretView {
    fn new(secret: &Secret, clients: &Clients) -> Self {
        Self {
            id: id(secret),
            name: name(secret.reference.name()),
            of: server(clients, secret.reference.entry()),
            used_by: secret.used_by.iter().map(|entry| server(clients, entry)).collect(),
            kept: secret.kept,
        }
    }
}

/// What the window names it by.
pub fn id(secret: &Secret) -> String {
    sentence(&secret.reference.item())
}
