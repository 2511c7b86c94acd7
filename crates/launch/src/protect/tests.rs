use super::*;
use std::os::unix::fs::symlink;

struct Home {
    _dir: tempfile::TempDir,
    root: PathBuf,
    protected: Protected,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for d in [
        "h/.ssh",
        "h/.config/firedoor",
        "h/.config/app",
        "h/.config/gcloud",
        "h/.local/share/firedoor/servers/x/home",
        "h/.local/share/keyrings",
        "h/.local/share/notes",
        "h/.local/bin",
        "h/work/src",
        "real-kube",
    ] {
        fs::create_dir_all(root.join(d)).unwrap();
    }
    for f in ["h/.ssh/id", "h/.bashrc", "h/.netrc", "h/todo.txt", "h/work/a"] {
        fs::write(root.join(f), "x").unwrap();
    }
    symlink(root.join("h/.ssh"), root.join("h/work/keys")).unwrap();
    symlink(root.join("real-kube"), root.join("h/.kube")).unwrap();
    let var = |n: &str| (n == "HOME").then(|| root.join("h").into_os_string());
    let protected = Protected::new(&Paths::from_env(var).unwrap());
    Home { _dir: dir, root, protected }
}

fn shown(home: &Home, path: &str, access: Access, origin: Origin) -> (Vec<String>, String) {
    let path = if path.starts_with('/') { PathBuf::from(path) } else { home.root.join(path) };
    let cut = home.protected.cut(&path, access, origin);
    let grants = cut.grants.iter().map(|g| {
        let letter = match g.access {
            Access::List => 'l',
            Access::Read => 'r',
            Access::Edit => 'e',
            Access::Write => 'w',
        };
        format!("{letter} {}", g.path.strip_prefix(&home.root).unwrap_or(&g.path).display())
    });
    (grants.collect(), cut.notes.join("; "))
}

#[test]
fn a_plain_directory_is_granted_as_it_is() {
    let home = home();
    assert_eq!(shown(&home, "h/work", Access::Write, Origin::Derived), (vec!["e h/work".into()], String::new()));
    assert_eq!(shown(&home, "h/todo.txt", Access::Read, Origin::Named).0, ["r h/todo.txt"]);
    assert_eq!(shown(&home, "h", Access::List, Origin::Named).0, ["l h"]);
}

#[test]
fn a_home_is_taken_apart() {
    let home = home();
    let (grants, notes) = shown(&home, "h", Access::Write, Origin::Named);
    assert_eq!(
        grants,
        [
            "l h",
            "r h/.bashrc",
            "l h/.config",
            "e h/.config/app",
            "l h/.local",
            "r h/.local/bin",
            "l h/.local/share",
            "e h/.local/share/notes",
            "e h/todo.txt",
            "e h/work",
        ]
    );
    assert!(notes.contains("one by one"), "{notes}");
    let (grants, _) = shown(&home, "h", Access::Read, Origin::Named);
    assert!(grants.contains(&"r h/.local/bin".into()) && !grants.iter().any(|g| g.contains("ssh")));
    // The link ~/.kube leads out of the home: what it points at is protected too.
    assert_eq!(shown(&home, "real-kube", Access::Read, Origin::Derived).0, [""; 0]);
}

#[test]
fn a_plugins_server_reads_the_plugin_and_nothing_beside_it() {
    let home = home();
    for d in ["h/.gemini/extensions/one/dist", "h/.gemini/extensions/two", "h/.claude/plugins/cache/market/plugin/1.0"]
    {
        fs::create_dir_all(home.root.join(d)).unwrap();
    }
    symlink(home.root.join("h/.ssh"), home.root.join("h/.gemini/extensions/one/keys")).unwrap();
    for (path, access, want) in [
        ("h/.gemini/extensions/one", Access::Read, "r"),
        ("h/.gemini/extensions/one/dist", Access::Read, "r"),
        ("h/.gemini/extensions/one/dist", Access::Write, "r"),
        ("h/.claude/plugins/cache/market/plugin/1.0", Access::Read, "r"),
        ("h/.claude/plugins/cache/market/plugin", Access::Read, ""),
        ("h/.claude/plugins", Access::Read, ""),
        ("h/.gemini/extensions", Access::Read, ""),
        ("h/.gemini", Access::Read, ""),
        ("h/.gemini/extensions/one/keys", Access::Read, ""),
        ("h/.gemini/extensions/one/../../", Access::Read, ""),
    ] {
        let (grants, notes) = shown(&home, path, access, Origin::Derived);
        let wanted: Vec<_> = Some(format!("{want} {path}")).filter(|_| !want.is_empty()).into_iter().collect();
        assert_eq!(grants, wanted, "{path}: {notes}");
    }
}

