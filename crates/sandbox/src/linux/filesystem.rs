//! Grants as a Landlock domain (Linux Documentation/userspace-api/landlock.rst).
//!
//! Everything that the running Landlock governs is denied, then the grants are opened. TCP is denied whole: the guardian,
//! outside the domain, makes the connections.

use std::{
    error::Error,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use firedoor_model::launch::{Access, Grant};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetError, Scope,
};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    libc,
    sys::stat::{Mode, fstat},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use crate::error::Stage;
use crate::linux::{
    control::{Failure, Place},
    layers::{ABI_SCOPE, ABI_TCP},
    quota::own,
    sys,
};

/// The system's own directories. On a network file system they are there before anything else is, unlike a user's.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys"];

/// What `/proc` shows whoever looks of itself.
const OWN: &str = "/proc/self";

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
    ///
    /// What may be read may be truncated as far as Landlock goes: it looks for that right, too, whenever a file is opened, and
    /// without it up to the root, which doubles what an open costs. The filter closes every way of truncating that needs no
    /// right to write (`profiles/seccomp/linux.toml`).
    fn opened(self, access: Access, is_directory: bool) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadDir | AccessFs::ReadFile | AccessFs::Execute | AccessFs::Truncate;
        let write = AccessFs::WriteFile
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
    version: Version,
    /// The kernel's: who inherits it adds to the same rules.
    pub ruleset: OwnedFd,
}

/// What became of grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Indices of those whose path does not exist.
    pub skipped: Vec<u32>,
    /// Indices of those that only the server's own process can open.
    pub left: Vec<u32>,
}

impl Domain {
    /// A domain that opens nothing.
    pub fn new(version: Version) -> Result<Self, Failure> {
        let at = Place::Stage(Stage::Ruleset);
        let failed = |e: Errno| Failure { at, errno: e as i32 };
        let created = empty(version).map_err(|e| failure(at, &e))?;
        let ruleset = Option::<OwnedFd>::from(created).ok_or_else(|| failed(Errno::ENOTSUP))?;
        // Clear of the numbers of standard input, output and error, which get replaced.
        Ok(Self { version, ruleset: sys::duplicate_above(ruleset.as_fd(), 3).map_err(failed)? })
    }

