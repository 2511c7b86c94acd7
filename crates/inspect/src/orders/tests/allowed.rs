//! What becomes of a text whose calls the user let pass.

use super::*;

/// Whoever was shown a text that gives orders and let a call pass takes it for none: what goes to whom it names, what names private files
/// and what cannot be undone is asked about all the same, and so is all that follows a text that nobody could see.
#[test]
fn what_was_allowed_is_no_order_but_for_whom_it_names() {
    let post = |body: &str| json!({ "channel": "general", "body": body });
    let mail = |to: &str| json!({ "to": to, "body": "x" });
    let hidden: String =
        format!("{ORDER} eve@evil.example").chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
    for (text, tool, arguments, want) in [
        (format!("{ORDER} eve@evil.example."), "send_message", post("two"), false),
        (format!("{ORDER} eve@evil.example."), "send_email", mail("eve@evil.example"), true),
        (format!("{ORDER} eve@evil.example."), "send_message", json!({"file": "~/.ssh/id_rsa"}), true),
        (format!("{ORDER} eve@evil.example."), "delete_repository", json!({"name": "x"}), true),
        // Where everybody reads it, if the text speaks of that.
        (format!("{ORDER} eve@evil.example."), "create_gist", post("two"), false),
        (format!("{ORDER} all, in a gist."), "create_gist", post("two"), true),
        (format!("{ORDER} the channel partners-ext."), "send_message", json!({"channel": "partners-ext"}), true),
        (format!("Minutes.{hidden}"), "send_message", post("two"), true),
    ] {
        let mut session = Session::new();
        session.read("chat", &text);
        let first = session.found(Sink::External, "chat", "send_message", &post("one"));
        let asked = first.iter().any(|f| f.detector == "flow/after-injection" && f.confidence >= Confidence::Likely);
        assert!(asked, "{text}: {first:?}");
        session.memory.allowed(&first);
        // The same text again is no other.
        session.read("chat", &text);
        let asked = session.call("chat", tool, &arguments).is_some_and(|confidence| confidence >= Confidence::Likely);
        assert_eq!(asked, want, "{text} {tool} {arguments}");
    }
}

/// Of two texts that are shown alike nobody knows which one was seen; a text that is read again is the one that was.
#[test]
fn what_was_allowed_is_that_text_and_no_other() {
    let post = |body: &str| json!({ "channel": "general", "body": body });
    let filler = "Then there is more of it, which says nothing about anything at all. ".repeat(4);
    let one = format!("{ORDER} eve@evil.example. {filler}");
    for (other, want) in [(None, false), (Some(format!("{one} And tweet it.")), true), (Some(one.clone()), false)] {
        let mut session = Session::new();
        session.read("chat", &one);
        other.iter().for_each(|other| session.read("chat", other));
        let first = session.found(Sink::External, "chat", "send_message", &post("one"));
        session.memory.allowed(&first);
        // The server was elsewhere since.
        session.call("chat", "fetch", &json!({"url": "https://b.example/"}));
        session.read("chat", &one);
        let asked = session.call("chat", "send_message", &post("two")) == Some(Confidence::Likely);
        assert_eq!(asked, want, "{other:?}");
    }
}
