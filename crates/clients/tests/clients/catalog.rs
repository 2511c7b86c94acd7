//! Every client of the catalog: its files are found, protected and come back byte for byte, or are shown and left.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use firedoor_clients::System;

use crate::home::{Home, one};

macro_rules! form {
    ($name:literal) => {
        include_bytes!(concat!("samples/forms/", $name)).as_slice()
    };
}

/// A file, and its servers that can be protected.
type Form = (&'static [u8], &'static str);

const STRICT: Form = (form!("strict.json"), "bare far far too notes resting");
const COMPACT: Form = (form!("compact.json"), "notes");
const BARE: Form = (form!("bare.json"), "far notes");
const COMMENTS: Form = (form!("comments.json"), "bare far notes");
const COMMAS: Form = (form!("commas.jsonc"), "bare notes");
const ARRAYS: Form = (form!("arrays.jsonc"), "far lines notes");
const EITHER: Form = (form!("array-or-text.jsonc"), "bare far notes");
const CRUSH: Form = (form!("crush.json"), "far notes");
const ZED: Form = (form!("zed.jsonc"), "notes older");
const AMP: Form = (form!("amp.jsonc"), "notes");
const SETTINGS: Form = (form!("settings.jsonc"), "notes");
const SERVERS: Form = (include_bytes!("samples/vscode.json"), "full plain remote");
const TRANSPORT: Form = (form!("transport.json"), "far notes");
const LIST: Form = (form!("list.json"), "far notes");
const UNNAMED: Form = (form!("unnamed.jsonc"), "1 3 named");
const ARRAY_OF_TABLES: Form = (form!("array-of-tables.toml"), "bare far lines notes");
const YAML_LIST: Form = (form!("list.yaml"), "bare far far in lines notes");
const YAML_MAP: Form = (form!("map.yaml"), "bare hosted lines notes tight");
const GOOSE: Form = (form!("goose.yaml"), "bare far notes");
const TABLES: Form = (form!("tables.toml"), "bare notes");

