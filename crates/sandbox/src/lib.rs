//! One confinement, one backend per system: Landlock and seccomp on Linux; the process tree and its guardian.
