//! Putting a plan together.

mod container;
mod package;
mod wasm;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use firedoor_model::{
    Digest,
    launch::{Access, Confinement, Grant, LaunchRequest, Network, Step},
    network::{HostGrant, Hosts},
    observation::Basis,
    paths::canonicalize,
};

use crate::{
    Context, ProxyAddress,
    command::{self, Command, UvRun},
    environment,
    error::PlanError,
    grants::{self, Grants},
    identity::{Ecosystem, Identity, What, hash_file},
    install::InstallStep,
    private::{Linked, Private},
    profile::{ArgumentAccess, Found, Kind, Profile, Subject},
    profile_path,
    program::{Lookup, Program},
    protect::{self, Protected},
    runtime, sys,
};

/// What to do next.
#[derive(Debug)]
pub enum Plan {
    /// Install first, then plan again.
    Install(Box<InstallStep>),
    /// Start the server.
    Run(Box<Run>),
}

/// A server's start.
#[derive(Clone)]
pub struct Run {
    /// What to run.
    pub step: Step,
    /// What it is, if [`Context::identify`] asks for it.
    pub identity: Option<Identity>,
    /// The profile's name; `default` when none is for this server.
    pub profile: String,
    /// What a proposal for a profile is measured by.
    pub basis: Basis,
    /// Names of the variables that the server gets because somebody named them.
    pub named_env: Vec<String>,
    /// Names of the variables that the server does not get.
    pub dropped_env: Vec<String>,
    /// What the user should know about this plan: grants that were cut or left out, and why.
    pub notes: Vec<String>,
}

// The step's arguments and environment may hold secrets.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("program", &self.step.program)
            .field("confinement", &self.step.confinement)
            .field("identity", &self.identity)
            .field("profile", &self.profile)
            .field("dropped_env", &self.dropped_env)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// What is known once the command is understood.
struct Planner<'a> {
    request: &'a LaunchRequest,
    /// How a profile finds this server.
    subject: Option<(&'static str, String)>,
    /// The profile that was found by that, and whether it is the user's own.
    extends: Option<(String, bool)>,
    context: &'a Context<'a>,
    at: Lookup<'a>,
    program: Program,
    /// What the program gets.
    args: Vec<OsString>,
    private: Private,
    profile: Profile,
    env: Vec<(OsString, OsString)>,
    named_env: Vec<String>,
    dropped_env: Vec<String>,
    grants: Grants,
}

