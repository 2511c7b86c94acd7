//! The tray icon and its menu. Linux trays tell nothing of clicks on the icon, so everything is in the menu.
//!
//! The menu is on the session bus (com.canonical.dbusmenu), where every program of the user's can choose an item of it. So
//! no item weakens anything by itself: what would, opens a window that asks.

#[cfg(target_os = "linux")]
mod hosts;
#[cfg(not(target_os = "linux"))]
#[path = "tray/bar.rs"]
mod hosts;

use firedoor_ipc::command::{Request, Status};
use firedoor_model::Millis;
use tauri::{
    AppHandle, Manager, Wry,
    image::Image,
    include_image,
    menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu},
    tray::{TrayIcon, TrayIconBuilder},
};

use crate::{
    app,
    known::{App, Counts, Engine, Heard, Known, lock},
    link::Link,
    view::RowView,
    waiting::Waiting,
    windows,
};

pub use hosts::Hosts;

const ID: &str = "firedoor";
/// Before a client's id, in the id of its item.
const APP: &str = "app ";

/// The shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Protected,
    Question,
    Paused,
    Degraded,
    Off,
}

/// What the tray says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    shape: Shape,
    status: String,
    questions: usize,
    /// What there is to choose about a pause, when the engine runs: its end, or a beginning.
    pause: Option<Pausing>,
    last_block: Option<String>,
    apps: Vec<App>,
    quit: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pausing {
    Offered,
    Until(String),
}

/// Makes the tray.
pub fn make(app: &AppHandle) -> tauri::Result<()> {
    show_icon(app).or_else(|why| hosts::refused(app, why))?;
    hosts::watch(app);
    Ok(())
}

fn show_icon(app: &AppHandle) -> tauri::Result<()> {
    let said = said(app);
    let tray = TrayIconBuilder::with_id(ID).icon(image(said.shape)).tooltip("Firedoor").menu(&menu(app, &said)?);
    tray.on_menu_event(|app, event| chosen(app, event.id().as_ref())).build(app).map(drop)
}

/// Shows what is now. The menu is replaced only when its words change, because it may be open.
pub fn refresh(app: &AppHandle) {
    let now = said(app);
    let handle = app.clone();
    // It fails only when the app is ending.
    let _ = app.run_on_main_thread(move || {
        if let Some(tray) = handle.tray_by_id(ID)
            && let Err(e) = show(&handle, &tray, &now)
        {
            app::complain(&format!("the tray could not be changed: {e}"));
        }
    });
}

fn show(app: &AppHandle, tray: &TrayIcon, now: &Said) -> tauri::Result<()> {
    let shown = app.state::<Shown>();
    let mut before = lock(&shown.0);
    if before.as_ref() == Some(now) {
        return Ok(());
    }
    tray.set_icon(Some(image(now.shape)))?;
    tray.set_tooltip(Some(format!("Firedoor: {}", now.status)))?;
    tray.set_menu(Some(menu(app, now)?))?;
    *before = Some(now.clone());
    Ok(())
}

/// What the tray shows.
#[derive(Default)]
pub struct Shown(std::sync::Mutex<Option<Said>>);

fn image(shape: Shape) -> Image<'static> {
    match shape {
        Shape::Protected => include_image!("icons/tray-protected.png"),
        Shape::Question => include_image!("icons/tray-question.png"),
        Shape::Paused => include_image!("icons/tray-paused.png"),
        Shape::Degraded => include_image!("icons/tray-degraded.png"),
        Shape::Off => include_image!("icons/tray-off.png"),
    }
}

fn said(app: &AppHandle) -> Said {
    let known = app.state::<Known>();
    let heard = lock(&known.heard).clone();
    let last = lock(&known.activity).last_block().cloned();
    let counts = lock(&known.counts).clone();
    say(&heard, &counts, last.as_ref(), std::process::id())
}

fn say(heard: &Heard, counts: &Counts, last: Option<&RowView>, own_pid: u32) -> Said {
    let questions = heard.waiting.count();
    let (shape, status, quit, pause) = match &heard.engine {
        Engine::Starting => (Shape::Off, "Starting".to_owned(), "Quit".to_owned(), None),
        Engine::Down(_) => (Shape::Off, "Off: the engine does not run".to_owned(), "Quit".to_owned(), None),
        Engine::Up(status) => {
            let (shape, text) = on(&heard.waiting, counts, status);
            let pause = status.paused_until.map_or(Pausing::Offered, |until| Pausing::Until(time(until)));
            (shape, text, quit(status, own_pid), Some(pause))
        }
    };
    Said { shape, status, questions, pause, last_block: last.map(block), apps: counts.apps.clone(), quit }
}

/// The time of day, as the user's clock shows it.
fn time(at: Millis) -> String {
    let at = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(String::new, |at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string())
}

