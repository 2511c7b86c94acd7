//! Secrets in an encrypted file, on a machine without a keychain: no Secret Service answers in these homes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use firedoor_tests::{
    Client, Home, Keychain, alive, at_a_terminal, descendants, kill,
    secrets::{any_server, configured, environment, holds, nowhere, only_with_their_servers, open, samples},
    text, until,
};
use nix::sys::signal::Signal;
use serde_json::json;

const TOKEN: &str = "ghp_MadeUpForThisTest000000000000000001";
const PASSPHRASE: &str = "correct horse made up";

/// A server with a secret.
fn server(home: &Home) -> (PathBuf, String) {
    let mut entry = home.entry("reaching_server.py", &[]);
    entry["env"] = json!({"GITHUB_TOKEN": TOKEN});
    let path = home.cursor(json!({"r": entry}));
    let before = fs::read_to_string(&path).unwrap();
    (path, before)
}

/// Keeps secrets in a file that this identity opens.
#[track_caller]
fn in_a_file(home: &Home) -> PathBuf {
    let identity = home.directory("keys").join("identity.txt");
    home.firedoor(&["secrets", "keep-in-file", "--identity", identity.to_str().unwrap()]).expect_code(0);
    identity
}

#[track_caller]
fn refused(home: &Home) -> String {
    let mut client = Client::start(home, &configured(home, "r"));
    let id = client.request("initialize", json!({}));
    let why = client.answer(id)["error"]["message"].to_string();
    client.end();
    why
}

/// Ends the engine as a crash does.
fn crash(home: &Home) {
    let pid = home.engine().unwrap();
    kill(pid, Signal::SIGKILL);
    until("the engine is gone", || (!alive(pid)).then_some(()));
}

#[test]
fn no_credential_of_any_sample_is_anywhere_but_with_its_server_and_every_byte_comes_back() {
    let home = Home::new();
    let samples = samples(&home, &any_server(&home));
    let identity = in_a_file(&home);
    let before: BTreeMap<&PathBuf, Vec<u8>> = samples.iter().map(|s| (&s.file, fs::read(&s.file).unwrap())).collect();
    let work = home.path().join("work").into_os_string().into_string().unwrap();
    home.firedoor(&["protect", "--all", "--yes", "--no-verify", "--project", &work])
        .expect_code(0)
        .expect_said("moved into the file of secrets");
    let key = fs::read_to_string(&identity).unwrap();
    only_with_their_servers(&home, &samples, key.lines().last());
    home.firedoor(&["restore", "--all", "--project", &work])
        .expect_code(0)
        .expect_said("put back from the file of secrets");
    for (file, bytes) in before {
        assert!(fs::read(file).unwrap() == bytes, "{} is not what it was", file.display());
    }
}

#[test]
fn with_an_identity_file_nobody_is_asked_and_secrets_are_listed_set_and_removed() {
    let home = Home::new();
    let (path, before) = server(&home);
    home.firedoor(&["doctor"]).expect_code(0).expect_said("no keychain answers here").expect_said("keep-in-file");
    let identity = in_a_file(&home);
    home.firedoor(&["secrets", "keep-in-file"]).expect_code(0).expect_said("already");
    let report = home.json(&["protect", "--all", "--yes"]);
    assert_eq!(report["verified"][0]["verified"], "same", "{report}");
    home.firedoor(&["doctor"]).expect_code(0).expect_said("secrets.age").expect_said("identity.txt");
    nowhere(&home, &[TOKEN]);
    let name = "cursor/user/r/GITHUB_TOKEN";
    let listed = home.firedoor(&["secrets", "list"]).expect_code(0).expect_said("in the file of secrets");
    listed.expect_said(name);
    let new = "ghp_MadeUpForThisTest000000000000000002";
    home.firedoor_typing(&["secrets", "set", name], new).expect_code(0);
    // Also one that was killed gives way to one that opens the file by itself.
    crash_if_any(&home);
    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), new);
    client.end();
    nowhere(&home, &[TOKEN, new]);
    home.firedoor_typing(&["secrets", "set", name], TOKEN).expect_code(0);
    home.firedoor(&["secrets", "lock"]).expect_code(1).expect_said("cannot be locked");
    // What opens it is missing: it is named, nothing is started without its secret, and nothing is lost.
    let aside = home.path().join("aside");
    fs::rename(&identity, &aside).unwrap();
    let why = refused(&home);
    assert!(why.contains("identity.txt") && why.contains("missing"), "{why}");
    home.firedoor(&["doctor"]).expect_code(1).expect_said("identity.txt");
    home.firedoor(&["restore", "--all"]).expect_code(1).expect_said("NOT put back");
    fs::rename(&aside, &identity).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0).expect_said("byte for byte");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    home.firedoor(&["secrets", "remove", "--unused"]).expect_code(0).expect_said(name);
    assert_eq!(home.json(&["secrets", "list"])["secrets"], json!([]));
}

fn crash_if_any(home: &Home) {
    if home.engine().is_some() {
        crash(home);
    }
}