/// Client, scope, file and its form.
#[rustfmt::skip]
const FILES: &[(&str, &str, &str, Form)] = &[
    ("5ire", "list", "home/.config/5ire/mcp.json", LIST),
    ("5ire", "user", "home/.config/5ire/mcp.json", COMPACT),
    ("amazon-q", "agents", "home/.aws/amazonq/cli-agents/a b.json", STRICT),
    ("amazon-q", "ide", "home/.aws/amazonq/agents/default.json", STRICT),
    ("amazon-q", "legacy", "home/.aws/amazonq/mcp.json", STRICT),
    ("amazon-q", "project-agents", "work/.amazonq/cli-agents/x.json", COMPACT),
    ("amazon-q", "project-ide", "work/.amazonq/agents/default.json", COMPACT),
    ("amazon-q", "project-legacy", "work/.amazonq/mcp.json", COMPACT),
    ("amp", "project", "work/.amp/settings.json", AMP),
    ("amp", "vscode", "home/.config/Code/User/settings.json", (form!("vscode-amp.jsonc"), "notes")),
    ("cody", "user", "home/.config/Code/User/settings.json", (form!("vscode-cody.jsonc"), "notes")),
    ("amp", "user", "home/.config/amp/settings.json", AMP),
    ("antigravity", "ide-settings", "home/.config/Antigravity IDE/User/settings.json", SETTINGS),
    ("antigravity", "settings", "home/.config/Antigravity/User/settings.json", SETTINGS),
    ("antigravity", "unified", "home/.gemini/config/mcp_config.json", STRICT),
    ("antigravity", "user", "home/.gemini/antigravity/mcp_config.json", STRICT),
    ("anythingllm", "user", "home/.config/anythingllm-desktop/storage/plugins/anythingllm_mcp_servers.json", STRICT),
    ("augment", "user", "home/.augment/settings.json", COMMAS),
    ("claude-code", "project", "work/.mcp.json", STRICT),
    ("claude-code", "user", "home/.claude.json", STRICT),
    ("claude-desktop", "user", "home/.config/Claude/claude_desktop_config.json", STRICT),
    ("claude-code", "project", "work/.mcp.json", BARE),
    ("claude-code", "plugin-manifest", "home/.claude/skills/p/.claude-plugin/plugin.json", STRICT),
    ("cline", "cli", "home/.cline/data/settings/cline_mcp_settings.json", STRICT),
    ("cline", "in-cursor", "home/.config/Cursor/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", STRICT),
    ("cline", "user", "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", STRICT),
    ("codex", "user", "home/.codex/config.toml", TABLES),
    ("codex", "plugin", "home/.codex/plugins/cache/m/p/1/.mcp.json", BARE),
    ("codex", "plugin-manifest", "home/.codex/plugins/cache/m/p/1/.claude-plugin/plugin.json", STRICT),
    ("codex", "plugin-own-manifest", "home/.codex/plugins/cache/m/p/1/.codex-plugin/plugin.json", STRICT),
    ("continue", "blocks", "home/.continue/mcpServers/x.json", STRICT),
    ("continue", "project-blocks", "work/.continue/mcpServers/x.json", COMPACT),
    ("copilot-cli", "plugin", "home/.copilot/installed-plugins/m/p/.mcp.json", BARE),
    ("copilot-cli", "plugin-manifest", "home/.copilot/installed-plugins/m/p/.claude-plugin/plugin.json", STRICT),
    ("copilot-cli", "plugin-own-manifest", "home/.copilot/installed-plugins/m/p/plugin.json", STRICT),
    ("copilot-cli", "project", "work/.github/mcp.json", BARE),
    ("copilot-cli", "project", "work/.github/mcp.json", STRICT),
    ("copilot-cli", "user", "home/.copilot/mcp-config.json", COMMAS),
    ("crush", "data", "home/.local/share/crush/crush.json", CRUSH),
    ("crush", "project", "work/crush.json", CRUSH),
    ("crush", "project-dot", "work/.crush.json", CRUSH),
    ("crush", "user", "home/.config/crush/crush.json", CRUSH),
    ("cursor", "plugin", "home/.cursor/plugins/local/p/mcp.json", BARE),
    ("cursor", "plugin-dot", "home/.cursor/plugins/cache/m/p/1/.mcp.json", STRICT),
    ("cursor", "plugin-manifest", "home/.cursor/plugins/local/p/.cursor-plugin/plugin.json", STRICT),
    ("cursor", "user", "home/.cursor/mcp.json", COMMAS),
    ("factory-droid", "project", "work/.factory/mcp.json", COMMENTS),
    ("factory-droid", "user", "home/.factory/mcp.json", COMMENTS),
    ("gemini-cli", "extension", "home/.gemini/extensions/e/gemini-extension.json", STRICT),
    ("gemini-cli", "user", "home/.gemini/settings.json", COMMENTS),
    ("grok-build", "project", "work/.grok/config.toml", TABLES),
    ("grok-build", "user", "home/.grok/config.toml", TABLES),
    ("jan", "user", "home/.config/Jan/data/mcp_config.json", STRICT),
    ("junie", "project", "work/.junie/mcp/mcp.json", COMPACT),
    ("junie", "user", "home/.junie/mcp/mcp.json", STRICT),
    ("kilo-code", "kilo", "home/.config/kilo/kilo.jsonc", ARRAYS),
    ("kilo-code", "kilo-project", "work/kilo.jsonc", ARRAYS),
    ("kilo-code", "kilo-project-dir", "work/.kilo/kilo.jsonc", ARRAYS),
    ("kilo-code", "project", "work/.kilocode/mcp.json", STRICT),
    ("kilo-code", "user", "home/.config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", STRICT),
    ("kimi-cli", "code", "home/.kimi-code/mcp.json", STRICT),
    ("kimi-cli", "project", "work/.kimi-code/mcp.json", STRICT),
    ("kimi-cli", "user", "home/.kimi/mcp.json", STRICT),
    ("kiro", "agents", "home/.kiro/agents/a.json", STRICT),
    ("kiro", "powers", "home/.kiro/powers/installed/p/mcp.json", STRICT),
    ("kiro", "project", "work/.kiro/settings/mcp.json", STRICT),
    ("kiro", "user", "home/.kiro/settings/mcp.json", STRICT),
    ("lm-studio", "legacy", "home/.cache/lm-studio/mcp.json", STRICT),
    ("lm-studio", "user", "home/.lmstudio/mcp.json", STRICT),
    ("mcp-inspector", "project", "work/mcp.json", STRICT),
    ("mcp-inspector", "user", "home/.mcp-inspector/mcp.json", STRICT),
    ("mcporter", "project", "work/config/mcporter.json", EITHER),
    ("mcporter", "user", "home/.mcporter/mcporter.json", EITHER),
    ("opencode", "home", "home/.opencode/opencode.jsonc", ARRAYS),
    ("opencode", "legacy", "home/.config/opencode/config.json", ARRAYS),
    ("opencode", "project", "work/opencode.jsonc", ARRAYS),
    ("opencode", "project-dir", "work/.opencode/opencode.jsonc", ARRAYS),
    ("opencode", "project-json", "work/opencode.json", ARRAYS),
    ("opencode", "user", "home/.config/opencode/opencode.jsonc", ARRAYS),
    ("opencode", "user-json", "home/.config/opencode/opencode.json", ARRAYS),
    ("qoder", "user", "home/.qoder/mcp.json", STRICT),
    ("qwen-code", "extension", "home/.qwen/extensions/e/qwen-extension.json", STRICT),
    ("qwen-code", "project", "work/.qwen/settings.json", COMMENTS),
    ("qwen-code", "user", "home/.qwen/settings.json", COMMENTS),
    ("roo-code", "project", "work/.roo/mcp.json", STRICT),
    ("roo-code", "remote", "home/.vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", STRICT),
    ("roo-code", "user", "home/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", STRICT),
    ("rovo-dev", "user", "home/.rovodev/mcp.json", TRANSPORT),
    ("sema4", "user", "home/.sema4ai/sema4ai-studio/mcp_servers.json", TRANSPORT),
    ("tabnine", "legacy", "home/.tabnine/mcp_servers.json", STRICT),
    ("tabnine", "project", "work/.tabnine/agent/settings.json", COMMENTS),
    ("tabnine", "user", "home/.tabnine/agent/settings.json", COMMENTS),
    ("tome", "user", "home/.tome/mcp_config.json", STRICT),
    ("trae", "cn", "home/.config/Trae CN/User/mcp.json", STRICT),
    ("trae", "project", "work/.trae/mcp.json", STRICT),
    ("trae", "user", "home/.config/Trae/User/mcp.json", STRICT),
    ("void", "user", "home/.void-editor/mcp.json", STRICT),
    ("vscode", "user", "home/.config/Code/User/mcp.json", SERVERS),
    ("vscode-insiders", "profile", "home/.config/Code - Insiders/User/profiles/p/mcp.json", SERVERS),
    ("vscode-insiders", "settings", "home/.config/Code - Insiders/User/settings.json", SETTINGS),
    ("vscode-insiders", "user", "home/.config/Code - Insiders/User/mcp.json", SERVERS),
    ("vscodium", "user", "home/.config/VSCodium/User/mcp.json", SERVERS),
    ("warp", "project", "work/.warp/.mcp.json", STRICT),
    ("warp", "user", "home/.warp/.mcp.json", BARE),
    ("warp", "user", "home/.warp/.mcp.json", STRICT),
    ("windsurf", "jetbrains", "home/.codeium/mcp_config.json", STRICT),
    ("windsurf", "next", "home/.codeium/windsurf-next/mcp_config.json", STRICT),
    ("windsurf", "user", "home/.codeium/windsurf/mcp_config.json", STRICT),
    ("witsy", "user", "home/.config/Witsy/settings.json", STRICT),
    ("zed", "flatpak", "home/.var/app/dev.zed.Zed/config/zed/settings.json", ZED),
    ("zed", "project", "work/.zed/settings.json", ZED),
    ("continue", "legacy", "home/.continue/config.json", UNNAMED),
    ("continue", "user", "home/.continue/config.yaml", YAML_LIST),
    ("continue", "yaml-blocks", "home/.continue/mcpServers/x.yaml", YAML_LIST),
    ("continue", "yaml-project-blocks", "work/.continue/mcpServers/x.yaml", YAML_LIST),
    ("goose", "user", "home/.config/goose/config.yaml", GOOSE),
    ("librechat", "project", "work/librechat.yaml", YAML_MAP),
    ("mistral-vibe", "project", "work/.vibe/config.toml", ARRAY_OF_TABLES),
    ("mistral-vibe", "user", "home/.vibe/config.toml", ARRAY_OF_TABLES),
    ("open-webui-mcpo", "project", "work/mcpo.json", STRICT),
    ("zed", "user", "home/.config/zed/settings.json", ZED),
];

