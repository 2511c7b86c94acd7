//! `firedoor daemon`.

use std::{
    cell::Cell,
    env,
    process::{Command, ExitCode, Stdio},
};

use firedoor_clients::verify::{Apart, protect_apart};
use firedoor_engine::screens_of_the_user;
use firedoor_ipc::endpoint;
use firedoor_model::{
    EntryId,
    paths::{Paths, sibling},
};

use crate::{engine::paths, failure::Failure, output};

#[cfg_attr(unix, path = "daemon/unix.rs")]
#[cfg_attr(windows, path = "daemon/windows.rs")]
mod system;

/// Runs the engine here, or in the background.
pub fn run(background: bool, child: bool) -> Result<ExitCode, Failure> {
    system::take_signals()?;
    if background {
        return detach();
    }
    let paths = paths()?;
    let ready = Cell::new(false);
    let say = || {
        ready.set(true);
        if child {
            output::line("ready");
            show_desktop(&paths);
        }
    };
    match firedoor_engine::run(paths.clone(), protect, say) {
        // Whoever started us waits for it, and says it.
        Err(e) if child && !ready.get() => {
            output::line(&e.to_string());
            Ok(ExitCode::from(Failure::from(e).code))
        }
        ended => ended.map(|()| ExitCode::SUCCESS).map_err(Failure::from),
    }
}

/// How the engine protects a server by itself.
fn protect(entries: &[EntryId]) -> Result<Apart, String> {
    protect_apart(&env::current_exe().map_err(|e| e.to_string())?, entries)
}

/// Starts the desktop app beside an engine that a shim started, where there is a screen of the user's to ask on, and nowhere
/// else. It ends with this engine. Without the app questions are answered on the command line.
fn show_desktop(paths: &Paths) {
    let Ok(app) = sibling("firedoor-desktop") else { return };
    let screens = screens_of_the_user(paths, |name| env::var_os(name));
    if !screens.is_empty() && app.is_file() {
        let mut command = Command::new(&app);
        command.args(["--beside", &std::process::id().to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        for name in ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().filter(|name| !screens.contains(name)) {
            command.env_remove(name);
        }
        match command.spawn() {
            // Whatever becomes of it, it must not stay behind as a dead entry in the process table.
            Ok(mut app) => drop(std::thread::spawn(move || app.wait())),
            Err(e) => output::error(&format!("{}: cannot be started: {e}", app.display())),
        }
    }
}

/// Leaves the session of whoever started us and hands over to a child, which then has no parent: it lives on when that
/// session ends, and does not count as the client's descendant. Ends when that child listens, or has said why it cannot.
fn detach() -> Result<ExitCode, Failure> {
    system::leave_session();
    let own = env::current_exe().map_err(|e| Failure::environment(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(own);
    command.args(["daemon", "--child"]);
    system::apart(&mut command);
    endpoint::start_apart(&paths()?, command)?;
    output::line("ready");
    Ok(ExitCode::SUCCESS)
}
