//! Processes on Windows, and their users. What belongs to the system or to other users may not be asked about, and then nothing
//! is known of it.

use std::{
    ffi::OsString,
    fmt, io,
    os::windows::{
        ffi::OsStringExt as _,
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    },
    path::PathBuf,
    ptr,
};

use windows_sys::Win32::{
    Foundation::{ERROR_INVALID_PARAMETER, FILETIME, HANDLE, INVALID_HANDLE_VALUE},
    Security::{GetLengthSid, GetTokenInformation, IsTokenRestricted, PSID, TOKEN_QUERY, TOKEN_USER, TokenUser},
    System::{
        Diagnostics::ToolHelp::{
            CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
        },
        SystemInformation::GetSystemWindowsDirectoryW,
        Threading::{
            GetCurrentProcess, GetProcessTimes, OpenProcess, OpenProcessToken, PROCESS_ACCESS_RIGHTS,
            PROCESS_DUP_HANDLE, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
        },
    },
};

use super::{Process, Space, Stat};

/// Most characters of a path (Maximum Path Length Limitation).
const MAX_PATH: usize = 1 << 15;
/// Room for a `TOKEN_USER` and the largest identifier behind it (SECURITY_MAX_SID_SIZE is 68), in words that are aligned for it.
const USER_WORDS: usize = 16;

/// A handle that the system has just given, or why it gave none.
#[expect(unsafe_code, reason = "handles arrive as pointers")]
pub(crate) fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every caller passes on what the system has just opened for it, and nobody else knows it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn open(pid: u32) -> io::Result<OwnedHandle> {
    open_for(pid, PROCESS_QUERY_LIMITED_INFORMATION)
}

#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn open_for(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only.
    owned(unsafe { OpenProcess(rights, 0, pid) }).map_err(|e| match e.raw_os_error() {
        // What OpenProcess says of a number that no process has.
        Some(code) if code.cast_unsigned() == ERROR_INVALID_PARAMETER => io::ErrorKind::NotFound.into(),
        _ => e,
    })
}

/// What the system lists of a process.
struct Listed {
    pid: u32,
    parent: u32,
    name: String,
}

/// Every process there is now.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn listed() -> io::Result<Vec<Listed>> {
    // SAFETY: takes numbers only.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) })?;
    // SAFETY: a structure of integers and arrays of them, for which zeros are values.
    let mut entry: PROCESSENTRY32W = unsafe { std::mem::zeroed() };
    entry.dwSize = u32::try_from(size_of_val(&entry)).map_err(io::Error::other)?;
    let mut all = Vec::new();
    // SAFETY: the handle is open, and the system writes into `entry`, whose size it is told.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let name: Vec<u16> = entry.szExeFile.iter().copied().take_while(|c| *c != 0).collect();
        let name = String::from_utf16_lossy(&name);
        all.push(Listed { pid: entry.th32ProcessID, parent: entry.th32ParentProcessID, name });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(all)
}

