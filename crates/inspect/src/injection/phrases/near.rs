//! Where in a text phrases are looked for.

use crate::keywords::Met;

/// Bytes before and after a keyword that its regex looks at.
const BEFORE: usize = 160;
const AFTER: usize = 400;
/// Bytes that a regex looks at for one keyword. No longer phrase is looked for.
pub(super) const SURROUNDINGS: usize = BEFORE + AFTER;
/// The same of a regex that is tried only where its keyword stands behind what a phrase begins with: as far before it as that may
/// stand.
const BEGINS: usize = 240;
const ENDS: usize = 120;
/// Bytes of letters beyond ASCII in a part of a text from which words are looked for in it that have some: an order has more.
const STRANGE: u8 = 8;
const PART: usize = 255;
/// Bytes beside a part that are looked at with it, because a word may stand at its end.
const BESIDE: usize = 64;

/// Where one rule's regex is to look in one text: stretches around its keywords that do not touch. Each byte is looked at once, however
/// many keywords stand near it.
#[derive(Default)]
pub(super) struct Near {
    pub(super) stretches: Vec<(usize, usize)>,
    pub(super) bytes: usize,
}

impl Near {
    /// Adds what is around a keyword.
    fn add(&mut self, from: usize, to: usize) {
        // Keywords come in order, but for those that lie in each other.
        match self.stretches.last_mut() {
            Some(last) if from <= last.1 => {
                let wider = (last.0.min(from), last.1.max(to));
                self.bytes += wider.1 - wider.0 - (last.1 - last.0);
                *last = wider;
            }
            _ => {
                self.bytes += to - from;
                self.stretches.push((from, to));
            }
        }
    }

    /// Keeps the first `most` bytes.
    fn cut(&mut self, most: usize) {
        let mut left = most;
        self.stretches.retain_mut(|(from, to)| {
            *to = (*to).min(*from + left);
            left -= *to - *from;
            from < to
        });
        self.bytes = most - left;
    }
}

/// Leaves to each of these so much that it is no more than `room` together: all where that is little, and of the rest the beginning. A
/// rule whose words stand everywhere takes nothing from one whose words stand once; where there is not even room for the surroundings
/// of one word each, what remains is for some.
pub(super) fn share_out(mut near: Vec<&mut Near>, mut room: usize) {
    near.sort_by_key(|near| near.bytes);
    let mut others = near.len();
    for near in near {
        let most = room.min((room / others.max(1)).max(SURROUNDINGS));
        others -= 1;
        near.cut(most);
        room -= near.bytes;
    }
}

/// The lines that a word is looked for by.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Whose regexes are tried around it.
    pub(super) around: Vec<usize>,
    /// Whose regexes are tried around it where it stands behind what their phrases begin with.
    pub(super) behind: Vec<usize>,
    /// Whose phrases begin with it.
    pub(super) begin: Vec<usize>,
}

impl Lines {
    pub(super) fn all(&self) -> impl Iterator<Item = &usize> {
        self.around.iter().chain(&self.behind).chain(&self.begin)
    }
}

/// The same for all lines. Most texts have words of a few.
pub(super) struct Nearby {
    lines: usize,
    /// Bytes of the text.
    text: usize,
    /// By line: one more than where it stands in `near`, or zero.
    places: Vec<u16>,
    near: Vec<(usize, Near)>,
    /// Where the last word ends that a line's phrases begin with.
    begun: Vec<(usize, usize)>,
}

impl Nearby {
    pub(super) fn new(lines: usize, text: usize) -> Self {
        Self { lines, text, places: Vec::new(), near: Vec::new(), begun: Vec::new() }
    }

    /// Adds what is around a word of some lines.
    pub(super) fn add(&mut self, lines: &Lines, met: Met) {
        for line in &lines.begin {
            match self.begun.iter_mut().find(|(other, _)| other == line) {
                Some((_, at)) => *at = met.end,
                None => self.begun.push((*line, met.end)),
            }
        }
        let (from, to) = (met.start.saturating_sub(BEFORE), self.text.min(met.end + AFTER));
        lines.around.iter().for_each(|line| self.add_to(*line, from, to));
        let (from, to) = (met.start.saturating_sub(BEGINS), self.text.min(met.end + ENDS));
        for line in &lines.behind {
            if self.begun.iter().any(|(other, at)| other == line && *at > from) {
                self.add_to(*line, from, to);
            }
        }
    }

