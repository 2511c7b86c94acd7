//! The engine notices what becomes of clients' configurations, in time and without ado.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    process::Child,
    time::{Duration, Instant},
};

use firedoor_tests::{Home, until};
use serde_json::{Value, json};

/// A home with an engine that watches.
struct Watched {
    home: Home,
    engine: Child,
}

impl Watched {
    fn new(furnish: impl FnOnce(&Home)) -> Self {
        let home = Home::new();
        furnish(&home);
        let engine = start(&home);
        Self { home, engine }
    }

    /// Another engine in the place of the one that runs.
    fn restart(&mut self) {
        self.stop();
        self.engine = start(&self.home);
    }

    fn stop(&mut self) {
        if let Some(pid) = self.home.engine() {
            firedoor_tests::kill(pid, nix::sys::signal::Signal::SIGTERM);
        }
        self.engine.wait().unwrap();
    }

    fn server(&self, name: &str) -> Value {
        json!({name: self.home.entry("echo_server.py", &[])})
    }

    /// What was noticed so far: kind and server.
    fn noticed(&self) -> Vec<(String, String)> {
        let log = self.home.firedoor(&["log", "--json"]).expect_code(0).stdout;
        let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let noticed = rows.filter(|row| row["what"]["kind"] == "noticed").map(|row| {
            let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
            (text(&row["what"]["noticed"]), text(&row["entry"]))
        });
        noticed.collect()
    }

    /// Waits until this was noticed, and returns after how long.
    fn until_noticed(&self, kind: &str, entry: &str) -> Duration {
        let begin = Instant::now();
        until(&format!("{kind} {entry}"), || self.noticed().contains(&(kind.into(), entry.into())).then_some(()));
        begin.elapsed()
    }

