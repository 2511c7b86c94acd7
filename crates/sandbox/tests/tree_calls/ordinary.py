"""What programs do with files, and what they get for it: the same in a granted tree as without a sandbox.

usage: ordinary.py TREE
"""
import ctypes, errno, fcntl, mmap, os, shutil, subprocess, sys, tempfile

tree = sys.argv[1]
os.chdir(tree)
libc = ctypes.CDLL(None, use_errno=True)
openat, unlinkat, renameat2, linkat = (257, 263, 316, 265) if os.uname().machine == "x86_64" else (56, 35, 276, 37)


def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "")


def attempt(name, what):
    try:
        result = what()
    except OSError as e:
        result = errno.errorcode.get(e.errno, str(e.errno))
    print(f"{name}={result}")


def opened(path, flags, mode=0o666):
    fd = os.open(path, flags, mode)
    try:
        given = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK)
        return f"{given:o} {fcntl.fcntl(fd, fcntl.F_GETFD)}"
    finally:
        os.close(fd)


attempt("mode before anybody calls umask", lambda: (opened("first", os.O_WRONLY | os.O_CREAT), oct(os.stat("first").st_mode)))
os.umask(0o027)
W, C, X, T = os.O_WRONLY, os.O_CREAT, os.O_EXCL, os.O_TRUNC
for name, path, flags in [
    ("create", "f", W | C), ("again", "f", W | C), ("exclusive", "f", W | C | X), ("append", "f", W | os.O_APPEND),
    ("nonblock", "f", os.O_RDWR | os.O_NONBLOCK), ("read and create", "g", C), ("read and truncate", "g", T),
    ("keep", "f", W | os.O_CLOEXEC), ("missing", "none", W), ("missing directory", "none/f", W | C), ("file as directory", "f/x", W | C),
    ("slash", "f/", W), ("new slash", "new/", W | C), ("directory", ".", W), ("create directory", ".", W | C), ("directory flag", "f", W | os.O_DIRECTORY),
    ("create as directory", "d9", C | os.O_DIRECTORY), ("empty", "", W | C), ("long", "x" * 256, W | C), ("very long", "x/" * 2100, W | C), ("root", "/", W),
    ("dots", "../" + os.path.basename(tree) + "/./f", W), ("absolute", os.path.join(tree, "f"), W), ("all bits", "f", 3),
]:
    attempt(f"open {name}", lambda: opened(path, flags))
attempt("mode", lambda: oct(os.stat("f").st_mode))
attempt("mode asked", lambda: (opened("exe", W | C, 0o777), oct(os.stat("exe").st_mode)))
attempt("inherit", lambda: (os.set_inheritable(fd := os.open("f", W), True), subprocess.run(["/bin/sh", "-c", f"echo hi >&{fd}"], close_fds=False).returncode, os.close(fd), open("f").read())[1::2])
attempt("number", lambda: [os.open("f", W) for _ in range(3)])
attempt("threads number", lambda: os.close(4) or os.open("f", W))
os.closerange(3, 20)
attempt("read only file", lambda: (open("ro", "w").close(), os.chmod("ro", 0o444), opened("ro", W) if os.geteuid() else "EACCES"))

os.symlink("f", "to-f")
os.symlink("made", "dangling")
os.symlink("loop", "loop")
os.symlink(os.path.join(tree, "made-2"), "dangling-absolute")
os.symlink("none/x", "dangling-deep")
for name, path, flags in [
    ("link", "to-f", W), ("link nofollow", "to-f", W | os.O_NOFOLLOW), ("link exclusive", "to-f", W | C | X), ("dangling", "dangling", W), ("dangling exclusive", "dangling", W | C | X),
    ("dangling nofollow", "dangling", W | C | os.O_NOFOLLOW), ("dangling create", "dangling", W | C), ("dangling absolute", "dangling-absolute", W | C), ("dangling deep", "dangling-deep", W | C), ("loop", "loop", W | C), ("link slash", "to-f/", W),
]:
    attempt(f"open {name}", lambda: opened(path, flags))

