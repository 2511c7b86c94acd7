"""Every way to put something where other programs run it. All must fail, and what belongs to it must work.

usage: protected.py TREE
"""
import ctypes, errno, os, sys

os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
renameat2, openat2, linkat = (316, 437, 265) if os.uname().machine == "x86_64" else (276, 437, 37)


def call(number, *args):
    if (result := libc.syscall(number, *args)) < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def attempt(name, what):
    try:
        what()
        result = "ok"
    except OSError as e:
        result = errno.errorcode.get(e.errno, str(e.errno))
    print(f"{name}={result}")


def write(path, flags=os.O_WRONLY | os.O_CREAT):
    os.close(os.open(path, flags, 0o755))


def raw2():
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o600, 0)
    os.close(call(openat2, -100, b"sub/.envrc", how, 24))


def reopened():
    fd = os.open(".git/config", os.O_RDONLY)
    write(f"/proc/self/fd/{fd}", os.O_WRONLY)


def reopened_directory():
    fd = os.open(".git/hooks", os.O_PATH)
    os.close(os.open("evil", os.O_WRONLY | os.O_CREAT, dir_fd=fd))


def nameless(path):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    call(linkat, -100, f"/proc/self/fd/{fd}".encode(), -100, path.encode(), 0x400)


def nameless_empty_path():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    call(linkat, fd, b"", -100, b".envrc", 0x1000)


def elsewhere_and_back():
    os.rename("sub", os.environ["HOME"] + "/sub")


def hard_link_outside():
    os.link(".git/config", os.environ["HOME"] + "/config")


def inside_changed():
    os.chdir("sub")
    try:
        write("../.git/../.git/hooks/x")
    finally:
        os.chdir("..")


os.symlink(".git", "to-git")
os.symlink(".git/config", "to-config")
os.symlink("sub/.vscode", "to-nothing")
os.mkdir("holder")
os.mkdir("holder/hooks")
os.mkdir("repository")
for name in ("HOOKS", "workflows", "objects"):
    os.mkdir("repository/" + name)
for name, what in [
    ("hook", lambda: write(".git/hooks/pre-commit")), ("hook directory", lambda: os.mkdir(".git/hooks/d")), ("config", lambda: write(".git/config", os.O_WRONLY)), ("config truncate", lambda: os.truncate(".git/config", 0)),
    ("config open truncate", lambda: write(".git/config", os.O_TRUNC)), ("config remove", lambda: os.unlink(".git/config")), ("config replace", lambda: (write(".git/config.lock"), os.rename(".git/config.lock", ".git/config"))),
    ("config away", lambda: os.rename(".git/config", "x")), ("config link", lambda: os.link(".git/config", "x")), ("config chmod", lambda: os.chmod(".git/config", 0o777)), ("config fchmod", lambda: os.fchmod(os.open(".git/config", os.O_RDONLY), 0o777)), ("config times", lambda: os.utime(".git/config")),
    ("config exchange", lambda: (write("x"), call(renameat2, -100, b"x", -100, b".git/config", 2))), ("hooks away", lambda: os.rename(".git/hooks", "x2")), ("git away", lambda: os.rename(".git", "x2")), ("git remove", lambda: os.rmdir(".git/hooks")),
    ("through link", lambda: write("to-git/hooks/x")), ("through last link", lambda: write("to-config", os.O_WRONLY)), ("to nothing", lambda: os.mkdir("to-nothing")), ("to nothing file", lambda: write("to-nothing")),
    ("deep", lambda: (os.makedirs("a/b/c/d"), write("a/b/c/d/.mcp.json"))), ("deep directory", lambda: os.mkdir("a/.vscode")), ("upper case", lambda: os.mkdir("a/.VsCode")), ("deep existing", lambda: write("sub/.claude/settings.json")),
    ("new repository", lambda: (os.mkdir("a/.git"), os.mkdir("a/.git/hooks"))), ("moved into place", lambda: os.rename("holder", "b.git")), ("holder", lambda: os.rename("b.git", "sub/.git")), ("holder exchange", lambda: (os.mkdir("sub/e"), call(renameat2, -100, b"sub/e", -100, b"a/.git", 2))),
    ("git file", lambda: write("sub/.git")), ("git link", lambda: os.symlink("../repository", "sub/.git")), ("git renamed link", lambda: (os.symlink("x", "l"), os.rename("l", "sub/.git"))), ("bare repository", lambda: write("repository/HEAD")), ("bare linked", lambda: (write(".git/HEAD"), os.link(".git/HEAD", "repository/HEAD"))),
    ("commondir", lambda: write("a/.git/commondir")), ("worktree config", lambda: (os.makedirs(".git/worktrees/w"), write(".git/worktrees/w/config.worktree"))), ("workflows", lambda: (os.mkdir("a/.github"), os.mkdir("a/.github/workflows"))), ("github link", lambda: os.symlink("../repository", "sub/.github")), ("github moved", lambda: os.rename("repository", "sub/.github")),
    ("renamed onto", lambda: (write("y"), os.rename("y", ".envrc"))), ("linked onto", lambda: os.link("y", ".envrc")), ("symlink onto", lambda: os.symlink("y", ".envrc")), ("node", lambda: os.mknod(".envrc", 0o100644)), ("fifo", lambda: os.mkfifo(".envrc")),
    ("nameless", lambda: nameless("sub/.bashrc")), ("nameless empty path", nameless_empty_path), ("nameless in hooks", lambda: os.open(".git/hooks", os.O_TMPFILE | os.O_RDWR)), ("reopened", reopened), ("reopened directory", reopened_directory), ("openat2", raw2),
    ("outside and back", elsewhere_and_back), ("hard link outside", hard_link_outside), ("dots", inside_changed), ("device", lambda: os.mknod("dev", 0o020666, os.makedev(1, 3))), ("outside", lambda: write("../outside")), ("outside link", lambda: (os.symlink("../../outside", "sub/o"), write("sub/o"))),
    ("granted by name", lambda: write("open/.vscode/settings.json")), ("granted by name, nested", lambda: (os.mkdir("open/.vscode/.git"), os.mkdir("open/.vscode/.git/hooks"))), ("index", lambda: write(".git/index")), ("own directory", lambda: write(os.environ["HOME"] + "/.bashrc")), ("read", lambda: os.close(os.open(".git/config", os.O_RDONLY))),
]:
    attempt(name, what)
