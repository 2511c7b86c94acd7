//! `firedoor endpoints`: addresses on this machine for clients that start no programs.

use std::{env, process::ExitCode};

use firedoor_clients::{looks_like_secret, set_secret};
use firedoor_ipc::command::{EndpointView, Reply, Request};
use firedoor_model::{
    EntryId, SecretRef, Untrusted,
    endpoint::{OWN_CLIENT, OWN_SCOPE, Served, Target},
};

use crate::{
    arguments::endpoints::{EndpointOptions, EndpointsCommand},
    changes::authorize,
    engine::{Engine, unexpected},
    failure::Failure,
    keychain, output,
    questions::settled,
    typed::typed,
};

/// Lists, adds and removes endpoints.
pub fn run(command: EndpointsCommand) -> Result<ExitCode, Failure> {
    match command {
        EndpointsCommand::List { json } => list(json),
        EndpointsCommand::Add(options) => add(options),
        EndpointsCommand::Remove { name, json } => remove(&name, json),
    }
}

/// Every endpoint that the engine has.
pub fn all(engine: &mut Engine) -> Result<Vec<EndpointView>, Failure> {
    match engine.ask(&Request::Endpoints)? {
        Reply::Endpoints { endpoints } => Ok(endpoints),
        _ => Err(unexpected()),
    }
}

/// Makes an endpoint, and says where it is once it listens there.
pub fn made(engine: &mut Engine, entry: EntryId, target: Target) -> Result<EndpointView, Failure> {
    match engine.ask(&Request::AddEndpoint { entry, target })? {
        Reply::Endpoints { endpoints } => endpoints.into_iter().next().ok_or_else(unexpected),
        _ => Err(unexpected()),
    }
}

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(400)
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let endpoints = all(&mut Engine::running_or_started()?)?;
    if json {
        output::json(&serde_json::json!({ "endpoints": endpoints }))?;
    } else if endpoints.is_empty() {
        output::line("No endpoints: see `firedoor endpoints add --help`.");
    } else {
        endpoints.iter().for_each(show);
    }
    let all_listen = endpoints.iter().all(|endpoint| endpoint.listens);
    Ok(if all_listen { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn show(endpoint: &EndpointView) {
    let address = endpoint.address.as_deref().unwrap_or("no address yet");
    let state = match (&endpoint.problem, endpoint.listens) {
        (Some(problem), _) => format!("  NOT REACHED: {}", visible(problem)),
        (None, true) => String::new(),
        (None, false) => "  not reached yet".into(),
    };
    output::line(&format!("{}  {address}{state}", visible(&endpoint.entry.to_string())));
    output::line(&format!("  {}", endpoint.server.visible(400)));
}

/// The entry that a name means: of an endpoint that stands in no client's configuration, or any entry's id.
fn entry(name: &str) -> Result<EntryId, Failure> {
    match name.contains('/') {
        true => name.parse(),
        false => EntryId::new(OWN_CLIENT, OWN_SCOPE, name),
    }
    .map_err(|e| Failure::environment(format!("{}: {e}", visible(name))))
}

fn add(options: EndpointOptions) -> Result<ExitCode, Failure> {
    if options.name.is_empty() || options.name.contains('/') {
        return Err(Failure::environment("an endpoint's name has no \"/\" in it, and is not empty"));
    }
    let entry = entry(&options.name)?;
    let mut engine = Engine::running_or_started()?;
    // Clients keep the address, and would find another server behind it.
    if !options.replace
        && let Some(there) = all(&mut engine)?.into_iter().find(|endpoint| endpoint.entry == entry)
    {
        let (name, server) = (visible(&options.name), there.server.visible(400));
        return Err(Failure::refused(format!(
            "there is an endpoint {name} already ({server}), and nothing was changed: take another name, or give --replace to put \
             another server behind its address"
        )));
    }
    let cwd =
        env::current_dir().map_err(|e| Failure::environment(format!("cannot read the working directory: {e}")))?;
    let server = match (options.url, options.command.split_first()) {
        (Some(url), None) => {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(Failure::environment("the server's address must begin with https:// or http://"));
            }
            let headers = pairs(&entry, &options.headers)?;
            Served::Remote { url, transport: options.transport, headers, pass: false }
        }
        (None, Some((program, args))) => {
            let program = program.clone();
            Served::Program { program, args: args.to_vec(), env: pairs(&entry, &options.env)? }
        }
        _ => return Err(Failure::environment("say either --url URL, or -- and the server's command")),
    };
    let clear = match &server {
        Served::Remote { url, .. } => looks_like_secret(None, url),
        Served::Program { args, .. } => args.iter().any(|arg| looks_like_secret(None, arg)),
    };
    if clear {
        output::remark("The server's address or arguments look like a secret: every program of yours can read them.");
    }
    let endpoint = made(&mut engine, entry, Target { server, cwd })?;
    let listens = endpoint.address.is_some() && endpoint.listens;
    if options.json {
        output::json(&serde_json::json!({ "endpoints": [endpoint] }))?;
    } else {
        show(&endpoint);
        if listens {
            output::line("Put this address into the client, as that of a server with Streamable HTTP.");
        }
    }
    Ok(if listens { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Names and values. A value that is not given is asked for and goes into the keychain; a reference stands for it.
fn pairs(entry: &EntryId, given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    if given.iter().any(|text| !text.contains('=')) {
        authorize(&format!("setting secrets of {}", visible(&entry.to_string())))?;
    }
    let pair = |text: &String| {
        if let Some((name, value)) = text.split_once('=') {
            if looks_like_secret(Some(name), value) {
                return Err(Failure::environment(format!(
                    "{name} looks like a secret: leave its value out, and it is asked for and kept in the keychain"
                )));
            }
            return Ok((name.to_owned(), value.to_owned()));
        }
        let reference = SecretRef::new(entry.clone(), text).map_err(|e| Failure::environment(e.to_string()))?;
        output::remark(&format!("{}:", visible(text)));
        set_secret(&*keychain()?, &reference, &typed("The value, then Enter:")?)?;
        Ok((text.clone(), reference.to_string()))
    };
    given.iter().map(pair).collect()
}

fn remove(name: &str, json: bool) -> Result<ExitCode, Failure> {
    let entry = entry(name)?;
    settled(&mut Engine::running_or_started()?, &Request::RemoveEndpoint { entry }, json)
}
