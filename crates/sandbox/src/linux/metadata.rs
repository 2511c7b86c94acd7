//! Modes and times of files, which Landlock does not govern, and lengths of files by path, which it is not asked about
//! (`filesystem.rs`): changed by the guardian, below writable grants only.
//!
//! The path is resolved once, as the caller would resolve it; what is judged and what is changed is the same open file.

use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    libc,
    sys::stat::{Mode, fstat},
    unistd::{Pid, ftruncate},
};

use crate::linux::{
    network::caller::Caller,
    paths::{self, Named, Resolved},
    sys,
    trees::{self, Answer, Kind, Trees, Verdict},
};

/// Where a call may change something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writable(Vec<PathBuf>);

/// A new mode, new times, or a new length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Mode(u32),
    /// Of access and modification; `None`: now.
    Times(Option<[libc::timespec; 2]>),
    Length(i64),
}

/// What a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Descriptor(i32),
    Path { base: i32, path: u64, follow: bool },
}

/// How a call gives times.
#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Microseconds,
    Nanoseconds,
}

impl Writable {
    /// Grants that do not exist now open nothing.
    pub fn new(grants: &[PathBuf]) -> Self {
        Self(grants.iter().filter_map(|g| fs::canonicalize(g).ok()).collect())
    }

    /// Makes a change here or in `trees`, if this is a call that makes one. `None` for other calls.
    pub fn change(
        &self,
        trees: &Trees,
        caller: &Caller<'_>,
        number: i64,
        args: [u64; 6],
    ) -> Option<nix::Result<Answer>> {
        let decoded = decode(number, args, |at, unit| times(caller, at, unit))?;
        Some(decoded.and_then(|(target, change)| self.perform(trees, caller, target, change)))
    }

    fn perform(&self, trees: &Trees, caller: &Caller<'_>, target: Target, change: Change) -> nix::Result<Answer> {
        let (Resolved { fd: file, path }, anonymous) = match target {
            Target::Descriptor(fd) => {
                let fd = caller.descriptor(fd)?;
                let path = paths::path_of(fd.as_fd())?;
                // Pipes, memory files and what was removed are nobody else's.
                let anonymous = !path.is_absolute() || fstat(&fd)?.st_nlink == 0;
                (Resolved { fd, path }, anonymous)
            }
            Target::Path { base, path, follow } => {
                (Named::of(caller, base, caller.read_string(path)?)?.resolve(follow)?, false)
            }
        };
        let kind = trees::kind(&file)?;
        if !anonymous && !self.0.iter().any(|g| path.starts_with(g)) {
            match trees.judge(&path, kind) {
                Verdict::Open => {}
                Verdict::Outside => return Err(Errno::EACCES),
                Verdict::Protected => return Ok(Answer::Protected(path)),
            }
        }
        let done = match change {
            // Of use to other users only.
            Change::Mode(mode) if mode & libc::S_ISUID != 0 => Err(Errno::EPERM),
            // As file systems answer that keep no mode for a link.
            Change::Mode(_) if kind == Kind::Symlink => Err(Errno::EOPNOTSUPP),
            Change::Mode(mode) => sys::change_mode(file.as_fd(), mode & 0o7777),
            Change::Times(times) => sys::change_times(file.as_fd(), times.as_ref()),
            Change::Length(_) if kind == Kind::Directory => Err(Errno::EISDIR),
            Change::Length(length) => cut(&file, length, caller.thread),
        };
        done.map(|()| Answer::Done)
    }
}

/// Gives a file another length.
fn cut(file: &OwnedFd, length: i64, caller: Pid) -> nix::Result<()> {
    // Opening anything else may do more than open.
    if fstat(file)?.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(Errno::EINVAL);
    }
    // Ours is not the caller's.
    if u64::try_from(length).is_ok_and(|l| l > sys::file_size_limit(caller).unwrap_or(0)) {
        return Err(Errno::EFBIG);
    }
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    ftruncate(open(&paths::own(file.as_fd()), flags, Mode::empty())?, length)
}

