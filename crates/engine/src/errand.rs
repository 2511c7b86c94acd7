//! A process that starts and confines `firedoor-remote` for a login. Not the engine itself: confining takes a process with
//! one thread.

use std::{
    io::{self, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use firedoor_model::login::{Errand, MAX_LINE, Task, Told};
use serde::Serialize;

use crate::sys;

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
    /// It says nothing, or never comes to an end.
    #[error("the program that speaks to the server did not come to an end in {} s", .0.as_secs())]
    Slow(Duration),
    /// What is to be said has several lines, of which only the first would be heard.
    #[error("what is said to the program that speaks to the server is not one line")]
    Lines,
}

/// One that runs. Dropping it ends it.
pub struct Errands {
    process: Child,
    input: Option<ChildStdin>,
    /// What a thread has read. It ends with the stream, or as soon as nobody hears it any more.
    chunks: Receiver<io::Result<Vec<u8>>>,
    heard: Vec<u8>,
}

impl Errands {
    /// Starts one.
    pub fn start(firedoor: &Path, errand: &Errand, task: &Task) -> Result<Self, ErrandError> {
        let mut command = Command::new(firedoor);
        command.arg(COMMAND).current_dir(sys::ROOT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut errands = Self::with(command.spawn()?)?;
        // The first line is for the process, the second for what it starts.
        errands.write(errand)?;
        errands.write(task)?;
        Ok(errands)
    }

    fn with(mut process: Child) -> Result<Self, ErrandError> {
        let (input, mut output) = (process.stdin.take(), process.stdout.take().ok_or(ErrandError::Silent)?);
        let (send, chunks) = sync_channel(1);
        thread::Builder::new().name("errand".into()).spawn(move || {
            let mut chunk = [0; 8192];
            loop {
                let read = match output.read(&mut chunk) {
                    Ok(0) => return,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map(|count| chunk.get(..count).unwrap_or_default().to_vec()),
                };
                let last = read.is_err();
                if send.send(read).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Self { process, input, chunks, heard: Vec::new() })
    }

    /// Says one line, of JSON.
    pub fn write(&mut self, what: &impl Serialize) -> Result<(), ErrandError> {
        self.say(&serde_json::to_string(what).map_err(io::Error::from)?)
    }

    /// Says one line.
    pub fn say(&mut self, line: &str) -> Result<(), ErrandError> {
        if line.contains(['\n', '\r']) {
            return Err(ErrandError::Lines);
        }
        let input = self.input.as_mut().ok_or(ErrandError::Silent)?;
        Ok(input.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Waits for what it says next, so long. It is no friend: what it says may never end.
    pub fn hear(&mut self, limit: Duration) -> Result<Told, ErrandError> {
        let line = self.line(limit)?;
        serde_json::from_slice(&line).map_err(|_| ErrandError::Silent)
    }

    fn line(&mut self, limit: Duration) -> Result<Vec<u8>, ErrandError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(at) = self.heard.iter().position(|b| *b == b'\n') {
                return Ok(self.heard.drain(..=at).collect());
            }
            if self.heard.len() > MAX_LINE {
                return Err(ErrandError::Silent);
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.heard.extend(chunk?),
                Err(RecvTimeoutError::Timeout) => return Err(ErrandError::Slow(limit)),
                Err(RecvTimeoutError::Disconnected) => return Err(ErrandError::Silent),
            }
        }
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// A process that does this.
    fn doing(script: &str) -> Errands {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Errands::with(command.spawn().unwrap()).unwrap()
    }

    #[test]
    fn what_is_said_and_heard_are_lines_within_bounds() {
        let mut good = doing(r#"echo '{"told":"not_needed"}'; echo '{"told":"revoked"}'; read a"#);
        assert!(matches!(good.hear(Duration::from_secs(60)), Ok(Told::NotNeeded)));
        assert!(matches!(good.hear(Duration::from_secs(60)), Ok(Told::Revoked)));
        for text in ["a\nb", "a\r", "\n"] {
            assert!(matches!(good.say(text), Err(ErrandError::Lines)), "{text:?}");
        }
        let mut silent = doing("read a");
        assert!(matches!(silent.hear(Duration::from_millis(20)), Err(ErrandError::Slow(_))));
        let mut endless = doing("exec yes | tr -d '\\n'");
        assert!(matches!(endless.hear(Duration::from_secs(60)), Err(ErrandError::Silent)));
        let mut gone = doing("exit");
        assert!(matches!(gone.hear(Duration::from_secs(60)), Err(ErrandError::Silent)));
    }
}
