//! A server's own connections to its service, which end here.
//!
//! The guardian leads them to a port of this machine, and begins each with the key of its lane, which nobody else has. What
//! follows is the server's TLS, for exactly the lane's host. Its certificate comes from an authority that is made at the start
//! of this program for the hosts of this one server, and whose key is forgotten before anything is heard: nobody, this program
//! included, can make another certificate that the server would trust.

use std::{
    cell::Cell,
    fmt,
    io::{self, ErrorKind},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use firedoor_model::broker::{RANDOM, Seen};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SanType, date_time_ymd,
};
use rustls::{
    AlertDescription, ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::{Acceptor, ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    time::{timeout, timeout_at},
};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};
use zeroize::Zeroizing;

/// How long certificates are good. Their keys end with this program, which ends with its server.
const GOOD: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// How much earlier they begin, for a clock that is set back.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

/// For the key, which the guardian sends at once, and for the whole handshake.
const ARRIVAL: Duration = Duration::from_secs(5);
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The only protocol that is spoken.
const HTTP: &[u8] = b"http/1.1";

/// The end of the connections to one host.
pub struct End {
    name: String,
    config: Arc<ServerConfig>,
    /// Whether the server ever said something here.
    pub heard: Cell<bool>,
}

/// Why a connection came to nothing, and where that was, for the user.
pub type Failed = (Seen, String);

/// An end for each of these hosts, and the certificate of who vouches for them.
pub fn ends(names: &[String]) -> Result<(Vec<End>, String), String> {
    let failed = |e: &dyn fmt::Display| format!("no certificate can be made: {e}");
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| failed(&e))?;
    let now = date_time_ymd(1970, 1, 1) + unix;
    let signed = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (now - BEFORE, now + GOOD);
        params
    };
    let mut params = signed("Firedoor, for one start of one server");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.iter().cloned().map(GeneralSubtree::DnsName).collect(),
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::V4([0; 4], [0; 4])),
            GeneralSubtree::IpAddress(CidrSubnet::V6([0; 16], [0; 16])),
        ],
    });
    let key = Zeroizing::new(KeyPair::generate().map_err(|e| failed(&e))?);
    let authority = params.self_signed(&*key).map_err(|e| failed(&e))?;
    let issuer = Issuer::new(params, &*key);
    let end = |name: &String| {
        let mut params = signed("Firedoor");
        params.subject_alt_names = vec![SanType::DnsName(name.as_str().try_into().map_err(|e| failed(&e))?)];
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(|e| failed(&e))?;
        let certificate = params.signed_by(&key, &issuer).map_err(|e| failed(&e))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(ring::default_provider());
        let certified = CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider);
        let only = Only { name: name.clone(), certified: Arc::new(certified.map_err(|e| failed(&e))?) };
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = config.map_err(|e| failed(&e))?.with_no_client_auth().with_cert_resolver(Arc::new(only));
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(End { name: name.clone(), config: Arc::new(config), heard: Cell::new(false) })
    };
    let ends = names.iter().map(end).collect::<Result<_, String>>()?;
    Ok((ends, authority.pem()))
}

/// A certificate for one name, and for no connection that names another or none.
#[derive(Debug)]
struct Only {
    name: String,
    certified: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Only {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        is_named(&self.name, &hello).then(|| self.certified.clone())
    }
}

fn is_named(name: &str, hello: &ClientHello<'_>) -> bool {
    hello.server_name().is_some_and(|said| said.eq_ignore_ascii_case(name))
}

/// The key that a connection begins with. `None`: it is not the guardian's.
pub async fn key(stream: &mut TcpStream) -> Option<String> {
    let mut key = [0; RANDOM];
    timeout(ARRIVAL, stream.read_exact(&mut key)).await.ok()?.ok()?;
    String::from_utf8(key.to_vec()).ok()
}

