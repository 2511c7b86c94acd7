use proptest::prelude::*;

use super::*;

const ROWS: u64 = 10;

fn filled() -> (TempDir, PathBuf) {
    let (dir, path) = scratch();
    let mut store = open(&path);
    let events: Vec<_> = (1..=ROWS).map(|n| event(n * 100, if n % 2 == 0 { "a/b/even" } else { "a/b/odd" })).collect();
    let (first, rest) = events.split_at(3);
    let stored = store.append(first).unwrap();
    assert_eq!(stored.iter().map(|s| s.seq).collect::<Vec<_>>(), [1, 2, 3]);
    let stored = store.append(rest).unwrap();
    assert_eq!(store.verify().unwrap().head.hash, stored.last().unwrap().hash);
    assert_eq!(store.append(&[]).unwrap(), []);
    (dir, path)
}

#[test]
fn an_untouched_chain_holds() {
    let (_dir, path) = scratch();
    let report = open(&path).verify().unwrap();
    assert_eq!((report.rows, report.head.seq, report.first_bad), (0, 0, None));
    let (_dir, path) = filled();
    let report = Store::open_read_only(&path).unwrap().verify().unwrap();
    assert_eq!((report.rows, report.pruned, report.head.seq, report.first_bad), (ROWS, 0, ROWS, None));
}

#[test]
fn tampering_is_found() {
    for (sql, seq, why) in [
        ("UPDATE event SET body = replace(body, 'command', 'Command') WHERE seq = 4", 4, Why::Edited),
        ("UPDATE event SET body = json_set(body, '$.at', 401) WHERE seq = 4", 4, Why::Edited),
        ("UPDATE event SET body = '{}' WHERE seq = 4", 4, Why::Edited),
        ("UPDATE event SET hash = zeroblob(32) WHERE seq = 10", 10, Why::Edited),
        ("DELETE FROM event WHERE seq = 4", 4, Why::Missing),
        ("DELETE FROM event WHERE seq = 1", 1, Why::Missing),
        ("DELETE FROM event WHERE seq > 7", 8, Why::CutOff),
        ("DELETE FROM event", 1, Why::CutOff),
        // Two rows change places.
        (
            "UPDATE event SET seq = 99 WHERE seq = 4; UPDATE event SET seq = 4 WHERE seq = 5;
             UPDATE event SET seq = 5 WHERE seq = 99",
            4,
            Why::Edited,
        ),
        // A row comes in, and the later ones move up.
        ("UPDATE event SET seq = -seq WHERE seq > 4; UPDATE event SET seq = 1 - seq WHERE seq < 0", 5, Why::Missing),
        ("INSERT INTO event (seq, body, hash) SELECT 11, body, hash FROM event WHERE seq = 4", 11, Why::Inserted),
        ("UPDATE mark SET seq = 9", 10, Why::Inserted),
        ("UPDATE mark SET seq = 11", 11, Why::CutOff),
        ("UPDATE mark SET hash = zeroblob(32)", 10, Why::Head),
        ("DELETE FROM mark", 1, Why::Head),
        // Retention that nobody ordered: the base is not where the chain continues.
        ("DELETE FROM event WHERE seq < 4; INSERT INTO mark VALUES ('base', 3, zeroblob(32))", 4, Why::Edited),
        ("INSERT INTO mark VALUES ('base', 3, zeroblob(32))", 1, Why::Inserted),
    ] {
        let (_dir, path) = filled();
        // STRICT tables and checks refuse some of it; a byte editor does not ask them.
        tamper(&path, &format!("PRAGMA ignore_check_constraints = ON; {sql}"));
        let report = Store::open_read_only(&path).unwrap().verify().unwrap();
        assert_eq!(report.first_bad, Some(Bad { seq, why }), "{sql}");
    }
}

#[test]
fn a_chain_that_cannot_go_on_is_refused() {
    for sql in ["DELETE FROM mark", "UPDATE mark SET seq = 9"] {
        let (_dir, path) = filled();
        tamper(&path, sql);
        let mut store = open(&path);
        assert!(matches!(store.append(&[event(1, "a/b/c")]), Err(StoreError::Chain { .. })), "{sql}");
        assert!(matches!(store.prune(Millis(500), None), Err(StoreError::Chain { .. })), "{sql}");
    }
}

#[test]
fn appending_does_not_hide_a_cut() {
    let (_dir, path) = filled();
    tamper(&path, "DELETE FROM event WHERE seq > 7");
    let mut store = open(&path);
    store.append(&[event(1, "a/b/c")]).unwrap();
    assert_eq!(store.verify().unwrap().first_bad, Some(Bad { seq: 8, why: Why::Missing }));
}

