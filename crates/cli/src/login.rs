//! `firedoor login` and `firedoor logout`.

use std::{
    env,
    io::{self, IsTerminal as _},
    process::ExitCode,
    time::Duration,
};

use firedoor_clients::{Address, Clients};
use firedoor_engine::{
    errand::Errands,
    login::{self, Login, LoginError, Typed, User, Visit},
};
use firedoor_ipc::command::{EndpointView, Reply, Request};
use firedoor_model::{
    EntryId, Untrusted,
    login::{Credentials, Task, Told},
    network::HostGrant,
};

use crate::{
    arguments::secrets::LoginOptions,
    changes::authorize,
    endpoints,
    engine::{Engine, sibling, unexpected},
    failure::Failure,
    keychain, output,
    scan::surroundings,
    typed::typed_line,
};

/// For the issuer.
const STEP: Duration = Duration::from_secs(180);

fn visible(text: &str) -> String {
    Untrusted::new(text).visible(1000)
}

/// Logs in at an entry's server and keeps what comes of it.
pub fn login(options: LoginOptions) -> Result<ExitCode, Failure> {
    authorize("logging in at a server")?;
    let entry = options.entry.clone();
    let env = surroundings(options.projects.clone())?;
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
    let granted = granted(&entry)?;
    let (firedoor, LoginOptions { client_id, client_secret, issuer, scopes, device, paste, yes, .. }) =
        (sibling("firedoor")?, options);
    // A line of the user's is an address, or the leave to open the browser here.
    let asks = !yes && io::stdin().is_terminal() && has_screen();
    let typed = if paste || asks { Some(Typed::new()?) } else { None };
    let mut user = AtTerminal { paste, asks, opens: yes && has_screen(), page: None, issuer };
    let login = Login { entry, url: address.url, granted, client_id, client_secret, scopes, device, typed, firedoor };
    let done = login.run(&*keychain()?, &mut user);
    output::line(&done.map_err(failure)?.to_string());
    Ok(ExitCode::SUCCESS)
}

/// Who reads what is said, and types lines.
struct AtTerminal {
    /// The browser is elsewhere: what is typed is the address it ended at.
    paste: bool,
    /// Enter opens the browser.
    asks: bool,
    /// The browser is opened at once.
    opens: bool,
    /// What Enter opens.
    page: Option<String>,
    /// Whom a client's secret is for, as they said before.
    issuer: Option<String>,
}

impl User for AtTerminal {
    fn visit(&mut self, Visit { address, issuer }: &Visit, back: &str) -> bool {
        let at = if self.paste { "any machine" } else { "this machine" };
        output::line(&format!("Log in at {} with a browser on {at}:", visible(issuer)));
        output::line(address);
        if self.paste {
            output::remark(&format!(
                "It ends at an address that it cannot show, beginning with {back}: paste that here, then Enter."
            ));
        } else if self.asks {
            output::remark("Press Enter to open it here, or open it yourself.");
            self.page = Some(address.clone());
        } else if self.opens {
            open(address);
        }
        true
    }

    fn enter(&mut self, Visit { address, issuer }: &Visit, code: &str) {
        output::line(&format!("Log in at {} with a browser on any machine:", visible(issuer)));
        output::line(address);
        output::line(&format!("Enter this code there: {}", visible(code)));
    }

    fn secret(&mut self, issuer: &str) -> Result<String, String> {
        is_for(self.issuer.as_deref(), issuer, io::stdin().is_terminal())?;
        typed_line(&format!("The client's secret, which {} gets, then Enter:", visible(issuer))).map_err(|e| e.text)
    }

    fn remark(&mut self, why: &str) {
        output::remark(&visible(why));
    }

    fn typed(&mut self) -> bool {
        if !self.paste {
            self.page.take().iter().for_each(|page| open(page));
        }
        self.paste
    }
}

/// Whether this issuer may get a client's secret: it is the one that was said before, or somebody is there who sees its name.
fn is_for(said: Option<&str>, issuer: &str, seen: bool) -> Result<(), String> {
    if said.map_or(seen, |said| said == issuer) {
        return Ok(());
    }
    // No command to copy: it is the server that says so.
    Err(format!(
        "the server's issuer is {}, and it was not said (--issuer) that the secret is for that one",
        visible(issuer)
    ))
}

fn failure(e: LoginError) -> Failure {
    match e {
        LoginError::Declined | LoginError::Nobody | LoginError::Failed(_) => Failure::refused(e.to_string()),
        LoginError::Errand(_) | LoginError::Keychain(_) | LoginError::Callback(_) | LoginError::Address => e.into(),
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
        Ok(()) => output::line("Logged out: the issuer was told, and nothing of it is kept any more."),
        Err(e) => {
            output::line(&format!("Nothing of it is kept any more. The issuer was not told: {}", visible(&e.text)))
        }
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
    let errand = login::errand(entry, url, granted(entry)?);
    match Errands::start(&sibling("firedoor")?, &errand, &Task::Revoke(Box::new(known)))?.hear(STEP)? {
        Told::Revoked => Ok(()),
        Told::Failed { why, .. } => Err(Failure::refused(why)),
        _ => Err(unexpected()),
    }
}

/// What the user granted the entry: addresses in the user's own network, for example.
fn granted(entry: &EntryId) -> Result<Vec<HostGrant>, Failure> {
    match Engine::running_or_started()?.ask(&Request::Grants { entry: Some(entry.clone()) })? {
        Reply::Grants { grants } => Ok(grants.into_iter().flat_map(|granted| granted.hosts).collect()),
        _ => Err(unexpected()),
    }
}

fn has_screen() -> bool {
    !cfg!(target_os = "linux")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens the browser. Where that fails the address is on the terminal.
fn open(address: &str) {
    let _ = login::browse(address);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_to_the_issuer_that_was_said_or_is_seen() {
        let issuer = "https://i.example";
        assert_eq!((is_for(None, issuer, true), is_for(Some(issuer), issuer, false)), (Ok(()), Ok(())));
        for (said, seen) in [(None, false), (Some("https://i.example/"), true), (Some("https://i"), false)] {
            assert!(is_for(said, issuer, seen).is_err_and(|why| why.contains("is https://i.example,")), "{said:?}");
        }
    }
}
