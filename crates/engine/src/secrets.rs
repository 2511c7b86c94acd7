//! Secrets at a launch: what the entry refers to comes out of the keychain and goes to the shim over the socket.

use std::{ffi::OsString, rc::Rc, time::Duration};

use firedoor_clients::{Clients, Env, SecretError, secret_of};
use firedoor_model::{EntryId, Keychain, SecretRef, Untrusted, launch::LaunchRequest};
use firedoor_store::SystemKeychain;

use crate::engine::Engine;

/// For the keychain, which may be asking its user for a password. Clients wait about a minute for a server.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a server does not get its secrets. Names them, never their values.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// It asks for what is not its own.
    #[error(
        "{reference:?} belongs to another entry: run `firedoor protect {client}`, which gives this entry a copy of its own"
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
    /// Inside of Firedoor.
    #[error("its secrets could not be read: {0}; see engine.log")]
    Failed(String),
}

fn reference(value: &OsString) -> Option<SecretRef> {
    SecretRef::read(value.to_str()?)
}

/// Puts the secrets of an entry in the place of the references that its client passed on.
pub async fn fill_in(engine: &Rc<Engine>, request: &mut LaunchRequest) -> Result<(), FillError> {
    let values = || request.args.iter().chain(request.env.iter().map(|(_, value)| value));
    if !values().any(|value| reference(value).is_some()) {
        return Ok(());
    }
    let (paths, mut given) = (engine.paths.clone(), request.clone());
    // Files are read, and the keychain may take its time.
    let work = move || {
        let clients = Clients::load().map_err(|e| FillError::Failed(e.to_string()))?;
        let variables = given.env.clone();
        let lookup = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let env = Env::new(paths, &given.cwd, lookup);
        fill(&clients, &env, &SystemKeychain::new(LIMIT), &mut given)?;
        Ok::<_, FillError>(given)
    };
    *request = tokio::task::spawn_blocking(work).await.map_err(|e| FillError::Failed(e.to_string()))??;
    Ok(())
}

fn fill(
    clients: &Clients,
    env: &Env<'_>,
    keychain: &dyn Keychain,
    request: &mut LaunchRequest,
) -> Result<(), FillError> {
    let shown = |id: &EntryId| Untrusted::new(id.to_string()).visible(200);
    let not_configured = || FillError::NotConfigured { entry: shown(&request.entry) };
    let configured = clients.configured(env, &request.entry).ok_or_else(not_configured)?;
    // Whoever can start a shim can name any entry. What gets its secrets is what the user configured, nothing else.
    if !configured.starts(&request.program, &request.args) {
        return Err(not_configured());
    }
    let (entry, secrets) = (request.entry.clone(), configured.secrets);
    let values = request.args.iter_mut().chain(request.env.iter_mut().map(|(_, value)| value));
    for value in values {
        let Some(reference) = reference(value) else { continue };
        if *reference.entry() != entry {
            let (reference, client) = (shown(reference.entry()), entry.client().to_owned());
            return Err(FillError::Foreign { reference, client });
        }
        if !secrets.contains(&reference) {
            return Err(FillError::NotConfigured { entry: shown(&entry) });
        }
        *value = secret_of(keychain, &reference)?.into();
    }
    Ok(())
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
        let text = format!(
            r#"{{"mcpServers":{{"a":{},"env":{{"T":"{own}"}}}},"b":{},"env":{{"T":"{own}"}}}}}}}}"#,
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
            fill(&clients, &env, &keychain, &mut request).map(|()| request.env.remove(0).1)
        };
        let (line, other) = (["npx", "-y", "/h/srv"], ["npx", "-y", "/h/srv", "-x"]);
        let said = |result: Result<OsString, FillError>| result.unwrap_err().to_string();
        assert!(said(check("cursor/user/a", &line, own)).contains("nothing of Firedoor's"));
        set_secret(&keychain, &reference, "hunter2").unwrap();
        assert_eq!(check("cursor/user/a", &line, own), Ok("hunter2".into()));
        assert!(said(check("cursor/user/a", &other, own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/a", &["evil"], own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/c", &line, own)).contains("not in its client's configuration"));
        assert!(said(check("cursor/user/b", &["evil"], own)).contains("belongs to another entry"));
        let made_up = "firedoor-secret:cursor/user/a/OTHER";
        assert!(said(check("cursor/user/a", &line, made_up)).contains("not in its client's configuration"));
        keychain.remove(&reference.item()).unwrap();
        let text = said(check("cursor/user/a", &line, own));
        assert!(text.contains("firedoor secrets set cursor/user/a/T"), "{text}");
        keychain.lock(true);
        assert!(said(check("cursor/user/a", &line, own)).contains("may be locked"));
    }
}
