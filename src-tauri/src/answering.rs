//! What the prompt shows of a matter, and what an answer to it does.

use std::time::Instant;

use firedoor_clients::Clients;
use firedoor_ipc::command::{Offer, Reply, Request, Withheld};
use firedoor_model::{EntryId, question::Question};

use crate::{
    asking::{Shown, Stale},
    changes::ChangeError,
    known::{Known, lock},
    link::{Link, LinkError},
    ticket::Nonce,
    view::{
        AnswerView, AskedView, ChangedView, ChoiceView, CommandView, DurationView, MatterView, QuestionView,
        ServersView, WholeArgumentsView, server,
    },
    waiting::{Matter, Waiting},
};

/// Why a question is not shown or not answered.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not what is on screen.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The engine.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The clients' files.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// What an answer leaves to do.
#[derive(Debug, Default)]
pub struct Answered {
    /// What was done, for people.
    pub said: String,
    /// Entries that are protected now, and have to be seen to answer.
    pub check: Vec<EntryId>,
}

impl Known {
    /// The question to show, if something waits. What cannot be shown is put off and said, so that it keeps nothing else from
    /// being asked.
    pub fn asked(&self) -> Result<Option<AskedView>, AnswerError> {
        loop {
            let waiting = lock(&self.heard).waiting.clone();
            let Some(shown) = lock(&self.asking).show(&waiting, Instant::now())? else { return Ok(None) };
            let (number, unseen) = (shown.nonce.to_text(), unseen(&shown.matter, self.clients));
            let why = match self.view(shown) {
                Ok(Some(asked)) => return Ok(Some(asked)),
                Ok(None) => Stale::Changed.to_string(),
                Err(e) => e.to_string(),
            };
            let problem = format!("{unseen} could not be shown and was put off: {why}");
            // Otherwise another thread has put it off meanwhile.
            if lock(&self.asking).give_up(&number, &problem).is_ok() {
                crate::app::complain(&problem);
            }
        }
    }

    /// The question as the window shows it; `None` where it is not the one that waits any more.
    fn view(&self, shown: Shown<'_>) -> Result<Option<AskedView>, AnswerError> {
        if let (true, Matter::Calls(calls)) = (shown.fresh, &shown.matter) {
            let ids = calls.iter().map(|call| call.id.clone()).collect();
            if let Err(e) = Link::settle(&self.paths, &Request::Shown { ids }) {
                // It only counts which questions somebody saw, and the answer will say what is wrong.
                crate::app::complain(&format!("the engine could not be told that a question is shown: {e}"));
            }
        }
        let Shown { matter, place, of, nonce, .. } = shown;
        let number = nonce.to_text();
        let known = lock(&self.on_screen).take_if(|known| known.nonce == number);
        // How long calls are held changes under the same number.
        let known = known.filter(|_| !matches!(matter, Matter::Calls(_)));
        let matter = match known {
            Some(known) => Some(known.matter),
            None => self.matter(&matter, nonce)?,
        };
        let Some(matter) = matter else { return Ok(None) };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let asked = AskedView { nonce: number, place: count(place), of: count(of), matter };
        *lock(&self.on_screen) = Some(asked.clone());
        Ok(Some(asked))
    }

    fn matter(&self, of: &Matter<'_>, nonce: Nonce) -> Result<Option<MatterView>, AnswerError> {
        Ok(match of {
            Matter::Calls(calls) => QuestionView::new(calls, self.clients).map(Box::new).map(MatterView::Call),
            Matter::Command(command) => Some(MatterView::Command(CommandView::new(command))),
            Matter::Changed(all) => {
                let entry = all.first().map(|of| of.entry.clone());
                let Reply::Pins { pins } = self.ask(&Request::Pins { entry })? else {
                    return Err(LinkError::Unexpected.into());
                };
                ChangedView::new(all, &pins, self.clients).map(MatterView::Changed)
            }
            Matter::Servers(offers) => {
                let plan = self.propose(nonce, offers)?;
                ServersView::new(offers, &plan, self.clients, &self.paths.home).map(MatterView::Servers)
            }
        })
    }

