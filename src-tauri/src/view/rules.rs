//! Rules, as sentences in parts: the words between are the window's.

use std::collections::BTreeMap;

use firedoor_clients::Clients;
use firedoor_ipc::command::Suggestion;
use firedoor_model::{
    question::Choice,
    rule::{Match, Origin, Rule, Use},
};
use serde::Serialize;

use super::{ChoiceView, app_name, name, sentence};

/// All rules, and what could become one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RulesView {
    pub rules: Vec<RuleView>,
    pub suggestions: Vec<SuggestionView>,
    /// Questions that were answered in the time that suggestions come from.
    pub questions: u32,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RuleView {
    #[cfg_attr(test, ts(type = "number"))]
    pub id: i64,
    pub effect: ChoiceView,
    /// The client's name, when it is about one entry.
    pub app: Option<String>,
    pub server: Option<String>,
    /// The client's executable or script.
    pub client: Option<String>,
    pub tool: Option<String>,
    pub detector: Option<String>,
    /// One exact call only.
    pub exact: bool,
    /// Calls only that name this address.
    pub address: Option<String>,
    /// Only while the server is what it was.
    pub bound: bool,
    pub origin: OriginView,
    #[cfg_attr(test, ts(type = "number"))]
    pub created: u64,
    #[cfg_attr(test, ts(type = "number | null"))]
    pub expires: Option<u64>,
    #[cfg_attr(test, ts(type = "number"))]
    pub hits: u64,
    #[cfg_attr(test, ts(type = "number | null"))]
    pub last: Option<u64>,
}

/// Where a rule came from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OriginView {
    User,
    Answer,
    Log,
    Suggestion,
    Managed,
}

/// A rule that is suggested.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SuggestionView {
    /// What accepting it names.
    pub id: String,
    pub rule: RuleView,
    /// Questions that it would have answered.
    pub questions: u32,
}

impl RulesView {
    /// For showing, the newest first.
    pub fn new(
        rules: &[Rule],
        uses: Vec<(i64, Use)>,
        suggestions: &[Suggestion],
        questions: u32,
        clients: &Clients,
    ) -> Self {
        let uses: BTreeMap<i64, Use> = uses.into_iter().collect();
        Self {
            rules: rules.iter().rev().map(|rule| RuleView::new(rule, uses.get(&rule.id), clients)).collect(),
            suggestions: suggestions
                .iter()
                .map(|s| SuggestionView {
                    id: s.id.to_string(),
                    rule: RuleView::new(&s.rule, None, clients),
                    questions: s.questions,
                })
                .collect(),
            questions,
        }
    }
}

impl RuleView {
    fn new(rule: &Rule, used: Option<&Use>, clients: &Clients) -> Self {
        let Match { entry, client, tool, detector, call, address, launch, definition } = &rule.matches;
        Self {
            id: rule.id,
            effect: match rule.effect {
                Choice::Allow => ChoiceView::Allow,
                Choice::Block => ChoiceView::Block,
            },
            app: entry.as_ref().map(|e| app_name(clients, e)),
            server: entry.as_ref().map(|e| name(e.server())),
            client: client.as_ref().map(|c| sentence(c.raw())),
            tool: tool.as_ref().map(|t| name(t.raw())),
            detector: detector.as_ref().map(|d| name(d)),
            exact: call.is_some(),
            address: address.as_ref().map(|a| sentence(a.raw())),
            bound: launch.is_some() || definition.is_some(),
            origin: match rule.origin {
                Origin::User => OriginView::User,
                Origin::Answer => OriginView::Answer,
                Origin::Log => OriginView::Log,
                Origin::Suggestion => OriginView::Suggestion,
                Origin::Managed => OriginView::Managed,
            },
            created: rule.created.0,
            expires: rule.expires.map(|t| t.0),
            hits: used.map_or(0, |u| u.hits),
            last: used.map(|u| u.last.0),
        }
    }
}
