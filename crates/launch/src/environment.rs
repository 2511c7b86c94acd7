//! Which variables of the client's environment a server gets.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;

use crate::sys;

/// Largest file of certificates that is looked at.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// Most files of a directory of certificates. Systems have some 300, each with a link or two.
const MAX_FILES: usize = 2048;

/// Most bytes in it: systems have one or two MiB of them.
const MAX_BYTES: u64 = 64 << 20;

/// Most such directories. Systems have one, and whoever adds authorities another.
const MAX_DIRECTORIES: usize = 4;

/// Names and values that mark a variable, from `profiles/sandbox/environment.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marks {
    contains: Vec<String>,
    words: Vec<String>,
    names: Vec<String>,
    services: Vec<String>,
    expected: Vec<String>,
    code: Vec<String>,
    harmless: Vec<String>,
    values: Vec<String>,
    install: Vec<String>,
    certificates: Vec<String>,
    certificate_directories: Vec<String>,
    skip: BTreeMap<String, String>,
}

#[expect(clippy::expect_used, reason = "built-in data, parsed by a test")]
static MARKS: LazyLock<Marks> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/environment.json"))).expect("environment.toml parses")
});

/// Whether a variable is withheld from a server that did not ask for it.
fn withheld(name: &str, value: &str) -> bool {
    let marks = &*MARKS;
    let upper = name.to_ascii_uppercase();
    let listed = |list: &[String]| list.contains(&upper);
    // A harmless name may still carry a credential as its value.
    (!listed(&marks.harmless)
        && (listed(&marks.names)
            || listed(&marks.services)
            || listed(&marks.code)
            || sys::is_code(name)
            || marks.contains.iter().any(|part| upper.contains(part.as_str()))
            || upper.split(['_', '-', '.', ':']).any(|word| marks.words.iter().any(|w| w == word))))
        || credential_value(value)
}

/// Whether it goes without saying that a server does not get this variable: nearly every session sets it.
pub fn is_expected(name: &str) -> bool {
    MARKS.expected.contains(&name.to_ascii_uppercase())
}

