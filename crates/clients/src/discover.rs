//! Which files to look at: those of the home, those of every project that is known, those that the journal names.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use firedoor_model::EntryId;

use crate::{
    catalog::{Base, Client, Clients, Location, ScopeKind, Syntax},
    document::{self, Server, SyntaxError},
    env::Env,
    journal::Journal,
    source::Source,
};

/// Most projects that are looked at.
const MAX_PROJECTS: usize = 2000;

/// One file that a client may have, and where in it servers stand.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub client: String,
    pub path: PathBuf,
    pub syntax: Syntax,
    pub max_bytes: u64,
    /// See [`Location::lock_suffix`].
    pub lock_suffix: Option<String>,
    /// Scope and path of every map of servers.
    pub maps: Vec<(ScopeKind, Vec<String>)>,
    /// The project that a project file belongs to.
    pub project: Option<String>,
}

/// One server of a file, with the id it has there.
pub(crate) struct Located {
    pub id: EntryId,
    pub server: Server,
}

impl ConfigFile {
    /// The file's scope, as shown: its widest.
    pub fn scope(&self) -> String {
        match (&self.project, self.maps.first()) {
            (Some(project), _) => format!("project:{project}"),
            (None, Some((ScopeKind::User, _))) => "user".into(),
            (None, _) => "local".into(),
        }
    }

    /// Every server in the text. Servers whose id would be too long are left out and counted.
    pub fn servers(&self, text: &str) -> Result<(Vec<Located>, usize), SyntaxError> {
        let mut all = Vec::new();
        let mut unnamed = 0;
        for (kind, path) in &self.maps {
            for server in document::servers(text, self.syntax, path)? {
                let scope = match kind {
                    ScopeKind::User => "user".to_owned(),
                    ScopeKind::Local => format!("local:{}", server.project.as_deref().unwrap_or_default()),
                    ScopeKind::Project => format!("project:{}", self.project.as_deref().unwrap_or_default()),
                };
                match EntryId::new(&self.client, &scope, &server.name.value) {
                    Ok(id) => all.push(Located { id, server }),
                    Err(_) => unnamed += 1,
                }
            }
        }
        Ok((all, unnamed))
    }

    fn new(client: &Client, locations: &[&Location], path: PathBuf, project: Option<String>) -> Option<Self> {
        let first = locations.first()?;
        Some(Self {
            client: client.id.clone(),
            path,
            syntax: first.syntax,
            max_bytes: first.max_bytes,
            lock_suffix: first.lock_suffix.clone(),
            maps: locations.iter().map(|l| (l.scope, l.servers.clone())).collect(),
            project,
        })
    }
}

/// Files of the home, one per name, with all the locations that share it.
fn home_files(client: &Client, env: &Env<'_>) -> Vec<ConfigFile> {
    let home: Vec<&Location> = client.locations.iter().filter(|l| l.base == Base::Home).collect();
    let paths: BTreeSet<PathBuf> = home.iter().map(|l| l.home_file(env)).collect();
    paths
        .into_iter()
        .filter_map(|path| {
            let here: Vec<&Location> = home.iter().copied().filter(|l| l.home_file(env) == path).collect();
            ConfigFile::new(client, &here, path, None)
        })
        .collect()
}

fn project_files(client: &Client, project: &Path) -> Vec<ConfigFile> {
    let Some(name) = project.to_str() else { return Vec::new() };
    let here = client.locations.iter().filter(|l| l.base == Base::Project);
    here.filter_map(|l| ConfigFile::new(client, &[l], l.project_file(project), Some(name.to_owned()))).collect()
}

impl Clients {
    /// Every file that may exist, per client in the catalog's order.
    pub(crate) fn files(&self, env: &Env<'_>) -> Vec<Vec<ConfigFile>> {
        let journal = Journal::open(env);
        let projects = self.projects(env, &journal);
        self.clients
            .iter()
            .map(|client| {
                let mut files = home_files(client, env);
                // A file that was protected while a variable pointed elsewhere is still found.
                for record in journal.records().iter().filter(|r| r.client == client.id && r.project.is_none()) {
                    if let Some(known) = files.first().filter(|f| f.path.file_name() == record.path.file_name()) {
                        let file = ConfigFile { path: record.path.clone(), ..known.clone() };
                        files.push(file);
                    }
                }
                files.extend(projects.iter().flat_map(|project| project_files(client, project)));
                let mut seen = BTreeSet::new();
                // `$HOME` may be a project too; its file is then the user's. Only what exists can be the same file.
                files.retain(|f| seen.insert(f.path.canonicalize().unwrap_or_else(|_| f.path.clone())));
                files
            })
            .collect()
    }

    /// The files where an entry can stand, without looking at other projects.
    pub(crate) fn files_of(&self, env: &Env<'_>, id: &EntryId) -> Vec<ConfigFile> {
        let Some(client) = self.client(id.client()) else { return Vec::new() };
        match id.scope().strip_prefix("project:") {
            Some(project) => project_files(client, Path::new(project)),
            None => home_files(client, env),
        }
    }

    fn projects(&self, env: &Env<'_>, journal: &Journal) -> BTreeSet<PathBuf> {
        let mut all: Vec<PathBuf> = env.cwd.ancestors().map(Path::to_owned).collect();
        all.extend(env.projects.iter().map(|p| env.cwd.join(p)));
        all.extend(journal.records().iter().filter_map(|r| r.project.clone()).map(PathBuf::from));
        for client in &self.clients {
            for file in home_files(client, env) {
                all.extend(projects_in(&file));
            }
        }
        // The root is nobody's project; a project that is gone has no file.
        all.iter()
            .filter(|p| p.is_absolute() && p.parent().is_some())
            .filter_map(|p| p.canonicalize().ok())
            .take(MAX_PROJECTS)
            .collect()
    }
}

/// The project directories that a user file has keys for.
fn projects_in(file: &ConfigFile) -> Vec<PathBuf> {
    let Ok(Some(source)) = Source::read(&file.path, file.max_bytes) else { return Vec::new() };
    let Ok((_, text)) = source.text() else { return Vec::new() };
    let with_projects = file.maps.iter().filter_map(|(_, path)| path.iter().position(|k| k == "*").map(|n| &path[..n]));
    with_projects
        .flat_map(|path| document::keys(text, file.syntax, path).unwrap_or_default())
        .map(PathBuf::from)
        .collect()
}
