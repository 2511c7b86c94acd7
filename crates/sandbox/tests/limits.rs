//! What a server can use up, and what happens then. With a control group where one can be made, and without.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use common::{Setup, users};
use firedoor_model::{launch::Access, limits::Limits};

/// The longest that a tree over its limits may live, on a busy machine.
const END: Duration = Duration::from_secs(15);

fn limits(text: &str) -> Limits {
    serde_json::from_str(text).unwrap()
}

/// A control group of our own with two controllers, delegated to a user as systemd would: the caller in one part, the
/// server's to be made beside it.
struct Delegated(PathBuf);

impl Delegated {
    /// The error is why there can be none.
    fn make(user: Option<u32>) -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup");
        let has = |file: &Path| {
            let text = fs::read_to_string(file).unwrap_or_default();
            ["memory", "pids", "cpu"].iter().all(|c| text.split_ascii_whitespace().any(|w| w == *c))
        };
        if !has(&root.join("cgroup.controllers")) {
            return Err("no control groups of version 2 with memory, pids and cpu".into());
        }
        let at = |e: std::io::Error| e.to_string();
        let own = Self(root.join(format!("firedoor-test-{}", std::process::id())));
        fs::write(root.join("cgroup.subtree_control"), "+memory +pids +cpu").map_err(at)?;
        fs::create_dir_all(own.0.join("caller")).map_err(at)?;
        fs::write(own.0.join("cgroup.subtree_control"), "+memory +pids +cpu").map_err(at)?;
        let user = user.unwrap_or(0);
        for path in ["", "cgroup.procs", "cgroup.subtree_control", "caller", "caller/cgroup.procs"] {
            std::os::unix::fs::chown(own.0.join(path), Some(user), Some(user)).map_err(at)?;
        }
        Ok(own)
    }

    /// Groups that were made for servers.
    fn made(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().flatten().filter_map(|e| e.file_name().into_string().ok());
        names.filter(|n| n.starts_with("firedoor-")).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.0.join("caller"));
        let _ = fs::remove_dir(&self.0);
    }
}

/// Runs one probe with limits: its output, what was told, and how long it took.
fn run(setup: &Setup, group: Option<&Delegated>) -> (String, String, Duration) {
    let mut command = setup.command(&["attempts", "verbose"]);
    if let Some(group) = group {
        let entrance = fs::OpenOptions::new().write(true).open(group.0.join("caller/cgroup.procs")).unwrap();
        let enter = move || std::io::Write::write_all(&mut &entrance, b"0");
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        // SAFETY: makes one system call.
        unsafe {
            command.pre_exec(enter)
        };
    }
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), begin.elapsed())
}

/// Each way to use things up, with the limits, and what is told. Empty: nothing, and the probe goes through.
fn cases(grouped: bool) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut cases = vec![
        ("hog:400", r#"{"memory":"100MiB"}"#, "100MiB of memory"),
        // Shared pages count once: 60 MiB, not 600.
        ("shared:60", r#"{"memory":"200MiB"}"#, ""),
    ];
    if !grouped {
        cases.push(("fork:100", r#"{"processes":40}"#, "40 processes and threads"));
        cases.push(("threads:100", r#"{"processes":40}"#, "40 processes and threads"));
        cases.push(("bomb:9", r#"{"processes":40}"#, "40 processes and threads"));
    }
    cases
}

fn check(user: Option<u32>, group: Option<&Delegated>) {
    for (probe, given, told) in cases(group.is_some()) {
        let mut setup = Setup::new(user);
        setup.step.args.push(probe.into());
        setup.step.confinement.limits = limits(given);
        let (output, errors, took) = run(&setup, group);
        let quota = if group.is_some() { "\"quota\":\"group\"" } else { "\"quota\":\"counted\"" };
        assert!(errors.contains(quota), "{probe} as {user:?}: {errors}");
        if told.is_empty() {
            assert_eq!(
                (output.as_str(), errors.contains("resource")),
                (format!("{probe}=ok\n").as_str(), false),
                "{errors}"
            );
        } else {
            assert!(errors.contains(told) && errors.contains("killed by SIGKILL"), "{probe} as {user:?}: {errors}");
            assert_eq!(output, "", "{probe} as {user:?}");
            assert!(took < END, "{probe} as {user:?} took {took:?}");
        }
        assert_eq!(group.map(Delegated::made).unwrap_or_default(), [""; 0], "{probe} leaves its group");
    }
}

#[test]
fn without_a_control_group_the_guardian_counts() {
    for user in users() {
        check(user, None);
    }
}

#[test]
fn a_control_group_keeps_the_limits_where_there_can_be_one() {
    for user in users() {
        let group = match Delegated::make(user) {
            Ok(group) => group,
            Err(why) => {
                println!("NOT TESTED: control groups: {why}");
                return;
            }
        };
        check(user, Some(&group));
        // The kernel refuses more processes; the server lives on, and it is told.
        for probe in ["fork:100", "threads:100"] {
            let mut setup = Setup::new(user);
            setup.step.args.push(probe.into());
            setup.step.confinement.limits = limits(r#"{"processes":40,"cpu":50}"#);
            let (output, errors, _) = run(&setup, Some(&group));
            assert_eq!(output, format!("{probe}=EAGAIN\n"), "as {user:?}: {errors}");
            assert!(errors.contains("40 processes and threads") && errors.contains("it gets no more"), "{errors}");
            assert_eq!(group.made(), [""; 0]);
        }
    }
}

#[test]
fn the_kernel_limits_each_process() {
    for user in users() {
        let mut setup = Setup::new(user);
        setup.grant("out", Access::Write);
        setup.step.confinement.grants.push(common::grant("/proc", Access::Read));
        fs::create_dir(setup.dir().join("out")).unwrap();
        setup.own_everything();
        let (small, large) =
            (setup.dir().join("out/a").display().to_string(), setup.dir().join("out/b").display().to_string());
        setup.step.confinement.limits = limits(r#"{"files":64,"file_size":"8MiB"}"#);
        let answers = setup.probe(&["files:50", "files:70", &format!("filesize:{small}"), "oomscore:500"]);
        assert_eq!(answers, format!("files:50=ok\nfiles:70=EMFILE\nfilesize:{small}=ok\noomscore:500=ok\n"));
        setup.step.confinement.limits = limits(r#"{"file_size":"1MiB"}"#);
        let answers = setup.probe(&["files:70", &format!("filesize:{large}")]);
        assert_eq!(answers, format!("files:70=ok\nfilesize:{large}=EFBIG\n"));
    }
}
