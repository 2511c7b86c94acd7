//! Catalog of MCP clients, discovery, lossless edits of their configurations, journal, restore.
