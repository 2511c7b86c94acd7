//! Trees that a server may write to, with names in them that stay closed at any depth.
//!
//! Landlock opens a tree whole and cannot close a part of it again, so for these trees it opens reading only. What opens a
//! file to write, or creates, changes or removes a name, comes to the guardian, which resolves the path once, judges where
//! it really lies, and performs the call itself on the directory or file that it has judged.
//!
//! A call about something else is left to the kernel, which reads the caller's memory again. A thread that changes its
//! memory in between wins nothing: Landlock denies every write in these trees to the server itself, whatever the path says
//! by then. So the guardian is the only way in, and letting a call go on is no verdict. For the same reason whatever this
//! module cannot make sense of (a bad pointer, a missing directory, `..` as a last name) is left to the kernel, too, whose
//! errors are then the right ones.
//!
//! Architecture invariant: a call that would truncate a file without opening it to write never goes on. Landlock does not keep
//! the server from that (`filesystem.rs`).

mod calls;
mod change;
mod open;
mod spot;

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use firedoor_model::protected::ProtectedNames;
use nix::{
    errno::Errno,
    libc,
    sys::stat::{Mode, umask},
};

use crate::linux::{network::caller::Caller, procfs};
use calls::Call;

/// What may be written, and what not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    roots: Vec<PathBuf>,
    names: ProtectedNames,
    /// Whether somebody has called umask(2). Until then everybody has the mask that the guardian has inherited, too.
    mask_changed: bool,
}

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is none of our business: Landlock decides.
    Kernel,
    /// It was performed.
    Done,
    /// It returns this file.
    File { file: OwnedFd, close_on_exec: bool },
    /// It is refused, because of this path.
    Protected(PathBuf),
}

/// What a name stands for, or is to stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory that is made where it stands, or whose own attributes change.
    Directory,
    /// A directory that changes its name. What lies in it changes its path, too.
    MovedDirectory,
    /// A symbolic link, through which something else would get the path.
    Symlink,
    File,
}

/// Where a path lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// In no tree.
    Outside,
    Open,
    Protected,
}

impl Trees {
    /// Grants of directories or files. One that does not exist yet is meant by the name it would have.
    pub fn new(grants: &[PathBuf], names: ProtectedNames) -> Self {
        Self { roots: grants.iter().map(|g| real(g)).collect(), names, mask_changed: false }
    }

    /// Judges something that exists at a canonical path.
    pub fn judge(&self, path: &Path, kind: Kind) -> Verdict {
        self.verdict(path, kind, false)
    }

    /// Judges a name that is created, changed or removed. The name of a granted directory itself belongs to the directory
    /// that it lies in.
    pub fn judge_name(&self, path: &Path, kind: Kind) -> Verdict {
        self.verdict(path, kind, true)
    }

    fn verdict(&self, path: &Path, kind: Kind, name: bool) -> Verdict {
        let above = self.roots.iter().filter(|root| path.starts_with(root));
        let Some(granted) = above.clone().map(|root| root.components().count()).max() else { return Verdict::Outside };
        if name && above.clone().all(|root| root == path) {
            return Verdict::Outside;
        }
        let look = self.names.look(path);
        // A grant that names a protected place, or something in it, opens it.
        let exactly = granted == path.components().count();
        let closed = look.closed > granted
            || !exactly
                && match kind {
                    Kind::Directory => false,
                    // What would become, or cease to be, a protected name below is not looked for: it could be made later.
                    Kind::MovedDirectory => look.leads_to,
                    Kind::Symlink => look.leads_to || look.directory_only,
                    Kind::File => look.directory_only,
                };
        if closed { Verdict::Protected } else { Verdict::Open }
    }

    /// Performs a call that writes; `None` for other calls.
    pub fn act(&mut self, caller: &Caller<'_>, number: i64, args: [u64; 6]) -> Option<nix::Result<Answer>> {
        if number == libc::SYS_umask {
            self.mask_changed = true;
            return Some(Ok(Answer::Kernel));
        }
        let answer = match calls::decode(caller, number, args)? {
            Ok(call) => self.perform(call, || self.file_mode_mask(caller)),
            // What cannot be read is for the kernel to complain about.
            Err(_) => Ok(Answer::Kernel),
        };
        Some(match answer {
            Ok(Answer::Kernel) if calls::only_truncates(number, args) => Err(Errno::EACCES),
            answer => answer,
        })
    }

    /// The caller's file mode creation mask (umask(2)), where it may not be the guardian's own.
    fn file_mode_mask(&self, caller: &Caller<'_>) -> nix::Result<Option<Mode>> {
        if !self.mask_changed {
            return Ok(None);
        }
        let text = procfs::status_field(caller.thread, "Umask").ok_or(Errno::EACCES)?;
        caller.still_waits()?;
        u32::from_str_radix(text.trim(), 8).map(|bits| Some(Mode::from_bits_truncate(bits))).map_err(|_| Errno::EACCES)
    }

    fn perform(&self, call: Call, mask: impl Fn() -> nix::Result<Option<Mode>>) -> nix::Result<Answer> {
        match call {
            Call::Open { file, flags, mode } => open::open(self, file, flags, mode, mask),
            Call::MakeDirectory { at, mode } => change::make_directory(self, &at, mode, mask),
            Call::MakeNode { at, mode } => change::make_node(self, &at, mode, mask),
            Call::Remove { at, directory } => change::remove(self, &at, directory),
            Call::Rename { from, to, flags } => change::rename(self, &from, &to, flags),
            Call::Link { from, to, follow } => change::link(self, &from, &to, follow),
            Call::Symlink { target, at } => change::symlink(self, &target, &at),
        }
    }
}

/// The real path of `path`, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for at in path.ancestors() {
        if let Ok(found) = fs::canonicalize(at) {
            return path.strip_prefix(at).map_or_else(|_| found.clone(), |rest| found.join(rest));
        }
    }
    path.to_owned()
}

/// What an open file is.
pub(crate) fn kind(file: &OwnedFd) -> nix::Result<Kind> {
    spot::kind(file).map(|(kind, _)| kind)
}

/// Makes something with a mask that is the caller's. Ours belongs to the whole process, of which one thread makes files.
fn masked<T>(mask: Option<Mode>, make: impl FnOnce() -> nix::Result<T>) -> nix::Result<T> {
    let Some(mask) = mask else { return make() };
    let before = umask(mask);
    let made = make();
    umask(before);
    made
}

#[cfg(test)]
mod tests;
