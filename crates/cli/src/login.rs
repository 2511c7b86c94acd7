//! `firedoor login` and `firedoor logout`.

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal as _},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use firedoor_clients::{Address, Clients};
use firedoor_engine::errand::Errands;
use firedoor_ipc::command::{EndpointView, Reply, Request};
use firedoor_model::{
    EntryId, Untrusted,
    login::{Credentials, Errand, Task, Told},
    network::HostGrant,
    remote::{RemoteRequest, Transport},
};

use crate::{
    arguments::LoginOptions,
    callback::{Browser, Callback, Came, Typed},
    changes::authorize,
    endpoints,
    engine::{Engine, sibling, unexpected},
    failure::Failure,
    keychain, output,
    scan::surroundings,
};

/// For the user to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// For the server and its issuer between two steps of a login, of a few requests each.
const STEP: Duration = Duration::from_secs(180);

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(1000)
}

/// Logs in at an entry's server and keeps what comes of it.
pub fn login(options: LoginOptions) -> Result<ExitCode, Failure> {
    authorize("logging in at a server")?;
    let entry = options.entry;
    let env = surroundings(options.projects)?;
    let address = match Clients::load()?.address(&env, &entry) {
        Some(address) => address,
        None => behind_endpoint(&entry)?.ok_or_else(|| {
            let entry = visible(&entry.to_string());
            Failure::environment(format!("{entry} is no server with an address: see `firedoor scan`"))
        })?,
    };
    if address.authorized {
        return Err(Failure::refused(
            "the entry has an Authorization header of its own, and a login would not be used: remove one or the other",
        ));
    }
    let url = address.url;
    // Before the browser opens: nobody else can have it then.
    let mut callback = Callback::listen()?;
    let redirect = callback.redirect();
    let keychain = keychain()?;
    let known = Credentials::load(&*keychain, &entry, &url)?;
    let mut scopes = options.scopes;
    scopes.extend(known.map(|known| known.scopes).unwrap_or_default());
    let mut hosts = firedoor_launch::login_hosts(&url);
    hosts.extend(granted(&entry)?);
    let (client_id, device) = (options.client_id, options.device);
    let task = Task::Login { url: url.clone(), redirect, client_id, scopes, device };
    let mut errands = errand(&entry, url.clone(), hosts, &task)?;
    let (mut browser, mut page): (Option<Browser>, Option<String>) = (None, None);
    let deadline = Instant::now() + PATIENCE;
    // A line of the user's is an address, or the leave to open the browser here.
    let asks = !options.yes && io::stdin().is_terminal() && has_screen();
    let mut typed = (options.paste || asks).then(Typed::default);
    let mut limit = STEP;
    loop {
        match errands.hear(limit)? {
            Told::Visit { address, issuer } => {
                let at = if options.paste { "any machine" } else { "this machine" };
                output::line(&format!("Log in at {} with a browser on {at}:", visible(&issuer)));
                let address = visible_address(address)?;
                output::line(&address);
                if options.paste {
                    output::remark(&format!(
                        "It ends at an address that it cannot show, beginning with {}: paste that here, then Enter.",
                        callback.redirect()
                    ));
                } else if asks {
                    output::remark("Press Enter to open it here, or open it yourself.");
                } else if options.yes && has_screen() {
                    open(&address);
                }
                page = Some(address);
            }
            Told::Enter { address, code, issuer } => {
                output::line(&format!("Log in at {} with a browser on any machine:", visible(&issuer)));
                output::line(&visible_address(address)?);
                output::line(&format!("Enter this code there: {}", visible(&code)));
                limit = PATIENCE;
                continue;
            }
            Told::Ignored { why } => {
                if browser.is_none() {
                    output::remark(&visible(&why));
                }
                answer(browser.take(), false, &why);
            }
            Told::NotNeeded => {
                output::line("The server lets everybody in: there is nothing to log in to.");
                return Ok(ExitCode::SUCCESS);
            }
            Told::Done(credentials) => {
                // Who speaks to servers has no say in which one this is for.
                let credentials = Credentials { url, ..*credentials };
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
        let query = loop {
            match callback.next(deadline, typed.as_mut())? {
                Came::Browser(query, from) => {
                    browser = Some(from);
                    break query;
                }
                Came::Line(line) if options.paste => match callback.pasted(&line) {
                    Some(query) => break query,
                    None => output::remark(&format!("That is not it: it begins with {}?", callback.redirect())),
                },
                Came::Line(_) => page.take().iter().for_each(|page| open(page)),
            }
        };
        errands.say(&query)?;
    }
}

fn answer(browser: Option<Browser>, good: bool, why: &str) {
    if let Some(browser) = browser {
        browser.tell(good, why);
    }
}

/// Ends a login: at the issuer, if it can be told, and in the keychain in any case.
pub fn logout(entry: &EntryId) -> Result<ExitCode, Failure> {
    authorize("logging out at a server")?;
    let (keychain, item) = (keychain()?, Credentials::item(entry));
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

/// The address of a server that an endpoint stands for.
fn behind_endpoint(entry: &EntryId) -> Result<Option<Address>, Failure> {
    let all = endpoints::all(&mut Engine::running_or_started()?)?;
    let address = |endpoint: EndpointView| Some(Address { url: endpoint.url?, authorized: endpoint.authorized });
    Ok(all.into_iter().find(|endpoint| endpoint.entry == *entry).and_then(address))
}

fn revoke(entry: &EntryId, known: Credentials) -> Result<(), Failure> {
    let Some(url) = known.revocation_endpoint.clone() else {
        return Err(Failure::refused("it takes no word that a login is over; end it on its own pages"));
    };
    match errand(entry, url, granted(entry)?, &Task::Revoke(Box::new(known)))?.hear(STEP)? {
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

/// An address as it can be copied, and opened: of signs that addresses have, and nothing but a page.
fn visible_address(address: String) -> Result<String, Failure> {
    let page = ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme));
    if page && address.bytes().all(|b| b.is_ascii_graphic()) { Ok(address) } else { Err(unexpected()) }
}

fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens the browser. Where that fails the address is on the terminal.
fn open(address: &str) {
    let mut browser = Command::new("xdg-open");
    let _ = browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_page_is_opened() {
        let opens = |address: &str| visible_address(address.to_owned()).is_ok();
        assert!(opens("https://i.example/a?b=c") && opens("http://127.0.0.1:1/a"));
        for bad in
            ["file:///etc/passwd", "javascript:alert(1)", "smb://x/", "--help", "", "https://a b", "https://\u{202e}"]
        {
            assert!(!opens(bad), "{bad}");
        }
    }
}
