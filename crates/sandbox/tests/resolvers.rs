//! Resolvers other than the C library's of this machine. Each needs a compiler; without it, it is not tested, and says so.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;
#[path = "common/tls.rs"]
mod tls;

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use common::{Setup, grant, users};
use firedoor_model::{
    launch::{Access, Network},
    network::{Hosts, KnownName},
};
use tls::{NAME, Tls};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network_calls").join(name)
}

/// Whether a command did what it is for. Without its program, nothing is tested.
fn compiled(command: &mut Command) -> bool {
    let Ok(output) = command.output() else {
        eprintln!("NOT TESTED: {} is not installed", command.get_program().display());
        return false;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

/// What a program prints that may reach this port of [`NAME`], which is this machine.
fn run(user: Option<u32>, program: &Path, words: &[&str], port: u16, files: &[(&str, &Path)]) -> (String, String) {
    let mut setup = Setup::new(user);
    setup.step.program = setup.dir().join("program");
    fs::copy(program, &setup.step.program).unwrap();
    setup.grant("program", Access::Read);
    setup.step.args = words.iter().map(Into::into).collect();
    for path in ["/dev/urandom", "/etc/nsswitch.conf"] {
        setup.step.confinement.grants.push(grant(path, Access::Read));
    }
    for (variable, file) in files {
        setup.step.env.push((variable.into(), setup.dir().join(variable).into_os_string()));
        fs::copy(file, setup.dir().join(variable)).unwrap();
        setup.grant(variable, Access::Read);
    }
    setup.step.confinement.network = Network::Hosts(Hosts {
        allowed: [NAME, "127.0.0.1"].map(|h| format!("{h}:{port}").parse().unwrap()).to_vec(),
        listen: false,
        known: vec![KnownName { name: NAME.into(), addresses: vec!["127.0.0.1".parse().unwrap()] }],
        ..Hosts::default()
    });
    setup.own_everything();
    setup.run(&[])
}

#[test]
fn musl() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"hello");
        }
    });
    for (name, options) in [("dynamic", &[][..]), ("static", &["-static"])] {
        let program = dir.path().join(name);
        if !compiled(Command::new("musl-gcc").args(options).arg("-o").arg(&program).arg(source("musl.c"))) {
            return;
        }
        for user in users() {
            let (output, errors) = run(user, &program, &[NAME, &port.to_string()], port, &[]);
            // The answer has 51 bytes: a header, the question and one address.
            let want = format!(
                "{NAME}=hello\nevil.example.com=Name does not resolve\nmessage=51 192.0.2.1:53 7 1 0 0\nnothing more=-1\n\
                 message=8 192.0.2.1:53 7 1 0 1\nnothing more=-1\ndescriptor=through\n"
            );
            assert_eq!(output, want, "{name} as {user:?}: {errors}");
        }
    }
}

#[test]
fn go() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("resolve");
    let mut build = Command::new("go");
    // Kept, because Go's own library is compiled anew without C.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    build.env("CGO_ENABLED", "0").env("GOCACHE", cache).env("GO111MODULE", "off").env("GOFLAGS", "");
    if !compiled(build.args(["build", "-o"]).arg(&program).arg(source("resolve.go"))) {
        return;
    }
    let tls = Tls::start(dir.path());
    let url = format!("https://{NAME}:{}/", tls.port);
    for user in users() {
        let ca = dir.path().join("ca.pem");
        let (output, errors) = run(user, &program, &[NAME, &url], tls.port, &[("SSL_CERT_FILE", &ca)]);
        assert_eq!(output, "hello\nrefused\n198.18.\ntrue\n", "as {user:?}: {errors}");
    }
}
