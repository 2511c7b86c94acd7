use std::collections::BTreeMap;

use firedoor_model::{
    Digest, EntryId, Mode, Untrusted,
    broker::{MAX_ROUTES, Route},
    endpoint::{Endpoint, MAX_ENDPOINTS, Served, Target},
    launch::{Access, Grant},
    question::Choice,
    rule::{Draft, Match, Origin},
};
use proptest::prelude::*;

use super::*;

fn entry(text: &str) -> EntryId {
    text.parse().unwrap()
}

fn draft(matches: Match) -> Draft {
    Draft { effect: Choice::Block, matches, origin: Origin::User, created: Millis(5), expires: None }
}

fn endpoint(id: &str, cwd: &str) -> Endpoint {
    let server = Served::Program { program: "srv".into(), args: Vec::new(), env: Vec::new() };
    Endpoint { entry: entry(id), port: 0, key: format!("key of {id}"), target: Target { server, cwd: cwd.into() } }
}

#[test]
fn an_endpoint_keeps_its_address() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    store.put_endpoint(&endpoint("a/b/c", "/one")).unwrap();
    store.set_endpoint_port(&entry("a/b/c"), 20_001).unwrap();
    store.set_endpoint_port(&entry("a/b/c"), 20_002).unwrap();
    let again = Endpoint { key: "another".into(), ..endpoint("a/b/c", "/two") };
    store.put_endpoint(&again).unwrap();
    drop(store);
    let mut store = open(&path);
    let want = Endpoint { port: 20_001, ..endpoint("a/b/c", "/two") };
    assert!(store.endpoints().unwrap() == [want]);
    assert!(store.remove_endpoint(&entry("a/b/c")).unwrap());
    assert!(!store.remove_endpoint(&entry("a/b/c")).unwrap());
    for number in 0..MAX_ENDPOINTS {
        store.put_endpoint(&endpoint(&format!("a/b/{number}"), "/")).unwrap();
    }
    assert!(matches!(store.put_endpoint(&endpoint("a/b/c", "/")), Err(StoreError::Refused { .. })));
    store.put_endpoint(&endpoint("a/b/7", "/other")).unwrap();
}

#[test]
fn secrets_go_into_broker_mode_and_out_of_it() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let route = |secret: &str, url: &str| Route {
        secret: secret.into(),
        variable: "BASE_URL".into(),
        url: url.into(),
        header: "authorization".into(),
        intercept: url.contains("two"),
    };
    store.put_route(&entry("a/b/c"), &route("T", "https://one.example")).unwrap();
    store.put_route(&entry("a/b/c"), &route("T", "https://two.example")).unwrap();
    store.put_route(&entry("a/b/d"), &route("T", "https://three.example")).unwrap();
    drop(store);
    let mut store = open(&path);
    assert_eq!(store.routes(&entry("a/b/c")).unwrap(), [route("T", "https://two.example")]);
    assert_eq!(store.all_routes().unwrap().len(), 2);
    assert!(store.remove_route(&entry("a/b/c"), "T").unwrap());
    assert!(!store.remove_route(&entry("a/b/c"), "T").unwrap());
    assert!(store.routes(&entry("a/b/c")).unwrap().is_empty());
    for number in 1..MAX_ROUTES {
        store.put_route(&entry("a/b/d"), &route(&number.to_string(), "https://x.example")).unwrap();
    }
    let more = store.put_route(&entry("a/b/d"), &route("more", "https://x.example"));
    assert!(matches!(more, Err(StoreError::Refused { .. })));
    store.put_route(&entry("a/b/d"), &route("T", "https://x.example")).unwrap();
}

#[test]
fn rules_come_and_go() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let first = store.add_rule(&draft(Match::default())).unwrap();
    let second = store.add_rule(&draft(Match { entry: Some(entry("a/b/c")), ..Match::default() })).unwrap();
    assert_eq!(store.rules().unwrap(), [first.clone(), second.clone()]);
    assert!(store.remove_rule(second.id).unwrap());
    assert!(!store.remove_rule(second.id).unwrap());
    // A number that stood in the log is not given again.
    assert!(store.add_rule(&draft(Match::default())).unwrap().id > second.id);
}

