//! The compiled filter against the table, by running it.

use proptest::prelude::*;

use super::*;
use crate::linux::{
    layers::ABI_SCOPE,
    seccomp::{
        Reach,
        interpreter::{Shown, run},
        table::call,
    },
};

const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
const REACHES: [Reach; 4] = [Reach::None, Reach::Proxy, Reach::Listed, Reach::ListedMusl];
const OFFLINE: Scope = scope(Reach::None, false);
const WHOLE: Scope = scope(Reach::Listed, true);

/// Under the newest Landlock.
const fn scope(reach: Reach, trees: bool) -> Scope {
    Scope { reach, trees, terminal: false, landlock: u32::MAX, observed: false }
}

fn scopes() -> Vec<Scope> {
    let mut all = Vec::new();
    for reach in REACHES {
        for trees in [false, true] {
            for landlock in [ABI_SCOPE - 1, ABI_SCOPE] {
                all.push(Scope { landlock, terminal: trees, ..scope(reach, trees) });
            }
        }
    }
    all
}

/// What the table says, read directly.
fn meant(arch: Arch, scope: Scope, number: u32, args: &[u64; 6]) -> u32 {
    let named = CALLS.iter().find(|(_, call)| arch.number(*call) == Some(number));
    let first = named.and_then(|(_, call)| call.rules(scope).find(|r| r.when.iter().all(|c| c.holds(args))));
    first.map_or(libc::SECCOMP_RET_ALLOW, |r| r.action.value())
}

/// Values on both sides of every comparison, with rubbish in the high half.
fn interesting(conditions: &[&Condition]) -> Vec<u64> {
    let mut out = vec![0, 1, 0xffff_ffff];
    for c in conditions {
        for v in c.test.values() {
            out.extend([*v, v ^ 1, v | !c.mask, c.mask, !c.mask].map(u64::from));
        }
    }
    out.sort_unstable();
    out.dedup();
    out.iter().flat_map(|v| [*v, v | 0xdead_beef_0000_0000]).collect()
}

