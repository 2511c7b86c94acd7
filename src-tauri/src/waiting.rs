//! What waits for the user, put together where one answer is for several.
//!
//! Calls that ask the same (server, tool, findings and where their data came from) are one question on screen when they go to one
//! known address, or are the same call; where it is not known where they go, each is a question of its own. Changed definitions of
//! one server are one question, and servers that appeared in one file.

use std::collections::BTreeSet;

use firedoor_ipc::command::{Confirmation, Offer, Withheld};
use firedoor_model::{
    Digest, EntryId, Finding, Millis, Untrusted,
    finding::Role,
    question::{Question, Ref},
};
use serde::Serialize;

/// Most definitions, or servers, in one question. What is beyond is asked about next.
const TOGETHER: usize = 20;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Calls and connections, oldest first.
    pub questions: Vec<Question>,
    /// Commands that weaken protection, oldest first.
    pub confirmations: Vec<Confirmation>,
    /// Definitions that are kept from agents, oldest first.
    pub withheld: Vec<Withheld>,
    /// Servers that could be protected, oldest first.
    pub offers: Vec<Offer>,
}

/// What one of them is, as long as it waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    Question(Ref),
    Confirmation(u64),
    Withheld { entry: EntryId, kind: String, name: Untrusted, seen: Digest },
    Offer { entry: EntryId, since: Millis },
}

/// What one answer is for. Not empty.
#[derive(Clone, Debug, Serialize)]
pub enum Matter<'a> {
    /// A call, calls that ask the same, or a connection.
    Calls(Vec<&'a Question>),
    /// A command that weakens protection.
    Command(&'a Confirmation),
    /// Definitions of one server.
    Changed(Vec<&'a Withheld>),
    /// Servers of one file.
    Servers(Vec<&'a Offer>),
}

fn question(q: &Question) -> Id {
    Id::Question(q.id.clone())
}

fn confirmation(c: &Confirmation) -> Id {
    Id::Confirmation(c.id)
}

fn withheld(w: &Withheld) -> Id {
    Id::Withheld { entry: w.entry.clone(), kind: w.kind.clone(), name: w.name.clone(), seen: w.seen }
}

fn offer(o: &Offer) -> Id {
    Id::Offer { entry: o.entry.clone(), since: o.since }
}

impl Waiting {
    /// Everything that waits.
    pub fn ids(&self) -> BTreeSet<Id> {
        let asked = self.questions.iter().map(question).chain(self.confirmations.iter().map(confirmation));
        asked.chain(self.withheld.iter().map(withheld)).chain(self.offers.iter().map(offer)).collect()
    }

    /// How many questions this is on screen.
    pub fn count(&self) -> usize {
        self.matters(|_| true).len()
    }

    /// What is wanted of it, put together: first where somebody sits before a terminal, then where an agent waits, then where
    /// nothing does; each oldest first.
    pub fn matters(&self, wanted: impl Fn(&Id) -> bool) -> Vec<Matter<'_>> {
        let confirmations = self.confirmations.iter().filter(|c| wanted(&confirmation(c)));
        let questions = self.questions.iter().filter(|q| wanted(&question(q)));
        let withheld = self.withheld.iter().filter(|w| wanted(&withheld(w)));
        let offers = self.offers.iter().filter(|o| wanted(&offer(o)));
        let mut all: Vec<Matter<'_>> = confirmations.map(Matter::Command).collect();
        all.extend(together(questions, alike, usize::MAX).into_iter().map(Matter::Calls));
        all.extend(together(withheld, |a, b| a.entry == b.entry, TOGETHER).into_iter().map(Matter::Changed));
        let one_file = |a: &Offer, b: &Offer| (&a.path, a.noticed) == (&b.path, b.noticed);
        all.extend(together(offers, one_file, TOGETHER).into_iter().map(Matter::Servers));
        all
    }

    /// What is left of these, as one matter; `None` when they are gone.
    pub fn of(&self, ids: &[Id]) -> Option<Matter<'_>> {
        let mut found = self.matters(|id| ids.contains(id));
        // Put together before, so they are put together again.
        if found.len() == 1 { found.pop() } else { None }
    }
}

impl Matter<'_> {
    /// What it is about.
    pub fn ids(&self) -> Vec<Id> {
        match self {
            Self::Calls(calls) => calls.iter().map(|q| question(q)).collect(),
            Self::Command(c) => vec![confirmation(c)],
            Self::Changed(all) => all.iter().map(|w| withheld(w)).collect(),
            Self::Servers(all) => all.iter().map(|o| offer(o)).collect(),
        }
    }

    /// Everything about it that is shown, but for how long calls are held: an agent that repeats a call holds it for longer, and
    /// must not be able to keep the buttons from being pressed. JSON of our own types always encodes; if it did not, no answer would
    /// match, which is the safe side.
    pub fn content(&self) -> Digest {
        let encoded = match self {
            Self::Calls(calls) => {
                let lasting = calls.iter().map(|call| Question { held_until: Millis(0), ..(*call).clone() });
                serde_json::to_vec(&lasting.collect::<Vec<_>>())
            }
            other => serde_json::to_vec(other),
        };
        Digest::of(&encoded.unwrap_or_default())
    }
}

