//! The rules of `profiles/seccomp/linux.toml`, which also explains them, as this crate's build has written them.

use nix::libc;

/// Every call that a rule names.
pub(super) const CALLS: &[(&str, Call)] = include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// What a server may reach, as far as the filter is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    fn covers(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Listed, Self::ListedMusl)
    }
}

/// Which rules hold for one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    pub reach: Reach,
    /// Whether the guardian writes to granted trees in the server's stead.
    pub trees: bool,
    /// Whether its input is a terminal: somebody has started it by hand, and types to it.
    pub terminal: bool,
    /// Version of the Landlock that governs it.
    pub landlock: u32,
    /// Whether what it does is written down.
    pub observed: bool,
}

/// A call, with its number where an architecture has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub x86_64: Option<u32>,
    pub aarch64: Option<u32>,
    /// The first whose conditions hold decides.
    pub rules: &'static [Rule],
}

impl Call {
    /// The rules that hold for one server, in order.
    pub fn rules(self, scope: Scope) -> impl Iterator<Item = &'static Rule> + Clone {
        self.rules.iter().filter(move |rule| rule.holds_for(scope))
    }
}

/// One rule of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub network: Option<Reach>,
    /// Only for servers whose granted trees the guardian writes to.
    pub trees: bool,
    /// Only for servers whose input is no terminal.
    pub no_terminal: bool,
    /// Only under a Landlock older than this.
    pub landlock_before: Option<u32>,
    pub when: &'static [Condition],
    pub action: Action,
}

impl Rule {
    fn holds_for(&self, scope: Scope) -> bool {
        self.network.is_none_or(|network| network.covers(scope.reach))
            && (scope.trees || !self.trees)
            && (!scope.terminal || !self.no_terminal)
            && self.landlock_before.is_none_or(|version| scope.landlock < version)
            && (scope.observed || self.action != Action::Log)
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Allow,
    Notify,
    /// The guardian writes it down and lets it go on. For observed servers only.
    Log,
    Pretend,
    NotPermitted,
    AccessDenied,
    NoSuchCall,
    NotSupported,
}

impl Action {
    /// The filter's return value (`SECCOMP_RET_*`, linux/seccomp.h).
    pub fn value(self) -> u32 {
        let errno = |e: i32| libc::SECCOMP_RET_ERRNO | (e.unsigned_abs() & libc::SECCOMP_RET_DATA);
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub arg: u8,
    pub mask: u32,
    pub test: Test,
}

impl Condition {
    /// Whether a call's arguments meet it.
    pub fn holds(&self, args: &[u64; 6]) -> bool {
        let argument = args.get(usize::from(self.arg)).copied().unwrap_or_default();
        let low = (argument & 0xffff_ffff) as u32 & self.mask;
        match self.test {
            Test::Is(values) => values.contains(&low),
            Test::Not(values) => !values.contains(&low),
        }
    }
}

/// What the masked argument must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// One of these.
    Is(&'static [u32]),
    /// None of these.
    Not(&'static [u32]),
}

impl Test {
    pub fn values(self) -> &'static [u32] {
        match self {
            Self::Is(values) | Self::Not(values) => values,
        }
    }
}

/// The call of that name.
#[cfg(test)]
pub(super) fn call(name: &str) -> Call {
    CALLS.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("{name} is not in the table")).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of this machine's architecture are those of `libc`.
    #[test]
    fn numbers_are_those_of_libc() {
        let mut checked = 0;
        macro_rules! check {
            ($($name:ident = $number:ident),* $(,)?) => {$(
                let Call { x86_64, aarch64, .. } = call(stringify!($name));
                let ours = if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 };
                assert_eq!(ours, Some(u32::try_from(libc::$number).unwrap()), stringify!($name));
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
            umask = SYS_umask,
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
            sched_setaffinity = SYS_sched_setaffinity,
            sched_setattr = SYS_sched_setattr,
            sched_setparam = SYS_sched_setparam,
            sched_setscheduler = SYS_sched_setscheduler,
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
        assert_eq!(checked + newer.len() + absent, CALLS.len());
    }
}
