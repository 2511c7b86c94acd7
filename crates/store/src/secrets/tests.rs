use std::{
    fs,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use firedoor_model::keychain::MemoryKeychain;

use super::*;

/// As on a machine without a desktop.
struct NoKeychain;

impl NoKeychain {
    fn absent<T>() -> Result<T, KeychainError> {
        Err(KeychainError::Absent { why: "nobody owns the name".into() })
    }
}

impl Keychain for NoKeychain {
    fn get(&self, _: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        Self::absent()
    }
    fn set(&self, _: &str, _: &[u8]) -> Result<(), KeychainError> {
        Self::absent()
    }
    fn remove(&self, _: &str) -> Result<bool, KeychainError> {
        Self::absent()
    }
    fn items(&self) -> Result<Vec<String>, KeychainError> {
        Self::absent()
    }
}

const PASSPHRASE: &str = "correct horse made up";

struct Home {
    root: tempfile::TempDir,
    paths: Paths,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        Self { root, paths }
    }

    fn over<S: Keychain>(&self, system: S) -> Secrets<S> {
        Secrets::over(system, &self.paths, Keys::default())
    }

    fn identity(&self) -> Opener {
        Opener::Identity(self.root.path().join("identity.txt"))
    }

    fn file(&self) -> PathBuf {
        self.paths.secrets().join("secrets.age")
    }

    /// In a file that an identity opens, without a keychain.
    fn in_a_file(&self) -> Secrets<NoKeychain> {
        let secrets = self.over(NoKeychain);
        secrets.keep_in_file(&self.identity()).unwrap();
        secrets
    }
}

/// Says these, one after the other, and counts.
fn says(words: &'static [&'static str]) -> (Ask, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let ask: Ask = Arc::new(move |_, again| {
        let at = counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(again, at > 0);
        words.get(at).map(|word| (*word).to_owned())
    });
    (ask, count)
}

fn get<S: Keychain>(secrets: &Secrets<S>, item: &str) -> Option<String> {
    secrets.get(item).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn nothing_is_kept_in_a_file_unasked() {
    let home = Home::new();
    let secrets = home.over(NoKeychain);
    assert_eq!(secrets.place().unwrap(), Place::Keychain);
    assert!(matches!(secrets.set("a", b"hunter2"), Err(KeychainError::Absent { .. })));
    assert!(matches!(secrets.get("a"), Err(KeychainError::Absent { .. })));
    assert!(secrets.open().unwrap_err().to_string().contains("keep-in-file"));
    assert!(!home.paths.secrets().exists());
}

#[test]
fn an_identity_file_opens_it_for_every_process() {
    let home = Home::new();
    let secrets = home.in_a_file();
    assert_eq!(secrets.items().unwrap(), Vec::<String>::new());
    secrets.set("b", b"hunter2").unwrap();
    secrets.set("a", "ein Paßwort".as_bytes()).unwrap();
    secrets.set("b", b"hunter3").unwrap();
    let other = home.over(NoKeychain);
    assert_eq!(other.items().unwrap(), ["a", "b"]);
    assert_eq!((get(&other, "a").as_deref(), get(&other, "b").as_deref()), (Some("ein Paßwort"), Some("hunter3")));
    assert!(other.remove("a").unwrap() && !other.remove("a").unwrap());
    assert_eq!(get(&secrets, "a"), None);
    // With the reference implementation, too: what is in it is plain JSON.
    let text = fs::read_to_string(home.root.path().join("identity.txt")).unwrap();
    let plain = crate::age::open(&Identity::read(&text).unwrap(), &fs::read(home.file()).unwrap()).unwrap();
    assert_eq!(plain, br#"{"format":1,"items":{"b":"hunter3"}}"#);
    for file in fs::read_dir(home.paths.secrets()).unwrap().flatten() {
        let bytes = fs::read(file.path()).unwrap();
        assert!(!holds(&bytes, "hunter") && !holds(&bytes, "AGE-SECRET"), "{:?}", file.path());
    }
}

#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let secrets = home.in_a_file();
    secrets.set("a", b"hunter2").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.paths.secrets()), 0o700);
    for path in [home.file(), home.paths.kept_in_file(), home.root.path().join("identity.txt")] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    let said = |secrets: &Secrets<NoKeychain>| secrets.get("a").unwrap_err().to_string();
    let set = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let identity = home.root.path().join("identity.txt");
    set(&identity, 0o640);
    assert!(said(&secrets).contains("chmod 600"), "{}", said(&secrets));
    set(&identity, 0o600);
    set(&home.paths.secrets(), 0o755);
    assert!(said(&secrets).contains("mode 0700"), "{}", said(&secrets));
    set(&home.paths.secrets(), 0o700);
    // Somebody else's.
    if nix::unistd::geteuid().is_root() {
        for path in [home.file(), home.paths.secrets(), home.paths.kept_in_file(), identity] {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(secrets.get("a").is_err(), "{}", path.display());
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
    }
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
}