/// The same on other systems.
#[rustfmt::skip]
const ELSEWHERE: &[(System, &str, &str, &str, Form)] = &[
    (System::Macos, "amp", "user", "home/.config/amp/settings.json", AMP),
    (System::Macos, "boltai", "user", "home/.boltai/mcp.json", STRICT),
    (System::Macos, "claude-desktop", "user", "home/Library/Application Support/Claude/claude_desktop_config.json", STRICT),
    (System::Macos, "cline", "user", "home/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", STRICT),
    (System::Macos, "enconvo", "user", "home/.config/enconvo/mcp_config.json", STRICT),
    (System::Macos, "goose", "user", "home/.config/goose/config.yaml", GOOSE),
    (System::Macos, "opencode", "user", "home/.config/opencode/opencode.jsonc", ARRAYS),
    (System::Macos, "raycast", "extension", "home/Library/Application Support/com.raycast.macos/extensions/a-b/mcp-config.json", STRICT),
    (System::Macos, "vscode", "user", "home/Library/Application Support/Code/User/mcp.json", SERVERS),
    (System::Windows, "amp", "user", "home/AppData/Roaming/amp/settings.json", AMP),
    (System::Windows, "claude-desktop", "user", "home/AppData/Roaming/Claude/claude_desktop_config.json", STRICT),
    (System::Windows, "crush", "data", "home/AppData/Local/crush/crush.json", CRUSH),
    (System::Windows, "goose", "user", "home/AppData/Roaming/Block/goose/config/config.yaml", GOOSE),
    (System::Windows, "opencode", "user", "home/.config/opencode/opencode.jsonc", ARRAYS),
    (System::Windows, "qoder", "user", "home/AppData/Roaming/Qoder/SharedClientCache/mcp.json", STRICT),
    (System::Windows, "sema4", "user", "home/AppData/Local/sema4ai/sema4ai-studio/mcp_servers.json", TRANSPORT),
    (System::Windows, "visual-studio", "project", "work/.mcp.json", SERVERS),
    (System::Windows, "visual-studio", "project-user", "work/.vs/mcp.json", SERVERS),
    (System::Windows, "visual-studio", "user", "home/.mcp.json", SERVERS),
    (System::Windows, "vscode", "user", "home/AppData/Roaming/Code/User/mcp.json", SERVERS),
    (System::Windows, "zed", "user", "home/AppData/Roaming/Zed/settings.json", ZED),
];

