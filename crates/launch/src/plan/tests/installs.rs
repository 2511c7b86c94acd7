//! Packages that npx and uvx bring.

use super::*;

#[test]
fn an_install_sees_the_registry_only() {
    let mut world = World::new();
    world.env.push(("DECLARED_TOKEN".into(), "v".into()));
    world.env.push(("NO_PROXY".into(), "registry.npmjs.org".into()));
    world.declared.insert("DECLARED_TOKEN".into());
    let step = world.install("npx -y srv --flag");
    assert!(step.required);
    assert_eq!(step.hosts, [("registry.npmjs.org".to_owned(), 443)]);
    assert_eq!(step.step.args, ["--yes", "--package=srv", "--", "node", "-e", "0"]);
    assert_eq!(step.step.confinement.network, Network::Proxy("127.0.0.1:9".parse().unwrap()));
    assert_eq!(var(&step.step.env, "HTTPS_PROXY"), Some(OsStr::new("http://u:t0k@127.0.0.1:9")));
    assert_eq!(var(&step.step.env, "NO_PROXY"), Some(OsStr::new("")));
    assert_eq!(var(&step.step.env, "DECLARED_TOKEN"), None);
    assert_eq!(var(&step.step.env, "npm_config_registry"), Some(OsStr::new("https://registry.npmjs.org/")));
    // It can write its own generation and nothing that a server of the entry can.
    let writable: Vec<_> = step.step.confinement.grants.iter().filter(|g| g.access == Access::Write).collect();
    assert!(writable.iter().all(|g| g.path == step.step.cwd || g.path.starts_with("/dev")), "{writable:?}");
    assert!(!step.step.confinement.grants.iter().any(|g| g.path.starts_with(world.at("home/app"))));
    assert!(!format!("{step:?}").contains("t0k"));
}

#[test]
fn installs_are_recorded_refreshed_and_fall_back() {
    let mut world = World::new();
    let command = "npx -y srv --flag";
    let step = world.install(command);
    assert!(matches!(step.done(Millis(world.now)), Err(PlanError::NotInstalled { .. })));
    World::npm_brings(&step, LOCK);
    step.done(Millis(world.now)).unwrap();

    let run = world.run(command);
    let What::Package(package) = &run.identity.as_ref().unwrap().what else { panic!("{run:?}") };
    assert_eq!((package.version.as_str(), package.integrity.as_deref()), ("1.2.3", Some("sha512-AA")));
    let tree = step.step.cwd.join("npm/_npx/abc");
    let bin = tree.join("node_modules/.bin");
    assert_eq!((run.step.program, run.step.args), (bin.join("srv"), vec!["--flag".into()]));
    assert_eq!(run.step.confinement.network, Network::Hosts(Hosts::default()));
    let path = var(&run.step.env, "PATH").unwrap().to_str().unwrap();
    assert_eq!(path, format!("{}:{}", bin.display(), world.at("bin").display()));
    // The server reads its packages; neither they nor anything else of the install is its to write.
    let below: Vec<_> = run.step.confinement.grants.iter().filter(|g| g.path.starts_with(&step.step.cwd)).collect();
    assert_eq!(below, [&Grant { path: tree, access: Access::Read }]);

    // The identity is what was recorded when the install ended.
    World::npm_brings(&step, &LOCK.replace("1.2.3", "6.6.6"));
    assert_eq!(world.run(command).identity, run.identity);

    // A day later: refresh, which fails, and the old one runs until the next try.
    world.now += DAY;
    let refresh = world.install(command);
    assert!(!refresh.required);
    assert_ne!(refresh.step.cwd, step.step.cwd);
    refresh.failed(Millis(world.now)).unwrap();
    assert_eq!(world.run(command).identity, run.identity);
    world.now += DAY / 12;
    let refresh = world.install(command);
    World::npm_brings(&refresh, &LOCK.replace("1.2.3", "1.2.4"));
    refresh.done(Millis(world.now)).unwrap();
    assert_ne!(world.run(command).identity.as_ref().unwrap().digest, run.identity.as_ref().unwrap().digest);
    assert!(step.step.cwd.is_dir(), "a running server keeps its packages");

    // Without the proxy a stale package still runs, and says so.
    world.now += DAY;
    world.proxy = false;
    assert!(world.run(command).notes.join("").contains("not looked for a newer version"));
    assert!(matches!(world.plan("npx -y other"), Err(PlanError::NoProxy)));
}

#[test]
fn exact_versions_are_never_refreshed_and_old_generations_go() {
    let mut world = World::new();
    let command = "npx -y srv%1.2.3";
    let abandoned = world.install(command);
    world.now += DAY;
    let step = world.install(command);
    assert!(!abandoned.step.cwd.exists());
    World::npm_brings(&step, LOCK);
    step.done(Millis(world.now)).unwrap();
    world.now += 100 * DAY;
    world.run(command);
    // Another version, or another registry, is another install.
    assert!(world.install("npx -y srv%1.2.4").required);
    world.env.push(("npm_config_registry".into(), "https://r.example/".into()));
    assert!(world.install(command).required);
}

