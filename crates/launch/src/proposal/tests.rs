use std::{fs, path::PathBuf};

use firedoor_model::{launch::Grant, observation::Observed};
use proptest::prelude::*;

use super::*;
use crate::{
    profile::{self, ArgumentAccess, Profile},
    profile_path,
};

struct Home {
    _dir: tempfile::TempDir,
    path: PathBuf,
    paths: Paths,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(path.join(".ssh")).unwrap();
    let paths = Paths::from_env(|name| (name == "HOME").then(|| path.clone().into())).unwrap();
    Home { _dir: dir, path, paths }
}

impl Home {
    fn at(&self, path: &str) -> String {
        path.strip_prefix("~/").map_or(path.to_owned(), |rest| self.path.join(rest).display().to_string())
    }

    fn file(&self, path: &str, how: Use, allowed: bool) -> Observed {
        Observed::File { path: Untrusted::new(self.at(path)), how, allowed }
    }

    /// The profile that a proposal is, and its warnings.
    fn propose(&self, seen: Vec<Observed>, basis: &Basis) -> (Profile, Proposal) {
        let proposal = propose(&Record { seen: seen.into_iter().collect() }, basis, &self.paths);
        let parsed =
            profile::parse(&proposal.name, &proposal.toml).unwrap_or_else(|e| panic!("{e:?}: {}", proposal.toml));
        (parsed, proposal)
    }
}

fn basis() -> Basis {
    Basis {
        grants: vec![Grant { path: "/usr".into(), access: Access::Read }],
        in_force: vec![Grant { path: "/".into(), access: Access::Write }],
        hosts: vec!["*.example.com:443".parse().unwrap()],
        cwd: "/".into(),
        arguments: Vec::new(),
        subject: Some(("npm".into(), "@scope/server-x".into())),
        extends: None,
        ..Basis::default()
    }
}

#[test]
fn what_was_allowed_is_granted_and_what_was_refused_is_commented_out() {
    let home = home();
    let connection = |kind, target: &str, allowed| Observed::Connection { kind, target: target.into(), allowed };
    let (profile, proposal) = home.propose(
        vec![
            home.file("/usr/lib/libc.so", Use::Read, true),
            home.file("~/notes/a.md", Use::Read, true),
            home.file("~/notes/b.md", Use::Read, true),
            home.file("~/notes/new.md", Use::Create, true),
            home.file("~/work/refused.txt", Use::Read, false),
            home.file("~/.ssh/id_ed25519", Use::Read, false),
            home.file("/proc/self/maps", Use::Read, false),
            home.file("~/list", Use::List, true),
            connection(AttemptKind::Network, "api.example.com:443", true),
            connection(AttemptKind::Network, "evil.example:443", false),
            connection(AttemptKind::Network, "a.example:123 (UDP)", false),
            connection(AttemptKind::Socket, "/run/docker.sock", false),
            connection(AttemptKind::Listen, "127.0.0.1:80", false),
        ],
        &basis(),
    );
    assert_eq!((profile.read.as_slice(), profile.write.as_slice()), (&[][..], &["~/notes".to_owned()][..]));
    assert_eq!(profile.list, ["~/list"]);
    assert_eq!(profile.hosts, ["api.example.com:443".parse().unwrap()]);
    assert_eq!((profile.unix.len(), profile.listen, profile.args), (0, false, None));
    assert_eq!((profile.matches.npm, proposal.name.as_str()), (vec!["@scope/server-x".to_owned()], "server-x"));
    for line in [
        "  # \"~/work/refused.txt\",",
        "  # \"evil.example:443\",",
        "  # \"a.example:123/udp\",",
        "  # \"/run/docker.sock\",",
        "# listen = true",
    ] {
        assert!(proposal.toml.lines().any(|l| l == line), "{line} is missing in\n{}", proposal.toml);
    }
    assert!(!proposal.toml.contains(".ssh") && !proposal.toml.contains("/proc"), "{}", proposal.toml);
    let warnings = proposal.warnings.join("\n");
    assert!(warnings.contains("~/.ssh/id_ed25519 is a protected place, was refused"), "{warnings}");
}

#[test]
fn a_known_server_gets_what_its_profile_lacks() {
    let home = home();
    let project = home.at("~/project");
    let basis = Basis {
        arguments: vec![project.into()],
        profile_hosts: vec!["api.example.com:443".parse().unwrap()],
        sockets: vec!["/run/known.sock".into()],
        listen: true,
        extends: Some(("known".into(), false)),
        ..basis()
    };
    let connection = |kind, target: &str| Observed::Connection { kind, target: target.into(), allowed: true };
    let seen = vec![
        home.file("~/project/a", Use::Read, true),
        home.file("~/project/sub/b", Use::Create, true),
        home.file("~/.aws/config", Use::Read, true),
        connection(AttemptKind::Network, "api.example.com:443"),
        connection(AttemptKind::Network, "www.example.com:443"),
        connection(AttemptKind::Socket, "/run/known.sock"),
        connection(AttemptKind::Socket, "/run/other.sock"),
        connection(AttemptKind::Listen, "127.0.0.1:80"),
    ];
    let (profile, proposal) = home.propose(seen.clone(), &basis);
    assert_eq!((profile.args, profile.write.len()), (Some(ArgumentAccess::Write), 0));
    assert_eq!(profile.read, ["~/.aws/config"]);
    assert!(proposal.warnings.iter().any(|w| w.contains("~/.aws/config is a protected place, and was granted")));
    assert_eq!(
        (profile.hosts, profile.unix),
        (vec!["www.example.com:443".parse().unwrap()], vec!["/run/other.sock".to_owned()])
    );
    assert!(!profile.listen && !proposal.toml.contains("listen"));
    assert_eq!((profile.extends.as_deref(), proposal.name.as_str()), (Some("known"), "known"));
    let own = Basis { extends: Some(("known".into(), true)), ..basis };
    let (_, proposal) = home.propose(seen, &own);
    assert_eq!(proposal.name, "known-more");
    assert!(proposal.warnings.iter().any(|w| w.starts_with("known.toml, a profile of yours")));
}

