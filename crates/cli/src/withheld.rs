//! Definitions that are kept from agents until the user accepts them, in words.

use std::collections::{BTreeMap, BTreeSet};

use firedoor_ipc::command::Withheld;
use firedoor_model::{EntryId, Untrusted};

/// Most names and reasons that are shown of one entry; `pins diff` shows all.
const MOST: usize = 10;

/// Entry by entry: what is held back, why, and the commands to look at it and to accept it.
pub fn in_words(all: &[Withheld]) -> Vec<String> {
    let mut of: BTreeMap<&EntryId, Vec<&Withheld>> = BTreeMap::new();
    for one in all {
        of.entry(&one.entry).or_default().push(one);
    }
    of.into_iter().map(|(entry, held)| of_entry(entry, &held)).collect()
}

fn of_entry(entry: &EntryId, held: &[&Withheld]) -> String {
    let names = held.iter().map(|one| format!("{} {}", Untrusted::new(&one.kind).visible(20), one.name.visible(80)));
    let mut out = format!(
        "Held back from agents until you accept it: {}: {}\n",
        Untrusted::new(entry.to_string()).visible(200),
        most(names.collect()).join(", "),
    );
    let reasons: BTreeSet<String> =
        held.iter().flat_map(|one| &one.findings).map(|f| format!("{} [{}]", f.summary, f.detector)).collect();
    for reason in most(reasons.into_iter().collect()) {
        out.push_str(&format!("  WHY    {reason}\n"));
    }
    let entry = entry.quoted();
    out.push_str(&format!("  look:   firedoor pins diff {entry}\n  accept: firedoor pins accept {entry}"));
    out
}

/// The first of them, and how many there are besides.
fn most(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Confidence, Digest, Finding, Millis, Severity};

    use super::*;

    fn held(entry: &str, name: &str) -> Withheld {
        Withheld {
            entry: entry.parse().unwrap(),
            kind: "tool".into(),
            name: Untrusted::new(name),
            seen: Digest([0; 32]),
            since: Millis(0),
            findings: vec![Finding {
                detector: "definition/changed".into(),
                severity: Severity::Medium,
                confidence: Confidence::Certain,
                summary: "The definition is another one.".into(),
                evidence: Vec::new(),
            }],
        }
    }

    #[test]
    fn each_entry_is_told_once_with_its_commands() {
        let said = in_words(&[held("c/user/a b", "x"), held("c/user/t", "y\u{1b}"), held("c/user/a b", "z")]);
        let [one, other] = said.try_into().unwrap();
        assert_eq!(
            one,
            "Held back from agents until you accept it: c/user/a%20b: tool x, tool z\n  \
             WHY    The definition is another one. [definition/changed]\n  \
             look:   firedoor pins diff c/user/a%20b\n  \
             accept: firedoor pins accept c/user/a%20b"
        );
        assert!(other.contains("tool y⟨U+001B⟩"), "{other}");
    }

    #[test]
    fn a_long_list_is_cut() {
        let all: Vec<Withheld> = (0..MOST + 5).map(|n| held("c/user/t", &format!("t{n}"))).collect();
        assert!(in_words(&all)[0].contains("tool t9, and 5 more\n"));
    }
}
