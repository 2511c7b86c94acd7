//! How an entry is written, where its client has words of its own for what others call `command`, `args` and `env`.

use serde::Deserialize;

/// The keys of one kind of entry. Without a word in the catalog they are those that most clients use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Form {
    /// Servers are a list, and this key of each holds its name. One without it is known by its place, counted from 1.
    pub name: Option<String>,
    /// A file without the map of servers may be one itself, from its top. Only in JSON.
    pub bare: bool,
    /// In the map's place there may be a list of maps, and of names of files. Only in JSON.
    pub parts: bool,
    /// The key of an entry under which everything stands that starts or reaches the server.
    pub inside: Option<String>,
    pub command: String,
    pub args: String,
    /// Keys of the variables that it sets; the first that is there counts.
    pub env: Vec<String>,
    /// Key of the inherited variables that it names to be passed on.
    pub env_passed: String,
    /// Keys that hold the address of a remote server.
    pub url: Vec<String>,
    /// Keys that hold the headers of a remote server.
    pub headers: Vec<String>,
    /// The client takes a command with blanks in it apart, as a shell would.
    pub splits: bool,
    /// The client takes a bare `--` among a server's arguments for its own: the shim's has another name there.
    pub no_dashes: bool,
}

impl Default for Form {
    fn default() -> Self {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            name: None,
            bare: false,
            parts: false,
            inside: None,
            command: "command".into(),
            args: "args".into(),
            env: all(&["env"]),
            env_passed: "env_vars".into(),
            url: all(&["url", "serverUrl", "httpUrl", "baseUrl"]),
            // The second is Codex's.
            headers: all(&["headers", "http_headers"]),
            splits: false,
            no_dashes: false,
        }
    }
}

impl Form {
    /// The form of a program that stands in a map under `command`: `{path, args, env}`, as older files of Zed have it.
    pub fn nested(&self) -> Self {
        Self { command: "path".into(), ..self.clone() }
    }
}
