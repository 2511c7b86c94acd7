//! A file that the sandbox closed to a server, as a finding.

use firedoor_launch::{Closed, Remedy};
use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Severity, Untrusted, Verdict,
    audit::What,
    finding::{GRANT_READ, GRANT_WRITE, Role, SANDBOX_FILE},
    launch::Access,
};

/// Who says that a file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// The guardian, which saw the call.
    Guardian,
    /// The server itself, in what this tool returned.
    Tool(&'a str),
}

/// The audit row of a refused file. The sandbox has refused it already; nobody is asked.
pub fn judged(entry: &EntryId, told: Told<'_>, closed: &Closed) -> What {
    let evidence = |pointer: &str, excerpt: String| Evidence {
        role: Role::Place,
        entry: Some(entry.clone()),
        tool: match told {
            Told::Tool(name) if !name.is_empty() => Some(Untrusted::new(name)),
            Told::Tool(_) | Told::Guardian => None,
        },
        pointer: Untrusted::new(pointer),
        span: None,
        excerpt: Untrusted::new(excerpt),
        transform: None,
        age_ms: None,
    };
    let (method, tried) = match closed.access {
        Access::List => ("list", "list this folder"),
        Access::Read => ("read", "read this file"),
        Access::Edit | Access::Write => ("write", "write here"),
    };
    let shown: String = Untrusted::new(closed.shown.as_str()).visible(200);
    let mut all = vec![evidence("/path", shown.clone())];
    let (severity, advice) = match &closed.remedy {
        Remedy::Folder(folder) => {
            let pointer = if closed.access == Access::Write { GRANT_WRITE } else { GRANT_READ };
            all.push(evidence(pointer, folder.to_string_lossy().into_owned()));
            (Severity::Low, "")
        }
        Remedy::Protected => (
            Severity::Medium,
            ". It is a protected place, where keys, passwords or programs of yours lie: grant it only if you know why the server needs it",
        ),
        Remedy::None => (Severity::Low, ""),
    };
    // Its own word is worth less than what was seen: it may name a file that it never tried to open.
    let (who, confidence) = match told {
        Told::Guardian => ("the server", Confidence::Certain),
        Told::Tool(_) => ("the server says that it", Confidence::Likely),
    };
    let finding = Finding {
        detector: SANDBOX_FILE.into(),
        severity,
        confidence,
        summary: format!("{who} tried to {tried}; the sandbox did not let it{advice}"),
        evidence: all,
    };
    What::Judged {
        method: Untrusted::new(method),
        subject: Some(Untrusted::new(shown)),
        verdict: Verdict::Block,
        reference: None,
        rule: None,
        findings: vec![finding],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_offered_and_a_protected_place_is_not() {
        let entry: EntryId = "a/b/c".parse().unwrap();
        let of = |access, remedy, told| {
            let What::Judged { findings, .. } = judged(&entry, told, &Closed { shown: "~/x/y".into(), access, remedy })
            else {
                panic!("another kind of row")
            };
            (findings[0].folder().map(|(path, access)| (path.to_owned(), access)), findings[0].summary.clone())
        };
        let folder = || Remedy::Folder("/h/x".into());
        for (access, want) in
            [(Access::Read, Access::Read), (Access::Write, Access::Write), (Access::List, Access::Read)]
        {
            assert_eq!(of(access, folder(), Told::Guardian).0, Some(("/h/x".into(), want)));
        }
        let (offered, said) = of(Access::Read, Remedy::Protected, Told::Tool("t"));
        assert!(offered.is_none() && said.contains("says that it tried to read") && said.contains("protected place"));
        assert_eq!(of(Access::Read, Remedy::None, Told::Guardian).0, None);
    }
}
