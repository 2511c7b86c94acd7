//! The sandbox of Linux: Landlock, a seccomp filter, and a guardian who judges what neither can.

mod control;
mod doctor;
mod elf;
mod filesystem;
mod guardian;
mod layers;
mod limits;
mod machine;
mod metadata;
pub(crate) mod network;
mod observe;
mod orphans;
mod paths;
mod priorities;
mod procfs;
mod quota;
mod reap;
mod script;
mod seccomp;
mod server;
mod signals;
mod spawn;
mod stdio;
mod sys;
mod tree;
mod trees;

pub use doctor::doctor;
pub use machine::Machine;
pub use spawn::{prepare, spawn, spawn_on};
pub use tree::Tree;
