//! What differs by system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::{Signals, adopt_orphans, memory};
#[cfg(target_os = "macos")]
pub use macos::{Signals, adopt_orphans, memory};
