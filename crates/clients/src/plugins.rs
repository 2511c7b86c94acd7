//! Plugins and extensions: directories with files in them that name servers. A client finds them by their place, or in
//! a list of its own.

mod marketplace;

pub(crate) use marketplace::Marketplace;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use serde::Deserialize;

use crate::{
    catalog::{Client, Syntax},
    document,
    env::Env,
    place::{Base, Places, Project, expand},
    source::{Source, text_of},
    sys,
};

/// Largest list of plugins that is read.
const MAX_LIST: u64 = 4 * 1024 * 1024;

/// Most plugins of one client.
const MAX_PLUGINS: usize = 256;

/// Where a client's plugins lie.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Plugins {
    /// The plugins' directories; with `listed`, files that say where those are.
    #[serde(flatten)]
    pub places: Places,
    /// Environment variable that names another directory than the base.
    pub variable: Option<String>,
    /// The file's name in that directory.
    pub variable_file: Option<PathBuf>,
    /// Keys from the root of such a file to a directory. A `*` matches every key and every element of an array; the
    /// first key that it matches is the plugin's name.
    #[serde(default)]
    pub listed: Vec<String>,
    /// A key of such a file and the text that stands there; otherwise the file does not count.
    pub only: Option<[String; 2]>,
    /// Keys of such a file to a map whose keys are directories of the user's own.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What `listed` leads to is a marketplace, from whose own directory its plugins are run.
    #[serde(default)]
    pub marketplace: bool,
    /// It is a copy that the client fetches anew by itself, from which nothing is run. What its file says about servers is
    /// shown and left alone, for this reason.
    pub kept: Option<String>,
    /// Keys of such a file to the map whose keys name the marketplaces' plugins that are used; otherwise those that other
    /// lists name.
    pub among: Option<Vec<String>>,
    /// What a directory has when it is a plugin.
    pub marker: Option<PathBuf>,
    /// The last part of the place is a version: only the one that was changed last counts, and none is named.
    #[serde(default)]
    pub newest: bool,
}

/// What a client does with servers that plugins bring.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginRules {
    /// Variables that stand for the plugin's directory.
    #[serde(default)]
    pub variables: Vec<String>,
    /// They are in the server's environment, too.
    #[serde(default)]
    pub exported: bool,
    /// Variables that stand for what the system puts between directories.
    #[serde(default)]
    pub separators: Vec<String>,
    /// Servers start in the plugin's directory.
    #[serde(default)]
    pub starts_inside: bool,
    /// Files in a plugin whose `mcpServers` may name other files of it, instead of holding servers.
    #[serde(default)]
    pub manifests: Vec<PathBuf>,
    /// The file in a marketplace that lists its plugins.
    pub marketplace_file: Option<PathBuf>,
    /// Files in a plugin beside which the marketplace's word on its servers does not count.
    #[serde(default)]
    pub own_word: Vec<PathBuf>,
}

/// One plugin of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plugin {
    pub dir: PathBuf,
    /// What the client calls it, or where it lies.
    pub name: String,
    /// It is run from a directory of the user's own, not from a copy that the client keeps.
    pub own: bool,
    /// Files in it with servers that its marketplace names.
    pub named: Vec<PathBuf>,
}

impl Plugins {
    /// The directories or lists outside of projects, and what the `*` in their names stand for.
    fn found(&self, env: &Env<'_>) -> Vec<(PathBuf, Option<String>)> {
        self.home_place(env).map(|(dir, file)| expand(&dir, &file)).unwrap_or_default()
    }

    /// The directory outside of projects where they lie, and their name there.
    pub fn home_place(&self, env: &Env<'_>) -> Option<(PathBuf, PathBuf)> {
        self.places.home_place(env, self.variable.as_deref(), self.variable_file.as_deref())
    }

    fn has_marker(&self, dir: &Path) -> bool {
        self.marker.as_ref().is_none_or(|marker| dir.join(marker).is_file())
    }

    /// The plugins that lie at a place of their own.
    fn placed(&self, found: Vec<(PathBuf, Option<String>)>) -> Vec<Plugin> {
        let mut found: Vec<_> = found.into_iter().filter(|(dir, _)| dir.is_dir() && self.has_marker(dir)).collect();
        if self.newest {
            found = newest(found);
        }
        let plugin = |(dir, name): (PathBuf, Option<String>)| {
            let name = name.or_else(|| dir.to_str().map(str::to_owned))?;
            Some(Plugin { dir, name, own: false, named: Vec::new() })
        };
        found.into_iter().filter_map(plugin).collect()
    }

