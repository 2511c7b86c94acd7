//! Real programs whose connections are judged by host name, as root (where the tests are) and as an ordinary user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;
#[path = "common/tls.rs"]
mod tls;

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
    path::Path,
};

use common::{Setup, grant, users};
use firedoor_model::{
    launch::{Access, Network},
    network::{Attempt, Hosts, KnownName},
};
use tls::{NAME, PYTHON, Tls};

/// A server with these hosts. The name of the test is this machine; so is one that pretends to be public.
fn hosts(allowed: &[String], listen: bool) -> Network {
    let known = |name: &str, at: &str| KnownName { name: name.into(), addresses: vec![at.parse().unwrap()] };
    let allowed = allowed.iter().map(|h| h.parse().unwrap()).collect();
    Network::Hosts(Hosts {
        allowed,
        listen,
        known: vec![known(NAME, "127.0.0.1"), known("rebound.example.org", "127.0.0.9")],
        ..Hosts::default()
    })
}

fn program(setup: &mut Setup, words: &[&str]) {
    setup.step.program = words[0].into();
    setup.step.args = words[1..].iter().map(Into::into).collect();
    setup.step.confinement.grants.push(grant("/etc/nsswitch.conf", Access::Read));
    for path in ["/dev/urandom", "/etc/ssl/openssl.cnf"] {
        setup.step.confinement.grants.push(grant(path, Access::Read));
    }
}

/// A port where datagrams are sent back for as long as the test runs.
fn echo() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut bytes = [0; 100];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    port
}