    /// All arguments of a call of the question on screen, by its place.
    pub fn arguments(&self, nonce: &str, call: usize) -> Result<WholeArgumentsView, AnswerError> {
        let waiting = lock(&self.heard).waiting.clone();
        let Matter::Calls(calls) = lock(&self.asking).matter(nonce, &waiting)? else {
            return Err(Stale::Unknown.into());
        };
        Ok(WholeArgumentsView::new(calls.get(call).ok_or(Stale::Unknown)?))
    }

    /// Answers the question on screen.
    pub fn answer(&self, nonce: &str, answer: AnswerView, now: Instant) -> Result<Answered, AnswerError> {
        let waiting: Waiting = lock(&self.heard).waiting.clone();
        let matter = lock(&self.asking).redeem(nonce, &waiting, now)?;
        match matter {
            Matter::Calls(calls) => self.answer_calls(&calls, answer),
            Matter::Command(command) => {
                let allow = answer.choice == ChoiceView::Allow;
                self.settle([Request::Confirm { id: command.id, allow }])
            }
            Matter::Changed(all) => self.answer_changed(&all, answer),
            Matter::Servers(offers) => self.answer_servers(nonce, &offers, answer),
        }
    }

    fn settle(&self, requests: impl IntoIterator<Item = Request>) -> Result<Answered, AnswerError> {
        let said =
            requests.into_iter().map(|request| Link::settle(&self.paths, &request)).collect::<Result<Vec<_>, _>>();
        Ok(Answered { said: said?.join("; "), check: Vec::new() })
    }

    fn answer_calls(&self, calls: &[&Question], answer: AnswerView) -> Result<Answered, AnswerError> {
        let (first, others) = calls.split_first().ok_or(Stale::Unknown)?;
        let AnswerView { choice, duration, scope, stop } = answer;
        let request = Request::Answer {
            id: first.id.clone(),
            choice: choice.into(),
            duration: duration.into(),
            scope: scope.into(),
            also: others.iter().map(|call| call.id.clone()).collect(),
        };
        // The call is refused in any case.
        let stop = (stop && choice == ChoiceView::Block).then(|| Request::Stop { entry: first.entry.clone() });
        self.settle([request].into_iter().chain(stop))
    }

    /// Allow accepts each definition exactly as it was shown.
    fn answer_changed(&self, all: &[&Withheld], answer: AnswerView) -> Result<Answered, AnswerError> {
        let first = all.first().ok_or(Stale::Unknown)?;
        let AnswerView { choice, stop, .. } = answer;
        let each = all.iter().map(|of| {
            let (entry, seen) = (of.entry.clone(), of.seen);
            match choice {
                ChoiceView::Allow => Request::AcceptPins { entry, tool: Some(of.name.clone()), seen: Some(seen) },
                ChoiceView::Block => Request::KeepWithheld { entry, seen },
            }
        });
        let stop = (stop && choice == ChoiceView::Block).then(|| Request::Stop { entry: first.entry.clone() });
        self.settle(each.chain(stop))
    }

    /// Allow protects; always means every server that appears from now on, too.
    fn answer_servers(&self, nonce: &str, offers: &[&Offer], answer: AnswerView) -> Result<Answered, AnswerError> {
        if answer.choice == ChoiceView::Block {
            return self.settle(offers.iter().map(|offer| Request::Ignore { entry: offer.entry.clone() }));
        }
        let check = self.accept(nonce)?;
        if answer.duration == DurationView::Always {
            self.settings(None, Some(true))?;
        }
        Ok(Answered { said: "protected".into(), check })
    }
}

