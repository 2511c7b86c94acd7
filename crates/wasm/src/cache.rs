//! Compiled code, kept by what it was made from.
//!
//! A file of the cache is machine code that runs in this process. It is found by a digest over the module and everything
//! that the compiler depends on, begins with a digest of the code, and is read once, into memory of our own. That finds
//! damage. It does not stop somebody who can write the directory: the launch plan puts it into the server's private cache,
//! which no module is given a directory in.

use std::{
    fs::{self, DirBuilder, File, Metadata},
    hash::{Hash as _, Hasher},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use wasmtime::{Engine, Module, component::Component};

use crate::error::RunError;

/// Largest module. The largest tools, interpreters among them, have some 30 MiB.
const MAX_MODULE: u64 = 256 << 20;
/// Largest compiled module: code grows to a few times its size.
const MAX_CODE: u64 = 1 << 30;
/// Most compiled modules that stay.
const MAX_KEPT: usize = 16;
/// Bytes of a SHA-256 digest.
const DIGEST: usize = 32;
/// The end of our files' names.
const SUFFIX: &str = "cwasm";

/// What was compiled.
pub enum Code {
    /// A core module, for preview 1.
    Module(Module),
    /// A component, for preview 2.
    Component(Component),
}

/// Which of the two a file holds. The first four bytes are the same; the next four are a version and a layer (WebAssembly
/// core specification 5.5.16, component model binary format).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Module,
    Component,
}

/// Reads a module and compiles it, or finds it compiled in `cache`.
pub fn load(engine: &Engine, path: &Path, cache: Option<&Path>) -> Result<Code, RunError> {
    let bytes = read(path)?;
    let kind = match bytes.get(..8) {
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => Kind::Component,
        _ => Kind::Module,
    };
    let compile = |reason: wasmtime::Error| RunError::Compile { path: path.into(), reason: format!("{reason:#}") };
    // Access lists are not looked at on Windows, so no kept code is known to be the user's own.
    let Some(dir) = cache.filter(|_| cfg!(unix)) else { return made(engine, kind, &bytes).map_err(compile) };
    let place = dir.join(format!("{}.{SUFFIX}", name(engine, &bytes)));
    if let Some(code) = kept(&place).and_then(|code| restored(engine, kind, &code)) {
        return Ok(code);
    }
    let code = made(engine, kind, &bytes).map_err(compile)?;
    let serialized = match &code {
        Code::Module(module) => module.serialize(),
        Code::Component(component) => component.serialize(),
    };
    // Without a cache the next start is slower, and nothing else.
    if let Ok(serialized) = serialized
        && let Err(e) = keep(dir, &place, &serialized)
    {
        crate::say(&RunError::Io { path: place, what: "keep the compiled code", source: e });
    }
    Ok(code)
}

fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    let io = |source| RunError::Io { path: path.into(), what: "read the module", source };
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(MAX_MODULE + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_MODULE {
        return Err(RunError::TooLarge { path: path.into(), limit: MAX_MODULE });
    }
    Ok(bytes)
}

fn made(engine: &Engine, kind: Kind, bytes: &[u8]) -> wasmtime::Result<Code> {
    match kind {
        Kind::Module => Module::new(engine, bytes).map(Code::Module),
        Kind::Component => Component::new(engine, bytes).map(Code::Component),
    }
}

/// A hasher that hands on what it is given.
struct Feed(Sha256);