#[test]
fn rules_that_are_refused() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    for bad in [
        Draft { origin: Origin::Managed, ..draft(Match::default()) },
        draft(Match { detector: Some(String::new()), ..Match::default() }),
        draft(Match { tool: Some("".into()), ..Match::default() }),
    ] {
        assert!(matches!(store.add_rule(&bad), Err(StoreError::Refused { .. })), "{bad:?}");
    }
    assert!(store.rules().unwrap().is_empty());
}

#[test]
fn unreadable_rows_are_named_and_never_skipped() {
    let digest = Digest::of(b"x");
    for (sql, table) in [
        ("UPDATE rule SET effect = 'perhaps'", "rule"),
        ("UPDATE rule SET origin = 'managed'", "rule"),
        ("UPDATE rule SET matches = 'secret-word'", "rule"),
        (r#"UPDATE rule SET matches = '{"secret-word":1}'"#, "rule"),
        ("UPDATE rule SET created = -1", "rule"),
        ("UPDATE rule SET effect = CAST(x'ff' AS TEXT)", "rule"),
        ("UPDATE pin SET accepted = '{}'", "pin"),
        ("UPDATE declined SET entry = 'secret-word'", "declined"),
        (r#"UPDATE habit SET habit = '{"secret-word":1}'"#, "habit"),
        ("UPDATE declined SET line = 'secret-word'", "declined"),
        ("UPDATE pin SET kind = 'secret-word'", "pin"),
        ("UPDATE pin SET changed = '1', changed_at = 1", "pin"),
        ("UPDATE pin SET entry = 'secret-word'", "pin"),
        ("UPDATE grant_path SET access = 'all'", "grant_path"),
        ("UPDATE grant_path SET path = CAST('relative' AS BLOB)", "grant_path"),
        ("UPDATE grant_path SET path = CAST('/a/../b' AS BLOB)", "grant_path"),
        ("UPDATE grant_path SET entry = 'x'", "grant_path"),
        ("UPDATE grant_env SET name = 'A=secret-word'", "grant_env"),
        ("UPDATE grant_host SET host = 'secret-word/'", "grant_host"),
        ("UPDATE grant_host SET entry = 'x'", "grant_host"),
        ("UPDATE grant_socket SET path = CAST('relative' AS BLOB)", "grant_socket"),
        ("UPDATE grant_socket SET entry = 'secret-word'", "grant_socket"),
        ("UPDATE setting SET value = 'secret-word'", "setting"),
        ("UPDATE endpoint SET entry = 'secret-word'", "endpoint"),
        (r#"UPDATE endpoint SET target = '{"secret-word":1}'"#, "endpoint"),
    ] {
        let (_dir, path) = scratch();
        let mut store = open(&path);
        store.add_rule(&draft(Match::default())).unwrap();
        store
            .observe(&entry("a/b/c"), &[(PinKind::Tool, "t".into(), definition(&[("x", digest)]))], Millis(1))
            .unwrap();
        let grants = EntryGrants {
            grants: vec![grant("/x", Access::Read)],
            env: vec!["A".into()],
            hosts: vec!["a.example:1".parse().unwrap()],
            sockets: vec!["/s".into()],
        };
        store.add_grants(&entry("a/b/c"), &grants).unwrap();
        store.set_mode(Mode::Strict).unwrap();
        store.decline(&entry("a/b/c"), digest, Millis(1)).unwrap();
        let session = firedoor_model::Habit::default();
        store.learn_habits(&entry("a/b/c"), &[("t".into(), session)], Millis(1)).unwrap();
        store.put_endpoint(&endpoint("a/b/c", "/")).unwrap();
        tamper(&path, &format!("PRAGMA ignore_check_constraints = ON; {sql}"));
        let error = [store.rules().err(), store.pins(None).err(), store.all_grants().err(), store.mode().err()]
            .into_iter()
            .chain([store.declined().err(), store.habits(&entry("a/b/c")).err(), store.endpoints().err()])
            .flatten()
            .next()
            .unwrap_or_else(|| panic!("{sql} went unnoticed"));
        assert!(matches!(&error, StoreError::Row { table: t, .. } if *t == table), "{sql}: {error}");
        assert!(!error.to_string().contains("secret-word"), "{error}");
    }
}

#[test]
fn declined_offers_are_remembered_and_bounded() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let (one, two) = (entry("a/b/one"), entry("a/b/two"));
    let (before, after) = (Digest::of(b"before"), Digest::of(b"after"));
    store.decline(&one, before, Millis(1)).unwrap();
    store.decline(&one, after, Millis(2)).unwrap();
    store.decline(&two, before, Millis(3)).unwrap();
    assert_eq!(
        store.declined().unwrap(),
        [(one.clone(), (after, Millis(2))), (two.clone(), (before, Millis(3)))].into()
    );
    store.forget_declined(&two).unwrap();
    store.forget_declined(&two).unwrap();
    assert_eq!(store.declined().unwrap(), [(one.clone(), (after, Millis(2)))].into());
    for n in 0..1000 {
        store.decline(&entry(&format!("a/b/{n}")), before, Millis(10 + n)).unwrap();
    }
    let all = store.declined().unwrap();
    assert!(all.len() == 1000 && !all.contains_key(&one), "the oldest went first");
}

#[test]
fn observing_is_wanted_for_a_while_and_what_was_seen_is_kept() {
    use firedoor_model::observation::{Basis, Observed, Record, Use};
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let (one, two) = (entry("a/b/one"), entry("a/b/two"));
    store.observe_next(&one, Some(Millis(10))).unwrap();
    store.observe_next(&two, Some(Millis(20))).unwrap();
    assert_eq!(store.to_observe(Millis(5)).unwrap(), [one.clone(), two.clone()]);
    assert_eq!(store.to_observe(Millis(10)).unwrap(), std::slice::from_ref(&two));
    store.observe_next(&two, None).unwrap();
    assert_eq!(store.to_observe(Millis(5)).unwrap(), std::slice::from_ref(&one));

    let file = |n: usize| Observed::File {
        path: Untrusted::new(format!("/{n}{}", "\u{1}".repeat(100))),
        how: Use::Read,
        allowed: true,
    };
    let seen = |count| Observation {
        at: Millis(7),
        record: Record { seen: (0..count).map(file).collect() },
        basis: Basis { cwd: "/p".into(), ..Basis::default() },
    };
    assert_eq!(store.observed(&one).unwrap(), None);
    for count in [3, 1] {
        store.set_observed(&one, &seen(count)).unwrap();
        assert_eq!(store.observed(&one).unwrap(), Some(seen(count)));
    }
    store.set_observed(&one, &seen(20_000)).unwrap();
    let kept = store.observed(&one).unwrap().unwrap().record;
    assert!(kept.is_truncated() && (1_000..10_000).contains(&kept.files().count()));
    tamper(&path, "UPDATE observed SET record = '{\"secret-word\"'");
    let error = store.observed(&one).unwrap_err();
    assert!(matches!(error, StoreError::Row { table: "observed", .. }) && !error.to_string().contains("secret-word"));
}

#[test]
fn the_mode() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    assert_eq!(store.mode().unwrap(), Mode::Balanced);
    for mode in [Mode::Watch, Mode::Strict, Mode::Balanced] {
        store.set_mode(mode).unwrap();
        assert_eq!(store.mode().unwrap(), mode);
    }
    assert_eq!(store.protect_new().unwrap(), None);
    for on in [true, false] {
        store.set_protect_new(on).unwrap();
        assert_eq!(store.protect_new().unwrap(), Some(on));
    }
}

fn grant(path: &str, access: Access) -> Grant {
    Grant { path: path.into(), access }
}

#[test]
fn grants_come_and_go() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let (one, two) = (entry("a/b/one"), entry("a/b/two"));
    let some = EntryGrants {
        grants: vec![grant("/r", Access::Read), grant("/w", Access::Write)],
        env: vec!["TOKEN".into(), "HOME".into()],
        hosts: vec!["b.example".parse().unwrap(), "*.a.example:443".parse().unwrap()],
        sockets: vec!["/run/x".into()],
    };
    store.add_grants(&one, &some).unwrap();
    store
        .add_grants(
            &one,
            &EntryGrants { grants: vec![grant("/w", Access::List)], env: vec!["HOME".into()], ..some.clone() },
        )
        .unwrap();
    store.add_grants(&two, &EntryGrants { env: vec!["X".into()], ..EntryGrants::default() }).unwrap();
    let want = EntryGrants {
        grants: vec![grant("/r", Access::Read), grant("/w", Access::List)],
        env: vec!["HOME".into(), "TOKEN".into()],
        hosts: vec!["*.a.example:443".parse().unwrap(), "b.example".parse().unwrap()],
        sockets: vec!["/run/x".into()],
    };
    assert_eq!(store.grants(&one).unwrap(), want);
    assert_eq!(store.grants(&entry("a/b/three")).unwrap(), EntryGrants::default());
    assert_eq!(store.remove_grants(&one, &some).unwrap(), 7);
    assert_eq!(store.all_grants().unwrap().into_keys().collect::<Vec<_>>(), [two]);
}

