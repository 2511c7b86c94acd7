//! One confinement, one backend per system: Landlock and seccomp on Linux; the process tree and its guardian.
//!
//! [`spawn`] starts one server under a [`firedoor_model::launch::Confinement`]:
//!
//! ```text
//! caller ──fork──> guardian ──fork, confine, exec──> server ──> whatever it starts
//! ```
//!
//! [`seatbelt`] makes macOS's form of the same confinement, and `macos` starts servers with it: there the guardian is a program of
//! its own, and connections go through a proxy (`egress`). On Windows (`windows`) a server gets a token that may write in few places, in a
//! job that ends with the caller, and there is no guardian.
//!
//! The guardian outlives the caller by the moment it takes to kill the server's whole tree, and answers the server's
//! network calls when the confinement opens any network. [`doctor`] says what this machine can enforce.
//!
//! Architecture invariant: nothing runs unconfined. Where a layer is missing, [`spawn`] refuses or [`Outcome`] says so.

#[cfg(all(feature = "wine", not(debug_assertions)))]
compile_error!("the feature `wine` starts servers unconfined, for tests: no release has it");

#[cfg(any(target_os = "macos", all(unix, test)))]
mod egress;
mod error;
mod exit;
#[cfg(unix)]
mod hosts;
mod launch;
mod level;
#[cfg(any(target_os = "macos", all(unix, test)))]
mod macos;
#[cfg(unix)]
mod notice;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod order;
#[cfg(unix)]
pub mod seatbelt;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

pub use error::{SpawnError, Stage};
pub use exit::Exit;
pub use launch::{Descriptor, Launch, Stderr};
pub use level::{Level, Outcome, Quota, Report};
#[cfg(target_os = "linux")]
pub use linux::{Machine, Tree, doctor, prepare, spawn, spawn_on};
#[cfg(target_os = "macos")]
pub use macos::{GUARDIAN, Tree, doctor, guardian, spawn};
#[cfg(unix)]
pub use notice::Notice;
#[cfg(windows)]
pub use windows::{Exited, Tree, doctor, own_stderr, spawn};

#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use linux::network::fuzz;
