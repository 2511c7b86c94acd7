//! Grants as a Landlock domain (Linux Documentation/userspace-api/landlock.rst).
//!
//! Everything that the running Landlock governs is denied, then the grants are opened. TCP is denied whole: the guardian,
//! outside the domain, makes the connections.

use std::{
    error::Error,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use firedoor_model::launch::{Access, Grant};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sys::stat::{Mode, SFlag, fstat},
};

use crate::error::Stage;
use crate::linux::{
    control::{Failure, Place},
    layers::{ABI_SCOPE, ABI_TCP},
    quota::own,
    sys,
};

/// The Landlock of the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// As the kernel says.
    pub number: u32,
    /// As far as the library knows it.
    abi: ABI,
}

impl Version {
    /// Asks the kernel. The error is why there is no Landlock: ENOSYS (not built in) or EOPNOTSUPP (not switched on).
    pub fn running() -> nix::Result<Self> {
        let number = sys::landlock_version()?;
        let abi = ABI::from(i32::try_from(number).unwrap_or(i32::MAX));
        if abi == ABI::Unsupported { Err(Errno::ENOSYS) } else { Ok(Self { number, abi }) }
    }

    /// The same, and no newer than this.
    pub fn at_most(self, number: u32) -> nix::Result<Self> {
        if number >= self.number {
            return Ok(self);
        }
        let abi = ABI::from(i32::try_from(number).unwrap_or(i32::MAX));
        if abi == ABI::Unsupported { Err(Errno::ENOSYS) } else { Ok(Self { number, abi }) }
    }

    /// Names of the governed file-system rights.
    pub fn rights(self) -> Vec<String> {
        AccessFs::from_all(self.abi).iter().map(|right| format!("{right:?}")).collect()
    }

    /// What a grant opens. Nothing ever opens device nodes: creating one is a way out for root and of no use to a
    /// server. `ioctl` on devices and connecting to sockets by path stay closed as well.
    fn opened(self, access: Access, is_directory: bool) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadDir | AccessFs::ReadFile | AccessFs::Execute;
        let write = AccessFs::WriteFile
            | AccessFs::Truncate
            | AccessFs::Refer
            | AccessFs::RemoveDir
            | AccessFs::RemoveFile
            | AccessFs::MakeDir
            | AccessFs::MakeReg
            | AccessFs::MakeSym
            | AccessFs::MakeFifo
            | AccessFs::MakeSock;
        let wanted = match access {
            Access::List => AccessFs::ReadDir.into(),
            // The guardian writes what is to be written.
            Access::Read | Access::Edit => read,
            Access::Write => read | write,
        };
        let possible = if is_directory { AccessFs::from_all(self.abi) } else { AccessFs::from_file(self.abi) };
        wanted & possible
    }
}

/// A domain that nobody has entered yet.
pub(crate) struct Domain {
    ruleset: RulesetCreated,
    /// Indices of grants whose path does not exist.
    pub skipped: Vec<u32>,
}

impl Domain {
    /// Builds the domain. Runs in the server's own process, so that a grant on `/proc/self` means that process.
    pub fn build(version: Version, grants: &[Grant]) -> Result<Self, Failure> {
        let mut ruleset = empty(version).map_err(|e| failure(Place::Stage(Stage::Ruleset), &e))?;
        let mut skipped = Vec::new();
        for (index, grant) in grants.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let at = Place::Grant(index);
            let failed = |e: Errno| Failure { at, errno: e as i32 };
            let Some(path) = open_path(&grant.path).map_err(failed)? else {
                skipped.push(index);
                continue;
            };
            let kind = SFlag::from_bits_truncate(fstat(&path).map_err(failed)?.st_mode) & SFlag::S_IFMT;
            let opened = version.opened(grant.access, kind == SFlag::S_IFDIR);
            if opened.is_empty() {
                // Listing a file opens nothing.
                continue;
            }
            ruleset = ruleset.add_rule(PathBeneath::new(path.as_fd(), opened)).map_err(|e| failure(at, &e))?;
            if grant.path == Path::new(own::NAMED_BY) {
                // One by one, because other groups are below these. What cannot be looked at stays closed.
                for file in own::limits().iter().filter_map(|file| open_path(file).ok().flatten()) {
                    let rule = PathBeneath::new(file.as_fd(), AccessFs::ReadFile);
                    ruleset = ruleset.add_rule(rule).map_err(|e| failure(at, &e))?;
                }
            }
        }
        Ok(Self { ruleset, skipped })
    }

    /// Enters the domain, for good.
    pub fn enter(self) -> Result<(), Failure> {
        let at = Place::Stage(Stage::Landlock);
        let status = self.ruleset.restrict_self().map_err(|e| failure(at, &e))?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
                Err(Failure { at, errno: Errno::ENOTSUP as i32 })
            }
        }
    }
}

fn empty(version: Version) -> Result<RulesetCreated, RulesetError> {
    // A right that this Landlock should have and has not is an error, never skipped.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version.abi))?;
    if version.number >= ABI_TCP {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    if version.number >= ABI_SCOPE {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    }
    ruleset.create()
}

fn open_path(path: &Path) -> nix::Result<Option<OwnedFd>> {
    loop {
        match open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// The system's error inside the library's.
fn failure(at: Place, error: &(dyn Error + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(errno) = e.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Failure { at, errno };
        }
        cause = e.source();
    }
    Failure { at, errno: Errno::EINVAL as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u32) -> Version {
        Version { number, abi: ABI::from(i32::try_from(number).unwrap()) }
    }

    #[test]
    fn grants_open_what_they_say() {
        let file = AccessFs::ReadFile | AccessFs::Execute;
        for (abi, access, is_directory, want) in [
            (7, Access::List, true, AccessFs::ReadDir.into()),
            (7, Access::List, false, BitFlags::EMPTY),
            (7, Access::Read, true, file | AccessFs::ReadDir),
            (7, Access::Read, false, file),
            (7, Access::Edit, true, file | AccessFs::ReadDir),
            (7, Access::Edit, false, file),
            (7, Access::Write, false, file | AccessFs::WriteFile | AccessFs::Truncate),
            (1, Access::Write, false, file | AccessFs::WriteFile),
        ] {
            assert_eq!(version(abi).opened(access, is_directory), want, "{abi} {access:?} {is_directory}");
        }
        for abi in 1..=9 {
            let opened = version(abi).opened(Access::Write, true);
            let closed = AccessFs::from_all(version(abi).abi) & !opened;
            let known = AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev | AccessFs::ResolveUnix;
            assert!(known.contains(closed), "{abi} {closed:?}");
            assert_eq!(opened.contains(AccessFs::Refer), abi >= 2);
        }
    }

    #[test]
    fn failures_carry_the_errno_of_their_cause() {
        let dir = tempfile::tempdir().unwrap();
        let looped = dir.path().join("loop");
        std::os::unix::fs::symlink(&looped, &looped).unwrap();
        let grant = |path: &Path| Grant { path: path.into(), access: Access::Read };
        let grants = [grant(dir.path()), grant(&dir.path().join("none")), grant(&looped)];
        let Ok(version) = Version::running() else { return };
        let failed = Domain::build(version, &grants).err();
        assert_eq!(failed, Some(Failure { at: Place::Grant(2), errno: Errno::ELOOP as i32 }));
        assert_eq!(Domain::build(version, &grants[..2]).unwrap().skipped, [1]);
        let wrapped = io::Error::other(io::Error::from_raw_os_error(5));
        assert_eq!(failure(Place::Exec, &wrapped).errno, Errno::EINVAL as i32, "an io::Error without an errno");
    }
}
