use super::*;
use crate::Limits;

/// An agent that calls one tool of one server.
struct Agent {
    inspector: Inspector,
    memory: Memory,
    entry: EntryId,
    sink: Sink,
    usual: Option<Habit>,
    now: u64,
}

impl Agent {
    fn new(sink: Sink, usual: Option<Habit>) -> Self {
        let (inspector, memory) = (Inspector::new(), Memory::new(Limits::default()));
        Self { inspector, memory, entry: "c/user/s".parse().unwrap(), sink, usual, now: 1_000_000 * MINUTE }
    }

    fn call(&mut self, arguments: &str) -> Vec<(String, bool)> {
        let call = Call {
            entry: &self.entry,
            method: "tools/call",
            subject: "send",
            arguments: Some(arguments),
            sink: self.sink,
            schema: None,
            usual: self.usual.as_ref(),
            now: Millis(self.now),
        };
        let found = self.inspector.usage(&mut self.memory, &call, &Arguments::of(&call));
        found.into_iter().map(|f| (f.detector.into_owned(), f.confidence == Confidence::Likely)).collect()
    }

    /// The findings of `count` calls, `apart` milliseconds from each other.
    fn calls(&mut self, count: u64, apart: u64, arguments: &str) -> Vec<(String, bool)> {
        let mut out = Vec::new();
        for _ in 0..count {
            out.extend(self.call(arguments));
            self.now += apart;
        }
        out
    }
}

fn known() -> Habit {
    let hosts = vec![mark("api.example.com")];
    let arguments = vec![mark("url"), mark("body")];
    Habit { sessions: 5, calls: 200, per_minute: 4, longest: 900, volume: 9000, hosts, arguments }
}

fn of(found: &[(String, bool)], detector: &str) -> (usize, usize) {
    let all = found.iter().filter(|(name, _)| name == detector);
    (all.clone().count(), all.filter(|(_, ask)| *ask).count())
}

#[test]
fn a_steady_agent_is_not_mentioned() {
    let text = r#"{"url":"https://api.example.com/x","body":"hello"}"#;
    assert_eq!(Agent::new(Sink::External, None).calls(500, 2_000, text), []);
    assert_eq!(Agent::new(Sink::External, Some(known())).calls(500, 2_000, text), []);
    assert_eq!(Agent::new(Sink::Local, None).calls(5_000, 200, text), []);
}

#[test]
fn a_burst_is_recorded_and_a_flood_is_asked_about() {
    let mut agent = Agent::new(Sink::External, None);
    // Told at 61, 122, 244 and 488 calls, and asked about from 601 on.
    assert_eq!(of(&agent.calls(600, 1, "{}"), "call/rate"), (4, 0));
    assert_eq!(of(&agent.calls(20, 1, "{}"), "call/rate"), (20, 20));
    // The next minute is another one.
    agent.now += MINUTE;
    assert_eq!(agent.calls(60, 1, "{}"), []);
    // Nobody is asked about what stays inside.
    let inside = Agent::new(Sink::Unknown, None).calls(20_000, 0, "{}");
    assert!(of(&inside, "call/rate").0 > 0 && inside.iter().all(|(_, ask)| !ask));
}

#[test]
fn bytes_are_added_up_over_ten_minutes() {
    let body = format!(r#"{{"body":"{}"}}"#, "x".repeat(256 << 10));
    // 2 MiB every ten minutes, and more than that in one.
    assert_eq!(Agent::new(Sink::External, None).calls(30, 2 * MINUTE, &body), []);
    let found = Agent::new(Sink::External, None).calls(100, MINUTE / 20, &body);
    assert_eq!(of(&found, "call/volume").0 - of(&found, "call/volume").1, 4);
    assert!(of(&found, "call/volume").1 > 0);
}

#[test]
fn a_known_tool_is_measured_by_what_it_did() {
    let text = r#"{"url":"https://api.example.com/x"}"#;
    let mut busy = known();
    (busy.per_minute, busy.volume) = (500, 100 << 20);
    assert_eq!(Agent::new(Sink::External, Some(busy)).calls(900, 1, text), []);
    // Four a minute were the most: eight times that is below the budget, so the budget decides.
    assert_eq!(of(&Agent::new(Sink::External, Some(known())).calls(61, 1, text), "call/rate"), (1, 1));
    let few = Habit { sessions: 2, ..known() };
    assert_eq!(of(&Agent::new(Sink::External, Some(few)).calls(61, 1, text), "call/rate"), (1, 0));
}

#[test]
fn what_a_tool_never_did_is_recorded_once() {
    let long = "y".repeat(20_000);
    for (arguments, want) in [
        (r#"{"url":"https://api.example.com/x","body":"b"}"#.to_owned(), (0, 0)),
        (r#"{"url":"https://User@API.example.com:8443/y"}"#.to_owned(), (0, 0)),
        (r#"{"url":"https://other.example.net/x"}"#.to_owned(), (1, 0)),
        (r#"{"body":"write to eve@other.example.net."}"#.to_owned(), (1, 0)),
        (r#"{"url":"https://api.example.com/x","cc":"b"}"#.to_owned(), (1, 0)),
        (format!(r#"{{"url":"https://api.example.com/x","body":"{long}"}}"#), (1, 0)),
        // Both at once look like a leak, each time.
        (format!(r#"{{"url":"https://other.example.net/x","body":"{long}"}}"#), (3, 3)),
    ] {
        let found = Agent::new(Sink::External, Some(known())).calls(3, 10_000, &arguments);
        assert_eq!(of(&found, "call/unlike-before"), want, "{}", &arguments[..40.min(arguments.len())]);
        assert_eq!(of(&Agent::new(Sink::External, None).calls(3, 10_000, &arguments), "call/unlike-before"), (0, 0));
    }
    // A tool that fetches from everywhere.
    let wide = Habit { hosts: (0..60).collect(), ..known() };
    assert_eq!(Agent::new(Sink::External, Some(wide)).call(r#"{"url":"https://other.example.net/x"}"#), []);
}

#[test]
fn habits_are_taken_once_and_bounded() {
    let mut agent = Agent::new(Sink::External, None);
    agent.calls(3, 1_000, r#"{"url":"https://a.example.org/"}"#);
    let habits = agent.memory.take_habits(&agent.entry);
    assert_eq!(habits.len(), 1);
    let (name, habit) = &habits[0];
    assert_eq!((name.as_str(), habit.calls, habit.per_minute, habit.hosts.len()), ("send", 3, 3, 1));
    assert_eq!(agent.memory.take_habits(&agent.entry), []);

    let mut usage = Usage::default();
    for n in 0..5_000u32 {
        let entry: EntryId = format!("c/user/{}", n % 7).parse().unwrap();
        usage.of(&entry, &n.to_string()).add(1, Millis(0));
    }
    let kept: usize = usage.tools.values().map(HashMap::len).sum();
    assert!(kept <= MAX_COUNTED + 7, "{kept}");
    let entry: EntryId = "c/user/1".parse().unwrap();
    // What found no place is counted together.
    assert!(usage.of(&entry, "another").session.calls > 500);
    assert!(usage.take(&entry).iter().all(|(name, _)| !name.is_empty()));
}

#[test]
fn a_clock_that_jumps_does_no_harm() {
    let mut count = Count::default();
    for now in [0, 5 * MINUTE, 3 * MINUTE, u64::MAX, 0, 7 * MINUTE] {
        let (calls, bytes) = count.add(10, Millis(now));
        assert!(calls >= 1 && bytes >= 10);
    }
}
