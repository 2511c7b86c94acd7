//! `firedoor broker`: secrets that servers do not get.

use std::process::ExitCode;

use firedoor_clients::Clients;
use firedoor_ipc::command::{Reply, Request};
use firedoor_launch::{known_route, route};
use firedoor_model::{EntryId, Untrusted, broker::Route};

use crate::{
    arguments::secrets::{BrokerCommand, BrokerOptions},
    engine::{Engine, unexpected},
    failure::Failure,
    output,
    scan::surroundings,
    secrets::in_use,
};

/// The header that most services take a credential in.
const HEADER: &str = "authorization";

/// Lists, adds and removes secrets in broker mode.
pub fn run(command: BrokerCommand) -> Result<ExitCode, Failure> {
    match command {
        BrokerCommand::List { json } => list(json),
        BrokerCommand::Add(options) => add(options),
        BrokerCommand::Remove { entry, secret } => done(&Request::RemoveRoute { entry, secret }),
    }
}

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(400)
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let Reply::Routes { routes } = Engine::running_or_started()?.ask(&Request::Routes)? else {
        return Err(unexpected());
    };
    if json {
        let view = |(entry, route): &(EntryId, Route)| {
            serde_json::json!({
                "entry": entry, "secret": route.secret, "variable": route.variable, "url": route.url,
                "header": route.header, "intercept": route.intercept,
            })
        };
        let all: Vec<_> = routes.iter().map(view).collect();
        output::json(&serde_json::json!({ "broker": all }))?;
    } else if routes.is_empty() {
        output::line("No secret is in broker mode: see `firedoor broker add --help`.");
    }
    for (entry, Route { secret, variable, url, header, intercept }) in routes.iter().filter(|_| !json) {
        let entry = visible(&entry.to_string());
        let how = match intercept {
            true => "the server's own connections are intercepted".to_owned(),
            false => format!("the server reads {}", visible(variable)),
        };
        output::line(&format!(
            "{entry}  {}: sent to {} in the header {}; {how}",
            visible(secret),
            visible(url),
            visible(header),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn add(options: BrokerOptions) -> Result<ExitCode, Failure> {
    let BrokerOptions { entry, secret, variable, intercept, url, header, projects } = options;
    let shown = visible(&entry.to_string());
    let own: Vec<String> = in_use(projects.clone())?
        .into_iter()
        .filter(|(reference, users)| *reference.entry() == entry && users.contains(&entry))
        .map(|(reference, _)| reference.name().to_owned())
        .collect();
    if own.is_empty() {
        return Err(Failure::environment(format!(
            "{shown} has no secret that Firedoor keeps: protect it where there is a keychain, and see `firedoor secrets list`"
        )));
    }
    let names = own.iter().map(|name| visible(name)).collect::<Vec<_>>().join(", ");
    if let Some(secret) = secret.as_ref().filter(|secret| !own.contains(secret)) {
        return Err(Failure::environment(format!(
            "{shown} has no secret {} that Firedoor keeps; it has {names}",
            visible(secret)
        )));
    }
    let env = surroundings(projects)?;
    if Clients::load()?.configured(&env, &entry).is_some_and(|configured| configured.is_remote()) {
        return Err(Failure::environment(format!(
            "{shown} has an address itself: what speaks to its server is Firedoor's own, and gets its secrets only there"
        )));
    }
    let wanted: Vec<String> = secret.map_or(own, |one| vec![one]);
    let one = |secret: &String| {
        let known = known_route(secret);
        let Some(known) = known.or_else(|| url.is_some().then(|| unknown(secret))) else { return Ok(None) };
        let said = Route {
            secret: secret.clone(),
            variable: variable.clone().unwrap_or(if intercept { String::new() } else { known.variable }),
            url: url.clone().unwrap_or(known.url),
            header: header.clone().unwrap_or(known.header),
            intercept,
        };
        route(said).map(Some).map_err(|e| Failure::environment(e.to_string()))
    };
    let routes: Vec<Route> = wanted.iter().filter_map(|secret| one(secret).transpose()).collect::<Result<_, _>>()?;
    if routes.is_empty() {
        return Err(Failure::environment(format!(
            "it is not known where the secrets of {shown} belong ({names}): name one, and its service with --variable and --url, \
             or with --intercept and --url where the server reads its address from no variable"
        )));
    }
    for route in routes {
        done(&Request::AddRoute { entry: entry.clone(), route })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known of a secret whose name says nothing.
fn unknown(secret: &str) -> Route {
    let (secret, header) = (secret.to_owned(), HEADER.to_owned());
    Route { secret, variable: String::new(), url: String::new(), header, intercept: false }
}

fn done(request: &Request) -> Result<ExitCode, Failure> {
    match Engine::running_or_started()?.ask(request)? {
        Reply::Done { text } => output::line(&Untrusted::new(text).visible(2000)),
        _ => return Err(unexpected()),
    }
    Ok(ExitCode::SUCCESS)
}
