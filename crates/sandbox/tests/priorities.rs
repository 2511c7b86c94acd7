//! Whose priorities and processors a server changes, as root (where the tests are) and as an ordinary user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use common::{Setup, users};
use firedoor_model::{launch::Network, network::Hosts};

const PYTHON: &str = "/usr/bin/python3";
/// Each way to slow a process down, against the guardian, a process outside, and what belongs to the server.
const SERVER: &str = r#"
import ctypes, errno, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
IOPRIO_SET, SCHED_SETATTR = (251, 314) if os.uname().machine == "x86_64" else (30, 274)
class Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64), ("nice", ctypes.c_int32), ("rest", ctypes.c_uint8 * 28)]
def call(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), "")
ways = {
    "nice": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 5),
    "processors": lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
    "scheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "parameters": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
    "attributes": lambda pid: call(SCHED_SETATTR, pid, ctypes.byref(Attributes(size=48, policy=3, nice=5)), 0),
    "disk": lambda pid: call(IOPRIO_SET, 1, pid, 2 << 13 | 7),
}
def say(name, pid):
    results = []
    for way in ways.values():
        try: way(pid); results.append("ok")
        except OSError as e: results.append(errno.errorcode[e.errno])
    print(" ".join([name, *results]))
ends, end = os.pipe()
child = os.fork()
if child == 0:
    os.close(end)
    if os.fork() == 0: os.read(ends, 1)
    os.read(ends, 1)
    os._exit(0)
ids, done = [], threading.Event()
thread = threading.Thread(target=lambda: (ids.append(threading.get_native_id()), say("own thread", ids[0]), done.wait()))
thread.start()
while not ids: pass
say("another thread", ids[0])
done.set()
thread.join()
say("self", 0)
say("self by number", os.getpid())
say("child", child)
say("guardian", os.getppid())
say("outside", int(sys.argv[1]))
say("init", 1)
for which in (os.PRIO_PGRP, os.PRIO_USER):
    try: os.setpriority(which, 0, 5)
    except OSError as e: print(errno.errorcode[e.errno])
"#;

#[test]
fn a_server_slows_only_its_own_tree_down() {
    for user in users() {
        let mut outside = Command::new("/bin/cat");
        outside.stdin(Stdio::piped()).stdout(Stdio::null());
        if let Some(user) = user {
            outside.uid(user).gid(user);
        }
        let mut outside = outside.spawn().unwrap();
        for network in [Network::Hosts(Hosts::default()), Network::Proxy("127.0.0.1:1".parse().unwrap())] {
            let mut setup = Setup::new(user);
            setup.step.program = PYTHON.into();
            setup.step.args = ["-I", "-c", SERVER, &outside.id().to_string()].map(Into::into).into();
            setup.step.confinement.network = network;
            let (output, errors) = setup.run(&[]);
            let row = |name: &str, result: &str| format!("{name}{}\n", format!(" {result}").repeat(6));
            let own = ["own thread", "another thread", "self", "self by number", "child"].map(|name| row(name, "ok"));
            let others = ["guardian", "outside", "init"].map(|name| row(name, "EPERM"));
            let mut got: Vec<&str> = output.lines().collect();
            let want = format!("{}{}EPERM\nEPERM\n", own.concat(), others.concat());
            let mut want: Vec<&str> = want.lines().collect();
            // The two threads speak when they like.
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want, "as {user:?}: {errors}");
        }
        drop(outside.stdin.take());
        outside.wait().unwrap();
    }
}
