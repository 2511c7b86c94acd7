//! What stands in for a server that is reached over HTTP: `firedoor-remote`, confined to that one host.

use std::{
    ffi::{OsStr, OsString},
    net::ToSocketAddrs as _,
    path::Path,
};

use firedoor_model::{
    Digest,
    credentials::keeps_credentials,
    launch::{Access, Confinement, Network, Step},
    network::{self, Host, HostGrant, Hosts, Port},
    observation::Basis,
    remote::{Instructions, RemoteRequest},
};
use url::Url;

use crate::{Context, error::PlanError, grants, grants::Grants, protect::Protected, sys};

/// Variables that say how the network is used here; the second part of each pair is whether they name a proxy.
const VARIABLES: [(&str, bool); 11] = [
    ("SSL_CERT_FILE", false),
    ("SSL_CERT_DIR", false),
    (CERTIFICATES, false),
    ("NO_PROXY", false),
    ("no_proxy", false),
    ("HTTPS_PROXY", true),
    ("https_proxy", true),
    ("HTTP_PROXY", true),
    ("http_proxy", true),
    ("ALL_PROXY", true),
    ("all_proxy", true),
];

/// The variable for further authorities.
pub const CERTIFICATES: &str = "NODE_EXTRA_CA_CERTS";

/// Whether a variable says whose certificates are trusted. Whoever sets it can read what is sent.
pub fn is_about_trust(name: &str) -> bool {
    ["SSL_CERT_FILE", "SSL_CERT_DIR", CERTIFICATES]
        .iter()
        .any(|known| sys::same_variable(OsStr::new(known), OsStr::new(name)))
}

/// A remote server's start.
pub struct RemoteRun {
    /// What to run.
    pub step: Step,
    /// What it is told first.
    pub instructions: Instructions,
    /// What it is, for showing: the address without what may be a secret in it.
    pub what: String,
    /// The launch identity: the address.
    pub digest: Digest,
    /// What it may reach.
    pub basis: Basis,
    /// What the user should know about this plan.
    pub notes: Vec<String>,
}

