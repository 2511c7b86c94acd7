//! Phrases of attacks: data of `profiles/detect/injection.toml` and, for other languages, of `languages.toml`.

mod mentions;
mod near;
mod needs;
mod pattern;
mod subjects;
mod table;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use memchr::memmem;

use super::{
    allowance::{Search, Searched},
    asks::Asks,
    languages::{Languages, Way},
    second::Bounds,
    signs::{SIGNS, Signs},
};
pub(super) use table::everywhere;
pub(crate) use table::{People, Place, Thresholds};

use crate::{
    TableError,
    keywords::{Keywords, Met},
    view,
};
use mentions::Mentions;
use near::{Lines, Near, Nearby, share_out, strange_parts};
use pattern::{Except, Kept, Pattern};
use subjects::Subjects;
use table::{File, Words, filled};

/// Most places of one rule in one text: what repeats says nothing new.
const MAX_HITS: usize = 48;
/// A phrase in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Phrase<'p> {
    pub(crate) rule: usize,
    pub(crate) id: &'p str,
    pub(crate) says: &'p str,
    pub(crate) weight: f32,
    /// Of a rule that has its words in each language.
    pub(crate) foreign: bool,
    pub(crate) people: People,
    /// Bytes of the normalised text.
    pub(crate) span: (usize, usize),
}

/// What one pass over a normalised text found.
#[derive(Debug, Default)]
pub(crate) struct Seen<'p> {
    /// By where they begin, each place of a rule once.
    pub(crate) phrases: Vec<Phrase<'p>>,
    /// Where a rule without weight says that the text may speak to an agent.
    pub(crate) hints: Vec<(usize, usize)>,
    /// Where texts may be hidden.
    pub(crate) signs: Signs,
    /// A word stands in it by which a text may say that it is private.
    pub(crate) private: bool,
}

/// Why a word is looked for.
#[derive(Debug)]
enum Owner {
    Lines(Lines),
    Sign(usize),
    Private,
}

/// What a phrase says of a text, and how much.
#[derive(Debug)]
struct Rule {
    id: String,
    says: String,
    weight: f32,
    people: People,
    places: Vec<Place>,
    /// What must not stand in a phrase.
    except: Option<Arc<Except>>,
}

/// Where a regex comes from.
#[derive(Debug)]
enum Source {
    Own {
        regex: String,
        unless: Option<String>,
    },
    /// In one of the other languages.
    Way(Way),
}

/// A regex that is tried around its words. Those of one rule in several languages count once in one place.
#[derive(Debug)]
struct Line {
    rule: usize,
    source: Source,
    /// What people do not say such a thing with.
    without: Option<Arc<Except>>,
    pattern: OnceLock<Option<Pattern>>,
}

impl Line {
    fn of_language(&self) -> bool {
        matches!(self.source, Source::Way(_))
    }
}

/// The compiled table.
#[derive(Debug)]
pub(crate) struct Phrases {
    pub(crate) thresholds: Thresholds,
    pub(super) network: Bounds,
    pub(super) asks: Asks,
    rules: Vec<Rule>,
    lines: Vec<Line>,
    languages: Languages,
    kept: Kept,
    keywords: Keywords,
    /// What `keywords` looks for.
    words: Vec<String>,
    owners: Vec<Owner>,
    /// Words of the other languages that are not ASCII, apart: most texts hold none.
    strange: Keywords,
    strange_owners: Vec<Owner>,
    pub(super) subjects: Subjects,
    mentions: Mentions,
}

