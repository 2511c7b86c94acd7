//! Names in a tree of files that other programs run by themselves, and which therefore stay closed where the tree may be
//! written.

use std::{fmt, path::Path, str::FromStr};

use serde::{Deserialize, Serialize};

/// Longest pattern, in characters.
const MAX_TEXT: usize = 200;

/// Names one after the other, at any depth: `.vscode`, `.git/hooks`. `**` stands for any number of directories between two
/// names: `.git/**/commondir`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// As [`folded`].
    Name(String),
    Any,
}

/// A text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern of names: write NAME, NAME/NAME or NAME/**/NAME")]
pub struct PatternError(String);

/// Which names of a tree stay closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProtectedNames {
    /// Whatever bears such a name, and everything in it.
    pub names: Vec<Pattern>,
    /// Only directories may bear such a name; the directory itself is open.
    pub directories: Vec<Pattern>,
    /// What `directories` does not mean.
    pub except: Vec<Pattern>,
}

/// What protected names there are on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many of the path's components end the last protected name on it; 0: there is none.
    pub closed: usize,
    /// The whole path is a name that only a directory may bear.
    pub directory_only: bool,
    /// A protected name could lie below: the path ends as some pattern begins.
    pub leads_to: bool,
}

impl ProtectedNames {
    /// Whether nothing is protected.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.directories.is_empty()
    }

    /// Looks at a canonical path.
    pub fn look(&self, path: &Path) -> Look {
        let all: Vec<String> = path.components().map(|c| folded(&c.as_os_str().to_string_lossy())).collect();
        let mut look = Look::default();
        for pattern in &self.names {
            look.leads_to |= pattern.find(&all, &mut |end| look.closed = look.closed.max(end));
        }
        let mut excepted = false;
        for pattern in &self.directories {
            look.leads_to |= pattern.find(&all, &mut |end| look.directory_only |= end == all.len());
        }
        for pattern in &self.except {
            pattern.find(&all, &mut |end| excepted |= end == all.len());
        }
        look.directory_only &= !excepted;
        look
    }
}

impl Pattern {
    /// Tells how many names there are up to each end of this pattern; whether the last of them fit a part of it.
    fn find(&self, names: &[String], ends: &mut impl FnMut(usize)) -> bool {
        let mut begins = false;
        for (start, name) in names.iter().enumerate() {
            // `**` is never first. Nearly always it ends here.
            if matches!(self.0.first(), Some(Part::Name(first)) if first == name) {
                begins |= run(&self.0, names, start, start, ends);
            }
        }
        begins
    }
}

/// Fits `parts` to the names from `at` on.
fn run(parts: &[Part], names: &[String], start: usize, at: usize, ends: &mut impl FnMut(usize)) -> bool {
    match (parts.split_first(), names.get(at)) {
        (None, _) => {
            ends(at);
            false
        }
        // Out of names before the end of the pattern, and past its beginning.
        (Some(_), None) => at > start,
        (Some((Part::Name(want), rest)), Some(name)) => want == name && run(rest, names, start, at + 1, ends),
        (Some((Part::Any, rest)), Some(_)) => {
            // `**` is never first or last, nor beside another, so this tries each number of directories once.
            let mut begins = false;
            for next in at..=names.len() {
                begins |= run(rest, names, start, next, ends);
            }
            begins
        }
    }
}