/// Whether a value looks like a credential: a known beginning, or an address with a password in it.
fn credential_value(value: &str) -> bool {
    let value = value.trim_start();
    if MARKS.values.iter().any(|p| value.starts_with(p.as_str())) {
        return true;
    }
    // scheme://user:password@host (RFC 3986 §3.2.1)
    value.split_once("://").is_some_and(|(scheme, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The variables that stay, and the names of those that were dropped, sorted. A name is kept when it is in `keep`.
/// What is not UTF-8 is dropped: nothing can be said about it.
pub(crate) fn filter(env: &[(OsString, OsString)], keep: &BTreeSet<&str>) -> (Vec<(OsString, OsString)>, Vec<String>) {
    let mut kept = Vec::with_capacity(env.len());
    let mut dropped = BTreeSet::new();
    for (name, value) in env {
        let stays = match (name.to_str(), value.to_str()) {
            (Some(_), _) if keep.iter().any(|kept| sys::same_variable(OsStr::new(kept), name)) => true,
            (Some(name), Some(value)) => !withheld(name, value),
            _ => false,
        };
        if stays {
            kept.push((name.clone(), value.clone()));
        } else {
            dropped.insert(name.to_string_lossy().into_owned());
        }
    }
    (kept, dropped.into_iter().collect())
}

fn named(list: &[String], name: &OsStr) -> bool {
    list.iter().any(|n| sys::same_variable(name, OsStr::new(n)))
}

/// What an install gets: of the variables that stayed, and what keeps its scripts from downloads that would fail.
pub(crate) fn for_install(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let stays = env.iter().filter(|(name, _)| named(&MARKS.install, name) || sys::is_for_install(name));
    stays.cloned().chain(MARKS.skip.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The files that hold the certificate authorities named in the environment, and the directories that have to be listed to find
/// some of them. Only files that are nothing else, and only directories with such a file and without directories of their own: the
/// variable may come from a project's file, and name something private. What is `opened` anyway is not looked at: the system's own
/// directory has some three hundred files, and this is at every start of a server.
pub(crate) fn certificates(
    env: &[(OsString, OsString)],
    opened: impl Fn(&Path) -> bool,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let values = |list: &'static [String]| env.iter().filter(|(name, _)| named(list, name)).map(|(_, value)| value);
    // Mostly the same one for each program.
    let mut files: BTreeSet<PathBuf> = values(&MARKS.certificates).map(PathBuf::from).collect();
    let wanted = |path: &PathBuf| path.is_absolute() && !opened(path);
    files.retain(|p| wanted(p) && only_certificates(p));
    let directories: BTreeSet<PathBuf> =
        values(&MARKS.certificate_directories).flat_map(std::env::split_paths).filter(wanted).collect();
    let mut listed = Vec::new();
    for directory in directories.into_iter().take(MAX_DIRECTORIES) {
        let Ok(entries) = directory.read_dir() else { continue };
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(MAX_FILES + 1).collect();
        let bytes: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum();
        if paths.len() > MAX_FILES || bytes > MAX_BYTES || paths.iter().any(|path| path.is_dir()) {
            continue;
        }
        let before = files.len();
        files.extend(paths.into_iter().filter(|path| only_certificates(path)));
        if files.len() > before {
            listed.push(directory);
        }
    }
    (files.into_iter().collect(), listed)
}

fn only_certificates(path: &Path) -> bool {
    let mut text = Vec::new();
    // Regular files only: opening a pipe would wait.
    path.is_file()
        && File::open(path).is_ok_and(|f| f.take(MAX_CERTIFICATES + 1).read_to_end(&mut text).is_ok())
        && text.len() as u64 <= MAX_CERTIFICATES
        && {
            let text = String::from_utf8_lossy(&text);
            text.contains("-----BEGIN CERTIFICATE-----") && !text.contains("PRIVATE KEY-----")
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_points_at_a_session_goes_without_saying() {
        assert!(is_expected("XDG_RUNTIME_DIR") && is_expected("Display"));
        for name in ["GITHUB_TOKEN", "LD_PRELOAD", "DOCKER_HOST", "DATABASE_URL"] {
            assert!(!is_expected(name), "{name}");
        }
        assert!(MARKS.expected.iter().all(|name| MARKS.services.contains(name)));
    }

    #[test]
    fn what_is_withheld() {
        for (name, value, want) in [
            ("PATH", "/usr/bin", false),
            ("LANG", "C.UTF-8", false),
            ("TOKENIZERS_PARALLELISM", "false", false),
            ("TOKENIZERS_PARALLELISM", "sk-abcdef", true),
            ("GIT_AUTHOR_NAME", "A. U. Thor", false),
            ("PWD", "/home/u", false),
            ("KEYBOARD", "us", false),
            ("HTTP_ACCEPT", "x", false),
            ("GITHUB_TOKEN", "x", true),
            ("github_token", "x", true),
            ("MYTOKEN", "x", true),
            ("OPENAI_API_KEY", "x", true),
            ("SUPABASE_KEY", "x", true),
            ("DB_PASS", "x", true),
            ("npm_config__auth", "x", true),
            ("npm_config_//registry.example/:_authToken", "x", true),
            ("AWS_SECRET_ACCESS_KEY", "x", true),
            ("DATABASE_URL", "sqlite:x", true),
            ("SOME_URL", "postgres://u:p@h/db", true),
            ("SOME_URL", "https://h/a:b@c", false),
            ("SOME_URL", "https://user@h/", false),
            ("INNOCENT", "ghp_abcdefghij", true),
            ("INNOCENT", " -----BEGIN OPENSSH PRIVATE KEY-----", true),
            ("SSH_AUTH_SOCK", "/run/x", true),
            ("LD_PRELOAD", "/x.so", true),
            ("NODE_OPTIONS", "--require /x.js", true),
            ("DISPLAY", ":0", true),
        ] {
            assert_eq!(withheld(name, value), want, "{name}");
        }
    }

    #[test]
    fn what_was_asked_for_stays() {
        let env = [("A_TOKEN", "1"), ("B_TOKEN", "2"), ("LANG", "C")].map(|(n, v)| (n.into(), v.into()));
        let (kept, dropped) = filter(&env, &BTreeSet::from(["A_TOKEN"]));
        assert_eq!(kept, [("A_TOKEN".into(), "1".into()), ("LANG".into(), "C".into())]);
        assert_eq!(dropped, ["B_TOKEN"]);
    }

    #[test]
    fn installs_get_no_secret_even_if_declared() {
        let env = [("PATH", "/bin"), ("GITHUB_TOKEN", "x"), ("FOO", "x")].map(|(n, v)| (n.into(), v.into()));
        let (first, set) = for_install(&env).split_first().map(|(f, s)| (f.clone(), s.to_vec())).unwrap();
        assert_eq!(first, ("PATH".into(), "/bin".into()));
        assert!(set.iter().all(|(name, _)| MARKS.skip.contains_key(name.to_str().unwrap())));
    }

    #[test]
    fn certificate_files_hold_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let good = write("good", "-----BEGIN CERTIFICATE-----\nx");
        let key = write("key", "-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----");
        let other = write("other", "private notes");
        let env: Vec<(OsString, OsString)> = [
            ("SSL_CERT_FILE", good.as_path()),
            ("CURL_CA_BUNDLE", &key),
            ("PIP_CERT", &other),
            ("NODE_EXTRA_CA_CERTS", dir.path()),
            ("OTHER", &good),
        ]
        .map(|(n, p)| (n.into(), p.into()))
        .to_vec();
        assert_eq!(certificates(&env, |_| false), (vec![good], vec![]));
    }

    #[test]
    fn directories_of_certificates_are_listed_where_nothing_else_is_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let good = write("good/a.pem", "-----BEGIN CERTIFICATE-----\nx");
        write("good/README", "what these are");
        write("private/notes", "x");
        write("home/a.pem", "-----BEGIN CERTIFICATE-----\nx");
        write("home/documents/a", "x");
        let check = |names: &[&str], variable: &str| {
            let value = std::env::join_paths(names.iter().map(|name| dir.path().join(name))).unwrap();
            certificates(&[(variable.into(), value)], |_| false)
        };
        let want = (vec![good.clone()], vec![dir.path().join("good")]);
        assert_eq!(check(&["good"], "SSL_CERT_DIR"), want);
        assert_eq!(check(&["private", "none", "home", "good"], "SSL_CERT_DIR"), want);
        assert_eq!(check(&["private", "home"], "SSL_CERT_DIR"), (vec![], vec![]));
        assert_eq!(check(&["good"], "SSL_CERT_FILE"), (vec![], vec![]));
        let both = [("SSL_CERT_FILE".into(), good.clone().into()), ("SSL_CERT_DIR".into(), "relative".into())];
        assert_eq!(certificates(&both, |_| false), (vec![good.clone()], vec![]));
        let all = [("SSL_CERT_FILE".into(), good.into()), ("SSL_CERT_DIR".into(), dir.path().join("good").into())];
        assert_eq!(certificates(&all, |path| path.starts_with(dir.path())), (vec![], vec![]), "opened anyway");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_text_is_dropped() {
        use std::os::unix::ffi::OsStringExt;
        let env = [(OsString::from("A"), OsString::from_vec(vec![0xff]))];
        assert_eq!(filter(&env, &BTreeSet::new()).1, ["A"]);
    }
}
