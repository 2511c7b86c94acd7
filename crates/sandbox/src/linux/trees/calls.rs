//! Reading the arguments of calls that write, once.

use nix::{errno::Errno, libc};

use crate::linux::{network::caller::Caller, paths::Named};

/// A call that writes, with all that it names.
#[derive(Debug)]
pub(super) enum Call {
    Open { file: Named, flags: i32, mode: u32 },
    MakeDirectory { at: Named, mode: u32 },
    MakeNode { at: Named, mode: u32 },
    Remove { at: Named, directory: bool },
    Rename { from: Named, to: Named, flags: u32 },
    Link { from: Named, to: Named, follow: bool },
    Symlink { target: Vec<u8>, at: Named },
}

/// `None` for calls that do not write.
pub(super) fn decode(caller: &Caller<'_>, number: i64, [a, b, c, d, e, _]: [u64; 6]) -> Option<nix::Result<Call>> {
    let unsigned = |n: u64| (n & 0xffff_ffff) as u32;
    let int = |n: u64| unsigned(n).cast_signed();
    let at = |base: u64, path: u64| Named::of(caller, int(base), caller.read_string(path)?);
    #[cfg(target_arch = "x86_64")]
    let here = |path: u64| Named::of(caller, libc::AT_FDCWD, caller.read_string(path)?);
    let call = || {
        Ok(Some(match number {
            libc::SYS_openat => Call::Open { file: at(a, b)?, flags: int(c), mode: unsigned(d) },
            libc::SYS_mkdirat => Call::MakeDirectory { at: at(a, b)?, mode: unsigned(c) },
            libc::SYS_mknodat => Call::MakeNode { at: at(a, b)?, mode: unsigned(c) },
            libc::SYS_unlinkat => match int(c) {
                0 => Call::Remove { at: at(a, b)?, directory: false },
                libc::AT_REMOVEDIR => Call::Remove { at: at(a, b)?, directory: true },
                _ => return Err(Errno::EINVAL),
            },
            libc::SYS_renameat2 => Call::Rename { from: at(a, b)?, to: at(c, d)?, flags: unsigned(e) },
            // Not there on newer architectures, but with a number on both that are known here.
            libc::SYS_renameat => Call::Rename { from: at(a, b)?, to: at(c, d)?, flags: 0 },
            libc::SYS_linkat => link(caller, (int(a), b), at(c, d)?, int(e))?,
            libc::SYS_symlinkat => Call::Symlink { target: caller.read_string(a)?, at: at(b, c)? },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => Call::Open { file: here(a)?, flags: int(b), mode: unsigned(c) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                Call::Open { file: here(a)?, flags, mode: unsigned(b) }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => Call::MakeDirectory { at: here(a)?, mode: unsigned(b) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => Call::MakeNode { at: here(a)?, mode: unsigned(b) },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => Call::Remove { at: here(a)?, directory: false },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => Call::Remove { at: here(a)?, directory: true },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => Call::Rename { from: here(a)?, to: here(b)?, flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => Call::Link { from: here(a)?, to: here(b)?, follow: false },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => Call::Symlink { target: caller.read_string(a)?, at: here(b)? },
            _ => return Ok(None),
        }))
    };
    call().transpose()
}

/// Whether a call would truncate a file that it does not open to write (O_TRUNC in open(2)), as its registers say.
pub(super) fn only_truncates(number: i64, [_, b, c, ..]: [u64; 6]) -> bool {
    let flags = match number {
        libc::SYS_openat => c,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => b,
        _ => return false,
    };
    let flags = ((flags & 0xffff_ffff) as u32).cast_signed();
    flags & libc::O_TRUNC != 0 && !matches!(flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
}

fn link(caller: &Caller<'_>, (base, path): (i32, u64), to: Named, flags: i32) -> nix::Result<Call> {
    if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    let path = caller.read_string(path)?;
    if !path.is_empty() {
        let from = Named::of(caller, base, path)?;
        return Ok(Call::Link { from, to, follow: flags & libc::AT_SYMLINK_FOLLOW != 0 });
    }
    if flags & libc::AT_EMPTY_PATH == 0 || base == libc::AT_FDCWD {
        return Err(Errno::ENOENT);
    }
    // The descriptor itself, as if by its path below /proc.
    let from = Named::of(caller, libc::AT_FDCWD, format!("/proc/self/fd/{base}").into_bytes())?;
    Ok(Call::Link { from, to, follow: true })
}
