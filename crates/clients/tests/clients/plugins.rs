//! Servers that plugins and extensions bring: which are found, and that their files come back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use firedoor_clients::State;
use firedoor_model::EntryId;

use crate::home::{Home, one, read};

const BARE: &str = r#"{"s":{"command":"node","args":["${CLAUDE_PLUGIN_ROOT}/s.mjs"]}}"#;
const WRAPPED: &str = r#"{"mcpServers":{"s":{"command":"node","args":["s.mjs"]}}}"#;

impl Home {
    /// Ids of what is found, with the scratch directory as `/`.
    fn ids(&self) -> Vec<String> {
        let root = self.at("").display().to_string().replace('/', "%2F");
        self.entries().iter().map(|e| e.id.to_string().replace(&root, "%2F")).collect()
    }

    /// Claude Code's list of installed plugins: name and directory.
    fn installed(&self, all: &[(&str, &str)]) {
        let mut plugins: BTreeMap<&str, Vec<BTreeMap<&str, PathBuf>>> = BTreeMap::new();
        for (name, dir) in all {
            plugins.entry(name).or_default().push([("installPath", self.at(dir))].into());
        }
        let list = BTreeMap::from([("plugins", plugins)]);
        self.write("home/.claude/plugins/installed_plugins.json", serde_json::to_vec(&list).unwrap());
    }
}

#[test]
fn the_copy_that_is_installed_counts() {
    let home = Home::new();
    let cache = "home/.claude/plugins/cache/market/p";
    home.write(&format!("{cache}/1/.mcp.json"), BARE);
    home.write(&format!("{cache}/2/.mcp.json"), BARE);
    home.installed(&[("p@market", &format!("{cache}/1"))]);
    assert_eq!(home.ids(), ["claude-code/plugin:p@market/s"]);
    one(home.protect(&[])).unwrap();
    // Another version is installed, and the first copy left.
    home.installed(&[("p@market", &format!("{cache}/2"))]);
    assert_eq!((home.ids().len(), home.states()["s"].as_str()), (1, "unprotected"));
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["s"], "protected");
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&home.at(&format!("{cache}/2/.mcp.json"))), BARE);
    // Two versions at once, as projects can have.
    home.installed(&[("p@market", &format!("{cache}/1")), ("p@market", &format!("{cache}/2"))]);
    assert_eq!(home.ids(), ["claude-code/plugin:p@market/s", "claude-code/plugin:p@market%2F2/s"]);
}

