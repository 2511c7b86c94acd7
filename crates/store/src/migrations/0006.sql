-- Schema version 6: what the tools of a server were called with in earlier sessions: numbers and hashes, no text of a call.

CREATE TABLE habit (
    entry TEXT NOT NULL,
    tool  TEXT NOT NULL,
    habit TEXT NOT NULL,
    at    INTEGER NOT NULL CHECK (at >= 0),
    PRIMARY KEY (entry, tool)
) STRICT;
