//! Protecting and restoring give back every byte, with and without the journal.

use crate::home::{Home, one, read};
use std::fs;

const CLAUDE_USER: &str = "home/.claude.json";
const CURSOR_USER: &str = "home/.cursor/mcp.json";
const DESKTOP: &str = "home/.config/Claude/claude_desktop_config.json";
const VSCODE: &str = "home/.config/Code/User/mcp.json";
const GEMINI: &str = "home/.gemini/settings.json";
const CONTINUE: &str = "home/.continue/config.yaml";
const CODEX: &str = "home/.codex/config.toml";

pub fn samples() -> Vec<(&'static str, &'static str, &'static [u8])> {
    macro_rules! sample {
        ($place:expr, $name:literal) => {
            ($place, $name, include_bytes!(concat!("samples/", $name)).as_slice())
        };
    }
    let mut all = vec![
        sample!(CLAUDE_USER, "claude-user.json"),
        sample!("work/.mcp.json", "claude-project.json"),
        sample!(CURSOR_USER, "cursor.json"),
        sample!(DESKTOP, "claude-desktop.json"),
        sample!(VSCODE, "vscode.json"),
        sample!("home/.config/Code/User/profiles/-1f/mcp.json", "vscode.json"),
        sample!("work/.vscode/mcp.json", "vscode.json"),
        sample!("home/.config/Code/User/settings.json", "vscode-settings.json"),
        sample!("work/team.code-workspace", "vscode-workspace.json"),
        sample!(GEMINI, "gemini.json"),
        sample!("work/.gemini/settings.json", "gemini.json"),
        sample!(CODEX, "codex.toml"),
        sample!(CODEX, "codex-dotted.toml"),
        sample!("home/.codex/other.config.toml", "codex-inline.toml"),
        sample!("work/.codex/config.toml", "codex-inline.toml"),
    ];
    for place in [CLAUDE_USER, CURSOR_USER, DESKTOP] {
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
    for (place, before, after) in [
        (
            DESKTOP,
            r#"{"mcpServers":{"srv":{"command":"cmd","args":["/c","npx","-y","srv","C:\\u\u00e9"]}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","claude-desktop/user/srv","--","cmd","/c","npx","-y","srv","C:\\u\u00e9"]}}}"#,
        ),
        (
            // A bare "--" would be lost (0.15.0).
            "home/.mcp-inspector/mcp.json",
            r#"{"mcpServers":{"srv":{"command":"npx","args":["-y","srv"]}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","mcp-inspector/user/srv","--program","npx","-y","srv"]}}}"#,
        ),
        (
            CURSOR_USER,
            r#"{"mcpServers":{"srv":{"command":"npx","args":["-y","srv"],"env":{"A":"1"},"x":1e400}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","cursor/user/srv","--","npx","-y","srv"],"env":{"A":"1"},"x":1e400}}}"#,
        ),
        (
            CURSOR_USER,
            r#"{"mcpServers":{"srv":{"command":"npx","args":[ ]}}}"#,
            r#"{"mcpServers":{"srv":{"command":"SHIM","args":["--entry","cursor/user/srv","--","npx" ]}}}"#,
        ),
        (
            CURSOR_USER,
            "{\"mcpServers\":{\"a b\":{\n\t\"command\" : \"\\u006epx\" // c\n}}}",
            "{\"mcpServers\":{\"a b\":{\n\t\"command\" : \"SHIM\",\n\t\"args\" : [\"--entry\",\"cursor/user/a%20b\",\"--no-args\",\"--\",\"\\u006epx\"] // c\n}}}",
        ),
        (
            VSCODE,
            r#"{"servers":{"s":{"command":"npx","args":["${input:k}"]}},"inputs":[{"id":"k"}],}"#,
            r#"{"servers":{"s":{"command":"SHIM","args":["--entry","vscode/user/s","--","npx","${input:k}"]}},"inputs":[{"id":"k"}],}"#,
        ),
        (
            CODEX,
            "[mcp_servers.s]\r\n  command = 'x' # c\r\n",
            "[mcp_servers.s]\r\n  command = \"SHIM\"\r\n  args = [\"--entry\",\"codex/user/s\",\"--no-args\",\"--\",'x'] # c\r\n",
        ),
        (
            CODEX,
            "mcp_servers.\"a b\".command=\"x\"",
            "mcp_servers.\"a b\".command=\"SHIM\"\nmcp_servers.\"a b\".args=[\"--entry\",\"codex/user/a%20b\",\"--no-args\",\"--\",\"x\"]",
        ),
        (
            CODEX,
            "mcp_servers = { s = { command = \"x\" } }",
            "mcp_servers = { s = { command = \"SHIM\", args = [\"--entry\",\"codex/user/s\",\"--no-args\",\"--\",\"x\"] } }",
        ),
        (
            CODEX,
            "[mcp_servers.s]\ncommand = \"\"\"x\"\"\"\nargs = [ # none\n]",
            "[mcp_servers.s]\ncommand = \"SHIM\"\nargs = [\"--entry\",\"codex/user/s\",\"--\",\"\"\"x\"\"\" # none\n]",
        ),
        (
            CONTINUE,
            "mcpServers:\r\n- command: npx # c\r\n  name: s\r\n",
            "mcpServers:\r\n- command: \"SHIM\"\r\n  args: [\"--entry\",\"continue/user/s\",\"--no-args\",\"--\",npx] # c\r\n  name: s\r\n",
        ),
        (
            CONTINUE,
            "mcpServers:\n  - name: s\n    command: 'npx'\n    args: # c\n    -   -y\n",
            "mcpServers:\n  - name: s\n    command: \"SHIM\"\n    args: # c\n    - \"--entry\"\n    - \"continue/user/s\"\n    - \"--\"\n    - 'npx'\n    -   -y\n",
        ),
        (
            CONTINUE,
            "mcpServers: [{name: s, command: npx}]",
            "mcpServers: [{name: s, command: \"SHIM\", args: [\"--entry\",\"continue/user/s\",\"--no-args\",\"--\",npx]}]",
        ),
    ] {
        let home = Home::new();
        let path = home.write(place, before);
        one(home.protect(&[])).unwrap();
        assert_eq!(read(&path).replace(home.shim().to_str().unwrap(), "SHIM"), after);
    }
}

#[test]
fn the_other_samples_are_protected_where_they_can_be() {
    for (place, sample, want) in [
        (DESKTOP, include_bytes!("samples/claude-desktop.json").as_slice(), "bare files"),
        (VSCODE, include_bytes!("samples/vscode.json"), "full plain remote"),
        ("home/.config/Code/User/settings.json", include_bytes!("samples/vscode-settings.json"), "flat nested"),
        (GEMINI, include_bytes!("samples/gemini.json"), "gh http off sse"),
        (CODEX, include_bytes!("samples/codex.toml"), "docs my server.x"),
        (CODEX, include_bytes!("samples/codex-dotted.toml"), "a b c d e"),
        (CODEX, include_bytes!("samples/codex-inline.toml"), " a b c"),
    ] {
        let home = Home::new();
        home.write(place, sample);
        one(home.protect(&[])).unwrap();
        let protected = |(name, state): (String, String)| (state == "protected").then_some(name);
        let names: Vec<String> = home.states().into_iter().filter_map(protected).collect();
        assert_eq!(names.join(" "), want, "{place}");
    }
}

#[test]
fn toml_that_somebody_edited_is_still_restored() {
    let home = Home::new();
    let shim = home.shim();
    let shim = shim.to_str().unwrap();
    let args = r#"args = ["--entry","codex/user/a","--no-args","--","x"]"#;
    let head = "[mcp_servers.a]\n";
    for (entry, want) in [
        (format!("{args}\ncommand = \"{shim}\"\n"), "command = \"x\"\n"),
        (format!("command = \"{shim}\" # c\n{args}\nenabled = true"), "command = \"x\" # c\nenabled = true"),
        (format!("command = \"{shim}\"\n\n  {args} # d\n"), "command = \"x\"\n\n # d\n"),
        (format!("command = \"{shim}\"\nenv.A = \"1\"\n{args}"), "command = \"x\"\nenv.A = \"1\"\n"),
        (
            format!(
                "command = \"{shim}\"\nargs = [\n  # why\n  \"--entry\",\n  \"codex/user/a\",\n  \"--\", # ,\n  \
                 \"x\", # y\n  \"1\",\n]"
            ),
            "command = \"x\"\nargs = [\n  # why\n   # y\n  \"1\",\n]",
        ),
    ] {
        let path = home.write(CODEX, format!("{head}{entry}"));
        one(home.restore(&[])).unwrap();
        assert_eq!(read(&path), format!("{head}{want}"));
    }
    let path = home.write(CODEX, format!("mcp_servers.a = {{ {args}, command = \"{shim}\" }}"));
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), "mcp_servers.a = { command = \"x\" }");
}

