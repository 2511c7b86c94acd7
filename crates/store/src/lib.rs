//! All state that Firedoor writes: SQLite with a hash-chained audit log, rules, pins, grants, settings.
