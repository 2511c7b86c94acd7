//! What puts secrets in for a server that does not get them: a process of its own, confined to the hosts of those secrets,
//! which listens before the server starts and ends with it.

use std::{
    ffi::OsString,
    io::{self, PipeReader, PipeWriter, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use firedoor_model::{
    broker::{Brokered, Notice, Said, Start},
    launch::{Network, Step},
    network::{Host, HostGrant, Port},
    remote::MAX_INSTRUCTIONS,
};
use firedoor_sandbox::{Launch, Stderr, Tree};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

/// For it to listen.
const LIMIT: Duration = Duration::from_secs(10);

/// Longest line that it says.
const MAX_LINE: usize = 16 << 10;

/// The running process. Dropped after the server's own tree: what reaps that must not take this for an orphan of the server.
pub struct Broker {
    // Held, not used: an end of its input ends it, and so does the end of its tree.
    _input: PipeWriter,
    _tree: Tree,
    output: PipeReader,
    line: Vec<u8>,
    closed: bool,
}

impl Broker {
    /// Starts it, and waits until it listens. Gives its port.
    pub fn start(start: &Start) -> Result<(Self, u16), String> {
        let failed = |e: io::Error| format!("what puts the server's secrets in cannot be started: {e}");
        let mut line = serde_json::to_vec(&start.brokered).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        // More might not fit, and nobody reads yet.
        if line.len() > MAX_INSTRUCTIONS {
            return Err("the server's secrets are too long for broker mode: see `firedoor broker list`".into());
        }
        let (stdin, mut input) = io::pipe().map_err(failed)?;
        let (output, stdout) = io::pipe().map_err(failed)?;
        input.write_all(&line).map_err(failed)?;
        let launch = Launch {
            step: &start.step,
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: Stderr::Inherit,
            observe: false,
        };
        let tree = firedoor_sandbox::spawn(launch).map_err(|e| format!("broker mode is not possible here: {e}"))?;
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| failed(e.into()))?;
        let mut broker = Self { _input: input, _tree: tree, output, line: Vec::new(), closed: false };
        let port = broker.port()?;
        Ok((broker, port))
    }

    fn port(&mut self) -> Result<u16, String> {
        let deadline = Instant::now() + LIMIT;
        while !self.closed && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut ready, PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX));
            match self.next() {
                Some(Said::Listens { port }) => return Ok(port),
                Some(Said::Failed { why }) => return Err(format!("broker mode is not possible: {why}")),
                Some(Said::Noticed(_)) | None => {}
            }
        }
        Err("what puts the server's secrets in did not start; the server was not started without it".into())
    }

    /// To be polled, as long as it may say something.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.output.as_fd())
    }

    /// What it has noticed since. Says so where it has ended: the server can then not use its secrets.
    pub fn hear(&mut self) -> Vec<Notice> {
        let was_open = !self.closed;
        let mut heard = Vec::new();
        while let Some(said) = self.next() {
            if let Said::Noticed(notice) = said {
                heard.push(notice);
            }
        }
        if was_open && self.closed {
            crate::say("what puts this server's secrets in has ended: restart the server");
        }
        heard
    }

    /// The next line. It says few (`MAX_NOTICES`); one that is no such word is passed over.
    fn next(&mut self) -> Option<Said> {
        let mut chunk = [0; 4096];
        loop {
            while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                if let Ok(said) = serde_json::from_slice(&line) {
                    return Some(said);
                }
            }
            if self.closed || self.line.len() > MAX_LINE {
                self.closed = true;
                return None;
            }
            match self.output.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(count) => self.line.extend(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => self.closed = true,
            }
        }
    }
}

/// Tells a server where its services are, and lets it reach that.
pub fn lead(step: &mut Step, brokered: &[Brokered], port: u16) {
    for Brokered { route, key, .. } in brokered {
        let name = OsString::from(&route.variable);
        step.env.retain(|(known, _)| *known != name);
        step.env.push((name, format!("http://127.0.0.1:{port}/{key}").into()));
    }
    if let Network::Hosts(hosts) = &mut step.confinement.network {
        let host = Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        hosts.allowed.push(HostGrant { host, port: Some(Port::Tcp(port)) });
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{broker::Route, launch::Confinement, network::Hosts};

    use super::*;

    #[test]
    fn a_server_is_led_to_the_listener_and_nowhere_else() {
        let confinement = Confinement {
            grants: Vec::new(),
            network: Network::Hosts(Hosts::default()),
            protected: Default::default(),
            sockets: Vec::new(),
            limits: Default::default(),
        };
        let env = vec![("BASE".into(), "https://a.example".into()), ("OTHER".into(), "x".into())];
        let mut step = Step { program: "/x".into(), args: Vec::new(), env, cwd: "/".into(), confinement };
        let route =
            Route { secret: "T".into(), variable: "BASE".into(), url: "https://a.example".into(), header: "x".into() };
        let one = Brokered { route, key: "key".into(), placeholder: "p".into(), secret: "s".into() };
        lead(&mut step, &[one], 7);
        let want = [("OTHER", "x"), ("BASE", "http://127.0.0.1:7/key")].map(|(n, v)| (n.into(), v.into()));
        assert_eq!(step.env, want);
        let Network::Hosts(hosts) = &step.confinement.network else { panic!() };
        assert_eq!(hosts.allowed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:7"]);
    }
}
