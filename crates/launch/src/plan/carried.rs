//! What a server kept beside its own code before it was protected. Its package is installed anew for it, where it cannot write: what it
//! had would seem lost.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use super::Planner;
use crate::{error::PlanError, install::read_regular, installed::subdirs, sys};

/// Largest file that is carried over, in bytes.
const MAX: u64 = 64 << 20;

impl Planner<'_> {
    /// Copies into the private home, once, what an npm package kept beside its own code in the user's cache of npx: the latest of each
    /// file that the profile names. Nothing that is there already is replaced.
    pub(super) fn carry(&mut self, package: &str) -> Result<(), PlanError> {
        let carried = std::mem::take(&mut self.profile.carried);
        if carried.is_empty() || self.private.was_carried() {
            return Ok(());
        }
        let cache = self.npm_cache();
        let packages: Vec<PathBuf> = subdirs(&cache.join("_npx"))
            .into_iter()
            .map(|tree| tree.join("node_modules").join(package))
            .filter(|package| package.is_dir())
            .collect();
        for (rest, names) in &carried {
            let there = self.private.home().join(rest);
            let all = packages.iter().flat_map(|package| names.iter().map(|name| package.join(name)));
            let written = |path: &PathBuf| {
                let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
                meta.modified().ok()
            };
            let latest = all.filter_map(|path| Some((written(&path)?, path))).max();
            let Some((_, path)) = latest.filter(|_| fs::symlink_metadata(&there).is_err()) else { continue };
            let read = read_regular(&path, MAX).and_then(|text| String::from_utf8(text).map_err(io::Error::other));
            match read {
                Ok(text) => {
                    self.private.put(Path::new(rest), &text)?;
                    self.grants.note(format!("copied what the server had in {} to {}", path.display(), there.display()));
                }
                Err(e) => self.grants.note(format!(
                    "what the server had in {} was not copied to {}: {e}; copy it yourself, while the server does not run",
                    path.display(),
                    there.display()
                )),
            }
        }
        self.private.carried()
    }

    /// Where npx keeps packages for the user (npm, "config", `cache`).
    fn npm_cache(&self) -> PathBuf {
        let of = |name: &str| self.env.iter().find(|(n, _)| sys::same_variable(n, OsStr::new(name)));
        let set = of("npm_config_cache").map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute());
        set.unwrap_or_else(|| self.at.home.join(sys::NPM_CACHE))
    }
}
