//! Files that a server says it was refused: checked against its grants, and recorded when the sandbox is why.
//!
//! The text is the server's, or that of something it read, so it proves nothing and costs little: only paths that are really
//! outside the grants count, each once in a while, and few of them.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use firedoor_model::{Untrusted, observation::Use};

use super::{
    Session,
    denied::{self, Told},
    pending::Asked,
};
use crate::engine::Engine;

/// The same path is told again after this long.
const AGAIN: Duration = Duration::from_secs(600);
/// Most paths that are looked at within [`AGAIN`].
const MAX_PATHS: usize = 32;

/// What was looked at, and whether something is being looked at.
#[derive(Default)]
pub struct Refusals {
    looked_at: RefCell<HashMap<String, Instant>>,
}

impl Refusals {
    /// Whether a path is to be looked at now.
    fn is_new(&self, path: &str, now: Instant) -> bool {
        let mut looked_at = self.looked_at.borrow_mut();
        looked_at.retain(|_, at| now.duration_since(*at) < AGAIN);
        if looked_at.len() >= MAX_PATHS || looked_at.contains_key(path) {
            return false;
        }
        looked_at.insert(path.to_owned(), now);
        true
    }
}

impl Session {
    /// Looks for refused files in what came back, and records what the sandbox closed.
    pub(super) fn explain_refusals(self: &Rc<Self>, engine: &Rc<Engine>, asked: &Asked, payload: &str, error: bool) {
        let reaches = matches!(asked.method.as_str(), "tools/call" | "resources/read" | "prompts/get");
        // An observed server's guardian knows better.
        if !reaches || self.record.borrow().is_some() || self.basis.in_force.is_empty() {
            return;
        }
        for said in firedoor_inspect::denied(payload, error) {
            let path = Path::new(&said.path);
            let path = match path.strip_prefix("~/") {
                Ok(rest) => engine.paths.home.join(rest),
                Err(_) => self.basis.cwd.join(path),
            };
            let Some(text) = path.to_str().map(str::to_owned) else { continue };
            if !self.refusals.is_new(&text, Instant::now()) {
                continue;
            }
            let (session, engine, tool) = (self.clone(), engine.clone(), asked.subject.clone());
            tokio::task::spawn_local(async move { session.explain(&engine, text, said.how, &tool).await });
        }
    }

    async fn explain(&self, engine: &Rc<Engine>, path: String, how: Use, tool: &str) {
        let (basis, paths) = (self.basis.clone(), engine.paths.clone());
        // On another thread: it looks at files.
        let work = move || {
            let real = Path::new(&path);
            // What does not exist was not refused for being read, but a file can be refused to be made.
            let how = match (how, real.exists(), real.parent().is_some_and(Path::exists)) {
                (how, true, _) => how,
                (Use::Read | Use::Create, false, true) => Use::Create,
                _ => return None,
            };
            firedoor_launch::closed(&Untrusted::new(path), how, &basis, &paths)
        };
        let Ok(Some(closed)) = tokio::task::spawn_blocking(work).await else { return };
        engine.recorder.record(self.event(engine.now(), denied::judged(&self.entry, Told::Tool(tool), &closed)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_once_and_few_of_them() {
        let refusals = Refusals::default();
        let now = Instant::now();
        let told = |now| (0..100).filter(|n| refusals.is_new(&format!("/{}", n / 2), now)).count();
        assert_eq!(told(now), MAX_PATHS);
        assert_eq!(told(now), 0);
        assert_eq!(told(now + AGAIN), MAX_PATHS);
    }
}
