//! Other letters for letters.

use super::super::Encoding;
use crate::fold;

/// The name of the way that moves all signs of ASCII, digits too.
pub(crate) const ROT47: &str = "rot47";
/// Bytes that separate what was moved by different places.
const BETWEEN: u8 = 0xFF;
/// How far bytes of ASCII are moved, either way.
const MOVED: u8 = 5;

/// Every way to move the letters of a piece.
pub(super) fn each(piece: &[u8], visit: &mut dyn FnMut(&[u8], Encoding)) {
    let folded = fold::folded(piece);
    let letters = folded.iter().filter(|b| b.is_ascii_lowercase()).count();
    let mut out = Vec::with_capacity((folded.len() + 1) * 27);
    if letters >= super::MIN_TEXT / 2 {
        let mut rot13 = folded.clone();
        fold::rot13(&mut rot13);
        visit(&rot13, Encoding::Rot13);
        rot13.reverse();
        visit(&rot13, Encoding::Rot13);
        for by in (1..26).filter(|by| *by != 13) {
            out.extend(folded.iter().map(|b| if b.is_ascii_lowercase() { (b - b'a' + by) % 26 + b'a' } else { *b }));
            out.push(BETWEEN);
        }
        // The alphabet backwards.
        out.extend(folded.iter().map(|b| if b.is_ascii_lowercase() { b'z' - (b - b'a') } else { *b }));
        out.push(BETWEEN);
        out.extend(folded.iter().map(|b| match b {
            b'a'..=b'z' => (b - b'a' + 13) % 26 + b'a',
            b'0'..=b'9' => (b - b'0' + 5) % 10 + b'0',
            b => *b,
        }));
        visit(&out, Encoding::Moved);
        out.clear();
        // Digits for the letters that they look like.
        out.extend(folded.iter().map(|b| fold::letter(*b)));
        if out != folded {
            visit(&out, Encoding::Leet);
        }
        out.clear();
    }
    let mut moved = |f: &dyn Fn(u8) -> u8| {
        let bytes: Vec<u8> = piece.iter().map(|b| if b.is_ascii_graphic() { f(*b) } else { *b }).collect();
        fold::fold(&bytes, &mut out);
        out.push(BETWEEN);
    };
    moved(&|b| (b - 33 + 47) % 94 + 33);
    for by in 1..=MOVED {
        moved(&|b| b + by);
        moved(&|b| b - by);
    }
    visit(&out, Encoding::Named(ROT47));
}
