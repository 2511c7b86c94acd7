//! `firedoor protect` and `firedoor restore`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use firedoor_clients::{
    Clients, Env, FilePlan, FileResult, Plan, SecretLeft, Selection, Skipped, State, select,
    verify::{Outcome, Verified},
};
use firedoor_model::{EntryId, SecretRef, Untrusted};
use firedoor_store::{Store, StoreError};
use serde::Serialize;

use crate::{
    arguments::configurations::{ProtectOptions, RestoreOptions},
    clock,
    engine::paths,
    failure::Failure,
    keychain, output,
    scan::surroundings,
};

mod checking;
mod running;

use running::HeldBack;
pub use running::{authorize, share};

/// What was done, for `--json`.
#[derive(Serialize)]
struct Report<'a> {
    files: Vec<FileReport>,
    skipped: Vec<Left>,
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a [Outcome]>,
    /// Entries of whose tools agents do not get all.
    #[serde(skip_serializing_if = "<[HeldBack]>::is_empty")]
    held_back: &'a [HeldBack],
    /// Where servers that were given back have left what they wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stays: Vec<Stays>,
}

#[derive(Serialize)]
struct Stays {
    entry: EntryId,
    directory: String,
}

#[derive(Serialize)]
struct FileReport {
    path: String,
    entries: Vec<EntryId>,
    ok: bool,
    /// Whether the file is byte for byte what it was before Firedoor.
    original: bool,
    /// Secrets that moved into the keychain; of a restore, those that came back.
    secrets: Vec<SecretRef>,
    /// Secrets that stayed where they were; of a restore, those that are missing.
    secrets_left: Vec<SecretLeft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Left {
    entry: EntryId,
    reason: String,
}

#[derive(Serialize)]
struct Problem {
    path: String,
    message: String,
}

fn selected(all: bool, names: &[String]) -> Result<Vec<Selection>, Failure> {
    Ok(if all { vec![Selection::All] } else { names.iter().map(|n| n.parse()).collect::<Result<_, _>>()? })
}

/// Chosen entries that are not protected: what was named is to be, and of `--all` what can be.
fn unprotected<'s>(
    clients: &Clients,
    env: &Env<'_>,
    options: &ProtectOptions,
    mut skipped: impl Iterator<Item = &'s Skipped>,
) -> bool {
    if options.all {
        return false;
    }
    let entries = clients.scan(env).clients.into_iter().flat_map(|c| c.files).flat_map(|f| f.entries);
    let protected: BTreeSet<EntryId> = entries.filter(|e| e.state == State::Protected).map(|e| e.id).collect();
    skipped.any(|left| !protected.contains(&left.id))
}

/// What there is to give back, wherever it stands.
fn all_of_ours(clients: &Clients, env: &Env<'_>) -> BTreeSet<EntryId> {
    let scan = clients.scan(env);
    let entries = scan.clients.into_iter().flat_map(|c| c.files).flat_map(|f| f.entries);
    entries.filter(|e| e.state.can_restore() || !e.secrets.is_empty()).map(|e| e.id).collect()
}

