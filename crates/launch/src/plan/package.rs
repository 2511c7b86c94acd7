//! Plans for npx and uvx: what the project has, what is installed, or an install.

use std::{
    env::consts::EXE_SUFFIX,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use firedoor_model::{
    Digest,
    launch::{Access, Confinement, Network, Step},
    paths::canonicalize,
    protected::ProtectedNames,
};

use super::{Plan, Planner, set, set_proxy};
use crate::{
    command::PackageCommand,
    environment,
    error::PlanError,
    grants::{self, Grants},
    identity::{Ecosystem, What},
    install::{self, InstallStep, Installed, Record, Target},
    installed,
    program::{Program, links},
    registry::{self, Registries},
    runtime, sys,
};

impl Planner<'_> {
    /// npx or uvx: what the project has, what is installed, or an install.
    pub(super) fn package(mut self, command: &PackageCommand) -> Result<Plan, PlanError> {
        let Some(first) = command.packages.first().cloned() else { return self.plain("") };
        match command.ecosystem {
            Ecosystem::Npm => {
                if let Some((project, bin)) = self.local_bin(command) {
                    self.grants.derived([project.clone()], Access::Read);
                    self.grants.derived(runtime::project(&bin, self.at.home), Access::Read);
                    self.grants.note(format!("runs the package that is installed in {}", project.display()));
                    self.npm_at(&self.private.cache().join("npm"));
                    self.set("npm_config_offline", "true");
                    let node = self.node().to_owned();
                    let what = What::Script { path: bin.clone(), sha256: self.digest(&bin)?, interpreter: node };
                    return self.run(what, &command.rest);
                }
                // Runners such as tsx start a script of the user's.
                let runner = command.command.as_deref().unwrap_or(&first.name);
                if let Some(runtime::Target::Script(script)) = runtime::target(runner, &command.rest, &self.request.cwd)
                    && script.is_file()
                {
                    self.grants.derived(runtime::project(&script, self.at.home), Access::Read);
                }
            }
            Ecosystem::Pypi => {
                self.pythons(command)?;
            }
        }
        let registries = registry::registries(command, &self.at, self.node())?;
        let key = self.install_key(command, &registries);
        let exact = command.packages.iter().all(|p| p.exact);
        match self.private.installed(key, exact, self.context.now) {
            Installed::Current(record) => self.installed(command, record),
            Installed::Stale(record) if self.context.proxy.is_none() => {
                self.grants.note("not looked for a newer version: the egress proxy is not running");
                self.installed(command, record)
            }
            Installed::Stale(_) => self.install(command, registries, key, false),
            Installed::No => self.install(command, registries, key, true),
        }
    }

    /// What an install depends on: a change of it needs another install.
    fn install_key(&self, command: &PackageCommand, registries: &Registries) -> Digest {
        let mut fields: Vec<Vec<u8>> = vec![self.program.real.as_os_str().as_encoded_bytes().to_vec()];
        fields.extend(self.program.interpreter.iter().map(|p| p.as_os_str().as_encoded_bytes().to_vec()));
        fields.push(b"packages".to_vec());
        fields.extend(command.packages.iter().map(|p| p.text.clone().into_bytes()));
        fields.push(b"options".to_vec());
        fields.extend(command.repeat.iter().map(|o| o.clone().into_bytes()));
        fields.push(b"registries".to_vec());
        fields.extend(registries.env.iter().map(|(n, v)| format!("{n}={v}").into_bytes()));
        Digest::of_fields(fields.iter().map(Vec::as_slice))
    }

    fn install(
        mut self,
        command: &PackageCommand,
        registries: Registries,
        key: Digest,
        required: bool,
    ) -> Result<Plan, PlanError> {
        let Some(first) = command.packages.first() else { return self.plain("") };
        let proxy = self.context.proxy.as_ref().ok_or(PlanError::NoProxy)?;
        let generation = self.private.new_generation(self.context.now)?;
        let dir = self.private.generation(&generation);
        self.env = environment::for_install(&self.env);
        self.home_at(&dir.join("home"), &dir.join("tmp"), &dir.join("home").join(".cache"));
        self.registry_env(&registries);
        let args = match command.ecosystem {
            Ecosystem::Npm => {
                self.npm_at(&dir.join("npm"));
                npm_install(&self.request.args, command)
            }
            Ecosystem::Pypi => {
                let tool =
                    if self.request.args.first().is_some_and(|a| a == "tool" || a == "x") { "uv" } else { "uvx" };
                self.uv_itself(tool)?;
                self.uv_at(&dir.join("uv"));
                uv_install(&self.request.args, command)
            }
        };
        set_proxy(&mut self.env, proxy);
        self.common_grants();
        self.grants.trusted(dir.clone(), Access::Write);
        let Grants { grants, notes, .. } = self.grants;
        let Program { path: program, first: before, .. } = self.program;
        Ok(Plan::Install(Box::new(InstallStep {
            step: Step {
                program,
                args: before.into_iter().chain(args).collect(),
                env: self.env,
                // Not the project's directory: an install must not depend on, or reach, the user's files.
                cwd: dir.clone(),
                confinement: Confinement {
                    grants,
                    protected: ProtectedNames::default(),
                    network: Network::Proxy(proxy.address),
                    sockets: Vec::new(),
                    own: Vec::new(),
                    limits: grants::base_limits(),
                },
            },
            hosts: registries.hosts,
            timeout: install::TIMEOUT,
            required,
            package: first.text.clone(),
            notes,
            target: Target {
                private: self.private,
                generation,
                command: key,
                ecosystem: command.ecosystem,
                name: first.name.clone(),
            },
        })))
    }

    /// Runs what is installed: the package's own program, which can read its packages and not write them.
    fn installed(mut self, command: &PackageCommand, record: Record) -> Result<Plan, PlanError> {
        let tree = self.private.tree(&record);
        self.grants.trusted(tree.clone(), Access::Read);
        let bin = installed::programs(command.ecosystem, &tree);
        self.args = command.rest.clone();
        if let Some(call) = &command.call {
            self.program.path = sys::SHELL?.into();
            self.program.first.clear();
            self.args = vec!["-c".into(), call.into()];
            self.without_profile("a shell runs a command, which need not be the package's");
        } else {
            let names = installed::program_names(command, &tree);
            let inside = |name: &&String| !name.contains(std::path::is_separator);
            let mut brought = None;
            for name in names.iter().filter(inside) {
                if brought.is_none() {
                    brought = self.at.brought(&bin, name)?;
                }
            }
            // `npx --package tsx node x.js`: what no package brings is looked up as a shell would.
            let elsewhere = || command.command.as_deref().and_then(|name| self.at.resolve(OsStr::new(name)).ok());
            let is_brought = brought.is_some();
            let Some(found) = brought.or_else(elsewhere) else {
                return Err(PlanError::NoProgram { package: record.package.name, names: names.join(", ") });
            };
            if !Self::is_the_packages(command, &tree, &found, is_brought) {
                self.without_profile(&format!("the program is not one of {}", record.package.name));
            }
            self.program.path = found.path;
            self.program.first = found.first;
            self.program.files.extend(found.files);
            self.program.bin_dirs.extend(found.bin_dirs);
        }
        // As npx and uvx have it.
        self.program.bin_dirs.insert(0, bin);
        if command.ecosystem == Ecosystem::Npm {
            self.carry(&record.package.name)?;
        }
        self.run(What::Package(record.package), &command.rest)
    }

    /// The program of a package that lies in the project's `node_modules`, and the project: npx prefers it.
    fn local_bin(&self, command: &PackageCommand) -> Option<(PathBuf, PathBuf)> {
        let [spec] = command.packages.as_slice() else { return None };
        if command.command.is_some() {
            return None;
        }
        let project = registry::npm_prefix(&self.at)?;
        let modules = project.join("node_modules");
        if spec.bare
            && !spec.name.contains('/')
            && let Some(bin) = self.at.in_bin(&modules.join(".bin"), &spec.name)
        {
            return Some((project, bin));
        }
        let package = modules.join(&spec.name);
        let manifest = installed::Manifest::read(&package)?;
        let same = spec.exact && spec.text == format!("{}@{}", spec.name, manifest.version.as_deref()?);
        if !spec.bare && !same {
            return None;
        }
        let (_, file) = manifest.program(&spec.name)?;
        let bin = canonicalize(&package.join(file)).ok().filter(|b| b.is_file())?;
        Some((project, bin))
    }

    /// uv's own executables: uvx starts the uv beside it.
    pub(super) fn uv_itself(&mut self, tool: &str) -> Result<(), PlanError> {
        let other = format!("{}{EXE_SUFFIX}", if tool == "uv" { "uvx" } else { "uv" });
        let beside: Vec<PathBuf> = self.program.files.iter().filter_map(|f| Some(f.parent()?.join(&other))).collect();
        for file in beside.iter().filter(|f| f.is_file()) {
            let files = links(file);
            self.installed_at(&files);
        }
        Ok(())
    }

    /// The Python interpreters that uv may choose from: those in `PATH`, and the ones uv itself has installed.
    fn pythons(&mut self, command: &PackageCommand) -> Result<(), PlanError> {
        let wanted = command.python.as_deref().or_else(|| self.at.var("UV_PYTHON").and_then(OsStr::to_str));
        let mut names = vec!["python3".to_owned(), "python".to_owned()];
        match wanted {
            Some(path) if path.contains(std::path::is_separator) => names = vec![path.to_owned()],
            Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => {
                names.push(format!("python{version}"))
            }
            _ => {}
        }
        for name in names {
            // A missing interpreter is uv's to complain about: its message names the versions it looked for.
            if let Ok(found) = self.at.resolve(OsStr::new(&name)) {
                self.program.bin_dirs.extend(found.bin_dirs);
                self.installed_at(&found.files);
            }
        }
        let default = || sys::uv_pythons(&self.at);
        let managed = self.at.var("UV_PYTHON_INSTALL_DIR").map_or_else(default, PathBuf::from);
        if managed.is_dir() {
            self.set("UV_PYTHON_INSTALL_DIR", &managed);
            self.grants.derived([managed], Access::Read);
        }
        Ok(())
    }

    fn registry_env(&mut self, registries: &Registries) {
        for (name, value) in &registries.env {
            set(&mut self.env, name, OsStr::new(value));
        }
    }

    fn npm_at(&mut self, cache: &Path) {
        // An empty configuration file: one in the private home could have been put there by the server.
        self.set("npm_config_userconfig", self.private.empty_file());
        for (name, value) in
            [("npm_config_update_notifier", "false"), ("npm_config_audit", "false"), ("npm_config_fund", "false")]
        {
            self.set(name, value);
        }
        self.set("npm_config_cache", cache);
        // So that a package installed for all is not taken for the one in the cache.
        self.set("npm_config_prefix", cache.join("prefix"));
    }

    fn uv_at(&mut self, cache: &Path) {
        self.set("UV_CACHE_DIR", cache.join("cache"));
        self.set("UV_TOOL_DIR", cache.join("tools"));
        self.set("UV_TOOL_BIN_DIR", cache.join("bin"));
        self.set("UV_PYTHON_DOWNLOADS", "never");
        self.set("UV_NO_CONFIG", "1");
        // The server cannot write beside its modules, and would compile them at each start.
        self.set("UV_COMPILE_BYTECODE", "1");
    }
}

/// What fills the cache that the real command will look into: npx keys it by the packages alone.
fn npm_install(args: &[OsString], command: &PackageCommand) -> Vec<OsString> {
    let exec = args.first().filter(|a| *a == "exec" || *a == "x");
    let mut out: Vec<OsString> = exec.into_iter().cloned().collect();
    out.push("--yes".into());
    out.extend(command.repeat.iter().map(Into::into));
    out.extend(command.packages.iter().map(|p| format!("--package={}", p.text).into()));
    out.extend(["--", "node", "-e", "0"].map(Into::into));
    out
}

/// uvx makes the same environment for every command of a package.
fn uv_install(args: &[OsString], command: &PackageCommand) -> Vec<OsString> {
    let mut out: Vec<OsString> = match args.first() {
        Some(a) if a == "tool" => vec!["tool".into(), "run".into()],
        Some(a) if a == "x" => vec!["x".into()],
        _ => Vec::new(),
    };
    out.extend(command.repeat.iter().map(Into::into));
    if let Some(first) = command.packages.first() {
        out.extend(["--from".into(), first.text.clone().into()]);
    }
    out.extend(["python", "-c", ""].map(Into::into));
    out
}