#[test]
fn hostile_installs_are_not_believed() {
    for lock in ["not json", r#"{"packages":{"node_modules/srv":{"version":"1\n2"}}}"#, r#"{"packages":{}}"#] {
        let world = World::new();
        let step = world.install("npx -y srv");
        World::npm_brings(&step, lock);
        assert!(step.done(Millis(world.now)).is_err(), "{lock}");
    }
    let world = World::new();
    let step = world.install("npx -y srv");
    let modules = step.step.cwd.join("npm/_npx/abc/node_modules");
    fs::create_dir_all(&modules).unwrap();
    fs::write(world.at("lock"), LOCK).unwrap();
    symlink(world.at("lock"), modules.join(".package-lock.json")).unwrap();
    assert!(step.done(Millis(world.now)).is_err(), "a link is not followed");
    fs::remove_file(modules.join(".package-lock.json")).unwrap();
    nix::unistd::mkfifo(&modules.join(".package-lock.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(step.done(Millis(world.now)).is_err(), "a pipe is not waited for");
}

#[test]
fn a_broken_record_means_an_install() {
    let world = World::new();
    let step = world.install("npx -y srv");
    World::npm_brings(&step, LOCK);
    step.done(Millis(world.now)).unwrap();
    let record = step.step.cwd.join("../../installed.json");
    for text in ["", "{", r#"{"command":"x"}"#] {
        fs::write(&record, text).unwrap();
        assert!(world.install("npx -y srv").required, "{text}");
    }
}

#[test]
fn uvx_packages() {
    let world = World::new();
    let step = world.install("uvx Srv_Time --zone x");
    assert_eq!(step.step.args, ["--from", "Srv_Time", "python", "-c", ""]);
    assert_eq!(step.hosts.len(), 2);
    assert_eq!(access(&step.step.confinement.grants, &world.at("bin/uv")), Some(Access::Read));
    let cache = step.step.cwd.join("uv/cache/archive-v0");
    for dir in ["a/srv_time-2.0.dist-info", "b/lib/python3.12/site-packages/srv_time-2.0.dist-info"] {
        fs::create_dir_all(cache.join(dir)).unwrap();
        fs::write(cache.join(dir).join("RECORD"), dir).unwrap();
    }
    step.done(Millis(world.now)).unwrap();
    assert!(matches!(world.plan("uvx Srv_Time --zone x"), Err(PlanError::NoProgram { .. })));
    fs::create_dir_all(cache.join("b/bin")).unwrap();
    fs::write(cache.join("b/bin/srv-time"), "").unwrap();
    let run = world.run("uvx Srv_Time --zone x");
    let What::Package(package) = &run.identity.as_ref().unwrap().what else { panic!("{run:?}") };
    assert_eq!((package.name.as_str(), package.version.as_str()), ("srv-time", "2.0"));
    assert!(package.integrity.as_deref().is_some_and(|i| i.starts_with("sha256:")));
    assert_eq!((run.step.program, run.step.args), (cache.join("b/bin/srv-time"), vec!["--zone".into(), "x".into()]));
    assert_eq!(access(&run.step.confinement.grants, &cache.join("b")), Some(Access::Read));
    assert_eq!(var(&step.step.env, "UV_COMPILE_BYTECODE"), Some(OsStr::new("1")));
}

#[test]
fn the_program_that_npx_would_run() {
    for (line, manifest, want) in [
        ("npx -y srv a", r#"{"bin":"s.js"}"#, Some("srv a")),
        ("npx -y srv", r#"{"bin":{"other":"o.js"}}"#, Some("other")),
        ("npx -y srv", r#"{"bin":{"a":"s.js","other":"s.js"}}"#, None),
        ("npx -y srv", r#"{"bin":{"other":"o.js","b":"b.js"}}"#, None),
        ("npx -y srv", "{}", None),
        ("npx -y srv", "not json", None),
        ("npx -p srv other -x", "{}", Some("other -x")),
        ("npx -p srv absent", "{}", None),
    ] {
        let world = World::new();
        let step = world.install(line);
        World::npm_brings(&step, LOCK);
        let modules = step.step.cwd.join("npm/_npx/abc/node_modules");
        fs::write(modules.join("srv/package.json"), manifest).unwrap();
        step.done(Millis(world.now)).unwrap();
        let got = match world.plan(line) {
            Ok(Plan::Run(run)) => {
                let program = run.step.program.strip_prefix(modules.join(".bin")).unwrap().as_os_str().to_owned();
                Some([vec![program], run.step.args].concat().join(OsStr::new(" ")).into_string().unwrap())
            }
            Ok(Plan::Install(step)) => panic!("{step:?}"),
            Err(PlanError::NoProgram { .. }) => None,
            Err(e) => panic!("{e}"),
        };
        assert_eq!(got.as_deref(), want, "{line} {manifest}");
    }
    // A shell runs what --call says; what no package brings is looked up in PATH.
    for (line, program, args) in
        [("npx -p srv -c other", "/bin/sh", vec!["-c", "other"]), ("npx -p srv node x.js", "@/bin/node", vec!["x.js"])]
    {
        let world = World::new();
        let step = world.install(line);
        World::npm_brings(&step, LOCK);
        step.done(Millis(world.now)).unwrap();
        let run = world.run(line);
        assert_eq!(run.step.program, Path::new(&program.replace('@', world.root.to_str().unwrap())), "{line}");
        assert_eq!(run.step.args, args, "{line}");
    }
}

#[test]
fn packages_of_the_project_need_no_install() {
    let world = World::new();
    world.file("home/app/node_modules/srv/package.json", r#"{"version":"1.0.0","bin":"cli.js"}"#);
    world.file("home/app/node_modules/srv/cli.js", "#!/usr/bin/env node\n");
    for (line, local) in
        [("npx -y srv", true), ("npx srv%1.0.0", true), ("npx srv%2.0.0", false), ("npx srv%^1", false)]
    {
        match world.plan(line).unwrap() {
            Plan::Run(run) => {
                assert!(local, "{line}");
                assert_eq!(access(&run.step.confinement.grants, &world.at("home/app")), Some(Access::Read));
                assert!(matches!(run.identity.as_ref().unwrap().what, What::Script { .. }));
            }
            Plan::Install(_) => assert!(!local, "{line}"),
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_file_of_a_projects_package_is_read_only_to_identify_it() {
    let mut world = World::new();
    world.file("home/app/node_modules/srv/package.json", r#"{"version":"1.0.0","bin":"cli.js"}"#);
    // A file that nobody can read, root included.
    symlink("/proc/self/mem", world.at("home/app/node_modules/srv/cli.js")).unwrap();
    assert!(matches!(world.plan("npx -y srv"), Err(PlanError::Io { .. })));
    world.identify = false;
    assert!(world.run("npx -y srv").identity.is_none());
}

/// A memory server's graph from before it was protected, once, and the latest.
#[test]
fn what_a_server_kept_beside_its_own_code_is_carried_over_once() {
    const PACKAGE: &str = "@modelcontextprotocol/server-memory";
    const COMMAND: &str = "npx -y %modelcontextprotocol/server-memory";
    let world = World::new();
    let kept = |tree: &str, name: &str, text: &str, seconds: u64| {
        let dist = world.at("home/.npm/_npx").join(tree).join("node_modules").join(PACKAGE).join("dist");
        fs::create_dir_all(&dist).unwrap();
        fs::write(dist.join(name), text).unwrap();
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(dist.join(name)).unwrap().set_modified(then).unwrap();
    };
    kept("a1", "memory.json", "old", 1_700_000_000);
    kept("b2", "memory.jsonl", "latest", 1_800_000_000);
    kept("c3", "memory.jsonl", "older", 1_750_000_000);
    symlink(world.at("home"), world.at("home/.npm/_npx/d4")).unwrap();
    let step = world.install(COMMAND);
    let lock = format!(r#"{{"packages":{{"node_modules/{PACKAGE}":{{"version":"1.2.3","integrity":"sha512-AA"}}}}}}"#);
    World::npm_brings(&step, &lock);
    let tree = step.step.cwd.join("npm/_npx/abc/node_modules");
    fs::create_dir_all(tree.join(".bin")).unwrap();
    fs::create_dir_all(tree.join(PACKAGE)).unwrap();
    fs::write(tree.join(PACKAGE).join("package.json"), r#"{"version":"1.2.3","bin":{"mcp-server-memory":"x.js"}}"#)
        .unwrap();
    fs::write(tree.join(PACKAGE).join("x.js"), "#!/usr/bin/env node\n").unwrap();
    symlink(tree.join(PACKAGE).join("x.js"), tree.join(".bin/mcp-server-memory")).unwrap();
    step.done(Millis(world.now)).unwrap();
    let run = world.run(COMMAND);
    let file = PathBuf::from(var(&run.step.env, "MEMORY_FILE_PATH").unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), "latest");
    assert!(run.notes.iter().any(|note| note.contains("copied what the server had in")), "{:?}", run.notes);
    // What the server then does with it is its own business.
    fs::remove_file(&file).unwrap();
    assert!(world.run(COMMAND).notes.iter().all(|note| !note.contains("copied")));
    assert!(!file.exists());
}
