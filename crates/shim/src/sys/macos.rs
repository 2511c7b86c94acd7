//! macOS has none of what the shim rests on. Nothing starts a server there yet (`firedoor_sandbox::spawn`): the shim refuses
//! at once, because [`Signals`] has no value.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use firedoor_model::Unavailable;

/// Signals as something that can be polled. There are none.
pub enum Signals {}

impl Signals {
    /// Refuses.
    pub fn block() -> Result<Self, String> {
        Err(Unavailable("starting servers through Firedoor").to_string())
    }

    /// Nothing has blocked them.
    pub fn release() {}

    /// See the type.
    pub fn next(&self) -> Option<i32> {
        match *self {}
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

/// Refuses.
pub fn adopt_orphans(_: bool) -> Result<(), Unavailable> {
    Err(Unavailable("adopting what a server leaves behind"))
}

/// Refuses.
pub fn memory(_: &str) -> Result<OwnedFd, Unavailable> {
    Err(Unavailable("handing a server from one engine to the next"))
}
