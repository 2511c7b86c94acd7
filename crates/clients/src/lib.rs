//! Catalog of MCP clients, discovery, lossless edits of their configurations, journal, restore.
//!
//! ```text
//! catalog ──> discover ──> scan ──> select ──> plan ──> apply
//!  (data)      files       entries               │        │
//!                 └──> watch: what changes        │        │
//!                                             document   journal: original bytes, what was written
//!                                             wrap       replace: lock, check, write beside, exchange
//! ```
//!
//! What holds, whatever happens: a file that cannot be read in full is left alone; only the command, the
//! arguments and the secrets of an entry change, by splicing bytes; the original is saved durably first; an entry can be restored from its own
//! text, without journal, backup or engine.
//!
//! Architecture invariant: reads no environment variable of its own; what it needs comes in through [`Env`].

mod apply;
mod catalog;
mod client_lock;
mod configured;
mod declared;
mod discover;
mod document;
mod endpoint;
mod env;
mod error;
mod fault;
mod findings;
mod form;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod interpolate;
mod journal;
mod moved;
mod place;
mod plan;
mod plugins;
mod remote;
mod replace;
mod scan;
mod seal;
mod secret;
mod select;
mod source;
mod state;
mod surroundings;
mod sys;
pub mod verify;
pub mod watch;
mod wrap;

pub use apply::{Applied, FileResult};
pub use catalog::{CatalogError, Clients, Confidence};
pub use configured::Configured;
pub use declared::Address;
pub use env::{Env, System};
pub use error::{FileError, Problem};
pub use findings::{Code, Finding};
pub use moved::{SecretError, SecretLeft, secret_of, set_secret};
pub use plan::{FilePlan, FileProblem, Plan, PlanError, Skipped};
pub use scan::{ClientFound, EntryFound, FileFound, LeftAlone, Reached, Scan};
pub use secret::looks_like_secret;
pub use select::{SelectError, Selection, select};
pub use state::State;
pub use wrap::{SHIM, Wrapped, is_wrapped};
