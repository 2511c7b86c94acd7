-- Schema version 8: addresses on this machine at which clients reach a server. A port of 0 is not found yet.

CREATE TABLE endpoint (
    entry  TEXT PRIMARY KEY,
    port   INTEGER NOT NULL CHECK (port BETWEEN 0 AND 65535),
    key    TEXT NOT NULL,
    target TEXT NOT NULL
) STRICT;
