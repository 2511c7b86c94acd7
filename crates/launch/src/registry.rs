//! Which registries an install may reach: those that the user's own configuration names, as npm and uv read it.
//!
//! Sources: npm "npmrc" and "config" (precedence: command line, environment, project, user); uv "Package indexes" and
//! "Configuration files" (`uvx` reads no project's configuration, and uv reads no pip configuration).

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use firedoor_model::paths::canonicalize;
use serde::Deserialize;

use crate::{command::PackageCommand, error::PlanError, identity::Ecosystem, program::Lookup, sys};

/// Largest configuration file that is read.
const MAX_FILE: u64 = 256 * 1024;

/// From `profiles/sandbox/registries.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    npm: NpmDefault,
    pypi: PypiDefault,
    files: Vec<Files>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NpmDefault {
    registry: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PypiDefault {
    index: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    index: String,
    host: String,
}

#[expect(clippy::expect_used, reason = "built-in data, parsed by a test")]
static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/registries.json"))).expect("registries.toml parses")
});

/// What an install may reach, and the variables that make the tool use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registries {
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) env: Vec<(String, String)>,
}

/// Host and port of an `https` address without credentials.
fn endpoint(url: &str, origin: &str) -> Result<(String, u16), PlanError> {
    let bad = |why| PlanError::Registry { origin: origin.to_owned(), why };
    let Some(rest) = url.strip_prefix("https://") else {
        let plain = url.starts_with("http://");
        return Err(bad(if plain {
            "it is reached without encryption: use an https address"
        } else {
            "it is no https address: write it in full, without variables"
        }));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') || url.contains("${") {
        return Err(bad(
            "it needs credentials, which an install does not get: install the package yourself, and name its \
                        program as the command in the client's configuration",
        ));
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let named = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    match port.parse() {
        Ok(port) if named && port != 0 => Ok((host.to_ascii_lowercase(), port)),
        _ => Err(bad("its host or port cannot be read: write it as https://host/ or https://host:port/")),
    }
}

/// The text of a configuration file; `None` when it is missing. One that cannot be read is an error: it may name
/// another registry than the default one.
fn config(path: &Path) -> Result<Option<String>, PlanError> {
    let io = |e| PlanError::io(path, "read the registry's configuration", e);
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(io(e)),
    };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io(std::io::Error::other("it is larger than 256 KiB")));
    }
    Ok(Some(text))
}

/// The registries for a command. `node` is the executable that runs npx: npm's global configuration lies in its prefix.
pub(crate) fn registries(command: &PackageCommand, at: &Lookup<'_>, node: &Path) -> Result<Registries, PlanError> {
    match command.ecosystem {
        Ecosystem::Npm => npm(command, at, node),
        Ecosystem::Pypi => pypi(command, at),
    }
}

/// One setting of npm, and where it stands.
type Setting = (String, String);

/// `registry`, `@scope:registry` and `cafile` settings, the strongest kept, and the hosts for which credentials are configured.
#[derive(Default)]
struct Npmrc {
    settings: BTreeMap<String, Setting>,
    with_credentials: Vec<String>,
}

impl Npmrc {
    fn set(&mut self, key: &str, value: &str, origin: &str) {
        if key == "registry" || key == "cafile" || (key.starts_with('@') && key.ends_with(":registry")) {
            self.settings.entry(key.to_owned()).or_insert_with(|| (value.to_owned(), origin.to_owned()));
        } else if let Some((host, _)) = key.strip_prefix("//").and_then(|k| k.split_once('/')) {
            self.with_credentials.push(host.split(':').next().unwrap_or_default().to_ascii_lowercase());
        }
    }

    fn read(&mut self, path: &Path) -> Result<(), PlanError> {
        let Some(text) = config(path)? else { return Ok(()) };
        let origin = path.display().to_string();
        for line in text.lines().map(str::trim).filter(|l| !l.starts_with(['#', ';'])) {
            if let Some((key, value)) = line.split_once('=') {
                let value = value.trim();
                self.set(key.trim(), value.trim_matches(['"', '\'']), &origin);
            }
        }
        Ok(())
    }
}

