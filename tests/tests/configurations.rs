//! Finding, rerouting and giving back configurations, and every way in which a file can be unfit for it.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has failed, or says so")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use firedoor_tests::{Client, Home, Output};
use serde_json::{Value, json};

const PROTECT: [&str; 4] = ["protect", "--all", "--yes", "--no-verify"];

fn is_protected(path: &Path) -> bool {
    fs::read_to_string(path).unwrap().contains("firedoor-shim")
}

#[test]
fn an_unknown_client_is_named_with_those_there_are() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "true"}}));
    home.firedoor(&["protect", "emacs", "--yes"]).expect_code(2).expect_said("emacs").expect_said("cursor");
    home.firedoor(&["protect", "cursor/b", "--yes"]).expect_code(2).expect_said("\"b\"");
    home.firedoor(&["restore", "emacs"]).expect_code(2).expect_said("emacs");
    assert!(!is_protected(&config));
}

/// What was named is protected, or it is no success; what was not named is no failure.
#[test]
fn protect_says_whether_what_was_named_is_protected() {
    let home = Home::new();
    home.cursor(json!({"a": {"command": "true"}, "odd": {"command": "true", "args": [1]}}));
    home.write(".gemini/settings.json", "{ broken");
    let named = |names: &[&str], code| {
        let dry = [&["protect", "--dry-run"], names].concat();
        home.firedoor(&dry).expect_code(code);
        home.firedoor(&[&["protect", "--yes", "--no-verify"], names].concat()).expect_code(code)
    };
    named(&["cursor/a"], 0);
    named(&["cursor/a"], 0).expect_said("protected already");
    named(&["cursor/odd"], 1);
    named(&["cursor"], 1);
    named(&["gemini-cli", "cursor/a"], 1).expect_said("settings.json");
    named(&["--all"], 1);
    home.write(".gemini/settings.json", "{}");
    named(&["--all"], 0).expect_said("odd");
}

#[test]
fn without_any_configuration_there_is_nothing_to_do() {
    let home = Home::new();
    home.firedoor(&["scan"]).expect_code(0).expect_said("No servers found");
    home.firedoor(&PROTECT).expect_code(0);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(home.json(&["scan"])["clients"], json!([]));
}

#[test]
fn restore_says_where_a_server_has_left_what_it_wrote() {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("echo_server.py", &[]), "t": home.entry("echo_server.py", &["t"])}));
    home.protect();
    for server in ["s", "t"] {
        Client::open(&home, server).initialize();
    }
    let servers = home.path().join(".local/share/firedoor/servers");
    let written: Vec<_> = fs::read_dir(servers).unwrap().flatten().map(|server| server.path().join("home")).collect();
    assert_eq!(written.len(), 2);
    let said = home.firedoor(&["restore", "cursor/s"]).expect_code(0);
    assert!(!said.stdout.contains("private home"), "{said:?}");
    home.protect();
    for private in &written {
        fs::write(private.join("graph.jsonl"), "{}").unwrap();
    }
    let said = home.firedoor(&["restore", "--all"]).expect_code(0);
    for private in &written {
        assert!(said.stdout.contains(private.to_str().unwrap()), "{said:?}");
    }
}

#[test]
fn what_was_never_ours_does_not_keep_restoring_from_success() {
    let home = Home::new();
    let broken = home.write(".codeium/windsurf/mcp_config.json", "{ broken");
    home.firedoor(&["restore", "--all"]).expect_code(0).expect_said("Nothing to change");
    fs::remove_file(broken).unwrap();
    let config = home.cursor(json!({"a": {"command": "true"}, "b": {"command": "true"}}));
    // By itself it is an answer; in the midst of all it says nothing.
    home.firedoor(&["restore", "cursor/a"]).expect_code(0).expect_said("nothing to restore");
    let all = home.firedoor(&["restore", "--all"]).expect_code(0);
    assert!(!all.stdout.contains("cursor/user/"), "{all:#?}");

    home.firedoor(&["protect", "cursor/a", "--yes", "--no-verify"]).expect_code(0);
    let protected = fs::read_to_string(&config).unwrap();
    // One that holds something of ours counts: by its own words, and where those are gone by the journal's.
    for text in [protected.replace("\n}", ""), "{ broken".to_owned()] {
        fs::write(&config, &text).unwrap();
        home.firedoor(&["restore", "--all"]).expect_code(1).expect_said("mcp.json");
    }
    fs::write(&config, &protected).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0).expect_said("byte for byte");
    // What was given back is the user's alone.
    fs::write(&config, "{ broken").unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    fs::write(&config, protected.replace("\n}", "")).unwrap();
    fs::remove_dir_all(home.path().join(".local/state/firedoor/backups")).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(1).expect_said("mcp.json");
}

