//! Calls that their server answers with a question, and that the client makes again with the answer (MCP 2026-07-28).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use firedoor_tests::{Agent, Home, until};
use serde_json::{Value, json};

/// Made up, in the form of the real thing.
const KEY: &str = "aws_secret_access_key = q7Zc0mW1nT4kLr8vXyB2dHs6JfPa9uEgRiOo3KNt";
const OTHER: &str = "aws_secret_access_key = Xw5Rk2Pz8LmQe1Vb7Nc4Ty9Hd3Jf6Gs0AuEoIiTn";

/// Answers the one question that is open.
fn allow(home: &Home) -> Value {
    let question = until("a question", || home.pending().into_iter().next());
    home.firedoor(&["answer", question["id"].as_str().unwrap(), "allow"]).expect_code(0);
    question
}

#[test]
fn a_call_that_was_allowed_is_not_asked_about_again_when_its_server_asked_first() {
    let home = Home::new();
    let folder = home.script("files");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("credentials"), format!("[default]\n{KEY}\n[other]\n{OTHER}\n")).unwrap();
    home.cursor(json!({
        "files": home.entry("files_server.py", &[folder.to_str().unwrap()]),
        "scripted": home.entry("scripted_server.py", &[]),
    }));
    home.protect();
    let mut agent = Agent::open(&home);
    agent.call("files", "read_file", json!({"path": "credentials"}));

    let answers = |said: &str| json!({"q": {"action": "accept", "content": {"which": said}}});
    let same = |arguments: &Value| arguments.clone();
    let longer = |arguments: &Value| json!({"line": arguments["line"], "note": format!("{KEY} ")});
    // What the client answers, which state it brings back with which arguments, and where something new is found.
    type Case<'a> = (&'a str, fn(&str) -> Option<String>, &'a dyn Fn(&Value) -> Value, Option<&'a str>);
    let verbatim: fn(&str) -> Option<String> = |state| Some(state.to_owned());
    let cases: [Case<'_>; 6] = [
        ("the first", verbatim, &same, None),
        ("the first", |state| Some(format!("{state}.")), &same, Some("/arguments/note")),
        ("the first", |_| None, &same, Some("/arguments/note")),
        ("the first", verbatim, &longer, Some("/arguments/note")),
        (OTHER, verbatim, &same, Some("/inputResponses/q/content/which")),
        (KEY, verbatim, &same, Some("/inputResponses/q/content/which")),
    ];
    for (number, (said, state_again, arguments_again, place)) in cases.into_iter().enumerate() {
        let state = format!("\"é\" {number}");
        let question = json!({"method": "elicitation/create", "params": {"message": "Which one?"}});
        let result = json!({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": state});
        let line = format!(r#"{{"jsonrpc":"2.0","id":@ID,"result":{result}}}"#);
        let arguments = json!({"line": line, "note": KEY});
        let first = agent.send("scripted", "say", arguments.clone());
        allow(&home);
        assert!(!agent.answer(first).1);
        let mut beside = json!({"inputResponses": answers(said)});
        if let Some(state) = state_again(&state) {
            beside["requestState"] = state.into();
        }
        // What passes without a question does so once.
        let places = if place.is_some() { vec![place] } else { vec![None, Some("/arguments/note")] };
        for place in places {
            let again = agent.send_beside("scripted", "say", arguments_again(&arguments), beside.clone());
            if let Some(place) = place {
                let question = allow(&home).to_string();
                assert!(question.contains(place), "{beside}: {question}");
            }
            assert!(!agent.answer(again).1, "{beside}");
            assert_eq!(home.pending(), Vec::<Value>::new());
        }
    }
    let (heard, _) = agent.call("scripted", "heard", json!({}));
    assert_eq!(heard.matches("inputResponses").count(), 7, "an allowed call goes on as it was: {heard}");
}