/// What a question is about that nobody sees, for people.
fn unseen(matter: &Matter<'_>, clients: &Clients) -> String {
    let (what, entry) = match matter {
        Matter::Calls(calls) => ("A question about a call of", calls.first().map(|call| &call.entry)),
        Matter::Command(_) => ("A question about a command", None),
        Matter::Changed(all) => ("A question about changed definitions of", all.first().map(|of| &of.entry)),
        Matter::Servers(offers) => ("A question about protecting", offers.first().map(|offer| &offer.entry)),
    };
    entry.map_or_else(|| what.to_owned(), |entry| format!("{what} {}", server(clients, entry)))
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use firedoor_clients::Clients;
    use firedoor_model::paths::Paths;

    use super::*;
    use crate::waiting::samples;

    /// A home with one Cursor server that has appeared.
    fn appeared() -> (tempfile::TempDir, Known) {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let config = root.path().join(".cursor/mcp.json");
        fs::create_dir(config.parent().unwrap()).unwrap();
        fs::write(&config, r#"{"mcpServers":{"x":{"command":"/bin/true","args":[]}}}"#).unwrap();
        let shim = root.path().join(firedoor_clients::SHIM);
        fs::write(&shim, "").unwrap();
        let known = Known::new(paths, Clients::load().unwrap(), shim);
        lock(&known.heard).waiting.offers = vec![samples::appeared("x", &config.to_string_lossy())];
        (root, known)
    }

    /// As the window sends it.
    fn answer(choice: &str) -> AnswerView {
        let text = format!(r#"{{"choice":"{choice}","duration":"once","scope":"call","stop":false}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_server_is_protected_exactly_as_the_question_showed_it() {
        let (root, known) = appeared();
        let asked = known.asked().unwrap().unwrap();
        let MatterView::Servers(view) = &asked.matter else { panic!("{asked:?}") };
        assert!(view.path == "~/.cursor/mcp.json" && view.files[0].diff.contains("firedoor-shim"));
        let allow = |nonce: &str, now| known.answer(nonce, answer("allow"), now);
        let looked = Instant::now() + Duration::from_secs(1);
        assert!(matches!(allow(&asked.nonce, Instant::now()), Err(AnswerError::Stale(Stale::Early))));
        assert!(matches!(allow("guess", looked), Err(AnswerError::Stale(Stale::Unknown))));
        let done = allow(&asked.nonce, looked).unwrap();
        assert_eq!(done.check, ["cursor/user/x".parse().unwrap()]);
        assert!(fs::read_to_string(root.path().join(".cursor/mcp.json")).unwrap().contains("firedoor-shim"));
        // The number is used up.
        assert!(matches!(allow(&asked.nonce, looked), Err(AnswerError::Change(ChangeError::Stale))));
    }

    #[test]
    fn without_an_engine_nothing_else_is_answered() {
        let (_root, known) = appeared();
        lock(&known.heard).waiting = Waiting { confirmations: vec![samples::command(1)], ..Waiting::default() };
        let asked = known.asked().unwrap().unwrap();
        assert!(matches!(asked.matter, MatterView::Command(_)));
        let looked = Instant::now() + Duration::from_secs(1);
        let answered = known.answer(&asked.nonce, answer("allow"), looked);
        assert!(matches!(answered, Err(AnswerError::Link(_))));
    }

    #[test]
    fn what_cannot_be_shown_keeps_nothing_else_from_being_asked() {
        let (_root, known) = appeared();
        // There is no engine that would say what has changed.
        lock(&known.heard).waiting.withheld = vec![samples::changed("fs", "a")];
        let problems = || lock(&known.asking).given_up().map(str::to_owned).collect::<Vec<_>>();
        let asked = known.asked().unwrap().unwrap();
        assert!(matches!(asked.matter, MatterView::Servers(_)) && (asked.place, asked.of) == (1, 1));
        assert!(
            problems().len() == 1 && problems()[0].contains("changed definitions of Cursor › fs could not be shown")
        );
        assert_eq!(known.asked().unwrap().unwrap().nonce, asked.nonce);
        // It is tried again when the user wants to see what was put off, and nobody is told of what is over.
        lock(&known.asking).recall();
        assert!(problems().is_empty());
        assert_eq!(known.asked().unwrap().unwrap().nonce, asked.nonce);
        lock(&known.heard).waiting.offers.clear();
        assert!(known.asked().unwrap().is_none() && problems().len() == 1);
        lock(&known.asking).update(&Waiting::default());
        assert!(problems().is_empty());
    }

    #[test]
    fn a_server_whose_protection_cannot_be_planned_keeps_nothing_else_from_being_asked() {
        let (root, mut known) = appeared();
        known.shim = "not/absolute".into();
        lock(&known.heard).waiting.offers.push(samples::appeared("y", &root.path().join("other").to_string_lossy()));
        assert!(known.asked().unwrap().is_none());
        assert_eq!(lock(&known.asking).given_up().count(), 2);
        lock(&known.heard).waiting.confirmations = vec![samples::command(1)];
        assert!(matches!(known.asked().unwrap().unwrap().matter, MatterView::Command(_)));
    }
}
