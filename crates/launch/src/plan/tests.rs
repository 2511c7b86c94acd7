//! Whole plans, over fake trees in scratch homes.

mod installs;
mod modules;
mod names;
mod planted;

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
    identify: bool,
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
            identify: true,
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
            identify: self.identify,
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
        // Wherever a granted name leads by then.
        let engine = world.at("home/.local/state/firedoor/run/engine.sock");
        assert!(run.step.confinement.own.iter().any(|own| engine.starts_with(own)), "{:?}", run.step.confinement.own);
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
fn a_file_that_a_variable_of_the_profile_names_is_granted_to_write() {
    let mut world = World::new();
    let profile = "description = \"d\"\npath_variables = [\"GRAPH\", \"OTHER\"]\n[match]\nexecutable = [\"gosrv\"]\n[variables]\nGRAPH = \"~/g\"";
    world.file("home/.config/firedoor/profiles/mine.toml", profile);
    world.file("home/graph.json", "");
    let graph = world.at("home/graph.json");
    let granted = |world: &World| {
        let run = world.run("gosrv x");
        (run.step.confinement.grants.iter().find(|g| g.path == graph).map(|g| g.access), run.notes.join("; "))
    };
    assert_eq!(granted(&world).0, None);
    world.env.push(("GRAPH".into(), graph.to_str().unwrap().into()));
    world.env.push(("OTHER".into(), "graph.json".into()));
    assert_eq!(granted(&world), (Some(Access::Edit), String::new()));
    // What is not there cannot be opened to one server alone, and Firedoor makes no files of the user's.
    fs::remove_file(&graph).unwrap();
    let (access, notes) = granted(&world);
    assert!(access.is_none() && notes.contains("GRAPH names") && notes.contains("grants add"), "{notes}");
    // Nor is a directory opened with all that lies in it.
    fs::create_dir(&graph).unwrap();
    assert!(granted(&world).0.is_none());
    // Somebody else may have written the entry: Firedoor's own files stay closed.
    world.file("home/.local/state/firedoor/firedoor.db", "");
    let own = world.at("home/.local/state/firedoor/firedoor.db").to_str().unwrap().to_owned();
    world.env.push(("OTHER".into(), own));
    assert!(granted(&world).1.contains("it belongs to Firedoor"));
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
