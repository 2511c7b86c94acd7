//! Putting a plan together.

mod carried;
mod container;
mod named;
mod package;
mod plain;
mod run;
mod uv_run;
mod wasm;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use firedoor_model::{
    Digest,
    launch::{Access, LaunchRequest, Step},
    observation::Basis,
    paths::canonicalize,
};

use crate::{
    Context, ProxyAddress,
    command::{self, Command},
    environment,
    error::PlanError,
    grants::Grants,
    identity::{Ecosystem, Identity, What, hash_file},
    install::InstallStep,
    private::Private,
    profile::{Found, Kind, Profile, Subject},
    profile_path,
    program::{Lookup, Program},
    protect::Protected,
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
    /// What holds without the profile that was found by name.
    beneath: Profile,
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
    let mut known = subject.map(|s| (s.kind(), s.name().to_owned()));
    let mut grants = Grants::new(Protected::new(context.paths));
    grants.foresee(context.user.grants.iter().filter(|g| g.access > Access::Read).map(|g| g.path.clone()));
    let found = match context.profile {
        Some(name) => {
            let named = context.profiles.named(name).ok_or_else(|| PlanError::Profile { name: name.to_owned() })?;
            Found::Profile(named)
        }
        None => context.profiles.find(subject.as_slice()),
    };
    let found = match found {
        Found::Profile(p)
            if context.profile.is_none()
                && matches!(subject, Some(Subject::Executable(_)))
                && !named::is_installed(request, &command, &at, context.declared_env) =>
        {
            grants.note(format!(
                "the profile {} is not used: the program lies in the project or working directory, and any project may call a file \
                 of its own so. Install it elsewhere, or grant what it needs (`firedoor grants add`)",
                p.name
            ));
            known = None;
            Found::Nothing
        }
        found => found,
    };
    let extends = match &found {
        Found::Profile(p) => Some((p.name.clone(), context.profiles.is_users(&p.name))),
        Found::Nothing | Found::Withheld => None,
    };
    let of_kind = context.profiles.of_kind(kind(&name, &command, &program));
    let beneath = of_kind.cloned().unwrap_or_else(none);
    let profile = match found {
        Found::Profile(p) => of_kind.map_or_else(|| p.clone(), |beneath| p.clone().over(beneath)),
        Found::Nothing => beneath.clone(),
        Found::Withheld => {
            grants.note("no profile is used: a profile file of yours that may be for this server is broken");
            none()
        }
    };
    let written = profile.write.iter().chain(profile.state.iter().filter(|path| !profile.read.contains(path)));
    grants.foresee(written.map(|path| profile_path(path, &context.paths.home)));
    let keep = named::kept(context, &profile);
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
        beneath,
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
