//! Real processes under a confinement, started by the `confine` example, as root (where the tests are) and as an ordinary
//! user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::net::UnixListener,
    process::Stdio,
};

use common::{Setup, users};
use firedoor_model::launch::{Access, Network};

/// Probes inside the sandbox and what each must answer.
fn check(setup: &Setup, want: &[(String, &str)]) {
    let names: Vec<&str> = want.iter().map(|(n, _)| n.as_str()).collect();
    let output = setup.probe(&names);
    let expected: String = want.iter().map(|(n, a)| format!("{n}={a}\n")).collect();
    assert_eq!(output, expected, "as {:?}", setup.user);
}

fn plain(rows: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    rows.iter().map(|(n, a)| ((*n).to_owned(), *a)).collect()
}

#[test]
fn files_are_open_where_granted_only() {
    for user in users() {
        let mut setup = Setup::new(user);
        let at = |name: &str| setup.dir().join(name);
        for dir in ["listed", "read", "written", "closed"] {
            fs::create_dir(at(dir)).unwrap();
            fs::write(at(dir).join("f"), "x").unwrap();
        }
        fs::write(at("one"), "x").unwrap();
        let path = |name: &str| setup.dir().join(name).display().to_string();
        let mut want = Vec::new();
        for (probe, name, answer) in [
            ("read", "read/f", "ok"),
            ("list", "read", "ok"),
            ("write", "read/f", "EACCES"),
            ("truncate", "read/f", "EACCES"),
            ("mkdir", "read/d", "EACCES"),
            ("list", "listed", "ok"),
            ("read", "listed/f", "EACCES"),
            ("read", "closed/f", "EACCES"),
            ("list", "closed", "EACCES"),
            ("write", "closed/f", "EACCES"),
            ("remove", "closed/f", "EACCES"),
            ("read", "one", "ok"),
            ("write", "one", "EACCES"),
            ("write", "written/new", "ok"),
            ("read", "written/new", "ok"),
            ("mkdir", "written/d", "ok"),
            ("rename", "written/new", "ok"),
            ("truncate", "written/f", "ok"),
            ("remove", "written/f", "ok"),
        ] {
            want.push((format!("{probe}:{}", path(name)), answer));
        }
        // Root could make and open a disk's node; both its capability and the right are gone.
        let mknod = format!("mknod:{}", path("written/node"));
        setup.grant("listed", Access::List);
        setup.grant("read", Access::Read);
        setup.grant("one", Access::Read);
        setup.grant("written", Access::Write);
        setup.grant("missing", Access::Write);
        setup.own_everything();
        check(&setup, &want);
        assert!(["EPERM", "EACCES"].iter().any(|e| setup.probe(&[&mknod]) == format!("{mknod}={e}\n")));
        let verbose = setup.run_verbose(&["true"]);
        assert!(verbose.contains("\"level\":\"full\"") || verbose.contains("\"level\":\"partial\""), "{verbose}");
        assert!(verbose.contains("missing\"]"), "the skipped grant is named: {verbose}");
    }
}

#[test]
fn kernel_interfaces_are_closed() {
    for user in users() {
        let setup = Setup::new(user);
        let own = std::process::id();
        let mut want = plain(&[
            ("inet", "EACCES"),
            ("inet6", "EACCES"),
            ("udp", "EACCES"),
            ("mptcp", "EACCES"),
            ("unix", "EACCES"),
            ("unixdgram", "EACCES"),
            ("vsock", "EACCES"),
            ("route", "ok"),
            ("audit", "EACCES"),
            ("pair", "ok"),
            ("pairdgram", "EACCES"),
            ("keyctl", "EPERM"),
            ("iouring", "ENOSYS"),
            ("unshare", "EPERM"),
            ("unsharefiles", "EPERM"),
            ("clonens", "EPERM"),
            ("clone3", "ENOSYS"),
            ("userfaultfd", "EPERM"),
            ("bpf", "EPERM"),
            ("mount", "EPERM"),
            ("handle", "EPERM"),
            ("shm", "EPERM"),
            ("tiocsti", "EPERM"),
            ("listen", "EACCES"),
            ("prlimitself", "ok"),
            ("dumpable", "ok"),
        ]);
        for probe in ["ptrace", "vmread", "prlimit", "signal"] {
            want.push((format!("{probe}:{own}"), "EPERM"));
        }
        check(&setup, &want);
    }
}

#[test]
fn nothing_is_inherited() {
    for user in users() {
        let mut setup = Setup::new(user);
        setup.step.env = vec![("GIVEN".into(), "1".into())];
        setup.step.confinement.grants.push(common::grant("/proc", Access::Read));
        // The test's own environment and descriptors are the caller's.
        check(&setup, &plain(&[("environ", "ok"), ("descriptors", "ok"), ("capabilities", "ok")]));
    }
}

