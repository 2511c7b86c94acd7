//! Notifications over the session bus.

use std::sync::Mutex;

use firedoor_model::Unavailable;
use notify_rust::{Notification, Timeout};

use crate::known::lock;

/// What is not there.
pub const MISSING: Option<Unavailable> = None;

/// The notification that is up and waited for. A later question takes its place, because the window shows how many wait.
static SHOWN: Mutex<Option<u32>> = Mutex::new(None);

/// How long a notification of something urgent stays, in milliseconds: a call is held that long.
const URGENT: u32 = 45_000;

/// Shows that something waits, and waits until it is gone. `open` is called when somebody wants to see it.
pub fn question(summary: &str, body: &str, urgent: bool, open: impl Fn()) {
    let before = *lock(&SHOWN);
    let mut notice = Notification::new();
    if let Some(id) = before {
        notice.id(id);
    }
    notice.appname("Firedoor").summary(summary).body(body).icon("firedoor");
    notice.timeout(if urgent { Timeout::Milliseconds(URGENT) } else { Timeout::Default });
    notice.action("default", "Open question").action("open", "Open question");
    let Ok(handle) = notice.show() else { return };
    // Another thread waits for this one already.
    if before == Some(handle.id()) {
        return;
    }
    let id = handle.id();
    *lock(&SHOWN) = Some(id);
    handle.wait_for_action(|action| {
        if matches!(action, "default" | "open") {
            open();
        }
    });
    lock(&SHOWN).take_if(|shown| *shown == id);
}

/// Shows something that asks for nothing. False where nothing shows it.
pub fn message(summary: &str, body: &str) -> bool {
    Notification::new().appname("Firedoor").summary(summary).body(body).icon("firedoor").show().is_ok()
}
