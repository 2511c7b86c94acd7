//! Lists the files of `profiles/clients/`, so that adding a client is adding a file there.

use std::{env, error::Error, ffi::OsStr, fmt::Write as _, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../profiles/clients");
    println!("cargo::rerun-if-changed={}", dir.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension() == Some(OsStr::new("toml")));
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.file_stem().and_then(OsStr::to_str).ok_or("a client's file name is not UTF-8")?;
        let path = file.to_str().ok_or("the source directory's name is not UTF-8")?;
        writeln!(list, "    ({name:?}, include_str!({path:?})),")?;
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("clients.rs"), list)?;
    Ok(())
}
