//! Desktop notifications: a window cannot keep itself on top everywhere (Wayland), and need not.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

use std::thread;

use firedoor_clients::{
    Clients,
    verify::{Outcome, Verified},
};
use firedoor_ipc::command::Offer;
use firedoor_model::{EntryId, Untrusted, notice::Noticed};
use tauri::{AppHandle, Manager};

use crate::{
    known::{Known, lock},
    waiting::Matter,
    windows,
};

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub use system::MISSING;

/// Says that a question waits. Without a notification service the tray and the window say it.
pub fn waits(app: &AppHandle, matter: &Matter<'_>, clients: &Clients) {
    let (app, [summary, body]) = (app.clone(), words(matter, clients));
    let urgent = matches!(matter, Matter::Calls(_) | Matter::Command(_));
    let spawned = thread::Builder::new().name("notice".into()).spawn(move || {
        system::question(&summary, &body, urgent, || windows::recall_prompt(&app));
    });
    if let Err(e) = spawned {
        crate::app::complain(&format!("a question could not be notified: {e}"));
    }
}

/// Says what was seen of a server that was protected from the question window. Where nothing can be notified, Home says what is not as
/// it should be.
pub fn checked(app: &AppHandle, outcome: &Outcome) {
    let known = app.state::<Known>();
    let server = named(&outcome.entry, known.clients);
    let (summary, body) = match &outcome.verified {
        Verified::Same { tools } => ("Protected", format!("{server} answers as before ({tools} tools)")),
        Verified::Answers { tools } => ("Protected", format!("{server} answers through Firedoor ({tools} tools)")),
        Verified::Unverified { reason } => ("Protected, not verified", format!("{server}: {}", plain(reason))),
        Verified::RolledBack { reason } => ("Put back", format!("{server}: {}", plain(reason))),
        Verified::Stuck { reason } => ("Protected, and differs", format!("{server}: {}", plain(reason))),
    };
    let restart = if outcome.rolled_back() { "" } else { ". Restart its app to use it." };
    let body = format!("{body}{restart}");
    lock(&known.untold).remove(&outcome.entry);
    let wrong = !matches!(outcome.verified, Verified::Same { .. } | Verified::Answers { .. });
    let (app, entry) = (app.clone(), outcome.entry.clone());
    // The service may not be there, or may not answer at once.
    let spawned = thread::Builder::new().name("notice".into()).spawn(move || {
        if !system::message(summary, &body) && wrong {
            lock(&app.state::<Known>().untold).insert(entry, format!("{summary}: {body}"));
            windows::problems(&app);
        }
    });
    if let Err(e) = spawned {
        crate::app::complain(&format!("what became of a server could not be notified: {e}"));
    }
}

/// Some services read markup in the body (Desktop Notifications Specification 1.2, "Markup"): names get none.
fn plain(text: &str) -> String {
    Untrusted::new(text).visible(200).replace(['<', '>', '&'], "\u{fffd}")
}

fn named(entry: &EntryId, clients: &Clients) -> String {
    let known = clients.known().find(|(id, _)| *id == entry.client());
    let app = known.map_or_else(|| entry.client(), |(_, name)| name);
    format!("{} → {}", plain(app), plain(entry.server()))
}

/// What a notification says: in short, and about what.
fn words(matter: &Matter<'_>, clients: &Clients) -> [String; 2] {
    let more = |n: usize| if n > 1 { format!(", and {} more", n - 1) } else { String::new() };
    match matter {
        Matter::Calls(calls) => {
            let body = calls.first().map(|q| format!("{}: {}", named(&q.entry, clients), plain(q.tool.raw())));
            ["A call waits for your answer".into(), body.unwrap_or_default()]
        }
        Matter::Command(command) => ["A command waits for you to confirm it".into(), plain(command.action.raw())],
        Matter::Changed(all) => {
            let body = all.first().map(|of| format!("{}: {}", named(&of.entry, clients), plain(of.name.raw())));
            ["A changed tool waits for you".into(), format!("{}{}", body.unwrap_or_default(), more(all.len()))]
        }
        Matter::Servers(offers) => appeared(offers, &more(offers.len())),
    }
}

fn appeared(offers: &[&Offer], more: &str) -> [String; 2] {
    let Some(first) = offers.first() else { return Default::default() };
    let client = plain(&first.client);
    let summary = match first.noticed {
        Noticed::Dropped => format!("{client} dropped Firedoor from a server"),
        Noticed::Changed => format!("A server in {client} has changed"),
        _ => format!("New server in {client}"),
    };
    [summary, format!("{}{more}: protect?", plain(first.entry.server()))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::samples;

    #[test]
    fn names_bring_no_markup_and_hide_nothing() {
        let clients = Clients::load().unwrap();
        let mut call = samples::call("A", "{}");
        (call.entry, call.tool) = ("cursor/user/<b>x".parse().unwrap(), "a&\u{202e}b".into());
        assert_eq!(words(&Matter::Calls(vec![&call]), clients)[1], "Cursor → \u{fffd}b\u{fffd}x: a\u{fffd}⟨U+202E⟩b");
        let command = samples::command(1);
        assert_eq!(words(&Matter::Command(&command), clients)[1], "switching to mode wa⟨U+202E⟩tch");
        let changed = [samples::changed("fs", "<i>a"), samples::changed("fs", "b")];
        let said = words(&Matter::Changed(changed.iter().collect()), clients);
        assert_eq!(said, ["A changed tool waits for you", "Cursor → fs: \u{fffd}i\u{fffd}a, and 1 more"]);
        let offer = samples::appeared("<x>", "/h");
        assert_eq!(
            words(&Matter::Servers(vec![&offer]), clients),
            ["New server in Cursor", "\u{fffd}x\u{fffd}: protect?"]
        );
    }
}
