//! Secrets by their names.

use firedoor_clients::Clients;
use firedoor_engine::kept::Secret;
use firedoor_model::EntryId;
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
    pub used_by: Vec<UserView>,
    /// Whether the keychain has it; `null` when it cannot say.
    pub kept: Option<bool>,
}

/// An entry whose configuration refers to a secret.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UserView {
    pub server: String,
    /// The service that the secret is put in for, in broker mode; without one the server gets it.
    pub only_to: Option<String>,
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
            used_by: secret.used_by.iter().map(|entry| UserView::new(secret, entry, clients)).collect(),
            kept: secret.kept,
        }
    }
}

impl UserView {
    fn new(secret: &Secret, entry: &EntryId, clients: &Clients) -> Self {
        // Broker mode is the entry's: another one that refers to the same secret gets it.
        let route = secret.route.as_ref().filter(|_| entry == secret.reference.entry());
        Self { server: server(clients, entry), only_to: route.map(|route| sentence(&route.url)) }
    }
}

/// What the window names it by.
pub fn id(secret: &Secret) -> String {
    sentence(&secret.reference.item())
}

#[cfg(test)]
mod tests {
    use firedoor_model::{SecretRef, broker::Route};

    use super::*;

    #[test]
    fn broker_mode_is_said_of_the_entry_that_it_is_for() {
        let entry = |text: &str| text.parse::<EntryId>().unwrap();
        let text = |text: &str| text.to_owned();
        let secret = Secret {
            reference: SecretRef::new(entry("cursor/user/a"), "TOKEN").unwrap(),
            used_by: vec![entry("cursor/user/a"), entry("claude-code/user/b")],
            kept: Some(true),
            route: Some(Route {
                secret: text("TOKEN"),
                variable: text("API_URL"),
                url: text("https://api.example.com/\u{202e}v1"),
                header: text("authorization"),
                intercept: false,
            }),
        };
        let view = SecretsView::new(&[secret], None, Clients::load().unwrap());
        let only: Vec<_> = view.secrets[0].used_by.iter().map(|user| user.only_to.as_deref()).collect();
        assert_eq!(only, [Some("https://api.example.com/⟨U+202E⟩v1"), None]);
    }
}
