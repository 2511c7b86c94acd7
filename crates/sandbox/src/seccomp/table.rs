//! The table of rules as it stands in `profiles/seccomp/linux.toml`, which also explains its fields.

use std::collections::{BTreeMap, BTreeSet};

use nix::libc;
use serde::Deserialize;

/// The table in this build.
const SOURCE: &str = include_str!("../../../../profiles/seccomp/linux.toml");

/// What a server may reach, as far as the filter is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    /// No network.
    None,
    /// The proxy, through the guardian.
    Proxy,
    /// What lists of hosts and Unix sockets allow, through the guardian.
    Listed,
    /// The same, for a program that uses musl.
    ListedMusl,
}

impl Reach {
    pub fn is_listed(self) -> bool {
        matches!(self, Self::Listed | Self::ListedMusl)
    }

    /// Whether a rule for servers with this network holds for those with `other`.
    pub fn covers(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Listed, Self::ListedMusl)
    }
}

/// Which rules hold for one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    pub reach: Reach,
    /// Whether the guardian writes to granted trees in the server's stead.
    pub trees: bool,
}

/// The table is not what it must be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    #[error("it is not valid TOML of the expected form: {0}")]
    Form(#[from] toml::de::Error),
    #[error("a rule names {0:?}, which is not in [numbers]")]
    NoNumber(String),
    #[error("[numbers] lists {0:?}, which no rule names")]
    Unused(String),
    #[error("{0:?} and {1:?} have the same number")]
    SameNumber(String, String),
    #[error("a rule for {0:?} tests argument {1}, but system calls have arguments 0 to 5")]
    Argument(String, u8),
    #[error("a rule for {0:?} compares with {1:#x}, which lies outside its mask {2:#x} and so is never found")]
    OutsideMask(String, u32, u32),
    #[error("a rule for {0:?} has an empty list")]
    EmptyList(String),
    #[error("the program is too long for a filter or for one of its jumps ({0})")]
    TooLong(usize),
}

/// Number of a call on one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    /// It has this number.
    Is(u32),
    /// The architecture has no such call.
    Lacks(Absent),
}

/// The word `absent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Absent {
    /// A decision, not an oversight.
    Absent,
}

/// Numbers of one call. Both architectures are required.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbers {
    pub x86_64: Number,
    pub aarch64: Number,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Action {
    #[serde(rename = "allow")]
    Allow,
    #[serde(rename = "kill")]
    Kill,
    #[serde(rename = "notify")]
    Notify,
    /// The guardian writes it down and lets it go on. For observed servers only.
    #[serde(rename = "log")]
    Log,
    #[serde(rename = "pretend")]
    Pretend,
    #[serde(rename = "EPERM")]
    NotPermitted,
    #[serde(rename = "EACCES")]
    AccessDenied,
    #[serde(rename = "ENOSYS")]
    NoSuchCall,
    #[serde(rename = "EOPNOTSUPP")]
    NotSupported,
}

impl Action {
    /// The filter's return value (`SECCOMP_RET_*`, linux/seccomp.h).
    pub fn value(self) -> u32 {
        let errno = |e: i32| libc::SECCOMP_RET_ERRNO | (e.unsigned_abs() & libc::SECCOMP_RET_DATA);
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Notify | Self::Log => libc::SECCOMP_RET_USER_NOTIF,
            Self::Pretend => errno(0),
            Self::NotPermitted => errno(libc::EPERM),
            Self::AccessDenied => errno(libc::EACCES),
            Self::NoSuchCall => errno(libc::ENOSYS),
            Self::NotSupported => errno(libc::EOPNOTSUPP),
        }
    }
}

/// One condition on the low half of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    pub arg: u8,
    #[serde(default = "all_bits")]
    pub mask: u32,
    #[serde(flatten)]
    pub test: Test,
}

fn all_bits() -> u32 {
    u32::MAX
}