/// Client, scope and file of what is only shown, and a word of the reason.
const SHOWN: &[(&str, &str, &str, &str)] = &[
    ("cherry-studio", "user", "home/.config/CherryStudio/Local Storage/leveldb/CURRENT", "database"),
    ("claude-desktop", "extension", "home/.config/Claude/Claude Extensions/a.b/manifest.json", "extension"),
    ("crush", "script", "home/.config/crush/crushrc", "script"),
    ("crush", "project-script", "work/crushrc", "script"),
    ("crush", "project-dot-script", "work/.crushrc", "script"),
    ("jetbrains-ai", "user", "home/.config/JetBrains/IdeaIC2026.1/options/llm.mcpServers.xml", "XML"),
    ("msty", "user", "home/.config/MstyStudio/data.db", "database"),
];

#[test]
fn every_file_comes_back_byte_for_byte() {
    let here = FILES.iter().map(|(client, scope, place, form)| (System::Linux, *client, *scope, *place, *form));
    for (system, client, scope, place, (bytes, want)) in here.chain(ELSEWHERE.iter().copied()) {
        for forget in [false, true] {
            let home = Home { system, ..Home::new() };
            let path = home.write(place, bytes);
            let found = home.entries();
            assert!(!found.is_empty(), "{place}: {}", home.problem());
            for entry in &found {
                assert_eq!(entry.id.client(), client, "{place}");
                assert_eq!(entry.id.scope().split(':').next(), Some(scope), "{place}");
            }
            one(home.protect(&[])).unwrap_or_else(|e| panic!("{place}: {e}"));
            let protected = fs::read(&path).unwrap();
            let names: Vec<String> =
                home.states().into_iter().filter(|(_, s)| s == "protected").map(|(n, _)| n).collect();
            assert_eq!(names.join(" "), want, "{place}: {:?}", home.states());
            for entry in home.entries().iter().filter(|e| e.state.can_restore()) {
                let names = home.clients.declared_env(&home.env(), &entry.id);
                assert!(names.is_some(), "{} is found by its id", entry.id);
            }
            assert!(home.protect(&[]).is_empty(), "{place}: protecting twice is nothing");
            assert_eq!(fs::read(&path).unwrap(), protected, "{place}");
            if forget {
                home.forget();
            }
            one(home.restore(&[])).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes, "{place}, journal gone: {forget}");
            assert!(home.restore(&[]).is_empty(), "{place}: restoring twice is nothing");
        }
    }
}

