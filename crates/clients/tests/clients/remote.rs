//! Remote entries become entries that start the shim, and come back byte for byte.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, process::Command};

use firedoor_clients::verify::{self, Interrupt, Verified};

use crate::home::{Home, one, read};

const CLAUDE: &str = "home/.claude.json";
const CURSOR: &str = "home/.cursor/mcp.json";
const CODEX: &str = "home/.codex/config.toml";
const CONTINUE: &str = "home/.continue/config.yaml";
const GOOSE: &str = "home/.config/goose/config.yaml";
const OPENCODE: &str = "home/.config/opencode/opencode.json";

fn shown(home: &Home, text: &str) -> String {
    text.replace(home.shim().to_str().unwrap(), "SHIM")
}

#[test]
fn what_an_entry_becomes() {
    for (place, before, after) in [
        (
            CLAUDE,
            r#"{"mcpServers":{"a":{"type":"http","url":"https:\/\/mcp.example/mcp","headers":{"X-Team":"bl\u0075e"},"timeout":9}}}"#,
            r#"{"mcpServers":{"a":{"type":"stdio","command":"SHIM","args":["--entry","claude-code/user/a","--url","https:\/\/mcp.example/mcp","--transport","http","--header","X-Team=env:FIREDOOR_HEADER_1","--was","url,headers","--type","http"],"env":{"FIREDOOR_HEADER_1":"bl\u0075e"},"timeout":9}}}"#,
        ),
        (
            CURSOR,
            "{\"mcpServers\":{\"a\":{\n  \"url\": \"https://mcp.example/sse\", // c\n  \"disabled\": true,\n}}}",
            "{\"mcpServers\":{\"a\":{\n  \"command\": \"SHIM\",\n  \"args\": [\"--entry\",\"cursor/user/a\",\"--url\",\"https://mcp.example/sse\",\"--was\",\"url\"], // c\n  \"disabled\": true,\n}}}",
        ),
        (
            CODEX,
            "[mcp_servers.a]\r\nurl = 'https://mcp.example/mcp' # c\r\n[mcp_servers.a.http_headers]\r\nX-A = \"1\"\r\n'X-B' = \"2\"\r\n",
            "[mcp_servers.a]\r\ncommand = \"SHIM\"\r\nargs = [\"--entry\",\"codex/user/a\",\"--url\",'https://mcp.example/mcp',\"--header\",\"X-A=env:FIREDOOR_HEADER_1\",\"--header\",\"X-B=env:FIREDOOR_HEADER_2\",\"--was\",\"url,http_headers\"] # c\r\n[mcp_servers.a.env]\r\nFIREDOOR_HEADER_1 = \"1\"\r\n'FIREDOOR_HEADER_2' = \"2\"\r\n",
        ),
        (
            OPENCODE,
            r#"{"mcp":{"a":{"type":"remote","url":"https://mcp.example/mcp","headers":{"A":"{env:T}"},"oauth":false}}}"#,
            r#"{"mcp":{"a":{"type":"local","command":["SHIM","--entry","opencode/user-json/a","--url","https://mcp.example/mcp","--header","A=env:FIREDOOR_HEADER_1","--was","url,headers","--type","remote"],"environment":{"FIREDOOR_HEADER_1":"{env:T}"},"oauth":false}}}"#,
        ),
        (
            CONTINUE,
            "mcpServers:\n- name: a\n  type: sse # t\n  url: https://mcp.example/sse\n",
            "mcpServers:\n- name: a\n  type: \"stdio\" # t\n  command: \"SHIM\"\n  args: [\"--entry\",\"continue/user/a\",\"--url\",https://mcp.example/sse,\"--transport\",\"sse\",\"--was\",\"url\",\"--type\",sse]\n",
        ),
        (
            GOOSE,
            "extensions:\n  a:\n    type: streamable_http\n    uri: https://mcp.example/mcp\n    headers: {X-Team: \"a b\"}\n    enabled: false\n",
            "extensions:\n  a:\n    type: \"stdio\"\n    cmd: \"SHIM\"\n    args: [\"--entry\",\"goose/user/a\",\"--url\",https://mcp.example/mcp,\"--transport\",\"http\",\"--header\",\"X-Team=env:FIREDOOR_HEADER_1\",\"--was\",\"uri,headers\",\"--type\",streamable_http]\n    envs: {FIREDOOR_HEADER_1: \"a b\"}\n    enabled: false\n",
        ),
        (
            CONTINUE,
            "mcpServers: [{name: a, url: 'https://mcp.example/sse'}]",
            "mcpServers: [{name: a, command: \"SHIM\", args: [\"--entry\",\"continue/user/a\",\"--url\",'https://mcp.example/sse',\"--was\",\"url\"]}]",
        ),
    ] {
        gives_back_by_script(place, before);
        for forget in [false, true] {
            let home = Home::new();
            let path = home.write(place, before);
            one(home.protect(&[])).unwrap();
            assert_eq!(shown(&home, &read(&path)), after);
            assert_eq!(home.states()["a"], "protected");
            assert!(home.protect(&[]).is_empty(), "protecting twice is nothing");
            if forget {
                home.forget();
            }
            one(home.restore(&[])).unwrap();
            assert_eq!(read(&path), before);
        }
    }
}

