//! A real keychain for one home: gnome-keyring on a D-Bus of its own, without a display.

use std::{
    fs,
    io::Write as _,
    process::{Child, Stdio},
};

use nix::sys::signal::Signal;

use crate::{Home, end, kill, until};

const PASSWORD: &[u8] = b"made up";
const LOGIN: &str = "/org/freedesktop/secrets/collection/login";

/// The keychain. Dropping it ends it; what it keeps stays in the home.
pub struct Keychain<'h> {
    home: &'h Home,
    bus: Child,
    daemon: Option<Child>,
}

impl<'h> Keychain<'h> {
    /// Starts one, unlocked, for everything that is started in this home from now on.
    pub fn start(home: &'h Home) -> Self {
        Self::start_with(home, "")
    }

    /// One whose bus has further rules (dbus-daemon(1), "CONFIGURATION FILE").
    pub fn start_with(home: &'h Home, rules: &str) -> Self {
        let address = format!("unix:path={}/bus", home.runtime().with_file_name("").display()).replace("//", "/");
        // Without directories of services: nothing of this machine is started by the way.
        let config = home.write(
            "bus.conf",
            format!(
                "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>\
                 <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
                 <allow eavesdrop=\"true\"/><allow own=\"*\"/>{rules}</policy></busconfig>"
            ),
        );
        home.set("DBUS_SESSION_BUS_ADDRESS", &address);
        let mut command = home.command("dbus-daemon");
        command.arg(format!("--config-file={}", config.display())).args(["--nofork", "--nopidfile", "--nosyslog"]);
        let bus = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let bus = bus.expect("dbus-daemon is missing: run scripts/setup");
        let mut keychain = Self { home, bus, daemon: None };
        keychain.unlock();
        keychain
    }

    fn send(&self, call: &[&str]) -> crate::Output {
        self.home.run("dbus-send", &[&["--session", "--print-reply", "--reply-timeout=5000"], call].concat())
    }

    /// Starts its daemon anew with the password.
    pub fn unlock(&mut self) {
        self.stop();
        until("there is a bus", || {
            (self.send(&["--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.GetId"]).code == 0).then_some(())
        });
        let mut command = self.home.command("gnome-keyring-daemon");
        command.args(["--foreground", "--unlock", "--components=secrets"]).stdin(Stdio::piped());
        let daemon = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut daemon = daemon.expect("gnome-keyring-daemon is missing: run scripts/setup");
        daemon.stdin.take().expect("a pipe").write_all(PASSWORD).expect("the password");
        self.daemon = Some(daemon);
        until("the keychain has its name", || {
            let owner = [
                "--dest=org.freedesktop.DBus",
                "/",
                "org.freedesktop.DBus.GetNameOwner",
                "string:org.freedesktop.secrets",
            ];
            (self.send(&owner).code == 0).then_some(())
        });
    }

    /// Has it answer nobody, or everybody again.
    pub fn hold(&self, held: bool) {
        let daemon = self.daemon.as_ref().expect("a daemon");
        kill(i32::try_from(daemon.id()).expect("a pid"), if held { Signal::SIGSTOP } else { Signal::SIGCONT });
    }

    /// Locks it. Nobody is there to unlock it when it asks.
    #[track_caller]
    pub fn lock(&self) {
        let collections = format!("array:objpath:{LOGIN}");
        let lock = "org.freedesktop.Secret.Service.Lock";
        self.send(&["--dest=org.freedesktop.secrets", "/org/freedesktop/secrets", lock, &collections]).expect_code(0);
    }

    /// Ends its daemon; the bus stays.
    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            end(&mut daemon);
        }
    }

    /// Where its files are. They are encrypted with its password.
    pub fn files(&self) -> Vec<Vec<u8>> {
        let all = fs::read_dir(self.home.path().join(".local/share/keyrings")).into_iter().flatten().flatten();
        all.filter_map(|e| fs::read(e.path()).ok()).collect()
    }
}

impl Drop for Keychain<'_> {
    fn drop(&mut self) {
        self.stop();
        end(&mut self.bus);
    }
}