/// Reads the arguments of the calls that change modes, times or lengths; `None` for others.
fn decode(
    number: i64,
    [a, b, c, d, ..]: [u64; 6],
    times: impl Fn(u64, Unit) -> nix::Result<Change>,
) -> Option<nix::Result<(Target, Change)>> {
    let int = |n: u64| ((n & 0xffff_ffff) as u32).cast_signed();
    let mode = |n: u64| Change::Mode((n & 0xffff_ffff) as u32);
    let at = |base: u64, path: u64, follow: bool| Target::Path { base: int(base), path, follow };
    let here = |path: u64| Target::Path { base: libc::AT_FDCWD, path, follow: true };
    let follow = |flags: u64| int(flags) & libc::AT_SYMLINK_NOFOLLOW == 0;
    let known = |flags: u64, all: i32| if int(flags) & !all == 0 { Ok(()) } else { Err(Errno::EINVAL) };
    Some(match number {
        libc::SYS_truncate if b.cast_signed() < 0 => Err(Errno::EINVAL),
        libc::SYS_truncate => Ok((here(a), Change::Length(b.cast_signed()))),
        libc::SYS_fchmod => Ok((Target::Descriptor(int(a)), mode(b))),
        libc::SYS_fchmodat => Ok((at(a, b, true), mode(c))),
        libc::SYS_fchmodat2 => known(d, libc::AT_SYMLINK_NOFOLLOW).map(|()| (at(a, b, follow(d)), mode(c))),
        libc::SYS_utimensat => known(d, libc::AT_SYMLINK_NOFOLLOW).and_then(|()| {
            // Without a path the descriptor itself is meant (utimensat(2)).
            let target = if b == 0 { Target::Descriptor(int(a)) } else { at(a, b, follow(d)) };
            Ok((target, times(c, Unit::Nanoseconds)?))
        }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Ok((here(a), mode(b))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => times(b, Unit::Seconds).map(|t| (here(a), t)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => times(b, Unit::Microseconds).map(|t| (here(a), t)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let target = if b == 0 { Target::Descriptor(int(a)) } else { at(a, b, true) };
            times(c, Unit::Microseconds).map(|t| (target, t))
        }
        _ => return None,
    })
}

/// Reads two times from the caller's memory.
fn times(caller: &Caller<'_>, at: u64, unit: Unit) -> nix::Result<Change> {
    if at == 0 {
        return Ok(Change::Times(None));
    }
    let length = if matches!(unit, Unit::Seconds) { 16 } else { 32 };
    let bytes = caller.read(at, length)?;
    let mut numbers = bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap_or_default()));
    let mut next = || numbers.next().ok_or(Errno::EFAULT);
    let mut time = || -> nix::Result<libc::timespec> {
        let tv_sec = next()?;
        let tv_nsec = match unit {
            Unit::Seconds => 0,
            Unit::Microseconds => {
                let micros = next()?;
                if !(0..1_000_000).contains(&micros) {
                    return Err(Errno::EINVAL);
                }
                micros * 1000
            }
            Unit::Nanoseconds => next()?,
        };
        Ok(libc::timespec { tv_sec, tv_nsec })
    };
    Ok(Change::Times(Some([time()?, time()?])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let no_times = |_: u64, _: Unit| Ok(Change::Times(None));
        let of = |number, args: [u64; 4]| decode(number, [args[0], args[1], args[2], args[3], 0, 0], no_times);
        let cwd = u64::from(libc::AT_FDCWD.cast_unsigned());
        let path = |base, follow| Target::Path { base, path: 7, follow };
        let nofollow = u64::from(libc::AT_SYMLINK_NOFOLLOW.cast_unsigned());
        for (number, args, want) in [
            (libc::SYS_fchmod, [3, 0o600, 0, 0], Some(Ok((Target::Descriptor(3), Change::Mode(0o600))))),
            (libc::SYS_fchmodat, [cwd, 7, 0o600, 99], Some(Ok((path(libc::AT_FDCWD, true), Change::Mode(0o600))))),
            (libc::SYS_fchmodat2, [5, 7, 0o600, nofollow], Some(Ok((path(5, false), Change::Mode(0o600))))),
            (libc::SYS_fchmodat2, [5, 7, 0o600, 0x4000], Some(Err(Errno::EINVAL))),
            (libc::SYS_utimensat, [5, 7, 0, nofollow], Some(Ok((path(5, false), Change::Times(None))))),
            (libc::SYS_utimensat, [5, 0, 0, 0], Some(Ok((Target::Descriptor(5), Change::Times(None))))),
            (libc::SYS_truncate, [7, 5, 0, 0], Some(Ok((path(libc::AT_FDCWD, true), Change::Length(5))))),
            (libc::SYS_truncate, [7, u64::MAX, 0, 0], Some(Err(Errno::EINVAL))),
            (libc::SYS_connect, [5, 0, 0, 0], None),
        ] {
            assert_eq!(of(number, args), want, "{number} {args:?}");
        }
    }
}