#[test]
fn links_pipes_and_huge_files_in_its_place_are_refused() {
    let home = Home::new();
    let secrets = home.in_a_file();
    secrets.set("a", b"hunter2").unwrap();
    let said = || secrets.get("a").unwrap_err().to_string();
    let (file, aside) = (home.file(), home.root.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &file).unwrap();
    assert!(said().contains("link") && said().contains("secrets.age"), "{}", said());
    // A change goes through no link either.
    assert!(secrets.set("b", b"x").is_err());
    fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert!(said().contains("regular file"), "{}", said());
    fs::remove_file(&file).unwrap();
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    assert!(said().contains("longer than"), "{}", said());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(said().contains("secrets.age"), "{}", said());
    fs::remove_dir(&file).unwrap();
    // What waits beside it is not followed, but replaced.
    fs::rename(&aside, &file).unwrap();
    let other = home.root.path().join("other");
    fs::write(&other, "other").unwrap();
    std::os::unix::fs::symlink(&other, home.paths.secrets().join("secrets.age.new")).unwrap();
    secrets.set("b", b"x").unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"other");
    // Nor is a link in the place of the lock, or of what says where secrets are.
    let lock = home.paths.secrets().join("lock");
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&other, &lock).unwrap();
    assert!(secrets.set("b", b"y").unwrap_err().to_string().contains("lock"));
    fs::remove_file(&lock).unwrap();
    let kept = home.paths.kept_in_file();
    fs::rename(&kept, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &kept).unwrap();
    assert!(said().contains("kept.json"), "{}", said());
    assert!(secrets.place().is_err());
}

#[test]
fn a_damaged_file_is_named_and_left_as_it_is() {
    let home = Home::new();
    let secrets = home.in_a_file();
    secrets.set("a", b"hunter2").unwrap();
    let good = fs::read(home.file()).unwrap();
    for bad in [b"".to_vec(), b"hunter2".to_vec(), good[..good.len() - 1].to_vec(), [good.as_slice(), b"x"].concat()] {
        fs::write(home.file(), &bad).unwrap();
        for why in
            [secrets.get("a").unwrap_err(), secrets.set("b", b"x").unwrap_err(), secrets.remove("a").unwrap_err()]
        {
            let why = why.to_string();
            assert!(why.contains("secrets.age") && why.contains("put a copy of it back"), "{why}");
            assert!(!why.contains("hunter2"), "{why}");
        }
        assert_eq!(fs::read(home.file()).unwrap(), bad);
    }
    // Readable with the key, and something else.
    let text = fs::read_to_string(home.root.path().join("identity.txt")).unwrap();
    let identity = Identity::read(&text).unwrap();
    for (plain, want) in [("{\"format\":2,\"items\":{}}", "newer Firedoor"), ("hunter2", "put a copy of it back")] {
        fs::write(home.file(), crate::age::seal(&identity, plain.as_bytes()).unwrap()).unwrap();
        let why = secrets.get("a").unwrap_err().to_string();
        assert!(why.contains(want) && !why.contains("hunter2"), "{why}");
    }
    fs::write(home.file(), &good).unwrap();
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
    // One that is gone holds nothing, and the next one is made.
    fs::remove_file(home.file()).unwrap();
    assert_eq!(get(&secrets, "a"), None);
    secrets.set("a", b"hunter2").unwrap();
    fs::write(home.paths.kept_in_file(), "{").unwrap();
    assert!(secrets.get("a").unwrap_err().to_string().contains("kept.json"));
    assert!(secrets.set("a", b"x").is_err(), "it must not go elsewhere");
}

