//! One login at a server, from its address to the keychain: for the command line and the desktop. The browser is the user's;
//! what speaks to the server and its issuer is confined, and has no say in what the login is for.

mod callback;

use std::{
    env,
    ffi::OsString,
    fmt, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use firedoor_launch::is_about_the_network;
use firedoor_model::{
    EntryId, Keychain, KeychainError, Untrusted,
    login::{Credentials, Errand, Task, Told},
    network::HostGrant,
    remote::{RemoteRequest, Transport},
};

pub use self::callback::Typed;
pub(crate) use self::callback::is_ours;
use self::callback::{Browser, Callback, Came};
use crate::errand::{ErrandError, Errands};

/// For the user to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// For the server and its issuer between two steps of a login, of a few requests each.
const STEP: Duration = Duration::from_secs(180);

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The program that speaks to the server.
    #[error(transparent)]
    Errand(#[from] ErrandError),
    /// The keychain.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// The address that the browser comes back to.
    #[error("the browser could not be waited for: {0}")]
    Callback(#[from] io::Error),
    /// It says where to go, and that is no page.
    #[error("not logged in: the server's issuer names an address that is no page of the web")]
    Address,
    /// The user does not want to go there.
    #[error("not logged in: the page was not opened")]
    Declined,
    /// The browser was not used.
    #[error("not logged in: nobody came back from the browser in ten minutes")]
    Nobody,
    /// What the server or its issuer says.
    #[error("not logged in: {0}")]
    Failed(String),
}

/// What somebody logs in to.
pub struct Login {
    /// For which entry.
    pub entry: EntryId,
    /// The address of its server.
    pub url: String,
    /// What the user granted the entry: addresses in the user's own network, for example.
    pub granted: Vec<HostGrant>,
    /// What the issuer knows Firedoor by, if the user has registered it.
    pub client_id: Option<String>,
    /// That client has a secret, which the user is asked for.
    pub client_secret: bool,
    /// What is asked for besides what the server says.
    pub scopes: Vec<String>,
    /// By a code that is entered with a browser on any machine (RFC 8628).
    pub device: bool,
    /// Where the user types lines meanwhile, if anywhere.
    pub typed: Option<Typed>,
    /// The program that starts and confines what speaks to the server.
    pub firedoor: PathBuf,
}

/// Where the user has to go.
pub struct Visit {
    /// The page: an address of the web, of visible ASCII characters.
    pub address: String,
    /// Who asks there, as the server says.
    pub issuer: String,
}

/// Who logs in.
pub trait User {
    /// Shows the page, which ends at the address `back`. False when they do not want to go there.
    fn visit(&mut self, page: &Visit, back: &str) -> bool;

    /// Shows a page and the code that is to be entered there, with a browser on any machine.
    fn enter(&mut self, page: &Visit, code: &str);

    /// Gives the client's secret, which this issuer gets. An error says why not.
    fn secret(&mut self, _issuer: &str) -> Result<String, String> {
        Err("nobody is asked for a secret here".into())
    }

    /// Says why what came was not taken.
    fn remark(&mut self, why: &str);

    /// They typed a line. Whether it is to be taken for the address that the browser ended at.
    fn typed(&mut self) -> bool;
}

/// How it ended.
pub enum LoggedIn {
    /// The server lets everybody in.
    NotNeeded,
    /// The keychain has what this issuer gave.
    Kept {
        /// Who.
        issuer: String,
    },
}

impl fmt::Display for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded => f.write_str("The server lets everybody in: there is nothing to log in to."),
            Self::Kept { issuer } => {
                let issuer = Untrusted::new(issuer.as_str()).visible(1000);
                write!(
                    f,
                    "Logged in. What {issuer} gave is kept with your secrets, and the server gets it when it wants it."
                )
            }
        }
    }
}

