//! Settings, and what this program is made of.

use firedoor_ipc::command::Settings;
use firedoor_model::Mode;
use serde::{Deserialize, Serialize};

use super::{name, sentence};

/// Settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SettingsView {
    pub mode: ModeView,
    pub log_days: u32,
    #[cfg_attr(test, ts(type = "number"))]
    pub log_bytes: u64,
    /// The oldest row of the log.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub oldest: Option<u64>,
    /// Whether servers that appear are protected without a question.
    pub protect_new: bool,
    pub managed: Option<ManagedView>,
}

/// How eagerly Firedoor interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ModeView {
    Watch,
    Balanced,
    Strict,
}

impl From<Mode> for ModeView {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Watch => Self::Watch,
            Mode::Balanced => Self::Balanced,
            Mode::Strict => Self::Strict,
        }
    }
}

impl From<ModeView> for Mode {
    fn from(mode: ModeView) -> Self {
        match mode {
            ModeView::Watch => Self::Watch,
            ModeView::Balanced => Self::Balanced,
            ModeView::Strict => Self::Strict,
        }
    }
}

/// What an administrator has settled.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ManagedView {
    pub file: String,
    pub mode: Option<ModeView>,
    pub rules: u32,
}

/// What a check of the log found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct VerifiedView {
    #[cfg_attr(test, ts(type = "number"))]
    pub rows: u64,
    /// The first row that is wrong.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub bad: Option<u64>,
    /// What is wrong with it.
    pub why: Option<String>,
}

/// What can be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ExportView {
    Log,
    Rules,
}

/// What this program is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AboutView {
    pub version: String,
    pub parts: Vec<PartView>,
}

/// A library in this program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PartView {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
}

impl SettingsView {
    /// For showing.
    pub fn new(settings: &Settings) -> Self {
        let Settings { mode, log_days, log_bytes, oldest, protect_new, managed } = settings;
        Self {
            mode: (*mode).into(),
            log_days: *log_days,
            log_bytes: *log_bytes,
            oldest: oldest.map(|t| t.0),
            protect_new: *protect_new,
            managed: managed.as_ref().map(|m| ManagedView {
                file: sentence(&m.file.to_string_lossy()),
                mode: m.mode.map(Into::into),
                rules: u32::try_from(m.rules).unwrap_or(u32::MAX),
            }),
        }
    }
}

impl VerifiedView {
    /// For showing.
    pub fn new(rows: u64, bad: Option<(u64, String)>) -> Self {
        let (bad, why) = bad.map(|(seq, why)| (seq, sentence(&why))).unzip();
        Self { rows, bad, why }
    }
}

impl AboutView {
    /// From the list that was made when this program was built.
    pub fn new(list: &str) -> Self {
        let parts: Vec<PartView> = serde_json::from_str(list).unwrap_or_default();
        let shown =
            |p: PartView| PartView { name: name(&p.name), version: name(&p.version), licence: name(&p.licence) };
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), parts: parts.into_iter().map(shown).collect() }
    }
}
