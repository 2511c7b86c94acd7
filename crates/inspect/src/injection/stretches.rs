//! Which parts of a long text are worth decoding: what a page encodes in one place is no reason to read all of it once more.

/// Texts up to so many bytes are decoded as a whole.
const SHORT: usize = 4096;
/// Bytes before and behind a place that are read with it: as much as is judged at once.
pub(super) const BESIDE: usize = 600;
/// Most parts of one text. With more of them it is decoded as a whole, so that none is left out.
const MAX_PARTS: usize = 16;

/// The parts of a text around `places`, which come in order; all of a short one. They do not touch, and begin and end with whole characters.
pub(super) fn around(text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<&str> {
    longer_than(SHORT, text, places)
}

/// The same of texts that are not quite as short: for what a part says as well as all of the text.
pub(super) fn close_around(text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<&str> {
    longer_than(2 * BESIDE, text, places)
}

fn longer_than(short: usize, text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<&str> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let all = text.len();
    if all <= short {
        return vec![text];
    }
    for (from, to) in places {
        let (from, to) = (from.saturating_sub(BESIDE), all.min(to + BESIDE));
        let many = parts.len();
        match parts.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ if many == MAX_PARTS => return vec![text],
            _ => parts.push((from, to)),
        }
    }
    let part = |(from, to)| text.get(text.floor_char_boundary(from)..text.ceil_char_boundary(to));
    parts.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_out() {
        let text = "é".repeat(50_000);
        let lengths = |places: &[(usize, usize)]| {
            around(&text, places.iter().copied()).iter().map(|p| p.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[(0, 10)]), [610]);
        assert_eq!(lengths(&[(1_001, 1_003), (2_000, 2_001), (50_000, 50_010)]), [2202, 1210]);
        assert_eq!(lengths(&[(99_990, 100_000)]), [610]);
        let many: Vec<_> = (0..40).map(|n| (n * 2_000, n * 2_000 + 1)).collect();
        assert_eq!(lengths(&many), [100_000]);
        assert_eq!(around("short", [(1, 2), (3, 4)].into_iter()), ["short"]);
    }
}
