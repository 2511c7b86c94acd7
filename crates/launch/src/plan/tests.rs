//! Whole plans, over fake trees in scratch homes.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use crate::{Context, InstallStep, Plan, PlanError, Profiles, ProxyAddress, Run, UserGrants, What, plan};
use firedoor_model::{
    EntryId, Millis,
    launch::{Access, Grant, LaunchRequest, Network},
    network::Hosts,
    paths::Paths,
};

const DAY: u64 = 24 * 60 * 60 * 1000;
const LOCK: &str = r#"{"packages":{"node_modules/srv":{"version":"1.2.3","integrity":"sha512-AA"}}}"#;

/// A scratch home with npx, node and uvx in `bin`, and a project.
struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    env: Vec<(String, String)>,
    declared: BTreeSet<String>,
    user: UserGrants,
    profile: Option<String>,
    proxy: bool,
    now: u64,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let world = Self {
            _dir: dir,
            env: vec![("PATH".into(), root.join("bin").display().to_string())],
            root,
            declared: BTreeSet::new(),
            user: UserGrants::default(),
            profile: None,
            proxy: true,
            now: 1_800_000_000_000,
        };
        for (name, text) in [
            ("bin/node", "\u{7f}ELF"),
            ("bin/npx", "#!/usr/bin/env node\n"),
            ("bin/uvx", "\u{7f}ELF"),
            ("bin/uv", "\u{7f}ELF"),
            ("bin/gosrv", "\u{7f}ELF"),
            ("home/app/package.json", "{}"),
            ("home/app/index.js", "1"),
            ("home/.ssh/id", "secret"),
            ("home/data/x", "x"),
            ("home/.aws/config", "x"),
        ] {
            world.file(name, text);
        }
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn plan(&self, line: &str) -> Result<Plan, PlanError> {
        let line = line.replace('@', self.root.to_str().unwrap()).replace('%', "@");
        let mut words = line.split(' ').map(OsString::from);
        let home = self.at("home");
        let paths = Paths::from_env(|n| (n == "HOME").then(|| home.clone().into())).unwrap();
        let (profiles, problems) = Profiles::load(&paths.config.join("profiles"));
        assert_eq!(problems, []);
        let request = LaunchRequest {
            entry: EntryId::new("c", "user", "s").unwrap(),
            program: words.next().unwrap(),
            args: words.collect(),
            cwd: self.at("home/app"),
            env: self.env.iter().map(|(n, v)| (n.into(), v.into())).collect(),
        };
        let proxy = ProxyAddress { address: "127.0.0.1:9".parse().unwrap(), user: "u".into(), token: "t0k".into() };
        let context = Context {
            profile: self.profile.as_deref(),
            declared_env: Some(&self.declared),
            proxy: self.proxy.then_some(proxy),
            ..Context::new(&paths, &profiles, &self.user, Millis(self.now))
        };
        plan(&request, &context)
    }

    fn run(&self, line: &str) -> Run {
        match self.plan(line).unwrap() {
            Plan::Run(run) => *run,
            Plan::Install(step) => panic!("{step:?}"),
        }
    }

    fn install(&self, line: &str) -> InstallStep {
        match self.plan(line).unwrap() {
            Plan::Install(step) => *step,
            Plan::Run(run) => panic!("{run:?}"),
        }
    }

    /// What the install of `srv` leaves behind.
    fn npm_brings(step: &InstallStep, lock: &str) {
        let modules = step.step.cwd.join("npm/_npx/abc/node_modules");
        for dir in [".bin", "srv"] {
            fs::create_dir_all(modules.join(dir)).unwrap();
        }
        fs::write(modules.join(".package-lock.json"), lock).unwrap();
        fs::write(modules.join("srv/package.json"), r#"{"bin":{"other":"o.js","srv":"s.js"}}"#).unwrap();
        fs::write(modules.join(".bin/srv"), "").unwrap();
        fs::write(modules.join(".bin/other"), "").unwrap();
    }
}

fn access(grants: &[Grant], path: &Path) -> Option<Access> {
    grants.iter().find(|g| g.path == path).map(|g| g.access)
}

