//! Secrets of entries, with a keychain in memory.

use std::{fs, path::Path, sync::Arc};

use firedoor_clients::State;
use firedoor_model::{Keychain as _, keychain::MemoryKeychain};

use crate::home::{Home, one, read};

const CURSOR: &str = "home/.cursor/mcp.json";

fn home() -> (Home, Arc<MemoryKeychain>) {
    let keychain = Arc::new(MemoryKeychain::default());
    let mut home = Home::new();
    home.keychain = Some(keychain.clone());
    (home, keychain)
}

/// Whether a secret of these tests is in any file.
fn leaks(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().flatten().any(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => leaks(&entry.path()),
        kind => kind.is_file() && fs::read(entry.path()).unwrap().windows(9).any(|w| w == b"FAKEvalue"),
    })
}

/// In each syntax and spelling: gone after protecting, back to the byte after restoring, with and without the state.
#[test]
fn secrets_move_and_come_back_in_every_spelling() {
    let json = r#"{"mcpServers":{
  "a" : {"command":"npx","args":["-y","srv","--api-key","FAKEvalue1","--token=FAKEvalue2"],
         "env":{"A_TOKEN" : "FAKE\u0076alue3\/x","A_TOKEN":"FAKEvalue4\/\u0041","PLAIN":"x"}},
  "b":{"command":"x","env":{"B_TOKEN":"FAKEvalue5"},"args":[]},
  "c":{"env":{"C_TOKEN":"FAKEvalue6 é🚀 \\ \" $"},"command":"x"}
}}"#;
    let array = "{ // c\n \"mcp\": {\"a\": {\"type\":\"local\",\"command\":[\"npx\",\"--token\",\"FAKEvalue1\"],\"environment\":{\"A_KEY\":\"FAKEvalue2\"},},},\n}\n";
    let toml = "# c\n[mcp_servers.a]\ncommand = 'npx'\nargs = ['--token', 'FAKEvalue1', \"--api-key=FAKEvalue2\"] # d\n\n[mcp_servers.a.env]\nA_TOKEN = 'FAKEvalue3' # e\nB_TOKEN = \"\"\"FAKEvalue4\"\"\"\n\n[mcp_servers.b]\ncommand = \"x\"\nenv = { C_TOKEN = 'FAKEvalue5' }\nenv_x.y = 1\n";
    let yaml = "# c\nextensions:\n  a:\n    type: stdio\n    cmd: npx\n    args:\n      - --token\n      - FAKEvalue1 # d\n      - '--api-key=FAKEvalue2'\n    envs:\n      A_TOKEN: FAKEvalue3 # e\n      B_TOKEN: \"FAKEvalue4\\u0041\"\n";
    let headers = r#"{"mcpServers":{
  "a":{"type":"http","url":"https://mcp.example/mcp","headers":{"Authorization":"Bearer FAKE\u0076alue1", "X-Api-Key" : "FAKEvalue2","X-Team":"blue"}},
  "b":{"headers":{"authorization":"FAKEvalue3"},"url":"https://b.example/mcp"}
}}"#;
    let headers_in_toml = "[mcp_servers.a]\nurl = 'https://mcp.example/mcp' # c\nhttp_headers = { Authorization = 'Bearer FAKEvalue1', X-B = \"2\" }\n";
    let headers_in_yaml = "extensions:\n  a:\n    type: streamable_http\n    uri: https://mcp.example/mcp\n    headers: {X-Api-Key: FAKEvalue1, X-Team: \"a b\"}\n";
    for (place, text) in [
        ("home/.claude.json", headers),
        ("home/.codex/config.toml", headers_in_toml),
        ("home/.config/goose/config.yaml", headers_in_yaml),
        (CURSOR, json),
        ("home/.config/opencode/opencode.json", array),
        ("home/.codex/config.toml", toml),
        ("home/.config/goose/config.yaml", yaml),
    ] {
        for forget in [false, true] {
            let (home, _) = home();
            let path = home.write(place, text);
            let plan = home.clients.plan_protect(&home.env(), &home.choose(&[]), &home.shim()).unwrap();
            assert!(!plan.files[0].secrets.is_empty() && !plan.files[0].diff.contains("FAKE"), "{plan:?}");
            let applied = one(home.protect(&[])).unwrap();
            assert_eq!(applied.secrets_left, [], "{place}");
            assert_eq!(applied.secrets, plan.files[0].secrets);
            // The first of two names is nobody's value, and stays in the text.
            let expected = place == CURSOR;
            assert!(!leaks(home.scratch.path()), "{place}: {}", read(&path));
            assert_eq!(read(&path).contains("\\u0076"), expected);
            assert!(home.protect(&[]).is_empty(), "protecting twice is nothing");
            if forget {
                home.forget();
            }
            let plan = home.clients.plan_restore(&home.env(), &home.choose(&[]));
            assert!(!plan.files[0].diff.contains("FAKE"));
            let applied = one(home.restore(&[])).unwrap();
            assert_eq!((applied.original, applied.secrets_left.len()), (!forget, 0), "{place}");
            assert_eq!(read(&path), text, "{place}");
        }
    }
}

