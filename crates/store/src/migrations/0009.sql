-- Schema version 9: secrets that an entry's server does not get, and where they are put in instead. Names and addresses; no
-- secret's value.

CREATE TABLE broker (
    entry    TEXT NOT NULL,
    secret   TEXT NOT NULL,
    variable TEXT NOT NULL,
    url      TEXT NOT NULL,
    header   TEXT NOT NULL,
    PRIMARY KEY (entry, secret)
) STRICT;