#[test]
fn a_passphrase_is_asked_for_once() {
    let home = Home::new();
    let making = home.over(NoKeychain);
    let short = making.keep_in_file(&Opener::Passphrase("short".into())).unwrap_err().to_string();
    assert!(short.contains("8 characters"), "{short}");
    assert_eq!(making.place().unwrap(), Place::Keychain);
    making.keep_in_file(&Opener::Passphrase(PASSPHRASE.into())).unwrap();
    making.set("a", b"hunter2").unwrap();
    // Another process, which nobody can tell it.
    let silent = home.over(NoKeychain);
    for why in [silent.get("a").unwrap_err(), silent.set("a", b"x").unwrap_err(), silent.items().unwrap_err()] {
        assert!(matches!(why, KeychainError::FileLocked { .. }), "{why}");
        assert!(why.to_string().contains("firedoor secrets unlock"), "{why}");
    }
    let (ask, count) = says(&["wrong one", PASSPHRASE]);
    let asking = home.over(NoKeychain).asking(ask);
    assert_eq!(get(&asking, "a").as_deref(), Some("hunter2"));
    asking.set("b", b"hunter3").unwrap();
    assert_eq!((asking.items().unwrap().len(), count.load(Ordering::Relaxed)), (2, 2));
    let (ask, _) = says(&["wrong one", "wrong two", "wrong three", PASSPHRASE]);
    let why = home.over(NoKeychain).asking(ask).get("a").unwrap_err().to_string();
    assert!(why.contains("not its passphrase") && !why.contains("wrong three"), "{why}");
    // A third gets what opens it from the second, and from nobody else.
    let engine = home.over(NoKeychain);
    let stranger = FileKey(Identity::generate().unwrap().text());
    assert!(engine.unlock(&stranger).is_err() && engine.unlock(&FileKey("x".into())).is_err());
    assert!(engine.get("a").is_err());
    engine.unlock(&asking.file.keys.key().unwrap()).unwrap();
    assert_eq!(get(&engine, "b").as_deref(), Some("hunter3"));
    engine.file.keys.forget();
    assert!(engine.get("a").is_err());
    // Nor does anything open a file that is not there.
    let aside = home.root.path().join("aside");
    fs::rename(home.file(), &aside).unwrap();
    assert!(engine.unlock(&stranger).unwrap_err().to_string().contains("missing"));
    assert!(engine.file.keys.key().is_none());
    fs::rename(&aside, home.file()).unwrap();
    for file in fs::read_dir(home.paths.secrets()).unwrap().flatten() {
        let bytes = fs::read(file.path()).unwrap();
        assert!(!holds(&bytes, "hunter") && !holds(&bytes, PASSPHRASE) && !holds(&bytes, "AGE-SECRET"));
    }
}

#[test]
fn what_the_keychain_has_moves_there_and_back() {
    let home = Home::new();
    let keychain = MemoryKeychain::default();
    keychain.set("backups", b"00ff").unwrap();
    keychain.set("a", b"hunter2").unwrap();
    let secrets = home.over(keychain);
    let moved = secrets.keep_in_file(&home.identity()).unwrap();
    assert_eq!(moved, Moved { items: 2, left: None });
    assert_eq!(secrets.system.items().unwrap(), Vec::<String>::new());
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
    assert!(secrets.keep_in_file(&home.identity()).is_err());
    secrets.set("b", b"new").unwrap();
    // A keychain that takes nothing: all stay where they are.
    secrets.system.lock(true);
    assert_eq!(secrets.keep_in_keychain().unwrap_err(), KeychainError::Locked);
    assert_eq!(secrets.items().unwrap(), ["a", "b", "backups"]);
    secrets.system.lock(false);
    assert_eq!(secrets.keep_in_keychain().unwrap().items, 3);
    assert_eq!(secrets.place().unwrap(), Place::Keychain);
    assert_eq!(secrets.system.items().unwrap(), ["a", "b", "backups"]);
    assert!(!home.file().exists() && home.root.path().join("identity.txt").exists());
    assert!(secrets.keep_in_keychain().is_err());
    // And once more, with the identity that is there.
    secrets.keep_in_file(&home.identity()).unwrap();
    assert_eq!(get(&secrets, "b").as_deref(), Some("new"));
}

