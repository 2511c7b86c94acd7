//! What a program could learn: its variables, the files in the directories it was given, and what it says it would fetch.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use firedoor_model::{
    Untrusted,
    network::AttemptKind,
    observation::{Record, Use},
};

use super::report::{Source, SourceKind};
use crate::failure::Failure;

/// How much of a file is read.
const MAX_FILE: u64 = 64 * 1024;
/// Most files, and most bytes of all of them together.
const MAX_FILES: usize = 2000;
const MAX_BYTES: usize = 16 << 20;
/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 32;
/// Longest host and port that is shown, in characters.
const MAX_HOST: usize = 300;
/// Most addresses.
const MAX_FETCHES: usize = 1000;

/// Regular files at and below `roots`, in order of their names. What cannot be read is left out: the program could not read it
/// either. Links are not followed: their targets lie outside, or are found themselves.
pub fn files(roots: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut out = Vec::new();
    let mut bytes = 0;
    for root in roots {
        let about = fs::metadata(root)
            .map_err(|e| Failure::environment(format!("{}: cannot be given to the program: {e}", root.display())))?;
        if about.is_dir() {
            below(root, 0, &mut out, &mut bytes);
        } else {
            add(root, &mut out, &mut bytes);
        }
    }
    Ok(out)
}

fn below(dir: &Path, depth: usize, out: &mut Vec<Source>, bytes: &mut usize) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.flatten().take(MAX_FILES * 4).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => add(&entry.path(), out, bytes),
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => below(&entry.path(), depth + 1, out, bytes),
            _ => {}
        }
    }
}

fn add(path: &Path, out: &mut Vec<Source>, bytes: &mut usize) {
    if out.len() >= MAX_FILES || *bytes >= MAX_BYTES {
        return;
    }
    let Ok(value) = head(path) else { return };
    *bytes += value.len();
    if !value.is_empty() {
        out.push(Source { kind: SourceKind::File, name: path.display().to_string(), value, opened: None });
    }
}

fn head(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Notes which files were opened while the program was watched.
pub fn opened(sources: &mut [Source], record: &Record) {
    let seen: HashSet<&str> =
        record.files().filter(|(_, how, ok)| *ok && *how >= Use::Read).map(|(p, ..)| p.raw()).collect();
    for source in sources.iter_mut().filter(|s| s.kind == SourceKind::File) {
        let real = fs::canonicalize(&source.name).ok();
        source.opened = Some(real.as_deref().and_then(Path::to_str).is_some_and(|p| seen.contains(p)));
    }
}

/// Hosts that were connected to, and those that were refused. What they answered is not known.
pub fn hosts(record: &Record) -> Vec<Source> {
    let seen = record.connections().filter(|(kind, ..)| *kind == AttemptKind::Network);
    let host = |target: &Untrusted, allowed| {
        let name = target.visible(MAX_HOST);
        Source { kind: SourceKind::Host, name, value: String::new(), opened: Some(allowed) }
    };
    seen.map(|(_, target, allowed)| host(target, allowed)).collect()
}

/// Addresses that the output says would be fetched.
pub fn fetches(stdout: &str, stderr: &str) -> Vec<Source> {
    let lines = stdout.lines().chain(stderr.lines()).map(str::trim);
    let address = |line: &str| {
        let rest = ["HTTP_FETCH:", "FETCH:", "HTTP:"].iter().find_map(|mark| line.strip_prefix(mark))?.trim();
        let name = (!rest.is_empty()).then(|| rest.to_owned())?;
        Some(Source { kind: SourceKind::Http, name, value: String::new(), opened: None })
    };
    lines.filter_map(address).take(MAX_FETCHES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_bounded_and_links_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(root.join("b")).unwrap();
        fs::write(root.join("b/large"), "x".repeat(100_000)).unwrap();
        fs::write(root.join("a"), "secret").unwrap();
        fs::write(root.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let mut found = files(std::slice::from_ref(&root)).unwrap();
        let sizes: Vec<_> =
            found.iter().map(|s| (Path::new(&s.name).strip_prefix(&root).unwrap(), s.value.len())).collect();
        assert_eq!(sizes, [(Path::new("a"), 6), (Path::new("b/large"), 65536)]);
        let path = root.join("a").display().to_string();
        let line = serde_json::json!({"kind": "file", "path": path, "use": "read", "allowed": true}).to_string() + "\n";
        opened(&mut found, &Record::from_lines(line.as_bytes()).unwrap());
        assert_eq!(found.iter().map(|s| s.opened).collect::<Vec<_>>(), [Some(true), Some(false)]);
        assert!(files(&[root.join("absent")]).err().unwrap().text.contains("cannot be given"));
    }

    #[test]
    fn hosts_that_were_seen() {
        let line = |what, target, allowed| {
            serde_json::json!({"kind": "connection", "what": what, "target": target, "allowed": allowed}).to_string()
                + "\n"
        };
        let lines =
            [line("network", "a.example:443", true), line("network", "b.example", false), line("listen", "::1", false)];
        let found = hosts(&Record::from_lines(lines.concat().as_bytes()).unwrap());
        let found: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.opened)).collect();
        assert_eq!(found, [("a.example:443", Some(true)), ("b.example", Some(false))]);
    }

    #[test]
    fn what_would_be_fetched() {
        let found = fetches("HTTP_FETCH: https://a.example\nx FETCH: no\n FETCH:b\n", "HTTP: c\nHTTP:\n");
        assert_eq!(found.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["https://a.example", "b", "c"]);
    }
}
