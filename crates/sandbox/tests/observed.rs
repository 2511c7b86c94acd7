//! Real programs whose files and connections are written down, as root (where the tests are) and as an ordinary user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::Path};

use common::{Setup, grant, users};
use firedoor_model::{
    launch::{Access, Network},
    network::{AttemptKind, Hosts},
    observation::{Record, Use},
};

const PYTHON: &str = "/usr/bin/python3";

/// One call each way that a path can be given, and prints how each ended.
const CALLS: &str = r#"
import ctypes, os, subprocess, sys
base = sys.argv[1]
def tried(name, call):
    try: call(); print(name, "done")
    except OSError as e: print(name, e.errno)
read, closed, work = base + "/read", base + "/closed", base + "/work"
tried("absolute", lambda: open(read + "/a").read())
tried("relative", lambda: (os.chdir(read), open("b").read()))
tried("descriptor", lambda: os.open("c", os.O_RDONLY, dir_fd=os.open(read, os.O_RDONLY)))
tried("link", lambda: open(read + "/link").read())
tried("write", lambda: open(work + "/old", "r+").write("x"))
tried("create", lambda: open(work + "/new", "w").write("x"))
tried("rename", lambda: os.rename(work + "/new", work + "/moved"))
tried("mkdir", lambda: os.mkdir(work + "/dir"))
tried("remove", lambda: os.unlink(work + "/moved"))
tried("closed", lambda: open(closed + "/s").read())
tried("closed create", lambda: open(closed + "/n", "w"))
tried("closed list", lambda: os.listdir(closed))
tried("closed mkdir", lambda: os.mkdir(closed + "/d"))
tried("missing", lambda: open(closed + "/none").read())
tried("path only", lambda: os.open(closed + "/s", os.O_PATH))
tried("script", lambda: subprocess.run([work + "/script"], check=True))
syscall = ctypes.CDLL(None, use_errno=True).syscall
def openat2():
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
    if syscall(437, -100, (closed + "/two").encode(), how, 24) < 0: raise OSError(ctypes.get_errno(), "")
tried("openat2", openat2)
def badly():
    if syscall(257, -100, 8, 0) < 0: raise OSError(ctypes.get_errno(), "")
tried("bad pointer", badly)
"#;

fn setup(user: Option<u32>) -> Setup {
    setup_with(user, Access::Write)
}

fn setup_with(user: Option<u32>, work: Access) -> Setup {
    let mut setup = Setup::new(user);
    for dir in ["read", "closed", "work"] {
        fs::create_dir(setup.dir().join(dir)).unwrap();
    }
    for file in ["read/a", "read/b", "read/c", "work/old", "closed/s", "closed/two", "closed/linked"] {
        fs::write(setup.dir().join(file), "x").unwrap();
    }
    symlink(setup.dir().join("closed/linked"), setup.dir().join("read/link")).unwrap();
    common::script(&setup.dir().join("work/script"), "#!/usr/bin/env true\n");
    common::script(&setup.dir().join("calls.py"), CALLS);
    setup.grant("read", Access::Read);
    setup.grant("work", work);
    setup.grant("calls.py", Access::Read);
    setup.own_everything();
    setup.step.program = PYTHON.into();
    setup.step.args = vec!["-I".into(), setup.dir().join("calls.py").into(), setup.dir().into()];
    setup.step.confinement.grants.push(grant("/dev/urandom", Access::Read));
    setup.step.confinement.network = Network::Hosts(Hosts::default());
    setup
}

fn record(text: &str) -> Record {
    Record::from_lines(text.as_bytes()).unwrap_or_else(|| panic!("no record: {text}"))
}