fn together<'a, T>(all: impl Iterator<Item = &'a T>, alike: impl Fn(&T, &T) -> bool, most: usize) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for one in all {
        let fits = |group: &&mut Vec<&T>| group.len() < most && group.first().is_some_and(|first| alike(first, one));
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Whether one answer is for both: the same agent, server, tool and address, for the same reasons. Without an address only the
/// arguments say where a call goes (`channel`, `to`), so they must be equal.
fn alike(a: &Question, b: &Question) -> bool {
    let reasons = |q: &Question| -> BTreeSet<(String, Option<EntryId>)> {
        let of = |f: &Finding| {
            let sources: Vec<_> =
                f.evidence.iter().filter(|e| e.role == Role::Source).map(|e| e.entry.clone()).collect();
            let sources = if sources.is_empty() { vec![None] } else { sources };
            sources.into_iter().map(|source| (f.detector.to_string(), source)).collect::<Vec<_>>()
        };
        q.findings.iter().flat_map(of).collect()
    };
    a.connection.is_none()
        && b.connection.is_none()
        && (&a.entry, &a.client, &a.tool, &a.address, a.exact) == (&b.entry, &b.client, &b.tool, &b.address, b.exact)
        && (a.address.is_some() || a.call == b.call)
        && reasons(a) == reasons(b)
}

#[cfg(test)]
pub mod samples {
    //! For tests.

    use firedoor_model::notice::Noticed;

    use super::*;

    /// A call, alone unless a test says otherwise.
    pub fn call(id: &str, arguments: &str) -> Question {
        Question {
            id: Ref(id.into()),
            entry: "cursor/user/fs".parse().unwrap(),
            client: "node (7)".into(),
            tool: "post".into(),
            connection: None,
            address: None,
            exact: false,
            findings: vec![Finding {
                detector: format!("call/{id}").into(),
                severity: firedoor_model::Severity::Medium,
                confidence: firedoor_model::Confidence::Likely,
                summary: String::new(),
                evidence: Vec::new(),
            }],
            arguments: Untrusted::new(arguments),
            call: Digest::of(arguments.as_bytes()),
            asked: Millis(1),
            held_until: Millis(2),
            open_until: Millis(3),
        }
    }

    /// These calls wait.
    pub fn calls(questions: &[Question]) -> Waiting {
        Waiting { questions: questions.to_vec(), ..Waiting::default() }
    }

    /// A command.
    pub fn command(id: u64) -> Confirmation {
        Confirmation {
            id,
            action: "switching to mode wa\u{202e}tch".into(),
            command: "firedoor mode watch".into(),
            asked_by: vec!["firedoor (7)".into(), "z\u{200b}sh (6)".into()],
            asked: Millis(1),
            until: Millis(60_001),
        }
    }

    /// A changed tool.
    pub fn changed(server: &str, name: &str) -> Withheld {
        Withheld {
            entry: EntryId::new("cursor", "user", server).unwrap(),
            kind: "tool".into(),
            name: name.into(),
            seen: Digest::of(name.as_bytes()),
            since: Millis(1),
            findings: Vec::new(),
        }
    }

    /// A server that appeared.
    pub fn appeared(server: &str, path: &str) -> Offer {
        Offer {
            entry: EntryId::new("cursor", "user", server).unwrap(),
            client: "Cursor".into(),
            path: path.into(),
            project: None,
            noticed: Noticed::Appeared,
            command: "npx -y x".into(),
            since: Millis(1),
            under_way: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{samples::*, *};

    #[test]
    fn what_one_answer_is_for_is_put_together_the_most_urgent_first() {
        let waiting = Waiting {
            questions: vec![call("A", "1"), call("B", "2")],
            confirmations: vec![command(1), command(2)],
            withheld: vec![changed("fs", "a"), changed("git", "c"), changed("fs", "b")],
            offers: vec![appeared("x", "/h/a"), appeared("y", "/h/b"), appeared("z", "/h/a")],
        };
        let sizes: Vec<usize> = waiting.matters(|_| true).iter().map(|m| m.ids().len()).collect();
        assert_eq!(sizes, [1, 1, 1, 1, 2, 1, 2, 1]);
        assert_eq!((waiting.count(), waiting.ids().len()), (8, 10));
        for matter in waiting.matters(|_| true) {
            assert_eq!(waiting.of(&matter.ids()).map(|m| m.content()), Some(matter.content()));
        }
        assert!(waiting.of(&[]).is_none() && waiting.of(&[Id::Confirmation(9)]).is_none());
    }

    #[test]
    fn a_question_holds_no_more_than_a_person_looks_at() {
        let withheld = (0..TOGETHER + 1).map(|n| changed("fs", &n.to_string())).collect();
        let waiting = Waiting { withheld, ..Waiting::default() };
        let sizes: Vec<usize> = waiting.matters(|_| true).iter().map(|m| m.ids().len()).collect();
        assert_eq!(sizes, [TOGETHER, 1]);
    }
}