#[test]
fn retention_keeps_the_chain() {
    for (before, keep, left) in [
        (0, None, 10),
        (100, None, 10),
        (101, None, 9),
        (500, None, 6),
        (0, Some(4), 4),
        (900, Some(4), 2),
        (5000, None, 0),
        (0, Some(0), 0),
        (0, Some(99), 10),
    ] {
        let (_dir, path) = filled();
        let mut store = open(&path);
        assert_eq!(store.prune(Millis(before), keep).unwrap(), ROWS - left, "{before} {keep:?}");
        assert_eq!(store.prune(Millis(before), keep).unwrap(), 0);
        let report = store.verify().unwrap();
        assert_eq!((report.rows, report.pruned, report.first_bad), (left, ROWS - left, None));
        assert_eq!(store.append(&[event(1, "a/b/c")]).unwrap()[0].seq, ROWS + 1);
        assert_eq!(store.verify().unwrap().first_bad, None);
        drop(store);
        // What is cut off a shortened chain is found as well.
        tamper(&path, "DELETE FROM event");
        let cut = Bad { seq: ROWS - left + 1, why: Why::CutOff };
        assert_eq!(open(&path).verify().unwrap().first_bad, Some(cut));
    }
}

#[test]
fn retention_does_not_wash_away_tampering() {
    let (_dir, path) = filled();
    tamper(&path, "UPDATE event SET body = replace(body, 'command', 'Command') WHERE seq = 2");
    let mut store = open(&path);
    assert!(matches!(store.prune(Millis(500), None), Err(StoreError::Chain { .. })));
    assert_eq!(store.verify().unwrap().first_bad, Some(Bad { seq: 2, why: Why::Edited }));
}

#[test]
fn queries() {
    let (_dir, path) = filled();
    let store = open(&path);
    let check = |query: Query, want: &[u64]| {
        let got: Vec<_> = store.events(&query).unwrap().into_iter().map(|e| e.seq).collect();
        assert_eq!(got, want, "{query:?}");
    };
    let all = Query::default;
    check(all(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    check(Query { after_seq: 8, ..all() }, &[9, 10]);
    check(Query { after_seq: u64::MAX, ..all() }, &[]);
    check(Query { limit: Some(2), ..all() }, &[1, 2]);
    check(Query { limit: Some(2), newest: true, ..all() }, &[9, 10]);
    check(Query { since: Some(Millis(800)), ..all() }, &[8, 9, 10]);
    check(Query { entry: "a/b/even".parse().ok(), since: Some(Millis(700)), ..all() }, &[8, 10]);
    check(Query { server: Some("odd".into()), limit: Some(2), ..all() }, &[1, 3]);
    check(Query { server: Some("dd".into()), ..all() }, &[]);
    check(Query { server: Some("b/odd".into()), ..all() }, &[]);
    check(Query { server: Some("%".into()), ..all() }, &[]);
}

#[test]
fn unreadable_and_oversized_events_are_errors() {
    let (_dir, path) = filled();
    tamper(&path, r#"UPDATE event SET body = '{"at":1,"what":{"kind":"secret-word"}}' WHERE seq = 3"#);
    let mut store = open(&path);
    let error = store.events(&Query::default()).unwrap_err();
    assert!(matches!(&error, StoreError::Row { table: "event", row, .. } if row == "3"), "{error}");
    assert!(!error.to_string().contains("secret-word"));
    assert_eq!(store.events(&Query { after_seq: 3, ..Query::default() }).unwrap().len(), 7);

    let long = Event { what: What::Command { text: "x".repeat(MAX_EVENT) }, ..event(1, "a/b/c") };
    assert!(matches!(store.append(&[event(1, "a/b/c"), long]), Err(StoreError::Refused { .. })));
    assert_eq!(store.events(&Query { after_seq: ROWS, ..Query::default() }).unwrap(), [], "all or none");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_appended_is_read_again(texts in prop::collection::vec(any::<(String, u32)>(), 1..20), split: prop::sample::Index) {
        let (_dir, path) = scratch();
        let mut store = open(&path);
        let events: Vec<_> = texts
            .into_iter()
            .map(|(text, at)| Event { what: What::Command { text }, ..event(at.into(), "a/b/c") })
            .collect();
        let (one, two) = events.split_at(split.index(events.len()));
        let mut stored = store.append(one).unwrap();
        stored.extend(store.append(two).unwrap());
        prop_assert_eq!(&store.events(&Query::default()).unwrap(), &stored);
        prop_assert_eq!(store.verify().unwrap().first_bad, None);
        prop_assert!(stored.into_iter().map(|s| s.event).eq(events));
    }
}
