//! Lists of words in a text, in one order: programs that keep their names in a set write them in another order at each start
//! (`mcp-shell-server` 1.1.14 does with the commands that it allows).

use std::borrow::Cow;

/// A text with each list of single words that commas part, such as `: cat, ls, wc`, in the order of the alphabet. Texts that differ in
/// nothing but the order in such lists become the same. A list stands for itself: behind a colon or a bracket or where a line begins, and up
/// to where a line, a sentence or a bracket ends. In a sentence the order may decide what it says.
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

/// Whether a list may begin behind these two.
fn begins(written: &str, before: &str) -> bool {
    let blank = |c| c == ' ' || c == '\t';
    let last = before.trim_end_matches(blank).chars().next_back();
    let last = last.or_else(|| {
        written.trim_end_matches(blank).chars().next_back().filter(|_| before.trim_matches(blank).is_empty())
    });
    last.is_none_or(|c| "\n:([{=".contains(c))
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
    let ends =
        text.get(end..).is_none_or(|rest| rest.is_empty() || rest.starts_with(['\n', '\r', '.', ';', ')', ']', '}']));
    if all.len() < 2 || !ends { (0, Vec::new()) } else { (end, all) }
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
    fn lists_of_words_are_sorted_and_nothing_else() {
        for (text, want) in [
            (
                "Allowed commands: ls, awk, python3\nAllowed patterns: ",
                "Allowed commands: awk, ls, python3\nAllowed patterns: ",
            ),
            ("One of: 'b','a', 'c'.", "One of: 'a','b', 'c'."),
            ("One of b, a", "One of b, a"),
            ("Do not delete, send files", "Do not delete, send files"),
            ("read, not: send, delete files", "read, not: send, delete files"),
            ("Allowed: ls, cat.\nForbidden: rm, dd", "Allowed: cat, ls.\nForbidden: dd, rm"),
            ("['ls', 'cat']", "['cat', 'ls']"),
            ("b,a", "a,b"),
            ("b, a, and more", "b, a, and more"),
            ("It reads, but never writes, what is there.", "It reads, but never writes, what is there."),
            ("no list", "no list"),
            ("one, ", "one, "),
            (", two", ", two"),
            ("a,,b", "a,,b"),
            ("b, a,, d, c", "b, a,, d, c"),
            ("b,  a", "b,  a"),
            ("", ""),
            ("zwei, ärger, über", "zwei, ärger, über"),
            ("Formats (zip, tar): b, a; c", "Formats (tar, zip): a, b; c"),
            ("(b, a) and (d, c)", "(a, b) and (c, d)"),
        ] {
            assert_eq!(in_order(text), want, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(text in "[a-c,. \n'é]{0,40}") {
            let sorted = in_order(&text);
            let chars = |text: &str| { let mut all: Vec<char> = text.chars().collect(); all.sort_unstable(); all };
            proptest::prop_assert_eq!(chars(&text), chars(&sorted));
            let once = in_order(&sorted).into_owned();
            proptest::prop_assert_eq!(once.as_str(), sorted.as_ref());
        }

        #[test]
        fn no_order_matters(mut words in proptest::collection::vec("[a-z0-9_-]{1,8}", 2..8), at in 0usize..8) {
            let text = |words: &[String]| format!("Allowed: {}.\nOther words.", words.join(", "));
            let one = text(&words);
            let by = at % words.len();
            words.rotate_left(by);
            let other = text(&words);
            proptest::prop_assert_eq!(in_order(&one), in_order(&other));
        }
    }
}
