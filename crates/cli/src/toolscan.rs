//! `firedoor wasm scan` and `firedoor scan-tool`: one bounded run of a program in the sandbox, and what of what it was given
//! shows in what it put out. After the MCP-SandboxScan paper (arXiv 2601.01241), for WebAssembly and for any other program.

mod batch;
mod dialogue;
mod paper;
mod render;
mod report;
mod run;
mod sinks;
mod sources;

use std::{
    collections::HashSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use firedoor_inspect::Inspector;
use firedoor_launch::UserGrants;
use firedoor_model::{Untrusted, launch::LaunchRequest, paths::Paths};

use crate::{
    arguments::sandbox::{ScanRunOptions, ScanToolOptions, WasmScanOptions},
    engine::{paths, sibling},
    failure::Failure,
    output, settings,
};
use report::{Exec, Flow, Level, Report, Sink, Source, Summary, Violation};
use run::{Job, Outcome, Stdin};

/// The names under which WASI programs are told that a path is outside their directories: Rust's standard library, and the
/// texts of `ENOTCAPABLE` in wasi-libc (strerror.c) and in Rust.
const OUTSIDE: [&str; 3] =
    ["failed to find a pre-opened file descriptor", "Capabilities insufficient", "(os error 76)"];
/// How our runtime begins what it says.
const RUNTIME: &str = "firedoor-wasm: ";
/// How our runtime begins to say that it stopped a module. A module can say so itself, too: nothing is made of it but this line.
const STOPPED: &str = "firedoor-wasm: stopped: ";
/// Most lines of that kind.
const MAX_OUTSIDE: usize = 100;

/// Scans a module, or all of a folder or list.
pub fn wasm(options: WasmScanOptions) -> Result<ExitCode, Failure> {
    let folder = options.module.as_deref().is_some_and(Path::is_dir);
    if options.batch.list.is_some() || folder {
        return batch::wasm(&options);
    }
    let module = options.module.as_deref().ok_or_else(|| Failure::environment("name a module"))?;
    let variables = settings::variables(&options.env)?;
    let roots = directories(&options.directories)?;
    let mut args: Vec<OsString> = vec!["run".into()];
    let mut option = |name: &str, value: OsString| args.extend([name.into(), value]);
    option("--memory", options.memory.to_string().into());
    option("--timeout", (options.scan.timeout * 1000).to_string().into());
    option("--output", options.scan.output.to_string().into());
    if let Some(fuel) = options.fuel {
        option("--fuel", fuel.to_string().into());
    }
    for (host, guest) in &roots {
        let mut text = host.clone().into_os_string();
        text.push("::");
        text.push(guest);
        option("--dir-ro", text);
    }
    for (name, _) in &variables {
        option("--env", name.into());
    }
    args.extend(["--".into(), module.into()]);
    args.extend(options.arguments.iter().cloned());
    let roots = roots.into_iter().map(|(host, _)| host).collect();
    let target = std::iter::once(module.as_os_str()).chain(options.arguments.iter().map(OsString::as_os_str));
    let target = target.map(|w| w.to_string_lossy().into_owned()).collect();
    let program = sibling("firedoor-wasm")?.into_os_string();
    let user = UserGrants { hosts: options.hosts, ..UserGrants::default() };
    Scan { program, args, target, variables, roots, user, profile: None, keeps_time: true }.run(&options.scan)
}

/// Scans a command.
pub fn native(options: ScanToolOptions) -> Result<ExitCode, Failure> {
    if options.batch.list.is_some() {
        return batch::native(&options);
    }
    let mut access = options.access;
    let variables = settings::variables(&std::mem::take(&mut access.env))?;
    let user = settings::access(access)?;
    let roots = user.grants.iter().map(|g| g.path.clone()).collect();
    let mut words = options.command.into_iter();
    let program = words.next().ok_or_else(|| Failure::environment("say what to run: firedoor scan-tool -- CMD"))?;
    let args: Vec<OsString> = words.collect();
    let target = std::iter::once(&program).chain(&args).map(|w| w.to_string_lossy().into_owned()).collect();
    Scan { program, args, target, variables, roots, user, profile: options.profile, keeps_time: false }
        .run(&options.scan)
}

/// Host and guest of each `--dir`.
fn directories(given: &[String]) -> Result<Vec<(PathBuf, String)>, Failure> {
    let one = |text: &String| {
        let (host, guest) = text.split_once("::").unwrap_or((text, "/data"));
        match fs::canonicalize(host) {
            Ok(real) if real.is_dir() => Ok((real, guest.to_owned())),
            Ok(_) => Err(Failure::environment(format!("--dir {host}: this is no directory"))),
            Err(e) => Err(Failure::environment(format!("--dir {host}: {e}"))),
        }
    };
    let all: Vec<_> = given.iter().map(one).collect::<Result<_, _>>()?;
    for (index, (_, guest)) in all.iter().enumerate() {
        if all.iter().take(index).any(|(_, other)| other == guest) {
            return Err(Failure::environment(format!("--dir: two directories as {guest}: write DIR::GUEST")));
        }
    }
    Ok(all)
}

/// What is scanned.
struct Scan {
    program: OsString,
    args: Vec<OsString>,
    /// For the report.
    target: Vec<String>,
    variables: Vec<(String, String)>,
    /// What of the files it may read is its input.
    roots: Vec<PathBuf>,
    user: UserGrants,
    profile: Option<String>,
    /// It is our runtime, which ends a module whose time is over.
    keeps_time: bool,
}

impl Scan {
    fn run(mut self, options: &ScanRunOptions) -> Result<ExitCode, Failure> {
        let paths = paths()?;
        let files = sources::files(&self.roots)?;
        self.user.env.extend(self.variables.iter().map(|(name, _)| name.clone()));
        let mut environment: Vec<(OsString, OsString)> = env::vars_os().filter(|(name, _)| name == "PATH").collect();
        environment.retain(|(name, _)| !self.variables.iter().any(|(given, _)| name == given.as_str()));
        environment.extend(self.variables.iter().map(|(name, value)| (name.into(), value.into())));
        let job = Job {
            request: LaunchRequest {
                entry: run::entry()?,
                program: std::mem::take(&mut self.program),
                args: std::mem::take(&mut self.args),
                cwd: env::current_dir()
                    .map_err(|e| Failure::environment(format!("cannot read the working directory: {e}")))?,
                env: environment,
            },
            profile: self.profile.as_deref(),
            user: &self.user,
            stdin: match &options.stdin {
                Some(path) => Stdin::File(path),
                None if options.mcp => Stdin::Mcp,
                None => Stdin::Nothing,
            },
            timeout: Duration::from_secs(options.timeout),
            keeps_time: self.keeps_time,
            output: usize::try_from(options.output).unwrap_or(usize::MAX),
        };
        let outcome = run::run(&job, &paths)?;
        if let Some(reason) = not_run(&outcome) {
            return Err(Failure::environment(reason));
        }
        let mut sources: Vec<Source> = self.variables.iter().map(|(n, v)| Source::env(n, v)).collect();
        sources.extend(files);
        let report = report(self.target, sources, outcome, options.paper, &paths);
        if options.json {
            output::json(&report)?;
        } else if options.sarif {
            output::json(&render::sarif(&report))?;
        } else if options.markdown {
            render::markdown(&report).lines().for_each(output::line);
        } else {
            render::words(&report).lines().for_each(output::line);
        }
        Ok(if report.clean() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

/// What our runtime says where it could not run a module. A module that says so itself is not called clean either.
fn not_run(outcome: &Outcome) -> Option<String> {
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    not_run_by(&stderr).filter(|_| outcome.exit.shell_code() == 2)
}

/// It may say it in several lines: nothing else was run that could have written those that follow.
fn not_run_by(stderr: &str) -> Option<String> {
    let begins = |line: &&str| line.starts_with(RUNTIME) && !line.starts_with(STOPPED);
    let mut lines = stderr.lines().skip_while(|line| !begins(line)).peekable();
    lines.peek()?;
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    Some(Untrusted::new(words.join(" ")).visible(1000))
}

fn report(target: Vec<String>, mut sources: Vec<Source>, outcome: Outcome, paper: bool, paths: &Paths) -> Report {
    let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    if let Some(record) = &outcome.record {
        sources::opened(&mut sources, record);
    }
    sources.extend(sources::fetches(&stdout, &stderr));
    if let Some(record) = outcome.record.as_ref().filter(|_| !paper) {
        sources.extend(sources::hosts(record));
    }
    let (sinks, flows) = if paper {
        let sinks = paper::sinks(&stdout);
        let flows = paper::flows(&sources, &sinks);
        (sinks, flows)
    } else {
        let sinks = sinks::sinks(&stdout);
        let given: Vec<&str> = sources.iter().map(|s| s.value.as_str()).collect();
        let shown: Vec<&str> = sinks.iter().map(|s| s.text.as_str()).collect();
        let seen = Inspector::new().exposures(&given, &shown).into_iter();
        let flows = seen.map(|e| Flow {
            source: e.given,
            sink: e.shown,
            snippet: e.snippet,
            confidence: if e.certain { Level::High } else { Level::Low },
            transform: e.transform.map(std::borrow::Cow::into_owned),
        });
        let flows = distinct(flows.collect(), &sinks);
        (sinks, flows)
    };
    let violations = violations(&outcome, &stdout, &stderr, paths);
    let summary = Summary {
        sources: sources.len(),
        sinks: sinks.len(),
        flows: flows.len(),
        violations: violations.len(),
        has_external_to_prompt_flow: !flows.is_empty(),
    };
    let exec = Exec {
        stdout,
        stderr,
        exit_code: outcome.exit.shell_code(),
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        stopped_by: outcome.stopped_by,
        sandbox: outcome.sandbox,
        notes: outcome.notes,
    };
    let matcher = if paper { "paper" } else { "firedoor" };
    Report { target, matcher, exec, sources, sinks, flows, violations, summary }
}

/// One flow for each source, place and change: the surest, of equals the first.
fn distinct(mut flows: Vec<Flow>, sinks: &[Sink]) -> Vec<Flow> {
    flows.sort_by_key(|f| (f.source, f.confidence == Level::Low, f.sink));
    let mut seen = HashSet::new();
    flows.retain(|f| {
        let place = sinks.get(f.sink).map(|s| (s.kind, s.path.clone()));
        seen.insert((f.source, place, f.transform.clone()))
    });
    flows.sort_by_key(|f| (f.source, f.sink));
    flows
}

/// What it tried and may not: what it says itself, what the guardian refused, and what Landlock closed to it.
fn violations(outcome: &Outcome, stdout: &str, stderr: &str, paths: &Paths) -> Vec<Violation> {
    let mut out: Vec<Violation> = Vec::new();
    let mut add = |violation: Violation| {
        if !out.contains(&violation) {
            out.push(violation);
        }
    };
    let said = stdout.lines().chain(stderr.lines()).filter(|line| OUTSIDE.iter().any(|text| line.contains(text)));
    for line in said.take(MAX_OUTSIDE) {
        let target = line.split('"').nth(1).unwrap_or_default().to_owned();
        let evidence = Untrusted::new(line.trim()).visible(400);
        add(Violation { kind: "filesystem", target, evidence });
    }
    for attempt in &outcome.attempts {
        let evidence = format!("{}: {}", attempt.program.visible(200), attempt.reason);
        add(Violation { kind: run::kind(attempt.kind), target: attempt.target.visible(400), evidence });
    }
    let refused = outcome.record.iter().flat_map(|r| r.files()).filter(|(.., allowed)| !allowed);
    for (path, how, _) in refused {
        // Programs look for many files that are not there.
        if fs::symlink_metadata(path.raw()).is_ok()
            && let Some(closed) = firedoor_launch::closed(path, how, &outcome.basis, paths)
        {
            let evidence = format!("the sandbox refused to {:?} it", how).to_lowercase();
            add(Violation { kind: "filesystem", target: closed.shown, evidence });
        }
    }
    for line in stderr.lines().filter(|line| line.starts_with(STOPPED)).take(1) {
        add(Violation { kind: "limit", target: String::new(), evidence: Untrusted::new(line).visible(400) });
    }
    if let Some(bound) = outcome.stopped_by {
        add(Violation { kind: "limit", target: bound.into(), evidence: format!("stopped: its {bound} was used up") });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given() {
        let given = |text: &str| settings::variables(&[text.to_owned()]).map_err(|f| f.text);
        assert_eq!(given("A=b=c").unwrap(), [("A".to_owned(), "b=c".to_owned())]);
        assert_eq!(given("A=").unwrap(), [("A".to_owned(), String::new())]);
        assert!(given("=x").unwrap_err().contains("NAME=VALUE"));
        assert!(given("FIREDOOR_NO_SUCH_VARIABLE").unwrap_err().contains("no such variable"));
        let dir = tempfile::tempdir().unwrap();
        let here = fs::canonicalize(dir.path()).unwrap();
        let text = here.display().to_string();
        assert_eq!(directories(std::slice::from_ref(&text)).unwrap_or_default(), [(here, "/data".to_owned())]);
        let errors = |all: &[String]| directories(all).err().map(|f| f.text).unwrap_or_default();
        assert!(errors(&[text.clone(), text.clone()]).contains("two directories"));
        assert!(errors(&[format!("{text}/absent")]).contains("No such file"));
    }

    #[test]
    fn what_the_runtime_says_is_said_to_its_end() {
        let said = "x\nfiredoor-wasm: m.wasm: bad magic number - expected=[\n    0x0,\n] actual=[\n    0x68,\n]\u{1b} (at offset 0x0)\n";
        let want =
            "firedoor-wasm: m.wasm: bad magic number - expected=[ 0x0, ] actual=[ 0x68, ]⟨U+001B⟩ (at offset 0x0)";
        assert_eq!(not_run_by(said).as_deref(), Some(want));
        assert_eq!(not_run_by("firedoor-wasm: stopped: out of fuel\n"), None);
    }
}