#[test]
fn the_log_names_what_was_given_back_and_nothing_else() {
    let home = Home::new();
    home.cursor(json!({"a": {"command": "true"}, "b": {"command": "true"}}));
    // Starts the engine, which writes down what it allowed.
    home.firedoor(&["mode", "balanced"]).expect_code(0);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    let log = || home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    assert!(!log().contains("restoring"), "{}", log());
    home.firedoor(&["protect", "cursor/b", "--yes", "--no-verify"]).expect_code(0);
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert!(log().contains("restoring configurations: cursor/user/b\""), "{}", log());
    assert!(!log().contains("cursor/user/a"), "{}", log());
}

#[test]
fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "true"}}));
    let before = fs::read(&config).unwrap();
    let shown = home.firedoor(&["protect", "--all", "--dry-run"]).expect_code(0);
    assert!(shown.stdout.lines().any(|l| l.starts_with('+') && l.contains("firedoor-shim")), "{shown:#?}");
    assert_eq!(fs::read(&config).unwrap(), before);
    // Nobody is there to say yes.
    home.firedoor(&["protect", "--all"]).expect_code(2).expect_said("--yes");
    assert_eq!(fs::read(&config).unwrap(), before);
}

#[test]
fn what_cannot_be_changed_is_known_before() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "true"}}));
    home.firedoor(&["protect", "--all", "--dry-run"]).expect_code(0);
    let check = |said: &str| {
        home.firedoor(&["scan"]).expect_code(0).expect_said("it cannot be changed").expect_said(said);
        home.firedoor(&["protect", "--all", "--dry-run"]).expect_code(1).expect_said("It would fail").expect_said(said);
        home.firedoor(&PROTECT).expect_code(1).expect_said(said);
    };
    home.set_mode(&config, 0o444);
    check("read-only");
    home.set_mode(&config, 0o644);
    let other = config.with_file_name("other.json");
    fs::hard_link(&config, &other).unwrap();
    check("hard links");
    fs::remove_file(other).unwrap();
    home.set_mode(config.parent().unwrap(), 0o555);
    check("write beside");
    home.set_mode(config.parent().unwrap(), 0o755);
    home.firedoor(&["protect", "--all", "--dry-run"]).expect_code(0);
    let scan = home.firedoor(&["scan"]).expect_code(0);
    assert!(!scan.stdout.contains("cannot be changed"), "{scan:#?}");
}

