//! What inspecting costs. `tests/bench/inspection.py` runs it, alone for times and under callgrind for instructions.
//!
//! `speed`: every case, processor time for each, and that of calls once more where little is remembered. `speed names`: their names. `speed NAME ROUNDS`: this case, or the text of the file of that
//! name as a result, so many times with little remembered, printing nothing but its bytes. `speed files FILE...`: the text of each file as a result; the repository's
//! own texts are few, repeated, and so kinder to a processor than what tools return.
#![expect(clippy::print_stdout, reason = "a measuring program")]

use std::{fmt::Write as _, hint::black_box};

use firedoor_inspect::{Call, CallLabel, Inspector, Limits, Memory, Privacy, Sink, Source};
use firedoor_model::{EntryId, Millis};

/// Values that are remembered before the calls are measured.
const REMEMBERED: u32 = 100_000;
/// And before instructions are counted: what is remembered does not change them, and counting is slow.
const REMEMBERED_FOR_COUNTS: u32 = 1000;
const LARGE: usize = 1 << 20;

/// Documents and sources of this repository, as a tool would return them.
const PROSE: &str = concat!(
    include_str!("../../../docs/security.md"),
    include_str!("../../../docs/known-limits.md"),
    include_str!("../../../docs/user-guide.md"),
    include_str!("../../../ARCHITECTURE.md"),
);
const CODE: &str = concat!(
    include_str!("../src/decode.rs"),
    include_str!("../src/flow.rs"),
    include_str!("../src/record.rs"),
    include_str!("../src/definitions.rs"),
);
/// A file that is read and written back.
const FILE: &str = concat!(
    include_str!("../src/memory.rs"),
    include_str!("../src/index.rs"),
    include_str!("../src/keywords.rs"),
    include_str!("../src/credentials.rs"),
);
const OTHER_SCRIPTS: &str = "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом \
    и совестью и должны поступать в отношении друг друга в духе братства.\n人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,\
    并应以兄弟关系的精神相对待。\nΌλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.\n\
    Tous les êtres humains naissent libres et égaux en dignité et en droits; ils sont doués de raison.\n";

/// Texts in 56 languages: words of most phrases stand somewhere in them.
const LANGUAGES: &str = include_str!("../../../tests/eval/languages.jsonl");

/// Numbers without a pattern, the same in every run (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn repeated(text: &str, size: usize) -> String {
    let mut out = text.repeat(size / text.len() + 1);
    let cut = (0..=size).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
    out.truncate(cut);
    out
}

/// So many bytes of lines that `write` makes.
fn lines(size: usize, mut write: impl FnMut(&mut Numbers, &mut String)) -> String {
    let (mut numbers, mut out) = (Numbers(0x9E37_79B9_7F4A_7C15), String::with_capacity(size + 400));
    while out.len() < size {
        write(&mut numbers, &mut out);
    }
    out
}

/// The honest texts of some records.
fn honest(records: &str) -> String {
    let text = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        (record.get("label")?.as_str()? == "benign").then(|| record.get("text")?.as_str().map(str::to_owned))?
    };
    records.lines().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn logs(size: usize) -> String {
    lines(size, |n, out| {
        let (a, b) = (n.next(), n.next());
        let _ = writeln!(
            out,
            "2026-07-{:02}T{:02}:{:02}:{:02}.{:03}Z INFO  [worker-{}] http.server: GET /api/v2/items/{} 200 {} bytes in {} us",
            a % 28 + 1,
            a >> 8 & 15,
            a >> 16 & 31,
            a >> 24 & 31,
            a >> 32 & 511,
            b & 7,
            b >> 8 & 0xFFFF,
            b >> 24 & 0xFFFF,
            b >> 44
        );
    })
}

/// One record of an interface, as JSON.
fn records(size: usize) -> String {
    let body = lines(size, |n, out| {
        let (a, b) = (n.next(), n.next());
        let _ = write!(
            out,
            r#"{{"id":{},"node_id":"MDU6SXNzdWU{:010}","title":"Parser fails on item {} of the list","state":"open","user":{{"login":"user{}","type":"User"}},"created_at":"2026-03-{:02}T10:00:00Z","sha":"{:016x}{:016x}","comments":{},"score":0.{},"body":"When the list has more than {} items, the second page is empty and nothing is shown."}},"#,
            a % 100_000,
            a >> 20,
            b & 1023,
            b >> 10 & 4095,
            b % 28 + 1,
            a,
            b,
            a & 31,
            b & 1023,
            a >> 40 & 1023
        );
    });
    format!("[{}]", body.trim_end_matches(','))
}