#[test]
fn each_call_is_judged() {
    for user in users() {
        for listen in [false, true] {
            let mut setup = Setup::new(user);
            let (allowed, other) = (common::sink(), common::sink());
            let (udp, echo) = (UdpSocket::bind("127.0.0.1:0").unwrap(), echo());
            udp.set_nonblocking(true).unwrap();
            let port = |l: &TcpListener| l.local_addr().unwrap().port().to_string();
            fs::create_dir(setup.dir().join("work")).unwrap();
            let sockets = ["granted", "refused"].map(|n| setup.dir().join(n));
            let _listeners = sockets.each_ref().map(|p| UnixListener::bind(p).unwrap());
            let script = setup.dir().join("calls.py");
            fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network_calls/calls.py"), &script).unwrap();
            program(&mut setup, &[PYTHON, "-I", script.to_str().unwrap()]);
            setup.grant("work", Access::Write);
            setup.grant("calls.py", Access::Read);
            let dir = setup.dir().to_owned();
            let at = |name: &str| dir.join(name).display().to_string();
            setup.step.env = [
                ("PORT", port(&allowed)),
                ("OTHER", port(&other)),
                ("UDP", udp.local_addr().unwrap().port().to_string()),
                ("ECHO", echo.to_string()),
                ("GRANTED", at("granted")),
                ("REFUSED", at("refused")),
                ("WORK", at("work")),
            ]
            .map(|(n, v)| (n.into(), v.into()))
            .to_vec();
            setup.step.confinement.sockets = vec![setup.dir().join("granted")];
            let address = format!("127.0.0.1:{}", port(&allowed));
            setup.step.confinement.network =
                hosts(&[format!("{NAME}:{}", port(&allowed)), address.clone(), "rebound.example.org".into()], listen);
            let Network::Hosts(hosts) = &mut setup.step.confinement.network else { panic!("no hosts") };
            for host in [NAME, "127.0.0.1"] {
                hosts.allowed.push(format!("{host}:{echo}/udp").parse().unwrap());
            }
            setup.own_everything();
            let (output, errors) = setup.run(&["attempts"]);
            let (here, here_6) = if listen { ("127.0.0.1", "::ffff:127.0.0.1") } else { ("EACCES", "EACCES") };
            let want = [
                ("lookup", "198.18."),
                ("lookup upper", "198.18."),
                ("lookup unknown", "no such name"),
                ("lookup private", "no such name"),
                ("connect", "ok"),
                ("connect nonblocking", "ok"),
                ("connect mapped", "ok"),
                ("connect other port", "EACCES"),
                ("connect literal", "EACCES"),
                ("connect literal v6", "EACCES"),
                ("connect unspecified", "EACCES"),
                ("connect public", "EACCES"),
                ("connect metadata", "EACCES"),
                ("connect stranger", "EACCES"),
                ("connect dns", "ok"),
                ("udp sendto", "EACCES"),
                ("udp sendmsg", "EACCES"),
                ("udp connect", "EACCES"),
                ("udp granted connect", "ping 127.0.0.1"),
                ("udp granted sendto", "ping 127.0.0.1"),
                ("udp granted sendmsg", "ping 127.0.0.1"),
                ("udp granted bound", "ping 127.0.0.1"),
                ("udp granted, other origin", "EACCES"),
                ("udp granted, other port", "EACCES"),
                ("dns connect", "198.18."),
                ("dns sendto", "198.18."),
                ("dns sendmsg", "198.18."),
                ("dns stream", "198.18."),
                ("dns streams", "0,3,0"),
                ("dns stream, no dns", "closed"),
                ("dns ptr", NAME),
                ("dns ptr unknown", "3"),
                ("dns https", "0"),
                ("dns txt", "0"),
                ("dns unknown", "3"),
                ("listen", here),
                ("listen everywhere", here),
                ("listen everywhere v6", here_6),
                ("listen unbound", here),
                ("bind port", if listen { "ok" } else { "EACCES" }),
                ("unix granted", "ok"),
                ("unix refused", "EACCES"),
                ("unix refused dgram", "EACCES"),
                ("unix missing", "ENOENT"),
                ("unix abstract", "EACCES"),
                ("unix relative", "EACCES"),
                ("unix through proc", "ELOOP"),
                ("unix link", "EACCES"),
                ("unix own", "hello"),
                ("unix own elsewhere", "EACCES"),
                ("rights", "through"),
                ("credentials", "EACCES"),
                ("large", "ok"),
                ("full nonblocking", "EAGAIN"),
                ("broken pipe", "signal 13"),
                ("broken pipe, no signal", "code 3"),
                ("bad memory", "-1"),
                ("interfaces", "ok"),
                ("route header", "EPERM"),
                ("source route", "EPERM"),
                ("join group", "EPERM"),
                ("join group of source", "EPERM"),
                ("join group by name", "EPERM"),
                ("join group v6", "EPERM"),
                ("chmod", "0o640"),
                ("chmod outside", "EACCES"),
                ("chmod through link", "EACCES"),
                ("chmod read only", "EACCES"),
                ("fchmod", "ok"),
                ("fchmod read only", "EACCES"),
                ("futimens read only", "EACCES"),
                ("chmod setuid", "EPERM"),
                ("utime", "1 2"),
                ("utime link", "1 2"),
                ("utime outside", "EACCES"),
                ("utime relative", "1 2"),
                ("chown", "EPERM"),
                ("setxattr", "ENOTSUP"),
            ];
            let want: String = want.iter().map(|(n, v)| format!("{n}={v}\n")).collect();
            assert_eq!(output, want, "as {user:?}, listen {listen}: {errors}");
            assert!(udp.recv(&mut [0]).is_err(), "a datagram came out");

            let attempts: Vec<Attempt> = errors.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
            let told = |target: &str| attempts.iter().any(|a| a.target.raw() == target);
            for target in [
                "evil.example.com",
                "streamed.evil.example.com",
                "rebound.example.org",
                "9.9.9.9:443",
                "169.254.169.254:80",
                &at("refused"),
            ] {
                assert!(told(target), "{target}: {errors}");
            }
            assert!(attempts.iter().all(|a| a.program.raw().contains("/python3") && a.pid > 0), "{errors}");
            assert!(!attempts.iter().any(|a| a.target.raw().ends_with(".arpa")), "{errors}");
            assert!(!told(&address), "what is allowed is no attempt");
        }
    }
}

#[test]
fn floods_are_ended() {
    let listener = common::sink();
    let port = listener.local_addr().unwrap().port();
    let text = format!(
        "import socket\nmade, to = 0, socket.gethostbyname('localhost')\ntry:\n while made < 5000:\n  socket.create_connection((to, {port})).close()\n  made += 1\n\
         except OSError as e: print(made, e.errno)"
    );
    let mut setup = Setup::new(None);
    program(&mut setup, &[PYTHON, "-I", "-c", &text]);
    setup.step.confinement.network = hosts(&[format!("localhost:{port}")], false);
    setup.step.confinement.limits.rates.connections_to_one = Some(200.try_into().unwrap());
    let (output, errors) = setup.run(&["attempts"]);
    assert_eq!(output, "200 13\n", "{errors}");
    assert_eq!(errors.matches("connections to one host").count(), 1, "it is told once: {errors}");
}

