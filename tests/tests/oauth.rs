//! Logging in at servers that are reached over HTTP, with a real keychain.
#![expect(clippy::expect_used, reason = "what breaks here is the test")]

use std::{
    fs,
    io::{BufRead as _, BufReader, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    process::Child,
};

use firedoor_tests::{Client, Home, Keychain, descendants, finish, text};
use nix::unistd::geteuid;
use serde_json::{Value, json};

const ENTRY: &str = "cursor/user/s";

/// A server and its issuer of `tests/servers/oauth_server.py`, outside of any sandbox.
struct Servers {
    process: Child,
    stdin: Option<PipeWriter>,
    url: String,
    issuer: String,
}

impl Servers {
    fn start(home: &Home, mode: &str) -> Self {
        let (process, stdin, stdout) =
            home.spawn(home.command(home.python()).arg(home.script("oauth_server.py")).arg(mode));
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("two ports");
        let (server, issuer) = line.trim().split_once(' ').expect("two ports");
        let at = |port: &str| format!("http://127.0.0.1:{port}");
        let servers = Self { process, stdin: Some(stdin), url: at(server) + "/mcp", issuer: at(issuer) };
        home.cursor(json!({"s": {"url": servers.url}}));
        servers
    }

    /// What the issuer was asked, of one kind.
    fn seen(&self, kind: &str) -> Vec<Value> {
        let (_, body) = get(&format!("{}/seen", self.issuer));
        let all: Vec<(String, Value)> = serde_json::from_str(&body).expect("what it has seen");
        all.into_iter().filter(|(k, _)| k == kind).map(|(_, value)| value).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a browser gets: where it is sent on to, if it is, and the text.
fn get(url: &str) -> (Option<String>, String) {
    let rest = url.strip_prefix("http://").expect("http");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let location = head.lines().find_map(|line| line.strip_prefix("Location: ")).map(str::to_owned);
    (location, body.to_owned())
}

/// What another user of the machine gets.
fn as_another_user(home: &Home, url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let (name, port) = host.split_once(':').expect("a port");
    let script = "import socket, sys\n\
        s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n\
        try:\n \
         s.sendall(sys.argv[3].encode())\n \
         print(s.recv(4096).decode(), end='')\n\
        except ConnectionError:\n \
         pass\n";
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut command = home.command(home.python());
    finish(command.args(["-c", script, name, port, &request]).uid(1).gid(1)).stdout
}

/// A login that waits for the browser.
struct Login {
    process: Child,
    stdin: PipeWriter,
    stdout: BufReader<PipeReader>,
    address: String,
}

impl Login {
    fn start(home: &Home, more: &[&str]) -> Self {
        Self::typing(home, more, "")
    }

    /// One that is told this before it says anything.
    fn typing(home: &Home, more: &[&str], typed: &str) -> Self {
        let mut command = home.command("setsid");
        command.arg(home.program("firedoor")).args(["login", ENTRY]).args(more);
        let (process, mut stdin, stdout) = home.spawn(&mut command);
        stdin.write_all(typed.as_bytes()).expect("it fits into the pipe");
        let mut login = Self { process, stdin, stdout: BufReader::new(stdout), address: String::new() };
        assert!(login.line().starts_with("Log in at http://127.0.0.1:"));
        login.address = login.line();
        login
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("what it says");
        line.trim_end().to_owned()
    }

    /// Where the issuer sends the browser.
    fn consent(&self) -> String {
        get(&self.address).0.expect("the way back")
    }

    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).expect("what it says");
        (self.process.wait().expect("its end").code().expect("an exit code"), said)
    }
}

#[track_caller]
fn log_in(home: &Home, more: &[&str]) {
    let login = Login::start(home, more);
    let back = login.consent();
    assert!(get(&back).1.contains("is logged in"));
    let (code, said) = login.end();
    assert!(code == 0 && said.contains("Logged in"), "{said}");
}

#[track_caller]
fn protect(home: &Home) {
    home.firedoor(&["protect", "--all", "--yes"]).expect_code(0).expect_said("answers through Firedoor (1 tools)");
}

/// Why the server does not open a session.
fn refused(home: &Home) -> String {
    let mut client = Client::start(home, &home.command_line("s"));
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let why = client.answer(id)["error"]["message"].to_string();
    client.end();
    why
}

/// The tokens that the issuer gave, and what they were given for.
fn secrets(servers: &Servers) -> Vec<String> {
    let all = servers.seen("token");
    let of = |name: &str| all.iter().filter_map(|t| t[name].as_str()).map(str::to_owned).collect::<Vec<_>>();
    [of("code"), of("code_verifier"), of("refresh_token")].concat()
}

#[test]
fn a_login_opens_the_server_and_its_tokens_are_in_the_keychain_alone() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    home.firedoor(&["protect", "--all", "--yes"]).expect_code(1).expect_said("`firedoor login cursor/user/s`");
    log_in(&home, &[]);
    let asked = &servers.seen("authorize")[0];
    assert_eq!((&asked["resource"], &asked["code_challenge_method"]), (&json!(servers.url), &json!("S256")));
    assert_eq!(asked["scope"], "tools offline_access");
    let registered = &servers.seen("register")[0];
    assert_eq!(
        (&registered["application_type"], &registered["redirect_uris"][0]),
        (&json!("native"), &asked["redirect_uri"])
    );
    protect(&home);
    let mut client = Client::open(&home, "s");
    assert!(client.ask("tools/list", json!({}))["tools"].is_array());
    for pid in descendants(client.pid()).into_iter().chain(home.engine()).chain([client.pid()]) {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("Bearer") && !secrets(&servers).iter().any(|s| text.contains(s)), "{file} of {pid}");
        }
    }
    client.end();
    assert!(!home.firedoor(&["log", "--json"]).expect_code(0).stdout.contains("Bearer"));
    home.firedoor(&["logout", ENTRY]).expect_code(0).expect_said("the issuer was told");
    assert_eq!(servers.seen("revoke")[0]["token_type_hint"], "refresh_token");
    let mut client = Client::start(&home, &home.command_line("s"));
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert!(client.answer(id)["error"]["message"].to_string().contains("`firedoor login cursor/user/s`"));
    home.firedoor(&["log"]).expect_said("its server wants a login");
    home.firedoor(&["logout", ENTRY]).expect_code(1).expect_said("not logged in");
    // What runs gets what a login gives meanwhile.
    log_in(&home, &[]);
    client.initialize();
    client.end();
}

