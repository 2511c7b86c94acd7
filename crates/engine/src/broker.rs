//! Broker mode: secrets that a server does not get, because another program puts them in on the way to their service.

mod notices;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::Path,
    rc::Rc,
};

use data_encoding::BASE32_NOPAD;
use firedoor_launch::{Context, UserGrants, is_about_the_network, means};
use firedoor_model::{
    EntryId, Untrusted,
    broker::{self, Brokered, Interception, MIN_SECRET, PLACEHOLDER, Route, Start},
    launch::{LaunchRequest, Network, Step},
    network::{Host, HostGrant},
    paths::sibling,
    quoted,
    remote::RemoteRequest,
};

pub use notices::record;

use crate::engine::Engine;

/// Bytes of randomness in a placeholder, and in a listener's path.
const RANDOM: usize = broker::RANDOM * 5 / 8;

/// Why a server is not started in broker mode, and then not at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// The secret is not there to be put in.
    #[error(
        "the server was not started, because its secret {secret:?} is in broker mode and does not stand in its entry as a \
         reference to the keychain: run `firedoor protect {client}`, or `firedoor broker remove {entry} {secret}`"
    )]
    NoSecret {
        /// Its name.
        secret: String,
        /// The entry's client.
        client: String,
        /// The entry.
        entry: String,
    },
    /// It could not be recognised, or not be sent.
    #[error("the server was not started, because its secret {secret:?} cannot be in broker mode: {why}")]
    Unfit {
        /// Its name.
        secret: String,
        /// Why.
        why: &'static str,
    },
    /// The server would get it in another way.
    #[error(
        "the server was not started, because its secret {secret:?} is in broker mode and {place} holds it as well: take it \
         out there"
    )]
    Elsewhere {
        /// Its name.
        secret: String,
        /// Where.
        place: String,
    },
    /// The entry says another address for its service than the user.
    #[error(
        "the server was not started, because {variable} says another address than broker mode has for {secret:?}: run \
         `firedoor broker add` with the right --url, or take the variable out"
    )]
    OtherAddress {
        /// The variable.
        variable: String,
        /// The secret's name.
        secret: String,
    },
    /// It has an address itself.
    #[error("broker mode is for servers that are started as programs: run `firedoor broker remove {entry} {secret}`")]
    Remote {
        /// The entry.
        entry: String,
        /// A secret's name.
        secret: String,
    },
    /// Inside of Firedoor.
    #[error("the server was not started, because its broker mode is not possible: {0}")]
    Failed(String),
}

/// An entry's secrets in broker mode.
pub async fn routes(engine: &Engine, entry: &EntryId) -> Result<Vec<Route>, BrokerError> {
    let of = entry.clone();
    engine.recorder.at_once(move |store| store.routes(&of)).await.map_err(|e| BrokerError::Failed(e.to_string()))
}

/// The secrets of one launch that its server does not get.
#[derive(Default)]
pub struct Withheld<'r> {
    routes: &'r [Route],
    found: BTreeMap<String, Brokered>,
}

impl<'r> Withheld<'r> {
    /// None yet, of these.
    pub fn of(routes: &'r [Route]) -> Self {
        Self { routes, found: BTreeMap::new() }
    }

    /// What the server gets for a secret of this name: itself, or what stands for it.
    pub fn instead(&mut self, name: &str, secret: String) -> Result<String, BrokerError> {
        let Some(route) = self.routes.iter().find(|route| route.secret == name) else { return Ok(secret) };
        if let Some(known) = self.found.get(name) {
            return Ok(known.placeholder.clone());
        }
        let unfit = |why| BrokerError::Unfit { secret: name.to_owned(), why };
        if secret.len() < MIN_SECRET {
            return Err(unfit("it is shorter than 8 bytes, and could not be told from chance in an answer"));
        }
        if secret.bytes().any(|b| b.is_ascii_control()) {
            return Err(unfit("it has a line break or the like, which no header may have"));
        }
        let (placeholder, key) = (format!("{PLACEHOLDER}{}", random()?), random()?);
        let found = Brokered { route: route.clone(), key, placeholder: placeholder.clone(), secret };
        self.found.insert(name.to_owned(), found);
        Ok(placeholder)
    }

