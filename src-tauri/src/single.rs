//! One app per user. Starting it again opens the main window of the one that runs.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    time::Duration,
};

use firedoor_ipc::endpoint::{self, EndpointError};
use firedoor_model::paths::Paths;
use nix::fcntl::Flock;

use crate::{app::Start, windows::View};

/// Of a view that is asked for, in bytes.
const LONGEST_NAME: u64 = 32;

/// How long an app that ends because its engine is gone may take.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// The lock, held while the app runs, and the socket on which a second start knocks.
#[derive(Debug)]
pub struct Single {
    /// Each connection is one knock.
    pub door: UnixListener,
    _lock: Flock<File>,
}

/// Why it is not known whether the app runs.
#[derive(Debug, thiserror::Error)]
pub enum SingleError {
    /// The runtime directory.
    #[error(transparent)]
    Directory(#[from] EndpointError),
    /// A file in it.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Single {
    /// Takes the lock; `None` when the app runs already, which a person has then asked to show itself.
    pub fn take(paths: &Paths, start: &Start) -> Result<Option<Self>, SingleError> {
        endpoint::private_directory(&paths.runtime)?;
        let (lock, door) = (paths.runtime.join("desktop.lock"), paths.runtime.join("desktop.sock"));
        let failed = |what, path: &PathBuf| {
            let path = path.clone();
            move |source| SingleError::Io { what, path, source }
        };
        // The app of an engine that is gone ends with it.
        let limit = if matches!(start, Start::Beside(_)) { ENDING_LIMIT } else { Duration::ZERO };
        let Some(held) = endpoint::lock(&lock, limit, || true)? else {
            // It may be starting or ending right now; either way there is nobody to knock for.
            let view = match start {
                Start::Shown => Some(View::Home),
                Start::At(view) => Some(view.clone()),
                Start::Background | Start::Beside(_) => None,
            };
            if let Some(view) = view {
                let _ = UnixStream::connect(&door)
                    .and_then(|mut knock| knock.write_all(view.name().unwrap_or_default().as_bytes()));
            }
            return Ok(None);
        };
        match fs::remove_file(&door) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed("replace", &door)(e)),
            _ => {}
        }
        let listener = UnixListener::bind(&door).map_err(failed("listen on", &door))?;
        fs::set_permissions(&door, Permissions::from_mode(0o600)).map_err(failed("protect", &door))?;
        Ok(Some(Self { door: listener, _lock: held }))
    }
}

/// Who knocks says which view is wanted. Whatever else is said, it is Home.
pub fn wanted(knock: UnixStream) -> View {
    let mut name = String::new();
    // One that says nothing must not keep the next one waiting.
    let _ = knock.set_read_timeout(Some(Duration::from_millis(500)));
    let said = knock.take(LONGEST_NAME).read_to_string(&mut name);
    said.ok().and_then(|_| View::named(&name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_knocks_and_goes() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let first = Single::take(&paths, &Start::Shown).unwrap().unwrap();
        for (start, want) in [(Start::Shown, View::Home), (Start::At(View::Rules), View::Rules)] {
            assert!(Single::take(&paths, &start).unwrap().is_none());
            assert_eq!(wanted(first.door.accept().unwrap().0), want);
        }
        first.door.set_nonblocking(true).unwrap();
        assert!(Single::take(&paths, &Start::Background).unwrap().is_none());
        assert!(first.door.accept().is_err(), "a start in the background knocked");
        drop(first);
        assert!(Single::take(&paths, &Start::Shown).unwrap().is_some());
    }

    #[test]
    fn the_app_of_the_next_engine_waits_for_the_one_before_to_end() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let first = Single::take(&paths, &Start::Beside(1)).unwrap().unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| Single::take(&paths, &Start::Beside(2)).map(|single| single.is_some()));
            drop(first);
            assert!(next.join().unwrap().unwrap());
        });
    }

    #[test]
    fn whoever_knocks_gets_a_view_and_nothing_else() {
        for (said, want) in
            [("activity", View::Activity), ("", View::Home), ("pause", View::Home), ("\u{ff}", View::Home)]
        {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(said.as_bytes()).unwrap();
            drop(ours);
            assert_eq!(wanted(theirs), want, "{said}");
        }
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[b'a'; 1000]).unwrap();
        assert_eq!(wanted(theirs), View::Home);
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        endpoint::private_directory(&paths.runtime).unwrap();
        std::os::unix::fs::symlink(root.path().join("x"), paths.runtime.join("desktop.lock")).unwrap();
        assert!(Single::take(&paths, &Start::Shown).unwrap_err().to_string().contains("cannot open"));
    }
}
