//! The crate from outside: configuration files in a scratch home, found, protected and restored.

mod discovery;
mod files;
mod generated;
mod home;
mod round_trip;
