//! Who issues tokens for a server, and where: protected resource metadata (RFC 9728) and authorization server metadata
//! (RFC 8414, OpenID Connect Discovery 1.0), as MCP's revisions 2025-11-25 and 2026-07-28 have them found.

use reqwest::Url;
use serde::Deserialize;

use super::{LoginError, Reach, fetch::Fetch};

/// Where a server's metadata are, with its own path behind it (RFC 9728 §3.1).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What a server says about itself.
#[derive(Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// What a login at a server needs to know about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Protected {
    /// What tokens are asked for.
    pub resource: String,
    /// Who issues them.
    pub issuer: String,
    /// What to ask for when the server has not said.
    pub scopes: Vec<String>,
}

/// What an issuer says about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Issuer {
    /// Its name, the same as asked for.
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    #[serde(default)]
    pub registration_endpoint: Option<String>,
    #[serde(default)]
    pub revocation_endpoint: Option<String>,
    #[serde(default)]
    pub device_authorization_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Vec<String>,
}

/// Finds the server's metadata, and sees that they are this server's.
pub async fn resource(
    fetch: &Fetch,
    reach: Reach,
    server: &Url,
    named: Option<&str>,
) -> Result<Option<Protected>, LoginError> {
    let places = match named {
        Some(named) => vec![reach.address("the place of its metadata", named)?],
        None => places_of_resource(server),
    };
    for place in places {
        let Some(found) = fetch.json::<Resource>(&place).await? else { continue };
        let found = match whose(reach, server, &place, &found)? {
            Whose::Its => found,
            // Many servers name what lies above them everywhere. Only that itself can say so.
            Whose::Above(own) => match fetch.json::<Resource>(&own).await? {
                Some(said) if matches!(whose(reach, server, &own, &said)?, Whose::Its) => said,
                _ => return Err(other(&found)),
            },
        };
        return protected(reach, found).map(Some);
    }
    Ok(None)
}

/// Whose metadata were found at a place.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    /// The server's, or those of what lies above it, at their own place.
    Its,
    /// Of what lies above it, from elsewhere. Their own place is this one.
    Above(Url),
}

fn other(found: &Resource) -> LoginError {
    LoginError::OtherResource { resource: found.resource.chars().take(200).collect() }
}

/// Metadata of another server would get this one tokens for that one (RFC 9728 §3.3, §7.3).
fn whose(reach: Reach, server: &Url, place: &Url, found: &Resource) -> Result<Whose, LoginError> {
    let resource = reach.address("what it calls itself", &found.resource)?;
    if resource.origin() != server.origin() || !is_below(server.path(), resource.path()) {
        return Err(other(found));
    }
    let own = at(server, &format!("{WELL_KNOWN}{}", resource.path().trim_end_matches('/')));
    let same = resource.path().trim_end_matches('/') == server.path().trim_end_matches('/');
    Ok(if same || own == *place { Whose::Its } else { Whose::Above(own) })
}

fn protected(reach: Reach, found: Resource) -> Result<Protected, LoginError> {
    let issuer = found.authorization_servers.into_iter().next().ok_or(LoginError::NoIssuer)?;
    reach.address("its issuer of tokens", &issuer)?;
    Ok(Protected { resource: found.resource, issuer, scopes: found.scopes_supported })
}

