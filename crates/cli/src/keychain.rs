//! The keychain, as commands use it.

use std::{sync::Arc, time::Duration};

use firedoor_model::Keychain;
use firedoor_store::SystemKeychain;

/// For one use of the keychain: a person may have to type its password.
const LIMIT: Duration = Duration::from_secs(60);

/// The system's keychain. It is not connected to before it is used.
pub fn keychain() -> Arc<dyn Keychain> {
    Arc::new(SystemKeychain::new(LIMIT))
}
