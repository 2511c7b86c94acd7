//! Why a module could not be run, or was stopped.

use std::path::PathBuf;

/// What ends a run other than the module's own exit.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file could not be used.
    #[error("{}: could not {what}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is larger than a module may be.
    #[error("{}: larger than {} MiB: this is no tool", path.display(), limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// In bytes.
        limit: u64,
    },
    /// The file is no module that can be run.
    #[error("{}: not a WebAssembly module or component that can be compiled: {reason}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// The compiler's reason.
        reason: String,
    },
    /// It needs something that is not there.
    #[error(
        "{}: cannot be started: {reason}. Firedoor offers WASI preview 1, and the preview 2 command world with \
         wasi:http/outgoing-handler",
        path.display()
    )]
    Instantiate {
        /// The file.
        path: PathBuf,
        /// The runtime's reason.
        reason: String,
    },
    /// The runtime itself cannot be set up here.
    #[error("the WebAssembly runtime cannot be set up here: {0}")]
    Runtime(String),
    /// It went over a limit, or failed.
    #[error("stopped: {0}")]
    Stopped(String),
    /// Its time was over.
    #[error("stopped: it ran longer than {0} ms")]
    Timeout(u64),
}

impl RunError {
    /// 2 where nothing ran, 124 as timeout(1), 134 as for a program that was aborted.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped(_) => 134,
            Self::Timeout(_) => 124,
            _ => 2,
        }
    }
}