#[test]
fn connections_reach_the_proxy_only() {
    for user in users() {
        let mut setup = Setup::new(user);
        let proxy = common::sink();
        let other = common::sink();
        let unix = setup.dir().join("socket");
        let _listener = UnixListener::bind(&unix).unwrap();
        setup.step.confinement.network = Network::Proxy(common::v4(&proxy));
        let (proxy, other) = (proxy.local_addr().unwrap(), other.local_addr().unwrap());
        let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut want = plain(&[
            ("inet", "ok"),
            ("inet6", "EACCES"),
            ("udp", "EACCES"),
            ("mptcp", "EACCES"),
            ("unix", "EACCES"),
            ("pairdgram", "EACCES"),
        ]);
        for (probe, to, answer) in [
            ("connect", proxy.to_string(), "ok"),
            ("connectnonblocking", proxy.to_string(), "ok"),
            ("connectthreads", proxy.to_string(), "ok"),
            ("longlived", proxy.to_string(), "ok"),
            ("connect", other.to_string(), "EACCES"),
            ("connectnonblocking", other.to_string(), "EACCES"),
            ("connect", refused.to_string(), "EACCES"),
            ("connect", format!("127.0.0.2:{}", proxy.port()), "EACCES"),
            ("connect", format!("0.0.0.0:{}", proxy.port()), "EACCES"),
            ("fastopen", proxy.to_string(), "EOPNOTSUPP"),
            ("fastopen", other.to_string(), "EOPNOTSUPP"),
            ("race", format!("{proxy},{other}"), "ok"),
        ] {
            want.push((format!("{probe}:{to}"), answer));
        }
        check(&setup, &want);
    }
}

/// A proxy whose queue is full makes `connect` wait in the network; the guardian must not.
#[test]
fn a_slow_proxy_holds_up_nobody_else() {
    for user in users() {
        let mut setup = Setup::new(user);
        let proxy = common::full_listener();
        let to = common::v4(&proxy);
        let other = common::sink().local_addr().unwrap();
        setup.step.confinement.network = Network::Proxy(to);
        let name = format!("stalled:{to},{other}");
        setup.step.args.push(name.clone().into());
        let mut caller = setup.command(&[]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(caller.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "waiting", "as {user:?}");
        std::thread::spawn(move || proxy.incoming().flatten().for_each(drop));
        assert_eq!(lines.next().unwrap().unwrap(), format!("{name}=ok"));
        assert!(caller.wait().unwrap().success());
    }
}

#[test]
fn a_proxy_that_is_gone_refuses() {
    for user in users() {
        let mut setup = Setup::new(user);
        let gone = common::v4(&TcpListener::bind("127.0.0.1:0").unwrap());
        setup.step.confinement.network = Network::Proxy(gone);
        let blocking = format!("connect:{gone}");
        let other = format!("connectnonblocking:{gone}");
        check(&setup, &[(blocking, "ECONNREFUSED"), (other, "ECONNREFUSED")]);
    }
}

#[test]
fn failures_say_what_failed() {
    for user in users() {
        let base = || Setup::new(user);
        let error = |setup: &Setup| setup.run(&[]).1;
        let mut none = base();
        none.step.program = none.dir().join("none");
        assert!(error(&none).contains("no such file: is it installed?"), "{}", error(&none));

        let mut script = base();
        script.step.program = script.dir().join("script");
        common::script(&script.step.program, "#!/no/such/interpreter\n");
        script.grant("script", Access::Read);
        assert!(error(&script).contains("its interpreter \"/no/such/interpreter\" does not exist"));

        let mut closed = base();
        closed.step.program = closed.dir().join("closed");
        common::script(&closed.step.program, "#!/bin/sh\n");
        assert!(error(&closed).contains("Permission denied") && error(&closed).contains("does the sandbox grant"));

        let mut cwd = base();
        cwd.step.cwd = cwd.dir().join("none");
        let told = error(&cwd);
        assert!(told.contains("none: cannot enter the working directory: No such file"), "{told}");

        let mut looped = base();
        std::os::unix::fs::symlink("loop", looped.dir().join("loop")).unwrap();
        looped.grant("loop", Access::Read);
        assert!(error(&looped).contains("loop: cannot grant this path to the sandbox: Too many levels"));

        let mut relative = base();
        relative.step.confinement.grants.push(common::grant("relative", Access::Read));
        assert!(error(&relative).contains("relative: a granted path must be absolute"));

        let mut zero = base();
        zero.step.args.push("a\0b".into());
        assert!(error(&zero).contains("an argument contains a character"));

        let mut far = base();
        far.step.confinement.network = Network::Proxy("192.0.2.1:80".parse().unwrap());
        assert!(error(&far).contains("192.0.2.1:80: the proxy must be on the loopback interface"));
    }
}

#[test]
fn a_process_with_threads_is_refused() {
    let setup = Setup::new(None);
    let null = || fs::OpenOptions::new().read(true).write(true).open("/dev/null").unwrap().into();
    // The test harness has several threads.
    let launch = firedoor_sandbox::Launch {
        step: &setup.step,
        stdin: null(),
        stdout: null(),
        stderr: firedoor_sandbox::Stderr::Inherit,
        observe: false,
    };
    let error = firedoor_sandbox::spawn(launch).unwrap_err();
    assert!(matches!(error, firedoor_sandbox::SpawnError::Threads(n) if n > 1), "{error}");
}
