//! `firedoor log`.

use std::{path::Path, process::ExitCode, time::Duration};

use firedoor_ipc::command::{LogQuery, Reply, Request, Row};
use firedoor_model::{EntryId, Finding, Millis, Untrusted, audit::What, launch::Access, quoted};
use firedoor_store::{Query, Store};

pub use crate::clock::now;
use crate::{
    engine::{Engine, paths, unexpected},
    failure::Failure,
    output,
    questions::place,
};

/// Longest line that is shown, in characters.
const MAX_LINE: usize = 16_000;

/// How rows are shown.
#[derive(Clone, Copy)]
pub enum Form {
    /// One JSON document each.
    Json,
    /// One line each.
    Line,
    /// With lines for what was found.
    Details,
}

impl Form {
    /// As the options say.
    pub fn of(json: bool, details: bool) -> Self {
        match (json, details) {
            (true, _) => Self::Json,
            (false, true) => Self::Details,
            (false, false) => Self::Line,
        }
    }
}

/// Shows rows, from the engine or, when none runs, from the database.
pub fn show(form: Form, follow: bool, server: Option<String>, since: Option<&str>) -> Result<ExitCode, Failure> {
    let since = since.map(|text| moment(text, now())).transpose()?;
    let query = LogQuery { server, since, follow };
    let engine = if follow { Some(Engine::running_or_started()?) } else { Engine::running()? };
    let Some(mut engine) = engine else { return stored(form, &query) };
    let (server, mut any) = (query.server.clone(), false);
    engine.send(&Request::Log(query))?;
    loop {
        match engine.next()? {
            Reply::Event(row) => {
                any = true;
                print(form, &row)?;
            }
            Reply::Done { .. } => {
                if !any {
                    nothing(server.as_deref(), since);
                }
                return Ok(ExitCode::SUCCESS);
            }
            _ => return Err(unexpected()),
        }
        // The next row may be long in coming, and nobody would see it.
        if output::stopped() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// A name may be a slip of the pen.
fn nothing(server: Option<&str>, since: Option<Millis>) {
    if let Some(server) = server {
        let since = if since.is_some() { " since then" } else { "" };
        output::remark(&format!("Nothing on record is about {}{since}", Untrusted::new(server).visible(200)));
    }
}

fn stored(form: Form, query: &LogQuery) -> Result<ExitCode, Failure> {
    let store = match Store::open_read_only(&paths()?.database()) {
        Err(firedoor_store::StoreError::Missing { .. }) => return Ok(ExitCode::SUCCESS),
        other => other?,
    };
    let mut after_seq = 0;
    loop {
        let rows = store.events(&Query {
            after_seq,
            entry: query.server.as_ref().and_then(|s| s.parse().ok()),
            server: query.server.clone().filter(|s| s.parse::<firedoor_model::EntryId>().is_err()),
            since: query.since,
            ..Query::default()
        })?;
        let Some(last) = rows.last() else {
            if after_seq == 0 {
                nothing(query.server.as_deref(), query.since);
            }
            return Ok(ExitCode::SUCCESS);
        };
        after_seq = last.seq;
        for row in rows {
            print(form, &Row { seq: row.seq, hash: row.hash, event: row.event })?;
        }
        if output::stopped() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn print(form: Form, row: &Row) -> Result<(), Failure> {
    if matches!(form, Form::Json) {
        return output::json(row);
    }
    let at = time(row.event.at);
    let entry = row.event.entry.as_ref().map(|e| Untrusted::new(e.to_string()).visible(120));
    output::line(&format!(
        "{:>6}  {at}  {}  {}",
        row.seq,
        entry.unwrap_or_else(|| "firedoor".into()),
        visible(&in_words(&row.event.what, row.event.entry.as_ref()))
    ));
    match &row.event.what {
        What::Judged { findings, .. } if matches!(form, Form::Details) => {
            findings.iter().for_each(|finding| output::line(&details(finding)));
        }
        What::Started { level, .. } if matches!(form, Form::Details) => {
            output::line(&visible(&format!("          sandbox: {level}")));
        }
        _ => {}
    }
    Ok(())
}

/// In UTC, to the millisecond, always as long as any other: columns must not shift.
fn time(at: Millis) -> String {
    let at = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map(|t| format!("{t:.3}")).unwrap_or_default()
}

/// The name in front of what a level means. Every start has it, and its sentence is long.
fn in_short(level: &str) -> &str {
    level.split_once(": ").map_or(level, |(name, _)| name)
}

/// Rows tell what others said, and a terminal obeys some of it.
fn visible(line: &str) -> String {
    Untrusted::new(line).visible(MAX_LINE)
}

/// Where a finding was seen, and what would make it go away.
fn details(finding: &Finding) -> String {
    let mut out =
        visible(&format!("          {} ({:?}, {:?})", finding.detector, finding.severity, finding.confidence));
    for evidence in &finding.evidence {
        out.push_str(&format!("\n            {}", visible(&place(evidence))));
    }
    if let Some(remedy) = finding.remedy() {
        out.push_str(&format!("\n            {remedy}"));
    }
    out
}

fn in_words(what: &What, entry: Option<&EntryId>) -> String {
    match what {
        What::Started { launch, level } => {
            format!("started ({}…), sandbox: {}", &launch.to_string()[..12], in_short(level))
        }
        What::Resumed => "taken over from an engine that died".into(),
        What::Ended { status } => format!("ended: {status}"),
        What::Refused { reason } => format!("not started: {reason}"),
        What::Judged { method, subject, verdict, reference, rule, findings } => {
            let mut text = format!("{:?} {}", verdict, method.visible(60));
            if let Some(subject) = subject {
                text.push_str(&format!(" {}", subject.visible(80)));
            }
            if let Some(reference) = reference {
                text.push_str(&format!(" [{reference}]"));
            }
            if let Some(rule) = rule {
                text.push_str(&format!(", by rule {rule}"));
            }
            for finding in findings {
                text.push_str(&format!("; {} ({})", finding.summary, finding.detector));
                if let (Some((folder, access)), Some(entry)) = (finding.folder(), entry) {
                    if refused_anyway(folder, access) {
                        text.push_str(". Its own permissions refuse you, too: no grant would change that");
                        continue;
                    }
                    text.push_str(&format!(". If it should: {}", grant_command(entry, folder, access)));
                }
            }
            text
        }
        What::Answered { reference, choice, duration } => format!("answer {choice:?} ({duration:?}) to {reference}"),
        What::Unanswered { reference } => format!("refused, because nobody answered {reference} in time"),
        What::Withdrawn { reference } => format!("question {reference} withdrawn: the agent gave the call up"),
        What::Expired { reference } => format!("question {reference} ended without an answer"),
        What::Noise { bytes, lines: 1 } => format!("dropped a line of {bytes} bytes that is no message"),
        What::Noise { bytes, lines } => format!("dropped {lines} lines that are no messages, {bytes} bytes in all"),
        What::Pinned { subject, changed } if changed.is_empty() => format!("pinned {}", subject.visible(80)),
        What::Pinned { subject, changed } => format!("{} changed: {}", subject.visible(80), changed.join(", ")),
        What::Command { text } => text.clone(),
        What::Denied { text, by, reason } => format!("denied to {}: {text} ({reason})", by.visible(80)),
        What::Noticed(notice) => notice.in_words(entry.map(EntryId::server)),
        What::Failed { reason } => format!("failed: {reason}"),
    }
}

/// Whether the system refuses the user what a grant would allow.
#[cfg(unix)]
fn refused_anyway(folder: &Path, access: Access) -> bool {
    use nix::{
        errno::Errno,
        unistd::{AccessFlags, access as may},
    };
    let how = if access == Access::Write { AccessFlags::W_OK } else { AccessFlags::R_OK };
    may(folder, how) == Err(Errno::EACCES)
}

#[cfg(not(unix))]
fn refused_anyway(_: &Path, _: Access) -> bool {
    false
}

/// The command that grants a folder, as a shell takes it.
fn grant_command(entry: &EntryId, folder: &Path, access: Access) -> String {
    let option = if access == Access::Write { "--rw" } else { "--ro" };
    let folder = quoted(&folder.to_string_lossy());
    format!("firedoor grants add {} {option} {folder}; then restart its client", entry.quoted())
}

/// Checks the chain. Exit code 1 when it is broken.
pub fn verify(json: bool) -> Result<ExitCode, Failure> {
    let (rows, bad) = match Engine::running()? {
        Some(mut engine) => match engine.ask(&Request::VerifyLog)? {
            Reply::Verified { rows, bad } => (rows, bad),
            _ => return Err(unexpected()),
        },
        None => {
            let verified = Store::open_read_only(&paths()?.database())?.verify()?;
            (verified.rows, verified.first_bad.map(|bad| (bad.seq, bad.why.to_string())))
        }
    };
    if json {
        let broken = bad.is_some();
        output::json(
            &serde_json::json!({ "rows": rows, "bad": bad.map(|(seq, why)| serde_json::json!({ "seq": seq, "why": why })) }),
        )?;
        return Ok(ExitCode::from(u8::from(broken)));
    }
    match bad {
        None => {
            output::line(&format!("{}, unbroken", output::counted(rows, "row", "rows")));
            Ok(ExitCode::SUCCESS)
        }
        Some((seq, why)) => Err(Failure::refused(format!("the audit log is broken at row {seq}: {why}"))),
    }
}

/// A time in RFC 3339, or so long before `now`.
pub fn moment(text: &str, now: Millis) -> Result<Millis, Failure> {
    if let Some(ago) = span(text) {
        return Ok(Millis(now.0.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))));
    }
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed
        .ok()
        .and_then(|t| u64::try_from(t.as_millisecond()).ok())
        .map(Millis)
        .ok_or_else(|| Failure::environment(format!("{text:?} is no time: use RFC 3339, or 90s, 10m, 2h, 3d")))
}

/// A span such as `10m`.
pub fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(Duration::from_secs(count.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let entry: EntryId =
            "cursor/user/f s".parse().unwrap_or_else(|_| EntryId::new("cursor", "user", "f s").unwrap());
        for (folder, access, want) in [
            (
                "/h/u/notes",
                Access::Read,
                "firedoor grants add cursor/user/f%20s --ro /h/u/notes; then restart its client",
            ),
            ("/a b", Access::Write, "firedoor grants add cursor/user/f%20s --rw '/a b'; then restart its client"),
            (
                "/a'$(x)",
                Access::Read,
                "firedoor grants add cursor/user/f%20s --ro '/a'\\''$(x)'; then restart its client",
            ),
            (
                "/a\nb",
                Access::Read,
                "firedoor grants add cursor/user/f%20s --ro '/a⟨U+000A⟩b'; then restart its client",
            ),
        ] {
            assert_eq!(grant_command(&entry, Path::new(folder), access), want);
        }
    }

    #[test]
    fn rows_do_nothing_to_a_terminal() {
        let denied = What::Denied {
            text: "answering \u{1b}]0;x\u{7} with allow".into(),
            by: "x".into(),
            reason: "\u{202e}it".into(),
        };
        let line = visible(&in_words(&denied, None));
        assert_eq!(line, "denied to x: answering ⟨U+001B⟩]0;x⟨U+0007⟩ with allow (⟨U+202E⟩it)");
        assert!(visible(&"x".repeat(1 << 20)).len() < 1 << 15);
    }

    #[test]
    fn times_are_of_one_length() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (790, "1970-01-01T00:00:00.790Z"),
            (1_700_000_000_848, "2023-11-14T22:13:20.848Z"),
        ] {
            assert_eq!(time(Millis(ms)), want);
        }
    }

    #[test]
    fn a_start_says_its_level_in_a_word() {
        let started = |level: &str| What::Started { launch: firedoor_model::Digest([0; 32]), level: level.into() };
        let said = in_words(&started("full: files are confined; memory is limited"), None);
        assert_eq!(said, "started (000000000000…), sandbox: full");
        assert!(in_words(&started("none"), None).ends_with("sandbox: none"));
    }

    #[test]
    fn moments() {
        let now = Millis(1_000_000_000);
        for (text, want) in [
            ("10s", Some(1_000_000_000 - 10_000)),
            ("2h", Some(1_000_000_000 - 7_200_000)),
            ("1970-01-01T00:00:05Z", Some(5_000)),
            ("1970-01-01T01:00:05+01:00", Some(5_000)),
            ("yesterday", None),
            ("5", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(moment(text, now).ok(), want.map(Millis), "{text}");
        }
    }
}