#[test]
fn what_is_refused() {
    let home = home();
    for (path, origin, want) in [
        ("h/.config/firedoor", Origin::Named, "belongs to Firedoor"),
        ("h/.local/share/firedoor/servers/x/home", Origin::Named, "belongs to Firedoor"),
        ("h/.ssh", Origin::Derived, "protected place"),
        ("h/.ssh/id", Origin::Derived, "protected place"),
        ("h/work/keys", Origin::Derived, "protected place"),
        ("h/absent", Origin::Named, "No such file"),
        ("/", Origin::Named, "too much"),
        ("/dev", Origin::Named, "too much"),
        ("/proc", Origin::Named, "other processes"),
        ("/proc/self/environ", Origin::Named, "other processes"),
        ("/sys", Origin::Named, "other processes"),
        ("/run", Origin::Named, "too much"),
    ] {
        let (grants, notes) = shown(&home, path, Access::Read, origin);
        assert!(grants.is_empty() && notes.contains(want), "{path}: {grants:?} {notes}");
    }
    assert_eq!(shown(&home, "h/.ssh", Access::Read, Origin::Named).0, ["r h/.ssh"]);
    assert_eq!(shown(&home, "h/.local/bin", Access::Write, Origin::Derived).0, ["r h/.local/bin"]);
    assert!(home.protected.cut(Path::new("relative"), Access::Read, Origin::Named).grants.is_empty());
}

#[test]
fn what_is_not_offered() {
    let home = home();
    let check = |path: &str, access| {
        let path = if path.starts_with('/') { PathBuf::from(path) } else { home.root.join(path) };
        home.protected.objection(&path, access)
    };
    for (path, access, want) in [
        ("h/work", Access::Write, None),
        ("h/.config/app", Access::Write, None),
        ("h/.config", Access::List, None),
        ("h/.config", Access::Read, Some(Objection::TooMuch)),
        ("h", Access::List, Some(Objection::TooMuch)),
        ("", Access::List, Some(Objection::TooMuch)),
        ("/", Access::List, Some(Objection::TooMuch)),
        ("/proc/self", Access::Read, Some(Objection::TooMuch)),
        ("h/.ssh", Access::Read, Some(Objection::Protected)),
        ("h/.ssh/id", Access::List, Some(Objection::Protected)),
        ("h/.bashrc", Access::Write, Some(Objection::Protected)),
        ("h/.bashrc", Access::Read, None),
        ("h/.config/firedoor/x", Access::Read, Some(Objection::Own)),
    ] {
        assert_eq!(check(path, access), want, "{path} {access:?}");
    }
}

#[test]
fn what_other_programs_run_is_read_only_unless_a_person_names_it() {
    let home = home();
    fs::create_dir_all(home.root.join("h/work/.git/hooks")).unwrap();
    fs::create_dir_all(home.root.join("h/work/.vscode/x")).unwrap();
    fs::write(home.root.join("h/work/.envrc"), "").unwrap();
    for (path, origin, want) in [
        ("h/work", Origin::Derived, "e h/work"),
        ("h/work/.git", Origin::Derived, "e h/work/.git"),
        ("h/work/.git/hooks", Origin::Derived, "r h/work/.git/hooks"),
        ("h/work/.vscode/x", Origin::Derived, "r h/work/.vscode/x"),
        ("h/work/.envrc", Origin::Derived, "r h/work/.envrc"),
        ("h/work/.vscode", Origin::Named, "e h/work/.vscode"),
        ("h/work/.envrc", Origin::Named, "e h/work/.envrc"),
        ("h/work/.git/config", Origin::Named, "e h/work/.git/config"),
        ("h/work/new/.git/config", Origin::Named, "e h/work/new/.git/config"),
        ("h/work/a", Origin::Derived, "e h/work/a"),
        ("/dev/tty", Origin::Named, "w /dev/tty"),
    ] {
        let (grants, notes) = shown(&home, path, Access::Write, origin);
        assert_eq!(grants, [want], "{path}: {notes}");
        assert_eq!(notes.contains("--rw"), want.starts_with('r'), "{notes}");
    }
    for (path, access, origin) in [
        ("h/work/.npmrc", Access::Write, Origin::Derived),
        ("h/work/.npmrc", Access::Read, Origin::Named),
        ("h/work/new", Access::Write, Origin::Named),
        ("h/.config/firedoor/.npmrc", Access::Write, Origin::Named),
    ] {
        assert!(shown(&home, path, access, origin).0.is_empty(), "{path}: it is not there, or our own");
    }
}

