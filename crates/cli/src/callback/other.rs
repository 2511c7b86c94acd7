//! Whose a connection is where no table of sockets says it: everybody's that knows the address.

use std::net::SocketAddr;

/// Not known. What comes is still matched with what was sent to the browser.
pub fn is_ours(_peer: SocketAddr, _own: SocketAddr) -> bool {
    true
}
