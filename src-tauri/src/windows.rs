//! The two windows. The main one is made when it is needed and destroyed when it is closed; the question's is kept ready for a
//! while (`prompt`).

mod prompt;
mod shell;

use tauri::{AppHandle, Emitter, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};

use crate::known::lock;

pub use prompt::{Turns, close_prompt, fit, prompt, recall_prompt};
#[cfg(not(target_os = "linux"))]
pub use shell::after;
pub use shell::{PAGES_MISSING, before_start};

/// Why no window opens, if that is so: Windows 10 may lack what shows pages, and then nothing but the tray can say so.
pub fn cannot_open() -> Option<&'static str> {
    let lacking = cfg!(windows) && tauri::webview_version().is_err();
    lacking.then_some("No window opens: Microsoft's WebView2 runtime is missing")
}

/// Label of the question window, as its capability names it.
const PROMPT: &str = "prompt";
/// Label of the main window.
const MAIN: &str = "main";

/// Told to both windows: what they show is no longer what is.
const CHANGED: &str = "changed";

/// Which part of the main window is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum View {
    #[default]
    Home,
    Activity,
    Servers,
    Rules,
    Settings,
    /// Home, with the question whether to pause.
    Pause,
    /// What would be protected: of everything, or of one client.
    Protect {
        app: Option<String>,
    },
    /// What would be given back.
    Restore {
        app: Option<String>,
    },
}

/// Addresses of ours. Every web page can hand one over, so they open a view and do nothing else.
const SCHEME: &str = "firedoor://";

impl View {
    const NAMED: [(&str, Self); 5] = [
        ("home", Self::Home),
        ("activity", Self::Activity),
        ("servers", Self::Servers),
        ("rules", Self::Rules),
        ("settings", Self::Settings),
    ];

    /// The view that an address names; `None` when it names none. Browsers end it with a slash.
    pub fn of_address(address: &str) -> Option<Self> {
        let name = address.strip_prefix(SCHEME)?;
        Self::named(name.strip_suffix('/').unwrap_or(name))
    }

    /// The view of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find_map(|(known, view)| (known == name).then_some(view))
    }

    /// Its name, if an address can name it.
    pub fn name(&self) -> Option<&'static str> {
        Self::NAMED.iter().find_map(|(name, view)| (view == self).then_some(*name))
    }
}

/// The view that the tray asked for, until the window has fetched it.
#[derive(Debug, Default)]
pub struct Wanted(std::sync::Mutex<Option<View>>);

impl Wanted {
    /// Once.
    pub fn take(&self) -> Option<View> {
        lock(&self.0).take()
    }
}

/// Opens the main window, in front, at a view.
pub fn main_at(app: &AppHandle, view: View) {
    *lock(&app.state::<Wanted>().0) = Some(view);
    on_main_thread(app, |app| {
        if let Some(window) = app.get_webview_window(MAIN) {
            front(app, &window);
            return;
        }
        let built = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("main.html".into()))
            .title("Firedoor")
            .inner_size(1100.0, 720.0)
            .min_inner_size(420.0, 360.0)
            .on_navigation(ours)
            .build();
        if let Some(window) = made(app, built) {
            let closing = app.clone();
            window.on_window_event(move |event| {
                if matches!(event, WindowEvent::Destroyed) {
                    prompt::main_closed(&closing);
                }
            });
            let ended = app.clone();
            shell::watch_page(&window, move || main_ended(&ended));
            prompt::prepare_soon(app);
        }
    });
}

/// The page of the main window has ended by itself: an empty window would say nothing.
fn main_ended(app: &AppHandle) {
    crate::app::complain("the page of the main window has ended; open it again from the tray");
    on_main_thread(app, |app| {
        if let Some(window) = app.get_webview_window(MAIN) {
            destroy(&window);
        }
    });
}

/// The page of a window has ended by itself, on systems that tell the app so.
#[cfg(target_os = "macos")]
pub fn page_ended(app: &AppHandle, label: &str) {
    match label {
        PROMPT => prompt::page_ended(app),
        _ => main_ended(app),
    }
}

fn destroy(window: &WebviewWindow) {
    if let Err(e) = window.destroy() {
        crate::app::complain(&format!("the window {} could not be closed: {e}", window.label()));
    }
}

/// Both windows look again.
pub fn changed(app: &AppHandle) {
    tell(app, MAIN);
    tell(app, PROMPT);
}

/// The main window looks again: something could not be shown.
pub fn problems(app: &AppHandle) {
    tell(app, MAIN);
}

fn tell(app: &AppHandle, label: &str) {
    // A window that is closing right now need not know.
    let _ = app.emit_to(label, CHANGED, ());
}

/// Windows show what is in this program and nothing else.
fn ours(url: &tauri::Url) -> bool {
    is_ours(url, cfg!(windows))
}

/// WebView2 knows no schemes of an application, so tauri serves the pages at a host there that never reaches a network.
fn is_ours(url: &tauri::Url, windows: bool) -> bool {
    let (scheme, host) = if windows { ("http", "tauri.localhost") } else { ("tauri", "localhost") };
    url.scheme() == scheme && url.host_str() == Some(host) && url.port().is_none()
}

fn front(app: &AppHandle, window: &WebviewWindow) {
    if let Err(e) = window.unminimize().and_then(|()| window.show()).and_then(|()| window.set_focus()) {
        crate::app::complain(&format!("the window {} could not be shown: {e}", window.label()));
    }
    tell(app, window.label());
}

fn made(app: &AppHandle, built: tauri::Result<WebviewWindow>) -> Option<WebviewWindow> {
    match built {
        Ok(window) => Some(window),
        Err(e) => {
            crate::app::complain(&format!("a window could not be opened: {e}; answer with `firedoor pending`"));
            crate::tray::refresh(app);
            None
        }
    }
}

fn on_main_thread(app: &AppHandle, act: impl FnOnce(&AppHandle) + Send + 'static) {
    let handle = app.clone();
    // It fails only when the app is ending, and then there is nothing to show.
    let _ = app.run_on_main_thread(move || act(&handle));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_open_views_only() {
        for (address, want) in [
            ("firedoor://home", Some(View::Home)),
            ("firedoor://activity/", Some(View::Activity)),
            ("firedoor://settings", Some(View::Settings)),
            ("firedoor://restore", None),
            ("firedoor://pause", None),
            ("firedoor://home/?answer=allow", None),
            ("firedoor:///home", None),
            ("firedoor://", None),
            ("https://home", None),
            ("home", None),
        ] {
            assert_eq!(View::of_address(address), want, "{address}");
        }
        for (name, view) in View::NAMED {
            assert_eq!((View::named(name), view.name()), (Some(view.clone()), Some(name)));
        }
        assert_eq!(View::Pause.name(), None);
    }

    #[test]
    fn windows_go_nowhere() {
        for (url, elsewhere, windows) in [
            ("tauri://localhost/main.html", true, false),
            ("http://tauri.localhost/prompt.html?x", false, true),
            ("http://tauri.localhost:8080/", false, false),
            ("http://a@tauri.localhost.example/", false, false),
            ("https://tauri.localhost/", false, false),
            ("https://example.com/", false, false),
            ("http://localhost/", false, false),
            ("tauri://elsewhere/", false, false),
            ("file:///etc/passwd", false, false),
            ("about:blank", false, false),
        ] {
            let url = url.parse().unwrap();
            assert_eq!((is_ours(&url, false), is_ours(&url, true)), (elsewhere, windows), "{url}");
        }
    }
}
