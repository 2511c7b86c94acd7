//! GTK's windows, with WebKitGTK's pages in them.

#[path = "webkit.rs"]
mod webkit;

use std::{cell::Cell, rc::Rc, time::Duration};

use firedoor_model::Unavailable;
use gtk::{
    glib::{self, Propagation},
    prelude::{GtkWindowExt as _, ObjectExt as _, WidgetExt as _, WidgetExtManual as _},
};
use tauri::{AppHandle, WebviewWindow};

pub use webkit::{before_start, set_up as watch_page};

/// What is not there: nothing.
pub const PAGES_MISSING: Option<Unavailable> = None;

/// A hidden window can be shown again without taking the focus.
pub const KEEPS: bool = true;

/// Whether the window is hidden.
pub fn is_hidden(window: &WebviewWindow) -> tauri::Result<bool> {
    Ok(!window.gtk_window()?.is_visible())
}

/// Shows the window without the focus, also where it has had it before: a window manager gives it to none that does not
/// want it, and it wants it again once the window manager has put it on screen.
pub fn show_unfocused(window: &WebviewWindow) -> tauri::Result<()> {
    let window = window.gtk_window()?;
    // Set to something else first: what it is already changes nothing, and the window would come with the time at which
    // the user last clicked in it, newer than that of any other.
    window.set_focus_on_map(true);
    window.set_focus_on_map(false);
    window.set_accept_focus(false);
    let handler = Rc::new(Cell::new(None));
    let own = handler.clone();
    // Not when it is first drawn: that may be before the window manager has looked at it.
    handler.set(Some(window.connect_map_event(move |window, _| {
        if let Some(handler) = own.take() {
            window.set_accept_focus(true);
            window.disconnect(handler);
        }
        Propagation::Proceed
    })));
    // One that was made hidden has a hidden page, too.
    window.show_all();
    Ok(())
}

/// Hides the window.
pub fn hide(window: &WebviewWindow) -> tauri::Result<()> {
    window.gtk_window()?.hide();
    Ok(())
}

/// Does something on the main thread after a while. Called there.
pub fn after(app: &AppHandle, time: Duration, work: impl FnOnce(&AppHandle) + Send + 'static) {
    let app = app.clone();
    glib::timeout_add_local_once(time, move || work(&app));
}