#[test]
fn what_cannot_move_stays_and_says_why() {
    let check = |place: &str, text: &str, why: &str| {
        let (home, _) = home();
        let path = home.write(place, text);
        let applied = one(home.protect(&[])).unwrap();
        let left: Vec<_> = applied.secrets_left.iter().map(|l| l.reason.as_str()).collect();
        assert!(left.len() == 1 && left[0].contains(why), "{left:?}");
        assert!(read(&path).contains("firedoor-shim"));
        one(home.restore(&[])).unwrap();
        assert_eq!(read(&path), text);
    };
    let cursor = |value: &str| format!(r#"{{"mcpServers":{{"a":{{"command":"x","env":{{"A_TOKEN":"{value}"}}}}}}}}"#);
    check(CURSOR, &cursor("FAKEvalue-${env:X}"), "fills in a part");
    check(CURSOR, &cursor(&"FAKEvalue".repeat(8000)), "too long");
    let yaml = "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    envs: &shared\n      A_TOKEN: FAKEvalue1\n";
    check("home/.config/goose/config.yaml", yaml, "other parts of the file");
    let lines =
        "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    envs:\n      A_TOKEN: FAKEvalue1\n        and more\n";
    check("home/.config/goose/config.yaml", lines, "on several lines");
}

#[test]
fn a_keychain_that_fails_leaves_secrets_where_they_are() {
    let (home, keychain) = home();
    let text = r#"{"mcpServers":{"a":{"command":"x","env":{"A_TOKEN":"FAKEvalue1"}}}}"#;
    let path = home.write(CURSOR, text);
    keychain.lock(true);
    let applied = one(home.protect(&[])).unwrap();
    assert!(applied.secrets_left[0].reason.contains("unlock it"), "{applied:?}");
    assert!(read(&path).contains("FAKEvalue1") && home.states()["a"] == "protected");
    assert!(home.protect(&[]).is_empty());
    // It moves later, and what was saved in clear meanwhile is sealed.
    keychain.lock(false);
    assert_eq!(one(home.protect(&[])).unwrap().secrets.len(), 1);
    assert!(!leaks(home.scratch.path()));
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), text);
}

#[test]
fn a_secret_that_is_gone_comes_back_from_the_sealed_original_or_is_named() {
    for forget in [false, true] {
        let (home, keychain) = home();
        let text = r#"{"mcpServers":{"a":{"command":"x","env":{"A_TOKEN":"FAKEvalue1","B_TOKEN":"FAKEvalue2"}}}}"#;
        let path = home.write(CURSOR, text);
        one(home.protect(&[])).unwrap();
        assert!(keychain.remove("cursor/user/a/A_TOKEN").unwrap());
        if forget {
            home.forget();
        }
        let applied = one(home.restore(&[])).unwrap();
        if forget {
            let left: Vec<_> = applied.secrets_left.iter().map(|l| l.name.as_str()).collect();
            assert_eq!(left, ["A_TOKEN"]);
            assert!(
                read(&path).contains("FAKEvalue2") && read(&path).contains("firedoor-secret:cursor/user/a/A_TOKEN")
            );
            assert!(matches!(home.entries()[0].state, State::Misrouted { .. }));
        } else {
            assert_eq!(applied.secrets_left, []);
            assert_eq!(read(&path), text);
        }
    }
}

