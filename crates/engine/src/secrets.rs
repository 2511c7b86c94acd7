//! Secrets at a launch: what the entry refers to comes out of the keychain and goes to the shim over the socket.

use std::{ffi::OsString, path::Path, rc::Rc};

use firedoor_clients::{Clients, Configured, Env, SecretError, secret_of};
use firedoor_model::{
    EntryId, Keychain, SecretRef, Untrusted,
    broker::{Brokered, Route},
    endpoint::Target,
    launch::LaunchRequest,
    quoted,
    remote::RemoteRequest,
};

use crate::{
    broker::{BrokerError, Withheld},
    endpoints,
    engine::Engine,
};

/// Why a server does not get its secrets. Names them, never their values.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// It asks for what is not its own.
    #[error(
        "{reference:?} belongs to another entry: run `firedoor protect {}`, which gives this entry a copy of its own",
        quoted(client)
    )]
    Foreign {
        /// The reference.
        reference: String,
        /// The client that starts it.
        client: String,
    },
    /// The configuration says something else.
    #[error(
        "its secrets were not handed out, because {entry:?} is not in its client's configuration in this form: start it \
         from there, or restart the client if its configuration has changed"
    )]
    NotConfigured {
        /// The entry.
        entry: String,
    },
    /// The keychain.
    #[error("the server was not started without its secret: {0}")]
    Secret(#[from] SecretError),
    /// Broker mode.
    #[error("{0}")]
    Broker(#[from] BrokerError),
    /// Inside of Firedoor.
    #[error("its secrets could not be read: {0}; see engine.log")]
    Failed(String),
}

/// A start that may need secrets.
pub trait Start: Clone + Send + 'static {
    /// Which entry, where, and with which environment.
    fn of(&self) -> (&EntryId, &Path, &[(OsString, OsString)]);

    /// Whether it is what the entry says.
    fn is(&self, configured: &Configured) -> bool;

    /// The references in it.
    fn references(&self) -> Vec<SecretRef>;

    /// Puts a value in the place of each reference.
    fn replace(&mut self, value: impl FnMut(&SecretRef) -> Result<String, FillError>) -> Result<(), FillError>;
}

impl Start for LaunchRequest {
    fn of(&self) -> (&EntryId, &Path, &[(OsString, OsString)]) {
        (&self.entry, &self.cwd, &self.env)
    }

    fn is(&self, configured: &Configured) -> bool {
        configured.starts(&self.program, &self.args)
    }

    fn references(&self) -> Vec<SecretRef> {
        self.args.iter().chain(self.env.iter().map(|(_, value)| value)).filter_map(reference).collect()
    }

    fn replace(&mut self, mut value: impl FnMut(&SecretRef) -> Result<String, FillError>) -> Result<(), FillError> {
        for text in self.args.iter_mut().chain(self.env.iter_mut().map(|(_, value)| value)) {
            if let Some(reference) = reference(text) {
                *text = value(&reference)?.into();
            }
        }
        Ok(())
    }
}

/// Its headers, and nothing else: its environment stays with the shim.
impl Start for RemoteRequest {
    fn of(&self) -> (&EntryId, &Path, &[(OsString, OsString)]) {
        (&self.entry, &self.cwd, &self.env)
    }

    fn is(&self, configured: &Configured) -> bool {
        configured.reaches(&self.url)
    }

    fn references(&self) -> Vec<SecretRef> {
        self.headers.iter().filter_map(|(_, value)| SecretRef::read(value)).collect()
    }

    fn replace(&mut self, mut value: impl FnMut(&SecretRef) -> Result<String, FillError>) -> Result<(), FillError> {
        for (_, text) in &mut self.headers {
            if let Some(reference) = SecretRef::read(text) {
                *text = value(&reference)?;
            }
        }
        Ok(())
    }
}

fn reference(value: &OsString) -> Option<SecretRef> {
    SecretRef::read(value.to_str()?)
}

/// What came out of the keychain for one start.
#[derive(Default)]
pub struct Filled {
    /// What stands for secrets that the server does not get.
    pub brokered: Vec<Brokered>,
    /// Every secret, also those, each with its reference.
    pub secrets: Vec<(SecretRef, String)>,
}

/// Whether a start waits for the keychain, which may wait for a person.
pub fn wants<S: Start>(request: &S) -> bool {
    !request.references().is_empty()
}

/// Puts the secrets of an entry in the place of the references that its client passed on, and placeholders in the place of
/// those that these routes are for.
pub async fn fill_in<S: Start>(engine: &Rc<Engine>, request: &mut S, routes: &[Route]) -> Result<Filled, FillError> {
    if !wants(request) {
        return Ok(Filled { brokered: Withheld::of(routes).all(request.of().0)?, ..Filled::default() });
    }
    let routes = routes.to_vec();
    let (paths, keychain, mut given) = (engine.paths.clone(), engine.secrets(), request.clone());
    let own = engine.endpoints.of(request.of().0).map(|own| own.target);
    // Files are read, and the keychain may take its time.
    let work = move || {
        let clients = Clients::load().map_err(|e| FillError::Failed(e.to_string()))?;
        let (_, cwd, variables) = given.of();
        let (cwd, variables) = (cwd.to_owned(), variables.to_vec());
        let lookup = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let env = Env::new(paths, &cwd, lookup);
        let mut withheld = Withheld::of(&routes);
        let secrets = fill(clients, &env, own.as_ref(), &keychain, &mut given, &mut withheld)?;
        let brokered = withheld.all(given.of().0)?;
        Ok::<_, FillError>((given, Filled { brokered, secrets }))
    };
    let (whole, filled) = tokio::task::spawn_blocking(work).await.map_err(|e| FillError::Failed(e.to_string()))??;
    *request = whole;
    Ok(filled)
}

