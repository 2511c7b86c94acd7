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

mod control;
mod doctor;
mod elf;
mod error;
mod filesystem;
mod guardian;
mod level;
mod limits;
mod machine;
mod metadata;
mod network;
mod observe;
mod orphans;
mod paths;
mod procfs;
mod quota;
mod reap;
mod script;
pub mod seatbelt;
mod seccomp;
mod server;
mod signals;
mod spawn;
mod sys;
mod tree;
mod trees;

pub use doctor::doctor;
pub use error::{SpawnError, Stage};
pub use level::{Level, Outcome, Report};
pub use machine::Machine;
pub use network::Notice;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use network::fuzz;
pub use quota::Quota;
pub use spawn::{Launch, Stderr, spawn, spawn_on};
pub use tree::{Exit, Tree};
