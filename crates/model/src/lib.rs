//! Types every Firedoor crate speaks, and views of MCP messages over raw bytes.
//!
//! Architecture invariant: no I/O, no clock, no randomness. Time arrives as [`time::Millis`].

/// `Serialize` and `Deserialize` in the form of `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use serde_as_text;

pub mod audit;
pub mod broker;
pub mod client;
pub mod container;
pub mod credentials;
pub mod digest;
pub mod endpoint;
pub mod entry;
pub mod finding;
pub mod habit;
pub mod keychain;
pub mod launch;
pub mod limits;
pub mod lists;
pub mod login;
pub mod network;
pub mod notice;
pub mod observation;
pub mod paths;
pub mod protected;
pub mod question;
pub mod remedy;
pub mod remote;
pub mod rule;
pub mod secret;
pub mod text;
pub mod time;
pub mod unavailable;
pub mod verdict;
pub mod wire;

pub use client::ClientProcess;
pub use digest::Digest;
pub use entry::EntryId;
pub use finding::{Confidence, Evidence, Finding, Severity};
pub use habit::Habit;
pub use keychain::{Keychain, KeychainError};
pub use secret::SecretRef;
pub use text::{Untrusted, escaped, quoted, shown, told_by_firedoor};
pub use time::Millis;
pub use unavailable::{Ability, Unavailable};
pub use verdict::{Mode, Verdict};