impl Login {
    /// Logs in.
    pub fn run(self, keychain: &dyn Keychain, user: &mut impl User) -> Result<LoggedIn, LoginError> {
        let Self { entry, url, granted, client_id, client_secret, mut scopes, device, mut typed, firedoor } = self;
        // Before the browser opens: nobody else can have it then.
        let mut callback = Callback::listen()?;
        let known = Credentials::load(keychain, &entry, &url)?;
        scopes.extend(known.map(|known| known.scopes).unwrap_or_default());
        let mut hosts = firedoor_launch::login_hosts(&url);
        hosts.extend(granted);
        let redirect = callback.redirect();
        let task = Task::Login { url: url.clone(), redirect, client_id, client_secret, scopes, device };
        let mut errands = Errands::start(&firedoor, &errand(&entry, url.clone(), hosts), &task)?;
        let mut browser: Option<Browser> = None;
        let deadline = Instant::now() + PATIENCE;
        let mut limit = STEP;
        // Who got the secret.
        let mut trusted: Option<String> = None;
        loop {
            match errands.hear(limit.min(deadline.saturating_duration_since(Instant::now())))? {
                Told::Visit { address, issuer } => {
                    if !user.visit(&Visit::new(address, issuer)?, &callback.redirect()) {
                        return Err(LoginError::Declined);
                    }
                }
                // Once, and where there is one.
                Told::Secret { issuer } if client_secret && trusted.is_none() => {
                    errands.write(&user.secret(&issuer).map_err(LoginError::Failed)?)?;
                    trusted = Some(issuer);
                    continue;
                }
                // Once, and where it is asked for: what says so is no friend.
                Told::Enter { address, code, issuer } if device && limit == STEP => {
                    user.enter(&Visit::new(address, issuer)?, &code);
                    limit = PATIENCE;
                    continue;
                }
                Told::Ignored { why } => {
                    if browser.is_none() {
                        user.remark(&why);
                    }
                    answer(browser.take(), false, &why);
                }
                Told::NotNeeded => return Ok(LoggedIn::NotNeeded),
                // Kept for another issuer than the one that the user was told, a secret would go there with the next renewal.
                Told::Done(credentials) if client_secret && trusted.as_ref() != Some(&credentials.issuer) => {
                    return Err(ErrandError::Silent.into());
                }
                Told::Done(credentials) => {
                    // Who speaks to servers has no say in which one this is for.
                    let credentials = Credentials { url, ..*credentials };
                    let kept = credentials.keep(keychain, &entry);
                    answer(browser.take(), kept.is_ok(), "see where you began it");
                    kept?;
                    return Ok(LoggedIn::Kept { issuer: credentials.issuer });
                }
                Told::Failed { why, .. } => {
                    answer(browser.take(), false, &why);
                    return Err(LoginError::Failed(Untrusted::new(why).visible(1000)));
                }
                Told::Secret { .. } | Told::Enter { .. } | Told::Revoked => return Err(ErrandError::Silent.into()),
            }
            let query = loop {
                match callback.next(deadline, typed.as_mut())?.ok_or(LoginError::Nobody)? {
                    Came::Browser(query, from) => {
                        browser = Some(from);
                        break query;
                    }
                    Came::Line(line) if user.typed() => match callback.pasted(&line) {
                        Some(query) => break query,
                        None => user.remark(&format!("That is not it: it begins with {}?", callback.redirect())),
                    },
                    Came::Line(_) => {}
                }
            };
            errands.say(&query)?;
        }
    }
}

impl Visit {
    /// Of an address that can be copied, and opened: of signs that addresses have, and nothing but a page.
    fn new(address: String, issuer: String) -> Result<Self, LoginError> {
        let page = ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme));
        if page && address.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self { address, issuer })
        } else {
            Err(LoginError::Address)
        }
    }
}

/// What the confined program is told, with what this process' environment says about the network.
pub fn errand(entry: &EntryId, url: String, hosts: Vec<HostGrant>) -> Errand {
    let named = |name: &OsString| name.to_str().is_some_and(is_about_the_network);
    let request = RemoteRequest {
        entry: entry.clone(),
        url,
        transport: Transport::Auto,
        headers: Vec::new(),
        cwd: "/".into(),
        env: env::vars_os().filter(|(name, _)| named(name)).collect(),
    };
    Errand { request, hosts }
}

/// Opens a page in the user's browser. An error says that no program for it could be started, or that it ended with one at once; that
/// one shows the page, nobody says.
pub fn browse(page: &str) -> io::Result<()> {
    open::that_detached(page)
}

