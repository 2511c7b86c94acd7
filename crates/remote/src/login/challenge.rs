//! What a server asks for: the `WWW-Authenticate` header (RFC 9110 §11.6.1, RFC 6750 §3).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Largest header that is looked at, in bytes.
const MAX: usize = 8 << 10;

/// What a `Bearer` challenge says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the metadata of the resource are (RFC 9728 §5.1).
    pub metadata: Option<String>,
    /// Scopes that are wanted.
    pub scopes: Vec<String>,
    /// What was wrong with the token.
    pub error: Option<String>,
}

impl Challenge {
    /// The first `Bearer` challenge among the headers of a response.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let all = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        all.filter(|text| text.len() <= MAX).find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut found, mut is_bearer) = (None::<Self>, false);
        for item in items(text) {
            let (scheme, parameter) = match item {
                Item::Scheme(scheme) => (Some(scheme), None),
                Item::Parameter { scheme, name, value } => (scheme, Some((name, value))),
            };
            if let Some(scheme) = scheme {
                // The next challenge.
                if found.is_some() {
                    break;
                }
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
            }
            if !is_bearer {
                continue;
            }
            let challenge = found.get_or_insert_default();
            let Some((name, value)) = parameter else { continue };
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.metadata = Some(value),
                "scope" => challenge.scopes = scopes(&value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }
        found
    }
}

/// Scopes as they stand in one string (RFC 6749 §3.3).
pub fn scopes(text: &str) -> Vec<String> {
    let plain = |s: &&str| s.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    text.split(' ').filter(|s| !s.is_empty()).filter(plain).take(100).map(str::to_owned).collect()
}

enum Item<'t> {
    Scheme(&'t str),
    Parameter { scheme: Option<&'t str>, name: &'t str, value: String },
}

/// What stands between commas: a scheme, a parameter, or a scheme with its first parameter.
fn items(text: &str) -> Vec<Item<'_>> {
    let (mut items, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return items;
        }
        let (word, behind) = token(rest);
        let (scheme, name, behind) = match behind.trim_start().strip_prefix('=') {
            Some(value) => (None, word, Some(value)),
            None => {
                let (name, after) = token(behind.trim_start());
                match after.trim_start().strip_prefix('=').filter(|_| !name.is_empty()) {
                    Some(value) => (Some(word), name, Some(value)),
                    None => {
                        items.push(Item::Scheme(word));
                        (None, "", None)
                    }
                }
            }
        };
        rest = match behind {
            Some(behind) => {
                let (value, after) = value(behind.trim_start());
                items.push(Item::Parameter { scheme, name, value });
                after
            }
            // A scheme alone, or one with its token68: up to the comma.
            None => rest.split_once(',').map_or("", |(_, after)| after),
        };
    }
}

fn token(text: &str) -> (&str, &str) {
    let sign = |c: char| !(c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c));
    text.split_at(text.find(sign).unwrap_or(text.len()))
}

fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = text.split_at(text.find([',', ' ', '\t']).unwrap_or(text.len()));
        return (word.to_owned(), rest);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) -> Option<(Option<String>, String, Option<String>)> {
        Challenge::parse(text).map(|c| (c.metadata, c.scopes.join(" "), c.error))
    }

    #[test]
    fn challenges() {
        let some = |m: Option<&str>, s: &str, e: Option<&str>| {
            Some((m.map(str::to_owned), s.to_owned(), e.map(str::to_owned)))
        };
        assert_eq!(check("Bearer"), some(None, "", None));
        assert_eq!(check("bearer realm=x, error=\"invalid_token\""), some(None, "", Some("invalid_token")));
        let whole = r#"Bearer resource_metadata="https://a/.well-known/x?a=1,b", scope="a:b c", error_description="a \"b\", c""#;
        assert_eq!(check(whole), some(Some("https://a/.well-known/x?a=1,b"), "a:b c", None));
        assert_eq!(check("Basic realm=\"x, Bearer scope=y\", Bearer scope=z"), some(None, "z", None));
        assert_eq!(check("Negotiate YWJj=, Bearer , scope = \"a\""), some(None, "a", None));
        assert_eq!(check("Bearer scope=a, Digest scope=b, realm=c"), some(None, "a", None));
        assert_eq!(check("Bearer scope=\"a"), some(None, "a", None));
        assert_eq!(check("Bearer scope=\"a\tb \u{7f} c\""), some(None, "c", None));
        for none in ["", ",,", "Basic realm=x", "=", "\"Bearer\""] {
            assert_eq!(check(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_too_strange(text in "[ -~]{0,80}") {
            let _ = Challenge::parse(&text);
        }
    }
}
