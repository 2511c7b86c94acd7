//! Secrets in the keychain: their names, and removing one. Their values are never read here.

use firedoor_engine::kept::{self, Secret};
use firedoor_ipc::command::Request;
use firedoor_model::{Keychain, KeychainError};
use firedoor_store::StoreError;

use crate::{
    known::Known,
    link::{Link, LinkError},
    view::{SecretsView, secret_id},
};

/// Why secrets are not shown, or one is not removed.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The engine says no.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The database, which knows the endpoints.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keychain.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// Not one of those that were shown, or two that look the same.
    #[error(
        "there is no such secret, or more than one that looks so: use `firedoor secrets remove` on the command line"
    )]
    Unknown,
    /// Another one was quicker.
    #[error("the keychain has it no more")]
    Gone,
}

impl Known {
    /// Which there are. The keychain may ask its user for a password.
    pub fn secrets(&self, keychain: &dyn Keychain) -> Result<SecretsView, SecretsError> {
        let (secrets, problem) = self.listed(keychain)?;
        Ok(SecretsView::new(&secrets, problem.map(|e| e.to_string()).as_deref(), self.clients))
    }

    /// Removes the one that is shown so. The window has said which servers use it, and a person has confirmed that.
    pub fn remove_secret(&self, id: &str, keychain: &dyn Keychain) -> Result<(), SecretsError> {
        let (secrets, _) = self.listed(keychain)?;
        let meant: Vec<&Secret> = secrets.iter().filter(|secret| secret_id(secret) == id).collect();
        let [secret] = meant.as_slice() else { return Err(SecretsError::Unknown) };
        let item = secret.reference.item();
        Link::settle(&self.paths, &Request::Authorize { action: format!("removing the secret {item}") })?;
        if keychain.remove(&item)? { Ok(()) } else { Err(SecretsError::Gone) }
    }

    fn listed(&self, keychain: &dyn Keychain) -> Result<(Vec<Secret>, Option<KeychainError>), SecretsError> {
        let database = self.paths.database();
        let used = kept::in_use(&self.clients.scan(&self.env()), &database)?;
        let routes = kept::routes(&database)?;
        Ok(match kept::kept(keychain) {
            Ok(there) => (kept::all(&used, Some(&there), &routes), None),
            Err(e) => (kept::all(&used, None, &routes), Some(e)),
        })
    }
}

#[cfg(test)]
mod tests {
    use firedoor_clients::Clients;
    use firedoor_model::{SecretRef, keychain::MemoryKeychain, paths::Paths};

    use super::*;

    fn known(root: &tempfile::TempDir) -> Known {
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        Known::new(paths, Clients::load().unwrap(), root.path().join(firedoor_clients::SHIM))
    }

    /// Two secrets, and something else.
    fn filled() -> MemoryKeychain {
        let keychain = MemoryKeychain::default();
        keychain.set("a login", b"hidden").unwrap();
        for (entry, name) in [("cursor/user/gone", "KEY"), ("cursor/user/a", "T\u{202e}OKEN")] {
            let reference = SecretRef::new(entry.parse().unwrap(), name).unwrap();
            keychain.set(&reference.item(), b"hidden").unwrap();
        }
        keychain
    }

    #[test]
    fn names_are_shown_and_values_are_not() {
        let root = tempfile::tempdir().unwrap();
        let view = known(&root).secrets(&filled()).unwrap();
        let names: Vec<&str> = view.secrets.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["T⟨U+202E⟩OKEN", "KEY"]);
        assert!(view.secrets.iter().all(|s| s.kept == Some(true) && s.used_by.is_empty()));
        assert!(!serde_json::to_string(&view).unwrap().contains("hidden"));
    }

    #[test]
    fn without_an_engine_that_agrees_nothing_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (known, keychain) = (known(&root), filled());
        let id = known.secrets(&keychain).unwrap().secrets[1].id.clone();
        assert!(matches!(known.remove_secret(&id, &keychain), Err(SecretsError::Link(_))));
        assert!(matches!(known.remove_secret("a login", &keychain), Err(SecretsError::Unknown)));
        assert_eq!(keychain.items().unwrap().len(), 3);
    }

    #[test]
    fn one_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (known, keychain) = (known(&root), filled());
        crate::host::start(&known.paths, || {}).unwrap();
        let id = known.secrets(&keychain).unwrap().secrets[1].id.clone();
        known.remove_secret(&id, &keychain).unwrap();
        let left = keychain.items().unwrap();
        assert!(left.len() == 2 && left[0] == "a login" && left[1].starts_with("cursor/user/a/T"), "{left:?}");
        assert!(matches!(known.remove_secret(&id, &keychain), Err(SecretsError::Unknown)));
    }
}
