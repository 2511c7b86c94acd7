//! `profiles/detect/injection.toml` as it is written.

use std::{
    collections::{BTreeMap, HashSet},
    mem::take,
};

use serde::Deserialize;

use super::super::{asks::Asks, second::Bounds};

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Results,
    Definitions,
}

/// How often people say such things to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum People {
    #[default]
    Never,
    Sometimes,
    Often,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) thresholds: Thresholds,
    pub(super) network: Bounds,
    pub(super) security: Subject,
    pub(super) agents: Subject,
    pub(super) prompts: Subject,
    pub(super) mentions: MentionsRow,
    pub(super) asks: Asks,
    /// What stands in a regex for `(?&name)`. One may have those in it that stand before it by name.
    pub(super) fragments: BTreeMap<String, String>,
    /// Keywords that several rules look for.
    pub(super) words: BTreeMap<String, Vec<String>>,
    pub(super) rule: Vec<Row>,
}

/// Log-odds from which a text is taken for an attack.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Thresholds {
    pub(crate) result: f32,
    pub(crate) result_alone: f32,
    pub(crate) definition: f32,
    /// Of a definition without a phrase.
    pub(crate) definition_alone: f32,
    /// Of what a definition hides in markup.
    pub(crate) definition_markup: f32,
    /// Of what a definition encodes.
    pub(crate) definition_encoded: f32,
    pub(crate) markup: f32,
    /// Of such a text without a phrase: templates of issues ask people for things in comments.
    pub(crate) markup_alone: f32,
    pub(crate) encoded: f32,
    /// Of such a text without a phrase: honest sentences are encoded, too.
    pub(crate) encoded_alone: f32,
    /// Of such a text that asks somebody to do something.
    pub(crate) encoded_asked: f32,
    /// Of a result in a script of East Asia, and of one in Vietnamese, without a phrase.
    pub(crate) eastern: f32,
    pub(crate) vietnamese: f32,
    /// Least and most log-odds of the text around a phrase in its own language.
    pub(crate) foreign: f32,
    pub(crate) foreign_most: f32,
    /// Of a result in another language than English without a phrase.
    pub(crate) foreign_alone: f32,
    /// Added where a text is about security.
    pub(crate) security: f32,
    /// Added where a result is about little else.
    pub(crate) treatise: f32,
    /// Added where a result is about agents.
    pub(crate) agents: f32,
    /// Added where a result is about how models are prompted.
    pub(crate) prompts: f32,
}

/// What a text may be about, by its words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    pub(super) words: Vec<String>,
}

/// What shows that an attack is told of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MentionsRow {
    /// Of a record, near it.
    pub(super) label: String,
    /// Beside the quotes that it stands in.
    pub(super) denial: String,
    /// What texts speak of that teach about attacks, beside what those about security and prompts do.
    pub(super) about: Vec<String>,
    /// How a text that teaches tells of it.
    pub(super) tale: String,
    /// Rules whose words are a saying when they are quoted in passing.
    pub(super) sayings: HashSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) says: String,
    keywords: Words,
    #[serde(default)]
    begins: Vec<String>,
    regex: String,
    #[serde(default)]
    unless: Option<String>,
    /// What must not stand in any of its forms, if anything.
    #[serde(default)]
    pub(super) except: Option<String>,
    /// Other forms of the same.
    #[serde(default)]
    also: Vec<Form>,
    pub(super) weight: f32,
    #[serde(default)]
    pub(super) people: People,
    #[serde(default = "everywhere", rename = "in")]
    pub(super) places: Vec<Place>,
}

impl Row {
    /// All forms, taken out.
    pub(super) fn forms(&mut self) -> Vec<Form> {
        let Self { keywords, begins, regex, unless, also, .. } = self;
        let keywords = std::mem::replace(keywords, Words::Own(Vec::new()));
        let own = Form { keywords, begins: take(begins), regex: take(regex), unless: take(unless) };
        std::iter::once(own).chain(take(also)).collect()
    }
}

/// A regex, and the words around which it is tried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) keywords: Words,
    /// What a phrase begins with, where the keywords stand everywhere: they count only behind one of these.
    #[serde(default)]
    pub(super) begins: Vec<String>,
    pub(super) regex: String,
    /// What must not stand right before it, if anything.
    #[serde(default)]
    pub(super) unless: Option<String>,
}

/// A rule's own keywords, or the name of some that it shares.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    Own(Vec<String>),
    Shared(String),
}

pub(in crate::injection) fn everywhere() -> Vec<Place> {
    vec![Place::Results, Place::Definitions]
}

/// A regex with its fragments filled in.
pub(super) fn filled(regex: &str, fragments: &BTreeMap<String, String>) -> String {
    // The last by name first: it may have others in it.
    fragments.iter().rev().fold(regex.to_owned(), |regex, (name, with)| regex.replace(&format!("(?&{name})"), with))
}
