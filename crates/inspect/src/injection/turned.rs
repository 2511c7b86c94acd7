//! English backwards, or with its letters moved by 13.

use super::{
    layers::{Concealment, Found, Inner},
    signs::{self, Signs},
    stretches,
};

/// Hands on what a text says so, told by its commonest words, several of them. Not once more of what was `made` so: that is what was
/// there before.
pub(super) fn find(text: &str, signs: Signs, made: &str, found: &mut Found<'_>) {
    for (way, name) in [(0, "rot13"), (1, "reverse")] {
        if !signs.turned(way) || made == name {
            continue;
        }
        for part in stretches::close_around(text, signs::turned_words(text, way).into_iter()) {
            let moved = |c: char| match c {
                'a'..='z' => ((c as u8 - b'a' + 13) % 26 + b'a') as char,
                'A'..='Z' => ((c as u8 - b'A' + 13) % 26 + b'A') as char,
                c => c,
            };
            let said = || part.text.chars();
            let plain = if way == 0 { said().map(moved).collect() } else { said().rev().collect() };
            if way == 1 {
                let words = part.text.split_inclusive(char::is_whitespace).map(|word| {
                    let letters = word.trim_end();
                    letters.chars().rev().chain(word.chars().skip(letters.chars().count())).collect::<String>()
                });
                found.push(Inner::made(words.collect(), Concealment::Encoded, name, part.span));
            }
            found.push(Inner::made(plain, Concealment::Encoded, name, part.span));
        }
    }
}
