//! Starting one server.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    os::windows::{
        ffi::OsStrExt as _,
        io::{AsHandle as _, AsRawHandle as _, OwnedHandle},
    },
    path::{Path, PathBuf},
    ptr,
};

use firedoor_model::{Ability, launch::Step, limits::Limits};
use windows_sys::Win32::{
    Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation},
    System::Threading::{
        CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessAsUserW,
        DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, InitializeProcThreadAttributeList,
        LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION, ResumeThread,
        STARTF_USESTDHANDLES, STARTUPINFOEXW, TerminateProcess, UpdateProcThreadAttribute,
    },
};

use super::{
    access,
    command_line::command_line,
    identity::{identity, writes},
    job::{Job, KILLED},
    system::{owned, size, worked},
    token::{self, Sid},
    tree::Tree,
};
use crate::{
    error::{SpawnError, Stage},
    launch::{Launch, Stderr},
    level::{Level, Outcome, Quota},
};

/// What every server here lacks.
const READING: &str = "reading: a server can read every file that you can, the Credential Manager, and what your other programs have in memory";
const NETWORK: &str = "network: a server can connect to every host";
const OTHERS: &str =
    "other programs: a server can ask those that are not confined, such as the task scheduler, to write for it";
const PROTECTED: &str = "protected names: in a folder that it may write to, a server can also change what programs run later, such as \
                         .git/hooks";

/// What is missing here, one sentence each.
pub(super) fn missing() -> Vec<String> {
    [READING, NETWORK, OTHERS, PROTECTED].map(str::to_owned).to_vec()
}

/// Starts a server under its confinement. Returns when the program runs.
pub fn spawn(launch: Launch<'_>) -> Result<Tree, SpawnError> {
    let Launch { step, stdin, stdout, stderr, observe } = launch;
    if observe {
        return Err(Ability::Observing.missing().into());
    }
    let program = startable(&step.program)?;
    let line = command_line(program, step.args.iter().map(OsString::as_os_str))?;
    let environment = environment(&step.env)?;
    let setup = |stage| move |e: io::Error| SpawnError::setup(stage, e);
    let identity = identity(&step.confinement.grants);
    let token = token::restricted(&identity).map_err(setup(Stage::Token))?;
    let confined = token::is_confined(&token, &identity).map_err(setup(Stage::Token))?;
    if !confined && !cfg!(feature = "wine") {
        return Err(SpawnError::NotRestricted);
    }
    let skipped = open(step, &identity)?;
    let stderr = match stderr {
        Stderr::Inherit => own_stderr().map_err(setup(Stage::Descriptors))?,
        Stderr::Fd(handle) => handle,
    };
    let streams = [stdin, stdout, stderr];
    inheritable(&streams).map_err(setup(Stage::Descriptors))?;
    let started = start(&token, program, line, &environment, &step.cwd, &streams).map_err(|e| explain(step, e))?;
    let mut missing = missing();
    let job = seated(&started, &step.confinement.limits, &mut missing).map_err(setup(Stage::Job))?;
    let (process, pid) = started.run().map_err(setup(Stage::Process))?;
    missing.extend(token::gaps(&token).map_err(setup(Stage::Token))?);
    if !confined {
        missing.insert(0, "writing: this system does not honour restricted tokens".to_owned());
    }
    let outcome = Outcome {
        level: Level::Writes,
        landlock_abi: 0,
        rights: Vec::new(),
        tcp_denied: false,
        scoped: false,
        filter_instructions: 0,
        judged: false,
        quota: Quota::Job,
        observed: false,
        skipped,
        missing,
    };
    Ok(Tree { job, process, pid, outcome })
}

/// Puts a process that has not run into a job. Within another job, as some clients start their servers in, one without limits for
/// windows has to do.
fn seated(started: &Started, limits: &Limits, missing: &mut Vec<String>) -> io::Result<Job> {
    let job = Job::new(limits, true)?;
    if job.take(&started.process).is_ok() {
        return Ok(job);
    }
    let job = Job::new(limits, false)?;
    job.take(&started.process)?;
    missing.push(
        "windows: the client runs in a job, so the clipboard and the windows of other programs are not closed"
            .to_owned(),
    );
    Ok(job)
}