/// What a client writes while the script waits for an answer is kept, also where the file was as Firedoor wrote it before.
#[test]
fn the_script_overwrites_nothing_that_is_written_meanwhile() {
    let home = Home::new();
    let path = home.write("home/.cursor/mcp.json", r#"{"mcpServers":{"a":{"command":"x","args":["1"]}}}"#);
    home.protect(&[]);
    let mut script = home.asking_script();
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut script = script.spawn().unwrap();
    let (mut say, mut hear) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let mut asked = || {
        let mut said = Vec::new();
        while !said.ends_with(b"[y/N] ") {
            let mut byte = [0];
            assert_eq!(hear.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
            said.extend(byte);
        }
        String::from_utf8(said).unwrap()
    };
    assert!(!asked().contains(r#""new""#));
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"1\"]", "\"1\"],\"new\":true")).unwrap();
    say.write_all(b"y\n").unwrap();
    // It is shown again as it would be by now.
    assert!(asked().contains(r#""new""#));
    say.write_all(b"y\n").unwrap();
    drop(say);
    let done = script.wait_with_output().unwrap();
    assert!(done.status.success());
    assert!(String::from_utf8_lossy(&done.stderr).contains("meanwhile"));
    let text = r#"{"mcpServers":{"a":{"command":"x","args":["1"],"new":true}}}"#;
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing is left beside it");
}

/// The way back without Firedoor: a shell, and the text of the entries or the saved original.
#[test]
fn the_script_gives_back_every_byte() {
    let here = FILES.iter().map(|(.., place, (bytes, _))| (*place, *bytes));
    for (place, bytes) in here.chain(crate::round_trip::samples().into_iter().map(|(place, _, bytes)| (place, bytes))) {
        let home = Home::new();
        let path = home.write(place, bytes);
        one(home.protect(&[])).unwrap();
        assert_ne!(fs::read(&path).unwrap(), bytes, "{place}");
        let done = home.script().arg(&path).output().unwrap();
        let shown = || String::from_utf8_lossy(&[done.stdout.as_slice(), &done.stderr].concat()).into_owned();
        assert!(done.status.success(), "{place}: {}", shown());
        assert_eq!(fs::read(&path).unwrap(), bytes, "{place}: {}", shown());
    }
}

#[test]
fn the_script_knows_the_files_and_keeps_later_edits() {
    let home = Home::new();
    let text = r#"{"mcpServers":{"a":{"command":"x","args":["1"]},"b":{"command":"y"}}}"#;
    let (first, second) = (home.write("home/.claude.json", text), home.write("home/.cursor/mcp.json", text));
    let notes = home.write("home/.gemini/settings.json", r#"{"mcpServers":{"a":{"command":"x"}}}"#);
    home.protect(&[]);
    fs::set_permissions(&first, fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(&second, fs::read_to_string(&second).unwrap().replace("\"1\"]", "\"2\"],\"new\":true")).unwrap();
    // An entry that somebody took apart half is left, and said so.
    fs::write(&notes, fs::read_to_string(&notes).unwrap().replace("\"--\",", "")).unwrap();
    let half = fs::read(&notes).unwrap();
    let done = home.script().output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("settings.json: left as it is"), "{done:?}");
    assert_eq!(fs::read_to_string(&first).unwrap(), text);
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_to_string(&second).unwrap(), text.replace("\"1\"]", "\"2\"],\"new\":true"));
    assert_eq!(fs::read(&notes).unwrap(), half);
    let again = home.script().arg(&first).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing is protected"), "{again:?}");
    // A remote entry with a variable that no header was called like.
    fs::write(&first, r#"{"mcpServers":{"a":{"url":"https://x/mcp","headers":{"X-A":"1"}}}}"#).unwrap();
    one(home.protect(&["claude-code"])).unwrap();
    let added =
        fs::read_to_string(&first).unwrap().replace("\"FIREDOOR_HEADER_1\"", "\"OWN\":\"2\",\"FIREDOOR_HEADER_1\"");
    fs::write(&first, &added).unwrap();
    let done = home.script().arg(&first).output().unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains("the variable OWN was added"), "{done:?}");
    assert_eq!(fs::read_to_string(&first).unwrap(), added);
}

#[test]
fn what_cannot_be_edited_is_shown_and_left() {
    for (client, scope, place, word) in SHOWN {
        let home = Home::new();
        let text = "mcpServers: { secret: FAKEvalue }";
        let path = home.write(place, text);
        let scan = home.clients.scan(&home.env());
        let found = scan.clients.iter().find(|c| c.id == *client).and_then(|c| {
            c.files.iter().find(|f| path.starts_with(&f.path) && f.scope.split(':').next() == Some(scope))
        });
        let found = found.unwrap_or_else(|| panic!("{place}"));
        let left = found.unsupported.as_ref().unwrap_or_else(|| panic!("{place}"));
        assert!(left.reason.contains(word) && !left.step.is_empty(), "{place}: {left:?}");
        assert!(found.entries.is_empty() && found.problem.is_none(), "{place}");
        assert!(home.protect(&[]).is_empty(), "{place}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn every_client_is_tested() {
    let home = Home::new();
    let tested: BTreeSet<&str> =
        FILES.iter().map(|f| f.0).chain(ELSEWHERE.iter().map(|f| f.1)).chain(SHOWN.iter().map(|s| s.0)).collect();
    let known: BTreeSet<&str> = home.clients.known().map(|(id, _)| id).collect();
    assert_eq!(tested, known);
}

#[test]
fn an_array_written_anew_by_its_client_is_restored() {
    let home = Home::new();
    let place = "home/.config/opencode/opencode.json";
    let path = home.write(place, r#"{"mcp":{"a":{"type":"local","command":["x","1"],"environment":{"K":"v"}}}}"#);
    let ids: Vec<_> = home.entries().into_iter().map(|e| e.id).collect();
    assert_eq!(home.clients.declared_env(&home.env(), &ids[0]), Some(["K".to_owned()].into()));
    one(home.protect(&[])).unwrap();
    let written = fs::read_to_string(&path).unwrap();
    let shim = home.shim();
    let want = format!(r#"["{}","--entry","opencode/user-json/a","--","x","1"]"#, shim.display());
    assert!(written.contains(&want), "{written}");
    fs::write(&path, written.replace("\",\"", "\",\n\"").replace("/bin/firedoor-shim", "/old/firedoor-shim")).unwrap();
    assert!(home.states()["a"].starts_with("misrouted"));
    one(home.protect(&[])).unwrap();
    assert_eq!(home.states()["a"], "protected");
    one(home.restore(&[])).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"command\":[\"x\",\n\"1\"]"), "{text}");
}