fn var<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let mut all = env.iter().filter(|(n, _)| n == name);
    let first = all.next().map(|(_, v)| v.as_os_str());
    assert!(all.next().is_none(), "{name} is set once");
    first
}

#[test]
fn a_script_gets_its_project_and_private_directories() {
    let mut world = World::new();
    world.env.push(("HOME".into(), world.at("home").display().to_string()));
    let run = world.run("node index.js");
    let grants = &run.step.confinement.grants;
    assert_eq!(access(grants, &world.at("home/app")), Some(Access::Read));
    assert_eq!(access(grants, &world.at("bin/node")), Some(Access::Read));
    assert_eq!(access(grants, Path::new("/usr")), Some(Access::Read));
    assert_eq!(access(grants, Path::new("/dev/null")), Some(Access::Write));
    for closed in ["/", "/proc", "/tmp", "/run", "/etc", "/etc/resolv.conf", "/home"] {
        assert_eq!(access(grants, Path::new(closed)), None, "{closed}");
    }
    let home = PathBuf::from(var(&run.step.env, "HOME").unwrap());
    assert!(home.starts_with(world.at("home/.local/share/firedoor/servers")));
    assert_eq!(access(grants, &home), Some(Access::Write));
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    // Neither what lies above the private home, nor the record of installs beside it.
    assert!(!grants.iter().any(|g| home.parent().unwrap().starts_with(&g.path)), "{grants:?}");
    assert_eq!(run.step.confinement.network, Network::Hosts(Hosts::default()));
    assert_eq!((run.step.cwd, run.profile.as_str()), (world.at("home/app"), "node"));
    assert!(
        matches!(&run.identity.as_ref().unwrap().what, What::Script { path, .. } if *path == world.at("home/app/index.js"))
    );
}

#[test]
fn identities_follow_files_and_arguments() {
    let world = World::new();
    let first = world.run("gosrv a b").identity;
    assert!(matches!(&first.as_ref().unwrap().what, What::Executable { path, .. } if *path == world.at("bin/gosrv")));
    assert_eq!(world.run("gosrv a b").identity, first);
    assert_ne!(world.run("gosrv a c").identity, first);
    world.file("bin/gosrv", "other");
    assert_ne!(world.run("gosrv a b").identity, first);
}

#[test]
fn the_environment_is_cut() {
    let mut world = World::new();
    for name in ["GITHUB_TOKEN", "DECLARED_TOKEN", "GRANTED_KEY", "LD_PRELOAD", "XDG_RUNTIME_DIR", "LANG"] {
        world.env.push((name.into(), "v".into()));
    }
    world.declared.insert("DECLARED_TOKEN".into());
    world.user.env.insert("GRANTED_KEY".into());
    let run = world.run("gosrv");
    assert_eq!(run.dropped_env, ["GITHUB_TOKEN", "LD_PRELOAD", "XDG_RUNTIME_DIR"]);
    for name in ["DECLARED_TOKEN", "GRANTED_KEY", "LANG"] {
        assert_eq!(var(&run.step.env, name), Some(OsStr::new("v")), "{name}");
    }
    assert!(!format!("{run:?}").contains("DECLARED_TOKEN\", \"v"));
    let tmp = fs::read_link(var(&run.step.env, "TMPDIR").unwrap()).unwrap();
    assert_eq!(access(&run.step.confinement.grants, &tmp), Some(Access::Write));
}

#[test]
fn user_grants_are_cut_and_explained() {
    let mut world = World::new();
    let grant = |path: PathBuf| Grant { path, access: Access::Write };
    world.user.grants = vec![grant(world.at("home")), grant(world.at("home/.config/firedoor")), grant("/".into())];
    fs::create_dir_all(world.at("home/.config/firedoor")).unwrap();
    let run = world.run("gosrv");
    let grants = &run.step.confinement.grants;
    assert_eq!(access(grants, &world.at("home")), Some(Access::List));
    assert_eq!(access(grants, &world.at("home/data")), Some(Access::Edit));
    assert!(!grants.iter().any(|g| g.path.starts_with(world.at("home/.ssh"))));
    let notes = run.notes.join("\n");
    for want in ["one by one", "belongs to Firedoor", "holds too much"] {
        assert!(notes.contains(want), "{want}: {notes}");
    }
}

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

