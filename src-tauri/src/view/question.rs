//! A question about calls or a connection, as the prompt shows it, and what may come back.

use firedoor_clients::Clients;
use firedoor_model::{
    Millis,
    question::{Choice, Duration, Question, Scope},
    wire::{Object, unescape},
};
use serde::{Deserialize, Serialize};

use super::{FindingView, app_name, lines, name};
/// Of one argument, before "Show all".
const BRIEF: usize = 320;
/// Of the arguments of one among several calls.
const LINE: usize = 120;
/// Most arguments before "Show all".
const FEW: usize = 6;
/// Of all arguments, with "Show all". More than this no person reads; the cut is shown.
const WHOLE: usize = 200_000;

/// Calls, or a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct QuestionView {
    /// How the log and the command line call it.
    pub reference: String,
    /// The client's name.
    pub app: String,
    /// The client's process.
    pub process: String,
    /// The server's name.
    pub server: String,
    /// The tool called; host and port when a connection waits.
    pub tool: String,
    /// When a connection of the server waits and no call: the program that makes it.
    pub program: Option<String>,
    /// Where it would go, when the arguments name exactly one address.
    pub host: Option<String>,
    /// Whether an allow holds for exactly this call only, whatever is chosen.
    pub exact: bool,
    /// The calls that it is about, when they are several.
    pub calls: Vec<CallView>,
    /// Why.
    pub findings: Vec<FindingView>,
    /// What the call says, shortened.
    pub arguments: Vec<ArgumentView>,
    /// Whether "Show all" shows more.
    pub shortened: bool,
    /// Length of all arguments in bytes.
    pub bytes: u32,
    /// When the call arrived, in milliseconds since 1970.
    #[cfg_attr(test, ts(type = "number"))]
    pub asked: u64,
    /// Until when the call is held.
    #[cfg_attr(test, ts(type = "number"))]
    pub held_until: u64,
    /// Until when it can be answered.
    #[cfg_attr(test, ts(type = "number"))]
    pub open_until: u64,
}

/// One of several calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CallView {
    /// When it arrived, in milliseconds since 1970.
    #[cfg_attr(test, ts(type = "number"))]
    pub asked: u64,
    /// Its arguments in one line, shortened.
    pub brief: String,
    /// Length of all arguments in bytes.
    pub bytes: u32,
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArgumentView {
    /// Its name; absent when the arguments are not an object.
    pub name: Option<String>,
    /// Its value: a text as it is, anything else as JSON.
    pub text: String,
}

/// All arguments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WholeArgumentsView {
    /// In the call's order.
    pub arguments: Vec<ArgumentView>,
}

/// What the user decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ChoiceView {
    Allow,
    Block,
}

impl From<ChoiceView> for Choice {
    fn from(choice: ChoiceView) -> Self {
        match choice {
            ChoiceView::Allow => Self::Allow,
            ChoiceView::Block => Self::Block,
        }
    }
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum DurationView {
    Once,
    Session,
    Always,
}

impl From<DurationView> for Duration {
    fn from(duration: DurationView) -> Self {
        match duration {
            DurationView::Once => Self::Once,
            DurationView::Session => Self::Session,
            DurationView::Always => Self::Always,
        }
    }
}

/// For which calls, when it is an allow for longer than once.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ScopeView {
    Call,
    Tool,
}

