//! What a lesser machine gives: the level, the reasons, and what is really enforced there.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "shared with the other test programs")]
mod common;

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use common::{Setup, users};
use firedoor_model::{
    launch::{Access, Network},
    limits::Limits,
    network::Hosts,
};
use serde_json::Value;

/// Words for the machine, level, what is judged, a part of what is missing, and what signals to outside meet.
const MACHINES: &[(&[&str], &str, bool, &str, &str)] = &[
    (&["landlock=6"], "full", true, "", "EPERM"),
    (&["landlock=5"], "partial", true, "signals are judged by the guardian alone", "EPERM"),
    (&["landlock=4"], "partial", true, "signals are judged by the guardian alone", "EPERM"),
    (&["landlock=3"], "partial", true, "TCP is denied by the seccomp filter alone", "EPERM"),
    (&["landlock=2"], "partial", true, "TCP is denied by the seccomp filter alone", "EPERM"),
    (&["landlock=1"], "partial", true, "renames across directories fail, which breaks npm", "EPERM"),
    (&["no-notification"], "offline", false, "does not hand system calls", "EPERM"),
    (&["no-descriptors"], "offline", false, "does not hand system calls", "EPERM"),
    // Nobody judges signals here, and the level says so.
    (&["landlock=5", "no-notification"], "partial", false, "can send signals to the user's other processes", "ok"),
];

/// Landlock of this kernel.
fn newest() -> u32 {
    let report = firedoor_sandbox::doctor();
    assert!(report.descriptors, "NOT TESTED: {report:?}");
    report.landlock_abi
}

/// An unconfined process of a user, in a group of its own.
fn bystander(user: Option<u32>) -> Child {
    let mut command = Command::new("/bin/sleep");
    command.arg("600").stdin(Stdio::null()).process_group(0);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.spawn().unwrap()
}

#[test]
fn a_lesser_machine_gives_less_and_says_so() {
    let newest = newest();
    let outside = common::sink();
    let address = outside.local_addr().unwrap();
    for user in users() {
        // Of the same user, and none of the server's business.
        let mut bystander = bystander(user);
        let pid = bystander.id();
        for (words, level, judged, missing, signal) in MACHINES {
            let landlock = words.iter().find_map(|w| w.strip_prefix("landlock=")?.parse().ok()).unwrap_or(6);
            if landlock > newest {
                println!("NOT TESTED: {words:?}: this kernel has Landlock {newest}");
                continue;
            }
            let mut setup = Setup::new(user);
            setup.step.confinement.network = Network::Hosts(Hosts::default());
            let probes: Vec<String> = ["kill", "killgroup", "tkill", "tgkill", "pidfdkill"]
                .iter()
                .map(|kind| format!("{kind}:{pid}"))
                .chain(["setown", "ownsignals", "ptrace"].iter().map(|kind| format!("{kind}:{pid}")))
                .chain([format!("connect:{address}"), "read:/etc/hostname".into()])
                .collect();
            setup.step.args = ["probe".to_owned()].into_iter().chain(probes).map(Into::into).collect();
            let (output, errors) = setup.run(&[words, &["verbose"][..]].concat());
            let json = errors.lines().find_map(|l| serde_json::from_str::<Value>(l.split_once(' ')?.1).ok());
            let outcome = json.unwrap_or_else(|| panic!("{words:?}: {errors}"));
            assert_eq!(
                (outcome["level"].as_str(), outcome["judged"].as_bool()),
                (Some(*level), Some(*judged)),
                "{words:?}"
            );
            let reasons = outcome["missing"].to_string();
            assert!(reasons.contains(missing) && (missing.is_empty() == (reasons == "[]")), "{words:?}: {reasons}");
            assert_eq!(outcome["scoped"].as_bool(), Some(landlock >= 6), "{words:?}");
            for line in output.lines() {
                let (probe, answer) = line.split_once('=').unwrap_or((line, ""));
                let want = match probe.split(':').next().unwrap_or_default() {
                    "ownsignals" => "ok",
                    // Landlock refuses the signal later, not the registration.
                    "setown" if landlock >= 6 => "ok",
                    "connect" | "read" => "EACCES",
                    "setown" | "ptrace" => "EPERM",
                    _ => signal,
                };
                assert_eq!(answer, want, "{words:?} as {user:?}: {probe}\n{output}");
            }
            assert_eq!(output.lines().count(), 10, "{words:?}: {output}{errors}");
        }
        let _ = bystander.kill();
        let _ = bystander.wait();
    }
}

