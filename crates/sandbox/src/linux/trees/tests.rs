use std::{
    fs::{self, File},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt, symlink},
    },
};

use nix::{libc, unistd::mkfifo};

use super::*;
use crate::linux::paths::Named;

struct Tree {
    _dir: tempfile::TempDir,
    root: PathBuf,
    trees: Trees,
}

/// `t` is a tree that may be written, `o` lies outside; `t/open/.vscode` was granted by name.
fn tree() -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for d in ["t/.git/hooks", "t/a/.vscode", "t/a/b", "t/open/.vscode/.git", "o"] {
        fs::create_dir_all(root.join(d)).unwrap();
    }
    for f in ["t/.git/config", "t/.git/HEAD", "t/a/f", "t/a/.vscode/tasks.json", "t/.mcp.json", "o/f"] {
        fs::write(root.join(f), "old").unwrap();
    }
    for (target, link) in [
        ("a/.vscode", "t/link"),
        (".git/config", "t/innocent"),
        ("../o/f", "t/out"),
        ("../o/new", "t/dangling-out"),
        ("a/made", "t/dangling"),
        (".vscode", "t/dangling-protected"),
        ("loop", "t/loop"),
        ("../t/a/made-from-outside", "o/dangling-in"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let of = |all: &[&str]| all.iter().map(|p| p.parse().unwrap()).collect();
    let names = ProtectedNames {
        names: of(&[".git/hooks", ".git/config", ".git/**/commondir", ".vscode", ".github/workflows", ".mcp.json"]),
        directories: of(&[".git", "HEAD"]),
        except: of(&[".git/**/HEAD"]),
    };
    let grants = [root.join("t"), root.join("t/open/.vscode"), root.join("t/new/.mcp.json"), root.join("t/.envrc")];
    Tree { _dir: dir, trees: Trees::new(&grants, names), root }
}

impl Tree {
    fn named(&self, path: &str) -> Named {
        let path = if path.starts_with('/') { PathBuf::from(path) } else { self.root.join(path) };
        Named { start: None, path: path.as_os_str().as_bytes().to_vec(), own: None }
    }

    fn perform(&self, call: Call) -> String {
        match self.trees.perform(call, || Ok(Some(Mode::from_bits_truncate(0o027)))) {
            Ok(Answer::Kernel) => "kernel".into(),
            Ok(Answer::Done) => "done".into(),
            Ok(Answer::File { file, .. }) => {
                let flags = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETFL).unwrap();
                assert_eq!(flags & libc::O_NONBLOCK, 0);
                "file".into()
            }
            Ok(Answer::Protected(path)) => {
                format!("protected {}", path.strip_prefix(&self.root).unwrap_or(&path).display())
            }
            Err(errno) => format!("{errno:?}"),
        }
    }
}