fn minified(size: usize) -> String {
    lines(size, |n, out| {
        let a = n.next();
        let _ = write!(
            out,
            "function {}(e,t,n){{if(!e||t.length<{})return null;var r=e.get(\"k{}\")||[],o={{}};for(var i=0;i<r.length;i++)o[r[i].id]=n(r[i],i);return o}}",
            char::from(b'a' + (a % 26) as u8),
            a >> 8 & 63,
            a >> 16 & 4095
        );
    })
}

fn base64(size: usize) -> String {
    let mut numbers = Numbers(7);
    let bytes: Vec<u8> = std::iter::repeat_with(|| numbers.next() as u8).take(size / 4 * 3).collect();
    data_encoding::BASE64.encode(&bytes)
}

/// A result with one text.
fn result(text: &str) -> String {
    serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string()
}

/// A call of about a kibibyte.
fn call(text: &str) -> String {
    serde_json::json!({"path": "/home/u/src/main.rs", "limit": 20, "session": "0f8c2e71-a94b-4d36-9e55-20a8c1d4e5f6", "body": text})
        .to_string()
}

/// What is measured: a name, and the message.
fn cases() -> Vec<(&'static str, String)> {
    let structured = serde_json::from_str::<serde_json::Value>(&records(LARGE));
    vec![
        ("call 80 B", r#"{"path":"/home/u/src/main.rs","query":"how do I open a file in Rust?","limit":20}"#.into()),
        ("call 1 KiB", call(&repeated(PROSE, 900))),
        ("call 1 KiB code", call(&repeated(CODE, 900))),
        ("call 64 KiB prose", call(&repeated(PROSE, 64 << 10))),
        ("call 64 KiB base64", call(&base64(64 << 10))),
        ("call 64 KiB written back", call(&repeated(FILE, 64 << 10))),
        ("call 64 KiB of one letter", call(&"x".repeat(64 << 10))),
        ("result 1 KiB", result(&repeated(PROSE, 1000))),
        ("result 64 KiB prose", result(&repeated(PROSE, 64 << 10))),
        ("result 64 KiB of one letter", result(&"x".repeat(64 << 10))),
        ("result 1 MiB prose", result(&repeated(PROSE, LARGE))),
        ("result 1 MiB code", result(&repeated(CODE, LARGE))),
        ("result 1 MiB logs", result(&logs(LARGE))),
        ("result 1 MiB JSON as text", result(&records(LARGE))),
        ("result 1 MiB JSON", serde_json::json!({"structuredContent": structured.unwrap_or_default()}).to_string()),
        ("result 1 MiB minified", result(&minified(LARGE))),
        ("result 1 MiB base64", result(&base64(LARGE))),
        ("result 1 MiB other scripts", result(&repeated(OTHER_SCRIPTS, LARGE))),
        ("result 1 MiB other languages", result(&repeated(&honest(LANGUAGES), LARGE))),
    ]
}

struct Bench {
    inspector: Inspector,
    memory: Memory,
    files: EntryId,
    net: EntryId,
}

impl Bench {
    /// A memory with so many values that came from a private file, and a few secrets of servers' starts.
    fn new(remembered: u32) -> Result<Self, Box<dyn std::error::Error>> {
        let inspector = Inspector::new();
        let mut memory = Memory::new(Limits::default());
        let (files, net) = ("c/user/files".parse()?, "c/user/net".parse()?);
        let mut numbers = Numbers(99);
        let kept: Vec<_> = (0..8).map(|_| format!("sk-{:016x}{:016x}", numbers.next(), numbers.next())).collect();
        inspector.kept_secrets(
            &mut memory,
            &net,
            kept.iter().map(|value| ("firedoor-secret:c/user/net/KEY", value.as_str())),
            Millis(1),
        );
        let label = CallLabel { privacy: Privacy::Sensitive, sink: Sink::Local };
        for from in (0..remembered).step_by(1000) {
            let rows: Vec<_> = (from..from + 1000)
                .map(|i| {
                    format!("row {i}: {:016x}-{:016x} of account {}", numbers.next(), numbers.next(), numbers.next())
                })
                .collect();
            let source = Source { entry: &files, method: "tools/call", subject: "read_file", label, now: Millis(1) };
            inspector.result(&mut memory, &source, &serde_json::to_string(&rows)?);
        }
        let source = Source { entry: &files, method: "tools/call", subject: "read_file", label, now: Millis(1) };
        inspector.result(&mut memory, &source, &result(&repeated(FILE, 64 << 10)));
        Ok(Self { inspector, memory, files, net })
    }

    fn step(&mut self, name: &str, message: &str) {
        if name.starts_with("call") {
            // What an agent has read from a file, it mostly writes to that.
            let back = name.ends_with("written back");
            let call = Call {
                entry: if back { &self.files } else { &self.net },
                method: "tools/call",
                subject: if back { "write_file" } else { "search" },
                arguments: Some(message),
                sink: if back { Sink::Local } else { Sink::External },
                schema: None,
                usual: None,
                now: Millis(2),
            };
            black_box(self.inspector.label(&call));
            black_box(self.inspector.call(&mut self.memory, &call));
        } else {
            let label = CallLabel::default();
            let source =
                Source { entry: &self.files, method: "tools/call", subject: "read_file", label, now: Millis(2) };
            black_box(self.inspector.result(&mut self.memory, &source, message));
        }
    }
}

/// Resident memory of this process in KiB, where the system says it (proc_pid_status(5)).
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Nanoseconds that this process has run, from the scheduler (Linux, Documentation/scheduler/sched-stats.rst): a busy
/// machine does not change them much.
fn processor_time() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Measures each case and prints it.
fn times<'c>(
    bench: &mut Bench,
    cases: impl Iterator<Item = (&'c str, &'c String)>,
) -> Result<(), Box<dyn std::error::Error>> {
    for (name, message) in cases {
        // The system's clock of processor time is exact only over some milliseconds.
        let rounds = (40_000_000 / (message.len() + 2000)).max(3);
        for _ in 0..rounds / 4 + 1 {
            bench.step(name, message);
        }
        let mut times: Vec<u64> = Vec::new();
        for _ in 0..7 {
            let start = processor_time()?;
            for _ in 0..rounds {
                bench.step(name, message);
            }
            times.push((processor_time()? - start) / rounds as u64);
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default() as f64;
        let bytes = message.len() as f64;
        println!(
            "{name:28} {bytes:9.0} bytes {:12.1} us {:8.2} ns/byte {:8.1} MB/s",
            median / 1e3,
            median / bytes,
            bytes * 1e3 / median
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["names"] {
        cases().iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    if let [files, rest @ ..] = arguments.as_slice()
        && files == "files"
    {
        let read = |path: &String| Ok((path.clone(), result(&std::fs::read_to_string(path)?)));
        let cases: Vec<(String, String)> = rest.iter().map(read).collect::<std::io::Result<_>>()?;
        return times(&mut Bench::new(REMEMBERED_FOR_COUNTS)?, cases.iter().map(|(name, text)| (name.as_str(), text)));
    }
    if let [wanted, rounds] = arguments.as_slice() {
        let case = cases().into_iter().find(|(name, _)| name == wanted);
        let (name, message) = match case {
            Some(case) => case,
            None => ("file", result(&std::fs::read_to_string(wanted).map_err(|e| format!("speed: {wanted}: {e}"))?)),
        };
        let mut bench = Bench::new(REMEMBERED_FOR_COUNTS)?;
        for _ in 0..rounds.parse::<u32>()? {
            bench.step(name, &message);
        }
        println!("{}", message.len());
        return Ok(());
    }
    let before = resident();
    let start = processor_time()?;
    let mut bench = Bench::new(REMEMBERED)?;
    let each = (processor_time()? - start) / u64::from(REMEMBERED);
    println!(
        "remembering: {REMEMBERED} values, {each} ns each, {:.1} MiB more resident",
        (resident() - before) as f64 / 1024.0
    );
    println!("{:?}", bench.memory);
    let cases = cases();
    times(&mut bench, cases.iter().map(|(name, message)| (*name, message)))?;
    println!("beside {REMEMBERED_FOR_COUNTS} values:");
    let calls = cases.iter().filter(|(name, _)| name.starts_with("call"));
    times(&mut Bench::new(REMEMBERED_FOR_COUNTS)?, calls.map(|(name, message)| (*name, message)))
}
