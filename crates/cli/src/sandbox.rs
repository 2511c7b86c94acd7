//! `firedoor sandbox`.

use std::{
    env,
    ffi::{OsStr, OsString},
    process::ExitCode,
};

use firedoor_launch::{Context, Plan, Profiles};
use firedoor_model::{EntryId, launch::LaunchRequest};
use firedoor_sandbox::Level;

use crate::{
    arguments::{grants::AccessOptions, sandbox::SandboxCommand},
    engine::paths,
    failure::Failure,
    log, output,
    settings::{access, variables},
};

#[cfg_attr(unix, path = "sandbox/unix.rs")]
#[cfg_attr(windows, path = "sandbox/windows.rs")]
mod system;

use system::Wanted;

/// What a command is always given: programs are found by PATH, and Windows' own libraries ask for the rest.
const GIVEN: &[&str] = if cfg!(windows) {
    &[
        "PATH",
        "PATHEXT",
        "SystemRoot",
        "SystemDrive",
        "ComSpec",
        "TEMP",
        "TMP",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
    ]
} else {
    &["PATH"]
};

/// Runs a command confined, or says what can be enforced.
pub fn run(command: SandboxCommand) -> Result<ExitCode, Failure> {
    match command {
        SandboxCommand::Run { profile, access, observe, record, json, command } => {
            let wanted = observe.then_some(Wanted { file: record, json });
            confined(profile.as_deref(), access, wanted, command)
        }
        SandboxCommand::Doctor { json } => {
            let report = firedoor_sandbox::doctor();
            if json {
                output::json(&report)?;
            } else {
                output::line(&format!("{:?}: {}", report.level, report.summary));
                output::line(&format!("limits: {}", report.limits));
                report.missing.iter().for_each(|what| output::line(&format!("missing: {what}")));
            }
            Ok(if report.level == Level::Refused { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
    }
}

fn confined(
    profile: Option<&str>,
    options: AccessOptions,
    observe: Option<Wanted>,
    command: Vec<OsString>,
) -> Result<ExitCode, Failure> {
    let mut options = options;
    let variables = variables(&std::mem::take(&mut options.env))?;
    let mut user = access(options)?;
    user.env.extend(variables.iter().map(|(name, _)| name.clone()));
    let paths = paths()?;
    let mut command = command.into_iter();
    let program = command.next().ok_or_else(|| Failure::environment("say what to run: firedoor sandbox run -- CMD"))?;
    let name = program.to_string_lossy().into_owned();
    let request = LaunchRequest {
        // The same command gets the same private home each time.
        entry: EntryId::new("firedoor", "sandbox", &name)?,
        program,
        args: command.collect(),
        cwd: env::current_dir().map_err(|e| Failure::environment(format!("cannot read the working directory: {e}")))?,
        // Only what was named.
        env: env::vars_os()
            .filter(|(name, _)| is_given(name) && !variables.iter().any(|(given, _)| same(name, OsStr::new(given))))
            .chain(variables.iter().map(|(name, value)| (name.into(), value.into())))
            .collect(),
    };
    let (profiles, problems) = Profiles::load(&paths.config.join("profiles"));
    problems.iter().for_each(|problem| output::remark(&problem.to_string()));
    let context = Context { profile, identify: false, ..Context::new(&paths, &profiles, &user, log::now()) };
    let Plan::Run(run) = firedoor_launch::plan(&request, &context)? else {
        return Err(Failure::environment("the command would have to be installed first, which needs the engine"));
    };
    run.notes.iter().for_each(|note| output::remark(note));
    let exit = system::finished(&run, observe.as_ref(), &paths)?;
    if output::stopped() {
        return Ok(ExitCode::from(u8::try_from(exit.shell_code() & 0xff).unwrap_or(1)));
    }
    // At once: to free what is in memory takes time that whoever waits for the command would wait, too.
    std::process::exit(exit.shell_code() & 0xff)
}

fn is_given(name: &OsStr) -> bool {
    GIVEN.iter().any(|given| same(name, OsStr::new(given)))
}

/// Names of variables have no case on Windows.
fn same(name: &OsStr, other: &OsStr) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(other) } else { name == other }
}