/// What is on record and what holds are the same.
#[test]
fn a_grant_comes_with_its_event_or_not_at_all() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let of = entry("a/b/c");
    let some =
        EntryGrants { grants: vec![grant("/w", Access::Write)], env: vec!["A".into()], ..EntryGrants::default() };
    let bad = EntryGrants { env: vec!["A=B".into()], ..EntryGrants::default() };
    let event = |text: String| Event {
        at: Millis(1),
        entry: Some(of.clone()),
        session: None,
        client: None,
        what: What::Command { text },
    };
    let (fine, too_long) = (event("granted".into()), event("x".repeat(MAX_EVENT)));
    let rows = |store: &Store| store.events(&Query::default()).unwrap().len();
    assert!(store.add_grants_on_record(&of, &bad, std::slice::from_ref(&fine)).is_err());
    assert!(store.add_grants_on_record(&of, &some, std::slice::from_ref(&too_long)).is_err());
    assert!(store.all_grants().unwrap().is_empty() && rows(&store) == 0);
    store.add_grants_on_record(&of, &some, std::slice::from_ref(&fine)).unwrap();
    assert!(store.remove_grants_on_record(&of, &some, &[too_long]).is_err());
    assert_eq!((store.grants(&of).unwrap(), rows(&store)), (some.clone(), 1));
    // A removal names a path alone; what it took has the access that there was.
    let named =
        EntryGrants { grants: vec![grant("/w", Access::Read), grant("/x", Access::Read)], ..EntryGrants::default() };
    let gone = store.grants(&of).unwrap().common(&named);
    assert_eq!(gone.grants, [grant("/w", Access::Write)]);
    assert!(gone.env.is_empty());
    let (count, stored) = store.remove_grants_on_record(&of, &gone, &[fine]).unwrap();
    assert_eq!((count, stored.len(), rows(&store)), (1, 1, 2));
    assert!(store.verify().unwrap().first_bad.is_none());
}

