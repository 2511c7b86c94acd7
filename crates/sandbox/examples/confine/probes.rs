//! Forbidden things to try from inside. Each returns the error it met.
#![expect(unsafe_code, reason = "probes call the kernel directly")]

use std::{
    fs,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    process::ExitCode,
};

use nix::libc;

pub fn run(names: &[&str]) -> ExitCode {
    let mut out = io::stdout();
    for name in names {
        let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
        let text = match probe(kind, argument) {
            Ok(()) => "ok".to_owned(),
            Err(e) => {
                e.raw_os_error().map_or_else(|| e.to_string(), |n| nix::errno::Errno::from_raw(n).to_string_short())
            }
        };
        let _ = writeln!(out, "{name}={text}");
    }
    ExitCode::SUCCESS
}

trait Short {
    fn to_string_short(self) -> String;
}
impl Short for nix::errno::Errno {
    fn to_string_short(self) -> String {
        format!("{self:?}")
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn call(number: libc::c_long, args: [libc::c_long; 5]) -> io::Result<()> {
    // SAFETY: the probes below pass integers, or null pointers that the kernel checks.
    check(unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4]) })
}

fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<i32> {
    // SAFETY: integers only.
    let fd = unsafe { libc::socket(domain, kind, protocol) };
    check(fd.into()).map(|()| fd)
}

fn cut(path: &str, length: i64) -> io::Result<()> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: a C string and an integer.
    check(unsafe { libc::truncate(path.as_ptr(), length) }.into())
}

fn open_and_cut(path: &str, how: i32) -> io::Result<()> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: a C string and integers.
    check(unsafe { libc::open(path.as_ptr(), how | libc::O_TRUNC) }.into())
}

fn probe(kind: &str, argument: &str) -> io::Result<()> {
    if let Some(result) = crate::resources::probe(kind, argument).or_else(|| crate::signals::probe(kind, argument)) {
        return result;
    }
    let outside: libc::c_long = argument.parse().unwrap_or(1);
    match kind {
        "read" => fs::read(argument).map(drop),
        "list" => fs::read_dir(argument).map(drop),
        "write" => fs::write(argument, "x"),
        "truncate" => fs::OpenOptions::new().append(true).open(argument)?.set_len(0),
        "cutbypath" => cut(argument, 0),
        "growbypath" => cut(argument, 1 << 30),
        "openandcut" => open_and_cut(argument, libc::O_RDONLY),
        // Neither for reading nor for writing, which the kernel takes for ioctl(2).
        "opennothingandcut" => open_and_cut(argument, libc::O_ACCMODE),
        "createandcut" => fs::File::create(argument).map(drop),
        "mkdir" => fs::create_dir(argument),
        "rename" => fs::rename(argument, format!("{argument}.renamed")),
        "remove" => fs::remove_file(argument),
        "environ" => match std::env::vars().filter(|(n, _)| n != "GIVEN").count() {
            0 => Ok(()),
            n => Err(io::Error::other(format!("{n} extra"))),
        },
        "descriptors" => {
            // SAFETY: integers only.
            let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
            let open: Vec<_> = (3..4096).filter(is_open).collect();
            if open.is_empty() { Ok(()) } else { Err(io::Error::other(format!("{open:?}"))) }
        }
        "mknod" => {
            let path = std::ffi::CString::new(argument)?;
            // SAFETY: a C string and integers.
            check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3)) }.into())
        }
        "capabilities" => {
            let status = fs::read_to_string("/proc/self/status")?;
            let held = status.lines().any(|l| l.starts_with("CapEff:") && !l.ends_with("0000000000000000"));
            if held { Err(io::Error::other("held")) } else { Ok(()) }
        }
        "inet" => socket(libc::AF_INET, libc::SOCK_STREAM, 0).map(drop),
        "inet6" => socket(libc::AF_INET6, libc::SOCK_STREAM, 0).map(drop),
        "udp" => socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map(drop),
        "mptcp" => socket(libc::AF_INET, libc::SOCK_STREAM, 262).map(drop),
        "unix" => socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).map(drop),
        "unixdgram" => socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0).map(drop),
        "vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).map(drop),
        "route" => socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).map(drop),
        "audit" => socket(libc::AF_NETLINK, libc::SOCK_RAW, 9).map(drop),
        "pair" => socketpair(libc::SOCK_STREAM),
        "pairdgram" => socketpair(libc::SOCK_DGRAM),
        "ptrace" => call(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), outside, 0, 0, 0]),
        "vmread" => call(libc::SYS_process_vm_readv, [outside, 0, 0, 0, 0]),
        "keyctl" => call(libc::SYS_keyctl, [0, -3, 0, 0, 0]),
        "iouring" => call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]),
        "unshare" => call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0]),
        "unsharefiles" => call(libc::SYS_unshare, [libc::CLONE_FILES.into(), 0, 0, 0, 0]),
        "clonens" => call(libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD).into(), 0, 0, 0, 0]),
        "clone3" => call(libc::SYS_clone3, [0, 0, 0, 0, 0]),
        "userfaultfd" => call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0]),
        "bpf" => call(libc::SYS_bpf, [0, 0, 0, 0, 0]),
        "mount" => call(libc::SYS_mount, [0, 0, 0, 0, 0]),
        "handle" => call(libc::SYS_open_by_handle_at, [0, 0, 0, 0, 0]),
        "shm" => call(libc::SYS_shmget, [0, 4096, 0o600, 0, 0]),
        "prlimit" => call(libc::SYS_prlimit64, [outside, 0, 0, 0, 0]),
        "prlimitself" => call(libc::SYS_prlimit64, [0, 0, 0, 0, 0]),
        "tiocsti" => call(libc::SYS_ioctl, [0, 0x5412, 0, 0, 0]),
        "listen" => call(libc::SYS_listen, [0, 1, 0, 0, 0]),
        "signal" => call(libc::SYS_kill, [outside, 0, 0, 0, 0]),
        "dumpable" => call(libc::SYS_prctl, [4, 0, 0, 0, 0]),
        "connect" => connect(argument, false),
        "connectnonblocking" => connect(argument, true),
        "connectthreads" => threads(argument),
        "stalled" => stalled(argument),
        "race" => race(argument),
        "fastopen" => fast_open(argument),
        "longlived" => {
            let mut stream = TcpStream::connect(parse(argument)?)?;
            stream.write_all(b"hello")
        }
        _ => Err(io::Error::other("no such probe")),
    }
}

