//! What clients have written anew comes back by the script (`installers/restore.sh`) as Firedoor itself would give it back, with every
//! awk that is there.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use firedoor_model::Digest;

use crate::home::{Home, one, read};

const CURSOR: &str = "home/.cursor/mcp.json";
const CODEX: &str = "home/.codex/config.toml";
const CONTINUE: &str = "home/.continue/config.yaml";
const GOOSE: &str = "home/.config/goose/config.yaml";

/// The script under each awk of the system.
fn scripts(home: &Home) -> Vec<Command> {
    let path = std::env::var("PATH").unwrap();
    let found = |program: &str| path.split(':').map(|dir| Path::new(dir).join(program)).find(|file| file.exists());
    let with = |(program, awk): (&str, PathBuf)| {
        let dir = home.at(&format!("awk-{program}"));
        fs::create_dir_all(&dir).unwrap();
        let _there_already = symlink(awk, dir.join("awk"));
        let mut script = home.script();
        script.env("PATH", format!("{}:{path}", dir.display()));
        script
    };
    ["awk", "mawk", "gawk", "busybox"]
        .into_iter()
        .filter_map(|program| Some((program, found(program)?)))
        .map(with)
        .collect()
}

fn shown(done: &Output) -> String {
    String::from_utf8_lossy(&[done.stdout.as_slice(), &done.stderr].concat()).into_owned()
}

/// Protected, written anew as its client does, and given back: by the script as by Firedoor.
fn check(place: &str, before: &str, anew: &str, want: &str) {
    let home = Home::new();
    let path = home.write(place, before);
    one(home.protect(&[])).unwrap();
    home.forget();
    let anew = anew.replace("SHIM", home.shim().to_str().unwrap());
    fs::write(&path, &anew).unwrap();
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), want, "by Firedoor: {anew}");
    for mut script in scripts(&home) {
        fs::write(&path, &anew).unwrap();
        let done = script.arg(&path).output().unwrap();
        assert!(done.status.success(), "{script:?} {anew}: {}", shown(&done));
        assert_eq!(read(&path), want, "{script:?} {anew}: {}", shown(&done));
    }
}

#[test]
fn yaml_in_block_style() {
    const NONE: &str = "extensions:\n  a:\n    cmd: x\n    args: []\n    enabled: true\n";
    const BARE: &str = "extensions:\n  a:\n    cmd: x\n    enabled: true\n";
    const LIST: &str = "mcpServers:\n- name: a\n  command: x\n";
    for (place, before, anew, want) in [
        (
            GOOSE,
            NONE,
            "extensions:\n  a:\n    cmd: SHIM\n    args:\n    - --entry\n    - goose/user/a\n    - --\n    - x\n    enabled: true\n",
            NONE,
        ),
        (
            GOOSE,
            NONE,
            "extensions:\n  a:\n    args:\n      - \"--entry\"\n      - goose/user/a\n      - --\n      - 'x y' # c\n    cmd: SHIM\n    enabled: true\n",
            "extensions:\n  a:\n    args: [] # c\n    cmd: 'x y'\n    enabled: true\n",
        ),
        (
            GOOSE,
            NONE,
            "extensions:\n  a:\n    cmd: SHIM\n    args:\n    - --entry\n    - goose/user/a\n    - --\n    - x\n    - |\n      - --entry\n    enabled: true\n",
            "extensions:\n  a:\n    cmd: x\n    args:\n    - |\n      - --entry\n    enabled: true\n",
        ),
        (
            GOOSE,
            BARE,
            "extensions:\n  a:\n    cmd: SHIM\n    args:\n    - --entry\n    - goose/user/a\n    - --no-args\n    - --\n    - x\n    enabled: true\n",
            BARE,
        ),
        (
            GOOSE,
            BARE,
            "extensions:\n  a:\n    args:\n    - --entry\n    - goose/user/a\n    - --no-args\n    - --\n    - x\n    cmd: SHIM\n    enabled: true\n",
            BARE,
        ),
        (
            CONTINUE,
            LIST,
            "mcpServers:\n- args:\n  - --entry\n  - continue/user/a\n  - --no-args\n  - --\n  - x\n  command: SHIM\n  name: a\n",
            "mcpServers:\n- command: x\n  name: a\n",
        ),
        (
            CONTINUE,
            LIST,
            "mcpServers:\r\n  - name: a\r\n    command: SHIM\r\n    args:\r\n      - --entry\r\n      - continue/user/a\r\n      - --no-args\r\n      - --\r\n      - x\r\n",
            "mcpServers:\r\n  - name: a\r\n    command: x\r\n",
        ),
    ] {
        check(place, before, anew, want);
    }
}