#[test]
fn grants_that_are_refused() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    for bad in ["relative", "", "/a/../b", "/nul\0", &format!("/{}", "x".repeat(5000))] {
        let grants = EntryGrants {
            grants: vec![grant("/fine", Access::Read), grant(bad, Access::Read)],
            ..EntryGrants::default()
        };
        assert!(matches!(store.add_grants(&entry("a/b/c"), &grants), Err(StoreError::Refused { .. })), "{bad:?}");
    }
    for bad in ["", "A=secret", "A\0"] {
        let grants = EntryGrants { env: vec![bad.into()], ..EntryGrants::default() };
        let error = store.add_grants(&entry("a/b/c"), &grants).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }) && !error.to_string().contains("secret"));
    }
    assert!(store.all_grants().unwrap().is_empty());
}

fn definition(fields: &[(&str, Digest)]) -> Definition {
    let fields: BTreeMap<_, _> = fields.iter().map(|(n, d)| ((*n).to_owned(), *d)).collect();
    let whole = Digest::of_fields(fields.iter().flat_map(|(n, d)| [n.as_bytes(), d.0.as_slice()]));
    Definition { whole, fields, text: Some(Untrusted::new("{}")) }
}

#[test]
fn a_pin_and_a_rug_pull() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let server = entry("a/b/c");
    let key = PinKey { entry: server.clone(), kind: PinKind::Tool, name: "t".into() };
    let digest = |text: &str| Digest::of(text.as_bytes());
    let honest = definition(&[("description", digest("1")), ("title", digest("t"))]);
    let evil = definition(&[("description", digest("2")), ("annotations", digest("a"))]);
    let worse = definition(&[("description", digest("3")), ("title", digest("t"))]);
    let look = |store: &mut Store, d: &Definition, at| {
        store.observe(&server, &[(PinKind::Tool, "t".into(), d.clone())], Millis(at)).unwrap().remove(0)
    };
    let changed =
        |known, fields: &[&str]| Observed::Changed { fields: fields.iter().map(|f| (*f).into()).collect(), known };
    let all = ["annotations", "description", "title"];

    assert_eq!(look(&mut store, &honest, 1), Observed::New);
    assert_eq!(look(&mut store, &honest, 2), Observed::Same);
    assert_eq!(look(&mut store, &evil, 3), changed(false, &all));
    assert_eq!(look(&mut store, &evil, 4), changed(true, &all));
    // Going back does not end the quarantine: the agent may have read the change.
    assert_eq!(look(&mut store, &honest, 5), changed(true, &all));
    // The user accepts what was shown, but meanwhile the server shows something else.
    assert_eq!(look(&mut store, &worse, 6), changed(false, &["description"]));
    assert_eq!(store.accept_pin(&key, evil.whole).unwrap(), Accepted::Moved);
    let pin = store.pin(&key).unwrap().unwrap();
    assert_eq!(pin.state, PinState::Changed { to: worse.clone(), since: Millis(3) });
    assert_eq!((pin.first_seen, &pin.accepted, pin.kept), (Millis(1), &honest, None));
    // Kept back is what was seen; another change is another one.
    assert_eq!(store.keep_back(&key, evil.whole).unwrap(), Accepted::Moved);
    assert_eq!(store.keep_back(&key, worse.whole).unwrap(), Accepted::Done);
    assert_eq!(look(&mut store, &worse, 7), changed(true, &["description"]));
    assert_eq!(store.pin(&key).unwrap().unwrap().kept, Some(worse.whole));

    assert_eq!(store.accept_pin(&key, worse.whole).unwrap(), Accepted::Done);
    assert_eq!(store.pin(&key).unwrap().unwrap().kept, None);
    assert_eq!(look(&mut store, &worse, 7), Observed::Same);
    assert_eq!(look(&mut store, &honest, 8), changed(false, &["description"]));
    // Keeping what was accepted before drops the change.
    assert_eq!(store.accept_pin(&key, worse.whole).unwrap(), Accepted::Done);
    assert_eq!(look(&mut store, &worse, 9), Observed::Same);

    let other = PinKey { kind: PinKind::Prompt, ..key.clone() };
    assert_eq!(store.accept_pin(&other, worse.whole).unwrap(), Accepted::Unknown);
    assert_eq!(store.pins(Some(&entry("a/b/other"))).unwrap(), []);
    assert_eq!(store.forget_pins(&server).unwrap(), 1);
    assert_eq!(store.pin(&key).unwrap(), None);
}

