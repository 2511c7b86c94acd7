//! `firedoor sandbox`.

use std::{env, ffi::OsString, io, os::fd::AsFd, process::ExitCode};

use firedoor_launch::{Context, Plan, Profiles};
use firedoor_model::{EntryId, launch::LaunchRequest, network::AttemptKind};
use firedoor_sandbox::{Launch, Level, Notice, Stderr};

use crate::{
    arguments::{AccessOptions, SandboxCommand},
    engine::paths,
    failure::Failure,
    log,
    observe::{self, Wanted},
    output,
    settings::access,
    signals::Signals,
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
    let user = access(options)?;
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
        // Only what was named. Programs are found by PATH.
        env: env::vars_os()
            .filter(|(name, _)| name == "PATH" || name.to_str().is_some_and(|n| user.env.contains(n)))
            .collect(),
    };
    let (profiles, problems) = Profiles::load(&paths.config.join("profiles"));
    problems.iter().for_each(|problem| output::remark(&problem.to_string()));
    let context = Context { profile, identify: false, ..Context::new(&paths, &profiles, &user, log::now()) };
    let Plan::Run(run) = firedoor_launch::plan(&request, &context)? else {
        return Err(Failure::environment("the command would have to be installed first, which needs the engine"));
    };
    run.notes.iter().for_each(|note| output::remark(note));
    // So that the end of an observed command, too, is seen by us, and not the end of us by the guardian.
    let signals = observe.as_ref().map(|_| Signals::block()).transpose()?;
    let stream = |fd: io::Result<_>| fd.map_err(|e| Failure::environment(format!("cannot use a standard stream: {e}")));
    let launch = Launch {
        step: &run.step,
        stdin: stream(io::stdin().as_fd().try_clone_to_owned())?,
        stdout: stream(io::stdout().as_fd().try_clone_to_owned())?,
        stderr: Stderr::Inherit,
        observe: observe.is_some(),
    };
    let mut tree = firedoor_sandbox::spawn(launch)?;
    if let Some(signals) = &signals {
        signals.pass_on_until_end(&tree)?;
    }
    // A signal that ends us ends the command, too: the guardian sees us go.
    let exit = tree.wait().map_err(|e| Failure::environment(format!("the command was lost: {e}")))?;
    // Nobody was asked anything.
    while let Some(Notice::Attempted(attempt)) = tree.next_notice() {
        let what = if attempt.kind == AttemptKind::Resource { "used more than" } else { "refused:" };
        output::remark(&format!("{what} {} ({})", attempt.target.visible(200), attempt.reason));
    }
    if let Some(wanted) = &observe {
        let record = observe::record(tree.record())?;
        observe::show(&record, &firedoor_launch::propose(&record, &run.basis, &paths), wanted)?;
    }
    Ok(ExitCode::from(u8::try_from(exit.shell_code() & 0xff).unwrap_or(1)))
}
