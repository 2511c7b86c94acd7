//! The plan of a start, from what the user granted and what the entry declares.

use std::{collections::BTreeSet, rc::Rc};

use firedoor_clients::{Clients, Env};
use firedoor_ipc::command;
use firedoor_launch::{Context, Plan, ProxyAddress, UserGrants};
use firedoor_model::{EntryId, launch::LaunchRequest};

use super::LaunchError;
use crate::{egress::Egress, endpoints, engine::Engine};

pub(super) struct Planned {
    pub plan: Plan,
    /// The token that the plan's install step presents to the proxy.
    pub token: String,
    /// What the user had granted.
    pub granted: command::EntryGrants,
}

/// The thread that plans has ended without a plan.
pub(super) fn unplanned() -> LaunchError {
    LaunchError::Refused("planning the start failed inside Firedoor; see engine.log".into())
}

/// What the user granted an entry.
pub(super) async fn user_grants(engine: &Rc<Engine>, entry: &EntryId) -> (UserGrants, command::EntryGrants) {
    let of = entry.clone();
    let user = match engine.recorder.at_once(move |store| store.grants(&of)).await {
        Ok(granted) => UserGrants {
            grants: granted.grants,
            env: granted.env.into_iter().collect(),
            hosts: granted.hosts,
            sockets: granted.sockets,
        },
        // Fewer grants are safe, and the server may run without them.
        Err(e) => {
            engine.problem(format!("grants cannot be read: {e}"));
            UserGrants::default()
        }
    };
    let granted = command::EntryGrants {
        entry: entry.clone(),
        grants: user.grants.clone(),
        env: user.env.iter().cloned().collect(),
        hosts: user.hosts.clone(),
        sockets: user.sockets.clone(),
    };
    (user, granted)
}

/// Makes the plan, on another thread: it looks at many files.
pub(super) async fn plan(
    engine: &Rc<Engine>,
    request: &LaunchRequest,
    (user, granted): (UserGrants, command::EntryGrants),
) -> Result<Planned, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    let token = Egress::token().map_err(|e| refused(&e))?;
    let proxy = ProxyAddress { address: engine.egress.address(), user: "install".into(), token: token.clone() };
    let (paths, profiles, request, now) =
        (engine.paths.clone(), engine.profiles.clone(), request.clone(), engine.now());
    let own = engine.endpoints.of(&request.entry);
    let work = move || {
        let own = own.map(|own| endpoints::declared(&own.target).into_iter().collect());
        let declared = declared_env(&request, &paths).or(own);
        let context = Context {
            declared_env: declared.as_ref(),
            proxy: Some(proxy),
            ..Context::new(&paths, &profiles, &user, now)
        };
        firedoor_launch::plan(&request, &context)
    };
    let plan = tokio::task::spawn_blocking(work).await.map_err(|_| unplanned())?.map_err(|e| refused(&e))?;
    Ok(Planned { plan, token, granted })
}

/// The environment names that the entry declares in its client's configuration.
fn declared_env(request: &LaunchRequest, paths: &firedoor_model::paths::Paths) -> Option<BTreeSet<String>> {
    let lookup = |name: &str| request.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let env = Env::new(paths.clone(), &request.cwd, lookup);
    let entry: &EntryId = &request.entry;
    Clients::load().ok()?.declared_env(&env, entry)
}