/// Whether a path is another, or lies below it.
fn is_below(path: &str, parent: &str) -> bool {
    let rest = path.strip_prefix(parent.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn places_of_resource(server: &Url) -> Vec<Url> {
    let at = |path: &str| at(server, &format!("{WELL_KNOWN}{path}"));
    let mut all = vec![at(server.path().trim_end_matches('/')), at("")];
    all.dedup();
    all
}

/// Finds an issuer's metadata, and sees that they are its own.
pub async fn issuer(fetch: &Fetch, reach: Reach, name: &str) -> Result<Issuer, LoginError> {
    let url = reach.address("its issuer of tokens", name)?;
    for place in places_of_issuer(&url) {
        let Some(found) = fetch.json::<Issuer>(&place).await? else { continue };
        return found.checked(reach, name);
    }
    Err(LoginError::NoMetadata { issuer: name.to_owned() })
}

fn places_of_issuer(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut all: Vec<Url> = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
        .iter()
        .map(|known| at(issuer, &format!("{known}{path}")))
        .collect();
    all.push(at(issuer, &format!("{path}/.well-known/openid-configuration")));
    all.dedup();
    all
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

impl Issuer {
    fn checked(self, reach: Reach, name: &str) -> Result<Self, LoginError> {
        // Letter by letter (RFC 8414 §3.3): whoever says otherwise stands in for somebody else.
        if self.issuer != name {
            return Err(LoginError::OtherIssuer {
                wanted: name.to_owned(),
                found: self.issuer.chars().take(200).collect(),
            });
        }
        if !self.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(LoginError::NoPkce { issuer: self.issuer });
        }
        reach.address("its page for logging in", &self.authorization_endpoint)?;
        reach.address("its place for tokens", &self.token_endpoint)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn places() {
        let all = |places: Vec<Url>| places.iter().map(|p| p.path().to_owned()).collect::<Vec<_>>();
        let known = "/.well-known/oauth-protected-resource";
        assert_eq!(all(places_of_resource(&url("https://a/mcp?x=1"))), [format!("{known}/mcp"), known.into()]);
        assert_eq!(all(places_of_resource(&url("https://a/"))), [known]);
        let tenant = [
            "/.well-known/oauth-authorization-server/t/1",
            "/.well-known/openid-configuration/t/1",
            "/t/1/.well-known/openid-configuration",
        ];
        assert_eq!(all(places_of_issuer(&url("https://i/t/1"))), tenant);
        let root = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
        assert_eq!(all(places_of_issuer(&url("https://i/"))), root);
    }

    #[test]
    fn metadata_of_another_resource_are_not_used() {
        let server = url("https://a.example/mcp/x");
        let reach = Reach::of(&server).unwrap();
        let known = |path: &str| url(&format!("https://a.example{WELL_KNOWN}{path}"));
        let above = |path: &str| Some(Whose::Above(known(path)));
        for (resource, place, want) in [
            ("https://a.example/mcp/x", known("/mcp/x"), Some(Whose::Its)),
            ("https://a.example/mcp/x/", known(""), Some(Whose::Its)),
            ("https://a.example/mcp/x", url("https://cdn.example/m"), Some(Whose::Its)),
            ("https://a.example/mcp/", known("/mcp"), Some(Whose::Its)),
            ("https://a.example", known(""), Some(Whose::Its)),
            // What lies above may be somebody else's.
            ("https://a.example/mcp/", known("/mcp/x"), above("/mcp")),
            ("https://a.example", known("/mcp/x"), above("")),
            ("https://a.example", known("/mcp"), above("")),
            ("https://a.example", url("https://a.example/mcp/x/m"), above("")),
            ("https://a.example", url("https://evil.example/.well-known/oauth-protected-resource"), above("")),
            ("https://a.example/mc", known("/mc"), None),
            ("https://a.example/mcp/x/y", known("/mcp/x/y"), None),
            ("https://b.example/mcp/x", known(""), None),
            ("https://a.example:444/mcp/x", known(""), None),
            ("http://a.example/mcp/x", known(""), None),
        ] {
            let found = Resource {
                resource: resource.into(),
                authorization_servers: vec!["https://i.example".into()],
                scopes_supported: Vec::new(),
            };
            assert_eq!(whose(reach, &server, &place, &found).ok(), want, "{resource} at {place}");
        }
    }

    #[test]
    fn metadata_of_another_issuer_and_issuers_without_pkce_are_refused() {
        let reach = Reach::of(&url("https://a.example/")).unwrap();
        let check = |issuer: &str, methods: &str, token: &str| {
            let text = format!(
                r#"{{"issuer":"{issuer}","authorization_endpoint":"https://i.example/a","token_endpoint":"{token}"{methods}}}"#
            );
            let found: Issuer = serde_json::from_str(&text).unwrap();
            found.checked(reach, "https://i.example").err().map(|e| e.to_string()).unwrap_or_default()
        };
        let s256 = r#","code_challenge_methods_supported":["plain","S256"]"#;
        assert_eq!(check("https://i.example", s256, "https://i.example/t"), "");
        assert!(check("https://i.example/", s256, "https://i.example/t").contains("says that it is"));
        assert!(check("https://evil.example", s256, "https://i.example/t").contains("says that it is"));
        assert!(check("https://i.example", "", "https://i.example/t").contains("PKCE"));
        let plain = r#","code_challenge_methods_supported":["plain"]"#;
        assert!(check("https://i.example", plain, "https://i.example/t").contains("PKCE"));
        assert!(check("https://i.example", s256, "http://i.example/t").contains("place for tokens"));
    }
}
