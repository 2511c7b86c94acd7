-- Schema version 1. Never edit a released migration: add the next file.

-- "FDOR": tells this database from another program's.
PRAGMA application_id = 0x46444F52;

-- The audit chain. `at` and `entry` are computed from the text that is hashed, so they cannot disagree with it.
CREATE TABLE event (
    seq   INTEGER PRIMARY KEY CHECK (seq > 0),
    body  TEXT NOT NULL,
    hash  BLOB NOT NULL CHECK (length(hash) = 32),
    at    INTEGER GENERATED ALWAYS AS (json_extract(body, '$.at')) VIRTUAL,
    entry TEXT GENERATED ALWAYS AS (json_extract(body, '$.entry')) VIRTUAL
) STRICT;
CREATE INDEX event_at ON event (at);
CREATE INDEX event_entry ON event (entry, seq);

-- `head` is the newest row ever written; `base` is the newest row that retention removed. Absent before the first.
CREATE TABLE mark (
    name TEXT PRIMARY KEY CHECK (name IN ('head', 'base')),
    seq  INTEGER NOT NULL CHECK (seq > 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- AUTOINCREMENT: the number of a removed rule stands in the audit log and is never given to another.
CREATE TABLE rule (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    effect  TEXT NOT NULL,
    matches TEXT NOT NULL,
    origin  TEXT NOT NULL,
    created INTEGER NOT NULL CHECK (created >= 0),
    expires INTEGER CHECK (expires >= 0)
) STRICT;

CREATE TABLE pin (
    entry      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    accepted   TEXT NOT NULL,
    first_seen INTEGER NOT NULL CHECK (first_seen >= 0),
    changed    TEXT,
    changed_at INTEGER CHECK (changed_at >= 0),
    PRIMARY KEY (entry, kind, name),
    CHECK ((changed IS NULL) = (changed_at IS NULL))
) STRICT;

CREATE TABLE grant_path (
    entry  TEXT NOT NULL,
    path   BLOB NOT NULL,
    access TEXT NOT NULL,
    PRIMARY KEY (entry, path)
) STRICT;

CREATE TABLE grant_env (
    entry TEXT NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY (entry, name)
) STRICT;

CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
