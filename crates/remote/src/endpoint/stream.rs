//! What goes to the client on one stream of events, and what of it can be asked for again. Pure.

use std::{
    collections::{BTreeMap, VecDeque},
    task::Waker,
};

use bytes::Bytes;

/// The stream that belongs to no request: what a server says by itself (revisions 2025-03-26 to 2025-11-25).
pub const OWN: u64 = 0;

/// What is kept for clients that come back, in bytes, of one session.
const KEPT: usize = 8 << 20;

/// What waits for a client that is not there, in bytes, of one stream. More than a large message.
const ABSENT: usize = 64 << 20;

/// Bytes on their way to clients that are there, from which on the server is not read.
const HIGH_WATER: usize = 4 << 20;

/// One stream.
#[derive(Default)]
struct Stream {
    /// Number and bytes of each event that is kept.
    events: VecDeque<(u64, Bytes)>,
    /// Numbers of the next event, and of the next that is to be sent.
    next: u64,
    send: u64,
    /// Nothing more comes.
    ended: bool,
    /// It began with an event that can be gone on from.
    primed: bool,
    /// The connection that carries it is to end once everything is sent: the client comes back later.
    paused: bool,
    /// Which connection carries it: the last one.
    carrier: Option<u64>,
    waker: Option<Waker>,
}

/// What a connection gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Event(Bytes),
    Wait,
    End,
}

/// What an event that was asked for again can still bring.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("what follows that event is not kept any more")]
pub struct Lost;

/// All streams of one session.
pub struct Streams {
    all: BTreeMap<u64, Stream>,
    last: u64,
    carriers: u64,
    kept: usize,
    /// Events have ids, and can be asked for again.
    resumable: bool,
}

impl Streams {
    pub fn new(resumable: bool) -> Self {
        let all = if resumable { BTreeMap::from([(OWN, Stream::default())]) } else { BTreeMap::new() };
        Self { all, last: OWN, carriers: 0, kept: 0, resumable }
    }

    /// A new stream. With `primed` its first event has an id and nothing else, so that a client which is cut off before
    /// any other can come back (2025-11-25, "Sending Messages to the Server").
    pub fn open(&mut self, primed: bool) -> u64 {
        self.last += 1;
        let mut stream = Stream::default();
        if primed && self.resumable {
            let bytes = Bytes::from(format!("id: {}-0\ndata: \n\n", self.last));
            self.kept += bytes.len();
            stream.events.push_back((0, bytes));
            stream.next = 1;
            stream.primed = true;
        }
        self.all.insert(self.last, stream);
        self.last
    }

    /// Puts a message on a stream. False when there is no such stream.
    pub fn push(&mut self, number: u64, message: &[u8]) -> bool {
        let resumable = self.resumable;
        let Some(stream) = self.all.get_mut(&number) else { return false };
        let mut bytes = Vec::with_capacity(message.len() + 48);
        if resumable {
            bytes.extend_from_slice(format!("id: {number}-{}\n", stream.next).as_bytes());
        }
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(b"\n\n");
        self.kept += bytes.len();
        stream.events.push_back((stream.next, bytes.into()));
        stream.next += 1;
        stream.waker.take().into_iter().for_each(Waker::wake);
        if stream.carrier.is_none() && stream.waiting() > ABSENT {
            // Whoever comes back finds that it is gone, and not a part of it.
            self.forget(number);
        }
        self.trim();
        true
    }

    /// Closes the connection that carries it and asks the client to come back after so many milliseconds, if it is a client
    /// that knows this (`primed`).
    pub fn pause(&mut self, number: u64, retry: u64) {
        let Some(stream) = self.all.get_mut(&number).filter(|stream| stream.primed && !stream.ended) else { return };
        let bytes = Bytes::from(format!("id: {number}-{}\nretry: {retry}\ndata: \n\n", stream.next));
        self.kept += bytes.len();
        stream.events.push_back((stream.next, bytes));
        stream.next += 1;
        stream.paused = stream.carrier.is_some();
        stream.waker.take().into_iter().for_each(Waker::wake);
        self.trim();
    }