    /// What the lists say.
    fn in_lists(&self, env: &Env<'_>) -> Vec<Listed> {
        let mut all = Vec::new();
        for (list, star) in self.found(env) {
            let Some(text) = read(&list) else { continue };
            let is = |[key, want]: &[String; 2]| texts(&text, std::slice::from_ref(key)).iter().any(|(_, t)| t == want);
            if !self.only.as_ref().is_none_or(is) {
                continue;
            }
            let among = self.among.as_ref().map(|keys| document::keys(&text, Syntax::Jsonc, keys).unwrap_or_default());
            let named = if self.keys.is_empty() { texts(&text, &self.listed) } else { Vec::new() };
            for (key, place) in named {
                let Some(dir) = directory_of(&place) else { continue };
                // An element of an array has no name of its own.
                let key = key.filter(|key| !number(key)).or_else(|| star.clone());
                let Some(name) = key.or_else(|| dir.to_str().map(str::to_owned)) else { continue };
                all.push(Listed { name, dir, among: among.clone() });
            }
            if !self.keys.is_empty() {
                for key in document::keys(&text, Syntax::Jsonc, &self.keys).unwrap_or_default() {
                    let dir =
                        key.strip_prefix("~/").map_or_else(|| PathBuf::from(&key), |rest| env.paths.home.join(rest));
                    all.push(Listed { name: key, dir, among: None });
                }
            }
        }
        all.retain(|listed| listed.dir.is_absolute());
        all
    }
}

/// A line of a list.
struct Listed {
    name: String,
    dir: PathBuf,
    /// See [`Plugins::among`].
    among: Option<Vec<String>>,
}

impl Client {
    /// The client's plugins outside of projects.
    pub fn home_plugins(&self, env: &Env<'_>) -> Vec<Plugin> {
        let mut all: Vec<Plugin> = Vec::new();
        for place in &self.plugins {
            if place.listed.is_empty() && place.keys.is_empty() {
                all.extend(place.placed(place.found(env)));
            } else if !place.marketplace {
                // A link leads to a directory of the user's own.
                let own = place.only.is_some() || !place.keys.is_empty();
                let listed = place.in_lists(env).into_iter();
                all.extend(listed.map(|Listed { name, dir, .. }| Plugin { dir, name, own, named: Vec::new() }));
            }
        }
        for marketplace in self.marketplaces(env) {
            marketplace.add_to(self, &mut all);
        }
        apart(all)
    }

    /// The client's plugins in a project, and the project itself if it is one.
    pub fn project_plugins(&self, env: &Env<'_>, project: &Project) -> Vec<Plugin> {
        let mut all = Vec::new();
        for place in &self.plugins {
            let Some((Base::Project, file)) = place.places.on(env.system) else { continue };
            let found = if file.as_os_str().is_empty() {
                // Most projects are none, and have been listed.
                let may_be = place.marker.as_ref().is_none_or(|marker| project.may_hold(marker));
                Vec::from_iter(may_be.then(|| (project.dir.clone(), None)))
            } else if project.may_hold(file) {
                expand(&project.dir, file)
            } else {
                continue;
            };
            // Known by their whole path: several projects have plugins of the same name.
            let named = found.into_iter().map(|(dir, _)| (dir, None)).collect();
            all.extend(place.placed(named).into_iter().map(|plugin| Plugin { own: true, ..plugin }));
        }
        apart(all)
    }

    /// Directory and relative name of everything outside of projects that decides what plugins there are, or that holds
    /// servers in one.
    pub fn plugin_places(&self, env: &Env<'_>) -> Vec<(PathBuf, PathBuf)> {
        let mut all: Vec<_> = self.plugins.iter().filter_map(|place| place.home_place(env)).collect();
        all.extend(self.marketplaces(env).iter().filter_map(Marketplace::place));
        for plugin in self.home_plugins(env) {
            let named = self.named_files(&plugin);
            let held = self.plugin_files(env).chain(named.iter().map(PathBuf::as_path));
            all.extend(held.map(|file| (plugin.dir.clone(), file.to_owned())));
        }
        all
    }

    /// The relative name of every file that a plugin in a project may have.
    pub fn project_plugin_places(&self, env: &Env<'_>) -> Vec<PathBuf> {
        let places = self.plugins.iter().filter_map(|place| place.places.on(env.system));
        let dirs = places.filter(|(base, _)| *base == Base::Project).map(|(_, dir)| dir);
        let files = |dir: &Path| -> Vec<PathBuf> { self.plugin_files(env).map(|file| dir.join(file)).collect() };
        dirs.flat_map(files).collect()
    }

