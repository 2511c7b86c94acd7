//! What would change in which file, and what became of it.

use std::path::Path;

use firedoor_clients::{
    Clients, FilePlan, FileProblem, FileResult, Plan,
    verify::{Outcome, Verified},
};
use firedoor_model::EntryId;
use serde::{Deserialize, Serialize};

use super::{app_name, lines, name, path, sentence};

/// Of one file's diff. A file is at most a few hundred KiB; what no person reads is cut, visibly.
const DIFF: usize = 200_000;

/// Protect or restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ActionView {
    Protect,
    Restore,
}

/// What would be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlanView {
    /// What carrying it out must bring along.
    pub nonce: String,
    pub action: ActionView,
    pub files: Vec<FilePlanView>,
    pub left: Vec<LeftView>,
    pub problems: Vec<String>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FilePlanView {
    pub app: String,
    pub path: String,
    pub servers: Vec<String>,
    /// Unified diff, secrets left out.
    pub diff: String,
}

/// An entry that stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LeftView {
    pub app: String,
    pub server: String,
    pub reason: String,
}

impl PlanView {
    /// For showing.
    pub fn new(nonce: String, action: ActionView, plan: &Plan, clients: &Clients, home: &Path) -> Self {
        let left = plan.skipped.iter().map(|s| LeftView {
            app: app_name(clients, &s.id),
            server: name(s.id.server()),
            reason: sentence(&s.reason),
        });
        Self {
            nonce,
            action,
            files: plan.files.iter().map(|f| FilePlanView::new(f, clients, home)).collect(),
            left: left.collect(),
            problems: plan.problems.iter().map(|p: &FileProblem| sentence(&p.problem.message)).collect(),
        }
    }
}

impl FilePlanView {
    /// For showing.
    pub fn new(file: &FilePlan, clients: &Clients, home: &Path) -> Self {
        Self {
            app: file.entries.first().map(|e| app_name(clients, e)).unwrap_or_default(),
            path: path(&file.path, home),
            servers: file.entries.iter().map(|e| name(e.server())).collect(),
            diff: lines(&file.diff, DIFF),
        }
    }
}

/// One step of carrying a plan out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum ProgressView {
    /// A file was written, or not.
    File(FileDoneView),
    /// An entry is being started directly and through Firedoor.
    Checking { entry: String, app: String, server: String },
    /// It was compared.
    Checked(CheckedView),
}

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FileDoneView {
    pub path: String,
    pub changed: u32,
    /// Whether it is byte for byte what it was before Firedoor.
    pub original: bool,
    pub error: Option<String>,
}

impl FileDoneView {
    /// For showing.
    pub fn new(done: &FileResult, home: &Path) -> Self {
        let applied = done.result.as_ref().ok();
        Self {
            path: path(&done.path, home),
            changed: applied.map_or(0, |a| u32::try_from(a.changed.len()).unwrap_or(u32::MAX)),
            original: applied.is_some_and(|a| a.original),
            error: done.result.as_ref().err().map(|e| sentence(&e.to_string())),
        }
    }
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CheckedView {
    pub entry: String,
    pub app: String,
    pub server: String,
    pub result: ResultView,
    /// Tools listed through Firedoor.
    pub tools: Option<u32>,
    pub reason: Option<String>,
}

/// How an entry stands after the check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ResultView {
    Same,
    /// Through Firedoor; there is nothing to compare it with.
    Answers,
    Unverified,
    RolledBack,
    Stuck,
}

impl CheckedView {
    /// Before the check.
    pub fn pending(entry: &EntryId, clients: &Clients) -> ProgressView {
        ProgressView::Checking {
            entry: sentence(&entry.to_string()),
            app: app_name(clients, entry),
            server: name(entry.server()),
        }
    }

    /// For showing.
    pub fn new(outcome: &Outcome, clients: &Clients) -> Self {
        let count = |tools: &usize| Some(u32::try_from(*tools).unwrap_or(u32::MAX));
        let (result, tools, reason) = match &outcome.verified {
            Verified::Same { tools } => (ResultView::Same, count(tools), None),
            Verified::Answers { tools } => (ResultView::Answers, count(tools), None),
            Verified::Unverified { reason } => (ResultView::Unverified, None, Some(reason)),
            Verified::RolledBack { reason } => (ResultView::RolledBack, None, Some(reason)),
            Verified::Stuck { reason } => (ResultView::Stuck, None, Some(reason)),
        };
        Self {
            entry: sentence(&outcome.entry.to_string()),
            app: app_name(clients, &outcome.entry),
            server: name(outcome.entry.server()),
            result,
            tools,
            reason: reason.map(|r| sentence(r)),
        }
    }
}
