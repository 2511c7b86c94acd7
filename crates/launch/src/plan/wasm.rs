//! WebAssembly tools: whatever runtime a configuration names, ours runs them, inside the same sandbox as any server.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use firedoor_model::{launch::Access, paths::sibling};

use super::{Plan, Planner, real};
use crate::{
    command::WasmCommand,
    error::PlanError,
    identity::What,
    profile_path,
    program::{Lookup, Program},
    sys,
};

/// Our runtime's file name.
pub(super) const HOST: &str = "firedoor-wasm";

/// The runtime, which is installed beside this program.
pub(super) fn host(at: &Lookup<'_>, configured: &OsStr) -> Result<Program, PlanError> {
    if Path::new(configured).file_name().is_some_and(|name| sys::program_name(&name.to_string_lossy()) == HOST) {
        return at.resolve(configured);
    }
    let path = sibling(HOST).map_err(|e| PlanError::io("/proc/self/exe", "find this program", e))?;
    if !path.is_file() {
        let why = "this program, which runs WebAssembly tools, is missing: install Firedoor again, or build it with \
                   cargo build -p firedoor-wasm";
        return Err(PlanError::NotRunnable { path, why: why.into() });
    }
    at.resolve(path.as_os_str())
}

impl Planner<'_> {
    /// A module, run by our runtime.
    pub(super) fn wasm(mut self, command: WasmCommand) -> Result<Plan, PlanError> {
        let named = command.module.as_deref().unwrap_or(&self.request.program);
        let module = match self.request.cwd.join(named) {
            there if there.is_file() => real(&there)?,
            _ if command.module.is_none() => real(&self.at.find(named)?)?,
            absent => {
                let looked = absent.display().to_string();
                return Err(PlanError::NotFound { program: named.to_string_lossy().into_owned(), looked });
            }
        };
        self.grants.derived([module.clone()], Access::Read);
        let mut args: Vec<OsString> = vec!["run".into()];
        let mut option = |name: &str, value: OsString| args.extend([name.into(), value]);
        for (name, value) in &command.limits {
            option(name, value.into());
        }
        option("--cache", self.private.cache().join("wasm").into());
        for (name, directories, access) in
            [("--dir", &command.write, Access::Write), ("--dir-ro", &command.read, Access::Read)]
        {
            for text in directories {
                let (host, guest) = text.split_once("::").unwrap_or((text, text));
                let host = self.request.cwd.join(host);
                self.grants.asked([host.clone()], access);
                option(name, directory(&host, guest));
            }
        }
        for (path, access) in self.opened() {
            let name = if access == Access::Write { "--dir" } else { "--dir-ro" };
            if path.is_dir() {
                let guest = path.to_string_lossy().into_owned();
                option(name, directory(&path, &guest));
            } else {
                self.grants.note(format!(
                    "{} is granted, but a WebAssembly tool can be given directories only: grant the one it lies in",
                    path.display()
                ));
            }
        }
        for name in command.env {
            option("--env", name.into());
        }
        if command.inherits {
            let declared = self.context.declared_env.into_iter().flatten();
            let names = declared.chain(&self.context.user.env).chain(&self.profile.env);
            for name in names.filter(|n| self.env.iter().any(|(there, _)| there == n.as_str())) {
                option("--env", name.into());
            }
        }
        // Which hosts it may reach is judged where every server's connections are: the user can be asked, and refusals are
        // on record.
        args.push("--net".into());
        let sha256 = self.digest(&module)?;
        let what = What::Script { path: module.clone(), sha256, interpreter: self.program.real.clone() };
        args.push("--".into());
        args.push(module.into());
        args.extend(command.rest.iter().cloned());
        self.args = args;
        self.run(what, &command.rest)
    }

    /// What the profile and the user open.
    fn opened(&mut self) -> Vec<(PathBuf, Access)> {
        let profile = &self.profile;
        let of_profile = [(&profile.read, Access::Read), (&profile.write, Access::Write)].into_iter();
        let of_profile = of_profile.flat_map(|(paths, access)| paths.iter().map(move |p| (p, access)));
        let of_profile = of_profile.map(|(path, access)| (profile_path(path, self.at.home), access));
        let of_user = self.context.user.grants.iter().map(|g| (g.path.clone(), g.access.asked()));
        let all: Vec<_> = of_profile.chain(of_user).filter(|(path, _)| fs::symlink_metadata(path).is_ok()).collect();
        all.into_iter().filter(|(path, _)| !self.grants.is_planted(path)).collect()
    }
}

fn directory(host: &Path, guest: &str) -> OsString {
    let mut text = host.as_os_str().to_owned();
    text.push("::");
    text.push(guest);
    text
}
