//! The whole of watching, with the system's own notifications, in a scratch home.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use firedoor_model::{EntryId, notice::Noticed, paths::Paths};

use super::*;

const ONE: &str = r#"{"mcpServers":{"a":{"command":"x"}}}"#;
const TWO: &str = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}"#;

struct Scene {
    root: tempfile::TempDir,
    news: Receiver<News>,
    _watch: Option<Watch>,
}

impl Scene {
    /// A home, furnished, and then watched.
    fn new(furnish: impl FnOnce(&Self), most: usize) -> Self {
        let (say, news) = channel();
        let mut scene = Self { root: tempfile::tempdir().unwrap(), news, _watch: None };
        furnish(&scene);
        let watch = Watch::bounded(Clients::load().unwrap(), scene.env(), most, move |news| drop(say.send(news)));
        scene._watch = Some(watch.unwrap());
        scene
    }

    fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    fn env(&self) -> Env<'static> {
        let home = self.home();
        let own = home.clone().into_os_string();
        let look = move |name: &str| (name == "HOME").then(|| own.clone());
        let env = Env::new(Paths::from_env(&look).unwrap(), home, look);
        env.with_shim(&self.root.path().join("firedoor-shim"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The next news, which must come in time.
    #[track_caller]
    fn heard(&self) -> News {
        // What is promised is two seconds; a busy machine gets more before a test fails.
        self.news.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// The start: nothing happened yet.
    #[track_caller]
    fn started(&self) -> Watching {
        let first = self.heard();
        assert!(first.changes.is_empty(), "{:?}", first.changes);
        first.watching
    }

    /// The next changes, as words.
    #[track_caller]
    fn changes(&self) -> Vec<String> {
        loop {
            let news = self.heard();
            let word = |c: &Change| format!("{:?} {}", c.noticed, c.id().map(ToString::to_string).unwrap_or_default());
            let words: Vec<String> = news.changes.iter().map(word).collect();
            // News of how far watching reaches only.
            if !words.is_empty() {
                return words;
            }
        }
    }
}

#[test]
fn new_clients_files_and_servers_appear_in_time() {
    let scene = Scene::new(|_| {}, MAX_WATCHES);
    scene.started();
    let begin = Instant::now();
    scene.write(".cursor/mcp.json", ONE);
    assert_eq!(scene.changes(), ["Appeared cursor/user/a"]);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    scene.write(".cursor/mcp.json", TWO);
    assert_eq!(scene.changes(), ["Appeared cursor/user/b"]);
    // Below directories that were not there, one after the other.
    scene.write(".config/Code/User/profiles/p1/mcp.json", r#"{"servers":{"c":{"command":"x"}}}"#);
    assert_eq!(scene.changes(), ["Appeared vscode/profile:p1/c"]);
    fs::remove_dir_all(scene.home().join(".cursor")).unwrap();
    assert_eq!(scene.changes(), ["Removed cursor/user/a", "Removed cursor/user/b"]);
    scene.write(".cursor/mcp.json", ONE);
    assert_eq!(scene.changes(), ["Appeared cursor/user/a"]);
}

#[test]
fn files_that_are_replaced_and_links_are_followed() {
    let furnish = |scene: &Scene| {
        scene.write("dot/cursor.json", ONE);
        fs::create_dir(scene.home().join(".cursor")).unwrap();
        symlink("../dot/cursor.json", scene.home().join(".cursor/mcp.json")).unwrap();
    };
    let scene = Scene::new(furnish, MAX_WATCHES);
    scene.started();
    // As editors save: beside, then over it. The temporary name itself is nobody's.
    scene.write("dot/cursor.json.tmp1", TWO);
    fs::rename(scene.home().join("dot/cursor.json.tmp1"), scene.home().join("dot/cursor.json")).unwrap();
    assert_eq!(scene.changes(), ["Appeared cursor/user/b"]);
    // The link goes elsewhere.
    scene.write("dot/other.json", ONE);
    symlink("../dot/other.json", scene.home().join(".cursor/new")).unwrap();
    fs::rename(scene.home().join(".cursor/new"), scene.home().join(".cursor/mcp.json")).unwrap();
    assert_eq!(scene.changes(), ["Removed cursor/user/b"]);
    scene.write("dot/other.json", TWO);
    assert_eq!(scene.changes(), ["Appeared cursor/user/b"]);
    // A directory on the way is moved away, and another one put in its place.
    fs::rename(scene.home().join(".cursor"), scene.home().join("was")).unwrap();
    scene.write(".cursor/mcp.json", ONE);
    assert_eq!(scene.changes(), ["Removed cursor/user/b"]);
    scene.write(".cursor/mcp.json", TWO);
    assert_eq!(scene.changes(), ["Appeared cursor/user/b"]);
}

#[test]
fn every_client_that_shares_a_file_is_looked_at() {
    let furnish = |scene: &Scene| {
        scene.write("dot/shared.json", ONE);
        for own in [".cursor/mcp.json", ".codeium/windsurf/mcp_config.json"] {
            let own = scene.home().join(own);
            fs::create_dir_all(own.parent().unwrap()).unwrap();
            symlink(scene.home().join("dot/shared.json"), own).unwrap();
        }
    };
    let scene = Scene::new(furnish, MAX_WATCHES);
    scene.started();
    scene.write("dot/shared.json", TWO);
    assert_eq!(scene.changes(), ["Appeared windsurf/user/b", "Appeared cursor/user/b"]);
}

#[test]
fn an_empty_file_does_not_say_that_its_servers_are_gone() {
    let scene = Scene::new(|scene| scene.write(".cursor/mcp.json", ONE), MAX_WATCHES);
    scene.started();
    scene.write(".cursor/mcp.json", "\n");
    let news = scene.heard();
    let noticed: Vec<Noticed> = news.changes.iter().map(|c| c.noticed).collect();
    assert_eq!(noticed, [Noticed::Unreadable]);
    let why = news.changes.iter().find_map(|c| c.detail.as_ref()).unwrap();
    assert!(why.raw().contains("the file is empty"), "{}", why.raw());
    scene.write(".cursor/mcp.json", TWO);
    assert_eq!(scene.changes(), ["Appeared cursor/user/b"]);
}

#[test]
fn what_says_nothing_new_is_not_told() {
    let scene = Scene::new(|scene| scene.write(".cursor/mcp.json", ONE), MAX_WATCHES);
    scene.started();
    let file = scene.home().join(".cursor/mcp.json");
    let mut servers = Vec::new();
    for round in 0..5 {
        // Rewritten in another form, all the time, as some clients do.
        for blanks in 0..12 {
            scene.write(".cursor/mcp.json.tmp", &ONE.replace(':', &format!("{}:", " ".repeat(blanks))));
            fs::rename(scene.home().join(".cursor/mcp.json.tmp"), &file).unwrap();
        }
        // What is told next is what was written after that, and nothing else.
        servers.push(format!(r#""s{round}":{{"command":"x"}}"#));
        scene.write(".qwen/settings.tmp", &format!(r#"{{"mcpServers":{{{}}}}}"#, servers.join(",")));
        fs::rename(scene.home().join(".qwen/settings.tmp"), scene.home().join(".qwen/settings.json")).unwrap();
        assert_eq!(scene.changes(), [format!("Appeared qwen-code/user/s{round}")]);
    }
}

#[test]
fn a_plugin_that_is_renewed_has_lost_its_protection() {
    let list = |scene: &Scene, version: &str| {
        let dir = scene.home().join("cache").join(version);
        let text = format!(r#"{{"plugins":{{"p@m":[{{"installPath":{dir:?}}}]}}}}"#);
        scene.write(".claude/plugins/installed_plugins.json", &text);
    };
    let furnish = |scene: &Scene| {
        fs::write(scene.root.path().join("firedoor-shim"), "").unwrap();
        scene.write("cache/1/.mcp.json", ONE);
        scene.write("cache/2/.mcp.json", ONE);
        list(scene, "1");
    };
    let scene = Scene::new(furnish, MAX_WATCHES);
    scene.started();
    let (clients, env) = (Clients::load().unwrap(), scene.env());
    let chosen = [EntryId::new("claude-code", "plugin:p@m", "a").unwrap()].into();
    let plan = clients.plan_protect(&env, &chosen, env.shim.as_deref().unwrap()).unwrap();
    clients.apply(&env, &plan).remove(0).result.unwrap();
    assert_eq!(scene.changes(), ["Protected claude-code/plugin:p@m/a"]);
    list(&scene, "2");
    assert_eq!(scene.changes(), ["Dropped claude-code/plugin:p@m/a"]);
    // And so it is said at the start of who was not there.
    drop(scene._watch);
    let first = change::at_first(&clients.seen(&env));
    assert_eq!(first.len(), 1, "{first:?}");
}

#[test]
fn projects_are_watched_up_to_a_bound_and_the_rest_is_said() {
    let furnish = |scene: &Scene| {
        let projects: Vec<PathBuf> = (0..60).map(|n| scene.home().join(format!("p/{n}"))).collect();
        projects.iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
        let keys = projects.iter().map(|dir| format!("{dir:?}:{{}}")).collect::<Vec<_>>().join(",");
        scene.write(".claude.json", &format!("{{\"projects\":{{{keys}}}}}"));
    };
    let scene = Scene::new(furnish, 40);
    let reach = scene.started();
    assert_eq!(reach.directories, 40);
    assert!(reach.slowly > 20 && reach.why.unwrap().contains("at most 40"), "{}", reach.slowly);
    let scene = Scene::new(furnish, MAX_WATCHES);
    let reach = scene.started();
    assert!(reach.slowly == 0 && (60..90).contains(&reach.directories), "{reach:?}");
    scene.write("p/7/.mcp.json", ONE);
    let id = format!(
        "Appeared claude-code/project:{}/a",
        scene.home().join("p/7").display().to_string().replace('/', "%2F")
    );
    assert_eq!(scene.changes(), [id]);
    // A project that is new in the client's own list.
    let new = scene.home().join("q");
    scene.write("q/.cursor/mcp.json", ONE);
    scene.write(".claude.json", &format!("{{\"projects\":{{{new:?}:{{}}}}}}"));
    assert!(scene.changes().iter().any(|w| w.starts_with("Appeared cursor/project:")));
}
