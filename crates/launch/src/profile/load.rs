//! Which profiles there are, and which one is for a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{Kind, Profile, Subject, built_in::BuiltIn, normal, parse::parse};

/// Largest profile file that is read.
const MAX_FILE: u64 = 64 * 1024;
/// Most files in the user's profile directory.
const MAX_FILES: usize = 256;
/// Longest chain of profiles that extend one another.
const MAX_CHAIN: usize = 8;

/// A profile file that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which file.
    pub file: PathBuf,
    /// Its line, when it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub text: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// All profiles.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    user: Vec<Profile>,
    built_in: BuiltIn,
    /// Names of the user's files: what ships under the same name does not count.
    replaced: BTreeSet<String>,
    /// Texts of the user's files that do not parse: what they mention gets no profile at all, because the file may
    /// have been meant to be tighter than the one that would count instead.
    broken: Vec<String>,
    /// A user's file could not even be read, so it may mention anything.
    pub(super) unreadable: bool,
}

/// The outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Profile(&'a Profile),
    /// A broken file of the user's may be about this server.
    Withheld,
    Nothing,
}

impl Profiles {
    /// Loads the built-in profiles and the user's `*.toml` in `user_dir`, which need not exist. A user's profile goes
    /// before a built-in one, and replaces the built-in one of the same name.
    pub fn load(user_dir: &Path) -> (Self, Vec<Problem>) {
        let mut all = Self::default();
        let mut problems = Vec::new();
        let files = user_files(user_dir).unwrap_or_else(|text| {
            all.unreadable = true;
            problems.push(Problem { file: user_dir.to_owned(), line: None, text });
            BTreeMap::new()
        });
        all.replaced.extend(files.keys().cloned());
        let mut own = BTreeMap::new();
        let mut texts = BTreeMap::new();
        for (name, file) in &files {
            match read_bounded(file) {
                Ok(text) => {
                    texts.insert(name, text);
                }
                Err(e) => {
                    all.unreadable = true;
                    let text = format!("could not be read: {e}. Until it can be, servers run without any profile");
                    problems.push(Problem { file: file.clone(), line: None, text });
                }
            }
        }
        let mut broken = |name: &String, line, why: String| {
            let text = format!("{why}. Until it is corrected, servers it mentions run without any profile");
            let file = files.get(name).cloned().unwrap_or_default();
            problems.push(Problem { file, line, text });
            all.broken.extend(texts.get(name).map(|text| normal(text)));
        };
        for (name, text) in &texts {
            match parse(name, text) {
                Ok(profile) => {
                    own.insert((*name).clone(), profile);
                }
                Err((line, why)) => broken(name, line, why),
            }
        }
        let sources = Sources { files: &all.replaced, user: &own, built_in: &all.built_in };
        for name in own.keys() {
            match sources.whole(name) {
                Ok(profile) => all.user.push(profile),
                Err(why) => {
                    let text = texts.get(name).map(String::as_str).unwrap_or_default();
                    let line = text.lines().position(|l| l.trim_start().starts_with("extends")).map(|n| n + 1);
                    broken(name, line, why);
                }
            }
        }
        (all, problems)
    }

    /// The profile of that name; the user's own before a built-in one. None while a file of the user's cannot be read:
    /// it may have been meant to be this one.
    pub(crate) fn named(&self, name: &str) -> Option<&Profile> {
        if self.unreadable {
            return None;
        }
        let built_in = || self.built_in.whole(name).filter(|_| !self.replaced.contains(name));
        self.user.iter().find(|p| p.name == name).or_else(built_in)
    }

    /// Whether a profile is the user's own.
    pub(crate) fn is_users(&self, name: &str) -> bool {
        self.user.iter().any(|p| p.name == name)
    }

    /// The profile for a server known under any of `subjects`.
    pub(crate) fn find(&self, subjects: &[Subject<'_>]) -> Found<'_> {
        let mentions = |s: &Subject<'_>| {
            let name = normal(s.name());
            self.broken.iter().any(|text| text.contains(&name))
        };
        if !subjects.is_empty() && (self.unreadable || subjects.iter().any(mentions)) {
            return Found::Withheld;
        }
        let fits = |p: &&Profile| subjects.iter().any(|s| p.matches.fits(*s));
        let user = self.user.iter().find(fits);
        let built_in = || subjects.iter().flat_map(|s| self.built_in.about(*s)).find(|p| self.counts(p) && fits(p));
        user.or_else(built_in).map_or(Found::Nothing, Found::Profile)
    }

    /// The profile for all servers that are launched so. None while a file of the user's cannot be read.
    pub(crate) fn of_kind(&self, kind: Kind) -> Option<&Profile> {
        if self.unreadable {
            return None;
        }
        let fits = |p: &&Profile| p.matches.kind.contains(&kind);
        let built_in = || self.built_in.about_kind(kind).find(|p| self.counts(p) && fits(p));
        self.user.iter().find(fits).or_else(built_in)
    }

    /// Whether a built-in profile is in force.
    fn counts(&self, built_in: &Profile) -> bool {
        !self.replaced.contains(&built_in.name)
    }
}

/// What a user's profile can extend.
struct Sources<'a> {
    /// Names of all of the user's files, those that do not parse too.
    files: &'a BTreeSet<String>,
    /// As the files have them.
    user: &'a BTreeMap<String, Profile>,
    built_in: &'a BuiltIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    User,
    BuiltIn,
}

impl Sources<'_> {
    fn get(&self, origin: Origin, name: &str) -> Result<&Profile, String> {
        let found = match origin {
            Origin::User => self.user.get(name),
            Origin::BuiltIn => self.built_in.whole(name),
        };
        found.ok_or_else(|| {
            format!("it extends {name:?}, which is no profile, or a broken one: correct the name or that file")
        })
    }

    /// A user's profile with all that it extends: the user's own, else a built-in one; the one of its own name is the
    /// built-in one, which brings along what it extends itself.
    fn whole(&self, name: &str) -> Result<Profile, String> {
        let mut at = self.get(Origin::User, name)?;
        let mut chain = vec![(Origin::User, at.name.as_str())];
        let mut whole = at.clone();
        while let (Some((Origin::User, _)), Some(next)) = (chain.last(), &at.extends) {
            let own = *next != at.name && self.files.contains(next);
            let link = (if own { Origin::User } else { Origin::BuiltIn }, next.as_str());
            if chain.contains(&link) {
                return Err(format!("it extends itself by way of {:?}: remove one of the extends", at.name));
            }
            if chain.len() == MAX_CHAIN {
                return Err(format!("it extends a chain of more than {MAX_CHAIN} profiles: extend a nearer one"));
            }
            chain.push(link);
            at = self.get(link.0, next)?;
            whole = whole.over(at);
        }
        Ok(whole)
    }
}

/// The user's profile files, sorted by name.
fn user_files(dir: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let unreadable =
        |e: io::Error| format!("could not be listed: {e}. Until it can be, servers run without any profile");
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(unreadable(e)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let Some(name) = path.file_stem().and_then(|n| n.to_str()) else { continue };
        files.insert(name.to_owned(), path);
        if files.len() > MAX_FILES {
            return Err(format!("holds more than {MAX_FILES} profiles: remove some. Until then no profile counts"));
        }
    }
    Ok(files)
}

fn read_bounded(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(file)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}
