-- Schema version 2: hosts and Unix sockets that the user granted to entries.

CREATE TABLE grant_host (
    entry TEXT NOT NULL,
    host  TEXT NOT NULL,
    PRIMARY KEY (entry, host)
) STRICT;

CREATE TABLE grant_socket (
    entry TEXT NOT NULL,
    path  BLOB NOT NULL,
    PRIMARY KEY (entry, path)
) STRICT;
