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
mod control;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod elf;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod metadata;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod quota;
#[cfg(target_os = "linux")]
mod reap;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod spawn;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod trees;
#[cfg(not(target_os = "linux"))]
mod unavailable;

pub use error::{SpawnError, Stage};
pub use exit::Exit;
pub use launch::{Launch, Stderr};
pub use level::{Level, Outcome, Quota, Report};
pub use notice::Notice;
#[cfg(not(target_os = "linux"))]
pub use unavailable::{Tree, doctor, spawn};
#[cfg(target_os = "linux")]
pub use {
    doctor::doctor,
    machine::Machine,
    spawn::{spawn, spawn_on},
    tree::Tree,
};

#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use network::fuzz;
