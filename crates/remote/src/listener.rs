//! Ports of this machine that are listened on.

use std::{io, net::Ipv4Addr};

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be taken, as many as Linux allows by itself (/proc/sys/net/core/somaxconn). Clients make one
/// for each of their calls, a thousand at once; the kernel gives up on those that do not fit, some of them when their client
/// has been told that they stand, and has sent something: it is told then that the connection was reset.
const WAITING: u32 = 4096;

/// Listens on this port of the loopback interface, or on any for zero.
pub fn bind(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // Elsewhere it lets two programs have the same port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(WAITING)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpStream, time::Duration};

    use super::*;

    #[tokio::test]
    async fn many_connections_wait_while_nobody_takes_them() {
        let listener = bind(0).unwrap();
        let at = listener.local_addr().unwrap();
        // Some systems allow no more than 128, and a program need not be allowed to have more than 256 files.
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|n| n.trim().parse().ok());
        let connect = |_| TcpStream::connect_timeout(&at, Duration::from_millis(900)).map(drop);
        let waiting: Result<Vec<()>, _> = (0..allowed.unwrap_or(128).min(1000)).map(connect).collect();
        waiting.unwrap();
    }
}