#[test]
fn datagrams_to_a_granted_host_are_counted_where_that_is_wished() {
    let echo = echo();
    let script = format!(
        r#"
import errno, socket
def attempt(what, *given):
    try: print(what(*given))
    except OSError as e: print(errno.errorcode[e.errno])
def send(to, most):
    one, sent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0
    try:
        while sent < most:
            one.sendto(b"x" * 50_000, (to, {echo}))
            one.recv(100)
            sent += 1
        return sent
    except OSError as e: return f"{{sent}} {{errno.errorcode[e.errno]}}"
def connect(to):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((to, {echo}))
    return "connected"
name, number = socket.gethostbyname("{NAME}"), "127.0.0.1"
"#
    );
    for user in users() {
        // What was granted by its number is not counted.
        for (body, want, reason) in [
            (
                "attempt(send, number, 30)\nattempt(send, name, 100)",
                "30\n20 EACCES\n",
                "more than 1MiB sent to one host",
            ),
            ("attempt(connect, number)\nattempt(connect, name)", "connected\nEACCES\n", "a connected datagram socket"),
        ] {
            let mut setup = Setup::new(user);
            program(&mut setup, &[PYTHON, "-I", "-c", &format!("{script}{body}")]);
            setup.step.confinement.network =
                hosts(&[NAME, "127.0.0.1"].map(|host| format!("{host}:{echo}/udp")), false);
            setup.step.confinement.limits.rates.sent_to_one = Some("1MiB".parse().unwrap());
            setup.own_everything();
            let (output, errors) = setup.run(&["attempts"]);
            assert_eq!(output, want, "{user:?}: {errors}");
            let attempts: Vec<Attempt> = errors.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
            let told = |a: &Attempt| a.target.raw() == format!("{NAME}:{echo} (UDP)") && a.reason.contains(reason);
            assert!(attempts.iter().any(told), "{reason}: {errors}");
        }
    }
}

#[test]
fn real_programs_reach_allowed_hosts_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let tls = Tls::start(dir.path());
    let url = |host: &str| format!("https://{host}:{}/", tls.port);
    let node = |expression: &str| format!("{expression}.then(r=>console.log(r),e=>console.log(e.cause?.code??e.code))");
    let python = |host: &str| {
        format!(
            "import urllib.request,urllib.error\ntry: print(urllib.request.urlopen('{}').read().decode())\n\
             except urllib.error.URLError as e: print(type(e.reason).__name__)",
            url(host)
        )
    };
    let fetch = |host: &str| node(&format!("fetch('{}').then(r=>r.text())", url(host)));
    let resolve = |host: &str| node(&format!("require('dns').promises.resolve4('{host}').then(a=>a[0].slice(0,7))"));
    for user in users() {
        for (words, want) in [
            (vec![PYTHON, "-I", "-c", &python(NAME)], "hello"),
            (vec![PYTHON, "-I", "-c", &python("evil.example.com")], "gaierror"),
            (vec![PYTHON, "-I", "-c", &python("127.0.0.1")], "SSLCertVerificationError"),
            (vec![PYTHON, "-I", "-c", &python("127.0.0.2")], "PermissionError"),
            (vec!["/usr/bin/curl", "-sS", &url(NAME)], "hello"),
            (
                vec!["/usr/bin/curl", "-sw", "%{errormsg}", &url("evil.example.com")],
                "Could not resolve host: evil.example.com",
            ),
            (vec!["/usr/bin/node", "-e", &fetch(NAME)], "hello"),
            (vec!["/usr/bin/node", "-e", &fetch("evil.example.com")], "ENOTFOUND"),
            (vec!["/usr/bin/node", "-e", &fetch("127.0.0.2")], "EACCES"),
            (vec!["/usr/bin/node", "-e", &resolve(NAME)], "198.18."),
            (vec!["/usr/bin/node", "-e", &resolve("evil.example.com")], "ENOTFOUND"),
        ] {
            if !Path::new(words[0]).exists() {
                continue;
            }
            let mut setup = Setup::new(user);
            fs::copy(dir.path().join("ca.pem"), setup.dir().join("ca.pem")).unwrap();
            program(&mut setup, &words);
            let ca = setup.dir().join("ca.pem");
            setup.step.env = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"]
                .map(|n| (n.into(), ca.clone().into_os_string()))
                .to_vec();
            setup.grant("ca.pem", Access::Read);
            let address = format!("127.0.0.1:{}", tls.port);
            setup.step.confinement.network = hosts(&[format!("{NAME}:{}", tls.port), address], false);
            setup.own_everything();
            let (output, errors) = setup.run(&[]);
            assert_eq!(output.trim(), want, "{words:?} as {user:?}: {errors}");
        }
    }
}
