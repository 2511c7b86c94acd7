//! What differs between systems where files are read and replaced.

#[cfg(unix)]
#[path = "sys/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "sys/windows.rs"]
mod system;

pub(crate) use system::*;
