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
    broker::{Brokered, Intercepts, Notice, Said, Start},
    launch::{Network, Step},
    network::{Host, HostGrant, Led, Port},
    remote::MAX_INSTRUCTIONS,
};
use firedoor_sandbox::{Launch, Stderr, Tree};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

use crate::trust::Files;

/// For it to listen.
const LIMIT: Duration = Duration::from_secs(10);

/// Longest line that it says.
const MAX_LINE: usize = 16 << 10;

/// The running process. Dropped after the server's own tree: what reaps that must not take this for an orphan of the server.
pub struct Broker {
    // Held, not used: an end of its input ends it, and so does the end of its tree.
    _input: PipeWriter,
    _tree: Tree,
    _files: Option<Files>,
    output: PipeReader,
    line: Vec<u8>,
    closed: bool,
}

impl Broker {
    /// Starts it, waits until it listens, and leads the server there.
    pub fn start(start: &Start, server: &mut Step) -> Result<Self, String> {
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
        if !tree.outcome().judged {
            return Err(
                "broker mode is not possible on this machine, where connections cannot be judged one by one: see \
                        `firedoor sandbox doctor`"
                    .into(),
            );
        }
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| failed(e.into()))?;
        let mut broker = Self { _input: input, _tree: tree, _files: None, output, line: Vec::new(), closed: false };
        let (port, intercepts) = broker.listens()?;
        lead(server, start, port);
        broker._files = intercept(server, start, intercepts)?;
        Ok(broker)
    }

    fn listens(&mut self) -> Result<(Option<u16>, Option<Intercepts>), String> {
        let deadline = Instant::now() + LIMIT;
        while !self.closed && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut ready, PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX));
            match self.next() {
                Some(Said::Listens { port, intercepts }) => return Ok((port, intercepts)),
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
fn lead(step: &mut Step, start: &Start, port: Option<u16>) {
    let Some(port) = port else { return };
    for Brokered { route, key, .. } in start.brokered.iter().filter(|one| !one.route.intercept) {
        let name = OsString::from(&route.variable);
        step.env.retain(|(known, _)| *known != name);
        step.env.push((name, format!("http://127.0.0.1:{port}/{key}").into()));
    }
    if let Network::Hosts(hosts) = &mut step.confinement.network {
        let host = Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        hosts.allowed.push(HostGrant { host, port: Some(Port::Tcp(port)) });
    }
}

/// Leads a server's own connections there, and has it trust what it finds. The server itself may not reach that port.
fn intercept(step: &mut Step, start: &Start, there: Option<Intercepts>) -> Result<Option<Files>, String> {
    let Some(wanted) = &start.interception else { return Ok(None) };
    let (Some(Intercepts { port, authority }), Network::Hosts(hosts)) = (there, &mut step.confinement.network) else {
        return Err("the server's connections cannot be intercepted; it was not started without that".into());
    };
    hosts.led.extend(wanted.led.iter().map(|led| Led { at: port, ..led.clone() }));
    let files = Files::write(wanted, &authority)
        .map_err(|why| format!("the server cannot be told whose certificates to trust, and was not started: {why}"))?;
    files.tell(&wanted.variables, step);
    Ok(Some(files))
}

#[cfg(test)]
mod tests {
    use firedoor_model::{
        broker::{Interception, Route},
        launch::Confinement,
        network::Hosts,
    };

    use super::*;

    fn step() -> Step {
        let confinement = Confinement {
            grants: Vec::new(),
            network: Network::Hosts(Hosts::default()),
            protected: Default::default(),
            sockets: Vec::new(),
            own: Vec::new(),
            limits: Default::default(),
        };
        let env = vec![("BASE".into(), "https://a.example".into()), ("OTHER".into(), "x".into())];
        Step { program: "/x".into(), args: Vec::new(), env, cwd: "/".into(), confinement }
    }

    fn start(routes: &[(&str, bool)], interception: Option<Interception>) -> Start {
        let one = |(variable, intercept): &(&str, bool)| {
            let (variable, url, header) = ((*variable).into(), "https://a.example".into(), "x".into());
            let route = Route { secret: "T".into(), variable, url, header, intercept: *intercept };
            Brokered { route, key: "key".into(), placeholder: "p".into(), secret: "s".into() }
        };
        Start { step: step(), brokered: routes.iter().map(one).collect(), interception }
    }

    #[test]
    fn a_server_is_led_to_the_listener_and_nowhere_else() {
        let mut step = step();
        lead(&mut step, &start(&[("BASE", false), ("", true)], None), Some(7));
        let want = [("OTHER", "x"), ("BASE", "http://127.0.0.1:7/key")].map(|(n, v)| (n.into(), v.into()));
        assert_eq!(step.env, want);
        let Network::Hosts(hosts) = &step.confinement.network else { panic!() };
        assert_eq!(hosts.allowed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:7"]);
        assert!(hosts.led.is_empty());
    }

    #[test]
    fn its_own_connections_are_led_where_it_cannot_go_itself() {
        let dir = std::env::temp_dir().join(format!("firedoor-led-{}", std::process::id()));
        let led = Led { name: "a.example".into(), port: 443, at: 0, key: "key".into() };
        let variables = vec![("TRUST".into(), firedoor_model::broker::Holds::Authority)];
        let wanted = Interception { led: vec![led], directory: dir.clone(), roots: Vec::new(), variables };
        let start = start(&[("", true)], Some(wanted));
        let there = || Some(Intercepts { port: 8, authority: "ours".into() });
        let mut led = step();
        lead(&mut led, &start, None);
        let files = intercept(&mut led, &start, there()).unwrap();
        let Network::Hosts(hosts) = &led.confinement.network else { panic!() };
        assert!(hosts.allowed.is_empty() && files.is_some());
        assert_eq!((hosts.led[0].at, hosts.led[0].key.as_str()), (8, "key"));
        assert!(led.env.iter().any(|(name, _)| name == "TRUST"));
        // Without the one or the other it is not started.
        assert!(intercept(&mut step(), &start, None).is_err());
        let mut offline = step();
        offline.confinement.network = Network::None;
        assert!(intercept(&mut offline, &start, there()).is_err());
        drop(files);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
