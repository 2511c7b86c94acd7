//! Secrets of an entry that move into the keychain, and back.
//!
//! ```json
//! {"command":"npx","args":["-y","srv"],"env":{"TOKEN":"ghp_…"}}
//! {"command":"npx","args":["-y","srv"],"env":{"TOKEN":"firedoor-secret:cursor/user/srv/TOKEN"}}
//! ```
//!
//! What moves is the whole string, so that one splice takes it out and another puts it back. The keychain's item holds
//! the secret as the server gets it; where the text spells it in its own way (`\u0041`, `'…'`), that way is kept in the
//! same item, behind a NUL, which no argument and no variable can contain (execve(2)).

use std::collections::BTreeSet;

use firedoor_model::{EntryId, Keychain, KeychainError, SecretRef, secret::MAX_SECRET};
use serde::Serialize;

use crate::{
    catalog::Interpolation,
    document::{Remote, Shape, Stdio, Str},
    secret,
    wrap::{Edit, quoted, slice, wrapped},
};

/// A secret that stays where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretLeft {
    /// Whose it is.
    pub entry: EntryId,
    /// The variable or header, or the option in front of the argument.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A secret as the keychain has it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    value: String,
    /// How the configuration spelled it, if not in the plain way.
    spelled: Option<String>,
}

impl Kept {
    fn new(value: &str, spelled: &str) -> Self {
        let spelled = (quoted(value) != spelled).then(|| spelled.to_owned());
        Self { value: value.to_owned(), spelled }
    }

    /// What a configuration has for it.
    pub fn token(&self) -> String {
        self.spelled.clone().unwrap_or_else(|| quoted(&self.value))
    }

    fn content(&self) -> String {
        match &self.spelled {
            Some(spelled) => format!("{}\0{spelled}", self.value),
            None => self.value.clone(),
        }
    }

    fn read(content: Vec<u8>, item: &str) -> Result<Self, KeychainError> {
        let failed = || KeychainError::Failed { doing: "read", item: item.into(), why: "it is not text".into() };
        let text = String::from_utf8(content).map_err(|_| failed())?;
        Ok(match text.split_once('\0') {
            Some((value, spelled)) => Self { value: value.to_owned(), spelled: Some(spelled.to_owned()) },
            None => Self { value: text, spelled: None },
        })
    }
}

/// Why a secret could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The keychain does not work.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// It has no such item.
    #[error("the keychain has no secret {name}: set it with `firedoor secrets set {name}`", name = .0.quoted())]
    Missing(SecretRef),
    /// It is not what it was when Firedoor wrote to it, or it does not say what it has.
    #[error(
        "the keychain has nothing of Firedoor's, {name} neither: it may be locked, or another one than before. Unlock it, \
         or set the secret with `firedoor secrets set {name}`", name = .0.quoted()
    )]
    Nothing(SecretRef),
}

fn kept(keychain: &dyn Keychain, reference: &SecretRef) -> Result<Kept, SecretError> {
    let item = reference.item();
    match keychain.get(&item)? {
        Some(content) => Ok(Kept::read(content, &item)?),
        // The key of the backups was there before any secret.
        None if keychain.get(crate::seal::KEY_ITEM)?.is_some() => Err(SecretError::Missing(reference.clone())),
        None => Err(SecretError::Nothing(reference.clone())),
    }
}

/// The secret that a reference stands for, as its server gets it.
pub fn secret_of(keychain: &dyn Keychain, reference: &SecretRef) -> Result<String, SecretError> {
    kept(keychain, reference).map(|kept| kept.value)
}

/// Gives a secret another value.
pub fn set_secret(keychain: &dyn Keychain, reference: &SecretRef, value: &str) -> Result<(), KeychainError> {
    crate::seal::SealKey::known_or_new(keychain)?;
    keychain.set(&reference.item(), value.as_bytes())
}

/// A secret on its way into the keychain.
pub(crate) struct Move {
    pub reference: SecretRef,
    pub kept: Kept,
}

impl Move {
    /// Writes it, and makes sure that it can be read again.
    pub fn carry_out(&self, keychain: &dyn Keychain) -> Result<(), KeychainError> {
        let item = self.reference.item();
        keychain.set(&item, self.kept.content().as_bytes())?;
        match keychain.get(&item)? {
            Some(back) if back == self.kept.content().as_bytes() => Ok(()),
            _ => {
                Err(KeychainError::Failed { doing: "keep", item, why: "it does not give back what was written".into() })
            }
        }
    }
}

/// One string of an entry that may be, or stand for, a secret, and its name in the entry.
struct Place<'s> {
    name: String,
    at: &'s Str,
    /// It is a secret in clear.
    clear: bool,
}

/// The values of an entry's variables, headers and own arguments: of a protected entry those behind the shim's.
fn places(shape: &Shape, rules: Interpolation) -> Vec<Place<'_>> {
    match shape {
        Shape::Stdio(stdio) => started(stdio, rules),
        Shape::Remote(Remote { headers, .. }) => headers.iter().map(|(name, at)| named(name, at, rules)).collect(),
        Shape::Odd(_) => Vec::new(),
    }
}

fn named<'s>(name: &str, at: &'s Str, rules: Interpolation) -> Place<'s> {
    Place { name: name.to_owned(), clear: secret::in_clear(rules, Some(name), &at.value), at }
}

fn started(stdio: &Stdio, rules: Interpolation) -> Vec<Place<'_>> {
    let env = stdio.env.iter().filter_map(|(name, value)| Some(named(name, value.as_ref()?, rules)));
    let own = wrapped(stdio).map_or(0, |w| w.command_at + 1);
    let line: Vec<&Str> = std::iter::once(&stdio.command).chain(stdio.args()).skip(own).collect();
    let words: Vec<&str> = line.iter().map(|s| s.value.as_str()).collect();
    let args = line.iter().enumerate().skip(1).map(|(at, word)| Place {
        name: option(rules, &words, at).unwrap_or_else(|| format!("argument-{at}")),
        clear: secret::arg_in_clear(rules, &words, at),
        at: word,
    });
    env.chain(args).collect()
}

