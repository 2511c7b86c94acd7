//! Whole plans, over fake trees as they are on Windows.

use std::{collections::BTreeSet, fs, path::PathBuf};

use firedoor_model::{
    EntryId, Millis,
    launch::{Access, Grant},
    paths::Paths,
};

use super::*;
use crate::{InstallStep, Profiles, UserGrants};

const NPX: &str = ":: Created by npm, please don't edit manually.\r\n@ECHO OFF\r\n\r\nSETLOCAL\r\n\r\nSET \"NODE_EXE=%~dp0\\node.exe\"\r\nIF NOT \
    EXIST \"%NODE_EXE%\" (\r\n  SET \"NODE_EXE=node\"\r\n)\r\n\r\nSET \"NPM_PREFIX_JS=%~dp0\\node_modules\\npm\\bin\\npm-prefix.js\"\r\nSET \
    \"NPX_CLI_JS=%~dp0\\node_modules\\npm\\bin\\npx-cli.js\"\r\nFOR /F \"delims=\" %%F IN ('CALL \"%NODE_EXE%\" \"%NPM_PREFIX_JS%\"') DO \
    (\r\n  SET \"NPM_PREFIX_NPX_CLI_JS=%%F\\node_modules\\npm\\bin\\npx-cli.js\"\r\n)\r\nIF EXIST \"%NPM_PREFIX_NPX_CLI_JS%\" (\r\n  SET \
    \"NPX_CLI_JS=%NPM_PREFIX_NPX_CLI_JS%\"\r\n)\r\n\r\n\"%NODE_EXE%\" \"%NPX_CLI_JS%\" %*\r\n";
const SHIM: &str = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT /b\r\n:start\r\nSETLOCAL\r\nCALL :find_dp0\r\n\r\nIF \
    EXIST \"%dp0%\\node.exe\" (\r\n  SET \"_prog=%dp0%\\node.exe\"\r\n) ELSE (\r\n  SET \"_prog=node\"\r\n  SET \
    PATHEXT=%PATHEXT:;.JS;=;%\r\n)\r\n\r\nendLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & \"%_prog%\"  \
    \"%dp0%\\..\\srv\\cli.js\" %*\r\n";
const LOCK: &str = r#"{"packages":{"node_modules/srv":{"version":"1.2.3","integrity":"sha512-AA"}}}"#;

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = canonicalize(dir.path()).unwrap();
        let world = Self { _dir: dir, root };
        for (name, text) in [
            (r"nodejs\node.exe", "MZ"),
            (r"nodejs\npx.cmd", NPX),
            (r"nodejs\node_modules\npm\bin\npx-cli.js", "1"),
            (r"bin\uvx.exe", "MZ"),
            (r"bin\uv.exe", "MZ"),
            (r"bin\GoSrv.exe", "MZ"),
            (r"home\app\package.json", "{}"),
            (r"home\app\index.js", "1"),
            (r"home\.SSH\id", "secret"),
            (r"home\AppData\Roaming\Claude\x", "secret"),
            (r"home\data\x", "x"),
        ] {
            world.file(name, text);
        }
        world
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn plan(&self, line: &[&str], user: &UserGrants) -> Result<Plan, PlanError> {
        let at = |text: &str| text.replace('@', self.root.to_str().unwrap());
        let home = self.root.join("home");
        let paths = Paths::from_env(|name| (name == "USERPROFILE").then(|| home.clone().into())).unwrap();
        let env = [
            ("Path", at(r"@\bin;@\nodejs")),
            ("userprofile", at(r"@\home")),
            ("=C:", r"C:\".into()),
            ("Github_Token", "x".into()),
            ("My_Key", "x".into()),
            ("LANG", "C".into()),
        ];
        let (program, args) = line.split_first().unwrap();
        let request = LaunchRequest {
            entry: EntryId::new("c", "user", "s").unwrap(),
            program: at(program).into(),
            args: args.iter().map(|arg| at(arg).into()).collect(),
            cwd: home.join("app"),
            env: env.into_iter().map(|(n, v)| (n.into(), v.into())).collect(),
        };
        let (profiles, _) = Profiles::load(&self.root.join("none"));
        let declared = BTreeSet::from(["MY_KEY".to_owned()]);
        let mut context = Context::new(&paths, &profiles, user, Millis(1_800_000_000_000));
        context.declared_env = Some(&declared);
        context.proxy =
            Some(ProxyAddress { address: "127.0.0.1:9".parse().unwrap(), user: "u".into(), token: "t".into() });
        plan(&request, &context)
    }

    fn run(&self, line: &[&str]) -> Run {
        match self.plan(line, &UserGrants::default()).unwrap() {
            Plan::Run(run) => *run,
            Plan::Install(step) => panic!("{step:?}"),
        }
    }

    fn install(&self, line: &[&str]) -> InstallStep {
        match self.plan(line, &UserGrants::default()).unwrap() {
            Plan::Install(step) => *step,
            Plan::Run(run) => panic!("{run:?}"),
        }
    }

    /// The command line of a step, `@` for the root.
    fn line(&self, step: &Step) -> String {
        let words = std::iter::once(step.program.as_os_str()).chain(step.args.iter().map(OsString::as_os_str));
        let words: Vec<_> =
            words.map(|word| word.to_string_lossy().replace(self.root.to_str().unwrap(), "@")).collect();
        words.join(" ")
    }
}