#[test]
fn profiles_grant_arguments_and_state() {
    let world = World::new();
    world.file(
        "home/.config/firedoor/profiles/mine.toml",
        "description = \"d\"\nstate = [\"~/.aws\"]\nargs = \"ro\"\nenv = [\"MY_TOKEN\"]\n[match]\nexecutable = [\"gosrv\"]\n",
    );
    let run = world.run("gosrv @/home/data --dir=@/home/app ~/.ssh relative @/absent");
    let grants = &run.step.confinement.grants;
    assert_eq!(run.profile, "mine");
    assert_eq!(access(grants, &world.at("home/data")), Some(Access::Read));
    assert_eq!(access(grants, &world.at("home/app")), Some(Access::Read));
    assert_eq!(access(grants, &world.at("home/.ssh")), None);
    assert!(run.notes.join("").contains("protected place"), "{:?}", run.notes);
    assert_eq!(access(grants, &world.at("home/.aws")), Some(Access::Edit));
    let home = PathBuf::from(var(&run.step.env, "HOME").unwrap());
    assert_eq!(fs::read_link(home.join(".aws")).unwrap(), world.at("home/.aws"));
    // The server replaces the link: the plan fails rather than following it.
    fs::remove_file(home.join(".aws")).unwrap();
    symlink(world.at("home/.ssh"), home.join(".aws")).unwrap();
    assert!(matches!(world.plan("gosrv"), Err(PlanError::Planted { .. })));
}

#[test]
fn a_profile_can_be_named() {
    let mut world = World::new();
    world.profile = Some("filesystem".into());
    let run = world.run("gosrv @/home/data");
    assert_eq!(run.profile, "filesystem");
    assert_eq!(access(&run.step.confinement.grants, &world.at("home/data")), Some(Access::Edit));
    world.profile = Some("absent".into());
    assert!(world.plan("gosrv").unwrap_err().to_string().contains("no usable profile"));
}

#[test]
fn uv_run_needs_a_synchronised_project() {
    let world = World::new();
    let error = |line: &str| world.plan(line).unwrap_err().to_string();
    assert!(error("uv run srv").contains("no pyproject.toml"));
    world.file("home/app/pyproject.toml", "");
    assert!(error("uv run srv").contains("Run `uv sync`"));
    world.file("home/app/.venv/bin/python", "\u{7f}ELF");
    world.file("home/app/.venv/pyvenv.cfg", "home = /usr/bin\n");
    world.file("home/app/.venv/bin/srv", "#!python");
    let run = world.run("uv run srv --x");
    assert!(
        matches!(&run.identity.as_ref().unwrap().what, What::Script { path, .. } if *path == world.at("home/app/.venv/bin/srv"))
    );
    assert_eq!(access(&run.step.confinement.grants, &world.at("home/app")), Some(Access::Read));
    assert_eq!(var(&run.step.env, "UV_NO_SYNC"), Some(OsStr::new("1")));
    let run = world.run("uv run --directory @/home/app -- python index.js");
    assert!(
        matches!(&run.identity.as_ref().unwrap().what, What::Script { path, .. } if *path == world.at("home/app/index.js"))
    );
}