/// Reroutes servers, then starts each one as its client would and compares its tools.
pub fn protect(options: &ProtectOptions) -> Result<ExitCode, Failure> {
    let env = surroundings(options.projects.clone())?;
    let clients = Clients::load()?;
    let selections = selected(options.all, &options.entries)?;
    let chosen = select(clients, &clients.scan(&env), &selections)?;
    let addresses = match options.endpoint {
        true => running::addresses(clients, &env, &chosen, options.dry_run)?,
        false => BTreeMap::new(),
    };
    let mut plan = clients.plan_protect_at(&env, &chosen, &running::shim()?, addresses.clone())?;
    // Whoever names an entry has nothing to do with what another client's file is like.
    plan.problems.retain(|p| selections.iter().any(|s| s.client().is_none_or(|client| client == p.client)));
    if options.dry_run {
        if options.json {
            output::json(&plan)?;
        } else {
            for file in &plan.files {
                output::line(&file.diff);
                left_in_clear(file);
                file.hindrance.iter().for_each(|why| output::line(&format!("It would fail: {why}")));
            }
            remarks(&plan);
        }
        let fails = plan.files.iter().any(|file| file.hindrance.is_some())
            || !plan.problems.is_empty()
            || unprotected(clients, &env, options, plan.skipped.iter());
        return Ok(if fails { ExitCode::from(1) } else { ExitCode::SUCCESS });
    }
    if !options.yes && !plan.files.is_empty() {
        for file in &plan.files {
            output::remark(&file.diff);
            left_in_clear(file);
        }
        match output::confirm("Write these changes?") {
            Some(true) => {}
            Some(false) => return Err(Failure::refused("no configuration was changed")),
            None => {
                return Err(Failure::environment(
                    "nothing was changed: there is no terminal to ask on; give --yes, or --dry-run to look",
                ));
            }
        }
    }
    // Before the first write: from then on something has to be given back.
    let interrupt = if options.no_verify { None } else { Some(checking::interruptible()?) };
    let results = clients.apply(&env, &plan);
    let changed: Vec<EntryId> =
        results.iter().filter_map(|r| r.result.as_ref().ok()).flat_map(|a| a.changed.clone()).collect();
    let moved = results.iter().filter_map(|r| r.result.as_ref().ok()).any(|applied| !applied.secrets.is_empty());
    let outcomes: Vec<Outcome> = match interrupt {
        None => Vec::new(),
        Some(interrupt) => {
            // Without it the engine starts none of them, and each check gives its entry back.
            if moved && let Err(e) = running::share() {
                output::remark(&format!("The engine cannot open the file of secrets: {}", e.text));
            }
            checking::checked(clients, &env, options, &changed, &interrupt)
        }
    };
    let given_back: Vec<EntryId> = outcomes
        .iter()
        .filter(|outcome| addresses.contains_key(&outcome.entry))
        .filter(|outcome| matches!(outcome.verified, Verified::RolledBack { .. }))
        .map(|outcome| outcome.entry.clone())
        .collect();
    if !given_back.is_empty()
        && let Err(e) = running::stop_listening(&given_back)
    {
        output::remark(&format!("Firedoor still listens for what was given back: {}", e.text));
    }
    let held_back = running::held_back(&outcomes);
    report(&plan, &results, Some((&outcomes, &held_back)), options.json)?;
    let meanwhile = results.iter().filter_map(|r| r.result.as_ref().ok()).flat_map(|applied| &applied.skipped);
    let skipped = plan.skipped.iter().chain(meanwhile);
    let ok = results.iter().all(|r| r.result.is_ok())
        && plan.problems.is_empty()
        && outcomes.iter().all(|o| !o.rolled_back())
        && !unprotected(clients, &env, options, skipped);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Takes endpoints out of the database, which no engine has open.
fn forget_endpoints(entries: &[EntryId]) -> Result<(), Failure> {
    let database = paths()?.database();
    let known = match Store::open_read_only(&database).and_then(|store| store.endpoints()) {
        Ok(known) => known,
        Err(StoreError::Missing { .. } | StoreError::Older { .. }) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let gone: Vec<EntryId> = known.into_iter().map(|e| e.entry).filter(|entry| entries.contains(entry)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let mut store = Store::open(&database, clock::now())?.store;
    gone.iter().try_for_each(|entry| store.remove_endpoint(entry).map(drop))?;
    Ok(())
}

/// Gives entries back.
pub fn restore(options: &RestoreOptions) -> Result<ExitCode, Failure> {
    let env = surroundings(options.projects.clone())?;
    let clients = Clients::load()?;
    let chosen = match options.all {
        true => all_of_ours(clients, &env),
        false => select(clients, &clients.scan(&env), &selected(false, &options.entries)?)?,
    };
    let plan = clients.plan_restore(&env, &chosen);
    // Nobody is asked about nothing, and nothing is written down as given back that was not.
    if !plan.files.is_empty() {
        authorize(&restoring(&plan))?;
    }
    let results = clients.apply(&env, &plan);
    let back: Vec<EntryId> =
        results.iter().filter_map(|r| r.result.as_ref().ok()).flat_map(|a| a.changed.clone()).collect();
    // Before anything is printed, which may end this process.
    if let Err(e) = running::stop_listening(&back) {
        output::remark(&format!("Firedoor still listens for what was given back: {}", e.text));
    }
    report(&plan, &results, None, options.json)?;
    let whole = |r: &FileResult| r.result.as_ref().is_ok_and(|a| a.secrets_left.is_empty());
    let ok = results.iter().all(whole) && plan.problems.is_empty();
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What a person is asked to confirm on the desktop.
fn restoring(plan: &Plan) -> String {
    // The engine takes 200 characters.
    const NAMED: usize = 2;
    let entries: Vec<&EntryId> = plan.files.iter().flat_map(|file| &file.entries).collect();
    let names: Vec<String> = entries.iter().take(NAMED).map(|id| Untrusted::new(id.to_string()).visible(60)).collect();
    let more = entries.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("restoring configurations: {}{more}", names.join(", "))
}

/// Private homes in which servers that were given back have written.
fn left_behind(files: &[FileReport]) -> Vec<Stays> {
    let Ok(paths) = crate::engine::paths() else { return Vec::new() };
    let home = |entry: &EntryId| {
        let directory = firedoor_launch::home_with_files(&paths, entry)?.display().to_string();
        Some(Stays { entry: entry.clone(), directory })
    };
    files.iter().flat_map(|file| &file.entries).filter_map(home).collect()
}

fn report(
    plan: &Plan,
    results: &[FileResult],
    checked: Option<(&[Outcome], &[HeldBack])>,
    json: bool,
) -> Result<(), Failure> {
    let (verified, held_back) = (checked.map(|(verified, _)| verified), checked.map_or(&[][..], |(_, held)| held));
    let files: Vec<_> = results
        .iter()
        .map(|r| FileReport {
            path: r.path.display().to_string(),
            entries: r.result.as_ref().map(|a| a.changed.clone()).unwrap_or_default(),
            ok: r.result.is_ok(),
            original: r.result.as_ref().is_ok_and(|a| a.original),
            secrets: r.result.as_ref().map(|a| a.secrets.clone()).unwrap_or_default(),
            secrets_left: r.result.as_ref().map(|a| a.secrets_left.clone()).unwrap_or_default(),
            error: r.result.as_ref().err().map(ToString::to_string),
        })
        .collect();
    let stays = if checked.is_none() { left_behind(&files) } else { Vec::new() };
    if json {
        let skipped = plan.skipped.iter().map(|s| Left { entry: s.id.clone(), reason: s.reason.clone() }).collect();
        let message = |p: &firedoor_clients::FileProblem| Problem {
            path: p.path.display().to_string(),
            message: p.problem.message.clone(),
        };
        let problems = plan.problems.iter().map(message).collect();
        return output::json(&Report { files, skipped, problems, verified, held_back, stays });
    }
    for file in &files {
        match &file.error {
            Some(error) => output::line(&format!("{}: {error}", file.path)),
            None => {
                let original = if file.original { ", byte for byte as it was before Firedoor" } else { "" };
                let changed = output::counted(file.entries.len(), "entry", "entries");
                output::line(&format!("{}: {changed} changed{original}", file.path));
                secrets(&file.secrets, &file.secrets_left, verified.is_some());
            }
        }
    }
    // Where both go to one terminal they were shown as they came.
    if !checking::seen_as_it_comes() {
        verified.into_iter().flatten().for_each(|outcome| output::line(&format!("  {outcome}")));
    }
    held_back.iter().for_each(|held| output::line(&format!("  {held}")));
    for Stays { entry, directory } in &stays {
        output::line(&format!(
            "  {entry}: what it wrote while it was protected stays in its private home, {directory}; it does not look there any more"
        ));
    }
    remarks(plan);
    if files.is_empty() && plan.problems.is_empty() {
        output::line("Nothing to change.");
    }
    Ok(())
}

/// Says, before anything is done, which secrets would stay.
fn left_in_clear(file: &FilePlan) {
    for SecretLeft { entry, name, reason } in &file.secrets_left {
        let entry = Untrusted::new(entry.to_string()).visible(200);
        output::remark(&format!("{entry}: the secret {name} would stay in clear: {reason}"));
    }
}

/// What became of secrets, by name.
fn secrets(moved: &[SecretRef], left: &[SecretLeft], protecting: bool) {
    let shown = |text: &str| Untrusted::new(text).visible(200);
    for secret in moved {
        let what = format!("{} {}", if protecting { "moved into" } else { "put back from" }, keychain::called());
        output::line(&format!("  {}: secret {what}", shown(&secret.item())));
    }
    for SecretLeft { entry, name, reason } in left {
        let what = if protecting { "secret left in clear" } else { "secret NOT put back" };
        output::line(&format!("  {}/{}: {what}: {reason}", shown(&entry.to_string()), shown(name)));
    }
}

fn remarks(plan: &Plan) {
    for left in &plan.skipped {
        output::line(&format!("{}: {}", Untrusted::new(left.id.to_string()).visible(200), left.reason));
    }
    for problem in &plan.problems {
        output::line(&problem.problem.message);
    }
}
