//! How a server comes to trust the authority of its own start: two files that only it may read, named by its variables.
//!
//! They are in a directory of their own for each start, which is locked while the server runs and goes with it. What a shim
//! that was killed left behind, the next start of the same server takes away.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use firedoor_model::{
    broker::{Holds, Interception},
    launch::{Access, Grant, Step},
};
use nix::{
    fcntl::{Flock, FlockArg},
    unistd::mkdtemp,
};

/// Longest file of the system's authorities.
const MAX_ROOTS: u64 = 4 << 20;

/// Names of the files.
const AUTHORITY: &str = "authority.pem";
const ALL: &str = "all.pem";
const LOCK: &str = "lock";

/// How long another start of the same server is waited for, which takes milliseconds, and how often it is looked.
const TURN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// The files of one start. Removed when this is dropped.
pub struct Files {
    directory: PathBuf,
    // Held, not used: the next start sees by it that the files are in use.
    _lock: Flock<File>,
}

impl Files {
    /// Writes them, and takes away those that nobody uses any more.
    pub fn write(to: &Interception, authority: &str) -> Result<Self, String> {
        let failed = |path: &Path, e: io::Error| format!("{} cannot be written: {e}", path.display());
        let parent = &to.directory;
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|e| failed(parent, e))?;
        // One after the other: what has no lock yet is not left behind.
        let turn = turn(&parent.join(LOCK)).map_err(|e| failed(&parent.join(LOCK), e))?;
        sweep(parent);
        // No process id: those of containers that share a home are no names.
        let directory = mkdtemp(&parent.join("start.XXXXXX")).map_err(|e| failed(parent, e.into()))?;
        let lock = locked(&directory.join(LOCK), FlockArg::LockExclusiveNonblock);
        let files = Self { _lock: lock.map_err(|e| failed(&directory, e))?, directory };
        drop(turn);
        let mut all = roots(&to.roots);
        all.push_str(authority);
        for (name, text) in [(AUTHORITY, authority), (ALL, all.as_str())] {
            let path = files.directory.join(name);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| failed(&path, e))?;
        }
        Ok(files)
    }

    /// Lets a server read them, and tells it of them. What its variables name already stays.
    pub fn tell(&self, variables: &[(String, Holds)], step: &mut Step) {
        for (name, holds) in variables {
            if step.told(name).is_some() {
                continue;
            }
            let file = match holds {
                Holds::Authority => AUTHORITY,
                Holds::All => ALL,
            };
            step.env.retain(|(known, _)| known != name.as_str());
            step.env.push((name.into(), self.directory.join(file).into()));
        }
        step.confinement.grants.push(Grant { path: self.directory.clone(), access: Access::Read });
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What stays, the next start takes away.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn locked(path: &Path, how: FlockArg) -> io::Result<Flock<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    Flock::lock(file, how).map_err(|(_, e)| e.into())
}

/// The lock of all starts of a server. One that was stopped while it has it must not hold up all others for ever.
fn turn(path: &Path) -> io::Result<Flock<File>> {
    let deadline = Instant::now() + TURN;
    loop {
        match locked(path, FlockArg::LockExclusiveNonblock) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Removes the directories whose shims have gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && let Ok(_gone) = locked(&entry.path().join(LOCK), FlockArg::LockExclusiveNonblock) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The system's authorities. None where they cannot be read: the server then trusts fewer, not more.
fn roots(files: &[PathBuf]) -> String {
    let read = |path: &PathBuf| {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_ROOTS + 1).read_to_string(&mut text));
        read.is_ok_and(|count| count as u64 <= MAX_ROOTS).then_some(text)
    };
    let mut text = files.iter().find_map(read).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use firedoor_model::launch::{Confinement, Network};

    use super::*;

    fn interception(directory: &Path) -> Interception {
        fs::write(directory.join("roots"), "the system's").unwrap();
        Interception {
            led: Vec::new(),
            directory: directory.join("trust"),
            roots: vec![directory.join("none"), directory.join("roots")],
            variables: vec![("ALONE".into(), Holds::Authority), ("INSTEAD".into(), Holds::All)],
        }
    }

    fn step(env: &[(&str, &str)]) -> Step {
        Step {
            program: "/x".into(),
            args: Vec::new(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: "/".into(),
            confinement: Confinement {
                grants: Vec::new(),
                network: Network::None,
                protected: Default::default(),
                sockets: Vec::new(),
                own: Vec::new(),
                limits: Default::default(),
            },
        }
    }

    #[test]
    fn a_server_is_told_what_it_is_not_told_already() {
        let dir = std::env::temp_dir().join(format!("firedoor-trust-told-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let to = interception(&dir);
        let files = Files::write(&to, "ours\n").unwrap();
        let mut given = step(&[("ALONE", "/etc/own.pem"), ("INSTEAD", "")]);
        files.tell(&to.variables, &mut given);
        assert_eq!(given.env.len(), 2);
        assert_eq!(given.env[0], ("ALONE".into(), "/etc/own.pem".into()));
        let [Grant { path, access: Access::Read }] = given.confinement.grants.as_slice() else { panic!() };
        assert_eq!(given.env[1].1, path.join(ALL).into_os_string());
        assert_eq!(fs::read_to_string(path.join(ALL)).unwrap(), "the system's\nours\n");
        assert_eq!(fs::read_to_string(path.join(AUTHORITY)).unwrap(), "ours\n");
        drop(files);
        assert!(!path.exists());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_a_killed_shim_left_goes_and_what_another_uses_stays() {
        let dir = std::env::temp_dir().join(format!("firedoor-trust-left-{}", std::process::id()));
        let trust = dir.join("trust");
        for name in ["1", "2"] {
            fs::create_dir_all(trust.join(name)).unwrap();
            fs::write(trust.join(name).join(AUTHORITY), "theirs").unwrap();
        }
        let used = locked(&trust.join("2").join(LOCK), FlockArg::LockExclusive).unwrap();
        let files = Files::write(&interception(&dir), "ours").unwrap();
        assert!(!trust.join("1").exists() && trust.join("2").exists() && files.directory.exists());
        let other = Files::write(&interception(&dir), "ours").unwrap();
        assert!(other.directory != files.directory && files.directory.exists());
        drop((files, other, used));
        fs::remove_dir_all(&dir).unwrap();
    }
}
