//! A server in a job of its own, into which it is put before it runs.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout},
};

use process_wrap::std::{ChildWrapper, CommandWrap, CreationFlags, JobObject};
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::{Invocation, VerifyError};

/// Endings of programs where the environment names none (`PATHEXT`).
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// A started server.
pub(super) struct Process(Box<dyn ChildWrapper>);

impl Process {
    /// Starts it; its input and output.
    pub(super) fn start(
        invocation: &Invocation,
    ) -> Result<(Self, Option<ChildStdin>, Option<ChildStdout>), VerifyError> {
        let Some(program) = program(&invocation.command, &invocation.env, &invocation.cwd) else {
            return Err(VerifyError::Start(io::Error::new(io::ErrorKind::NotFound, "no such program is in PATH")));
        };
        let mut command = CommandWrap::from(invocation.of(&program));
        // Of its own, so that it does not open one in front of the user when we have none.
        command.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(JobObject);
        let mut child = command.spawn().map_err(VerifyError::Start)?;
        let (stdin, stdout) = (child.stdin().take(), child.stdout().take());
        Ok((Self(child), stdin, stdout))
    }

    /// Whether the server has ended.
    pub(super) fn ended(&mut self) -> bool {
        // The process, not its job, which waits for words of the system's that come once.
        !matches!(self.0.inner_mut().try_wait(), Ok(None))
    }

    /// Ends everything in its job.
    pub(super) fn end(&mut self) {
        let _ = self.0.start_kill();
        let _ = self.0.inner_mut().wait();
    }
}

/// The file that clients start for a name: they complete it with the endings of `PATHEXT`, as a shell does, where the system
/// alone would look for `.exe` only, and in Firedoor's own directory first.
fn program(name: &str, env: &BTreeMap<OsString, OsString>, cwd: &Path) -> Option<PathBuf> {
    let variable = |wanted: &str| {
        let (_, value) = env.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some(value.as_os_str())
    };
    let endings = variable("PATHEXT").and_then(OsStr::to_str).unwrap_or(ENDINGS);
    let whole = |path: &Path| {
        let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
        let known = |ending: &String| endings.split(';').any(|known| known.eq_ignore_ascii_case(ending));
        let given = ending.filter(known).map(|_| path.to_owned());
        let completed = endings.split(';').filter(|ending| !ending.is_empty()).map(|ending| {
            let mut path = path.as_os_str().to_owned();
            path.push(ending);
            PathBuf::from(path)
        });
        given.into_iter().chain(completed).find(|path| path.is_file())
    };
    if name.contains(['\\', '/', ':']) {
        return whole(&cwd.join(name));
    }
    // What is relative would be looked for where we were started.
    env::split_paths(variable("PATH")?).filter(|dir| dir.is_absolute()).find_map(|dir| whole(&dir.join(name)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_name_is_completed_as_shells_do() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["npx", "npx.cmd", "tool.exe", "own.ps1", "tool-1.0", "tool-1.0.cmd"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let env = BTreeMap::from([("Path".into(), dir.path().as_os_str().to_owned())]);
        let there = |file: &str| dir.path().join(file);
        let whole = there("tool").to_str().unwrap().to_owned();
        for (name, want) in [
            ("npx", Some(there("npx.CMD"))),
            ("tool", Some(there("tool.EXE"))),
            ("tool.exe", Some(there("tool.exe"))),
            (&whole, Some(there("tool.EXE"))),
            ("tool-1.0", Some(there("tool-1.0.CMD"))),
            ("own", None),
            ("absent", None),
        ] {
            assert_eq!(program(name, &env, Path::new("C:\\")), want, "{name}");
        }
    }
}
