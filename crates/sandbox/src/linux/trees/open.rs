//! Opening files to write.

use std::os::fd::{AsFd, OwnedFd};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl, open as open_at_path, openat, readlinkat},
    sys::stat::Mode,
};

use super::{
    Answer, Kind, Trees, Verdict, masked,
    spot::{self, Spot},
};
use crate::linux::paths::{self, Named, Resolved};

/// Symbolic links that are followed, as the kernel does (`MAXSYMLINKS`, linux/namei.h).
const MAX_LINKS: usize = 40;

/// `open(2)` with flags that write.
pub(super) fn open(
    trees: &Trees,
    mut file: Named,
    flags: i32,
    mode: u32,
    mask: impl Fn() -> nix::Result<Option<Mode>>,
) -> nix::Result<Answer> {
    // What every shell opens. It lies in no tree, and a tree in its place is no reason to ask: Landlock decides.
    if file.path == b"/dev/null" {
        return Ok(Answer::Kernel);
    }
    let wanted = Wanted { flags: OFlag::from_bits_truncate(flags), mode: Mode::from_bits_truncate(mode) };
    if wanted.flags.contains(OFlag::O_TMPFILE) {
        return nameless(trees, &file, wanted, mask);
    }
    let creates = wanted.flags.contains(OFlag::O_CREAT);
    if wanted.flags.contains(OFlag::O_DIRECTORY) {
        return Ok(Answer::Kernel);
    }
    let exclusive = creates && wanted.flags.contains(OFlag::O_EXCL);
    let follow = !exclusive && !wanted.flags.contains(OFlag::O_NOFOLLOW);
    for _ in 0..MAX_LINKS {
        // What is to be new is looked for by making it.
        match if exclusive { Err(Errno::ENOENT) } else { file.resolve(follow) } {
            Ok(found) => return existing(trees, &found, wanted),
            Err(Errno::ENOENT) if creates => {}
            Err(_) => return Ok(Answer::Kernel),
        }
        let Ok(spot) = Spot::of(&file) else { return Ok(Answer::Kernel) };
        if spot.means_directory() {
            return Ok(Answer::Kernel);
        }
        let made = match trees.judge_name(&spot.path, Kind::File) {
            Verdict::Protected if exclusive => return Ok(spot.refused(false)),
            Verdict::Protected => return Ok(Answer::Protected(spot.path)),
            // A link without a target may still lead into a tree.
            Verdict::Outside => Err(Errno::EEXIST),
            Verdict::Open => create(&spot, wanted, mask()?),
        };
        match made {
            Err(Errno::EEXIST) if follow && !spot.path.starts_with("/proc") => {}
            // It has come into being since we looked, or the last name is a link that is not to be followed.
            Err(Errno::EEXIST) => return Ok(Answer::Kernel),
            made => return made.map(|file| wanted.answer(file)),
        }
        match readlinkat(&spot.parent, spot.last.as_os_str()) {
            Ok(target) => file = Named::through(target, spot.parent),
            // Created meanwhile: look again.
            Err(Errno::EINVAL) => {}
            Err(_) => return Ok(Answer::Kernel),
        }
    }
    Err(Errno::ELOOP)
}

/// What the caller wants of a file.
#[derive(Clone, Copy)]
struct Wanted {
    flags: OFlag,
    mode: Mode,
}

impl Wanted {
    /// Flags for us: never waiting, whatever the file is (a pipe without a reader, a lease), because the guardian does not.
    fn ours(self) -> OFlag {
        self.flags | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY
    }

    fn answer(self, file: OwnedFd) -> Answer {
        Answer::File { file, close_on_exec: self.flags.contains(OFlag::O_CLOEXEC) }
    }

    /// The flag belongs to the open file, and the caller gets the file.
    fn waiting_again(self, file: OwnedFd) -> nix::Result<OwnedFd> {
        if !self.flags.contains(OFlag::O_NONBLOCK) {
            let now = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
            fcntl(&file, FcntlArg::F_SETFL(now - OFlag::O_NONBLOCK))?;
        }
        Ok(file)
    }
}

/// Opens a file that is there: exactly the one that was judged.
fn existing(trees: &Trees, found: &Resolved, wanted: Wanted) -> nix::Result<Answer> {
    let (kind, stat) = spot::kind(&found.fd)?;
    if !spot::is_plain(&stat) {
        return Ok(Answer::Kernel);
    }
    match trees.judge(&found.path, kind) {
        Verdict::Outside => return Ok(Answer::Kernel),
        Verdict::Protected => return Ok(Answer::Protected(found.path.clone())),
        Verdict::Open => {}
    }
    let flags = wanted.ours() - OFlag::O_CREAT - OFlag::O_EXCL - OFlag::O_NOFOLLOW;
    let file = open_at_path(&paths::own(found.fd.as_fd()), flags, Mode::empty())?;
    Ok(wanted.answer(wanted.waiting_again(file)?))
}

/// Makes a file where there was none.
fn create(spot: &Spot, wanted: Wanted, mask: Option<Mode>) -> nix::Result<OwnedFd> {
    // Nobody else has it yet, so opening it does not wait.
    let flags = wanted.flags | OFlag::O_CLOEXEC | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
    masked(mask, || openat(&spot.parent, spot.last.as_os_str(), flags, wanted.mode))
}

/// A file without a name, which may get one later.
fn nameless(
    trees: &Trees,
    directory: &Named,
    wanted: Wanted,
    mask: impl Fn() -> nix::Result<Option<Mode>>,
) -> nix::Result<Answer> {
    let Ok(found) = directory.resolve(!wanted.flags.contains(OFlag::O_NOFOLLOW)) else { return Ok(Answer::Kernel) };
    match trees.judge(&found.path, Kind::Directory) {
        Verdict::Outside => return Ok(Answer::Kernel),
        Verdict::Protected => return Ok(Answer::Protected(found.path)),
        Verdict::Open => {}
    }
    let file = masked(mask()?, || openat(&found.fd, ".", wanted.ours() - OFlag::O_NOFOLLOW, wanted.mode))?;
    Ok(wanted.answer(wanted.waiting_again(file)?))
}
