//! Why a command ends without having done what it says.

/// A sentence for the user and an exit code.
#[derive(Debug)]
pub struct Failure {
    /// 1 for a finding or a refusal, 2 for a usage or environment error.
    pub code: u8,
    /// What failed, on what, and what to do.
    pub text: String,
}

impl Failure {
    /// Something was found, or may not be done.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    /// The command cannot work here or like this.
    pub fn environment(text: impl Into<String>) -> Self {
        Self { code: 2, text: text.into() }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(e: E) -> Self {
        Self::environment(e.to_string())
    }
}