    /// All of them, once every one has been met.
    pub fn all(self, entry: &EntryId) -> Result<Vec<Brokered>, BrokerError> {
        match self.routes.iter().find(|route| !self.found.contains_key(&route.secret)) {
            Some(missing) => Err(BrokerError::NoSecret {
                secret: missing.secret.clone(),
                client: quoted(entry.client()),
                entry: entry.quoted(),
            }),
            None => Ok(self.found.into_values().collect()),
        }
    }
}

fn random() -> Result<String, BrokerError> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes).map_err(|e| BrokerError::Failed(format!("the system gives no random numbers: {e}")))?;
    Ok(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Changes how a server is started so that it does not get these secrets, nor reaches their services itself.
pub fn withhold(step: &mut Step, brokered: &[Brokered], notes: &mut Vec<String>) -> Result<(), BrokerError> {
    for Brokered { route, secret, .. } in brokered {
        let holds = |value: &OsString| memchr::memmem::find(value.as_encoded_bytes(), secret.as_bytes()).is_some();
        let variable =
            step.env.iter().find(|(_, value)| holds(value)).map(|(name, _)| name.to_string_lossy().into_owned());
        let argument = step.args.iter().any(holds).then(|| "an argument".to_owned());
        if let Some(place) = variable.map(|name| format!("the variable {name}")).or(argument) {
            return Err(BrokerError::Elsewhere { secret: route.secret.clone(), place });
        }
        let said = step.told(&route.variable).and_then(|value| value.to_str());
        if !route.intercept && said.is_some_and(|value| !means(value, route)) {
            let (variable, secret) = (route.variable.clone(), route.secret.clone());
            return Err(BrokerError::OtherAddress { variable, secret });
        }
    }
    // What goes to a proxy would not reach the listener.
    if step.env.iter().any(|(name, _)| name.to_str().is_some_and(is_about_the_network)) {
        let mut direct = BTreeSet::new();
        for Brokered { route, .. } in brokered {
            direct.insert(match firedoor_launch::host_of(&route.url) {
                Some(Host::Name(name)) if route.intercept => name,
                _ => "127.0.0.1".into(),
            });
        }
        let direct = direct.into_iter().collect::<Vec<_>>().join(",");
        // Programs read one of the two, so both say what either did.
        let values = [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")].map(|(name, other)| {
            let mut value = step.told(name).or_else(|| step.told(other)).cloned().unwrap_or_default();
            value.push(if value.is_empty() { "" } else { "," });
            value.push(&direct);
            (OsString::from(name), value)
        });
        step.env.retain(|(known, _)| values.iter().all(|(name, _)| known != name));
        step.env.extend(values);
    }
    let Network::Hosts(hosts) = &mut step.confinement.network else {
        return Err(BrokerError::Failed("connections are not judged one by one".into()));
    };
    for Brokered { route, .. } in brokered {
        let Some(own) = firedoor_launch::host_of(&route.url) else { continue };
        // By another name, or through `*`, it gets there without its credential.
        hosts.allowed.retain(|host| host.host != own);
        if let Host::Name(_) = &own {
            hosts.refuse.push(HostGrant { host: own, port: None });
        }
        notes.push(format!(
            "broker mode: the server does not get {:?}, which Firedoor sends to {} only",
            Untrusted::new(route.secret.as_str()).visible(80),
            route.url
        ));
    }
    Ok(())
}

