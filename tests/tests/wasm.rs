//! WebAssembly tools: as servers behind the real shim, and scanned; and scans of other programs.
//!
//! The tools are built from `tests/wasm` with clang and wasi-libc, once for all tests here.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../../crates/sandbox/tests/common/tls.rs"]
mod tls;

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use firedoor_tests::{Client, Home, text, until};
use serde_json::{Value, json};
use tls::Tls;
use wit_component::{ComponentEncoder, StringEncoding};

const LONG: &str = "SEKRET_0123456789abcdef0123456789abcdef";
/// What the paper's program gives every tool.
const PAPER: [&str; 3] = ["API_KEY=shh-secret", "USER_INPUT=hello", "FILE_TO_READ=secret.txt"];

fn built() -> &'static Path {
    // In the build's own directory: what a test keeps to its end is removed by nobody.
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasm/build.sh");
        let built = Command::new(script).arg(&dir).status().unwrap();
        assert!(built.success(), "the tools could not be built: run scripts/setup");
        fs::write(dir.join("fetch.wasm"), component(&dir.join("fetch.core.wasm"))).unwrap();
        dir
    })
}

/// A component of a core module and of the world in the `.wit` file beside its source.
fn component(core: &Path) -> Vec<u8> {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasm/components/fetch.wit");
    let mut types = wit_parser::Resolve::default();
    let package = types.push_source("fetch.wit", &fs::read_to_string(wit).unwrap()).unwrap();
    let world = types.select_world(&[package], Some("fetch")).unwrap();
    let mut module = fs::read(core).unwrap();
    wit_component::embed_component_metadata(&mut module, &types, world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// A tool in a home.
fn module(home: &Home, name: &str) -> String {
    assert!(home.program("firedoor-wasm").exists(), "run cargo build -p firedoor-wasm first");
    let path = home.write(&format!("tools/{name}.wasm"), fs::read(built().join(format!("{name}.wasm"))).unwrap());
    path.to_str().unwrap().to_owned()
}

/// Scans a tool, and gives exit code and report.
fn scan(home: &Home, name: &str, options: &[&str], env: &[&str]) -> (i32, Value) {
    let module = module(home, name);
    let mut words = vec!["wasm", "scan", &module, "--json"];
    words.extend(options);
    env.iter().for_each(|e| words.extend(["--env", e]));
    let output = home.firedoor(&words);
    (output.code, output.json())
}

fn numbers(report: &Value) -> [i64; 4] {
    let number = |name: &str| report["summary"][name].as_i64().unwrap();
    [report["exec"]["exit_code"].as_i64().unwrap(), number("sources"), number("sinks"), number("flows")]
}

fn data(home: &Home) -> String {
    home.write("data/secret.txt", "FILESECRET_9f2c1a7b\n").parent().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_papers_tables_in_its_own_matcher() {
    let home = Home::new();
    // Table I: exit, sources, sinks, flows, and what shows it.
    for (tool, want, evidence) in [
        ("benign", [0, 3, 2, 1], r#""snippet":"hello""#),
        ("evil_prompt", [0, 3, 3, 1], r#""path":"$.messages""#),
        ("fs_violation", [0, 3, 0, 0], "failed to find a pre-opened file descriptor"),
    ] {
        let (code, report) = scan(&home, tool, &["--paper"], &PAPER);
        assert_eq!((code, numbers(&report)), (1, want), "{tool}: {report:#}");
        assert!(report.to_string().contains(evidence), "{tool}: {report:#}");
    }
    // Table II: nothing of it stands in the file, and running it shows it.
    let has = |tool: &str, text: &[u8]| {
        fs::read(built().join(format!("{tool}.wasm"))).unwrap().windows(text.len()).any(|w| w == text)
    };
    assert!(!has("hidden_path", b"/etc/passwd") && !has("file_exfil", b"FILESECRET_9f2c1a7b"));
    for matcher in [&["--paper"][..], &[]] {
        let (_, report) = scan(&home, "hidden_path", matcher, &[]);
        assert_eq!(report["violations"][0]["target"], "/etc/passwd", "{report:#}");
        let folder = data(&home);
        let (_, report) = scan(&home, "file_exfil", &[matcher, &["--dir", &folder]].concat(), &[]);
        assert_eq!(report["summary"]["flows"], 1, "{report:#}");
        assert_eq!(report["flows"][0]["snippet"], "FILESECRET_9f2c1a7b");
        assert!(report["sources"][0]["opened"] != json!(false), "{report:#}");
    }
}

#[test]
fn the_papers_modes_and_more_of_them() {
    let home = Home::new();
    let secret = format!("DEMO_SECRET={LONG}");
    let check = |tool: &str, env: &[&str], paper: bool, own: bool| {
        for (matcher, want) in [(&["--paper"][..], paper), (&[], own)] {
            let (_, report) = scan(&home, tool, matcher, env);
            assert_eq!(report["summary"]["has_external_to_prompt_flow"], want, "{matcher:?} {env:?}: {report:#}");
        }
    };
    // Table III.
    for (mode, paper) in
        [("plain", true), ("split", true), ("base64", false), ("truncate", false), ("meta_path", false)]
    {
        check("leak", &[&secret, &format!("MODE={mode}")], paper, true);
    }
    check("noise", &["DEMO_SECRET=abcd"], true, false);
    check("noise", &[&secret], false, false);
    check("noise", &[], false, false);
    // Beyond it.
    // A short value counts where it is all that a text says.
    check("evil_prompt", &PAPER, true, true);
    for mode in ["hex", "base32", "rot13", "reverse", "chunked", "xor", "name", "twice", "drip"] {
        check("leak", &[&secret, &format!("MODE={mode}")], false, true);
    }
}

#[test]
fn hostile_tools_are_contained() {
    let home = Home::new();
    let folder = home.write("data/file", "seen").parent().unwrap().to_path_buf();
    home.write("outside", "not for you");
    for (link, target) in [("absolute", "/etc/passwd"), ("relative", "../outside"), ("tree", "/etc")] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        home.own(&folder.join(link));
    }
    let options = ["--dir", folder.to_str().unwrap(), "--memory", "67108864"];
    let run = |mode: &str, more: &[&str]| {
        let (_, report) = scan(&home, "hostile", &[&options, more].concat(), &[&format!("MODE={mode}")]);
        let of = |name: &str| report["exec"][name].as_str().unwrap().to_owned();
        (report["exec"]["exit_code"].as_i64().unwrap(), of("stdout"), of("stderr"), report)
    };
    let check = |mode: &str, more: &[&str], code: i64, said: &str| {
        let (exit, stdout, stderr, report) = run(mode, more);
        assert_eq!(exit, code, "{mode}: {report:#}");
        assert!(stdout.contains(said) || stderr.contains(said), "{mode}: {said:?} in {report:#}");
        assert_eq!(report["violations"].to_string().contains(said), exit != 0, "{mode}: {report:#}");
    };
    check("loop", &["--timeout", "2"], 124, "ran longer than 2000 ms");
    check("sleep", &["--timeout", "2"], 124, "ran longer than 2000 ms");
    check("loop", &["--fuel", "1000000", "--timeout", "30"], 134, "fuel");
    check("recurse", &["--timeout", "30"], 134, "stack is full");
    check("allocate", &["--timeout", "30"], 0, "allocated 6");
    check("files", &["--timeout", "30"], 0, "opened 10");
    check("make", &["--timeout", "30"], 0, "made 0: ");
    let (exit, stdout, _, report) = run("print", &["--timeout", "60", "--output", "1000000"]);
    assert!(exit != 0 && stdout.len() <= 1_000_000, "{exit} {}", stdout.len());
    assert!(report["exec"]["duration_ms"].as_u64().unwrap() < 30_000);
    let (_, stdout, _, _) = run("paths", &["--timeout", "30"]);
    let read: Vec<&str> =
        stdout.lines().filter(|l| l.contains("READ") || l.contains("MADE") || l.contains("REMOVED")).collect();
    assert_eq!(read, ["/data/file: READ seen"], "{stdout}");
    assert!(!stdout.contains("root:") && !stdout.contains("not for you"), "{stdout}");
    let (_, stdout, _, _) = run("sockets", &["--timeout", "30"]);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|l| l.split(' ').skip(1).all(|n| n != "0")), "{stdout}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "nothing was made");
}

#[test]
fn a_tool_is_a_server_like_any_other() {
    let home = Home::new();
    let tool = module(&home, "echo_server");
    home.set("GREETING", "not-for-all");
    home.cursor(json!({
        "w": {"command": "wasmtime", "args": ["run", "--env", "GREETING", tool]},
        "bare": {"command": "wasmtime", "args": [tool]},
    }));
    home.protect();
    for (server, key) in [("w", "not-for-all"), ("bare", "none")] {
        let mut client = Client::open(&home, server);
        assert_eq!(text(&client.call("echo", json!({"text": "hello"}))).0, "hello");
        assert_eq!(text(&client.call("echo", json!({"text": "greeting"}))).0, key);
        client.end();
    }
}

#[test]
fn other_programs_are_scanned_too() {
    let home = Home::new();
    let python = home.python().to_str().unwrap().to_owned();
    let notes = home.write("notes/a.txt", "the launch is on the ninth of March, and nobody else may know of it yet\n");
    home.write("elsewhere/b.txt", "closed");
    let tool = home.write(
        "tool/tool.py",
        "import json, os, base64, sys, socket\n\
         print(json.dumps({'note': base64.b64encode(os.environ['TOKEN'].encode()).decode()}))\n\
         print(json.dumps({'text': open(sys.argv[1]).read()}))\n\
         try: open(sys.argv[2])\n\
         except OSError as e: print('no', e.errno)\n\
         try: socket.create_connection(('203.0.113.7', 80), 3)\n\
         except OSError as e: print('no', e.errno)\n",
    );
    let (folder, token) = (notes.parent().unwrap().to_str().unwrap(), format!("TOKEN={LONG}"));
    let elsewhere = home.path().join("elsewhere/b.txt");
    let words = ["scan-tool", "--json", "--ro", folder, "--env", &token, "--", &python, tool.to_str().unwrap()];
    let output = home.firedoor(&[&words[..], &[notes.to_str().unwrap(), elsewhere.to_str().unwrap()]].concat());
    let report = output.json();
    assert_eq!(output.code, 1, "{report:#}");
    let flows: Vec<(&str, Option<&str>)> = report["flows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            let source = usize::try_from(f["source"].as_u64().unwrap()).unwrap();
            (report["sources"][source]["type"].as_str().unwrap(), f["transform"].as_str())
        })
        .collect();
    assert_eq!(flows, [("env", Some("base64")), ("file", None)], "{report:#}");
    assert_eq!(report["sources"][1]["opened"], true, "{report:#}");
    let violations = report["violations"].to_string();
    assert!(violations.contains("~/elsewhere/b.txt") && violations.contains("203.0.113.7:80"), "{violations}");
    // For passing on: nothing of the values.
    for form in ["--markdown", "--sarif"] {
        let mut words = words.to_vec();
        words[1] = form;
        let output = home.firedoor(&[&words[..], &[notes.to_str().unwrap(), elsewhere.to_str().unwrap()]].concat());
        assert_eq!(output.code, 1);
        assert!(output.stdout.contains("SEKR••••") && !output.stdout.contains(&LONG[..12]), "{}", output.stdout);
    }
    // A server that is spoken to.
    let server = home.script("echo_server.py");
    let output = home.firedoor(&["scan-tool", "--json", "--mcp", "--", &python, server.to_str().unwrap()]);
    let report = output.json();
    assert!(report["exec"]["stdout"].as_str().unwrap().matches("\"result\"").count() >= 3, "{report:#}");
    assert_eq!(report["exec"].get("stopped_by"), None, "{report:#}");
}

#[test]
fn many_are_scanned_and_none_twice() {
    let home = Home::new();
    for name in ["benign", "noise", "leak"] {
        module(&home, name);
    }
    let (tools, results) = (home.path().join("tools"), home.path().join("results.jsonl"));
    let words = [
        "wasm",
        "scan",
        tools.to_str().unwrap(),
        "--results",
        results.to_str().unwrap(),
        "--env",
        "USER_INPUT=hello there, you all",
    ];
    let first = home.firedoor(&words).expect_code(1);
    assert!(first.stdout.is_empty() && first.stderr.contains("3/3"), "{first:#?}");
    let lines = fs::read_to_string(&results).unwrap();
    assert_eq!(lines.lines().count(), 3);
    // One is missing, one was cut off: those two are scanned again.
    let kept: String = lines.lines().take(1).map(|l| format!("{l}\n")).collect();
    fs::write(&results, format!("{kept}{}", &lines.lines().nth(1).unwrap()[..40])).unwrap();
    let again = home.firedoor(&words).expect_code(1);
    assert_eq!(again.stderr.lines().count(), 2, "{again:#?}");
    assert_eq!(fs::read_to_string(&results).unwrap().lines().count(), 3);
    // What is no module has a line, too, and is not called clean.
    let broken = home.write("tools/broken.wasm", "not one");
    let alone = home.firedoor(&["wasm", "scan", broken.to_str().unwrap()]).expect_code(2);
    alone.expect_said("not a WebAssembly module");
    let last = home.firedoor(&words).expect_code(2).stderr;
    assert!(last.contains("broken.wasm: failed: "), "{last}");
    let left: Vec<PathBuf> =
        fs::read_dir(home.path().join(".local/share/firedoor/servers")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A web server of this machine.
fn site() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
        }
    });
    port
}

