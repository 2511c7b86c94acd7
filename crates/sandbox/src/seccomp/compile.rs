//! From the table to a program.

use nix::libc::{self, sock_filter};

use super::{
    bpf::{Assembler, Label},
    table::{Action, Condition, Number, Numbers, Rule, Scope, Table, TableError, Test},
};

/// First number of the x32 ABI (`__X32_SYSCALL_BIT`, arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: u32 = 0x4000_0000;

/// An architecture that the table has numbers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// That of this build, if the table has it.
    pub const fn native() -> Option<Self> {
        if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            Some(Self::X86_64)
        } else if cfg!(all(target_arch = "aarch64", target_endian = "little", target_pointer_width = "64")) {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// `AUDIT_ARCH_*` (linux/audit.h).
    pub const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }

    pub fn number(self, numbers: &Numbers) -> Option<u32> {
        let number = match self {
            Self::X86_64 => numbers.x86_64,
            Self::Aarch64 => numbers.aarch64,
        };
        match number {
            Number::Is(number) => Some(number),
            Number::Lacks(_) => None,
        }
    }
}

/// A filter ready to be installed.
#[derive(Clone, Debug)]
pub(crate) struct Program(pub(super) Vec<sock_filter>);

impl Program {
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Compiles the table's rules for one architecture and scope.
///
/// The program tests the call's number once against every number in the table; the part for one number ends in a
/// return on every path.
pub(crate) fn compile(table: &Table, arch: Arch, scope: Scope) -> Result<Program, TableError> {
    let mut a = Assembler::default();
    prologue(&mut a, arch);
    for (name, numbers) in &table.numbers {
        let Some(number) = arch.number(numbers) else { continue };
        let rules = rules_for(table, name, scope);
        if rules.is_empty() {
            continue;
        }
        let (matching, other) = (a.label(), a.label());
        a.if_equal(number, matching, other);
        a.bind(matching);
        for rule in rules {
            let next = a.label();
            rule.when.iter().for_each(|c| condition(&mut a, c, next));
            a.ret(rule.action.value());
            a.bind(next);
        }
        a.ret(libc::SECCOMP_RET_ALLOW);
        a.bind(other);
    }
    a.ret(libc::SECCOMP_RET_ALLOW);
    a.assemble().map(Program)
}

/// The calls of one table, architecture and scope that are only written down.
///
/// A call is let go on only when this says so: everything else that the filter notifies is performed by the guardian.
#[derive(Clone, Debug)]
pub(crate) struct Logged(Vec<(u32, Vec<Rule>)>);

impl Logged {
    /// Those of a table.
    pub fn of(table: &Table, arch: Arch, scope: Scope) -> Self {
        let named = table.numbers.iter().filter_map(|(name, numbers)| Some((name, arch.number(numbers)?)));
        let rules = named.map(|(name, number)| (number, rules_for(table, name, scope).into_iter().cloned().collect()));
        let logs = |(_, rules): &(u32, Vec<Rule>)| rules.iter().any(|r| r.action == Action::Log);
        Self(rules.filter(logs).collect())
    }

    /// Whether the first rule that decides about a call only writes it down. Looks at registers only, as the filter does.
    pub fn contains(&self, number: i32, args: &[u64; 6]) -> bool {
        let rules = self.0.iter().find(|(n, _)| i64::from(*n) == i64::from(number)).map(|(_, rules)| rules);
        let first = rules.and_then(|rules| rules.iter().find(|r| r.when.iter().all(|c| c.holds(args))));
        first.is_some_and(|rule| rule.action == Action::Log)
    }
}

/// The rules that name a call, in order.
pub(super) fn rules_for<'a>(table: &'a Table, name: &str, scope: Scope) -> Vec<&'a Rule> {
    let holds = |r: &Rule| r.network.is_none_or(|n| n.covers(scope.reach)) && (scope.trees || !r.trees);
    let applies = |r: &&Rule| r.calls.iter().any(|c| c == name) && holds(r);
    table.rules.iter().filter(applies).collect()
}

fn prologue(a: &mut Assembler, arch: Arch) {
    let (ours, foreign) = (a.label(), a.label());
    a.load_arch();
    a.if_equal(arch.audit(), ours, foreign);
    a.bind(foreign);
    a.ret(libc::SECCOMP_RET_KILL_PROCESS);
    a.bind(ours);
    a.load_number();
    if arch == Arch::X86_64 {
        let (x32, native) = (a.label(), a.label());
        a.if_at_least(X32_BIT, x32, native);
        a.bind(x32);
        a.ret(libc::SECCOMP_RET_ERRNO | (libc::ENOSYS.unsigned_abs() & libc::SECCOMP_RET_DATA));
        a.bind(native);
    }
}

