//! Where no server is started: everything that it starts would have to end with it.

use std::time::Duration;

use firedoor_model::Unavailable;

use super::{Invocation, ToolsSeen, VerifyError};

/// See the module.
pub(super) fn run(_: &Invocation, _: Duration) -> Result<ToolsSeen, VerifyError> {
    Err(Unavailable("starting servers").into())
}