/// Decides what really runs for a request, and under what confinement. Creates the entry's private directories.
pub fn plan(request: &LaunchRequest, context: &Context<'_>) -> Result<Plan, PlanError> {
    if !request.cwd.is_absolute() {
        return Err(PlanError::Cwd(request.cwd.clone()));
    }
    let unwrapped = sys::unwrapped(request);
    let request = unwrapped.as_ref().unwrap_or(request);
    let mut env: Vec<_> = request.env.iter().filter(|(n, _)| sys::is_variable(n)).cloned().collect();
    sys::add_needed(&mut env);
    let is_path = |name: &OsStr| sys::same_variable(name, OsStr::new("PATH"));
    let path = env.iter().rev().find(|(n, _)| is_path(n)).map(|(_, v)| v.clone());
    let path = path.as_deref();
    let at = Lookup { path, cwd: &request.cwd, home: &context.paths.home, env: &request.env };
    let file = Path::new(&request.program).file_name().unwrap_or(&request.program);
    let name = sys::program_name(&file.to_string_lossy()).into_owned();
    let command = command::classify(&name, &request.args)?;
    let program = match &command {
        Command::Wasm(_) => wasm::host(&at, &request.program)?,
        _ => at.resolve(&request.program)?,
    };

    let subject = match &command {
        Command::Package(p) => p.packages.first().map(|spec| match p.ecosystem {
            Ecosystem::Npm => Subject::Npm(&spec.name),
            Ecosystem::Pypi => Subject::Pypi(&spec.name),
        }),
        Command::UvRun(_) => None,
        Command::Wasm(w) => w
            .module
            .as_deref()
            .map(Path::new)
            .or(Some(Path::new(&request.program)))
            .and_then(file_name)
            .map(Subject::Executable),
        Command::Plain => Some(Subject::Executable(&name)),
    };
    let known = subject.map(|s| (s.kind(), s.name().to_owned()));
    let mut grants = Grants::new(Protected::new(context.paths));
    let found = match context.profile {
        Some(name) => {
            let named = context.profiles.named(name).ok_or_else(|| PlanError::Profile { name: name.to_owned() })?;
            Found::Profile(named)
        }
        None => context.profiles.find(subject.as_slice()),
    };
    let extends = match &found {
        Found::Profile(p) => Some((p.name.clone(), context.profiles.is_users(&p.name))),
        Found::Nothing | Found::Withheld => None,
    };
    let of_kind = context.profiles.of_kind(kind(&name, &command, &program));
    let profile = match found {
        Found::Profile(p) => of_kind.map_or_else(|| p.clone(), |beneath| p.clone().over(beneath)),
        Found::Nothing => of_kind.cloned().unwrap_or_else(none),
        Found::Withheld => {
            grants.note("no profile is used: a profile file of yours that may be for this server is broken");
            none()
        }
    };
    let mut keep: BTreeSet<&str> = context.user.env.iter().map(String::as_str).collect();
    keep.extend(context.declared_env.into_iter().flatten().map(String::as_str));
    keep.extend(profile.env.iter().map(String::as_str));
    let (env, dropped_env) = environment::filter(&env, &keep);
    let is_kept = |name: &str| keep.iter().any(|kept| sys::same_variable(OsStr::new(kept), OsStr::new(name)));
    let named = env.iter().filter_map(|(name, _)| name.to_str()).filter(|name| is_kept(name));
    let named_env = named.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();

    let private = Private::of(context.paths, &request.entry);
    private.create()?;
    let args = request.args.clone();
    let planner = Planner {
        request,
        subject: known,
        extends,
        context,
        at,
        program,
        args,
        private,
        profile,
        env,
        named_env,
        dropped_env,
        grants,
    };
    match command {
        Command::Package(p) => planner.package(&p),
        Command::UvRun(r) => planner.uv_run(&name, &r),
        Command::Wasm(w) => planner.wasm(w),
        Command::Plain => planner.plain(&name),
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// What a server gets for which there is no profile at all.
fn none() -> Profile {
    Profile { name: "default".into(), ..Profile::default() }
}

/// How a server is launched. `name` is the file name of the configured program.
fn kind(name: &str, command: &Command, program: &Program) -> Kind {
    match command {
        Command::Package(p) if p.ecosystem == Ecosystem::Npm => Kind::Npx,
        Command::Package(_) => Kind::Uvx,
        Command::UvRun(_) => Kind::Python,
        Command::Wasm(_) => Kind::Wasm,
        Command::Plain => {
            // A script is of its interpreter's kind.
            let interpreter = program.interpreter.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
            runtime::kind(name).or_else(|| runtime::kind(&sys::program_name(interpreter?))).unwrap_or(Kind::Native)
        }
    }
}

impl Planner<'_> {
    /// An executable, or an interpreter with a script.
    fn plain(mut self, name: &str) -> Result<Plan, PlanError> {
        let target = match runtime::target(name, &self.request.args, &self.request.cwd) {
            Some(runtime::Target::Script(path)) => Some(path),
            Some(runtime::Target::Module(module)) => runtime::module_file(&module, &self.request.cwd),
            None => None,
        };
        let what = match target.filter(|t| t.is_file()) {
            Some(script) => {
                self.grants.derived(runtime::project(&script, self.at.home), Access::Read);
                if runtime::kind(name) == Some(Kind::Bun) {
                    // Before it looks for packages it lists the directory that it is started in, and those with packages.
                    let above = script.ancestors().filter(|d| d.join("node_modules").is_dir()).map(Path::to_owned);
                    self.grants.derived(above.chain([self.request.cwd.clone()]), Access::List);
                }
                let interpreter = self.program.interpreter.clone().unwrap_or_else(|| self.program.real.clone());
                What::Script { path: real(&script)?, sha256: self.digest(&script)?, interpreter }
            }
            None => self.program_identity()?,
        };
        if runtime::kind(name) == Some(Kind::Docker) {
            container::notes(name, &self.request.args).into_iter().for_each(|note| self.grants.note(note));
        }
        if self.program.interpreter.is_some() {
            let real = self.program.real.clone();
            self.grants.derived(runtime::project(&real, self.at.home), Access::Read);
        }
        let args = self.request.args.clone();
        self.run(what, &args)
    }

    /// The digest of a file, which goes into the identity only.
    fn digest(&self, path: &Path) -> Result<Digest, PlanError> {
        if self.context.identify { hash_file(path) } else { Ok(Digest([0; 32])) }
    }

    /// What the program itself is.
    fn program_identity(&self) -> Result<What, PlanError> {
        let path = self.program.real.clone();
        let sha256 = self.digest(&path)?;
        Ok(match &self.program.interpreter {
            Some(interpreter) => What::Script { path, sha256, interpreter: interpreter.clone() },
            None => What::Executable { path, sha256 },
        })
    }

    /// `uv run` in a project that is synchronised.
    fn uv_run(mut self, tool: &str, run: &UvRun) -> Result<Plan, PlanError> {
        let refuse = |what: String, remedy| Err(PlanError::Command { tool: "uv run", what, remedy });
        let start = run.directory.as_ref().map_or_else(|| self.request.cwd.clone(), |d| self.request.cwd.join(d));
        let found = start
            .ancestors()
            .take_while(|d| !self.at.home.starts_with(d))
            .find(|d| d.join("pyproject.toml").is_file())
            .map(Path::to_owned);
        let Some(project) = found else {
            return refuse(
                format!("{} is in no project (no pyproject.toml)", start.display()),
                "Give --directory the project's directory, or name the project's program in .venv as the command",
            );
        };
        let venv = project.join(".venv");
        let python = sys::in_venv(&venv, Path::new("python"));
        if !python.exists() {
            return refuse(
                format!("{} has no .venv with the packages, and Firedoor runs servers offline", project.display()),
                "Run `uv sync` in that directory once",
            );
        }
        self.uv_itself(tool)?;
        self.grants.derived([project.clone()], Access::Read);
        let files = crate::program::links(&python);
        self.installed_at(&files);
        let first = run.rest.first().map(OsString::as_os_str).unwrap_or_default();
        let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy();
        let script = match runtime::target(&sys::program_name(&name), run.rest.get(1..).unwrap_or_default(), &start) {
            Some(runtime::Target::Script(path)) => Some(path),
            Some(runtime::Target::Module(m)) => runtime::module_file(&m, &start),
            None if Path::new(first).extension().is_some_and(|e| e == "py") => Some(start.join(first)),
            None => Some(sys::in_venv(&venv, Path::new(first))),
        };
        let what = match script.filter(|s| s.is_file()) {
            Some(script) => {
                self.grants.derived(runtime::project(&script, self.at.home), Access::Read);
                What::Script { path: real(&script)?, sha256: self.digest(&script)?, interpreter: real(&python)? }
            }
            None => self.program_identity()?,
        };
        for (name, value) in
            [("UV_OFFLINE", "1"), ("UV_NO_SYNC", "1"), ("UV_FROZEN", "1"), ("UV_PYTHON_DOWNLOADS", "never")]
        {
            self.set(name, value);
        }
        let args = self.request.args.clone();
        self.run(what, &args)
    }

    /// The node that runs npx.
    fn node(&self) -> &Path {
        self.program.interpreter.as_deref().unwrap_or(&self.program.real)
    }

    fn installed_at(&mut self, files: &[PathBuf]) {
        self.grants.derived(runtime::installations(files, self.at.home), Access::Read);
    }

    fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        set(&mut self.env, name, value.as_ref());
    }

    fn home_at(&mut self, home: &Path, tmp: &Path, cache: &Path) {
        for (name, place) in sys::home_variables(home, tmp, cache) {
            self.set(name, place);
        }
    }

    /// The base set, the program itself and its interpreters, and the certificate authorities.
    fn common_grants(&mut self) {
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
            self.grants.derived(paths.filter(|p| p.exists()), access);
        }
        Ok(())
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

    fn run(mut self, what: What, args: &[OsString]) -> Result<Plan, PlanError> {
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
                confinement: Confinement { grants, protected: protect::names().clone(), network, sockets, limits },
            },
            identity: self.context.identify.then(|| Identity::new(what, args)),
            profile: self.profile.name,
            basis,
            named_env: self.named_env,
            dropped_env: self.dropped_env,
            notes,
        })))
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

fn real(path: &Path) -> Result<PathBuf, PlanError> {
    canonicalize(path).map_err(|e| PlanError::io(path, "resolve the path", e))
}

fn set(env: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    // npm reads its variables in any case: another spelling must not win.
    let npm = name.starts_with("npm_config_");
    let same = |n: &OsStr| sys::same_variable(n, OsStr::new(name)) || npm && n.eq_ignore_ascii_case(name);
    env.retain(|(n, _)| !same(n));
    env.push((name.into(), value.into()));
}

fn set_proxy(env: &mut Vec<(OsString, OsString)>, proxy: &ProxyAddress) {
    let url = proxy.url();
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "npm_config_https_proxy", "npm_config_proxy"]
    {
        set(env, name, OsStr::new(&url));
    }
    for name in ["ALL_PROXY", "all_proxy", "npm_config_noproxy"] {
        env.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        set(env, name, OsStr::new(""));
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(test)]
#[cfg(windows)]
#[path = "plan/tests/windows.rs"]
mod tests;
