//! A process that starts and confines `firedoor-remote` for a login. Not the engine itself: confining takes a process with
//! one thread.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use firedoor_model::login::{Errand, MAX_LINE, Task, Told};
use serde::Serialize;

/// The command of `firedoor` that does it.
pub const COMMAND: &str = "errand";

/// Why it did not come back.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    /// Not started, or gone.
    #[error("the program that speaks to the server cannot be used: {0}")]
    Process(#[from] io::Error),
    /// It ended, or said something else than agreed.
    #[error("the program that speaks to the server ended without a word: see what it said above, or in engine.log")]
    Silent,
}

/// One that runs. Dropping it ends it.
pub struct Errands {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Errands {
    /// Starts one.
    pub fn start(firedoor: &Path, errand: &Errand, task: &Task) -> Result<Self, ErrandError> {
        let mut command = Command::new(firedoor);
        command.arg(COMMAND).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take().ok_or(ErrandError::Silent)?);
        let mut errands = Self { process, input, output: BufReader::new(output) };
        // The first line is for the process, the second for what it starts.
        errands.write(errand)?;
        errands.write(task)?;
        Ok(errands)
    }

    fn write(&mut self, what: &impl Serialize) -> Result<(), ErrandError> {
        self.say(&serde_json::to_string(what).map_err(io::Error::from)?)
    }

    /// Says one line.
    pub fn say(&mut self, line: &str) -> Result<(), ErrandError> {
        let input = self.input.as_mut().ok_or(ErrandError::Silent)?;
        Ok(input.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Waits for what it says next. Its own requests are bounded in time.
    pub fn hear(&mut self) -> Result<Told, ErrandError> {
        let mut line = Vec::new();
        self.output.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        serde_json::from_slice(&line).map_err(|_| ErrandError::Silent)
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        // It ends by itself when nobody speaks to it any more; it may still be waiting for a server.
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
