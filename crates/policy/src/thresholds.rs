//! From which confidence on a detector may interrupt.

use firedoor_model::Confidence;

/// The name that stands for a detector when a server wants to connect to a host that nobody granted. Rules can name it.
pub const HOST: &str = "sandbox/host";

/// What findings of a detector may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Ask from this confidence on; block when critical and certain.
    Interrupt(Confidence),
    /// Only be recorded. They matter to other detectors.
    Record,
    /// Ask in Strict, whatever their confidence, and be recorded elsewhere.
    Strict,
    /// Put the tool into quarantine, in every mode.
    Quarantine,
    /// Ask, and where the mode never asks, block: it passes with somebody's leave only.
    Consent,
    /// Block in every mode and against every allow: what was not inspected is not passed.
    Refuse,
}

/// Detectors, or families of them (with a slash at the end), and what their findings may do. The longest name wins.
const TABLE: &[(&str, Threshold)] = &[
    // Usually right is good enough for a question.
    ("", Threshold::Interrupt(Confidence::Likely)),
    // A secret in an argument alone is what many tools are for (logging in). Where it came from is judged by `flow/`.
    ("call/secret", Threshold::Record),
    // Much honest work reads mail and the web and then writes to somebody.
    ("flow/trifecta", Threshold::Strict),
    // Not a detector: stands for an inspection that failed.
    ("engine/", Threshold::Refuse),
    // A connection to a host that nobody granted. The sandbox holds it, and no mode opens the sandbox.
    (HOST, Threshold::Consent),
    // A changed hash is a fact, and the user must see the difference before the tool runs again.
    ("definition/changed", Threshold::Quarantine),
];

/// How the names begin of detectors, and of what stands for one, that rules can name.
pub const FAMILIES: [&str; 6] = ["call/", "definition/", "flow/", "policy/", "result/", "sandbox/"];

/// Whether a rule for this detector or family may ever hold.
pub fn is_nameable(pattern: &str) -> bool {
    FAMILIES.iter().any(|family| pattern.starts_with(family))
}

/// What findings of this detector may do.
pub fn threshold(detector: &str) -> Threshold {
    let named = TABLE.iter().filter(|(name, _)| name.is_empty() || names(name, detector));
    named.max_by_key(|(name, _)| name.len()).map_or(Threshold::Interrupt(Confidence::Possible), |(_, t)| *t)
}

/// Whether `pattern` is this detector, or a family that it belongs to.
pub(crate) fn names(pattern: &str, detector: &str) -> bool {
    pattern == detector || (pattern.ends_with('/') && pattern.len() > 1 && detector.starts_with(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_what_can_be_found() {
        for name in [HOST, crate::NEW_TOOL, "flow/secret", "call/", "definition/changed", "result/injection"] {
            assert!(is_nameable(name), "{name}");
        }
        for name in ["", "flow", "nope/", "Flow/secret", "engine/failed"] {
            assert!(!is_nameable(name), "{name}");
        }
    }

    #[test]
    fn the_longest_name_wins() {
        for (detector, want) in [
            ("flow/secret", Threshold::Interrupt(Confidence::Likely)),
            ("flow/trifecta", Threshold::Strict),
            ("call/secret", Threshold::Record),
            ("call/secret-path", Threshold::Interrupt(Confidence::Likely)),
            ("definition/changed", Threshold::Quarantine),
            ("engine/failed", Threshold::Refuse),
            ("sandbox/host", Threshold::Consent),
            ("sandbox/network", Threshold::Interrupt(Confidence::Likely)),
            ("never/heard-of", Threshold::Interrupt(Confidence::Likely)),
        ] {
            assert_eq!(threshold(detector), want, "{detector}");
        }
    }

    #[test]
    fn families() {
        assert!(names("flow/", "flow/secret"));
        assert!(!names("flow", "flow/secret"));
        assert!(!names("/", "flow/secret"));
        assert!(!names("", "flow/secret"));
    }
}
