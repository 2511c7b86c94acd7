//! Broker mode: a secret that its server never gets. The server has a placeholder in its place, and speaks to its service
//! through a listener on this machine that puts the secret in.

use std::{path::PathBuf, sync::LazyLock};

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use crate::{Untrusted, launch::Step, network::Led};

/// Argument with which `firedoor-remote` puts secrets in, instead of standing for a server.
pub const BROKER: &str = "--broker";

/// What every placeholder begins with.
pub const PLACEHOLDER: &str = "firedoor-broker-";

/// Characters of a placeholder behind that, and of a listener's path: 160 random bits in base 32.
pub const RANDOM: usize = 32;

/// Most secrets of one entry that are put in.
pub const MAX_ROUTES: usize = 8;

/// Shortest secret that is put in, in bytes. A shorter one could not be told from chance in an answer.
pub const MIN_SECRET: usize = 8;

/// Most different things that one listener tells.
pub const MAX_NOTICES: usize = 64;

/// Which of an entry's secrets is put in, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    /// The secret's name in the entry: that of its variable, or of the option before its argument.
    pub secret: String,
    /// The variable that tells the server where its service is. Empty where its connections are intercepted.
    pub variable: String,
    /// The service: one https address, below which everything is meant.
    pub url: String,
    /// The header of requests that the secret is sent in.
    pub header: String,
    /// The server connects to the service as ever, and its TLS ends at Firedoor.
    #[serde(default)]
    pub intercept: bool,
}

/// A route of one launch, with its secret. Never logged, never stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brokered {
    /// What it is.
    pub route: Route,
    /// What the path of its address begins with; where connections are intercepted, what the guardian begins each with.
    pub key: String,
    /// What the server has in the secret's place.
    pub placeholder: String,
    /// The secret.
    pub secret: String,
}

/// What the shim starts before the server.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// The process.
    pub step: Step,
    /// What it is told first, on its stdin.
    pub brokered: Vec<Brokered>,
    /// What is done besides, where connections are intercepted.
    #[serde(default)]
    pub interception: Option<Interception>,
}

/// Which of a server's connections end here, and how it comes to trust an authority that is made for one start of it: by files
/// that its variables name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interception {
    /// The connections. Where they end is not known before something listens.
    pub led: Vec<Led>,
    /// Where the files are put, in a directory of their own for each start.
    pub directory: PathBuf,
    /// The system's authorities; the first that there is counts.
    pub roots: Vec<PathBuf>,
    /// The variables, and which file each names.
    pub variables: Vec<(String, Holds)>,
}

/// What a file of certificates holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// That authority alone: the variable adds to what is trusted.
    Authority,
    /// The system's authorities as well: the variable takes their place.
    All,
}

/// What that process says, a line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// It listens on 127.0.0.1.
    Listens {
        /// The port for those who were told an address.
        port: Option<u16>,
        /// Where intercepted connections are to go.
        #[serde(default)]
        intercepts: Option<Intercepts>,
    },
    /// It cannot.
    Failed {
        /// Why.
        why: String,
    },
    /// Something to be put on record.
    Noticed(Notice),
}

/// Where intercepted connections go, and who vouches for what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intercepts {
    /// The port of 127.0.0.1.
    pub port: u16,
    /// The certificate of the authority, as PEM. Nobody has its key any more.
    pub authority: String,
}

/// What a listener has noticed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Notice {
    /// What.
    pub seen: Seen,
    /// The secret's name.
    pub secret: Untrusted,
    /// The service's host and port.
    pub host: String,
    /// Where in the request or in the answer, in our words.
    pub place: String,
}

/// Kinds of what is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A placeholder stood where no credential belongs. The request was refused.
    Misplaced,
    /// The request had another credential than the placeholder. It was refused.
    Other,
    /// The service answered with the secret, which was masked.
    Echoed,
    /// An intercepted connection named another host, or none. It was refused.
    Unnamed,
    /// An intercepted connection spoke something else than HTTP/1.1 over TLS. It was refused.
    Unspoken,
    /// The server did not take the certificate of an intercepted connection.
    Distrusted,
}

/// Where a placeholder stands in a text: its bytes.
pub fn placeholder_in(text: &[u8]) -> Option<(usize, usize)> {
    // To prepare the search takes longer than to search most texts.
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PLACEHOLDER));
    let is_random = |b: &u8| matches!(b, b'a'..=b'z' | b'2'..=b'7');
    if text.len() < PLACEHOLDER.len() + RANDOM {
        return None;
    }
    FINDER.find_iter(text).find_map(|at| {
        let end = at + PLACEHOLDER.len() + RANDOM;
        let random = text.get(at + PLACEHOLDER.len()..end)?;
        random.iter().all(is_random).then_some((at, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known_by_their_form() {
        let one = format!("{PLACEHOLDER}{}", "ab2c3d4e".repeat(4));
        let check =
            |text: &str, want: Option<(usize, usize)>| assert_eq!(placeholder_in(text.as_bytes()), want, "{text}");
        check(&one, Some((0, 48)));
        check(&format!("Bearer {one}, {one}"), Some((7, 55)));
        check(&format!("{PLACEHOLDER}{one}"), Some((16, 64)));
        check(&one[..47], None);
        check(&one.replace('2', "1"), None);
        check(PLACEHOLDER, None);
        check("", None);
    }
}