fn renewals(servers: &Servers) -> usize {
    servers.seen("token").iter().filter(|t| t["grant_type"] == "refresh_token").count()
}

#[test]
fn a_token_that_ends_while_its_server_runs_is_renewed_once_for_everybody() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    log_in(&home, &["--scope", "admin"]);
    protect(&home);
    let (mut one, mut other) = (Client::open(&home, "s"), Client::open(&home, "s"));
    assert_eq!(renewals(&servers), 0);
    get(&format!("{}/end", servers.issuer));
    let ids: Vec<_> = (0..5).map(|_| one.send_call("whoami", json!({}))).collect();
    let id = other.send_call("whoami", json!({}));
    for id in ids {
        assert_eq!(text(&one.answer(id)["result"]).0, "admin tools offline_access");
    }
    assert_eq!(text(&other.answer(id)["result"]).0, "admin tools offline_access");
    assert_eq!(renewals(&servers), 1, "the issuer takes a refresh token once");
    // One that was taken back for good is not asked for again and again.
    get(&format!("{}/forget", servers.issuer));
    let id = one.send_call("whoami", json!({}));
    let answer = one.answer(id)["error"]["message"].to_string();
    assert!(answer.contains("`firedoor login cursor/user/s`"), "{answer}");
    // Logging in again is enough.
    log_in(&home, &["--scope", "admin"]);
    assert_eq!(text(&one.call("whoami", json!({}))).0, "admin tools offline_access");
    one.end();
    other.end();
}

