//! The stub's side of DNS over TCP (RFC 7766): messages with their length before them. Programs that set `use-vc` ask so.
//!
//! Only connections that the guardian itself led here are read.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use nix::unistd::Pid;

use super::{dns::MAX_QUERY, stub::Led};

/// Connections at once; one more ends the one that was silent for longest.
const MAX_STREAMS: usize = 32;
/// Connections that are accepted in one turn.
const MAX_TURN: usize = 64;
/// A connection that is silent for so long is ended.
const IDLE: Duration = Duration::from_secs(10);

/// All connections of one server to its stub.
pub(crate) struct Streams {
    v4: TcpListener,
    /// Absent where the machine has no IPv6.
    v6: Option<TcpListener>,
    led: Led,
    open: Vec<Stream>,
    last: u64,
}

struct Stream {
    id: u64,
    socket: TcpStream,
    thread: Pid,
    received: Vec<u8>,
    /// Questions that have no answer yet.
    unanswered: usize,
    /// The other side sends no more.
    ended: bool,
    active: Instant,
}

impl Streams {
    pub fn new() -> std::io::Result<Self> {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        v4.set_nonblocking(true)?;
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let v6 = v6.filter(|l| l.set_nonblocking(true).is_ok());
        Ok(Self { v4, v6, led: Led::default(), open: Vec::new(), last: 0 })
    }

    fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten()
    }

    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        // One that has ended stays readable for ever.
        let open = self.open.iter().filter(|s| !s.ended).map(|s| s.socket.as_fd());
        self.listeners().map(AsFd::as_fd).chain(open)
    }

    /// Whether silence has to be noticed.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Where a connection to `to` is led.
    pub fn address(&self, to: SocketAddr) -> Option<SocketAddr> {
        match (to, &self.v6) {
            (SocketAddr::V6(_), Some(v6)) => v6.local_addr().ok(),
            _ => self.v4.local_addr().ok(),
        }
    }

    /// A socket with this local address is being connected to us.
    pub fn admit(&mut self, local: SocketAddr, thread: Pid, asked: SocketAddr) {
        self.led.admit(local, thread, asked);
    }

    /// The questions that have come, each with its connection's number.
    pub fn queries(&mut self, now: Instant) -> Vec<(u64, Pid, Vec<u8>)> {
        self.accept(now);
        let mut out = Vec::new();
        self.open.retain_mut(|stream| {
            let good = now.duration_since(stream.active) < IDLE && stream.receive(now, &mut out);
            good && !(stream.ended && stream.unanswered == 0)
        });
        out
    }

    fn accept(&mut self, now: Instant) {
        let mut new = Vec::new();
        for listener in self.listeners() {
            new.extend((0..MAX_TURN).map_while(|_| listener.accept().ok()));
        }
        for (socket, from) in new {
            // Somebody else on this machine; or one of ours that we have given up.
            let Some(thread) = self.led.take(from) else { continue };
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            if self.open.len() >= MAX_STREAMS
                && let Some(oldest) = (0..self.open.len()).min_by_key(|i| self.open.get(*i).map(|s| s.active))
            {
                self.open.swap_remove(oldest);
            }
            self.last += 1;
            let (received, id) = (Vec::new(), self.last);
            self.open.push(Stream { id, socket, thread, received, unanswered: 0, ended: false, active: now });
        }
    }

    /// Answers on a connection, unless it is gone.
    pub fn answer(&mut self, id: u64, bytes: &[u8]) {
        self.open.retain_mut(|stream| stream.id != id || stream.answer(bytes));
    }
}

impl Stream {
    /// Reads what there is, once. `false`: this is no DNS.
    fn receive(&mut self, now: Instant, out: &mut Vec<(u64, Pid, Vec<u8>)>) -> bool {
        let mut bytes = [0; MAX_QUERY + 2];
        let room = bytes.len() - self.received.len();
        match self.socket.read(bytes.get_mut(..room).unwrap_or_default()) {
            Ok(0) => self.ended = true,
            Ok(length) => {
                self.active = now;
                self.received.extend(bytes.get(..length).unwrap_or_default());
            }
            Err(e) => return e.kind() == std::io::ErrorKind::WouldBlock || e.kind() == std::io::ErrorKind::Interrupted,
        }
        loop {
            match split(&self.received) {
                Ok(None) => return true,
                Ok(Some((message, rest))) => {
                    out.push((self.id, self.thread, message.to_vec()));
                    self.unanswered += 1;
                    self.received = rest.to_vec();
                }
                Err(TooLong) => return false,
            }
        }
    }

