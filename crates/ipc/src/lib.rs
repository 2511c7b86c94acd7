//! Framing, peer check and messages between shim, CLI and engine.
