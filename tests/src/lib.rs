//! The test bed: a scratch home, the real programs started in it, and an MCP client that waits with deadlines.
//!
//! Run as root, a home belongs to an unprivileged user and everything is started as that user: permissions and the
//! sandbox are then met as users meet them.
//!
//! What breaks here is a test, so this crate panics where others return errors.
#![expect(clippy::panic, clippy::expect_used, reason = "a broken test bed fails the test")]

mod agent;
mod client;
mod home;
mod keychain;
mod processes;
mod programs;
mod proxy;
pub mod secrets;
mod service;
mod terminal;

use std::time::{Duration, Instant};

pub use agent::Agent;
pub use client::{Client, text};
pub use home::{Home, Output, finish};
pub use keychain::Keychain;
pub use processes::{alive, descendants, end, kill, shim_of, worked};
pub use proxy::Proxy;
pub use service::{SERVICE, Service, certify};
pub use terminal::at_a_terminal;

/// Longer than anything takes that works, also on a busy machine with debug builds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks again until something is there, and fails the test when it is not there in time.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, look).unwrap_or_else(|| panic!("{what}: not within {PATIENCE:?}"))
}

/// Looks again until something is there or the time is over.
pub fn until_within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