#[test]
fn the_filter_does_what_each_row_says() {
    for arch in BOTH {
        for scope in scopes() {
            let program = compile(arch, scope).unwrap();
            for (name, call) in CALLS {
                let Some(number) = arch.number(*call) else { continue };
                let conditions: Vec<_> = call.rules(scope).flat_map(|r| r.when).collect();
                let values = interesting(&conditions);
                let used = |i: u8| conditions.iter().any(|c| c.arg == i);
                let choices = |i: u8| if used(i) { values.as_slice() } else { &values[..1] };
                for x in choices(0) {
                    for y in if used(5) { choices(5) } else { choices(1) } {
                        for z in if used(2) { choices(2) } else { choices(3) } {
                            let args = [*x, *y, *z, *z, 0, *y];
                            let got = run(&program.0, &Shown { number, arch: arch.audit(), args });
                            let want = meant(arch, scope, number, &args);
                            assert_eq!(got, want, "{name} {args:x?} {arch:?} {scope:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_not_listed_passes() {
    for arch in BOTH {
        for scope in scopes() {
            let program = compile(arch, scope).unwrap();
            let listed: Vec<u32> = CALLS.iter().filter_map(|(_, call)| arch.number(*call)).collect();
            for number in (0..1000).filter(|n| !listed.contains(n)) {
                let call = Shown { number, arch: arch.audit(), args: [u64::MAX; 6] };
                assert_eq!(run(&program.0, &call), libc::SECCOMP_RET_ALLOW, "{number} {arch:?}");
            }
        }
    }
}

/// Observing changes the answer for calls that would have been allowed, and for no others.
#[test]
fn only_what_would_be_allowed_is_logged() {
    let mut logged = 0;
    for arch in BOTH {
        for scope in scopes() {
            let observing = Scope { observed: true, ..scope };
            let (before, after) = (compile(arch, scope).unwrap(), compile(arch, observing).unwrap());
            let logs = Logged::of(arch, observing);
            for (name, call) in CALLS {
                let Some(number) = arch.number(*call) else { continue };
                let conditions: Vec<_> = call.rules(observing).flat_map(|r| r.when).collect();
                for x in interesting(&conditions) {
                    let args = [x, x, x, x, 0, x];
                    let call = Shown { number, arch: arch.audit(), args };
                    let (was, is) = (run(&before.0, &call), run(&after.0, &call));
                    if logs.contains(number.cast_signed(), &args) {
                        let want = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
                        assert_eq!((was, is), want, "{name} {args:x?} {arch:?} {scope:?}");
                        logged += 1;
                    } else {
                        assert_eq!(was, is, "{name} {args:x?} {arch:?} {scope:?}");
                    }
                }
            }
        }
    }
    assert!(logged > 0);
}

#[test]
fn foreign_abis_are_refused() {
    let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let x86 = compile(Arch::X86_64, OFFLINE).unwrap();
    let arm = compile(Arch::Aarch64, OFFLINE).unwrap();
    const AUDIT_ARCH_I386: u32 = 0x4000_0003;
    const AUDIT_ARCH_ARM: u32 = 0x4000_0028;
    for (program, arch, number, want) in [
        (&x86, AUDIT_ARCH_I386, 0, libc::SECCOMP_RET_KILL_PROCESS),
        (&x86, Arch::Aarch64.audit(), 0, libc::SECCOMP_RET_KILL_PROCESS),
        (&x86, Arch::X86_64.audit(), X32_BIT, enosys),
        (&x86, Arch::X86_64.audit(), X32_BIT + 520, enosys),
        (&x86, Arch::X86_64.audit(), u32::MAX, enosys),
        (&x86, Arch::X86_64.audit(), 0, libc::SECCOMP_RET_ALLOW),
        (&arm, AUDIT_ARCH_ARM, 0, libc::SECCOMP_RET_KILL_PROCESS),
        (&arm, Arch::Aarch64.audit(), 0, libc::SECCOMP_RET_ALLOW),
    ] {
        assert_eq!(run(&program.0, &Shown { number, arch, args: [0; 6] }), want, "{arch:x} {number:x}");
    }
}

#[test]
fn receiving_is_looked_at_for_musl_only() {
    let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
    for (reach, want) in [
        (Reach::None, [allow; 3]),
        (Reach::Proxy, [allow; 3]),
        (Reach::Listed, [allow; 3]),
        (Reach::ListedMusl, [notify, notify, allow]),
    ] {
        let program = compile(Arch::X86_64, scope(reach, false)).unwrap();
        let got = [("recvmsg", [3, 1, 0, 0, 0, 0]), ("recvfrom", [3, 1, 9, 0, 7, 8]), ("recvfrom", [3, 1, 9, 0, 0, 0])]
            .map(|(name, args)| {
                let number = Arch::X86_64.number(call(name)).unwrap();
                run(&program.0, &Shown { number, arch: Arch::X86_64.audit(), args })
            });
        assert_eq!(got, want, "{reach:?}");
    }
}

/// The table's own words for the calls that matter most, independent of the compiler's reading of it.
#[test]
fn what_must_never_pass() {
    let errno = |e: i32| libc::SECCOMP_RET_ERRNO | e.unsigned_abs();
    let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
    let acces = errno(libc::EACCES);
    let perm = errno(libc::EPERM);
    let cloexec = 0o2_000_000;
    let rows: &[(&str, [u64; 6], [u32; 3])] = &[
        ("socket", [2, 1 | cloexec, 0, 0, 0, 0], [acces, allow, allow]),
        ("socket", [2, 1, 6, 0, 0, 0], [acces, allow, allow]),
        ("socket", [2, 1, 262, 0, 0, 0], [acces, acces, acces]),
        ("socket", [2, 1, 132, 0, 0, 0], [acces, acces, acces]),
        ("socket", [2, 2, 0, 0, 0, 0], [acces, acces, allow]),
        ("socket", [2, 3, 1, 0, 0, 0], [acces, acces, acces]),
        ("socket", [10, 1, 0, 0, 0, 0], [acces, acces, allow]),
        ("socket", [1, 1, 0, 0, 0, 0], [acces, acces, allow]),
        ("socket", [1, 2, 0, 0, 0, 0], [acces, acces, allow]),
        ("socket", [40, 1, 0, 0, 0, 0], [acces, acces, acces]),
        ("socket", [16, 3, 0, 0, 0, 0], [allow, allow, allow]),
        ("socket", [16, 3, 9, 0, 0, 0], [acces, acces, acces]),
        ("socketpair", [1, 1 | cloexec, 0, 0, 0, 0], [allow, allow, allow]),
        ("socketpair", [1, 5, 0, 0, 0, 0], [allow, allow, allow]),
        ("socketpair", [1, 2, 0, 0, 0, 0], [acces, acces, acces]),
        ("connect", [3, 0, 16, 0, 0, 0], [acces, notify, notify]),
        (
            "sendto",
            [3, 0, 0, 0x2000_0000, 0, 0],
            [errno(libc::EOPNOTSUPP), errno(libc::EOPNOTSUPP), errno(libc::EOPNOTSUPP)],
        ),
        (
            "sendmsg",
            [3, 0, 0x2000_4000, 0, 0, 0],
            [errno(libc::EOPNOTSUPP), errno(libc::EOPNOTSUPP), errno(libc::EOPNOTSUPP)],
        ),
        ("sendto", [3, 0, 0, 0x4000, 0, 0], [allow, allow, allow]),
        ("sendto", [3, 0, 0, 0, 0, 16], [allow, allow, notify]),
        ("sendto", [3, 0, 0, 0, 0x1_0000_0000, 0], [allow; 3]),
        ("sendto", [3, 0, 0, 0x2000_0000, 0, 16], [errno(libc::EOPNOTSUPP); 3]),
        ("sendmsg", [3, 0, 0, 0, 0, 0], [allow, allow, notify]),
        ("sendmmsg", [3, 0, 1, 0, 0, 0], [allow, allow, notify]),
        ("bind", [3, 0, 16, 0, 0, 0], [allow, allow, notify]),
        ("listen", [3, 1, 0, 0, 0, 0], [acces, acces, notify]),
        ("socket", [10, 2, 17, 0, 0, 0], [acces, acces, allow]),
        ("socket", [2, 2, 1, 0, 0, 0], [acces; 3]),
        ("socket", [1, 3, 0, 0, 0, 0], [acces; 3]),
        ("setsockopt", [3, 0, 4, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 41, 57, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 0, 35, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 0, 39, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 0, 42, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 41, 20, 0, 0, 0], [perm; 3]),
        ("setsockopt", [3, 41, 46, 0, 0, 0], [perm; 3]),
        // IP_MULTICAST_IF, IP_MULTICAST_ALL, IPV6_MULTICAST_ALL, IPV6_V6ONLY send nothing.
        ("setsockopt", [3, 0, 32, 0, 0, 0], [allow; 3]),
        ("setsockopt", [3, 0, 49, 0, 0, 0], [allow; 3]),
        ("setsockopt", [3, 41, 29, 0, 0, 0], [allow; 3]),
        ("setsockopt", [3, 41, 26, 0, 0, 0], [allow; 3]),
        ("setsockopt", [3, 6, 1, 0, 0, 0], [allow; 3]),
        ("clone", [0x1000_0000 | 17, 0, 0, 0, 0, 0], [perm, perm, perm]),
        ("clone", [0x003d_0f00, 0, 0, 0, 0, 0], [allow, allow, allow]),
        ("clone", [0x003d_0b00, 0, 0, 0, 0, 0], [perm, perm, perm]),
        ("clone", [17, 0, 0, 0, 0, 0], [allow, allow, allow]),
        ("setpriority", [0, 0, 19, 0, 0, 0], [allow; 3]),
        ("setpriority", [0, 7, 19, 0, 0, 0], [allow, notify, notify]),
        ("setpriority", [1, 0, 19, 0, 0, 0], [perm; 3]),
        ("setpriority", [2, 0, 19, 0, 0, 0], [perm; 3]),
        ("ioprio_set", [1, 0, 0, 0, 0, 0], [allow; 3]),
        ("ioprio_set", [1, 7, 0, 0, 0, 0], [allow, notify, notify]),
        ("ioprio_set", [2, 0, 0, 0, 0, 0], [perm; 3]),
        ("sched_setaffinity", [0; 6], [allow; 3]),
        ("sched_setaffinity", [7, 0, 0, 0, 0, 0], [allow, notify, notify]),
        ("sched_setscheduler", [7, 0, 0, 0, 0, 0], [allow, notify, notify]),
        ("sched_setparam", [7, 0, 0, 0, 0, 0], [allow, notify, notify]),
        ("sched_setattr", [7, 0, 0, 0, 0, 0], [allow, notify, notify]),
        ("clone3", [0; 6], [errno(libc::ENOSYS), errno(libc::ENOSYS), errno(libc::ENOSYS)]),
        ("prlimit64", [0; 6], [allow, allow, allow]),
        ("prlimit64", [1, 0, 0, 0, 0, 0], [perm, perm, perm]),
        ("ioctl", [0, 0x5412, 0, 0, 0, 0], [perm, perm, perm]),
        ("ioctl", [0, 0xdead_0000_5412, 0, 0, 0, 0], [perm, perm, perm]),
        ("ioctl", [2, 0x5402, 0, 0, 0, 0], [perm; 3]),
        ("ioctl", [2, 0x402c_542d, 0, 0, 0, 0], [perm; 3]),
        ("ioctl", [2, 0x5401, 0, 0, 0, 0], [allow; 3]),
        ("ioctl", [0, 0x5413, 0, 0, 0, 0], [allow, allow, allow]),
        ("ioctl", [0, 0x5000_940e, 0, 0, 0, 0], [errno(libc::EOPNOTSUPP); 3]),
        ("ioctl", [0, 0x4008_6602, 0, 0, 0, 0], [errno(libc::EOPNOTSUPP); 3]),
        // FICLONE needs the right to write.
        ("ioctl", [0, 0x4004_9409, 0, 0, 0, 0], [allow; 3]),
        ("ptrace", [0; 6], [perm, perm, perm]),
        ("prctl", [4, 1, 0, 0, 0, 0], [libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_ERRNO]),
    ];
    for arch in BOTH {
        for (index, reach) in REACHES.into_iter().enumerate() {
            let program = compile(arch, scope(reach, false)).unwrap();
            for (name, args, want) in rows {
                let number = arch.number(call(name)).unwrap();
                let got = run(&program.0, &Shown { number, arch: arch.audit(), args: *args });
                // With musl only receiving differs, which no row is about.
                assert_eq!(got, want[index.min(2)], "{name} {args:x?} {arch:?} {reach:?}");
            }
        }
    }
}

/// What opens, creates, changes or removes a name goes to the guardian where it writes to trees, and reading never does.
#[test]
fn trees_are_written_by_the_guardian() {
    let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
    let at = |flags: i32| [5, 0, u64::from(flags.cast_unsigned()), 0o600, 0, 0];
    let rows: &[(&str, [u64; 6], u32)] = &[
        ("openat", at(libc::O_RDONLY | libc::O_CLOEXEC), allow),
        ("openat", at(libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NONBLOCK), allow),
        ("openat", at(libc::O_PATH | libc::O_RDWR | libc::O_CREAT), allow),
        ("openat", at(libc::O_WRONLY), notify),
        ("openat", at(libc::O_RDWR), notify),
        ("openat", at(libc::O_ACCMODE), notify),
        ("openat", at(libc::O_CREAT), notify),
        ("openat", at(libc::O_RDWR | libc::O_TRUNC), notify),
        ("openat", at(libc::O_TMPFILE | libc::O_RDWR), notify),
        ("umask", [0o77, 0, 0, 0, 0, 0], notify),
        ("mkdirat", [0; 6], notify),
        ("mknodat", [0; 6], notify),
        ("unlinkat", [0; 6], notify),
        ("renameat", [0; 6], notify),
        ("renameat2", [0; 6], notify),
        ("linkat", [0; 6], notify),
        ("symlinkat", [0; 6], notify),
    ];
    for arch in BOTH {
        for reach in REACHES {
            for trees in [false, true] {
                let program = compile(arch, scope(reach, trees)).unwrap();
                for (name, args, want) in rows {
                    let number = arch.number(call(name)).unwrap();
                    let got = run(&program.0, &Shown { number, arch: arch.audit(), args: *args });
                    assert_eq!(got, if trees { *want } else { allow }, "{name} {args:x?} {arch:?} {trees}");
                }
            }
        }
    }
}

/// What truncates a file without opening it to write is closed or the guardian's.
#[test]
fn truncation_is_governed_everywhere() {
    let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
    let errno = |e: i32| libc::SECCOMP_RET_ERRNO | e.unsigned_abs();
    let (acces, enosys) = (errno(libc::EACCES), errno(libc::ENOSYS));
    let flags = |flags: i32| [5, 0, u64::from(flags.cast_unsigned()), 0o600, 0, 0];
    let second = |flags: i32| [0, u64::from(flags.cast_unsigned()), 0o600, 0, 0, 0];
    // Without trees that the guardian writes to, and with them.
    let rows: &[(&str, [u64; 6], u32, u32)] = &[
        ("truncate", [0; 6], notify, notify),
        ("openat", flags(libc::O_TRUNC), acces, notify),
        ("openat", flags(libc::O_ACCMODE | libc::O_TRUNC), acces, notify),
        ("openat", flags(libc::O_WRONLY | libc::O_TRUNC), allow, notify),
        ("openat", flags(libc::O_RDWR | libc::O_TRUNC), allow, notify),
        ("openat", flags(libc::O_RDONLY), allow, allow),
        ("open", second(libc::O_TRUNC | libc::O_CREAT), acces, notify),
        ("open", second(libc::O_WRONLY | libc::O_TRUNC), allow, notify),
        ("openat2", [0; 6], enosys, enosys),
    ];
    for arch in BOTH {
        for reach in REACHES {
            for observed in [false, true] {
                for (name, args, without, with) in rows {
                    let Some(number) = arch.number(call(name)) else { continue };
                    for (trees, want) in [(false, *without), (true, *with)] {
                        let program = compile(arch, Scope { observed, ..scope(reach, trees) }).unwrap();
                        let got = run(&program.0, &Shown { number, arch: arch.audit(), args: *args });
                        let want = match (want, reach) {
                            // Nobody is there who looks at the path.
                            (_, Reach::None) if *name == "truncate" => acces,
                            // Written down, and decided by Landlock.
                            (want, Reach::Listed | Reach::ListedMusl) if want == allow && observed => notify,
                            (want, _) => want,
                        };
                        assert_eq!(got, want, "{name} {args:x?} {arch:?} {reach:?} {trees} {observed}");
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn filter_and_table_agree(pick in any::<prop::sample::Index>(), args in any::<[u64; 6]>()) {
            let program = compile(Arch::X86_64, WHOLE).unwrap();
        let numbers: Vec<u32> = CALLS.iter().filter_map(|(_, call)| Arch::X86_64.number(*call)).collect();
        let number = *pick.get(&numbers);
        let got = run(&program.0, &Shown { number, arch: Arch::X86_64.audit(), args });
        prop_assert_eq!(got, meant(Arch::X86_64, WHOLE, number, &args));
    }
}
