//! What observe mode saw, for people and for programs.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use firedoor_ipc::command::{Observation, Reply, Request};
use firedoor_launch::Proposal;
use firedoor_model::escaped;
use firedoor_model::{
    EntryId, Untrusted,
    network::AttemptKind,
    observation::{Record, Use},
};

use crate::{
    arguments::ObserveArgument,
    engine::{Engine, paths, unexpected},
    failure::Failure,
    output,
    questions::settled,
    settings::known,
};

/// Longest record that is read: the guardian writes less.
const MAX_RECORD: u64 = 16 << 20;
/// Most lines of one section, for people.
const MAX_LINES: usize = 40;
/// Longest text of one line, in characters.
const MAX_TEXT: usize = 300;

/// Switches observing on or off for an entry, or shows what was seen.
pub fn run(entry: EntryId, what: ObserveArgument, projects: Vec<PathBuf>, json: bool) -> Result<ExitCode, Failure> {
    let mut engine = Engine::running_or_started()?;
    let on = match what {
        ObserveArgument::On => {
            known(&mut engine, &entry, projects)?;
            true
        }
        ObserveArgument::Off => false,
        ObserveArgument::Show => {
            let seen = match engine.ask(&Request::Observation { entry })? {
                Reply::Observation(seen) => *seen,
                Reply::Failed { text } => return Err(Failure::refused(text)),
                _ => return Err(unexpected()),
            };
            let Observation { at, running, record, basis } = seen;
            let proposal = firedoor_launch::propose(&record, &basis, &paths()?);
            if json {
                output::json(&serde_json::json!({
                    "at": at, "running": running, "record": record.seen, "proposal": proposal
                }))?;
            } else {
                in_words(&record, &proposal).lines().for_each(output::line);
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !json {
        return settled(&mut engine, &Request::Observe { entry, on }, json);
    }
    match engine.ask(&Request::Observe { entry: entry.clone(), on })? {
        Reply::Done { .. } => {
            output::json(&serde_json::json!({ "entry": entry, "observe_next": on }))?;
            Ok(ExitCode::SUCCESS)
        }
        Reply::Failed { text } | Reply::Refused { text } => Err(Failure::refused(text)),
        _ => Err(unexpected()),
    }
}

/// How a record is to be shown.
pub struct Wanted {
    /// Here instead of on stderr.
    pub file: Option<PathBuf>,
    /// As one JSON document.
    pub json: bool,
}

/// Reads what the guardian wrote.
pub fn record(file: Option<BorrowedFd<'_>>) -> Result<Record, Failure> {
    let Some(file) = file else {
        return Err(Failure::environment(
            "nothing was observed: this machine does not notify the guardian of system calls; see `firedoor sandbox doctor`",
        ));
    };
    let failed = |e: io::Error| Failure::environment(format!("the record of the run cannot be read: {e}"));
    let file = File::from(file.try_clone_to_owned().map_err(failed)?);
    let length = file.metadata().map_err(failed)?.len().min(MAX_RECORD);
    let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut text, 0).map_err(failed)?;
    Record::from_lines(&text).ok_or_else(|| Failure::environment("the record of the run does not read"))
}

/// Shows a record and what follows from it.
pub fn show(record: &Record, proposal: &Proposal, wanted: &Wanted) -> Result<(), Failure> {
    let text = if wanted.json {
        escaped(serde_json::to_string(&serde_json::json!({ "record": record.seen, "proposal": proposal }))?)
    } else {
        in_words(record, proposal)
    };
    match &wanted.file {
        None => output::remark(&text),
        Some(file) => fs::write(file, text + "\n")
            .map_err(|e| Failure::environment(format!("{}: the record cannot be written: {e}", file.display())))?,
    }
    Ok(())
}

/// A record for people: what was used by directory, what was refused one by one, and the proposal.
pub fn in_words(record: &Record, proposal: &Proposal) -> String {
    let mut out = String::new();
    let files = |wanted: &dyn Fn(Use) -> bool| -> Vec<&Untrusted> {
        record.files().filter(|(_, how, allowed)| *allowed && wanted(*how)).map(|(path, ..)| path).collect()
    };
    section(&mut out, "Started", files(&|how| how == Use::Execute).into_iter().map(shown).collect());
    section(&mut out, "Read", by_directory(&files(&|how| matches!(how, Use::Read | Use::List))));
    section(&mut out, "Written", by_directory(&files(&|how| matches!(how, Use::Write | Use::Create))));
    let connections = |wanted: bool| {
        let those = record.connections().filter(move |(.., allowed)| *allowed == wanted);
        those.map(|(kind, target, _)| {
            let what = match kind {
                AttemptKind::Network => "",
                AttemptKind::Listen => "listen at ",
                AttemptKind::Socket => "socket ",
                AttemptKind::Resource => "limit: ",
                AttemptKind::File => "protected ",
            };
            format!("{what}{}", shown(target))
        })
    };
    section(&mut out, "Connected to", connections(true).collect());
    let refused = record.files().filter(|(.., allowed)| !allowed).map(|(path, how, _)| {
        let what = match how {
            Use::List => "list",
            Use::Read => "read",
            Use::Execute => "start",
            Use::Write => "write",
            Use::Create => "make, rename or remove",
        };
        format!("{what} {}", shown(path))
    });
    section(&mut out, "Refused", refused.chain(connections(false)).collect());
    section(&mut out, "Mind", proposal.warnings.iter().map(|w| Untrusted::new(w.as_str()).visible(MAX_TEXT)).collect());
    out.push_str(&format!("Proposed profile, for {}.toml in Firedoor's directory of profiles:\n\n", proposal.name));
    out.push_str(&proposal.toml);
    out
}

fn shown(text: &Untrusted) -> String {
    text.visible(MAX_TEXT)
}

fn by_directory(paths: &[&Untrusted]) -> Vec<String> {
    let mut directories: BTreeMap<&Path, usize> = BTreeMap::new();
    for path in paths {
        let path = Path::new(path.raw());
        *directories.entry(path.parent().unwrap_or(path)).or_default() += 1;
    }
    let line =
        |(dir, count): (&Path, usize)| format!("{count:>5}  in {}", shown(&Untrusted::new(dir.to_string_lossy())));
    directories.into_iter().map(line).collect()
}

fn section(out: &mut String, name: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("{name}:\n"));
    lines.iter().take(MAX_LINES).for_each(|line| out.push_str(&format!("  {line}\n")));
    if lines.len() > MAX_LINES {
        out.push_str(&format!("  and {} more\n", lines.len() - MAX_LINES));
    }
}
