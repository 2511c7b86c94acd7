//! Servers that are reached over HTTPS: whose certificates are trusted, and the way through a proxy.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead as _, BufReader, PipeWriter},
    path::PathBuf,
    process::Child,
};

use firedoor_tests::{Client, Home, Proxy, SERVICE, certify, text};
use serde_json::{Value, json};

/// A server with a certificate of an authority of its own.
struct Https {
    process: Child,
    _stdin: PipeWriter,
    port: u16,
    authority: PathBuf,
}

impl Https {
    fn start(home: &Home) -> Self {
        let dir = certify(home, "tls");
        let mut command = home.command(home.python());
        command.arg(home.script("http_server.py")).args(["json", "tls"]).current_dir(&dir);
        let (process, stdin, stdout) = home.spawn(&mut command);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        Self { process, _stdin: stdin, port: line.trim().parse().unwrap(), authority: dir.join("ca.pem") }
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn client(home: &Home, url: &str) -> Client {
    let shim = home.program("firedoor-shim").into_os_string().into_string().unwrap();
    Client::start(home, &[&shim, "--entry", "cursor/user/remote", "--url", url].map(str::to_owned))
}

/// The server answers.
#[track_caller]
fn works(home: &Home, url: &str, how: &str) {
    let mut client = client(home, url);
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let answer = client.answer(id);
    assert_eq!(answer["result"]["serverInfo"]["name"], "http-json", "{how}: {answer}");
    assert_eq!(text(&client.call("echo", json!({"a": 1}))).0, r#"{"a": 1}"#, "{how}");
    assert_eq!(client.end(), 0, "{how}");
}

/// Why it does not.
#[track_caller]
fn refused(home: &Home, url: &str) -> String {
    let mut client = client(home, url);
    let id = client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let answer: Value = client.answer(id);
    client.end();
    let why = answer["error"]["message"].as_str();
    assert!(why.is_some(), "{answer}");
    why.unwrap().to_owned()
}

#[test]
fn an_authority_of_ones_own_counts_where_the_client_names_it() {
    let home = Home::new();
    let server = Https::start(&home);
    let url = format!("https://127.0.0.1:{}/mcp", server.port);
    let why = refused(&home, &url);
    assert!(why.contains("UnknownIssuer") && why.contains("NODE_EXTRA_CA_CERTS"), "{why}");
    assert!(why.contains(&format!("https://127.0.0.1:{}", server.port)), "{why}");

    // As OpenSSL's tools leave such a directory: the certificate, and a link that is named by its hash.
    let certificates = fs::read(&server.authority).unwrap();
    home.write("authorities/corporate.pem", certificates);
    let several = home.directory("authorities");
    std::os::unix::fs::symlink("corporate.pem", several.join("0a0a0a0a.0")).unwrap();
    let elsewhere = home.directory("elsewhere");
    let both = std::env::join_paths([&elsewhere, &several]).unwrap().into_string().unwrap();
    let file = server.authority.to_str().unwrap();
    for (variable, value) in [
        ("SSL_CERT_FILE", file),
        ("NODE_EXTRA_CA_CERTS", file),
        ("SSL_CERT_DIR", several.to_str().unwrap()),
        ("SSL_CERT_DIR", &both),
    ] {
        home.set(variable, value);
        works(&home, &url, &format!("{variable}={value}"));
        home.set(variable, "");
    }
    assert!(refused(&home, &url).contains("UnknownIssuer"), "each for itself");

    // What the entry says itself does not count: whoever wrote it would see what is sent.
    let config = home.cursor(json!({"remote": {"url": url}}));
    home.protect();
    let mut all: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    all["mcpServers"]["remote"]["env"] = json!({"SSL_CERT_DIR": several});
    fs::write(&config, all.to_string()).unwrap();
    home.set("SSL_CERT_DIR", several.to_str().unwrap());
    assert!(refused(&home, &url).contains("UnknownIssuer"));
    home.firedoor(&["log"]).expect_code(0).expect_said("the entry sets them itself: SSL_CERT_DIR");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let home = Home::new();
    let server = Https::start(&home);
    home.set("SSL_CERT_FILE", server.authority.to_str().unwrap());
    let why = refused(&home, &format!("https://localhost:{}/mcp", server.port));
    assert!(why.contains("not valid for name") && !why.contains("NODE_EXTRA_CA_CERTS"), "{why}");
}

#[test]
fn a_proxy_leads_there_and_is_not_trusted_for_it() {
    let home = Home::new();
    let server = Https::start(&home);
    let proxy = Proxy::start(server.port);
    let url = format!("https://{SERVICE}/mcp");
    home.set("HTTPS_PROXY", &format!("http://127.0.0.1:{}", proxy.port));
    assert!(refused(&home, &url).contains("UnknownIssuer"));
    home.set("SSL_CERT_FILE", server.authority.to_str().unwrap());
    works(&home, &url, "through a proxy");
    let asked = proxy.asked();
    assert!(asked.len() >= 2 && asked.iter().all(|to| *to == format!("CONNECT {SERVICE}:443")), "{asked:?}");
    // Not for what is beside it.
    home.set("NO_PROXY", "127.0.0.1");
    works(&home, &format!("https://127.0.0.1:{}/mcp", server.port), "beside a proxy");
    assert_eq!(proxy.asked(), Vec::<String>::new());
}