#[test]
fn a_component_fetches_what_is_granted() {
    let home = Home::new();
    let tool = module(&home, "fetch");
    let authority = tempfile::tempdir().unwrap();
    let (plain, tls) = (site(), Tls::start(authority.path()));
    let trusted = home.write("ca.pem", fs::read(authority.path().join("ca.pem")).unwrap());
    let trusted = format!("SSL_CERT_FILE={}", trusted.display());
    let (granted, secure) = (format!("localhost:{plain}"), format!("localhost:{}", tls.port));
    let (elsewhere, numbered) = (format!("localhost:{}", site()), site());
    let by_number = format!("127.0.0.1:{numbered}");
    let urls = [
        (format!("http://{granted}/"), "200 plain"),
        (format!("https://{secure}/a?b"), "200 hello"),
        (format!("https://{granted}/"), "error TLS-protocol-error"),
        (format!("http://{elsewhere}/"), "error destination-IP-prohibited"),
        ("https://paste.example.net/".into(), "error DNS-error"),
        ("http://169.254.169.254/latest/meta-data/".into(), "error destination-IP-prohibited"),
        ("http://10.1.2.3:8080/".into(), "error destination-IP-prohibited"),
        ("http://0x7f000001:8080/".into(), "error destination-IP-prohibited"),
        (format!("tcp://127.0.0.1:{numbered}"), "connected"),
        ("tcp://192.168.7.7:22".into(), "error access-denied"),
    ];
    let scan = |options: &[&str]| {
        let urls: Vec<&str> = urls.iter().map(|(url, _)| url.as_str()).collect();
        home.firedoor(&[&["wasm", "scan", &tool, "--json", "--timeout", "60"], options, &["--"], &urls].concat())
    };
    let output = scan(&["--host", &granted, "--host", &secure, "--host", &by_number, "--env", &trusted]);
    let report = output.json();
    assert_eq!(output.code, 1, "{report:#}");
    let said: Vec<&str> = report["exec"]["stdout"].as_str().unwrap().lines().collect();
    let want: Vec<String> = urls.iter().map(|(url, answer)| format!("{url}: {answer}")).collect();
    assert_eq!(said, want, "{report:#}");
    // What it reached, and what it tried to, with names where it used them; by wasi:http and by wasi:sockets.
    let tried =
        [&elsewhere, "paste.example.net", "169.254.169.254:80", "10.1.2.3:8080", "127.0.0.1:8080", "192.168.7.7:22"];
    let reached = [&granted, &secure, &by_number].map(|host| (host.as_str(), true));
    for (host, reached) in reached.into_iter().chain(tried.map(|host| (host, false))) {
        let source = json!({"type": "host", "name": host, "value": "", "opened": reached});
        assert!(report["sources"].as_array().unwrap().contains(&source), "{source} in {report:#}");
        let violations = report["violations"].as_array().unwrap();
        assert_eq!(
            violations.iter().any(|v| v["kind"] == "network" && v["target"] == host),
            !reached,
            "{host}: {report:#}"
        );
    }
    // Without a grant nothing is reached, and an authority that this machine does not know is not trusted.
    let report = scan(&[]).json();
    let said = report["exec"]["stdout"].as_str().unwrap();
    assert!(said.lines().all(|line| line.contains(": error ")), "{report:#}");
    let report = scan(&["--host", &secure]).json();
    let line = format!("https://{secure}/a?b: error TLS-certificate-error");
    assert!(report["exec"]["stdout"].as_str().unwrap().lines().any(|l| l == line), "{report:#}");
    // The runtime by itself, outside the sandbox, has no network either unless it is told so.
    let (http, tcp) = (format!("http://{granted}/"), format!("tcp://{by_number}"));
    let alone = home.run(home.program("firedoor-wasm"), &["run", &tool, &http, &tcp]).expect_code(0);
    assert_eq!(alone.stdout, format!("{http}: error HTTP-request-denied\n{tcp}: no socket\n"));
}