#[test]
fn a_new_value_written_over_a_reference_moves_too() {
    let (home, keychain) = home();
    let text = r#"{"mcpServers":{"a":{"command":"x","env":{"A_TOKEN":"FAKEvalue1"}}}}"#;
    let path = home.write(CURSOR, text);
    one(home.protect(&[])).unwrap();
    let now = read(&path);
    fs::write(&path, now.replace("firedoor-secret:cursor/user/a/A_TOKEN", "FAKEvalue2")).unwrap();
    one(home.protect(&[])).unwrap();
    assert_eq!(read(&path), now);
    assert_eq!(keychain.get("cursor/user/a/A_TOKEN").unwrap().as_deref(), Some(b"FAKEvalue2".as_slice()));
    assert!(!leaks(home.scratch.path()));
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), text.replace("FAKEvalue1", "FAKEvalue2"));
}

#[test]
fn headers_move_out_of_entries_that_were_protected_before_and_of_copies() {
    let (mut home, keychain) = home();
    let text = r#"{"mcpServers":{"a":{"url":"https://x/mcp","headers":{"Authorization":"Bearer FAKEvalue1"}}}}"#;
    let path = home.write(CURSOR, text);
    home.keychain = None;
    let applied = one(home.protect(&[])).unwrap();
    assert_eq!(applied.secrets_left[0].name, "Authorization");
    home.keychain = Some(keychain.clone());
    let applied = one(home.protect(&[])).unwrap();
    assert_eq!(applied.secrets[0].to_string(), "firedoor-secret:cursor/user/a/Authorization");
    assert_eq!(home.entries()[0].secrets, applied.secrets);
    assert!(!leaks(home.scratch.path()), "{}", read(&path));
    // Taken out by hand, with its reference: that is said, and both ways lead on.
    let by_hand = text.replace("Bearer FAKEvalue1", "firedoor-secret:cursor/user/a/Authorization");
    fs::write(&path, &by_hand).unwrap();
    assert!(home.states()["a"].contains("its secrets are in the keychain"), "{:?}", home.states());
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["a"], "protected");
    fs::write(&path, &by_hand).unwrap();
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), text);
    // A copy gets a secret of its own.
    let entry = r#"{"url":"https://x/mcp","headers":{"Authorization":"firedoor-secret:cursor/user/a/Authorization"}}"#;
    let both = format!(r#"{{"mcpServers":{{"a":{entry},"b":{entry}}}}}"#);
    fs::write(&path, both).unwrap();
    one(home.protect(&[])).unwrap();
    assert!(keychain.get("cursor/user/b/Authorization").unwrap().is_some());
}

#[test]
fn an_entry_whose_address_was_put_back_gets_one_of_firedoors_again() {
    const ADDRESS: &str = "http://127.0.0.1:20417/5qv3abc";
    let (home, keychain) = home();
    let text = r#"{"mcpServers":{"a":{"url":"https://x/mcp","headers":{"Authorization":"Bearer FAKEvalue1"}},"b":{"command":"x"}}}"#;
    let path = home.write(CURSOR, text);
    one(home.protect_at(&["cursor/user/a"], ADDRESS)).unwrap();
    let at = format!("{ADDRESS}#firedoor:cursor/user/a=");
    let by_hand = read(&path).replace(&at, "");
    assert_eq!(by_hand, text.replace("Bearer FAKEvalue1", "firedoor-secret:cursor/user/a/Authorization"));
    fs::write(&path, &by_hand).unwrap();
    assert!(home.states()["a"].contains("its secrets are in the keychain"), "{:?}", home.states());
    one(home.protect_at(&["cursor/user/a"], ADDRESS)).unwrap();
    assert_eq!(read(&path), by_hand.replace("https://x", &format!("{at}https://x")));
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), text);
    // Also where the keychain has lost it.
    fs::write(&path, &by_hand).unwrap();
    assert!(keychain.remove("cursor/user/a/Authorization").unwrap());
    one(home.protect_at(&["cursor/user/a"], ADDRESS)).unwrap();
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), by_hand);
}
