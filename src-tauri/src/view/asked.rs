//! What the prompt shows: a call, a command that weakens protection, a definition that changed, or a server that appeared.

use std::path::Path;

use firedoor_clients::{Clients, Plan};
use firedoor_ipc::command::{Confirmation, Offer, Pin, Withheld};
use firedoor_model::{Untrusted, notice::Noticed};
use serde::Serialize;

use super::{FindingView, QuestionView, app_name, changes::FilePlanView, name, sentence, server::PinView};

/// One question on screen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AskedView {
    /// What an answer must bring along.
    pub nonce: String,
    /// Its place among those that wait, counted from 1.
    pub place: u32,
    /// How many wait.
    pub of: u32,
    pub matter: MatterView,
}

/// What it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MatterView {
    Call(Box<QuestionView>),
    Command(CommandView),
    Changed(ChangedView),
    Servers(ServersView),
}

/// A command that weakens protection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommandView {
    /// What it would do.
    pub action: String,
    /// As it was typed.
    pub command: String,
    /// The process that asks and those above it, nearest first.
    pub asked_by: Vec<String>,
    /// Since when it waits, in milliseconds since 1970.
    #[cfg_attr(test, ts(type = "number"))]
    pub asked: u64,
    /// Until when.
    #[cfg_attr(test, ts(type = "number"))]
    pub until: u64,
}

/// Definitions of one server that are kept from agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChangedView {
    /// The client's name.
    pub app: String,
    /// The server's name.
    pub server: String,
    pub definitions: Vec<DefinitionView>,
    /// Why they are kept back.
    pub findings: Vec<FindingView>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DefinitionView {
    pub pin: PinView,
    /// Whether it was held back at its first sight: nothing was there before.
    pub new: bool,
    /// Since when it is another one, in milliseconds since 1970.
    #[cfg_attr(test, ts(type = "number"))]
    pub since: u64,
}

/// Servers that could be protected.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ServersView {
    /// The client's name.
    pub app: String,
    pub news: NewsView,
    /// Their file.
    pub path: String,
    /// Whether it belongs to a project, which others may share.
    pub project: bool,
    pub servers: Vec<NewServerView>,
    /// What protecting them would change.
    pub files: Vec<FilePlanView>,
    /// Why some of them cannot be protected.
    pub left: Vec<String>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum NewsView {
    Appeared,
    Changed,
    Dropped,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewServerView {
    pub server: String,
    /// What it starts or reaches.
    pub command: String,
}

impl CommandView {
    /// For showing.
    pub fn new(of: &Confirmation) -> Self {
        let Confirmation { action, command, asked_by, asked, until, .. } = of;
        Self {
            action: action.visible(4000),
            command: sentence(command.raw()),
            asked_by: asked_by.iter().map(|p| name(p.raw())).collect(),
            asked: asked.0,
            until: until.0,
        }
    }
}

impl ChangedView {
    /// For showing. `None` where the pins are not those that wait any more: then there will be another question.
    pub fn new(all: &[&Withheld], pins: &[Pin], clients: &Clients) -> Option<Self> {
        let first = all.first()?;
        let definition = |of: &&Withheld| {
            let same = |pin: &&Pin| (&pin.kind, &pin.name, pin.seen) == (&of.kind, &of.name, Some(of.seen));
            let pin = pins.iter().find(same)?;
            let new = pin.accepted.is_none() && pin.first_seen == of.since;
            Some(DefinitionView { pin: PinView::new(pin), new, since: of.since.0 })
        };
        Some(Self {
            app: app_name(clients, &first.entry),
            server: name(first.entry.server()),
            definitions: all.iter().map(definition).collect::<Option<_>>()?,
            findings: all.iter().flat_map(|of| &of.findings).map(|f| FindingView::new(f, clients)).collect(),
        })
    }
}

impl ServersView {
    /// For showing.
    pub fn new(all: &[&Offer], plan: &Plan, clients: &Clients, home: &Path) -> Option<Self> {
        let first = all.first()?;
        let left = plan.skipped.iter().map(|s| format!("{}: {}", Untrusted::new(s.id.server()).visible(80), s.reason));
        let left = left.chain(plan.problems.iter().map(|p| p.problem.message.clone()));
        Some(Self {
            app: name(&first.client),
            news: match first.noticed {
                Noticed::Dropped => NewsView::Dropped,
                Noticed::Changed => NewsView::Changed,
                _ => NewsView::Appeared,
            },
            path: super::path(Path::new(first.path.raw()), home),
            project: first.project.is_some(),
            servers: all
                .iter()
                .map(|o| NewServerView { server: name(o.entry.server()), command: sentence(o.command.raw()) })
                .collect(),
            files: plan.files.iter().map(|f| FilePlanView::new(f, clients, home)).collect(),
            left: left.map(|text| sentence(&text)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Digest, Millis};

    use super::*;
    use crate::waiting::samples;

    #[test]
    fn a_command_hides_nothing() {
        let view = CommandView::new(&samples::command(1));
        assert_eq!(view.action, "switching to mode wa⟨U+202E⟩tch");
        assert_eq!(view.asked_by, ["firedoor (7)", "z⟨U+200B⟩sh (6)"]);
    }

    #[test]
    fn a_changed_definition_is_shown_by_field_and_only_as_it_waits() {
        let clients = Clients::load().unwrap();
        let waits = samples::changed("fs", "post");
        let mut pin = Pin {
            entry: waits.entry.clone(),
            kind: "tool".into(),
            name: "post".into(),
            first_seen: Millis(0),
            digest: Digest::of(b""),
            changed: vec!["description".into()],
            accepted: Some(r#"{"description":"a"}"#.into()),
            now: Some(r#"{"description":"b\u200b"}"#.into()),
            seen: Some(waits.seen),
        };
        let view = ChangedView::new(&[&waits], std::slice::from_ref(&pin), clients).unwrap();
        let change = view.definitions[0].pin.change.clone().unwrap();
        assert_eq!(change.fields[0].after.as_deref(), Some("b⟨U+200B⟩"));
        assert!(!view.definitions[0].new && view.app == "Cursor" && view.server == "fs");
        pin.seen = Some(Digest::of(b"another"));
        assert_eq!(ChangedView::new(&[&waits], &[pin], clients), None);
    }
}
