//! What a server is given beyond its profile, and how slips of the pen are met.

use firedoor_tests::{Client, Home};
use serde_json::{Value, json};

fn read(client: &mut Client, path: &std::path::Path) -> String {
    let answer = client.call("read", json!({"path": path}));
    answer["content"][0]["text"].as_str().map(ToOwned::to_owned).unwrap_or_else(|| Value::to_string(&answer))
}

#[test]
fn a_grant_to_an_entry_that_is_not_there_is_refused_with_those_there_are() {
    let home = Home::new();
    let notes = home.write("notes.md", "granted");
    let notes = notes.to_str().unwrap();
    home.cursor(json!({"files": home.entry("reaching_server.py", &[])}));
    for (entry, said) in [
        ("cursor/user/flies", "cursor/user/files"),
        ("cursor/project:%2Fx/files", "cursor/user/files"),
        ("curser/user/files", "cursor"),
    ] {
        home.firedoor(&["grants", "add", entry, "--ro", notes]).expect_code(2).expect_said(said);
    }
    assert_eq!(home.json(&["grants", "list"])["grants"], json!([]));
    home.firedoor(&["grants", "add", "cursor/user/files", "--ro", notes]).expect_code(0);
}

#[test]
fn a_grant_of_a_path_that_is_not_there_yet_says_so_and_holds_once_it_is() {
    let home = Home::new();
    let notes = home.directory("later").join("notes.md");
    home.cursor(json!({"r": home.entry("reaching_server.py", &[])}));
    home.protect();
    let add = ["grants", "add", "cursor/user/r", "--ro", notes.to_str().unwrap()];
    home.firedoor(&add).expect_code(0).expect_said("does not exist");
    let mut client = Client::open(&home, "r");
    home.write("later/notes.md", "granted");
    assert!(read(&mut client, &notes).starts_with("denied: "));
    client.end();
    let mut client = Client::open(&home, "r");
    assert!(read(&mut client, &notes).starts_with("got: "));
}