fn found(pid: u32) -> io::Result<Listed> {
    listed()?.into_iter().find(|process| process.pid == pid).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Asks about one process. `NotFound` when it is gone.
pub fn stat(pid: u32) -> io::Result<Stat> {
    // Held while it is listed, so that no other one gets its number in between.
    let process = open(pid)?;
    Ok(Stat { process: Process { pid, start: start_of(&process)? }, parent: found(pid)?.parent })
}

/// A process, to take handles from. The system refuses it for one that runs with more rights than we.
pub(crate) fn giver(process: Process) -> io::Result<OwnedHandle> {
    let open = open_for(process.pid, PROCESS_DUP_HANDLE | PROCESS_QUERY_LIMITED_INFORMATION)?;
    if start_of(&open)? == process.start { Ok(open) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn start_of(process: &OwnedHandle) -> io::Result<u64> {
    let none = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut start, mut end, mut kernel, mut user) = (none, none, none, none);
    // SAFETY: the handle is open, and the system writes into four structures that live until the call returns.
    let known = unsafe {
        GetProcessTimes(process.as_raw_handle(), &raw mut start, &raw mut end, &raw mut kernel, &raw mut user)
    };
    if known == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((u64::from(start.dwHighDateTime) << 32) | u64::from(start.dwLowDateTime))
}

/// There is one for all.
#[expect(clippy::unnecessary_wraps, reason = "Linux can fail to say it")]
pub fn space() -> io::Result<Space> {
    Ok(Space::ONLY)
}

/// Every process there is now.
pub fn all() -> Vec<u32> {
    listed().into_iter().flatten().map(|process| process.pid).collect()
}

/// The name of the executable.
pub fn name(pid: u32) -> Option<String> {
    Some(found(pid).ok()?.name)
}

/// The executable, where it may be known.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
pub fn executable(pid: u32) -> Option<PathBuf> {
    let process = open(pid).ok()?;
    let mut path = vec![0_u16; MAX_PATH];
    let mut length = u32::try_from(path.len()).ok()?;
    // SAFETY: the handle is open; the system writes at most `length` characters into `path` and then their number into
    // `length`; both live until the call returns.
    let known = unsafe { QueryFullProcessImageNameW(process.as_raw_handle(), 0, path.as_mut_ptr(), &raw mut length) };
    (known != 0).then(|| OsString::from_wide(path.get(..length as usize).unwrap_or_default()).into())
}

/// The arguments of a process: of none is anything known, because they lie in its own memory, where it can change them.
pub fn arguments(_: u32) -> Vec<String> {
    Vec::new()
}

/// Where Windows itself lies, as it knows it and no variable can say otherwise.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
pub fn windows_directory() -> io::Result<PathBuf> {
    let mut path = vec![0_u16; MAX_PATH];
    let room = u32::try_from(path.len()).map_err(io::Error::other)?;
    // SAFETY: the system writes at most `room` characters into `path`, which lives until the call returns.
    let length = unsafe { GetSystemWindowsDirectoryW(path.as_mut_ptr(), room) };
    match path.get(..length as usize) {
        Some(path) if length > 0 => Ok(OsString::from_wide(path).into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Who somebody is to Windows: a security identifier, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sid(Vec<u8>);

impl Sid {
    /// Copies one that the system has written.
    ///
    /// # Safety
    ///
    /// `sid` points to a whole identifier that lives until this returns.
    #[expect(unsafe_code, reason = "identifiers arrive as pointers")]
    pub(crate) unsafe fn copy(sid: PSID) -> Self {
        // SAFETY: the caller's; the length is that of this identifier.
        unsafe { Self(std::slice::from_raw_parts(sid.cast::<u8>(), GetLengthSid(sid) as usize).to_vec()) }
    }
}

#[cfg(test)]
impl Sid {
    /// One of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl fmt::Display for Sid {
    /// As SDDL has it: `S-1-5-21-…` (MS-DTYP 2.4.2.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(([revision, _, authority @ ..], parts)) = self.0.split_first_chunk::<8>() else { return Ok(()) };
        let authority = authority.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        write!(f, "S-{revision}-{authority}")?;
        for part in parts.as_chunks::<4>().0 {
            write!(f, "-{}", u32::from_le_bytes(*part))?;
        }
        Ok(())
    }
}

/// The user that this process runs as.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
pub(crate) fn own_user() -> io::Result<Sid> {
    // SAFETY: takes nothing; what it gives stands for this process and is not closed.
    user_behind(unsafe { GetCurrentProcess() })
}

/// The user that a process runs as, if it runs with all of the user's rights: a confined server does not.
pub(crate) fn user_of(pid: u32) -> io::Result<Sid> {
    let process = open(pid)?;
    if is_restricted(&process)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    user_behind(process.as_raw_handle())
}

/// Whether a process has a restricted token.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn is_restricted(process: &OwnedHandle) -> io::Result<bool> {
    let token = token_of(process.as_raw_handle())?;
    // SAFETY: the token is open.
    Ok(unsafe { IsTokenRestricted(token.as_raw_handle()) } != 0)
}

#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn token_of(process: HANDLE) -> io::Result<OwnedHandle> {
    let mut token = ptr::null_mut();
    // SAFETY: the process is open, and the system writes a handle into `token`.
    if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    owned(token)
}

#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn user_behind(process: HANDLE) -> io::Result<Sid> {
    let token = token_of(process)?;
    let mut space = [0_u64; USER_WORDS];
    let (size, mut length) = (u32::try_from(size_of_val(&space)).map_err(io::Error::other)?, 0);
    // SAFETY: the token is open; the system writes at most `size` bytes into `space`, which is aligned for a TOKEN_USER.
    let known = unsafe {
        GetTokenInformation(token.as_raw_handle(), TokenUser, space.as_mut_ptr().cast(), size, &raw mut length)
    };
    if known == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written a TOKEN_USER at the start of `space`, and the identifier that it points to behind it.
    Ok(unsafe { Sid::copy((*space.as_ptr().cast::<TOKEN_USER>()).User.Sid) })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{ancestry, descendant},
        *,
    };

    #[test]
    fn we_are_found_and_have_ancestors() {
        let own = std::process::id();
        let chain = ancestry(own);
        assert_eq!(chain[0].process.pid, own);
        assert!(chain[0].process.start > 0 && all().contains(&own));
        assert!(executable(own).is_some_and(|path| path == std::env::current_exe().unwrap()));
        assert!(name(own).is_some_and(|name| name.ends_with(".exe")));
        assert_eq!(user_of(own).unwrap(), own_user().unwrap());
        let mut command = std::process::Command::new("cmd");
        command.args(["/c", "pause"]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        assert_eq!(descendant(child.id(), chain[0].process).map(|(_, is)| is), Some(true));
        let elsewhen = Process { start: chain[0].process.start + 1, ..chain[0].process };
        assert_eq!(descendant(child.id(), elsewhen).map(|(_, is)| is), Some(false), "another of this number");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn windows_lies_on_a_drive() {
        let path = windows_directory().unwrap();
        assert!(path.is_absolute() && path.join("system32").is_dir(), "{path:?}");
        assert_eq!(path.ancestors().last().and_then(|root| root.parent()), None);
    }

    #[test]
    fn identifiers_read_as_sddl_has_them() {
        let administrators = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
        assert_eq!(Sid(administrators.to_vec()).to_string(), "S-1-5-32-544");
        let own = own_user().unwrap().to_string();
        assert!(own.starts_with("S-1-5-"), "{own}");
    }
}