#[test]
fn hosts_and_sockets_are_the_profiles_and_the_users() {
    let mut world = World::new();
    let reach = |world: &World, line: &str| {
        let run = world.run(line);
        let Network::Hosts(hosts) = run.step.confinement.network else { panic!("not judged by host") };
        let hosts: Vec<String> =
            hosts.allowed.iter().map(ToString::to_string).chain(hosts.listen.then(|| "listen".into())).collect();
        (hosts, run.step.confinement.sockets, run.notes)
    };
    assert_eq!(reach(&world, "gosrv"), (Vec::new(), Vec::new(), Vec::new()));
    let profiles = world.at("home/.config/firedoor/profiles");
    fs::create_dir_all(&profiles).unwrap();
    let text = "description = \"x\"\nhosts = [\"api.example.com:443\"]\nunix = [\"~/x.sock\"]\nlisten = true\n[match]\nexecutable = [\"gosrv\"]";
    fs::write(profiles.join("gosrv.toml"), text).unwrap();
    let own = world.at("home/.local/state/firedoor/run/engine.sock");
    world.user.hosts = vec!["*.example.org".parse().unwrap()];
    world.user.sockets = vec!["/run/docker.sock".into(), own];
    let (hosts, sockets, notes) = reach(&world, "gosrv");
    assert_eq!(hosts, ["*.example.org", "api.example.com:443", "listen"]);
    assert_eq!(sockets, [PathBuf::from("/run/docker.sock"), world.at("home/x.sock")]);
    assert!(notes.join(";").contains("engine.sock is not granted: it belongs to Firedoor"), "{notes:?}");
}

