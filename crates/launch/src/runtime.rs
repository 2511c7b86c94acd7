//! What must be readable for a program to start: its interpreter's installation and its own project.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use firedoor_model::paths::canonicalize;

use crate::{profile::Kind, program::links, sys, venv};

/// Files and directories that mark the top of a project.
const MARKERS: &[&str] = &[
    "package.json",
    "node_modules",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    ".venv",
    "deno.json",
    "go.mod",
    "Cargo.toml",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "build.gradle",
];
/// Directories of the home where things are dropped: a script there brings nothing but itself.
const SHARED: &[&str] =
    &["Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos", "bin", ".local/bin"];

/// The trees and single files that the given executables need. `files` holds every hop of their links.
pub(crate) fn installations(files: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut add = |path: PathBuf| {
        if !all.contains(&path) {
            all.push(path);
        }
    };
    let home = &real_home(home);
    for file in files {
        let Some(prefix) = sys::prefix(file) else { continue };
        if let Some(named) = venv::home(prefix).filter(|_| whole(prefix, home)) {
            add(prefix.to_owned());
            if let Some(base) = venv::base(&named) {
                add(if whole(&base.prefix, home) { base.prefix } else { base.programs });
            }
        } else if sys::is_interpreter_prefix(prefix) && whole(prefix, home) {
            add(prefix.to_owned());
        } else {
            add(file.clone());
        }
    }
    all
}

/// The home as hops of links are written: in real directories.
fn real_home(home: &Path) -> PathBuf {
    canonicalize(home).unwrap_or_else(|_| home.to_owned())
}

/// Whether a directory is narrow enough to be granted whole: not the home or above it, not `~/.local`, not a tree of
/// the system.
fn whole(dir: &Path, home: &Path) -> bool {
    !home.starts_with(dir) && dir != home.join(".local") && sys::is_narrow(dir)
}

/// What a script needs of its project: the nearest directory above it that looks like a project's top, and the
/// `node_modules` further up; without such a directory the script's own; where that is shared with other things, the
/// file alone.
pub(crate) fn project(script: &Path, home: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let home = &real_home(home);
    for hop in links(script) {
        for path in project_of(&hop, home) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all
}

/// `script` stands in real directories.
fn project_of(script: &Path, home: &Path) -> Vec<PathBuf> {
    let Some(dir) = script.parent() else { return vec![script.to_owned()] };
    let mut above = dir.ancestors().take_while(|d| whole(d, home));
    let top = above.find(|d| MARKERS.iter().any(|m| d.join(m).exists()));
    if let Some(top) = top {
        // bun reads the manifest beside packages, too.
        let hoisted = above.flat_map(|d| {
            let there = d.join("node_modules").is_dir();
            ["node_modules", "package.json"].map(|name| d.join(name)).into_iter().filter(move |p| there && p.exists())
        });
        return std::iter::once(top.to_owned()).chain(hoisted).collect();
    }
    let shared = |name: &&str| {
        let place = home.join(name);
        dir == place || canonicalize(&place).is_ok_and(|real| dir == real)
    };
    let alone = !whole(dir, home) || SHARED.iter().any(shared) || sys::is_shared(dir);
    vec![if alone { script.to_owned() } else { dir.to_owned() }]
}

/// The family of an interpreter's file name: without the version at its end.
fn family(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// How a program of that file name launches a server; `None` when the name says nothing.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    Some(match family(name) {
        "node" | "nodejs" | "tsx" | "ts-node" => Kind::Node,
        "python" | "pypy" => Kind::Python,
        "deno" => Kind::Deno,
        "bun" => Kind::Bun,
        "docker" | "podman" => Kind::Docker,
        _ => return None,
    })
}

/// What an interpreter was asked to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file.
    Script(PathBuf),
    /// A Python module, by name.
    Module(String),
}