fn npm(command: &PackageCommand, at: &Lookup<'_>, node: &Path) -> Result<Registries, PlanError> {
    let mut npmrc = Npmrc::default();
    if let Some(option) = command.registries.last() {
        npmrc.set("registry", &option.url, "--registry");
    }
    for (name, value) in at.env {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let prefix = name.get(..11).filter(|p| p.eq_ignore_ascii_case("npm_config_"));
        if let Some(key) = prefix.and_then(|p| name.get(p.len()..)).filter(|_| !value.is_empty()) {
            npmrc.set(&key.to_ascii_lowercase(), value, name);
        }
    }
    if let Some(project) = npm_prefix(at) {
        npmrc.read(&project.join(".npmrc"))?;
    }
    let user = ["npm_config_userconfig", "NPM_CONFIG_USERCONFIG"].iter().find_map(|n| at.var(n));
    npmrc.read(&user.map_or_else(|| at.home.join(".npmrc"), PathBuf::from))?;
    let real = canonicalize(node).unwrap_or_else(|_| node.to_owned());
    for file in sys::npm_global(at, &real) {
        npmrc.read(&file)?;
    }

    let default = || (DEFAULTS.npm.registry.clone(), "Firedoor's defaults".to_owned());
    let public = endpoint(&DEFAULTS.npm.registry, "Firedoor's defaults")?;
    let main = npmrc.settings.remove("registry").unwrap_or_else(default);
    let mut out = Registries { hosts: Vec::new(), env: Vec::new() };
    // It becomes readable only if it holds certificates and nothing else (`environment::certificate_files`).
    out.env.extend(npmrc.settings.remove("cafile").map(|(file, _)| ("npm_config_cafile".to_owned(), file)));
    let mut all = vec![("registry".to_owned(), main)];
    all.extend(npmrc.settings);
    for (key, (url, origin)) in all {
        let scope = key.strip_suffix(":registry");
        let needed = scope.is_none_or(|s| command.packages.iter().any(|p| p.name.starts_with(&format!("{s}/"))));
        let found = endpoint(&url, &origin).and_then(|e| {
            // A token for the public registry is for publishing: reading needs none.
            if e != public && npmrc.with_credentials.contains(&e.0) {
                let why = "credentials are configured for it, which an install does not get: install the package \
                           yourself, and name its program as the command in the client's configuration";
                return Err(PlanError::Registry { origin: origin.clone(), why });
            }
            Ok(e)
        });
        match found {
            Ok(e) => {
                if !out.hosts.contains(&e) {
                    out.hosts.push(e);
                }
                out.env.push((format!("npm_config_{key}"), url));
            }
            // The registry of a scope that only a dependency could have.
            Err(_) if !needed => {}
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

/// The directory whose `.npmrc` and `node_modules` npm takes for the project's: the nearest with a `package.json` or
/// `node_modules` (@npmcli/config, `loadLocalPrefix`), never the home.
pub(crate) fn npm_prefix(at: &Lookup<'_>) -> Option<PathBuf> {
    let home = canonicalize(at.home).unwrap_or_else(|_| at.home.to_owned());
    let dirs = at.cwd.ancestors().take_while(|d| *d != at.home && *d != home && d.parent().is_some());
    dirs.map(Path::to_owned).find(|d| d.join("package.json").is_file() || d.join("node_modules").is_dir())
}

/// The part of uv.toml that names indexes.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct UvToml {
    index_url: Option<String>,
    extra_index_url: Vec<String>,
    index: Vec<UvIndex>,
}

#[derive(Deserialize)]
struct UvIndex {
    url: String,
    #[serde(default)]
    default: bool,
}

fn pypi(command: &PackageCommand, at: &Lookup<'_>) -> Result<Registries, PlanError> {
    let var = |name: &str| at.var(name).and_then(OsStr::to_str).filter(|v| !v.is_empty());
    let options =
        |default: bool| command.registries.iter().filter(move |r| r.default == default).map(|r| r.url.clone());
    let mut default: Option<Setting> = options(true).next_back().map(|u| (u, "an option".to_owned()));
    let mut extra: Vec<Setting> = options(false).map(|u| (u, "an option".to_owned())).collect();
    for name in ["UV_DEFAULT_INDEX", "UV_INDEX_URL"] {
        default = default.or_else(|| var(name).map(|v| (v.to_owned(), name.to_owned())));
    }
    for name in ["UV_INDEX", "UV_EXTRA_INDEX_URL"] {
        extra.extend(var(name).unwrap_or_default().split_whitespace().map(|v| (v.to_owned(), name.to_owned())));
    }
    let file = var("UV_CONFIG_FILE").map_or_else(|| sys::uv_config(at), PathBuf::from);
    if let Some(text) = config(&file)? {
        let origin = file.display().to_string();
        let why = "it does not parse: run `uv --version` there to see the error, and correct it";
        let parsed: UvToml = toml::from_str(&text).map_err(|_| PlanError::Registry { origin: origin.clone(), why })?;
        let named = parsed.index.iter().find(|i| i.default).map(|i| i.url.clone());
        default = default.or_else(|| named.or(parsed.index_url).map(|u| (u, origin.clone())));
        let others = parsed.index.iter().filter(|i| !i.default).map(|i| i.url.clone());
        extra.extend(others.chain(parsed.extra_index_url).map(|u| (u, origin.clone())));
    }
    let default = default.unwrap_or_else(|| (DEFAULTS.pypi.index.clone(), "Firedoor's defaults".to_owned()));

    let mut out = Registries { hosts: Vec::new(), env: Vec::new() };
    for (url, origin) in std::iter::once(&default).chain(&extra) {
        let e = endpoint(unnamed(url), origin)?;
        let files = DEFAULTS.files.iter().filter(|f| f.index == e.0).map(|f| (f.host.clone(), 443));
        for host in std::iter::once(e.clone()).chain(files) {
            if !out.hosts.contains(&host) {
                out.hosts.push(host);
            }
        }
    }
    out.env.push(("UV_DEFAULT_INDEX".into(), default.0));
    if !extra.is_empty() {
        let all: Vec<String> = extra.into_iter().map(|(u, _)| u).collect();
        out.env.push(("UV_INDEX".into(), all.join(" ")));
    }
    Ok(out)
}

/// An index without its name: uv accepts `name=url`.
fn unnamed(index: &str) -> &str {
    match index.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => url,
        _ => index,
    }
}

#[cfg(test)]
mod tests;
