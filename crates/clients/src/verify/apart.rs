//! Protecting in a process of its own.
//!
//! Seeing whether a server answers starts the shim, so the engine takes the process that does it for an AI client, and
//! refuses it and its children what weakens protection. That must be no process that answers questions.

use std::{
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
};

use firedoor_model::EntryId;
use serde::Deserialize;

use super::Outcome;

/// Most of what `firedoor protect --json` prints. It is one line.
const MOST: u64 = 1 << 20;

/// What became of the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Protected, and what was seen of each.
    pub outcomes: Vec<Outcome>,
    /// Why something was not done, one sentence each.
    pub failed: Vec<String>,
}

/// What is read of the report.
#[derive(Deserialize)]
struct Report {
    files: Vec<File>,
    skipped: Vec<Left>,
    #[serde(default)]
    verified: Vec<Outcome>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct Left {
    entry: EntryId,
    reason: String,
}

/// Has `firedoor` protect these entries, and see whether each answers, confined. Nothing is started unconfined: nobody
/// was asked. Takes as long as the servers take to answer.
pub fn protect_apart(firedoor: &Path, entries: &[EntryId]) -> Result<Apart, String> {
    let mut command = Command::new(firedoor);
    command.args(["protect", "--yes", "--confined", "--json"]).args(entries.iter().map(EntryId::to_string));
    // Where we were started may be gone by now, and is nobody's project.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("{firedoor:?} cannot be started: {e}"))?;
    let mut said = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |out| out.take(MOST).read_to_end(&mut said));
    let status = child.wait().map_err(|e| e.to_string())?;
    read.map_err(|e| e.to_string())?;
    let report: Report = serde_json::from_slice(&said).map_err(|_| format!("{firedoor:?} protect ended: {status}"))?;
    let files = report.files.into_iter().filter_map(|f| Some(format!("{}: {}", f.path, f.error?)));
    let left = report.skipped.into_iter().map(|left| format!("{}: {}", left.entry, left.reason));
    Ok(Apart { outcomes: report.verified, failed: files.chain(left).collect() })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::verify::Verified;

    #[test]
    fn what_the_other_process_says_is_read_and_nothing_else_is_success() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("firedoor");
        let entry: EntryId = "cursor/user/fs".parse().unwrap();
        let check = |script: &str| {
            let text = format!("#!/bin/sh\n{script}\n");
            // Written beside and renamed: a program that is open for writing cannot be started.
            fs::write(dir.path().join("new"), text).unwrap();
            fs::set_permissions(dir.path().join("new"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::rename(dir.path().join("new"), &program).unwrap();
            protect_apart(&program, std::slice::from_ref(&entry))
        };
        let said = check(
            r#"echo '{"files":[{"path":"/a","ok":true,"original":false,"entries":[]},{"path":"/b","ok":false,"error":"busy"}],
            "skipped":[{"entry":"cursor/user/x","reason":"why"}],"problems":[],
            "verified":[{"entry":"cursor/user/fs","verified":"answers","tools":3}]}'; exit 1"#,
        );
        let outcomes = vec![Outcome { entry: entry.clone(), verified: Verified::Answers { tools: 3 } }];
        let failed = vec!["/b: busy".to_owned(), "cursor/user/x: why".to_owned()];
        assert_eq!(said, Ok(Apart { outcomes, failed }));
        for script in ["exit 0", "echo nonsense", "yes | head -c 3000000"] {
            assert!(check(script).is_err(), "{script}");
        }
        assert!(protect_apart(Path::new("/nonexistent"), &[entry]).unwrap_err().contains("cannot be started"));
    }
}