/// What a configuration says is shown before it is agreed to, and must not paint over what else is.
#[test]
fn nothing_in_a_file_moves_the_cursor_or_hides() {
    let home = Home::new();
    let hostile = "\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}\u{9b}31m";
    home.write(
        ".cursor/mcp.json",
        format!("// {hostile}\n{{\"mcpServers\":{{\"a\":{{\"command\":\"x\" // {hostile}\n}}}}}}\n"),
    );
    home.write(&format!("work/.amazonq/cli-agents/x{hostile}.json"), r#"{"mcpServers":{"b":{"command":"x"}}}"#);
    let project = ["--project", "work"];
    for command in
        [&["scan"][..], &["scan", "--json"], &["protect", "--all", "--dry-run"], &PROTECT, &["restore", "--all"]]
    {
        let all = [command, &project].concat();
        let said = home.firedoor(&all).expect_code(0);
        let hides = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
        assert!(!said.stdout.contains(hides) && !said.stderr.contains(hides), "{command:?}: {said:?}");
        assert!(said.stdout.contains("⟨U+202E⟩") || said.stdout.contains("\\u202e"), "{command:?}: {said:?}");
    }
}

/// Seeing whether servers answer starts those that their client would have started without asking.
#[test]
fn servers_that_a_client_would_not_start_are_not_started_directly() {
    let home = Home::new();
    for script in ["echo_server.py", "stdio_mcp.py"] {
        home.write(&format!("server/{script}"), fs::read(home.script(script)).unwrap());
    }
    // Confined it cannot leave its mark.
    let marking = home.write(
        "server/marking_server.py",
        r#"
import contextlib, os, pathlib, runpy
with contextlib.suppress(OSError):
    pathlib.Path(os.environ["HOME"], os.environ["MARK"]).touch()
runpy.run_path(os.path.join(os.path.dirname(__file__), "echo_server.py"), run_name="__main__")
"#,
    );
    let marks = |name: &str| json!({"command": home.python(), "args": [&marking], "env": {"MARK": name}});
    let with = |name: &str, key: &str, value: bool| {
        let mut entry = marks(name);
        entry[key] = value.into();
        entry
    };
    home.cursor(json!({
        "a": marks("plain"),
        "b": with("disabled", "disabled", true),
        "c": with("not-enabled", "enabled", false),
        "d": with("not-disabled", "disabled", false),
    }));
    home.write("work/.mcp.json", json!({"mcpServers": {"brought": marks("brought")}}).to_string());
    let ran = |name: &str| home.path().join(name).exists();
    let protect = ["protect", "--all", "--yes", "--project", "work"];
    let said = home.firedoor(&protect).expect_code(0);
    assert_eq!(said.stdout.matches("switches it off, so it was not started").count(), 2, "{said:?}");
    said.expect_said("brought: protected, answers through Firedoor (");
    let all = ["plain", "disabled", "not-enabled", "not-disabled", "brought"];
    assert_eq!(all.map(ran), [true, false, false, true, false]);
    home.firedoor(&["restore", "--all", "--project", "work"]).expect_code(0);
    // Nobody has named it by naming its client, or a server of that name wherever it is.
    home.firedoor(&["protect", "claude-code", "--yes", "--project", "work"]).expect_code(0);
    home.firedoor(&["restore", "--all", "--project", "work"]).expect_code(0);
    home.firedoor(&["protect", "claude-code/brought", "--yes", "--project", "work"]).expect_code(0);
    assert!(!ran("brought"));
    home.firedoor(&["restore", "--all", "--project", "work"]).expect_code(0);
    // Whoever names the entry itself wants it compared.
    let scan = home.json(&["scan", "--project", "work"]);
    let files = scan["clients"].as_array().unwrap().iter().flat_map(|client| client["files"].as_array().unwrap());
    let mut ids = files.flat_map(|file| file["entries"].as_array().unwrap()).map(|entry| entry["id"].as_str().unwrap());
    let entry = ids.find(|id| id.ends_with("/brought")).unwrap();
    home.firedoor(&["protect", entry, "--yes", "--project", "work"]).expect_code(0).expect_said("answers as before");
    assert!(ran("brought"));
}

/// A client's directory is closed to servers, but for the copy of the plugin whose server it is.
#[test]
fn an_extensions_server_starts_from_the_clients_copy() {
    let home = Home::new();
    for script in ["echo_server.py", "stdio_mcp.py"] {
        let text = fs::read(home.script(script)).unwrap();
        home.write(&format!(".gemini/extensions/one/server/{script}"), text);
    }
    let entry = json!({"command": home.python(), "args": ["${extensionPath}/server/echo_server.py"]});
    let manifest = json!({"name": "one", "version": "1", "mcpServers": {"echo": entry}});
    let config = home.write(".gemini/extensions/one/gemini-extension.json", manifest.to_string());
    home.firedoor(&["protect", "--all", "--yes"]).expect_code(0).expect_said("answers as before");
    assert!(is_protected(&config));
}

/// Configurations as people and programs write them. Each comes back byte for byte.
#[test]
fn restoring_gives_back_every_byte() {
    let claude = ".claude.json";
    let cursor = ".cursor/mcp.json";
    for (name, text) in [
        (claude, "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"srv\"]}}}"),
        (
            claude,
            "{\n\t\"n\": 1e400, \"u\": \"caf\\u00e9\",\n\t\"mcpServers\" : {\"a\":{\"type\":\"stdio\",\"command\":\"x\"}}\n}\n\n",
        ),
        (
            claude,
            "{\"projects\":{\"/home/u/p q\":{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[]}}}},\r\n\"mcpServers\":{\"a\":{\"command\":\"y\",\"env\":{\"K\":\"v\"}}}}\r\n",
        ),
        (
            claude,
            "{\"mcpServers\":{\"a\":{\"command\":\"first\"},\"a\":{\"command\":\"second\",\"args\":[\"\\u0061/\\/b\"]}}}",
        ),
        (
            cursor,
            "{\"mcpServers\":{\"a b/c%\":{\"command\":\"${env:HOME}/bin/x\",\"args\":[\"${workspaceFolder}\"],\"envFile\":\".env\"}}}",
        ),
        (cursor, "{\"mcpServers\":{\"remote\":{\"url\":\"https://mcp.example.com/sse\"},\"é🚀\":{\"command\":\"x\"}}}"),
        (
            cursor,
            "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"--\", \"--entry\", \"y\"], \"odd\": null}}}",
        ),
    ] {
        let home = Home::new();
        let config = home.write(name, text);
        home.firedoor(&PROTECT).expect_code(0);
        assert!(is_protected(&config), "{text}");
        home.firedoor(&["restore", "--all"]).expect_code(0);
        assert_eq!(fs::read_to_string(&config).unwrap(), text);
    }
}

#[test]
fn restoring_needs_neither_engine_nor_state() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "npx", "args": ["-y", "srv"], "env": {"K": "v"}}}));
    let before: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    home.protect();
    assert!(home.engine().is_none(), "protecting without verification starts no engine");
    fs::remove_dir_all(home.state("")).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    // Without the saved original the entry itself says what it replaced.
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(&config).unwrap()).unwrap(), before);
}