#[test]
fn keys_that_were_sorted() {
    const JSON: &str = r#"{"mcpServers":{"a":{"command":"x"}}}"#;
    const TOML: &str = "[mcp_servers.a]\ncommand = 'x'\n";
    const YAML: &str = "mcpServers:\n- name: a\n  command: x\n";
    for (place, before, anew, want) in [
        (
            CURSOR,
            JSON,
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"args\": [\n        \"--entry\",\n        \"cursor/user/a\",\n        \"--no-args\",\n        \"--\",\n        \"x\"\n      ],\n      \"command\": \"SHIM\"\n    }\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
        ),
        (
            CURSOR,
            JSON,
            "{\"mcpServers\":{\"a\":{\"args\":[\"--entry\",\"cursor/user/a\",\"--no-args\",\"--\",\"x\"],/* c */\"command\":\"SHIM\"}}}",
            "{\"mcpServers\":{\"a\":{/* c */\"command\":\"x\"}}}",
        ),
        (
            CURSOR,
            JSON,
            "{\"mcpServers\":{\"a\":{\"command\":\"SHIM\", // c, d\n\"env\":{}, // e\n\"args\":[\"--entry\",\"cursor/user/a\",\"--no-args\",\"--\",\"x\"]}}}",
            "{\"mcpServers\":{\"a\":{\"command\":\"x\", // c, d\n\"env\":{} // e\n}}}",
        ),
        (
            CODEX,
            TOML,
            "[mcp_servers.a]\nargs = [\n    \"--entry\",\n    \"codex/user/a\",\n    \"--no-args\",\n    \"--\",\n    \"x\",\n]\ncommand = \"SHIM\"\n",
            "[mcp_servers.a]\ncommand = \"x\"\n",
        ),
        (
            CODEX,
            TOML,
            "[mcp_servers]\na = {args = [\"--entry\", \"codex/user/a\", \"--no-args\", \"--\", \"x\"], command = \"SHIM\"}\n",
            "[mcp_servers]\na = {command = \"x\"}\n",
        ),
        (
            CONTINUE,
            YAML,
            "mcpServers:\n- {args: [--entry, continue/user/a, --no-args, --, x], command: SHIM, name: a}\n",
            "mcpServers:\n- {command: x, name: a}\n",
        ),
        (
            CONTINUE,
            YAML,
            "mcpServers:\n- args: [--entry, continue/user/a, --no-args, --,\n      my prog]\n  command: SHIM\n  name: a\n",
            "mcpServers:\n- command: my prog\n  name: a\n",
        ),
    ] {
        check(place, before, anew, want);
    }
}

#[test]
fn remote_entries() {
    const YAML: &str = "extensions:\n  a:\n    uri: https://x/mcp\n    type: sse\n    headers: {X-A: '1'}\n";
    const TOML: &str = "[mcp_servers.a]\nurl = 'https://x/mcp'\nhttp_headers = { X-A = '1' }\n";
    const JSON: &str = r#"{"mcpServers":{"a":{"url":"https://x/mcp","headers":{"X-A":"1"}}}}"#;
    for (place, before, anew, want) in [
        (
            GOOSE,
            YAML,
            "extensions:\n  a:\n    cmd: SHIM\n    args:\n    - --entry\n    - goose/user/a\n    - --url\n    - https://x/mcp\n    - --transport\n    - sse\n    - --header\n    - X-A=env:FIREDOOR_HEADER_1\n    - --was\n    - uri,headers\n    - --type\n    - sse\n    type: stdio\n    envs:\n      FIREDOOR_HEADER_1: '1'\n",
            "extensions:\n  a:\n    uri: https://x/mcp\n    type: sse\n    headers:\n      X-A: '1'\n",
        ),
        (
            GOOSE,
            YAML,
            "extensions:\n  a:\n    args: [--entry, goose/user/a, --url, 'https://x/mcp', --was, 'uri,headers', --type,\n      sse, --header, 'X-A=env:FIREDOOR_HEADER_1']\n    cmd: SHIM\n    envs: {FIREDOOR_HEADER_1: '1'}\n    type: stdio\n",
            "extensions:\n  a:\n    uri: 'https://x/mcp'\n    headers: {X-A: '1'}\n    type: sse\n",
        ),
        (
            CODEX,
            TOML,
            "[mcp_servers.a]\nargs = [\n    \"--entry\",\n    \"codex/user/a\",\n    \"--url\",\n    \"https://x/mcp\",\n    \"--header\",\n    \"X-A=env:FIREDOOR_HEADER_1\",\n    \"--was\",\n    \"url,http_headers\",\n]\ncommand = \"SHIM\"\n\n[mcp_servers.a.env]\nFIREDOOR_HEADER_1 = \"1\"\n",
            "[mcp_servers.a]\nurl = \"https://x/mcp\"\n\n[mcp_servers.a.http_headers]\nX-A = \"1\"\n",
        ),
        (
            CODEX,
            TOML,
            "[mcp_servers.a.env]\nFIREDOOR_HEADER_1 = '1'\n[mcp_servers.a]\ncommand = 'SHIM'\nenabled = true\nargs = ['--entry','codex/user/a','--url','https://x/mcp','--header','X-A=env:FIREDOOR_HEADER_1','--was','url,http_headers']\n",
            "[mcp_servers.a.http_headers]\nX-A = '1'\n[mcp_servers.a]\nurl = 'https://x/mcp'\nenabled = true\n",
        ),
        (
            CURSOR,
            JSON,
            "{\"mcpServers\":{\"a\":{\"env\":{\"FIREDOOR_HEADER_1\":\"1\"},\"args\":[\"--entry\",\"cursor/user/a\",\"--url\",\"https://x/mcp\",\"--header\",\"X-A=env:FIREDOOR_HEADER_1\",\"--was\",\"url,headers\"],\n\"command\":\"SHIM\"}}}",
            "{\"mcpServers\":{\"a\":{\"headers\":{\"X-A\":\"1\"},\n\"url\":\"https://x/mcp\"}}}",
        ),
    ] {
        check(place, before, anew, want);
    }
}