/// Our own standard error, or one that leads nowhere where we were given none.
pub fn own_stderr() -> io::Result<OwnedHandle> {
    let stderr = io::stderr();
    if stderr.as_raw_handle().is_null() {
        return File::options().write(true).open("NUL").map(OwnedHandle::from);
    }
    stderr.as_handle().try_clone_to_owned()
}

/// The program, if the system starts it as what it is. A batch file would be read by `cmd`, which takes arguments for commands; so
/// would one whose name only looks otherwise, because the system strips dots and blanks at the end, and what stands behind a colon.
fn startable(program: &Path) -> Result<&Path, SpawnError> {
    if !program.is_absolute() {
        return Err(SpawnError::RelativeProgram(program.to_owned()));
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if name.contains(':') || !(name.ends_with(".exe") || name.ends_with(".com")) {
        return Err(SpawnError::Batch(program.to_owned()));
    }
    Ok(program)
}

/// `NAME=VALUE`, a zero behind each, sorted by name without regard to case (CreateProcessW), and one more at the end.
fn environment(variables: &[(OsString, OsString)]) -> Result<Vec<u16>, SpawnError> {
    let mut sorted = BTreeMap::new();
    for (name, value) in variables {
        let wide = |text: &OsString| text.encode_wide().collect::<Vec<u16>>();
        let (upper, name, value) = (name.to_ascii_uppercase(), wide(name), wide(value));
        // What `cmd` keeps of the drives' directories begins with the sign, and is for nobody else.
        if name.first() == Some(&b'='.into()) {
            continue;
        }
        if name.is_empty() || name.contains(&b'='.into()) || name.contains(&0) || value.contains(&0) {
            return Err(SpawnError::Text("a variable"));
        }
        // Names have no case; of two that are the same the last one counts.
        sorted.insert(wide(&upper), (name, value));
    }
    let mut block = Vec::new();
    for (name, value) in sorted.into_values() {
        block.extend(name);
        block.push(b'='.into());
        block.extend(value);
        block.push(0);
    }
    // An empty block has two as well.
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

/// Opens to the server what it may write. Gives what is not there.
fn open(step: &Step, identity: &str) -> Result<Vec<PathBuf>, SpawnError> {
    let server = Sid::parse(identity).map_err(|e| SpawnError::setup(Stage::Token, e))?;
    let mut skipped = Vec::new();
    for grant in step.confinement.grants.iter().filter(|grant| writes(grant.access)) {
        if !grant.path.is_absolute() {
            return Err(SpawnError::RelativeGrant(grant.path.clone()));
        }
        match access::open(&grant.path, &server) {
            Ok(true) => {}
            Ok(false) => skipped.push(grant.path.clone()),
            Err(source) => return Err(SpawnError::Grant { path: grant.path.clone(), source }),
        }
    }
    Ok(skipped)
}

/// A process that has not run yet. Dropped before it has, it is killed.
struct Started {
    process: OwnedHandle,
    thread: OwnedHandle,
    pid: u32,
    runs: bool,
}

impl Started {
    /// Lets it run.
    #[expect(unsafe_code, reason = "the interface has no safe wrapper")]
    fn run(mut self) -> io::Result<(OwnedHandle, u32)> {
        let process = self.process.try_clone()?;
        // SAFETY: the thread is open.
        if unsafe { ResumeThread(self.thread.as_raw_handle()) } == u32::MAX {
            return Err(io::Error::last_os_error());
        }
        self.runs = true;
        Ok((process, self.pid))
    }
}

impl Drop for Started {
    #[expect(unsafe_code, reason = "the interface has no safe wrapper")]
    fn drop(&mut self) {
        if !self.runs {
            // SAFETY: the process is open. One that is in its job already ends with that.
            unsafe { TerminateProcess(self.process.as_raw_handle(), KILLED) };
        }
    }
}

/// The list of what a new process is told besides, of which there is one thing: the handles that it inherits, and no others.
struct Inherited {
    list: Vec<u64>,
    // The list points to them.
    _handles: Box<[HANDLE]>,
}

impl Inherited {
    #[expect(unsafe_code, reason = "the interface has no safe wrapper")]
    fn of(handles: Box<[HANDLE]>) -> io::Result<Self> {
        let mut bytes = 0;
        // SAFETY: without a list the system says how many bytes one with one thing takes, and that it did not have them.
        unsafe { InitializeProcThreadAttributeList(ptr::null_mut(), 1, 0, &raw mut bytes) };
        let mut inherited = Self { list: vec![0; bytes.div_ceil(size_of::<u64>()).max(1)], _handles: handles };
        // SAFETY: the list has so many bytes, and is aligned for pointers.
        worked(unsafe { InitializeProcThreadAttributeList(inherited.as_ptr(), 1, 0, &raw mut bytes) })?;
        let handles = &inherited._handles;
        // SAFETY: the list is made for one thing; the handles live as long as it, at the same place.
        worked(unsafe {
            UpdateProcThreadAttribute(
                inherited.list.as_mut_ptr().cast(),
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                handles.as_ptr().cast(),
                size_of_val(&**handles),
                ptr::null_mut(),
                ptr::null(),
            )
        })?;
        Ok(inherited)
    }

    fn as_ptr(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.list.as_mut_ptr().cast()
    }
}

impl Drop for Inherited {
    #[expect(unsafe_code, reason = "the interface has no safe wrapper")]
    fn drop(&mut self) {
        // SAFETY: the list was made; it owns no memory of the system's where making it failed.
        unsafe { DeleteProcThreadAttributeList(self.list.as_mut_ptr().cast()) };
    }
}

/// Lets a process that we start inherit these. They are ours alone, and closed when it has been made.
#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn inheritable(streams: &[OwnedHandle; 3]) -> io::Result<()> {
    streams.iter().try_for_each(|stream| {
        // SAFETY: the handle is open.
        worked(unsafe { SetHandleInformation(stream.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) })
    })
}

#[expect(unsafe_code, reason = "std cannot start a process with another token")]
fn start(
    token: &OwnedHandle,
    program: &Path,
    mut line: Vec<u16>,
    environment: &[u16],
    cwd: &Path,
    streams: &[OwnedHandle; 3],
) -> io::Result<Started> {
    let mut inherited = Inherited::of(streams.iter().map(|stream| stream.as_raw_handle()).collect())?;
    let wide = |path: &Path| -> Vec<u16> { path.as_os_str().encode_wide().chain([0]).collect() };
    let (program, cwd) = (wide(program), wide(cwd));
    let mut information = STARTUPINFOEXW::default();
    information.StartupInfo.cb = size::<STARTUPINFOEXW>();
    information.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [information.StartupInfo.hStdInput, information.StartupInfo.hStdOutput, information.StartupInfo.hStdError] =
        streams.each_ref().map(|stream| stream.as_raw_handle());
    information.lpAttributeList = inherited.as_ptr();
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: all texts end with a zero, the environment with two, and the line is one that the system may write into; the
    // structure is an extended one, as its size and the flag say, and what it points to lives until the call returns. The system
    // writes two handles and two numbers into `made`.
    worked(unsafe {
        CreateProcessAsUserW(
            token.as_raw_handle(),
            program.as_ptr(),
            line.as_mut_ptr(),
            ptr::null(),
            ptr::null(),
            1,
            CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | CREATE_NO_WINDOW | EXTENDED_STARTUPINFO_PRESENT,
            environment.as_ptr().cast(),
            cwd.as_ptr(),
            (&raw const information).cast(),
            &raw mut made,
        )
    })?;
    Ok(Started { process: owned(made.hProcess)?, thread: owned(made.hThread)?, pid: made.dwProcessId, runs: false })
}

fn explain(step: &Step, source: io::Error) -> SpawnError {
    if !step.cwd.is_dir() {
        return SpawnError::Cwd { path: step.cwd.clone(), source };
    }
    let hint = "is the program there, and may you run it?".to_owned();
    SpawnError::Exec { program: step.program.clone(), source, hint }
}
