//! Whether this desktop shows tray icons at all.
//!
//! An icon goes to a StatusNotifier host (KDE's panel, GNOME's extension and others), which registers with a watcher on the
//! session bus. Where there is no watcher, libayatana-appindicator shows the icon in an XEmbed tray, if the display is X11 and
//! has one. A watcher without a host, as a KDE panel without its tray leaves one, shows nothing anywhere.

use std::{error::Error, sync::Mutex, thread};

use gtk::{
    gdk::{self, prelude::DisplayExtManual as _},
    gio::{self, BusNameWatcherFlags, BusType, Cancellable, DBusCallFlags, DBusConnection, DBusSignalFlags},
    glib::{Variant, VariantTy, prelude::ToVariant as _},
};
use tauri::{AppHandle, Manager};
use x11rb::{
    NONE,
    connection::Connection as _,
    protocol::{
        Event,
        xfixes::{ConnectionExt as _, SelectionEventMask},
        xproto::ConnectionExt as _,
    },
};

use crate::{app, known::lock, windows};

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const WATCHER_PATH: &str = "/StatusNotifierWatcher";
/// For the watcher's answer, in milliseconds.
const PATIENCE: i32 = 5_000;

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Hosts(Mutex<Seen>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    watcher: Watcher,
    /// Whether an XEmbed tray is there, once that is known.
    embeds: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Watcher {
    /// Not known yet.
    #[default]
    Unknown,
    /// Nobody watches for icons.
    Absent,
    /// With a host or without one.
    There { host: bool },
}

impl Hosts {
    /// Whether icons are shown. Before it is known nobody is alarmed.
    pub fn show_icons(&self) -> bool {
        lock(&self.0).show_icons()
    }
}

impl Seen {
    fn show_icons(self) -> bool {
        match self.watcher {
            Watcher::Unknown => true,
            Watcher::There { host } => host,
            Watcher::Absent => self.embeds.unwrap_or(true),
        }
    }

    /// The watcher's answer, which says nothing once that is gone: GNOME's extension announces that its host goes and is off the bus
    /// before it can be asked, so that an error comes after the news that it went.
    fn answered(&mut self, host: bool) {
        if self.watcher != Watcher::Absent {
            self.watcher = Watcher::There { host };
        }
    }
}

/// The icon could not be made. Where it is shown changes with the desktop, but one can always be made, so this is no place to go on.
pub fn refused(_: &AppHandle, why: tauri::Error) -> tauri::Result<()> {
    Err(why)
}

/// Looks for as long as the app runs. Called on the main thread.
pub fn watch(app: &AppHandle) {
    watch_bus(app);
    let told = app.clone();
    // An X server beside Wayland may have a tray, but this app's icon does not get there.
    if gdk::Display::default().is_none_or(|display| !display.backend().is_x11()) {
        see(app, |seen| seen.embeds = Some(false));
        return;
    }
    let spawned = thread::Builder::new().name("tray".into()).spawn(move || {
        let tell = |there| see(&told, |seen| seen.embeds = Some(there));
        if let Err(e) = watch_display(&tell) {
            app::complain(&format!("whether there is an XEmbed tray is not known: {e}"));
            tell(false);
        }
    });
    if let Err(e) = spawned {
        app::complain(&format!("whether there is an XEmbed tray is not known: {e}"));
    }
}

fn see(app: &AppHandle, change: impl FnOnce(&mut Seen)) {
    let hosts = app.state::<Hosts>();
    let mut seen = lock(&hosts.0);
    let before = seen.show_icons();
    change(&mut seen);
    let now = seen.show_icons();
    drop(seen);
    if before != now {
        windows::changed(app);
    }
}

fn watch_bus(app: &AppHandle) {
    let app = app.clone();
    gio::bus_get(BusType::Session, Cancellable::NONE, move |bus| {
        let bus = match bus {
            Ok(bus) => bus,
            Err(e) => {
                app::complain(&format!("there is no session bus, and so no tray that is found by it: {e}"));
                see(&app, |seen| seen.watcher = Watcher::Absent);
                return;
            }
        };
        for signal in ["StatusNotifierHostRegistered", "StatusNotifierHostUnregistered"] {
            let app = app.clone();
            let (of, at) = (Some(WATCHER), Some(WATCHER_PATH));
            bus.signal_subscribe(of, of, Some(signal), at, None, DBusSignalFlags::NONE, move |bus, _, _, _, _, _| {
                ask(bus, &app);
            });
        }
        let gone = app.clone();
        gio::bus_watch_name_on_connection(
            &bus,
            WATCHER,
            BusNameWatcherFlags::NONE,
            move |bus, _, _| {
                see(&app, |seen| seen.watcher = Watcher::Unknown);
                ask(&bus, &app);
            },
            move |_, _| see(&gone, |seen| seen.watcher = Watcher::Absent),
        );
    });
}

/// Asks the watcher whether it has a host. One that does not say is taken to have one: it would not be there for nothing.
fn ask(bus: &DBusConnection, app: &AppHandle) {
    let app = app.clone();
    let of = (WATCHER, "IsStatusNotifierHostRegistered").to_variant();
    bus.call(
        Some(WATCHER),
        WATCHER_PATH,
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&of),
        VariantTy::new("(v)").ok(),
        DBusCallFlags::NONE,
        PATIENCE,
        Cancellable::NONE,
        move |said| {
            let host = said.map_or(true, |said| has_host(&said));
            see(&app, |seen| seen.answered(host));
        },
    );
}