/// The script among an interpreter's arguments. `interpreter` is the configured program's file name.
pub(crate) fn target(interpreter: &str, args: &[OsString], cwd: &Path) -> Option<Target> {
    // Options whose value is the next argument, per interpreter: node --help, python3 --help, deno run --help.
    let family = family(interpreter);
    let (valued, eval, subcommands): (&[&str], &[&str], &[&str]) = match family {
        "node" | "nodejs" | "tsx" | "ts-node" => (
            &[
                "-r",
                "--require",
                "--import",
                "--loader",
                "--experimental-loader",
                "-C",
                "--conditions",
                "--env-file",
                "--tsconfig",
                "--project",
                "-P",
            ],
            &["-e", "--eval", "-p", "--print"],
            &[],
        ),
        "python" | "pypy" => (&["-W", "-X", "--check-hash-based-pycs"], &["-c"], &[]),
        "bun" => (&["--cwd", "-r", "--preload", "--env-file", "-c", "--config"], &["-e", "--eval"], &["run"]),
        "deno" => (&["-c", "--config", "--import-map", "--lock", "--location", "--cert"], &[], &["run"]),
        "bash" | "sh" | "dash" | "zsh" | "ksh" => (&["-o", "-O", "--rcfile", "--init-file"], &["-c"], &[]),
        "ruby" | "perl" | "php" => (&["-r", "-I", "-M"], &["-e"], &[]),
        "java" => (&["-cp", "-classpath", "--class-path", "-p", "--module-path"], &[], &[]),
        "dotnet" => (&[], &[], &["exec"]),
        _ => return None,
    };
    let script = |a: &OsStr| Some(Target::Script(cwd.join(a)));
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.to_str() else { return script(arg) };
        if text == "--" {
            return rest.next().and_then(|a| script(a));
        }
        if family == "python" && text == "-m" {
            return rest.next().and_then(|m| m.to_str()).map(|m| Target::Module(m.to_owned()));
        }
        if family == "java" && text == "-jar" {
            return rest.next().and_then(|a| script(a));
        }
        if eval.contains(&text) {
            return None;
        }
        if valued.contains(&text) {
            rest.next();
        } else if !text.starts_with('-') && !subcommands.contains(&text) {
            return script(arg);
        }
    }
    None
}

