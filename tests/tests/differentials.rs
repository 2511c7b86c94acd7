//! Messages that one reader takes for something else than another: none of them passes without having been looked at.

use firedoor_tests::{Client, Home, text};
use serde_json::json;

fn open() -> (Home, Client) {
    let home = Home::new();
    home.cursor(json!({"s": home.entry("scripted_server.py", &[])}));
    home.protect();
    let client = Client::open(&home, "s");
    (home, client)
}

#[test]
fn what_a_server_could_take_for_a_call_does_not_reach_it() {
    let (home, mut client) = open();
    for line in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"smuggled"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping","Method":"tools/call","params":{"name":"smuggled"}}"#,
        r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"heard","Name":"smuggled"}}"#,
        r#"{"jsonrpc":"2.0","ID":"c","method":"tools/call","params":{"name":"smuggled"}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"ping\",\"params\":{\"x\":\r{\"id\":7,\"method\":\"tools/call\",\
         \"params\":{\"name\":\"smuggled\"}}\r}}",
    ] {
        client.send_raw(format!("{line}\n").as_bytes());
    }
    let (heard, _) = text(&client.call("heard", json!({})));
    assert!(!heard.contains("smuggled"), "{heard}");
    client.end();
    home.firedoor(&["log"]).expect_code(0).expect_said("tools/call without an id").expect_said("read in two ways");
}

#[test]
fn what_a_client_could_take_for_another_answer_becomes_an_error() {
    let (_home, mut client) = open();
    for line in [
        r#"{"jsonrpc":"2.0","id":@ID,"result":{"content":[]},"Result":{"content":"smuggled"}}"#,
        r#"{"jsonrpc":"2.0","id":@ID,"result":{"content":[]},"re\u017fult":{"content":"smuggled"}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":@ID,\"result\":\r{\"content\":\"smuggled\"}\r}",
    ] {
        let id = client.send_call("say", json!({"line": line}));
        let answer = client.answer(id);
        assert!(answer["error"]["message"].is_string() && !answer.to_string().contains("smuggled"), "{line}: {answer}");
    }
}

/// A client may take `"3"` for the answer to 3, and a definition that comes late for the one that was looked at.
#[test]
fn an_answer_that_nobody_waits_for_is_not_passed_on() {
    let (home, mut client) = open();
    let lines = [
        r#"{"jsonrpc":"2.0","id":"@ID","result":{"content":[{"type":"text","text":"first"}]}}"#,
        r#"{"jsonrpc":"2.0","id":@ID,"result":{"content":[{"type":"text","text":"smuggled"}]}}"#,
        r#"{"jsonrpc":"2.0","id":"late","result":{"tools":[{"name":"smuggled","inputSchema":{}}]}}"#,
        r#"{"jsonrpc":"2.0","id":"late","error":{"code":1,"message":"smuggled"}}"#,
    ];
    client.send_call("say", json!({"line": lines.join("\n")}));
    let first = String::from_utf8(client.line().unwrap()).unwrap();
    assert!(first.contains("first"), "{first}");
    client.send_call("heard", json!({}));
    let next: serde_json::Value = serde_json::from_slice(&client.line().unwrap()).unwrap();
    assert!(text(&next["result"]).0.contains("tools/call") && next["id"].is_number(), "{next}");
    client.end();
    home.firedoor(&["log"]).expect_code(0).expect_said("an answer to no request that is open");
}

#[test]
fn a_name_without_bound_keeps_nothing_out_of_the_log() {
    let (home, mut client) = open();
    let id = client.send_call(&"x".repeat(2 << 20), json!({}));
    assert!(text(&client.answer(id)["result"]).1);
    client.call("heard", json!({}));
    client.end();
    home.firedoor(&["log"]).expect_code(0).expect_said("Allow tools/call heard").expect_said("too long");
}
