//! The user's consent: the address that the browser is sent to, and what it brings back (OAuth 2.1 §4.1, RFC 9207).

use data_encoding::BASE64URL_NOPAD;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::{LoginError, Reach, metadata::Issuer, word};

/// What one request for consent is known by. Used once.
pub struct Consent {
    /// Comes back with the answer.
    state: String,
    /// Shows at the token endpoint that we are who asked (PKCE, RFC 7636).
    pub verifier: String,
    issuer: String,
    says_issuer: bool,
}

/// Why an answer leads no further.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It is not the answer to this request; that may still come.
    Ignored(&'static str),
    /// The issuer refuses, or is not the one that was asked.
    Over(String),
}

fn secret() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| LoginError::Random(e.to_string()))?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

impl Consent {
    /// Asks for it.
    pub fn new(issuer: &Issuer) -> Result<Self, LoginError> {
        Ok(Self {
            state: secret()?,
            verifier: secret()?,
            issuer: issuer.issuer.clone(),
            says_issuer: issuer.authorization_response_iss_parameter_supported,
        })
    }

    /// Where the browser goes.
    pub fn address(
        &self,
        reach: Reach,
        issuer: &Issuer,
        client_id: &str,
        redirect: &str,
        resource: &str,
        scopes: &[String],
    ) -> Result<Url, LoginError> {
        let mut url = reach.address("its page for logging in", &issuer.authorization_endpoint)?;
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(self.verifier.as_bytes()));
        let scope = scopes.join(" ");
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", redirect),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", resource),
        ]);
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        // Without it OpenID providers give no refresh token (OpenID Connect Core 1.0 §11).
        if scopes.iter().any(|s| s == "offline_access") {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(url)
    }

    /// The code in the query that the browser brings back.
    pub fn code(&self, query: &str) -> Result<String, Rejected> {
        let url = Url::parse(&format!("http://localhost/?{query}"));
        let pairs: Vec<(String, String)> =
            url.iter().flat_map(Url::query_pairs).map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
        let one = |name: &str| -> Result<Option<&str>, Rejected> {
            let mut all = pairs.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
            let first = all.next();
            if all.next().is_some() { Err(Rejected::Ignored("it says something twice")) } else { Ok(first) }
        };
        // Whoever does not know it was not sent by us.
        if one("state")? != Some(self.state.as_str()) {
            return Err(Rejected::Ignored("it does not belong to this login"));
        }
        match one("iss")? {
            Some(issuer) if issuer != self.issuer => {
                return Err(Rejected::Over(format!("the answer comes from another issuer than {}", self.issuer)));
            }
            None if self.says_issuer => {
                return Err(Rejected::Over(format!("the answer does not say that it comes from {}", self.issuer)));
            }
            Some(_) | None => {}
        }
        match (one("error")?, one("code")?) {
            (Some(error), _) => Err(Rejected::Over(format!("{} refused it: {}", self.issuer, word(error)))),
            (None, Some(code)) if !code.is_empty() => Ok(code.to_owned()),
            (None, _) => Err(Rejected::Over("the answer has no code".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(says_issuer: bool) -> Issuer {
        let text = format!(
            r#"{{"issuer":"https://i.example","authorization_endpoint":"https://i.example/a?tenant=1",
            "token_endpoint":"https://i.example/t","code_challenge_methods_supported":["S256"],
            "authorization_response_iss_parameter_supported":{says_issuer}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn answers() {
        for (says, query, want) in [
            (false, "code=c&state=STATE", Ok("c")),
            (true, "code=c%20d&state=STATE&iss=https%3A%2F%2Fi.example", Ok("c d")),
            (false, "code=c&state=STATE&iss=https%3A%2F%2Fevil.example", Err("another issuer")),
            (true, "code=c&state=STATE&iss=https%3A%2F%2Fi.example%2F", Err("another issuer")),
            (true, "code=c&state=STATE", Err("does not say")),
            (true, "error=access_denied&state=STATE", Err("does not say")),
            (false, "error=access_denied&error_description=x&state=STATE", Err("refused it: access_denied")),
            (false, "error=%1b[2J&state=STATE", Err("refused it: (another error)")),
            (false, "state=STATE", Err("no code")),
            (false, "code=c", Err("ignored")),
            (false, "code=c&state=other", Err("ignored")),
            (false, "code=c&state=STATE&state=other", Err("ignored")),
            (false, "code=c&code=d&state=STATE", Err("ignored")),
            (false, "", Err("ignored")),
        ] {
            let consent = Consent::new(&issuer(says)).unwrap();
            let got = match consent.code(&query.replace("STATE", &consent.state)) {
                Ok(code) => Ok(code),
                Err(Rejected::Ignored(_)) => Err("ignored".to_owned()),
                Err(Rejected::Over(why)) => Err(why),
            };
            match want {
                Ok(code) => assert_eq!(got.as_deref(), Ok(code), "{query}"),
                Err(part) => assert!(got.as_ref().is_err_and(|e| e.contains(part)), "{query}: {got:?}"),
            }
        }
    }

    #[test]
    fn the_browser_is_told_everything_but_the_secret() {
        let (issuer, consent) = (issuer(true), Consent::new(&issuer(true)).unwrap());
        let reach = Reach::of(&Url::parse("https://a.example/").unwrap()).unwrap();
        let (redirect, scopes) = ("http://127.0.0.1:1/callback", ["a".to_owned(), "offline_access".to_owned()]);
        let url = consent.address(reach, &issuer, "me", redirect, "https://a.example/mcp", &scopes).unwrap();
        let query: Vec<_> = url.query_pairs().collect();
        let of = |name: &str| query.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_ref()).collect::<Vec<_>>();
        assert_eq!((of("tenant"), of("resource")), (vec!["1"], vec!["https://a.example/mcp"]));
        assert_eq!((of("scope"), of("prompt")), (vec!["a offline_access"], vec!["consent"]));
        assert_eq!((of("code_challenge_method"), of("code_challenge")[0].len()), (vec!["S256"], 43));
        assert!(!url.as_str().contains(&consent.verifier));
        assert!(Consent::new(&issuer).unwrap().state != consent.state);
    }
}
