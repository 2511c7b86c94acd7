//! Seatbelt profiles by what they decide, not by their text. They are never run here: that takes a Mac.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod evaluator;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use evaluator::{Evaluator, Form, On};
use firedoor_model::{
    launch::{Access, Confinement, Grant, Network},
    limits::Limits,
    network::Hosts,
    protected::ProtectedNames,
};
use firedoor_sandbox::seatbelt::{Profile, tag_word};
use proptest::prelude::*;

/// The names that Firedoor closes in every tree.
fn built_in() -> ProtectedNames {
    let text = include_str!("../../../../profiles/sandbox/protected.toml");
    let mut all: toml::Table = text.parse().unwrap();
    all.remove("tree").unwrap().try_into().unwrap()
}

fn confinement(network: Network) -> Confinement {
    let grant = |path: &str, access| Grant { path: path.into(), access };
    Confinement {
        grants: vec![
            grant("/Users/ann/work", Access::Edit),
            grant("/Users/ann/node", Access::Read),
            grant("/Users/ann/photos", Access::List),
            grant("/Users/ann/.firedoor/home", Access::Write),
            grant("/Users/ann/gone", Access::Write),
            grant("/Users/ann/link", Access::Read),
            grant("/Users/ann/other/.vscode", Access::Write),
        ],
        network,
        protected: built_in(),
        sockets: Vec::new(),
        own: Vec::new(),
        limits: Limits::default(),
    }
}

fn real(path: &Path) -> Option<PathBuf> {
    match path.to_str() {
        Some("/Users/ann/gone") => None,
        Some("/Users/ann/link") => Some("/private/var/data".into()),
        _ => Some(path.to_owned()),
    }
}

fn profile(confinement: &Confinement) -> Profile {
    Profile::new(confinement, 7, None, real).unwrap()
}

fn asked(profile: &Profile) -> Evaluator {
    Evaluator::new(profile.text(), profile.parameters())
}

fn proxy() -> Network {
    Network::Proxy("127.0.0.1:4711".parse().unwrap())
}

#[test]
fn files() {
    let sandbox = asked(&profile(&confinement(proxy())));
    assert!(sandbox.denies_come_last());
    for (operation, path, want) in [
        ("file-read-data", "/Users/ann/.ssh/id_rsa", false),
        ("file-read-data", "/Users/ann/Library/Keychains/login.keychain-db", false),
        ("file-read-metadata", "/Users/ann/.ssh/id_rsa", false),
        ("file-read-xattr", "/Users/ann/.ssh/id_rsa", false),
        ("file-read-data", "/Users/ann/workshop/plan", false),
        ("file-read-data", "/Users/ann/work/a.txt", true),
        ("file-write-create", "/Users/ann/work/new/a.txt", true),
        ("file-write-data", "/Users/ann/work/a.txt", true),
        ("file-write-unlink", "/Users/ann/work/a.txt", true),
        ("file-link", "/Users/ann/work/a.txt", false),
        ("file-clone", "/Users/ann/work/a.txt", false),
        ("file-mknod", "/Users/ann/work/a", false),
        ("process-exec", "/Users/ann/work/run.sh", true),
        ("process-exec-interpreter", "/Users/ann/work/run.sh", true),
        ("file-read-data", "/Users/ann/node/bin/node", true),
        ("process-exec", "/Users/ann/node/bin/node", true),
        ("file-map-executable", "/Users/ann/node/lib/x.dylib", true),
        ("file-write-data", "/Users/ann/node/bin/node", false),
        ("file-write-create", "/Users/ann/node/bin/new", false),
        ("file-read-data", "/Users/ann/photos/1.jpg", false),
        ("file-write-data", "/Users/ann/.firedoor/home/x", true),
        ("file-write-create", "/Users/ann/gone", false),
        ("file-read-data", "/private/var/data/x", true),
        ("file-read-metadata", "/Users/ann/link", true),
        ("file-read-data", "/Users/ann/link", false),
        ("file-read-data", "/usr/lib/dyld", true),
        ("process-exec", "/bin/sh", true),
        ("file-write-data", "/bin/sh", false),
        ("process-exec", "/Applications/Terminal.app/Contents/MacOS/Terminal", false),
        ("file-read-data", "/Applications/X.app/x", false),
        ("file-read-data", "/private/etc/master.passwd", false),
        ("file-read-data", "/private/etc/hosts", false),
        ("file-read-data", "/private/etc/resolv.conf", false),
        ("file-write-create", "/private/tmp/x", false),
        ("file-read-data", "/private/var/folders/zz/T/x", false),
        ("file-write-data", "/dev/null", true),
        ("file-read-data", "/dev/urandom", true),
        ("file-read-data", "/dev/tty", false),
        ("file-read-data", "/dev/rdisk0", false),
        ("file-write-create", "/Users/ann/Library/LaunchAgents/x.plist", false),
    ] {
        assert_eq!(sandbox.allows(operation, On { path, ..On::default() }), want, "{operation} {path}");
    }
    for (operation, path, want) in [
        ("file-read-data", "/Users/ann/photos/2024", true),
        ("file-write-create", "/Users/ann/photos/2025", false),
        ("file-read-metadata", "/Users/ann/.ssh", true),
        ("file-read-data", "/Users/ann/.ssh", false),
        ("file-read-data", "/", true),
        ("file-read-data", "/Users", false),
        ("file-write-unlink", "/Users/ann/work", false),
        ("file-write-unlink", "/Users/ann/.firedoor/home", false),
        ("file-write-unlink", "/Users/ann/work/sub", true),
    ] {
        let on = On { path, kind: "DIRECTORY", ..On::default() };
        assert_eq!(sandbox.allows(operation, on), want, "{operation} {path}");
    }
}