for name, what in [
    ("mkdir", lambda: os.mkdir("d")), ("mkdir again", lambda: os.mkdir("d")), ("mkdir slash", lambda: os.mkdir("d2/")), ("mkdir deep", lambda: os.mkdir("no/d")), ("mkdir dot", lambda: os.mkdir(".")),
    ("mkdir mode", lambda: (os.mkdir("d3", 0o1777), oct(os.stat("d3").st_mode))), ("mkdir link", lambda: os.mkdir("dangling-deep")), ("makedirs", lambda: os.makedirs("a/b/c", exist_ok=True)), ("makedirs again", lambda: os.makedirs("a/b/c", exist_ok=True)),
    ("at", lambda: (dir := os.open("a", os.O_RDONLY), os.mkdir("x", dir_fd=dir), os.rename("x", "y", src_dir_fd=dir, dst_dir_fd=dir), os.rmdir("y", dir_fd=dir), os.close(dir))[1:4]),
    ("at file", lambda: (fd := os.open("f", os.O_RDONLY), os.mkdir("x", dir_fd=fd))), ("at closed", lambda: os.mkdir("x", dir_fd=99)),
    ("rmdir", lambda: os.rmdir("d2")), ("rmdir full", lambda: os.rmdir("a")), ("rmdir file", lambda: os.rmdir("f")), ("rmdir dot", lambda: os.rmdir(".")), ("rmdir dots", lambda: os.rmdir("a/..")), ("rmdir missing", lambda: os.rmdir("none")),
    ("unlink directory", lambda: os.unlink("d")), ("unlink missing", lambda: os.unlink("none")), ("unlink link", lambda: os.unlink("to-f")), ("unlink slash", lambda: os.unlink("g/")), ("unlink", lambda: os.unlink("g")),
    ("unlink bad flag", lambda: call(unlinkat, -100, b"f", 7)),
    ("rename", lambda: os.rename("f", "f2")), ("rename back", lambda: os.rename("f2", "f")), ("rename over", lambda: (open("o", "w").close(), os.rename("o", "f"))), ("rename missing", lambda: os.rename("none", "x")),
    ("rename onto directory", lambda: os.rename("f", "d")), ("rename directory onto file", lambda: os.rename("d", "f")), ("rename directory", lambda: os.rename("d", "d4")), ("rename into itself", lambda: os.rename("a", "a/b/x")),
    ("rename onto full", lambda: os.rename("d4", "a")), ("rename dot", lambda: os.rename(".", "x")), ("rename same", lambda: os.rename("f", "f")),
    ("exchange", lambda: call(renameat2, -100, b"f", -100, b"d4", 2)), ("exchange back", lambda: call(renameat2, -100, b"f", -100, b"d4", 2)),
    ("no replace", lambda: call(renameat2, -100, b"f", -100, b"d4", 1)), ("bad flags", lambda: call(renameat2, -100, b"f", -100, b"d4", 99)),
    ("link", lambda: os.link("f", "hard")), ("link again", lambda: os.link("f", "hard")), ("link directory", lambda: os.link("a", "x")), ("link missing", lambda: os.link("none", "x")), ("link count", lambda: os.stat("f").st_nlink),
    ("link a link", lambda: (os.link("dangling", "hard-link", follow_symlinks=False), os.readlink("hard-link"))), ("link bad flag", lambda: call(linkat, -100, b"f", -100, b"x", 8)),
    ("symlink", lambda: (os.symlink("any thing", "s"), os.readlink("s"))), ("symlink again", lambda: os.symlink("x", "s")), ("symlink empty", lambda: os.symlink("", "s2")), ("symlink slash", lambda: os.symlink("x", "s3/")),
    ("truncate", lambda: (os.truncate("f", 7), os.stat("f").st_size)), ("truncate missing", lambda: os.truncate("none", 7)), ("truncate directory", lambda: os.truncate("a", 7)), ("truncate negative", lambda: os.truncate("f", -1)),
    ("fifo", lambda: (os.mkfifo("p"), oct(os.stat("p").st_mode))), ("fifo nobody", lambda: opened("p", W | os.O_NONBLOCK)), ("fifo both", lambda: opened("p", os.O_RDWR)), ("node", lambda: os.mknod("n", 0o100644)), ("node again", lambda: os.mknod("n", 0o100644)),
    ("chmod", lambda: (os.chmod("f", 0o640), oct(os.stat("f").st_mode))), ("utime", lambda: (os.utime("f", (1, 2)), os.stat("f").st_mtime)),
    ("nameless", lambda: (fd := os.open(".", os.O_TMPFILE | os.O_RDWR), os.write(fd, b"there"), call(linkat, -100, f"/proc/self/fd/{fd}".encode(), -100, b"named", 0x400), open("named").read())[1::2]),
    ("nameless not followed", lambda: (fd := os.open(".", os.O_TMPFILE | os.O_RDWR), os.link(f"/proc/self/fd/{fd}", "named-3"))),
    ("nameless excl", lambda: (fd := os.open(".", os.O_TMPFILE | os.O_RDWR | X), call(linkat, -100, f"/proc/self/fd/{fd}".encode(), -100, b"named-2", 0x400))),
    ("nameless file", lambda: os.open("f", os.O_TMPFILE | os.O_RDWR)), ("nameless to read", lambda: os.open(".", os.O_TMPFILE)),
    ("reopen", lambda: (fd := os.open("f", os.O_RDONLY), opened(f"/proc/self/fd/{fd}", W | T), opened(f"/dev/fd/{fd}", W), opened(f"/proc/{os.getpid()}/fd/{fd}", W))[1:]),
    ("output", lambda: subprocess.run("echo one >/dev/stdout; echo two >>/dev/fd/1; echo three >/dev/stderr", shell=True, stdout=open("out", "w"), stderr=open("err", "w")).returncode),
    ("output through", lambda: (open("out").read(), open("err").read())), ("null", lambda: opened("/dev/null", W)), ("pipe", lambda: subprocess.run("echo x >/dev/stdout", shell=True, stdout=subprocess.PIPE).stdout),
    ("map", lambda: (fd := os.open("f", os.O_RDWR), os.truncate("f", 7), mmap.mmap(fd, 7).__setitem__(0, 65), open("f", "rb").read())[3]), ("lock", lambda: fcntl.lockf(open("f", "w"), fcntl.LOCK_EX)),
    ("bad pointer", lambda: call(openat, -100, 8, W | C, 0o600)), ("working directory removed", lambda: subprocess.run("mkdir gone; cd gone; rmdir ../gone; echo > x", shell=True, stderr=subprocess.DEVNULL).returncode),
    ("temporary", lambda: tempfile.TemporaryDirectory(dir=".").cleanup()), ("named temporary", lambda: tempfile.NamedTemporaryFile(dir=".").write(b"x")), ("copy", lambda: bool(shutil.copytree("a", "a2"))), ("move", lambda: bool(shutil.move("a2", "a3"))), ("remove", lambda: shutil.rmtree("a3")),
    ("ordinary names", lambda: [os.mkdir(n) for n in ("git", ".gitignore.d", "x.git", "hooks", ".github", "vscode", ".gits")]), ("replace", lambda: (open("t~", "w").write("new"), os.replace("t~", "f"), open("f").read())[2]),
    ("touch", lambda: subprocess.run(["touch", "a/touched"]).returncode), ("sed", lambda: (subprocess.run(["sed", "-i", "s/new/newer/", "f"]).returncode, open("f").read())), ("cp", lambda: subprocess.run(["cp", "-r", "a", "a4"], stderr=subprocess.DEVNULL).returncode),
    ("tar", lambda: subprocess.run("tar cf x.tar a4 && rm -r a4 && tar xf x.tar --no-same-owner && ls a4", shell=True, stdout=subprocess.PIPE).stdout), ("mv", lambda: subprocess.run(["mv", "a4", "a5"]).returncode),
]:
    attempt(name, what)
os.umask(0)
attempt("no mask", lambda: (opened("open", W | C, 0o666), oct(os.stat("open").st_mode)))
for name in sorted(os.popen("find . ! -name x.tar -printf '%p %y %m %l %n\\n'").read().splitlines()):
    print(name.replace(tree, "TREE"))
