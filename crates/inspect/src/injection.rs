//! Instructions to the agent in what a tool returns, and in what a server says about itself.
//!
//! A text is read as a model reads it (normalised, and every text inside it decoded). A linear model gives each window its
//! log-odds of talking to the reader, phrases of attacks add to them, and a threshold decides. Where the text was hidden
//! the threshold is lower: honest data has little reason to hide orders. What honest programs encode as a matter of course counts
//! as in plain sight.

mod again;
mod allowance;
mod asks;
mod bases;
mod broken;
mod classes;
mod codes;
mod columns;
mod definition;
mod disguised;
mod encoded;
mod escapes;
mod headers;
mod html;
mod joined;
mod languages;
pub(crate) mod layers;
mod leaders;
mod leet;
mod lettered;
mod markup;
pub mod model;
pub mod network;
mod noise;
pub(crate) mod phrases;
mod picked;
mod pieces;
mod pig_latin;
mod places;
mod quoted;
mod respelt;
mod second;
mod sight;
pub(crate) mod signs;
mod spaced;
mod spelled;
mod stretches;
mod strung;
mod terminal;
mod turned;
mod unseen;
mod unshown;
mod unspaced;
mod utf7;
mod weighed;

use std::borrow::Cow;

use firedoor_model::{Confidence, Severity, wire::Leaves};

use crate::{TableError, view};
pub(crate) use allowance::Allowance;
pub(crate) use columns::all as in_columns;
use layers::Concealment;
use model::Model;
use phrases::{Phrases, Place, Seen};
use second::MIN_DEFINITION;
pub(crate) use sight::{Sight, excerpt, unread};
use weighed::Bounds;

/// Shortest string that can hold an instruction.
const MIN_LEAF: usize = 12;
/// Shortest hidden text that asks for nothing by its form of which the model needs to be less sure than of one in plain sight.
const MIN_HIDDEN: usize = 28;
/// The same of a comment: developers note what is to be done in a few words.
const MIN_COMMENT: usize = 72;
/// Longest hidden text that is one for the sentence that asks for something in it: documents have such sentences, too.
const MAX_ASKED: usize = 400;
/// Strings up to this length are normalised in place where they need little.
const SHORT: usize = 512;
/// A member's name is read when it is as long as a sentence.
const MIN_KEY: usize = 24;
/// Bytes on either side of a word to an agent, or a request, in which it may say where to send something, and most of one text.
const HINTED: usize = 400;
const MAX_HINTED: usize = 8 * 1024;
/// Longest text in which a request is what it is about, in bytes.
const MAX_REQUEST: usize = 640;
/// Most texts, in one string, of which it is kept what they say around words to an agent.
const MAX_LAYERS: usize = 4;
/// What was found in a text.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The gravest instruction.
    pub(crate) sight: Option<Sight>,
    /// A word stands in it by which a text may say that it is private.
    pub(crate) private: bool,
    /// Where it may speak to an agent, in plain sight and hidden.
    pub(crate) hints: Vec<Hinted>,
}

/// What a text says around the places where it may speak to an agent.
#[derive(Debug)]
pub(crate) struct Hinted {
    /// Normalised.
    pub(crate) around: String,
    /// What is shown of it: the first of the words to an agent, and what follows.
    pub(crate) excerpt: String,
}

/// What the detector is made of.
#[derive(Debug)]
pub(crate) struct Injections {
    model: Model,
    phrases: Phrases,
}

impl Injections {
    pub(crate) fn load(
        table: &str,
        languages: &str,
        weights: &'static [u8],
        private: &[String],
    ) -> Result<Self, TableError> {
        let model = Model::read(weights).map_err(|e| TableError::new("injection.weights", &e))?;
        Ok(Self { model, phrases: Phrases::load(table, languages, private)? })
    }