fn on(waiting: &Waiting, counts: &Counts, status: &Status) -> (Shape, String) {
    let Counts { servers, protected, .. } = *counts;
    // What could be protected is counted below; nothing waits for that.
    let (calls, commands, changed) = (waiting.questions.len(), waiting.confirmations.len(), waiting.withheld.len());
    let asks = match (commands, calls, changed) {
        (0, 0, 0) => None,
        (1.., ..) => Some("A command waits for you to confirm it".to_owned()),
        (0, 1, _) => Some("A call waits for your answer".to_owned()),
        (0, 2.., _) => Some(format!("{calls} calls wait for your answer")),
        (0, 0, 1) => Some("A changed tool waits for you".to_owned()),
        (0, 0, 2..) => Some(format!("{changed} changed tools wait for you")),
    };
    if let Some(text) = asks {
        return (Shape::Question, text);
    }
    if let Some(until) = status.paused_until {
        return (Shape::Paused, format!("Paused until {}: nothing is asked", time(until)));
    }
    match status.problems.len() {
        1 => (Shape::Degraded, "On, with a problem".to_owned()),
        2.. => (Shape::Degraded, "On, with problems".to_owned()),
        0 if protected == 0 => (Shape::Off, "No server is protected".to_owned()),
        0 if protected < servers => (Shape::Degraded, format!("{protected} of {servers} servers protected")),
        0 => (
            Shape::Protected,
            if servers == 1 { "1 server protected".to_owned() } else { format!("All {servers} servers protected") },
        ),
    }
}

/// Says what quitting does to the servers that run.
fn quit(status: &Status, own_pid: u32) -> String {
    match (status.pid == own_pid, status.sessions.len()) {
        (true, 0) => "Quit: no server is running".to_owned(),
        (true, 1) => "Quit: 1 running server waits until Firedoor is on again".to_owned(),
        (true, n) => format!("Quit: {n} running servers wait until Firedoor is on again"),
        (false, _) => "Quit: the engine and its servers go on".to_owned(),
    }
}

fn block(row: &RowView) -> String {
    let subject = row.subject().unwrap_or("a call");
    format!("Last blocked: {subject} of {}", row.server.as_deref().unwrap_or("a server"))
}

fn menu(app: &AppHandle, said: &Said) -> tauri::Result<Menu<Wry>> {
    let item = |id: &str, text: &str, enabled| MenuItem::with_id(app, id, escaped(text), enabled, None::<&str>);
    let line = || PredefinedMenuItem::separator(app);
    let mut items: Vec<Box<dyn IsMenuItem<Wry>>> = vec![Box::new(item("status", &said.status, false)?)];
    if let Some(text) = windows::cannot_open() {
        items.push(Box::new(item("windows", text, false)?));
    }
    if said.questions > 0 {
        let text =
            if said.questions == 1 { "1 question…".to_owned() } else { format!("{} questions…", said.questions) };
        items.push(Box::new(item("questions", &text, true)?));
    }
    if let Some(text) = &said.last_block {
        items.push(Box::new(item("activity", text, true)?));
    }
    items.push(Box::new(line()?));
    match &said.pause {
        Some(Pausing::Offered) => items.push(Box::new(item("pause", "Pause questions…", true)?)),
        Some(Pausing::Until(end)) => {
            items.push(Box::new(item("resume", &format!("Ask again now (paused until {end})"), true)?));
        }
        None => {}
    }
    if !said.apps.is_empty() {
        let apps = Submenu::with_id(app, "apps", "Apps", true)?;
        for of in &said.apps {
            let text = escaped(&format!("{}: {} of {} protected", of.name, of.protected, of.servers));
            let all = of.protected == of.servers;
            apps.append(&CheckMenuItem::with_id(app, format!("{APP}{}", of.id), text, true, all, None::<&str>)?)?;
        }
        items.push(Box::new(apps));
    }
    items.push(Box::new(item("open", "Open Firedoor", true)?));
    items.push(Box::new(item("restore", "Restore all…", true)?));
    items.push(Box::new(line()?));
    items.push(Box::new(item("quit", &said.quit, true)?));
    let all: Vec<&dyn IsMenuItem<Wry>> = items.iter().map(AsRef::as_ref).collect();
    Menu::with_items(app, &all)
}

/// "&" marks a mnemonic in menus: doubled, it is itself.
fn escaped(text: &str) -> String {
    text.replace('&', "&&")
}

fn chosen(app: &AppHandle, id: &str) {
    match id {
        "questions" => windows::recall_prompt(app),
        "open" => windows::main_at(app, windows::View::Home),
        "activity" => windows::main_at(app, windows::View::Activity),
        "pause" => windows::main_at(app, windows::View::Pause),
        "resume" => app::in_background(app, |app| {
            if let Err(e) = Link::settle(&app.state::<Known>().paths, &Request::Resume) {
                app::complain(&format!("the pause could not be ended: {e}"));
            }
        }),
        "restore" => windows::main_at(app, windows::View::Restore { app: None }),
        "quit" => app::quit(app),
        id => {
            if let Some(client) = id.strip_prefix(APP) {
                toggle(app, client);
            }
        }
    }
}