impl Phrases {
    /// The tables, and the words by which a text may say that it is private.
    pub(crate) fn load(text: &str, languages: &str, private: &[String]) -> Result<Self, TableError> {
        let broken = |e: &dyn std::fmt::Display| TableError::new("injection.toml", e);
        let file: File = toml::from_str(text).map_err(|e| broken(&e))?;
        let languages: Languages = toml::from_str(languages).map_err(|e| TableError::new("languages.toml", &e))?;
        let mut met: BTreeMap<String, Lines> = BTreeMap::new();
        let (mut rules, mut lines) = (Vec::new(), Vec::new());
        for mut row in file.rule {
            for form in row.forms() {
                let own = match &form.keywords {
                    Words::Own(words) => words,
                    Words::Shared(name) => {
                        let none = || broken(&format!("rule {}: there are no words {name}", row.id));
                        file.words.get(name).ok_or_else(none)?
                    }
                };
                for word in own {
                    let lines_of = met.entry(view::letters(word)).or_default();
                    let kind = if form.begins.is_empty() { &mut lines_of.around } else { &mut lines_of.behind };
                    kind.push(lines.len());
                }
                for word in form.begins {
                    met.entry(view::letters(&word)).or_default().begin.push(lines.len());
                }
                let unless = form.unless.map(|unless| filled(&unless, &file.fragments));
                let source = Source::Own { regex: filled(&form.regex, &file.fragments), unless };
                lines.push(Line { rule: rules.len(), source, without: None, pattern: OnceLock::new() });
            }
            let except = row.except.as_deref().map(Except::new);
            let table::Row { id, says, weight, people, places, .. } = row;
            rules.push(Rule { id, says, weight, people, places, except });
        }
        for (family, way, words) in languages.ways() {
            words.into_iter().for_each(|word| met.entry(view::letters(word)).or_default().around.push(lines.len()));
            let without = languages.people_without(way).as_deref().map(Except::new);
            let (rule, source) = (rules.len() + family, Source::Way(way));
            lines.push(Line { rule, source, without, pattern: OnceLock::new() });
        }
        rules.extend(languages.families().iter().map(|family| Rule {
            id: family.id.clone(),
            says: family.says.clone(),
            weight: family.weight,
            people: family.people,
            places: family.places.clone(),
            except: family.except.as_deref().map(Except::new),
        }));
        let own = rules.len() - languages.families().len();
        let of_language = |line: &usize| lines.get(*line).is_some_and(|line: &Line| line.rule >= own);
        let spoken = |lines: &Lines| lines.all().all(of_language);
        let (strange, met): (Vec<_>, Vec<_>) =
            met.into_iter().partition(|(word, lines)| !word.is_ascii() && spoken(lines));
        let owned = |(word, lines)| (word, Owner::Lines(lines));
        let (mut keywords, mut owners): (Vec<String>, Vec<Owner>) = met.into_iter().map(owned).unzip();
        let (strange, strange_owners): (Vec<String>, Vec<Owner>) = strange.into_iter().map(owned).unzip();
        keywords.extend(SIGNS.map(str::to_owned));
        owners.extend((0..SIGNS.len()).map(Owner::Sign));
        keywords.extend_from_slice(private);
        owners.extend(private.iter().map(|_| Owner::Private));
        Ok(Self {
            thresholds: file.thresholds,
            network: file.network,
            asks: file.asks,
            keywords: Keywords::new(&keywords),
            words: keywords,
            strange: Keywords::new(&strange),
            strange_owners,
            subjects: Subjects::new(&file.security, &file.prompts, &file.mentions.about, &file.agents),
            mentions: Mentions::new(&file.mentions).map_err(|e| broken(&e))?,
            rules,
            lines,
            languages,
            kept: Kept::default(),
            owners,
        })
    }

    fn pattern(&self, source: &Source, except: Option<&Arc<Except>>) -> Option<Pattern> {
        let pattern = match source {
            Source::Own { regex, unless } => Pattern::own(regex, unless.as_deref()),
            Source::Way(way) => {
                let languages = &self.languages;
                Pattern::of_language(&languages.regex(*way)?, languages.unless(*way).as_deref(), &languages.needs(*way))
            }
        };
        Some(pattern.but(except.cloned()))
    }

    /// Frees the words that [`Phrases::words`] gives.
    pub(crate) fn forget_words(&mut self) {
        self.words = Vec::new();
    }

