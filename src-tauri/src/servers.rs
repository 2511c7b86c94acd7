//! What the window may ask about one server, and change of it.

use std::{collections::BTreeSet, path::PathBuf};

use firedoor_ipc::command::{EntryGrants, Pin, Reply, Request, Status};
use firedoor_launch::propose;
use firedoor_model::{
    Digest, EntryId,
    launch::{Access, Grant},
};

use crate::{
    known::{Engine, Known, lock},
    link::{Link, LinkError},
    processes,
    view::{GrantKind, GrantView, ServerParts, ServerView, UsageView, granted, shown_entry, shown_name},
};

/// Longest text that is taken from the window.
const MOST: usize = 4096;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The engine says no.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Not an entry that is known, or two that look alike.
    #[error("this server is not in any configuration any more: look again")]
    Unknown,
    /// Not what was shown.
    #[error("this is not what was shown last: look again")]
    Stale,
    /// What was typed is no path.
    #[error("{0:?} is no path: write it from the top, as /home/you/folder, or ~/folder")]
    Path(String),
    /// What was typed is no host.
    #[error(transparent)]
    Host(#[from] firedoor_model::network::HostError),
    /// A rule that would switch everything off.
    #[error("say what to allow: a server, a tool or a detector. To be asked about nothing for a while, use mode Watch")]
    Everything,
    /// Nothing was typed, or far too much.
    #[error("write what is to be granted, in at most {MOST} characters")]
    Text,
}

impl Known {
    /// The entry that is shown so. An entry is named in the window by its visible form, which two entries could share.
    pub(crate) fn entry(&self, shown: &str) -> Result<EntryId, ServerError> {
        let meant: Vec<_> = self.entries().into_iter().filter(|id| shown_entry(id) == shown).collect();
        match <[EntryId; 1]>::try_from(meant) {
            Ok([entry]) => Ok(entry),
            Err(_) => Err(ServerError::Unknown),
        }
    }

    /// The name of the server that is shown so, if one is.
    pub(crate) fn server_name(&self, shown: &str) -> Option<String> {
        self.entries().iter().find(|id| shown_name(id.server()) == shown).map(|id| id.server().to_owned())
    }

    /// Entries that are configured or run.
    fn entries(&self) -> BTreeSet<EntryId> {
        let scan = self.clients.scan(&self.env());
        let found = scan.clients.iter().flat_map(|c| &c.files).flat_map(|f| &f.entries).map(|e| e.id.clone());
        let running: Vec<_> = match &lock(&self.heard).engine {
            Engine::Up(Status { sessions, .. }) => sessions.iter().map(|s| s.entry.clone()).collect(),
            Engine::Starting | Engine::Down(_) => Vec::new(),
        };
        found.chain(running).collect()
    }

    /// Everything about one server.
    pub fn server(&self, shown: &str) -> Result<ServerView, ServerError> {
        let entry = self.entry(shown)?;
        let of = Some(entry.clone());
        let Reply::Server(server) = self.ask(&Request::Server { entry: entry.clone() })? else { return unexpected() };
        let Reply::Grants { grants } = self.ask(&Request::Grants { entry: of.clone() })? else { return unexpected() };
        let Reply::Pins { pins } = self.ask(&Request::Pins { entry: of })? else { return unexpected() };
        let Reply::Status(status) = self.ask(&Request::Status)? else { return unexpected() };
        let observation = match self.ask(&Request::Observation { entry: entry.clone() }) {
            Ok(Reply::Observation(seen)) => {
                let proposal = propose(&seen.record, &seen.basis, &self.paths);
                Some((*seen, proposal))
            }
            Ok(_) => return unexpected(),
            // It was never observed.
            Err(LinkError::Refused(_)) => None,
            Err(e) => return Err(e.into()),
        };
        let observe_next = status.observe_next.contains(&entry);
        let sign_in = self.sign_in_of(&entry)?;
        let usage = used(status.sessions.iter().filter(|s| s.entry == entry).map(|s| s.pid));
        let parts = ServerParts { server: *server, grants, pins, observe_next, observation, sign_in, usage };
        Ok(ServerView::new(parts, &self.paths))
    }

    /// Grants a server more.
    pub fn add_grant(&self, shown: &str, kind: GrantKind, text: &str) -> Result<String, ServerError> {
        let entry = self.entry(shown)?;
        let EntryGrants { entry, grants, env, hosts, sockets } = self.typed(entry, kind, text)?;
        Ok(Link::settle(&self.paths, &Request::AddGrants { entry, grants, env, hosts, sockets })?)
    }

