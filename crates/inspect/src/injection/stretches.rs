//! Which parts of a long text are worth decoding: what a page encodes in one place is no reason to read all of it once more.

use std::borrow::Cow;

/// Texts up to so many bytes are decoded as a whole.
const SHORT: usize = 4096;
/// Bytes before and behind a place that are read with it: as much as is judged at once.
pub(super) const BESIDE: usize = 600;
/// Most parts of one text that are texts of their own. The others are one together, so that none is left out.
const MAX_PARTS: usize = 16;

/// A part of a text.
pub(super) struct Part<'t> {
    pub(super) text: Cow<'t, str>,
    /// Where it stands.
    pub(super) span: (usize, usize),
}

/// The parts of a text around `places`, which come in order; all of a short one. They do not touch, and begin and end with whole characters.
pub(super) fn around(text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<Part<'_>> {
    longer_than(SHORT, text, places)
}

/// The same of texts that are not quite as short: for what a part says as well as all of the text.
pub(super) fn close_around(text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<Part<'_>> {
    longer_than(2 * BESIDE, text, places)
}

fn longer_than(short: usize, text: &str, places: impl Iterator<Item = (usize, usize)>) -> Vec<Part<'_>> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let all = text.len();
    if all <= short {
        return vec![Part { text: Cow::Borrowed(text), span: (0, all) }];
    }
    for (from, to) in places {
        let (from, to) = (from.saturating_sub(BESIDE), all.min(to + BESIDE));
        match parts.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => parts.push((from, to)),
        }
    }
    let whole = |(from, to): &(usize, usize)| (text.floor_char_boundary(*from), text.ceil_char_boundary(*to));
    let mut parts = parts.iter().map(whole);
    let said = |(from, to)| text.get(from..to).unwrap_or_default();
    let mut out: Vec<Part<'_>> = Vec::new();
    out.extend(parts.by_ref().take(MAX_PARTS).map(|span| Part { text: Cow::Borrowed(said(span)), span }));
    if let Some(first) = parts.next() {
        let (mut rest, mut end) = (said(first).to_owned(), first.1);
        for span in parts {
            rest.push('\n');
            rest.push_str(said(span));
            end = span.1;
        }
        out.push(Part { text: Cow::Owned(rest), span: (first.0, end) });
    }
    out
}

/// Where at least `N` of `places`, which come in order, begin within so many bytes: from the first to behind the last.
pub(super) fn dense<const N: usize>(
    places: impl Iterator<Item = (usize, usize)>,
    within: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let (mut last, mut seen) = ([0; N], 0usize);
    places.filter_map(move |(from, to)| {
        last.rotate_left(1);
        *last.last_mut()? = from;
        seen += 1;
        let first = *last.first()?;
        (seen >= N && from - first <= within).then_some((first, to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_out() {
        let text = "é".repeat(50_000);
        let lengths = |places: &[(usize, usize)]| {
            around(&text, places.iter().copied()).iter().map(|p| p.text.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[(0, 10)]), [610]);
        assert_eq!(lengths(&[(1_001, 1_003), (2_000, 2_001), (50_000, 50_010)]), [2202, 1210]);
        assert_eq!(lengths(&[(99_990, 100_000)]), [610]);
        // The others together.
        let many: Vec<_> = (0..40).map(|n| (n * 2_000, n * 2_000 + 1)).collect();
        let found = around(&text, many.iter().copied());
        assert_eq!(found.len(), MAX_PARTS + 1);
        let rest = &found[MAX_PARTS];
        assert_eq!(rest.span, (16 * 2_000 - BESIDE, 39 * 2_000 + 1 + BESIDE + 1));
        assert_eq!(rest.text.matches('\n').count(), 40 - MAX_PARTS - 1);
        assert_eq!(lengths(&[(1, 2), (3, 4)]), [604]);
        let short = around("short", [(1, 2), (3, 4)].into_iter());
        assert!(matches!(short.as_slice(), [part] if part.text == "short" && part.span == (0, 5)));
    }

    #[test]
    fn what_is_dense_is_found() {
        let found = |places: &[usize]| dense::<3>(places.iter().map(|at| (*at, at + 3)), 10).collect::<Vec<_>>();
        assert_eq!(found(&[0, 5, 10, 20, 30]), [(0, 13)]);
        assert_eq!(found(&[0, 5, 10, 11, 30, 31, 32]), [(0, 13), (5, 14), (30, 35)]);
        assert_eq!(found(&[0, 5]), []);
    }
}
