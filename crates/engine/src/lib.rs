//! The proxy: sessions, transports, wiring of inspection, policy and store.

mod io;
