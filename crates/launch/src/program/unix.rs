//! As execvp(3) and the kernel have it: `PATH`, `#!` lines, the right to execute.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Read as _,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use firedoor_model::paths::canonicalize;
use nix::unistd::{AccessFlags, access};

use super::{Lookup, MAX_INTERPRETERS, Program, links};
use crate::{error::PlanError, version_manager};

impl Lookup<'_> {
    /// Finds a command as execvp(3) does: a name with a slash is a path below the working directory; an empty part of
    /// `PATH` is the working directory; without `PATH` it is `/bin:/usr/bin` (glibc's `_CS_PATH`).
    pub(crate) fn find(&self, name: &OsStr) -> Result<PathBuf, PlanError> {
        let shown = || name.to_string_lossy().into_owned();
        if name.is_empty() {
            return Err(PlanError::NotFound { program: String::new(), looked: "nothing: the command is empty".into() });
        }
        if name.as_bytes().contains(&b'/') {
            let path = self.cwd.join(name);
            return match fs::metadata(&path) {
                Ok(m) if m.is_file() && runnable(&path) => Ok(path),
                Ok(m) if m.is_file() => {
                    let why =
                        "the file may not be executed: run chmod +x on it, or name its interpreter as the command";
                    Err(PlanError::NotRunnable { path, why: why.into() })
                }
                Ok(_) => Err(PlanError::NotRunnable {
                    path,
                    why: "this is no file: name the program's file as the command".into(),
                }),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    Err(PlanError::NotFound { program: shown(), looked: path.display().to_string() })
                }
                Err(e) => Err(PlanError::io(path, "look at the program", e)),
            };
        }
        let path = self.path.unwrap_or(OsStr::new("/bin:/usr/bin"));
        for dir in path.as_bytes().split(|b| *b == b':') {
            let file = self.cwd.join(OsStr::from_bytes(dir)).join(name);
            if file.is_file() && runnable(&file) {
                return Ok(file);
            }
        }
        let looked = format!("the directories of PATH ({})", path.to_string_lossy());
        Err(PlanError::NotFound { program: shown(), looked })
    }

    pub(super) fn resolve_at(&self, mut path: PathBuf, depth: usize) -> Result<Program, PlanError> {
        let mut bin_dirs = Vec::new();
        if let Some(target) = version_manager::replace(&path, self)? {
            bin_dirs.extend(target.parent().map(Path::to_owned));
            path = target;
        }
        let mut files = links(&path);
        let real = canonicalize(&path).map_err(|e| PlanError::io(&path, "resolve the program", e))?;
        let mut interpreter = None;
        if let Some(next) = shebang(&real)? {
            if depth >= MAX_INTERPRETERS {
                let why = "its #! line leads from script to script: name the interpreter as the command";
                return Err(PlanError::NotRunnable { path: real, why: why.into() });
            }
            let inner = match next {
                Interpreter::Path(p) => self.resolve_at(self.find(p.as_os_str())?, depth + 1)?,
                Interpreter::Env(name) => self.resolve_at(self.find(&name)?, depth + 1)?,
            };
            files.extend(inner.files);
            bin_dirs.extend(inner.bin_dirs);
            interpreter = Some(inner.interpreter.unwrap_or(inner.path));
        }
        Ok(Program { path, real, files, interpreter, bin_dirs, first: Vec::new() })
    }

    /// What lies under that name among the programs that an install brought.
    pub(crate) fn brought(&self, dir: &Path, name: &str) -> Result<Option<Program>, PlanError> {
        let path = dir.join(name);
        if !path.is_file() {
            return Ok(None);
        }
        // The kernel finds its interpreter.
        let (files, bin_dirs, first) = Default::default();
        Ok(Some(Program { real: path.clone(), path, files, interpreter: None, bin_dirs, first }))
    }

    /// The file that runs under that name in a project's directory of programs.
    pub(crate) fn in_bin(&self, dir: &Path, name: &str) -> Option<PathBuf> {
        canonicalize(&dir.join(name)).ok().filter(|b| b.is_file())
    }
}

fn runnable(path: &Path) -> bool {
    access(path, AccessFlags::X_OK).is_ok()
}

enum Interpreter {
    Path(PathBuf),
    /// Through env(1), looked up in `PATH`.
    Env(OsString),
}