impl From<ScopeView> for Scope {
    fn from(scope: ScopeView) -> Self {
        match scope {
            ScopeView::Call => Self::Call,
            ScopeView::Tool => Self::Tool,
        }
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AnswerView {
    pub choice: ChoiceView,
    pub duration: DurationView,
    pub scope: ScopeView,
    /// Whether to end the server, too, when it is blocked.
    pub stop: bool,
}

impl QuestionView {
    /// For showing. `None` for a question about nothing, which there is none of.
    pub fn new(calls: &[&Question], clients: &Clients) -> Option<Self> {
        let first = calls.first()?;
        let Question { id, entry, client, tool, connection, address, exact, arguments, asked, .. } = first;
        let findings = calls.iter().flat_map(|call| &call.findings);
        let last = |of: fn(&Question) -> Millis| calls.iter().map(|call| of(call).0).max().unwrap_or_default();
        let all = if connection.is_some() { Vec::new() } else { split(arguments.raw()) };
        let brief: Vec<_> = all.iter().take(FEW).map(|(n, text)| argument(n.as_deref(), text, BRIEF)).collect();
        let shortened = all.len() > FEW || all.iter().any(|(_, text)| text.chars().count() > BRIEF);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Self {
            reference: name(&id.0),
            app: app_name(clients, entry),
            process: name(client.raw()),
            server: name(entry.server()),
            tool: name(tool.raw()),
            program: connection.as_ref().map(|c| name(c.program.raw())),
            host: address.as_ref().map(|a| name(a.raw())),
            exact: *exact,
            calls: match calls {
                [_] => Vec::new(),
                calls => calls.iter().map(|call| CallView::new(call)).collect(),
            },
            findings: findings.map(|f| FindingView::new(f, clients)).collect(),
            arguments: brief,
            shortened,
            bytes: count(arguments.raw().len()),
            asked: asked.0,
            held_until: last(|call| call.held_until),
            // The first that closes takes its call away.
            open_until: calls.iter().map(|call| call.open_until.0).min().unwrap_or_default(),
        })
    }
}

impl CallView {
    fn new(call: &Question) -> Self {
        Self {
            asked: call.asked.0,
            brief: lines(call.arguments.raw(), LINE).replace('\n', " "),
            bytes: u32::try_from(call.arguments.raw().len()).unwrap_or(u32::MAX),
        }
    }
}

impl WholeArgumentsView {
    /// For showing.
    pub fn new(question: &Question) -> Self {
        let mut left = WHOLE;
        let mut arguments = Vec::new();
        for (n, text) in split(question.arguments.raw()) {
            arguments.push(argument(n.as_deref(), &text, left));
            left = left.saturating_sub(text.chars().count());
            if left == 0 {
                break;
            }
        }
        Self { arguments }
    }
}

fn argument(n: Option<&str>, text: &str, max: usize) -> ArgumentView {
    ArgumentView { name: n.map(name), text: lines(text, max) }
}

/// Name and value of each argument, repeated ones included. What is not an object is one value.
fn split(raw: &str) -> Vec<(Option<String>, String)> {
    let value = |raw: &str| unescape(raw).map_or_else(|| raw.to_owned(), |text| text.into_owned());
    match Object::parse(raw) {
        Some(object) => object.0.iter().map(|(n, raw)| (Some(n.to_string()), value(raw))).collect(),
        None => vec![(None, value(raw))],
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{
        Digest, Untrusted,
        question::{Connection, Ref},
    };
    use proptest::prelude::*;

    use super::*;

    fn question(arguments: &str) -> Question {
        Question {
            id: Ref("7F3A".into()),
            entry: "cursor/user/no\u{202e}tion".parse().unwrap(),
            client: "node (7)".into(),
            tool: "po\u{200b}st".into(),
            connection: None,
            address: None,
            exact: false,
            findings: Vec::new(),
            arguments: Untrusted::new(arguments),
            call: Digest::of(b""),
            asked: Millis(1),
            held_until: Millis(45_001),
            open_until: Millis(600_001),
        }
    }

    fn view(arguments: &str) -> QuestionView {
        QuestionView::new(&[&question(arguments)], Clients::load().unwrap()).unwrap()
    }

    #[test]
    fn nothing_of_the_server_hides() {
        let view = view(r#"{"a\u202e":"x\u200by\nz"}"#);
        assert_eq!(
            (view.app.as_str(), view.server.as_str(), view.tool.as_str()),
            ("Cursor", "no⟨U+202E⟩tion", "po⟨U+200B⟩st")
        );
        assert_eq!(view.arguments, [ArgumentView { name: Some("a⟨U+202E⟩".into()), text: "x⟨U+200B⟩y\nz".into() }]);
    }

    #[test]
    fn a_connection_shows_its_program_and_its_host() {
        let to = "api.example.com:443".parse().unwrap();
        let program = "/usr/bin/no\u{202e}de (7)".into();
        let question = Question {
            tool: "api.example.com:443".into(),
            connection: Some(Connection { to, program }),
            ..question("")
        };
        let view = QuestionView::new(&[&question], Clients::load().unwrap()).unwrap();
        assert_eq!(view.program.as_deref(), Some("/usr/bin/no⟨U+202E⟩de (7)"));
        assert_eq!((view.tool.as_str(), view.host, view.arguments.len()), ("api.example.com:443", None, 0));
    }

    #[test]
    fn arguments_of_every_shape_are_shown() {
        let texts = |raw: &str| view(raw).arguments.into_iter().map(|a| (a.name, a.text)).collect::<Vec<_>>();
        let named = |n: &str, t: &str| (Some(n.to_owned()), t.to_owned());
        assert_eq!(texts(r#"{"n":1,"o":{"k":[true]}}"#), [named("n", "1"), named("o", r#"{"k":[true]}"#)]);
        // Repeated names: both are shown, because readers disagree about which one counts.
        assert_eq!(texts(r#"{"n":1,"n":2}"#), [named("n", "1"), named("n", "2")]);
        assert_eq!(texts("[1]"), [(None, "[1]".to_owned())]);
        assert_eq!(texts("not json"), [(None, "not json".to_owned())]);
    }

    #[test]
    fn long_ones_are_shortened_and_can_be_seen_in_full() {
        let long = "x".repeat(BRIEF + 1);
        let raw = format!(r#"{{"body":"{long}"}}"#);
        assert!(view(&raw).shortened && !view(r#"{"body":"x"}"#).shortened);
        assert_eq!(WholeArgumentsView::new(&question(&raw)).arguments[0].text, long);
        let huge = format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(WHOLE + 1));
        let whole = WholeArgumentsView::new(&question(&huge)).arguments;
        assert!(whole.len() == 1 && whole[0].text.ends_with('…'));
    }

    #[test]
    fn several_calls_are_listed_and_their_findings_put_together() {
        let (a, b) = (question(r#"{"body":"1\n2"}"#), question(r#"{"body":"3"}"#));
        let view = QuestionView::new(&[&a, &b], Clients::load().unwrap()).unwrap();
        assert_eq!(
            view.calls.iter().map(|c| c.brief.as_str()).collect::<Vec<_>>(),
            [r#"{"body":"1\n2"}"#, r#"{"body":"3"}"#]
        );
    }

    proptest! {
        #[test]
        fn any_arguments_have_a_view(raw in any::<String>()) {
            let view = view(&raw);
            let hides = |t: &str| t.chars().any(|c| c != '\n' && c.is_control());
            prop_assert!(view.arguments.iter().all(|a| !hides(&a.text)));
        }
    }
}
