-- Schema version 7: the change of a definition that the user has seen and keeps from agents (digest of the changed one).

ALTER TABLE pin ADD COLUMN kept TEXT;
