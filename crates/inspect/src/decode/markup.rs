//! HTML entities, and addresses of images in Markdown.

use super::{Around, Budget, Encoding, MIN_RUN, OnPart, around::AROUND};
use crate::view;

/// Most images of one text.
const MAX_IMAGES: usize = 256;
/// Queries of the addresses of Markdown images (CommonMark 6.4).
pub(super) fn images(text: &str, budget: &mut Budget, visit: OnPart<'_>) {
    let marked = |at: &usize| text.as_bytes().get(at + 1) == Some(&b'[');
    let begin = memchr::memchr_iter(b'!', text.as_bytes()).filter(marked).map(|at| at + 2);
    let end = begin.clone().skip(1).map(|next| next - 2).chain([text.len()]);
    for (from, to) in begin.zip(end).take(MAX_IMAGES) {
        let part = text.get(from..to).unwrap_or_default();
        let Some((_, address)) = part.split_once("](http") else { continue };
        let address = address.split([')', ' ', '\n']).next().unwrap_or_default();
        if let Some((_, query)) = address.split_once('?')
            && query.len() >= MIN_RUN
            && budget.take(query.len())
        {
            let start = (query.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            visit(query.as_bytes(), Encoding::Image, (start, start + query.len()), budget);
        }
    }
}

/// HTML entities (HTML Living Standard 13.5).
pub(super) fn entities(text: &str, budget: &mut Budget, visit: OnPart<'_>) {
    let entity = |at: usize| text.get(at..).and_then(view::entity);
    let mut needless = 0usize;
    let entities = memchr::memchr_iter(b'&', text.as_bytes()).filter(|at| {
        let found = entity(*at);
        needless += usize::from(found.is_some_and(|(c, _)| c.is_ascii_alphanumeric()));
        found.is_some()
    });
    let Some(around) = Around::new(text.as_bytes(), AROUND, entities) else { return };
    if !budget.take(around.bytes) {
        return;
    }
    let plain = around.decoded(|stretch, out| {
        // A character may be cut where a run of them is too long.
        let stretch = String::from_utf8_lossy(stretch);
        let mut rest = &*stretch;
        while let Some((before, tail)) = memchr::memchr(b'&', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
        {
            out.extend_from_slice(before.as_bytes());
            let (c, length) = view::entity(tail).unwrap_or(('&', 1));
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = tail.get(length..).unwrap_or_default();
        }
        out.extend_from_slice(rest.as_bytes());
    });
    let how = if needless >= MIN_RUN / 2 { Encoding::HtmlNeedless } else { Encoding::Html };
    visit(&plain, how, (0, text.len()), budget);
}