/// What the shim does for the connections of this server that are intercepted, if any are. What its variables say already of
/// certificates stays.
pub fn interception(
    engine: &Engine,
    entry: &EntryId,
    step: &Step,
    brokered: &[Brokered],
    notes: &mut Vec<String>,
) -> Option<Interception> {
    let interception = firedoor_launch::interception(&engine.paths, entry, brokered)?;
    let hosts: Vec<&str> = interception.led.iter().map(|led| led.name.as_str()).collect();
    notes.push(format!("broker mode: encrypted connections to {} end at Firedoor", hosts.join(", ")));
    let names = interception.variables.iter().map(|(name, _)| name.as_str());
    let own: Vec<&str> = names.filter(|name| step.told(name).is_some()).collect();
    if !own.is_empty() {
        notes.push(format!(
            "broker mode: connections to {} may fail, because {} says already whose certificates the server trusts; take it out \
             of the entry, or of its client's environment",
            hosts.join(", "),
            own.join(", ")
        ));
    }
    Some(interception)
}

/// What the shim starts before the server. `way` has the environment that counts for connections.
pub async fn start(
    engine: &Rc<Engine>,
    way: RemoteRequest,
    brokered: Vec<Brokered>,
    interception: Option<Interception>,
    user: UserGrants,
) -> Result<Box<Start>, BrokerError> {
    let program =
        sibling("firedoor-remote").map_err(|e| BrokerError::Failed(format!("cannot find Firedoor itself: {e}")))?;
    let (paths, profiles, now) = (engine.paths.clone(), engine.profiles.clone(), engine.now());
    let work = move || {
        // Names that stand for addresses of the user's own network need those granted, as everywhere.
        let user = UserGrants { hosts: user.hosts, ..UserGrants::default() };
        let context = Context { identify: false, ..Context::new(&paths, &profiles, &user, now) };
        let routes: Vec<Route> = brokered.iter().map(|one| one.route.clone()).collect();
        let step = firedoor_launch::broker(&way, &routes, &context, &program);
        step.map(|step| Box::new(Start { step, brokered, interception }))
            .map_err(|e| BrokerError::Failed(e.to_string()))
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| BrokerError::Failed(e.to_string()))?
}

