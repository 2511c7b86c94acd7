//! Protecting and restoring give back every byte, with and without the journal.

use crate::home::{Home, one, read};
use std::fs;

const CLAUDE_USER: &str = "home/.claude.json";
const CURSOR_USER: &str = "home/.cursor/mcp.json";

fn samples() -> Vec<(&'static str, &'static str, &'static [u8])> {
    macro_rules! sample {
        ($place:expr, $name:literal) => {
            ($place, $name, include_bytes!(concat!("samples/", $name)).as_slice())
        };
    }
    let mut all = vec![
        sample!(CLAUDE_USER, "claude-user.json"),
        sample!("work/.mcp.json", "claude-project.json"),
        sample!(CURSOR_USER, "cursor.json"),
    ];
    for place in [CLAUDE_USER, CURSOR_USER] {
        all.extend([
            sample!(place, "edge-twice-map.json"),
            sample!(place, "edge-twice-name.json"),
            sample!(place, "edge-escapes.json"),
            sample!(place, "edge-shapes.json"),
            sample!(place, "edge-blanks.json"),
            sample!(place, "edge-bom-crlf.json"),
        ]);
    }
    all
}

#[test]
fn every_sample_comes_back_byte_for_byte() {
    for (place, name, bytes) in samples() {
        for forget in [false, true] {
            let home = Home::new();
            let path = home.write(place, bytes);
            one(home.protect(&[])).unwrap_or_else(|e| panic!("{name}: {e}"));
            let protected = fs::read(&path).unwrap();
            assert_ne!(protected, bytes, "{name}");
            assert!(home.protect(&[]).is_empty(), "{name}: protecting twice is nothing");
            assert_eq!(fs::read(&path).unwrap(), protected, "{name}");
            if forget {
                home.forget();
            }
            let applied = one(home.restore(&[])).unwrap();
            assert_eq!(applied.original, !forget, "{name}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "{name}, journal gone: {forget}");
            assert!(home.restore(&[]).is_empty(), "{name}: restoring twice is nothing");
        }
    }
}

#[test]
fn the_edit_is_small() {
    for (before, after) in [
        (
            r#"{"mcpServers":{"srv":{"command":"npx","args":["-y","srv"],"env":{"A":"1"},"x":1e400}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","cursor/user/srv","--","npx","-y","srv"],"env":{"A":"1"},"x":1e400}}}"#,
        ),
        (
            r#"{"mcpServers":{"srv":{"command":"npx","args":[ ]}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","cursor/user/srv","--","npx" ]}}}"#,
        ),
        (
            "{\"mcpServers\":{\"a b\":{\n\t\"command\" : \"\\u006epx\" // c\n}}}",
            "{\"mcpServers\":{\"a b\":{\n\t\"command\" : \"SHIM\",\n\t\"args\" : [\"--entry\",\"cursor/user/a%20b\",\"--no-args\",\"--\",\"\\u006epx\"] // c\n}}}",
        ),
    ] {
        let home = Home::new();
        let path = home.write(CURSOR_USER, before);
        one(home.protect(&[])).unwrap();
        assert_eq!(read(&path).replace(home.shim().to_str().unwrap(), "SHIM"), after);
    }
}

/// What clients do when they save: everything parsed and written again, two spaces, no byte order mark.
fn reserialise(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn a_client_that_writes_its_file_anew_does_not_hinder() {
    for (place, name, bytes) in samples() {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        if text.contains("\\ud83d\",") || text.contains("//") && place == CURSOR_USER {
            continue; // not for serde_json
        }
        let home = Home::new();
        let path = home.write(place, bytes);
        one(home.protect(&[])).unwrap();
        fs::write(&path, reserialise(&read(&path))).unwrap();
        assert!(!one(home.restore(&[])).unwrap().original);
        assert_eq!(read(&path), reserialise(&text), "{name}");
    }
}

#[test]
fn other_edits_survive_a_restore() {
    let home = Home::new();
    let path = home.write(CURSOR_USER, include_bytes!("samples/cursor.json"));
    one(home.protect(&[])).unwrap();
    let edited = read(&path)
        .replace("// the ref", "// the reference")
        .replace("https://mcp.example/mcp", "https://other.example/mcp")
        .replace("\"srv\", ]", "\"srv\", \"--more\" ]");
    fs::write(&path, &edited).unwrap();
    one(home.restore(&["cursor/commented"])).unwrap();
    assert_eq!(home.states()["plain"], "protected");
    one(home.restore(&[])).unwrap();
    let want = include_str!("samples/cursor.json")
        .replace("// the ref", "// the reference")
        .replace("https://mcp.example/mcp", "https://other.example/mcp")
        .replace("\"srv\", ]", "\"srv\", \"--more\" ]");
    assert_eq!(read(&path), want);
}

#[test]
fn restoring_one_of_two_leaves_the_other() {
    let home = Home::new();
    let before = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y","args":["1"]}}}"#;
    let path = home.write(CLAUDE_USER, before);
    one(home.protect(&["claude-code/a"])).unwrap();
    one(home.protect(&["claude-code"])).unwrap();
    let id = "claude-code/user/a".parse().unwrap();
    home.clients.rollback_entry(&home.env(), &id).unwrap();
    assert_eq!(home.states()["a"], "unprotected");
    assert_eq!(home.states()["b"], "protected");
    // Our own edits in a row: still the original as a whole.
    assert!(one(home.restore(&[])).unwrap().original);
    assert_eq!(read(&path), before);
}

#[test]
fn a_moved_shim_and_a_renamed_server_are_repaired() {
    let home = Home::new();
    let before = r#"{"mcpServers":{"a":{"command":"x","args":["1"]}}}"#;
    let path = home.write(CLAUDE_USER, before);
    one(home.protect(&[])).unwrap();
    let moved = read(&path).replace("/bin/firedoor-shim", "/old/firedoor-shim").replace("\"a\":", "\"b\":");
    fs::write(&path, moved).unwrap();
    assert!(home.states()["b"].starts_with("misrouted: it runs in the name of claude-code/user/a"));
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["b"], "protected");
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), before.replace("\"a\":", "\"b\":"));
}

#[test]
fn args_added_to_an_entry_that_had_none_are_kept() {
    let home = Home::new();
    let path = home.write(CURSOR_USER, r#"{"mcpServers":{"a":{"command":"x"}}}"#);
    one(home.protect(&[])).unwrap();
    fs::write(&path, read(&path).replace("\"x\"]", "\"x\",\"--new\"]")).unwrap();
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), r#"{"mcpServers":{"a":{"command":"x","args":["--new"]}}}"#);
}

#[test]
fn args_moved_by_somebody_are_still_found() {
    let home = Home::new();
    let shim = home.shim();
    let shim = shim.to_str().unwrap();
    let args = r#""args":["--entry","cursor/user/a","--no-args","--","x"]"#;
    for (entry, want) in [
        (format!(r#"{{{args},"command":"{shim}"}}"#), r#"{"command":"x"}"#),
        (format!(r#"{{{args}/*,*/,"command":"{shim}"}}"#), r#"{"command":"x"}"#),
        (format!(r#"{{"command":"{shim}","env":{{}} /* , */ , {args}}}"#), r#"{"command":"x","env":{} /* , */  }"#),
        (format!("{{\"command\":\"{shim}\",\"env\":{{}},\n{args},}}"), "{\"command\":\"x\",\"env\":{},}"),
    ] {
        let path = home.write(CURSOR_USER, format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        one(home.restore(&[])).unwrap();
        assert_eq!(read(&path), format!(r#"{{"mcpServers":{{"a":{want}}}}}"#));
    }
}