/// Shows what would change for a client: to protect what is not, or to give back what is.
fn toggle(app: &AppHandle, client: &str) {
    let known = app.state::<Known>();
    let all = lock(&known.counts).apps.iter().any(|a| a.id == client && a.protected == a.servers);
    let of = Some(client.to_owned());
    windows::main_at(app, if all { windows::View::Restore { app: of } } else { windows::View::Protect { app: of } });
    // The item has changed its mark by itself, and nothing has been done yet.
    lock(&app.state::<Shown>().0).take();
    refresh(app);
}

#[cfg(test)]
mod tests {
    use firedoor_ipc::command::Session;
    use firedoor_model::{Millis, Mode};

    use super::*;
    use crate::waiting::samples;

    fn up(pid: u32, sessions: usize, problems: usize) -> Heard {
        let session = Session {
            id: 1,
            entry: "cursor/user/fs".parse().unwrap(),
            client: "node (7)".into(),
            pid: 7,
            level: "full".into(),
            profile: "default".into(),
            since: Millis(0),
            calls: 0,
            observed: false,
        };
        let status = Status {
            version: "0".into(),
            pid,
            since: Millis(0),
            mode: Mode::Balanced,
            paused_until: None,
            quieted: Vec::new(),
            pending: 0,
            sessions: vec![session; sessions],
            observe_next: Vec::new(),
            offers: Vec::new(),
            withheld: Vec::new(),
            watched: None,
            problems: vec!["p".into(); problems],
        };
        Heard { engine: Engine::Up(status), waiting: Waiting::default() }
    }

    #[test]
    fn the_tray_says_what_is() {
        let check = |heard: &Heard, (protected, servers), shape, status: &str, quit: &str| {
            let said = say(heard, &Counts { servers, protected, apps: Vec::new() }, None, 1);
            assert_eq!((said.shape, said.status.as_str(), said.quit.as_str()), (shape, status, quit));
        };
        check(&Heard::default(), (0, 0), Shape::Off, "Starting", "Quit");
        let down = Heard { engine: Engine::Down("x".into()), ..Heard::default() };
        check(&down, (1, 1), Shape::Off, "Off: the engine does not run", "Quit");
        check(&up(1, 0, 0), (0, 2), Shape::Off, "No server is protected", "Quit: no server is running");
        let waits = "Quit: 1 running server waits until Firedoor is on again";
        check(&up(1, 1, 0), (2, 2), Shape::Protected, "All 2 servers protected", waits);
        check(&up(1, 1, 0), (1, 2), Shape::Degraded, "1 of 2 servers protected", waits);
        let wait = "Quit: 2 running servers wait until Firedoor is on again";
        check(&up(1, 2, 1), (1, 1), Shape::Degraded, "On, with a problem", wait);
        check(&up(2, 2, 0), (1, 1), Shape::Protected, "1 server protected", "Quit: the engine and its servers go on");
    }

    #[test]
    fn what_waits_is_said_before_everything_else() {
        let mut heard = up(1, 0, 1);
        let mut check = |waiting: Waiting, shape, status: &str, questions| {
            heard.waiting = waiting;
            let said = say(&heard, &Counts { servers: 1, protected: 1, apps: Vec::new() }, None, 1);
            assert_eq!((said.shape, said.status.as_str(), said.questions), (shape, status, questions));
        };
        let mut waiting = Waiting { offers: vec![samples::appeared("x", "/h")], ..Waiting::default() };
        check(waiting.clone(), Shape::Degraded, "On, with a problem", 1);
        waiting.withheld = vec![samples::changed("fs", "a"), samples::changed("fs", "b")];
        check(waiting.clone(), Shape::Question, "2 changed tools wait for you", 2);
        waiting.questions = vec![samples::call("A", "1")];
        check(waiting.clone(), Shape::Question, "A call waits for your answer", 3);
        waiting.confirmations = vec![samples::command(1)];
        check(waiting, Shape::Question, "A command waits for you to confirm it", 4);
    }

    #[test]
    fn a_pause_is_said_with_its_end() {
        let mut heard = up(1, 0, 1);
        let said = |heard: &Heard| say(heard, &Counts { servers: 1, protected: 1, apps: Vec::new() }, None, 1);
        assert_eq!(said(&heard).pause, Some(Pausing::Offered));
        let Engine::Up(status) = &mut heard.engine else { panic!("it is up") };
        status.paused_until = Some(Millis(1_800_000_000_000));
        let (end, now) = (time(Millis(1_800_000_000_000)), said(&heard));
        assert_eq!((now.shape, now.status), (Shape::Paused, format!("Paused until {end}: nothing is asked")));
        assert_eq!(now.pause, Some(Pausing::Until(end)));
        assert_eq!(said(&Heard::default()).pause, None);
    }

    #[test]
    fn names_are_no_mnemonics() {
        assert_eq!(escaped("a&b"), "a&&b");
    }
}