#[test]
fn yaml_that_somebody_edited_is_still_restored() {
    let home = Home::new();
    let shim = home.shim();
    let shim = shim.to_str().unwrap();
    let ours = "--entry, continue/user/a";
    for (entry, want) in [
        // As a serialiser writes it, in the order of the alphabet.
        (
            format!(
                "- args:\n  - --entry\n  - continue/user/a\n  - --no-args\n  - --\n  - x\n  command: {shim}\n  name: a\n"
            ),
            "- command: x\n  name: a\n",
        ),
        (
            format!(
                "- name: a\n  args:\n  - --entry\n  - continue/user/a\n  - --\n  - x\n  - -y # c\n  command: {shim}\n"
            ),
            "- name: a\n  args:\n  - -y # c\n  command: x\n",
        ),
        (
            format!("- name: a\n  args:\n  - --entry\n  - continue/user/a\n  - --\n  - x\n  command: {shim} # d\n"),
            "- name: a\n  args: []\n  command: x # d\n",
        ),
        (format!("- {{args: [{ours}, --no-args, --, x], command: '{shim}', name: a}}\n"), "- {command: x, name: a}\n"),
        (
            format!("- name: a\n  command: '{shim}'\n  args: [{ours}, --, x, -y]\n"),
            "- name: a\n  command: x\n  args: [ -y]\n",
        ),
    ] {
        let path = home.write(CONTINUE, format!("mcpServers:\n{entry}"));
        one(home.restore(&[])).unwrap();
        assert_eq!(read(&path), format!("mcpServers:\n{want}"));
    }
}

