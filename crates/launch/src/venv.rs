//! What a virtual environment of Python's was made from (PEP 405).
//!
//! `pyvenv.cfg` comes with a project, so what it says opens a directory only where an interpreter's installation really is.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use firedoor_model::paths::canonicalize;

use crate::sys;

/// Largest `pyvenv.cfg` that is read.
const MAX_CFG: u64 = 16 * 1024;
/// Most files in a directory of programs that are looked at.
const MAX_FILES: usize = 16 * 1024;

/// An interpreter's installation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// The directory with its programs.
    pub(crate) programs: PathBuf,
    /// The installation as a whole.
    pub(crate) prefix: PathBuf,
}

/// `home` in an environment's `pyvenv.cfg`: the first one, in any case, as CPython has it (`Modules/getpath.py`).
pub(crate) fn home(prefix: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    fs::File::open(prefix.join("pyvenv.cfg")).ok()?.take(MAX_CFG).read_to_string(&mut text).ok()?;
    let home = text.lines().find_map(|l| {
        let (key, value) = l.split_once('=')?;
        (key.trim().to_lowercase() == "home").then(|| value.trim().to_owned())
    })?;
    Some(PathBuf::from(home)).filter(|p| p.is_absolute())
}

/// The installation whose programs lie in `home`, unless there is none: an interpreter lies there, and the standard library
/// in the same installation.
pub(crate) fn base(home: &Path) -> Option<Base> {
    let programs = canonicalize(home).ok()?;
    let entries = fs::read_dir(&programs).ok()?.take(MAX_FILES).flatten();
    let pythons = entries.map(|e| e.path()).filter(|p| is_python(p) && sys::is_program(p));
    for python in pythons {
        let Some(prefix) = sys::prefix(&python) else { continue };
        // Homebrew's is a framework inside of what its `bin` belongs to.
        let inside = |real: &PathBuf| real.starts_with(prefix) && sys::prefix(real).is_some_and(sys::is_python_prefix);
        if sys::is_python_prefix(prefix) || canonicalize(&python).is_ok_and(|real| inside(&real)) {
            return Some(Base { prefix: prefix.to_owned(), programs });
        }
    }
    None
}

fn is_python(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.starts_with("python") || name.starts_with("pypy")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_key_is_read_as_python_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        for (text, want) in [
            ("home = /a/bin\nversion = 3\n", Some("/a/bin")),
            ("Home = /usr/bin\nhome = /h/private\n", Some("/usr/bin")),
            ("x = y\n  HOME=/a\nhome = /b\n", Some("/a")),
            ("home = relative\nhome = /b\n", None),
            ("homes = /a\n", None),
            ("home\n", None),
        ] {
            fs::write(dir.path().join("pyvenv.cfg"), text).unwrap();
            assert_eq!(home(dir.path()), want.map(PathBuf::from), "{text}");
        }
    }

    #[test]
    fn only_where_an_interpreter_is_installed() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for (file, mode) in [
            (".pyenv/versions/3.11/bin/python3.11", 0o755),
            (".pyenv/versions/3.11/lib/python3.11/os.py", 0o644),
            ("uv/cpython-3.12.1/bin/python3.12", 0o755),
            ("uv/cpython-3.12.1/lib/python3.12/os.py", 0o644),
            ("conda/envs/a/bin/python", 0o755),
            ("conda/envs/a/lib/python3.10/os.py", 0o644),
            ("brew/Frameworks/3.12/bin/python3.12", 0o755),
            ("brew/Frameworks/3.12/lib/python3.12/os.py", 0o644),
            ("private/notes/diary.txt", 0o644),
            ("work/bin/run", 0o755),
            ("work/lib/python3.11/os.py", 0o644),
            ("noted/bin/python.txt", 0o644),
            ("noted/lib/python3.11/os.py", 0o644),
            (".local/bin/python3", 0o755),
            (".local/lib/python3.11/site-packages/x.py", 0o644),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("cpython-3.12.1", root.join("uv/cpython-3.12")).unwrap();
        fs::create_dir_all(root.join("brew/bin")).unwrap();
        symlink("../Frameworks/3.12/bin/python3.12", root.join("brew/bin/python3.12")).unwrap();
        for (named, want) in [
            (".pyenv/versions/3.11/bin", Some(".pyenv/versions/3.11")),
            ("uv/cpython-3.12/bin", Some("uv/cpython-3.12.1")),
            ("conda/envs/a/bin", Some("conda/envs/a")),
            ("brew/bin", Some("brew")),
            ("private/../uv/cpython-3.12/bin", Some("uv/cpython-3.12.1")),
            ("private/notes", None),
            ("private/../work", None),
            ("work/bin", None),
            ("noted/bin", None),
            (".local/bin", None),
            ("absent", None),
        ] {
            let found = base(&root.join(named)).map(|b| b.prefix);
            assert_eq!(found, want.map(|w| root.join(w)), "{named}");
        }
    }
}
