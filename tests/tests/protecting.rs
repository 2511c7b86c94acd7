//! What `firedoor protect` does while it sees whether servers answer as before.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::Path, process::Stdio};

use firedoor_tests::{Home, Output, alive, kill, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// A server that says nothing, and writes down which process it is.
fn silent(home: &Home, pid: &Path) -> Value {
    let pid = pid.to_str().unwrap();
    let script = format!(
        "import os, time; open({pid:?} + '.new', 'w').write(str(os.getpid())); os.rename({pid:?} + '.new', {pid:?}); time.sleep(300)"
    );
    json!({"command": home.python(), "args": ["-c", script]})
}

#[test]
fn what_an_interrupted_check_has_not_seen_to_answer_is_given_back() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let home = Home::new();
        let pids = ["one", "two"].map(|name| home.path().join(name));
        let [one, two] = pids.each_ref().map(|pid| silent(&home, pid));
        // It comes last, and would be given back.
        let config = home.cursor(json!({"one": one, "two": two, "zoo": home.entry("echo_server.py", &[])}));
        let before = fs::read(&config).unwrap();
        let mut command = home.command(home.program("firedoor"));
        command.args(["protect", "--all", "--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let protect = command.spawn().unwrap();
        // Both at once: the first never ends.
        let servers = pids.each_ref().map(|pid| until("the server", || fs::read_to_string(pid).ok()?.parse().ok()));
        assert!(fs::read_to_string(&config).unwrap().contains("firedoor-shim"));
        kill(i32::try_from(protect.id()).unwrap(), signal);
        let ended = protect.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = ended.status.code().unwrap_or(-1);
        let output = Output { code, stdout: text(ended.stdout), stderr: text(ended.stderr) };
        let output = output.expect_code(1).expect_said("cursor/user/one: checking").expect_said("Interrupted");
        for name in ["one", "two", "zoo"] {
            let said = format!("cursor/user/{name}: given back: the check was interrupted");
            assert!(output.stdout.contains(&said), "{said}: {output:#?}");
        }
        assert_eq!(fs::read(&config).unwrap(), before, "{signal}");
        assert!(servers.iter().all(|pid| until("its end", || (!alive(*pid)).then_some(true))));
    }
}

#[test]
fn an_entry_with_another_place_for_the_engine_is_left_as_it_is() {
    let home = Home::new();
    let elsewhere = home.directory("elsewhere");
    home.set_mode(&elsewhere, 0o700);
    let mut entry = home.entry("echo_server.py", &[]);
    entry["env"] = json!({"XDG_RUNTIME_DIR": elsewhere});
    let config = home.cursor(json!({"away": entry}));
    let before = fs::read(&config).unwrap();
    let said = home.firedoor(&["protect", "--all", "--yes"]);
    said.expect_said("with its XDG_RUNTIME_DIR Firedoor would look for engine, rules and log elsewhere");
    assert_eq!(fs::read(&config).unwrap(), before);
    assert!(home.engine().is_none() && fs::read_dir(&elsewhere).unwrap().next().is_none());
}
