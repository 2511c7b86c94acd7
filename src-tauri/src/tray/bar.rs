//! Systems whose bar shows every program's icon, once it is there itself.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tauri::{AppHandle, Manager};

use crate::windows;

/// A bar that is not there yet, as Windows' may be just after the login, is looked for again after this.
const PAUSE: Duration = Duration::from_secs(5);
/// So many times. Where there is none by then, there is none.
const TRIES: u32 = 60;

/// Where icons are shown: in the menu bar, or in the notification area.
#[derive(Debug, Default)]
pub struct Hosts {
    refused: AtomicBool,
}

impl Hosts {
    /// Whether the icon is shown.
    pub fn show_icons(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }
}

/// Nobody has to be watched: an icon that is shown once comes back with the bar.
pub fn watch(_: &AppHandle) {}

/// The icon could not be shown. Home says so, the app goes on, and it is tried again.
pub fn refused(app: &AppHandle, why: tauri::Error) -> tauri::Result<()> {
    crate::app::complain(&format!("the tray cannot be shown yet: {why}"));
    app.state::<Hosts>().refused.store(true, Ordering::Relaxed);
    later(app, TRIES);
    Ok(())
}

fn later(app: &AppHandle, tries: u32) {
    windows::after(app, PAUSE, move |app| match super::show_icon(app) {
        Ok(()) => {
            app.state::<Hosts>().refused.store(false, Ordering::Relaxed);
            super::refresh(app);
            windows::problems(app);
        }
        Err(_) if tries > 1 => later(app, tries - 1),
        Err(why) => crate::app::complain(&format!("the tray cannot be shown: {why}")),
    });
}
