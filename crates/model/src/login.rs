//! Logging in (OAuth) at servers that are reached over HTTP: what is kept of a login, and what is said to the program that
//! speaks to the servers.

use serde::{Deserialize, Serialize};

use crate::{Digest, EntryId, Keychain, KeychainError, Millis, network::HostGrant, remote::RemoteRequest};

/// Argument with which `firedoor-remote` logs in, instead of standing for a server.
pub const SIGN_IN: &str = "--sign-in";

/// How `firedoor-remote` begins a line on its stderr that asks for another token; the digest of the header that was refused
/// follows. The answer is a line with [`Another`].
pub const RENEW: &str = "\0renew ";

/// The answer to such a line.
#[derive(Clone, Serialize, Deserialize)]
pub struct Another {
    /// What was asked about: an answer may come when nobody waits for it any more.
    pub refused: Digest,
    /// The header's new value, if there is one.
    pub value: Option<String>,
}

/// Longest line that is said in either direction, in bytes.
pub const MAX_LINE: usize = 256 << 10;

/// How a client shows at the token endpoint that it is itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAuth {
    /// Not at all: a public client.
    #[default]
    None,
    /// With its secret in the body (`client_secret_post`).
    Post,
    /// With its secret in a header (`client_secret_basic`).
    Basic,
}

/// What a login gave, for one entry at one address from one issuer. Holds tokens: never logged, kept in the keychain only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The address that the entry had. For another one they are not used.
    pub url: String,
    /// The resource that the tokens are for (RFC 8707).
    pub resource: String,
    /// Who issued them, and the client's registration.
    pub issuer: String,
    /// Where tokens are renewed.
    pub token_endpoint: String,
    /// Where they are revoked, if anywhere.
    pub revocation_endpoint: Option<String>,
    /// What the issuer knows Firedoor by.
    pub client_id: String,
    /// Its secret, if it got one.
    pub client_secret: Option<String>,
    /// How it is shown.
    pub auth: TokenAuth,
    /// For requests.
    pub access_token: String,
    /// For the next access token.
    pub refresh_token: Option<String>,
    /// When the access token ends, if that was said.
    pub expires: Option<Millis>,
    /// What was granted.
    pub scopes: Vec<String>,
}

impl Credentials {
    /// The name of an entry's login in the keychain. It is no reference to a secret, since those have a name behind the entry.
    pub fn item(entry: &EntryId) -> String {
        format!("login:{entry}")
    }

    /// An entry's login, if it has one for this address.
    pub fn load(keychain: &dyn Keychain, entry: &EntryId, url: &str) -> Result<Option<Self>, KeychainError> {
        let known = keychain.get(&Self::item(entry))?.and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        Ok(known.filter(|credentials| credentials.url == url))
    }

    /// Keeps it, in the place of an earlier one.
    pub fn keep(&self, keychain: &dyn Keychain, entry: &EntryId) -> Result<(), KeychainError> {
        let item = Self::item(entry);
        let failed =
            |e: serde_json::Error| KeychainError::Failed { doing: "keep", item: item.clone(), why: e.to_string() };
        keychain.set(&item, &serde_json::to_vec(self).map_err(failed)?)
    }

    /// A login that is none, for tests of what is done with one.
    pub fn example(access_token: &str) -> Self {
        Self {
            url: "https://a.example/mcp".into(),
            resource: "https://a.example/mcp".into(),
            issuer: "https://i.example".into(),
            token_endpoint: "https://i.example/token".into(),
            revocation_endpoint: None,
            client_id: "c".into(),
            client_secret: None,
            auth: TokenAuth::None,
            access_token: access_token.into(),
            refresh_token: Some(format!("refresh-{access_token}")),
            expires: None,
            scopes: vec!["s".into()],
        }
    }

    /// Whether the access token has ended, or will at this time.
    pub fn has_ended(&self, at: Millis) -> bool {
        self.expires.is_some_and(|expires| expires <= at)
    }
}

/// For the process that starts and confines `firedoor-remote`: where it goes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Errand {
    /// The entry, the address that is spoken to, and the environment, of which proxies and certificates count.
    pub request: RemoteRequest,
    /// What it may reach besides.
    pub hosts: Vec<HostGrant>,
}

/// What is to be done.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Task {
    /// Get tokens, with the user's consent in a browser.
    Login {
        /// The server.
        url: String,
        /// Where the browser comes back to.
        redirect: String,
        /// What the issuer knows Firedoor by, if the user has registered it.
        client_id: Option<String>,
        /// That client has a secret: it is asked for, with [`Told::Secret`], once the issuer is known.
        #[serde(default)]
        client_secret: bool,
        /// What is asked for besides what the server says.
        scopes: Vec<String>,
        /// With a code that the user enters on any machine (RFC 8628): no browser comes back.
        #[serde(default)]
        device: bool,
    },
    /// Get another access token.
    Renew(Box<Credentials>),
    /// Tell the issuer that the tokens are not used any more.
    Revoke(Box<Credentials>),
}

/// What became of it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// The client's secret is needed. The next line is it, as a JSON string.
    Secret {
        /// Who gets it, and nobody else.
        issuer: String,
    },
    /// The user has to go here. What the browser brings back is the next line: the query of its request.
    Visit {
        /// The address.
        address: String,
        /// Who asks there.
        issuer: String,
    },
    /// The user has to go here, on any machine, and enter this. Nothing comes back but tokens.
    Enter {
        /// The address.
        address: String,
        /// The code.
        code: String,
        /// Who asks there.
        issuer: String,
    },
    /// This was not the answer that is waited for; the next line may be.
    Ignored {
        /// Why.
        why: String,
    },
    /// The server lets everybody in.
    NotNeeded,
    /// There are tokens.
    Done(Box<Credentials>),
    /// They are revoked.
    Revoked,
    /// It did not work.
    Failed {
        /// Why.
        why: String,
        /// Only another login helps.
        over: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keychain::MemoryKeychain;

    #[test]
    fn a_login_belongs_to_an_entry_and_its_address() {
        let (keychain, entry): (_, EntryId) = (MemoryKeychain::default(), "cursor/user/s".parse().unwrap());
        let credentials = Credentials { expires: Some(Millis(5)), ..Credentials::example("t") };
        credentials.keep(&keychain, &entry).unwrap();
        assert!(Credentials::item(&entry).parse::<crate::SecretRef>().is_err());
        let load = |entry: &str, url: &str| Credentials::load(&keychain, &entry.parse().unwrap(), url).unwrap();
        assert!(load("cursor/user/s", "https://a.example/mcp").is_some_and(|known| known == credentials));
        assert!(load("cursor/user/s", "https://b.example/mcp").is_none());
        assert!(load("cursor/user/x", "https://a.example/mcp").is_none());
        assert!(!credentials.has_ended(Millis(4)) && credentials.has_ended(Millis(5)));
        assert!(!Credentials { expires: None, ..credentials }.has_ended(Millis(u64::MAX)));
    }
}
