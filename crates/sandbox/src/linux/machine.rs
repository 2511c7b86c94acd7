//! What of the machine's abilities is used. All of them, except where a test wants to know what a lesser machine gives.

/// Abilities beyond which nothing is used. What is really there is found out by doing, whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Newest version of Landlock.
    pub landlock: u32,
    /// Filters can hand calls to a supervisor.
    pub notification: bool,
    /// The supervisor may take descriptors of its children.
    pub descriptors: bool,
    /// Control groups can be made.
    pub groups: bool,
}

impl Machine {
    /// Everything that this one has.
    pub const THIS: Self = Self { landlock: u32::MAX, notification: true, descriptors: true, groups: true };
}
