//! Settings, and what an administrator has settled.

use std::path::PathBuf;

use firedoor_model::{Millis, Mode};
use serde::{Deserialize, Serialize};

/// Settings, and what an administrator has settled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The mode in force.
    pub mode: Mode,
    /// For how many days the log is kept.
    pub log_days: u32,
    /// Size of the database, in bytes.
    pub log_bytes: u64,
    /// The oldest row that is kept.
    pub oldest: Option<Millis>,
    /// Whether servers that appear are protected without a question; not those of projects.
    #[serde(default)]
    pub protect_new: bool,
    /// The administrator's file, if there is one.
    pub managed: Option<Managed>,
}

/// What an administrator has settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Managed {
    /// The file.
    pub file: PathBuf,
    /// The mode is at least this strict.
    pub mode: Option<Mode>,
    /// Rules that it adds.
    pub rules: usize,
}