    /// The words without which no phrase stands in a text.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.phrases.words()
    }

    /// Frees those words: they are known to the tables that look for them.
    pub(crate) fn forget_words(&mut self) {
        self.phrases.forget_words();
    }

    /// What a text says. `words` says whether one of [`Injections::words`] may stand in it as it is. `allowance` is what is left for the
    /// whole message.
    pub(crate) fn look(&self, text: &str, place: Place, words: bool, allowance: &mut Allowance) -> Look {
        let thresholds = self.phrases.thresholds;
        let visible = match place {
            Place::Results => Bounds {
                phrase: thresholds.result,
                alone: thresholds.result_alone,
                agents: thresholds.agents,
                eastern: thresholds.eastern,
                vietnamese: thresholds.vietnamese,
                foreign: thresholds.foreign_alone,
                results: true,
                asks: false,
                pieces: false,
            },
            // All of them are about tools for agents.
            Place::Definitions => Bounds { alone: thresholds.definition_alone, ..Bounds::both(thresholds.definition) },
        };
        let mut room = [0; SHORT];
        let (normal, plain, words) = match view::plain(text, &mut room) {
            Some(normal) => (Cow::Borrowed(normal), true, words),
            // Words may stand there that were written in another way.
            None => (Cow::Owned(view::normalised(text)), false, true),
        };
        let seen = if words { self.phrases.find(&normal, place, &mut allowance.searched) } else { Seen::default() };
        let (signs, private) = (seen.signs.of_plain(plain), seen.private);
        let mut hints = seen.hints;
        let mut gravest =
            self.weigh(&normal, &seen.phrases, (visible, visible), (Concealment::None, true), &mut allowance.opinions);
        if let Some(sight) = &mut gravest {
            // Of an order that is known for one, also what sends nothing by its name is compared. A request in a long text is one of many
            // things that it says, and what the model has learnt of attacks is English.
            let model = || sight.says.is_none() && signs::foreign(sight.excerpt());
            let hint = sight.certain_enough() && !(sight.request && (normal.len() > MAX_REQUEST || model()));
            hints.extend(hint.then_some(sight.span));
            sight.span = view::place(text, sight.span);
        }
        let mut hinted: Vec<Hinted> = Vec::new();
        let mut note = |normal: &str, hints: Vec<(usize, usize)>| {
            if place == Place::Results && hinted.len() < MAX_LAYERS {
                hinted.extend(together(normal, hints));
            }
        };
        note(&normal, hints);
        layers::each(text, signs, &mut allowance.hidden, &mut |layer| {
            let how = match layer.how {
                // Nobody describes a tool in lines of base64 or escapes.
                Concealment::Customary if place == Place::Definitions => Concealment::Encoded,
                how => how,
            };
            let bounds = match (how, place) {
                (Concealment::None | Concealment::Customary, _) => visible,
                (Concealment::Markup, Place::Results) => {
                    Bounds { alone: thresholds.markup_alone, ..Bounds::both(thresholds.markup) }
                }
                (Concealment::Markup, Place::Definitions) => Bounds::both(thresholds.definition_markup),
                (Concealment::Encoded | Concealment::Covert, Place::Results) => {
                    Bounds { alone: thresholds.encoded_alone, ..Bounds::both(thresholds.encoded) }
                }
                (Concealment::Encoded | Concealment::Covert, Place::Definitions) => {
                    Bounds::both(thresholds.definition_encoded)
                }
            };
            let normal = view::normalised(&layer.text);
            let asked = || normal.len() <= MAX_ASKED && self.phrases.asks.anywhere(&normal);
            let bounds = match place {
                Place::Results if how >= Concealment::Encoded && asked() => {
                    Bounds { asks: true, ..Bounds::both(thresholds.encoded_asked) }
                }
                // Of a few words the model knows little more than that they were hidden.
                Place::Results
                    if how == Concealment::Encoded && normal.len() < MIN_HIDDEN
                        || how == Concealment::Markup && normal.len() < MIN_COMMENT =>
                {
                    Bounds { alone: visible.alone, ..bounds }
                }
                _ => bounds,
            };
            let made_of = |name: &str| layer.transform.ends_with(name);
            let bounds = Bounds { pieces: made_of(joined::NAME) || made_of(columns::NAME), ..bounds };
            let seen = self.phrases.find(&normal, place, &mut allowance.searched);
            let found = seen.phrases;
            if how > Concealment::Customary {
                note(&normal, seen.hints);
            }
            // Letters for digits leave the words as they are; of rows of numbers they make none.
            let sentence = how <= Concealment::Customary || layer.transform.ends_with(leet::NAME);
            let mut sight = self.weigh(&normal, &found, (bounds, visible), (how, sentence), &mut allowance.opinions);
            if how == Concealment::Covert && layers::speaks(&layer.text) {
                // Characters that exist to be invisible, and spell out sentences: nobody writes that by accident.
                let tags = layer.transform.starts_with("unicode-tags");
                let seen = sight.get_or_insert_with(|| Sight {
                    confidence: Confidence::Likely,
                    severity: Severity::High,
                    how,
                    transform: None,
                    says: None,
                    excerpt: excerpt(&normal, (0, normal.len())),
                    span: (0, normal.len()),
                    score: bounds.alone,
                    told: false,
                    request: false,
                });
                seen.confidence = if tags { Confidence::Certain } else { Confidence::Likely };
                seen.severity = if tags { Severity::Critical } else { Severity::High };
            }
            if let Some(mut sight) = sight {
                sight.transform = Some(layer.transform.clone());
                sight.span = if layer.verbatim {
                    let (start, end) = view::place(&layer.text, sight.span);
                    (layer.span.0 + start, layer.span.0 + end)
                } else {
                    layer.span
                };
                if gravest.as_ref().is_none_or(|g| {
                    (g.severity, g.confidence, g.score) < (sight.severity, sight.confidence, sight.score)
                }) {
                    gravest = Some(sight);
                }
            }
        });
        Look { sight: gravest, private, hints: hinted }
    }

    /// The network's opinion on what a definition says, where nothing else was found in it. It is asked about what is long enough to
    /// say something, says it in words, and does not quote attacks.
    fn second(&self, text: &str) -> Option<Sight> {
        let normal = view::normalised(text);
        let floor = self.phrases.network.definition_from;
        let best = self.model.best_from(&normal, floor, |window| !signs::digits(window));
        // Addresses and encodings have no words to judge.
        let words = !normal.is_ascii() || normal.matches(' ').count() * 24 >= normal.len();
        if best.score < floor
            || normal.len() < MIN_DEFINITION
            || !words
            || self.phrases.subjects.are_of_security(&normal)
        {
            return None;
        }
        let judged = self.phrases.network.judge(&normal, best)?;
        let window = normal.get(judged.span.0..judged.span.1).unwrap_or_default();
        (!signs::digits(window)).then(|| Sight {
            confidence: Confidence::Likely,
            severity: Severity::High,
            how: Concealment::None,
            transform: None,
            says: None,
            excerpt: excerpt(&normal, judged.span),
            span: view::place(text, judged.span),
            score: judged.score,
            told: false,
            request: false,
        })
    }
}