fn answer(browser: Option<Browser>, good: bool, why: &str) {
    if let Some(browser) = browser {
        browser.tell(good, why);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use firedoor_model::keychain::MemoryKeychain;

    use super::*;

    #[test]
    fn nothing_but_a_page_is_opened() {
        let is_page = |address: &str| Visit::new(address.to_owned(), String::new()).is_ok();
        assert!(is_page("https://i.example/a?b=c") && is_page("http://127.0.0.1:1/a"));
        for bad in
            ["file:///etc/passwd", "javascript:alert(1)", "smb://x/", "--help", "", "https://a b", "https://\u{202e}"]
        {
            assert!(!is_page(bad), "{bad}");
        }
    }

    const ENTER: &str = r#"{"told":"enter","address":"https://i.example/d","code":"AB-12","issuer":"i.example"}"#;

    /// Goes where they are sent, or not.
    struct Goes(bool, Vec<String>);

    impl User for Goes {
        fn visit(&mut self, page: &Visit, _: &str) -> bool {
            self.1.push(page.address.clone());
            self.0
        }

        fn enter(&mut self, page: &Visit, code: &str) {
            self.1.push(format!("{code} at {}", page.address));
        }

        fn secret(&mut self, issuer: &str) -> Result<String, String> {
            self.1.push(format!("secret for {issuer}"));
            self.0.then(|| "s\"".to_owned()).ok_or("they gave none".to_owned())
        }

        fn remark(&mut self, why: &str) {
            self.1.push(why.to_owned());
        }

        fn typed(&mut self) -> bool {
            true
        }
    }

    /// Logs in with a program that says this; what became of it, and where it sent the user.
    fn check(said: &str, goes: bool) -> (Result<LoggedIn, LoginError>, Vec<String>) {
        check_with(said, goes, false)
    }

    fn check_with(said: &str, goes: bool, device: bool) -> (Result<LoggedIn, LoginError>, Vec<String>) {
        check_all(said, goes, device, false, &MemoryKeychain::default())
    }

    fn check_all(
        said: &str,
        goes: bool,
        device: bool,
        client_secret: bool,
        keychain: &MemoryKeychain,
    ) -> (Result<LoggedIn, LoginError>, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        let firedoor = root.path().join("firedoor");
        // By another process: a test that forks while this one writes would hold the file open, and then it cannot be started.
        let text = root.path().join("text");
        std::fs::write(&text, format!("#!/bin/sh\nread a\nread b\necho '{said}'\nread c\n")).unwrap();
        assert!(std::process::Command::new("cp").args([&text, &firedoor]).status().unwrap().success());
        std::fs::set_permissions(&firedoor, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (entry, url) = ("cursor/user/s".parse().unwrap(), "https://s.example/".to_owned());
        let (granted, scopes) = (Vec::new(), Vec::new());
        let login =
            Login { entry, url, granted, client_id: None, client_secret, scopes, device, typed: None, firedoor };
        let mut user = Goes(goes, Vec::new());
        let done = login.run(keychain, &mut user);
        (done, user.1)
    }

    #[test]
    fn nobody_is_sent_anywhere_unasked() {
        assert!(matches!(check(r#"{"told":"not_needed"}"#, true).0, Ok(LoggedIn::NotNeeded)));
        let (done, visited) = check(r#"{"told":"visit","address":"https://i.example/a","issuer":"i.example"}"#, false);
        assert!(matches!(done, Err(LoginError::Declined)) && visited == ["https://i.example/a"]);
        let (done, visited) = check(r#"{"told":"visit","address":"file:///etc/passwd","issuer":"i"}"#, true);
        assert!(matches!(done, Err(LoginError::Address)) && visited.is_empty());
        let (done, _) = check(r#"{"told":"failed","why":"no\u202eway","over":false}"#, true);
        assert!(matches!(done, Err(LoginError::Failed(why)) if why == "no⟨U+202E⟩way"));
        let (done, shown) = check_with(&format!("{ENTER}\n{ENTER}"), true, true);
        assert!(matches!(done, Err(LoginError::Errand(_))) && shown == ["AB-12 at https://i.example/d"]);
        let (done, shown) = check(ENTER, true);
        assert!(matches!(done, Err(LoginError::Errand(_))) && shown.is_empty(), "nobody asked for a code");
        assert!(matches!(check("nonsense", true).0, Err(LoginError::Errand(ErrandError::Silent))));
    }

    #[test]
    fn a_secret_is_asked_for_once_and_kept_for_the_issuer_that_was_named() {
        const ASKS: &str = r#"{"told":"secret","issuer":"https://i.example"}"#;
        let done = |issuer: &str| {
            let got = Credentials { issuer: issuer.into(), ..Credentials::example("t") };
            serde_json::to_string(&Told::Done(Box::new(got))).unwrap()
        };
        let check = |said: &str, goes, has_secret| {
            let keychain = MemoryKeychain::default();
            let (done, shown) = check_all(said, goes, false, has_secret, &keychain);
            (done, shown, keychain.items().unwrap().len())
        };
        let asked = ["secret for https://i.example"];
        let (good, shown, kept) = check(&format!("{ASKS}\n{}", done("https://i.example")), true, true);
        assert!(matches!(good, Ok(LoggedIn::Kept { .. })) && shown == asked && kept == 1);
        let (bad, shown, kept) = check(&format!("{ASKS}\n{}", done("https://evil.example")), true, true);
        assert!(matches!(bad, Err(LoginError::Errand(_))) && shown == asked && kept == 0);
        let (bad, shown, _) = check(&format!("{ASKS}\n{ASKS}"), true, true);
        assert!(matches!(bad, Err(LoginError::Errand(_))) && shown == asked, "once");
        let (bad, shown, _) = check(ASKS, true, false);
        assert!(matches!(bad, Err(LoginError::Errand(_))) && shown.is_empty(), "nobody spoke of a secret");
        let (bad, ..) = check(ASKS, false, true);
        assert!(matches!(bad, Err(LoginError::Failed(why)) if why == "they gave none"));
    }
}