#[test]
fn later_edits_of_the_client_survive_restoring() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}));
    home.protect();
    let mut now: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    now["theme"] = json!("dark");
    now["mcpServers"]["b"] = json!({"command": "z"});
    fs::write(&config, now.to_string()).unwrap();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    let after: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    let want = json!({"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "z"}}, "theme": "dark"});
    assert_eq!(after, want);
}

#[test]
fn an_unparsable_file_is_reported_with_its_place_and_left_alone() {
    let home = Home::new();
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}\n";
    let config = home.write(".claude.json", text);
    home.cursor(json!({"fine": {"command": "x"}}));
    let scan = home.json(&["scan"]);
    let files = scan["clients"].as_array().unwrap().iter().flat_map(|c| c["files"].as_array().unwrap());
    let problems: Vec<_> = files.filter_map(|f| f.get("problem")).collect();
    assert_eq!(problems.len(), 1, "{scan}");
    assert_eq!(problems[0]["line"], 3, "{scan}");
    assert!(problems[0]["column"].as_u64().is_some_and(|c| c > 1), "{scan}");
    home.firedoor(&PROTECT).expect_code(1).expect_said(".claude.json").expect_said("line 3");
    assert_eq!(fs::read_to_string(&config).unwrap(), text);
    assert!(is_protected(&home.path().join(".cursor/mcp.json")), "one bad file does not stop the others");
}

