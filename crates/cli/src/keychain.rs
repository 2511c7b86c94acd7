//! What keeps secrets, as commands use it.

#[cfg(unix)]
use std::path::Path;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use firedoor_model::Keychain;
#[cfg(unix)]
use firedoor_model::keychain::FileKey;
use firedoor_store::{Keys, Place, Secrets};

use crate::{engine::paths, failure::Failure};

/// For one use of the keychain: a person may have to type its password.
const LIMIT: Duration = Duration::from_secs(60);

/// What opens the file of secrets, once a person has given its passphrase: nobody is asked twice.
static KEYS: LazyLock<Keys> = LazyLock::new(Keys::default);

/// The user's secrets. Nothing is connected to, and nobody asked, before they are used.
pub fn keychain() -> Result<Arc<dyn Keychain>, Failure> {
    Ok(Arc::new(asking()?))
}

/// The same, with all that can be done with them.
#[cfg(unix)]
pub fn asking() -> Result<Secrets, Failure> {
    Ok(silent()?.asking(Arc::new(|path: &Path, again| ask(path, again))))
}

/// Nobody is asked here: secrets cannot be put into a file.
#[cfg(not(unix))]
pub fn asking() -> Result<Secrets, Failure> {
    silent()
}

/// The same, which asks nobody.
pub fn silent() -> Result<Secrets, Failure> {
    Ok(Secrets::new(&paths()?, LIMIT, KEYS.clone()))
}

/// On the terminal.
#[cfg(unix)]
fn ask(path: &Path, again: bool) -> Option<String> {
    let wrong = if again { "That was not it. " } else { "" };
    crate::typed::asked(&format!("{wrong}The passphrase of {}, then Enter:", path.display()))
}

/// What this process has opened the file with, by a passphrase.
#[cfg(unix)]
pub fn key() -> Option<FileKey> {
    KEYS.key()
}

/// Where secrets are kept.
pub fn place() -> Result<Place, Failure> {
    Ok(silent()?.place()?)
}

/// What people call it.
pub fn called() -> &'static str {
    match place() {
        Ok(Place::File { .. }) => "the file of secrets",
        // What is wrong with it is said where it is used.
        Ok(Place::Keychain) | Err(_) => "the keychain",
    }
}
