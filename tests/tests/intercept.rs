//! Broker mode with interception: a server uses its service, at a fixed address over TLS, with a secret that it never has.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use firedoor_tests::{
    Client, Home, Keychain, Proxy, SERVICE, Service, descendants, kill,
    secrets::{files, holds, open},
    shim_of, text, until,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const TOKEN: &str = "ghp_MadeUpForThisTest000000000000000008";
const ENTRY: &str = "cursor/user/s";

/// The service's name leads to it through the proxy, and its authority is trusted.
fn reachable(home: &Home) -> (Service, Proxy) {
    let service = Service::start(home, "service");
    let proxy = Proxy::start(service.port);
    home.set("HTTPS_PROXY", &format!("http://127.0.0.1:{}", proxy.port));
    let authority = home.path().join("service/ca.pem");
    home.write(".config/firedoor/config.toml", format!("[broker]\ncertificates = {authority:?}\n"));
    (service, proxy)
}

/// Protected servers, of which one has these variables.
fn protected(home: &Home, env: Value) {
    let other = home.entry("connecting_server.py", &[]);
    let mut entry = other.clone();
    entry["env"] = env;
    home.cursor(json!({"s": entry, "other": other}));
    home.protect();
}

/// The Go program with which the server sends requests, beside its script. Without C, so that the resolver is Go's own.
fn build_shop(home: &Home) {
    // Kept, because Go's own library is compiled anew without C.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/shop.go");
    let mut build = Command::new("go");
    build.env("CGO_ENABLED", "0").env("GOCACHE", cache).env("GO111MODULE", "off").env("GOFLAGS", "");
    let built = build.args(["build", "-o"]).arg(home.script("shop")).arg(source).output();
    let built = built.expect("go, which scripts/setup installs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

fn url(path: &str) -> String {
    format!("https://{SERVICE}{path}")
}

/// Its secret in broker mode.
fn intercepted(home: &Home) {
    protected(home, json!({"SERVICE_TOKEN": TOKEN}));
    add(home, "SERVICE_TOKEN").expect_code(0).expect_said("end at Firedoor");
}

fn add(home: &Home, secret: &str) -> firedoor_tests::Output {
    home.firedoor(&["broker", "add", ENTRY, secret, "--intercept", "--url", &url("/v1")])
}

#[track_caller]
fn shop(client: &mut Client, order: Value) -> Value {
    serde_json::from_str(&text(&client.call("shop", order)).0).unwrap()
}

fn said(client: &mut Client, tool: &str, order: Value) -> String {
    text(&client.call(tool, order)).0
}

fn variable(client: &mut Client, name: &str) -> String {
    said(client, "variable", json!({"name": name}))
}

fn bearer() -> Value {
    json!({"Authorization": "Bearer {token}"})
}

/// Whether the log has a finding of this detector, and never the secret.
#[track_caller]
fn found(home: &Home, detector: &str, place: &str) {
    until(&format!("{detector} with {place}"), || {
        let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
        assert!(!log.contains(TOKEN), "{log}");
        log.lines().any(|row| row.contains(detector) && row.contains(place)).then_some(())
    });
}

/// What was made for starts of servers: certificates, and nothing else.
fn made(home: &Home) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(&home.path().join(".local/share/firedoor"), &mut all);
    all.retain(|path| path.components().any(|part| part.as_os_str() == "trust"));
    all.retain(|path| path.extension().is_some_and(|extension| extension == "pem"));
    all.sort();
    all
}

/// Ports of 127.0.0.1 on which these processes listen (proc_pid_net(5)).
fn listening(pids: &[i32]) -> Vec<u16> {
    let links = pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let sockets: Vec<String> =
        links.filter_map(|link| fs::read_link(link.path()).ok()?.into_os_string().into_string().ok()).collect();
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listens = rows.filter(|row| row[3] == "0A" && sockets.contains(&format!("socket:[{}]", row[9])));
    listens.map(|row| u16::from_str_radix(row[1].split(':').next_back().unwrap(), 16).unwrap()).collect()
}

#[test]
fn python_curl_node_and_go_use_a_service_with_a_secret_that_they_never_have() {
    let home = Home::new();
    let (service, proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    build_shop(&home);
    intercepted(&home);
    let mut client = open(&home, "s");
    let placeholder = variable(&mut client, "SERVICE_TOKEN");
    assert!(placeholder.starts_with("firedoor-broker-"), "{placeholder}");
    for program in ["python", "curl", "node", "go"] {
        let body = r#"{"a":1}"#;
        let order = json!({"program": program, "method": "POST", "url": url("/v1/me?x=%20"), "headers": bearer(), "body": body});
        let answer = shop(&mut client, order);
        assert_eq!(
            (&answer["status"], &answer["body"]),
            (&json!(200), &json!(r#"{"ok": true}"#)),
            "{program}: {answer}"
        );
        let seen = service.next();
        assert_eq!(
            (&seen["method"], &seen["path"], &seen["body"]),
            (&json!("POST"), &json!("/v1/me?x=%20"), &json!(body))
        );
        assert_eq!(seen["headers"]["authorization"], format!("Bearer {TOKEN}"), "{program}");
        assert_eq!(seen["headers"]["host"], SERVICE, "{program}");
        // What comes back has no secret either.
        let answer = shop(&mut client, json!({"program": program, "url": url("/v1/echo"), "headers": bearer()}));
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["plain"], "*".repeat(TOKEN.len()), "{program}");
        assert!(!answer.to_string().contains(TOKEN), "{program}: {answer}");
        assert!(service.next()["headers"]["authorization"].as_str().unwrap().contains(TOKEN));
    }
    found(&home, "broker/echo", "the body of an answer");
    // A redirect is not followed, and one within the service stays as it is.
    let answer = shop(&mut client, json!({"url": url("/v1/moved"), "headers": bearer()}));
    assert_eq!((&answer["status"], &answer["headers"]["location"]), (&json!(307), &json!("/v1/me?moved=1")));
    let asked = proxy.asked();
    assert!(!asked.is_empty() && asked.iter().all(|to| *to == format!("CONNECT {SERVICE}:443")), "{asked:?}");

    // No process has it in its arguments or environment, the server and what puts it in among them.
    let all: Vec<i32> = home.engine().into_iter().chain(descendants(client.pid())).collect();
    assert!(all.len() >= 5, "engine, shim, two guardians, server and what puts the secret in: {all:?}");
    for (pid, name) in all.iter().flat_map(|pid| [(pid, "cmdline"), (pid, "environ")]) {
        assert!(!holds(&fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default(), TOKEN), "{pid} {name}");
    }
    // Nobody can make another certificate: no key is anywhere but the service's own.
    let mut all = Vec::new();
    files(&home.path(), &mut all);
    files(&home.runtime(), &mut all);
    all.retain(|path| !path.starts_with(home.path().join("service")));
    assert!(all.iter().all(|path| !holds(&fs::read(path).unwrap(), "PRIVATE KEY")));
}

#[test]
fn each_start_has_an_authority_of_its_own_that_ends_with_it() {
    let home = Home::new();
    let (_service, _proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    intercepted(&home);
    let mut one = open(&home, "s");
    let (alone, all) = (variable(&mut one, "NODE_EXTRA_CA_CERTS"), variable(&mut one, "SSL_CERT_FILE"));
    assert_eq!(made(&home), [PathBuf::from(&all), PathBuf::from(&alone)]);
    let authority = fs::read_to_string(&alone).unwrap();
    assert_eq!(authority.matches("BEGIN CERTIFICATE").count(), 1);
    let both = fs::read_to_string(&all).unwrap();
    assert!(both.ends_with(&authority) && both.matches("BEGIN CERTIFICATE").count() > 10, "the system's as well");
    // It vouches for one name.
    let shown = home.run("openssl", &["x509", "-in", &alone, "-noout", "-ext", "nameConstraints,basicConstraints"]);
    shown.expect_code(0).expect_said(&format!("DNS:{SERVICE}"));
    // The server reads it and cannot change it.
    assert_eq!(said(&mut one, "read", json!({"path": alone})), authority);
    assert!(said(&mut one, "read", json!({"path": alone, "mode": "w"})).starts_with("denied"));

    let mut other = open(&home, "s");
    let second = variable(&mut other, "NODE_EXTRA_CA_CERTS");
    assert_ne!(fs::read_to_string(&second).unwrap(), authority);
    assert!(said(&mut other, "read", json!({"path": alone})).starts_with("denied"), "the other's is not its own");
    assert_eq!(other.end(), 0);
    until("its files are gone", || (made(&home).len() == 2).then_some(()));
    // What a shim that was killed leaves, the next start takes away.
    kill(shim_of(one.pid()).unwrap(), Signal::SIGKILL);
    one.end();
    assert_eq!(made(&home).len(), 2);
    let mut next = open(&home, "s");
    assert_eq!(made(&home).len(), 2);
    assert!(!PathBuf::from(&alone).exists() && next.end() == 0);

    // Taken out of broker mode it gets its secret, and nothing is made for it.
    home.firedoor(&["broker", "remove", ENTRY, "SERVICE_TOKEN"]).expect_code(0);
    let mut without = open(&home, "s");
    assert_eq!(variable(&mut without, "SERVICE_TOKEN"), TOKEN);
    assert_eq!((variable(&mut without, "SSL_CERT_FILE"), made(&home)), (String::new(), Vec::new()));
    without.end();
    home.firedoor(&["restore", "--all"]).expect_code(0);
    assert_eq!(made(&home), Vec::<PathBuf>::new());
}

#[test]
fn what_does_not_belong_is_refused_and_reaches_no_service() {
    let home = Home::new();
    let (service, proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    intercepted(&home);
    let own = format!("127.0.0.1:{}", service.port);
    home.firedoor(&["grants", "add", ENTRY, "--host", &own]).expect_code(0);
    let mut client = open(&home, "s");

    // Another host is not intercepted: its certificate is its own.
    let elsewhere = json!({"host": "127.0.0.1", "port": service.port, "name": SERVICE});
    assert_eq!(said(&mut client, "handshake", elsewhere), "its own");
    // Nor is anything else spoken on these connections.
    for (order, detector, place) in [
        (json!({"name": "other.example"}), "broker/other-name", "names another host"),
        (json!({}), "broker/other-name", "names no host"),
        (json!({"name": SERVICE, "offers": "h2"}), "broker/other-protocol", "offers no HTTP/1.1"),
    ] {
        let mut order = order;
        order["host"] = json!(SERVICE);
        let answer = said(&mut client, "handshake", order.clone());
        assert!(answer.starts_with("failed"), "{order}: {answer}");
        found(&home, detector, place);
    }
    let answer = said(&mut client, "plainly", json!({"host": SERVICE}));
    assert!(answer.starts_with("failed") || answer == "got 0 bytes" || answer == "got 7 bytes", "{answer}");
    found(&home, "broker/other-protocol", "without TLS");
    assert!(said(&mut client, "tcp", json!({"host": SERVICE, "port": 8443})).starts_with("denied"));

    let mut check = |order: Value, status: u16| {
        let answer = shop(&mut client, order.clone());
        assert_eq!(answer["status"], status, "{order}: {answer}");
        assert!(answer["body"].as_str().unwrap().starts_with("firedoor: "), "{order}: {answer}");
        service.saw_nothing();
    };
    let with = |name: &str, value: &str| {
        let mut headers = bearer();
        headers[name] = json!(value);
        json!({"url": url("/v1/me"), "headers": headers})
    };
    check(with("Host", "evil.example"), 421);
    found(&home, "broker/other-name", "the Host of a request");
    check(with("Upgrade", "websocket"), 501);
    found(&home, "broker/other-protocol", "WebSocket");
    check(with("X-Other", "{token}"), 403);
    found(&home, "broker/placeholder", "a header that is not for the credential");
    check(with("Authorization", "Bearer somebody-elses"), 403);
    found(&home, "broker/other-credential", "the header for the credential");
    check(json!({"url": url("/v1/me?key={token}"), "headers": bearer()}), 403);
    check(json!({"url": url("/v2/me"), "headers": bearer()}), 404);
    check(json!({"url": url("/v1/%2e%2e/admin"), "headers": bearer()}), 404);
    check(json!({"url": url("/v1/me"), "method": "TRACE", "headers": bearer()}), 405);
    let answer =
        shop(&mut client, json!({"url": url("/v1/me"), "method": "POST", "headers": bearer(), "body": "{token}"}));
    assert!(answer["status"] == 403 || answer["error"].is_string(), "{answer}");
    found(&home, "broker/placeholder", "the body of a request");
    // All that left was for the one host.
    assert!(proxy.asked().iter().all(|to| *to == format!("CONNECT {SERVICE}:443")));
}

#[test]
fn a_server_that_does_not_trust_what_it_is_shown_is_told_from_others() {
    let home = Home::new();
    let (service, _proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    // What the entry itself says of certificates stays.
    protected(&home, json!({"SERVICE_TOKEN": TOKEN, "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"}));
    add(&home, "SERVICE_TOKEN").expect_code(0);
    let mut client = open(&home, "s");
    assert_eq!(variable(&mut client, "NODE_EXTRA_CA_CERTS"), "/etc/ssl/certs/ca-certificates.crt");
    found(&home, "NODE_EXTRA_CA_CERTS", "says already whose certificates");
    let answer = shop(&mut client, json!({"program": "node", "url": url("/v1/me"), "headers": bearer()}));
    assert!(answer["error"].is_string(), "{answer}");
    found(&home, "broker/distrusted", "TLS handshake");
    let pinned = json!({"host": SERVICE, "name": SERVICE, "trusts": "/etc/ssl/certs/ca-certificates.crt"});
    assert!(said(&mut client, "handshake", pinned).starts_with("failed"));
    found(&home, "broker/distrusted", "UnknownCA");
    service.saw_nothing();
}

#[test]
fn nobody_else_uses_the_connections_of_a_server() {
    let home = Home::new();
    let (service, _proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    intercepted(&home);
    let mut client = open(&home, "s");
    let puts_in = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| holds(&line, "--broker"));
    let ports = listening(&descendants(client.pid()).into_iter().filter(puts_in).collect::<Vec<_>>());
    let [port] = ports.as_slice() else { panic!("one port: {ports:?}") };
    // A program outside of every sandbox gets there, and is heard by nobody, whatever it says first.
    for first in ["a".repeat(32), "\u{16}\u{3}\u{1}".into()] {
        let mut stranger = TcpStream::connect(("127.0.0.1", *port)).unwrap();
        stranger.write_all(first.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    // The server itself cannot go there, nor another one; and the name leads that one nowhere.
    let mut other = open(&home, "other");
    for client in [&mut client, &mut other] {
        assert!(said(client, "tcp", json!({"host": "127.0.0.1", "port": port})).starts_with("denied"));
    }
    let id = other.send_call("shop", json!({"url": url("/v1/me"), "headers": {"Authorization": "Bearer x"}}));
    let answer: Value = serde_json::from_str(&text(&other.answer(id)["result"]).0).unwrap();
    assert!(answer["error"].is_string(), "{answer}");
    other.end();
    service.saw_nothing();

    // An engine that dies takes nothing away.
    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGKILL);
    until("another engine", || home.engine().filter(|pid| *pid != engine));
    assert_eq!(shop(&mut client, json!({"url": url("/v1/me"), "headers": bearer()}))["status"], 200);
    assert_eq!(service.next()["headers"]["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(client.end(), 0);
    until("nothing listens any more", || TcpStream::connect(("127.0.0.1", *port)).is_err().then_some(()));
}

#[test]
fn interception_is_a_choice_of_the_user() {
    let home = Home::new();
    let (_service, _proxy) = reachable(&home);
    let _keychain = Keychain::start(&home);
    protected(&home, json!({"SERVICE_TOKEN": TOKEN, "OTHER_TOKEN": "ghp_MadeUpForThisTest000000000000000009"}));
    let with =
        |more: &[&str]| home.firedoor(&[&["broker", "add", ENTRY, "SERVICE_TOKEN", "--intercept"], more].concat());
    with(&[]).expect_code(2).expect_said("--intercept and --url");
    with(&["--url", "https://127.0.0.1/"]).expect_code(2).expect_said("a host with a name");
    with(&["--url", "https://a.example/", "--variable", "X"]).expect_code(2).expect_said("cannot be used with");
    add(&home, "SERVICE_TOKEN").expect_code(0).expect_said("nothing else on this machine trusts it");
    add(&home, "OTHER_TOKEN").expect_code(1).expect_said("intercepted for SERVICE_TOKEN already");
    add(&home, "SERVICE_TOKEN").expect_code(0);
    let listed = home.json(&["broker", "list"]);
    let want = json!([{"entry": ENTRY, "secret": "SERVICE_TOKEN", "variable": "", "url": url("/v1"),
        "header": "authorization", "intercept": true}]);
    assert_eq!(listed["broker"], want, "{listed}");
    home.firedoor(&["broker", "list"]).expect_code(0).expect_said("own connections are intercepted");
    home.firedoor(&[
        "broker",
        "add",
        ENTRY,
        "OTHER_TOKEN",
        "--variable",
        "OTHER_URL",
        "--url",
        "https://other.example/",
    ])
    .expect_code(0);
    let line =
        format!("broker mode: {ENTRY}: OTHER_TOKEN to other.example, in the keychain; SERVICE_TOKEN to {SERVICE}, ");
    home.firedoor(&["doctor"]).expect_said(&format!("ok   {line}connections intercepted, in the keychain\n"));
    // One that is gone keeps its server from starting.
    home.firedoor(&["secrets", "remove", &format!("{ENTRY}/SERVICE_TOKEN"), "--force"]).expect_code(0);
    let doctor = home.firedoor(&["doctor"]).expect_code(1);
    doctor
        .expect_said(&format!("BAD  {line}connections intercepted, MISSING in the keychain"))
        .expect_said("firedoor secrets set");
    let checked: Value = serde_json::from_str(&home.firedoor(&["doctor", "--json"]).expect_code(1).stdout).unwrap();
    let want = json!([
        {"entry": ENTRY, "secret": "OTHER_TOKEN", "host": "other.example", "intercept": false, "kept": true},
        {"entry": ENTRY, "secret": "SERVICE_TOKEN", "host": SERVICE, "intercept": true, "kept": false},
    ]);
    assert_eq!(checked["broker"], want);
}