/// The script takes the entries apart by their own text.
fn gives_back_by_script(place: &str, before: &str) {
    let home = Home::new();
    let path = home.write(place, before);
    home.protect(&[]);
    assert_ne!(read(&path), before, "{:?}", home.states());
    let done = home.script().arg(&path).output().unwrap();
    assert!(done.status.success(), "{before}: {done:?}");
    assert_eq!(read(&path), before);
}

#[test]
fn the_script_knows_every_way_to_write_a_remote_entry() {
    const VIBE: &str = "home/.vibe/config.toml";
    for (place, before) in [
        (CODEX, "mcp_servers.a.url = 'https://x/mcp'\nmcp_servers.a.http_headers.X-A = \"1\"\nmodel = 'env'\n"),
        (CODEX, "mcp_servers . a . url='https://x/mcp?a=b#c'\nmcp_servers . a . http_headers={'X-A'=\"1\"}\n"),
        (CODEX, "[mcp_servers]\na = { http_headers = { X-A = '1', \"B\" = '2' }, url = \"https://x/mcp\" }\n"),
        (CODEX, "mcp_servers = { a.url = 'https://x/mcp', a.http_headers.X-A = '1', b.command = 'x' }\n"),
        (
            CODEX,
            "[mcp_servers.a.http_headers]\nX-A = '1'\n[mcp_servers.\"b\"]\nurl = 'https://y/mcp'\n[ mcp_servers . a ]\nurl = 'https://x/mcp'\n",
        ),
        (
            VIBE,
            "[[mcp_servers]]\nname = 'a'\ntransport = 'http'\nurl = 'https://x/mcp'\n[mcp_servers.headers]\nX-A = '1'\n\n[[mcp_servers]]\nname = 'b'\nheaders = { X-A = '2' }\nurl = 'https://y/mcp'\ntransport = 'http'\n",
        ),
        (
            CONTINUE,
            "mcpServers:\n  - url: https://x/mcp?a=b # c\n    name: a\n    type: 'streamable-http'\n  - name: b\n    url: \"https://y/mcp\"\n",
        ),
        (
            CONTINUE,
            "mcpServers:\n- name: a\n  args2:\n  - x\n  url: https://x/mcp\n\n# between\n- {name: b, type: sse, url: https://y/sse}\n",
        ),
        (
            GOOSE,
            "extensions:\n  a:\n    headers:\n      X-A: '1'\n      \"X-B\": two words # c\n    uri: https://x/mcp\n    type: streamable_http\n  b:\n    type: sse\n    uri: https://y/sse\n    headers:\n      X-A: 3\n",
        ),
    ] {
        gives_back_by_script(place, before);
    }
}

