//! Writes the table of system calls as Rust, so that no start of a server has to parse it, and links what would have to be looked
//! for at each start.

use std::{env, error::Error, fs, path::PathBuf};

#[path = "src/linux/seccomp/source.rs"]
mod source;

fn main() -> Result<(), Box<dyn Error>> {
    let table = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../profiles/seccomp/linux.toml");
    println!("cargo::rerun-if-changed={}", table.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/linux/seccomp/source.rs");
    let source = source::Source::parse(&fs::read_to_string(&table)?);
    let source = source.map_err(|e| format!("{}: {e}", table.display()))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("calls.rs"), source.to_rust())?;
    // GCC's unwinder as a part of the program: loading the shared one takes each process 75 us of its start.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|is| is == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
    Ok(())
}
