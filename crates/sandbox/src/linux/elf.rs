//! Which C library a program uses, as far as its file says (elf(5)).

use std::{
    fs::OpenOptions,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::libc;

/// How much of a program is read first: its headers, and the name of its loader, stand at the start.
const START: u64 = 4 << 10;
/// How much is read where that was not all of them.
const MAX_START: u64 = 64 << 10;
/// Scripts whose interpreters are scripts; the kernel follows four (`BINPRM_MAX_RECURSION`, fs/exec.c).
const MAX_SCRIPTS: usize = 4;
/// `PT_INTERP`: the name of the loader.
const PT_INTERP: u32 = 3;
/// Size of a program header of a 64-bit file.
const HEADER: usize = 56;

/// What a file starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// A script for this program.
    Script(PathBuf),
    /// A program for this loader, or for none.
    Program(Option<PathBuf>),
}

/// Whether a program may use musl: its loader is musl's, or it brings its C library along. Of a script, its interpreter.
pub(crate) fn may_use_musl(program: &Path) -> bool {
    let mut path = program.to_path_buf();
    for _ in 0..=MAX_SCRIPTS {
        match [START, MAX_START].iter().find_map(|most| parse(&start(&path, *most)?)) {
            Some(Start::Script(interpreter)) => path = interpreter,
            Some(Start::Program(loader)) => {
                return loader.is_none_or(|l| l.file_name().is_some_and(|n| n.as_bytes().starts_with(b"ld-musl")));
            }
            None => return false,
        }
    }
    false
}

/// At most so many bytes. Reading from a device or a FIFO could do harm.
fn start(program: &Path, most: u64) -> Option<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(program).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads the start of a file. `None`: neither a script nor a 64-bit program of this machine's byte order.
pub(crate) fn parse(bytes: &[u8]) -> Option<Start> {
    let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next()?.trim_ascii();
        let name = line.split(|b| *b == b' ' || *b == b'\t').next().filter(|n| !n.is_empty())?;
        return Some(Start::Script(path(name)));
    }
    // ELFCLASS64, and the byte order that numbers have here.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if !bytes.starts_with(&[0x7f, b'E', b'L', b'F', 2, order]) {
        return None;
    }
    let half = |at: usize| bytes.get(at..)?.first_chunk::<2>().map(|b| usize::from(u16::from_ne_bytes(*b)));
    let word =
        |at: usize| bytes.get(at..)?.first_chunk::<8>().and_then(|b| usize::try_from(u64::from_ne_bytes(*b)).ok());
    let (table, size, count) = (word(32)?, half(54)?, half(56)?);
    if size < HEADER {
        return None;
    }
    for index in 0..count {
        let at = index.checked_mul(size)?.checked_add(table)?;
        let kind = u32::from_ne_bytes(*bytes.get(at..)?.first_chunk::<4>()?);
        if kind == PT_INTERP {
            let (offset, length) = (word(at + 8)?, word(at + 32)?);
            let name = bytes.get(offset..)?.get(..length)?;
            return Some(Start::Program(Some(path(name.split(|b| *b == 0).next()?))));
        }
    }
    Some(Start::Program(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A program with these headers, as kind, offset and length, and text behind them.
    fn program(headers: &[(u32, u64, u64)], text: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 64];
        out[..6].copy_from_slice(b"\x7fELF\x02\x01");
        out[32] = 64;
        out[54] = 56;
        out[56] = headers.len() as u8;
        for (kind, offset, length) in headers {
            let at = out.len();
            out.resize(at + 56, 0);
            out[at..at + 4].copy_from_slice(&kind.to_ne_bytes());
            out[at + 8..at + 16].copy_from_slice(&offset.to_ne_bytes());
            out[at + 32..at + 40].copy_from_slice(&length.to_ne_bytes());
        }
        out.extend(text);
        out
    }

    #[test]
    fn starts_of_files() {
        let loader = |text: &str| Some(Start::Program(Some(text.into())));
        let script = |text: &str| Some(Start::Script(text.into()));
        for (bytes, want) in [
            (b"#!/bin/sh\nx".to_vec(), script("/bin/sh")),
            (b"#! \t/usr/bin/env node\n".to_vec(), script("/usr/bin/env")),
            (b"#!\n/bin/sh".to_vec(), None),
            (b"".to_vec(), None),
            (b"\x7fELF\x01\x01".to_vec(), None),
            (program(&[(1, 0, 0), (PT_INTERP, 176, 8)], b"/lib/ld\0more"), loader("/lib/ld")),
            (program(&[(PT_INTERP, 120, 9)], b"/lib/ld\0"), None),
            (program(&[(PT_INTERP, u64::MAX, u64::MAX)], b"/lib/ld\0"), None),
            (program(&[(1, 0, 0)], b""), Some(Start::Program(None))),
            (program(&[(1, 0, 0)], b"")[..65].to_vec(), None),
        ] {
            assert_eq!(parse(&bytes), want, "{bytes:?}");
        }
    }

    #[test]
    fn scripts_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.path().join(name), bytes).unwrap();
            dir.path().join(name)
        };
        let musl = file("musl", &program(&[(PT_INTERP, 120, 26)], b"/lib/ld-musl-x86_64.so.1\0\0"));
        let glibc = file("glibc", &program(&[(PT_INTERP, 120, 28)], b"/lib64/ld-linux-x86-64.so.2\0"));
        let far = [&[0; 8000], b"/lib/ld-musl-x86_64.so.1\0\0".as_slice()].concat();
        let far = file("far", &program(&[(PT_INTERP, 8120, 26)], &far));
        let script = |name: &str, to: &Path| file(name, format!("#!{}\n", to.display()).as_bytes());
        let looping = script("loop", &dir.path().join("loop"));
        for (path, want) in [
            (&musl, true),
            (&glibc, false),
            (&far, true),
            (&script("a", &musl), true),
            (&script("b", &glibc), false),
            (&looping, false),
            (&file("static", &program(&[], b"")), true),
            (&dir.path().join("none"), false),
            (&dir.path().to_path_buf(), false),
        ] {
            assert_eq!(may_use_musl(path), want, "{}", path.display());
        }
    }

    proptest! {
        #[test]
        fn any_file_is_survived(headers in prop::collection::vec(any::<(u32, u64, u64)>(), 0..4), cut in 0usize..300) {
            let mut bytes = program(&headers, b"/lib/ld\0");
            bytes.truncate(cut);
            let _ = parse(&bytes);
        }
    }
}