/// What the masked argument must be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Test {
    /// One of these.
    Is(Vec<u32>),
    /// None of these.
    Not(Vec<u32>),
}

impl Test {
    pub fn values(&self) -> &[u32] {
        match self {
            Self::Is(values) | Self::Not(values) => values,
        }
    }
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub calls: Vec<String>,
    pub network: Option<Reach>,
    /// Only for servers whose granted trees the guardian writes to.
    #[serde(default)]
    pub trees: bool,
    /// The rule holds only where Landlock does not keep signals inside the sandbox.
    #[serde(default)]
    pub unscoped: bool,
    #[serde(default)]
    pub when: Vec<Condition>,
    pub action: Action,
    /// For readers of the file; required so that no row is without one.
    #[serde(rename = "reason")]
    pub _reason: String,
}

/// The whole table, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub numbers: BTreeMap<String, Numbers>,
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

impl Table {
    /// The table in this build, for servers that are not observed.
    pub fn built_in() -> Result<Self, TableError> {
        let mut table = Self::observing()?;
        table.rules.retain(|r| r.action != Action::Log);
        Ok(table)
    }

    /// The same without what is only needed where signals are not kept inside the sandbox.
    pub fn for_signals(mut self, scoped: bool) -> Self {
        self.rules.retain(|r| !(scoped && r.unscoped));
        self
    }

    /// The table in this build, for observed servers.
    pub fn observing() -> Result<Self, TableError> {
        Self::parse(SOURCE)
    }

    /// Reads and checks a table.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let table: Self = toml::from_str(text)?;
        table.check_numbers()?;
        for rule in &table.rules {
            for name in &rule.calls {
                for condition in &rule.when {
                    condition.check(name)?;
                }
            }
        }
        Ok(table)
    }

    fn check_numbers(&self) -> Result<(), TableError> {
        let named: BTreeSet<&String> = self.rules.iter().flat_map(|r| &r.calls).collect();
        if let Some(name) = named.iter().find(|name| !self.numbers.contains_key(**name)) {
            return Err(TableError::NoNumber((*name).clone()));
        }
        if let Some(name) = self.numbers.keys().find(|name| !named.contains(name)) {
            return Err(TableError::Unused(name.clone()));
        }
        for of in [|n: &Numbers| n.x86_64, |n: &Numbers| n.aarch64] {
            let mut seen: BTreeMap<u32, &String> = BTreeMap::new();
            for (name, numbers) in &self.numbers {
                if let Number::Is(number) = of(numbers)
                    && let Some(other) = seen.insert(number, name)
                {
                    return Err(TableError::SameNumber(other.clone(), name.clone()));
                }
            }
        }
        Ok(())
    }
}

impl Condition {
    /// Whether a call's arguments meet it.
    pub fn holds(&self, args: &[u64; 6]) -> bool {
        let argument = args.get(usize::from(self.arg)).copied().unwrap_or_default();
        let low = (argument & 0xffff_ffff) as u32 & self.mask;
        match &self.test {
            Test::Is(values) => values.contains(&low),
            Test::Not(values) => !values.contains(&low),
        }
    }