/// Gives every secret that was asked for, with its reference.
fn fill<S: Start>(
    clients: &Clients,
    env: &Env<'_>,
    own: Option<&Target>,
    keychain: &dyn Keychain,
    request: &mut S,
    withheld: &mut Withheld<'_>,
) -> Result<Vec<(SecretRef, String)>, FillError> {
    let shown = |id: &EntryId| Untrusted::new(id.to_string()).visible(200);
    let entry = request.of().0.clone();
    let not_configured = || FillError::NotConfigured { entry: shown(&entry) };
    let configured = endpoints::configured(clients, env, &entry, own).ok_or_else(not_configured)?;
    // Whoever can start a shim can name any entry. What gets its secrets is what the user configured, nothing else.
    if !request.is(&configured) {
        return Err(not_configured());
    }
    let mut secrets = Vec::new();
    request.replace(|reference| {
        if *reference.entry() != entry {
            let (reference, client) = (shown(reference.entry()), entry.client().to_owned());
            return Err(FillError::Foreign { reference, client });
        }
        if !configured.secrets.contains(reference) {
            return Err(not_configured());
        }
        let secret = secret_of(keychain, reference)?;
        secrets.push((reference.clone(), secret.clone()));
        Ok(withheld.instead(reference.name(), secret)?)
    })?;
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_clients::set_secret;
    use firedoor_model::{keychain::MemoryKeychain, paths::Paths};

    #[test]
    fn only_what_was_configured_gets_its_secrets() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(".cursor");
        std::fs::create_dir(&directory).unwrap();
        let shim =
            |id: &str, rest: &str| format!(r#"{{"command":"/x/firedoor-shim","args":["--entry","{id}","--",{rest}]"#);
        let own = "firedoor-secret:cursor/user/a/T";
        let reached = r#"{"command":"/x/firedoor-shim","args":["--entry","cursor/user/r","--url","https://x/mcp","--header",
            "Authorization=env:FIREDOOR_HEADER_1","--was","url,headers"],
            "env":{"FIREDOOR_HEADER_1":"firedoor-secret:cursor/user/r/Authorization"}}"#;
        let text = format!(
            r#"{{"mcpServers":{{"a":{},"env":{{"T":"{own}"}}}},"b":{},"env":{{"T":"{own}"}}}},"r":{reached}}}}}"#,
            shim("cursor/user/a", r#""npx","-y","${userHome}/srv""#),
            shim("cursor/user/b", r#""evil""#),
        );
        std::fs::write(directory.join("mcp.json"), text).unwrap();
        let look = |name: &str| (name == "HOME").then(|| home.path().as_os_str().to_owned());
        let env = Env::new(Paths::from_env(look).unwrap(), "/", look);
        let (clients, keychain) = (Clients::load().unwrap(), MemoryKeychain::default());
        let reference: SecretRef = own.parse().unwrap();
        let check = |entry: &str, line: &[&str], value: &str| {
            let mut line = line.iter().map(OsString::from);
            let (program, entry) = (line.next().unwrap(), entry.parse().unwrap());
            let env_given = vec![("T".into(), value.into())];
            let mut request = LaunchRequest { entry, program, args: line.collect(), cwd: "/".into(), env: env_given };
            fill(clients, &env, None, &keychain, &mut request, &mut Withheld::default())
                .map(|secrets| (request.env.remove(0).1, secrets))
        };
        let (line, other) = (["npx", "-y", "/h/srv"], ["npx", "-y", "/h/srv", "-x"]);
        let said = |result: Result<(OsString, _), FillError>| result.unwrap_err().to_string();
        assert!(said(check("cursor/user/a", &line, own)).contains("nothing of Firedoor's"));
        set_secret(&keychain, &reference, "hunter2").unwrap();
        let given = vec![(reference.clone(), "hunter2".to_owned())];
        assert_eq!(check("cursor/user/a", &line, own), Ok(("hunter2".into(), given)));
        assert_eq!(check("cursor/user/a", &line, "plain"), Ok(("plain".into(), vec![])));
        assert!(said(check("cursor/user/a", &other, own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/a", &["evil"], own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/c", &line, own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/b", &["evil"], own)).contains("belongs to another entry"));
        let remote = |url: &str| {
            let entry = "cursor/user/r".parse().unwrap();
            let headers = vec![("Authorization".into(), "firedoor-secret:cursor/user/r/Authorization".into())];
            let mut request = RemoteRequest {
                entry,
                url: url.into(),
                transport: Default::default(),
                headers,
                cwd: "/".into(),
                env: vec![],
            };
            fill(clients, &env, None, &keychain, &mut request, &mut Withheld::default())
                .map(|secrets| (request.headers.remove(0).1, secrets.len()))
        };
        set_secret(&keychain, &"cursor/user/r/Authorization".parse().unwrap(), "Bearer x").unwrap();
        assert_eq!(remote("https://x/mcp"), Ok(("Bearer x".into(), 1)));
        assert!(remote("https://evil/mcp").unwrap_err().to_string().contains("not in its client's configuration"));
        let made_up = "firedoor-secret:cursor/user/a/OTHER";
        assert!(said(check("cursor/user/a", &line, made_up)).contains("not in its client's configuration"));
        keychain.remove(&reference.item()).unwrap();
        let text = said(check("cursor/user/a", &line, own));
        assert!(text.contains("firedoor secrets set cursor/user/a/T"), "{text}");
        keychain.lock(true);
        assert!(said(check("cursor/user/a", &line, own)).contains("may be locked"));
    }
}
