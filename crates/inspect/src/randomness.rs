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
    "process.env",
    "os.environ",
    "getenv",
    "undefined",
];

/// What somebody types who makes a value up. Keys in base64 may hold it, and of a form of its own even that is a credential's.
const TYPED: &[&str] = &["abcdefgh", "12345678", "aaaaaaaa", "00000000"];

/// Whether the value says itself that it is none. Long values are only searched where such words stand.
pub(crate) fn placeholder(value: &[u8]) -> bool {
    value.ends_with(b"...")
        || match value.len() < LONG {
            true => has_one(value, PLACEHOLDERS),
            // So much of base64 holds a short word in some letters by chance: "hTOdOp".
            false => {
                let head = value.get(..LONG).unwrap_or_default();
                let one = |word: &&str, case: fn(&u8) -> bool| {
                    head.windows(word.len())
                        .any(|w| w.eq_ignore_ascii_case(word.as_bytes()) && w.iter().skip(1).all(case))
                };
                PLACEHOLDERS
                    .iter()
                    .any(|word| one(word, |b| !b.is_ascii_uppercase()) || one(word, |b| !b.is_ascii_lowercase()))
            }
        }
}

/// How much of a value is searched for words, and how long one is in which they stand by chance.
const LONG: usize = 64;

/// Whether it is the address of an account or a contract of Ethereum (EIP-55): its key is longer.
pub(crate) fn chain_address(value: &[u8]) -> bool {
    value.strip_prefix(b"0x").is_some_and(|digits| digits.len() == 40 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether somebody typed it as it came.
pub(crate) fn typed(value: &[u8]) -> bool {
    has_one(value, TYPED)
}

fn has_one(value: &[u8], words: &[&str]) -> bool {
    let head: Vec<u8> = value.iter().take(LONG).map(u8::to_ascii_lowercase).collect();
    words.iter().any(|word| head.windows(word.len()).any(|w| w == word.as_bytes()))
}

/// Words in made-up values. A value of a fixed format may hold them by chance.
const WRITTEN: &[&str] =
    &["test", "fake", "token", "sample", "secret", "value", "password", "user", "demo", "mock", "none", "null"];

/// Whether a value holds a word that people write where a made one would stand. Issuers' keys for tests begin with one.
pub(crate) fn written(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"test_").filter(|rest| hex(rest)).unwrap_or(value);
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

/// Shortest value that is a number in hex and no word.
const MIN_HEX: usize = 32;

/// Whether a value is a number in hex of 128 bits and more.
pub(crate) fn hex(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    value.len() >= MIN_HEX
        && value.iter().all(u8::is_ascii_hexdigit)
        && digits * 4 >= value.len()
        && (value.len() - digits) * 8 >= value.len()
}

/// Shortest password that shows by its signs that a program made it.
const MIN_GENERATED: usize = 12;
/// Fewest signs of such a one, and most small letters of it in a row.
const MIN_SIGNS: usize = 2;
const MAX_SMALL: usize = 4;

/// Whether a value looks like a password that a program made: signs among letters and digits, and no word. Regexes, formats and code have
/// signs, too.
pub(crate) fn generated(value: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| usize::from(value.iter().any(kind));
    let kinds = has(u8::is_ascii_lowercase) + has(u8::is_ascii_uppercase) + has(u8::is_ascii_digit);
    let joins = |b: &u8| b.is_ascii_alphanumeric() || b"-_./:".contains(b);
    let signs = value.iter().filter(|b| !joins(b)).count();
    let code: [&[u8]; 12] = [b"(?", b"[^", b"\\d", b"\\w", b"\\s", b"://", b"${", b"{{", b"%s", b"()", b"=>", b"&&"];
    value.len() >= MIN_GENERATED
        && value.iter().all(u8::is_ascii_graphic)
        && kinds >= 2
        && signs >= MIN_SIGNS
        && value.first() != Some(&b'^')
        && value.split(|b| !b.is_ascii_lowercase()).all(|word| word.len() <= MAX_SMALL)
        && !code.iter().any(|code| value.windows(code.len()).any(|w| w == *code))
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
    let visible = !example && value.iter().all(u8::is_ascii_graphic);
    visible && (kinds >= 3 && !value.iter().any(joins) || of_all_kinds(value))
}

/// Whether it has all four kinds, two digits among them, and joins no more than words.
fn of_all_kinds(value: &[u8]) -> bool {
    let any = |kind: fn(&u8) -> bool| value.iter().any(kind);
    any(u8::is_ascii_lowercase)
        && any(u8::is_ascii_uppercase)
        && value.iter().filter(|b| b.is_ascii_digit()).count() >= MIN_DIGITS
        && any(|b| b"!#&*+?@^~$%".contains(b))
        && !any(|b| b"/:,'\\<>(){}[]=`|".contains(b))
}

/// Fewest digits of a password that was chosen with a sign that joins words, and longest word on either side of one.
const MIN_DIGITS: usize = 2;
const MAX_JOINED: usize = 3;

/// Whether a value looks like a word and a number with any one sign between or behind them. Names of members and of files have words on
/// both sides.
pub(crate) fn word_and_number(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let signs = || value.iter().enumerate().filter(|(_, b)| b.is_ascii_punctuation());
    let word = |part: &[u8]| part.iter().take_while(|b| b.is_ascii_alphabetic()).count() > MAX_JOINED;
    digits >= MIN_DIGITS
        && value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().all(u8::is_ascii_graphic)
        && signs().count() == 1
        && signs().all(|(at, b)| !b"/\\<>(){}[],;:-".contains(b) && !word(value.get(at + 1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_chain() {
        let digits = "7fe575fe9f99a91c0c55b0378b8130d30e2f2d0c";
        for (value, want) in [
            (format!("0x{digits}"), true),
            (digits.to_owned(), false),
            (format!("0x{digits}d30e2f2d0c7fe575fe9f99a91"), false),
        ] {
            assert_eq!(chain_address(value.as_bytes()), want, "{value}");
        }
    }

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
        for (value, want) in [
            ("harley.968X", true),
            ("oliver_441X", true),
            ("correct%2595", true),
            ("nogard92!", true),
            ("config.Db11", true),
            ("config.Password11", false),
            ("release-2024.txt", false),
            ("path/to22", false),
            ("plainword", false),
        ] {
            assert_eq!(word_and_number(value.as_bytes()), want, "{value}");
        }
        for (value, want) in [
            ("f#a};!y~7VBcu<&F@[%,{b", true),
            ("4yd21JKH~GE8#kd", true),
            ("^[A-Z][a-z0-9]{8,20}$", false),
            ("a1B(?=.*2)3C", false),
            ("Some#other!Words2", false),
            ("#a1B!", false),
            ("a1b2-c3d4-e5f6", false),
        ] {
            assert_eq!(generated(value.as_bytes()), want, "{value}");
        }
        for (value, want) in [
            ("0f8c2e71a94bd36e55200f8c2e71a94b", true),
            ("0f8c2e71a94bd36e55", false),
            ("12345678901234567890123456789012", false),
            ("deadbeefdeadbeefdeadbeefdeadbeef", false),
        ] {
            assert_eq!(hex(value.as_bytes()), want, "{value}");
        }
        assert!(entropy(b"aaaa") < 0.1 && entropy(b"abcd") > 1.9);
        assert_eq!(entropy(b"").max(0.0), 0.0);
        assert!(placeholder(b"AKIA-EXAMPLE") && !placeholder(b"q8Zr2LmX9vTb"));
    }
}