    /// The words without which [`Phrases::find`] finds nothing.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// What stands in a normalised text: one pass for the words, and each rule's regex where its own stand, as far as `searched` lets
    /// them look.
    pub(super) fn find(&self, text: &str, place: Place, searched: &mut Searched) -> Seen<'_> {
        let mut out = Seen::default();
        let mut near = Nearby::new(self.lines.len(), text.len());
        let mut note = |near: &mut Nearby, owner: Option<&Owner>, met: Met| {
            match owner {
                Some(Owner::Lines(lines)) => near.add(lines, met),
                Some(Owner::Sign(sign)) => out.signs.note(*sign),
                Some(Owner::Private) => out.private = true,
                None => {}
            }
            true
        };
        self.keywords.each(text.as_bytes(), |met| note(&mut near, self.owners.get(met.word), met));
        near.anew();
        for (from, to) in strange_parts(text.as_bytes()) {
            let part = text.as_bytes().get(from..to).unwrap_or_default();
            self.strange.each(part, |met| {
                let owner = self.strange_owners.get(met.word);
                note(&mut near, owner, Met { start: from + met.start, end: from + met.end, ..met })
            });
        }
        let mut near = near.by_line();
        near.retain(|(line, _)| {
            let rule = self.lines.get(*line).and_then(|line| self.rules.get(line.rule));
            rule.is_some_and(|rule| rule.places.contains(&place))
        });
        let search = |line: usize| {
            let line = self.lines.get(line)?;
            let weightless = self.rules.get(line.rule)?.weight == 0.0;
            Some(match line.of_language() {
                _ if weightless => Search::Hints,
                true => Search::Languages,
                false => Search::Own,
            })
        };
        for one in [Search::Own, Search::Languages, Search::Hints] {
            let lines: Vec<&mut Near> =
                near.iter_mut().filter(|(line, _)| search(*line) == Some(one)).map(|(_, near)| near).collect();
            let wanted = lines.iter().map(|near| near.bytes).sum();
            let room = searched.take(text.len(), wanted, one);
            if room < wanted {
                share_out(lines, room);
            }
        }
        for (line, near) in near {
            let Some(Line { rule, source, without, pattern }) = self.lines.get(line) else { continue };
            let (rule, Some(Rule { id, says, weight, people, except, .. })) = (*rule, self.rules.get(*rule)) else {
                continue;
            };
            let Some(pattern) = pattern.get_or_init(|| self.pattern(source, except.as_ref())) else { continue };
            let hits = pattern.hits(text, &near.stretches, MAX_HITS, (&self.kept, line));
            let (weight, foreign) = (*weight, matches!(source, Source::Way(_)));
            let without = without.as_ref().and_then(|without| without.compiled());
            let said = |span: (usize, usize)| {
                let theirs =
                    without.is_none_or(|without| !without.is_match(text.get(span.0..span.1).unwrap_or_default()));
                if theirs { *people } else { People::Never }
            };
            if weight == 0.0 {
                out.hints.extend(hits.into_iter().filter(|span| !in_address(text, *span)));
                continue;
            }
            let phrase = |span| Phrase { rule, id, says, weight, foreign, people: said(span), span };
            out.phrases.extend(hits.into_iter().map(phrase));
        }
        out.phrases.sort_by_key(|phrase| phrase.span.0);
        out
    }

    /// Whether a normalised text with so many phrases may tell of attacks anywhere. Where they are few it costs less to look at each.
    pub(crate) fn tells(&self, text: &str, phrases: usize) -> bool {
        phrases.saturating_mul(mentions::LOOKED_AT) <= text.len() || self.mentions.anywhere(text)
    }

    /// Whether what stands at `span` of a normalised text is an attack that is told of, and not made.
    pub(crate) fn told(&self, text: &str, span: (usize, usize)) -> bool {
        self.mentions.labelled(text, span) || self.mentions.denied(text, span)
    }

    /// Whether what a phrase says is quoted in passing.
    pub(crate) fn in_passing(&self, text: &str, phrase: &Phrase<'_>) -> bool {
        self.mentions.in_passing(text, phrase.id, phrase.span)
    }

    /// Whether what a phrase says is an example in a [`Phrases::lesson`] whose blocks of code are at `fences`.
    pub(crate) fn example(&self, text: &str, phrase: &Phrase<'_>, fences: &[usize]) -> bool {
        self.mentions.example(text, phrase.span, fences)
    }

    /// Whether what a phrase says may be an example.
    pub(crate) fn may_be_example(&self, phrase: &Phrase<'_>) -> bool {
        self.mentions.is_saying(phrase.id)
    }

    /// Where blocks of code begin and end in a normalised text that teaches: such texts show examples.
    pub(crate) fn lesson(&self, text: &str) -> Option<Vec<usize>> {
        self.subjects.teach(text).then(|| mentions::fences(text))
    }
}

/// Bytes beside a place within which an address that it is a part of begins and ends.
const ADDRESS: usize = 253;

/// Whether a place of a text is a part of a mailbox, or of the host or the path of a URL: such words speak to nobody.
fn in_address(text: &str, (start, end): (usize, usize)) -> bool {
    let bytes = text.as_bytes();
    let mailbox = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-@".contains(b);
    let url = |b: &u8| mailbox(b) || b"/:~&=".contains(b);
    let word = |part: &dyn Fn(&u8) -> bool| {
        let before = bytes.get(start.saturating_sub(ADDRESS)..start).unwrap_or_default();
        let after = bytes.get(end..bytes.len().min(end + ADDRESS)).unwrap_or_default();
        let from = start - before.iter().rev().take_while(|b| part(b)).count();
        let to = end + after.iter().take_while(|b| part(b)).count();
        (from, bytes.get(from..to).unwrap_or_default())
    };
    let is_mailbox = |word: &[u8]| {
        let mut halves = word.split(|b| *b == b'@');
        let (name, host, more) = (halves.next(), halves.next(), halves.next());
        word.iter().all(mailbox)
            && name.is_some_and(|name| !name.is_empty())
            && more.is_none()
            && host.is_some_and(|host| host.contains(&b'.'))
    };
    let is_url = |(from, word): (usize, &[u8])| {
        word.iter().all(url) && memmem::find(word, b"://").is_some_and(|at| from + at < start)
    };
    is_mailbox(word(&mailbox).1) || is_url(word(&url))
}

#[cfg(test)]
mod tests;