    fn check(&self, call: &str) -> Result<(), TableError> {
        if self.arg > 5 {
            return Err(TableError::Argument(call.to_owned(), self.arg));
        }
        if self.test.values().is_empty() {
            return Err(TableError::EmptyList(call.to_owned()));
        }
        match self.test.values().iter().find(|v| **v & !self.mask != 0) {
            Some(value) => Err(TableError::OutsideMask(call.to_owned(), *value, self.mask)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Table::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn faults_are_refused() {
        let rule = |rest: &str| {
            format!(
                "[numbers]\na = {{ x86_64 = 1, aarch64 = \"absent\" }}\n[[rule]]\ncalls = [\"a\"]\naction = \"EPERM\"\nreason = \"r\"\n{rest}"
            )
        };
        assert!(Table::parse(&rule("")).is_ok());
        for (text, want) in [
            (rule("[[rule]]\ncalls = [\"b\"]\naction = \"EPERM\"\nreason = \"r\""), "\"b\", which is not in [numbers]"),
            (rule("when = [{ arg = 6, is = [1] }]"), "argument 6"),
            (rule("when = [{ arg = 0, is = [] }]"), "empty list"),
            (rule("when = [{ arg = 0, mask = 0xf, is = [0x10] }]"), "outside its mask"),
            (rule("when = [{ arg = 0, is = [1], not = [2] }]"), "TOML"),
            (rule("when = [{ arg = 0, equals = [1] }]"), "TOML"),
            (rule("network = \"all\""), "TOML"),
            (rule("").replace("EPERM", "EWHAT"), "TOML"),
            (rule("").replace("reason", "because"), "TOML"),
            (rule("").replace(", aarch64 = \"absent\"", ""), "TOML"),
            (rule("").replace("\"absent\"", "\"unknown\""), "TOML"),
            (rule("").replace("[[rule]]", "b = { x86_64 = 2, aarch64 = 2 }\n[[rule]]"), "no rule names"),
            (
                rule("")
                    .replace("[[rule]]", "b = { x86_64 = 1, aarch64 = 2 }\n[[rule]]")
                    .replace("[\"a\"]", "[\"a\", \"b\"]"),
                "same number",
            ),
        ] {
            let got = refusal(&text);
            assert!(got.contains(want), "{text}\n{got}");
        }
    }

    /// The numbers of this machine's architecture are those of `libc`.
    #[test]
    fn numbers_are_those_of_libc() {
        let table = Table::built_in().unwrap();
        let mut checked = 0;
        macro_rules! check {
            ($($name:ident = $number:ident),* $(,)?) => {$(
                let numbers = table.numbers.get(stringify!($name)).unwrap();
                let ours = if cfg!(target_arch = "x86_64") { numbers.x86_64 } else { numbers.aarch64 };
                assert_eq!(ours, Number::Is(u32::try_from(libc::$number).unwrap()), stringify!($name));
                checked += 1;
            )*};
        }
        check!(
            acct = SYS_acct,
            add_key = SYS_add_key,
            bpf = SYS_bpf,
            chroot = SYS_chroot,
            clone = SYS_clone,
            clone3 = SYS_clone3,
            connect = SYS_connect,
            execve = SYS_execve,
            execveat = SYS_execveat,
            linkat = SYS_linkat,
            mkdirat = SYS_mkdirat,
            openat = SYS_openat,
            openat2 = SYS_openat2,
            renameat = SYS_renameat,
            renameat2 = SYS_renameat2,
            symlinkat = SYS_symlinkat,
            truncate = SYS_truncate,
            unlinkat = SYS_unlinkat,
            delete_module = SYS_delete_module,
            fanotify_init = SYS_fanotify_init,
            fanotify_mark = SYS_fanotify_mark,
            fcntl = SYS_fcntl,
            kill = SYS_kill,
            pidfd_send_signal = SYS_pidfd_send_signal,
            rt_sigqueueinfo = SYS_rt_sigqueueinfo,
            rt_tgsigqueueinfo = SYS_rt_tgsigqueueinfo,
            tgkill = SYS_tgkill,
            tkill = SYS_tkill,
            fchmod = SYS_fchmod,
            fchmodat = SYS_fchmodat,
            fchmodat2 = SYS_fchmodat2,
            fchown = SYS_fchown,
            fchownat = SYS_fchownat,
            fremovexattr = SYS_fremovexattr,
            fsetxattr = SYS_fsetxattr,
            lremovexattr = SYS_lremovexattr,
            lsetxattr = SYS_lsetxattr,
            removexattr = SYS_removexattr,
            setxattr = SYS_setxattr,
            utimensat = SYS_utimensat,
            finit_module = SYS_finit_module,
            fsconfig = SYS_fsconfig,
            fsmount = SYS_fsmount,
            fsopen = SYS_fsopen,
            fspick = SYS_fspick,
            init_module = SYS_init_module,
            io_uring_enter = SYS_io_uring_enter,
            io_uring_register = SYS_io_uring_register,
            io_uring_setup = SYS_io_uring_setup,
            ioctl = SYS_ioctl,
            ioprio_set = SYS_ioprio_set,
            kcmp = SYS_kcmp,
            kexec_file_load = SYS_kexec_file_load,
            kexec_load = SYS_kexec_load,
            keyctl = SYS_keyctl,
            bind = SYS_bind,
            listen = SYS_listen,
            lookup_dcookie = SYS_lookup_dcookie,
            migrate_pages = SYS_migrate_pages,
            mount = SYS_mount,
            mount_setattr = SYS_mount_setattr,
            move_mount = SYS_move_mount,
            move_pages = SYS_move_pages,
            mq_open = SYS_mq_open,
            mq_unlink = SYS_mq_unlink,
            msgctl = SYS_msgctl,
            msgget = SYS_msgget,
            msgrcv = SYS_msgrcv,
            msgsnd = SYS_msgsnd,
            open_by_handle_at = SYS_open_by_handle_at,
            open_tree = SYS_open_tree,
            perf_event_open = SYS_perf_event_open,
            personality = SYS_personality,
            pidfd_getfd = SYS_pidfd_getfd,
            pivot_root = SYS_pivot_root,
            prctl = SYS_prctl,
            prlimit64 = SYS_prlimit64,
            process_madvise = SYS_process_madvise,
            process_mrelease = SYS_process_mrelease,
            process_vm_readv = SYS_process_vm_readv,
            process_vm_writev = SYS_process_vm_writev,
            ptrace = SYS_ptrace,
            quotactl = SYS_quotactl,
            quotactl_fd = SYS_quotactl_fd,
            reboot = SYS_reboot,
            request_key = SYS_request_key,
            semctl = SYS_semctl,
            semget = SYS_semget,
            semop = SYS_semop,
            semtimedop = SYS_semtimedop,
            sendmmsg = SYS_sendmmsg,
            recvfrom = SYS_recvfrom,
            recvmsg = SYS_recvmsg,
            sendmsg = SYS_sendmsg,
            sendto = SYS_sendto,
            setns = SYS_setns,
            setpriority = SYS_setpriority,
            setsockopt = SYS_setsockopt,
            shmat = SYS_shmat,
            shmctl = SYS_shmctl,
            shmget = SYS_shmget,
            socket = SYS_socket,
            socketpair = SYS_socketpair,
            swapoff = SYS_swapoff,
            swapon = SYS_swapon,
            syslog = SYS_syslog,
            umount2 = SYS_umount2,
            unshare = SYS_unshare,
            userfaultfd = SYS_userfaultfd,
            vhangup = SYS_vhangup,
            mknodat = SYS_mknodat,
        );
        #[cfg(target_arch = "x86_64")]
        check!(
            chmod = SYS_chmod,
            chown = SYS_chown,
            creat = SYS_creat,
            link = SYS_link,
            mkdir = SYS_mkdir,
            open = SYS_open,
            rename = SYS_rename,
            rmdir = SYS_rmdir,
            symlink = SYS_symlink,
            unlink = SYS_unlink,
            lchown = SYS_lchown,
            utime = SYS_utime,
            utimes = SYS_utimes,
            futimesat = SYS_futimesat,
            ioperm = SYS_ioperm,
            iopl = SYS_iopl,
            modify_ldt = SYS_modify_ldt,
            uselib = SYS_uselib,
            mknod = SYS_mknod,
        );
        // `libc` has no number yet for what is newest.
        let newer = ["file_setattr", "open_tree_attr", "removexattrat", "setxattrat"];
        let absent = if cfg!(target_arch = "x86_64") { 0 } else { 19 };
        assert_eq!(checked + newer.len() + absent, table.numbers.len());
    }
}
