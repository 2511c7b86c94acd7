//! The static filter: a table kept as data, compiled to classic BPF and installed.
//!
//! The table is read and checked when this crate is built (`build.rs`), and compiled at each start for what
//! one server may do on this machine.

mod bpf;
mod compile;
mod install;
#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod source;
mod table;

pub(crate) use compile::{Arch, Logged, Program, compile};
pub(crate) use install::{Listener, install};
pub(crate) use table::{Reach, Scope};

/// The program is too long for a filter, or for one of its jumps.
#[derive(Debug, thiserror::Error)]
#[error("the program is too long for a filter or for one of its jumps ({0})")]
pub(crate) struct TooLong(usize);
