//! What is found, and what is said about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use firedoor_clients::{Selection, select, verify::VerifyError};
use firedoor_model::EntryId;

use crate::home::{Home, one};

#[test]
fn states() {
    let home = Home::new();
    home.write("home/.claude.json", include_bytes!("samples/edge-shapes.json"));
    home.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers":{
            "remote":{"url":"https://x"},
            "env":{"command":"x","env":{"API_TOKEN":"FAKEvalue"}},
            "flag":{"command":"x","args":["--api-key","FAKEvalue"]},
            "ref":{"command":"x","args":["--api-key","${env:K}"],"env":{"API_TOKEN":"${env:T}"}},
            "decoy":{"command":"sh","args":["--entry","cursor/user/decoy","--","x"]},
            "relative":{"command":"./firedoor-shim","args":["--entry","cursor/user/relative","--","x"]},
            "\ud800":{"command":"x"}
        }}"#,
    );
    let states = home.states();
    for (server, want) in [
        ("null", "not yet protected: it is not an object"),
        ("str", "not yet protected: it is not an object"),
        ("noargs", "unprotected"),
        ("argstr", "not yet protected: its args are not an array"),
        ("both", "not yet protected: it has both a command and url, and clients differ on which one counts"),
        ("line", "unprotected"),
        ("", "unprotected"),
        ("__proto__", "not yet protected: its name means something else to JavaScript clients"),
        ("num", "not yet protected: its args are not all strings"),
        ("typed", "not yet protected: it has a command, but its type is \"http\""),
        ("cmd", "unprotected"),
        ("guard", "wrapped by mcp-guardian"),
        ("${HOME}", "not yet protected: its name or project contains \"${\", which the client would replace"),
        ("remote", "unprotected"),
        ("env", "unprotected"),
        ("flag", "unprotected"),
        ("ref", "unprotected"),
        ("decoy", "unprotected"),
        ("\u{fffd}", "not yet protected: its name is not valid Unicode"),
    ] {
        assert_eq!(states.get(server).map(String::as_str), Some(want), "{server}");
    }
    assert!(states["relative"].starts_with("misrouted: it starts \"./firedoor-shim\" instead of"));
}

#[test]
fn a_clients_own_directory_is_nobody_elses_project() {
    let home = Home::new();
    let text = r#"{"mcpServers":{"a":{"command":"x"}}}"#;
    for (dir, want) in [("home/.cursor", "cursor/user/a"), ("home/other", "mcp-inspector/project:")] {
        let path = home.write(&format!("{dir}/mcp.json"), text);
        let scan = home.clients.scan(&home.env().with_projects([home.at(dir)]));
        let all = scan.clients.into_iter().flat_map(|c| c.files).filter(|f| f.path == path).flat_map(|f| f.entries);
        let ids: Vec<String> = all.map(|e| e.id.to_string()).collect();
        assert!(ids.len() == 1 && ids[0].starts_with(want), "{ids:?}");
    }
}

#[test]
fn no_secret_is_shown() {
    let home = Home::new();
    let text = r#"{"mcpServers":{
  "a":{"command":"x","args":["--api-key","FAKEvalue1","--token=FAKEvalue2","ghp_FAKEvalue3FAKEvalue3"],"env":{"T_TOKEN":"FAKEvalue4"}},
  "b":{"command":"y"}
}}"#;
    home.write("home/.cursor/mcp.json", text);
    let shown = serde_json::to_string(&home.clients.scan(&home.env())).unwrap();
    assert!(shown.contains("T_TOKEN") && !shown.contains("FAKEvalue"), "{shown}");
    let plan = home.clients.plan_protect(&home.env(), &home.choose(&[]), &home.shim()).unwrap();
    let diff = &plan.files[0].diff;
    assert!(diff.contains("+  \"b\":{\"command\":") && !diff.contains("FAKEvalue"), "{diff}");
    // Without a keychain they stay.
    assert_eq!(plan.files[0].secrets_left.len(), 4);
    assert!(!serde_json::to_string(&plan).unwrap().contains("FAKEvalue"));
}

