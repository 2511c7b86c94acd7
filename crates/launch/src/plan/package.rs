//! Plans for npx and uvx: what the project has, what is installed, or an install.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use firedoor_model::{
    Digest,
    launch::{Access, Confinement, Network, Step},
};

use super::{Plan, Planner, set, set_proxy};
use crate::{
    command::PackageCommand,
    environment,
    error::PlanError,
    grants::{self, Grants},
    identity::{Ecosystem, What, hash_file},
    install::{self, InstallStep, Installed, Record, Target},
    program::links,
    registry::{self, Registries},
    runtime,
};

/// Largest `package.json` that is read.
const MAX_MANIFEST: u64 = 1 << 20;

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
                    let cache = self.private.cache();
                    self.npm_offline(&cache.join("npm"));
                    let node = self.node().to_owned();
                    let what = What::Script { path: bin.clone(), sha256: hash_file(&bin)?, interpreter: node };
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
                let tool = if self.request.args.first().is_some_and(|a| a == "tool") { "uv" } else { "uvx" };
                self.uv_itself(tool)?;
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
        let mut fields: Vec<Vec<u8>> = vec![self.program.real.as_os_str().as_bytes().to_vec()];
        fields.extend(self.program.interpreter.iter().map(|p| p.as_os_str().as_bytes().to_vec()));
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
        self.home_at(&dir.join("home"), &dir.join("tmp"), &dir.join("home/.cache"));
        self.registry_env(&registries);
        let args = match command.ecosystem {
            Ecosystem::Npm => {
                self.npm_at(&dir.join("npm"));
                npm_install(&self.request.args, command)
            }
            Ecosystem::Pypi => {
                self.uv_at(&dir.join("uv"));
                uv_install(&self.request.args, command)
            }
        };
        set_proxy(&mut self.env, proxy);
        self.common_grants();
        self.grants.trusted(dir.clone(), Access::Write);
        let Grants { grants, notes, .. } = self.grants;
        Ok(Plan::Install(Box::new(InstallStep {
            step: Step {
                program: self.program.path,
                args,
                env: self.env,
                // Not the project's directory: an install must not depend on, or reach, the user's files.
                cwd: dir.clone(),
                confinement: Confinement {
                    grants,
                    network: Network::Proxy(proxy.address),
                    sockets: Vec::new(),
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

    /// Runs what is installed, without network.
    fn installed(mut self, command: &PackageCommand, record: Record) -> Result<Plan, PlanError> {
        let dir = self.private.generation(&record.generation);
        let registries = registry::registries(command, &self.at, self.node())?;
        self.registry_env(&registries);
        match command.ecosystem {
            Ecosystem::Npm => {
                let cache = dir.join("npm");
                self.npm_offline(&cache);
                // npx takes a lock there at each start.
                self.grants.trusted(cache, Access::Write);
            }
            Ecosystem::Pypi => {
                let cache = dir.join("uv");
                self.uv_at(&cache);
                self.set("UV_OFFLINE", "1");
                self.grants.trusted(cache, Access::Write);
            }
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
        if spec.bare && !spec.name.contains('/') {
            let bin = modules.join(".bin").join(&spec.name);
            if let Some(bin) = fs::canonicalize(bin).ok().filter(|b| b.is_file()) {
                return Some((project, bin));
            }
        }
        let package = modules.join(&spec.name);
        let text = install::read_regular(&package.join("package.json"), MAX_MANIFEST).ok()?;
        let json: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let version = json.get("version")?.as_str()?;
        let same = spec.exact && spec.text == format!("{}@{version}", spec.name);
        if !spec.bare && !same {
            return None;
        }
        // npx runs the only program, or the one named like the package (libnpmexec, get-bin-from-manifest).
        let short = spec.name.rsplit('/').next()?;
        let bin = match json.get("bin")? {
            serde_json::Value::String(one) => one.as_str(),
            serde_json::Value::Object(all) if all.len() == 1 => all.values().next()?.as_str()?,
            all => all.get(short)?.as_str()?,
        };
        let bin = fs::canonicalize(package.join(bin)).ok().filter(|b| b.is_file())?;
        Some((project, bin))
    }

    /// uv's own executables: uvx starts the uv beside it.
    pub(super) fn uv_itself(&mut self, tool: &str) -> Result<(), PlanError> {
        let other = if tool == "uv" { "uvx" } else { "uv" };
        let beside: Vec<PathBuf> = self.program.files.iter().filter_map(|f| Some(f.parent()?.join(other))).collect();
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
            Some(path) if path.contains('/') => names = vec![path.to_owned()],
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
        let data = self.at.var("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let default = || data.unwrap_or_else(|| self.at.home.join(".local/share")).join("uv/python");
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
        for (name, value) in [
            ("npm_config_userconfig", "/dev/null"),
            ("npm_config_update_notifier", "false"),
            ("npm_config_audit", "false"),
            ("npm_config_fund", "false"),
        ] {
            self.set(name, value);
        }
        self.set("npm_config_cache", cache);
        // So that a package installed for all is not taken for the one in the cache.
        self.set("npm_config_prefix", cache.join("prefix"));
    }

    fn npm_offline(&mut self, cache: &Path) {
        self.npm_at(cache);
        self.set("npm_config_offline", "true");
    }

    fn uv_at(&mut self, cache: &Path) {
        self.set("UV_CACHE_DIR", cache.join("cache"));
        self.set("UV_TOOL_DIR", cache.join("tools"));
        self.set("UV_TOOL_BIN_DIR", cache.join("bin"));
        self.set("UV_PYTHON_DOWNLOADS", "never");
        self.set("UV_NO_CONFIG", "1");
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
