//! Every way in which a file can be unfit or unwilling.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use firedoor_clients::FileError;
use nix::{sys::stat::Mode, unistd::geteuid};

use crate::home::{Home, one, read};

const CLAUDE: &str = "home/.claude.json";
const CURSOR: &str = "home/.cursor/mcp.json";
const GEMINI: &str = "home/.gemini/settings.json";
const CODEX: &str = "home/.codex/config.toml";
const SERVER: &str = r#"{"mcpServers":{"s":{"command":"x","args":["1"]}}}"#;

#[test]
fn unfit_content_is_reported_and_left_alone() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (place, content, want) in [
        (CLAUDE, b"{\n  // c\n}".to_vec(), "line 2, column 3: comments are not allowed"),
        (CLAUDE, b"{\"a\":1,}".to_vec(), "line 1, column 7: trailing commas are not allowed"),
        (CLAUDE, b"{\"a\":\"\x01\"}".to_vec(), "line 1, column"),
        (CLAUDE, b"{\"a\":01}".to_vec(), "line 1, column"),
        (GEMINI, b"{\"a\":1, // c\n}".to_vec(), "line 1, column 7: trailing commas are not allowed"),
        (GEMINI, b"{/*/ */\"a\":\"//\x01\"}".to_vec(), "line 1, column"),
        (GEMINI, b"\xef\xbb\xbf{}".to_vec(), "line 1, column 1: it begins with a byte order mark"),
        (CODEX, b"[a]\nb=1\n[a]\n".to_vec(), "line 3, column 2: duplicate key"),
        (CODEX, b"[a]\nb=1\n\xc3\xa9\n".to_vec(), "line 3, column 2: key with no value"),
        (CODEX, b"[mcp_servers.x]\ncommand='a'\ncommand='b'\n".to_vec(), "line 3, column 1: duplicate key"),
        (CODEX, b"mcp_servers={a={command='x'},\n# no\n".to_vec(), "line "),
        (CODEX, format!("a={}1{}", "[".repeat(5000), "]".repeat(5000)).into_bytes(), "recursion"),
        (CODEX, b"a='\xe9'".to_vec(), "is not UTF-8: save it as UTF-8"),
        (CURSOR, b"{\n \"a\" 1}".to_vec(), "line 2, column 6: expected colon"),
        (CURSOR, b"{'a':1}".to_vec(), "single-quoted strings"),
        (CURSOR, b"{\"a\":1 \"b\":2}".to_vec(), "expected comma"),
        (CURSOR, b"{} {}".to_vec(), "more than one json value"),
        (CURSOR, deep.into_bytes(), "nesting depth"),
        (CURSOR, [b"\xff\xfe".to_vec(), utf16.clone()].concat(), "not UTF-8 but UTF-16"),
        (CURSOR, utf16, "not UTF-8 but UTF-16"),
        (CURSOR, b"{\"a\":\"\xe9\"}".to_vec(), "is not UTF-8: save it as UTF-8"),
        (
            CURSOR,
            vec![b' '; 4 * 1024 * 1024 + 1],
            "is larger than 4194304 bytes, and no larger file of this client is read: with the client closed",
        ),
    ] {
        let home = Home::new();
        let path = home.write(place, &content);
        let problem = home.problem();
        assert!(problem.contains(want) && problem.contains("/home/"), "{want}: {problem}");
        let plan = home.clients.plan_protect(&home.env(), &Default::default(), &home.shim()).unwrap();
        assert_eq!((plan.files.len(), plan.problems.len()), (0, 1));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn more_servers_than_anybody_has_are_refused() {
    let names = |server: fn(usize) -> String, join: &str| (0..1001).map(server).collect::<Vec<_>>().join(join);
    let json = format!("{{\"mcpServers\":\n{{{}}}}}", names(|n| format!("\"s{n}\":{{}}"), ","));
    let toml = format!("\n[mcp_servers]\n{}", names(|n| format!("s{n} = {{}}"), "\n"));
    for (place, content, line) in [(CURSOR, json, 2), (CODEX, toml, 2)] {
        let home = Home::new();
        home.write(place, content);
        let want = format!("line {line}, column 1: more than 1000 servers");
        assert!(home.problem().contains(&want), "{}", home.problem());
    }
}

#[test]
fn nothing_in_it_is_no_problem() {
    for content in ["", " \n", "{}", "[]", "null", r#"{"mcpServers":null}"#, r#"{"projects":{"/x":3}}"#] {
        let home = Home::new();
        home.write(CLAUDE, content);
        assert_eq!((home.problem().as_str(), home.entries().len()), ("", 0), "{content:?}");
    }
    let tables = [
        "",
        "# c\n",
        "mcp_servers = 1",
        "[mcp_servers]",
        "[[mcp_servers]]\ncommand = 'x'",
        "a.mcp_servers.b.command = 'x'",
    ];
    for content in tables {
        let home = Home::new();
        home.write(CODEX, content);
        assert_eq!((home.problem().as_str(), home.entries().len()), ("", 0), "{content:?}");
    }
}

#[test]
fn only_regular_files_are_read() {
    type Make = fn(&Path);
    let cases: [(Make, &str); 5] = [
        (|p| nix::unistd::mkfifo(p, Mode::S_IRWXU).unwrap(), "is a named pipe"),
        (|p| fs::create_dir(p).unwrap(), "is a directory"),
        (|p| symlink("/dev/zero", p).unwrap(), "is a device"),
        (|p| symlink("nowhere", p).unwrap(), "a symbolic link to nothing"),
        (|p| symlink(p, p).unwrap(), "a loop of symbolic links"),
    ];
    for (make, want) in cases {
        let home = Home::new();
        make(&home.at(CLAUDE));
        assert!(home.problem().contains(want), "{want}: {}", home.problem());
    }
}

#[test]
fn a_link_stays_and_its_target_is_edited() {
    let home = Home::new();
    let target = home.write("dotfiles/claude.json", SERVER);
    fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
    symlink("../dotfiles/claude.json", home.at(CLAUDE)).unwrap();
    one(home.protect(&[])).unwrap();
    assert!(fs::symlink_metadata(home.at(CLAUDE)).unwrap().is_symlink());
    assert_eq!(home.states()["s"], "protected");
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
    one(home.restore(&[])).unwrap();
    assert_eq!(read(&target), SERVER);
    assert_eq!(fs::read_dir(home.at("dotfiles")).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(fs::read_dir(home.at("home")).unwrap().count(), 2, "nor our lock: only the link and .local");
}

#[test]
fn mode_owner_and_attributes_are_kept() {
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
    let labelled = xattr::set(&path, "user.firedoor-test", b"kept").is_ok();
    if geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), Some(23456)).unwrap();
    }
    let before = fs::metadata(&path).unwrap();
    one(home.protect(&[])).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.mode(), before.uid(), before.gid()), (after.mode(), after.uid(), after.gid()));
    if labelled {
        assert_eq!(xattr::get(&path, "user.firedoor-test").unwrap().as_deref(), Some(b"kept".as_slice()));
    }
}