    /// Nothing more comes on it.
    pub fn end(&mut self, number: u64) {
        if let Some(stream) = self.all.get_mut(&number) {
            stream.ended = true;
            stream.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// A connection carries the stream from now on, in place of an earlier one. Gives the connection's number.
    pub fn attach(&mut self, number: u64) -> Option<u64> {
        let stream = self.all.get_mut(&number)?;
        self.carriers += 1;
        stream.carrier = Some(self.carriers);
        stream.paused = false;
        stream.waker.take().into_iter().for_each(Waker::wake);
        Some(self.carriers)
    }

    /// Goes on behind an event that the client has, by the event's id. Gives the stream.
    pub fn resume(&mut self, id: &str) -> Result<u64, Lost> {
        let (number, event) = id.split_once('-').ok_or(Lost)?;
        let (number, event): (u64, u64) = (number.parse().map_err(|_| Lost)?, event.parse().map_err(|_| Lost)?);
        let stream = self.all.get_mut(&number).ok_or(Lost)?;
        let oldest = stream.events.front().map_or(stream.next, |(oldest, _)| *oldest);
        if event >= stream.next || event + 1 < oldest {
            return Err(Lost);
        }
        stream.send = event + 1;
        Ok(number)
    }

    /// What a connection gets next. It waits with this waker.
    pub fn next(&mut self, number: u64, carrier: u64, waker: &Waker) -> Next {
        let Some(stream) = self.all.get_mut(&number).filter(|stream| stream.carrier == Some(carrier)) else {
            return Next::End;
        };
        let found = stream.events.iter().find(|(event, _)| *event >= stream.send);
        if let Some((event, bytes)) = found {
            stream.send = event + 1;
            let bytes = bytes.clone();
            self.trim();
            return Next::Event(bytes);
        }
        if stream.ended || stream.paused {
            return Next::End;
        }
        stream.waker = Some(waker.clone());
        Next::Wait
    }

    /// The only event so far, if nothing more comes: an answer that can be sent without a stream.
    pub fn only(&self, number: u64) -> Option<&[u8]> {
        let stream = self.all.get(&number).filter(|stream| stream.ended && stream.next == 1 && stream.send == 0)?;
        stream.events.front().and_then(|(_, bytes)| bytes.strip_prefix(b"data: ")?.strip_suffix(b"\n\n"))
    }

    /// Whether the stream has something to send, or has ended. If not, this waker hears of it.
    pub fn is_ready(&mut self, number: u64, waker: &Waker) -> bool {
        let Some(stream) = self.all.get_mut(&number) else { return true };
        let ready = stream.ended || stream.send < stream.next;
        if !ready {
            stream.waker = Some(waker.clone());
        }
        ready
    }

    /// A connection has gone. True when it carried the stream, and more was to come.
    pub fn detach(&mut self, number: u64, carrier: u64) -> bool {
        let Some(stream) = self.all.get_mut(&number).filter(|stream| stream.carrier == Some(carrier)) else {
            return false;
        };
        stream.carrier = None;
        let open = !stream.ended;
        if !self.resumable {
            self.forget(number);
        }
        open
    }

    /// Whether a connection carries it.
    pub fn is_carried(&self, number: u64) -> bool {
        self.all.get(&number).is_some_and(|stream| stream.carrier.is_some())
    }

    /// Whether a connection carries any.
    pub fn any_carried(&self) -> bool {
        self.all.values().any(|stream| stream.carrier.is_some())
    }

    /// Whether so much is on its way that the server should wait.
    pub fn is_full(&self) -> bool {
        let carried = self.all.values().filter(|stream| stream.carrier.is_some());
        carried.map(Stream::waiting).sum::<usize>() > HIGH_WATER
    }

    fn forget(&mut self, number: u64) {
        if let Some(stream) = self.all.remove(&number) {
            self.kept -= stream.events.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            if number == OWN {
                // A session always has it; what was in it is gone, and its numbers are not used again.
                self.all.insert(OWN, Stream { next: stream.next, send: stream.next, ..Stream::default() });
            }
        }
    }

    /// Gives up what was sent, oldest first, beyond what is kept.
    fn trim(&mut self) {
        while self.kept > KEPT || !self.resumable {
            let sent = |stream: &Stream| stream.events.front().is_some_and(|(event, _)| *event < stream.send);
            let Some((number, stream)) = self.all.iter_mut().find(|(_, stream)| sent(stream)) else { return };
            self.kept -= stream.events.pop_front().map_or(0, |(_, bytes)| bytes.len());
            let number = *number;
            if stream.events.is_empty() && stream.ended && number != OWN {
                self.all.remove(&number);
            }
        }
    }
}

impl Stream {
    fn waiting(&self) -> usize {
        self.events.iter().rev().take_while(|(event, _)| *event >= self.send).map(|(_, bytes)| bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(streams: &mut Streams, number: u64, carrier: u64) -> Option<String> {
        match streams.next(number, carrier, Waker::noop()) {
            Next::Event(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            Next::Wait => None,
            Next::End => Some("end".into()),
        }
    }

    #[test]
    fn a_client_that_was_cut_off_goes_on_where_it_was() {
        let mut streams = Streams::new(true);
        let number = streams.open(true);
        let first = streams.attach(number).unwrap();
        assert!(streams.push(number, b"{}"));
        assert_eq!(next(&mut streams, number, first).unwrap(), "id: 1-0\ndata: \n\n");
        assert_eq!(next(&mut streams, number, first).unwrap(), "id: 1-1\ndata: {}\n\n");
        assert_eq!(next(&mut streams, number, first), None);
        assert!(streams.detach(number, first) && !streams.is_carried(number));
        streams.push(number, b"[]");
        streams.end(number);
        // It has not seen the event that was sent last.
        assert_eq!(streams.resume("1-0"), Ok(number));
        let second = streams.attach(number).unwrap();
        assert_eq!(next(&mut streams, number, second).unwrap(), "id: 1-1\ndata: {}\n\n");
        assert_eq!(next(&mut streams, number, second).unwrap(), "id: 1-2\ndata: []\n\n");
        assert_eq!(next(&mut streams, number, second).unwrap(), "end");
        assert_eq!(next(&mut streams, number, first).unwrap(), "end");
        assert!(!streams.detach(number, first) && !streams.detach(number, second));
        for bad in ["", "1", "x-1", "1-x", "1-3", "2-0", "1-18446744073709551615"] {
            assert_eq!(streams.resume(bad), Err(Lost), "{bad}");
        }
    }

    #[test]
    fn a_stream_is_closed_so_that_its_client_comes_back() {
        let mut streams = Streams::new(true);
        let number = streams.open(true);
        let first = streams.attach(number).unwrap();
        next(&mut streams, number, first);
        streams.pause(number, 20);
        assert_eq!(next(&mut streams, number, first).unwrap(), "id: 1-1\nretry: 20\ndata: \n\n");
        assert_eq!(next(&mut streams, number, first).unwrap(), "end");
        assert!(streams.detach(number, first), "more is to come");
        assert_eq!(streams.resume("1-1"), Ok(number));
        let second = streams.attach(number).unwrap();
        assert_eq!(next(&mut streams, number, second), None, "it is open again");
        // Who is not there needs no end.
        assert!(streams.detach(number, second));
        streams.pause(number, 20);
        let third = streams.attach(number).unwrap();
        assert_eq!(next(&mut streams, number, third).unwrap(), "id: 1-2\nretry: 20\ndata: \n\n");
        assert_eq!(next(&mut streams, number, third), None);
        // Clients of earlier revisions do not come back.
        let earlier = streams.open(false);
        let carrier = streams.attach(earlier).unwrap();
        streams.pause(earlier, 20);
        assert_eq!(next(&mut streams, earlier, carrier), None);
        streams.pause(u64::MAX, 20);
    }

    #[test]
    fn a_later_connection_takes_the_stream_over() {
        let mut streams = Streams::new(true);
        let first = streams.attach(OWN).unwrap();
        assert_eq!(next(&mut streams, OWN, first), None);
        let second = streams.attach(OWN).unwrap();
        assert_eq!(next(&mut streams, OWN, first).unwrap(), "end");
        assert!(!streams.detach(OWN, first) && streams.is_carried(OWN));
        streams.push(OWN, b"1");
        assert_eq!(next(&mut streams, OWN, second).unwrap(), "id: 0-0\ndata: 1\n\n");
    }

    #[test]
    fn without_resumption_nothing_is_kept() {
        let mut streams = Streams::new(false);
        let number = streams.open(true);
        let carrier = streams.attach(number).unwrap();
        assert!(!streams.is_ready(number, Waker::noop()));
        streams.push(number, b"{}");
        assert_eq!((streams.is_ready(number, Waker::noop()), streams.only(number)), (true, None));
        streams.end(number);
        assert_eq!(streams.only(number), Some(b"{}".as_slice()));
        assert_eq!(next(&mut streams, number, carrier).unwrap(), "data: {}\n\n");
        assert_eq!((next(&mut streams, number, carrier).unwrap().as_str(), streams.kept), ("end", 0));
        let other = streams.open(false);
        let carrier = streams.attach(other).unwrap();
        assert!(streams.detach(other, carrier) && !streams.push(other, b"{}"));
        assert!(streams.all.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut streams = Streams::new(true);
        let large = vec![b'x'; 1 << 20];
        for _ in 0..50 {
            let number = streams.open(true);
            let carrier = streams.attach(number).unwrap();
            streams.push(number, &large);
            streams.end(number);
            while next(&mut streams, number, carrier).unwrap() != "end" {}
            streams.detach(number, carrier);
        }
        assert!(streams.kept <= KEPT && streams.all.len() < 12, "{} {}", streams.kept, streams.all.len());
        assert_eq!(streams.resume("1-0"), Err(Lost));
        assert_eq!(streams.resume("50-0"), Ok(50));
        // Nobody listens, and nobody comes back.
        for _ in 0..200 {
            streams.push(OWN, &large);
        }
        assert!(streams.kept <= KEPT + ABSENT + (2 << 20), "{}", streams.kept);
        assert_eq!(streams.resume("0-3"), Err(Lost));
    }

    #[test]
    fn a_slow_reader_makes_the_server_wait() {
        let mut streams = Streams::new(true);
        let number = streams.open(false);
        let carrier = streams.attach(number).unwrap();
        streams.push(number, &vec![b'x'; HIGH_WATER]);
        assert!(streams.is_full());
        next(&mut streams, number, carrier);
        assert!(!streams.is_full());
    }
}