impl End {
    /// Speaks TLS with the server. An error without a reason is a connection that just ended.
    pub async fn accept(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, Option<Failed>> {
        let until = tokio::time::Instant::now() + HANDSHAKE;
        let begun = timeout_at(until, LazyConfigAcceptor::new(Acceptor::default(), stream)).await.map_err(|_| None)?;
        let begun = begun.map_err(|e| {
            (e.kind() == ErrorKind::InvalidData).then(|| (Seen::Unspoken, "a connection without TLS".to_owned()))
        })?;
        let hello = begun.client_hello();
        let offence = if !is_named(&self.name, &hello) {
            let named = if hello.server_name().is_some() { "another host" } else { "no host" };
            Some((Seen::Unnamed, format!("a TLS handshake that names {named}")))
        } else if hello.alpn().is_some_and(|mut all| all.all(|protocol| protocol != HTTP)) {
            Some((Seen::Unspoken, "a TLS handshake that offers no HTTP/1.1".to_owned()))
        } else {
            None
        };
        // An offence fails here, with the alert that says so to the other side.
        let done = timeout_at(until, begun.into_stream(self.config.clone())).await.map_err(|_| None)?;
        match (offence, done) {
            (None, Ok(stream)) => Ok(stream),
            (Some(offence), _) => Err(Some(offence)),
            (None, Err(e)) => Err(distrust(&e).or_else(|| {
                // Some programs just hang up. One that was heard before trusts us.
                (!self.heard.get()).then(|| (Seen::Distrusted, "a TLS handshake that it broke off".to_owned()))
            })),
        }
    }
}

/// What a client says that does not take our certificate.
fn distrust(e: &io::Error) -> Option<Failed> {
    use AlertDescription as Alert;
    let Some(rustls::Error::AlertReceived(alert)) = e.get_ref().and_then(|e| e.downcast_ref()) else { return None };
    matches!(
        alert,
        Alert::UnknownCA | Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate
    )
    .then(|| (Seen::Distrusted, format!("a TLS handshake that it ended with {alert:?}")))
}

#[cfg(test)]
mod tests {
    use rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    };
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    use super::*;

    /// What comes of a client that trusts the authority of `trusted`, names `name` and offers `offers`.
    async fn check(name: &str, offers: &[&str], trusted: bool) -> (Result<(), Option<Seen>>, Result<(), String>) {
        let _ = ring::default_provider().install_default();
        let (ends, authority) = ends(&["a.example".into(), "b.example".into()]).unwrap();
        let authority = if trusted { authority } else { super::ends(&["a.example".into()]).unwrap().1 };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = offers.iter().map(|offer| offer.as_bytes().to_vec()).collect();
        config.enable_sni = name != "nobody";
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let client = async {
            let stream = TcpStream::connect(at).await.unwrap();
            TlsConnector::from(Arc::new(config)).connect(name, stream).await.map(drop).map_err(|e| e.to_string())
        };
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            ends[0].accept(stream).await.map(drop).map_err(|failed| failed.map(|(seen, _)| seen))
        };
        tokio::join!(server, client)
    }

    #[tokio::test]
    async fn only_the_own_host_is_spoken_for_and_only_in_http_1() {
        let both = |(server, client): (Result<(), Option<Seen>>, Result<(), String>)| (server, client.is_ok());
        assert_eq!(both(check("a.example", &["http/1.1"], true).await), (Ok(()), true));
        assert_eq!(both(check("A.Example", &["h2", "http/1.1"], true).await), (Ok(()), true));
        assert_eq!(both(check("a.example", &[], true).await), (Ok(()), true));
        // Its authority vouches for the other one, and still it is not spoken for here.
        for name in ["b.example", "x.a.example", "nobody"] {
            assert_eq!(both(check(name, &["http/1.1"], true).await), (Err(Some(Seen::Unnamed)), false), "{name}");
        }
        assert_eq!(both(check("a.example", &["h2"], true).await), (Err(Some(Seen::Unspoken)), false));
        let (server, client) = check("a.example", &[], false).await;
        assert_eq!(server, Err(Some(Seen::Distrusted)));
        assert!(client.unwrap_err().contains("certificate"));
    }

    #[tokio::test]
    async fn what_does_not_begin_as_the_guardian_does_is_nobodys() {
        use tokio::io::AsyncWriteExt as _;
        for (said, want) in [("k".repeat(RANDOM) + "more", Some("k".repeat(RANDOM))), ("short".into(), None)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            drop(client);
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_eq!(key(&mut stream).await, want);
        }
    }
}
