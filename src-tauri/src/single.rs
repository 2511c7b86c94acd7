//! One app per user. Starting it again opens the main window of the one that runs.

#[cfg_attr(unix, path = "single/unix.rs")]
#[cfg_attr(windows, path = "single/windows.rs")]
mod system;

use std::{io, path::PathBuf, thread, time::Duration};

use firedoor_ipc::{
    blocking::Connection,
    endpoint::{self, EndpointError, Lock, Stream},
};
use firedoor_model::paths::Paths;

use crate::{app::Start, windows::View};

/// How long an app that ends because its engine is gone may take.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// Before another try to let somebody in.
const AGAIN: Duration = Duration::from_secs(1);

/// One that says nothing must not keep the next one waiting.
const SAYING: Duration = Duration::from_millis(500);

/// The lock, held while the app runs, and where a second start knocks.
#[derive(Debug)]
pub struct Single {
    /// Until somebody listens at it.
    pub door: Option<Door>,
    _lock: Lock,
}

/// Where a second start knocks.
#[derive(Debug)]
pub struct Door(system::Door);

/// Why it is not known whether the app runs.
#[derive(Debug, thiserror::Error)]
pub enum SingleError {
    /// The runtime directory.
    #[error(transparent)]
    Directory(#[from] EndpointError),
    /// A file in it, or a pipe.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Single {
    /// Takes the lock; `None` when the app runs already, which a person has then asked to show itself.
    pub fn take(paths: &Paths, start: &Start) -> Result<Option<Self>, SingleError> {
        endpoint::private_directory(&paths.runtime)?;
        // The app of an engine that is gone ends with it.
        let limit = if matches!(start, Start::Beside(_)) { ENDING_LIMIT } else { Duration::ZERO };
        let Some(held) = endpoint::lock(&paths.runtime.join("desktop.lock"), limit, || true)? else {
            // It may be starting or ending right now; either way there is nobody to knock for.
            let view = match start {
                Start::Shown => Some(View::Home),
                Start::At(view) => Some(view.clone()),
                Start::Background | Start::Beside(_) => None,
            };
            if let Some(view) = view {
                let knock = system::knock(paths).map(Connection::new);
                let _ = knock.map(|knock| knock.send(&view.name().unwrap_or_default(), &[]));
            }
            return Ok(None);
        };
        Ok(Some(Self { door: Some(Door(system::Door::bind(paths)?)), _lock: held }))
    }
}

impl Door {
    /// Waits for the next one who knocks, and says which view is wanted.
    pub fn wanted(&mut self) -> View {
        loop {
            match self.0.accept() {
                Ok(knock) => return wanted(knock),
                // Out of descriptors, for example: some come back.
                Err(_) => thread::sleep(AGAIN),
            }
        }
    }
}

/// Who knocks says which view is wanted. Whatever else is said, it is Home.
fn wanted(knock: Stream) -> View {
    let said = Connection::new(knock).receive::<String>(Some(SAYING));
    said.ok().and_then(|(name, _)| View::named(&name)).unwrap_or_default()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;

    #[test]
    fn the_second_one_knocks_and_goes() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let mut first = Single::take(&paths, &Start::Shown).unwrap().unwrap();
        let mut door = first.door.take().unwrap();
        for (start, want) in [(Start::Shown, View::Home), (Start::At(View::Rules), View::Rules)] {
            assert!(Single::take(&paths, &start).unwrap().is_none());
            assert_eq!(door.wanted(), want);
        }
        assert!(Single::take(&paths, &Start::Background).unwrap().is_none());
        door.0.0.set_nonblocking(true).unwrap();
        assert!(door.0.0.accept().is_err(), "a start in the background knocked");
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
            [("activity", View::Activity), ("", View::Home), ("pause", View::Home), ("\u{fffd}", View::Home)]
        {
            let (ours, theirs) = UnixStream::pair().unwrap();
            Connection::new(ours).send(&said, &[]).unwrap();
            assert_eq!(wanted(theirs), want, "{said}");
        }
        for said in [&[b'a'; 1000][..], &[0xff; 8], b"", b"activity"] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(said).unwrap();
            drop(ours);
            assert_eq!(wanted(theirs), View::Home);
        }
        // One that stays and says nothing.
        let (_ours, theirs) = UnixStream::pair().unwrap();
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
