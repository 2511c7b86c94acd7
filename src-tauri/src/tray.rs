//! The tray icon and its menu. Linux trays tell nothing of clicks on the icon, so everything is in the menu.

use firedoor_ipc::command::Status;
use tauri::{
    AppHandle, Manager, Wry,
    image::Image,
    include_image,
    menu::{IsMenuItem, Menu, MenuItem, PredefinedMenuItem},
    tray::{TrayIcon, TrayIconBuilder},
};

use crate::{
    app,
    known::{Engine, Heard, Known, lock},
    view::RowView,
    windows,
};

const ID: &str = "firedoor";

/// The shapes. (There is no pause yet, so none for it.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Protected,
    Question,
    Degraded,
    Off,
}

/// What the tray says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    shape: Shape,
    status: String,
    questions: usize,
    last_block: Option<String>,
    quit: String,
}

/// Makes the tray.
pub fn make(app: &AppHandle) -> tauri::Result<()> {
    let said = said(app);
    TrayIconBuilder::with_id(ID)
        .icon(image(said.shape))
        .tooltip("Firedoor")
        .menu(&menu(app, &said)?)
        .on_menu_event(|app, event| chosen(app, event.id().as_ref()))
        .build(app)?;
    Ok(())
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
        Shape::Degraded => include_image!("icons/tray-degraded.png"),
        Shape::Off => include_image!("icons/tray-off.png"),
    }
}

fn said(app: &AppHandle) -> Said {
    let known = app.state::<Known>();
    let heard = lock(&known.heard).clone();
    let last = lock(&known.activity).last_block().cloned();
    say(&heard, last.as_ref(), std::process::id())
}

fn say(heard: &Heard, last: Option<&RowView>, own_pid: u32) -> Said {
    let questions = heard.questions.len();
    let servers = |n: usize| if n == 1 { "1 server".to_owned() } else { format!("{n} servers") };
    let (shape, status, quit) = match &heard.engine {
        Engine::Starting => (Shape::Off, "Starting".to_owned(), "Quit".to_owned()),
        Engine::Down(_) => (Shape::Off, "Off: the engine does not run".to_owned(), "Quit".to_owned()),
        Engine::Up(Status { pid, sessions, problems, .. }) => {
            let running = sessions.len();
            let quit = match (*pid == own_pid, running) {
                (true, 0) => "Quit: no server is running".to_owned(),
                (true, n) => format!("Quit: ends {} that run through Firedoor", servers(n))
                    .replace("1 server that run", "1 server that runs"),
                (false, _) => "Quit: the engine and its servers go on".to_owned(),
            };
            match (questions, problems.len()) {
                (0, 0) => (Shape::Protected, format!("On: {} running", servers(running)), quit),
                (0, n) => {
                    (Shape::Degraded, format!("On, with {n} {}", if n == 1 { "problem" } else { "problems" }), quit)
                }
                _ => (Shape::Question, "A call waits for your answer".to_owned(), quit),
            }
        }
    };
    Said { shape, status, questions, last_block: last.map(block), quit }
}

fn block(row: &RowView) -> String {
    let subject = row.subject().unwrap_or("a message");
    format!("Last blocked: {subject} of {}", row.server.as_deref().unwrap_or("a server"))
}

fn menu(app: &AppHandle, said: &Said) -> tauri::Result<Menu<Wry>> {
    let item = |id: &str, text: &str, enabled| MenuItem::with_id(app, id, escaped(text), enabled, None::<&str>);
    let line = || PredefinedMenuItem::separator(app);
    let mut items: Vec<Box<dyn IsMenuItem<Wry>>> = vec![Box::new(item("status", &said.status, false)?)];
    if said.questions > 0 {
        let text =
            if said.questions == 1 { "1 question…".to_owned() } else { format!("{} questions…", said.questions) };
        items.push(Box::new(item("questions", &text, true)?));
    }
    if let Some(text) = &said.last_block {
        items.push(Box::new(item("activity", text, true)?));
    }
    items.push(Box::new(line()?));
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
        "restore" => windows::main_at(app, windows::View::Restore),
        "quit" => app::quit(app),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use firedoor_ipc::command::Session;
    use firedoor_model::{Millis, Mode};

    use super::*;

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
        };
        let status = Status {
            version: "0".into(),
            pid,
            since: Millis(0),
            mode: Mode::Balanced,
            pending: 0,
            sessions: vec![session; sessions],
            problems: vec!["p".into(); problems],
        };
        Heard { engine: Engine::Up(status), questions: Vec::new() }
    }

    #[test]
    fn the_tray_says_what_is() {
        let check = |heard: &Heard, shape, status: &str, quit: &str| {
            let said = say(heard, None, 1);
            assert_eq!((said.shape, said.status.as_str(), said.quit.as_str()), (shape, status, quit));
        };
        check(&Heard::default(), Shape::Off, "Starting", "Quit");
        let down = Heard { engine: Engine::Down("x".into()), questions: Vec::new() };
        check(&down, Shape::Off, "Off: the engine does not run", "Quit");
        check(&up(1, 0, 0), Shape::Protected, "On: 0 servers running", "Quit: no server is running");
        check(&up(1, 1, 0), Shape::Protected, "On: 1 server running", "Quit: ends 1 server that runs through Firedoor");
        check(&up(1, 2, 1), Shape::Degraded, "On, with 1 problem", "Quit: ends 2 servers that run through Firedoor");
        check(&up(2, 2, 0), Shape::Protected, "On: 2 servers running", "Quit: the engine and its servers go on");
    }

    #[test]
    fn names_are_no_mnemonics() {
        assert_eq!(escaped("a&b"), "a&&b");
    }
}