#[test]
fn scopes_and_places() {
    let mut home = Home::new();
    for dir in ["work/deep", "keyed", "given", "moved"] {
        fs::create_dir_all(home.at(dir)).unwrap();
    }
    let server = r#"{"mcpServers":{"s":{"command":"x"}}}"#;
    let keyed = home.at("keyed");
    let user = format!(
        r#"{{"mcpServers":{{"s":{{"command":"x"}}}},"projects":{{{keyed:?}:{{"mcpServers":{{"s":{{"command":"x"}}}}}},"rel":{{}}}}}}"#
    );
    home.write("home/.claude.json", "not looked at");
    home.write("moved/.claude.json", user);
    home.write("work/.mcp.json", server);
    home.write("keyed/.mcp.json", server);
    home.write("given/.cursor/mcp.json", server);
    home.vars.insert("CLAUDE_CONFIG_DIR".into(), home.at("moved").to_str().unwrap().into());
    let mut env = home.env().with_projects([PathBuf::from("../given")]);
    env.cwd = home.at("work/deep");
    env.projects = vec![home.at("given")];
    let scan = home.clients.scan(&env);
    let ids: BTreeSet<String> =
        scan.clients.iter().flat_map(|c| &c.files).flat_map(|f| &f.entries).map(|e| e.id.to_string()).collect();
    let id = |client: &str, scope: String| EntryId::new(client, &scope, "s").unwrap().to_string();
    let want = BTreeSet::from([
        id("claude-code", "user".into()),
        id("claude-code", format!("local:{}", keyed.display())),
        id("claude-code", format!("project:{}", home.at("work").display())),
        id("claude-code", format!("project:{}", keyed.display())),
        id("cursor", format!("project:{}", home.at("given").display())),
    ]);
    assert_eq!(ids, want);
}

