//! A server whose client was started in a terminal, as root (where the tests are) and as an ordinary user.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::process::{Command, Stdio};

use common::{Setup, grant, users};
use firedoor_model::launch::Access;
use nix::{
    pty::{OpenptyResult, openpty},
    unistd::{Uid, fchown, read, write},
};

const PYTHON: &str = "/usr/bin/python3";
/// Tries what would give the keyboard away, and says on its errors that it is there.
const SERVER: &str = r#"
import errno, fcntl, os, signal, termios
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def say(name, call):
    try: result = call()
    except OSError as e: result = errno.errorcode[e.errno]
    except termios.error as e: result = errno.errorcode[e.args[0]]
    print(f"{name}={result}")
def no_echo():
    what = termios.tcgetattr(2)
    what[3] &= ~termios.ECHO
    termios.tcsetattr(2, termios.TCSANOW, what)
say("terminal", lambda: os.isatty(2))
say("size", lambda: len(fcntl.ioctl(2, termios.TIOCGWINSZ, bytes(8))))
say("read", lambda: os.read(2, 100))
say("no echo", no_echo)
say("forget", lambda: termios.tcflush(2, termios.TCIFLUSH))
say("type", lambda: fcntl.ioctl(2, termios.TIOCSTI, b"x"))
say("again", lambda: os.open("/proc/self/fd/2", os.O_RDONLY))
say("read output", lambda: os.read(1, 100))
say("write", lambda: os.write(2, b"here\n"))
"#;

#[test]
fn a_server_does_not_read_the_keyboard_through_its_errors() {
    for user in users() {
        for reachable in [true, false] {
            if user.is_none() && !reachable {
                continue;
            }
            let mut setup = Setup::new(user);
            setup.step.program = PYTHON.into();
            setup.step.args = ["-I", "-c", SERVER].map(Into::into).into();
            setup.step.confinement.grants.push(grant("/proc/self/fd", Access::Read));
            let OpenptyResult { master, slave } = openpty(None, None).unwrap();
            if reachable {
                fchown(&slave, user.map(Uid::from_raw), None).unwrap();
            }
            // Typed before anybody reads.
            write(&master, b"secret\n").unwrap();
            let mut command: Command = setup.command(&[]);
            command.stdin(Stdio::null()).stderr(slave.try_clone().unwrap());
            let output = command.output().unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let want = |there: bool| {
                // `/dev/null` may be opened.
                let (terminal, size, no_echo, again) =
                    if there { ("True", "8", "EPERM", "EACCES") } else { ("False", "ENOTTY", "ENOTTY", "3") };
                format!(
                    "terminal={terminal}\nsize={size}\nread=EBADF\nno echo={no_echo}\nforget=EPERM\ntype=EPERM\n\
                     again={again}\nread output=EBADF\nwrite=5\n"
                )
            };
            assert_eq!(stdout, want(reachable), "as {user:?}, reachable {reachable}");
            let mut shown = [0; 200];
            let length = read(&master, &mut shown).unwrap();
            let shown = String::from_utf8_lossy(&shown[..length]).into_owned();
            assert_eq!(shown.contains("here"), reachable, "{shown}");
        }
    }
}
