//! What the program says that stands for a server reached over HTTP. Its stderr is a socket: lines go on to ours, but for those
//! with which it asks for another token.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use firedoor_model::{Digest, login::RENEW};

/// Longest line that is waited for.
const MAX: usize = 64 << 10;

/// Our end of the socket.
pub struct Words {
    socket: UnixStream,
    line: Vec<u8>,
    closed: bool,
}

impl Words {
    /// A socket, and its other end.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        Ok((Self { socket, line: Vec::new(), closed: false }, theirs.into()))
    }

    /// To be polled, as long as somebody may speak.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.socket.as_fd())
    }

    /// Passes on what was said, and gives the tokens that were refused.
    pub fn hear(&mut self, to: &mut impl io::Write) -> Vec<Digest> {
        let (mut refused, mut chunk) = (Vec::new(), [0; 4096]);
        while !self.closed {
            match self.socket.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(count) => self.line.extend(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
            while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                refused.extend(said(&line, to));
            }
            if self.closed || self.line.len() > MAX {
                said(&std::mem::take(&mut self.line), to);
            }
        }
        refused
    }

    /// Says which token there is. One that does not listen goes without.
    pub fn answer(&mut self, value: Option<&str>) {
        if let Ok(mut line) = serde_json::to_vec(&value) {
            line.push(b'\n');
            let _ = self.socket.write_all(&line);
        }
    }
}

fn said(line: &[u8], to: &mut impl io::Write) -> Option<Digest> {
    match std::str::from_utf8(line).ok().and_then(|text| text.strip_prefix(RENEW)) {
        Some(refused) => refused.trim_end().parse().ok(),
        None => {
            // Nothing is left to be done when even that fails.
            let _ = to.write_all(line);
            None
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
        write!(theirs, "firedoor: one\n{RENEW}{refused}\n{RENEW}nonsense\nfiredoor: tw").unwrap();
        assert_eq!(words.hear(&mut out), [refused]);
        assert_eq!(out, b"firedoor: one\n");
        words.answer(Some("Bearer y"));
        let mut line = String::new();
        io::BufReader::new(&theirs).read_line(&mut line).unwrap();
        assert_eq!(line, "\"Bearer y\"\n");
        drop(theirs);
        assert!(words.hear(&mut out).is_empty() && words.fd().is_none());
        assert_eq!(out, b"firedoor: one\nfiredoor: tw");
    }
}