#[test]
fn files_are_opened_where_they_lie() {
    const MAKE: i32 = libc::O_CREAT | libc::O_WRONLY;
    for (path, flags, want) in [
        ("t/a/f", libc::O_WRONLY | libc::O_TRUNC, "file"),
        ("t/a/f/", libc::O_WRONLY, "kernel"),
        ("t/a/f", MAKE | libc::O_EXCL, "kernel"),
        ("t/a/f", libc::O_WRONLY | libc::O_DIRECTORY, "kernel"),
        ("t/a/new", MAKE, "file"),
        ("t/a/new", MAKE | libc::O_EXCL, "file"),
        ("t/a/new/", MAKE, "kernel"),
        ("t/a/../a//new", MAKE, "file"),
        ("t/a/new", libc::O_WRONLY, "kernel"),
        ("t/a/none/new", MAKE, "kernel"),
        ("t/a", libc::O_WRONLY, "kernel"),
        ("t/a/..", MAKE, "kernel"),
        ("t/a", libc::O_TMPFILE | libc::O_RDWR, "file"),
        ("t/a/.vscode", libc::O_TMPFILE | libc::O_RDWR, "protected t/a/.vscode"),
        ("o", libc::O_TMPFILE | libc::O_RDWR, "kernel"),
        ("o/f", libc::O_WRONLY, "kernel"),
        ("o/new", MAKE, "kernel"),
        ("t/out", libc::O_WRONLY, "kernel"),
        ("t/dangling-out", MAKE, "kernel"),
        ("t/dangling", MAKE, "file"),
        ("t/dangling", MAKE | libc::O_NOFOLLOW, "kernel"),
        ("t/dangling", MAKE | libc::O_EXCL, "kernel"),
        ("t/dangling-protected", MAKE, "protected t/.vscode"),
        ("t/loop", MAKE, "kernel"),
        ("o/dangling-in", MAKE, "file"),
        ("t/.mcp.json", libc::O_WRONLY, "protected t/.mcp.json"),
        ("t/.mcp.json", libc::O_RDONLY | libc::O_TRUNC, "protected t/.mcp.json"),
        ("t/a/.mcp.json", MAKE, "protected t/a/.mcp.json"),
        ("t/a/.MCP.json", MAKE, "protected t/a/.MCP.json"),
        ("t/innocent", libc::O_WRONLY, "protected t/.git/config"),
        ("t/link/tasks.json", libc::O_RDWR, "protected t/a/.vscode/tasks.json"),
        ("t/a/b/../.vscode/new", MAKE, "protected t/a/.vscode/new"),
        ("t/.git/hooks/pre-commit", MAKE, "protected t/.git/hooks/pre-commit"),
        ("t/.git/HEAD", libc::O_RDWR, "file"),
        ("t/.git/index.lock", MAKE | libc::O_EXCL, "file"),
        ("t/a/.git", MAKE, "protected t/a/.git"),
        ("t/a/HEAD", MAKE, "protected t/a/HEAD"),
        ("t/open/.vscode/new", MAKE, "file"),
        ("t/open/.vscode/.git/config", MAKE, "protected t/open/.vscode/.git/config"),
        ("t/.envrc", MAKE, "file"),
        ("/proc/self/fd/0", libc::O_WRONLY, "kernel"),
        ("/proc/self/oom_score_adj", libc::O_WRONLY, "kernel"),
        ("/dev/null", libc::O_WRONLY, "kernel"),
    ] {
        let tree = tree();
        let got = tree.perform(Call::Open { file: tree.named(path), flags, mode: 0o777 });
        assert_eq!(got, want, "{path} {flags:o}");
        assert!(!tree.root.join("o/new").exists());
    }
}

