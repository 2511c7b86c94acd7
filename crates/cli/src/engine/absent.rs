//! Where no engine can run.

use std::{env, path::PathBuf};

use firedoor_model::paths::Paths;

use crate::failure::Failure;

/// Firedoor's directories for this user.
pub fn paths() -> Result<Paths, Failure> {
    Ok(Paths::from_env(|name| env::var_os(name))?)
}

/// A program of ours, beside this one.
pub fn sibling(name: &str) -> Result<PathBuf, Failure> {
    let own =
        env::current_exe().map_err(|e| Failure::environment(format!("cannot find Firedoor's own directory: {e}")))?;
    Ok(own.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX)))
}
