//! Many scans: each is a process of its own, a few at a time, and their reports are lines of one file.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    env,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    arguments::{
        grants::AccessOptions,
        sandbox::{BatchOptions, ScanRunOptions, ScanToolOptions, WasmScanOptions},
    },
    failure::Failure,
    output,
};

/// Longest list, in bytes.
const MAX_LIST: u64 = 64 << 20;
/// Deepest folder that is looked into for modules.
const MAX_DEPTH: usize = 32;

/// Scans all modules of a folder or list.
pub fn wasm(options: &WasmScanOptions) -> Result<ExitCode, Failure> {
    let mut targets = Vec::new();
    if let Some(folder) = &options.module {
        modules(folder, 0, &mut targets).map_err(|e| Failure::environment(format!("{}: {e}", folder.display())))?;
    }
    if let Some(list) = &options.batch.list {
        targets.extend(listed(list)?);
    }
    let mut before: Vec<OsString> = vec!["wasm".into(), "scan".into()];
    for text in &options.env {
        before.extend(["--env".into(), text.into()]);
    }
    for text in &options.directories {
        before.extend(["--dir".into(), text.into()]);
    }
    for host in &options.hosts {
        before.extend(["--host".into(), host.to_string().into()]);
    }
    before.extend(["--memory".into(), options.memory.to_string().into()]);
    if let Some(fuel) = options.fuel {
        before.extend(["--fuel".into(), fuel.to_string().into()]);
    }
    before.extend(scan(&options.scan)?);
    let rest = options.arguments.clone();
    let line = move |target: &[String]| {
        let mut words = before.clone();
        words.extend(target.first().map(OsString::from));
        words.push("--".into());
        words.extend(target.iter().skip(1).map(OsString::from));
        words.extend(rest.iter().cloned());
        words
    };
    all(targets, &options.batch, line)
}

/// Scans all commands of a list.
pub fn native(options: &ScanToolOptions) -> Result<ExitCode, Failure> {
    let list = options.batch.list.as_deref().ok_or_else(|| Failure::environment("name a list"))?;
    let mut before: Vec<OsString> = vec!["scan-tool".into()];
    if let Some(profile) = &options.profile {
        before.extend(["--profile".into(), profile.into()]);
    }
    let AccessOptions { read, write, hosts, sockets, env } = &options.access;
    for (name, paths) in [("--ro", read), ("--rw", write), ("--unix", sockets)] {
        paths.iter().for_each(|path| before.extend([name.into(), path.into()]));
    }
    hosts.iter().for_each(|host| before.extend(["--host".into(), host.to_string().into()]));
    env.iter().for_each(|text| before.extend(["--env".into(), text.into()]));
    before.extend(scan(&options.scan)?);
    before.push("--".into());
    let line = move |target: &[String]| before.iter().cloned().chain(target.iter().map(OsString::from)).collect();
    all(listed(list)?, &options.batch, line)
}

/// Options that each scan gets.
fn scan(options: &ScanRunOptions) -> Result<Vec<OsString>, Failure> {
    let ScanRunOptions { stdin, mcp, timeout, output, paper, json: _, markdown, sarif } = options;
    if *markdown || *sarif {
        return Err(Failure::environment("many scans are reported as JSON Lines: leave --markdown and --sarif out"));
    }
    let mut out: Vec<OsString> = vec!["--json".into(), "--timeout".into(), timeout.to_string().into()];
    out.extend(["--output".into(), output.to_string().into()]);
    out.extend(stdin.iter().flat_map(|path| ["--stdin".into(), path.into()]));
    out.extend(mcp.then(|| "--mcp".into()));
    out.extend(paper.then(|| "--paper".into()));
    Ok(out)
}

fn modules(folder: &Path, depth: usize, out: &mut Vec<Vec<String>>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        let about = fs::symlink_metadata(&path)?;
        if about.is_dir() && depth < MAX_DEPTH {
            modules(&path, depth + 1, out)?;
        } else if about.is_file() && path.extension().is_some_and(|e| e == "wasm") {
            out.push(vec![path.display().to_string()]);
        }
    }
    Ok(())
}

/// Words of each line: a JSON array of strings, or one word.
fn listed(list: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let failed = |e: io::Error| Failure::environment(format!("{}: cannot be read: {e}", list.display()));
    let mut text = String::new();
    File::open(list).map_err(failed)?.take(MAX_LIST).read_to_string(&mut text).map_err(failed)?;
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let line = line.trim();
        let words: Vec<String> = if line.starts_with('[') {
            serde_json::from_str(line).map_err(|_| {
                let place = format!("{}, line {}", list.display(), number + 1);
                Failure::environment(format!("{place}: no JSON array of words"))
            })?
        } else {
            vec![line.to_owned()]
        };
        if !words.is_empty() {
            out.push(words);
        }
    }
    Ok(out)
}

/// What of an earlier report says what it is about, and what was found.
#[derive(Deserialize)]
struct Done {
    target: Vec<String>,
    #[serde(default)]
    flows: Vec<Value>,
    #[serde(default)]
    violations: Vec<Value>,
}

