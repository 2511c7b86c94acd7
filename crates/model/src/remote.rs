//! Servers that are reached over HTTP: what an entry says about one, and what the program that speaks to it is told.

use std::{ffi::OsString, fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::EntryId;

/// The server has closed the stream of a request and wants to be asked again later (2025-11-25, "Sending Messages to the Server").
/// What speaks to the server tells that to what listens at an endpoint, which does the same to its client; others are not told.
pub const PAUSED: &str = "notifications/firedoor/paused";

/// Longest text form of an [`Instructions`], in bytes: it is written into an empty pipe, which takes 64 KiB at once.
pub const MAX_INSTRUCTIONS: usize = 32 << 10;

/// Which of MCP's transports over HTTP a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Streamable HTTP or, when the server does not know that, HTTP+SSE.
    #[default]
    Auto,
    /// Streamable HTTP (revisions 2025-03-26 and later).
    Http,
    /// HTTP+SSE (revision 2024-11-05).
    Sse,
}

/// A text that names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transport is auto, http or sse")]
pub struct TransportError;

impl FromStr for Transport {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        match text {
            "auto" => Ok(Self::Auto),
            "http" => Ok(Self::Http),
            "sse" => Ok(Self::Sse),
            _ => Err(TransportError),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Http => "http",
            Self::Sse => "sse",
        })
    }
}

/// What a client asked the shim to connect to. Holds the environment and headers with their secrets: never logged, never
/// stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct RemoteRequest {
    /// Which entry.
    pub entry: EntryId,
    /// The server's address.
    pub url: String,
    /// How it is spoken to.
    pub transport: Transport,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The shim's working directory.
    pub cwd: PathBuf,
    /// The shim's whole environment.
    pub env: Vec<(OsString, OsString)>,
}

/// The first line that `firedoor-remote` reads. It comes through a pipe, so that no secret stands in arguments or in an
/// environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// Which entry, for what the user is told.
    pub entry: EntryId,
    /// The server's address.
    pub url: String,
    /// How it is spoken to.
    pub transport: Transport,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// One of the headers comes from a login, not from the entry.
    pub signed_in: bool,
    /// The client is at one of our endpoints, which understands [`PAUSED`].
    pub at_endpoint: bool,
    /// Largest message, in bytes.
    pub max_message: usize,
}
