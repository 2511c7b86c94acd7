//! What fuzz targets do with their input. A target panics when a property does not hold.
//!
//! `make fuzz` runs each with libFuzzer (`libfuzzer/`); `tests/replay.rs` runs what is in `corpus/`.
#![expect(clippy::unwrap_used, reason = "properties of fuzz targets fail like tests")]

use std::{io::Write, os::fd::AsFd, os::unix::net::UnixStream, sync::OnceLock};

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_ipc::wire::Receiver;
use firedoor_model::wire::{CallView, Frame, Leaves};

/// One target.
pub type Target = fn(&[u8]);

/// All of them, by the name of their binary and of their folder in `corpus/`.
pub const TARGETS: [(&str, Target); 9] = [
    ("dns", firedoor_sandbox::fuzz::dns),
    ("dns_stream", firedoor_sandbox::fuzz::dns_stream),
    ("socket_address", firedoor_sandbox::fuzz::socket_address),
    ("message", firedoor_sandbox::fuzz::message),
    ("program", firedoor_sandbox::fuzz::program),
    ("document", firedoor_clients::fuzz::document),
    ("json_views", json_views),
    ("ipc_frames", ipc_frames),
    ("inspect", inspect),
];

/// Runs the target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    target(bytes);
}

/// Leaves lie in the text that was walked, in order; what was parsed once parses again.
fn json_views(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    let text = std::str::from_utf8(bytes).unwrap().trim_ascii();
    assert_eq!(Frame::parse(text.as_bytes()).unwrap().messages().len(), frame.messages().len());
    let mut end = 0;
    for leaf in Leaves::of(text) {
        assert!(leaf.span.0 >= end && text.get(leaf.span.0..leaf.span.1).is_some());
        end = leaf.span.1;
        let _ = firedoor_model::wire::pointer(text, leaf.span.0);
    }
    let _ = CallView::parse(Some(text), "name");
}

/// Frames come out of a stream without descriptors, whatever their headers say.
fn ipc_frames(bytes: &[u8]) {
    let (mut writer, reader) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    // What does not fit into the socket at once is left out.
    let _ = writer.write(bytes);
    drop(writer);
    let mut receiver = Receiver::default();
    while receiver.receive(reader.as_fd()).is_ok_and(|n| n > 0) {
        while let Ok(Some(frame)) = receiver.next_frame() {
            assert!(frame.fds.is_empty());
            let _ = frame.message::<firedoor_ipc::Hello>();
            let _ = frame.message::<serde_json::Value>();
        }
    }
}

/// The detectors of results, definitions and credentials look at every text.
fn inspect(bytes: &[u8]) {
    static INSPECTOR: OnceLock<Inspector> = OnceLock::new();
    let inspector = INSPECTOR.get_or_init(Inspector::new);
    let text = String::from_utf8_lossy(bytes);
    let definition = serde_json::json!({"name": text, "description": text});
    for record in [
        serde_json::json!({"id": "x", "kind": "tool_result", "text": text}),
        serde_json::json!({"id": "x", "kind": "tool_description", "payload": definition}),
        serde_json::json!({"id": "x", "kind": "secret", "payload": text}),
    ] {
        assert!(inspect_record(inspector, &record.to_string()).is_ok(), "a record that was not looked at");
    }
}
