//! Entries whose variables would act on the shim, which their client starts outside of the sandbox.

use std::fs;

use crate::home::{Home, read};

const CURSOR: &str = "home/.cursor/mcp.json";
const LOADER: &str = "would change what Firedoor's own program loads, outside of the sandbox: take it out, or let the command be \"env\"";
const ELSEWHERE: &str = "Firedoor would look for engine, rules and log elsewhere: ";
const ENGINE: &str = "for Firedoor's engine, too";

/// How an entry with these variables stands, and whether protecting changes it.
fn check(home: &Home, env: &serde_json::Value, want: Option<&str>) {
    let entry = serde_json::json!({"command": "npx", "args": ["-y", "srv"], "env": env});
    let before = serde_json::json!({"mcpServers": {"a": entry}}).to_string();
    home.write(CURSOR, &before);
    let state = |want: Option<&str>, usual: &str| {
        let state = home.states().remove("a").unwrap();
        match want {
            Some(why) => assert!(state.contains(why), "{env}: {state}"),
            None => assert_eq!(state, usual, "{env}"),
        }
    };
    state(want, "unprotected");
    home.protect(&["cursor/user/a"]);
    assert_eq!(read(&home.at(CURSOR)) == before, want.is_some(), "{env}");
    // As it stands where the variable came later.
    let shim = home.shim();
    let args = ["--entry", "cursor/user/a", "--", "npx", "-y", "srv"];
    let wrapped = serde_json::json!({"mcpServers": {"a": {"command": shim, "args": args, "env": env}}}).to_string();
    home.write(CURSOR, &wrapped);
    state(want, "protected");
    if want.is_some() {
        home.protect(&["cursor/user/a"]);
        assert_eq!(read(&home.at(CURSOR)), wrapped);
        home.restore(&["cursor/user/a"]);
        assert!(!read(&home.at(CURSOR)).contains("--entry"), "{env}");
    }
}

#[test]
fn what_acts_on_the_shim_is_not_protected() {
    let mut home = Home::new();
    home.vars.insert("LD_LIBRARY_PATH".into(), "/opt/cuda/lib".into());
    home.vars.insert("XDG_RUNTIME_DIR".into(), "/run/user/7".into());
    let own = home.at("home");
    for (env, want) in [
        (serde_json::json!({"LD_PRELOAD": "/p/p.so"}), Some(LOADER)),
        (serde_json::json!({"API_KEY": "1", "LD_LIBRARY_PATH": "/p"}), Some(LOADER)),
        (serde_json::json!({"LD_AUDIT": "${workspaceFolder}/a.so"}), Some(LOADER)),
        (serde_json::json!({"GLIBC_TUNABLES": "glibc.malloc.check=3"}), Some(LOADER)),
        (serde_json::json!({"LD_LIBRARY_PATH": "/opt/cuda/lib", "LDFLAGS": "-L/p"}), None),
        (serde_json::json!({"DYLD_INSERT_LIBRARIES": "/p/p.dylib"}), None),
        (serde_json::json!({"HOME": "/tmp/x"}), Some(ELSEWHERE)),
        (serde_json::json!({"HOME": "${workspaceFolder}"}), Some(ELSEWHERE)),
        (serde_json::json!({"HOME": own, "APPDATA": "x"}), None),
        (serde_json::json!({"XDG_STATE_HOME": "/p/x"}), Some(ELSEWHERE)),
        (serde_json::json!({"XDG_CONFIG_HOME": own.join(".config")}), None),
        (serde_json::json!({"XDG_RUNTIME_DIR": "/run/user/7"}), None),
        (serde_json::json!({"XDG_RUNTIME_DIR": "/p/run"}), Some(ELSEWHERE)),
        (serde_json::json!({"XDG_CACHE_HOME": "/p/cache", "PATH": "/p/bin:/usr/bin"}), None),
        (serde_json::json!({"DBUS_SESSION_BUS_ADDRESS": "tcp:host=evil.example,port=1"}), Some(ENGINE)),
    ] {
        check(&home, &env, want);
    }
}

#[test]
fn what_a_file_of_variables_sets_counts() {
    let home = Home::new();
    home.write("work/.env", "A=1\nexport LD_PRELOAD=\"/p/p.so\"\n");
    home.write(
        "work/.vscode/mcp.json",
        r#"{"servers":{"a":{"command":"npx","args":["srv"],"envFile":"${workspaceFolder}/.env"}}}"#,
    );
    assert!(home.states()["a"].contains(LOADER), "{:?}", home.states());
    fs::write(home.at("work/.env"), "A=1\n").unwrap();
    assert_eq!(home.states()["a"], "unprotected");
}