fn var<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e str> {
    env.iter().find(|(n, _)| sys::same_variable(n, OsStr::new(name))).and_then(|(_, v)| v.to_str())
}

#[test]
fn what_starts() {
    let world = World::new();
    for (line, want, profile) in [
        (&["gosrv", "x"][..], r"@\bin\gosrv.exe x", "native"),
        (&["node", r"index.js"], r"@\nodejs\node.exe index.js", "node"),
        (&["cmd", "/c", "node", "index.js"], r"@\nodejs\node.exe index.js", "node"),
        (&["node.exe", r"@\home\app\index.js", "a&b"], r"@\nodejs\node.exe @\home\app\index.js a&b", "node"),
    ] {
        let run = world.run(line);
        assert_eq!(world.line(&run.step).to_lowercase(), want.to_lowercase(), "{line:?}");
        assert_eq!(run.profile, profile, "{line:?}");
    }
    let script = world.run(&["node", "index.js"]);
    assert!(matches!(script.identity.unwrap().what, What::Script { path, .. } if path.ends_with(r"home\app\index.js")));
    for (line, want) in [
        (&["npx", "-p", "a", "-c", "x"][..], "npx --call is not available"),
        (&["firedoor-wasm", "run", "x.wasm"], "was not found"),
        (&["bunx", "x"], "npx and uvx only"),
        (&["cmd", "/c", "absent"], "was not found"),
    ] {
        let installed = world.plan(line, &UserGrants::default());
        let text = match installed {
            // What a shell would run is known once the package is there.
            Ok(Plan::Install(step)) => {
                brings(&world, &step);
                step.done(Millis(1_800_000_000_000)).unwrap();
                world.plan(line, &UserGrants::default()).unwrap_err().to_string()
            }
            Ok(plan) => panic!("{line:?}: {plan:?}"),
            Err(e) => e.to_string(),
        };
        assert!(text.contains(want), "{line:?}: {text}");
    }
}

