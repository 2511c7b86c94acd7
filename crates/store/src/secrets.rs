//! Where secrets are kept: in the system's keychain, or in a file where the user wants that.

use std::{path::PathBuf, time::Duration};

use firedoor_model::{
    Keychain, KeychainError,
    keychain::{FileKey, KeptInFile},
    paths::Paths,
};

use crate::{
    SystemKeychain,
    age::Identity,
    private::{self, Lock, fault},
    secrets_file::{Ask, Items, Keys, Opener, SecretsFile},
};

/// What keeps the user's secrets. Which of the two it is, is looked up at each use: it may change while an engine runs.
pub struct Secrets<S = SystemKeychain> {
    system: S,
    file: SecretsFile,
}

/// Where secrets are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the system's keychain.
    Keychain,
    /// In this file.
    File {
        /// The file.
        path: PathBuf,
        /// The user's own file with the identity; else it takes a passphrase.
        identity: Option<PathBuf>,
    },
}

/// What moved from one to the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many.
    pub items: usize,
    /// What could not be taken out of the keychain, and why.
    pub left: Option<KeychainError>,
}

impl Secrets {
    /// The user's secrets. Each use of the keychain is given up after `limit`. Nothing is opened yet.
    pub fn new(paths: &Paths, limit: Duration, keys: Keys) -> Self {
        Self::over(SystemKeychain::new(limit), paths, keys)
    }
}

impl<S: Keychain> Secrets<S> {
    fn over(system: S, paths: &Paths, keys: Keys) -> Self {
        Self { system, file: SecretsFile::new(paths, keys) }
    }

    /// Asks a person for the passphrase of the file when it is needed.
    #[must_use]
    pub fn asking(mut self, ask: Ask) -> Self {
        self.file.ask = Some(ask);
        self
    }

    /// Where secrets are kept now.
    pub fn place(&self) -> Result<Place, KeychainError> {
        Ok(match self.file.kept()? {
            Some(KeptInFile { identity }) => Place::File { path: self.file.path(), identity },
            None => Place::Keychain,
        })
    }

    /// Opens the file, asking for its passphrase if it takes one.
    pub fn open(&self) -> Result<(), KeychainError> {
        let kept = self.file.kept()?.ok_or_else(|| self.not_in_a_file())?;
        self.file.open(&kept).map(drop)
    }

    /// Opens it with what another process of the user's has opened it with.
    pub fn unlock(&self, key: &FileKey) -> Result<(), KeychainError> {
        let kept = self.file.kept()?.ok_or_else(|| self.not_in_a_file())?;
        self.file.unlock(&kept, key)
    }

    fn not_in_a_file(&self) -> KeychainError {
        fault(&self.file.path(), "secrets are not kept in a file: `firedoor secrets keep-in-file` begins with that")
    }

    /// Keeps secrets in a file from now on. What the keychain has moves there. On an error everything is as it was.
    pub fn keep_in_file(&self, opener: &Opener) -> Result<Moved, KeychainError> {
        if let Some(directory) = self.file.path().parent() {
            private::directory(directory)?;
        }
        let lock = self.file.lock()?;
        if self.file.kept()?.is_some() {
            return Err(fault(&self.file.path(), "secrets are kept in this file already"));
        }
        self.file.unused(&lock)?;
        let items = self.in_the_keychain()?;
        let begun = self.begin(opener, &items, &lock);
        if begun.is_err() {
            self.file.discard(&lock);
        }
        let identity = begun?;
        let left = self.take_out(&identity, items.clone(), &lock).err();
        Ok(Moved { items: items.len(), left })
    }

    fn begin(&self, opener: &Opener, items: &Items, lock: &Lock) -> Result<Identity, KeychainError> {
        let kept = self.file.make(opener, items.clone(), lock)?;
        // Read from the disk, with what opens it: nothing goes before that is sure.
        let (identity, written) = self.file.open(&kept)?;
        if written != *items {
            return Err(fault(&self.file.path(), "this does not give back what was written"));
        }
        self.file.begin(&kept, lock)?;
        Ok(identity)
    }