#[test]
fn names_that_stay_closed() {
    let sandbox = asked(&profile(&confinement(Network::None)));
    let (file, directory) = ("REGULAR-FILE", "DIRECTORY");
    for (operation, path, kind, want) in [
        ("file-write-create", "/Users/ann/work/.git/hooks/pre-commit", file, false),
        ("file-write-data", "/Users/ann/work/.git/hooks/pre-commit", file, false),
        ("file-write-unlink", "/Users/ann/work/.git/hooks", directory, false),
        ("file-write-mode", "/Users/ann/work/.git/hooks/pre-commit", file, false),
        ("file-write-data", "/Users/ann/work/sub/.GIT/Hooks/pre-commit", file, false),
        ("file-write-data", "/Users/ann/work/.git/con\u{fb01}g", file, false),
        ("file-write-data", "/Users/ann/work/.git/config. ", file, false),
        ("file-write-create", "/Users/ann/work/.v\u{17f}code/tasks.json", file, false),
        ("file-write-create", "/Users/ann/work/.vs\u{200c}code", directory, false),
        ("file-read-data", "/Users/ann/work/.git/hooks/pre-commit", file, true),
        ("file-write-create", "/Users/ann/work/.git/objects/ab", directory, true),
        ("file-write-create", "/Users/ann/work/.git/refs/heads/x", file, true),
        ("file-write-data", "/Users/ann/work/.git/HEAD", file, true),
        ("file-write-data", "/Users/ann/work/.git/logs/HEAD", file, true),
        // A name that begins a closed one neither comes nor goes.
        ("file-write-create", "/Users/ann/work/.git", directory, false),
        ("file-write-unlink", "/Users/ann/work/.git", directory, false),
        ("file-write-create", "/Users/ann/work/.git", file, false),
        ("file-write-data", "/Users/ann/work/.git", file, false),
        ("file-write-create", "/Users/ann/work/.github", directory, false),
        ("file-write-create", "/Users/ann/work/.github/CODEOWNERS", file, true),
        // A directory with it is a repository by itself.
        ("file-write-create", "/Users/ann/work/bare/HEAD", file, false),
        ("file-write-unlink", "/Users/ann/work/.git/fake", directory, false),
        ("file-write-unlink", "/Users/ann/work/src", directory, true),
        // What could be moved to a closed place.
        ("file-write-create", "/Users/ann/work/x/commondir", file, false),
        ("file-write-create", "/Users/ann/.firedoor/home/x/.git/hooks", directory, false),
        ("file-write-create", "/Users/ann/.firedoor/home/.git", directory, false),
        ("file-write-create", "/Users/ann/.firedoor/home/.vscode", directory, false),
        ("file-write-create", "/Users/ann/work/config", directory, true),
        ("file-write-create", "/Users/ann/work/a/mcporter.json", file, false),
        ("file-write-create", "/Users/ann/work/.vscode2", directory, true),
        ("file-write-create", "/Users/ann/work/vscode", directory, true),
        // Somebody named it.
        ("file-write-create", "/Users/ann/other/.vscode/tasks.json", file, true),
        ("file-write-create", "/Users/ann/other/.vscode/.git", directory, false),
        ("file-write-create", "/Users/ann/other/.vscode/a/.vscode", directory, true),
        ("file-write-unlink", "/Users/ann/other/.vscode/a", directory, false),
        ("file-write-unlink", "/Users/ann/other/.vscode/tasks.json", file, true),
    ] {
        let on = On { path, kind, ..On::default() };
        assert_eq!(sandbox.allows(operation, on), want, "{operation} {kind} {path}");
    }
    // Without a tree to edit there is nothing to protect: an install step may unpack anything.
    let mut install = confinement(proxy());
    install.grants.retain(|g| g.access != Access::Edit);
    let sandbox = asked(&profile(&install));
    let on = On { path: "/Users/ann/.firedoor/home/p/.github/workflows/ci.yml", ..On::default() };
    assert!(sandbox.allows("file-write-create", on));
}

