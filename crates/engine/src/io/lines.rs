//! Splits a byte stream into lines of bounded length, without copying them.

/// Size of the buffer at first, and after a large message has gone.
const INITIAL: usize = 16 << 10;

/// How much of the start and the end of a line that is too long is kept, to find its id.
const KEPT: usize = 64 << 10;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The bytes as they came, line end included (unless the stream ended without one).
    Whole(&'a [u8]),
    /// A line longer than the limit. Its bytes are gone but for some of its start and end.
    TooLong {
        /// How long it was, line end included.
        bytes: u64,
        /// Its first bytes.
        head: &'a [u8],
        /// Its last bytes, without the line end.
        tail: &'a [u8],
    },
}

/// The buffer. Bytes are read straight into [`Lines::space`].
pub struct Lines {
    data: Vec<u8>,
    /// `data[start..end]` holds bytes that were read and not yet given out.
    start: usize,
    end: usize,
    /// `data[start..scanned]` holds no line end.
    scanned: usize,
    limit: usize,
    skipped: Option<Skipped>,
    /// The skipped line that was given out last; its parts are borrowed by the caller.
    given: Skipped,
}

#[derive(Default)]
struct Skipped {
    bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Skipped {
    fn take(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        let room = KEPT - self.head.len().min(KEPT);
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        self.tail.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
        let extra = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..extra);
    }
}

impl Lines {
    /// Lines of at most `limit` bytes, line end not counted.
    pub fn new(limit: usize) -> Self {
        Self { data: vec![0; INITIAL], start: 0, end: 0, scanned: 0, limit, skipped: None, given: Skipped::default() }
    }

    /// Where to read the next bytes to; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end, self.scanned) = (0, 0, 0);
            if self.data.len() > 16 * INITIAL {
                self.data = vec![0; INITIAL];
            }
        }
        if self.end == self.data.len() {
            if self.start > 0 {
                self.data.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.scanned -= self.start;
                self.start = 0;
            } else {
                let longer = (self.data.len() * 2).min(self.limit.saturating_add(INITIAL)).max(self.data.len() + 1);
                self.data.resize(longer, 0);
            }
        }
        &mut self.data[self.end..]
    }

    /// Says that `count` bytes were read into [`Lines::space`].
    pub fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.data.len());
    }

    /// Bytes that were read and not yet given out. The parts of a line that is being skipped are not among them.
    pub fn held(&self) -> usize {
        self.end - self.start
    }

    /// Whether a line is being skipped whose end has not come.
    pub fn skips(&self) -> bool {
        self.skipped.is_some()
    }

    /// The next line that has come in full, and what [`Lines::held`] is after it.
    pub fn next(&mut self) -> Option<(Line<'_>, usize)> {
        match memchr::memchr(b'\n', &self.data[self.scanned..self.end]) {
            Some(i) => {
                let from = self.start;
                let stop = self.scanned + i + 1;
                self.start = stop;
                self.scanned = stop;
                let held = self.held();
                if self.skipped.is_some() || stop - from - 1 > self.limit {
                    return Some((self.give_skipped(from, stop), held));
                }
                Some((Line::Whole(&self.data[from..stop]), held))
            }
            None => {
                self.scanned = self.end;
                if self.skipped.is_some() || self.end - self.start > self.limit {
                    self.skipped.get_or_insert_default().take(&self.data[self.start..self.end]);
                    self.start = self.end;
                }
                None
            }
        }
    }

    /// What is left when the stream has ended: a last line without a line end.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        let (from, stop) = (self.start, self.end);
        (self.start, self.scanned) = (stop, stop);
        if self.skipped.is_some() {
            return Some(self.give_skipped(from, stop));
        }
        (from < stop).then(|| Line::Whole(&self.data[from..stop]))
    }

    fn give_skipped(&mut self, from: usize, stop: usize) -> Line<'_> {
        let mut skipped = self.skipped.take().unwrap_or_default();
        skipped.take(&self.data[from..stop]);
        while skipped.tail.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            skipped.tail.pop();
        }
        self.given = skipped;
        Line::TooLong { bytes: self.given.bytes, head: &self.given.head, tail: &self.given.tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `parts` and collects what comes out.
    fn check(limit: usize, parts: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let show = |line: Line<'_>| match line {
            Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::TooLong { bytes, head, tail } => {
                format!("<{bytes}:{}:{}>", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
            }
        };
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let space = lines.space();
                let n = space.len().min(rest.len());
                space[..n].copy_from_slice(&rest[..n]);
                lines.filled(n);
                rest = &rest[n..];
                while let Some((line, _)) = lines.next() {
                    out.push(show(line));
                }
            }
        }
        out.extend(lines.finish().map(show));
        out
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        assert_eq!(check(100, &[b"a\nb", b"c\r\n\n", b"end"]), ["a\n", "bc\r\n", "\n", "end"]);
        assert_eq!(check(100, &[]), Vec::<String>::new());
        let long = "x".repeat(100_000);
        assert_eq!(check(200_000, &[long.as_bytes(), b"\ny\n"]), [format!("{long}\n"), "y\n".into()]);
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_is_whole() {
        assert_eq!(check(4, &[b"12345\nok\n"]), ["<6:12345\n:12345>", "ok\n"]);
        assert_eq!(check(4, &[b"1234", b"5", b"67", b"\r\nok\n"]), ["<9:1234567\r\n:1234567>", "ok\n"]);
        assert_eq!(check(4, &[b"1234\n"]), ["1234\n"]);
        assert_eq!(check(4, &[b"123456"]), ["<6:123456:123456>"]);
    }

    #[test]
    fn a_flood_without_line_ends_needs_little_memory() {
        let mut lines = Lines::new(1 << 20);
        for _ in 0..200 {
            let n = lines.space().len();
            lines.filled(n);
            assert_eq!(lines.next(), None);
        }
        assert!(lines.data.len() <= (1 << 20) + 2 * INITIAL);
    }

    proptest::proptest! {
        #[test]
        fn any_cut_gives_the_same_lines(text in "[ab\\n]{0,60}", cut in 0usize..60) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            proptest::prop_assert_eq!(check(1000, &[a, b]).concat(), text);
        }
    }
}
