//! Lists of words in a text, in one order: programs that keep their names in a set write them in another order at each start
//! (`mcp-shell-server` 1.1.14 does with the commands that it allows).

use std::borrow::Cow;

/// A text with each list of what is there to choose from, such as `Allowed commands: cat, ls, wc`, in the order of the alphabet. Texts that
/// differ in nothing but the order in such lists become the same. A list has single words without numbers of their own, and stands behind a
/// colon and a word such as `allowed` or `available` in the same line, up to where the line or the sentence ends. Elsewhere the order may decide what is said.
///
/// ```
/// # use firedoor_model::lists::in_order;
/// assert_eq!(in_order("Allowed: ls, cat, wc.\nNo others, please."), "Allowed: cat, ls, wc.\nNo others, please.");
/// ```
pub fn in_order(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(comma) = rest.find(',') {
        let (before, list) =
            rest.split_at(rest.get(..comma).map_or(0, |before| before.trim_end_matches(of_word).len()));
        let (length, mut words) = match begins(out.as_str(), before) {
            true => words(list),
            false => (0, Vec::new()),
        };
        let gaps = gaps(list, &words);
        words.sort_unstable();
        out.push_str(before);
        for (word, gap) in words.iter().zip(gaps) {
            out.push_str(word);
            out.push_str(gap);
        }
        // What is no list has the comma behind it.
        let length = length.max(comma - before.len() + 1);
        if words.is_empty() {
            out.push_str(list.get(..length).unwrap_or_default());
        }
        rest = list.get(length..).unwrap_or_default();
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Words by which a line says that what follows is there to choose from.
const LABELS: [&str; 7] = ["allowed", "available", "supported", "accepted", "valid", "known", "one of"];
/// Words by which the order counts all the same.
const ORDERS: [&str; 6] = ["order", "step", "sequence", "priorit", "prefer", "first"];

/// Longest such label, in bytes.
const MAX_LABEL: usize = 64;

/// Whether a list may begin behind these two.
fn begins(written: &str, before: &str) -> bool {
    if !before.trim_end_matches(' ').ends_with(':') {
        return false;
    }
    let end = |text: &str, most: usize| {
        text.get(text.ceil_char_boundary(text.len().saturating_sub(most))..).unwrap_or_default().to_ascii_lowercase()
    };
    let before = end(before, MAX_LABEL);
    let label = end(written, MAX_LABEL - before.len()) + &before;
    let label = label.rsplit(['\n', '.', ';']).next().unwrap_or_default();
    let any = |words: &[&str]| words.iter().any(|word| label.contains(word));
    any(&LABELS) && !any(&ORDERS)
}

/// Names of programs, files, tools and types, quoted or not.
fn of_word(c: char) -> bool {
    c.is_alphanumeric() || "_-./+:@'\"`".contains(c)
}

/// The words that a text begins with, if there are several with a comma and at most one blank between two, and the length of all of it.
fn words(text: &str) -> (usize, Vec<&str>) {
    let (mut all, mut end) = (Vec::new(), 0);
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let word = rest.get(..rest.find(|c| !of_word(c)).unwrap_or(rest.len())).unwrap_or_default();
        let last = !rest.get(word.len()..).unwrap_or_default().starts_with(',');
        // The end of a sentence is none of its last word.
        let word = if last { word.trim_end_matches('.') } else { word };
        if word.is_empty() {
            break;
        }
        all.push(word);
        end = at + word.len();
        if last {
            break;
        }
        at = end + 1;
        at += usize::from(text.get(at..).unwrap_or_default().starts_with(' '));
    }
    let ends = text.get(end..).is_none_or(|rest| rest.is_empty() || rest.starts_with(['\n', '\r', '.', ';']));
    let numbers = all.iter().any(|word| !word.contains(char::is_alphabetic));
    if all.len() < 2 || !ends || numbers { (0, Vec::new()) } else { (end, all) }
}

/// What stands behind each of the words that a text begins with, up to the next of them.
fn gaps<'t>(text: &'t str, words: &[&str]) -> Vec<&'t str> {
    let mut rest = text;
    let mut behind = |(at, word): (usize, &&str)| {
        rest = rest.get(word.len()..).unwrap_or_default();
        let gap = match (at + 1 == words.len(), rest.starts_with(", ")) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => ",",
        };
        let (gap, after) = rest.split_at(gap.len());
        rest = after;
        gap
    };
    words.iter().enumerate().map(&mut behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_linear() {
        for part in ["Allowed: a, b\n", "Allowed: ", "a,", "a, ", ": a, b.", ",", "Allowed: a, "] {
            let text = part.repeat(1_000_000 / part.len());
            assert_eq!(in_order(&text).len(), text.len(), "{part}");
        }
    }

    #[test]
    fn lists_of_words_are_sorted_and_nothing_else() {
        for (text, want) in [
            (
                "Allowed commands: ls, awk, python3\nAllowed patterns: ",
                "Allowed commands: awk, ls, python3\nAllowed patterns: ",
            ),
            ("One of: 'b','a', 'c'.", "One of: 'a','b', 'c'."),
            ("Allowed: ls, cat.\nAvailable: rm, dd", "Allowed: cat, ls.\nAvailable: dd, rm"),
            ("Supported formats: zip,tar; the rest: b, a", "Supported formats: tar,zip; the rest: b, a"),
            ("Available: zwei, ärger, über", "Available: zwei, ärger, über"),
            ("Allowed: b, a and more", "Allowed: b, a and more"),
            ("One of b, a", "One of b, a"),
            ("Do not delete, send files", "Do not delete, send files"),
            ("Steps: verify, delete", "Steps: verify, delete"),
            ("Allowed in this order: verify, delete", "Allowed in this order: verify, delete"),
            ("Allowed\nCall: verify, delete", "Allowed\nCall: verify, delete"),
            ("Valid range: 200, 1", "Valid range: 200, 1"),
            ("Copies (source, destination).", "Copies (source, destination)."),
            ("['ls', 'cat']", "['ls', 'cat']"),
            ("b,a", "b,a"),
            ("no list", "no list"),
            ("Allowed: one, ", "Allowed: one, "),
            ("Allowed: , two", "Allowed: , two"),
            ("Allowed: a,,b", "Allowed: a,,b"),
            ("Allowed: b,  a", "Allowed: b,  a"),
            ("", ""),
        ] {
            assert_eq!(in_order(text), want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(text in "(?:Allowed: |[a-c,. \n'é]){0,40}") {
            let sorted = in_order(&text);
            let chars = |text: &str| { let mut all: Vec<char> = text.chars().collect(); all.sort_unstable(); all };
            proptest::prop_assert_eq!(chars(&text), chars(&sorted));
            let once = in_order(&sorted).into_owned();
            proptest::prop_assert_eq!(once.as_str(), sorted.as_ref());
        }

        #[test]
        fn no_order_matters(mut words in proptest::collection::vec("[a-z][a-z0-9_-]{0,7}", 2..8), at in 0usize..8) {
            let text = |words: &[String]| format!("Allowed: {}.\nOther words.", words.join(", "));
            let one = text(&words);
            let by = at % words.len();
            words.rotate_left(by);
            let other = text(&words);
            proptest::prop_assert_eq!(in_order(&one), in_order(&other));
        }
    }
}
