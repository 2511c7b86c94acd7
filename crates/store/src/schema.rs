//! Opening a connection that trusts nothing in the file, and bringing its schema up to date.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig, limits::Limit};

use crate::StoreError;

/// One file per version, in order. A released one never changes.
const MIGRATIONS: [&str; 10] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
];

/// `application_id` in the database's header (SQLite file format §1.3), set by the first migration.
const APPLICATION_ID: i64 = 0x4644_4F52;

/// No value in the database is longer, in bytes: what a damaged length field can make SQLite allocate.
const MAX_VALUE: i32 = 4 << 20;

/// How long to wait for a reader of another process.
const BUSY: std::time::Duration = std::time::Duration::from_secs(2);

/// Opens the database and checks that it is whole and of a version this program knows. Changes nothing yet, also not
/// by the checkpoint that SQLite makes on closing.
pub(crate) fn examine(path: &Path, access: OpenFlags) -> Result<(Connection, i64), StoreError> {
    let failed = |doing| move |e| StoreError::sqlite(path, doing, e);
    let db = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed("open"))?;
    (|| {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // "Defense against the dark arts" (sqlite.org/security.html): a file somebody prepared runs no code of its own.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        db.busy_timeout(BUSY)?;
        // All that the engine says to it again and again, a server's start with a dozen among it.
        db.set_prepared_statement_cache_capacity(64);
        db.pragma_update(None, "trusted_schema", false)?;
        db.pragma_update(None, "cell_size_check", true)
    })()
    .map_err(failed("configure the connection"))?;

    let known = MIGRATIONS.len() as i64;
    let (application, version, schema) = header(&db).map_err(failed("read the schema"))?;
    if application != APPLICATION_ID {
        // A new file, or one whose creation was interrupted: its tables come all at once.
        let blank = application == 0 && version == 0 && schema.is_empty();
        return if blank { Ok((db, 0)) } else { Err(StoreError::Foreign { path: path.to_owned() }) };
    }
    if version > known {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known });
    }
    let damaged = |why: String| StoreError::Corrupt { path: path.to_owned(), doing: "open the database", why };
    // A dropped table, an added trigger or a changed constraint is damage as well.
    if schema != expected_schema(version).map_err(failed("build the schema"))? {
        return Err(damaged("its tables are not the ones Firedoor made".into()));
    }
    let report: String =
        db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed("check the database"))?;
    if report == "ok" { Ok((db, version)) } else { Err(damaged(report)) }
}

/// Makes `db` durable and up to date.
pub(crate) fn prepare(path: &Path, mut db: Connection, version: i64) -> Result<Connection, StoreError> {
    (|| {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        // Where the file system has no shared memory SQLite stays in rollback mode: as durable, only slower.
        db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        // In WAL mode NORMAL would lose committed rows when the power fails.
        db.pragma_update(None, "synchronous", "FULL")?;
        if version == newest() {
            return Ok(());
        }
        // All at once: no reader sees one half made, and none is left so by a crash.
        let step = db.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            step.execute_batch(migration)?;
        }
        step.pragma_update(None, "user_version", newest())?;
        step.commit()
    })()
    .map_err(|e| StoreError::sqlite(path, "bring the schema up to date", e))?;
    Ok(db)
}

/// The newest version this program knows.
pub(crate) fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

type Schema = Vec<(String, String, Option<String>)>;

/// The application's id, the version, and the tables, all of one moment: an engine may be making them.
fn header(db: &Connection) -> rusqlite::Result<(i64, i64, Schema)> {
    let moment = db.unchecked_transaction()?;
    let number = |pragma| moment.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    Ok((number("application_id")?, number("user_version")?, schema_of(&moment)?))
}

fn schema_of(db: &Connection) -> rusqlite::Result<Schema> {
    db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

fn expected_schema(version: i64) -> rusqlite::Result<Schema> {
    let db = Connection::open_in_memory()?;
    for migration in MIGRATIONS.iter().take(usize::try_from(version).unwrap_or(0)) {
        db.execute_batch(migration)?;
    }
    schema_of(&db)
}