fn socketpair(kind: i32) -> io::Result<()> {
    let mut fds = [0; 2];
    // SAFETY: the kernel writes two integers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) }.into())
}

fn parse(argument: &str) -> io::Result<SocketAddr> {
    argument.parse().map_err(io::Error::other)
}

/// `struct sockaddr_in`.
fn raw(to: SocketAddr) -> libc::sockaddr_in {
    let octets = match to.ip() {
        std::net::IpAddr::V4(ip) => ip.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    };
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(octets) },
        sin_zero: [0; 8],
    }
}

fn connect(argument: &str, nonblocking: bool) -> io::Result<()> {
    let to = raw(parse(argument)?);
    let flag = if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    let fd = socket(libc::AF_INET, libc::SOCK_STREAM | flag, 0)?;
    // SAFETY: an address of the given length.
    let result = check(unsafe { libc::connect(fd, (&raw const to).cast(), 16) }.into());
    // SAFETY: integers only.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if (flags & libc::O_NONBLOCK != 0) != nonblocking {
        return Err(io::Error::other("the socket's flags were changed"));
    }
    if nonblocking {
        match result {
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {
                let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one structure.
                check(unsafe { libc::poll(&raw mut poll, 1, 5000) }.into())?;
            }
            other => other?,
        }
    } else {
        result?;
    }
    // SAFETY: two bytes to send; a socket that is not connected refuses.
    check(unsafe { libc::send(fd, b"hi".as_ptr().cast(), 2, libc::MSG_NOSIGNAL) } as libc::c_long)
}

fn threads(argument: &str) -> io::Result<()> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..16).map(|_| scope.spawn(|| (0..20).try_for_each(|_| connect(argument, false)))).collect();
        all.into_iter().try_for_each(|t| t.join().unwrap_or_else(|_| Err(io::Error::other("panic"))))
    })
}

/// `STALLED,FORBIDDEN`: while one thread waits for a connection that is not accepted, another call is answered.
fn stalled(argument: &str) -> io::Result<()> {
    let (stalled, forbidden) = argument.split_once(',').ok_or_else(|| io::Error::other("two addresses"))?;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| connect(stalled, false));
        for _ in 0..1000 {
            match connect(forbidden, false) {
                Err(e) if e.raw_os_error() == Some(libc::EACCES) => {}
                other => return Err(io::Error::other(format!("{other:?}"))),
            }
        }
        if waiting.is_finished() {
            return Err(io::Error::other("the connection did not stall"));
        }
        // Tells the test to accept.
        writeln!(io::stdout(), "waiting")?;
        waiting.join().unwrap_or_else(|_| Err(io::Error::other("panic")))
    })
}

/// `ALLOWED,FORBIDDEN`: a thread flips the port while another connects. Fails when a connection reached FORBIDDEN.
fn race(argument: &str) -> io::Result<()> {
    let (allowed, forbidden) = argument.split_once(',').ok_or_else(|| io::Error::other("two addresses"))?;
    let (allowed, forbidden) = (parse(allowed)?, parse(forbidden)?);
    let shared = Box::leak(Box::new(raw(allowed)));
    let port = std::ptr::from_mut(&mut shared.sin_port) as usize;
    std::thread::spawn(move || {
        loop {
            // SAFETY: a leaked, aligned integer that only the kernel reads besides.
            unsafe {
                std::ptr::write_volatile(port as *mut u16, forbidden.port().to_be());
                std::ptr::write_volatile(port as *mut u16, allowed.port().to_be());
            }
        }
    });
    for _ in 0..500 {
        let fd = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        // SAFETY: an address of the given length that lives for ever; then integers.
        let connected = unsafe { libc::connect(fd, std::ptr::from_ref(shared).cast(), 16) } == 0;
        if connected {
            let mut peer = raw(allowed);
            let mut length = 16;
            // SAFETY: both out-parameters are valid.
            check(unsafe { libc::getpeername(fd, (&raw mut peer).cast(), &raw mut length) }.into())?;
            if u16::from_be(peer.sin_port) != allowed.port() {
                return Err(io::Error::other("reached the forbidden port"));
            }
        }
        // SAFETY: closes what was opened above.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

fn fast_open(argument: &str) -> io::Result<()> {
    let to = raw(parse(argument)?);
    let fd = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    // SAFETY: two bytes to send, and an address of the given length.
    check(unsafe { libc::sendto(fd, b"hi".as_ptr().cast(), 2, libc::MSG_FASTOPEN, (&raw const to).cast(), 16) }
        as libc::c_long)
}