/// Decides under what confinement a remote server is spoken to. `program` is `firedoor-remote`.
pub fn remote(
    request: &RemoteRequest,
    context: &Context<'_>,
    program: &Path,
    max_message: usize,
) -> Result<RemoteRun, PlanError> {
    if !program.is_file() {
        return Err(PlanError::NotRunnable {
            path: program.to_owned(),
            why: "it is missing, and speaks to servers with an address; install Firedoor again".into(),
        });
    }
    let url = Url::parse(&request.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let host = url.as_ref().and_then(granted).ok_or(PlanError::Address)?;
    let mut allowed = context.user.hosts.clone();
    let by_hand = |host: &HostGrant| allowed.iter().any(|g| g.host == host.host);
    if let Host::Address(ip) = host.host
        && keeps_credentials(ip)
        && !by_hand(&host)
    {
        return Err(PlanError::KeepsCredentials { address: ip });
    }
    let what = host.to_string();

    let (mut env, mut proxies): (Vec<(OsString, OsString)>, _) = (Vec::new(), Vec::new());
    let is = |one: &OsStr, other: &str| sys::same_variable(one, OsStr::new(other));
    for (name, is_proxy) in VARIABLES {
        let Some((_, value)) = request.env.iter().rev().find(|(n, _)| is(n, name)) else { continue };
        // Where case does not count, both spellings of a name are one variable.
        if value.is_empty() || env.iter().any(|(n, _)| is(n, name)) {
            continue;
        }
        if is_proxy {
            proxies.extend(proxy(value));
        }
        env.push((name.into(), value.clone()));
    }
    sys::add_needed(&mut env);
    // Whoever wrote the variable need not be who may grant that.
    proxies.retain(|proxy| !matches!(proxy.host, Host::Address(ip) if keeps_credentials(ip)));
    allowed.push(host);
    allowed.extend(proxies);
    let mut grants = Grants::new(Protected::new(context.paths));
    grants.base();
    grants.trusted(program.to_owned(), Access::Read);
    grants.certificates(&env);
    let Grants { grants, notes, .. } = grants;
    let basis = Basis {
        grants: grants.clone(),
        in_force: grants.clone(),
        hosts: allowed.clone(),
        cwd: request.cwd.clone(),
        ..Basis::default()
    };
    Ok(RemoteRun {
        step: Step {
            program: program.to_owned(),
            args: Vec::new(),
            env,
            cwd: Path::new(sys::ROOT).to_owned(),
            confinement: Confinement {
                grants,
                network: Network::Hosts(Hosts { allowed, ..Hosts::default() }),
                protected: Default::default(),
                sockets: Vec::new(),
                own: Vec::new(),
                limits: grants::base_limits(),
            },
        },
        instructions: Instructions {
            entry: request.entry.clone(),
            signed_in: false,
            at_endpoint: false,
            url: request.url.clone(),
            transport: request.transport,
            headers: request.headers.clone(),
            max_message,
        },
        what,
        digest: Digest::of_fields([b"remote".as_slice(), request.url.as_bytes()]),
        basis,
        notes,
    })
}

/// Whether a variable says how the network is used here.
pub fn is_about_the_network(name: &str) -> bool {
    VARIABLES.iter().any(|(known, _)| sys::same_variable(OsStr::new(known), OsStr::new(name)))
}

/// What has to be reached for a login at a server, besides the server: whoever issues tokens for it, which only the server
/// knows. Names that stand for the user's own network are not among it, but for those on the server's own host.
pub fn login_hosts(url: &str) -> Vec<HostGrant> {
    let own = Url::parse(url).ok().as_ref().and_then(granted).map(|own| HostGrant { port: None, ..own });
    own.into_iter().chain([HostGrant { host: Host::Any, port: None }]).collect()
}

/// The host of an address, as grants name it.
pub fn host_of(url: &str) -> Option<Host> {
    Url::parse(url).ok().as_ref().and_then(granted).map(|grant| grant.host)
}

/// The host and port of an address, as a grant.
fn granted(url: &Url) -> Option<HostGrant> {
    let host = match url.host()? {
        url::Host::Domain(name) => Host::Name(network::name(name).ok()?),
        url::Host::Ipv4(ip) => Host::Address(ip.into()),
        url::Host::Ipv6(ip) => Host::Address(ip.to_canonical()),
    };
    Some(HostGrant { host, port: Some(Port::Tcp(url.port_or_known_default()?)) })
}

/// A proxy, which may stand in the user's own network: its name is looked up here, and its addresses are granted with it.
fn proxy(value: &OsStr) -> Vec<HostGrant> {
    let Some(text) = value.to_str() else { return Vec::new() };
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    let Some(grant) = url.ok().as_ref().and_then(granted) else { return Vec::new() };
    let mut all = vec![grant.clone()];
    if let (Host::Name(name), Some(Port::Tcp(port))) = (&grant.host, grant.port) {
        let addresses = (name.as_str(), port).to_socket_addrs().into_iter().flatten();
        all.extend(addresses.map(|a| HostGrant { host: Host::Address(a.ip().to_canonical()), port: grant.port }));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use firedoor_model::{Millis, paths::Paths, remote::Transport};

    use super::*;
    use crate::{Profiles, UserGrants};

    fn check(url: &str, env: &[(&str, &str)], hosts: &[&str]) -> Result<Vec<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("firedoor-remote");
        fs::write(&program, "").unwrap();
        let paths = Paths::from_env(|name| ["HOME", "USERPROFILE"].contains(&name).then(|| dir.path().into())).unwrap();
        let user = UserGrants { hosts: hosts.iter().map(|h| h.parse().unwrap()).collect(), ..UserGrants::default() };
        let profiles = Profiles::load(&dir.path().join("none")).0;
        let context = Context::new(&paths, &profiles, &user, Millis(0));
        let request = RemoteRequest {
            entry: "a/b/c".parse().unwrap(),
            url: url.into(),
            transport: Transport::Auto,
            headers: vec![("Authorization".into(), "Bearer secret".into())],
            cwd: "/".into(),
            env: env.iter().map(|(n, v)| (n.into(), v.into())).collect(),
        };
        let run = remote(&request, &context, &program, 1 << 20).map_err(|e| e.to_string())?;
        let step = &run.step;
        assert!(step.args.is_empty() && step.env.iter().all(|(_, v)| !v.to_string_lossy().contains("secret")));
        assert!(step.confinement.grants.iter().all(|g| !g.path.starts_with(dir.path()) || g.path == program));
        assert!(step.confinement.grants.iter().all(|g| g.access < Access::Write || g.path.starts_with("/dev")));
        let Network::Hosts(hosts) = &step.confinement.network else { panic!("no hosts") };
        assert!(!hosts.ask && !hosts.listen);
        Ok(hosts.allowed.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn it_reaches_its_own_host_and_nothing_else() {
        for (url, want) in [
            ("https://Mcp.Example.com/x?key=1", vec!["mcp.example.com:443"]),
            ("http://localhost:8080/mcp", vec!["localhost:8080"]),
            ("http://[::1]:8080/mcp", vec!["[::1]:8080"]),
            ("https://user:pw@10.1.2.3/", vec!["10.1.2.3:443"]),
            ("http://0x7f000001/", vec!["127.0.0.1:80"]),
        ] {
            assert_eq!(check(url, &[("SECRET", "secret"), ("PATH", "/usr/bin")], &[]).unwrap(), want, "{url}");
        }
        assert_eq!(check("https://a.example/", &[], &["b.example:443"]).unwrap(), ["b.example:443", "a.example:443"]);
    }

    #[test]
    fn proxies_are_reached_too() {
        let env = [("HTTPS_PROXY", "http://u:p@10.0.0.1:3128"), ("http_proxy", "10.0.0.2:80"), ("NO_PROXY", "x")];
        let want = ["a.example:443", "10.0.0.1:3128", "10.0.0.2:80"];
        assert_eq!(check("https://a.example/", &env, &[]).unwrap(), want);
        // Not where a machine in a cloud gets its credentials, but for who grants it.
        let env = [("HTTPS_PROXY", "http://169.254.169.254"), ("all_proxy", "socks5://[fd00:ec2::254]:80")];
        assert_eq!(check("https://a.example/", &env, &[]).unwrap(), ["a.example:443"]);
        let granted = check("https://a.example/", &env, &["169.254.169.254"]).unwrap();
        assert_eq!(granted, ["169.254.169.254", "a.example:443"]);
    }

    #[test]
    fn addresses_that_are_none_and_those_of_machines_in_clouds() {
        for url in ["", "a.example", "file:///etc/passwd", "https://", "https://secret@"] {
            let error = check(url, &[], &[]).unwrap_err();
            assert!(error.contains("no http or https address") && !error.contains("secret"), "{error}");
        }
        for url in [
            "http://169.254.169.254/latest",
            "http://[fe80::1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
        ] {
            assert!(check(url, &[], &[]).unwrap_err().contains("firedoor grants add"), "{url}");
        }
        assert!(check("http://169.254.169.254/", &[], &["169.254.169.254"]).is_ok());
    }
}
