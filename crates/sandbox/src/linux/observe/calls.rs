//! What a call does with which path, as far as its arguments say.

use firedoor_model::observation::Use;
use nix::libc;

/// One path of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The directory that a relative path is taken from, or `AT_FDCWD`.
    pub base: i32,
    /// Where the text lies.
    pub path: u64,
    /// Whether a symbolic link at the end is followed.
    pub follow: bool,
    /// Whether it is an open, which makes nothing of what exists.
    pub opens: bool,
    purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Only(Use),
    Flags(i32),
}

impl Named {
    /// What is done there, the least first; nothing for an open of the path alone.
    pub fn uses(&self) -> Vec<Use> {
        match self.purpose {
            Purpose::Only(how) => vec![how],
            Purpose::Flags(flags) => of_flags(flags),
        }
    }
}

fn of_flags(flags: i32) -> Vec<Use> {
    if flags & libc::O_PATH != 0 {
        return Vec::new();
    }
    let mut uses = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => vec![Use::Read],
        libc::O_WRONLY => vec![Use::Write],
        _ => vec![Use::Read, Use::Write],
    };
    if flags & libc::O_TRUNC != 0 && !uses.contains(&Use::Write) {
        uses.push(Use::Write);
    }
    if flags & libc::O_CREAT != 0 {
        uses.push(Use::Create);
    }
    uses
}

/// The kernel takes these as `int`.
fn low(argument: u64) -> i32 {
    ((argument & 0xffff_ffff) as u32).cast_signed()
}

/// The paths of a call that the table logs, or that the guardian performs; `None` for others.
pub(super) fn decode(number: i64, [a, b, c, d, e, _]: [u64; 6]) -> Option<Vec<Named>> {
    let at = |base: u64, path: u64, purpose| Named { base: low(base), path, follow: true, opens: false, purpose };
    let opened = |base: u64, path: u64, flags: i32| {
        let exclusive = libc::O_CREAT | libc::O_EXCL;
        let follow = flags & libc::O_NOFOLLOW == 0 && flags & exclusive != exclusive;
        Named { follow, opens: true, ..at(base, path, Purpose::Flags(flags)) }
    };
    // What is made, renamed or removed is the name itself.
    let changed = |base: u64, path: u64| Named { follow: false, ..at(base, path, Purpose::Only(Use::Create)) };
    let cwd = u64::from(libc::AT_FDCWD.cast_unsigned());
    Some(match number {
        libc::SYS_openat => vec![opened(a, b, low(c))],
        libc::SYS_execve => vec![at(cwd, a, Purpose::Only(Use::Execute))],
        libc::SYS_execveat => {
            let follow = low(e) & libc::AT_SYMLINK_NOFOLLOW == 0;
            vec![Named { follow, ..at(a, b, Purpose::Only(Use::Execute)) }]
        }
        libc::SYS_mkdirat | libc::SYS_unlinkat => vec![changed(a, b)],
        libc::SYS_renameat | libc::SYS_renameat2 => vec![changed(a, b), changed(c, d)],
        // The other name is only looked at by Landlock when the directories differ; then it needs as much.
        libc::SYS_linkat => vec![changed(c, d)],
        libc::SYS_symlinkat => vec![changed(b, c)],
        libc::SYS_truncate => vec![at(cwd, a, Purpose::Only(Use::Write))],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => vec![opened(cwd, a, low(b))],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => vec![opened(cwd, a, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_unlink => vec![changed(cwd, a)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => vec![changed(cwd, a), changed(cwd, b)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link | libc::SYS_symlink => vec![changed(cwd, b)],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::seccomp::{Arch, Logged, Reach, Scope};

    #[test]
    fn flags_in_words() {
        for (flags, want) in [
            (libc::O_RDONLY, vec![Use::Read]),
            (libc::O_RDONLY | libc::O_DIRECTORY, vec![Use::Read]),
            (libc::O_WRONLY, vec![Use::Write]),
            (libc::O_RDWR | libc::O_CREAT, vec![Use::Read, Use::Write, Use::Create]),
            (libc::O_RDONLY | libc::O_TRUNC, vec![Use::Read, Use::Write]),
            (libc::O_PATH | libc::O_NOFOLLOW, vec![]),
        ] {
            assert_eq!(of_flags(flags), want, "{flags:o}");
        }
    }

    #[test]
    fn every_logged_call_is_understood() {
        let scope = Scope { reach: Reach::Listed, trees: false, terminal: false, landlock: u32::MAX, observed: true };
        let logged = Logged::of(Arch::native().unwrap(), scope);
        let mut understood = 0;
        for number in 0..1000 {
            let decoded = decode(i64::from(number), [0; 6]).is_some();
            // The guardian performs this one.
            let performed = i64::from(number) == libc::SYS_truncate;
            assert_eq!(logged.contains(number, &[0; 6]) || performed, decoded, "{number}");
            understood += usize::from(decoded);
        }
        assert!(understood > 10);
    }
}
