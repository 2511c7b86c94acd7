//! Servers that plugins and extensions bring: which are found, and that their files come back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

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