    fn offers(&self) -> Vec<String> {
        let pending = self.home.json(&["pending"]);
        pending["offers"].as_array().unwrap().iter().map(|o| o["entry"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop();
    }
}

fn start(home: &Home) -> Child {
    let engine = home.command("setsid").arg(home.program("firedoor")).arg("daemon").spawn().unwrap();
    until("the engine watches", || {
        let ready = home.engine().is_some() && home.json(&["status"])["watched"].is_number();
        ready.then_some(())
    });
    engine
}

#[test]
fn a_new_server_is_noticed_offered_and_can_be_protected_or_left() {
    let watched = Watched::new(|_| {});
    let home = &watched.home;
    home.cursor(watched.server("fs"));
    let took = watched.until_noticed("appeared", "cursor/user/fs");
    // Two seconds are promised; the look at the log, by a debug build on a busy machine, comes on top.
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(watched.offers(), ["cursor/user/fs"]);
    home.firedoor(&["pending"])
        .expect_said("New server “fs” in Cursor: protect?")
        .expect_said("firedoor protect cursor/user/fs");
    home.firedoor(&["status"]).expect_said("New server “fs” in Cursor");
    home.firedoor(&["log"]).expect_said("Cursor is new here, with the server “fs”");
    home.firedoor(&["protect", "cursor/user/fs", "--yes", "--no-verify"]).expect_code(0);
    watched.until_noticed("protected", "cursor/user/fs");
    assert!(watched.offers().is_empty());
    // Our own restoring is no accident.
    home.firedoor(&["restore", "cursor/user/fs"]).expect_code(0);
    watched.until_noticed("restored", "cursor/user/fs");
    assert!(watched.offers().is_empty());
    home.write(".gemini/settings.json", json!({"mcpServers": watched.server("g")}).to_string());
    watched.until_noticed("appeared", "gemini-cli/user/g");
    home.firedoor(&["ignore", "gemini-cli/user/g"]).expect_code(0).expect_said("stays as it is");
    assert!(watched.offers().is_empty());
    home.firedoor(&["ignore", "gemini-cli/user/g"]).expect_code(1).expect_said("firedoor pending");
}

#[test]
fn a_client_that_drops_firedoor_is_noticed_also_after_a_restart() {
    let mut watched = Watched::new(|_| {});
    let home = &watched.home;
    let file = home.cursor(watched.server("fs"));
    let before = fs::read(&file).unwrap();
    watched.until_noticed("appeared", "cursor/user/fs");
    home.protect();
    watched.until_noticed("protected", "cursor/user/fs");
    // In other formatting it is still ours.
    let ours: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    home.write(".cursor/mcp.json", ours.to_string());
    // From memory, as clients write.
    home.write(".cursor/mcp.json.tmp", &before);
    fs::rename(home.path().join(".cursor/mcp.json.tmp"), &file).unwrap();
    watched.until_noticed("dropped", "cursor/user/fs");
    home.firedoor(&["pending"]).expect_said("Cursor dropped Firedoor from “fs”: protect?");
    home.firedoor(&["log"]).expect_said("Cursor dropped Firedoor from “fs”");
    assert!(!watched.noticed().iter().any(|(kind, _)| kind == "changed"), "{:?}", watched.noticed());
    let drops = |w: &Watched| w.noticed().iter().filter(|(kind, _)| kind == "dropped").count();
    assert_eq!(drops(&watched), 1);
    // While no engine runs nobody watches: the next one says it.
    watched.restart();
    until("it is said again", || (drops(&watched) == 2).then_some(()));
    assert_eq!(watched.offers(), ["cursor/user/fs"]);
    // Who does not want it is not asked again.
    watched.home.firedoor(&["ignore", "cursor/user/fs"]).expect_code(0);
    watched.restart();
    until("it is said once more", || (drops(&watched) == 3).then_some(()));
    assert!(watched.offers().is_empty());
}

#[test]
fn where_the_user_wants_it_new_servers_are_protected_without_a_question_and_seen_to_answer() {
    let project = "src/app/.mcp.json";
    let watched = Watched::new(|home| {
        home.write(".config/firedoor/config.toml", "[watch]\nprotect = true\n");
        let app = home.directory("src/app").to_string_lossy().into_owned();
        home.write(".claude.json", json!({"projects": {app: {}}}).to_string());
    });
    let home = &watched.home;
    let file = home.cursor(watched.server("fs"));
    let before = fs::read(&file).unwrap();
    let said = |text: &str, times: usize| {
        until(text, || (home.firedoor(&["log"]).stdout.matches(text).count() == times).then_some(()));
    };
    let answers = "protected without a question: cursor/user/fs: protected, answers through Firedoor (";
    said(answers, 1);
    let is_protected = || fs::read_to_string(&file).unwrap().contains("firedoor-shim");
    let settled = || until("the offer is gone", || (is_protected() && watched.offers().is_empty()).then_some(()));
    settled();
    // What comes with a project is offered and not touched.
    let shared = json!({"mcpServers": watched.server("p")}).to_string();
    let shared = home.write(project, shared);
    until("the offer", || (watched.offers().len() == 1).then_some(()));
    assert!(!fs::read_to_string(&shared).unwrap().contains("firedoor-shim"));
    fs::remove_file(shared).unwrap();
    // A client that insists.
    for times in 2..=3 {
        settled();
        fs::write(&file, &before).unwrap();
        said(answers, times);
    }
    settled();
    fs::write(&file, &before).unwrap();
    said("it lost its protection 3 times", 1);
    assert!(!is_protected());
    // The process that saw the server answer counts as a client; whoever answers questions does not.
    home.firedoor(&["ignore", "cursor/user/fs"]).expect_code(0);
}

#[test]
fn a_thousand_projects_cost_a_bounded_number_of_watches() {
    let project = |n: usize| format!("src/p{n:04}");
    let watched = Watched::new(|home| {
        let all: serde_json::Map<String, Value> = (0..1000)
            .map(|n| (home.directory(&project(n)).to_string_lossy().into_owned(), json!({"mcpServers": {}})))
            .collect();
        home.write(".claude.json", json!({"projects": all}).to_string());
    });
    let home = &watched.home;
    let status = home.json(&["status"]);
    let directories = status["watched"].as_u64().unwrap();
    assert!((1000..1100).contains(&directories), "{directories}");
    assert_eq!(inotify_watches(home.engine().unwrap()), directories);
    assert_eq!(status["problems"], json!([]));
    home.write(&format!("{}/.mcp.json", project(777)), json!({"mcpServers": watched.server("fs")}).to_string());
    let dir = home.path().join(project(777)).to_string_lossy().replace('/', "%2F");
    let took = watched.until_noticed("appeared", &format!("claude-code/project:{dir}/fs"));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// What the kernel says (proc_pid_fdinfo(5)).
fn inotify_watches(pid: i32) -> u64 {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    let count = |text: String| text.lines().filter(|line| line.starts_with("inotify wd:")).count();
    texts.map(|text| count(text) as u64).sum()
}

#[test]
fn a_file_that_is_written_all_the_time_does_not_flood() {
    let watched = Watched::new(|home| {
        home.cursor(json!({"fs": {"command": "true"}}));
    });
    let home = &watched.home;
    // Beside and then in its place: half a file would be news.
    let replace = |name: &str, text: String| {
        let beside = home.write(&format!("{name}.tmp"), text);
        fs::rename(beside, home.path().join(name)).unwrap();
    };
    let before = cpu(home.engine().unwrap());
    let mut others = json!({});
    for round in 0..5 {
        for n in 0..40 {
            // Two texts that say the same.
            let text = json!({"n": n, "mcpServers": {"fs": {"command": "true"}}});
            let pretty = serde_json::to_string_pretty(&text).unwrap();
            replace(".cursor/mcp.json", if n % 2 == 0 { text.to_string() } else { pretty });
        }
        // What comes after that is noticed, and nothing else was.
        let name = format!("s{round}");
        others[&name] = json!({"command": "true"});
        replace(".qwen/settings.json", json!({"mcpServers": others}).to_string());
        watched.until_noticed("appeared", &format!("qwen-code/user/{name}"));
    }
    let used = cpu(home.engine().unwrap()) - before;
    assert_eq!(watched.noticed().len(), 5, "{:?}", watched.noticed());
    assert!(used < Duration::from_millis(1500), "{used:?}");
}

/// Processor time of a process (proc_pid_stat(5), fields 14 and 15).
fn cpu(pid: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<u64> = stat.rsplit(')').next().unwrap().split(' ').filter_map(|f| f.parse().ok()).collect();
    // Behind the name and the state, which is no number: field 14 is the 11th.
    Duration::from_millis((fields[10] + fields[11]) * 10)
}