    /// Takes one grant away, named as it was shown.
    pub fn remove_grant(&self, shown: &str, grant: &GrantView) -> Result<String, ServerError> {
        let entry = self.entry(shown)?;
        let Reply::Grants { grants } = self.ask(&Request::Grants { entry: Some(entry) })? else { return unexpected() };
        let meant: Vec<_> = grants.iter().flat_map(granted).filter(|(view, _)| view == grant).collect();
        let [(_, EntryGrants { entry, grants, env, hosts, sockets })] = meant.as_slice() else {
            return Err(ServerError::Stale);
        };
        let request = Request::RemoveGrants {
            entry: entry.clone(),
            paths: grants.iter().map(|g| g.path.clone()).collect(),
            env: env.clone(),
            hosts: hosts.clone(),
            sockets: sockets.clone(),
        };
        Ok(Link::settle(&self.paths, &request)?)
    }

    /// Accepts the change of a definition that was shown.
    pub fn accept_change(&self, shown: &str, seen: &str) -> Result<String, ServerError> {
        let entry = self.entry(shown)?;
        let seen: Digest = seen.parse().map_err(|_| ServerError::Stale)?;
        let Reply::Pins { pins } = self.ask(&Request::Pins { entry: Some(entry.clone()) })? else {
            return unexpected();
        };
        let pin = pins.into_iter().find(|pin| pin.seen == Some(seen));
        let Pin { name, .. } = pin.ok_or(ServerError::Stale)?;
        Ok(Link::settle(&self.paths, &Request::AcceptPins { entry, tool: Some(name), seen: Some(seen) })?)
    }

    /// Switches observing of the next run on or off.
    pub fn observe(&self, shown: &str, on: bool) -> Result<String, ServerError> {
        let entry = self.entry(shown)?;
        Ok(Link::settle(&self.paths, &Request::Observe { entry, on })?)
    }

    /// Ends what runs of an entry.
    pub fn stop(&self, shown: &str) -> Result<String, ServerError> {
        let entry = self.entry(shown)?;
        Ok(Link::settle(&self.paths, &Request::Stop { entry })?)
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, LinkError> {
        Link::ask(&self.paths, request)
    }

    /// What was typed, parsed.
    fn typed(&self, entry: EntryId, kind: GrantKind, text: &str) -> Result<EntryGrants, ServerError> {
        let text = text.trim();
        if text.is_empty() || text.len() > MOST {
            return Err(ServerError::Text);
        }
        let path = || -> Result<PathBuf, ServerError> {
            let path = text.strip_prefix("~/").map_or_else(|| PathBuf::from(text), |rest| self.paths.home.join(rest));
            if path.is_absolute() { Ok(path) } else { Err(ServerError::Path(text.chars().take(200).collect())) }
        };
        let mut more =
            EntryGrants { entry, grants: Vec::new(), env: Vec::new(), hosts: Vec::new(), sockets: Vec::new() };
        match kind {
            GrantKind::Read => more.grants.push(Grant { path: path()?, access: Access::Read }),
            GrantKind::Write => more.grants.push(Grant { path: path()?, access: Access::Write }),
            GrantKind::Host => more.hosts.push(text.parse()?),
            GrantKind::Socket => more.sockets.push(path()?),
            GrantKind::Env => more.env.push(text.to_owned()),
        }
        Ok(more)
    }
}

/// What running servers use. One whose number says nothing (another engine's, long ago) is left out.
fn used(servers: impl Iterator<Item = u32>) -> Option<UsageView> {
    let pids: Vec<i32> = servers.filter_map(|pid| i32::try_from(pid).ok()).collect();
    if pids.is_empty() {
        return None;
    }
    let all = processes::all();
    UsageView::new(&pids.into_iter().map(|pid| processes::usage(pid, &all)).collect::<Vec<_>>())
}

fn unexpected<T>() -> Result<T, ServerError> {
    Err(LinkError::Unexpected.into())
}

#[cfg(test)]
mod tests {
    use firedoor_clients::Clients;
    use firedoor_model::paths::Paths;

    use super::*;

    #[test]
    fn what_is_typed_is_parsed() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let known = Known::new(paths, Clients::load().unwrap(), "/shim".into());
        let check = |kind, text: &str, want: Option<&str>| {
            let typed = known.typed("c/s/x".parse().unwrap(), kind, text);
            let shown = typed.ok().map(|g| granted(&g).into_iter().next().unwrap().0.text);
            let want = want.map(|w| w.replace('~', &root.path().to_string_lossy()));
            assert_eq!(shown, want, "{kind:?} {text:?}");
        };
        check(GrantKind::Read, " ~/notes ", Some("~/notes"));
        check(GrantKind::Write, "/srv/data", Some("/srv/data"));
        check(GrantKind::Write, "notes", None);
        check(GrantKind::Socket, "/run/x.sock", Some("/run/x.sock"));
        check(GrantKind::Host, "api.example.com:443", Some("api.example.com:443"));
        check(GrantKind::Host, "http://a", None);
        check(GrantKind::Env, "API_KEY", Some("API_KEY"));
        check(GrantKind::Env, "  ", None);
        check(GrantKind::Read, &format!("/{}", "x".repeat(MOST)), None);
        assert!(matches!(known.entry("c/s/x"), Err(ServerError::Unknown)));
    }
}
