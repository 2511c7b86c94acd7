//! `firedoor login` and `firedoor logout`.

use std::{
    env,
    ffi::OsString,
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::AsFd as _,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use firedoor_clients::Clients;
use firedoor_engine::errand::Errands;
use firedoor_ipc::command::{Reply, Request};
use firedoor_model::{
    EntryId, Untrusted,
    login::{Credentials, Errand, Task, Told},
    network::HostGrant,
    remote::{RemoteRequest, Transport},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    arguments::LoginOptions,
    changes::authorize,
    engine::{Engine, sibling, unexpected},
    failure::Failure,
    keychain, output,
    scan::surroundings,
};

/// For the user to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// For one request of the browser.
const BROWSER: Duration = Duration::from_secs(5);

/// Longest first line of one.
const MAX_REQUEST: u64 = 16 << 10;

/// Where the browser comes back to.
const PATH: &str = "/callback";

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(1000)
}

/// Logs in at an entry's server and keeps what comes of it.
pub fn login(options: LoginOptions) -> Result<ExitCode, Failure> {
    authorize("logging in at a server")?;
    let entry = options.entry;
    let env = surroundings(options.projects)?;
    let url = Clients::load()?.address(&env, &entry).ok_or_else(|| {
        let entry = visible(&entry.to_string());
        Failure::environment(format!("{entry} is no server with an address: see `firedoor scan`"))
    })?;
    // Before the browser opens: nobody else can have it then.
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let redirect = format!("http://{}{PATH}", listener.local_addr()?);
    let keychain = keychain();
    let known = Credentials::load(&*keychain, &entry, &url)?;
    let mut scopes = options.scopes;
    scopes.extend(known.map(|known| known.scopes).unwrap_or_default());
    let mut hosts = firedoor_launch::login_hosts(&url);
    hosts.extend(granted(&entry)?);
    let task = Task::Login { url: url.clone(), redirect, client_id: options.client_id, scopes };
    let mut errands = errand(&entry, url, hosts, &task)?;
    let mut browser = None;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match errands.hear()? {
            Told::Visit { address, issuer } => {
                output::line(&format!("Log in at {} with a browser on this machine:", visible(&issuer)));
                output::line(&visible_address(&address)?);
                open(&address);
            }
            Told::Ignored { why } => answer(browser.take(), false, &why),
            Told::NotNeeded => {
                output::line("The server lets everybody in: there is nothing to log in to.");
                return Ok(ExitCode::SUCCESS);
            }
            Told::Done(credentials) => {
                let kept = credentials.keep(&*keychain, &entry);
                answer(browser.take(), kept.is_ok(), "see the terminal");
                kept?;
                let issuer = visible(&credentials.issuer);
                output::line(&format!(
                    "Logged in. What {issuer} gave is in the keychain, and the server gets it when it wants it."
                ));
                return Ok(ExitCode::SUCCESS);
            }
            Told::Failed { why, .. } => {
                answer(browser.take(), false, &why);
                return Err(Failure::refused(format!("not logged in: {}", visible(&why))));
            }
            Told::Revoked => return Err(unexpected()),
        }
        let (query, from) = returned(&listener, deadline)?;
        errands.say(&query)?;
        browser = Some(from);
    }
}

