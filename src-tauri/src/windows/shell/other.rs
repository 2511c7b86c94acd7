//! Windows of a system whose toolkit shows no hidden window without giving it the focus: there the question window is made anew for
//! each question, because a new one can come without it.

use std::{io, thread, time::Duration};

use firedoor_model::Unavailable;
use tauri::{AppHandle, WebviewWindow};

/// Nothing has to be said to this system's pages before they are there.
pub fn before_start() {}

/// A hidden window cannot be shown again without taking the focus.
pub const KEEPS: bool = false;

/// Whether the window is hidden.
pub fn is_hidden(window: &WebviewWindow) -> tauri::Result<bool> {
    window.is_visible().map(|visible| !visible)
}

/// What is not there. On macOS the app itself is told when a page has ended (`app::run`).
pub const PAGES_MISSING: Option<Unavailable> =
    if cfg!(target_os = "macos") { None } else { Some(Unavailable("noticing that the page of a window has ended")) };

/// Nobody tells a window: see [`PAGES_MISSING`].
pub fn watch_page(_: &WebviewWindow, _: impl Fn() + Send + 'static) {}

/// Refused: it would take the focus.
pub fn show_unfocused(_: &WebviewWindow) -> tauri::Result<()> {
    Err(io::Error::other(Unavailable("showing a hidden window without the focus")).into())
}

/// Hides the window.
pub fn hide(window: &WebviewWindow) -> tauri::Result<()> {
    window.hide()
}

/// Does something on the main thread after a while.
pub fn after(app: &AppHandle, time: Duration, work: impl FnOnce(&AppHandle) + Send + 'static) {
    let waiting = app.clone();
    let spawned = thread::Builder::new().name("later".into()).spawn(move || {
        thread::sleep(time);
        let app = waiting.clone();
        // It fails only when the app is ending.
        let _ = waiting.run_on_main_thread(move || work(&app));
    });
    if let Err(e) = spawned {
        crate::app::complain(&format!("no thread could be started: {e}"));
    }
}
