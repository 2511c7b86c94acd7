//! Decides what a server is started with: profile, grants, environment, install step. Reads files, writes none but its marker.
