//! Findings and rules to a verdict; the question state machine. Pure, sans-I/O.
