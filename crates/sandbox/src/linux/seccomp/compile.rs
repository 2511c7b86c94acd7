//! From the table to a program.

use nix::libc::{self, sock_filter};

use super::{
    TooLong,
    bpf::{Assembler, Label},
    table::{Action, CALLS, Call, Condition, Rule, Scope, Test},
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

    fn number(self, call: Call) -> Option<u32> {
        match self {
            Self::X86_64 => call.x86_64,
            Self::Aarch64 => call.aarch64,
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

/// Most numbers that are compared one after the other.
const IN_A_ROW: usize = 4;

/// Compiles the table's rules for one architecture and scope.
///
/// The program looks the call's number up by halves: the kernel runs a filter for every number when it is installed
/// (`seccomp_cache_prepare` in kernel/seccomp.c), and for every call with conditions. The part for one number ends in a
/// return on every path.
pub(crate) fn compile(arch: Arch, scope: Scope) -> Result<Program, TooLong> {
    let mut a = Assembler::default();
    prologue(&mut a, arch);
    let numbered = CALLS.iter().filter_map(|(_, call)| Some((arch.number(*call)?, *call)));
    let mut calls: Vec<_> = numbered.filter(|(_, call)| call.rules(scope).next().is_some()).collect();
    calls.sort_unstable_by_key(|(number, _)| *number);
    search(&mut a, &calls, scope);
    a.assemble().map(Program)
}

/// Finds the rules for the number that was loaded, among these, which are sorted.
fn search(a: &mut Assembler, calls: &[(u32, Call)], scope: Scope) {
    let (below, above) = calls.split_at(calls.len() / 2);
    match above.first() {
        Some((middle, _)) if calls.len() > IN_A_ROW => {
            let (far, lower, upper) = (a.label(), a.label(), a.label());
            a.if_at_least(*middle, far, lower);
            a.bind(far);
            a.jump(upper);
            a.bind(lower);
            search(a, below, scope);
            a.bind(upper);
            search(a, above, scope);
        }
        _ => {
            calls.iter().for_each(|(number, call)| one(a, *number, *call, scope));
            a.ret(libc::SECCOMP_RET_ALLOW);
        }
    }
}

/// Decides about one call. Goes on behind it with any other number.
fn one(a: &mut Assembler, number: u32, call: Call, scope: Scope) {
    let (matching, other) = (a.label(), a.label());
    a.if_equal(number, matching, other);
    a.bind(matching);
    for rule in call.rules(scope) {
        let next = a.label();
        rule.when.iter().for_each(|c| condition(a, c, next));
        a.ret(rule.action.value());
        a.bind(next);
    }
    a.ret(libc::SECCOMP_RET_ALLOW);
    a.bind(other);
}

/// The calls of one architecture and scope that are only written down.
///
/// A call is let go on only when this says so: everything else that the filter notifies is performed by the guardian.
#[derive(Clone, Debug)]
pub(crate) struct Logged(Vec<(u32, Vec<&'static Rule>)>);

impl Logged {
    /// Those of an architecture and a scope.
    pub fn of(arch: Arch, scope: Scope) -> Self {
        let rules = CALLS.iter().filter_map(|(_, call)| Some((arch.number(*call)?, call.rules(scope).collect())));
        let logs = |(_, rules): &(u32, Vec<&Rule>)| rules.iter().any(|r| r.action == Action::Log);
        Self(rules.filter(logs).collect())
    }

    /// Whether the first rule that decides about a call only writes it down. Looks at registers only, as the filter does.
    pub fn contains(&self, number: i32, args: &[u64; 6]) -> bool {
        let rules = self.0.iter().find(|(n, _)| i64::from(*n) == i64::from(number)).map(|(_, rules)| rules);
        let first = rules.and_then(|rules| rules.iter().find(|r| r.when.iter().all(|c| c.holds(args))));
        first.is_some_and(|rule| rule.action == Action::Log)
    }
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
mod tests;