fn has_host(said: &Variant) -> bool {
    said.get::<(Variant,)>().and_then(|(value,)| value.get::<bool>()).unwrap_or(true)
}

/// Tells whether an XEmbed tray is there, and again whenever that changes: whoever owns the selection is one (System Tray Protocol
/// Specification 0.3). An owner that gives it up keeps its window, so that no news of windows would do (XFIXES, Selection Tracking).
fn watch_display(tell: &impl Fn(bool)) -> Result<(), Box<dyn Error>> {
    let (display, screen) = x11rb::connect(None)?;
    let root = display.setup().roots.get(screen).ok_or("the display has no screen")?.root;
    let tray = display.intern_atom(false, format!("_NET_SYSTEM_TRAY_S{screen}").as_bytes())?.reply()?.atom;
    // Versions are exchanged before anything else.
    display.xfixes_query_version(5, 0)?.reply()?;
    let changes = SelectionEventMask::SET_SELECTION_OWNER
        | SelectionEventMask::SELECTION_WINDOW_DESTROY
        | SelectionEventMask::SELECTION_CLIENT_CLOSE;
    display.xfixes_select_selection_input(root, tray, changes)?.check()?;
    loop {
        tell(display.get_selection_owner(tray)?.reply()?.owner != NONE);
        while !matches!(display.wait_for_event()?, Event::XfixesSelectionNotify(_)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_after_the_watcher_went_counts_for_nothing() {
        for host in [true, false] {
            let mut seen = Seen { watcher: Watcher::Absent, embeds: Some(false) };
            seen.answered(host);
            assert_eq!(seen.watcher, Watcher::Absent);
            seen.watcher = Watcher::Unknown;
            seen.answered(host);
            assert_eq!(seen.watcher, Watcher::There { host });
        }
    }

    #[test]
    fn an_icon_is_where_somebody_shows_it() {
        for (watcher, embeds, want) in [
            (Watcher::Unknown, Some(false), true),
            (Watcher::Absent, None, true),
            (Watcher::Absent, Some(false), false),
            (Watcher::Absent, Some(true), true),
            (Watcher::There { host: true }, Some(false), true),
            // The icon has gone to the watcher, and nowhere else.
            (Watcher::There { host: false }, Some(true), false),
        ] {
            assert_eq!(Seen { watcher, embeds }.show_icons(), want, "{watcher:?}, {embeds:?}");
        }
    }

    #[test]
    fn a_watcher_that_says_something_else_is_taken_to_have_a_host() {
        for (said, want) in [
            ((true.to_variant(),).to_variant(), true),
            ((false.to_variant(),).to_variant(), false),
            (("no".to_variant(),).to_variant(), true),
            ("".to_variant(), true),
        ] {
            assert_eq!(has_host(&said), want, "{said}");
        }
    }
}
