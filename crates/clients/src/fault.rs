//! Places where a test ends the process as `kill -9` or a loss of power would: between any two steps that leave
//! something on the disk. In a program that is not a test they are nothing.

/// One such place.
#[cfg(not(all(test, unix)))]
#[inline(always)]
pub(crate) fn point() {}

#[cfg(test)]
#[cfg(unix)]
pub(crate) use armed::point;

#[cfg(test)]
#[cfg(unix)]
pub(crate) mod armed {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    static PASSED: AtomicUsize = AtomicUsize::new(0);
    static LAST: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Ends this process at the place with this number, counted from 0.
    pub fn kill_at(number: usize) {
        PASSED.store(0, Relaxed);
        LAST.store(number, Relaxed);
    }

    /// How many places were passed.
    pub fn passed() -> usize {
        PASSED.load(Relaxed)
    }

    pub fn point() {
        if PASSED.fetch_add(1, Relaxed) == LAST.load(Relaxed) {
            // Nothing is cleaned up, nothing is written out.
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::unix::process::ExitStatusExt as _,
        path::{Path, PathBuf},
        process::{Command, Stdio},
    };

    use firedoor_model::paths::Paths;

    use super::armed::{kill_at, passed};
    use crate::{Clients, Env, Selection, select};

    /// What the child is told, in its environment: the scratch directory, what to do, and where to die.
    const TOLD: [&str; 3] = ["FIREDOOR_TEST_HOME", "FIREDOOR_TEST_ACTION", "FIREDOOR_TEST_KILL_AT"];
    const RUNS: usize = 200;

    fn env(dir: &Path) -> Env<'static> {
        let home = dir.join("home");
        let look = move |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        Env::new(Paths::from_env(&look).unwrap(), dir.join("work"), look).with_shim(&dir.join("bin/firedoor-shim"))
    }

    /// Protects or restores everything below the directory.
    fn act(dir: &Path, action: &str) {
        let (clients, env) = (Clients::load().unwrap(), env(dir));
        let chosen: BTreeSet<_> = select(clients, &clients.scan(&env), &[Selection::All]).unwrap();
        let plan = match action {
            "protect" => clients.plan_protect(&env, &chosen, &dir.join("bin/firedoor-shim")).unwrap(),
            _ => clients.plan_restore(&env, &chosen),
        };
        for file in clients.apply(&env, &plan) {
            file.result.unwrap();
        }
    }

    /// Not a test of its own: what the test below starts, to be killed.
    #[test]
    fn child() {
        let Some(dir) = std::env::var_os(TOLD[0]).map(PathBuf::from) else { return };
        let told = |name| std::env::var(name).unwrap();
        kill_at(told(TOLD[2]).parse().unwrap());
        act(&dir, &told(TOLD[1]));
        fs::write(dir.join("passed"), passed().to_string()).unwrap();
    }

    /// Whether the child was killed.
    fn run(dir: &Path, action: &str, at: usize) -> bool {
        let at = at.to_string();
        let told = [dir.as_os_str(), action.as_ref(), at.as_ref()];
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "fault::tests::child"])
            .envs(TOLD.iter().zip(told))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        !status.success()
    }

    /// Files of every syntax, one of which has a lock that its client shares.
    const FILES: [(&str, &str); 4] = [
        (".claude.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\"b\":{\"command\":\"y\",\"args\":[ ]}}}"),
        (".cursor/mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\", /* c */},}}"),
        (".codex/config.toml", "[mcp_servers.a]\ncommand = 'x' # c\n"),
        (".continue/config.yaml", "mcpServers:\n- name: a\n  command: x\n"),
    ];

    type Content = BTreeMap<PathBuf, Vec<u8>>;

    /// Every file in the clients' directories, whatever its name.
    fn content(dir: &Path) -> Content {
        let dirs: BTreeSet<PathBuf> =
            FILES.iter().map(|(name, _)| dir.join("home").join(name).parent().unwrap().to_owned()).collect();
        let all = dirs.iter().flat_map(|d| fs::read_dir(d).unwrap()).map(|e| e.unwrap().path());
        all.filter(|p| p.is_file()).map(|p| (p.clone(), fs::read(p).unwrap())).collect()
    }

    fn home() -> (tempfile::TempDir, Content) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        for name in ["bin", "work"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        fs::write(dir.join("bin/firedoor-shim"), "").unwrap();
        for (name, text) in FILES {
            let path = dir.join("home").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let before = content(dir);
        (scratch, before)
    }

    #[test]
    fn killed_anywhere_every_file_is_old_or_new_and_comes_back() {
        let (scratch, old) = home();
        let mut steps = BTreeMap::new();
        let mut new = Content::new();
        for action in ["protect", "restore"] {
            assert!(!run(scratch.path(), action, usize::MAX));
            let passed: usize = fs::read_to_string(scratch.path().join("passed")).unwrap().parse().unwrap();
            steps.insert(action, passed);
            if action == "protect" {
                new = content(scratch.path());
            }
        }
        assert_eq!(content(scratch.path()), old);
        assert!(steps.values().all(|n| *n >= 4 * FILES.len()), "{steps:?}");
        let relative = |all: &Content, dir: &Path| -> BTreeMap<PathBuf, String> {
            let own = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(dir.to_str().unwrap(), "DIR");
            all.iter().map(|(p, b)| (p.strip_prefix(dir).unwrap().to_owned(), own(b))).collect()
        };
        let (old, new) = (relative(&old, scratch.path()), relative(&new, scratch.path()));

        for at in 0..RUNS {
            let (scratch, _) = home();
            let dir = scratch.path();
            let action = ["protect", "restore"][at % 2];
            if action == "restore" {
                act(dir, "protect");
            }
            assert!(run(dir, action, at / 2 % steps[action]), "{action} ended before it was killed");
            let found = relative(&content(dir), dir);
            for (name, text) in &old {
                assert!(found[name] == *text || found[name] == new[name], "{action} {at}: {name:?}: {}", found[name]);
            }
            // Ten seconds later: until then the lock that Claude Code shares counts as held, and restoring says so.
            if let Ok(lock) = fs::File::open(dir.join("home/.claude.json.lock")) {
                lock.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(20)).unwrap();
            }
            // Once without the journal, as when the application is gone.
            if at % 3 == 0 {
                fs::remove_dir_all(dir.join("home/.local/state/firedoor")).unwrap();
            }
            act(dir, "restore");
            let back = relative(&content(dir), dir);
            assert!(old.iter().all(|(name, text)| back[name] == *text), "{action} {at}: {back:?}");
            // The next run clears away what the killed one left.
            act(dir, "protect");
            act(dir, "restore");
            if at % 3 != 0 {
                assert_eq!(relative(&content(dir), dir), old, "{action} {at}");
            }
        }
    }
}