impl Done {
    fn clean(&self) -> bool {
        self.flows.is_empty() && self.violations.is_empty()
    }
}

/// Reports that the file of results holds already. A last line that was cut off is removed.
fn done(results: &Path) -> Result<HashMap<Vec<String>, bool>, Failure> {
    let failed = |e: io::Error| Failure::environment(format!("{}: {e}", results.display()));
    let mut out = HashMap::new();
    let file = match OpenOptions::new().read(true).write(true).open(results) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(out),
        other => other.map_err(failed)?,
    };
    let (mut whole, mut line) = (0, Vec::new());
    let mut reader = BufReader::new(&file);
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        if line.last() != Some(&b'\n') {
            file.set_len(whole).map_err(failed)?;
            break;
        }
        whole += line.len() as u64;
        if let Ok(report) = serde_json::from_slice::<Done>(&line) {
            let clean = report.clean();
            out.insert(report.target, clean);
        }
        line.clear();
    }
    Ok(out)
}

fn all(
    targets: Vec<Vec<String>>,
    options: &BatchOptions,
    line: impl Fn(&[String]) -> Vec<OsString>,
) -> Result<ExitCode, Failure> {
    let own = env::current_exe().map_err(|e| Failure::environment(format!("cannot find this program: {e}")))?;
    let before = options.results.as_deref().map(done).transpose()?.unwrap_or_default();
    let mut clean = targets.iter().all(|t| before.get(t).copied().unwrap_or(true));
    let mut seen = HashSet::new();
    let total = targets.len();
    let queue: VecDeque<_> =
        targets.into_iter().filter(|t| !before.contains_key(t) && seen.insert(t.clone())).collect();
    let mut results = match &options.results {
        Some(path) => {
            let file = OpenOptions::new().append(true).create(true).open(path);
            Some(file.map_err(|e| Failure::environment(format!("{}: {e}", path.display())))?)
        }
        None => None,
    };
    let mut number = total - queue.len();
    let mut failed = false;
    let mut queue = queue.into_iter();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let start = |target: Vec<String>| {
            let (sender, words, own) = (sender.clone(), line(&target), &own);
            scope.spawn(move || {
                let ran = Command::new(own).args(words).stdin(Stdio::null()).output();
                // The receiver stays until all have reported.
                let _ = sender.send((target, ran));
            });
        };
        let mut running = queue.by_ref().take(usize::from(options.jobs)).map(start).count();
        while running > 0 {
            let Ok((target, ran)) = receiver.recv() else { break };
            running -= 1;
            running += queue.by_ref().take(1).map(start).count();
            number += 1;
            let (text, what) = match ran.map(|o| (o.stdout, o.stderr)) {
                Ok((stdout, stderr)) => match serde_json::from_slice::<Done>(&stdout) {
                    Ok(report) => {
                        clean &= report.clean();
                        let found = format!("{} flows, {} violations", report.flows.len(), report.violations.len());
                        (String::from_utf8_lossy(&stdout).trim().to_owned(), found)
                    }
                    Err(_) => error(&target, String::from_utf8_lossy(&stderr).trim(), &mut failed),
                },
                Err(e) => error(&target, &e.to_string(), &mut failed),
            };
            let name = firedoor_model::Untrusted::new(target.join(" ")).visible(200);
            output::remark(&format!("{number}/{total} {name}: {what}"));
            match &mut results {
                Some(file) => {
                    file.write_all((text + "\n").as_bytes()).map_err(|e| Failure::environment(e.to_string()))?
                }
                None => output::line(&text),
            }
        }
        Ok::<_, Failure>(())
    })?;
    Ok(match (failed, clean) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(1),
    })
}

/// A scan that gave no report. It counts as done: to try it again, remove its line.
fn error(target: &[String], text: &str, failed: &mut bool) -> (String, String) {
    *failed = true;
    let text = text.strip_prefix("firedoor: ").unwrap_or(text);
    (json!({"target": target, "error": text}).to_string(), format!("failed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_results_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let list = at("list", "a b.wasm\n\n[\"node\",\"x y\"]\n");
        assert_eq!(listed(&list).unwrap_or_default(), [vec!["a b.wasm".to_owned()], vec!["node".into(), "x y".into()]]);
        let error = listed(&at("bad", "ok\n[1]\n")).err().unwrap();
        assert!(error.text.contains("line 2"), "{}", error.text);
        let text =
            "{\"target\":[\"a\"],\"flows\":[]}\nnonsense\n{\"target\":[\"b\"],\"flows\":[1]}\n{\"target\":[\"c\"";
        let results = at("results", text);
        let known = done(&results).unwrap_or_default();
        assert_eq!((known.get(&vec!["a".to_owned()]), known.get(&vec!["b".to_owned()])), (Some(&true), Some(&false)));
        assert_eq!(known.len(), 2);
        assert!(fs::read_to_string(&results).unwrap().ends_with("[1]}\n"), "the cut line is gone");
    }

    #[test]
    fn modules_in_folders() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["b.wasm", "sub/a.wasm", "c.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let mut found = Vec::new();
        modules(dir.path(), 0, &mut found).unwrap();
        assert_eq!(found.len(), 2);
    }
}