#[test]
fn network() {
    let remote = |remote| On { remote, ..On::default() };
    let cases = [
        ("127.0.0.1:4711", true),
        ("[::1]:4711", true),
        ("127.0.0.1:4712", false),
        ("192.0.2.1:4711", false),
        ("192.0.2.1:443", false),
        ("[2001:db8::1]:4711", false),
    ];
    for (network, open) in
        [(proxy(), true), (Network::None, false), (Network::Hosts(Hosts { ask: true, ..Hosts::default() }), false)]
    {
        let profile = profile(&confinement(network.clone()));
        assert_eq!(profile.missing().is_empty(), !matches!(network, Network::Hosts(_)));
        let sandbox = asked(&profile);
        for (to, want) in cases {
            assert_eq!(sandbox.allows("network-outbound", remote(to)), want && open, "{to} {network:?}");
            assert!(!sandbox.allows("network-inbound", remote(to)) && !sandbox.allows("network-bind", remote(to)));
        }
        for path in ["/private/var/run/mDNSResponder", "/private/tmp/agent.sock", "/Users/ann/work/own.sock"] {
            let on = On { path, ..On::default() };
            assert!(!sandbox.allows("network-outbound", on), "{path}");
        }
        for (domain, protocol, want) in [("AF_SYSTEM", "2", true), ("AF_SYSTEM", "1", false), ("AF_UNIX", "0", false)] {
            let on = On { socket: (domain, protocol), ..On::default() };
            assert_eq!(sandbox.allows("system-socket", on), want, "{domain}");
        }
    }
    let mut granted = confinement(Network::Hosts(Hosts::default()));
    granted.sockets = vec!["/Users/ann/db.sock".into()];
    let sandbox = asked(&profile(&granted));
    assert!(sandbox.allows("network-outbound", On { path: "/Users/ann/db.sock", ..On::default() }));
    assert!(!sandbox.allows("network-outbound", On { path: "/Users/ann/db.sock2", ..On::default() }));
}

/// A server whose hosts are listed reaches the proxy, ports of this machine that were granted, and nothing else.
#[test]
fn listed_hosts() {
    let grants = ["a.example:443", "9.9.9.9", "127.0.0.1:5432", "[::1]:6379", "10.0.0.1:80", "localhost:70", "*:1/udp"];
    let allowed = grants.map(|g| g.parse().unwrap()).to_vec();
    let hosts = Hosts { allowed, listen: true, ask: true, ..Hosts::default() };
    let confinement = confinement(Network::Hosts(hosts));
    let profile = Profile::new(&confinement, 7, Some("127.0.0.1:4711".parse().unwrap()), real).unwrap();
    assert_eq!(profile.missing().len(), 2, "{:?}", profile.missing());
    let sandbox = asked(&profile);
    for (remote, want) in [
        ("127.0.0.1:4711", true),
        ("127.0.0.1:5432", true),
        ("[::1]:6379", true),
        ("127.0.0.1:70", true),
        ("127.0.0.1:71", false),
        ("127.0.0.1:80", false),
        ("10.0.0.1:80", false),
        ("9.9.9.9:443", false),
        ("192.0.2.1:4711", false),
    ] {
        let on = On { remote, ..On::default() };
        assert_eq!(sandbox.allows("network-outbound", on), want, "{remote}");
        assert!(!sandbox.allows("network-bind", on) && !sandbox.allows("network-inbound", on));
    }
    assert!(!profile.text().contains("(local "));
    assert!(Profile::new(&confinement, 7, Some("192.0.2.1:1".parse().unwrap()), real).is_err());
}

