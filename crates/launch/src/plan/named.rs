//! Whose word a server's name is. A profile opens what the server of that name needs, so a file of a project, which may call itself
//! anything, gets none by its name; nor does what another package brings get the one of a package that is named beside it.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use firedoor_model::{launch::LaunchRequest, paths::canonicalize};

use super::Planner;
use crate::{
    Context,
    command::{Command, PackageCommand, WasmCommand},
    environment,
    identity::Ecosystem,
    profile::Profile,
    program::{Lookup, Program, standing},
    runtime, sys,
};

/// Names of variables that the server gets although they look like credentials.
pub(super) fn kept<'a>(context: &'a Context<'_>, profile: &'a Profile) -> BTreeSet<&'a str> {
    let declared = context.declared_env.into_iter().flatten();
    context.user.env.iter().chain(declared).chain(&profile.env).map(String::as_str).collect()
}

/// Whether the file that runs bears its name by the word of whoever installed it, and not of the project that it runs for.
pub(super) fn is_installed(
    request: &LaunchRequest,
    command: &Command,
    at: &Lookup<'_>,
    declared: Option<&BTreeSet<String>>,
) -> bool {
    let module = match command {
        Command::Wasm(WasmCommand { module: Some(module), .. }) => Some(module.as_os_str()),
        _ => None,
    };
    let written = Path::new(module.unwrap_or(&request.program));
    let outside = |file: &Path| standing(file).is_some_and(|file| !is_the_projects(&file, request, at));
    if written.is_absolute() {
        return outside(written);
    }
    if module.is_some() || written.parent() != Some(Path::new("")) {
        return false;
    }
    let Ok(file) = at.find(written.as_os_str()) else { return false };
    // A project may say itself where its programs are looked for.
    let says =
        declared.is_some_and(|names| names.iter().any(|n| sys::same_variable(OsStr::new(n), OsStr::new("PATH"))));
    let in_path = |dir: &Path| at.path.is_some_and(|path| env::split_paths(path).any(|d| d.is_absolute() && d == dir));
    outside(&file) || !says && file.parent().is_some_and(in_path)
}

/// Whether a file lies in the working directory or in the project that the entry is for. A home is no project.
fn is_the_projects(file: &Path, request: &LaunchRequest, at: &Lookup<'_>) -> bool {
    let real = |path: &Path| canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let home = real(at.home);
    let project = request.entry.scope().split_once(':').map(|(_, path)| PathBuf::from(path));
    let folders = project.into_iter().filter(|path| path.is_absolute()).chain([request.cwd.clone()]);
    folders.map(|folder| real(&folder)).any(|folder| !sys::within(&home, &folder) && sys::within(file, &folder))
}

impl Planner<'_> {
    /// Goes on without the profile that was found by the name of something else.
    pub(super) fn without_profile(&mut self, why: &str) {
        if self.extends.is_none() || self.context.profile.is_some() {
            return;
        }
        self.grants.note(format!("the profile {} is not used: {why}", self.profile.name));
        self.profile = self.beneath.clone();
        self.extends = None;
        self.subject = None;
        let keep = kept(self.context, &self.profile);
        let (env, dropped) = environment::filter(&self.env, &keep);
        self.env = env;
        self.dropped_env.extend(dropped);
        self.named_env.retain(|name| keep.iter().any(|k| sys::same_variable(OsStr::new(k), OsStr::new(name))));
    }

    /// Whether what runs is the first package's own program, by whose name the profile was found. `brought`: an install has
    /// brought it.
    pub(super) fn is_the_packages(command: &PackageCommand, tree: &Path, program: &Program, brought: bool) -> bool {
        let (Some(first), Some(name)) = (command.packages.first(), &command.command) else { return true };
        match command.ecosystem {
            Ecosystem::Npm => {
                let package = canonicalize(&tree.join("node_modules").join(&first.name));
                let file = canonicalize(&program.real);
                brought && package.is_ok_and(|package| file.is_ok_and(|file| file.starts_with(package)))
            }
            Ecosystem::Pypi => brought && runtime::kind(&sys::program_name(name)).is_none(),
        }
    }
}
