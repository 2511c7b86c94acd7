//! Marketplaces: files that list plugins, and may say themselves what servers a plugin has.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{Listed, Plugin, inside, read, texts};
use crate::{catalog::Client, env::Env};

/// One marketplace that a client knows.
pub(crate) struct Marketplace {
    name: String,
    /// What it calls the directories of its plugins is relative to this one.
    root: PathBuf,
    /// The file that lists its plugins.
    pub file: PathBuf,
    /// See [`super::Plugins::kept`].
    pub kept: Option<String>,
    /// See [`super::Plugins::among`].
    among: Option<Vec<String>>,
}

/// What a marketplace says about one of its plugins.
struct Offered {
    /// The plugin's name, as the client has it.
    name: String,
    /// Where it lies, if that is in the marketplace.
    dir: Option<PathBuf>,
    /// Files with servers that it is said to have.
    files: Vec<PathBuf>,
}

impl Marketplace {
    /// `file` is the name that its file has in its directory; what was listed is that directory, or the file.
    fn new(listed: Listed, file: &Path, kept: Option<String>) -> Self {
        let Listed { name, dir: place, among } = listed;
        if place.is_dir() {
            return Self { name, file: place.join(file), root: place, kept, among };
        }
        let above = file.iter().count();
        let root = if place.ends_with(file) { place.ancestors().nth(above) } else { place.parent() };
        Self { name, root: root.unwrap_or(&place).to_owned(), file: place, kept, among }
    }

    /// What the marketplace itself calls a plugin of it.
    pub fn own_name<'p>(&self, plugin: &'p str) -> Option<&'p str> {
        plugin.strip_suffix(self.name.as_str())?.strip_suffix('@')
    }

    /// The directory outside of projects where its file lies, and the file's name there.
    pub fn place(&self) -> Option<(PathBuf, PathBuf)> {
        let below = self.file.strip_prefix(&self.root).ok()?;
        Some((self.root.clone(), below.to_owned()))
    }

    /// Where its own plugins lie that are run from there.
    pub fn directory(&self) -> Option<&Path> {
        self.kept.is_none().then_some(&self.root)
    }

    fn offers(&self) -> Vec<Offered> {
        let Some(text) = read(&self.file) else { return Vec::new() };
        let at = |keys: &[&str]| {
            let keys: Vec<String> = ["plugins", "*"].iter().chain(keys).map(|key| (*key).to_owned()).collect();
            texts(&text, &keys).into_iter().filter_map(|(number, text)| Some((number?, text)))
        };
        let sources: BTreeMap<_, _> = at(&["source"]).collect();
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for (number, name) in at(&["mcpServers"]).chain(at(&["mcpServers", "*"])) {
            files.entry(number).or_default().extend(inside(Path::new(&name)));
        }
        let dir = |source: &String| {
            // "./" is the marketplace itself.
            let dir: PathBuf = self.root.join(inside(Path::new(source))?).components().collect();
            dir.is_dir().then_some(dir)
        };
        let offered = |(number, name): (String, String)| Offered {
            name: format!("{name}@{}", self.name),
            dir: sources.get(&number).and_then(dir).filter(|_| self.kept.is_none()),
            files: files.remove(&number).unwrap_or_default(),
        };
        at(&["name"]).map(offered).collect()
    }

    /// Adds its plugins that are used to those that the client lists, and what it says about them.
    pub fn add_to(&self, client: &Client, all: &mut Vec<Plugin>) {
        let names: Vec<String> = match &self.among {
            Some(among) => among.clone(),
            None => all.iter().map(|plugin| plugin.name.clone()).collect(),
        };
        let used: BTreeSet<&String> = names.iter().filter(|name| self.own_name(name).is_some()).collect();
        if used.is_empty() {
            return;
        }
        for Offered { name, dir, files } in self.offers().into_iter().filter(|offered| used.contains(&offered.name)) {
            if let Some(dir) = dir {
                all.retain(|plugin| plugin.name != name);
                all.push(Plugin { dir, name: name.clone(), own: true, named: Vec::new() });
            }
            for plugin in all.iter_mut().filter(|plugin| plugin.name == name && !client.says_itself(plugin)) {
                plugin.named.clone_from(&files);
            }
        }
    }
}

impl Client {
    /// The marketplaces that the client knows, each once: as one of the user's own, if it is that.
    pub(crate) fn marketplaces(&self, env: &Env<'_>) -> Vec<Marketplace> {
        let Some(file) = &self.in_plugins.marketplace_file else { return Vec::new() };
        let (mut own, mut kept) = (Vec::new(), Vec::new());
        for place in self.plugins.iter().filter(|place| place.marketplace) {
            let all = if place.kept.is_some() { &mut kept } else { &mut own };
            all.extend(place.in_lists(env).into_iter().map(|one| Marketplace::new(one, file, place.kept.clone())));
        }
        let mut seen = BTreeSet::new();
        let mut all = own;
        all.extend(kept);
        all.retain(|one: &Marketplace| seen.insert(one.file.clone()));
        all
    }

    /// Whether a plugin has a file that says what servers it has, so that its marketplace's word does not count.
    pub(crate) fn says_itself(&self, plugin: &Plugin) -> bool {
        self.in_plugins.own_word.iter().any(|file| plugin.dir.join(file).is_file())
    }
}
