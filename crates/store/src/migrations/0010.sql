-- Schema version 10: whether connections to a secret's service are intercepted.

ALTER TABLE broker ADD COLUMN intercept INTEGER NOT NULL DEFAULT 0 CHECK (intercept IN (0, 1));