    /// Opens what lies in the system's own directories, with no link on the way but to there. That is the same for every process, and
    /// its file system answers, or nothing would run: so the caller, who has nothing to do until the server runs, opens it.
    pub fn open_shared(&self, grants: &[Grant]) -> Result<Opened, Failure> {
        let all = 0..u32::try_from(grants.len()).unwrap_or(u32::MAX);
        self.open(grants, all, |path| match SYSTEM.iter().any(|place| path.starts_with(place)) {
            true => match sys::open_without_links(path) {
                Err(Errno::ELOOP) => Ok(linked(path)),
                // What else is wrong is found again.
                Err(e) if !matches!(e, Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
                opened => opened.map(Some),
            },
            false => Ok(None),
        })
    }

    /// Opens, while our child `server` prepares itself, what it is to read of itself in `/proc`, and returns the indices of that. All
    /// else is left to it.
    pub fn open_for(&self, grants: &[Grant], server: Pid) -> Vec<u32> {
        // Unless `/proc` numbers processes as we do, the number means another one there.
        let own = fs::read_link(OWN).is_ok_and(|own| own == Path::new(&Pid::this().to_string()));
        let theirs = Path::new("/proc").join(server.to_string());
        let all = grants.iter().enumerate().filter(|_| own);
        all.filter_map(|(index, grant)| {
            let rest = grant.path.strip_prefix(OWN).ok().filter(|_| grant.path != Path::new(own::NAMED_BY))?;
            let index = u32::try_from(index).ok()?;
            let file = sys::open_without_links(&theirs.join(rest)).ok()?;
            self.allow(&file, grant.access, Place::Grant(index)).ok().map(|()| index)
        })
        .collect()
    }

    /// Opens what was left. Runs in the server's own process, so that a grant on `/proc/self` means that process. Returns the
    /// indices of all grants whose path does not exist.
    pub fn open_rest(&self, grants: &[Grant], Opened { mut skipped, left }: Opened) -> Result<Vec<u32>, Failure> {
        skipped.extend(self.open(grants, left, |path| open_path(path).map(Some))?.skipped);
        skipped.sort_unstable();
        Ok(skipped)
    }

    fn open(
        &self,
        grants: &[Grant],
        which: impl IntoIterator<Item = u32>,
        open: impl Fn(&Path) -> nix::Result<Option<OwnedFd>>,
    ) -> Result<Opened, Failure> {
        let mut opened = Opened::default();
        for index in which {
            let Some(grant) = usize::try_from(index).ok().and_then(|i| grants.get(i)) else { continue };
            let at = Place::Grant(index);
            match open(&grant.path) {
                Ok(Some(path)) => self.allow(&path, grant.access, at)?,
                Ok(None) => opened.left.push(index),
                Err(Errno::ENOENT | Errno::ENOTDIR) => opened.skipped.push(index),
                Err(e) => return Err(Failure { at, errno: e as i32 }),
            }
            if grant.path == Path::new(own::NAMED_BY) && !opened.left.contains(&index) {
                // One by one, because other groups are below these. What cannot be looked at stays closed.
                for file in own::limits().iter().filter_map(|file| open_path(file).ok()) {
                    self.allow(&file, Access::Read, at)?;
                }
            }
        }
        Ok(opened)
    }

    fn allow(&self, path: &OwnedFd, access: Access, at: Place) -> Result<(), Failure> {
        let failed = |e: Errno| Failure { at, errno: e as i32 };
        let kind = fstat(path).map_err(failed)?.st_mode & libc::S_IFMT;
        let opened = self.version.opened(access, kind == libc::S_IFDIR);
        // Listing a file opens nothing.
        if opened.is_empty() {
            return Ok(());
        }
        sys::landlock_add_path(self.ruleset.as_fd(), path.as_fd(), opened.bits()).map_err(failed)
    }

    /// Enters the domain, for good. This Landlock has every right in it: [`empty`] has seen to that.
    pub fn enter(self) -> Result<(), Failure> {
        sys::landlock_restrict(self.ruleset.as_fd())
            .map_err(|e| Failure { at: Place::Stage(Stage::Landlock), errno: e as i32 })
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

/// What a link of the root or of `/etc` leads to, where that is the same for every process: in the system's own directories, but
/// for `/proc`, without another link. It is looked up by its name: what lies elsewhere may not answer.
fn linked(path: &Path) -> Option<OwnedFd> {
    let parent = path.parent().filter(|p| *p == Path::new("/") || *p == Path::new("/etc"))?;
    sys::open_without_links(parent).ok()?;
    let mut target = PathBuf::new();
    for part in parent.join(fs::read_link(path).ok()?).components() {
        match part {
            Component::ParentDir => drop(target.pop()),
            part => target.push(part),
        }
    }
    let ours = SYSTEM.iter().any(|place| target.starts_with(place)) && !target.starts_with("/proc");
    if ours { sys::open_without_links(&target).ok() } else { None }
}

fn open_path(path: &Path) -> nix::Result<OwnedFd> {
    loop {
        match open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) {
            Err(Errno::EINTR) => {}
            opened => return opened,
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
        let old = AccessFs::ReadFile | AccessFs::Execute;
        let file = old | AccessFs::Truncate;
        for (abi, access, is_directory, want) in [
            (7, Access::List, true, AccessFs::ReadDir.into()),
            (7, Access::List, false, BitFlags::EMPTY),
            (7, Access::Read, true, file | AccessFs::ReadDir),
            (7, Access::Read, false, file),
            (7, Access::Edit, true, file | AccessFs::ReadDir),
            (7, Access::Edit, false, file),
            (7, Access::Write, false, file | AccessFs::WriteFile),
            (1, Access::Write, false, old | AccessFs::WriteFile),
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
    fn what_may_mean_another_file_elsewhere_is_left_to_the_server() {
        let Ok(version) = Version::running() else { return };
        let dir = tempfile::tempdir().unwrap();
        let paths = [
            ("/usr", None),
            ("/usr/no-such", Some(false)),
            ("/bin", None),
            ("/proc/version", None),
            ("/proc/self/stat", Some(true)),
            ("/proc/mounts", Some(true)),
            ("/dev/fd", Some(true)),
            ("/etc/mtab", fs::symlink_metadata("/etc/mtab").is_ok_and(|m| m.is_symlink()).then_some(true)),
            ("/dev/null", None),
            (dir.path().to_str().unwrap(), Some(true)),
            ("/home/no-such", Some(true)),
        ];
        let grants = paths.map(|(path, _)| Grant { path: path.into(), access: Access::Read });
        let opened = Domain::new(version).unwrap().open_shared(&grants).unwrap();
        for (index, (path, want)) in paths.into_iter().enumerate() {
            let index = u32::try_from(index).unwrap();
            let (left, skipped) = (opened.left.contains(&index), opened.skipped.contains(&index));
            assert_eq!((left || skipped).then_some(left), want, "{path}");
        }
    }

    #[test]
    fn what_a_process_reads_of_itself_is_opened_for_it() {
        let Ok(version) = Version::running() else { return };
        let paths = [
            "/proc/self/stat",
            "/proc/self/cgroup",
            "/proc/self/exe",
            "/proc/self/none",
            "/proc/version",
            "/proc/self/fd",
        ];
        let grants = paths.map(|path| Grant { path: path.into(), access: Access::Read });
        let domain = Domain::new(version).unwrap();
        assert_eq!(domain.open_for(&grants, Pid::this()), [0, 5]);
        assert_eq!(domain.open_for(&grants, Pid::from_raw(i32::MAX)), [0; 0]);
    }

    #[test]
    fn failures_carry_the_errno_of_their_cause() {
        let dir = tempfile::tempdir().unwrap();
        let looped = dir.path().join("loop");
        std::os::unix::fs::symlink(&looped, &looped).unwrap();
        let grant = |path: &Path| Grant { path: path.into(), access: Access::Read };
        let grants = [grant(dir.path()), grant(&dir.path().join("none")), grant(&looped)];
        let Ok(version) = Version::running() else { return };
        let build = |grants: &[Grant]| {
            let domain = Domain::new(version)?;
            let opened = domain.open_shared(grants)?;
            domain.open_rest(grants, opened)
        };
        assert_eq!(build(&grants), Err(Failure { at: Place::Grant(2), errno: Errno::ELOOP as i32 }));
        assert_eq!(build(&grants[..2]), Ok(vec![1]));
        let wrapped = io::Error::other(io::Error::from_raw_os_error(5));
        assert_eq!(failure(Place::Exec, &wrapped).errno, Errno::EINVAL as i32, "an io::Error without an errno");
    }
}