/// An entry that somebody has taken apart half, or given something of their own, is left and named; the others come back.
#[test]
fn an_entry_of_another_form_does_not_hold_up_the_others() {
    const JSON: &str = r#"{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"command":"y","args":["2"]},"far":{"url":"https://x/mcp","headers":{"X-A":"1"}}}}"#;
    const YAML: &str = "extensions:\n  a:\n    cmd: x\n    args: ['1']\n  b:\n    cmd: y\n    args: ['2']\n";
    const TOML: &str = "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.b]\ncommand = 'y'\nargs = ['2']\n";
    for (place, before, change, to, id, why) in [
        (CURSOR, JSON, r#""cursor/user/b","--","#, r#""cursor/user/b","#, "cursor/user/b", "not as Firedoor writes it"),
        (CURSOR, JSON, r#""--","y","2""#, r#""--""#, "cursor/user/b", "its command is gone"),
        (
            CURSOR,
            JSON,
            r#""FIREDOOR_HEADER_1":"#,
            r#""OWN":"","FIREDOOR_HEADER_1":"#,
            "cursor/user/far",
            "the variable OWN was added",
        ),
        (
            CURSOR,
            JSON,
            r#""env":{"FIREDOOR_HEADER_1":"1"}"#,
            r#""env":null"#,
            "cursor/user/far",
            "its headers are gone",
        ),
        (
            CURSOR,
            JSON,
            r#""--url","https://x/mcp","#,
            r#""--url","https://x/mcp","--more","1","#,
            "cursor/user/far",
            "not as Firedoor writes it",
        ),
        (GOOSE, YAML, r#"["--entry","goose/user/b","--",y,'2']"#, "[]", "b", "has no arguments of it"),
        (
            CODEX,
            TOML,
            "\"SHIM\"\nargs = [\"--entry\",\"codex/user/b\"",
            "'own'\nargs = [\"--entry\",\"codex/user/b\"",
            "codex/user/b",
            "does not start it",
        ),
    ] {
        let home = Home::new();
        let path = home.write(place, before);
        one(home.protect(&[])).unwrap();
        home.forget();
        let anew = read(&path).replace(home.shim().to_str().unwrap(), "SHIM");
        assert!(anew.contains(change), "{anew}");
        let anew = anew.replace(change, to).replace("SHIM", home.shim().to_str().unwrap());
        for mut script in scripts(&home) {
            fs::write(&path, &anew).unwrap();
            let done = script.arg(&path).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{script:?} {said}");
            for word in
                [format!("  {id} (line "), why.to_owned(), "write it yourself".into(), "left as they are".into()]
            {
                assert!(said.contains(&word), "{word}: {script:?} {said}");
            }
            let left = read(&path);
            let others = left.matches("--entry").count() + left.matches("/firedoor-shim").count();
            assert!(left != anew && (1..=2).contains(&others), "{script:?} {left}");
        }
    }
}

/// What a configuration says is shown without what steers a terminal.
#[test]
fn nothing_steers_the_terminal() {
    let home = Home::new();
    let text = "{\"mcpServers\":{\r\n// \u{1b}[2J\u{7}\u{9b}1m\u{202e}\u{2066}\u{200b}\u{2028}\u{61c}\u{feff} ü日😀\n\"a\":{\"command\":\"x\",\"args\":[]}}}";
    let path = home.write(CURSOR, text);
    one(home.protect(&[])).unwrap();
    home.forget();
    let name = home.write("home/a\u{1b}[1m\\033[2m\n\u{202e}.json", read(&path));
    let lost = read(&path)
        .replace("\"args\"", "\"env\":{\"T\":\"firedoor-secret:a/\u{1b}[3m\",\"U\":\"firedoor-secret:b\"},\"args\"");
    for mut script in scripts(&home) {
        fs::write(&name, &lost).unwrap();
        let done = script.arg(&name).output().unwrap();
        let said = shown(&done);
        let raw = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        assert!(!said.contains(raw), "{script:?} {said:?}");
        assert!(
            said.contains("?[2J??1m?????? ü日😀") && said.contains("a?[1m\\033[2m??.json: given back"),
            "{script:?} {said:?}"
        );
        assert!(said.contains("  firedoor-secret:a/?[3m\n  firedoor-secret:b\n"), "{script:?} {said:?}");
        // An entry that is left is named alike.
        fs::write(&name, lost.replace("\"--\",", "").replace("cursor/user/a", "cursor/user/\u{1b}a")).unwrap();
        let said = shown(&script.output().unwrap());
        assert!(said.contains("cursor/user/?a") && !said.contains(raw), "{script:?} {said:?}");
    }
}

/// Whatever its client wrote before a restore, the saved original starts no Firedoor: neither by a new journal nor by one that has
/// kept protected bytes as the original.
#[test]
fn no_original_starts_firedoor() {
    const BEFORE: &str = r#"{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"command":"y"}}}"#;
    for restored in [&["cursor"][..], &["cursor/a"]] {
        let home = Home::new();
        let path = home.write(CURSOR, BEFORE);
        one(home.protect(&[])).unwrap();
        fs::write(&path, read(&path).replace("\"1\"]", "\"2\"]")).unwrap();
        let by_client = fs::read(&path).unwrap();
        one(home.restore(restored)).unwrap();
        one(home.protect(&[])).unwrap();
        let want = BEFORE.replace("\"1\"]", "\"2\"]");
        let protected = read(&path);
        let backups = home.at("home/.local/state/firedoor/backups");
        let record = fs::read_dir(&backups).unwrap().map(|e| e.unwrap().path());
        let record = record.into_iter().find(|p| p.extension().is_some_and(|e| e == "json")).unwrap();
        let journal: serde_json::Value = serde_json::from_str(&read(&record)).unwrap();
        let saved = |digest: &str| read(&backups.join(format!("{digest}.orig")));
        if let Some(original) = journal["original"].as_str() {
            assert_eq!(saved(original), want, "{restored:?}");
        }
        // A journal from before that.
        let mut old = journal.clone();
        old["original"] = Digest::of(&by_client).to_string().into();
        for journal in [&journal, &old] {
            fs::write(&record, serde_json::to_string_pretty(journal).unwrap()).unwrap();
            for mut script in scripts(&home) {
                fs::write(&path, &protected).unwrap();
                let done = script.output().unwrap();
                assert!(done.status.success(), "{script:?} {}", shown(&done));
                assert_eq!(read(&path), want, "{script:?} {}", shown(&done));
            }
            fs::write(&path, &protected).unwrap();
            one(home.restore(&[])).unwrap();
            assert_eq!(read(&path), want);
            fs::write(&path, &protected).unwrap();
        }
    }
}

/// What it was not told to do, or not told at all, is no success.
#[test]
fn slips_are_no_files() {
    let home = Home::new();
    let path = home.write(CURSOR, r#"{"mcpServers":{"a":{"command":"x","args":["1"]}}}"#);
    one(home.protect(&[])).unwrap();
    let protected = read(&path);
    let name = path.to_str().unwrap();
    for (args, code, said) in [
        (&["--help"][..], 0, "usage: sh restore.sh"),
        (&["--bogus"], 2, "usage: sh restore.sh"),
        (&["--yess", name], 2, "usage: sh restore.sh"),
        (&[name, "--yes"], 2, "usage: sh restore.sh"),
        (&["--yes", "/nowhere/mcp.json"], 1, "/nowhere/mcp.json: no such file"),
        (&["--", "--yes"], 1, "no such file"),
        (&[name], 1, "not restored: nobody answered"),
        (&[], 1, "not restored: nobody answered"),
    ] {
        let done = home.asking_script().args(args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{args:?} {}", shown(&done));
        assert!(shown(&done).contains(said), "{args:?} {}", shown(&done));
        assert_eq!(read(&path), protected, "{args:?}");
    }
    // A client that was removed with its file keeps nobody from the others.
    fs::remove_file(&path).unwrap();
    let done = home.script().output().unwrap();
    assert!(done.status.success() && shown(&done).contains("no such file"), "{}", shown(&done));
    let done = home.script().args(["--", name]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", shown(&done));
}
