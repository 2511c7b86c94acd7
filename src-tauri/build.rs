//! Declares the commands that the windows may be given, so that a capability has to name each one.

use std::{env, error::Error, fs, path::Path, process::Command};

use serde_json::{Value, json};

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
    "log",
    "counts",
    "rules",
    "add_rule",
    "remove_rule",
    "restore_rule",
    "rule_from_row",
    "accept_suggestion",
    "settings",
    "set_mode",
    "verify_log",
    "export",
    "about",
    "open_question",
    "allow_folder",
    "close_folder",
    "server",
    "add_grant",
    "remove_grant",
    "accept_change",
    "observe",
    "stop_server",
    "login",
    "secrets",
    "sign_in",
    "visit",
    "remove_secret",
    "pause",
    "resume",
];

fn main() -> Result<(), Box<dyn Error>> {
    if !Path::new("../ui/dist/prompt.html").is_file() {
        return Err("ui/dist is missing: build the windows first with `make ui`".into());
    }
    println!("cargo::rerun-if-changed=../ui/dist");
    write_parts()?;
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    Ok(tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))?)
}

/// Lists the libraries that this program may contain, with their licences, for the window that says so.
fn write_parts() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../Cargo.lock");
    let mut cargo = Command::new(env::var_os("CARGO").ok_or("CARGO is not set")?);
    // What is built is there already: nothing is fetched.
    cargo.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &env::var("TARGET")?]);
    let said = cargo.output()?;
    if !said.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&said.stderr)).into());
    }
    let metadata: Value = serde_json::from_slice(&said.stdout)?;
    let needed: Vec<&Value> = metadata["resolve"]["nodes"].as_array().into_iter().flatten().map(|n| &n["id"]).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let libraries = packages.filter(|p| !p["source"].is_null() && needed.contains(&&p["id"]));
    let mut parts: Vec<Value> = libraries
        .map(|p| json!({ "name": p["name"], "version": p["version"], "licence": p["license"].as_str().unwrap_or("see its files") }))
        .collect();
    // Of the windows.
    for (name, version) in npm()? {
        parts.push(json!({ "name": name, "version": version, "licence": "MIT" }));
    }
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    Ok(fs::write(Path::new(&out).join("parts.json"), serde_json::to_string(&parts)?)?)
}

/// What the windows are built with and contain. Both are under the MIT licence, which a new version would not change unseen.
fn npm() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../ui/package-lock.json");
    let lock: Value = serde_json::from_str(&fs::read_to_string("../ui/package-lock.json")?)?;
    let find = |name: &str| {
        let package = &lock["packages"][format!("node_modules/{name}")];
        match (package["version"].as_str(), package["license"].as_str()) {
            (Some(version), Some("MIT" | "Apache-2.0 OR MIT")) => Ok((name.to_owned(), version.to_owned())),
            found => Err(format!("{name} in ui/package-lock.json: {found:?}")),
        }
    };
    Ok(["svelte", "@tauri-apps/api"].into_iter().map(find).collect::<Result<_, _>>()?)
}