#[test]
fn what_is_left_as_it_is() {
    let home = Home::new();
    for (entry, why) in [
        (r#"{"url":"https://x/mcp","oauth":{"clientId":"c"}}"#, "the client signs in itself (oauth)"),
        // With these beside a command Codex 0.169.0 reads none of its file.
        (r#"{"url":"https://x/mcp","oauth_resource":"https://e.x"}"#, "the client signs in itself (oauth_resource)"),
        (
            r#"{"url":"https://x/mcp","http_headers_helper":"/bin/x"}"#,
            "the client signs in itself (http_headers_helper)",
        ),
        (r#"{"url":"https://x/mcp","bearer_token":"t"}"#, "the client signs in itself (bearer_token)"),
        (r#"{"url":"https://x/mcp?key=${KEY}"}"#, "its address holds a reference"),
        (r#"{"url":"https://me:secret@x/mcp"}"#, "its address holds a reference"),
        (r#"{"url":"https://x/mcp?api_key=FAKEvalue"}"#, "its address looks like a secret in clear"),
        (r#"{"url":"unix:///run/x"}"#, "is not http"),
        (r#"{"url":"https://x/mcp","serverUrl":"https://y"}"#, "it has several addresses"),
        (r#"{"url":"https://x/mcp","type":"websocket"}"#, "\"websocket\") is not known"),
        (r#"{"url":"https://x/mcp","headers":{"a":"b"},"env":{"c":"d"}}"#, "it sets variables (env)"),
        (r#"{"url":"https://x/mcp","headers":{"a":"b"},"env":{}}"#, "it sets variables (env)"),
        (r#"{"url":"https://x/mcp","env":{"HTTPS_PROXY":"http://x"}}"#, "it sets variables (env)"),
        (r#"{"url":"https://x/mcp","env":{"HTTPS_PROXY":1}}"#, "it sets variables (env)"),
        (r#"{"url":"https://x/mcp","environment":{"HTTPS_PROXY":"http://x"}}"#, "it sets variables (environment)"),
        (r#"{"url":"https://x/mcp","envFile":"${workspaceFolder}/.env"}"#, "it sets variables (envFile)"),
        (r#"{"url":"https://x/mcp","headers":{"a b":"c"}}"#, "its headers are not all names and strings"),
        (r#"{"url":["https://x/mcp"]}"#, "its address is not a string"),
    ] {
        let text = format!("{{\"mcpServers\":{{\"a\":{entry}}}}}");
        let path = home.write(CURSOR, &text);
        assert!(home.protect(&[]).is_empty(), "{entry}");
        assert!(home.states()["a"].contains(why), "{entry}: {:?}", home.states());
        assert_eq!(read(&path), text);
    }
}

#[test]
fn a_client_that_writes_its_file_anew_and_a_moved_shim_do_not_hinder() {
    let home = Home::new();
    let before = r#"{"mcpServers":{"a":{"headers":{"X-A":"1","X-B":"2"},"url":"https://x/mcp","type":"sse"}}}"#;
    let path = home.write(CLAUDE, before);
    one(home.protect(&[])).unwrap();
    let written: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    let written = serde_json::to_string_pretty(&written).unwrap().replace("/bin/firedoor-shim", "/old/firedoor-shim");
    fs::write(&path, written.replace("\"a\": {", "\"b\": {")).unwrap();
    assert!(home.states()["b"].starts_with("misrouted"));
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["b"], "protected");
    one(home.restore(&[])).unwrap();
    let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(same(&read(&path)), same(&before.replace("\"a\":", "\"b\":")));
    // A variable that somebody added is no header.
    one(home.protect(&[])).unwrap();
    fs::write(&path, read(&path).replace("\"FIREDOOR_HEADER_1\"", "\"OWN\":\"x\",\"FIREDOOR_HEADER_1\"")).unwrap();
    let plan = home.clients.plan_restore(&home.env(), &home.choose(&[]));
    assert!(plan.skipped[0].reason.contains("\"OWN\" was added"), "{:?}", plan.skipped);
}

/// Where it is protected without a question it stays so: one that does not answer may only want a login, or come later.
#[test]
fn a_server_that_does_not_answer_is_given_back_by_hand_only() {
    let home = Home::new();
    fs::write(home.shim(), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(home.shim(), fs::Permissions::from_mode(0o755)).unwrap();
    let text = r#"{"mcpServers":{"far":{"url":"https://a.example/mcp"}}}"#;
    let path = home.write("home/.cursor/mcp.json", text);
    one(home.protect(&[])).unwrap();
    let protected = fs::read_to_string(&path).unwrap();
    assert_ne!(protected, text);
    let id = "cursor/user/far".parse().unwrap();
    let outcome = verify::confined(home.clients, &home.env(), &id, &BTreeMap::new(), &Interrupt::default()).unwrap();
    assert!(matches!(outcome.verified, Verified::Unverified { .. }), "{outcome}");
    assert_eq!(fs::read_to_string(&path).unwrap(), protected);
    let outcome = verify::entry(home.clients, &home.env(), &id, &BTreeMap::new(), &Interrupt::default()).unwrap();
    assert!(matches!(outcome.verified, Verified::RolledBack { .. }), "{outcome}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn what_an_entry_sets_itself_is_told_from_what_its_client_does() {
    let home = Home::new();
    let names = ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "NO_PROXY"];
    let path = home.write(CURSOR, r#"{"mcpServers":{"a":{"url":"https://x/mcp","headers":{"X-A":"1"}}}}"#);
    one(home.protect(&[])).unwrap();
    let entry = firedoor_model::EntryId::new("cursor", "user", "a").unwrap();
    let set = || home.clients.set_by_entry(&home.env(), &entry, &names);
    let (shown, protected) = (|| home.clients.scan(&home.env()).clients[0].files[0].entries[0].clone(), read(&path));
    assert!(set().is_empty() && shown().env_names.is_empty());
    let reached = shown().reached.unwrap();
    assert_eq!((reached.place.raw(), reached.header_names[0].raw()), ("https://x", "X-A"));
    // Somebody else wrote the file meanwhile.
    fs::write(&path, protected.replace("\"env\":{", "\"env\":{\"HTTPS_PROXY\":\"http://evil\",")).unwrap();
    assert_eq!(set(), ["HTTPS_PROXY"]);
    assert_eq!(shown().env_names[0].raw(), "HTTPS_PROXY");
    // A file that cannot be read may set anything.
    fs::write(&path, protected.replace("\"env\":{", "\"envFile\":\"/nowhere/.env\",\"env\":{")).unwrap();
    assert_eq!(set(), names);
    let file = home.write("home/vars", "NO_PROXY=x\n");
    let named = format!("\"envFile\":{:?},\"env\":{{", file.to_str().unwrap());
    fs::write(&path, protected.replace("\"env\":{", &named)).unwrap();
    assert_eq!(set(), ["NO_PROXY"]);
    // Of an address nothing is shown that may be a secret.
    for (address, want) in [
        ("https://x:8443/s/SECRET?key=SECRET#SECRET", "https://x:8443"),
        ("https://me:SECRET@x/", "(hidden: looks like a secret)"),
        ("https://x\\SECRET", "https://x"),
    ] {
        home.write(CURSOR, serde_json::json!({"mcpServers": {"a": {"url": address}}}).to_string());
        assert_eq!(shown().reached.unwrap().place.raw(), want);
    }
}

#[test]
fn an_entry_that_stays_one_with_an_address() {
    const ADDRESS: &str = "http://127.0.0.1:20417/5qv3abc";
    for (place, before, after) in [
        (
            CLAUDE,
            r#"{"mcpServers":{"a":{"type":"http","url":"https:\/\/mcp.example/mcp?a=b#c","headers":{"X-Team":"${T}"},"timeout":9}}}"#,
            r#"{"mcpServers":{"a":{"type":"http","url":"http://127.0.0.1:20417/5qv3abc#firedoor:claude-code/user/a=https:\/\/mcp.example/mcp?a=b#c","headers":{"X-Team":"${T}"},"timeout":9}}}"#,
        ),
        (
            CURSOR,
            "{\"mcpServers\":{\"a\":{\n  \"url\": \"https://x/mcp\", // c\n  \"headers\": {\"a b\": \"c\"},\n  \"env\": {},\n}}}",
            "{\"mcpServers\":{\"a\":{\n  \"url\": \"http://127.0.0.1:20417/5qv3abc#firedoor:cursor/user/a=https://x/mcp\", // c\n  \"headers\": {\"a b\": \"c\"},\n  \"env\": {},\n}}}",
        ),
        (
            CODEX,
            "[mcp_servers.a]\r\nurl = 'https://mcp.example/mcp' # c\r\n",
            "[mcp_servers.a]\r\nurl = 'http://127.0.0.1:20417/5qv3abc#firedoor:codex/user/a=https://mcp.example/mcp' # c\r\n",
        ),
        (
            CONTINUE,
            "mcpServers:\n- name: a\n  url: https://mcp.example/mcp # t\n",
            "mcpServers:\n- name: a\n  url: http://127.0.0.1:20417/5qv3abc#firedoor:continue/user/a=https://mcp.example/mcp # t\n",
        ),
        (
            GOOSE,
            "extensions:\n  a:\n    type: streamable_http\n    uri: \"https://mcp.example/mcp\"\n",
            "extensions:\n  a:\n    type: streamable_http\n    uri: \"http://127.0.0.1:20417/5qv3abc#firedoor:goose/user/a=https://mcp.example/mcp\"\n",
        ),
    ] {
        for forget in [false, true] {
            let home = Home::new();
            let path = home.write(place, before);
            one(home.protect_at(&[], ADDRESS)).unwrap();
            assert_eq!(read(&path), after);
            assert_eq!(home.states()["a"], "protected");
            assert!(
                home.protect_at(&[], ADDRESS).is_empty() && home.protect(&[]).is_empty(),
                "protecting twice is nothing"
            );
            // The engine's database was lost: there is another address.
            one(home.protect_at(&[], "http://127.0.0.1:20418/other")).unwrap();
            assert_eq!(read(&path), after.replace(ADDRESS, "http://127.0.0.1:20418/other"));
            if forget {
                home.forget();
            }
            one(home.restore(&[])).unwrap();
            assert_eq!(read(&path), before);
            // And without Firedoor's programs.
            fs::write(&path, after).unwrap();
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../installers/restore.sh");
            let done =
                Command::new("sh").arg(script).arg("--yes").arg(&path).env("HOME", home.at("home")).output().unwrap();
            assert!(done.status.success(), "{done:?}");
            assert_eq!(read(&path), before);
        }
    }
}

#[test]
fn an_entry_with_an_address_that_its_client_wrote_anew_or_copied() {
    let home = Home::new();
    let path = home.write(CLAUDE, r#"{"mcpServers":{"a":{"type":"http","url":"https://x/mcp"}}}"#);
    one(home.protect_at(&[], "http://127.0.0.1:20417/k")).unwrap();
    fs::write(&path, read(&path).replace('/', "\\/").replace('=', "\\u003d").replace("\"a\"", "\"b\"")).unwrap();
    assert!(
        home.states()["b"].starts_with("misrouted: it runs in the name of claude-code/user/a"),
        "{:?}",
        home.states()
    );
    assert!(home.protect(&[]).is_empty());
    one(home.protect_at(&[], "http://127.0.0.1:20419/l")).unwrap();
    let want = r#"{"mcpServers":{"b":{"type":"http","url":"http://127.0.0.1:20419/l#firedoor:claude-code/user/b=https://x/mcp"}}}"#;
    assert_eq!(read(&path), want);
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), r#"{"mcpServers":{"b":{"type":"http","url":"https://x/mcp"}}}"#);
}

#[test]
fn what_gets_no_address_of_firedoors() {
    let home = Home::new();
    for (entry, why) in [
        (r#"{"command":"x"}"#, "no entry with an address"),
        (r#"{"type":"sse","url":"https://x/mcp"}"#, "HTTP+SSE"),
        (r#"{"url":"https://x/${T}"}"#, "the client fills something in"),
        (r#"{"url":"https://x/mcp?api_key=FAKEvalue"}"#, "looks like a secret"),
        (r#"{"url":"unix:///run/x"}"#, "is not http"),
    ] {
        let text = format!("{{\"mcpServers\":{{\"a\":{entry}}}}}");
        home.write(CURSOR, &text);
        let refused = home.clients.endpoint_for(&home.env(), &"cursor/user/a".parse().unwrap());
        assert!(refused.as_ref().is_err_and(|said| said.contains(why)), "{entry}: {refused:?}");
    }
    home.write(CURSOR, r#"{"mcpServers":{"a=b":{"url":"https://x/mcp"}}}"#);
    let refused = home.clients.endpoint_for(&home.env(), &"cursor/user/a=b".parse().unwrap());
    assert!(refused.is_err_and(|said| said.contains("its name has a sign")));
}
