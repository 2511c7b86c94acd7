//! Which secrets there are, and which entries use them: for whoever shows and removes them. Their values are not read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use firedoor_clients::Scan;
use firedoor_model::{EntryId, Keychain, KeychainError, SecretRef, broker::Route};
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
    /// Where it is put in for the entry of its own name, if it is in broker mode there: that entry's server never gets it.
    pub route: Option<Route>,
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

/// Which secrets are in broker mode, entry by entry. Read from the database, because this works without an engine.
pub fn routes(database: &Path) -> Result<BTreeMap<EntryId, Vec<Route>>, StoreError> {
    match Store::open_read_only(database).and_then(|store| store.all_routes()) {
        Err(StoreError::Missing { .. } | StoreError::Older { .. }) => Ok(BTreeMap::new()),
        routes => routes,
    }
}

/// All that are used or kept, by name. Without a word of the keychain's, those that are used.
pub fn all(
    used: &BTreeMap<SecretRef, Vec<EntryId>>,
    kept: Option<&BTreeSet<SecretRef>>,
    routes: &BTreeMap<EntryId, Vec<Route>>,
) -> Vec<Secret> {
    let names: BTreeSet<&SecretRef> = used.keys().chain(kept.into_iter().flatten()).collect();
    let secret = |reference: &SecretRef| Secret {
        reference: reference.clone(),
        used_by: used.get(reference).cloned().unwrap_or_default(),
        kept: kept.map(|kept| kept.contains(reference)),
        route: routes.get(reference.entry()).and_then(|all| all.iter().find(|r| r.secret == reference.name())).cloned(),
    };
    names.into_iter().map(secret).collect()
}

#[cfg(test)]
mod tests {
    use firedoor_model::keychain::MemoryKeychain;

    use super::*;

    fn route(secret: &str) -> Route {
        let text = |text: &str| text.to_owned();
        Route {
            secret: text(secret),
            variable: text("API_URL"),
            url: text("https://api.example.com"),
            header: text("authorization"),
            intercept: false,
        }
    }

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
        let routes = BTreeMap::from([(user.clone(), vec![route("TOKEN"), route("OTHER")])]);
        let told = |kept: Option<&BTreeSet<SecretRef>>| {
            let secrets = all(&used, kept, &routes);
            let brokered: Vec<&str> = secrets.iter().filter_map(|s| Some(s.route.as_ref()?.secret.as_str())).collect();
            assert_eq!(brokered, ["TOKEN"]);
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