/// What a text says around the places where it may speak to an agent, the first ones if it is much.
fn together(normal: &str, mut places: Vec<(usize, usize)>) -> Option<Hinted> {
    places.sort_unstable();
    let excerpt = excerpt(normal, *places.first()?);
    let (mut out, mut upto) = (String::new(), 0);
    for (start, end) in places {
        let from = normal.floor_char_boundary(start.saturating_sub(HINTED).max(upto));
        // Whole addresses.
        let end = normal.floor_char_boundary(end.saturating_add(HINTED).min(normal.len()));
        let to = normal.get(end..).and_then(|rest| rest.find(' ')).map_or(normal.len(), |more| end + more.min(HINTED));
        let to = normal.floor_char_boundary(to);
        if let Some(part) = normal.get(from..to) {
            out.push_str(part);
            out.push(' ');
            upto = to;
        }
        if out.len() > MAX_HINTED {
            break;
        }
    }
    Some(Hinted { around: out, excerpt })
}

/// What a model may read in raw JSON: every string, and every text inside one, normalised, with how it was hidden (0 in
/// plain sight or as usual, 1 markup, 2 encoded, 3 covert). For training and measuring.
pub fn readings(raw: &str) -> Vec<(String, u8)> {
    let mut out = Vec::new();
    let mut allowance = Allowance::default();
    for leaf in Leaves::of(raw).filter(|l| readable(l)) {
        let normal = view::normalised(&leaf.text);
        let signs = signs::Signs::of(&normal);
        out.push((normal, 0));
        layers::each(&leaf.text, signs, &mut allowance.hidden, &mut |l| {
            let how = match l.how {
                Concealment::None | Concealment::Customary => 0,
                Concealment::Markup => 1,
                Concealment::Encoded => 2,
                Concealment::Covert => 3,
            };
            out.push((view::normalised(&l.text), how));
        });
    }
    out
}

/// Whether a string is long enough to hold an instruction.
pub(crate) fn readable(leaf: &firedoor_model::wire::Leaf<'_>) -> bool {
    leaf.text.len() >= if leaf.key { MIN_KEY } else { MIN_LEAF }
}

#[cfg(test)]
mod tests;
