-- Schema version 4: how often rules settled something, and when last.

CREATE TABLE rule_use (
    rule INTEGER PRIMARY KEY,
    hits INTEGER NOT NULL CHECK (hits > 0),
    last INTEGER NOT NULL CHECK (last >= 0)
) STRICT;