#[test]
fn services_and_the_kernel() {
    let sandbox = asked(&profile(&confinement(proxy())));
    for (operation, name, want) in [
        ("mach-lookup", "com.apple.system.opendirectoryd.libinfo", true),
        ("mach-lookup", "com.apple.logd", true),
        ("mach-lookup", "com.apple.SecurityServer", false),
        ("mach-lookup", "com.apple.securityd.xpc", false),
        ("mach-lookup", "com.apple.pasteboard.1", false),
        ("mach-lookup", "com.apple.trustd.agent", false),
        ("mach-lookup", "com.apple.mDNSResponder", false),
        ("mach-lookup", "com.apple.dnssd.service", false),
        ("mach-lookup", "com.apple.SystemConfiguration.configd", false),
        ("mach-lookup", "com.apple.coreservices.launchservicesd", false),
        ("mach-lookup", "com.apple.windowserver.active", false),
        ("mach-lookup", "com.apple.tccd", false),
        ("mach-register", "com.example.anything", false),
        ("job-creation", "", false),
        ("appleevent-send", "com.apple.finder", false),
        ("distributed-notification-post", "x", false),
        ("lsopen", "", false),
        ("user-preference-read", "com.apple.finder", false),
        ("sysctl-read", "hw.ncpu", true),
        ("sysctl-read", "kern.proc.pid.1", true),
        ("sysctl-read", "kern.proc.all", false),
        ("sysctl-read", "kern.procargs2", false),
        ("sysctl-write", "kern.tcsm_enable", true),
        ("sysctl-write", "kern.hostname", false),
        ("iokit-open", "RootDomainUserClient", true),
        ("iokit-open", "IOHIDLibUserClient", false),
        ("iokit-open", "IOSurfaceRootUserClient", false),
        ("ipc-posix-shm-read-data", "apple.shm.notification_center", true),
        ("ipc-posix-shm-write-data", "apple.shm.notification_center", false),
        ("ipc-posix-shm-read-data", "other", false),
    ] {
        assert_eq!(sandbox.allows(operation, On { name, ..On::default() }), want, "{operation} {name}");
    }
    for same_sandbox in [true, false] {
        let on = On { same_sandbox, ..On::default() };
        for operation in ["signal", "process-info-pidinfo"] {
            assert_eq!(sandbox.allows(operation, on), same_sandbox, "{operation}");
        }
        assert!(!sandbox.allows("mach-priv-task-port", on));
    }
    assert!(sandbox.allows("process-fork", On::default()));
    assert!(!sandbox.allows("system-privilege", On::default()));
}

/// Nothing from outside is in the text, and nothing that admits more than it says.
#[test]
fn text() {
    let mut hostile = confinement(proxy());
    let path = "/Users/ann/x\") (allow default) (allow file-read* (subpath \"/=é\n";
    hostile.grants.push(Grant { path: path.into(), access: Access::Edit });
    let made = profile(&hostile);
    assert!(!made.text().contains("ann") && !made.text().contains("é"));
    let command = made.command();
    assert_eq!(command[0], "/usr/bin/sandbox-exec");
    assert!(command.iter().any(|w| w.to_str().is_some_and(|w| w.ends_with(&format!("={path}")))));
    assert_eq!(command[command.len() - 3..][0], "-p");
    assert!(made.text().contains(&tag_word(7)));
    assert_eq!(made.skipped(), [PathBuf::from("/Users/ann/gone")]);
    for absent in
        ["(local ", "(allow default)", "(allow mach-lookup)", "(allow network*)", "no-sandbox", "import", "regex #"]
    {
        assert!(!made.text().contains(absent), "{absent}");
    }
    // Which rules there are besides the base's: a change of this list is a change of what servers may do.
    let base = evaluator::read(include_str!("../../../../profiles/seatbelt/base.sbpl"));
    let mut plain = confinement(proxy());
    plain.protected = ProtectedNames { names: vec![".git/hooks".parse().unwrap()], ..ProtectedNames::default() };
    let own = evaluator::read(profile(&plain).text()).into_iter().filter(|form| !base.contains(form));
    assert_eq!(own.map(|f| shown(&f)).collect::<Vec<_>>().join("\n"), include_str!("golden.sbpl").trim_end());
}

