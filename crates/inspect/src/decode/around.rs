//! What is around the few places of a text where something is encoded. Of the rest the text itself says what it holds.

/// Bytes on either side of a place: of a text that is longer enough is known without what is encoded there.
const AROUND: usize = 256;
/// Most bytes of a character behind its first.
const CHARACTER: usize = 3;
/// Between two stretches: no encoding has the one, and no command goes on over the other.
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
    /// `places` are in order, and what is encoded at each is shorter than [`AROUND`]. `None` without any.
    pub(super) fn new(text: &'t [u8], places: impl Iterator<Item = usize>) -> Option<Self> {
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for at in places {
            let (from, to) = (at.saturating_sub(AROUND), text.len().min(at + AROUND));
            match stretches.last_mut() {
                Some((_, last)) if from <= *last + 2 * CHARACTER => *last = to,
                _ => stretches.push((from, to)),
            }
        }
        let inside = |at: usize| text.get(at).is_some_and(|b| (0x80..0xC0).contains(b));
        for (from, to) in &mut stretches {
            *from -= (0..CHARACTER.min(*from)).take_while(|back| inside(*from - back)).count();
            *to += (0..CHARACTER).take_while(|more| inside(*to + more)).count();
        }
        let bytes = stretches.iter().map(|(from, to)| to - from).sum();
        (!stretches.is_empty()).then_some(Self { text, stretches, bytes })
    }

    /// Decodes every stretch into one text.
    pub(super) fn decoded(&self, mut decode: impl FnMut(&[u8], &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes);
        for (number, (from, to)) in self.stretches.iter().enumerate() {
            if number > 0 {
                out.extend(BETWEEN);
            }
            decode(self.text.get(*from..*to).unwrap_or_default(), &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_lie_around_places() {
        let text = "é".repeat(1000);
        for (places, want) in [
            (&[][..], None),
            (&[0], Some(vec![(0, 256)])),
            (&[1000, 1400, 1999], Some(vec![(744, 1656), (1742, 2000)])),
            (&[301, 822], Some(vec![(44, 558), (566, 1078)])),
            (&[301, 818], Some(vec![(44, 1074)])),
        ] {
            let around = Around::new(text.as_bytes(), places.iter().copied());
            assert_eq!(around.map(|around| around.stretches), want, "{places:?}");
        }
        let around = Around::new(text.as_bytes(), [301, 822].into_iter()).unwrap();
        let decoded = around.decoded(|stretch, out| out.extend_from_slice(&stretch[..4]));
        assert_eq!((decoded, around.bytes), ("éé\t\néé".into(), 514 + 512));
    }
}
