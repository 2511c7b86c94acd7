//! A plan's install step.

use std::rc::Rc;

use firedoor_ipc::shim::{ToEngine, ToShim};
use firedoor_launch::InstallStep;
use firedoor_model::EntryId;

use super::{LaunchError, record_notes};
use crate::{
    connection::{Incoming, Outgoing},
    egress::Target,
    engine::Engine,
};

/// Lets the shim run an install step that reaches its registry and nothing else.
pub(super) async fn install(
    engine: &Rc<Engine>,
    entry: &EntryId,
    step: &InstallStep,
    token: String,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), LaunchError> {
    record_notes(engine, entry, &step.notes);
    let targets =
        step.hosts.iter().map(|(host, port)| Target { host: host.to_ascii_lowercase(), port: *port }).collect();
    // Ends with this function.
    let _pass = engine.egress.admit(token, targets);
    let message = ToShim::Install { step: step.step.clone(), limit: step.timeout };
    outgoing.send(&message).await.map_err(|_| LaunchError::Shim)?;
    let unrecorded = |e: firedoor_launch::PlanError| LaunchError::Refused(e.to_string());
    match incoming.receive().await {
        Ok((ToEngine::Installed { ok: true, .. }, _)) => step.done(engine.now()).map_err(unrecorded),
        Ok((ToEngine::Installed { ok: false, detail }, _)) => {
            step.failed(engine.now()).map_err(unrecorded)?;
            // A refresh may fail, as it does without a network: what is installed runs.
            if !step.required {
                return Ok(());
            }
            let hosts: Vec<_> = step.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            Err(LaunchError::Refused(format!(
                "{} could not be installed: {detail}. Its installer ran in a sandbox that reaches only {}",
                step.package,
                hosts.join(", ")
            )))
        }
        Ok(_) | Err(_) => {
            // The next start begins anew in any case.
            let _ = step.failed(engine.now());
            Err(LaunchError::Shim)
        }
    }
}
