//! `$XDG_CONFIG_HOME/firedoor/config.toml`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// Largest settings file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bounds.
    pub limits: Limits,
    /// Watching of clients' configurations.
    pub watch: Watch,
    /// Broker mode.
    pub broker: Broker,
    /// A classifier of the user's own.
    pub classifier: Option<Classifier>,
}

/// A program of the user's that says of texts how much they read like instructions to an agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classifier {
    /// The Unix socket on which it listens. An absolute path.
    pub socket: PathBuf,
    /// From which score on, above 0 and at most 1, a text counts as instructions.
    #[serde(default = "sure")]
    pub threshold: f64,
}

fn sure() -> f64 {
    0.9
}

/// Broker mode.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Broker {
    /// A file with certificates of authorities that are trusted for services, besides the system's. An absolute path.
    pub certificates: Option<PathBuf>,
}

/// Watching of clients' configurations.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// Projects to watch, besides those that clients list and those with protected servers. Absolute paths.
    pub projects: Vec<PathBuf>,
    /// Whether servers that appear are protected without a question. Not those of projects: their files are shared.
    pub protect: bool,
}

/// Bounds on what is accepted from clients and servers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest message, in MiB, 1 to 1024.
    pub message_mib: u32,
    /// How long audit rows are kept, in days, at least 1.
    pub log_days: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_mib: 64, log_days: 90 }
    }
}

impl Limits {
    /// Largest message, in bytes.
    pub fn message_bytes(&self) -> usize {
        (self.message_mib as usize) << 20
    }
}

impl Config {
    /// Reads the settings in `directory`. A file that cannot be used is reported and the defaults hold: they are the
    /// safe choice, and refusing every server for a typing error is not.
    pub fn load(directory: &Path) -> (Self, Option<String>) {
        let path = directory.join("config.toml");
        let problem =
            |why: String| (Self::default(), Some(format!("{}: {why}; the defaults are in force", path.display())));
        match fs::metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return (Self::default(), None),
            Err(e) => return problem(e.to_string()),
            Ok(meta) if !meta.is_file() || meta.len() > MAX_FILE => {
                return problem("not a file of at most 1 MiB".into());
            }
            Ok(_) => {}
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => return problem(e.to_string()),
        };
        match toml::from_str::<Self>(&text) {
            Ok(config) if !(1..=1024).contains(&config.limits.message_mib) => {
                problem("limits.message_mib must be between 1 and 1024".into())
            }
            Ok(config) if config.limits.log_days == 0 => problem("limits.log_days must be at least 1".into()),
            Ok(config) if config.watch.projects.iter().any(|p| p.is_relative()) => {
                problem("watch.projects must be absolute paths".into())
            }
            Ok(config) if config.classifier.as_ref().is_some_and(|c| c.socket.is_relative()) => {
                problem("classifier.socket must be an absolute path".into())
            }
            Ok(config) if config.classifier.as_ref().is_some_and(|c| !(c.threshold > 0.0 && c.threshold <= 1.0)) => {
                problem("classifier.threshold must be above 0 and at most 1".into())
            }
            Ok(config) => (config, None),
            Err(e) => problem(e.to_string().trim_end().replace('\n', " ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_mistakes() {
        let dir = tempfile::tempdir().unwrap();
        let check = |text: &str| {
            fs::write(dir.path().join("config.toml"), text).unwrap();
            let (config, problem) = Config::load(dir.path());
            (config.limits.message_mib, problem)
        };
        assert_eq!(Config::load(&dir.path().join("none")), (Config::default(), None));
        assert_eq!(check("[limits]\nmessage_mib = 8\n"), (8, None));
        assert_eq!(check("[classifier]\nsocket = '/c.sock'\n"), (64, None));
        for bad in [
            "[limits]\nmessage_mib = 0\n",
            "[limits]\nlog_days = 0\n",
            "[limits]\nmessage_mb = 8\n",
            "[limits",
            "[watch]\nprojects = ['app']\n",
            "[classifier]\nsocket = 'c.sock'\n",
            "[classifier]\nsocket = '/c.sock'\nthreshold = 1.1\n",
            "[classifier]\nsocket = '/c.sock'\nthreshold = nan\n",
            "[classifier]\nthreshold = 0.5\n",
        ] {
            let (value, problem) = check(bad);
            assert_eq!(value, 64);
            assert!(problem.unwrap().contains("config.toml"), "{bad}");
        }
    }
}