impl Hasher for Feed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// The digest of a module and of what its code depends on: wasmtime's version, the compiler's settings, the processor.
fn name(engine: &Engine, bytes: &[u8]) -> String {
    let mut feed = Feed(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    feed.write(bytes);
    feed.0.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Makes directories that nobody else reads. On Windows they have the access list of the one that they lie in.
fn private() -> DirBuilder {
    #[cfg_attr(windows, expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The code in a file, if it is the user's own, whole and undamaged.
fn kept(place: &Path) -> Option<Vec<u8>> {
    let file = File::open(place).ok()?;
    let about = file.metadata().ok()?;
    if !is_ours(&about) || about.len() > MAX_CODE {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).ok()?);
    file.take(MAX_CODE).read_to_end(&mut bytes).ok()?;
    let code = bytes.get(DIGEST..)?;
    if bytes.get(..DIGEST)? != Sha256::digest(code).as_slice() {
        return None;
    }
    bytes.drain(..DIGEST);
    Some(bytes)
}

/// Whether a file is the user's own and nobody else may write it.
#[cfg(unix)]
fn is_ours(about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    about.uid() == nix::unistd::geteuid().as_raw() && about.mode() & 0o022 == 0
}

/// See [`load`].
#[cfg(windows)]
fn is_ours(_: &Metadata) -> bool {
    false
}

#[expect(unsafe_code, reason = "compiled code is trusted to be what the compiler made")]
fn restored(engine: &Engine, kind: Kind, code: &[u8]) -> Option<Code> {
    // SAFETY: `code` is what `keep` wrote for this module and this compiler: the file's name is the digest of both, and the
    // file begins with the digest of its content. It was copied out of the file before it was checked, so nobody changes it
    // now. Who can write the directory otherwise is the user, whose process this is.
    unsafe {
        match kind {
            Kind::Module => Module::deserialize(engine, code).ok().map(Code::Module),
            Kind::Component => Component::deserialize(engine, code).ok().map(Code::Component),
        }
    }
}

fn keep(dir: &Path, place: &Path, code: &[u8]) -> io::Result<()> {
    private().recursive(true).create(dir)?;
    // Appears whole or not at all, also when two starts meet.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(&Sha256::digest(code))?;
    file.write_all(code)?;
    file.persist(place)?;
    forget(dir)
}

/// Removes all but the newest files.
fn forget(dir: &Path) -> io::Result<()> {
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == SUFFIX) {
            files.push((fs::symlink_metadata(&path)?.modified()?, path));
        }
    }
    files.sort();
    let old = files.len().saturating_sub(MAX_KEPT);
    files.iter().take(old).try_for_each(|(_, path)| fs::remove_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<PathBuf> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect()
    }

    fn load_it(engine: &Engine, path: &Path, cache: &Path) -> Result<bool, RunError> {
        load(engine, path, Some(cache)).map(|code| matches!(code, Code::Module(_)))
    }

    #[test]
    fn code_is_kept_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("m.wasm"), dir.path().join("cache"));
        let engine = Engine::default();
        fs::write(&path, wat::parse_str("(module (func (export \"_start\")))").unwrap()).unwrap();
        assert!(load_it(&engine, &path, &cache).unwrap());
        let first = files(&cache);
        assert_eq!(first.len(), 1);
        let whole = fs::read(&first[0]).unwrap();
        assert!(kept(&first[0]).is_some());
        // One changed byte, a cut end, an empty file: compiled anew, and put right.
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bad in [&changed[..], &whole[..whole.len() / 2], &whole[..8], b""] {
            fs::write(&first[0], bad).unwrap();
            assert!(kept(&first[0]).is_none());
            assert!(load_it(&engine, &path, &cache).unwrap());
            assert_eq!(fs::read(&first[0]).unwrap(), whole);
        }
        // Another module, and another compiler, have other names.
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        assert!(load_it(&Engine::new(&config).unwrap(), &path, &cache).unwrap());
        fs::write(&path, wat::parse_str("(module (func (export \"other\")))").unwrap()).unwrap();
        assert!(load_it(&engine, &path, &cache).unwrap());
        assert_eq!(files(&cache).len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn what_others_may_write_is_not_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.cwasm");
        keep(dir.path(), &place, b"code").unwrap();
        assert_eq!(kept(&place).as_deref(), Some(&b"code"[..]));
        fs::set_permissions(&place, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(kept(&place), None);
    }

    #[test]
    fn few_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..MAX_KEPT + 5 {
            keep(dir.path(), &dir.path().join(format!("{i}.cwasm")), b"code").unwrap();
        }
        assert_eq!(files(dir.path()).len(), MAX_KEPT);
    }

    #[test]
    fn errors_say_what_and_where() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let check = |path: &Path, want: &str| {
            let error = load(&engine, path, None).err().unwrap();
            let text = error.to_string();
            assert!(text.contains(want) && text.contains(&path.display().to_string()), "{text}");
            assert_eq!(error.code(), 2);
        };
        check(&dir.path().join("absent.wasm"), "could not read the module");
        let text = dir.path().join("text.wasm");
        fs::write(&text, "not wasm").unwrap();
        check(&text, "not a WebAssembly module");
        let large = dir.path().join("large.wasm");
        File::create(&large).unwrap().set_len(MAX_MODULE + 1).unwrap();
        check(&large, "larger than 256 MiB");
    }
}
