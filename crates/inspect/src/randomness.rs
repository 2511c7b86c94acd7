//! Was a value made by a machine, or written by a person as an example?

use crate::language::rare;

/// Shannon entropy in bits per byte.
pub(crate) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for b in value {
        if let Some(c) = counts.get_mut(usize::from(*b)) {
            *c += 1;
        }
    }
    let n = value.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / n).map(|p| -p * libm::log2(p)).sum()
}

/// Words that documentation puts where a secret would stand. In lower case.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "your_",
    "your-",
    "yourt",
    "yourp",
    "yours",
    "yourk",
    "youra",
    "xxxx",
    "****",
    "....",
    "replace",
    "insert",
    "dummy",
    "redacted",
    "todo",
    "foobar",
    "<",
    "${",
    "{{",
    "%(",
    "password",
    "secret_",
    "abcdefgh",
    "12345678",
    "aaaaaaaa",
    "00000000",
    "process.env",
    "os.environ",
    "getenv",
    "undefined",
];

/// Whether the value says itself that it is none. Long values are only searched where such words stand.
pub(crate) fn placeholder(value: &[u8]) -> bool {
    let head: Vec<u8> = value.iter().take(64).map(u8::to_ascii_lowercase).collect();
    let has = |word: &str| head.windows(word.len()).any(|w| w == word.as_bytes());
    PLACEHOLDERS.iter().any(|w| has(w))
}

/// Words in made-up values. A value of a fixed format may hold them by chance.
const WRITTEN: &[&str] =
    &["test", "fake", "token", "sample", "secret", "value", "password", "user", "demo", "mock", "none", "null"];

/// Whether a value holds a word that people write where a made one would stand.
pub(crate) fn written(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    WRITTEN.iter().any(|word| lower.windows(word.len()).any(|w| w == word.as_bytes()))
}

/// Shortest value that can show by its letters alone that no word is in it, and which share of its pairs says so.
const MIN_LETTERS: usize = 16;
const RARE: usize = 40;

/// Whether a value of letters and digits has neighbours among them that no language has.
fn unlike_language(value: &[u8], letters: usize, others: usize) -> bool {
    value.len() >= MIN_LETTERS
        && letters * 4 >= value.len()
        && others * 6 <= value.len()
        && value.first().is_some_and(u8::is_ascii_alphanumeric)
        && value.iter().all(u8::is_ascii_graphic)
        && !value.contains(&b'/')
        && rare(value) * 100 >= (value.len() - 1) * RARE
}

/// Whether a value that only its place makes a secret looks made: letters and digits mixed, no identifier, path, call or
/// date.
pub(crate) fn looks_made(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let others = value.len() - digits - letters;
    if unlike_language(value, letters, others) {
        return true;
    }
    if digits == 0 || letters == 0 || others * 3 > value.len() || value.iter().any(|b| !b.is_ascii_graphic()) {
        return false;
    }
    // Paths, addresses, code and versions.
    if value.windows(3).any(|w| matches!(w, [a, b'.', b] if a.is_ascii_digit() && b.is_ascii_digit())) {
        return false;
    }
    if value.contains(&b'/') && value.windows(2).any(|w| w == b"//" || w == b"./")
        || value.starts_with(b"/")
        || value.windows(2).any(|w| w == b"::" || w == b"->")
    {
        return false;
    }
    // Words with numbers (`sha256-hash`, `V2TokenRequest3`) change between letters and digits seldom; made values often. A
    // capital before a small letter is no change: that is how words begin.
    let class = |b: u8| match b {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = value
        .windows(2)
        .filter(|w| matches!(w, [a, b] if class(*a) != class(*b) && (class(*a), class(*b)) != (2, 1)))
        .count();
    let words = value.split(|b| !b.is_ascii_lowercase()).filter(|w| w.len() >= 5).count();
    changes * 7 >= value.len() * 2 && words * 12 <= value.len() && digits >= 2
}

/// Whether a value looks like a password that a person chose: small letters, capitals, digits and signs, three kinds of them.
/// What joins words and what formats text is no sign.
pub(crate) fn chosen(value: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| usize::from(value.iter().any(kind));
    let kinds = has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_digit)
        + has(|b| b"!#&*+=?@^`|~".contains(b));
    let joins = |b: &u8| b"-_./:,'%$\\<>(){}[]".contains(b);
    // What examples have most of all.
    let example = value.windows(5).any(|w| w.eq_ignore_ascii_case(b"p@ssw") || w.eq_ignore_ascii_case(b"passw"));
    kinds >= 3 && !example && value.iter().all(u8::is_ascii_graphic) && !value.iter().any(joins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_made() {
        for (value, want) in [
            ("q8Zr2LmX9vTb", true),
            ("0f8c2e71a94bd36e5520", true),
            ("parser2_tokens", false),
            ("V2TokenRequest3", false),
            ("onlyletters", false),
            ("1234567890", false),
            ("./path/to/file2", false),
            ("std::string2::x1y2", false),
            ("zkwqvtxbnmhjfgdpqlrc", true),
            ("XPQKZWVBTGHJDLMRNQFC", true),
            ("getUserAccountByIdentifier", false),
            ("HTTPSConnectionPoolTimeout", false),
        ] {
            assert_eq!(looks_made(value.as_bytes()), want, "{value}");
        }
        for (value, want) in [
            ("1qay@WXSk", true),
            ("Rrhh1234", true),
            ("mycoin!1", true),
            ("abuser123456", false),
            ("Mot-de-passe1", false),
            ("config.Db1!", false),
            ("P@ssw0rd1", false),
            ("Contrase\u{f1}a1", false),
        ] {
            assert_eq!(chosen(value.as_bytes()), want, "{value}");
        }
        assert!(entropy(b"aaaa") < 0.1 && entropy(b"abcd") > 1.9);
        assert_eq!(entropy(b"").max(0.0), 0.0);
        assert!(placeholder(b"AKIA-EXAMPLE") && !placeholder(b"q8Zr2LmX9vTb"));
    }
}