/// Nothing outside the grants can be emptied, whichever Landlock there is.
#[test]
fn files_are_truncated_where_granted_only() {
    let newest = newest();
    let protected: toml::Table = toml::from_str(include_str!("../../../profiles/sandbox/protected.toml")).unwrap();
    for user in users() {
        for (words, by_path) in [
            (&["landlock=1"][..], "ok"),
            (&["landlock=2"], "ok"),
            (&["landlock=3"], "ok"),
            (&["landlock=2", "no-notification"], "EACCES"),
            (&["landlock=3", "no-notification"], "EACCES"),
        ] {
            let landlock: u32 = words[0].strip_prefix("landlock=").unwrap().parse().unwrap();
            assert!(landlock <= newest, "NOT TESTED: this kernel has Landlock {newest}");
            let mut setup = Setup::new(user);
            setup.step.confinement.network = Network::Hosts(Hosts::default());
            setup.step.confinement.protected = protected["tree"].clone().try_into().unwrap();
            setup.step.confinement.limits = Limits { file_size: Some("1MiB".parse().unwrap()), ..Limits::default() };
            for dir in ["read", "written", "edited", "closed", "edited/.git"] {
                fs::create_dir_all(setup.dir().join(dir)).unwrap();
                for file in ["a", "b", "c", "d", "config"] {
                    fs::write(setup.dir().join(dir).join(file), "text").unwrap();
                }
            }
            setup.grant("read", Access::Read);
            setup.grant("written", Access::Write);
            setup.grant("edited", Access::Edit);
            setup.own_everything();
            let edited = |granted: &'static str| if words.len() > 1 { "EACCES" } else { granted };
            let rows = [
                ("cutbypath", "closed/a", "EACCES"),
                ("cutbypath", "read/a", "EACCES"),
                ("cutbypath", "read", if by_path == "ok" { "EACCES" } else { by_path }),
                ("cutbypath", "edited/.git/config", "EACCES"),
                ("openandcut", "closed/b", "EACCES"),
                ("openandcut", "read/b", "EACCES"),
                ("opennothingandcut", "closed/c", "EACCES"),
                ("opennothingandcut", "read/c", "EACCES"),
                ("createandcut", "closed/d", "EACCES"),
                ("createandcut", "read/d", "EACCES"),
                ("growbypath", "written/a", if by_path == "ok" { "EFBIG" } else { by_path }),
                ("cutbypath", "written/a", by_path),
                // Nobody opens it in the server's stead.
                ("openandcut", "written/b", "EACCES"),
                ("openandcut", "edited/b", edited("ok")),
                ("createandcut", "written/c", "ok"),
                ("cutbypath", "edited/a", edited("ok")),
                ("createandcut", "edited/c", edited("ok")),
            ];
            let rows: Vec<(String, &str)> = rows
                .into_iter()
                .map(|(kind, name, want)| (format!("{kind}:{}", setup.dir().join(name).display()), want))
                .collect();
            setup.step.args = ["probe".to_owned()]
                .into_iter()
                .chain(rows.iter().map(|(probe, _)| probe.clone()))
                .map(Into::into)
                .collect();
            let (output, errors) = setup.run(words);
            let want: String = rows.iter().map(|(probe, want)| format!("{probe}={want}\n")).collect();
            assert_eq!(output, want, "{words:?} as {user:?}: {errors}");
            for dir in ["closed", "read", "edited/.git"] {
                for file in fs::read_dir(setup.dir().join(dir)).unwrap() {
                    let file = file.unwrap().path();
                    assert_eq!(fs::metadata(&file).unwrap().len(), 4, "{words:?}: {}", file.display());
                }
            }
        }
    }
}

#[test]
fn without_landlock_nothing_runs() {
    let setup = Setup::new(None);
    let output = setup.command(&["landlock=0"]).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.is_empty() && errors.contains("Landlock is not available"), "{errors}");
}

/// An install step is of no use without its proxy.
#[test]
fn an_install_step_is_not_started_where_connections_cannot_be_judged() {
    let proxy = common::sink();
    for word in ["no-notification", "no-descriptors"] {
        let mut setup = Setup::new(None);
        setup.step.confinement.network = Network::Proxy(common::v4(&proxy));
        let (output, errors) = setup.run(&[word]);
        assert!(output.is_empty() && errors.contains("cannot"), "{word}: {output}{errors}");
    }
}
