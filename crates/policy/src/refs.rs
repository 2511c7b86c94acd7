//! References of decisions.

use firedoor_model::{Digest, question::Ref};

/// Digits of a reference. Six leave a guess one chance in 262,144 to hit one of 64 open questions.
const DIGITS: usize = 6;

/// Gives out references: short, never the same twice among those still in use, and not to be foretold without the seed.
#[derive(Clone)]
pub struct Refs {
    seed: [u8; 32],
    count: u64,
}

impl Refs {
    /// `seed` comes from the system's random source, afresh for every run of the engine.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// The next reference that is not `taken`.
    pub fn next(&mut self, taken: impl Fn(&Ref) -> bool) -> Ref {
        loop {
            self.count = self.count.wrapping_add(1);
            let hash = Digest::of_fields([self.seed.as_slice(), &self.count.to_le_bytes()]).to_string();
            let reference = Ref(hash.chars().take(DIGITS).map(|c| c.to_ascii_uppercase()).collect());
            if !taken(&reference) {
                return reference;
            }
        }
    }
}
