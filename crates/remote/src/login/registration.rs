//! What an issuer knows Firedoor by: what the user registered, or a registration that is made now (RFC 7591).

use firedoor_model::login::TokenAuth;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;

use super::{LoginError, Reach, device::GRANT, fetch::Fetch, metadata::Issuer};

/// How the user logs in.
#[derive(Clone, Copy)]
pub enum Way<'w> {
    /// With a browser, which comes back here.
    Browser(&'w str),
    /// With a code that is entered elsewhere (RFC 8628).
    Device,
}

/// The registration of a client. Holds a secret: never shown.
pub struct Registration {
    pub client_id: String,
    pub client_secret: Option<String>,
    pub auth: TokenAuth,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// How a client that the user registered shows at this issuer that it is itself.
pub fn auth(issuer: &Issuer, client_id: &str, has_secret: bool) -> Result<TokenAuth, LoginError> {
    if !has_secret {
        // A document that the issuer fetches (draft-ietf-oauth-client-id-metadata-document). A client with a secret is none.
        if client_id.starts_with("https://") && !issuer.client_id_metadata_document_supported {
            return Err(LoginError::NoDocuments { issuer: issuer.issuer.clone() });
        }
        return Ok(TokenAuth::None);
    }
    let methods = &issuer.token_endpoint_auth_methods_supported;
    let takes = |method: &str| methods.iter().any(|m| m == method);
    // What holds where nothing is said (RFC 8414 §2).
    if methods.is_empty() || takes("client_secret_basic") {
        Ok(TokenAuth::Basic)
    } else if takes("client_secret_post") {
        Ok(TokenAuth::Post)
    } else {
        Err(LoginError::NoSecrets { issuer: issuer.issuer.clone() })
    }
}

/// A new registration at this issuer: none is taken from another one.
pub async fn registration(
    fetch: &Fetch,
    reach: Reach,
    issuer: &Issuer,
    way: Way<'_>,
) -> Result<Registration, LoginError> {
    let Some(endpoint) = &issuer.registration_endpoint else {
        return Err(LoginError::NoRegistration { issuer: issuer.issuer.clone() });
    };
    let endpoint = reach.address("its place for registrations", endpoint)?;
    let (redirects, grant, responses) = match way {
        Way::Browser(redirect) => (vec![redirect], "authorization_code", vec!["code"]),
        Way::Device => (Vec::new(), GRANT, Vec::new()),
    };
    let wanted = json!({
        "client_name": "Firedoor",
        "application_type": "native",
        "redirect_uris": redirects,
        "grant_types": [grant, "refresh_token"],
        "response_types": responses,
        "token_endpoint_auth_method": "none",
    });
    let answer = fetch.post(&endpoint, |r| r.header(CONTENT_TYPE, "application/json").body(wanted.to_string())).await?;
    if !answer.status.is_success() {
        return Err(LoginError::Registration(format!("HTTP {}", answer.status)));
    }
    read(&answer.body)
}

fn read(body: &[u8]) -> Result<Registration, LoginError> {
    let wrong = |why: &str| LoginError::Registration(why.to_owned());
    let registered: Registered =
        serde_json::from_slice(body).map_err(|_| wrong("its answer is not what it should be"))?;
    let auth = match (registered.token_endpoint_auth_method.as_deref(), &registered.client_secret) {
        (Some("none"), _) | (None, None) => TokenAuth::None,
        (Some("client_secret_post"), Some(_)) => TokenAuth::Post,
        // What a client with a secret uses when nothing is said (RFC 7591 §2).
        (Some("client_secret_basic") | None, Some(_)) => TokenAuth::Basic,
        _ => return Err(wrong("it wants to be shown who asks in a way that Firedoor does not know")),
    };
    let client_secret = registered.client_secret.filter(|_| auth != TokenAuth::None);
    if registered.client_id.is_empty() {
        return Err(wrong("it gave no name"));
    }
    Ok(Registration { client_id: registered.client_id, client_secret, auth })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_secret_is_shown_as_the_issuer_takes_it() {
        let check = |methods: &str, client_id: &str, has_secret| {
            let text = format!(
                r#"{{"issuer":"i","authorization_endpoint":"a","token_endpoint":"t"{}{methods}}}"#,
                if methods.is_empty() { "" } else { r#","token_endpoint_auth_methods_supported":"# }
            );
            auth(&serde_json::from_str(&text).unwrap(), client_id, has_secret).map_err(|e| e.to_string())
        };
        for methods in ["", "[]", r#"["client_secret_post","client_secret_basic"]"#] {
            assert_eq!(check(methods, "c", true), Ok(TokenAuth::Basic), "{methods}");
        }
        assert_eq!(check(r#"["none","client_secret_post"]"#, "c", true), Ok(TokenAuth::Post));
        for methods in [r#"["none"]"#, r#"["private_key_jwt","client_secret_jwt"]"#] {
            assert!(check(methods, "c", true).unwrap_err().contains("secret"), "{methods}");
        }
        assert_eq!(check(r#"["client_secret_basic"]"#, "c", false), Ok(TokenAuth::None));
        assert!(check("", "https://a.example/client", false).unwrap_err().contains("documents"));
        assert_eq!(check("", "https://a.example/client", true), Ok(TokenAuth::Basic));
    }

    #[test]
    fn registrations() {
        let check = |text: &str| read(text.as_bytes()).map(|r| (r.auth, r.client_secret)).map_err(|e| e.to_string());
        let secret = || Some("s".to_owned());
        assert_eq!(check(r#"{"client_id":"c"}"#), Ok((TokenAuth::None, None)));
        assert_eq!(check(r#"{"client_id":"c","client_secret":"s"}"#), Ok((TokenAuth::Basic, secret())));
        let with = |method: &str| {
            check(&format!(r#"{{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"{method}"}}"#))
        };
        assert_eq!(with("none"), Ok((TokenAuth::None, None)));
        assert_eq!(with("client_secret_post"), Ok((TokenAuth::Post, secret())));
        assert_eq!(with("client_secret_basic"), Ok((TokenAuth::Basic, secret())));
        assert!(with("private_key_jwt").is_err());
        assert!(check(r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_post"}"#).is_err());
        assert!(check(r#"{"client_id":""}"#).is_err() && check("{}").is_err() && check("no").is_err());
    }
}
