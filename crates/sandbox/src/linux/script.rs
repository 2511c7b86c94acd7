//! Scripts.

use std::{
    fs::OpenOptions,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use nix::libc;

/// The interpreter that a script's first line names (execve(2)).
pub(crate) fn interpreter(program: &Path) -> Option<PathBuf> {
    // The kernel looks at 256 bytes (BINPRM_BUF_SIZE).
    let mut start = Vec::new();
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(program).ok()?;
    // Reading from a device or a FIFO could do harm.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_ascii_whitespace().next().map(PathBuf::from)
}