#[test]
fn files_are_written_down_and_nothing_else_changes() {
    // What the guardian writes for the server is written down on the way.
    for (user, work) in users().into_iter().flat_map(|user| [(user, Access::Write), (user, Access::Edit)]) {
        let plain = setup_with(user, work).run(&[]);
        let setup = setup_with(user, work);
        let (output, text) = setup.run(&["observe"]);
        assert!(plain.0.contains("absolute done") && plain.0.contains("closed 13"), "{plain:?}");
        assert_eq!(output, plain.0, "observing changes nothing, as {user:?}");
        let record = record(&text);
        assert!(!record.is_truncated());
        let all: Vec<_> = record.files().map(|(p, how, ok)| (p.raw().to_owned(), how, ok)).collect();
        for (path, how, allowed) in [
            ("read/a", Use::Read, true),
            ("read/b", Use::Read, true),
            ("read/c", Use::Read, true),
            ("closed/linked", Use::Read, false),
            ("work/old", Use::Write, true),
            ("work/new", Use::Create, true),
            ("work/moved", Use::Create, true),
            ("work/dir", Use::Create, true),
            ("closed/s", Use::Read, false),
            ("closed/n", Use::Create, false),
            ("closed", Use::List, false),
            ("closed/d", Use::Create, false),
            ("work/script", Use::Execute, true),
        ] {
            let path = setup.dir().join(path).to_str().unwrap().to_owned();
            assert!(all.contains(&(path.clone(), how, allowed)), "{path} {how:?} {allowed} as {user:?} in {all:#?}");
        }
        let closed = setup.dir().join("closed");
        let below: Vec<_> = all.iter().filter(|(p, ..)| Path::new(p).starts_with(&closed)).collect();
        // The filter answers openat2 as a kernel without it.
        assert!(output.contains("openat2 38"), "{output}");
        assert_eq!(below.len(), 5, "neither what is missing, nor a path alone, nor openat2: {below:?}");
        for program in [PYTHON, "/usr/bin/env", "/usr/bin/true"] {
            let real = fs::canonicalize(program).unwrap().to_str().unwrap().to_owned();
            assert!(all.contains(&(real.clone(), Use::Execute, true)), "{real} as {user:?} in {all:#?}");
        }
    }
}

#[test]
fn connections_are_written_down() {
    for user in users() {
        let mut setup = setup(user);
        let (granted, other) = (common::sink(), common::sink());
        let port = |l: &TcpListener| l.local_addr().unwrap().port();
        let code = "import socket, sys\nfor port in sys.argv[1:]:\n    try: socket.create_connection(('127.0.0.1', int(port)))\n    except OSError: pass";
        setup.step.args = vec!["-I".into(), "-c".into(), code.into()];
        setup.step.args.extend([&granted, &other].map(|l| port(l).to_string().into()));
        let allowed = vec![format!("127.0.0.1:{}", port(&granted)).parse().unwrap()];
        setup.step.confinement.network = Network::Hosts(Hosts { allowed, ..Hosts::default() });
        let record = record(&setup.run(&["observe"]).1);
        let all: Vec<_> = record.connections().map(|(kind, to, ok)| (kind, to.raw().to_owned(), ok)).collect();
        let to = |l: &TcpListener| format!("127.0.0.1:{}", port(l));
        let want = [(to(&granted), true), (to(&other), false)].map(|(to, ok)| (AttemptKind::Network, to, ok));
        for one in want {
            assert!(all.contains(&one), "{one:?} in {all:?}");
        }
    }
}

/// What a thread changes between our look and the kernel's opens nothing: Landlock judges what the kernel opens.
#[test]
fn a_path_that_changes_meanwhile_opens_nothing() {
    const RACE: &str = r#"
import ctypes, os, sys, threading
base = sys.argv[1]
open_, shut = (base + "/read/a").encode(), (base + "/closed/s").encode()
length = max(len(open_), len(shut)) + 1
path = ctypes.create_string_buffer(open_, length)
stop = False
def flip():
    while not stop:
        ctypes.memmove(path, shut + b"\0", len(shut) + 1)
        ctypes.memmove(path, open_ + b"\0", len(open_) + 1)
thread = threading.Thread(target=flip); thread.start()
libc = ctypes.CDLL(None)
got = {"A": 0, "S": 0}
for _ in range(4000):
    fd = libc.open(path, 0)
    if fd >= 0:
        got[os.read(fd, 1).decode()] += 1
        os.close(fd)
stop = True; thread.join()
print(got["A"] > 0, got["S"])
"#;
    for user in users() {
        let setup = setup(user);
        fs::write(setup.dir().join("read/a"), "A").unwrap();
        fs::write(setup.dir().join("closed/s"), "S").unwrap();
        fs::write(setup.dir().join("calls.py"), RACE).unwrap();
        assert_eq!(setup.run(&["observe"]).0, "True 0\n", "as {user:?}");
    }
}

#[test]
fn what_has_no_guardian_cannot_be_observed() {
    let mut setup = setup(None);
    setup.step.confinement.network = Network::None;
    let said = setup.run(&["observe"]).1;
    assert!(said.contains("can be observed"), "{said}");
}
