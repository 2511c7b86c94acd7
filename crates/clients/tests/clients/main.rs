//! The crate from outside: configuration files in a scratch home, found, protected and restored.

#![expect(clippy::unwrap_used, reason = "clippy.toml's allowance for tests does not reach helpers of test crates")]

mod catalog;
mod discovery;
mod files;
mod generated;
mod home;
mod places;
mod plugins;
mod remote;
mod round_trip;
mod samples;
mod script;
mod secrets;
mod surroundings;