#[test]
fn the_names_of_this_build_are_closed() {
    for (path, closed) in [
        (".git/hooks/pre-commit", true),
        (".git/config", true),
        (".git/modules/a/config", true),
        (".git/worktrees/a/config.worktree", true),
        (".git/worktrees/a/HEAD", false),
        (".git/refs/heads/x", false),
        (".git/index", false),
        (".husky/pre-push", true),
        (".github/workflows/ci.yml", true),
        (".github/CODEOWNERS", false),
        (".github/actions/a/action.yml", true),
        (".clinerules/hooks/PreToolUse", true),
        (".clinerules/style.md", false),
        (".pre-commit-config.yaml", true),
        ("lefthook.yml", true),
        ("lefthook.yaml", true),
        (".lefthook.yml", true),
        ("lefthook-local.yml", true),
        (".gitlab-ci.yml", true),
        (".gitlab/issue_templates/x.md", false),
        (".circleci/config.yml", true),
        (".gitea/workflows/x.yml", true),
        (".gitea/issue_template.md", false),
        (".forgejo/workflows/x.yml", true),
        (".helix/languages.toml", true),
        (".vimrc", true),
        (".gvimrc", true),
        (".dir-locals-2.el", true),
        (".aider.conf.yml", true),
        (".aiderignore", false),
        (".openhands/setup.sh", true),
        (".qoder/settings.json", true),
        (".augment/settings.json", true),
        (".rovodev/config.yml", true),
        (".copilot/mcp-config.json", true),
        ("rust-toolchain.toml", false),
        (".vscode/tasks.json", true),
        (".idea/workspace.xml", true),
        (".claude/settings.json", true),
        (".mcp.json", true),
        (".envrc", true),
        (".npmrc", true),
        (".zlogin", true),
        (".gitignore", false),
        (".env", false),
        ("package.json", false),
        ("src/main.rs", false),
    ] {
        for above in ["/w", "/w/a/b", "/w/.vscode-not"] {
            let look = names().look(&Path::new(above).join(path));
            assert_eq!(look.closed > 0, closed, "{path}");
        }
    }
    for name in ["/w/.git", "/w/x/HEAD"] {
        assert!(names().look(Path::new(name)).directory_only, "{name}");
    }
    assert!(!names().look(Path::new("/w/.git/refs/remotes/origin/HEAD")).directory_only);
}

#[test]
fn too_many_children_are_refused() {
    let home = home();
    for n in 0..=MAX_CHILDREN {
        fs::write(home.root.join("h").join(format!("f{n}")), "").unwrap();
    }
    let (grants, notes) = shown(&home, "h", Access::Read, Origin::Named);
    assert!(grants.is_empty() && notes.contains("more than 4096"), "{notes}");
}

/// Where a client keeps its servers, a server must not write: what it wrote there would be started unconfined.
#[test]
fn files_of_clients_are_closed() {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/clients");
    let mut seen = 0;
    for file in fs::read_dir(clients).unwrap() {
        let client: toml::Table = toml::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        for location in client.get("location").and_then(toml::Value::as_array).into_iter().flatten() {
            let systems = location.get("systems").and_then(toml::Value::as_array);
            if systems.is_some_and(|all| !all.iter().any(|s| s.as_str() == Some("linux"))) {
                continue;
            }
            let text = |key: &str| location.get(key).and_then(toml::Value::as_str).unwrap_or_default();
            // What a `*` at the start stands for is any name, which cannot be closed.
            let file = text("file");
            let place = match text("base") {
                // Plugins are found in trees of one's own, too, but for Copilot's with this name, which many programs use.
                "plugin" if file == "plugin.json" => continue,
                "project" | "plugin" | "marketplace" => Path::new("/w").join(file),
                "config" | "dot_config" => Path::new("~/.config").join(file),
                _ => Path::new("~").join(file),
            };
            let listed = |all: &[String]| all.iter().any(|p| place.starts_with(p));
            let closed = match place.strip_prefix("/w") {
                Ok(_) => file.starts_with('*') || names().look(&place).closed > 0,
                Err(_) => listed(&PLACES.secret) || listed(&PLACES.persistence),
            };
            assert!(closed, "{}", place.display());
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen}");
}

#[test]
fn what_opens_the_file_of_secrets_is_as_closed_as_the_file() {
    let home = home();
    let var = |n: &str| (n == "HOME").then(|| home.root.join("h").into_os_string());
    let paths = Paths::from_env(var).unwrap();
    fs::create_dir_all(paths.secrets()).unwrap();
    fs::create_dir_all(home.root.join("real-keys")).unwrap();
    fs::write(home.root.join("real-keys/identity.txt"), "x").unwrap();
    symlink(home.root.join("real-keys/identity.txt"), home.root.join("h/work/identity")).unwrap();
    let kept = KeptInFile { identity: Some(home.root.join("h/work/identity")) };
    fs::write(paths.kept_in_file(), serde_json::to_vec(&kept).unwrap()).unwrap();
    let closed = Home { protected: Protected::new(&paths), ..home };
    for origin in [Origin::Named, Origin::Derived] {
        for file in ["h/work/identity", "real-keys/identity.txt", "h/.local/state/firedoor/secrets/secrets.age"] {
            let (grants, notes) = shown(&closed, file, Access::Read, origin);
            assert!(grants.is_empty() && !notes.is_empty(), "{file}: {grants:?}");
        }
        let (grants, _) = shown(&closed, "real-keys", Access::Read, origin);
        assert_eq!(grants, ["l real-keys"]);
        let (grants, _) = shown(&closed, "h/work", Access::Write, origin);
        assert!(
            !grants.iter().any(|grant| grant == "e h/work") && grants.contains(&"e h/work/a".to_owned()),
            "{grants:?}"
        );
    }
    // Where nothing says so, nothing of it is closed.
    fs::remove_file(paths.kept_in_file()).unwrap();
    let open = Home { protected: Protected::new(&paths), ..closed };
    assert_eq!(shown(&open, "real-keys", Access::Read, Origin::Named).0, ["r real-keys"]);
}