/// Somebody may hand the engine a record of his own making.
#[test]
fn a_record_that_lies_opens_nothing() {
    let home = home();
    let basis = Basis { in_force: Vec::new(), hosts: Vec::new(), ..basis() };
    let host = Observed::Connection { kind: AttemptKind::Network, target: "evil.example:443".into(), allowed: true };
    let (profile, _) = home.propose(vec![home.file("~/notes/a", Use::Create, true), host], &basis);
    assert_eq!((profile.read.len(), profile.write.len(), profile.hosts.len()), (0, 0, 0));
}

/// Text that a server chose does not become part of the file.
#[test]
fn nothing_is_injected() {
    let home = home();
    for path in ["~/a\"]\nwrite = [\"/etc\"]#", "~/a\\", "~/\u{202e}x", "~/a/../b", "~/\u{7f}", "~/'''", "~/ä b"] {
        for allowed in [true, false] {
            let (profile, proposal) = home.propose(vec![home.file(path, Use::Read, allowed)], &basis());
            assert!(profile.write.is_empty(), "{}", proposal.toml);
            assert!(profile.read.iter().all(|r| home.at(r) == home.at(path)), "{:?}", profile.read);
        }
    }
    let name = "x\"]\n[evil".to_owned();
    let subject = Some(("npm".to_owned(), name.clone()));
    let (profile, proposal) = home.propose(Vec::new(), &Basis { subject, ..basis() });
    assert_eq!(profile.matches.npm, [name]);
    assert_eq!(proposal.name, "x----evil");
}

fn places() -> impl Strategy<Value = (String, Use, bool)> {
    let part =
        prop_oneof!["[a-c]", Just("node_modules".to_owned()), Just(".ssh".to_owned()), Just(".config".to_owned())];
    let root = prop_oneof![
        Just("~".to_owned()),
        Just(String::new()),
        Just("/usr".to_owned()),
        Just("/srv/x".to_owned()),
        Just("~/.config/firedoor".to_owned())
    ];
    let how = prop_oneof![Just(Use::List), Just(Use::Read), Just(Use::Execute), Just(Use::Write), Just(Use::Create)];
    (root, prop::collection::vec(part, 1..5), how, any::<bool>())
        .prop_map(|(root, parts, how, allowed)| (format!("{root}/{}", parts.join("/")), how, allowed))
}

proptest! {
    #[test]
    fn everything_allowed_is_covered_and_nothing_more_is_opened(seen in prop::collection::vec(places(), 0..60)) {
        let home = home();
        let protected = Protected::new(&home.paths);
        let basis = basis();
        let observed: Vec<_> = seen.iter().map(|(path, how, allowed)| home.file(path, *how, *allowed)).collect();
        let (profile, proposal) = home.propose(observed.clone(), &basis);
        let mut grants: Vec<(PathBuf, Access)> = Vec::new();
        for (paths, access) in [(&profile.list, Access::List), (&profile.read, Access::Read), (&profile.write, Access::Write)] {
            grants.extend(paths.iter().map(|p| (profile_path(p, &home.path), access)));
        }
        let covers = |path: &Path, access| grants.iter().any(|(g, a)| *a >= access && path.starts_with(g))
            || (access <= Access::Read && path.starts_with("/usr"));
        for one in &observed {
            let Observed::File { path, how, allowed: true } = one else { continue };
            let path = Path::new(path.raw());
            let path = if *how == Use::Create { path.parent().unwrap() } else { path };
            // What may not be granted at all is named instead.
            match protected.objection(path, how.needs()) {
                Some(Objection::Own | Objection::TooMuch) => {
                    let shown = words::shown(path, &home.path);
                    prop_assert!(covers(path, how.needs()) || proposal.warnings.len() >= MAX_WARNINGS
                        || proposal.warnings.iter().any(|w| w.starts_with(&format!("{shown} "))), "{shown}: {proposal:?}");
                }
                Some(Objection::Protected) | None => prop_assert!(covers(path, how.needs()), "{path:?} {how:?}: {}", proposal.toml),
            }
        }
        for (path, access) in &grants {
            match protected.objection(path, *access) {
                None => {}
                Some(Objection::Protected) => {
                    let named = observed.iter().any(|o| matches!(o, Observed::File { path: p, allowed: true, .. } if Path::new(p.raw()).starts_with(path)));
                    prop_assert!(named && proposal.warnings.iter().any(|w| w.contains("protected place, and was granted")), "{path:?}");
                }
                Some(other) => prop_assert!(false, "{path:?} is proposed although {other:?}"),
            }
        }
    }
}
