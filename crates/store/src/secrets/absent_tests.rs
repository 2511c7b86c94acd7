//! Where secrets cannot be kept in a file.

use std::fs;

use firedoor_model::{Unavailable, keychain::MemoryKeychain};

use super::*;

fn home() -> (tempfile::TempDir, Paths) {
    let root = tempfile::tempdir().unwrap();
    let paths = Paths::from_env(|name| ["HOME", "USERPROFILE"].contains(&name).then(|| root.path().into())).unwrap();
    (root, paths)
}

fn refused<T>(done: Result<T, KeychainError>) {
    match done {
        Err(KeychainError::Unavailable { what: Unavailable(what), .. }) => {
            assert_eq!(what, "keeping secrets in a file")
        }
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it says that it worked"),
    }
}

#[test]
fn the_keychain_keeps_them_and_nothing_moves_into_a_file() {
    let (root, paths) = home();
    let secrets = Secrets::over(MemoryKeychain::default(), &paths, Keys::default());
    secrets.set("a", b"hunter2").unwrap();
    let identity = root.path().join("identity.txt");
    for opener in [Opener::Identity(identity.clone()), Opener::Passphrase("correct horse made up".into())] {
        refused(secrets.keep_in_file(&opener));
    }
    assert_eq!(secrets.place().unwrap(), Place::Keychain);
    assert_eq!(secrets.get("a").unwrap().as_deref(), Some(&b"hunter2"[..]));
    assert_eq!(secrets.items().unwrap(), ["a"]);
    assert!(secrets.remove("a").unwrap());
    assert!(!identity.exists() && !paths.secrets().exists());
}

#[test]
fn a_file_from_elsewhere_is_named_and_the_keychain_does_not_take_its_place() {
    let (_root, paths) = home();
    let secrets = Secrets::over(MemoryKeychain::default(), &paths, Keys::default());
    fs::create_dir_all(paths.secrets()).unwrap();
    fs::write(paths.kept_in_file(), "{}").unwrap();
    refused(secrets.get("a"));
    refused(secrets.set("a", b"hunter2"));
    refused(secrets.remove("a"));
    refused(secrets.items());
    refused(secrets.place());
    refused(secrets.keep_in_keychain());
    let why = secrets.get("a").unwrap_err().to_string();
    assert!(why.contains("kept.json") && why.contains("not available on this system"), "{why}");
    assert_eq!(secrets.system.items().unwrap(), Vec::<String>::new());
    assert_eq!(fs::read(paths.kept_in_file()).unwrap(), b"{}");
}
