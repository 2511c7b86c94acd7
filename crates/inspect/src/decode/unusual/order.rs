//! Characters in another order, or with something between them.

use super::{
    super::{Budget, Encoding},
    MIN_TEXT, OnForm,
};

/// Columns that a line may be written in.
const COLUMNS: std::ops::RangeInclusive<usize> = 2..=8;
/// Longest line whose order is tried.
const MAX_LINE: usize = 1024;
/// Lines that hold a piece each are no longer than this on average.
const SHORT: usize = 24;
/// Longest text whose words are put in other orders.
const SHORT_TEXT: usize = 512;
/// Fewest words.
const MIN_WORDS: usize = 10;
/// Cells of a line that are joined with those of others.
const MAX_CELLS: usize = 4;

/// Orders of the characters of a line, which may have a label before a colon.
pub(super) fn each(line: &[u8], visit: &mut dyn FnMut(&[u8], Encoding)) {
    if line.len() > MAX_LINE {
        return;
    }
    let mut all = Vec::new();
    let label = memchr::memmem::find(line, b": ").map(|at| line.get(at + 2..).unwrap_or_default());
    for text in label.into_iter().chain([line]).filter(|text| text.len() >= MIN_TEXT) {
        columns(text, &mut all);
    }
    visit(&all, Encoding::Named("transposed"));
    all.clear();
    // Every two swapped; every second alone.
    for pair in line.chunks(2) {
        all.extend(pair.iter().rev());
    }
    all.push(0xFF);
    for start in 0..2 {
        all.extend(line.iter().skip(start).step_by(2));
        all.push(0xFF);
    }
    visit(&all, Encoding::Named("interleaved"));
    if let Some(kept) = line.contains(&b' ').then(|| without_refrain(line)).flatten() {
        visit(&kept, Encoding::Laid("words between"));
    }
}

/// The same of a text of several lines, and of it without its first and last, where most of it is strange.
pub(super) fn whole(text: &[u8], visit: &mut dyn FnMut(&[u8], Encoding)) {
    each(text, visit);
    let from = memchr::memchr(b'\n', text).map_or(0, |at| at + 1);
    let inner = text.get(from..).unwrap_or_default();
    if let Some(to) = memchr::memrchr(b'\n', inner) {
        each(inner.get(..to).unwrap_or_default(), visit);
    }
}

/// Words in another order, each of them backwards, and words without the one that stands between all: of short texts, because
/// nothing tells them from others.
pub(super) fn words(text: &[u8], budget: &mut Budget, visit: OnForm<'_>) {
    if text.len() > SHORT_TEXT
        || memchr::memchr_iter(b' ', text).nth(MIN_WORDS - 2).is_none()
        || !budget.take(text.len())
    {
        return;
    }
    let all = (0, text.len());
    let words: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
    let mut back = words.iter().rev().copied().collect::<Vec<_>>().concat();
    visit(&back, Encoding::Laid("words backwards"), false, all, budget);
    back.reverse();
    visit(&back, Encoding::Laid("each word backwards"), false, all, budget);
    if let Some(kept) = without_refrain(text) {
        visit(&kept, Encoding::Laid("words between"), false, all, budget);
    }
}

/// A text without the word that stands after every piece.
fn without_refrain(text: &[u8]) -> Option<Vec<u8>> {
    let words = || text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let all = words().count();
    let often = |word: &&[u8]| (words().filter(|w| w == word).count() * 5).max(10) >= all.max(15);
    let refrain = words().skip(1).take(3).find(often)?;
    Some(words().filter(|w| *w != refrain).collect::<Vec<_>>().concat())
}

/// What was written in rows and is read by columns, and the other way round; and in a zigzag.
fn columns(text: &[u8], out: &mut Vec<u8>) {
    let length = text.len();
    for width in COLUMNS {
        // Column by column, back to rows: where each column begins.
        let (rows, longer) = (length / width, length % width);
        let begin = |column: usize| column * rows + column.min(longer);
        out.extend((0..length).filter_map(|at| text.get(begin(at % width) + at / width)));
        out.push(0xFF);
        if width > 2 {
            out.extend((0..width).flat_map(|column| text.iter().skip(column).step_by(width)));
            out.push(0xFF);
            zigzag(text, width, out);
        }
    }
}

/// Back from a zigzag over so many rails.
fn zigzag(text: &[u8], rails: usize, out: &mut Vec<u8>) {
    let period = 2 * (rails - 1);
    let rail = |at: usize| (at % period).min(period - at % period);
    let start = out.len();
    out.resize(start + text.len(), 0);
    let places = (0..rails).flat_map(|r| (0..text.len()).filter(move |at| rail(*at) == r));
    for (place, b) in places.zip(text) {
        if let Some(slot) = out.get_mut(start + place) {
            *slot = *b;
        }
    }
    out.push(0xFF);
}

/// A text that is cut into lines: without what stands around each piece. Honest programs lay texts out so, too.
pub(super) fn lines(text: &[u8], budget: &mut Budget, visit: OnForm<'_>) {
    let all = (0, text.len());
    let tags = memchr::memchr_iter(b'<', text).count();
    if tags >= 4 && tags * SHORT >= text.len() && budget.take(text.len()) {
        let mut inside = false;
        let kept: Vec<u8> = text
            .iter()
            .copied()
            .filter(|b| {
                let was = inside;
                inside = *b == b'<' || inside && *b != b'>';
                !was && !inside
            })
            .collect();
        visit(&kept, Encoding::Laid("tags between"), false, all, budget);
    }
    let ends = memchr::memchr_iter(b'\n', text).count();
    if ends < 3 || ends * SHORT < text.len() || !budget.take(text.len() * 3) {
        return;
    }
    let lines = || text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    // Without numbers and marks of lists.
    let mut kept = Vec::new();
    for line in lines() {
        let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
        let marked = matches!(line.get(digits), Some(b'.' | b')' | b':' | b'-' | b'*' | b'#' | b'|' | b',' | b';'));
        let from = if marked && digits <= 3 { digits + 1 } else { 0 };
        kept.extend_from_slice(line.get(from..).unwrap_or_default());
    }
    visit(&kept, Encoding::Laid("lines"), true, all, budget);
    for (separators, cell) in (0..MAX_CELLS).flat_map(|cell| [(b",;|\t".as_slice(), cell), (b",;|\t: ", cell)]) {
        kept.clear();
        for line in lines() {
            let cells = line.split(|b| separators.contains(b)).filter(|c| !c.trim_ascii().is_empty());
            kept.extend_from_slice(cells.map(<[u8]>::trim_ascii).nth(cell).unwrap_or_default());
        }
        visit(&kept, Encoding::Laid("column"), true, all, budget);
    }
    kept.clear();
    kept.extend(text.split(|b| *b == b'\n').filter_map(|line| line.first()));
    kept.push(0xFF);
    kept.extend(lines().filter_map(|line| line.last()));
    visit(&kept, Encoding::Laid("acrostic"), false, all, budget);
}
