//! What the program says that stands for a server reached over HTTP. Its stderr is a socket: lines go on to ours, but for those
//! with which it asks for another token.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use firedoor_model::{
    Digest,
    login::{Another, RENEW},
};

/// Longest line that is waited for.
const MAX: usize = 64 << 10;

/// How often is read in one turn: one that speaks without end must not keep us from everything else.
const READS: usize = 16;

/// Our end of the socket.
pub struct Words {
    socket: UnixStream,
    line: Vec<u8>,
    closed: bool,
    /// Lines that nobody took.
    lost: u64,
}

impl Words {
    /// A socket, and its other end.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        Ok((Self { socket, line: Vec::new(), closed: false, lost: 0 }, theirs.into()))
    }

    /// To be polled, as long as somebody may speak.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.socket.as_fd())
    }

    /// Passes on some of what was said, to whoever says whether they took it, and gives the tokens that were refused.
    pub fn hear(&mut self, mut to: impl FnMut(&[u8]) -> bool) -> Vec<Digest> {
        let (mut refused, mut chunk) = (Vec::new(), [0; 4096]);
        for _ in 0..READS {
            if self.closed {
                break;
            }
            match self.socket.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(count) => self.line.extend(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
            while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                refused.extend(self.said(&line, &mut to));
            }
            if self.closed || self.line.len() > MAX {
                let rest = std::mem::take(&mut self.line);
                self.said(&rest, &mut to);
            }
        }
        refused
    }

    fn said(&mut self, line: &[u8], to: &mut impl FnMut(&[u8]) -> bool) -> Option<Digest> {
        if let Some(refused) = std::str::from_utf8(line).ok().and_then(|text| text.strip_prefix(RENEW)) {
            return refused.trim_end().parse().ok();
        }
        if line.is_empty() {
            return None;
        }
        if self.lost > 0
            && to(format!("firedoor: {} lines of this log were lost, because nobody read it\n", self.lost).as_bytes())
        {
            self.lost = 0;
        }
        if self.lost > 0 || !to(line) {
            self.lost += 1;
        }
        None
    }

    /// Says which token there is. One that does not listen goes without.
    pub fn answer(&mut self, another: &Another) {
        if let Ok(mut line) = serde_json::to_vec(another) {
            line.push(b'\n');
            let _ = self.socket.write_all(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;

    use super::*;

    #[test]
    fn words_go_on_and_questions_do_not() {
        let (mut words, theirs) = Words::pair().unwrap();
        let mut theirs = UnixStream::from(theirs);
        let refused = Digest::of(b"x");
        let mut out = Vec::new();
        let mut take = |line: &[u8]| {
            out.extend_from_slice(line);
            true
        };
        write!(theirs, "firedoor: one\n{RENEW}{refused}\n{RENEW}nonsense\nfiredoor: tw").unwrap();
        assert_eq!(words.hear(&mut take), [refused]);
        words.answer(&Another { refused, value: Some("Bearer y".into()) });
        let mut line = String::new();
        io::BufReader::new(&theirs).read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"refused\":\"{refused}\",\"value\":\"Bearer y\"}}\n"));
        drop(theirs);
        assert!(words.hear(&mut take).is_empty() && words.fd().is_none());
        assert_eq!(out, b"firedoor: one\nfiredoor: tw");
    }

    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up() {
        let (mut words, theirs) = Words::pair().unwrap();
        let mut theirs = UnixStream::from(theirs);
        theirs.write_all(b"one\ntwo\nthree\n").unwrap();
        let mut out = Vec::new();
        assert!(words.hear(|_| false).is_empty());
        theirs.write_all(b"four\n").unwrap();
        words.hear(|line| {
            out.extend_from_slice(line);
            true
        });
        assert_eq!(out, b"firedoor: 3 lines of this log were lost, because nobody read it\nfour\n");
    }

    #[test]
    fn one_that_speaks_without_end_is_heard_for_a_turn() {
        let (mut words, theirs) = Words::pair().unwrap();
        let mut theirs = UnixStream::from(theirs);
        theirs.set_nonblocking(true).unwrap();
        let line = [b'x'; 1023];
        let mut count = 0;
        let _ = theirs.write_all(&[line.as_slice(), b"\n"].concat());
        // Each line that is taken makes room for two others.
        words.hear(|_| {
            count += 1;
            let _ = theirs.write_all(&[line.as_slice(), b"\n", &line, b"\n"].concat());
            true
        });
        assert!(count <= 2 * READS * 4, "{count}");
        assert!(words.fd().is_some());
    }
}
