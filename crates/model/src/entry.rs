//! The name of one server entry in one scope of one client.

use std::{fmt, str::FromStr};

use crate::text::quoted_name;

/// Longest accepted text form, in bytes. Longer ids are refused, never cut.
pub const MAX_ENTRY_ID: usize = 4096;

/// Unique over client, scope and server, because the same server name at several levels is common.
///
/// Text form: `client/scope/server`, each part with `%`, `/`, white space and control characters percent-encoded, for
/// example `cursor/user/fs` or `claude-code/local:%2Fhome%2Fu%2Fapp/pg`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    client: String,
    scope: String,
    server: String,
}

/// Why a text is not an entry id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryIdError {
    /// Not three parts.
    #[error("an entry id has the form client/scope/server, with \"/\" inside a part written as %2F")]
    Parts,
    /// Empty client or scope. (A server's name may be empty: clients accept that.)
    #[error("an entry id needs a client and a scope")]
    Empty,
    /// A `%` not followed by two hex digits, or an escape that is not UTF-8.
    #[error("an entry id has a broken %-escape")]
    Escape,
    /// Longer than [`MAX_ENTRY_ID`].
    #[error("an entry id has at most {MAX_ENTRY_ID} bytes")]
    TooLong,
}

impl EntryId {
    /// Builds an id from its plain (unescaped) parts.
    pub fn new(client: &str, scope: &str, server: &str) -> Result<Self, EntryIdError> {
        if client.is_empty() || scope.is_empty() {
            return Err(EntryIdError::Empty);
        }
        let id = Self { client: client.into(), scope: scope.into(), server: server.into() };
        if id.to_string().len() > MAX_ENTRY_ID { Err(EntryIdError::TooLong) } else { Ok(id) }
    }

    /// The client's id in the catalog, such as `claude-code`.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Its text form in a command that a person will copy.
    pub fn quoted(&self) -> String {
        quoted_name(&self.to_string())
    }

    /// The scope, such as `user` or `project:/home/u/app`.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The server's name as the client's configuration spells it. Untrusted text.
    pub fn server(&self) -> &str {
        &self.server
    }
}

pub(crate) fn encode(part: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for c in part.chars() {
        if c == '%' || c == '/' || c.is_whitespace() || c.is_control() {
            let mut buf = [0; 4];
            for b in c.encode_utf8(&mut buf).bytes() {
                write!(out, "%{b:02X}")?;
            }
        } else {
            write!(out, "{c}")?;
        }
    }
    Ok(())
}

pub(crate) fn decode(part: &str) -> Result<String, EntryIdError> {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        if b == b'%' {
            let hex = tail.get(..2).ok_or(EntryIdError::Escape)?;
            let byte = data_encoding::HEXUPPER_PERMISSIVE.decode(hex).map_err(|_| EntryIdError::Escape)?;
            out.extend(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            out.push(b);
            rest = tail;
        }
    }
    String::from_utf8(out).map_err(|_| EntryIdError::Escape)
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(&self.client, f)?;
        f.write_str("/")?;
        encode(&self.scope, f)?;
        f.write_str("/")?;
        encode(&self.server, f)
    }
}

impl FromStr for EntryId {
    type Err = EntryIdError;
    fn from_str(s: &str) -> Result<Self, EntryIdError> {
        if s.len() > MAX_ENTRY_ID {
            return Err(EntryIdError::TooLong);
        }
        let parts: Vec<&str> = s.split('/').collect();
        let [client, scope, server] = parts.as_slice() else { return Err(EntryIdError::Parts) };
        Self::new(&decode(client)?, &decode(scope)?, &decode(server)?)
    }
}

crate::serde_as_text!(EntryId);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form() {
        let id = EntryId::new("claude-code", "local:/home/u/my app", "né🚀/x").unwrap();
        assert_eq!(id.to_string(), "claude-code/local:%2Fhome%2Fu%2Fmy%20app/né🚀%2Fx");
        assert!(EntryId::new("c", "s", "").is_ok());
    }

    #[test]
    fn bad_text_is_refused() {
        for (text, want) in [
            ("a/b", EntryIdError::Parts),
            ("a/b/c/d", EntryIdError::Parts),
            ("/b/c", EntryIdError::Empty),
            ("a/b/%4", EntryIdError::Escape),
            ("a/b/%zz", EntryIdError::Escape),
            ("a/b/%FF", EntryIdError::Escape),
        ] {
            assert_eq!(text.parse::<EntryId>(), Err(want), "{text}");
        }
        assert_eq!("x".repeat(MAX_ENTRY_ID + 1).parse::<EntryId>(), Err(EntryIdError::TooLong));
    }

    proptest! {
        #[test]
        fn round_trip(client in "\\PC{1,20}", scope in "\\PC{1,40}", server in any::<String>()) {
            if let Ok(id) = EntryId::new(&client, &scope, &server) {
                prop_assert_eq!(id.to_string().parse::<EntryId>(), Ok(id));
            }
        }
    }
}
