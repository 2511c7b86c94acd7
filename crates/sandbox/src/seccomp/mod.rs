//! The static filter: a table kept as data, compiled to classic BPF and installed.

mod bpf;
mod compile;
mod install;
#[cfg(test)]
mod interpreter;
mod table;

pub(crate) use compile::{Arch, Logged, Program, compile};
pub(crate) use install::{Listener, install};
pub(crate) use table::{Reach, Scope, Table, TableError};