/// The environment that counts for what puts a program's secrets in, with the authorities that the user trusts for that besides the
/// system's. What the client's environment says of these does not count: it may come from an entry that reads otherwise by now.
pub fn way(request: &LaunchRequest, certificates: Option<&Path>, notes: &mut Vec<String>) -> RemoteRequest {
    let trust = |name: &OsString| name.to_str().is_some_and(firedoor_launch::is_about_trust);
    let (told, mut env): (Vec<_>, Vec<_>) = request.env.iter().cloned().partition(|(name, _)| trust(name));
    env.extend(certificates.map(|path| (firedoor_launch::CERTIFICATES.into(), path.into())));
    if !told.is_empty() {
        let names: BTreeSet<_> = told.iter().map(|(name, _)| name.to_string_lossy()).collect();
        notes.push(format!(
            "broker mode: {} not used for the service; say `certificates` under `[broker]` in Firedoor's config.toml for that",
            names.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    RemoteRequest {
        entry: request.entry.clone(),
        url: String::new(),
        transport: Default::default(),
        headers: Vec::new(),
        cwd: request.cwd.clone(),
        env,
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{broker::placeholder_in, launch::Confinement, network::Hosts};

    use super::*;

    fn route(secret: &str) -> Route {
        let (variable, url) = ("BASE_URL".to_owned(), "https://api.example.com/v1".to_owned());
        Route { secret: secret.into(), variable, url, header: "authorization".into(), intercept: false }
    }

    fn step(args: &[&str], env: &[(&str, &str)], hosts: &[&str]) -> Step {
        let allowed = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let network = Network::Hosts(Hosts { allowed, ..Hosts::default() });
        Step {
            program: "/x".into(),
            args: args.iter().map(Into::into).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: "/".into(),
            confinement: Confinement {
                grants: Vec::new(),
                network,
                protected: Default::default(),
                sockets: Vec::new(),
                own: Vec::new(),
                limits: Default::default(),
            },
        }
    }

    #[test]
    fn only_what_is_in_broker_mode_is_replaced_and_each_time_by_something_else() {
        let (entry, routes): (EntryId, _) = ("cursor/user/s".parse().unwrap(), [route("T")]);
        let mut withheld = Withheld::of(&routes);
        assert_eq!(withheld.instead("OTHER", "hunter2".into()), Ok("hunter2".into()));
        let one = withheld.instead("T", "made-up-0001".into()).unwrap();
        assert_eq!(placeholder_in(one.as_bytes()), Some((0, one.len())));
        assert_eq!(withheld.instead("T", "made-up-0001".into()), Ok(one.clone()));
        let [brokered] = withheld.all(&entry).unwrap().try_into().ok().unwrap();
        assert!(brokered.secret == "made-up-0001" && brokered.placeholder == one && brokered.key.len() == 32);
        assert!(!one.ends_with(&brokered.key));
        let again = Withheld::of(&routes).instead("T", "made-up-0001".into()).unwrap();
        assert_ne!(one, again);
        let said = Withheld::of(&routes).all(&entry).err().unwrap().to_string();
        assert!(said.contains("firedoor broker remove cursor/user/s T"), "{said}");
        for secret in ["short", "with a\nline break"] {
            assert!(matches!(Withheld::of(&routes).instead("T", secret.into()), Err(BrokerError::Unfit { .. })));
        }
    }

    #[test]
    fn a_server_gets_a_withheld_secret_in_no_other_way() {
        let one =
            Brokered { route: route("T"), key: "k".into(), placeholder: "p".into(), secret: "made-up-0001".into() };
        let check = |step: &mut Step| withhold(step, std::slice::from_ref(&one), &mut Vec::new());
        let elsewhere = |place: &str| Err(BrokerError::Elsewhere { secret: "T".into(), place: place.into() });
        assert_eq!(check(&mut step(&["--key=made-up-0001"], &[], &[])), elsewhere("an argument"));
        assert_eq!(check(&mut step(&[], &[("OLD", "x made-up-0001")], &[])), elsewhere("the variable OLD"));
        for (value, want) in [
            ("https://api.example.com/v1/", Ok(())),
            ("", Ok(())),
            (
                "https://evil.example/v1",
                Err(BrokerError::OtherAddress { variable: "BASE_URL".into(), secret: "T".into() }),
            ),
        ] {
            assert_eq!(check(&mut step(&[], &[("BASE_URL", value)], &[])), want, "{value}");
        }
        let mut offline = step(&[], &[], &[]);
        offline.confinement.network = Network::None;
        assert!(matches!(check(&mut offline), Err(BrokerError::Failed(_))));
    }

    #[test]
    fn a_server_reaches_the_service_through_the_listener_only() {
        let one =
            Brokered { route: route("T"), key: "k".into(), placeholder: "p".into(), secret: "made-up-0001".into() };
        let proxied = [("HTTPS_PROXY", "http://10.0.0.1:1"), ("NO_PROXY", "localhost")];
        let mut step = step(&[], &proxied, &["api.example.com:443", "api.example.com", "other.example", "*"]);
        let mut notes = Vec::new();
        let intercepted = Route { variable: String::new(), intercept: true, ..route("T") };
        let mut other = step.clone();
        withhold(&mut step, std::slice::from_ref(&one), &mut notes).unwrap();
        let both = [one.clone(), Brokered { route: intercepted, ..one }];
        withhold(&mut other, &both, &mut Vec::new()).unwrap();
        assert!(other.env.contains(&("no_proxy".into(), "localhost,127.0.0.1,api.example.com".into())));
        let Network::Hosts(hosts) = &step.confinement.network else { panic!() };
        let shown = |all: &[HostGrant]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            (shown(&hosts.allowed), shown(&hosts.refuse)),
            (vec!["other.example".into(), "*".into()], vec!["api.example.com".into()])
        );
        let value = |name: &str| step.env.iter().find(|(n, _)| n == name).unwrap().1.to_str().unwrap();
        // Programs prefer one or the other name: what the user keeps from the proxy stays so under both.
        assert_eq!((value("NO_PROXY"), value("no_proxy")), ("localhost,127.0.0.1", "localhost,127.0.0.1"));
        assert!(notes[0].contains("https://api.example.com/v1") && !notes[0].contains("made-up"));
    }
}
