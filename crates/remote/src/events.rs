//! Server-sent events (WHATWG HTML, "Server-sent events"), split out of a response's bytes.

use memchr::memchr2;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty for messages.
    pub kind: String,
    /// Its data, lines joined by line feeds. Not looked at.
    pub data: Vec<u8>,
}

/// An event is longer than a message may be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's message has more than {0} MiB; limits.message_mib in Firedoor's config.toml raises that limit")]
pub struct TooLong(usize);

/// Longest type, id or other field that is kept, in bytes.
const MAX_FIELD: usize = 4096;

/// The parser.
pub struct Events {
    limit: usize,
    /// The current line, as far as it has come.
    line: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// A byte order mark may come.
    start: bool,
    data: Vec<u8>,
    kind: String,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<u64>,
}

impl Events {
    /// Events with at most `limit` bytes of data.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_return: false,
            start: true,
            data: Vec::new(),
            kind: String::new(),
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last event that had one: where the server can go on from.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server wants to be left alone after the stream has ended, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Goes on with another stream of the same events: what had come of an event that was cut off is forgotten.
    pub fn restart(&mut self) {
        self.line.clear();
        self.data.clear();
        self.kind.clear();
        self.id = None;
        (self.after_return, self.start) = (false, true);
    }

    /// Takes bytes as they come, and gives the events that are complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n') {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            // The name of the field and a space come on top of its value.
            if self.line.len() + self.data.len() + part.len() > self.limit.saturating_add(MAX_FIELD) {
                return Err(TooLong(self.limit >> 20));
            }
            self.line.extend_from_slice(part);
            bytes = rest;
            if let Some((ending, rest)) = rest.split_first() {
                bytes = rest;
                self.after_return = *ending == b'\r';
                events.extend(self.end_of_line());
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.start) && line.starts_with("\u{feff}".as_bytes()) {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = memchr::memchr(b':', &line);
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || std::str::from_utf8(value).ok().filter(|v| v.len() <= MAX_FIELD);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = text().unwrap_or("?").to_owned(),
            b"id" => self.id = text().filter(|id| !id.contains('\0')).map(str::to_owned).or(self.id.take()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = text().and_then(|v| v.parse().ok()).or(self.retry);
            }
            // A comment, or a field that means nothing.
            _ => {}
        }
        // Give the buffer back: the next line needs one too.
        line.clear();
        if line.capacity() <= 64 << 10 {
            self.line = line;
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        if let Some(id) = &self.id {
            self.last_id = Some(id.clone()).filter(|id| !id.is_empty());
        }
        let kind = std::mem::take(&mut self.kind);
        let mut data = std::mem::take(&mut self.data);
        // Without data it says only where to go on from.
        data.pop()?;
        Some(Event { kind: if kind == "message" { String::new() } else { kind }, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &[u8], cut: usize) -> (Vec<(String, String)>, Option<String>, Option<u64>) {
        let mut events = Events::new(1 << 20);
        let (a, b) = text.split_at(cut.min(text.len()));
        let mut all = events.feed(a).unwrap();
        all.extend(events.feed(b).unwrap());
        let show = |e: Event| (e.kind, String::from_utf8(e.data).unwrap());
        (all.into_iter().map(show).collect(), events.last_id().map(str::to_owned), events.retry())
    }

    #[test]
    fn events_of_every_form() {
        let message = |data: &str| (String::new(), data.to_owned());
        for (text, want, id, retry) in [
            ("data: {}\n\n", vec![message("{}")], None, None),
            ("\u{feff}data:{}\r\n\r\n", vec![message("{}")], None, None),
            ("data: {\rdata: }\r\r", vec![message("{\n}")], None, None),
            ("event: message\ndata: 1\n\ndata: 2\n\n", vec![message("1"), message("2")], None, None),
            ("event: endpoint\ndata: /x\n\n", vec![("endpoint".into(), "/x".into())], None, None),
            (": ping\n\n:\n\nid: 7\nretry: 20\ndata:\n\n", vec![message("")], Some("7"), Some(20)),
            ("id: 7\n\n", vec![], Some("7"), None),
            ("id: 7\n\nid\ndata: x\n\n", vec![message("x")], None, None),
            ("id: 7\ndata: cut off", vec![], None, None),
            ("retry: 1x\nnonsense\ndata: x\n\n", vec![message("x")], None, None),
        ] {
            for cut in 0..=text.len() {
                let got = check(text.as_bytes(), cut);
                assert_eq!(got, (want.clone(), id.map(str::to_owned), retry), "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_flood_ends() {
        let mut events = Events::new(1 << 20);
        let many = (0..40).map(|_| events.feed(&[b'x'; 64 << 10])).find_map(Result::err);
        assert_eq!(many, Some(TooLong(1)));
        let mut events = Events::new(1 << 20);
        assert!((0..40).any(|_| events.feed(format!("data: {}\n", "x".repeat(64 << 10)).as_bytes()).is_err()));
    }

    #[test]
    fn an_event_that_was_cut_off_is_not_joined_to_the_next_stream() {
        let mut events = Events::new(100);
        assert_eq!(events.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b").unwrap().len(), 1);
        events.restart();
        assert_eq!(events.last_id(), Some("1"));
        assert_eq!(events.feed(b"data: c\n\n").unwrap(), [Event { kind: String::new(), data: b"c".into() }]);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(data in "[^\r\n]{0,40}", cut in 0usize..60) {
            let text = format!("data: {data}\n\n");
            prop_assert_eq!(check(text.as_bytes(), cut.min(text.len())).0, vec![(String::new(), data)]);
        }
    }
}