fn shown(form: &Form) -> String {
    match form {
        Form::Word(word) => word.clone(),
        Form::Text(text) => format!("{text:?}"),
        Form::List(items) => format!("({})", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
    }
}

#[test]
fn refused() {
    let error = |change: &dyn Fn(&mut Confinement)| {
        let mut confinement = confinement(Network::None);
        change(&mut confinement);
        Profile::new(&confinement, 0, None, real).unwrap_err().to_string()
    };
    let grant = |path: PathBuf| Grant { path, access: Access::Read };
    let raw: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(b"/a\xff".to_vec());
    for (got, want) in [
        (error(&|c| c.grants.push(grant("rel".into()))), "must be absolute"),
        (error(&|c| c.grants.push(grant(PathBuf::from(&raw)))), "cannot be passed"),
        (error(&|c| c.grants.push(grant("/a\0b".into()))), "cannot be passed"),
        (error(&|c| c.grants = vec![grant("/a".into()); 4097]), "at most 4096"),
        (error(&|c| c.network = Network::Proxy("192.0.2.1:80".parse().unwrap())), "loopback"),
        (error(&|c| c.network = Network::Proxy("127.0.0.2:80".parse().unwrap())), "loopback"),
    ] {
        assert!(got.contains(want), "{got}");
    }
}

/// The kernel's word on our reading.
#[cfg(target_os = "macos")]
#[test]
fn the_system_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap();
    for path in ["work/.git/hooks", "secret"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    for path in ["work/a", "work/.git/hooks/pre-commit", "secret/b"] {
        std::fs::write(root.join(path), "x").unwrap();
    }
    let mut confinement = confinement(Network::None);
    confinement.grants = vec![Grant { path: root.join("work"), access: Access::Edit }];
    let command = Profile::new(&confinement, 7, None, |path| Some(path.to_owned())).unwrap().command();
    for (program, path, want) in [
        ("/bin/cat", "work/a", true),
        ("/bin/cat", "secret/b", false),
        ("/usr/bin/touch", "work/new", true),
        ("/usr/bin/touch", "secret/new", false),
        ("/bin/mkdir", "work/src", true),
        ("/bin/mkdir", "work/.github", false),
        ("/usr/bin/touch", "work/.git/HEAD", true),
        ("/usr/bin/touch", "work/.git/hooks/post-commit", false),
        ("/bin/rmdir", "work/src", true),
        ("/bin/rm", "work/.git/hooks/pre-commit", false),
    ] {
        let mut run = std::process::Command::new(&command[0]);
        let status = run.args(&command[1..]).arg(program).arg(root.join(path)).status().unwrap();
        assert_eq!(status.success(), want, "{program} {path}");
    }
}

static NAMES: LazyLock<(ProtectedNames, Evaluator)> =
    LazyLock::new(|| (built_in(), asked(&profile(&confinement(Network::None)))));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What the guardian keeps closed on Linux, Seatbelt keeps closed.
    #[test]
    fn no_weaker_than_the_names(
        path in proptest::collection::vec(
            proptest::sample::select(vec![
                ".git", ".GIT", "hooks", "Hooks", "config", "con\u{fb01}g", "config.worktree", "commondir", "worktrees", "info",
                "attributes", "HEAD", "head", ".vscode", ".v\u{17f}code", ".github", "workflows", ".mcp.json", ".hg", "hgrc",
                ".jj", "repo", "config.toml", "mcporter.json", ".bashrc", "src", "a.txt", ".git.", "opencode.json ",
            ]),
            1..6,
        ),
    ) {
        let (names, sandbox) = &*NAMES;
        let path = format!("/Users/ann/work/{}", path.join("/"));
        let look = names.look(Path::new(&path));
        let on = On { path: &path, ..On::default() };
        if look.closed > 0 || look.directory_only {
            for operation in ["file-write-data", "file-write-create", "file-write-unlink", "file-write-mode"] {
                prop_assert!(!sandbox.allows(operation, on), "{operation} {path}");
            }
        }
        prop_assert!(sandbox.allows("file-read-data", on));
    }
}
