//! The start itself, once it is known what runs: what its sandbox opens, where it may connect to, and its variables.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use firedoor_model::{
    launch::{Access, Confinement, Grant, Network, Step},
    network::{HostGrant, Hosts},
    observation::Basis,
    paths::canonicalize,
};

use super::{Plan, Planner, Run};
use crate::{
    error::PlanError,
    grants::{self, Grants},
    identity::{Identity, What},
    private::Linked,
    profile::ArgumentAccess,
    profile_path,
    program::Program,
    protect, sys,
};

impl Planner<'_> {
    pub(super) fn run(mut self, what: What, args: &[OsString]) -> Result<Plan, PlanError> {
        self.common_grants();
        self.profile_grants(args)?;
        let mut basis = self.basis(args);
        for grant in &self.context.user.grants {
            self.grants.named(&grant.path, grant.access);
        }
        let (home, tmp, cache) = (self.private.home(), self.private.tmp(), self.private.cache());
        let short = self.private.short_tmp(&self.context.paths.runtime)?;
        self.home_at(&home, &short, &cache);
        for (name, sub) in [("npm_config_cache", "npm"), ("UV_CACHE_DIR", "uv"), ("PIP_CACHE_DIR", "pip")] {
            self.set(name, cache.join(sub));
        }
        for (name, value) in std::mem::take(&mut self.profile.variables) {
            if self.env.iter().any(|(n, _)| sys::same_variable(n, OsStr::new(&name))) {
                continue;
            }
            match value.strip_prefix("~/") {
                Some(rest) => self.set(&name, home.join(rest)),
                None => self.set(&name, value),
            }
        }
        for (rest, text) in &self.profile.files {
            self.private.put(Path::new(rest), text)?;
        }
        for argument in std::mem::take(&mut self.profile.arguments) {
            if !args.iter().any(|a| *a == *argument) {
                self.args.push(argument.into());
            }
        }
        for dir in [home, tmp, cache] {
            basis.grants.push(Grant { path: dir.clone(), access: Access::Write });
            self.grants.trusted(dir, Access::Write);
        }
        let (network, sockets) = self.reach(args);
        let own = self.grants.own_places();
        let limits = self.profile.limits.over(grants::base_limits());
        if let Network::Hosts(hosts) = &network {
            basis.hosts.clone_from(&hosts.allowed);
        }
        let Grants { grants, notes, .. } = self.grants;
        basis.in_force.clone_from(&grants);
        let Program { path: program, first, .. } = self.program;
        Ok(Plan::Run(Box::new(Run {
            step: Step {
                program,
                args: first.into_iter().chain(self.args).collect(),
                env: self.env,
                cwd: self.request.cwd.clone(),
                confinement: Confinement { grants, protected: protect::names().clone(), network, sockets, own, limits },
            },
            identity: self.context.identify.then(|| Identity::new(what, args)),
            profile: self.profile.name,
            basis,
            named_env: self.named_env,
            dropped_env: self.dropped_env,
            notes,
        })))
    }

    /// The base set, the program itself and its interpreters, and the certificate authorities.
    pub(super) fn common_grants(&mut self) {
        self.grants.base();
        let files = self.program.files.clone();
        self.installed_at(&files);
        self.grants.certificates(&self.env);
        if !self.program.bin_dirs.is_empty() {
            let dirs = self.program.bin_dirs.clone().into_iter();
            let old: Vec<PathBuf> = self.at.path.map(|p| std::env::split_paths(p).collect()).unwrap_or_default();
            // A directory with ":" in its name cannot stand in PATH; then PATH stays as it is.
            if let Ok(path) = std::env::join_paths(dirs.chain(old)) {
                self.set("PATH", path);
            }
        }
    }

    /// What the profile grants.
    fn profile_grants(&mut self, args: &[OsString]) -> Result<(), PlanError> {
        let home = self.at.home;
        let profile = &self.profile;
        for (paths, access) in
            [(&profile.list, Access::List), (&profile.read, Access::Read), (&profile.write, Access::Write)]
        {
            for path in paths {
                self.grants.named_if_there(&profile_path(path, home), access);
            }
        }
        for path in &profile.state {
            let target = profile_path(path, home);
            let access = if profile.read.contains(path) { Access::Read } else { Access::Write };
            if !self.grants.named_if_there(&target, access) {
                continue;
            }
            let rest = Path::new(path.trim_start_matches("~/"));
            let why = match self.private.link(rest, &target)? {
                Linked::Yes => continue,
                Linked::TheServersOwn => "the server has made its own there",
                Linked::NotAllowed => {
                    "Windows lets programs make links in developer mode only: switch it on in the settings"
                }
            };
            self.grants.note(format!(
                "{path} is not linked into the private home, because {why} ({})",
                self.private.home().join(rest).display()
            ));
        }
        if let Some(access) = profile.args {
            let access = match access {
                ArgumentAccess::Read => Access::Read,
                ArgumentAccess::Write => Access::Write,
            };
            let paths = args.iter().filter_map(|a| path_argument(a, &self.request.cwd, home));
            self.grants.asked(paths.filter(|p| p.exists()), access);
        }
        self.named_by_variables();
        Ok(())
    }

    /// What variables of the entry name for the server to write.
    fn named_by_variables(&mut self) {
        for name in &self.profile.path_variables {
            let set = self.env.iter().filter(|(n, _)| sys::same_variable(n, OsStr::new(name)));
            // A relative one means another place to each server.
            for path in set.map(|(_, value)| Path::new(value)).filter(|path| path.is_absolute()) {
                // A directory would open whatever lies in it, and somebody else may have written the entry.
                if path.is_file() {
                    self.grants.asked([path.to_owned()], Access::Write);
                } else {
                    self.grants.note(format!(
                        "{name} names {}, which is no file that is there, so the server cannot write it: create the file, empty, \
                         or grant a directory for it (`firedoor grants add {} --rw DIRECTORY`)",
                        path.display(),
                        self.request.entry
                    ));
                }
            }
        }
    }

    /// The hosts and Unix sockets that the profile and the user grant.
    fn reach(&mut self, args: &[OsString]) -> (Network, Vec<PathBuf>) {
        let (user, profile) = (self.context.user, &self.profile);
        let mut allowed: Vec<HostGrant> = user.hosts.iter().chain(&profile.hosts).cloned().collect();
        // Of what the server is given, so that it and we read the same.
        let (found, notes) = profile.endpoints.find(args, &self.env);
        allowed.extend(found);
        notes.into_iter().for_each(|note| self.grants.note(note));
        let refuse = profile.refuse.clone();
        let hosts = Hosts { allowed, listen: profile.listen, refuse, ..Hosts::default() };
        let mut named = user.sockets.clone();
        named.extend(profile.unix.iter().map(|p| profile_path(p, self.at.home)));
        let sockets = named.into_iter().filter(|path| self.grants.socket(path)).collect();
        (Network::Hosts(hosts), sockets)
    }

    /// What the command and the profile give, before anything that the user granted.
    fn basis(&self, args: &[OsString]) -> Basis {
        let arguments = args.iter().filter_map(|a| path_argument(a, &self.request.cwd, self.at.home));
        let sockets = self.profile.unix.iter().map(|p| profile_path(p, self.at.home));
        Basis {
            grants: self.grants.grants.clone(),
            in_force: Vec::new(),
            profile_hosts: self
                .profile
                .hosts
                .iter()
                .cloned()
                .chain(self.profile.endpoints.find(args, &self.env).0)
                .collect(),
            hosts: Vec::new(),
            sockets: sockets.collect(),
            listen: self.profile.listen,
            cwd: self.request.cwd.clone(),
            arguments: arguments.filter_map(|path| canonicalize(&path).ok()).collect(),
            subject: self.subject.clone().map(|(kind, name)| (kind.to_owned(), name)),
            extends: self.extends.clone(),
        }
    }
}

/// The path that an argument names: absolute, or relative in a way that can only be a path; also after `--option=`.
fn path_argument(arg: &OsStr, cwd: &Path, home: &Path) -> Option<PathBuf> {
    let text = arg.to_str()?;
    let text = if text.starts_with('-') { text.split_once('=')?.1 } else { text };
    if let Some(rest) = text.strip_prefix("~/") {
        return Some(home.join(rest));
    }
    sys::is_path_argument(text).then(|| cwd.join(text))
}
