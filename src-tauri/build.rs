//! Declares the commands that the windows may be given, so that a capability has to name each one.

use std::{error::Error, path::Path};

const COMMANDS: &[&str] = &[
    "question",
    "question_arguments",
    "answer",
    "later",
    "fit",
    "wanted_view",
    "overview",
    "servers",
    "plan",
    "carry_out",
    "activity",
    "open_question",
    "allow_folder",
    "close_folder",
    "server",
    "add_grant",
    "remove_grant",
    "accept_change",
    "observe",
    "stop_server",
];

fn main() -> Result<(), Box<dyn Error>> {
    if !Path::new("../ui/dist/prompt.html").is_file() {
        return Err("ui/dist is missing: build the windows first with `make ui`".into());
    }
    println!("cargo::rerun-if-changed=../ui/dist");
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    Ok(tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))?)
}