/// The option that an argument belongs to: `--token=…`, or the word before. Only one that cannot hold a secret itself.
fn option(rules: Interpolation, words: &[&str], at: usize) -> Option<String> {
    let word = words.get(at)?;
    let option = match word.split_once('=') {
        Some((option, _)) if word.starts_with('-') => option,
        _ if word.starts_with('-') => return None,
        _ => words.get(at.checked_sub(1)?)?,
    };
    let short = option.len() == 2 && option.starts_with('-');
    let plain = option.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    let good = (short || option.starts_with("--")) && plain && option.len() <= 40;
    (good && !secret::in_clear(rules, None, option)).then(|| option.to_owned())
}

/// What moves, and what cannot.
#[derive(Default)]
pub(crate) struct Moves {
    pub edits: Vec<Edit>,
    pub moves: Vec<Move>,
    pub left: Vec<SecretLeft>,
}

/// What would move out of an entry. A reference to another entry's secret, as it comes about when an entry is copied,
/// becomes one of its own if `known` has that secret.
pub(crate) fn moves(
    text: &str,
    shape: &Shape,
    id: &EntryId,
    rules: Interpolation,
    known: impl Fn(&SecretRef) -> Option<Kept>,
) -> Moves {
    let mut out = Moves::default();
    let places = places(shape, rules);
    let mut taken: BTreeSet<SecretRef> = references(shape.values()).into_iter().filter(|r| r.entry() == id).collect();
    for Place { name, at, clear } in &places {
        let spelled = slice(text, at.span.clone());
        let kept = match SecretRef::read(&at.value) {
            Some(reference) if reference.entry() != id => match known(&reference) {
                Some(kept) => kept,
                None => continue,
            },
            _ if *clear => Kept::new(&at.value, spelled),
            _ => continue,
        };
        match reference(id, name, rules, at, &taken) {
            Ok(reference) => {
                taken.insert(reference.clone());
                out.edits.push((at.span.clone(), quoted(&reference.to_string())));
                out.moves.push(Move { reference, kept });
            }
            Err(reason) => {
                let name = firedoor_model::Untrusted::new(name.as_str()).visible(80);
                out.left.push(SecretLeft { entry: id.clone(), name, reason: reason.into() });
            }
        }
    }
    out
}

/// What stays where it is when nothing can move.
pub(crate) fn all_left(shape: &Shape, id: &EntryId, rules: Interpolation, reason: &str) -> Vec<SecretLeft> {
    let clear = places(shape, rules).into_iter().filter(|p| p.clear);
    let name = |p: &Place<'_>| firedoor_model::Untrusted::new(p.name.as_str()).visible(80);
    clear.map(|p| SecretLeft { entry: id.clone(), name: name(&p), reason: reason.to_owned() }).collect()
}

/// Whether anything in an entry is a secret in clear.
pub(crate) fn has_secret(shape: &Shape, rules: Interpolation) -> bool {
    places(shape, rules).iter().any(|p| p.clear)
}

/// A reference for a value, or why it cannot have one.
fn reference(
    id: &EntryId,
    name: &str,
    rules: Interpolation,
    at: &Str,
    taken: &BTreeSet<SecretRef>,
) -> Result<SecretRef, &'static str> {
    let value = &at.value;
    if at.span.is_empty() {
        return Err("its text stands for other parts of the file as well, or on several lines");
    }
    if rules.refers(value) {
        return Err("the client fills in a part of it");
    }
    if value.len() > MAX_SECRET || value.contains('\0') {
        return Err("it is too long, or holds a NUL");
    }
    let reference = (1..1000)
        .map(|n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") })
        .find_map(|name| match SecretRef::new(id.clone(), &name) {
            Ok(reference) => (!taken.contains(&reference)).then_some(Ok(reference)),
            Err(_) => Some(Err("its name is too long")),
        })
        .unwrap_or(Err("it has too many of them"))?;
    if rules.touches(&reference.to_string()).is_some() {
        return Err("the client would take a part of its name for a variable");
    }
    Ok(reference)
}

/// The references among the strings of an entry.
pub(crate) fn references<'s>(values: impl IntoIterator<Item = &'s Str>) -> Vec<SecretRef> {
    values.into_iter().filter_map(|s| SecretRef::read(&s.value)).collect()
}

/// The edits that put an entry's secrets back, and those that are not to be had.
pub(crate) fn put_back(
    shape: &Shape,
    known: &dyn Fn(&SecretRef) -> Result<Kept, String>,
) -> (Vec<Edit>, Vec<SecretLeft>) {
    let (mut edits, mut missing) = (Vec::new(), Vec::new());
    for at in shape.values() {
        let Some(reference) = SecretRef::read(&at.value) else { continue };
        match known(&reference) {
            Ok(kept) => edits.push((at.span.clone(), kept.token())),
            Err(reason) => {
                let (entry, name) = (reference.entry().clone(), reference.name().to_owned());
                missing.push(SecretLeft { entry, name, reason });
            }
        }
    }
    (edits, missing)
}

/// The secret as the keychain has it, with how it was spelled.
pub(crate) fn lookup(keychain: &dyn Keychain, reference: &SecretRef) -> Result<Kept, String> {
    kept(keychain, reference).map_err(|e| e.to_string())
}

/// What stands for a secret where only the change is shown.
pub(crate) fn shown() -> Kept {
    Kept { value: crate::scan::HIDDEN.to_owned(), spelled: None }
}