#[test]
fn under_a_passphrase_the_engine_is_told_once() {
    let home = Home::new();
    let (path, before) = server(&home);
    home.firedoor_typing(&["secrets", "keep-in-file"], "short").expect_code(2).expect_said("8 characters");
    home.firedoor_typing(&["secrets", "keep-in-file"], PASSPHRASE).expect_code(0);
    home.firedoor(&["doctor"]).expect_code(0).expect_said("the engine has what opens it");
    // A command asks on its terminal; without one, secrets stay where they are, and that is said.
    let unasked = home.firedoor(&["protect", "--all", "--yes", "--dry-run"]).expect_code(0);
    unasked.expect_said("firedoor secrets unlock");
    let protected = at_a_terminal(&home, &["protect", "--all", "--yes"], &["not this one", PASSPHRASE]);
    protected.expect_code(0).expect_said("That was not it").expect_said("moved into the file of secrets");
    nowhere(&home, &[TOKEN, PASSPHRASE, "AGE-SECRET-KEY"]);
    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), TOKEN);
    client.end();
    // The next engine has to be told again.
    crash(&home);
    let why = refused(&home);
    assert!(why.contains("locked") && why.contains("firedoor secrets unlock"), "{why}");
    let doctor = home.firedoor(&["doctor"]).expect_code(1);
    doctor.expect_said("locked for the engine\n     Where the file of secrets is locked, `firedoor secrets unlock`");
    home.firedoor_typing(&["secrets", "unlock"], "not this one").expect_code(1).expect_said("not its passphrase");
    assert!(refused(&home).contains("locked"));
    home.firedoor_typing(&["secrets", "unlock"], PASSPHRASE).expect_code(0);
    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), TOKEN);
    for pid in home.engine().into_iter().chain(descendants(client.pid())).chain([client.pid()]) {
        for what in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            assert!(!holds(&bytes, PASSPHRASE) && !holds(&bytes, "AGE-SECRET-KEY"), "{pid}: {what}");
        }
    }
    client.end();
    home.firedoor(&["secrets", "lock"]).expect_code(0);
    assert!(refused(&home).contains("locked"));
    nowhere(&home, &[TOKEN, PASSPHRASE, "AGE-SECRET-KEY"]);
    at_a_terminal(&home, &["restore", "--all"], &[PASSPHRASE]).expect_code(0).expect_said("byte for byte");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn secrets_move_to_a_keychain_and_back_without_a_change_for_servers() {
    let home = Home::new();
    let (path, before) = server(&home);
    let identity = in_a_file(&home);
    home.protect();
    let protected = fs::read_to_string(&path).unwrap();
    let works = || {
        assert_eq!(fs::read_to_string(&path).unwrap(), protected);
        let mut client = open(&home, "r");
        assert_eq!(environment(&mut client, "GITHUB_TOKEN"), TOKEN);
        client.end();
        nowhere(&home, &[TOKEN]);
    };
    works();
    home.firedoor(&["secrets", "keep-in-keychain"]).expect_code(2).expect_said("no keychain answers here");
    works();
    let mut keychain = Keychain::start(&home);
    // The bus is a variable of what is started from now on, of the engine, too.
    crash(&home);
    home.firedoor(&["secrets", "keep-in-keychain"]).expect_code(0).expect_said("identity.txt is not used any more");
    assert!(!home.state("secrets/secrets.age").exists() && identity.exists());
    works();
    keychain.lock();
    let again = ["secrets", "keep-in-file", "--identity", identity.to_str().unwrap()];
    home.firedoor(&again).expect_code(2).expect_said("locked");
    keychain.unlock();
    works();
    home.firedoor(&again).expect_code(0);
    keychain.stop();
    works();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_server_can_read_neither_the_file_nor_what_opens_it() {
    let home = Home::new();
    let (_, _) = server(&home);
    let identity = in_a_file(&home);
    home.write("keys/other.txt", "plain");
    let unprotected = home.command_line("r");
    home.protect();
    // The user grants everything around it.
    let keys = home.path().join("keys");
    home.firedoor(&["grants", "add", "cursor/user/r", "--ro", keys.to_str().unwrap()]).expect_code(0);
    home.firedoor(&["grants", "add", "cursor/user/r", "--rw", home.state("").to_str().unwrap()]);
    let own: Vec<PathBuf> =
        ["secrets.age", "kept.json", "lock"].iter().map(|name| home.state("secrets").join(name)).collect();
    let read = |client: &mut Client, path: &Path| text(&client.call("read", json!({"path": path}))).0;
    let mut baseline = Client::start(&home, &unprotected);
    baseline.initialize();
    let mut client = open(&home, "r");
    assert!(!read(&mut client, &keys.join("other.txt")).starts_with("denied: "), "the grant does not hold");
    for path in own.iter().chain([&identity]) {
        assert!(!read(&mut baseline, path).starts_with("denied: "), "the baseline fails: {}", path.display());
        let got = read(&mut client, path);
        assert!(got.starts_with("denied: "), "{}: {got}", path.display());
    }
    client.end();
}
