//! What stands before an order, or beside it, does not keep it from being found.

use std::sync::LazyLock;

use firedoor_model::{Confidence, EntryId, Finding, Millis, Severity};

use super::ORDER;
use crate::{CallLabel, Inspector, Memory, Source, injection::layers::tests::compressed};

static INSPECTOR: LazyLock<Inspector> = LazyLock::new(Inspector::new);

/// What a result of these texts comes to, and whether the memory knows of orders afterwards.
fn of_many(texts: &[String]) -> (Vec<Finding>, bool) {
    let entry: EntryId = "c/user/web".parse().unwrap();
    let source =
        Source { entry: &entry, method: "tools/call", subject: "fetch", label: CallLabel::default(), now: Millis(1) };
    let content: Vec<_> = texts.iter().map(|text| serde_json::json!({ "type": "text", "text": text })).collect();
    let mut memory = Memory::default();
    let found = INSPECTOR.result(&mut memory, &source, &serde_json::json!({ "content": content }).to_string());
    (found, memory.orders.first().is_some())
}

/// What a client hands to the model in a row is read in a row.
#[test]
fn an_order_in_several_parts_is_one() {
    let words: Vec<&str> = ORDER.split(' ').collect();
    let page = "A page of ordinary text about nothing. ".repeat(60);
    let ends: [&[String]; 3] = [&[], std::slice::from_ref(&page), &[page.clone(), page.clone()]];
    for (many, ends) in [1, 2, 4].into_iter().flat_map(|many| ends.map(|ends| (many, ends))) {
        let parts = words.chunks(many).map(|some| some.join(" "));
        let texts: Vec<String> = ends.iter().cloned().chain(parts).chain(ends.iter().cloned()).collect();
        let (found, injected) = of_many(&texts);
        assert!(injected && found.iter().any(|f| f.detector == "result/injection"), "{many}: {found:?}");
    }
    let halves = ORDER.split_at(ORDER.len() / 2);
    assert!(of_many(&[format!("{page}{}", halves.0), format!("{}{page}", halves.1)]).1);
    assert!(!of_many(&[page.clone(), page]).1);
}

#[test]
fn trifles_before_an_order_do_not_hide_it() {
    let trifle = "eCA9IHkgKyB6OyByZXR1cm4gMQ==";
    for count in [0, 15, 16, 100] {
        let mut texts = vec![trifle.to_owned(); count];
        texts.push(ORDER.to_owned());
        let (found, injected) = of_many(&texts);
        let order = found.iter().find(|f| f.detector == "result/injection");
        let grade = order.map(|f| (f.severity, f.confidence));
        assert_eq!((grade, injected), (Some((Severity::High, Confidence::Likely)), true), "{count}: {found:?}");
    }
    // Of two detectors, for one of which there may be a rule that allows it.
    let mut texts = vec![ORDER.to_owned(); 40];
    texts.push(format!("<p>ok</p><!-- {ORDER} -->"));
    assert!(of_many(&texts).0.iter().any(|f| f.detector == "result/hidden-injection"));
}

fn base64(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}

/// Compressed texts before an order that is hidden in some way, in strings of their own and in the same one.
#[test]
fn what_has_to_be_decoded_leaves_room_for_the_rest() {
    let decoy = compressed(&"x = y + z; return 1; the table has rows and columns. ".repeat(2_000));
    let tags: String = ORDER.bytes().map(|b| char::from_u32(0xE0000 + u32::from(b)).unwrap()).collect();
    for order in [
        tags,
        format!("<!-- {ORDER} -->"),
        format!("<p style=\"display:none\">{ORDER}</p>"),
        format!("\u{202e}{}\u{202c}", ORDER.chars().rev().collect::<String>()),
        format!("\u{1b}[8m{ORDER}\u{1b}[28m"),
        format!("ok{}{ORDER}", " ".repeat(300)),
        base64(ORDER),
        base64(&base64(ORDER)),
        compressed(ORDER),
        ORDER.bytes().map(|b| format!("%{b:02x}")).collect(),
        ORDER.chars().rev().collect(),
    ] {
        for count in [1, 20, 100] {
            let mut texts = vec![decoy.clone(); count];
            texts.push(order.clone());
            let in_one = [texts.join(" and then\n")];
            for texts in [texts.as_slice(), &in_one] {
                let (found, injected) = of_many(texts);
                let hidden =
                    found.iter().any(|f| f.detector.ends_with("injection") && f.confidence >= Confidence::Likely);
                assert!(hidden && injected, "{count} {order}: {found:?}");
            }
        }
    }
}

#[test]
fn what_is_left_unread_is_recorded() {
    let ordinary = "x = y + z; return 1; the table has rows and columns. ";
    let unread = |texts: &[String]| {
        let (found, _) = of_many(texts);
        let unread: Vec<_> = found.into_iter().filter(|f| f.detector == "result/unread").collect();
        assert!(unread.iter().all(|f| (f.severity, f.confidence) == (Severity::Medium, Confidence::Possible)));
        unread.first().map(|f| f.evidence[0].pointer.raw().to_owned())
    };
    let decoy = compressed(&ordinary.repeat(1_000));
    assert_eq!(unread(&vec![decoy.clone(); 2]), None);
    assert_eq!(unread(&vec![decoy; 40]).as_deref(), Some("/content/17/text"));
    let many =
        |count: usize| (0..count).map(|n| base64(&format!("the table {n} has rows and columns"))).collect::<Vec<_>>();
    assert_eq!(unread(&[many(100).join(" ")]), None);
    assert_eq!(unread(&[many(400).join(" ")]).as_deref(), Some("/content/0/text"));
    let definition = serde_json::json!({ "name": "t", "description": many(400).join(" ") }).to_string();
    assert!(INSPECTOR.definition(&definition).iter().any(|f| f.detector == "definition/unread"));
}
