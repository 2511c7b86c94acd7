//! Which secrets there are, and which entries use them: for whoever shows and removes them. Their values are not read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use firedoor_clients::Scan;
use firedoor_model::{EntryId, Keychain, KeychainError, SecretRef};
use firedoor_store::{Store, StoreError};

/// One secret, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Its name.
    pub reference: SecretRef,
    /// The entries whose configuration refers to it, and endpoints.
    pub used_by: Vec<EntryId>,
    /// Whether it is kept; `None` when that cannot be said.
    pub kept: Option<bool>,
}

/// Which entries refer to which secret: those that were found, and endpoints, whose configuration is in the database.
pub fn in_use(scan: &Scan, database: &Path) -> Result<BTreeMap<SecretRef, Vec<EntryId>>, StoreError> {
    let mut all: BTreeMap<SecretRef, Vec<EntryId>> = BTreeMap::new();
    for entry in scan.clients.iter().flat_map(|c| &c.files).flat_map(|f| &f.entries) {
        for secret in &entry.secrets {
            all.entry(secret.clone()).or_default().push(entry.id.clone());
        }
    }
    // Read from the database, because this works without an engine.
    let endpoints = match Store::open_read_only(database).and_then(|store| store.endpoints()) {
        Ok(endpoints) => endpoints,
        Err(StoreError::Missing { .. } | StoreError::Older { .. }) => Vec::new(),
        Err(e) => return Err(e),
    };
    for endpoint in endpoints {
        for secret in endpoint.target.values().filter_map(|value| SecretRef::read(value)) {
            all.entry(secret).or_default().push(endpoint.entry.clone());
        }
    }
    Ok(all)
}

/// The secrets in the keychain. It has other things of Firedoor's as well, whose names are no references.
pub fn kept(keychain: &dyn Keychain) -> Result<BTreeSet<SecretRef>, KeychainError> {
    Ok(keychain.items()?.iter().filter_map(|item| item.parse().ok()).collect())
}

/// All that are used or kept, by name. Without a word of the keychain's, those that are used.
pub fn all(used: &BTreeMap<SecretRef, Vec<EntryId>>, kept: Option<&BTreeSet<SecretRef>>) -> Vec<Secret> {
    let names: BTreeSet<&SecretRef> = used.keys().chain(kept.into_iter().flatten()).collect();
    let secret = |reference: &SecretRef| Secret {
        reference: reference.clone(),
        used_by: used.get(reference).cloned().unwrap_or_default(),
        kept: kept.map(|kept| kept.contains(reference)),
    };
    names.into_iter().map(secret).collect()
}

#[cfg(test)]
mod tests {
    use firedoor_model::keychain::MemoryKeychain;

    use super::*;

    #[test]
    fn what_is_used_and_what_is_kept_are_told_apart() {
        let reference = |text: &str| text.parse::<SecretRef>().unwrap();
        let keychain = MemoryKeychain::default();
        for item in ["cursor/user/a/TOKEN", "cursor/user/gone/KEY", "login:cursor"] {
            keychain.set(item, b"hidden").unwrap();
        }
        let user: EntryId = "cursor/user/a".parse().unwrap();
        let used: BTreeMap<SecretRef, Vec<EntryId>> =
            ["cursor/user/a/TOKEN", "cursor/user/a/LOST"].map(|name| (reference(name), vec![user.clone()])).into();
        let there = kept(&keychain).unwrap();
        let told = |kept: Option<&BTreeSet<SecretRef>>| {
            let secrets = all(&used, kept);
            secrets.iter().map(|s| (s.reference.item(), s.used_by.len(), s.kept)).collect::<Vec<_>>()
        };
        let name = |text: &str| text.to_owned();
        assert_eq!(
            told(Some(&there)),
            [
                (name("cursor/user/a/LOST"), 1, Some(false)),
                (name("cursor/user/a/TOKEN"), 1, Some(true)),
                (name("cursor/user/gone/KEY"), 0, Some(true))
            ]
        );
        assert_eq!(told(None), [(name("cursor/user/a/LOST"), 1, None), (name("cursor/user/a/TOKEN"), 1, None)]);
    }
}
