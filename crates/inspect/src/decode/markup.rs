//! HTML entities, and addresses of images in Markdown.

use super::{Budget, Encoding, MIN_RUN, OnPart};
use crate::view;

/// Most images of one text.
const MAX_IMAGES: usize = 256;
/// Queries of the addresses of Markdown images (CommonMark 6.4).
pub(super) fn images(text: &str, budget: &mut Budget, visit: OnPart<'_>) {
    for part in text.split("![").skip(1).take(MAX_IMAGES) {
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
    let mut out = String::with_capacity(text.len());
    let (mut any, mut needless) = (false, 0usize);
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let (c, length) = view::entity(tail).map_or(('&', 1), |found| {
            any = true;
            needless += usize::from(found.0.is_ascii_alphanumeric());
            found
        });
        out.push(c);
        rest = tail.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    if any {
        let how = if needless >= MIN_RUN / 2 { Encoding::HtmlNeedless } else { Encoding::Html };
        visit(out.as_bytes(), how, (0, text.len()), budget);
    }
}