#[test]
fn backups_are_private() {
    let home = Home::new();
    home.write(CLAUDE, SERVER);
    one(home.protect(&[])).unwrap();
    let dir = home.at("home/.local/state/firedoor/backups");
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3, "original, record, lock");
    for file in &files {
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{file:?}");
    }
    assert!(files.iter().any(|f| fs::read(f.path()).unwrap() == SERVER.as_bytes()));
}

#[test]
fn a_damaged_journal_does_not_hinder_restoring() {
    for damage in ["", "{\"target\":", "[1]"] {
        let home = Home::new();
        let path = home.write(CLAUDE, SERVER);
        one(home.protect(&[])).unwrap();
        for file in fs::read_dir(home.at("home/.local/state/firedoor/backups")).unwrap() {
            fs::write(file.unwrap().path(), damage).unwrap();
        }
        one(home.restore(&[])).unwrap();
        assert_eq!(read(&path), SERVER, "{damage:?}");
    }
}

#[test]
fn many_protections_keep_few_backups_and_the_first() {
    let home = Home::new();
    for n in 0..20 {
        home.write(CLAUDE, format!("{SERVER}{}", " ".repeat(n)));
        one(home.protect(&[])).unwrap();
    }
    let dir = home.at("home/.local/state/firedoor/backups");
    let saved: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "orig"))
        .map(|p| read(&p))
        .collect();
    assert!(saved.len() == 8 && saved.iter().any(|s| s == SERVER), "{}", saved.len());
}

#[test]
fn files_that_must_not_be_replaced() {
    let error = |home: &Home| one(home.protect(&[])).unwrap_err();
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let e = error(&home);
    assert!(matches!(e, FileError::ReadOnly { .. }) && e.to_string().contains("chmod u+w"), "{e}");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    fs::hard_link(&path, home.at("home/second")).unwrap();
    assert!(matches!(error(&home), FileError::HardLinks { links: 2, .. }));
    fs::remove_file(home.at("home/second")).unwrap();
    assert_eq!(read(&path), SERVER);
    one(home.protect(&[])).unwrap();
}

