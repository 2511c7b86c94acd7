//! Start, run, end.

use std::{env, io::Write as _, sync::Mutex, thread, time::Duration};

use firedoor_clients::{CatalogError, Clients, SHIM};
use firedoor_ipc::command::Request;
use firedoor_model::paths::{NoHome, sibling};
use tauri::{AppHandle, Manager, RunEvent};

use crate::{
    activity, commands,
    host::{self, HostError},
    known::{Engine, Heard, Known, lock},
    link::Link,
    notice,
    single::{Single, SingleError},
    tray,
    waiting::{Id, Waiting},
    watch::{self, News},
    windows,
};

/// How long the engine may take to write down what waits when the app ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why the app does not run.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// No home.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// The catalog in this program.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Whether it runs already.
    #[error(transparent)]
    Single(#[from] SingleError),
    /// This program's own place.
    #[error("cannot find Firedoor's own directory: {0}")]
    Own(std::io::Error),
    /// Somebody wants to drive the windows.
    #[cfg(not(feature = "automation"))]
    #[error("{0} is set, and this Firedoor takes answers from a person only: unset it")]
    Automation(&'static str),
    /// The desktop.
    #[error("the desktop could not be used: {0}; without one, use `firedoor daemon`")]
    Desktop(#[from] tauri::Error),
}

/// Says something on stderr, where a desktop keeps its logs.
pub fn complain(text: &str) {
    // There is nowhere else to say it.
    let _ = writeln!(std::io::stderr(), "firedoor-desktop: {text}");
}

/// Who started the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A person, who may expect a window.
    Shown,
    /// A person, or a page, through an address of ours.
    At(windows::View),
    /// The login: the tray is enough.
    Background,
    /// The engine with this process id. What may be answered here rests on that engine having started it, so it ends with it,
    /// and the next engine starts its own.
    Beside(u32),
}

/// Runs until the user quits.
pub fn run(start: Start) -> Result<(), AppError> {
    windows::before_start();
    #[cfg(not(feature = "automation"))]
    not_driven(|name| env::var_os(name).is_some())?;
    let paths = firedoor_ipc::endpoint::paths(|name| env::var_os(name))?;
    let Some(single) = Single::take(&paths, &start)? else { return Ok(()) };
    let shim = sibling(SHIM).map_err(AppError::Own)?;
    let builder = tauri::Builder::default();
    #[cfg(target_os = "macos")]
    let builder = builder.on_web_content_process_terminate(|page| windows::page_ended(page.app_handle(), page.label()));
    let app = builder
        .manage(Known::new(paths, Clients::load()?, shim))
        .manage(tray::Shown::default())
        .manage(tray::Hosts::default())
        .manage(windows::Wanted::default())
        .manage(windows::Turns::default())
        .manage(Alone(Mutex::new(Some(single))))
        .invoke_handler(tauri::generate_handler![
            commands::question,
            commands::question_arguments,
            commands::answer,
            commands::later,
            commands::fit,
            commands::wanted_view,
            commands::overview,
            commands::servers,
            commands::plan,
            commands::carry_out,
            commands::log,
            commands::counts,
            commands::rules,
            commands::add_rule,
            commands::remove_rule,
            commands::restore_rule,
            commands::rule_from_row,
            commands::accept_suggestion,
            commands::settings,
            commands::set_mode,
            commands::verify_log,
            commands::export,
            commands::about,
            commands::open_question,
            commands::allow_folder,
            commands::close_folder,
            commands::server,
            commands::add_grant,
            commands::remove_grant,
            commands::accept_change,
            commands::observe,
            commands::stop_server,
            commands::login,
            commands::secrets,
            commands::sign_in,
            commands::visit,
            commands::remove_secret,
            commands::pause,
            commands::resume,
        ])
        .setup(move |app| Ok(setup(app.handle(), start)?))
        .build(tauri::generate_context!())?;
    app.run(|_, event| {
        // Closing the last window is not quitting: the tray stays.
        if let RunEvent::ExitRequested { code: None, api, .. } = event {
            api.prevent_exit();
        }
    });
    Ok(())
}

/// With these variables WebKitGTK lets another program press the buttons (tauri-runtime-wry 2, `automation_enabled`).
#[cfg(not(feature = "automation"))]
fn not_driven(set: impl Fn(&str) -> bool) -> Result<(), AppError> {
    let named = ["TAURI_AUTOMATION", "TAURI_WEBVIEW_AUTOMATION"].into_iter().find(|name| set(name));
    named.map_or(Ok(()), |name| Err(AppError::Automation(name)))
}

/// Kept for as long as the app runs.
struct Alone(Mutex<Option<Single>>);

/// Whether the engine that started this app is gone.
fn is_over(beside: Option<u32>, news: &News) -> bool {
    let Some(engine) = beside else { return false };
    match news {
        News::Status(status) => status.pid != engine,
        News::Down(_) => true,
        News::Questions(_) | News::Confirmations(_) => false,
    }
}

fn setup(app: &AppHandle, start: Start) -> Result<(), tauri::Error> {
    let beside = if let Start::Beside(engine) = start { Some(engine) } else { None };
    tray::make(app)?;
    spawn(app, "watch", move |app| {
        let known = app.state::<Known>();
        let start = || {
            let ending = app.clone();
            if beside.is_some() {
                return Err(HostError::Elsewhere);
            }
            // It ends by itself on SIGTERM: then so do we.
            host::start(&known.paths, move || ending.exit(0))
        };
        watch::run(&known.paths, start, |news| {
            if is_over(beside, &news) {
                app.exit(0);
            }
            heard(app, news);
        });
    })?;
    spawn(app, "activity", |app| {
        activity::run(&app.state::<Known>(), || {
            tray::refresh(app);
            windows::changed(app);
        });
    })?;
    spawn(app, "door", |app| {
        let door = lock(&app.state::<Alone>().0).as_mut().and_then(|single| single.door.take());
        if let Some(mut door) = door {
            loop {
                windows::main_at(app, door.wanted());
            }
        }
    })?;
    tray::refresh(app);
    match start {
        Start::Shown => first_run(app),
        Start::At(view) => windows::main_at(app, view),
        Start::Background | Start::Beside(_) => {}
    }
    Ok(())
}

/// Before anything is protected the tray alone would tell nobody what to do.
fn first_run(app: &AppHandle) {
    let known = app.state::<Known>();
    let scan = known.scan();
    let mut entries = scan.clients.iter().flat_map(|c| &c.files).flat_map(|f| &f.entries);
    if !entries.any(|e| e.state.can_restore()) {
        windows::main_at(app, windows::View::Home);
    }
}

fn spawn(app: &AppHandle, name: &str, work: impl FnOnce(&AppHandle) + Send + 'static) -> Result<(), tauri::Error> {
    let app = app.clone();
    thread::Builder::new().name(name.into()).spawn(move || work(&app))?;
    Ok(())
}

/// Tells the engine that the user has put off the prompt with these calls. Nothing counts how often other things were.
pub fn put_off(known: &Known, ids: Vec<Id>) {
    let calls = ids.into_iter().filter_map(|id| if let Id::Question(id) = id { Some(id) } else { None });
    let ids: Vec<_> = calls.collect();
    if !ids.is_empty()
        && let Err(e) = Link::settle(&known.paths, &Request::Later { ids })
    {
        // It only counts prompts; the questions stay open all the same.
        complain(&format!("the engine could not be told that a question was put off: {e}"));
    }
}

/// Does what waits for the engine on a thread of its own.
pub fn in_background(app: &AppHandle, work: impl FnOnce(&AppHandle) + Send + 'static) {
    if let Err(e) = spawn(app, "order", work) {
        complain(&format!("no thread could be started: {e}"));
    }
}

fn heard(app: &AppHandle, news: News) {
    let known = app.state::<Known>();
    let mut heard = lock(&known.heard);
    match news {
        News::Status(mut status) => {
            heard.waiting.withheld = std::mem::take(&mut status.withheld);
            heard.waiting.offers = status.offers.iter().filter(|offer| !offer.under_way).cloned().collect();
            heard.engine = Engine::Up(status);
        }
        News::Down(reason) => *heard = Heard { engine: Engine::Down(reason), waiting: Waiting::default() },
        News::Questions(questions) => heard.waiting.questions = questions,
        News::Confirmations(confirmations) => heard.waiting.confirmations = confirmations,
    }
    let waiting = heard.waiting.clone();
    drop(heard);
    let fresh = lock(&known.asking).update(&waiting);
    if let Some(newest) = waiting.matters(|id| fresh.contains(id)).last() {
        windows::prompt(app);
        notice::waits(app, newest, known.clients);
    }
    tray::refresh(app);
    windows::changed(app);
}

/// Ends the app. An engine inside it is switched off first: it writes down what waits, and its servers answer that
/// Firedoor is off until it is started again.
pub fn quit(app: &AppHandle) {
    let known = app.state::<Known>();
    let own = match &lock(&known.heard).engine {
        Engine::Up(status) => status.pid == std::process::id(),
        Engine::Starting | Engine::Down(_) => false,
    };
    if !own {
        app.exit(0);
        return;
    }
    let (late, paths) = (app.clone(), known.paths.clone());
    let waiting = thread::Builder::new().spawn(move || {
        // The engine ends the app when it has ended (see `setup`); one that does not listen is left to its fate.
        let _ = Link::settle(&paths, &Request::Quit);
        thread::sleep(FAREWELL);
        late.exit(0);
    });
    if waiting.is_err() {
        app.exit(0);
    }
}

#[cfg(all(test, not(feature = "automation")))]
mod tests {
    use super::*;

    #[test]
    fn an_app_ends_with_the_engine_that_started_it() {
        let down = News::Down("it is gone".into());
        assert!(is_over(Some(7), &down));
        assert!(!is_over(None, &down));
        assert!(!is_over(Some(7), &News::Questions(Vec::new())));
        let up = |pid: u32| {
            let status = serde_json::json!({
                "version": "0", "pid": pid, "since": 0, "mode": "balanced", "pending": 0, "sessions": [], "problems": [],
            });
            News::Status(serde_json::from_value(status).unwrap())
        };
        assert!(!is_over(Some(7), &up(7)));
        assert!(is_over(Some(7), &up(8)));
        assert!(!is_over(None, &up(8)));
    }

    #[test]
    fn only_a_person_answers() {
        assert!(not_driven(|_| false).is_ok());
        for name in ["TAURI_AUTOMATION", "TAURI_WEBVIEW_AUTOMATION"] {
            let error = not_driven(|set| set == name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("a person only"), "{error}");
        }
    }
}
