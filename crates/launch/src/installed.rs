//! What an install brought: the package, and which of its programs runs.
//!
//! Read by npm's and uv's own rules, so that what starts is what npx and uvx would have started. They themselves are left
//! out at the start: npx takes a lock in the directory with the packages, so a server under it could write there.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    command::PackageCommand,
    error::PlanError,
    identity::{Ecosystem, Package, hash_file},
    install::read_regular,
    profile::normal,
    sys,
};

/// Largest lock file that is read.
const MAX_FILE: u64 = 32 << 20;
/// Largest `package.json` that is read.
const MAX_MANIFEST: u64 = 1 << 20;
/// Most directories looked through for the installed package.
const MAX_DIRS: usize = 4096;

/// The directory with the programs of an installed tree.
pub(crate) fn programs(ecosystem: Ecosystem, tree: &Path) -> PathBuf {
    match ecosystem {
        Ecosystem::Npm => tree.join("node_modules").join(".bin"),
        Ecosystem::Pypi => tree.join(sys::VENV_PROGRAMS),
    }
}

/// The names under which the command's program may lie in [`programs`], the likeliest first.
pub(crate) fn program_names(command: &PackageCommand, tree: &Path) -> Vec<String> {
    if let Some(name) = &command.command {
        return vec![name.clone()];
    }
    let Some(first) = command.packages.first() else { return Vec::new() };
    match command.ecosystem {
        Ecosystem::Npm => {
            let manifest = Manifest::read(&tree.join("node_modules").join(&first.name));
            manifest.and_then(|m| Some(m.program(&first.name)?.0)).into_iter().collect()
        }
        // The executable is called as the package was written: uv, `uv tool run`.
        Ecosystem::Pypi => {
            let end = first.text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
            let written = first.text.get(..end.unwrap_or(first.text.len())).unwrap_or_default();
            vec![written.to_owned(), first.name.clone()]
        }
    }
}

/// What npx reads of a `package.json`.
#[derive(Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: Option<String>,
    bin: Option<Bin>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bin {
    One(String),
    Named(BTreeMap<String, String>),
}

impl Manifest {
    /// Of the package in that directory, unless it has none that can be read.
    pub(crate) fn read(package: &Path) -> Option<Self> {
        serde_json::from_slice(&read_regular(&package.join("package.json"), MAX_MANIFEST).ok()?).ok()
    }

    /// Name and file of the program that npx runs: the only one, or the one named like the package (libnpmexec,
    /// get-bin-from-manifest).
    pub(crate) fn program(&self, package: &str) -> Option<(String, &str)> {
        let short = package.rsplit('/').next()?;
        match self.bin.as_ref()? {
            Bin::One(file) => Some((short.to_owned(), file)),
            Bin::Named(all) => {
                let only = || {
                    let (name, file) = all.first_key_value()?;
                    all.values().all(|f| f == file).then_some((name, file))
                };
                let (name, file) = all.get_key_value(short).or_else(only)?;
                Some((name.clone(), file))
            }
        }
    }
}

/// The subdirectories of a directory, bounded, symbolic links left out.
pub(crate) fn subdirs(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries
        .take(MAX_DIRS)
        .flatten()
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .map(|e| e.path())
        .collect();
    all.sort();
    all
}

/// A version or integrity is shown and stored: printable ASCII, and short.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|b| b.is_ascii_graphic())
}

/// A package, and the tree that holds it with what it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brought {
    pub(crate) package: Package,
    pub(crate) tree: PathBuf,
}

/// The package in a generation.
pub(crate) fn find(ecosystem: Ecosystem, dir: &Path, name: &str) -> Result<Option<Brought>, PlanError> {
    match ecosystem {
        Ecosystem::Npm => find_npm(dir, name),
        Ecosystem::Pypi => Ok(find_pypi(dir, name)),
    }
}

#[derive(Deserialize)]
struct LockFile {
    #[serde(default)]
    packages: BTreeMap<String, Locked>,
}

#[derive(Deserialize)]
struct Locked {
    version: Option<String>,
    integrity: Option<String>,
}

fn find_npm(dir: &Path, name: &str) -> Result<Option<Brought>, PlanError> {
    for tree in subdirs(&dir.join("npm").join("_npx")) {
        let path = tree.join("node_modules").join(".package-lock.json");
        let text = match read_regular(&path, MAX_FILE) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(PlanError::io(path, "read the lock file of the install", e)),
        };
        let lock: LockFile = serde_json::from_slice(&text)
            .map_err(|e| PlanError::io(path, "read the lock file of the install", e.into()))?;
        let Some(locked) = lock.packages.get(&format!("node_modules/{name}")) else { continue };
        let Some(version) = locked.version.clone().filter(|v| plain(v)) else { continue };
        let integrity = locked.integrity.clone().filter(|i| plain(i));
        let package = Package { ecosystem: Ecosystem::Npm, name: name.into(), version, integrity };
        return Ok(Some(Brought { package, tree }));
    }
    Ok(None)
}

fn find_pypi(dir: &Path, name: &str) -> Option<Brought> {
    let archives = subdirs(&dir.join("uv").join("cache").join("archive-v0"));
    // Environments lie beside the unpacked wheels; an environment says which version is used.
    let environments =
        archives.iter().flat_map(|a| sys::site_packages(a, subdirs).into_iter().map(move |dir| (a, dir)));
    let mut used = environments.filter_map(|(a, dir)| Some((a, dist_info(&dir, name)?)));
    let (tree, (version, installed)) = used.next()?;
    // The unpacked wheel's RECORD is the one its publisher made.
    let wheels = archives.iter().filter_map(|a| dist_info(a, name));
    let record = wheels.into_iter().find(|(v, _)| *v == version).map_or(installed, |(_, dir)| dir).join("RECORD");
    let integrity = fs::symlink_metadata(&record)
        .is_ok_and(|m| m.is_file())
        .then(|| hash_file(&record).ok())
        .flatten()
        .map(|digest| format!("sha256:{digest}"));
    let package = Package { ecosystem: Ecosystem::Pypi, name: name.into(), version, integrity };
    Some(Brought { package, tree: tree.clone() })
}

/// The version of a package in a directory of Python packages, and its `NAME-VERSION.dist-info`.
fn dist_info(dir: &Path, name: &str) -> Option<(String, PathBuf)> {
    subdirs(dir).into_iter().find_map(|path| {
        let file = path.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        let (found, version) = file.rsplit_once('-')?;
        (normal(found) == name && plain(version)).then(|| (version.to_owned(), path.clone()))
    })
}
