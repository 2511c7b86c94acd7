//! Files as clients' documentation, sources and own writing have them (`tests/fixtures/clients`): each is protected once and
//! comes back byte for byte.

use std::{fs, path::Path, sync::Arc};

use firedoor_clients::{State, System};
use firedoor_model::keychain::MemoryKeychain;
use serde::Deserialize;

use crate::home::Home;

#[derive(Deserialize)]
struct Sample {
    sample: String,
    place: String,
    #[serde(default = "linux")]
    system: System,
    /// The servers that can be protected.
    protected: Vec<String>,
    /// Credentials that move into the keychain.
    #[serde(default)]
    moved: Vec<String>,
    /// Credentials that stay where they are.
    #[serde(default)]
    stay: Vec<String>,
}

fn linux() -> System {
    System::Linux
}

fn files(dir: &Path, out: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), out);
        } else {
            out.push(entry.path().to_str().unwrap().to_owned());
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

/// Protected, protected again, and given back: by the journal, without it, and where there is no keychain.
fn check(sample: &Sample, bytes: &[u8], forget: bool, keychain: bool) {
    let name = &sample.sample;
    let keychain = keychain.then(|| Arc::new(MemoryKeychain::default()));
    let home = Home { system: sample.system, keychain, ..Home::new() };
    let path = home.write(&sample.place, bytes);
    assert_eq!(home.problem(), "", "{name}");
    for done in home.protect(&[]) {
        assert!(done.result.is_ok(), "{name}: {done:?}");
    }
    let protected = fs::read(&path).unwrap();
    let mut servers: Vec<String> =
        home.entries().iter().filter(|e| e.state == State::Protected).map(|e| e.id.server().to_owned()).collect();
    servers.sort();
    assert_eq!(servers, sample.protected, "{name}: {:?}", home.states());
    for secret in &sample.moved {
        assert!(holds(bytes, secret) && holds(&protected, secret) != home.keychain.is_some(), "{name}: {secret}");
    }
    for secret in &sample.stay {
        assert!(holds(&protected, secret), "{name}: {secret}");
    }
    assert!(home.protect(&[]).is_empty(), "{name}: protecting twice is nothing");
    assert_eq!(fs::read(&path).unwrap(), protected, "{name}");
    if forget && !servers.is_empty() {
        home.forget();
    }
    for done in home.restore(&[]) {
        assert!(done.result.is_ok(), "{name}: {done:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "{name}, journal gone: {forget}");
}

#[test]
fn every_sample_is_protected_once_and_comes_back() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/clients");
    let samples: Vec<Sample> = serde_json::from_slice(&fs::read(dir.join("samples.json")).unwrap()).unwrap();
    let mut there = Vec::new();
    files(&dir, &mut there);
    assert_eq!(there.len(), samples.len() + 1, "every file is named in samples.json");
    for sample in &samples {
        let bytes = fs::read(dir.join(&sample.sample)).unwrap();
        for (forget, keychain) in [(false, true), (true, true), (true, false)] {
            check(sample, &bytes, forget, keychain);
        }
    }
}