#[test]
fn another_clients_servers_in_the_same_file_stay_protected() {
    let home = Home::new();
    let path = home.write(
        "home/.config/Code/User/settings.json",
        r#"{"mcp":{"servers":{"a":{"command":"x"}}},"amp.mcpServers":{"b":{"command":"y"}},"cody.mcpServers":{"c":{"command":"z"}}}"#,
    );
    home.protect(&[]);
    assert_eq!(home.states().values().filter(|s| *s == "protected").count(), 3, "{}", read(&path));
    one(home.restore(&["cody"])).unwrap();
    let states = home.states();
    assert_eq!(
        (states["a"].as_str(), states["b"].as_str(), states["c"].as_str()),
        ("protected", "protected", "unprotected")
    );
    home.restore(&[]);
    assert!(!read(&path).contains("firedoor"));
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
        let value = serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}'));
        if value.is_err() {
            continue; // comments, a lone surrogate, or TOML
        }
        let home = Home::new();
        let path = home.write(place, bytes);
        one(home.protect(&[])).unwrap();
        fs::write(&path, reserialise(&read(&path))).unwrap();
        assert!(!one(home.restore(&[])).unwrap().original);
        // Keys that were others meanwhile stand where the client sorted those.
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&read(&path)), value(text.trim_start_matches('\u{feff}')), "{name}");
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
    one(home.restore(&["claude-code/a"])).unwrap();
    assert_eq!(home.states()["a"], "unprotected");
    assert_eq!(home.states()["b"], "protected");
    // Our own edits in a row: still the original as a whole.
    assert!(one(home.restore(&[])).unwrap().original);
    assert_eq!(read(&path), before);
}

#[test]
fn a_shim_that_is_not_as_we_write_it_is_not_put_behind_itself() {
    for args in ["", r#","args":[]"#, r#","args":["--entry"]"#, r#","args":["--entry","a/b/c","x"]"#] {
        let home = Home::new();
        let text = format!(r#"{{"mcpServers":{{"a":{{"command":"{}"{args}}}}}}}"#, home.shim().display());
        let path = home.write(CLAUDE_USER, &text);
        assert!(
            home.states()["a"].contains("it starts firedoor-shim, but not as Firedoor writes it"),
            "{:?}",
            home.states()
        );
        assert!(home.protect(&[]).is_empty());
        assert_eq!(read(&path), text);
    }
}

#[test]
fn a_program_that_only_has_the_shims_name_is_a_server() {
    let home = Home::new();
    let by_hand = format!(
        r#""h":{{"command":"{}","args":["--entry","claude-code/user/h","--url","https://x/mcp"]}}"#,
        home.shim().display()
    );
    let text = format!(r#"{{"mcpServers":{{"a":{{"command":"/opt/tools/firedoor-shim"}},{by_hand}}}}}"#);
    let path = home.write(CLAUDE_USER, &text);
    assert_eq!((&*home.states()["a"], &*home.states()["h"]), ("unprotected", "protected"));
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["a"], "protected");
    one(home.restore(&["claude-code/a"])).unwrap();
    assert_eq!(read(&path), text);
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