#[test]
fn what_a_manifest_holds_or_names() {
    let home = Home::new();
    let manifest = r#"{"name":"p","mcpServers":["./more.json","sub/packed.mcpb","../out.json","https://x/y.json"]}"#;
    home.write("p/.claude-plugin/plugin.json", manifest);
    home.write("p/.mcp.json", BARE);
    home.write("p/more.json", WRAPPED);
    home.write("out.json", WRAPPED);
    home.write("p/one.mcpb", "packed");
    home.installed(&[("p@m", "p"), ("q@m", "q"), ("gone@m", "gone")]);
    home.write("q/.claude-plugin/plugin.json", r#"{"mcpServers":{"t":{"command":"x"},"u":{"url":"https://x/mcp"}}}"#);
    home.write("home/.claude/skills/plain/.mcp.json", WRAPPED);
    home.write("home/.claude/skills/own/.mcp.json", WRAPPED);
    home.write("home/.claude/skills/own/.claude-plugin/plugin.json", "{}");
    let want = [
        "claude-code/plugin:p@m/s",
        "claude-code/plugin:p@m%2Fmore.json/s",
        "claude-code/plugin-manifest:q@m/t",
        "claude-code/plugin-manifest:q@m/u",
        "claude-code/plugin:own/s",
    ];
    assert_eq!(home.ids(), want);
    for result in home.protect(&[]) {
        result.result.unwrap();
    }
    assert!(home.states().values().all(|s| s == "protected"), "{:?}", home.states());
    let scan = home.clients.scan(&home.env());
    let left: Vec<&Path> =
        scan.clients[0].files.iter().filter(|f| f.unsupported.is_some()).map(|f| f.path.as_path()).collect();
    assert_eq!(left, [home.at("p/one.mcpb")]);
    for result in home.restore(&[]) {
        result.result.unwrap();
    }
    assert_eq!((read(&home.at("p/.mcp.json")), read(&home.at("p/more.json"))), (BARE.into(), WRAPPED.into()));
    assert_eq!(read(&home.at("out.json")), WRAPPED, "a plugin names only what is its own");
}

#[test]
fn a_marketplace_of_ones_own_is_run_where_it_lies() {
    let home = Home::new();
    let market = home.at("market");
    home.write(
        "market/.claude-plugin/marketplace.json",
        r#"{"plugins":[{"name":"p","source":"./p"},{"name":"idle","source":"./idle"},
            {"name":"far","source":{"source":"github","repo":"a/b"}},{"name":"out","source":"../out"}]}"#,
    );
    for dir in ["market/p", "market/idle", "out", "copy"] {
        home.write(&format!("{dir}/.mcp.json"), BARE);
    }
    home.installed(&[("p@m", "copy"), ("far@m", "copy"), ("out@m", "out")]);
    let known = |source: &str| format!(r#"{{"m":{{"source":{{"source":{source:?},"path":{market:?}}}}}}}"#);
    home.write("home/.claude/plugins/known_marketplaces.json", known("directory"));
    // Another client has the same plugins: each file is shown for one.
    home.write(
        "home/.copilot/settings.json",
        format!(
            r#"{{"extraKnownMarketplaces":{},"enabledPlugins":{{"p@m":true,"idle@m":true}} // c
            }}"#,
            known("directory")
        ),
    );
    let want = [
        "claude-code/plugin:far@m/s",
        "claude-code/plugin:out@m/s",
        "claude-code/plugin:p@m/s",
        "copilot-cli/plugin:idle@m/s",
    ];
    assert_eq!(home.ids(), want);
    let path = home.at("market/p/.mcp.json");
    fs::create_dir(home.at("market/.git")).unwrap();
    let scan = home.clients.scan(&home.env());
    let file = scan.clients.iter().flat_map(|c| &c.files).find(|f| f.path == path).unwrap();
    assert!(file.warnings[0].contains("git work tree"), "{:?}", file.warnings);
    one(home.protect(&["claude-code/plugin:p@m/s"])).unwrap();
    assert_eq!(read(&home.at("copy/.mcp.json")), BARE);
    // The client forgets the marketplace; the file is still known, and given back.
    fs::remove_dir_all(home.at("home/.claude")).unwrap();
    fs::remove_file(home.at("home/.copilot/settings.json")).unwrap();
    assert_eq!(home.ids(), ["claude-code/plugin:p@m/s"]);
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&path), BARE);
}