#[test]
fn a_components_hosts_are_asked_about() {
    let home = Home::new();
    let tool = module(&home, "fetch");
    home.cursor(json!({"f": {"command": "wasmtime", "args": ["run", "-S", "http", tool]}}));
    home.protect();
    let granted = format!("localhost:{}", site());
    home.firedoor(&["grants", "add", "cursor/user/f", "--host", &granted]).expect_code(0);
    let mut client = Client::open(&home, "f");
    let fetch = |url: &str| json!({"url": url});
    assert_eq!(text(&client.call("fetch", fetch(&format!("http://{granted}/")))).0, "200 plain", "{}", client.log());
    // TLS begins when somebody has said so.
    for url in ["https://paste.example.net/", "http://paste.example.org/"] {
        let call = client.send_call("fetch", fetch(url));
        let question = until("a question", || home.pending().into_iter().next());
        let host = if url.starts_with("https") { "paste.example.net:443" } else { "paste.example.org:80" };
        assert_eq!((&question["entry"], &question["tool"]), (&json!("cursor/user/f"), &json!(host)), "{question:#}");
        home.firedoor(&["answer", question["id"].as_str().unwrap(), "block"]).expect_code(0);
        let answer = client.answer(call);
        assert_eq!(text(&answer["result"]).0, "error connection-terminated", "{answer}; {}", client.log());
    }
    // Nobody is asked about this network.
    assert_eq!(text(&client.call("fetch", fetch("http://192.168.0.1/"))).0, "error destination-IP-prohibited");
    let log = home.firedoor(&["log", "--json"]).expect_code(0).stdout;
    for host in ["paste.example.net:443", "paste.example.org:80", "192.168.0.1:80"] {
        assert!(log.lines().any(|row| row.contains("sandbox/") && row.contains(host)), "{host} in {log}");
    }
}