#[test]
fn nothing_moves_out_of_a_locked_keychain_or_over_what_is_there() {
    let home = Home::new();
    let keychain = MemoryKeychain::default();
    keychain.set("a", b"hunter2").unwrap();
    let secrets = home.over(keychain);
    secrets.system.lock(true);
    assert_eq!(secrets.keep_in_file(&home.identity()).unwrap_err(), KeychainError::Locked);
    secrets.system.lock(false);
    assert_eq!(secrets.place().unwrap(), Place::Keychain);
    // Not text, which nothing of Firedoor's is.
    secrets.system.set("b", &[0xff]).unwrap();
    assert!(secrets.keep_in_file(&home.identity()).is_err());
    secrets.system.remove("b").unwrap();
    for bad in ["AGE-SECRET-KEY-1", "age-encryption.org/v1\n-> scrypt", ""] {
        let path = home.root.path().join("bad.txt");
        crate::private::create(&path, bad.as_bytes()).unwrap();
        let why = secrets.keep_in_file(&Opener::Identity(path.clone())).unwrap_err().to_string();
        assert!(why.contains("bad.txt"), "{why}");
        fs::remove_file(path).unwrap();
    }
    assert!(secrets.keep_in_file(&Opener::Identity("/nonexistent/identity.txt".into())).is_err());
    // What lies there may be all that is left of something.
    fs::write(home.file(), "precious").unwrap();
    let why = secrets.keep_in_file(&home.identity()).unwrap_err().to_string();
    assert!(why.contains("from before"), "{why}");
    assert_eq!(fs::read(home.file()).unwrap(), b"precious");
    fs::remove_file(home.file()).unwrap();
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
    secrets.keep_in_file(&home.identity()).unwrap();
}

#[test]
fn another_identity_than_the_one_that_it_was_written_for_is_said() {
    let home = Home::new();
    let secrets = home.in_a_file();
    secrets.set("a", b"hunter2").unwrap();
    let path = home.root.path().join("identity.txt");
    let before = fs::read(&path).unwrap();
    fs::write(&path, Identity::generate().unwrap().text()).unwrap();
    let why = secrets.get("a").unwrap_err().to_string();
    assert!(why.contains("identity.txt") && why.contains("not the identity"), "{why}");
    fs::remove_file(&path).unwrap();
    let why = secrets.set("a", b"x").unwrap_err().to_string();
    assert!(why.contains("identity.txt") && why.contains("missing"), "{why}");
    crate::private::create(&path, &before).unwrap();
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
}

#[test]
fn what_is_too_much_is_refused_and_the_rest_stays() {
    let home = Home::new();
    let secrets = home.in_a_file();
    secrets.set("a", b"hunter2").unwrap();
    let (long, not_text) = (vec![b'x'; (1 << 20) + 1], [0xff]);
    assert!(secrets.set("b", &long).is_err() && secrets.set("b", &not_text).is_err());
    let kept = secrets.file.kept().unwrap().unwrap();
    let (identity, items) = secrets.file.open(&kept).unwrap();
    let lock = secrets.file.lock().unwrap();
    for (count, length, want) in [(16, 1 << 20, "bytes and no more"), (4096, 1, "secrets and no more")] {
        let more = (0..count).map(|n| (format!("b{n}"), "x".repeat(length)));
        let why = secrets.file.write(&identity, items.clone().into_iter().chain(more).collect(), &lock).unwrap_err();
        assert!(why.to_string().contains(want), "{why}");
    }
    assert_eq!(secrets.items().unwrap(), ["a"]);
}

#[test]
fn several_that_write_at_once_lose_nothing() {
    let home = Home::new();
    home.in_a_file();
    let write = |writer: usize| {
        let secrets = home.over(NoKeychain);
        for n in 0..20 {
            secrets.set(&format!("{writer}/{n}"), format!("{writer} {n}").as_bytes()).unwrap();
            // Whoever reads meanwhile gets all of one state.
            assert_eq!(get(&secrets, &format!("{writer}/{n}")), Some(format!("{writer} {n}")));
        }
    };
    thread::scope(|scope| (0..4).for_each(|writer| drop(scope.spawn(move || write(writer)))));
    assert_eq!(home.over(NoKeychain).items().unwrap().len(), 80);
}

#[test]
fn a_writer_that_waited_while_secrets_moved_writes_where_they_are_now() {
    let home = Home::new();
    let secrets = home.over(MemoryKeychain::default());
    secrets.keep_in_file(&home.identity()).unwrap();
    secrets.set("a", b"hunter2").unwrap();
    thread::scope(|scope| {
        let moving = scope.spawn(|| secrets.keep_in_keychain().unwrap());
        for n in 0..50 {
            secrets.set("n", n.to_string().as_bytes()).unwrap();
        }
        moving.join().unwrap();
    });
    assert_eq!(get(&secrets, "n").as_deref(), Some("49"));
    assert_eq!(get(&secrets, "a").as_deref(), Some("hunter2"));
    assert_eq!(secrets.place().unwrap(), Place::Keychain);
}
