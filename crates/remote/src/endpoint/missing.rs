//! Listening for clients that start no programs: on Windows this does not say who connects, so it is not done.

use firedoor_model::Ability;

/// What this program is started with.
pub const ENDPOINTS: &str = "--endpoints";

/// Says that it is not done.
#[expect(clippy::unused_async, reason = "as on other systems")]
pub async fn serve() -> Result<(), String> {
    Err(Ability::Listening.missing().to_string())
}