/// Puts into an install what npx would.
fn brings(world: &World, step: &InstallStep) {
    let tree = step.step.cwd.join(r"npm\_npx\1a");
    let tree = tree.strip_prefix(&world.root).unwrap().to_str().unwrap();
    let name = &step.package;
    world.file(&format!(r"{tree}\node_modules\.package-lock.json"), &LOCK.replace("srv", name));
    world.file(
        &format!(r"{tree}\node_modules\{name}\package.json"),
        &format!(r#"{{"version":"1.2.3","bin":{{"{name}":"cli.js"}}}}"#),
    );
    world.file(&format!(r"{tree}\node_modules\{name}\cli.js"), "#!/usr/bin/env node\n");
    world.file(&format!(r"{tree}\node_modules\.bin\{name}"), "#!/bin/sh\n");
    world.file(&format!(r"{tree}\node_modules\.bin\{name}.cmd"), &SHIM.replace("srv", name));
}

#[test]
fn packages_of_npm() {
    for line in [
        &["npx", "-y", "srv", "--x"][..],
        &["npx.cmd", "srv", "--x"],
        &["cmd", "/c", "npx", "-y", "srv", "--x"],
        &["cmd.exe", "/C", "npx -y srv --x"],
    ] {
        let world = World::new();
        let step = world.install(line);
        let install = world.line(&step.step);
        assert_eq!(
            install, r"@\nodejs\node.exe @\nodejs\node_modules\npm\bin\npx-cli.js --yes --package=srv -- node -e 0",
            "{line:?}"
        );
        let names: BTreeSet<String> = step.step.env.iter().map(|(n, _)| n.to_str().unwrap().to_lowercase()).collect();
        assert_eq!(names.len(), step.step.env.len(), "each variable once");
        assert!(
            ["systemroot", "comspec", "pathext", "path", "userprofile"].iter().all(|n| names.contains(*n)),
            "{names:?}"
        );
        assert!(!names.contains("my_key"));
        brings(&world, &step);
        step.done(Millis(1_800_000_000_000)).unwrap();
        let run = world.run(line);
        let tree = step.step.cwd.join(r"npm\_npx\1a\node_modules\srv\cli.js");
        let want = format!(r"@\nodejs\node.exe {} --x", tree.display()).replace(world.root.to_str().unwrap(), "@");
        assert_eq!(world.line(&run.step), want, "{line:?}");
        assert!(matches!(run.identity.unwrap().what, What::Package(p) if p.version == "1.2.3"));
        assert!(var(&run.step.env, "PATH").unwrap().contains(r"node_modules\.bin;"));
    }
}

#[test]
fn packages_of_pypi() {
    let world = World::new();
    let step = world.install(&["uvx.exe", "srv-time", "--zone", "x"]);
    assert_eq!(world.line(&step.step), r"@\bin\uvx.exe --from srv-time python -c ");
    let archive = step.step.cwd.join(r"uv\cache\archive-v0\b");
    let at = archive.strip_prefix(&world.root).unwrap().to_str().unwrap();
    world.file(&format!(r"{at}\Lib\site-packages\srv_time-2.0.dist-info\RECORD"), "x");
    world.file(&format!(r"{at}\Scripts\srv-time.exe"), "MZ");
    step.done(Millis(1_800_000_000_000)).unwrap();
    let run = world.run(&["uvx", "srv-time", "--zone", "x"]);
    assert_eq!(run.step.program, archive.join(r"Scripts\srv-time.exe"));
    assert_eq!(run.step.args, ["--zone", "x"]);
}

#[test]
fn what_the_environment_is() {
    let world = World::new();
    let run = world.run(&["gosrv"]);
    let names: BTreeSet<String> = run.step.env.iter().map(|(n, _)| n.to_str().unwrap().to_lowercase()).collect();
    assert_eq!(names.len(), run.step.env.len(), "each variable once: {names:?}");
    let private = world.root.join(r"home\AppData\Local\firedoor\data\servers");
    for name in ["UserProfile", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "HOME"] {
        let value = var(&run.step.env, name).unwrap();
        assert!(Path::new(value).starts_with(&private) && Path::new(value).is_dir(), "{name}: {value}");
    }
    assert_eq!(run.dropped_env, ["Github_Token"]);
    assert_eq!((run.named_env, var(&run.step.env, "MY_KEY")), (vec!["My_Key".to_owned()], Some("x")));
    assert!(var(&run.step.env, "SystemRoot").is_some() && var(&run.step.env, "=C:").is_none());
}

#[test]
fn what_is_granted() {
    let world = World::new();
    let home = world.root.join("home");
    let grant = |path: &Path, access| Grant { path: path.to_owned(), access };
    let grants = vec![
        grant(&home, Access::Read),
        grant(Path::new(r"C:\"), Access::Read),
        grant(&world.root.join(r"HOME\Data"), Access::Write),
    ];
    let user = UserGrants { grants, ..UserGrants::default() };
    let Plan::Run(run) = world.plan(&["gosrv"], &user).unwrap() else { panic!("an install") };
    let grants = &run.step.confinement.grants;
    let access = |path: &str| grants.iter().find(|g| g.path == home.join(path)).map(|g| g.access);
    assert_eq!((access("data"), access("app")), (Some(Access::Edit), Some(Access::Read)));
    assert_eq!((access(""), access(r"AppData\Roaming")), (Some(Access::List), Some(Access::List)));
    assert!(grants.iter().all(|g| !g.path.to_string_lossy().to_lowercase().contains(".ssh")), "{grants:?}");
    assert_eq!((access(r"AppData\Roaming\Claude"), access(r"AppData\Local\firedoor\data")), (None, None));
    assert!(run.notes.iter().any(|note| note.contains("holds too much")), "{:?}", run.notes);
    assert!(grants.iter().all(|g| g.path.is_absolute()));
}

#[test]
fn another_file_is_another_server() {
    let world = World::new();
    let digest = |world: &World, line: &[&str]| world.run(line).identity.unwrap().digest;
    for (line, file) in [(&["gosrv"][..], r"bin\GoSrv.exe"), (&["node", "index.js"], r"home\app\index.js")] {
        let before = digest(&world, line);
        assert_eq!(before, digest(&world, line));
        let path = world.root.join(file);
        let (length, times) = (fs::metadata(&path).unwrap().len(), fs::metadata(&path).unwrap().modified().unwrap());
        fs::write(&path, "x".repeat(length as usize)).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(times).unwrap();
        assert_ne!(before, digest(&world, line), "{line:?}: of the same length and time");
    }
}
