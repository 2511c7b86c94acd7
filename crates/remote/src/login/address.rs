//! Addresses that servers name: https, or this machine itself when the server is on it. What a name stands for is judged by
//! the sandbox, which lets nobody reach the user's own network through one.

use std::net::IpAddr;

use reqwest::Url;

use super::LoginError;

/// Longest address.
const MAX: usize = 2048;

/// What the server's own address allows for the others.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    here: bool,
}

impl Reach {
    /// That of a server.
    pub fn of(server: &Url) -> Result<Self, LoginError> {
        let here = is_here(server);
        // Everybody on the way could read a token.
        if server.scheme() != "https" && !here {
            return Err(LoginError::Plain);
        }
        Ok(Self { here })
    }

    /// Reads an address; `what` says which.
    pub fn address(self, what: &'static str, text: &str) -> Result<Url, LoginError> {
        let wrong = || LoginError::Address { what, address: text.chars().take(200).collect() };
        let url = Some(text).filter(|t| t.len() <= MAX).and_then(|t| Url::parse(t).ok()).ok_or_else(wrong)?;
        let fits = match (url.scheme(), is_here(&url)) {
            ("https", false) => true,
            ("http" | "https", true) => self.here,
            _ => false,
        };
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if fits && plain { Ok(url) } else { Err(wrong()) }
    }
}

/// Whether an address is on this machine.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_may_name() {
        let server = |text: &str| Reach::of(&Url::parse(text).unwrap());
        assert!(server("http://a.example/mcp").is_err());
        let (far, near) = (server("https://a.example/mcp").unwrap(), server("http://127.0.0.1:1/mcp").unwrap());
        for (address, by_far, by_near) in [
            ("https://i.example/x?y=z", true, true),
            ("http://i.example/", false, false),
            ("http://localhost:2/", false, true),
            ("https://127.0.0.1/", false, true),
            ("http://[::1]:3/", false, true),
            ("http://[::ffff:127.0.0.1]/", false, true),
            ("https://me:pw@i.example/", false, false),
            ("https://i.example/#x", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
            ("i.example", false, false),
        ] {
            assert_eq!(far.address("x", address).is_ok(), by_far, "{address}");
            assert_eq!(near.address("x", address).is_ok(), by_near, "{address}");
        }
    }
}
