//! Prints what inspecting costs, in nanoseconds per call. Run with `--release`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::{hint::black_box, time::Instant};

use firedoor_inspect::{Call, CallLabel, Inspector, Limits, Memory, Sink, Source};
use firedoor_model::{EntryId, Millis};

fn time(name: &str, bytes: usize, mut step: impl FnMut()) {
    let rounds = (20_000_000 / (bytes + 500)).max(5);
    for _ in 0..rounds / 10 + 1 {
        step();
    }
    let start = Instant::now();
    for _ in 0..rounds {
        step();
    }
    let each = start.elapsed().as_nanos() as f64 / rounds as f64;
    println!("{name:48} {each:12.0} ns  {:8.2} ns/byte", each / bytes as f64);
}

fn main() {
    let start = Instant::now();
    let inspector = Inspector::new();
    println!("{:48} {:12} ns", "Inspector::new", start.elapsed().as_nanos());

    let (files, net): (EntryId, EntryId) = ("c/user/files".parse().unwrap(), "c/user/net".parse().unwrap());
    let source = |label| Source { entry: &files, method: "tools/call", subject: "read_file", label, now: Millis(1) };
    let private = CallLabel { private: true, sink: Sink::Local };
    let prose = "The quick brown fox jumps over the lazy dog, and then writes fn main() { let x = 42; } about it.\n";
    let other =
        "Some quite different words were kept in this private place, one after another, since nineteen eighty.\n";
    let kept = serde_json::json!({"content":[{"type":"text","text":other.repeat(10_000)}]}).to_string();
    let small_result = serde_json::json!({"content":[{"type":"text","text":prose.repeat(5)}]}).to_string();
    let big_result = serde_json::json!({"content":[{"type":"text","text":prose.repeat(10_000)}]}).to_string();
    let small_call = r#"{"path":"/home/u/src/main.rs","query":"how do I open a file in Rust?","limit":20}"#;
    let big_call = serde_json::json!({"body": prose.repeat(10_000)}).to_string();
    let secret = format!("gh{}_{}", "p", "a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U");
    let secret_result = serde_json::json!({"content":[{"type":"text","text":format!("token {secret}\n")}]}).to_string();
    let encoded = data_encoding::BASE64.encode(prose.repeat(10_000).as_bytes());
    let encoded_call = serde_json::json!({"body": encoded}).to_string();

    let mut clean = Memory::new(Limits::default());
    let mut loaded = Memory::new(Limits::default());
    inspector.result(&mut loaded, &source(private), &kept);
    inspector.result(&mut loaded, &source(private), &secret_result);
    for i in 0..200 {
        inspector.result(&mut loaded, &source(CallLabel::default()), &small_result.replace("fox", &format!("fox{i}")));
    }
    let call = |arguments| Call {
        entry: &net,
        method: "tools/call",
        subject: "search",
        arguments: Some(arguments),
        sink: Sink::External,
        now: Millis(2),
    };
    time("small call, empty memory", small_call.len(), || {
        black_box(inspector.call(&mut clean, &call(small_call)));
    });
    time("small call, full memory", small_call.len(), || {
        black_box(inspector.call(&mut loaded, &call(small_call)));
    });
    time("label of a small call", small_call.len(), || {
        black_box(inspector.label(&call(small_call)));
    });
    time("1 MB call, full memory", big_call.len(), || {
        black_box(inspector.call(&mut loaded, &call(&big_call)));
    });
    time("1.3 MB base64 call, full memory", encoded_call.len(), || {
        black_box(inspector.call(&mut loaded, &call(&encoded_call)));
    });
    let mut idle = Memory::new(Limits { ordinary_bytes: 0, ..Limits::default() });
    time("1 MB result, credentials only", big_result.len(), || {
        black_box(inspector.result(&mut idle, &source(CallLabel::default()), &big_result));
    });
    time("small result", small_result.len(), || {
        black_box(inspector.result(&mut loaded, &source(CallLabel::default()), &small_result));
    });
    time("1 MB result", big_result.len(), || {
        black_box(inspector.result(&mut loaded, &source(CallLabel::default()), &big_result));
    });
    time("1 MB private result", big_result.len(), || {
        black_box(inspector.result(&mut loaded, &source(private), &big_result));
    });
    println!("{loaded:?}");
}
