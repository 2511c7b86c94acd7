//! Names that stay closed where a tree may be written, as regular expressions.
//!
//! On Linux the guardian sees what is renamed to what, and where. Seatbelt judges both ends of a rename alone: as
//! `file-write-unlink` of what leaves and `file-write-create` of what arrives, whatever lies in it. So these rules hold in
//! everything that the server may write, its own directories included, where a closed name could be prepared and then moved; and
//! they are wider than the names where the names alone could be come around.

use std::{collections::BTreeSet, fmt::Write as _};

use firedoor_model::{
    launch::Access,
    protected::{Pattern, ProtectedNames},
};

use super::{Granted, Profile};

/// Characters that HFS+ leaves out when it compares names (Apple Technical Note TN1150, FastUnicodeCompare).
const IGNORED: &[std::ops::RangeInclusive<char>] =
    &['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];

/// Characters outside ASCII that are ASCII letters when case does not count (Unicode CaseFolding.txt, full folding); and the
/// dotless i, whose capital is I.
const FOLDS: &[(char, &str)] = &[
    ('\u{131}', "i"),
    ('\u{17f}', "s"),
    ('\u{212a}', "k"),
    ('\u{df}', "ss"),
    ('\u{1e9e}', "ss"),
    ('\u{fb00}', "ff"),
    ('\u{fb01}', "fi"),
    ('\u{fb02}', "fl"),
    ('\u{fb03}', "ffi"),
    ('\u{fb04}', "ffl"),
    ('\u{fb05}', "st"),
    ('\u{fb06}', "st"),
];

/// Writes the rules. Grants that lie in a closed place themselves are open: somebody named them.
pub(super) fn close(profile: &mut Profile, protected: &ProtectedNames, granted: &[Granted]) {
    let (mut begun, mut opened) = (BTreeSet::new(), BTreeSet::new());
    for pattern in &protected.names {
        let rule = Rule::of(pattern);
        let alone = ProtectedNames { names: vec![pattern.clone()], ..ProtectedNames::default() };
        let mut unless = String::new();
        for grant in granted {
            if grant.grant.access >= Access::Edit && alone.look(&grant.grant.path).closed > 0 {
                let _ = write!(unless, " (require-not (subpath {}))", grant.word);
                opened.insert(&grant.word);
            }
        }
        deny(profile, "file-write*", &format!("{}(/.*)?$", rule.closed), &unless);
        begun.extend(rule.begins);
    }
    // What begins a closed name never comes into being and never goes away: nothing prepared elsewhere gets its name.
    for begins in begun {
        deny(profile, "file-write-create file-write-unlink", &format!("{begins}$"), "");
    }
    // In an open place closed names can be made, and no directory takes them elsewhere.
    for word in opened {
        profile.line(&format!("(deny file-write-unlink (require-all (subpath {word}) (vnode-type DIRECTORY)))"));
    }
    let mut excepted = String::new();
    for pattern in &protected.except {
        let word = profile.parameter("EXCEPT", format!("{}$", path(&parts(pattern))));
        let _ = write!(excepted, " (require-not (regex {word}))");
    }
    for pattern in &protected.directories {
        let only = format!(" (require-not (vnode-type DIRECTORY)){excepted}");
        deny(profile, "file-write*", &format!("{}$", path(&parts(pattern))), &only);
    }
    // What is excepted in some directory stays in it.
    for pattern in &protected.except {
        let all = parts(pattern);
        let inside = all.iter().position(|p| *p == "**").unwrap_or(all.len().saturating_sub(1));
        if let Some(above) = all.get(..inside).filter(|above| !above.is_empty()) {
            deny(profile, "file-write-unlink", &format!("{}/", path(above)), " (vnode-type DIRECTORY)");
        }
    }
    let ignored: Vec<String> = IGNORED.iter().cloned().flatten().map(String::from).collect();
    deny(profile, "file-write*", &format!("({})", ignored.join("|")), "");
}

fn deny(profile: &mut Profile, operations: &str, regex: &str, further: &str) {
    let word = profile.parameter("NAME", regex.to_owned());
    let rule = if further.is_empty() {
        format!("(deny {operations} (regex {word}))")
    } else {
        format!("(deny {operations} (require-all (regex {word}){further}))")
    };
    profile.line(&rule);
}

/// What closes a pattern's names.
struct Rule {
    closed: String,
    begins: Vec<String>,
}

impl Rule {
    fn of(pattern: &Pattern) -> Self {
        let all = parts(pattern);
        let begins_hidden = all.first().is_some_and(|name| name.starts_with('.'));
        if all.len() > 1 && (all.iter().any(|part| part == "**") || !begins_hidden) {
            // Directories that could become its beginning by a rename are too many or too usual to forbid: its last name is
            // closed wherever it is.
            return Self { closed: path(all.get(all.len() - 1..).unwrap_or_default()), begins: Vec::new() };
        }
        let begins = (1..all.len()).filter_map(|end| all.get(..end)).map(path).collect();
        Self { closed: path(&all), begins }
    }
}

/// A pattern's names, without case, and `**`.
fn parts(pattern: &Pattern) -> Vec<String> {
    pattern.to_string().split('/').map(str::to_owned).collect()
}

/// Matches a path that ends with these names, or goes on.
fn path(parts: &[String]) -> String {
    let mut regex = String::from("/");
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        match part.as_str() {
            "**" => regex.push_str("(.*/)?"),
            // Some file systems drop dots and spaces at a name's end.
            name => {
                regex.push_str(&letters(name));
                regex.push_str(if last { "[. ]*" } else { "[. ]*/" });
            }
        }
    }
    regex
}

/// Matches a name in every spelling that a file system without case takes for it.
fn letters(name: &str) -> String {
    let Some(first) = name.chars().next() else { return String::new() };
    let rest = letters(name.get(first.len_utf8()..).unwrap_or_default());
    let mut ways = vec![format!("{}{rest}", letter(first))];
    for (other, folded) in FOLDS.iter().filter(|(_, folded)| folded.len() > 1) {
        if let Some(after) = name.strip_prefix(folded) {
            ways.push(format!("{other}{}", letters(after)));
        }
    }
    match ways.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join("|")),
    }
}

fn letter(c: char) -> String {
    if c.is_ascii_alphabetic() {
        let both = format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase());
        match FOLDS.iter().find(|(_, folded)| folded.chars().eq([c])) {
            Some((other, _)) => format!("({both}|{other})"),
            None => both,
        }
    } else if ".*+?()[]{}|^$\\".contains(c) {
        format!("\\{c}")
    } else if c.is_ascii() {
        c.to_string()
    } else {
        let upper: String = c.to_uppercase().collect();
        format!("({c}|{upper})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table holds every character whose folding is ASCII.
    #[test]
    fn foldings_are_complete() {
        // Lower case first: the capital sharp s has no other capital.
        let fold = |c: char| -> String {
            c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
        };
        let all: Vec<(char, String)> = (char::MIN..=char::MAX)
            .filter(|c| !c.is_ascii())
            .map(|c| (c, fold(c)))
            .filter(|(_, folded)| folded.is_ascii())
            .collect();
        for (c, folded) in &all {
            assert!(FOLDS.contains(&(*c, folded)), "{c:?} is {folded:?}");
        }
        assert_eq!(all.len(), FOLDS.len());
    }
}
