//! A desktop notification for a question: a window cannot keep itself on top everywhere (Wayland), and need not.

use std::{sync::Mutex, thread};

use firedoor_ipc::command::Offer;
use firedoor_model::{Untrusted, notice::Noticed, question::Question};
use notify_rust::{Notification, Timeout};
use tauri::AppHandle;

use crate::{known::lock, windows};

/// The notification that is up and waited for. A later question takes its place, because the window shows how many wait.
static SHOWN: Mutex<Option<u32>> = Mutex::new(None);

/// Says that a question waits. Without a notification service the tray and the window say it.
pub fn question(app: &AppHandle, question: &Question, app_name: &str) {
    let (app, body) = (app.clone(), body(question, app_name));
    let spawned = thread::Builder::new().name("notice".into()).spawn(move || {
        let before = *lock(&SHOWN);
        let mut notice = Notification::new();
        if let Some(id) = before {
            notice.id(id);
        }
        notice.appname("Firedoor").summary("A call waits for your answer").body(&body).icon("firedoor");
        notice.timeout(Timeout::Milliseconds(45_000));
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
                windows::recall_prompt(&app);
            }
        });
        lock(&SHOWN).take_if(|shown| *shown == id);
    });
    if let Err(e) = spawned {
        crate::app::complain(&format!("a question could not be notified: {e}"));
    }
}

/// Says that servers have appeared that could be protected. Home lists them.
pub fn offers(offers: &[Offer]) {
    let Some(newest) = offers.last() else { return };
    let more = if offers.len() > 1 { format!(", and {} more", offers.len() - 1) } else { String::new() };
    let plain = |text: String| text.replace(['<', '>', '&'], "�");
    let summary = match newest.noticed {
        Noticed::Dropped => format!("{} dropped Firedoor from a server", newest.client),
        Noticed::Changed => format!("A server in {} has changed", newest.client),
        _ => format!("New server in {}", newest.client),
    };
    let body = format!("{}{more}: protect? See Home.", plain(Untrusted::new(newest.entry.server()).visible(80)));
    // The service may not be there, or may not answer at once.
    let spawned = thread::Builder::new().name("notice".into()).spawn(move || {
        let _ = Notification::new().appname("Firedoor").summary(&summary).body(&body).icon("firedoor").show();
    });
    if let Err(e) = spawned {
        crate::app::complain(&format!("a new server could not be notified: {e}"));
    }
}

/// Some services read markup in the body (Desktop Notifications Specification 1.2, "Markup"): names get none.
fn body(question: &Question, app_name: &str) -> String {
    let plain = |text: String| text.replace(['<', '>', '&'], "�");
    let server = firedoor_model::Untrusted::new(question.entry.server()).visible(80);
    format!("{} → {}: {}", plain(app_name.to_owned()), plain(server), plain(question.tool.visible(80)))
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Digest, Millis, question::Ref};

    use super::*;

    #[test]
    fn names_bring_no_markup_and_hide_nothing() {
        let question = Question {
            id: Ref("A".into()),
            entry: "cursor/user/<b>x".parse().unwrap(),
            client: "node (7)".into(),
            tool: "a&\u{202e}b".into(),
            connection: None,
            address: None,
            exact: false,
            findings: Vec::new(),
            arguments: "{}".into(),
            call: Digest::of(b""),
            asked: Millis(1),
            held_until: Millis(2),
            open_until: Millis(3),
        };
        assert_eq!(body(&question, "Cursor"), "Cursor → �b�x: a�⟨U+202E⟩b");
    }
}