#[test]
fn a_token_that_has_ended_is_renewed_and_a_login_that_was_revoked_is_asked_for_again() {
    let home = Home::new();
    let servers = Servers::start(&home, "short");
    let _keychain = Keychain::start(&home);
    log_in(&home, &[]);
    protect(&home);
    for _ in 0..2 {
        // The issuer takes a refresh token once.
        let before = renewals(&servers);
        let mut client = Client::open(&home, "s");
        assert!(client.ask("tools/list", json!({}))["tools"].is_array());
        client.end();
        assert_eq!(renewals(&servers), before + 1);
    }
    assert!(servers.seen("token").iter().all(|t| t["resource"] == json!(servers.url)));
    get(&format!("{}/forget", servers.issuer));
    assert!(refused(&home).contains("`firedoor login cursor/user/s`"));
    home.firedoor(&["log"]).expect_said("the login at its server is over");
    home.firedoor(&["logout", ENTRY]).expect_code(1);
    log_in(&home, &[]);
    Client::open(&home, "s").end();
}

#[test]
fn a_call_that_needs_more_names_the_command_that_asks_for_it() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    log_in(&home, &[]);
    protect(&home);
    let mut client = Client::open(&home, "s");
    let id = client.send_call("whoami", json!({}));
    let answer = client.answer(id)["error"]["message"].to_string();
    assert!(answer.contains("`firedoor login cursor/user/s --scope admin`"), "{answer}");
    client.end();
    log_in(&home, &["--scope", "admin"]);
    // What was granted before stays.
    assert_eq!(servers.seen("authorize")[1]["scope"], "admin tools offline_access");
    let mut client = Client::open(&home, "s");
    assert_eq!(text(&client.call("whoami", json!({}))).0, "admin tools offline_access");
    client.end();
}

#[test]
fn servers_and_issuers_that_are_not_who_they_say_get_no_code_and_no_login() {
    for (mode, asks, part) in [
        ("wrong-issuer", false, "says that it is"),
        ("no-pkce", false, "PKCE"),
        ("other-resource", false, "those of another one"),
        ("mix-up", true, "another issuer"),
        ("no-iss", true, "does not say that it comes from"),
        ("denied", true, "access_denied"),
    ] {
        let home = Home::new();
        let servers = Servers::start(&home, mode);
        let _keychain = Keychain::start(&home);
        if asks {
            let login = Login::start(&home, &[]);
            let (_, page) = get(&login.consent());
            assert!(page.contains(part), "{mode}: {page}");
            assert_eq!(login.end().0, 1, "{mode}");
        } else {
            home.firedoor(&["login", ENTRY]).expect_code(1).expect_said(part);
        }
        assert_eq!(servers.seen("token"), [] as [Value; 0], "{mode}");
        home.firedoor(&["logout", ENTRY]).expect_code(1).expect_said("not logged in");
    }
}

#[test]
fn what_does_not_belong_to_a_login_changes_nothing_and_an_answer_counts_once() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    let login = Login::start(&home, &[]);
    let back = login.consent();
    let (place, _) = back.split_once('?').expect("a query");
    for foreign in [
        format!("{place}?code=stolen&state=guessed"),
        format!("{place}?code=stolen"),
        back.replace("code=", "code=other&code="),
        back.replace("/callback", "/other"),
    ] {
        assert!(get(&foreign).1.contains("is not logged in"), "{foreign}");
    }
    // However often, and whatever else connects.
    for _ in 0..25 {
        assert!(get(&format!("{place}?code=stolen&state=guessed")).1.contains("is not logged in"));
    }
    let host = place.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a host").0.to_owned();
    let connected = || TcpStream::connect(&host).expect("somebody listens");
    let (_silent, mut odd) = (connected(), connected());
    odd.write_all(b"GET /callback?x\r\n\r\n").expect("a request");
    odd.read_to_end(&mut Vec::new()).expect("the answer");
    if geteuid().is_root() {
        assert_eq!(as_another_user(&home, &back), "", "not even heard");
    }
    assert_eq!(servers.seen("token"), [] as [Value; 0]);
    assert!(get(&back).1.contains("is logged in"));
    assert_eq!(login.end().0, 0);
    let host = place.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a host").0;
    assert!(TcpStream::connect(host).is_err(), "nobody listens any more");
    // Another login does not take the first one's answer.
    let login = Login::start(&home, &[]);
    let (query, next) = (back.split_once('?').expect("a query").1, login.consent());
    let (place, _) = next.split_once('?').expect("a query");
    assert!(get(&format!("{place}?{query}")).1.contains("does not belong to this login"));
    assert!(get(&next).1.contains("is logged in"));
    assert_eq!(login.end().0, 0);
}