/// Falls through when the condition holds, else jumps to `otherwise`.
fn condition(a: &mut Assembler, condition: &Condition, otherwise: Label) {
    a.load_argument(condition.arg);
    if condition.mask != u32::MAX {
        a.and(condition.mask);
    }
    let holds = a.label();
    for value in condition.test.values() {
        let next = a.label();
        match condition.test {
            Test::Is(_) => a.if_equal(*value, holds, next),
            Test::Not(_) => a.if_equal(*value, otherwise, next),
        }
        a.bind(next);
    }
    if matches!(condition.test, Test::Is(_)) {
        // None was equal: always taken, since both branches lead there.
        a.if_equal(0, otherwise, otherwise);
    }
    a.bind(holds);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::Reach;
    use crate::seccomp::interpreter::{Call, run};
    use proptest::prelude::*;

    const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
    const REACHES: [Reach; 4] = [Reach::None, Reach::Proxy, Reach::Listed, Reach::ListedMusl];
    const OFFLINE: Scope = Scope { reach: Reach::None, trees: false };
    const WHOLE: Scope = Scope { reach: Reach::Listed, trees: true };

    fn scopes() -> Vec<Scope> {
        REACHES.into_iter().flat_map(|reach| [false, true].map(|trees| Scope { reach, trees })).collect()
    }

    /// What the table says, read directly.
    fn meant(table: &Table, arch: Arch, scope: Scope, number: u32, args: &[u64; 6]) -> u32 {
        let named = table.numbers.iter().find(|(_, n)| arch.number(n) == Some(number));
        let rules = named.map(|(name, _)| rules_for(table, name, scope)).unwrap_or_default();
        let first = rules.iter().find(|r| r.when.iter().all(|c| c.holds(args)));
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
        let table = Table::built_in().unwrap();
        for arch in BOTH {
            for scope in scopes() {
                let program = compile(&table, arch, scope).unwrap();
                for (name, numbers) in &table.numbers {
                    let Some(number) = arch.number(numbers) else { continue };
                    let conditions: Vec<_> = rules_for(&table, name, scope).iter().flat_map(|r| &r.when).collect();
                    let values = interesting(&conditions);
                    let used = |i: u8| conditions.iter().any(|c| c.arg == i);
                    let choices = |i: u8| if used(i) { values.as_slice() } else { &values[..1] };
                    for x in choices(0) {
                        for y in if used(5) { choices(5) } else { choices(1) } {
                            for z in if used(2) { choices(2) } else { choices(3) } {
                                let args = [*x, *y, *z, *z, 0, *y];
                                let got = run(&program.0, &Call { number, arch: arch.audit(), args });
                                let want = meant(&table, arch, scope, number, &args);
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
        let table = Table::built_in().unwrap();
        for arch in BOTH {
            for scope in scopes() {
                let program = compile(&table, arch, scope).unwrap();
                let listed: Vec<u32> = table.numbers.values().filter_map(|n| arch.number(n)).collect();
                for number in (0..1000).filter(|n| !listed.contains(n)) {
                    let call = Call { number, arch: arch.audit(), args: [u64::MAX; 6] };
                    assert_eq!(run(&program.0, &call), libc::SECCOMP_RET_ALLOW, "{number} {arch:?}");
                }
            }
        }
    }

    /// Observing changes the answer for calls that would have been allowed, and for no others.
    #[test]
    fn only_what_would_be_allowed_is_logged() {
        let (plain, observing) = (Table::built_in().unwrap(), Table::observing().unwrap());
        let mut logged = 0;
        for arch in BOTH {
            for scope in scopes() {
                let (before, after) =
                    (compile(&plain, arch, scope).unwrap(), compile(&observing, arch, scope).unwrap());
                let logs = Logged::of(&observing, arch, scope);
                for (name, numbers) in &observing.numbers {
                    let Some(number) = arch.number(numbers) else { continue };
                    let conditions: Vec<_> = rules_for(&observing, name, scope).iter().flat_map(|r| &r.when).collect();
                    for x in interesting(&conditions) {
                        let args = [x, x, x, x, 0, x];
                        let call = Call { number, arch: arch.audit(), args };
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
        let table = Table::built_in().unwrap();
        let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        let x86 = compile(&table, Arch::X86_64, OFFLINE).unwrap();
        let arm = compile(&table, Arch::Aarch64, OFFLINE).unwrap();
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
            assert_eq!(run(&program.0, &Call { number, arch, args: [0; 6] }), want, "{arch:x} {number:x}");
        }
    }

    #[test]
    fn receiving_is_looked_at_for_musl_only() {
        let table = Table::built_in().unwrap();
        let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
        for (reach, want) in [
            (Reach::None, [allow; 3]),
            (Reach::Proxy, [allow; 3]),
            (Reach::Listed, [allow; 3]),
            (Reach::ListedMusl, [notify, notify, allow]),
        ] {
            let program = compile(&table, Arch::X86_64, Scope { reach, trees: false }).unwrap();
            let got =
                [("recvmsg", [3, 1, 0, 0, 0, 0]), ("recvfrom", [3, 1, 9, 0, 7, 8]), ("recvfrom", [3, 1, 9, 0, 0, 0])]
                    .map(|(name, args)| {
                        let number = Arch::X86_64.number(&table.numbers[name]).unwrap();
                        run(&program.0, &Call { number, arch: Arch::X86_64.audit(), args })
                    });
            assert_eq!(got, want, "{reach:?}");
        }
    }

    /// The table's own words for the calls that matter most, independent of the compiler's reading of it.
    #[test]
    fn what_must_never_pass() {
        let table = Table::built_in().unwrap();
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
            ("setsockopt", [3, 6, 1, 0, 0, 0], [allow; 3]),
            ("clone", [0x1000_0000 | 17, 0, 0, 0, 0, 0], [perm, perm, perm]),
            ("clone", [0x003d_0f00, 0, 0, 0, 0, 0], [allow, allow, allow]),
            ("clone", [0x003d_0b00, 0, 0, 0, 0, 0], [perm, perm, perm]),
            ("clone", [17, 0, 0, 0, 0, 0], [allow, allow, allow]),
            ("clone3", [0; 6], [errno(libc::ENOSYS), errno(libc::ENOSYS), errno(libc::ENOSYS)]),
            ("prlimit64", [0; 6], [allow, allow, allow]),
            ("prlimit64", [1, 0, 0, 0, 0, 0], [perm, perm, perm]),
            ("ioctl", [0, 0x5412, 0, 0, 0, 0], [perm, perm, perm]),
            ("ioctl", [0, 0xdead_0000_5412, 0, 0, 0, 0], [perm, perm, perm]),
            ("ioctl", [0, 0x5413, 0, 0, 0, 0], [allow, allow, allow]),
            ("ptrace", [0; 6], [perm, perm, perm]),
            ("prctl", [4, 1, 0, 0, 0, 0], [libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_ERRNO]),
        ];
        for arch in BOTH {
            for (index, reach) in REACHES.into_iter().enumerate() {
                let program = compile(&table, arch, Scope { reach, trees: false }).unwrap();
                for (name, args, want) in rows {
                    let number = arch.number(&table.numbers[*name]).unwrap();
                    let got = run(&program.0, &Call { number, arch: arch.audit(), args: *args });
                    // With musl only receiving differs, which no row is about.
                    assert_eq!(got, want[index.min(2)], "{name} {args:x?} {arch:?} {reach:?}");
                }
            }
        }
    }

    /// What opens, creates, changes or removes a name goes to the guardian where it writes to trees, and reading never does.
    #[test]
    fn trees_are_written_by_the_guardian() {
        let table = Table::built_in().unwrap();
        let (allow, notify) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_USER_NOTIF);
        let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        let at = |flags: i32| [5, 0, u64::from(flags.cast_unsigned()), 0o600, 0, 0];
        let rows: &[(&str, [u64; 6], u32)] = &[
            ("openat", at(libc::O_RDONLY | libc::O_CLOEXEC), allow),
            ("openat", at(libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NONBLOCK), allow),
            ("openat", at(libc::O_PATH | libc::O_RDWR | libc::O_CREAT), allow),
            ("openat", at(libc::O_WRONLY), notify),
            ("openat", at(libc::O_RDWR), notify),
            ("openat", at(libc::O_ACCMODE), notify),
            ("openat", at(libc::O_CREAT), notify),
            ("openat", at(libc::O_TRUNC), notify),
            ("openat", at(libc::O_TMPFILE | libc::O_RDWR), notify),
            ("openat2", at(0), enosys),
            ("mkdirat", [0; 6], notify),
            ("mknodat", [0; 6], notify),
            ("unlinkat", [0; 6], notify),
            ("renameat", [0; 6], notify),
            ("renameat2", [0; 6], notify),
            ("linkat", [0; 6], notify),
            ("symlinkat", [0; 6], notify),
            ("truncate", [0; 6], notify),
        ];
        for arch in BOTH {
            for reach in REACHES {
                for trees in [false, true] {
                    let program = compile(&table, arch, Scope { reach, trees }).unwrap();
                    for (name, args, want) in rows {
                        let number = arch.number(&table.numbers[*name]).unwrap();
                        let got = run(&program.0, &Call { number, arch: arch.audit(), args: *args });
                        assert_eq!(got, if trees { *want } else { allow }, "{name} {args:x?} {arch:?} {trees}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn filter_and_table_agree(pick in any::<prop::sample::Index>(), args in any::<[u64; 6]>()) {
            let table = Table::built_in().unwrap();
            let program = compile(&table, Arch::X86_64, WHOLE).unwrap();
            let numbers: Vec<u32> = table.numbers.values().filter_map(|n| Arch::X86_64.number(n)).collect();
            let number = *pick.get(&numbers);
            let got = run(&program.0, &Call { number, arch: Arch::X86_64.audit(), args });
            prop_assert_eq!(got, meant(&table, Arch::X86_64, WHOLE, number, &args));
        }
    }
}