#[test]
fn lists_are_pinned_whole_or_not_at_all() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let small = definition(&[]);
    let long = Definition { text: Some(Untrusted::new("x".repeat(1 << 20))), ..small.clone() };
    let list = [(PinKind::Tool, "a".into(), small.clone()), (PinKind::Tool, "b".into(), long)];
    assert!(matches!(store.observe(&entry("a/b/c"), &list, Millis(1)), Err(StoreError::Refused { .. })));
    assert_eq!(store.pins(None).unwrap(), []);

    let many: Vec<_> = (0..10_001).map(|n| (PinKind::Tool, Untrusted::new(n.to_string()), small.clone())).collect();
    assert!(matches!(store.observe(&entry("a/b/c"), &many, Millis(1)), Err(StoreError::Refused { .. })));
    assert_eq!(store.observe(&entry("a/b/c"), &many[..10_000], Millis(1)).unwrap().len(), 10_000);
    for kind in [PinKind::Tool, PinKind::Prompt, PinKind::Resource, PinKind::ResourceTemplate, PinKind::Instructions] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
    }
}

fn any_match() -> impl Strategy<Value = Match> {
    let digest = || prop::option::of(any::<[u8; 32]>().prop_map(Digest));
    (
        prop::option::of(any::<String>()),
        prop::option::of("\\PC+"),
        prop::option::of("\\PC+"),
        prop::option::of("[a-z]{1,8}/?"),
        digest(),
        digest(),
        digest(),
    )
        .prop_map(|(server, client, tool, detector, call, launch, definition)| Match {
            entry: server.and_then(|s| EntryId::new("client", "scope", &s).ok()),
            client: client.map(Untrusted::new),
            tool: tool.map(Untrusted::new),
            detector,
            call,
            address: None,
            launch,
            definition,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rules_round_trip(matches in any_match(), allow: bool, answer: bool, created: u32, expires: Option<u32>) {
        let (_dir, path) = scratch();
        let mut store = open(&path);
        let draft = Draft {
            effect: if allow { Choice::Allow } else { Choice::Block },
            matches,
            origin: if answer { Origin::Answer } else { Origin::User },
            created: Millis(created.into()),
            expires: expires.map(|t| Millis(t.into())),
        };
        let rule = store.add_rule(&draft).unwrap();
        prop_assert_eq!(store.rules().unwrap(), vec![rule]);
    }
}

#[test]
fn habits_grow_and_are_bounded() {
    use firedoor_model::{Habit, habit::MAX_TOOLS};
    let (_dir, path) = scratch();
    let mut store = open(&path);
    let session = |calls, per_minute| Habit { calls, per_minute, hosts: vec![7], ..Habit::default() };
    let server = entry("a/b/c");
    for now in 1..=3 {
        store.learn_habits(&server, &[("send".into(), session(10, 5))], Millis(now)).unwrap();
    }
    store.learn_habits(&entry("a/b/d"), &[("send".into(), session(1, 1))], Millis(4)).unwrap();
    let known = store.habits(&server).unwrap();
    assert_eq!(known.len(), 1);
    assert_eq!((known["send"].sessions, known["send"].calls, known["send"].per_minute), (3, 30, 5));
    assert_eq!(known["send"].hosts, [7]);
    // Those that were called last stay.
    let many: Vec<_> = (0..MAX_TOOLS).map(|n| (format!("tool {n}"), session(1, 1))).collect();
    store.learn_habits(&server, &many, Millis(5)).unwrap();
    let known = store.habits(&server).unwrap();
    assert!(known.len() == MAX_TOOLS && !known.contains_key("send"));
    assert_eq!(store.habits(&entry("a/b/d")).unwrap().len(), 1);
}
