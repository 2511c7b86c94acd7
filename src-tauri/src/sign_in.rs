//! Logging in at a remote server: the page is shown with its host before the browser is opened, and opened on a click.

use std::{
    collections::BTreeMap,
    sync::{Mutex, mpsc},
    time::Duration,
};

use firedoor_clients::Address;
use firedoor_engine::login::{self, Login, LoginError, User, Visit};
use firedoor_ipc::command::{PageQuery, Reply, Request};
use firedoor_model::{EntryId, Keychain, Millis, Untrusted, audit::Filter, audit::What};
use tauri::Url;

use crate::{
    activity::now,
    known::{Known, lock},
    link::{Link, LinkError},
    servers::ServerError,
    ticket::Nonce,
    view::{SignInView, VisitView},
};

/// For the user to look at the address.
const PATIENCE: Duration = Duration::from_secs(600);
/// How far back it counts that a server wanted a login.
const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// How the engine says it (`launches`).
const WANTS: &str = "wants a login";
/// Rows that are looked at: other servers of that name say it, too.
const ROWS: u32 = 50;

/// Logins of this run of the app.
#[derive(Default)]
pub struct SignIns {
    /// The one whose address is on screen.
    waits: Mutex<Option<(Nonce, mpsc::Sender<bool>)>>,
    /// When they were done.
    done: Mutex<BTreeMap<EntryId, Millis>>,
}

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Which server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The engine.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The login itself.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// It is reached otherwise.
    #[error("this server has no address to log in at")]
    NoAddress,
    /// A login would not be used.
    #[error("the entry has an Authorization header of its own, and a login would not be used: remove one or the other")]
    Authorized,
    /// Not the address on screen.
    #[error("this is not the address that was shown last: begin again")]
    Stale,
    /// This program's own place.
    #[error("cannot find Firedoor's own directory: {0}")]
    Own(#[from] std::io::Error),
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

impl Known {
    /// Where an entry's server is reached, if it is over HTTP.
    fn address(&self, entry: &EntryId) -> Result<Option<Address>, LinkError> {
        if let Some(address) = self.clients.address(&self.env(), entry) {
            return Ok(Some(address));
        }
        let Reply::Endpoints { endpoints } = self.ask(&Request::Endpoints)? else { return Err(LinkError::Unexpected) };
        let behind = endpoints.into_iter().find(|endpoint| endpoint.entry == *entry);
        Ok(behind.and_then(|of| Some(Address { url: of.url?, authorized: of.authorized })))
    }

    /// Whether somebody can log in at an entry's server, and when it last said that somebody has to.
    pub fn sign_in_of(&self, entry: &EntryId) -> Result<Option<SignInView>, LinkError> {
        let Some(Address { authorized: false, .. }) = self.address(entry)? else { return Ok(None) };
        let since = Some(Millis(now().saturating_sub(WEEK_MS)));
        let (server, text) = (Some(entry.server().to_owned()), Some(WANTS.to_owned()));
        let query = PageQuery {
            filter: Filter { server, text, since, ..Filter::default() },
            limit: ROWS,
            ..PageQuery::default()
        };
        let Reply::Page { rows, .. } = self.ask(&Request::Page(query))? else { return Err(LinkError::Unexpected) };
        let mut said = rows.iter().map(|row| &row.event).filter(|event| {
            event.entry.as_ref() == Some(entry)
                && matches!(&event.what, What::Failed { reason } if reason.contains(WANTS))
        });
        let done = lock(&self.sign_ins.done).get(entry).copied();
        let wanted = said.next().map(|event| event.at).filter(|at| done.is_none_or(|done| *at > done));
        Ok(Some(SignInView { wanted: wanted.map(|at| at.0) }))
    }

    /// Logs in. `show` puts an address on screen, which the browser opens when the user agrees.
    pub fn sign_in(
        &self,
        shown: &str,
        keychain: &dyn Keychain,
        show: impl Fn(VisitView),
    ) -> Result<String, SignInError> {
        let entry = self.entry(shown)?;
        let Address { url, authorized } = self.address(&entry)?.ok_or(SignInError::NoAddress)?;
        if authorized {
            return Err(SignInError::Authorized);
        }
        Link::settle(&self.paths, &Request::Authorize { action: format!("logging in at the server of {entry}") })?;
        let Reply::Grants { grants } = self.ask(&Request::Grants { entry: Some(entry.clone()) })? else {
            return Err(LinkError::Unexpected.into());
        };
        let login = Login {
            entry: entry.clone(),
            url,
            granted: grants.into_iter().flat_map(|granted| granted.hosts).collect(),
            client_id: None,
            client_secret: false,
            scopes: Vec::new(),
            device: false,
            typed: None,
            firedoor: firedoor_model::paths::sibling("firedoor")?,
        };
        let nonce = Nonce::mint()?;
        let (agree, agreed) = mpsc::channel();
        // One that waited before is answered with "no" by this.
        *lock(&self.sign_ins.waits) = Some((nonce.clone(), agree));
        let done = login.run(keychain, &mut OnScreen { nonce: &nonce, show, agreed, shown: false });
        lock(&self.sign_ins.waits).take_if(|(own, _)| *own == nonce);
        let said = done?.to_string();
        lock(&self.sign_ins.done).insert(entry, Millis(now()));
        Ok(said)
    }

    /// The user has looked at the address.
    pub fn visit(&self, nonce: &str, go: bool) -> Result<(), SignInError> {
        let waits = lock(&self.sign_ins.waits);
        let (_, agree) = waits.as_ref().filter(|(own, _)| own.is(nonce)).ok_or(SignInError::Stale)?;
        agree.send(go).map_err(|_| SignInError::Stale)
    }
}

/// Who looks at the screen, and clicks.
struct OnScreen<'a, F> {
    nonce: &'a Nonce,
    show: F,
    agreed: mpsc::Receiver<bool>,
    /// A page was shown. A click that was meant for it must not open another one.
    shown: bool,
}

