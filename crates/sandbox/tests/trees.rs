//! Trees that a server may write, by real programs, as root (where the tests are) and as an ordinary user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use common::{Setup, grant, users};
use firedoor_model::{
    launch::{Access, Network},
    network::{Attempt, AttemptKind, Hosts},
    protected::ProtectedNames,
};

const PYTHON: &str = "/usr/bin/python3";

/// The names of this build.
fn names() -> ProtectedNames {
    #[derive(serde::Deserialize)]
    struct File {
        tree: ProtectedNames,
    }
    let file: File = toml::from_str(include_str!("../../../profiles/sandbox/protected.toml")).unwrap();
    file.tree
}

/// A server that may write `tree`, and has a home of its own.
fn setup(user: Option<u32>, words: &[&str]) -> Setup {
    let mut setup = Setup::new(user);
    setup.step.program = words[0].into();
    setup.step.args = words[1..].iter().map(Into::into).collect();
    for name in ["tree", "home"] {
        fs::create_dir(setup.dir().join(name)).unwrap();
    }
    setup.grant("tree", Access::Edit);
    setup.grant("home", Access::Write);
    let home = setup.dir().join("home");
    setup.step.env = vec![("HOME".into(), home.into()), ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    setup.step.confinement.grants.push(grant("/dev/urandom", Access::Read));
    setup.step.confinement.protected = names();
    setup.step.confinement.network = Network::Hosts(Hosts::default());
    setup
}

fn script(setup: &mut Setup, name: &str) -> PathBuf {
    let script = setup.dir().join(name);
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree_calls").join(name), &script).unwrap();
    setup.grant(name, Access::Read);
    script
}

/// What the step's command prints without a sandbox.
fn unconfined(setup: &Setup, words: &[&str]) -> String {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_clear().envs(setup.step.env.clone());
    if let Some(user) = setup.user {
        command.uid(user).gid(user);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn programs_do_not_notice() {
    for user in users() {
        let mut setup = setup(user, &[PYTHON]);
        let file = script(&mut setup, "ordinary.py");
        let (inside, outside) = (setup.dir().join("tree/t"), setup.dir().join("elsewhere/t"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        setup.own_everything();
        let words = |tree: &Path| ["-I", file.to_str().unwrap(), tree.to_str().unwrap()].map(String::from);
        let bare = words(&outside);
        let want = unconfined(&setup, &[PYTHON, &bare[0], &bare[1], &bare[2]]);
        setup.step.args = words(&inside).map(Into::into).to_vec();
        let (got, errors) = setup.run(&["attempts"]);
        assert_eq!(errors, "", "as {user:?}");
        let want: Vec<&str> = want.lines().collect();
        let got: Vec<&str> = got.lines().collect();
        let different: Vec<_> = want.iter().zip(&got).filter(|(a, b)| a != b).collect();
        assert!(different.is_empty() && want.len() == got.len(), "as {user:?}: {different:#?}");
        assert!(want.len() > 100, "{want:?}");
    }
}

#[test]
fn protected_names_stay_closed() {
    for user in users() {
        let mut setup = setup(user, &[PYTHON]);
        let file = script(&mut setup, "protected.py");
        let tree = setup.dir().join("tree");
        for directory in [".git/hooks", "sub/.claude", "open/.vscode"] {
            fs::create_dir_all(tree.join(directory)).unwrap();
        }
        for name in [".git/config", ".git/HEAD"] {
            fs::write(tree.join(name), "made up").unwrap();
        }
        setup.grant("tree/open/.vscode", Access::Edit);
        setup.step.args = ["-I", file.to_str().unwrap(), tree.to_str().unwrap()].map(Into::into).to_vec();
        setup.own_everything();
        let (output, errors) = setup.run(&["attempts"]);
        let different = |name: &str| match name {
            "openat2" => "ENOSYS",
            "outside and back" => "EXDEV",
            "to nothing" => "EEXIST",
            "moved into place" | "granted by name" | "index" | "own directory" | "read" => "ok",
            _ => "EACCES",
        };
        let names: Vec<&str> = output.lines().map(|l| l.split('=').next().unwrap()).collect();
        let want: String = names.iter().map(|n| format!("{n}={}\n", different(n))).collect();
        assert_eq!(output, want, "as {user:?}: {errors}");
        assert!(names.len() > 50, "{output}");
        assert_eq!(fs::read(tree.join(".git/config")).unwrap(), b"made up");
        assert!(fs::read_dir(tree.join(".git/hooks")).unwrap().next().is_none());

        let attempts: Vec<Attempt> = errors.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        for name in [".git/hooks/pre-commit", ".git/config", "a/.vscode", "sub/.git", "repository/HEAD"] {
            let path = fs::canonicalize(&tree).unwrap().join(name);
            let told = |a: &Attempt| a.kind == AttemptKind::File && a.target.raw() == path.to_string_lossy();
            assert!(attempts.iter().any(told), "{name}: {errors}");
        }
        assert!(attempts.iter().all(|a| a.program.raw().contains("/python3") && a.reason.contains("--rw")));
    }
}

#[test]
fn without_a_guardian_that_answers_trees_can_only_be_read() {
    for user in users() {
        let mut setup = setup(user, &["/bin/sh", "-c", "cat f; echo x > f; echo x > new; ls"]);
        fs::write(setup.dir().join("tree/f"), "made up\n").unwrap();
        setup.step.cwd = setup.dir().join("tree");
        setup.step.confinement.network = Network::None;
        setup.own_everything();
        let (output, errors) = setup.run(&["verbose"]);
        assert_eq!(output, "made up\nf\n", "as {user:?}: {errors}");
        assert!(errors.contains("can only be read"), "{errors}");
    }
}

/// Words for a shell, and what they print inside, as they do outside.
fn same(setup: &mut Setup, words: &str) {
    let dir = setup.dir().to_owned();
    let in_place = |place: &str| format!("exec 2>&1; cd {}/{place} && {{ {words}; }}", dir.display());
    for place in ["tree", "elsewhere"] {
        let _ = fs::remove_dir_all(dir.join(place));
        fs::create_dir(dir.join(place)).unwrap();
    }
    setup.own_everything();
    let want = unconfined(setup, &["/bin/sh", "-c", &in_place("elsewhere")]);
    setup.step.args = ["-c", &in_place("tree")].map(Into::into).to_vec();
    let (got, errors) = setup.run(&["attempts"]);
    assert_eq!(got, want, "{words} as {:?}: {errors}", setup.user);
    assert!(!want.is_empty() && errors.is_empty(), "{words}: {errors}");
}

const NODE: &str = r#"
const fs = require('fs'), p = require('path');
fs.mkdirSync('a/b/c', {recursive: true}); fs.writeFileSync('a/f', 'x'); fs.appendFileSync('a/f', 'y');
fs.cpSync('a', 'b', {recursive: true}); fs.renameSync('b/f', 'b/g'); fs.symlinkSync('g', 'b/l'); fs.linkSync('b/g', 'b/h');
fs.truncateSync('b/g', 1); fs.chmodSync('b/g', 0o600); fs.utimesSync('b/g', 1, 2); fs.accessSync('b/g', fs.constants.W_OK);
const t = fs.mkdtempSync('t-'); fs.rmSync(t, {recursive: true});
for (const f of ['none/x', 'a', '']) try { fs.writeFileSync(f, 'x') } catch (e) { console.log(f, e.code) }
(async () => {
  await Promise.all([...Array(50).keys()].map(async n => { const h = await fs.promises.open('p' + n, 'wx'); await h.write('n' + n); await h.sync(); await h.close() }));
  fs.createWriteStream('stream').end('streamed', () => console.log(fs.readFileSync('stream', 'utf8'), fs.readdirSync('.', {recursive: true}).sort().join(' '), fs.statSync('b/g').mode, fs.readFileSync('b/h', 'utf8')));
})();
"#;

#[test]
fn git_and_node_work_in_a_tree() {
    for user in users() {
        let mut setup = setup(user, &["/bin/sh"]);
        for path in ["/etc/passwd", "/etc/ssl/openssl.cnf", "/etc/nsswitch.conf"] {
            setup.step.confinement.grants.push(grant(path, Access::Read));
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
            ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
        ] {
            setup.step.env.push((name.into(), value.into()));
        }
        setup.step.confinement.limits.processes = None;
        if Path::new("/usr/bin/node").exists() {
            fs::write(setup.dir().join("work.js"), NODE).unwrap();
            setup.grant("work.js", Access::Read);
            let script = setup.dir().join("work.js");
            same(&mut setup, &format!("/usr/bin/node {}", script.display()));
        }
        if Command::new("git").arg("--version").output().is_err() {
            continue;
        }
        // What git makes at first is made outside, as a user does.
        let dir = setup.dir().to_owned();
        let (tree, elsewhere) = (dir.join("tree"), dir.join("elsewhere"));
        let _ = fs::remove_dir_all(&tree);
        let _ = fs::remove_dir_all(&elsewhere);
        let made = "git init -qb main && git config user.name a && git config user.email a@b.c && printf '#!/bin/sh\\necho hook' \
             >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo 1 >f && git add f && git commit -qm 1";
        for place in [&tree, &elsewhere] {
            fs::create_dir(place).unwrap();
        }
        setup.own_everything();
        for place in [&tree, &elsewhere] {
            unconfined(&setup, &["/bin/sh", "-c", &format!("cd {} && {made}", place.display())]);
        }
        let work = "echo 2 >>f; git add .; git commit -qm 2; git checkout -qb other; echo 3 >g; git add g; git commit -qm 3; \
             git checkout -q main; git merge --no-edit -q other; git branch; git stash list; git mv g h; git commit -qm 4; \
             echo x >f; git stash -q; git stash pop -q; git restore f; git tag v1; git gc -q; git rebase -q HEAD~1 2>/dev/null; \
             git reset -q --hard HEAD~1; git status --short; git log --format=%h; git fsck; ls -a";
        let run = |place: &Path| format!("exec 2>&1; cd {} && {{ {work}; }}", place.display());
        let want = unconfined(&setup, &["/bin/sh", "-c", &run(&elsewhere)]);
        setup.step.args = ["-c", &run(&tree)].map(Into::into).to_vec();
        let (got, errors) = setup.run(&["attempts"]);
        assert_eq!(got, want, "as {user:?}: {errors}");
        assert!(want.contains("hook") && errors.is_empty(), "{want} {errors}");
        let config = format!("cd {} && git config core.fsmonitor evil; git init -q new; ls -a new", tree.display());
        setup.step.args = ["-c", &config].map(Into::into).to_vec();
        let (got, errors) = setup.run(&["attempts"]);
        assert!(
            got.contains(".git") && errors.contains("/.git/config") && errors.contains("new/.git/hooks"),
            "{got} {errors}"
        );
        assert!(!fs::read_to_string(tree.join(".git/config")).unwrap().contains("evil"));
    }
}