#[test]
fn a_login_is_not_used_for_another_address() {
    let home = Home::new();
    let _servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    log_in(&home, &[]);
    protect(&home);
    let other = Servers::start(&home, "plain");
    let mut line = vec![home.program("firedoor-shim").display().to_string()];
    line.extend(["--entry", ENTRY, "--url", &other.url].map(str::to_owned));
    let mut client = Client::start(&home, &line);
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert!(client.answer(id)["error"]["message"].to_string().contains("wants a login"));
    client.end();
}

#[test]
fn a_proxy_that_the_entry_names_sees_neither_messages_nor_tokens() {
    let home = Home::new();
    // Its tokens end at once, so that one is renewed at the start.
    let servers = Servers::start(&home, "short");
    let _keychain = Keychain::start(&home);
    log_in(&home, &[]);
    protect(&home);
    let proxy = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    proxy.set_nonblocking(true).expect("a listener");
    let address = format!("http://{}", proxy.local_addr().expect("its address"));
    let config = home.path().join(".cursor/mcp.json");
    let mut all: Value = serde_json::from_slice(&fs::read(&config).expect("the file")).expect("JSON");
    all["mcpServers"]["s"]["env"] = json!({"HTTP_PROXY": address, "http_proxy": address});
    fs::write(&config, all.to_string()).expect("the file");
    for name in ["HTTP_PROXY", "http_proxy"] {
        home.set(name, &address);
    }
    let before = renewals(&servers);
    let mut client = Client::open(&home, "s");
    assert!(client.ask("tools/list", json!({}))["tools"].is_array());
    client.end();
    assert_eq!(renewals(&servers), before + 1);
    assert_eq!(proxy.accept().expect_err("nobody came").kind(), ErrorKind::WouldBlock);
    home.firedoor(&["log"]).expect_said("the entry sets them itself: HTTP_PROXY, http_proxy");
}

#[test]
fn an_address_can_be_pasted_where_there_is_no_browser() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    let mut login = Login::start(&home, &["--paste"]);
    let back = login.consent();
    let foreign = back.replace("code=", "code=x&state=guessed&code=");
    for line in ["", "https://evil.example/?code=a", &foreign, back.split('?').next().expect("an address")] {
        writeln!(login.stdin, "{line}").expect("it reads");
    }
    writeln!(login.stdin, "  {back}").expect("it reads");
    let (code, said) = login.end();
    assert!(code == 0 && said.contains("Logged in"), "{said}");
    assert_eq!(servers.seen("token").len(), 1);
    protect(&home);
    Client::open(&home, "s").end();
}

#[test]
fn a_browser_is_opened_only_when_that_is_said() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    let opened = home.path().join("opened");
    let browser = home.program("xdg-open");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display())).expect("a program");
    home.set_mode(&browser, 0o755);
    home.set("DISPLAY", ":99");
    // Nobody can be asked: it is not opened.
    log_in(&home, &[]);
    assert!(!opened.exists());
    let login = Login::start(&home, &["--yes"]);
    let shown = login.address.clone();
    let address =
        firedoor_tests::until("it is opened", || fs::read_to_string(&opened).ok().filter(|text| text.ends_with('\n')));
    assert_eq!(address.trim(), shown);
    assert!(get(&login.consent()).1.contains("is logged in"));
    assert_eq!(login.end().0, 0);
    assert_eq!(servers.seen("token").len(), 2);
}