/// The file of a module that lies in the working directory, which `python -m` puts on its path first.
pub(crate) fn module_file(module: &str, cwd: &Path) -> Option<PathBuf> {
    let top = module.split('.').next().filter(|m| !m.is_empty() && !m.contains('/'))?;
    let package = cwd.join(top);
    [package.join("__main__.py"), package.join("__init__.py"), cwd.join(format!("{top}.py"))]
        .into_iter()
        .chain([cwd.join("src").join(top).join("__init__.py")])
        .find(|f| f.is_file())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for f in files {
            let path = root.join(f);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        (dir, root)
    }

    fn relative(all: &[PathBuf], root: &Path) -> Vec<String> {
        all.iter().map(|p| p.strip_prefix(root).unwrap_or(p).display().to_string()).collect()
    }

    #[test]
    fn projects() {
        let (_dir, root) = tree(&[
            "h/app/package.json",
            "h/app/dist/index.js",
            "h/app/node_modules/x/y.js",
            "h/mono/node_modules/a/b",
            "h/mono/package.json",
            "h/mono/pkgs/srv/package.json",
            "h/mono/pkgs/srv/i.js",
            "h/plain/s.py",
            "h/loose.py",
            "h/Downloads/d.py",
            "h/package.json",
        ]);
        for (script, want) in [
            ("h/app/dist/index.js", vec!["h/app"]),
            ("h/mono/pkgs/srv/i.js", vec!["h/mono/pkgs/srv", "h/mono/node_modules", "h/mono/package.json"]),
            ("h/plain/s.py", vec!["h/plain"]),
            ("h/loose.py", vec!["h/loose.py"]),
            ("h/Downloads/d.py", vec!["h/Downloads/d.py"]),
        ] {
            assert_eq!(relative(&project(&root.join(script), &root.join("h")), &root), want, "{script}");
        }
    }

    #[test]
    fn a_path_through_another_project_does_not_open_it() {
        let (_dir, root) = tree(&[
            "h/work/package.json",
            "h/work/deep/x",
            "h/work/secret.txt",
            "h/app/srv.py",
            "h/private/x",
            "h/package.json",
            "h/Downloads/d.py",
        ]);
        symlink("../work/../app/srv.py", root.join("h/app/lnk.py")).unwrap();
        symlink("../work/deep/../../app", root.join("h/app/self")).unwrap();
        symlink(root.join("h"), root.join("alias")).unwrap();
        for (script, want) in [
            ("h/app/../work/../app/srv.py", vec!["h/app"]),
            ("h/work/deep/../../app/srv.py", vec!["h/app"]),
            ("h/app/lnk.py", vec!["h/app"]),
            ("h/app/self/srv.py", vec!["h/app"]),
            ("h/private/../app/srv.py", vec!["h/app"]),
            ("alias/app/srv.py", vec!["h/app"]),
            ("alias/Downloads/d.py", vec!["h/Downloads/d.py"]),
        ] {
            for home in ["h", "alias"] {
                assert_eq!(relative(&project(&root.join(script), &root.join(home)), &root), want, "{script} {home}");
            }
        }
    }

    /// As the workspaces of npm and the store of pnpm have it.
    #[test]
    fn packages_behind_links_find_what_they_import() {
        let (_dir, root) = tree(&[
            "h/p/package.json",
            "h/p/node_modules/.pnpm/a@1/node_modules/a/package.json",
            "h/p/node_modules/.pnpm/a@1/node_modules/a/i.js",
            "h/p/node_modules/.pnpm/a@1/node_modules/dep/i.js",
        ]);
        symlink(".pnpm/a@1/node_modules/a", root.join("h/p/node_modules/a")).unwrap();
        let store = "h/p/node_modules/.pnpm/a@1/node_modules";
        let want = [&format!("{store}/a"), store, "h/p/node_modules", "h/p/package.json"];
        assert_eq!(relative(&project(&root.join("h/p/node_modules/a/i.js"), &root.join("h")), &root), want);
    }

    #[test]
    fn installations_of_interpreters() {
        let (_dir, root) = tree(&[
            "nvm/v20/bin/node",
            "nvm/v20/lib/node_modules/npm/x",
            "py/bin/python3",
            "py/lib/python3.11/os.py",
            "h/notes/diary.txt",
            "h/evil/venv/bin/srv",
            "h/bin/srv",
            "h/.local/bin/gosrv",
            "h/.local/lib/python3.11/x",
            "venv/bin/srv",
        ]);
        fs::write(root.join("venv/pyvenv.cfg"), format!("home = {}\nversion = 3\n", root.join("py/bin").display()))
            .unwrap();
        fs::write(root.join("h/pyvenv.cfg"), format!("home = {}\n", root.join("py/bin").display())).unwrap();
        let named = root.join("py/../h/notes").display().to_string();
        fs::write(root.join("h/evil/venv/pyvenv.cfg"), format!("home = {named}\n")).unwrap();
        for (file, want) in [
            ("h/evil/venv/bin/srv", vec!["h/evil/venv"]),
            ("h/bin/srv", vec!["h/bin/srv"]),
            ("nvm/v20/bin/node", vec!["nvm/v20"]),
            ("py/bin/python3", vec!["py"]),
            ("h/.local/bin/gosrv", vec!["h/.local/bin/gosrv"]),
            ("venv/bin/srv", vec!["venv", "py"]),
        ] {
            assert_eq!(relative(&installations(&[root.join(file)], &root.join("h")), &root), want, "{file}");
        }
    }

    #[test]
    fn scripts_among_arguments() {
        let script = |p: &str| Some(Target::Script(Path::new("/c").join(p)));
        for (interpreter, args, want) in [
            ("node", "build/index.js --port 1", script("build/index.js")),
            ("node", "--import tsx -r a src/i.ts", script("src/i.ts")),
            ("node", "--max-old-space-size=1 /abs/x.js", script("/abs/x.js")),
            ("node", "-e 1 x.js", None),
            ("python3.11", "-u -W ignore server.py", script("server.py")),
            ("python", "-m pkg.mod x.py", Some(Target::Module("pkg.mod".into()))),
            ("python", "-c x y.py", None),
            ("deno", "run --allow-net main.ts", script("main.ts")),
            ("bash", "-c x", None),
            ("sh", "-- -odd.sh", script("-odd.sh")),
            ("java", "-cp a -jar s.jar", script("s.jar")),
            ("gosrv", "x.js", None),
        ] {
            let args: Vec<OsString> = args.split(' ').map(Into::into).collect();
            assert_eq!(target(interpreter, &args, Path::new("/c")), want, "{interpreter} {args:?}");
        }
    }

    #[test]
    fn modules_in_the_working_directory() {
        let (_dir, root) = tree(&["pkg/__init__.py", "one.py", "src/deep/__init__.py"]);
        for (module, want) in [
            ("pkg.sub", Some("pkg/__init__.py")),
            ("one", Some("one.py")),
            ("deep", Some("src/deep/__init__.py")),
            ("absent", None),
            ("../x", None),
            ("", None),
        ] {
            assert_eq!(module_file(module, &root), want.map(|w| root.join(w)), "{module}");
        }
    }
}
