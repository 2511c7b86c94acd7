//! `firedoor secrets`.

mod place;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use firedoor_clients::{Clients, secret_of, set_secret};
use firedoor_engine::kept;
use firedoor_model::{EntryId, SecretRef, Untrusted, broker::Route};
use serde::Serialize;

use crate::{
    arguments::secrets::SecretsCommand, changes::authorize, engine::paths, failure::Failure, keychain, output,
    scan::surroundings, typed::typed,
};

/// One secret, without its value.
#[derive(Serialize)]
struct Secret {
    /// Its name, as `set` and `remove` take it.
    secret: String,
    /// The entries whose configuration refers to it.
    used_by: Vec<EntryId>,
    /// Whether the keychain has it; absent when the keychain cannot say.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<bool>,
    /// The service that it is put in for, if the entry of this name does not get it itself; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_to: Option<String>,
}

/// Lists, sets and removes secrets.
pub fn run(command: SecretsCommand) -> Result<ExitCode, Failure> {
    match command {
        SecretsCommand::List { projects, json } => list(projects, json),
        SecretsCommand::Set { secret, everywhere, projects } => set(&secret, everywhere, projects),
        SecretsCommand::KeepInFile { identity } => place::keep_in_file(identity),
        SecretsCommand::KeepInKeychain => place::keep_in_keychain(),
        SecretsCommand::Unlock => place::unlock(),
        SecretsCommand::Lock => place::lock(),
        SecretsCommand::Remove { secret, unused, force, projects } => remove(secret.as_ref(), unused, force, projects),
    }
}

/// Which entries refer to which secret.
pub fn in_use(projects: Vec<PathBuf>) -> Result<BTreeMap<SecretRef, Vec<EntryId>>, Failure> {
    let scan = Clients::load()?.scan(&surroundings(projects)?);
    Ok(kept::in_use(&scan, &paths()?.database())?)
}

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(400)
}

fn list(projects: Vec<PathBuf>, json: bool) -> Result<ExitCode, Failure> {
    let used = in_use(projects)?;
    let found = kept::kept(&*keychain::keychain()?);
    let (kept, problem) = match found {
        Ok(kept) => (Some(kept), None),
        Err(e) => (None, Some(e.to_string())),
    };
    let routes = kept::routes(&paths()?.database())?;
    let view = |kept::Secret { reference, used_by, kept, route }| Secret {
        secret: reference.item(),
        used_by,
        kept,
        only_to: route.map(|Route { url, .. }| url),
    };
    let secrets: Vec<Secret> = kept::all(&used, kept.as_ref(), &routes).into_iter().map(view).collect();
    let missing = secrets.iter().any(|s| s.kept == Some(false));
    if json {
        output::json(&serde_json::json!({ "secrets": secrets, "problem": problem }))?;
    } else {
        let called = keychain::called();
        for secret in &secrets {
            let place = match secret.kept {
                Some(true) => format!("in {called}"),
                Some(false) => format!("MISSING in {called}"),
                None => "not known".into(),
            };
            let users: Vec<String> = secret.used_by.iter().map(|id| visible(&id.to_string())).collect();
            let users =
                if users.is_empty() { "used by no entry".into() } else { format!("used by {}", users.join(", ")) };
            let only = secret.only_to.as_ref().map(|url| format!(", in broker mode for {}", visible(url)));
            output::line(&format!("{}: {place}, {users}{}", visible(&secret.secret), only.unwrap_or_default()));
        }
        if secrets.is_empty() {
            output::line(&format!("No entry has secrets in {called}."));
        }
        problem.iter().for_each(|problem| output::line(problem));
    }
    Ok(if missing || problem.is_some() && !secrets.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn set(secret: &SecretRef, everywhere: bool, projects: Vec<PathBuf>) -> Result<ExitCode, Failure> {
    authorize("changing secrets")?;
    let used = in_use(projects)?;
    let keychain = keychain::keychain()?;
    let kept = kept::kept(&*keychain)?;
    let name = visible(&secret.item());
    if !used.contains_key(secret) && !kept.contains(secret) {
        return Err(Failure::environment(format!("no entry refers to {name}: see `firedoor secrets list`")));
    }
    let same: Vec<&SecretRef> = if kept.contains(secret) {
        let old = secret_of(&*keychain, secret)?;
        kept.iter().filter(|other| *other != secret && secret_of(&*keychain, other).is_ok_and(|v| v == old)).collect()
    } else {
        Vec::new()
    };
    let value = typed("The new value, then Enter:")?;
    set_secret(&*keychain, secret, &value)?;
    output::line(&format!("{name} is set. Servers get it when they are started the next time."));
    for other in same {
        let shown = visible(&other.item());
        if everywhere {
            set_secret(&*keychain, other, &value)?;
            output::line(&format!("{shown} had the same value and is set, too."));
        } else {
            output::line(&format!("{shown} still has the old value: --everywhere would set it, too."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(secret: Option<&SecretRef>, unused: bool, force: bool, projects: Vec<PathBuf>) -> Result<ExitCode, Failure> {
    authorize("removing secrets")?;
    let used = in_use(projects)?;
    let keychain = keychain::keychain()?;
    let chosen: Vec<SecretRef> = match secret {
        Some(secret) => vec![secret.clone()],
        None if unused => kept::kept(&*keychain)?.into_iter().filter(|s| !used.contains_key(s)).collect(),
        None => Vec::new(),
    };
    let mut code = ExitCode::SUCCESS;
    for secret in &chosen {
        let name = visible(&secret.item());
        if let Some(users) = used.get(secret).filter(|_| !force) {
            let users: Vec<String> = users.iter().map(|id| visible(&id.to_string())).collect();
            return Err(Failure::refused(format!(
                "{name} is used by {}: restore that first, or give --force to leave it without its secret",
                users.join(", ")
            )));
        }
        if keychain.remove(&secret.item())? {
            output::line(&format!("{name} is removed."));
        } else {
            output::line(&format!("{name} is not in {}.", keychain::called()));
            code = ExitCode::from(1);
        }
    }
    if chosen.is_empty() {
        output::line(&format!("Every secret in {} is used.", keychain::called()));
    }
    Ok(code)
}