    /// Everything that the keychain has. One that is not there has nothing.
    fn in_the_keychain(&self) -> Result<Items, KeychainError> {
        let names = match self.system.items() {
            Err(KeychainError::Absent { .. }) => return Ok(Items::new()),
            other => other?,
        };
        let item = |name: String| {
            // A locked one can list what it does not give.
            let content = self.system.get(&name)?.ok_or(KeychainError::Locked)?;
            let text = self.file.text(&name, &content)?;
            Ok((name, text))
        };
        names.into_iter().map(item).collect()
    }

    /// Takes out of the keychain what is in the file. What was changed there meanwhile comes along: an engine may have renewed a
    /// login between our look and the change.
    fn take_out(&self, identity: &Identity, mut items: Items, lock: &Lock) -> Result<(), KeychainError> {
        if items.is_empty() {
            return Ok(());
        }
        let now = self.in_the_keychain()?;
        if now.iter().any(|(name, text)| items.get(name) != Some(text)) {
            items.extend(now.clone());
            self.file.write(identity, items, lock)?;
        }
        now.keys().try_for_each(|name| self.system.remove(name).map(drop))
    }

    /// Keeps secrets in the keychain again. On an error they stay in the file, all of them.
    pub fn keep_in_keychain(&self) -> Result<Moved, KeychainError> {
        let kept = self.file.kept()?.ok_or_else(|| self.not_in_a_file())?;
        // A person may be asked, for which nobody need wait.
        self.file.open(&kept)?;
        let lock = self.file.lock()?;
        let kept = self.file.kept()?.ok_or_else(|| self.not_in_a_file())?;
        let (_, items) = self.file.open(&kept)?;
        for (name, text) in &items {
            self.system.set(name, text.as_bytes())?;
            if self.system.get(name)?.as_deref() != Some(text.as_bytes()) {
                let why = "it does not give back what was written".into();
                return Err(KeychainError::Failed { doing: "keep", item: name.clone(), why });
            }
        }
        self.file.end(&lock)?;
        Ok(Moved { items: items.len(), left: None })
    }

    /// Changes the file; `None` when secrets are not kept in one.
    fn change<T>(&self, work: impl FnOnce(&mut Items) -> Option<T>) -> Result<Option<Option<T>>, KeychainError> {
        let Some(kept) = self.file.kept()? else { return Ok(None) };
        // A person may be asked, for which nobody need wait.
        self.file.open(&kept)?;
        let lock = self.file.lock()?;
        // Somebody else may have had the lock.
        let Some(kept) = self.file.kept()? else { return Ok(None) };
        let (identity, mut items) = self.file.open(&kept)?;
        let done = work(&mut items);
        if done.is_some() {
            self.file.write(&identity, items, &lock)?;
        }
        Ok(Some(done))
    }
}

impl<S: Keychain> Keychain for Secrets<S> {
    fn get(&self, item: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        match self.file.kept()? {
            Some(kept) => Ok(self.file.open(&kept)?.1.remove(item).map(String::into_bytes)),
            None => self.system.get(item),
        }
    }

    fn set(&self, item: &str, content: &[u8]) -> Result<(), KeychainError> {
        if self.file.kept()?.is_none() {
            return self.system.set(item, content);
        }
        let text = self.file.text(item, content)?;
        match self.change(|items| Some(items.insert(item.to_owned(), text)))? {
            Some(_) => Ok(()),
            None => self.system.set(item, content),
        }
    }

    fn remove(&self, item: &str) -> Result<bool, KeychainError> {
        match self.change(|items| items.remove(item))? {
            Some(was) => Ok(was.is_some()),
            None => self.system.remove(item),
        }
    }

    fn items(&self) -> Result<Vec<String>, KeychainError> {
        match self.file.kept()? {
            Some(kept) => Ok(self.file.open(&kept)?.1.into_keys().collect()),
            None => self.system.items(),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(test)]
#[cfg(not(unix))]
#[path = "secrets/absent_tests.rs"]
mod tests;