    /// `false`: the other side does not read, or has nothing more to wait for.
    fn answer(&mut self, bytes: &[u8]) -> bool {
        self.unanswered = self.unanswered.saturating_sub(1);
        let Ok(length) = u16::try_from(bytes.len()) else { return false };
        let message = [&length.to_be_bytes(), bytes].concat();
        let written = self.socket.write(&message).is_ok_and(|n| n == message.len());
        if self.ended && self.unanswered == 0 {
            let _ = self.socket.shutdown(Shutdown::Write);
            return false;
        }
        written
    }
}

/// A message that announces more bytes than any question has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// A message and what follows.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The first message of a stream, when all of it is there.
pub(crate) fn split(stream: &[u8]) -> Result<Option<Split<'_>>, TooLong> {
    let Some((length, rest)) = stream.split_first_chunk::<2>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > MAX_QUERY {
        return Err(TooLong);
    }
    Ok(rest.split_at_checked(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn messages_are_cut_out_of_a_stream() {
        for (stream, want) in [
            (&b""[..], Ok(None)),
            (b"\0", Ok(None)),
            (b"\0\x02a", Ok(None)),
            (b"\0\x02ab", Ok(Some((&b"ab"[..], &b""[..])))),
            (b"\0\x02abc", Ok(Some((b"ab", b"c")))),
            (b"\0\0c", Ok(Some((b"", b"c")))),
            (b"\x05\0", Err(TooLong)),
        ] {
            assert_eq!(split(stream), want, "{stream:?}");
        }
    }

    fn wait(streams: &Streams) {
        let mut fds: Vec<PollFd<'_>> = streams.watched().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        poll(&mut fds, PollTimeout::from(10_000u16)).unwrap();
    }

    /// Connects, admitted or not.
    fn connect(streams: &mut Streams, admitted: bool) -> TcpStream {
        let stream = TcpStream::connect(streams.address("1.2.3.4:53".parse().unwrap()).unwrap()).unwrap();
        if admitted {
            streams.admit(stream.local_addr().unwrap(), Pid::this(), stream.peer_addr().unwrap());
        }
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Turns until something is asked.
    fn questions(streams: &mut Streams) -> Vec<(u64, Pid, Vec<u8>)> {
        loop {
            wait(streams);
            let asked = streams.queries(Instant::now());
            if !asked.is_empty() {
                return asked;
            }
        }
    }

    /// Turns until no connection is left.
    fn until_ended(streams: &mut Streams, now: Instant) {
        streams.queries(now);
        while !streams.is_empty() {
            wait(streams);
            streams.queries(now);
        }
    }

    #[test]
    fn who_was_led_here_is_answered_in_several_pieces_and_after_its_end() {
        let mut streams = Streams::new().unwrap();
        let mut stranger = connect(&mut streams, false);
        let mut client = connect(&mut streams, true);
        stranger.write_all(b"\0\x01x").unwrap();
        client.write_all(b"\0\x02ab\0").unwrap();
        let first = questions(&mut streams);
        client.write_all(b"\x01c").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let second = questions(&mut streams);
        assert_eq!((first[0].2.as_slice(), second[0].2.as_slice()), (&b"ab"[..], &b"c"[..]));
        streams.answer(first[0].0, b"AB");
        streams.answer(second[0].0, b"C");
        until_ended(&mut streams, Instant::now());
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).unwrap();
        assert_eq!(answers, b"\0\x02AB\0\x01C");
        assert!(!matches!(stranger.read(&mut [0]), Ok(1..)), "the stranger gets nothing");
    }

    #[test]
    fn connections_are_bounded_in_number_silence_and_length() {
        let mut streams = Streams::new().unwrap();
        let mut clients: Vec<_> = (0..=MAX_STREAMS).map(|_| connect(&mut streams, true)).collect();
        let now = Instant::now();
        streams.queries(now);
        assert_eq!(streams.open.len(), MAX_STREAMS);
        streams.queries(now + IDLE);
        assert!(streams.is_empty());
        assert!(clients.iter_mut().all(|c| c.read(&mut [0]).unwrap() == 0));
        let mut client = connect(&mut streams, true);
        client.write_all(&[0xff; 3]).unwrap();
        until_ended(&mut streams, now);
        assert!(!matches!(client.read(&mut [0]), Ok(1..)));
    }
}