#[test]
fn what_was_protected_is_found_again_from_anywhere() {
    let mut home = Home::new();
    home.write("work/.mcp.json", r#"{"mcpServers":{"s":{"command":"x"}}}"#);
    home.write("moved/.claude.json", r#"{"mcpServers":{"u":{"command":"x"}}}"#);
    home.vars.insert("CLAUDE_CONFIG_DIR".into(), home.at("moved").to_str().unwrap().into());
    assert_eq!(home.protect(&[]).len(), 2);
    home.vars.clear();
    let mut env = home.env();
    env.cwd = home.at("bin");
    let found: Vec<String> = home
        .clients
        .scan(&env)
        .clients
        .iter()
        .flat_map(|c| &c.files)
        .flat_map(|f| &f.entries)
        .map(|e| e.id.server().to_owned())
        .collect();
    assert_eq!(found, ["u", "s"]);
}

#[test]
fn warnings_about_shared_files() {
    let home = Home::new();
    home.write("work/.git/HEAD", "");
    home.write("work/.mcp.json", r#"{"mcpServers":{"s":{"command":"./run"}}}"#);
    let scan = home.clients.scan(&home.env());
    let file = &scan.clients[0].files[0];
    assert!(file.warnings[0].contains("git work tree"), "{:?}", file.warnings);
    assert!(file.entries[0].warnings[0].contains("relative"));
}

#[test]
fn selections() {
    let home = Home::new();
    home.write("home/.claude.json", r#"{"mcpServers":{"a/b":{"command":"x"},"c":{"command":"y"}}}"#);
    let scan = home.clients.scan(&home.env());
    let chosen = |text: &str| {
        let selection: Selection = text.parse().map_err(|e: firedoor_clients::SelectError| e.to_string())?;
        let ids = select(home.clients, &scan, &[selection]).map_err(|e| e.to_string())?;
        Ok::<_, String>(ids.iter().map(|i| i.server().to_owned()).collect::<Vec<_>>().join(" "))
    };
    let known: Vec<&str> = home.clients.known().map(|(id, _)| id).collect();
    let unknown = format!("no client \"vim\" was found: there is {}", known.join(", "));
    for (text, want) in [
        ("claude-code", Ok("a/b c")),
        ("claude-code/a%2Fb", Ok("a/b")),
        ("claude-code/user/c", Ok("c")),
        ("cursor", Ok("")),
        ("vim", Err(unknown.as_str())),
        ("claude-code/d", Err("claude-code has no server \"d\": it has claude-code/user/a%2Fb, claude-code/user/c")),
        ("cursor/user/d", Err("cursor has no server \"cursor/user/d\": it has none")),
        (
            "a/b/c/d",
            Err("\"a/b/c/d\" names no entry: an entry id has the form client/scope/server, with \"/\" inside a part \
                 written as %2F. Use CLIENT, CLIENT/SERVER or CLIENT/SCOPE/SERVER"),
        ),
        (
            "",
            Err(
                "\"\" names no entry: an entry id needs a client and a scope. Use CLIENT, CLIENT/SERVER or CLIENT/SCOPE/SERVER",
            ),
        ),
    ] {
        assert_eq!(chosen(text), want.map(str::to_owned).map_err(str::to_owned), "{text}");
    }
}

#[test]
fn declared_environment() {
    let home = Home::new();
    home.write("work/.env", "# names\nFROM_FILE=1\nexport OTHER=\"2\"\n");
    home.write(
        "work/.cursor/mcp.json",
        r#"{"mcpServers":{"s":{"command":"x","env":{"A":"1","B":"${env:B}"},"envFile":"${workspaceFolder}/.env"}}}"#,
    );
    home.write("home/.cursor/mcp.json", r#"{"mcpServers":{"s":{"command":"x","envFile":"/nonexistent"}}}"#);
    let project = EntryId::new("cursor", &format!("project:{}", home.at("work").display()), "s").unwrap();
    let names = |id: &EntryId| home.clients.declared_env(&home.env(), id).map(|n| n.into_iter().collect::<Vec<_>>());
    let want = ["A", "B", "FROM_FILE", "OTHER"].map(str::to_owned).to_vec();
    assert_eq!(names(&project), Some(want.clone()));
    home.protect(&[]);
    assert_eq!(names(&project), Some(want), "also once protected");
    assert_eq!(names(&EntryId::new("cursor", "user", "s").unwrap()), Some(vec![]));
    assert_eq!(names(&EntryId::new("cursor", "user", "t").unwrap()), None);
    assert_eq!(names(&EntryId::new("vim", "user", "s").unwrap()), None);
}

#[test]
fn invocations_are_those_of_the_client() {
    let mut home = Home::new();
    home.vars.insert("REF".into(), "main".into());
    home.write("work/.env", "FROM_FILE=1\n");
    home.write(
        "work/.cursor/mcp.json",
        r#"{"mcpServers":{
            "s":{"command":"x","args":["${env:REF}"],"env":{"A":"${userHome}"},"envFile":".env"},
            "i":{"command":"x","args":["${input:key}"]},
            "f":{"command":"x","envFile":"/nonexistent"}}}"#,
    );
    let id = |server: &str| EntryId::new("cursor", &format!("project:{}", home.at("work").display()), server).unwrap();
    let base = BTreeMap::from([("PATH".into(), "/bin".into())]);
    let of = |server: &str| home.clients.invocations(&home.env(), &id(server), &base);
    let before = of("s").unwrap();
    let direct = before.direct.clone().unwrap();
    assert_eq!((direct.command.as_str(), direct.args.as_slice()), ("x", ["main".to_owned()].as_slice()));
    assert_eq!(direct.cwd, home.at("work"));
    let want = BTreeMap::from([
        ("A".into(), home.at("home").into_os_string()),
        ("FROM_FILE".into(), "1".into()),
        ("PATH".into(), "/bin".into()),
    ]);
    assert_eq!(direct.env, want);
    assert!(before.through.is_none());
    one(home.protect(&[])).unwrap();
    let after = of("s").unwrap();
    assert_eq!(after.direct, before.direct);
    assert_eq!(after.through.unwrap().command, home.shim().to_str().unwrap());
    for (server, want) in [("i", "${input:key}"), ("f", "envFile"), ("gone", "no such entry")] {
        let error = of(server).unwrap_err();
        assert!(matches!(error, VerifyError::Unverifiable { .. }) && error.to_string().contains(want), "{error}");
    }
}

#[test]
fn a_shim_that_cannot_be_written_is_refused() {
    let home = Home::new();
    let text = |shim: PathBuf| home.clients.plan_protect(&home.env(), &BTreeSet::new(), &shim).unwrap_err().to_string();
    assert!(text("firedoor-shim".into()).contains("not absolute"));
    assert!(text("/a/${HOME}/firedoor-shim".into()).contains("would replace"));
    assert!(text("/bin/sh".into()).contains("file name"));
    assert!(text("/nonexistent/firedoor-shim".into()).contains("no such program"));
}
