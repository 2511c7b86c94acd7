//! Systems on which nothing is notified yet. The window and the tray say what waits, and Home says that this is missing.

use firedoor_model::Unavailable;

/// What is not there.
pub const MISSING: Option<Unavailable> = Some(Unavailable("telling you of questions by notifications of the desktop"));

/// Nowhere.
pub fn question(_: &str, _: &str, _: bool, _: impl Fn()) {}

/// Whether it was shown: never.
pub fn message(_: &str, _: &str) -> bool {
    false
}
