//! Logging in with a code that the user enters on any machine (RFC 8628), where the issuer offers it.

use std::time::Duration;

use firedoor_model::login::{Credentials, Told};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{LoginError, Reach, fetch::Fetch, metadata::Issuer, tell, token};

/// What tokens are asked for with.
pub const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Between two questions, where the issuer does not say (RFC 8628 §3.2), at least, and at most.
const USUAL: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// For the user, whatever the issuer says.
const PATIENCE: Duration = Duration::from_secs(590);

/// Longest code that a person enters.
const MAX_CODE: usize = 40;

/// What the issuer gives first.
#[derive(Debug, Deserialize)]
struct Begun {
    device_code: String,
    user_code: String,
    verification_uri: String,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    interval: Option<f64>,
}

impl Begun {
    /// What was said, if a person can be shown it.
    fn checked(self, reach: Reach, issuer: &Issuer) -> Result<Self, LoginError> {
        reach.address("its page for codes", &self.verification_uri)?;
        let code = &self.user_code;
        let plain = code.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if code.is_empty() || code.len() > MAX_CODE || !plain || self.device_code.is_empty() {
            return Err(LoginError::Document(issuer.issuer.clone()));
        }
        Ok(self)
    }

    fn interval(&self) -> Duration {
        self.interval.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
    }

    fn lifetime(&self) -> Duration {
        self.expires_in.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or(PATIENCE).min(PATIENCE)
    }
}

/// Gets tokens, once the user has agreed elsewhere.
pub async fn log_in(
    fetch: &Fetch,
    reach: Reach,
    issuer: &Issuer,
    credentials: Credentials,
) -> Result<Credentials, LoginError> {
    let Some(endpoint) = &issuer.device_authorization_endpoint else {
        return Err(LoginError::NoDevice { issuer: issuer.issuer.clone() });
    };
    reach.address("its place for logins with a code", endpoint)?;
    let scope = credentials.scopes.join(" ");
    let mut pairs = vec![("resource", credentials.resource.as_str())];
    if !scope.is_empty() {
        pairs.push(("scope", &scope));
    }
    let answer = token::post(fetch, &credentials, endpoint, &pairs).await?;
    if !answer.status.is_success() {
        return Err(token::refusal(&answer, &credentials));
    }
    let begun: Begun = serde_json::from_slice(&answer.body).map_err(|_| LoginError::Document(issuer.issuer.clone()))?;
    let begun = begun.checked(reach, issuer)?;
    let (mut interval, deadline) = (begun.interval(), Instant::now() + begun.lifetime());
    let (address, code) = (begun.verification_uri, begun.user_code);
    tell(&Told::Enter { address, code, issuer: issuer.issuer.clone() }).map_err(LoginError::Over)?;
    let grant = [("grant_type", GRANT), ("device_code", begun.device_code.as_str())];
    while Instant::now() + interval < deadline {
        sleep(interval).await;
        match token::tokens(fetch, credentials.clone(), &grant).await {
            Err(LoginError::Refused { error, .. }) if error == "authorization_pending" => {}
            // Whoever does not answer is asked less often, too (RFC 8628 §3.5).
            Err(LoginError::Refused { error, .. }) if error == "slow_down" => interval += USUAL,
            Err(LoginError::Unreachable { .. }) => interval += USUAL,
            Err(LoginError::Refused { error, .. }) if error == "expired_token" => break,
            settled => return settled,
        }
    }
    Err(LoginError::NobodyEntered)
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    #[test]
    fn what_an_issuer_may_have_a_person_enter() {
        let reach = Reach::of(&Url::parse("https://a.example/mcp").unwrap()).unwrap();
        let issuer: Issuer = serde_json::from_str(
            r#"{"issuer":"https://i.example","authorization_endpoint":"https://i.example/a","token_endpoint":"https://i.example/t"}"#,
        )
        .unwrap();
        let check = |text: &str| serde_json::from_str::<Begun>(text).unwrap().checked(reach, &issuer);
        let with = |code: &str, address: &str| {
            check(&format!(r#"{{"device_code":"d","user_code":"{code}","verification_uri":"{address}"}}"#))
        };
        let good = with("ABCD-EFGH", "https://i.example/device").unwrap();
        assert_eq!((good.interval(), good.lifetime()), (USUAL, PATIENCE));
        for (code, address) in [
            ("", "https://i.example/device"),
            ("\\u001b[2J", "https://i.example/device"),
            ("\\u202eABC", "https://i.example/device"),
            (&"A".repeat(41), "https://i.example/device"),
            ("ABCD", "http://i.example/device"),
            ("ABCD", "file:///etc/passwd"),
        ] {
            assert!(with(code, address).is_err(), "{code} {address}");
        }
        for (said, interval) in [("1e9", LONGEST), ("0", SHORTEST), ("-1", USUAL), ("7", Duration::from_secs(7))] {
            let odd = check(&format!(
                r#"{{"device_code":"d","user_code":"A","verification_uri":"https://i.example/","interval":{said},"expires_in":-1}}"#
            ));
            let odd = odd.unwrap();
            assert_eq!((odd.interval(), odd.lifetime()), (interval, PATIENCE), "{said}");
        }
    }
}
