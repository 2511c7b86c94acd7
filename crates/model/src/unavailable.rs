//! What a system cannot do yet.

/// A function that does not exist on this system. There is none that does nothing and says that it worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not available on this system: Firedoor does it on Linux only so far")]
pub struct Unavailable(pub &'static str);