    fn add_to(&mut self, line: usize, from: usize, to: usize) {
        if self.places.is_empty() {
            self.places.resize(self.lines, 0);
        }
        let Some(place) = self.places.get_mut(line) else { return };
        if *place == 0 {
            self.near.push((line, Near::default()));
            *place = self.near.len() as u16;
        }
        if let Some((_, near)) = self.near.get_mut(usize::from(*place) - 1) {
            near.add(from, to);
        }
    }

    /// Keywords come from the beginning of the text again: what was found before stays as it is.
    pub(super) fn anew(&mut self) {
        self.places.clear();
    }

    pub(super) fn by_line(mut self) -> Vec<(usize, Near)> {
        self.near.sort_unstable_by_key(|(line, _)| *line);
        self.near
    }
}

/// The parts of a text with letters beyond ASCII, and not only signs: dashes, quotes and arrows begin with the two bytes left out.
pub(super) fn strange_parts(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    // At most as many as a byte counts, so that a compiler counts many at once.
    let letters = |bytes: &[u8]| bytes.iter().fold(0u8, |n, b| n.wrapping_add(u8::from((*b >= 0xC3) & (*b != 0xE2))));
    text.chunks(PART)
        .enumerate()
        .filter(move |(_, bytes)| !bytes.is_ascii() && letters(bytes) >= STRANGE)
        .map(|(part, bytes)| ((part * PART).saturating_sub(BESIDE), text.len().min(part * PART + bytes.len() + BESIDE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_that_stand_everywhere_count_behind_what_a_phrase_begins_with() {
        let (begins, keyword) =
            (Lines { begin: vec![1], ..Lines::default() }, Lines { behind: vec![1, 2], ..Lines::default() });
        let found = |words: &[(bool, usize)]| {
            let mut near = Nearby::new(3, 2_000);
            for (begin, at) in words {
                near.add(if *begin { &begins } else { &keyword }, Met { word: 0, start: *at, end: at + 4 });
            }
            near.by_line().into_iter().map(|(line, near)| (line, near.stretches)).collect::<Vec<_>>()
        };
        assert_eq!(found(&[(false, 300)]), []);
        assert_eq!(found(&[(true, 300), (false, 500)]), [(1, vec![(260, 624)])]);
        assert_eq!(found(&[(true, 300), (false, 544)]), []);
        assert_eq!(found(&[(false, 290), (true, 300)]), []);
        assert_eq!(
            found(&[(true, 0), (false, 100), (false, 200), (true, 1_800), (false, 1_900)]),
            [(1, vec![(0, 324), (1_660, 2_000)])]
        );
    }

    #[test]
    fn what_is_searched_is_shared_out() {
        for (words, room, want) in [
            (vec![3, 1, 1], 10_000, vec![1680, 560, 560]),
            (vec![100, 1, 2], 10_000, vec![8320, 560, 1120]),
            (vec![100, 1, 100], 10_000, vec![4720, 560, 4720]),
            (vec![1, 1, 1], 1_300, vec![560, 560, 180]),
            (vec![9, 0, 9], 100, vec![100, 0, 0]),
        ] {
            let mut lines: Vec<Near> = words.iter().map(|_| Near::default()).collect();
            for (near, words) in lines.iter_mut().zip(&words) {
                (0..*words).for_each(|i| near.add(i * 1_000, i * 1_000 + 560));
            }
            share_out(lines.iter_mut().collect(), room);
            assert_eq!(lines.iter().map(|near| near.bytes).collect::<Vec<_>>(), want, "{words:?}");
            for near in lines {
                assert_eq!(near.stretches.iter().map(|(from, to)| to - from).sum::<usize>(), near.bytes);
            }
        }
    }
}
