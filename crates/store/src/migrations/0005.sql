-- Schema version 5: servers that the user was offered to protect and did not want to, as they were then.

CREATE TABLE declined (
    entry TEXT PRIMARY KEY,
    line  TEXT NOT NULL,
    at    INTEGER NOT NULL CHECK (at >= 0)
) STRICT;
