use std::fs;

use super::*;

fn error(path: &Path) -> StoreError {
    match Store::open(path, Millis(77)) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(e) => e,
    }
}

#[test]
#[cfg(unix)]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = scratch();
    let mut store = open(&path);
    store.append(&[event(1, "a/b/c")]).unwrap();
    let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let files: Vec<_> = fs::read_dir(dir.path().join("state")).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    // One that somebody opened up is closed again.
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    open(&path);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn what_was_written_is_there_again() {
    let (_dir, path) = scratch();
    open(&path).append(&[event(1, "a/b/c")]).unwrap();
    assert_eq!(open(&path).events(&Query::default()).unwrap().len(), 1);
}

#[test]
fn one_engine_at_a_time_and_readers_beside_it() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    assert!(matches!(error(&path), StoreError::Locked { .. }));
    let reader = Store::open_read_only(&path).unwrap();
    store.append(&[event(1, "a/b/c")]).unwrap();
    assert_eq!(reader.events(&Query::default()).unwrap().len(), 1);
    assert_eq!(reader.verify().unwrap().rows, 1);
    drop(store);
    open(&path);
}

#[test]
fn damaged_files_are_set_aside_whole() {
    let good = {
        let (_dir, path) = scratch();
        let mut store = open(&path);
        store.append(&(0..200).map(|n| event(n, "a/b/c")).collect::<Vec<_>>()).unwrap();
        drop(store);
        fs::read(&path).unwrap()
    };
    let mut zeroed = good.clone();
    let (middle, end) = (zeroed.len() / 2 / 4096 * 4096, zeroed.len());
    zeroed[middle..end].fill(0);
    let cut = good[..good.len() / 2 / 4096 * 4096].to_vec();
    for (name, bytes) in [("text", b"not a database, but long enough".repeat(40)), ("zeroed", zeroed), ("cut", cut)] {
        let (_dir, path) = scratch();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let wal = path.with_file_name("firedoor.db-wal");
        fs::write(&path, &bytes).unwrap();
        fs::write(&wal, b"a log that belongs to it").unwrap();
        // The name is taken: another is found, and nothing is overwritten.
        let taken = path.with_file_name("firedoor.db.corrupt-77");
        fs::write(&taken, b"earlier").unwrap();

        let opened = Store::open(&path, Millis(77)).unwrap();
        let aside = opened.set_aside.unwrap_or_else(|| panic!("{name} was taken for good"));
        assert_eq!(aside, path.with_file_name("firedoor.db.corrupt-77-1"));
        assert!(fs::read(&aside).unwrap() == bytes, "{name} was changed");
        assert!(aside.with_file_name("firedoor.db.corrupt-77-1-wal").exists());
        assert_eq!(fs::read(&taken).unwrap(), b"earlier");
        assert!(opened.store.rules().unwrap().is_empty());
    }
}

#[test]
fn a_changed_schema_is_damage() {
    for sql in [
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM rule; END",
        "DROP TABLE rule",
        "CREATE VIEW v AS SELECT 1",
    ] {
        let (_dir, path) = scratch();
        open(&path);
        tamper(&path, sql);
        assert!(matches!(Store::open_read_only(&path), Err(StoreError::Corrupt { .. })), "{sql}");
        assert!(Store::open(&path, Millis(77)).unwrap().set_aside.is_some(), "{sql}");
    }
}

#[test]
fn other_databases_stay_untouched() {
    let (_dir, path) = scratch();
    open(&path);
    tamper(&path, "PRAGMA user_version = 99");
    let before = fs::read(&path).unwrap();
    assert!(matches!(error(&path), StoreError::Newer { found: 99, known: 10, .. }));
    assert!(error(&path).to_string().contains("99"));
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::Newer { .. })));
    assert!(fs::read(&path).unwrap() == before);

    let (_dir, path) = scratch();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    tamper(&path, "CREATE TABLE cookies (x)");
    assert!(matches!(error(&path), StoreError::Foreign { .. }));
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::Foreign { .. })));
}

#[test]
fn what_is_no_file_is_said() {
    let (_dir, path) = scratch();
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::Missing { .. })));
    fs::create_dir_all(&path).unwrap();
    assert!(matches!(error(&path), StoreError::NotAFile { .. }));
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::NotAFile { .. })));

    // A file where the directory should be.
    let (dir, _) = scratch();
    fs::write(dir.path().join("state"), b"").unwrap();
    assert!(matches!(error(&dir.path().join("state").join("firedoor.db")), StoreError::Io { .. }));
}

#[test]
fn an_empty_file_becomes_a_database() {
    let (_dir, path) = scratch();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"").unwrap();
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::Missing { .. })));
    open(&path);
}

#[test]
fn no_space_and_no_permission_are_told_apart_and_change_nothing() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    store.append(&[event(1, "a/b/c")]).unwrap();
    let head = store.verify().unwrap().head;

    let pages: i64 = store.db.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
    store.db.pragma_update(None, "max_page_count", pages).unwrap();
    let many: Vec<_> = (0..5000).map(|n| event(n, "a/b/c")).collect();
    assert!(matches!(store.append(&many), Err(StoreError::Full { .. })));
    store.db.pragma_update(None, "max_page_count", 1 << 20).unwrap();

    store.db.pragma_update(None, "query_only", true).unwrap();
    assert!(matches!(store.append(&[event(2, "a/b/c")]), Err(StoreError::ReadOnly { .. })));
    assert!(matches!(store.set_mode(firedoor_model::Mode::Watch), Err(StoreError::ReadOnly { .. })));
    store.db.pragma_update(None, "query_only", false).unwrap();

    let report = store.verify().unwrap();
    assert_eq!((report.head, report.first_bad), (head, None));
    store.append(&[event(2, "a/b/c")]).unwrap();
}

#[test]
fn a_database_locked_by_others_is_said() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    store.db.busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.append(&[event(1, "a/b/c")]), Err(StoreError::Busy { .. })));
    other.execute_batch("ROLLBACK").unwrap();
    store.append(&[event(1, "a/b/c")]).unwrap();
}

#[test]
fn what_was_committed_survives_a_crash() {
    let (_dir, path) = scratch();
    let mut store = open(&path);
    store.append(&[event(1, "a/b/c"), event(2, "a/b/c")]).unwrap();
    // What a killed engine leaves on the disk: the files as they are, without the checkpoint made on closing.
    let (_other, copy) = scratch();
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    for file in ["firedoor.db", "firedoor.db-wal"] {
        fs::copy(path.with_file_name(file), copy.with_file_name(file)).unwrap();
    }
    let report = open(&copy).verify().unwrap();
    assert_eq!((report.rows, report.first_bad), (2, None));
    assert_eq!(report.head, store.verify().unwrap().head);
}

#[test]
fn whoever_reads_while_it_is_made_sees_nothing_or_all_of_it() {
    for _ in 0..20 {
        let (_dir, path) = scratch();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                loop {
                    match Store::open_read_only(&path) {
                        Ok(_) => break,
                        Err(StoreError::Missing { .. }) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
            });
            open(&path);
            reader.join().unwrap();
        });
    }
}
