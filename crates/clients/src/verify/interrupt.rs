//! The wish that checks end now.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Shared between who checks and who may no longer wait for it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// What is being checked is ended, and nothing else is started.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether checks are to end.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