#[test]
fn a_code_can_be_entered_elsewhere_where_the_issuer_offers_that() {
    let home = Home::new();
    let servers = Servers::start(&home, "device");
    let _keychain = Keychain::start(&home);
    let mut login = Login::start(&home, &["--device"]);
    assert_eq!(login.address, format!("{}/enter", servers.issuer));
    assert_eq!(login.line(), "Enter this code there: WDJB-MJHT");
    firedoor_tests::until("it asks whether somebody has agreed", || (servers.seen("token").len() > 2).then_some(()));
    get(&format!("{}/agree", servers.issuer));
    let (code, said) = login.end();
    assert!(code == 0 && said.contains("Logged in"), "{said}");
    let asked = &servers.seen("device")[0];
    assert_eq!((&asked["resource"], &asked["scope"]), (&json!(servers.url), &json!("tools offline_access")));
    let registered = &servers.seen("register")[0];
    assert_eq!(
        (&registered["redirect_uris"], &registered["grant_types"][0]),
        (&json!([]), &json!("urn:ietf:params:oauth:grant-type:device_code"))
    );
    protect(&home);
    Client::open(&home, "s").end();
    home.firedoor(&["logout", ENTRY]).expect_code(0);

    let login = Login::start(&home, &["--device"]);
    get(&format!("{}/refuse", servers.issuer));
    assert_eq!(login.end().0, 1);
    home.firedoor(&["logout", ENTRY]).expect_code(1).expect_said("not logged in");
    let _servers = Servers::start(&home, "plain");
    home.firedoor(&["login", ENTRY, "--device"]).expect_code(1).expect_said("offers no login with a code");
}

#[test]
fn the_secret_of_a_client_that_was_registered_by_hand_goes_to_the_issuer_that_was_named_alone() {
    const SECRET: &str = "p ä%ss+word";
    let home = Home::new();
    let servers = Servers::start(&home, "by-hand");
    let _keychain = Keychain::start(&home);
    home.firedoor(&["login", ENTRY]).expect_code(1).expect_said("--client-id");
    home.firedoor(&["login", ENTRY, "--client-secret"]).expect_code(2);
    let named = ["--client-id", "made:by hand", "--client-secret"];
    // Nobody is there to see whom the server names, and nobody has said that it is this one.
    home.firedoor_typing(&[&["login", ENTRY], &named[..]].concat(), SECRET).expect_code(1).expect_said("--issuer");
    let foreign = [&["login", ENTRY], &named[..], &["--issuer", "https://login.example"]].concat();
    home.firedoor_typing(&foreign, SECRET).expect_code(1).expect_said(&servers.issuer);
    let named = [&named[..], &["--issuer", &servers.issuer]].concat();
    // A wrong one is no reason to log in again.
    let login = Login::typing(&home, &named, "wrong\n");
    assert!(get(&login.consent()).1.contains("are its name and its secret right?"));
    assert_eq!(login.end().0, 1);
    home.firedoor(&["logout", ENTRY]).expect_code(1).expect_said("not logged in");

    for device in [false, true] {
        let more = if device { &["--device"][..] } else { &[] };
        let mut login = Login::typing(&home, &[&named[..], more].concat(), &format!("{SECRET}\n"));
        if device {
            assert_eq!(login.line(), "Enter this code there: WDJB-MJHT");
            get(&format!("{}/agree", servers.issuer));
        } else {
            assert!(get(&login.consent()).1.contains("is logged in"));
        }
        let (code, said) = login.end();
        assert!(code == 0 && said.contains("Logged in"), "{said}");
        // Renewals show it, and so does the end.
        let before = renewals(&servers);
        if device {
            Client::open(&home, "s").end();
        } else {
            protect(&home);
        }
        assert!(renewals(&servers) > before);
        home.firedoor(&["logout", ENTRY]).expect_code(0).expect_said("the issuer was told");
    }
    let told = servers.seen("revoke");
    assert_eq!(told.len(), 2);
    assert!(servers.seen("token").iter().chain(&told).all(|asked| {
        asked["client_secret"].is_null() && asked["shown"].as_str().is_some_and(|shown| shown.starts_with("Basic "))
    }));
    assert!(!home.firedoor(&["log", "--json"]).expect_code(0).stdout.contains(SECRET));
}

#[test]
fn an_entry_that_says_who_the_user_is_needs_no_login() {
    let home = Home::new();
    let servers = Servers::start(&home, "plain");
    let _keychain = Keychain::start(&home);
    home.cursor(json!({"s": {"url": servers.url, "headers": {"authorization": "Bearer mine"}}}));
    home.firedoor(&["login", ENTRY]).expect_code(1).expect_said("an Authorization header of its own");
    home.protect();
    home.firedoor(&["login", ENTRY]).expect_code(1).expect_said("an Authorization header of its own");
}
