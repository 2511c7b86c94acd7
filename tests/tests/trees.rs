//! A protected server that may write a project: what other programs run there stays closed, and the log says so.

use std::fs;

use firedoor_tests::{Client, Home, text};
use serde_json::json;

fn write(client: &mut Client, path: &std::path::Path) -> bool {
    let said = text(&client.call("write", json!({"path": path}))).0;
    assert!(said.starts_with("got: ") || said.starts_with("denied: "), "{said}");
    said.starts_with("got: ")
}

#[test]
fn a_writable_project_keeps_what_other_programs_run() {
    let home = Home::new();
    let notes = home.write("project/deep/notes.md", "");
    let hook = home.write("project/deep/.git/hooks/pre-commit", "");
    let tasks = home.write("project/.vscode/tasks.json", "");
    let project = tasks.ancestors().nth(2).unwrap().to_owned();
    let settings = project.join(".claude/settings.json");
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let grant = |path: &std::path::Path| {
        home.firedoor(&["grants", "add", "cursor/user/r", "--rw", path.to_str().unwrap()]).expect_code(0);
    };
    grant(&project);
    let mut client = Client::open(&home, "r");
    assert!(write(&mut client, &notes) && write(&mut client, &project.join("new.txt")));
    for path in [&hook, &tasks, &settings, &project.join(".envrc")] {
        assert!(!write(&mut client, path), "{}", path.display());
    }
    client.end();
    assert_eq!(fs::read_to_string(&hook).unwrap(), "");
    let log = home.firedoor(&["log"]).expect_code(0);
    log.expect_said("sandbox/file").expect_said(hook.to_str().unwrap()).expect_said("--rw");

    // Named by itself, a place is open; one that is not there yet, too.
    grant(tasks.parent().unwrap());
    grant(&project.join(".envrc"));
    let mut client = Client::open(&home, "r");
    assert!(write(&mut client, &tasks) && write(&mut client, &project.join(".envrc")));
    assert!(!write(&mut client, &hook));
    client.end();
}

#[test]
fn the_sandbox_by_itself_protects_the_same_names() {
    let home = Home::new();
    let config = home.write("project/.git/config", "made up");
    let project = config.ancestors().nth(2).unwrap().to_str().unwrap().to_owned();
    let shell = |words: &str| home.firedoor(&["sandbox", "run", "--rw", &project, "--", "sh", "-c", words]);
    shell(&format!("echo x > {project}/notes && cat {project}/notes")).expect_code(0).expect_said("x");
    let refused = shell(&format!("echo x > {project}/.git/config"));
    assert_ne!(refused.code, 0);
    assert_eq!(fs::read_to_string(&config).unwrap(), "made up");
}
