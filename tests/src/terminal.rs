//! A person at a terminal.

use std::{
    fs::File,
    io::{ErrorKind, Read as _, Write as _},
    process::Stdio,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    pty::openpty,
    sys::termios::{LocalFlags, tcgetattr},
    unistd::ttyname,
};

use crate::{Home, Output, until, until_within};

/// Runs `firedoor` in a terminal of its own, and types a line each time it asks for one without showing what is typed.
#[track_caller]
pub fn at_a_terminal(home: &Home, args: &[&str], lines: &[&str]) -> Output {
    let pty = openpty(None, None).expect("a terminal");
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a flag of a descriptor");
    }
    // Its end may be held by whatever was started meanwhile, so it is not waited for.
    fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a flag of a terminal");
    home.own(&ttyname(&pty.slave).expect("a terminal has a name"));
    let slave = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    let mut command = home.command("setsid");
    // With --ctty the terminal on its stdin is its own.
    command.arg("--ctty").arg(home.program("firedoor")).args(args);
    let mut child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().expect("setsid");
    let mut master = File::from(pty.master);
    let mut said = Vec::new();
    let mut hear = |master: &mut File| {
        let mut piece = [0; 4096];
        loop {
            match master.read(&mut piece) {
                Ok(n @ 1..) => said.extend_from_slice(&piece[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
            }
        }
    };
    let quiet = || !tcgetattr(&pty.slave).expect("a terminal").local_flags.contains(LocalFlags::ECHO);
    for line in lines {
        until("it asks without showing the answer", || {
            hear(&mut master);
            quiet().then_some(())
        });
        writeln!(master, "{line}").expect("a terminal takes a line");
        until("it has read the answer", || {
            hear(&mut master);
            (!quiet()).then_some(())
        });
    }
    let status = until_within(Duration::from_secs(120), || {
        hear(&mut master);
        child.try_wait().expect("waitpid")
    });
    if status.is_none() {
        let _ = child.kill();
    }
    let status = status.expect("it ends");
    hear(&mut master);
    Output {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&said).into_owned(),
        stderr: String::new(),
    }
}
