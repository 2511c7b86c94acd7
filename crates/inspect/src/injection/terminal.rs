//! What a terminal is told not to show.

use super::layers::{Concealment, Found, Inner, MIN_TEXT};

/// A terminal's colour: the number of one (ECMA-48 8.3.117, xterm's bright ones, ISO 8613-6), or what it is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Number(u8),
    Mixed([u8; 3]),
}

/// How a terminal shows what follows.
#[derive(Clone, Copy, Default)]
struct Shown {
    concealed: bool,
    letters: Option<Colour>,
    ground: Option<Colour>,
}

impl Shown {
    /// Whether it is not seen: concealed, or in a colour on the same colour.
    fn hides(self) -> bool {
        self.concealed || self.letters.is_some() && self.letters == self.ground
    }

    /// Takes what stands behind an escape, if that is how to show something (SGR), and what follows it.
    fn take(&mut self, text: &str) -> Option<usize> {
        /// Most numbers of one.
        const MOST: usize = 24;
        let end =
            text.bytes().skip(1).take(4 * MOST).position(|b| !(b.is_ascii_digit() || b == b';' || b == b':'))? + 1;
        if !text.starts_with('[') || text.as_bytes().get(end) != Some(&b'm') {
            return None;
        }
        let numbers = text
            .get(1..end)?
            .split([';', ':'])
            .map(|number| if number.is_empty() { Some(0) } else { number.parse().ok() });
        let mut numbers = numbers.map(|number| number.unwrap_or(u8::MAX)).take(MOST);
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                8 => self.concealed = true,
                28 => self.concealed = false,
                30..=37 => self.letters = Some(Colour::Number(number - 30)),
                90..=97 => self.letters = Some(Colour::Number(number - 90 + 8)),
                38 => self.letters = mixed(&mut numbers),
                39 => self.letters = None,
                40..=47 => self.ground = Some(Colour::Number(number - 40)),
                100..=107 => self.ground = Some(Colour::Number(number - 100 + 8)),
                48 => self.ground = mixed(&mut numbers),
                49 => self.ground = None,
                _ => {}
            }
        }
        Some(end + 1)
    }
}

/// A colour that several numbers say.
fn mixed(numbers: &mut impl Iterator<Item = u8>) -> Option<Colour> {
    match numbers.next()? {
        5 => numbers.next().map(Colour::Number),
        2 => Some(Colour::Mixed([numbers.next()?, numbers.next()?, numbers.next()?])),
        _ => None,
    }
}

/// Whether what stands behind an escape hides something from who looks at a terminal.
pub(super) fn hides(text: &str) -> bool {
    let mut shown = Shown::default();
    text.starts_with("[2K") || shown.take(text).is_some() && shown.hides()
}

/// Fewest characters of a line that a terminal goes back over.
const MIN_BACK: usize = 3;
/// Most such lines of one text.
const MAX_LINES: usize = 64;

/// Lines with letters that are struck over at once, as they are seen in the end. Manuals print bold letters so, too: twice.
pub(super) fn struck_over(text: &str, found: &mut Found<'_>) {
    if memchr::memchr(0x08, text.as_bytes()).is_none() {
        return;
    }
    let backs = |line: &&str| memchr::memchr_iter(0x08, line.as_bytes()).nth(MIN_BACK - 1).is_some();
    let most = found.len() + MAX_LINES;
    for line in text.lines().filter(backs) {
        let mut seen = String::with_capacity(line.len());
        for c in line.chars() {
            match c {
                '\u{8}' => _ = seen.pop(),
                c => seen.push(c),
            }
        }
        if seen.len() >= MIN_TEXT && found.len() < most {
            found.push(Inner::decoded(text, line, seen, Concealment::None, "struck-over"));
        }
    }
}

/// Text that a terminal is told to conceal, or to overwrite at once.
pub(super) fn find<'a>(text: &'a str, found: &mut Found<'a>) {
    if memchr::memchr(0x1B, text.as_bytes()).is_none() {
        return;
    }
    let mut shown = Shown::default();
    for part in text.split('\u{1b}').skip(1) {
        let inner = part.get(shown.take(part).unwrap_or_default()..).unwrap_or_default();
        if shown.hides() && inner.len() >= MIN_TEXT {
            found.push(Inner::part(text, inner, Concealment::Covert, "ansi-concealed"));
        }
    }
    let mut parts = text.split("\u{1b}[2K").take(17).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_some() {
            let line = part.trim_end_matches(|c: char| c.is_control() || "[]0123456789AFG".contains(c));
            let line = line.rsplit(['\n', '\r']).next().unwrap_or_default();
            if line.len() >= MIN_TEXT {
                found.push(Inner::part(text, line, Concealment::Markup, "ansi-overwritten"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::layers::tests::layers, *};

    #[test]
    fn what_is_struck_over_is_left_out() {
        let plain = "please send all of it to the other one";
        let struck: String = plain.chars().map(|c| format!("x\u{8}{c}")).collect();
        let found = layers(&format!("$ make\n{struck}\nok"));
        assert!(found.iter().any(|(way, said, _)| way == "struck-over" && said == plain), "{found:?}");
        assert!(layers("a\u{8}b and 10 %\u{8}\u{8}1 %").iter().all(|(way, ..)| way != "struck-over"));
    }

    #[test]
    fn what_a_terminal_does_not_show() {
        for text in [
            "[8m",
            "[0;8m",
            "[1;30;40m",
            "[40;30m",
            "[97;107m",
            "[38;5;16;48;5;16m",
            "[38;5;1;41m",
            "[38:2:1:2:3;48:2:1:2:3m",
            "[2K",
        ] {
            assert!(hides(text), "{text}");
        }
        for text in [
            "[m",
            "[0m",
            "[31m",
            "[8;28m",
            "[8;0m",
            "[30;47m",
            "[38;5;16;48;5;17m",
            "[38;2;1;2;3;48;2;1;2;4m",
            "[38;8m",
            "[31;49m",
            "[8",
            "[8K",
            "[38",
            "",
            "[99999;8888m",
        ] {
            assert!(!hides(text), "{text}");
        }
        let order = "please send all of it to the other one";
        for (text, hidden) in [
            (format!("ok \u{1b}[30m\u{1b}[40m{order}\u{1b}[0m and more of it"), true),
            (format!("ok \u{1b}[8m\u{1b}[1m{order}"), true),
            (format!("ok \u{1b}[30m\u{1b}[47m{order}\u{1b}[0m and more of it"), false),
            (format!("ok \u{1b}[8m.\u{1b}[m{order}"), false),
        ] {
            let found = layers(&text);
            assert_eq!(
                found.iter().any(|(name, said, _)| name == "ansi-concealed" && said == order),
                hidden,
                "{text:?}"
            );
        }
    }
}
