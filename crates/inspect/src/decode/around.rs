//! What is around the few places of a text where something is encoded. Of the rest the text itself says what it holds.

/// Bytes on either side of a place: of a text that is longer enough is known without what is encoded there.
pub(super) const AROUND: usize = 256;
/// Most bytes that a run of encoded characters goes on behind that: a key, a compressed file. It says something as a whole.
const MAX_RUN: usize = 256 * 1024;
/// Before and behind what was left out: no encoding has the one, and no command goes on over the other.
const BETWEEN: [u8; 2] = *b"\t\n";

/// Stretches of a text that do not touch, in order.
#[derive(Debug)]
pub(super) struct Around<'t> {
    text: &'t [u8],
    stretches: Vec<(usize, usize)>,
    /// Bytes that are in them.
    pub(super) bytes: usize,
}

impl<'t> Around<'t> {
    /// So much on either side of `places`, which are in order; what is encoded at each is shorter than that. `None` without any.
    pub(super) fn new(text: &'t [u8], beside: usize, places: impl Iterator<Item = usize>) -> Option<Self> {
        let mut near: Vec<(usize, usize)> = Vec::new();
        for at in places {
            let (from, to) = (at.saturating_sub(beside), text.len().min(at + beside));
            match near.last_mut() {
                Some((_, last)) if from <= *last => *last = to,
                _ => near.push((from, to)),
            }
        }
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for (from, to) in near {
            let before = stretches.last().map_or(0, |(_, last)| *last);
            if to <= before {
                continue;
            }
            let run = |part: &[u8]| part.iter().take(MAX_RUN).take_while(|b| goes_on(**b)).count();
            let to = to + run(text.get(to..).unwrap_or_default());
            let ahead = text.get(before..from).unwrap_or_default().iter().rev().take(MAX_RUN);
            let from = from - ahead.take_while(|b| goes_on(**b)).count();
            match stretches.last_mut() {
                Some((_, last)) if from <= *last => *last = to,
                _ => stretches.push((from, to)),
            }
        }
        let bytes = stretches.iter().map(|(from, to)| to - from).sum();
        (!stretches.is_empty()).then_some(Self { text, stretches, bytes })
    }

    /// Decodes every stretch into one text.
    pub(super) fn decoded(&self, mut decode: impl FnMut(&[u8], &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes);
        let mut read = 0;
        for (from, to) in &self.stretches {
            if *from > read {
                out.extend(BETWEEN);
            }
            decode(self.text.get(*from..*to).unwrap_or_default(), &mut out);
            read = *to;
        }
        if read < self.text.len() {
            out.extend(BETWEEN);
        }
        out
    }
}

/// Whether a stretch goes on over a byte: runs of encoded characters, escapes and characters beyond ASCII stay whole.
fn goes_on(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || b"+/=-_%\\&#;".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_lie_around_places() {
        let text = "é, ".repeat(500);
        for (places, want) in [
            (&[][..], None),
            (&[0], Some(vec![(0, 258)])),
            (&[1000, 1400, 1999], Some(vec![(744, 1658), (1743, 2000)])),
            (&[300, 900], Some(vec![(44, 558), (644, 1158)])),
            (&[300, 812], Some(vec![(44, 1070)])),
        ] {
            let around = Around::new(text.as_bytes(), AROUND, places.iter().copied());
            assert_eq!(around.map(|around| around.stretches), want, "{places:?}");
        }
        let around = Around::new(text.as_bytes(), AROUND, [300, 900].into_iter()).unwrap();
        let decoded = around.decoded(|stretch, out| out.extend_from_slice(&stretch[..4]));
        assert_eq!((decoded, around.bytes), ("\t\né, \t\né, \t\n".into(), 514 + 514));
    }

    #[test]
    fn what_is_encoded_as_a_whole_stays_whole() {
        let run = "QUJD".repeat(1000);
        for (before, after) in [("", ""), ("a b ", " c d"), ("x\n", "\ny")] {
            let text = format!("{before}{run}%0A{run}%0A{run}{after}");
            let escapes = memchr::memchr_iter(b'%', text.as_bytes());
            let around = Around::new(text.as_bytes(), AROUND, escapes).unwrap();
            assert_eq!(around.stretches, [(before.len(), text.len() - after.len())]);
        }
    }
}
