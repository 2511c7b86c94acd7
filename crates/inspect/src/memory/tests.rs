use firedoor_model::Millis;

use super::*;
use crate::{Privacy, Sink};

fn origin(server: &str) -> Arc<Origin> {
    let entry = EntryId::new("c", "s", server).unwrap();
    Arc::new(Origin { entry, tool: "t".into(), at: Millis(0), sink: Sink::Unknown, privacy: Privacy::Unknown })
}

/// A value with no meaning, different for every number.
fn value(i: u32) -> Vec<u8> {
    format!("k{:08x}z{:08x}q{i:04}", i.wrapping_mul(2_654_435_761), i.wrapping_mul(40_503) ^ 0x55).into_bytes()
}

#[test]
fn one_server_cannot_wash_out_another() {
    let mut memory = Memory::new(Limits { bytes: 64 * 1024, private: 0, ordinary: 0 });
    memory.remember_secret(&origin("files"), &value(0), "".into(), false);
    for i in 1..1000 {
        memory.remember_secret(&origin("hostile"), &value(i), "".into(), false);
    }
    assert!(memory.knows(&value(0)) && memory.knows(&value(999)) && !memory.knows(&value(1)));
    assert!((80..300).contains(&memory.len()), "{memory:?}");
}

#[test]
fn a_hundred_thousand_secrets_are_known() {
    let mut memory = Memory::default();
    for i in 0..100_000 {
        memory.remember_secret(&origin("files"), &value(i), "/content/0/text".into(), false);
    }
    assert_eq!(memory.len(), 100_000);
    assert!((0..100_000).step_by(7).all(|i| memory.knows(&value(i))));
    // What is said to be the cost is: allocations are rounded up to 16 bytes and have a word of their own.
    assert!(memory.classes[0].cost < 48 << 20, "{memory:?}");
}

#[test]
fn bytes_are_bounded_and_secrets_stay_longest() {
    let mut memory = Memory::new(Limits { bytes: 64 * 1024, private: 16 * 1024, ordinary: 8 * 1024 });
    memory.remember_secret(&origin("files"), &value(0), "".into(), false);
    for i in 0..200 {
        let label = if i % 2 == 0 { Label::Private } else { Label::Ordinary };
        memory.remember_text(&origin("files"), label, b"", &value(i).repeat(9), "".into());
        memory.remember_text(&origin("files"), label, b"", &[b'x'; 1000], "".into());
    }
    let cost = |memory: &Memory| memory.classes.iter().map(|c| c.cost).sum::<usize>();
    assert!(cost(&memory) <= 64 * 1024 && memory.knows(&value(0)), "{memory:?}");
    for i in 0..2000 {
        memory.remember_secret(&origin("files"), &value(i), "".into(), false);
    }
    assert!(cost(&memory) <= 64 * 1024, "{memory:?}");
    assert!(memory.classes[1].cost > 8 * 1024 && memory.classes[2].cost > 4 * 1024, "{memory:?}");
}

#[test]
fn what_comes_again_is_kept_once() {
    let mut memory = Memory::default();
    let text = |i| value(i).repeat(3);
    let mut remember = |server: &str, label, text: &[u8], pointer: &str| {
        memory.remember_text(&origin(server), label, b"", text, pointer.into());
        memory.len()
    };
    assert_eq!(remember("a", Label::Ordinary, &text(0), "/0"), 1);
    assert_eq!(remember("a", Label::Ordinary, &text(0), "/0"), 1);
    // Others begin or end like it.
    assert_eq!(remember("a", Label::Ordinary, &[text(0), text(1)].concat(), "/0"), 2);
    assert_eq!(remember("a", Label::Ordinary, &[text(1), text(0)].concat(), "/0"), 3);
    for _ in 0..3 {
        assert_eq!(remember("a", Label::Ordinary, &[text(0), text(1)].concat(), "/0"), 3);
        assert_eq!(remember("a", Label::Ordinary, &[text(1), text(0)].concat(), "/0"), 3);
    }
    for (n, (server, label, pointer)) in
        [("b", Label::Ordinary, "/0"), ("a", Label::Private, "/0"), ("a", Label::Ordinary, "/1")]
            .into_iter()
            .enumerate()
    {
        assert_eq!(remember(server, label, &text(0), pointer), 4 + n, "{server} {label:?} {pointer}");
    }
}

#[test]
fn what_came_again_outlives_what_did_not() {
    let mut memory = Memory::new(Limits { bytes: 64 * 1024, private: 0, ordinary: 0 });
    let text = |i| value(i).repeat(9);
    let known = |memory: &Memory, text: &[u8]| memory.items.iter().flatten().any(|item| *item.folded == *text);
    for i in 0..1000 {
        memory.remember_text(&origin("files"), Label::Private, b"", &text(i), "".into());
        memory.remember_text(&origin("files"), Label::Private, b"", &text(0), "".into());
    }
    assert!(known(&memory, &text(0)) && known(&memory, &text(999)) && !known(&memory, &text(1)), "{memory:?}");
    for i in 1000..2000 {
        memory.remember_text(&origin("files"), Label::Private, b"", &text(i), "".into());
    }
    assert!(!known(&memory, &text(0)), "it does not stay for ever");
    assert!(memory.classes.iter().map(|c| c.cost).sum::<usize>() <= 64 * 1024, "{memory:?}");
}

#[test]
fn nothing_is_kept_where_nothing_may_be() {
    let mut memory = Memory::new(Limits { bytes: 0, private: 0, ordinary: 0 });
    memory.remember_secret(&origin("files"), &value(0), "".into(), false);
    memory.remember_text(&origin("files"), Label::Private, b"", &value(0), "".into());
    assert!(memory.is_empty() && memory.bytes() == 0);
}

#[test]
fn debug_shows_no_text() {
    let mut memory = Memory::default();
    memory.remember_secret(&origin("files"), &value(7), "".into(), false);
    assert!(!format!("{memory:?}").contains("k7") && format!("{memory:?}").contains("secrets: 1"));
}

#[test]
fn short_and_plain_values_are_no_secrets() {
    let mut memory = Memory::default();
    for short in ["abc12", "aaaaaaaaaaaaaaaa", "1-2-3-4", ""] {
        memory.remember_secret(&origin("files"), short.as_bytes(), "".into(), false);
    }
    assert!(memory.is_clean());
}

#[test]
fn given_credentials_are_known_again_by_server() {
    let mut memory = Memory::default();
    let (a, b) = (origin("a"), origin("b"));
    memory.give(&a.entry, b"value");
    assert!(memory.gave(&a.entry, b"value") && !memory.gave(&b.entry, b"value"));
    for i in 0..MAX_GIVEN as u32 {
        memory.give(&b.entry, &value(i));
    }
    assert!(!memory.gave(&a.entry, b"value"));
}
