//! One confinement, one backend per system: Landlock and seccomp on Linux; the process tree and its guardian.
//!
//! [`spawn`] starts one server under a [`firedoor_model::launch::Confinement`]:
//!
//! ```text
//! caller ──fork──> guardian ──fork, confine, exec──> server ──> whatever it starts
//! ```
//!
//! [`seatbelt`] makes macOS's form of the same confinement, which nothing starts yet.
//!
//! The guardian outlives the caller by the moment it takes to kill the server's whole tree, and answers the server's
//! network calls when the confinement opens any network. [`doctor`] says what this machine can enforce.
//!
//! Architecture invariant: nothing runs unconfined. Where a layer is missing, [`spawn`] refuses or [`Outcome`] says so.

mod error;
mod exit;
mod launch;
mod level;
mod notice;
pub mod seatbelt;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unavailable;

pub use error::{SpawnError, Stage};
pub use exit::Exit;
pub use launch::{Launch, Stderr};
pub use level::{Level, Outcome, Quota, Report};
#[cfg(target_os = "linux")]
pub use linux::{Machine, Tree, doctor, spawn, spawn_on};
pub use notice::Notice;
#[cfg(not(target_os = "linux"))]
pub use unavailable::{Tree, doctor, spawn};

#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use linux::network::fuzz;
