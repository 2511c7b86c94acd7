//! Screens, and who is behind them.
//!
//! A variable such as `DISPLAY` says nothing about it: whoever starts a program sets them. The kernel says which process
//! listens on the socket of a screen.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use firedoor_ipc::process::{self, Process};

use crate::sys::{listener, screens};

/// Where X servers listen, all of the machine's (X(7)).
const X11: &str = "/tmp/.X11-unix";

/// Most sockets that are looked at. Nobody has that many screens.
const MOST: usize = 64;

/// The processes behind the screens that there are: X servers, Wayland compositors whose sockets lie in `runtime` or where systemd
/// puts them, and what draws the screen of a Mac.
pub fn all(runtime: Option<&Path>) -> Vec<Process> {
    let usual = PathBuf::from(format!("/run/user/{}", nix::unistd::getuid()));
    let places = [(Some(Path::new(X11)), "X"), (Some(&*usual), "wayland-"), (runtime, "wayland-")];
    let sockets = places.into_iter().filter_map(|(place, prefix)| Some((fs::read_dir(place?).ok()?, prefix)));
    let sockets = sockets.flat_map(|(names, prefix)| {
        let numbered = move |name: &str| {
            let number = name.strip_prefix(prefix).unwrap_or_default();
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        };
        names
            .flatten()
            .map(|entry| entry.path())
            .filter(move |p| p.file_name().is_some_and(|n| numbered(&n.to_string_lossy())))
    });
    sockets.take(MOST).filter_map(|socket| behind(&socket)).chain(screens()).collect()
}

/// The processes behind the screens that these variables name, each with its variable. One that cannot be known, as of
/// another machine, is none.
pub fn named(var: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, Process)> {
    let wayland = || {
        // wl_display_connect(3): a path, or a name in the runtime directory.
        let socket = PathBuf::from(var("XDG_RUNTIME_DIR").unwrap_or_default()).join(var("WAYLAND_DISPLAY")?);
        Some(("WAYLAND_DISPLAY", behind(&socket)?))
    };
    let x11 = || {
        let display = var("DISPLAY")?.into_string().ok()?;
        let number = display.strip_prefix("unix").unwrap_or(&display).strip_prefix(':')?;
        let number = number.split('.').next().filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))?;
        Some(("DISPLAY", behind(&Path::new(X11).join(format!("X{number}")))?))
    };
    wayland().into_iter().chain(x11()).collect()
}

/// The process that listens on this very socket, if it is root's or ours. X clients try the abstract name first (xcb): when
/// somebody else has that one, it is theirs.
fn behind(socket: &Path) -> Option<Process> {
    let ours = |peer: &process::Peer| peer.uid == 0 || peer.uid == nix::unistd::getuid().as_raw();
    let abstract_first = listener(socket, true);
    let first = abstract_first.or_else(|| listener(socket, false))?;
    ours(&first).then_some(first.process)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::symlink,
            net::{SocketAddr, UnixListener},
        },
    };

    use super::*;

    #[test]
    fn a_screen_is_who_listens_there_under_its_own_name() {
        let root = tempfile::tempdir().unwrap();
        let own = process::stat(std::process::id()).unwrap().process;
        let socket = root.path().join("wayland-0");
        assert!(all(Some(root.path())).iter().all(|process| *process != own));
        let listening = UnixListener::bind(&socket).unwrap();
        assert!(all(Some(root.path())).contains(&own));
        let at = |runtime: &Path, name: &str| {
            let (runtime, name) = (runtime.as_os_str().to_owned(), OsString::from(name));
            named(move |var| match var {
                "XDG_RUNTIME_DIR" => Some(runtime.clone()),
                "WAYLAND_DISPLAY" => Some(name.clone()),
                _ => None,
            })
        };
        assert_eq!(at(root.path(), "wayland-0"), [("WAYLAND_DISPLAY", own)]);
        assert_eq!(at(Path::new("/nonexistent"), &socket.to_string_lossy()), [("WAYLAND_DISPLAY", own)]);
        // Another program's socket, by another name.
        symlink(&socket, root.path().join("wayland-1")).unwrap();
        fs::hard_link(&socket, root.path().join("wayland-2")).unwrap();
        assert_eq!(at(root.path(), "wayland-1"), []);
        assert_eq!(at(root.path(), "wayland-2"), []);
        assert_eq!(all(Some(root.path())).iter().filter(|process| **process == own).count(), 1);
        drop(listening);
        assert_eq!(at(root.path(), "wayland-0"), []);
        // What an X client would reach first.
        let name = SocketAddr::from_abstract_name(socket.as_os_str().as_encoded_bytes()).unwrap();
        let _abstract = UnixListener::bind_addr(&name).unwrap();
        assert_eq!(at(root.path(), "wayland-0"), [("WAYLAND_DISPLAY", own)]);
    }

    #[test]
    fn only_screens_of_this_machine_can_be_known() {
        for display in ["localhost:10.0", "192.0.2.1:0", "", ":", ":x", ":../../run", "unix"] {
            let named = named(|name| (name == "DISPLAY").then(|| OsString::from(display)));
            assert_eq!(named, [], "{display}");
        }
    }
}
