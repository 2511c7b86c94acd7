//! Looking for secrets: in files, and with the servers that they belong to.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{Client, Home, descendants, programs, text};

/// A variable of a server's.
pub fn environment(client: &mut Client, name: &str) -> String {
    text(&client.call("variable", json!({"name": name}))).0
}

/// What the client starts for a server: the variables of its entry, and its command line.
pub fn configured(home: &Home, server: &str) -> Vec<String> {
    let text = fs::read_to_string(home.path().join(".cursor/mcp.json")).expect("a Cursor configuration");
    let all: Value = serde_json::from_str(&text).expect("a JSON configuration");
    let entry = &all["mcpServers"][server];
    let env = entry["env"].as_object().into_iter().flatten();
    let env = env.map(|(name, value)| format!("{name}={}", value.as_str().expect("text")));
    let args = entry["args"].as_array().into_iter().flatten();
    let line = std::iter::once(&entry["command"]).chain(args).map(|v| v.as_str().expect("text").to_owned());
    std::iter::once("env".to_owned()).chain(env).chain(line).collect()
}

/// A client that has started a server of the Cursor configuration.
pub fn open(home: &Home, server: &str) -> Client {
    let mut client = Client::start(home, &configured(home, server));
    client.initialize();
    client
}

/// Every file below a directory.
pub fn files(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), out),
            Ok(kind) if kind.is_file() => out.push(entry.path()),
            _ => {}
        }
    }
}

/// Whether a secret is in there.
pub fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|w| w == secret.as_bytes())
}

/// Fails the test if one of these is in any file of the home, or beside the engine's socket.
#[track_caller]
pub fn nowhere(home: &Home, secrets: &[&str]) {
    let mut all = Vec::new();
    files(&home.path(), &mut all);
    files(&home.runtime(), &mut all);
    assert!(all.len() > 3);
    for path in all {
        let bytes = fs::read(&path).unwrap_or_default();
        for secret in secrets {
            assert!(!holds(&bytes, secret), "{secret} is in {}", path.display());
        }
    }
}

/// The credentials of a sample (`tests/fixtures/clients`), and where its file lies.
pub struct Sample {
    /// Its file.
    pub file: PathBuf,
    /// Credentials that protecting moves.
    pub moved: Vec<String>,
    /// Those that stay.
    pub stay: Vec<String>,
}

/// Every sample with credentials that a client on this system has, each in its place. Whatever a server of theirs is started
/// with is the same script.
pub fn samples(home: &Home, script: &Path) -> Vec<Sample> {
    let dir = programs::sources().join("fixtures/clients");
    let all = fs::read(dir.join("samples.json")).expect("the list of samples");
    let all: Vec<Value> = serde_json::from_slice(&all).expect("a list");
    let here = all.iter().filter(|s| s["system"].is_null() && (s["moved"].is_array() || s["stay"].is_array()));
    let words = |v: &Value| v.as_array().into_iter().flatten().map(|w| w.as_str().expect("text").to_owned()).collect();
    let put = |sample: &Value| {
        let name = sample["sample"].as_str().expect("a name");
        let text = fs::read_to_string(dir.join(name)).expect("a sample");
        let program = |text: String, name| text.replace(&format!("\"{name}\""), &json!(script).to_string());
        let text = ["npx", "uvx", "docker", "node", "git-mcp", "/opt/bin/one"].into_iter().fold(text, program);
        let place = sample["place"].as_str().expect("a place");
        let file = home.write(place.strip_prefix("home/").unwrap_or(place), text);
        Sample { file, moved: words(&sample["moved"]), stay: words(&sample["stay"]) }
    };
    here.map(put).collect()
}

/// The script for [`samples`]: a server that says its variables.
pub fn any_server(home: &Home) -> PathBuf {
    let read = |name: &str| fs::read_to_string(home.script(name)).expect("a test server");
    home.write("any/stdio_mcp.py", read("stdio_mcp.py"));
    let script = home.write("any/server", format!("#!{}\n{}", home.python().display(), read("reaching_server.py")));
    home.set_mode(&script, 0o755);
    script
}

/// What the client starts for each program of a JSON file whose variables refer to secrets, and the first such variable.
/// (What headers become is for `remote.rs`: the addresses of the samples are made up.)
fn with_references(file: &Path) -> Vec<(String, Vec<String>)> {
    let all = fs::read(file).expect("a configuration");
    let all: Value = serde_json::from_slice(&all).unwrap_or_default();
    let servers = all["mcpServers"].as_object().into_iter().flatten();
    let line = |entry: &Value| {
        let text = |v: &Value| v.as_str().expect("text").to_owned();
        let env: Vec<_> = entry["env"].as_object()?.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let reference = |(name, value): &&(String, String)| {
            value.starts_with("firedoor-secret:") && !name.starts_with("FIREDOOR_HEADER_")
        };
        let (name, _) = env.iter().find(reference)?.clone();
        let words = std::iter::once(&entry["command"]).chain(entry["args"].as_array().into_iter().flatten()).map(text);
        let env = env.iter().map(|(name, value)| format!("{name}={value}"));
        Some((name, std::iter::once("env".to_owned()).chain(env).chain(words).collect()))
    };
    servers.filter_map(|(_, entry)| line(entry)).collect()
}

/// Starts every server whose secrets were moved, and fails the test unless each of these is with its own server and nowhere
/// else: in no file of the home, and in no argument or variable of another process. `key` is not even with a server.
pub fn only_with_their_servers(home: &Home, samples: &[Sample], key: Option<&str>) {
    let secrets: BTreeSet<&String> = samples.iter().flat_map(|s| s.moved.iter().chain(&s.stay)).collect();
    let check = || {
        let mut all = Vec::new();
        files(&home.path(), &mut all);
        files(&home.runtime(), &mut all);
        for path in all {
            // What the client fills in, or what is not protected, stays where it was, and only there.
            let stays = samples.iter().find(|s| s.file == path).map(|s| s.stay.as_slice()).unwrap_or_default();
            let bytes = fs::read(&path).unwrap_or_default();
            for secret in secrets.iter().filter(|s| !stays.contains(s)) {
                assert!(!holds(&bytes, secret), "{secret} is in {}", path.display());
            }
        }
    };
    check();
    let mut started = 0;
    for sample in samples {
        for (name, line) in with_references(&sample.file) {
            let mut client = Client::start(home, &line);
            client.initialize();
            let got = environment(&mut client, &name);
            assert!(sample.moved.contains(&got), "{}: {name} is {got:?}", sample.file.display());
            for pid in home.engine().into_iter().chain(descendants(client.pid())).chain([client.pid()]) {
                let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
                let (line, variables) = (read("cmdline"), read("environ"));
                let shown = String::from_utf8_lossy(&line).into_owned();
                assert!(!key.is_some_and(|key| holds(&line, key) || holds(&variables, key)), "{pid}: {shown}");
                // The server itself is what its interpreter runs.
                if line.starts_with(home.python().as_os_str().as_encoded_bytes()) {
                    continue;
                }
                assert!(!secrets.iter().any(|s| holds(&line, s) || holds(&variables, s)), "{pid}: {shown}");
            }
            client.end();
            started += 1;
        }
    }
    assert!(started >= 15, "{started} servers were started");
    check();
}