/// The interpreter that a script's first line names. Linux reads 256 bytes of it (`BINPRM_BUF_SIZE`).
fn shebang(file: &Path) -> Result<Option<Interpreter>, PlanError> {
    let io = |e| PlanError::io(file, "read the program", e);
    let mut head = Vec::with_capacity(256);
    match fs::File::open(file) {
        Ok(f) => f.take(256).read_to_end(&mut head).map_err(io)?,
        // An executable that may be run but not read is no script that could be run.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Ok(None),
        Err(e) => return Err(io(e)),
    };
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|w| !w.is_empty());
    let Some(first) = words.next() else { return Ok(None) };
    let first = PathBuf::from(OsString::from_vec(first.to_vec()));
    if first.file_name() != Some(OsStr::new("env")) {
        return Ok(Some(Interpreter::Path(first)));
    }
    // env [-S] [NAME=VALUE]… COMMAND (coreutils: -S splits the rest of the line)
    let command = words.find(|w| !w.starts_with(b"-") && !w.contains(&b'='));
    Ok(command.map(|c| Interpreter::Env(OsString::from_vec(c.to_vec()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    pub(crate) fn executable(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let at = |p: &str| dir.path().join(p);
            executable(&at("bin/node"), "\x7fELF");
            executable(&at("bin/tool"), "#!/usr/bin/env -S node --flag\n");
            executable(&at("bin/loop"), &format!("#!{}\n", at("bin/loop").display()));
            executable(&at("cwd/local"), "\x7fELF");
            fs::write(at("bin/plain"), "x").unwrap();
            fs::create_dir_all(at("bin/dir")).unwrap();
            symlink(at("bin/tool"), at("cwd/link")).unwrap();
            Self { dir }
        }

        fn resolve(&self, name: &str, path: Option<&str>) -> Result<Program, PlanError> {
            let root = self.dir.path();
            let path = path.map(|p| p.replace('@', root.to_str().unwrap()));
            Lookup { path: path.as_deref().map(OsStr::new), cwd: &root.join("cwd"), home: root, env: &[] }
                .resolve(OsStr::new(name))
        }
    }

    #[test]
    fn finds_what_execvp_finds() {
        let tree = Tree::new();
        for (name, path, want) in [
            ("node", Some("/nonexistent:@/bin"), "bin/node"),
            ("local", Some(":@/bin"), "cwd/local"),
            ("./local", None, "cwd/local"),
            ("../bin/node", Some(""), "bin/node"),
            ("link", Some("@/cwd:@/bin"), "bin/tool"),
        ] {
            let program = tree.resolve(name, path).unwrap();
            assert_eq!(program.real, fs::canonicalize(tree.dir.path().join(want)).unwrap(), "{name}");
        }
        for (name, path, want) in [
            ("absent", Some("@/bin"), "looked in the directories of PATH ("),
            ("plain", Some("@/bin"), "was not found"),
            ("dir", Some("@/bin"), "was not found"),
            ("./absent", None, "was not found"),
            ("../bin/plain", None, "chmod +x"),
            ("../bin/dir", None, "no file"),
            ("", None, "empty"),
            ("loop", Some("@/bin"), "from script to script"),
        ] {
            let error = tree.resolve(name, path).unwrap_err().to_string();
            assert!(error.contains(want), "{name}: {error}");
        }
    }

    #[test]
    fn follows_scripts_and_links() {
        let tree = Tree::new();
        let program = tree.resolve("./link", Some("@/bin")).unwrap();
        assert_eq!(program.interpreter, Some(tree.dir.path().join("bin/node")));
        let root = fs::canonicalize(tree.dir.path()).unwrap();
        for file in ["cwd/link", "bin/tool", "bin/node"] {
            assert!(program.files.contains(&root.join(file)), "{file}: {:?}", program.files);
        }
    }

    #[test]
    fn every_hop_stands_in_real_directories() {
        let tree = Tree::new();
        let root = fs::canonicalize(tree.dir.path()).unwrap();
        fs::create_dir_all(root.join("other/deep")).unwrap();
        symlink("../other/../cwd/local", root.join("cwd/lnk")).unwrap();
        symlink("../bin", root.join("other/out")).unwrap();
        for (path, want) in [
            ("other/deep/../../cwd/local", vec!["cwd/local"]),
            ("other/../cwd/lnk", vec!["cwd/lnk", "cwd/local"]),
            ("other/out/../cwd/local", vec!["cwd/local"]),
            ("other/out/node", vec!["bin/node"]),
            ("absent/../cwd/local", vec![]),
            ("absent/x", vec!["absent/x"]),
        ] {
            let want: Vec<_> = want.into_iter().map(|w| root.join(w)).collect();
            assert_eq!(links(&root.join(path)), want, "{path}");
        }
    }
}
