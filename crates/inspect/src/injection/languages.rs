//! Phrases of attacks in other languages: data of `profiles/detect/languages.toml`. A few kinds of orders, and for each language
//! the words of their parts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::phrases::{People, Place};

/// A name in a regex: `(?&name)`.
const OPEN: &str = "(?&";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Languages {
    /// Stand in a regex by name where the language has no part of that name.
    gaps: BTreeMap<String, String>,
    #[serde(rename = "family")]
    families: Vec<Family>,
    #[serde(rename = "language")]
    languages: Vec<Language>,
}

/// One kind of order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Family {
    pub(super) id: String,
    pub(super) says: String,
    /// The parts whose words a regex is tried around.
    keywords: Vec<String>,
    /// Where the verb comes first.
    regex: Vec<String>,
    /// Where it comes last, if that makes a difference.
    #[serde(default)]
    verb_last: Vec<String>,
    #[serde(default)]
    unless: Option<String>,
    /// What must not stand in it, in no language.
    #[serde(default)]
    pub(super) except: Option<String>,
    /// Parts of each of which one stands in every alternative.
    #[serde(default)]
    needs: Vec<Vec<String>>,
    pub(super) weight: f32,
    #[serde(default)]
    pub(super) people: People,
    /// A part that people do not say such things with: where a word of it stands in a phrase, that is an attack's.
    #[serde(default)]
    people_without: Option<String>,
    #[serde(default = "super::phrases::everywhere", rename = "in")]
    pub(super) places: Vec<Place>,
}

#[derive(Debug, Deserialize)]
struct Language {
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever reads the table"))]
    name: String,
    #[serde(default)]
    verb: Verb,
    #[serde(default)]
    keywords: BTreeMap<String, Vec<String>>,
    /// Pieces of a regex by the name of their part.
    #[serde(flatten)]
    parts: BTreeMap<String, Vec<String>>,
}

/// Where a language puts the verb of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    #[default]
    First,
    Last,
    Both,
}

/// A kind of order in one language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    family: usize,
    language: usize,
}

impl Languages {
    pub(super) fn families(&self) -> &[Family] {
        &self.families
    }

    /// Every kind of order in every language that has the words for it: the family, and the words to look for.
    pub(super) fn ways(&self) -> impl Iterator<Item = (usize, Way, Vec<&str>)> {
        self.languages.iter().enumerate().flat_map(move |(language, spoken)| {
            self.families.iter().enumerate().filter_map(move |(family, kind)| {
                let way = Way { family, language };
                self.alternatives(way).next()?;
                let words = kind.keywords.iter().flat_map(|part| {
                    let own = spoken.keywords.get(part).or_else(|| spoken.parts.get(part));
                    own.into_iter().flatten().map(String::as_str)
                });
                Some((family, way, words.collect()))
            })
        })
    }

    /// The alternatives of a kind of order whose parts a language has.
    fn alternatives(&self, way: Way) -> impl Iterator<Item = (&str, &Language)> {
        let both = self.families.get(way.family).zip(self.languages.get(way.language));
        both.into_iter().flat_map(move |(family, language)| {
            let first = (language.verb != Verb::Last || family.verb_last.is_empty()).then_some(&family.regex);
            let last = (language.verb != Verb::First).then_some(&family.verb_last);
            let all = first.into_iter().chain(last).flatten().map(String::as_str);
            all.filter(|regex| self.parts(regex).all(|part| self.part(part, language).is_some()))
                .map(move |regex| (regex, language))
        })
    }

    /// The regex of a kind of order in one language.
    pub(super) fn regex(&self, way: Way) -> Option<String> {
        let all: Vec<String> =
            self.alternatives(way).filter_map(|(regex, language)| self.filled(regex, language)).collect();
        (!all.is_empty()).then(|| all.join("|"))
    }

    /// What must not stand right before it.
    pub(super) fn unless(&self, way: Way) -> Option<String> {
        let (family, language) = (self.families.get(way.family)?, self.languages.get(way.language)?);
        self.filled(family.unless.as_ref()?, language)
    }