#[test]
fn a_directory_that_cannot_be_written_is_reported() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "x"}}));
    let before = fs::read(&config).unwrap();
    home.set_mode(&config, 0o444);
    home.set_mode(config.parent().unwrap(), 0o555);
    let output = home.firedoor(&PROTECT).expect_code(1).expect_said("mcp.json");
    assert!(output.stdout.contains("writable") || output.stderr.contains("writable"), "{output:#?}");
    assert_eq!(fs::read(&config).unwrap(), before);
    home.set_mode(config.parent().unwrap(), 0o755);
    assert_eq!(fs::read_dir(config.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn an_unreadable_file_is_reported() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "x"}}));
    home.set_mode(&config, 0o000);
    home.firedoor(&PROTECT).expect_code(1).expect_said("mcp.json");
    home.set_mode(&config, 0o644);
    assert!(!is_protected(&config));
}

#[test]
fn a_symlinked_configuration_stays_a_link() {
    let home = Home::new();
    let target = home.write("dotfiles/cursor.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    let link = home.directory(".cursor").join("mcp.json");
    symlink(&target, &link).unwrap();
    home.own(&link);
    home.protect();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(is_protected(&target));
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(fs::read_to_string(&target).unwrap(), "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    fs::remove_file(&target).unwrap();
    home.firedoor(&PROTECT).expect_code(1).expect_said("symbolic link");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

/// A client that rewrites its file all the time loses nothing, and never sees half a file.
#[test]
fn a_configuration_that_changes_while_we_write_loses_nothing() {
    let home = Home::new();
    let config = home.cursor(json!({"a": {"command": "x", "args": ["1"]}, "counter": {"command": "0"}}));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !done.load(Ordering::Relaxed) {
                // As careful clients do: read, change one thing, write beside, rename.
                let mut now: Value = serde_json::from_slice(&fs::read(&config).unwrap()).expect("never half a file");
                written += 1;
                now["count"] = json!(written);
                let beside = config.with_extension("tmp");
                fs::write(&beside, now.to_string()).unwrap();
                home.own(&beside);
                fs::rename(&beside, &config).unwrap();
                std::thread::yield_now();
            }
            written
        });
        for _ in 0..5 {
            // Either way is fine: done, or given up and said so.
            let Output { code, .. } = home.firedoor(&PROTECT);
            assert!(code == 0 || code == 1, "{code}");
            let Output { code, .. } = home.firedoor(&["restore", "--all"]);
            assert!(code == 0 || code == 1, "{code}");
        }
        done.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap();
        assert!(written > 10, "{written}");
    });
    home.firedoor(&["restore", "--all"]).expect_code(0);
    let after: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    assert_eq!(after["mcpServers"]["a"], json!({"command": "x", "args": ["1"]}));
}

/// Runs `protect` with a tmpfs of 64 KiB mounted on one directory, and says what is left there.
fn with_small_disk(home: &Home, on: &Path, config: &Path, sample: &Path) -> Option<Output> {
    let as_user =
        if nix::unistd::geteuid().is_root() { "setpriv --reuid=nobody --regid=nogroup --clear-groups" } else { "" };
    let script = format!(
        r#"mount -t tmpfs -o size=64k,mode=777 none "$1" || exit 77
        {as_user} cp "$3" "$2" || exit 78
        {as_user} "$4" protect --all --yes --no-verify; echo "code $?"
        cmp "$2" "$3" && echo untouched; ls -A "$(dirname "$2")""#
    );
    let mut command = std::process::Command::new("unshare");
    if nix::unistd::geteuid().is_root() {
        command.arg("-m");
    } else {
        command.arg("-rm");
    }
    // Root mounts, and the command inside becomes the user.
    let env: Vec<_> = home.command("true").get_envs().map(|(k, v)| (k.to_owned(), v.unwrap().to_owned())).collect();
    command.env_clear().envs(env).current_dir(home.path());
    command.args(["sh", "-c", &script, "sh"]).args([on, config, sample]).arg(home.program("firedoor"));
    let output = firedoor_tests::finish(&mut command);
    if output.code == 77 || output.stderr.contains("unshare failed") {
        eprintln!("NOT TESTED: this machine allows no mounts in a namespace: {}", output.stderr);
        return None;
    }
    Some(output)
}

