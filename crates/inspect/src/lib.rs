//! Detectors: (message, memory of the agent's session) to findings. Pure.
