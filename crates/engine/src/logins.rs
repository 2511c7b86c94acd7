//! Logins (OAuth) at servers that are reached over HTTP: an entry's token comes out of the keychain at a launch, and is
//! renewed when it is about to end.

use std::{cell::RefCell, collections::HashMap, path::Path, rc::Rc, time::Duration};

use firedoor_clients::{Clients, Env};
use firedoor_model::{
    Digest, EntryId, Keychain, KeychainError, Millis,
    login::{Credentials, Errand, Task, Told},
    network::HostGrant,
    remote::RemoteRequest,
};
use firedoor_store::SystemKeychain;
use tokio::sync::Mutex;

use crate::{
    engine::Engine,
    errand::{ErrandError, Errands},
};

/// For the keychain, which may be asking its user for a password.
const LIMIT: Duration = Duration::from_secs(10);

/// A token that ends this soon is renewed first.
const AHEAD_MS: u64 = 60_000;

/// Entries whose logins are renewed, each by one at a time: most issuers take a refresh token once.
#[derive(Default)]
pub struct Logins(RefCell<HashMap<EntryId, Rc<Mutex<()>>>>);

impl Logins {
    fn of(&self, entry: &EntryId) -> Rc<Mutex<()>> {
        let mut all = self.0.borrow_mut();
        // Those that nobody holds are as good as none.
        all.retain(|_, turn| Rc::strong_count(turn) > 1);
        all.entry(entry.clone()).or_default().clone()
    }
}

/// Why a login cannot be used. The server is started without it, and says what it thinks of that.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The keychain.
    #[error("the login at its server could not be read: {0}")]
    Keychain(#[from] KeychainError),
    /// It is over.
    #[error("the login at its server is over: {0}")]
    Over(String),
    /// It may work later.
    #[error("the login at its server could not be renewed: {0}")]
    NotRenewed(String),
}

impl From<ErrandError> for LoginError {
    fn from(e: ErrandError) -> Self {
        Self::NotRenewed(e.to_string())
    }
}

/// The header with an entry's token, another one than what was `refused`. `None` when nobody has logged in for it at this address, when it signs in itself, or
/// when the entry is not what its client's configuration says.
pub async fn header(
    engine: &Rc<Engine>,
    request: &RemoteRequest,
    hosts: &[HostGrant],
    refused: Option<Digest>,
) -> Result<Option<(String, String)>, LoginError> {
    if request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Ok(None);
    }
    let turn = engine.logins.of(&request.entry);
    let _turn = turn.lock().await;
    let (paths, now, given, hosts) = (engine.paths.clone(), engine.now(), request.clone(), hosts.to_vec());
    let firedoor = std::env::current_exe().map_err(ErrandError::from)?.with_file_name("firedoor");
    let work = move || {
        let keychain = SystemKeychain::new(LIMIT);
        let credentials = match Credentials::load(&keychain, &given.entry, &given.url) {
            Ok(Some(credentials)) => credentials,
            // Without a keychain nobody has logged in.
            Ok(None) | Err(KeychainError::Absent { .. }) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let clients = Clients::load().map_err(|e| LoginError::NotRenewed(e.to_string()))?;
        let lookup = |name: &str| given.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let env = Env::new(paths, &given.cwd, lookup);
        // Whoever can start a shim can name any entry.
        if !clients.configured(&env, &given.entry).is_some_and(|configured| configured.reaches(&given.url)) {
            return Ok(None);
        }
        let is_refused = refused == Some(Digest::of(bearer(&credentials.access_token).as_bytes()));
        match is_refused && credentials.refresh_token.is_none() {
            true => Ok(None),
            false => fresh(&keychain, credentials, is_refused, &given, hosts, &firedoor, now).map(Some),
        }
    };
    let token = tokio::task::spawn_blocking(work).await.map_err(|e| LoginError::NotRenewed(e.to_string()))??;
    Ok(token.map(|token| ("Authorization".to_owned(), bearer(&token))))
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The access token, renewed if need be.
fn fresh(
    keychain: &dyn Keychain,
    credentials: Credentials,
    is_refused: bool,
    request: &RemoteRequest,
    hosts: Vec<HostGrant>,
    firedoor: &Path,
    now: Millis,
) -> Result<String, LoginError> {
    if !is_refused && !credentials.has_ended(now.plus(AHEAD_MS)) || credentials.refresh_token.is_none() {
        return Ok(credentials.access_token);
    }
    let request = RemoteRequest { url: credentials.token_endpoint.clone(), headers: Vec::new(), ..request.clone() };
    let entry = request.entry.clone();
    let task = Task::Renew(Box::new(credentials.clone()));
    match Errands::start(firedoor, &Errand { request, hosts }, &task)?.hear()? {
        Told::Done(renewed) => {
            renewed.keep(keychain, &entry)?;
            Ok(renewed.access_token)
        }
        Told::Failed { why, over: true } => {
            keychain.remove(&Credentials::item(&entry))?;
            Err(LoginError::Over(why))
        }
        // The token may still be good for a minute.
        Told::Failed { .. } if !is_refused && !credentials.has_ended(now) => Ok(credentials.access_token),
        Told::Failed { why, .. } => Err(LoginError::NotRenewed(why)),
        _ => Err(ErrandError::Silent.into()),
    }
}