#[test]
fn a_full_disk_costs_nothing() {
    let home = Home::new();
    // Larger than half of the disk, so that a second copy does not fit.
    let text = format!("{{\"pad\": \"{}\", \"mcpServers\": {{\"a\": {{\"command\": \"x\"}}}}}}", "p".repeat(40_000));
    let sample = home.write("sample.json", text);
    let config = home.directory(".cursor").join("mcp.json");
    let state = home.directory(".local/state");
    // The disk of the configuration, then the disk where the original would be saved.
    if let Some(output) = with_small_disk(&home, config.parent().unwrap(), &config, &sample) {
        let output = output.expect_code(0).expect_said("code 1").expect_said("untouched").expect_said("space");
        assert!(output.stdout.ends_with("untouched\nmcp.json\n"), "something is left beside it: {output:#?}");
    }
    fs::write(&sample, fs::read_to_string(&sample).unwrap().replace("ppp", "pppppp")).unwrap();
    if let Some(output) = with_small_disk(&home, &state, &config, &sample) {
        output.expect_code(0).expect_said("code 1").expect_said("untouched").expect_said("space");
    }
}

#[test]
fn verification_gives_an_entry_back_that_does_not_answer_alike() {
    let home = Home::new();
    let notes = home.write("elsewhere/notes.txt", "Adds two numbers.");
    let fine = home.entry("echo_server.py", &[]);
    // Works by itself; confined, it cannot read a file that nobody granted.
    let needy = home.entry("changing_server.py", &[notes.to_str().unwrap()]);
    let config = home.cursor(json!({"fine": fine, "needy": needy}));
    let report = home.json(&["protect", "--all", "--yes"]);
    let verified = |server: &str| {
        let outcomes = report["verified"].as_array().unwrap();
        outcomes.iter().find(|o| o["entry"] == format!("cursor/user/{server}")).unwrap()["verified"].clone()
    };
    assert_eq!(verified("fine"), "same", "{report}");
    assert_eq!(verified("needy"), "rolled_back", "{report}");
    let now: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    assert_eq!(now["mcpServers"]["needy"], needy);
    assert!(is_protected(&config));
    // With the grant it answers alike.
    home.firedoor(&["grants", "add", "cursor/user/needy", "--ro", notes.to_str().unwrap()]).expect_code(0);
    home.firedoor(&["protect", "cursor/needy", "--yes"]).expect_code(0).expect_said("answers as before");
    home.firedoor(&["restore", "--all"]).expect_code(0);
}

#[test]
fn a_server_that_cannot_start_by_itself_says_nothing_about_us() {
    let home = Home::new();
    let config = home.cursor(json!({"gone": {"command": "/nonexistent/server"}}));
    home.firedoor(&["protect", "--all", "--yes"]).expect_code(0).expect_said("not verified");
    assert!(is_protected(&config));
}

#[test]
fn a_scan_says_what_to_know_and_fails_on_demand() {
    let home = Home::new();
    home.cursor(
        json!({"a": {"command": "sudo", "args": ["npx", "-y", "tavily-mcp"], "env": {"API_KEY": "FAKEvalue"}}}),
    );
    let shown = home.firedoor(&["scan"]).expect_code(0);
    for said in ["W001", "W004", "W005", ".cursor/mcp.json:"] {
        assert!(shown.stdout.contains(said), "{said}: {shown:#?}");
    }
    home.firedoor(&["scan", "--fail-on", "high"]).expect_code(1);
    home.firedoor(&["scan", "--fail-on", "critical"]).expect_code(0);
    home.firedoor(&["scan", "--fail-on", "worst"]).expect_code(2).expect_said("critical");
    let found = home.json(&["scan"])["findings"].clone();
    let codes: Vec<&str> = found.as_array().unwrap().iter().filter_map(|f| f["code"].as_str()).collect();
    assert_eq!(codes, ["W004", "W005", "W001"]);
    let sarif = home.firedoor(&["scan", "--sarif", "--fail-on", "low"]).expect_code(1);
    assert!(!format!("{}{}", shown.stdout, sarif.stdout).contains("FAKEvalue"));
    let sarif: Value = serde_json::from_str(&sarif.stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 3);
}
