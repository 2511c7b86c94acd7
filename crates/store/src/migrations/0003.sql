-- Schema version 3: which entries are to be observed at their next start, and what was seen at the last one.

CREATE TABLE observe_next (
    entry TEXT PRIMARY KEY,
    until INTEGER NOT NULL CHECK (until >= 0)
) STRICT;

CREATE TABLE observed (
    entry  TEXT PRIMARY KEY,
    at     INTEGER NOT NULL CHECK (at >= 0),
    record TEXT NOT NULL,
    basis  TEXT NOT NULL
) STRICT;