/// A name as file systems that do not tell spellings apart see it: without case (full folding, so that "ſ" is "s"), without
/// the characters that HFS+ and ext4's case folding leave out, and without the dots and spaces that Windows cuts off.
fn folded(name: &str) -> String {
    let cut = |whole: &str| match whole.trim_end_matches(['.', ' ']) {
        "" => whole.len(),
        trimmed => trimmed.len(),
    };
    // Nearly every name: none of what is left out is ASCII, nor has ASCII more than two cases.
    if name.is_ascii() {
        let mut folded = name.to_ascii_lowercase();
        folded.truncate(cut(name));
        return folded;
    }
    let ignored = |c: char| {
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
    };
    let kept = name.chars().filter(|c| !ignored(*c));
    let mut folded: String = kept.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    folded.truncate(cut(&folded));
    folded
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError(text.chars().take(80).collect());
        if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
            return Err(error());
        }
        let part = |part: &str| match part {
            "" | "." | ".." => None,
            "**" => Some(Part::Any),
            name if name.contains('*') => None,
            name => Some(Part::Name(folded(name))),
        };
        let parts: Vec<Part> = text.split('/').map(part).collect::<Option<_>>().ok_or_else(error)?;
        let outer = [parts.first(), parts.last()];
        let inner = parts.windows(2).any(|w| w == [Part::Any, Part::Any]);
        if inner || outer.contains(&Some(&Part::Any)) { Err(error()) } else { Ok(Self(parts)) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            f.write_str(match part {
                Part::Name(name) => name,
                Part::Any => "**",
            })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> ProtectedNames {
        let of = |all: &[&str]| all.iter().map(|p| p.parse().unwrap()).collect();
        ProtectedNames {
            names: of(&[".git/hooks", ".git/**/commondir", ".vscode", ".github/workflows", ".mcp.json"]),
            directories: of(&[".git", "HEAD"]),
            except: of(&[".git/**/HEAD"]),
        }
    }

    #[test]
    fn paths_are_looked_at() {
        let none = Look::default();
        let closed = |closed| Look { closed, ..none };
        let leads = Look { leads_to: true, ..none };
        for (path, want) in [
            ("/w/src/main.rs", none),
            ("/w/.vscode", closed(3)),
            ("/w/a/b/.vscode/tasks.json", closed(5)),
            ("/w/.VSCode/x", closed(3)),
            ("/w/.v\u{17f}code", closed(3)),
            ("/w/.vs\u{200c}code", closed(3)),
            ("/w/.vscode. ", closed(3)),
            ("/w/.VSCode.. . ", closed(3)),
            ("/w/\u{200b}.vscode.", closed(3)),
            ("/w/...", none),
            ("/w/\u{200b}. .", none),
            ("/w/.vscode2", none),
            ("/w/vscode", none),
            ("/w/.github", leads),
            ("/w/.github/workflows", closed(4)),
            ("/w/.github/x", none),
            ("/w/.github/x/workflows", none),
            ("/w/.git", Look { directory_only: true, leads_to: true, closed: 0 }),
            ("/w/.git/hooks/pre-commit", Look { closed: 4, leads_to: true, ..none }),
            ("/w/.git/HEAD", leads),
            ("/w/.git/logs/HEAD", leads),
            ("/w/.git/commondir", Look { closed: 4, leads_to: true, ..none }),
            ("/w/.git/worktrees/x/commondir", Look { closed: 6, leads_to: true, ..none }),
            ("/w/x/HEAD", Look { directory_only: true, ..none }),
            ("/w/.git/x/.vscode/y", Look { closed: 5, leads_to: true, ..none }),
            ("/w/.vscode/.git/hooks", Look { closed: 5, leads_to: true, ..none }),
            ("/", none),
        ] {
            assert_eq!(names().look(Path::new(path)), want, "{path}");
        }
        assert_eq!(ProtectedNames::default().look(Path::new("/w/.git/hooks")), none);
    }

    #[test]
    fn patterns_in_words() {
        for text in ["a", ".git/hooks", ".git/**/x", "a/**/b/**/c"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for text in ["", "/", "/a", "a/", "a//b", "**", "**/a", "a/**", "a/**/**/b", "*.x", "a/../b", "./a", "a\nb"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
        assert!("a".repeat(MAX_TEXT + 1).parse::<Pattern>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "[.a-zA-Z*/]{0,20}") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
            }
        }

        /// A character that is left out makes no difference, also to how a name is folded.
        #[test]
        fn names_of_ascii_fold_as_others_do(name in "[ -~]{0,12}") {
            prop_assert_eq!(folded(&name), folded(&format!("\u{200b}{name}")));
        }

        /// What lies below a protected name is protected.
        #[test]
        fn nothing_below_is_open(above in "(/[a-z.]{1,4}){0,3}", below in "(/[a-zA-Z.]{1,9}){0,4}") {
            let path = format!("{above}/.vscode{below}");
            prop_assert!(names().look(Path::new(&path)).closed > 0);
        }
    }
}