    /// The relative name of every file that a plugin may have.
    fn plugin_files<'c>(&'c self, env: &Env<'_>) -> impl Iterator<Item = &'c Path> {
        let system = env.system;
        let located = self.locations.iter().filter_map(move |location| location.places.on(system));
        let held = located.filter(|(base, _)| *base == Base::Plugin).map(|(_, file)| file);
        held.chain(self.in_plugins.manifests.iter().map(PathBuf::as_path))
    }

    /// The files that a plugin's manifests name, relative to its directory: plain files with servers, and packed ones.
    pub fn named_files(&self, plugin: &Plugin) -> Vec<PathBuf> {
        let mut all: BTreeSet<PathBuf> = plugin.named.iter().cloned().collect();
        for manifest in &self.in_plugins.manifests {
            let Some(text) = read(&plugin.dir.join(manifest)) else { continue };
            for keys in [&["mcpServers"][..], &["mcpServers", "*"][..]] {
                let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
                // The text itself, or in a list; what stands at a key of an object is no name.
                let named = texts(&text, &keys).into_iter().filter(|(at, _)| at.as_ref().is_none_or(|at| number(at)));
                all.extend(named.filter_map(|(_, name)| inside(Path::new(&name))));
            }
        }
        all.into_iter().collect()
    }
}

/// A directory that a list names by its path, or as a `file:` address (RFC 8089).
fn directory_of(place: &str) -> Option<PathBuf> {
    let Some(path) = place.strip_prefix("file://") else { return Some(PathBuf::from(place)) };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(if byte == b'%' { (hex(rest.next()?)? << 4) | hex(rest.next()?)? } else { byte });
    }
    let path = String::from_utf8(bytes).ok()?;
    // On Windows "/c:/dir" is "c:/dir".
    let drive = path.strip_prefix('/').filter(|path| cfg!(windows) && path.as_bytes().get(1) == Some(&b':'));
    Some(PathBuf::from(drive.unwrap_or(&path)))
}

fn number(key: &str) -> bool {
    key.bytes().all(|b| b.is_ascii_digit())
}

/// A relative name that stays below its directory, without its `.` parts.
fn inside(name: &Path) -> Option<PathBuf> {
    let plain = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let all = name.components().all(|part| plain(&part));
    all.then(|| name.components().filter(|part| matches!(part, Component::Normal(_))).collect())
}

/// Of directories that differ in their last part only, the one that was changed last, named without that part.
fn newest(found: Vec<(PathBuf, Option<String>)>) -> Vec<(PathBuf, Option<String>)> {
    let changed = |dir: &Path| fs::metadata(dir).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut best: BTreeMap<PathBuf, (SystemTime, PathBuf, Option<String>)> = BTreeMap::new();
    for (dir, name) in found {
        let Some(parent) = dir.parent().map(Path::to_owned) else { continue };
        let name = name.map(|name| name.rsplit_once('/').map_or(name.clone(), |(name, _)| name.to_owned()));
        let new = (changed(&dir), dir, name);
        match best.get(&parent) {
            Some(known) if *known >= new => {}
            _ => drop(best.insert(parent, new)),
        }
    }
    best.into_values().map(|(_, dir, name)| (dir, name)).collect()
}

/// Each directory once. Of several with the same name, as of a plugin that projects have in other versions, those behind
/// the first are named with their last part.
fn apart(all: Vec<Plugin>) -> Vec<Plugin> {
    let (mut dirs, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut out = Vec::new();
    for mut plugin in all.into_iter().filter(|p| p.dir.is_dir()).take(MAX_PLUGINS) {
        if !dirs.insert(sys::canonicalize(&plugin.dir).unwrap_or_else(|_| plugin.dir.clone())) {
            continue;
        }
        if names.contains(&plugin.name)
            && let Some(last) = plugin.dir.file_name()
        {
            plugin.name = format!("{}/{}", plugin.name, last.to_string_lossy());
        }
        if names.insert(plugin.name.clone()) {
            out.push(plugin);
        }
    }
    out
}

fn read(path: &Path) -> Option<String> {
    let source = Source::read(path, MAX_LIST).ok()??;
    text_of(path, &source.bytes).ok().map(|(_, text)| text.to_owned())
}

/// The texts at these keys. What cannot be read lists nothing: the client does not find it either.
fn texts(text: &str, keys: &[String]) -> Vec<(Option<String>, String)> {
    document::texts(text, Syntax::Jsonc, keys).unwrap_or_default()
}