#[test]
fn the_callers_mask_counts_and_pipes_do_not_hold_the_guardian_up() {
    let tree = tree();
    let make = |path| Call::Open { file: tree.named(path), flags: libc::O_CREAT | libc::O_WRONLY, mode: 0o666 };
    assert_eq!(tree.perform(make("t/a/masked")), "file");
    assert_eq!(tree.perform(Call::MakeDirectory { at: tree.named("t/a/dir"), mode: 0o777 }), "done");
    assert_eq!(fs::metadata(tree.root.join("t/a/masked")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::metadata(tree.root.join("t/a/dir")).unwrap().mode() & 0o777, 0o750);
    mkfifo(&tree.root.join("t/pipe"), Mode::S_IRWXU).unwrap();
    let open = Call::Open { file: tree.named("t/pipe"), flags: libc::O_WRONLY, mode: 0 };
    assert_eq!(tree.perform(open), "ENXIO");
}

#[test]
fn names_are_made_and_removed() {
    let make = |tree: &Tree, path: &str| Call::MakeDirectory { at: tree.named(path), mode: 0o755 };
    let node = |tree: &Tree, path: &str, mode| Call::MakeNode { at: tree.named(path), mode };
    let remove = |tree: &Tree, path: &str, directory| Call::Remove { at: tree.named(path), directory };
    let link = |tree: &Tree, path: &str| Call::Symlink { target: b"/etc/passwd".to_vec(), at: tree.named(path) };
    let t = tree();
    for (call, want) in [
        (make(&t, "t/a/dir/"), "done"),
        (make(&t, "t/a/dir"), "EEXIST"),
        (make(&t, "t/new"), "done"),
        (make(&t, "t/new/.git"), "done"),
        (make(&t, "t/new/.git/hooks"), "protected t/new/.git/hooks"),
        (make(&t, "t/.git/hooks"), "kernel"),
        (make(&t, "t/new/.vscode"), "protected t/new/.vscode"),
        (make(&t, "t/new/.mcp.json"), "done"),
        (make(&t, "t/.."), "kernel"),
        (make(&t, "o/dir"), "kernel"),
        (make(&t, "t"), "kernel"),
        (node(&t, "t/a/plain", libc::S_IFREG | 0o600), "done"),
        (node(&t, "t/a/pipe", libc::S_IFIFO | 0o600), "done"),
        (node(&t, "t/a/device", libc::S_IFCHR | 0o600), "kernel"),
        (node(&t, "t/a/.vscode/x", 0o600), "protected t/a/.vscode/x"),
        (remove(&t, "t/a/plain", false), "done"),
        (remove(&t, "t/a/plain", false), "ENOENT"),
        (remove(&t, "t/a/b", false), "EISDIR"),
        (remove(&t, "t/a/b", true), "done"),
        (remove(&t, "t/a", true), "ENOTEMPTY"),
        (remove(&t, "t/.mcp.json", false), "protected t/.mcp.json"),
        (remove(&t, "t/a/.mcp.json", false), "kernel"),
        (remove(&t, "t/innocent", false), "done"),
        (remove(&t, "t", true), "kernel"),
        (remove(&t, "o/f", false), "kernel"),
        (remove(&t, "t/.git/hooks", true), "protected t/.git/hooks"),
        (link(&t, "t/a/link"), "done"),
        (link(&t, "t/a/.github"), "protected t/a/.github"),
        (link(&t, "t/new/x.git"), "done"),
        (link(&t, "t/a/HEAD"), "protected t/a/HEAD"),
        (link(&t, "t/a/.git"), "protected t/a/.git"),
        (link(&t, "o/link"), "kernel"),
    ] {
        let shown = format!("{call:?}");
        assert_eq!(t.perform(call), want, "{shown}");
    }
    assert_eq!(fs::read(t.root.join("t/a/f")).unwrap(), b"old");
    assert!(fs::metadata(t.root.join("t/a/pipe")).unwrap().file_type().is_fifo());
}

#[test]
fn names_are_moved_and_doubled() {
    for (from, to, want) in [
        ("t/a/f", "t/g", "done"),
        ("t/a/f", "t/.mcp.json", "protected t/.mcp.json"),
        ("t/.mcp.json", "t/x", "protected t/.mcp.json"),
        ("t/a/.vscode", "t/x", "protected t/a/.vscode"),
        ("t/a/b", "t/.vscode", "protected t/.vscode"),
        ("t/a/b", "t/x/.git", "kernel"),
        ("t/a/b", "t/b/../a/.git", "kernel"),
        ("t/a/b", "t/a/.git", "protected t/a/.git"),
        ("t/a/b", "t/a/.github", "protected t/a/.github"),
        ("t/.git", "t/x", "protected t/.git"),
        ("t/a", "t/x", "done"),
        ("t/a/f", "t/a/.git", "protected t/a/.git"),
        ("t/a/f", "t/.git/index", "done"),
        ("t/a/f", "t/.git/commondir", "protected t/.git/commondir"),
        ("t/a/b", "t/.git/x", "protected t/.git/x"),
        ("t/link", "t/.github", "protected t/.github"),
        ("t/link", "t/link2", "done"),
        ("t/a/f", "o/g", "EXDEV"),
        ("o/f", "t/g", "EXDEV"),
        ("o/f", "o/g", "kernel"),
        ("t/none", "t/g", "kernel"),
        ("t/a/f", "t/a/b", "EISDIR"),
        ("t/a/b/", "t/a/c/", "done"),
        ("t/a/f/", "t/g", "ENOTDIR"),
        ("t", "t/a/t", "EXDEV"),
    ] {
        let tree = tree();
        let (one, two) = (tree.named(from), tree.named(to));
        assert_eq!(tree.perform(Call::Rename { from: one, to: two, flags: 0 }), want, "{from} {to}");
    }
    for (from, to, flags, want) in [
        ("t/a/f", "t/.git/HEAD", libc::RENAME_EXCHANGE, "done"),
        ("t/a/b", "t/.git", libc::RENAME_EXCHANGE, "protected t/.git"),
        ("t/a/f", "t/.mcp.json", libc::RENAME_EXCHANGE, "protected t/.mcp.json"),
        ("t/.mcp.json", "t/a/f", libc::RENAME_EXCHANGE, "protected t/.mcp.json"),
        ("t/a/f", "t/.git/HEAD", libc::RENAME_NOREPLACE, "EEXIST"),
        ("t/a/f", "t/x", libc::RENAME_WHITEOUT, "kernel"),
    ] {
        let tree = tree();
        let (one, two) = (tree.named(from), tree.named(to));
        assert_eq!(tree.perform(Call::Rename { from: one, to: two, flags }), want, "{from} {to} {flags}");
    }
    for (from, to, follow, want) in [
        ("t/a/f", "t/g", false, "done"),
        ("t/a/f", "t/a/.mcp.json", false, "protected t/a/.mcp.json"),
        ("t/.mcp.json", "t/g", false, "protected t/.mcp.json"),
        ("t/innocent", "t/g", true, "protected t/.git/config"),
        ("t/innocent", "t/g", false, "done"),
        ("t/innocent", "t/a/.github", false, "protected t/a/.github"),
        ("t/a/f", "o/g", false, "EXDEV"),
        ("o/f", "t/g", false, "EXDEV"),
        ("t/out", "t/g", true, "EXDEV"),
        ("o/f", "o/g", false, "kernel"),
    ] {
        let tree = tree();
        let (one, two) = (tree.named(from), tree.named(to));
        assert_eq!(tree.perform(Call::Link { from: one, to: two, follow }), want, "{from} {to} {follow}");
    }
}

#[test]
fn a_descriptor_is_judged_by_where_its_file_lies() {
    let tree = tree();
    let own = |path: &str| Named {
        own: Some(File::open(tree.root.join(path)).unwrap().into()),
        ..tree.named("/proc/self/fd/0")
    };
    for (path, want) in
        [("t/a/f", "file"), ("t/.mcp.json", "protected t/.mcp.json"), ("o/f", "kernel"), ("t/a/b", "kernel")]
    {
        let call = Call::Open { file: own(path), flags: libc::O_RDWR, mode: 0 };
        assert_eq!(tree.perform(call), want, "{path}");
    }
    let link = |path: &str, to: &str| Call::Link { from: own(path), to: tree.named(to), follow: true };
    assert_eq!(tree.perform(link("t/.mcp.json", "t/x")), "protected t/.mcp.json");
    assert_eq!(tree.perform(link("t/a/f", "t/x")), "done");
    let nameless = || {
        let options = nix::fcntl::OFlag::O_TMPFILE | nix::fcntl::OFlag::O_RDWR;
        let file = nix::fcntl::open(&tree.root.join("t"), options, Mode::S_IRWXU).unwrap();
        Named { own: Some(file), ..tree.named("/proc/self/fd/0") }
    };
    for (to, want) in [("t/named", "done"), ("t/a/.mcp.json", "protected t/a/.mcp.json"), ("o/named", "kernel")] {
        let call = Call::Link { from: nameless(), to: tree.named(to), follow: true };
        assert_eq!(tree.perform(call), want, "{to}");
    }
}
