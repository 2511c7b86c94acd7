//! What a system cannot do yet.

/// A function that does not exist on this system. There is none that does nothing and says that it worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not available on this system yet")]
pub struct Unavailable(pub &'static str);

/// What is switched on long before it is done, and so has to be refused when it is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Writing down what a server opens, executes and connects to.
    Observing,
    /// Endpoints, whose clients are known by the process that a connection belongs to.
    Listening,
    /// Putting a secret into requests that a server makes without it: its connections have to be judged one by one.
    Brokering,
}

impl Ability {
    /// Whether this system has it.
    pub fn here(self) -> Result<(), Unavailable> {
        self.on(std::env::consts::OS)
    }

    /// Whether a system has it, by the name that Rust has for that.
    fn on(self, system: &str) -> Result<(), Unavailable> {
        if system == "linux" { Ok(()) } else { Err(self.missing()) }
    }

    /// What is said where it is missing.
    pub fn missing(self) -> Unavailable {
        Unavailable(match self {
            Self::Observing => "observing what a server does",
            Self::Listening => "listening for clients",
            Self::Brokering => "broker mode",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_system_lacks_is_named() {
        for (ability, system, want) in [
            (Ability::Observing, "linux", None),
            (Ability::Listening, "linux", None),
            (Ability::Brokering, "linux", None),
            (Ability::Observing, "macos", Some("observing what a server does is not available on this system yet")),
            (Ability::Listening, "windows", Some("listening for clients is not available on this system yet")),
            (Ability::Brokering, "another", Some("broker mode is not available on this system yet")),
        ] {
            assert_eq!(ability.on(system).err().map(|e| e.to_string()).as_deref(), want, "{ability:?} on {system}");
        }
    }
}
