//! The text of a proposal. Everything in it that a server had a say in is quoted as TOML quotes it.

use std::path::Path;

use firedoor_model::{launch::Access, observation::Basis};

use super::{Draft, Half, Proposal};

/// How many refused lines of one list are shown.
const MAX_REFUSED: usize = 200;

pub(super) fn proposal(draft: &Draft, basis: &Basis, home: &Path) -> Proposal {
    let (kind, subject) = basis.subject.clone().unwrap_or_else(|| ("executable".into(), String::new()));
    let name = match &basis.extends {
        Some((profile, true)) => format!("{profile}-more"),
        Some((profile, false)) => profile.clone(),
        None => file_name(&subject),
    };
    let about = if subject.is_empty() { "a server" } else { subject.as_str() };
    let mut out = String::from(
        "# Proposed from one observed run. It opens what the server used and was allowed. Lines with a # are what it was\n\
         # refused: take the # away where its work needs that, and leave the rest.\n",
    );
    out.push_str(&format!("description = {}\n", quoted(&format!("{about}, as observed."))));
    if let Some((profile, _)) = &basis.extends {
        out.push_str(&format!("extends = {}\n", quoted(profile)));
    }
    argument_access(&mut out, draft.allowed.args, draft.refused.args);
    let (allowed, refused) = (&draft.allowed, &draft.refused);
    for (key, access) in [("list", Access::List), ("read", Access::Read), ("write", Access::Write)] {
        let paths = |half: &Half| -> Vec<String> {
            let those = half.paths.iter().filter(|(_, a)| **a == access);
            those.map(|(path, _)| shown(path, home)).collect()
        };
        list(&mut out, key, &paths(allowed), &paths(refused));
    }
    let texts = |of: &std::collections::BTreeSet<String>| of.iter().cloned().collect::<Vec<_>>();
    list(&mut out, "hosts", &texts(&allowed.hosts), &texts(&refused.hosts));
    list(&mut out, "unix", &texts(&allowed.sockets), &texts(&refused.sockets));
    match (allowed.listen, refused.listen) {
        (true, _) => out.push_str("listen = true\n"),
        (false, true) => out.push_str("# listen = true\n"),
        (false, false) => {}
    }
    out.push_str("\n[match]\n");
    if subject.is_empty() {
        out.push_str("# Used only when it is named: firedoor sandbox run --profile\n");
    } else {
        out.push_str(&format!("{kind} = [{}]\n", quoted(&subject)));
    }
    Proposal { name, toml: out, warnings: draft.warnings.clone() }
}

fn argument_access(out: &mut String, allowed: Option<Access>, refused: Option<Access>) {
    let word = |access| if access == Access::Write { "rw" } else { "ro" };
    if let Some(access) = allowed {
        out.push_str(&format!("args = \"{}\"\n", word(access)));
    }
    if let Some(access) = refused.filter(|r| Some(*r) > allowed) {
        out.push_str(&format!("# args = \"{}\"\n", word(access)));
    }
}

fn list(out: &mut String, key: &str, granted: &[String], refused: &[String]) {
    if granted.is_empty() && refused.is_empty() {
        return;
    }
    out.push_str(&format!("{key} = [\n"));
    granted.iter().for_each(|text| out.push_str(&format!("  {},\n", quoted(text))));
    refused.iter().take(MAX_REFUSED).for_each(|text| out.push_str(&format!("  # {},\n", quoted(text))));
    if refused.len() > MAX_REFUSED {
        out.push_str(&format!("  # and {} more\n", refused.len() - MAX_REFUSED));
    }
    out.push_str("]\n");
}

/// A path as profiles spell it.
pub(crate) fn shown(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}

/// A TOML basic string on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A file name that says what it is for: the package's name without its scope.
fn file_name(subject: &str) -> String {
    let last = subject.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = last.chars().take(64).map(plain).collect();
    if name.trim_matches('-').is_empty() { "observed".into() } else { name }
}