/// What Claude Code 2.1.197 reads where plugins have servers in several places, each written down as it was tried.
#[test]
fn what_a_marketplace_says_about_servers() {
    let home = Home::new();
    let market = home.at("market");
    let named =
        |name: &str, servers: &str| format!(r#"{{"name":"{name}","source":"./{name}","mcpServers":{servers}}}"#);
    let entry =
        |server: &str| format!(r#"{{"{server}":{{"command":"node","args":["${{CLAUDE_PLUGIN_ROOT}}/s.mjs"]}}}}"#);
    let plugins = [
        named("inline", &entry("i")),
        named("parts", &format!(r#"["./more.json", {}, {}]"#, entry("p"), r#"{"p":{"command":"later"}}"#)),
        named("file", r#""./more.json""#),
        named("own", &entry("not-read")),
        named("beside", &entry("b")),
        named("idle", &entry("not-used")),
        format!(r#"{{"name":"root","source":"./","mcpServers":{}}}"#, entry("r")),
        named("inline", &entry("not-the-first")),
    ];
    let text = format!("{{\"name\": \"m\",\n  \"plugins\": [\n    {}\n  ]}}\n", plugins.join(",\n    "));
    home.write("market/.claude-plugin/marketplace.json", &text);
    let manifest = format!(r#"{{"name":"own","mcpServers":["./more.json",{}]}}"#, entry("m"));
    home.write("market/own/.claude-plugin/plugin.json", &manifest);
    home.write("market/beside/.mcp.json", BARE);
    for dir in ["parts", "file", "own"] {
        home.write(&format!("market/{dir}/more.json"), WRAPPED);
    }
    for dir in ["inline", "idle"] {
        home.write(&format!("market/{dir}/keep"), "");
    }
    let used = ["inline", "parts", "file", "own", "beside", "root"];
    let used: Vec<(String, &str)> = used.iter().map(|name| (format!("{name}@m"), "market")).collect();
    home.installed(&used.iter().map(|(name, dir)| (name.as_str(), *dir)).collect::<Vec<_>>());
    let known = |source: &str, path: &Path| {
        let place = format!(r#"{{"source":{{"source":{source:?},"path":{path:?}}},"installLocation":{market:?}}}"#);
        home.write("home/.claude/plugins/known_marketplaces.json", format!(r#"{{"m":{place}}}"#));
    };
    let want = [
        "claude-code/plugin-manifest:own@m/m",
        "claude-code/plugin:beside@m/s",
        "claude-code/plugin:file@m%2Fmore.json/s",
        "claude-code/plugin:own@m%2Fmore.json/s",
        "claude-code/plugin:parts@m%2Fmore.json/s",
        "claude-code/marketplace:beside@m/b",
        "claude-code/marketplace:inline@m/i",
        "claude-code/marketplace:parts@m/p",
        "claude-code/marketplace:root@m/r",
    ];
    let sorted = || {
        let mut ids = home.ids();
        ids.sort();
        ids
    };
    let mut want: Vec<String> = want.iter().map(|id| (*id).to_owned()).collect();
    want.sort();
    for (source, path) in [("directory", market.clone()), ("file", market.join(".claude-plugin/marketplace.json"))] {
        known(source, &path);
        assert_eq!(sorted(), want, "{source}");
    }
    for entry in home.entries() {
        assert!(home.clients.declared_env(&home.env(), &entry.id).is_some(), "{} is found by its id", entry.id);
    }
    // Its variable is that of its own plugin.
    let id = EntryId::new("claude-code", "marketplace:inline@m", "i").unwrap();
    let direct = home.clients.invocations(&home.env(), &id, &BTreeMap::new()).unwrap().direct.unwrap();
    assert_eq!(direct.args, [home.at("market/inline/s.mjs").display().to_string()]);

    let path = home.at("market/.claude-plugin/marketplace.json");
    for result in home.protect(&[]) {
        result.result.unwrap();
    }
    assert!(home.entries().iter().all(|e| e.state == State::Protected), "{:?}", home.states());
    let edited = read(&path);
    assert!(edited.contains("not-the-first\":{\"command\":\"node\""), "of two plugins with one name the first is used");
    // One plugin is removed by the client; what was protected of it is still given back.
    home.installed(&[("parts@m", "market/parts"), ("inline@m", "market/inline")]);
    assert_eq!(sorted().iter().filter(|id| id.starts_with("claude-code/marketplace")).count(), 4);
    for result in home.restore(&["claude-code/marketplace:root@m/r"]) {
        result.result.unwrap();
    }
    let later = read(&path).replace("\"name\": \"m\",", "\"name\": \"m\", \"owner\": {},");
    home.write("market/.claude-plugin/marketplace.json", &later);
    for result in home.restore(&[]) {
        result.result.unwrap();
    }
    assert_eq!(read(&path), text.replace("\"name\": \"m\",", "\"name\": \"m\", \"owner\": {},"));
}

#[test]
fn a_copy_that_the_client_keeps_of_a_marketplace_is_left_alone() {
    let home = Home::new();
    let kept = "home/.claude/plugins/marketplaces/m";
    let text = r#"{"plugins":[{"name":"p","source":"./p","mcpServers":{"s":{"command":"x"}}}]}"#;
    home.write(&format!("{kept}/.claude-plugin/marketplace.json"), text);
    home.write("home/.claude/plugins/cache/m/p/1/keep", "");
    home.installed(&[("p@m", "home/.claude/plugins/cache/m/p/1")]);
    let place =
        format!(r#"{{"source":{{"source":"git","url":"https://x/m.git"}},"installLocation":{:?}}}"#, home.at(kept));
    home.write("home/.claude/plugins/known_marketplaces.json", format!(r#"{{"m":{place}}}"#));
    let entries = home.entries();
    assert_eq!(entries.iter().map(|e| e.id.to_string()).collect::<Vec<_>>(), ["claude-code/marketplace:p@m/s"]);
    let State::NotYet { reason } = &entries[0].state else { panic!("{:?}", entries[0].state) };
    // Why, and what to do instead.
    assert!(
        reason.contains("every update replaces") && reason.contains("plugin marketplace add DIRECTORY"),
        "{reason}"
    );
    assert_eq!(entries[0].command.as_ref().map(|c| c.raw()), Some("x"), "it is shown");
    assert!(home.protect(&[]).is_empty());
    assert_eq!(read(&home.at(&format!("{kept}/.claude-plugin/marketplace.json"))), text);
    // Nothing that is used has servers there.
    home.installed(&[]);
    assert_eq!(home.ids(), [""; 0]);
}

#[test]
fn plugins_of_editors() {
    let home = Home::new();
    let address =
        format!("file://{}", home.at("home/.vscode/agent-plugins/github.com/a/b c").display()).replace(' ', "%20");
    home.write(
        "home/.vscode/agent-plugins/installed.json",
        format!(r#"{{"version":1,"installed":[{{"pluginUri":"{address}","marketplace":"a/b"}},{{"pluginUri":"https://x/y"}}]}}"#),
    );
    home.write("home/.vscode/agent-plugins/github.com/a/b c/mcp.json", WRAPPED);
    home.write(
        "home/.config/Code/User/settings.json",
        format!(
            "{{ // c\n \"chat.pluginLocations\": {{ {:?}: true, \"~/mine\": true, \"relative\": true, }},\n}}",
            home.at("own")
        ),
    );
    home.write("own/plugin.json", r#"{"name":"own","mcpServers":["more.json"]}"#);
    home.write("own/more.json", BARE);
    let placed = r#"{"mcpServers":{"p":{"command":"node","args":["${PLUGIN_ROOT}/s.mjs"]}}}"#;
    home.write("home/mine/.plugin/plugin.json", placed);
    home.write("relative/mcp.json", WRAPPED);
    let want = [
        "vscode/plugin-standard:%2Fhome%2F.vscode%2Fagent-plugins%2Fgithub.com%2Fa%2Fb%20c/s",
        "vscode/plugin:%2Fown%2Fmore.json/s",
        "vscode/plugin-open-manifest:~%2Fmine/p",
    ];
    assert_eq!(home.ids(), want);
    let id: EntryId = want[2].parse().unwrap();
    let direct = home.clients.invocations(&home.env(), &id, &BTreeMap::new()).unwrap().direct.unwrap();
    assert_eq!(direct.args, [home.at("home/mine/s.mjs").display().to_string()]);
    assert_eq!(direct.env[std::ffi::OsStr::new("PLUGIN_ROOT")], home.at("home/mine"));
    for result in home.protect(&[]) {
        result.result.unwrap();
    }
    assert!(home.states().values().all(|s| s == "protected"), "{:?}", home.states());
    for result in home.restore(&[]) {
        result.result.unwrap();
    }
    assert_eq!(
        (read(&home.at("home/mine/.plugin/plugin.json")), read(&home.at("own/more.json"))),
        (placed.into(), BARE.into())
    );
}

#[test]
fn links_versions_and_lists_of_other_clients() {
    let home = Home::new();
    let linked = format!(r#"{{"type":"link","source":{:?}}}"#, home.at("linked"));
    home.write("home/.gemini/extensions/l/.gemini-extension-install.json", &linked);
    home.write("linked/gemini-extension.json", WRAPPED);
    let copied = format!(r#"{{"type":"local","source":{:?}}}"#, home.at("origin"));
    home.write("home/.gemini/extensions/c/.gemini-extension-install.json", copied);
    home.write("home/.gemini/extensions/c/gemini-extension.json", WRAPPED);
    home.write("origin/gemini-extension.json", WRAPPED);
    home.write("home/.codex/plugins/cache/m/p/1.9/.mcp.json", r#"{"old":{"command":"x"}}"#);
    home.write("home/.codex/plugins/cache/m/p/1.10/.mcp.json", BARE);
    let earlier = fs::metadata(home.at("home/.codex/plugins/cache/m/p/1.10")).unwrap().modified().unwrap();
    let old = fs::File::open(home.at("home/.codex/plugins/cache/m/p/1.9")).unwrap();
    old.set_modified(earlier - std::time::Duration::from_secs(9)).unwrap();
    let droid = format!(r#"{{"pluginId":"p@m","entry":{{"installPath":{:?}}}}}"#, home.at("droid"));
    home.write("home/.factory/plugins/installed_plugins/p-m-user-1.json", droid);
    home.write("droid/mcp.json", WRAPPED);
    home.write("home/.copilot/installed-plugins/m/p/.mcp.json", BARE);
    let want = [
        "codex/plugin:m%2Fp/s",
        "copilot-cli/plugin:m%2Fp/s",
        "factory-droid/plugin:p-m-user-1/s",
        "gemini-cli/extension:c/s",
        "gemini-cli/extension:l/s",
    ];
    assert_eq!(home.ids(), want);
    for entry in home.entries() {
        assert!(home.clients.declared_env(&home.env(), &entry.id).is_some(), "{} is found by its id", entry.id);
    }
}

#[test]
fn a_project_can_be_a_plugin() {
    let mut home = Home::new();
    home.write("work/.claude-plugin/plugin.json", r#"{"name":"p"}"#);
    home.write("work/.mcp.json", BARE);
    home.write("work/.claude/skills/k/.claude-plugin/plugin.json", r#"{"mcpServers":{"k":{"command":"x"}}}"#);
    let want = ["claude-code/plugin-manifest:%2Fwork%2F.claude%2Fskills%2Fk/k", "claude-code/plugin:%2Fwork/s"];
    assert_eq!(home.ids(), want);
    for entry in home.entries() {
        assert!(home.clients.declared_env(&home.env(), &entry.id).is_some(), "{} is found by its id", entry.id);
    }
    // Where its variable is filled in, too.
    home.vars.insert("OTHER".into(), "x".into());
    let id = EntryId::new("claude-code", &format!("plugin:{}", home.at("work").display()), "s").unwrap();
    let direct = home.clients.invocations(&home.env(), &id, &BTreeMap::new()).unwrap().direct.unwrap();
    assert_eq!(direct.args, [home.at("work/s.mjs").display().to_string()]);
    assert_eq!(direct.env[std::ffi::OsStr::new("CLAUDE_PLUGIN_ROOT")], home.at("work"));
    home.write("home/.copilot/installed-plugins/m/p/.mcp.json", r#"{"d":{"command":"x","cwd":"sub"}}"#);
    let id = EntryId::new("copilot-cli", "plugin:m/p", "d").unwrap();
    let direct = home.clients.invocations(&home.env(), &id, &BTreeMap::new()).unwrap().direct.unwrap();
    assert_eq!(direct.cwd, home.at("home/.copilot/installed-plugins/m/p/sub"));
}

#[test]
fn extensions_that_add_servers_by_code_are_shown() {
    let home = Home::new();
    home.write(
        "home/.vscode/extensions/a.b-1/package.json",
        r#"{"contributes":{"mcpServerDefinitionProviders":[{"id":"x"}]}}"#,
    );
    home.write("home/.vscode/extensions/c.d-1/package.json", r#"{"contributes":{}}"#);
    let scan = home.clients.scan(&home.env());
    let files: Vec<&PathBuf> = scan.clients.iter().flat_map(|c| &c.files).map(|f| &f.path).collect();
    assert_eq!(files, [&home.at("home/.vscode/extensions/a.b-1/package.json")]);
}

#[test]
fn lists_that_are_damaged_or_lead_in_circles_do_no_harm() {
    let list = "home/.claude/plugins/installed_plugins.json";
    for text in ["", "{", "[]", "null", r#"{"plugins":3}"#, r#"{"plugins":{"a@b":[{"installPath":3}]}}"#] {
        let home = Home::new();
        home.write(list, text);
        assert_eq!((home.problem().as_str(), home.ids().len()), ("", 0), "{text}");
    }
    let home = Home::new();
    home.write("home/.claude/plugins/x/.mcp.json", BARE);
    home.installed(&[("r@m", "none/../home"), ("x@m", "home/.claude/plugins/x"), ("y@m", "home/.claude/plugins/./x")]);
    home.write("home/.claude.json", r#"{"mcpServers":{}}"#);
    assert_eq!(home.ids(), ["claude-code/plugin:x@m/s"], "one directory is one plugin");
}