#[test]
fn a_directory_that_is_not_ours_to_write() {
    if geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let home = Home::new();
    let path = home.write(CURSOR, SERVER);
    let dir = path.parent().unwrap();
    fs::set_permissions(dir, Permissions::from_mode(0o555)).unwrap();
    let error = one(home.protect(&[])).unwrap_err().to_string();
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    assert!(error.contains("mcp.json") && error.contains("Make the file and its directory writable"), "{error}");
    assert_eq!(read(&path), SERVER);
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    assert!(home.problem().contains("cannot read"), "{}", home.problem());
}

#[test]
fn a_client_that_keeps_writing_loses_nothing() {
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            // As clients do: written beside, renamed over.
            let mut n = 0u32;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                let beside = home.at("home/.claude.json.tmp");
                fs::write(&beside, format!("{SERVER}{}", "\n".repeat(n as usize % 1000))).unwrap();
                fs::rename(&beside, &path).unwrap();
            }
            n
        });
        for _ in 0..3 {
            for result in home.protect(&[]) {
                match result.result {
                    Ok(_) | Err(FileError::Changing { .. } | FileError::ChangedAfter { .. }) => {}
                    Err(e) => panic!("{e}"),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(written > 0);
    // Whoever was last, the file is whole, and the server in it is either.
    assert!(["protected", "unprotected"].contains(&home.states()["s"].as_str()));
    let left: Vec<_> = fs::read_dir(home.at("home")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().contains("firedoor-")), "{left:?}");
}

#[test]
fn what_a_killed_process_left_is_removed_if_it_is_known() {
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    one(home.protect(&[])).unwrap();
    let protected = fs::read(&path).unwrap();
    home.write("home/..claude.json.firedoor-000001", SERVER);
    home.write("home/..claude.json.firedoor-000002", &protected);
    home.write("home/..claude.json.firedoor-000003", "");
    home.write("home/..claude.json.firedoor-000004", "somebody's last write");
    one(home.restore(&[])).unwrap();
    let left = |n: u32| home.at(&format!("home/..claude.json.firedoor-00000{n}")).exists();
    assert_eq!([left(1), left(2), left(3), left(4)], [false, false, false, true]);
    assert_eq!(read(&path), SERVER);
}

#[test]
fn a_lock_of_the_client_is_respected() {
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    let lock = home.at("home/.claude.json.lock");
    fs::create_dir(&lock).unwrap();
    assert!(matches!(one(home.protect(&[])), Err(FileError::ClientBusy { .. })));
    assert_eq!(read(&path), SERVER);
    fs::remove_dir(&lock).unwrap();
    one(home.protect(&[])).unwrap();
    assert!(!lock.exists());
}

#[test]
fn a_change_after_the_plan_is_taken_into_account() {
    let home = Home::new();
    let path = home.write(CLAUDE, SERVER);
    let plan = home.clients.plan_protect(&home.env(), &home.choose(&[]), &home.shim()).unwrap();
    fs::write(&path, SERVER.replace("\"1\"", "\"2\"")).unwrap();
    one(home.clients.apply(&home.env(), &plan)).unwrap();
    assert!(read(&path).contains("\"x\",\"2\"]"));
    fs::write(&path, "{}").unwrap();
    assert_eq!(one(home.clients.apply(&home.env(), &plan)).unwrap().changed, []);
    fs::remove_file(&path).unwrap();
    assert!(matches!(one(home.clients.apply(&home.env(), &plan)), Err(FileError::Gone { .. })));
}

/// A file system with little room: needs root for the mount, in a namespace of its own.
#[test]
fn a_full_disk_leaves_the_original() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let done = std::thread::spawn(|| {
        let home = Home::new();
        let dir = home.at("home/.cursor");
        fs::create_dir(&dir).unwrap();
        // Only this thread's view of the file system.
        let none = None::<&str>;
        let mounted = unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)
            .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
            .and_then(|()| mount(Some("tmpfs"), &dir, Some("tmpfs"), MsFlags::empty(), Some("size=16k")));
        if mounted.is_err() {
            eprintln!("skipped: mounting needs root");
            return;
        }
        let text = format!("{SERVER}{}", " ".repeat(9000));
        let path = home.write(CURSOR, &text);
        let error = one(home.protect(&[])).unwrap_err().to_string();
        assert!(error.contains("Free some space") && error.contains("mcp.json"), "{error}");
        assert_eq!(read(&path), text);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
    });
    done.join().unwrap();
}
