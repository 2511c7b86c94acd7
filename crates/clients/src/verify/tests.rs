use super::*;
use std::time::Instant;

/// A server in the shell: answers by method, in order, with the given tools.
fn server(script: &str) -> Invocation {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    Invocation {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: BTreeMap::from([("PATH".into(), path)]),
        cwd: "/".into(),
    }
}

const HELLO: &str = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'; read l"#;

fn ask(script: &str) -> Result<ToolsSeen, VerifyError> {
    list_tools(&server(script), Duration::from_secs(20), &Interrupt::default())
}

#[test]
fn pages_noise_and_requests_of_the_server() {
    let seen = ask(&format!(
        r#"echo 'starting up'; {HELLO}; read l
        echo '{{"jsonrpc":"2.0","id":9,"method":"ping"}}'; read pong
        case $pong in *'"id":9'*) ;; *) exit 1;; esac
        echo '{{"jsonrpc":"2.0","id":8,"method":"roots/list"}}'; read refused
        case $refused in *-32601*) ;; *) exit 1;; esac
        echo '{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"a","x":1}}],"nextCursor":"n"}}}}'; read l
        case $l in *'"cursor":"n"'*) echo '{{"jsonrpc":"2.0","id":3,"result":{{"tools":[{{"name":"b"}}]}}}}';; esac"#
    ))
    .unwrap();
    assert_eq!(seen.tools.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(seen.server.raw(), "s 1");
}

#[test]
fn failures() {
    let error = |script: &str| ask(script).unwrap_err().to_string();
    assert_eq!(error("exit 3"), "the server ended before it answered initialize");
    assert_eq!(
        error(r#"read l; echo '{"id":1,"error":{"code":1,"message":"no key"}}'"#),
        "the server refused initialize: “no key”"
    );
    assert_eq!(
        error(&format!(r#"{HELLO}; read l; echo '{{"id":2,"result":{{}}}}'"#)),
        "the server's answer to tools/list is not of the protocol: no array of tools"
    );
    assert_eq!(
        error(&format!(
            r#"{HELLO}; n=2; while read l; do echo '{{"id":'$n',"result":{{"tools":[],"nextCursor":"x"}}}}'; n=$((n+1)); done"#
        )),
        "the server sent too much: more than 64 pages of tools"
    );
    assert_eq!(
        error("head -c 9000000 /dev/zero | tr '\\0' x; read l; read l"),
        "the server sent too much: more than 8 MiB in one line"
    );
    let missing = Invocation { command: "/nonexistent/server".into(), ..server("") };
    assert!(matches!(list_tools(&missing, Duration::from_secs(5), &Interrupt::default()), Err(VerifyError::Start(_))));
}

/// A server that says nothing and has started another, and the place where it says which.
fn silent(scratch: &Path) -> (Invocation, PathBuf) {
    let pid = scratch.join("pid");
    (server(&format!("sleep 300 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pid.display())), pid)
}

fn ends(pid: &Path) {
    let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    // Killed: the kernel may need a moment to carry it out, and whoever adopted it one to reap it.
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ended = |stat: &str| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
        matches!(state, None | Some('Z' | 'X'))
    };
    let end = Instant::now() + Duration::from_secs(10);
    while !ended(&stat()) && Instant::now() < end {
        std::thread::yield_now();
    }
    assert!(ended(&stat()), "{}", stat());
}

#[test]
fn a_silent_server_is_ended_with_what_it_started() {
    let scratch = tempfile::tempdir().unwrap();
    let (server, pid) = silent(scratch.path());
    let started = Instant::now();
    let error = list_tools(&server, Duration::from_secs(1), &Interrupt::default()).unwrap_err();
    assert!(matches!(error, VerifyError::Timeout { waiting_for: "initialize", .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));
    ends(&pid);
}

#[test]
fn an_interrupted_check_ends_the_server_with_what_it_started() {
    let scratch = tempfile::tempdir().unwrap();
    let (server, pid) = silent(scratch.path());
    let interrupt = Interrupt::default();
    let error = std::thread::scope(|scope| {
        let check = scope.spawn(|| list_tools(&server, Duration::from_secs(300), &interrupt));
        while !pid.exists() {
            std::thread::yield_now();
        }
        interrupt.raise();
        check.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, VerifyError::Interrupted), "{error}");
    ends(&pid);
    // From then on nothing is started.
    std::fs::remove_file(&pid).unwrap();
    assert!(matches!(list_tools(&server, Duration::from_secs(300), &interrupt), Err(VerifyError::Interrupted)));
    assert!(!pid.exists());
}

#[test]
fn differences() {
    let seen = |tools: &[(&str, &str)]| ToolsSeen {
        server: "s 1".into(),
        protocol: "p".into(),
        about: Digest::of(b""),
        tools: tools.iter().map(|(n, d)| ((*n).to_owned(), Digest::of(d.as_bytes()))).collect(),
    };
    let direct = seen(&[("a", "1"), ("b", "1"), ("c", "1")]);
    assert_eq!(compare(&direct, &direct), []);
    assert_eq!(
        compare(&direct, &ToolsSeen { server: "t".into(), ..seen(&[("a", "1"), ("c", "2"), ("d", "1")]) }),
        [
            Difference::Server,
            Difference::Missing { tool: "b".into() },
            Difference::Changed { tool: "c".into() },
            Difference::Added { tool: "d".into() },
        ]
    );
}

#[test]
fn the_order_of_members_and_lists_does_not_count() {
    let hash = |text: &str| canonical(&serde_json::from_str(text).unwrap());
    assert_eq!(
        hash(r#"{"a":"Allowed: ls, cat","enum":["x","y"]}"#),
        hash(r#"{"a":"Allowed: cat, ls","enum":["y","x"]}"#)
    );
    assert_ne!(hash(r#"{"a":"Allowed: ls, cat"}"#), hash(r#"{"a":"Allowed: ls, rm"}"#));
    assert_ne!(hash(r#"{"default":["x","y"]}"#), hash(r#"{"default":["y","x"]}"#));
    assert_ne!(hash("[1,2]"), hash("[2,1]"));
    assert_eq!(hash(r#"{"a":1,"b":{"c":2,"d":3}}"#), hash(r#"{"b":{"d":3,"c":2},"a":1}"#));
    assert_ne!(hash(r#"{"a":[1,2]}"#), hash(r#"{"a":[2,1]}"#));
    assert_ne!(hash(r#"{"a":"1"}"#), hash(r#"{"a":1}"#));
}