#[test]
fn what_the_entry_itself_names_is_reached() {
    let mut world = World::new();
    let profile = "description = \"d\"\nendpoints = { schemes = { postgresql = 5432 }, variables = [\"DB_URL\"] }\n[match]\nexecutable = [\"gosrv\"]";
    world.file("home/.config/firedoor/profiles/mine.toml", profile);
    world.env.push(("DB_URL".into(), "postgresql://u:p@db.example.com/x".into()));
    let hosts = |world: &World| {
        let run = world.run("gosrv postgresql://localhost:6000/x");
        let Network::Hosts(hosts) = run.step.confinement.network else { panic!("not judged by host") };
        hosts.allowed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // A variable that the server does not get names no host either.
    assert_eq!(hosts(&world), ["127.0.0.1:6000", "[::1]:6000"]);
    world.declared.insert("DB_URL".into());
    assert_eq!(hosts(&world), ["127.0.0.1:6000", "[::1]:6000", "db.example.com:5432"]);
    let notes = world.run("gosrv postgresql://a%b%c/x").notes;
    assert!(notes.join("").contains("argument 1 names is not granted"), "{notes:?}");
}

#[test]
fn profiles_set_variables_and_arguments() {
    let mut world = World::new();
    let profile = "description = \"d\"\narguments = [\"--flag=a\"]\n[match]\nexecutable = [\"gosrv\"]\n[variables]\nFIRST = \"~/f\"\nSECOND = \"2\"";
    world.file("home/.config/firedoor/profiles/mine.toml", profile);
    world.env.push(("SECOND".into(), "mine".into()));
    let run = world.run("gosrv x");
    let home = PathBuf::from(var(&run.step.env, "HOME").unwrap());
    assert_eq!(var(&run.step.env, "FIRST"), Some(home.join("f").as_os_str()));
    assert_eq!(var(&run.step.env, "SECOND"), Some(OsStr::new("mine")));
    assert_eq!(run.step.args, ["x", "--flag=a"]);
    assert_eq!(world.run("gosrv --flag=a x").step.args, ["--flag=a", "x"]);
    // What the profile adds is no part of what the user configured.
    assert_eq!(run.identity.as_ref().unwrap().args, world.run("gosrv x").identity.as_ref().unwrap().args);
}

#[test]
fn launch_kinds_have_profiles_beneath_the_servers_own() {
    let world = World::new();
    world.file("bin/docker", "\u{7f}ELF");
    world.file("bin/script", "#!/usr/bin/env node\n");
    for (line, want) in [("node index.js", "node"), ("gosrv", "native"), ("docker run x", "docker"), ("script", "node")]
    {
        assert_eq!(world.run(line).profile, want, "{line}");
    }
    assert!(world.run("docker run --privileged x").notes.join("").contains("what root can"));
    world.file(
        "home/.config/firedoor/profiles/native.toml",
        "description = \"d\"\nhosts = [\"a.example:443\"]\n[match]\nkind = [\"native\"]",
    );
    world.file(
        "home/.config/firedoor/profiles/mine.toml",
        "description = \"d\"\nhosts = [\"b.example:443\"]\n[match]\nexecutable = [\"gosrv\"]",
    );
    let run = world.run("gosrv");
    let Network::Hosts(hosts) = run.step.confinement.network else { panic!("not judged by host") };
    let hosts: Vec<_> = hosts.allowed.iter().map(ToString::to_string).collect();
    assert_eq!((run.profile.as_str(), hosts), ("mine", vec!["b.example:443".into(), "a.example:443".to_owned()]));
}

#[test]
fn errors_say_what_to_do() {
    let world = World::new();
    for (line, want) in [
        ("absent", "was not found"),
        ("npx --cache x srv", "Install the package yourself"),
        ("npx -y ./srv", "only packages of a registry"),
        ("uv sync", "only `uv run`"),
    ] {
        let error = world.plan(line).unwrap_err().to_string();
        assert!(error.contains(want), "{line}: {error}");
    }
}

#[test]
fn modules_are_run_by_our_runtime() {
    let mut world = World::new();
    world.file("bin/firedoor-wasm", "\u{7f}ELF");
    world.file("home/tools/t.wasm", "\0asm");
    world.file("home/data/sub/y", "y");
    world.declared.insert("TOKEN".into());
    world.env.push(("TOKEN".into(), "t".into()));
    let run =
        world.run("@/bin/firedoor-wasm run --memory 9 --dir @/home/data::/data --env TOKEN @/home/tools/t.wasm -x");
    assert_eq!(run.profile, "wasm");
    assert_eq!(run.step.program, world.at("bin/firedoor-wasm"));
    let args = |run: &Run| {
        let words: Vec<_> = run.step.args.iter().map(|a| a.to_string_lossy()).collect();
        let line = words.join(" ").replace(world.root.to_str().unwrap(), "@");
        let (before, cache) = line.split_once("--cache ").unwrap();
        format!("{before}{}", cache.split_once(' ').unwrap().1)
    };
    let tail = "-- @/home/tools/t.wasm -x";
    assert_eq!(args(&run), format!("run --memory 9 --dir @/home/data::/data --env TOKEN {tail}"));
    assert!(
        matches!(run.identity.as_ref().map(|i| &i.what), Some(What::Script { path, .. }) if path.ends_with("t.wasm"))
    );
    let granted = |run: &Run, path: &str| {
        run.step.confinement.grants.iter().find(|g| g.path == world.at(path)).map(|g| g.access.asked())
    };
    assert_eq!(granted(&run, "home/data"), Some(Access::Write));
    assert_eq!(granted(&run, "home/tools/t.wasm"), Some(Access::Read));
    assert_eq!(granted(&run, "home/tools"), None);
    // What the user grants is opened inside, too; a host opens sockets.
    let mut granting = World::new();
    granting.file("bin/firedoor-wasm", "\u{7f}ELF");
    granting.file("t.wasm", "\0asm");
    granting.user.grants = vec![
        Grant { path: granting.at("home/data"), access: Access::Read },
        Grant { path: granting.at("t.wasm"), access: Access::Read },
    ];
    granting.user.hosts = vec!["example.org".parse().unwrap()];
    let run = granting.run("@/bin/firedoor-wasm run @/t.wasm");
    let words: Vec<String> = run.step.args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let data = granting.at("home/data").display().to_string();
    assert!(words.windows(2).any(|w| w == ["--dir-ro".to_owned(), format!("{data}::{data}")]), "{words:?}");
    assert!(words.contains(&"--net".to_owned()));
    assert!(run.notes.iter().any(|n| n.contains("directories only")), "{:?}", run.notes);
}

#[test]
fn modules_that_are_not_there() {
    let world = World::new();
    world.file("bin/firedoor-wasm", "\u{7f}ELF");
    world.file("t.wasm", "\0asm");
    let error = |line: &str| world.plan(line).unwrap_err().to_string();
    assert!(error("@/bin/firedoor-wasm run absent.wasm").contains("was not found"));
    // Here our runtime is not installed beside the test.
    assert!(error("wasmtime run @/t.wasm").contains("install Firedoor again"));
    assert!(error("@/t.wasm").contains("install Firedoor again"));
}
