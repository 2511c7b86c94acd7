//! What reaches this program while a command runs in the sandbox, and is meant for the command.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::Signals;
#[cfg(target_os = "macos")]
pub use macos::Signals;