    /// A regex of the words that people do not say such things with. Beside an `@` they are of its mailbox (`secretariat@…`).
    pub(super) fn people_without(&self, way: Way) -> Option<String> {
        let (family, language) = (self.families.get(way.family)?, self.languages.get(way.language)?);
        let words = self.part(family.people_without.as_ref()?, language)?.join("|");
        Some(format!("(?:{words})[a-z0-9._-]*(?:[^a-z0-9._@-]|$)"))
    }

    /// Pieces of a regex, of each of which something stands in all that is found.
    pub(super) fn needs(&self, way: Way) -> Vec<String> {
        let Some((family, language)) = self.families.get(way.family).zip(self.languages.get(way.language)) else {
            return Vec::new();
        };
        let pieces = |parts: &Vec<String>| {
            // An alternative with a part that the language does not have is left out.
            let pieces = parts.iter().filter_map(|part| self.part(part, language)).flatten();
            pieces.map(String::as_str).collect::<Vec<_>>().join("|")
        };
        family.needs.iter().map(pieces).collect()
    }

    /// The names in a regex.
    fn parts<'r>(&self, regex: &'r str) -> impl Iterator<Item = &'r str> {
        regex.split(OPEN).skip(1).filter_map(|piece| piece.split_once(')')).map(|(name, _)| name)
    }

    /// What stands in a regex for a name.
    fn part<'s>(&'s self, name: &str, language: &'s Language) -> Option<&'s [String]> {
        language.parts.get(name).map(Vec::as_slice).or_else(|| self.gaps.get(name).map(std::slice::from_ref))
    }

    /// A regex with the parts of a language, if it has them all.
    fn filled(&self, regex: &str, language: &Language) -> Option<String> {
        let mut pieces = regex.split(OPEN);
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once(')')?;
            out.extend(["(?:", &self.part(name, language)?.join("|"), ")", rest]);
        }
        Some(out)
    }

    #[cfg(test)]
    pub(super) fn name(&self, way: Way) -> String {
        format!("{}: {}", self.families[way.family].id, self.languages[way.language].name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Languages {
        toml::from_str(include_str!("../../../../profiles/detect/languages.toml")).unwrap()
    }

    #[test]
    fn every_part_is_asked_for() {
        let table = table();
        let asked = |name: &str| {
            let mut all = table.families.iter().flat_map(|f| f.regex.iter().chain(&f.verb_last).chain(&f.unless));
            all.any(|regex| table.parts(regex).any(|part| part == name))
                || table.families.iter().any(|f| f.keywords.iter().any(|part| part == name))
        };
        for language in &table.languages {
            for name in language.parts.keys().chain(language.keywords.keys()) {
                assert!(asked(name), "{}: {name}", language.name);
            }
        }
    }

    /// What is looked for is no regex.
    #[test]
    fn words_are_words() {
        let table = table();
        for (_, way, words) in table.ways() {
            assert!(!words.is_empty(), "{}", table.name(way));
            for word in words {
                assert!(!word.contains(['\\', '(', '[', '?', '*', '+', '|', '^', '$']), "{}: {word}", table.name(way));
            }
        }
    }

    #[test]
    fn what_is_needed_stands_in_every_alternative() {
        for family in table().families {
            for (regex, needs) in family
                .regex
                .iter()
                .chain(&family.verb_last)
                .flat_map(|regex| family.needs.iter().map(move |needs| (regex, needs)))
            {
                assert!(needs.iter().any(|part| regex.contains(&format!("(?&{part})"))), "{}: {needs:?}", family.id);
            }
        }
    }

    #[test]
    fn a_part_that_a_language_lacks_leaves_its_alternative_out() {
        let text = "[gaps]\ngap = '.'\n[[family]]\nid = 'a'\nsays = 'b'\nkeywords = ['x']\nregex = ['(?&x)(?&gap)(?&y)', '(?&x)z']\nweight = 1.0\n";
        let spoken = |parts: &str| {
            let table: Languages = toml::from_str(&format!("{text}[[language]]\nname = 'c'\n{parts}")).unwrap();
            table.ways().map(|(_, way, _)| table.regex(way)).collect::<Vec<_>>()
        };
        assert_eq!(spoken("x = ['k', 'l']"), [Some("(?:k|l)z".to_owned())]);
        assert_eq!(spoken("x = ['k']\ny = ['m']"), [Some("(?:k)(?:.)(?:m)|(?:k)z".to_owned())]);
        assert_eq!(spoken("y = ['m']"), []);
    }
}