/// Ends a login: at the issuer, if it can be told, and in the keychain in any case.
pub fn logout(entry: &EntryId) -> Result<ExitCode, Failure> {
    authorize("logging out at a server")?;
    let (keychain, item) = (keychain(), Credentials::item(entry));
    let Some(kept) = keychain.get(&item)? else {
        output::line(&format!("{} is not logged in.", visible(&entry.to_string())));
        return Ok(ExitCode::from(1));
    };
    let revoked =
        serde_json::from_slice::<Credentials>(&kept).map_err(Failure::from).and_then(|known| revoke(entry, known));
    keychain.remove(&item)?;
    match revoked {
        Ok(()) => output::line("Logged out: the issuer was told, and the keychain has nothing of it any more."),
        Err(e) => output::line(&format!(
            "The keychain has nothing of it any more. The issuer was not told: {}",
            visible(&e.text)
        )),
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(entry: &EntryId, known: Credentials) -> Result<(), Failure> {
    let Some(url) = known.revocation_endpoint.clone() else {
        return Err(Failure::refused("it takes no word that a login is over; end it on its own pages"));
    };
    match errand(entry, url, granted(entry)?, &Task::Revoke(Box::new(known)))?.hear()? {
        Told::Revoked => Ok(()),
        Told::Failed { why, .. } => Err(Failure::refused(why)),
        _ => Err(unexpected()),
    }
}

/// Starts the program that does it, with what the environment says about the network.
fn errand(entry: &EntryId, url: String, hosts: Vec<HostGrant>, task: &Task) -> Result<Errands, Failure> {
    let named = |name: &OsString| name.to_str().is_some_and(firedoor_launch::is_about_the_network);
    let request = RemoteRequest {
        entry: entry.clone(),
        url,
        transport: Transport::Auto,
        headers: Vec::new(),
        cwd: "/".into(),
        env: env::vars_os().filter(|(name, _)| named(name)).collect(),
    };
    Ok(Errands::start(&sibling("firedoor")?, &Errand { request, hosts }, task)?)
}

/// What the user granted the entry: addresses in the user's own network, for example.
fn granted(entry: &EntryId) -> Result<Vec<HostGrant>, Failure> {
    match Engine::running_or_started()?.ask(&Request::Grants { entry: Some(entry.clone()) })? {
        Reply::Grants { grants } => Ok(grants.into_iter().flat_map(|granted| granted.hosts).collect()),
        _ => Err(unexpected()),
    }
}

/// An address as it can be copied: of signs that addresses have.
fn visible_address(address: &str) -> Result<String, Failure> {
    if address.bytes().all(|b| b.is_ascii_graphic()) { Ok(address.to_owned()) } else { Err(unexpected()) }
}

/// Opens the browser where there is a screen. Where that fails the address is on the terminal.
fn open(address: &str) {
    if env::var_os("DISPLAY").is_some() || env::var_os("WAYLAND_DISPLAY").is_some() {
        let _ = Command::new("xdg-open")
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

/// Waits for the browser; gives the query of its request, and where to answer it.
fn returned(listener: &TcpListener, deadline: Instant) -> Result<(String, TcpStream), Failure> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(listener.as_fd(), PollFlags::POLLIN)], left) {
            Ok(0) => return Err(Failure::refused("not logged in: nobody came back from the browser in ten minutes")),
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(e) => return Err(e.into()),
        }
        let (stream, _) = listener.accept()?;
        let host = listener.local_addr()?.to_string();
        if let Some(query) = query(&stream, &host) {
            return Ok((query, stream));
        }
        answer(Some(stream), false, "this is not what Firedoor waits for");
    }
}

/// The query of a request for our address, by that name and no other.
fn query(stream: &TcpStream, host: &str) -> Option<String> {
    stream.set_read_timeout(Some(BROWSER)).ok()?;
    stream.set_write_timeout(Some(BROWSER)).ok()?;
    read_query(BufReader::new(stream.take(MAX_REQUEST)), host)
}

fn read_query(mut reader: impl std::io::BufRead, host: &str) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?.to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|count| *count > 0)?;
        if header.trim_end().is_empty() {
            return None;
        }
        let (name, value) = header.split_once(':')?;
        if name.eq_ignore_ascii_case("host") {
            return (value.trim() == host).then_some(query);
        }
    }
}

/// Tells the browser what became of it. A browser that has gone needs no answer.
fn answer(browser: Option<TcpStream>, good: bool, why: &str) {
    let Some(mut browser) = browser else { return };
    let text = if good {
        "Firedoor is logged in. You can close this page.\n".to_owned()
    } else {
        format!("Firedoor is not logged in: {}\n", visible(why))
    };
    let status = if good { "200 OK" } else { "400 Bad Request" };
    // The address of this page holds the code: it is passed on to nobody.
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let _ = browser.write_all(format!("{head}{text}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_browsers_answer_is_taken() {
        let check = |text: &str| read_query(text.as_bytes(), "127.0.0.1:7");
        let host = "Host: 127.0.0.1:7\r\n\r\n";
        let good = "GET /callback?code=a&state=b HTTP/1.1\r\nAccept: x\r\nhost:127.0.0.1:7\r\n\r\n";
        assert_eq!(check(good).as_deref(), Some("code=a&state=b"));
        for bad in [
            format!("POST /callback?code=a HTTP/1.1\r\n{host}"),
            format!("GET /?code=a HTTP/1.1\r\n{host}"),
            format!("GET /callback HTTP/1.1\r\n{host}"),
            format!("GET /callbackx?code=a HTTP/1.1\r\n{host}"),
            "GET /callback?code=a HTTP/1.1\r\nHost: evil.example:7\r\n\r\n".to_owned(),
            "GET /callback?code=a HTTP/1.1\r\n\r\n".to_owned(),
            "GET /callback?code=a HTTP/1.1\r\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(check(&bad), None, "{bad:?}");
        }
    }
}