impl<F: Fn(VisitView)> User for OnScreen<'_, F> {
    fn visit(&mut self, page: &Visit, _: &str) -> bool {
        let Some(view) = VisitView::new(page, self.nonce).filter(|_| !self.shown) else { return false };
        self.shown = true;
        (self.show)(view);
        self.agreed.recv_timeout(PATIENCE).unwrap_or(false) && open(page)
    }

    /// Not asked for: the browser is on this machine.
    fn enter(&mut self, _: &Visit, _: &str) {}

    /// The browser shows it.
    fn remark(&mut self, _: &str) {}

    /// Nothing is typed.
    fn typed(&mut self) -> bool {
        false
    }
}

impl VisitView {
    /// For showing; `None` where the address has no host, as a page's has.
    fn new(visit: &Visit, nonce: &Nonce) -> Option<Self> {
        let url: Url = visit.address.parse().ok()?;
        let host = Untrusted::new(url.host_str()?).visible(300);
        let address = Untrusted::new(visit.address.as_str()).visible(8_000);
        let plain = url.scheme() == "http";
        Some(Self { nonce: nonce.to_text(), host, address, plain })
    }
}

/// Opens the browser; false when there is none.
fn open(visit: &Visit) -> bool {
    let opened = login::browse(&visit.address);
    if let Err(e) = &opened {
        crate::app::complain(&format!("no browser could be opened: {e}"));
    }
    opened.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_that_the_browser_goes_to() {
        let nonce = Nonce::mint().unwrap();
        let shown = |address: &str| {
            let visit = Visit { address: address.to_owned(), issuer: "https://github.com".into() };
            VisitView::new(&visit, &nonce).map(|view| (view.host, view.plain))
        };
        for (address, want) in [
            ("https://i.example/authorize?a=b", Some(("i.example", false))),
            ("http://127.0.0.1:7/a", Some(("127.0.0.1", true))),
            // What looks like a host before the "@" is a name.
            ("https://github.com@evil.example/login", Some(("evil.example", false))),
            ("https://github.com\\@evil.example/", Some(("github.com", false))),
            ("https://xn--gthub-n2a.com/", Some(("xn--gthub-n2a.com", false))),
            ("https:", None),
            ("nonsense", None),
        ] {
            assert_eq!(shown(address), want.map(|(host, plain)| (host.to_owned(), plain)), "{address}");
        }
    }

    #[test]
    fn only_the_address_on_screen_is_agreed_to() {
        let root = tempfile::tempdir().unwrap();
        let paths =
            firedoor_model::paths::Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let known = Known::new(paths, firedoor_clients::Clients::load().unwrap(), "/shim".into());
        assert!(matches!(known.visit("", true), Err(SignInError::Stale)));
        let (agree, agreed) = mpsc::channel();
        let nonce = Nonce::mint().unwrap();
        *lock(&known.sign_ins.waits) = Some((nonce.clone(), agree));
        assert!(matches!(known.visit("guess", true), Err(SignInError::Stale)));
        assert!(agreed.try_recv().is_err());
        known.visit(&nonce.to_text(), true).unwrap();
        assert_eq!(agreed.try_recv(), Ok(true));
        drop(agreed);
        assert!(matches!(known.visit(&nonce.to_text(), true), Err(SignInError::Stale)));
    }
}
