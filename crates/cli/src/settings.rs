//! `firedoor mode`, `rules`, `pins` and `grants`.

use std::{collections::BTreeMap, env, fs, path::PathBuf, process::ExitCode};

use firedoor_clients::{Clients, Selection, select};
use firedoor_ipc::command::{Pin, Reply, Request, WantedRule};
use firedoor_launch::UserGrants;
use firedoor_model::{
    EntryId, Millis, Mode, Untrusted,
    launch::{Access, Grant},
    question::Choice,
    rule::{Match, Rule, Use},
};

use crate::{
    arguments::{
        decisions::{PinsCommand, RulesCommand},
        grants::{AccessOptions, GrantsCommand},
    },
    endpoints,
    engine::{Engine, unexpected},
    failure::Failure,
    log, output,
    questions::settled,
    scan::surroundings,
};

mod granting;

/// Shows or sets the mode.
pub fn mode(mode: Option<Mode>, json: bool) -> Result<ExitCode, Failure> {
    match Engine::running_or_started()?.ask(&Request::Mode { set: mode })? {
        Reply::Mode { mode } => {
            if json {
                output::json(&serde_json::json!({ "mode": mode }))?;
            } else {
                output::line(&mode.to_string());
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected()),
    }
}

/// Asks nothing for a while.
pub fn pause(minutes: u32, json: bool) -> Result<ExitCode, Failure> {
    settled(&mut Engine::running_or_started()?, &Request::Pause { minutes }, json)
}

/// Asks again.
pub fn resume(json: bool) -> Result<ExitCode, Failure> {
    settled(&mut Engine::running_or_started()?, &Request::Resume, json)
}

/// Rules.
pub fn rules(command: RulesCommand) -> Result<ExitCode, Failure> {
    let mut engine = Engine::running_or_started()?;
    match command {
        RulesCommand::List { json } => {
            let (rules, uses) = all_rules(&mut engine)?;
            let uses: BTreeMap<i64, Use> = uses.into_iter().collect();
            if json {
                output::json(&serde_json::json!({ "rules": rules, "uses": uses }))?;
            } else if rules.is_empty() {
                output::line("No rules.");
            } else {
                for rule in &rules {
                    let hits = uses.get(&rule.id).map_or(0, |used| used.hits);
                    let used = output::counted(hits, "time", "times");
                    output::line(&format!("{:>4}  {rule} (used {used})", rule.id));
                }
            }
        }
        RulesCommand::Export => {
            for rule in all_rules(&mut engine)?.0 {
                output::json(&rule)?;
            }
        }
        RulesCommand::Add { effect, entry, client, tool, detector, expires, json } => {
            let expires = expires.map(|text| end(&text)).transpose()?;
            let (client, tool) = (client.map(Untrusted::new), tool.map(Untrusted::new));
            let matches = Match { entry, client, tool, detector, ..Match::default() };
            let effect = effect.into();
            may_be_kept(effect, &matches)?;
            // It may come later, unlike what is granted something.
            if let Some(entry) = &matches.entry
                && let Some(unknown) = unknown(&mut engine, entry, Vec::new())?
            {
                output::remark(&format!("{unknown}. The rule holds for it once it is there"));
            }
            let rules = vec![WantedRule { effect, matches, expires }];
            return settled(&mut engine, &Request::AddRules { rules }, json);
        }
        RulesCommand::From { row, effect, json } => {
            return settled(&mut engine, &Request::RuleFromRow { seq: row, effect: effect.into() }, json);
        }
        RulesCommand::Suggest { accept: Some(id), json } => {
            return settled(&mut engine, &Request::AcceptSuggestion { id }, json);
        }
        RulesCommand::Suggest { accept: None, json } => {
            let Reply::Suggestions { suggestions, questions } = engine.ask(&Request::Suggestions)? else {
                return Err(unexpected());
            };
            if json {
                output::json(&serde_json::json!({ "suggestions": suggestions, "questions": questions }))?;
            } else if suggestions.is_empty() {
                output::line("No rules are suggested: it takes a week, and the same answer three times.");
            }
            for s in suggestions.iter().filter(|_| !json) {
                output::line(&format!("{}  {} (would have answered {} of {questions})", s.id, s.rule, s.questions));
            }
        }
        RulesCommand::Restore { id, json } => return settled(&mut engine, &Request::RestoreRule { id }, json),
        RulesCommand::Remove { id, json } => return settled(&mut engine, &Request::RemoveRule { id }, json),
        RulesCommand::Import { file, json } => {
            let wanted = |r: Rule| WantedRule { effect: r.effect, matches: r.matches, expires: r.expires };
            let rules: Vec<WantedRule> = rules_in(&file)?.into_iter().map(wanted).collect();
            rules.iter().try_for_each(|rule| may_be_kept(rule.effect, &rule.matches))?;
            if !rules.is_empty() {
                return settled(&mut engine, &Request::AddRules { rules }, json);
            }
            let text = format!("{}: holds no rules, so nothing was added", file.display());
            if json {
                output::json(&serde_json::json!({ "text": text }))?;
            } else {
                output::line(&text);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How often a rule was used, by its number.
type Uses = Vec<(i64, Use)>;

fn all_rules(engine: &mut Engine) -> Result<(Vec<Rule>, Uses), Failure> {
    match engine.ask(&Request::Rules)? {
        Reply::Rules { rules, uses } => Ok((rules, uses)),
        _ => Err(unexpected()),
    }
}

fn end(text: &str) -> Result<Millis, Failure> {
    let span = log::span(text)
        .ok_or_else(|| Failure::environment(format!("{text:?} is no span of time: use 90s, 10m, 2h, 3d")))?;
    Ok(log::now().plus(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
}

/// Refuses what would silence everything, and a rule that blocks nothing and must not be taken for one that does.
fn may_be_kept(effect: Choice, matches: &Match) -> Result<(), Failure> {
    if effect == Choice::Allow && *matches == Match::default() {
        return Err(Failure::environment(
            "say what to allow, with --entry, --client, --tool or --detector: an allow rule without any would silence everything; \
             nothing was added; to be asked about nothing for a while, use `firedoor mode watch`",
        ));
    }
    match matches.detector.as_deref().filter(|name| !firedoor_policy::is_nameable(name)) {
        None => Ok(()),
        Some(detector) => Err(Failure::environment(format!(
            "no detector is called `{}`, so nothing was added: their names begin with {}; `firedoor log` shows the name with each finding",
            Untrusted::new(detector).visible(60),
            firedoor_policy::FAMILIES.join(", "),
        ))),
    }
}

/// All rules of a file, or none: a broken line must not leave half of them in force.
fn rules_in(file: &PathBuf) -> Result<Vec<Rule>, Failure> {
    let text = fs::read_to_string(file).map_err(|e| {
        Failure::environment(format!(
            "{}: cannot be read: {e}; name a file that `firedoor rules export` printed; nothing was added",
            file.display()
        ))
    })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            serde_json::from_str(line).map_err(|e| {
                Failure::environment(format!("{}, line {}: {e}; nothing was added", file.display(), i + 1))
            })
        })
        .collect()
}

/// Pins.
pub fn pins(command: PinsCommand) -> Result<ExitCode, Failure> {
    let mut engine = Engine::running_or_started()?;
    let mut all = |entry| match engine.ask(&Request::Pins { entry })? {
        Reply::Pins { pins } => Ok::<Vec<Pin>, Failure>(pins),
        _ => Err(unexpected()),
    };
    match command {
        PinsCommand::List { entry, json } => {
            let pins = all(entry)?;
            if json {
                output::json(&serde_json::json!({ "pins": pins }))?;
            } else if pins.is_empty() {
                output::line("No pins: a server's definitions are pinned when its client first lists them.");
            } else {
                for pin in &pins {
                    let state = if pin.changed.is_empty() { "pinned".into() } else { changed(pin) };
                    output::line(&format!("{}  {} {}  {state}", shown(pin), pin.kind, pin.name.visible(80)));
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        PinsCommand::Diff { entry, json } => {
            let pins = all(entry.clone())?;
            if let Some(entry) = entry.filter(|_| pins.is_empty()) {
                let entry = Untrusted::new(entry.to_string()).visible(200);
                output::remark(&format!("Nothing of {entry} is pinned: see `firedoor pins list`"));
            }
            let pins: Vec<_> = pins.into_iter().filter(|pin| pin.seen.is_some()).collect();
            if json {
                output::json(&serde_json::json!({ "pins": pins }))?;
            }
            for pin in pins.iter().filter(|_| !json) {
                output::line(&format!("{}  {} {}  {}", shown(pin), pin.kind, pin.name.visible(80), changed(pin)));
                for (sign, text) in [("-", &pin.accepted), ("+", &pin.now)] {
                    let text = text.as_ref().map_or_else(|| "(too long to be kept)".into(), |t| t.visible(16_384));
                    output::line(&format!("{sign} {text}"));
                }
            }
            Ok(if pins.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        PinsCommand::Accept { entry, tool, json } => {
            settled(&mut engine, &Request::AcceptPins { entry, tool: tool.map(Untrusted::new), seen: None }, json)
        }
    }
}

fn shown(pin: &Pin) -> String {
    Untrusted::new(pin.entry.to_string()).visible(200)
}

fn changed(pin: &Pin) -> String {
    if pin.changed.is_empty() {
        "changed and changed back, waits to be accepted".into()
    } else {
        format!("changed, waits to be accepted: {}", pin.changed.join(", "))
    }
}

/// For how long the log is kept.
pub fn keep(days: Option<u32>, json: bool) -> Result<ExitCode, Failure> {
    let Reply::Settings(settings) =
        Engine::running_or_started()?.ask(&Request::Settings { log_days: days, protect_new: None })?
    else {
        return Err(unexpected());
    };
    if json {
        output::json(&settings)?;
    } else {
        let mib = settings.log_bytes.div_ceil(1 << 20);
        output::line(&format!("The log is kept for {} days; it takes {mib} MiB now.", settings.log_days));
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends an entry's servers.
pub fn stop(entry: EntryId, json: bool) -> Result<ExitCode, Failure> {
    settled(&mut Engine::running_or_started()?, &Request::Stop { entry }, json)
}

/// Grants.
pub fn grants(command: GrantsCommand) -> Result<ExitCode, Failure> {
    let mut engine = Engine::running_or_started()?;
    match command {
        GrantsCommand::List { entry, json } => {
            let Reply::Grants { grants } = engine.ask(&Request::Grants { entry })? else { return Err(unexpected()) };
            if json {
                output::json(&serde_json::json!({ "grants": grants }))?;
                return Ok(ExitCode::SUCCESS);
            }
            if grants.is_empty() {
                output::line("Nothing was granted besides what profiles grant: see `firedoor grants add --help`.");
            }
            for of in &grants {
                output::line(&Untrusted::new(of.entry.to_string()).visible(200));
                for grant in &of.grants {
                    let access = match grant.access {
                        Access::List => "list",
                        Access::Read => "ro",
                        Access::Edit | Access::Write => "rw",
                    };
                    output::line(&format!("  {access:<4} {}", grant.path.display()));
                }
                of.hosts.iter().for_each(|host| output::line(&format!("  host {host}")));
                of.sockets.iter().for_each(|path| output::line(&format!("  unix {}", path.display())));
                of.env.iter().for_each(|name| output::line(&format!("  env  {name}")));
            }
            Ok(ExitCode::SUCCESS)
        }
        GrantsCommand::Add(options) => {
            let UserGrants { grants, env, hosts, sockets } = named(options.access)?;
            known(&mut engine, &options.entry, options.projects)?;
            let left_out = granting::looked_at(&grants, &sockets)?;
            let absent: Vec<PathBuf> =
                grants.iter().map(|g| &g.path).chain(&sockets).filter(|p| !p.exists()).cloned().collect();
            let env = env.into_iter().collect();
            let wanted = Request::AddGrants { entry: options.entry, grants, env, hosts, sockets };
            let code = settled(&mut engine, &wanted, options.json)?;
            for path in absent {
                output::remark(&format!(
                    "{} does not exist: the grant takes effect at the server's first start after it does",
                    path.display()
                ));
            }
            left_out.iter().for_each(|text| output::remark(text));
            Ok(code)
        }
        GrantsCommand::Remove(options) => {
            let UserGrants { grants, env, hosts, sockets } = named(options.access)?;
            let (paths, env) = (grants.into_iter().map(|g| g.path).collect(), env.into_iter().collect());
            let taken = Request::RemoveGrants { entry: options.entry, paths, env, hosts, sockets };
            settled(&mut engine, &taken, options.json)
        }
    }
}

/// Refuses an entry that stands in no configuration and that the engine has never had to do with: it is a slip of the pen.
pub fn known(engine: &mut Engine, entry: &EntryId, projects: Vec<PathBuf>) -> Result<(), Failure> {
    match unknown(engine, entry, projects)? {
        None => Ok(()),
        Some(unknown) => Err(Failure::environment(format!(
            "nothing was changed: {unknown}. Name the directory of a project's configuration with --project"
        ))),
    }
}

/// Says that there is no such entry, and which there are.
fn unknown(engine: &mut Engine, entry: &EntryId, projects: Vec<PathBuf>) -> Result<Option<String>, Failure> {
    let clients = Clients::load()?;
    let found = select(clients, &clients.scan(&surroundings(projects)?), &[Selection::Entry(entry.clone())]);
    let Err(unknown) = found else { return Ok(None) };
    if endpoints::all(engine)?.iter().any(|endpoint| endpoint.entry == *entry) {
        return Ok(None);
    }
    // A project's server, asked for from another directory.
    match engine.ask(&Request::Pins { entry: Some(entry.clone()) })? {
        Reply::Pins { pins } => Ok(pins.is_empty().then(|| unknown.to_string())),
        _ => Err(unexpected()),
    }
}

/// The options as grants, at least one.
fn named(options: AccessOptions) -> Result<UserGrants, Failure> {
    if let Some(pair) = options.env.iter().find(|name| name.contains('=')) {
        let name = pair.split('=').next().unwrap_or_default();
        return Err(Failure::environment(format!(
            "--env {name}=…: a variable is granted by its name alone, --env {name}; its value comes from the client"
        )));
    }
    let named = access(options)?;
    if named == UserGrants::default() {
        return Err(Failure::environment(
            "say what: --ro PATH, --rw PATH, --host NAME[:PORT[/udp]], --unix PATH or --env NAME",
        ));
    }
    Ok(named)
}

/// The options as grants. Relative paths are taken from the working directory.
pub fn access(options: AccessOptions) -> Result<UserGrants, Failure> {
    let cwd =
        env::current_dir().map_err(|e| Failure::environment(format!("cannot read the working directory: {e}")))?;
    let grant = |access| {
        let cwd = &cwd;
        move |path: PathBuf| Grant { path: cwd.join(path), access }
    };
    let read = options.read.into_iter().map(grant(Access::Read));
    Ok(UserGrants {
        grants: read.chain(options.write.into_iter().map(grant(Access::Write))).collect(),
        env: options.env.into_iter().collect(),
        hosts: options.hosts,
        sockets: options.sockets.into_iter().map(|path| cwd.join(path)).collect(),
    })
}

/// `NAME=VALUE`, or `NAME` for our own value.
pub fn variables(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let one = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) => Err(Failure::environment("--env: write NAME=VALUE or NAME")),
        None => match env::var(text) {
            Ok(value) => Ok((text.clone(), value)),
            Err(_) => Err(Failure::environment(format!("--env {text}: there is no such variable (or it is no text)"))),
        },
    };
    given.iter().map(one).collect()
}
