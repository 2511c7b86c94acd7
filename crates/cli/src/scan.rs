//! `firedoor scan`.

use std::{cmp::Reverse, env, fs, path::PathBuf, process::ExitCode};

use firedoor_clients::{Clients, Env, Finding, Scan, State};

use crate::{
    arguments::configurations::ScanOptions,
    engine::{paths, sibling},
    failure::Failure,
    keychain, output, sarif,
};

/// What the clients crate needs to know about this process.
pub fn surroundings(projects: Vec<PathBuf>) -> Result<Env<'static>, Failure> {
    let cwd = env::current_dir()
        .map_err(|e| Failure::environment(format!("cannot read the working directory: {e}; change to another one")))?;
    let projects = projects.into_iter().map(|p| project(cwd.join(p))).collect::<Result<Vec<_>, _>>()?;
    let env = Env::new(paths()?, cwd.clone(), |name| env::var_os(name)).with_projects(projects);
    Ok(env.with_shim(&sibling(firedoor_clients::SHIM)?).with_keychain(keychain()?))
}

/// A directory that was named. In one that is not there nothing would be found, and who asks for findings (`--fail-on`) would
/// take that for all being well.
fn project(directory: PathBuf) -> Result<PathBuf, Failure> {
    let told = |what: &str| {
        let shown = visible(&directory.to_string_lossy());
        Failure::environment(format!("--project {shown}: {what}; name the directory of a project"))
    };
    match fs::metadata(&directory) {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(told("this is no directory")),
        Err(e) => Err(told(&format!("cannot be looked at: {e}"))),
    }
}

/// Shows what there is.
pub fn run(options: ScanOptions) -> Result<ExitCode, Failure> {
    let env = surroundings(options.projects)?;
    let clients = Clients::load()?;
    let scan = clients.scan(&env);
    if options.sarif {
        output::json(&sarif::document(&scan.findings, &env.cwd))?;
    } else if options.json {
        output::json(&scan)?;
    } else {
        show(clients, &scan);
    }
    let fails = |finding: &Finding| options.fail_on.is_some_and(|level| finding.severity >= level);
    Ok(if scan.findings.iter().any(fails) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn show(clients: &Clients, scan: &Scan) {
    let (mut servers, mut protected) = (0_usize, 0_usize);
    for client in &scan.clients {
        output::line(&client.name);
        for file in &client.files {
            output::line(&format!("  {} ({})", file.path.display(), visible(&file.scope)));
            if let Some(problem) = &file.problem {
                output::line(&format!("    not readable: {}", problem.message));
            }
            if let Some(left) = &file.unsupported {
                output::line(&format!("    left alone: {}. {}", left.reason, left.step));
            }
            for warning in &file.warnings {
                output::line(&format!("    note: {warning}"));
            }
            for entry in &file.entries {
                servers += 1;
                protected += usize::from(entry.state == State::Protected);
                output::line(&format!("    {:<24} {}", visible(entry.id.server()), in_words(&entry.state)));
                for warning in &entry.warnings {
                    output::line(&format!("    {:<24} note: {warning}", ""));
                }
            }
        }
    }
    if servers == 0 {
        output::line("No servers found. --project DIR looks into a project. Firedoor knows the files of:");
        let names: Vec<&str> = clients.known().map(|(_, name)| name).collect();
        output::line(&format!("  {}", names.join(", ")));
    } else {
        let servers = output::counted(servers, "server", "servers");
        let clients = output::counted(scan.clients.len(), "client", "clients");
        output::line(&format!("{servers} in {clients}, {protected} protected"));
    }
    findings(&scan.findings);
}

/// The worst first; what to do once for each code.
fn findings(all: &[Finding]) {
    let mut all: Vec<&Finding> = all.iter().collect();
    all.sort_by_key(|f| (Reverse(f.severity), f.code));
    let mut code = None;
    for finding in all {
        if code != Some(finding.code) {
            code = Some(finding.code);
            output::line("");
            output::line(&format!("{} {} ({})", finding.code.number(), finding.code.title(), finding.severity));
            output::line(&format!("  {}", finding.remedy));
        }
        let path = visible(&finding.path.to_string_lossy());
        let server = finding.entry.as_ref().map(|e| format!("{}: ", visible(e.server()))).unwrap_or_default();
        output::line(&format!("  - {server}{} ({path}:{})", finding.message, finding.line));
    }
}

fn visible(text: &str) -> String {
    firedoor_model::Untrusted::new(text).visible(200)
}

fn in_words(state: &State) -> String {
    match state {
        State::Unprotected => "not protected".into(),
        State::Protected => "protected".into(),
        State::Misrouted { reason } => format!("misrouted: {reason}"),
        State::NotYet { reason } => reason.clone(),
        State::WrappedByOther { by } => format!("wrapped by {}", visible(by)),
    }
}
