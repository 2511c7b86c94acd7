//! The reference that stands in a configuration for a secret that was moved into the keychain.

use std::{fmt, str::FromStr};

use crate::{
    EntryId,
    entry::{EntryIdError, MAX_ENTRY_ID, decode, encode},
    text::quoted_name,
};

/// What a reference begins with.
pub const SCHEME: &str = "firedoor-secret:";

/// Largest secret that is kept, in bytes. No argument or variable of a process is much longer (execve(2)).
pub const MAX_SECRET: usize = 64 * 1024;

/// Stands in an entry for a secret of that entry, such as `firedoor-secret:cursor/user/github/GITHUB_TOKEN`.
///
/// The part behind the scheme is the entry's id and a name: that of the variable, or of the option before the argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretRef {
    entry: EntryId,
    name: String,
}

impl SecretRef {
    /// A reference to the secret of that name of an entry.
    pub fn new(entry: EntryId, name: &str) -> Result<Self, EntryIdError> {
        if name.is_empty() {
            return Err(EntryIdError::Empty);
        }
        let all = Self { entry, name: name.into() };
        if all.to_string().len() > MAX_ENTRY_ID { Err(EntryIdError::TooLong) } else { Ok(all) }
    }

    /// Reads a value of a configuration; `None` when it is no reference.
    pub fn read(value: &str) -> Option<Self> {
        if value.starts_with(SCHEME) { value.parse().ok() } else { None }
    }

    /// Whose secret it is.
    pub fn entry(&self) -> &EntryId {
        &self.entry
    }

    /// Its name in the entry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the keychain knows it by: the reference without its scheme.
    pub fn item(&self) -> String {
        self.to_string().split_off(SCHEME.len())
    }

    /// The same in a command that a person will copy.
    pub fn quoted(&self) -> String {
        quoted_name(&self.item())
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/", self.entry)?;
        encode(&self.name, f)
    }
}

impl FromStr for SecretRef {
    type Err = EntryIdError;
    /// With or without the scheme.
    fn from_str(text: &str) -> Result<Self, EntryIdError> {
        if text.len() > MAX_ENTRY_ID {
            return Err(EntryIdError::TooLong);
        }
        let item = text.strip_prefix(SCHEME).unwrap_or(text);
        let (entry, name) = item.rsplit_once('/').ok_or(EntryIdError::Parts)?;
        Self::new(entry.parse()?, &decode(name)?)
    }
}

crate::serde_as_text!(SecretRef);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form() {
        let check = |entry: &str, name: &str, want: &str| {
            let reference = SecretRef::new(entry.parse().unwrap(), name).unwrap();
            assert_eq!(reference.to_string(), want);
            assert_eq!(SecretRef::read(want), Some(reference.clone()));
            assert_eq!(SecretRef::read(&reference.item()), None);
            assert_eq!(reference.item().parse(), Ok(reference));
        };
        check("cursor/user/github", "GITHUB_TOKEN", "firedoor-secret:cursor/user/github/GITHUB_TOKEN");
        check("a/local:%2Fh/", "--api key", "firedoor-secret:a/local:%2Fh//--api%20key");
        for bad in ["", "firedoor-secret:", "firedoor-secret:a/b/c", "firedoor-secret:a/b/c/", "hunter2", "a/b"] {
            assert_eq!(SecretRef::read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(server in any::<String>(), name in "\\PC{1,30}") {
            if let Ok(entry) = EntryId::new("c", "s", &server)
                && let Ok(reference) = SecretRef::new(entry, &name)
            {
                prop_assert_eq!(SecretRef::read(&reference.to_string()), Some(reference));
            }
        }
    }
}
